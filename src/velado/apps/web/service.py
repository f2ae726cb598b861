"""The service at work: who is calling, how many questions run at once, and what is written down of each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from velado.apps.web import failures
from velado.apps.web.audit import Audit
from velado.apps.web.limits import Buckets
from velado.apps.web.metrics import Metrics
from velado.apps.web.settings import Settings
from velado.apps.web.shelf import Shelf, Shelved
from velado.apps.web.tokens import Token, Tokens
from velado.apps.web.turns import Turns
from velado.errors import InputError, OutputError, VeladoError
from velado.randomness import secure

Result = TypeVar("Result")
GRACE = 2.0
"""Seconds beyond the query's own limit before the reply is given up."""
CLOSING = 3.0
"""Seconds that closing ledgers and engines may take; a thread that ignores its time may hold one of them."""
LASTING = frozenset({"answer", "cap", "raise"})
"""What changes a ledger: it is written down before it is done, or it is not done."""

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


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
        self._turns = Turns(limits.concurrent_queries, limits.waiting_queries)
        self._stopping: float | None = None
        self._ended: bool | None = None

    def stop(self) -> None:
        """The time that running questions still have begins now, if it has not begun."""
        self._stopping = self._stopping or time.monotonic()

    def close(self) -> bool:
        """Ledgers and files are closed; whether all questions ended before, within a query's time from `stop`.

        If not, the process must be ended without waiting for its threads. Their questions are paid and their answers
        lost: budget is lost, never privacy.
        """
        if self._ended is not None:
            return self._ended
        self.stop()
        until = (self._stopping or 0.0) + self.settings.limits.query_seconds + GRACE
        ended = self._turns.close(until)
        if not ended:
            failures.LOG.warning(
                "a question went on beyond its time at the end; if it is paid, it stays paid"
            )
        closing = threading.Thread(target=self._give_back, name="velado-closing", daemon=True)
        closing.start()
        closing.join(CLOSING)
        self._ended = ended and not closing.is_alive()
        return self._ended

    def _give_back(self) -> None:
        try:
            self.audit.close()
            # Ledgers first: what matters most is closed even if an engine does not let go.
            for shelved in self.shelf.datasets.values():
                shelved.ledger.close()
            self.shelf.close()
        except (VeladoError, OSError) as error:
            failures.unexpected(error)

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
        """The token of a request, within its rate, or the Problem why there is none.

        Wrong tokens are slowed down by address; a right one is served whatever others at its address tried.
        """
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
                wait = self._tries.take(address)
                if wait > 0:
                    raise failures.too_many_tries(wait)
                self._note("token", "refused", token=None if token is None else token.id)
            raise failures.no_token()
        wait = self._rate.take(token.id)
        if wait > 0:
            self._note("rate", "refused", analyst=token.analyst, token=token.id)
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

    async def work(self, job: Callable[[], Result], receive: Receive | None = None) -> Result:
        """The job's result, from one of the few threads that run questions; too many waiting are turned away.

        Waiting for a thread counts as time. A job that waited too long, or whose client left meanwhile (*receive* tells),
        is dropped before it begins, so nothing is paid. One that has begun goes on: its answer is recorded and free later.
        """
        seconds = self.settings.limits.query_seconds
        until = time.monotonic() + seconds
        future = self._turns.take(job, until)
        result = asyncio.wrap_future(future)
        leaving = None if receive is None else asyncio.create_task(_left(receive))
        try:
            watched: set[asyncio.Future[Any]] = {result} if leaving is None else {result, leaving}
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not result.done() and future.cancel():
                raise failures.waited_too_long() if time.monotonic() >= until else failures.left()
            if not result.done():
                # A thread cannot be stopped: the engine has its own limit, and this one is for whatever ignores it.
                await asyncio.wait({result}, timeout=until + GRACE - time.monotonic())
            if not result.done():
                raise failures.too_long_at_work()
            return result.result()
        finally:
            if leaving is not None:
                leaving.cancel()
            # A request that was cancelled takes a job that has not begun along.
            result.cancel()

    @contextlib.asynccontextmanager
    async def noted(
        self, action: str, token: Token, dataset: str | None = None
    ) -> AsyncIterator[dict[str, str]]:
        """What happens inside is written to the audit file with its outcome; the dictionary takes question and cost.

        What changes a ledger is also written before it begins, and refused where that fails: a file that cannot be
        written must not cost anybody budget. Both lines carry the same id.
        """
        started = time.monotonic()
        found: dict[str, str] = {}
        about: dict[str, Any] = {
            "analyst": token.analyst,
            "token": token.id,
            "request": secure().randbytes(6).hex(),
        }
        if dataset is not None and dataset in self.shelf.datasets:
            about["dataset"] = dataset
        if action in LASTING:
            try:
                self.audit.write(action, "asked", **about)
            except OutputError as error:
                failures.LOG.error("audit: %s", error.what)
                raise failures.no_audit() from None
        outcome = "interrupted"
        try:
            yield found
            outcome = found.pop("outcome", "done")
        except Exception as error:
            problem = failures.problem_of(error)
            outcome = problem.code
            raise problem from None
        finally:
            self._note(action, outcome, seconds=time.monotonic() - started, **about, **found)

    def _note(self, action: str, outcome: str, *, seconds: float | None = None, **about: Any) -> None:
        """A line of the audit file about what is already decided; if it fails, the private log says so."""
        try:
            self.audit.write(action, outcome, seconds=seconds, **about)
        except OutputError as error:
            failures.LOG.error("audit: %s", error.what)


async def _left(receive: Receive) -> None:
    """Ends when the client does."""
    while (await receive())["type"] != "http.disconnect":
        pass
