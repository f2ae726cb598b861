"""The service at work: who is calling, how many questions run at once, and what is written down of each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from velado.apps.web import failures
from velado.apps.web.audit import Audit
from velado.apps.web.limits import Buckets
from velado.apps.web.metrics import Metrics
from velado.apps.web.settings import Settings
from velado.apps.web.shelf import Shelf, Shelved
from velado.apps.web.tokens import Token, Tokens
from velado.errors import InputError

Result = TypeVar("Result")
GRACE = 2.0
"""Seconds beyond the query's own limit before the reply is given up."""


class Service:
    """Everything a request needs, made from the settings and given back by `close`."""

    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.settings = settings
        self.metrics = Metrics()
        self.tokens = Tokens(settings.tokens)
        self.audit = Audit(settings.audit)
        self.shelf = Shelf(settings)
        self._rate = Buckets(limits.requests_per_minute, limits.burst)
        self._tries = Buckets(limits.failed_tokens_per_minute, max(1, int(limits.failed_tokens_per_minute)))
        self._threads = ThreadPoolExecutor(limits.concurrent_queries, thread_name_prefix="velado-query")
        self._running = 0

    def close(self) -> None:
        """Running questions end (each is bounded by its time limit), then ledgers and files are closed."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.shelf.close()
        self.audit.close()

    def share(self) -> None:
        """This process's counts stand where the service's other processes read them; whole or not at all."""
        if self.settings.shared is not None:
            file = self.settings.shared / f"{os.getpid()}.json"
            scratch = file.with_suffix(".new")
            scratch.write_text(json.dumps(self.metrics.snapshot()))
            scratch.replace(file)

    def all_metrics(self) -> Metrics:
        """The counts of all processes of the service; the others' as of a second ago."""
        if self.settings.shared is None:
            return self.metrics
        whole = Metrics()
        whole.add(self.metrics.snapshot())
        for file in self.settings.shared.glob("*.json"):
            if file.stem != str(os.getpid()):
                whole.add(json.loads(file.read_text()))
        return whole

    def caller(self, authorization: str | None, address: str) -> Token:
        """The token of a request, within its rate, or the Problem why there is none."""
        wait = self._tries.wait(address)
        if wait > 0:
            raise failures.too_many_tries(wait)
        scheme, _, text = (authorization or "").partition(" ")
        token: Token | None = None
        if scheme.lower() == "bearer" and 0 < len(text) <= 200:
            try:
                token = self.tokens.find(text.strip())
            except InputError as error:
                raise failures.unexpected(error) from None
        if token is None or token.state(datetime.now(UTC)) != "valid":
            # A request without any token is no guess, and must not shut out those who share the address.
            if authorization is not None:
                self._tries.take(address)
                self.audit.write("token", "refused", token=None if token is None else token.id)
            raise failures.no_token()
        wait = self._rate.take(token.id)
        if wait > 0:
            self.audit.write("rate", "refused", analyst=token.analyst, token=token.id)
            raise failures.too_often(wait)
        return token

    def owner(self, token: Token) -> Token:
        """The token if it is an owner's."""
        if token.role != "owner":
            raise failures.owners_only()
        return token

    def dataset(self, token: Token, name: str) -> Shelved:
        """The data set if it is there for this token."""
        found = self.shelf.datasets.get(name)
        if found is None or not token.may_ask(name):
            raise failures.no_dataset()
        return found

    async def work(self, job: Callable[[], Result]) -> Result:
        """The job's result, from one of the few threads that run questions; too many waiting are turned away."""
        limits = self.settings.limits
        if self._running >= limits.concurrent_queries + limits.waiting_queries:
            raise failures.too_busy()
        self._running += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, job)
        future.add_done_callback(self._ended)
        try:
            # A thread cannot be stopped: the engine has its own limit, and this one is for whatever ignores it.
            # Time spent waiting for a thread counts too.
            return await asyncio.wait_for(asyncio.shield(future), limits.query_seconds + GRACE)
        except TimeoutError:
            raise failures.too_long_at_work() from None

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self._running -= 1
        if not future.cancelled():
            future.exception()

    @contextlib.asynccontextmanager
    async def noted(
        self, action: str, token: Token, dataset: str | None = None
    ) -> AsyncIterator[dict[str, str]]:
        """What happens inside is written to the audit file with its outcome; the dictionary takes question and cost."""
        started = time.monotonic()
        found: dict[str, str] = {}
        outcome = "interrupted"
        try:
            yield found
            outcome = found.pop("outcome", "done")
        except Exception as error:
            problem = failures.problem_of(error)
            outcome = problem.code
            raise problem from None
        finally:
            self.audit.write(
                action,
                outcome,
                analyst=token.analyst,
                token=token.id,
                dataset=dataset if dataset in self.shelf.datasets else None,
                seconds=time.monotonic() - started,
                **found,
            )
