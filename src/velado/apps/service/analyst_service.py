"""The service at work: who calls and how often, how many questions run at once, what is noted of each."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.types import Receive

from velado.apps.service.hosted_datasets import HostedDataset, HostedDatasets
from velado.apps.service.problems import LOG, Refusal, problem_of, unexpected
from velado.apps.service.service_metrics import ServiceMetrics
from velado.apps.service.service_settings import ServiceSettings
from velado.apps.service.tokens import Token, Tokens
from velado.data.staging import reason_of
from velado.errors import InputError, OutputError, VeladoError
from velado.randomness import secure
from velado.text import say

Result = TypeVar("Result")
GRACE = 2.0
"""Seconds beyond the query's own limit before the reply is given up."""
CLOSING = 3.0
"""Seconds that closing ledgers and engines may take; a thread that ignores its time may hold one of them."""
LASTING = frozenset({"answer", "cap", "raise", "token-add", "token-revoke", "dataset-add", "dataset-remove"})
"""What changes a ledger, or who may ask what: it is written down before it is done, or it is not done."""
_COARSE = (0.1, 1.0, 10.0, 100.0)
_MOST_KEYS = 10_000


def refuse_analysts(token: Token, *, everywhere: bool = False) -> None:
    """Nothing, where the token is an owner's, and with *everywhere* opens every data set; else the Problem that says so.

    The one check of who may manage. An owner of some data sets could make a token that opens the others.

    >>> refuse_analysts(Token("1f", "0" * 64, "owner", "root", "2026-01-01T00:00:00+00:00"), everywhere=True)
    """
    if token.role != "owner":
        raise Refusal.OWNERS_ONLY.problem()
    if everywhere and token.datasets:
        raise Refusal.OWNERS_OF_ALL.problem()


class AnalystService:
    """Everything a request needs, made from the settings and given back by `close`.

    >>> AnalystService(ServiceSettings({}, Path("nowhere.json"), Path("audit.jsonl")))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.InputError: The tokens file cannot be read. ...
    """

    def __init__(self, settings: ServiceSettings) -> None:
        limits = settings.limits
        self.settings = settings
        self.metrics = ServiceMetrics(settings.shared)
        self.tokens = Tokens(settings.tokens)
        self.audit = AuditFile(settings.audit)
        self.hosted = HostedDatasets(settings)
        self._rate = RateLimiter(limits.requests_per_minute, limits.burst)
        self._tries = RateLimiter(
            limits.failed_tokens_per_minute, max(1, int(limits.failed_tokens_per_minute))
        )
        self._executor = BoundedExecutor(limits.concurrent_queries, limits.waiting_queries)
        self._stopping: float | None = None
        self._ended: bool | None = None

    def stop(self) -> None:
        """The time that running questions still have begins now, if it has not begun."""
        self._stopping = self._stopping or time.monotonic()

    async def close(self) -> None:
        """Running questions have ended, or had a query's time since `stop`; ledgers and files are closed."""
        self.stop()
        await self._executor.close((self._stopping or 0.0) + self.settings.limits.query_seconds + GRACE)
        self.give_back()

    def give_back(self) -> bool:
        """Ledgers and files are closed; whether all questions had ended before.

        If not, the process must be ended without waiting for its threads. Their questions are paid and their
        answers lost: budget is lost, never privacy.
        """
        if self._ended is None:
            ended = not self._executor.at_work
            if not ended:
                LOG.warning("a question went on beyond its time at the end; if it is paid, it stays paid")
            closing = threading.Thread(target=self._close_files, name="velado-closing", daemon=True)
            closing.start()
            closing.join(CLOSING)
            self._ended = ended and not closing.is_alive()
        return self._ended

    def _close_files(self) -> None:
        try:
            self.audit.close()
            # Ledgers first: what matters most is closed even if an engine does not let go.
            self.hosted.close_ledgers()
            self.hosted.close()
        except (VeladoError, OSError) as error:
            unexpected(error)

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
                raise unexpected(error) from None
        if token is None or token.state(datetime.now(UTC)) != "valid":
            # A request without any token is no guess, and must not shut out those who share the address.
            if authorization is not None:
                if (wait := self._tries.take(address)) > 0:
                    raise Refusal.TOO_MANY_TRIES.problem(wait)
                self._note(AuditLine("token", "refused", token=None if token is None else token.id))
            raise Refusal.NO_TOKEN.problem()
        if (wait := self._rate.take(token.id)) > 0:
            self._note(AuditLine("rate", "refused", analyst=token.analyst, token=token.id))
            raise Refusal.TOO_OFTEN.problem(wait)
        return token

    def dataset(self, token: Token, name: str, *, for_owner: bool = False) -> HostedDataset:
        """The data set if it is there for this token, which must be an owner's where that is asked for."""
        if for_owner:
            refuse_analysts(token)
        found = self.hosted.datasets.get(name)
        if found is None or not token.may_ask(name):
            raise Refusal.NO_DATASET.problem()
        return found

    def opened(self, token: Token) -> dict[str, HostedDataset]:
        """The data sets that the token opens, by name."""
        return {name: hosted for name, hosted in self.hosted.datasets.items() if token.may_ask(name)}

    async def settle(self) -> None:
        """What another process of this service added or took out is so here too."""
        if self.hosted.changed():
            try:
                await self.work(self.hosted.refresh)
            except VeladoError as error:
                LOG.error("datasets: %s", error.what)

    async def work(self, job: Callable[[], Result], receive: Receive | None = None) -> Result:
        """The job's result, from one of the few threads that run questions, within a query's time."""
        return await self._executor.run(job, self.settings.limits.query_seconds, receive)

    async def on_tick(self, job: Callable[[], Result], receive: Receive | None = None) -> Result:
        """As `work`, but result or error come after a whole number of ticks, so that the engine's time tells less."""
        started = time.monotonic()
        try:
            return await self.work(job, receive)
        finally:
            await asyncio.sleep(until_tick(time.monotonic() - started, self.settings.limits.tick_seconds))

    @contextlib.asynccontextmanager
    async def noted(self, action: str, token: Token, dataset: str) -> AsyncIterator[AuditLine]:
        """What happens inside is written to the audit file with its outcome, question and cost.

        What changes a ledger is also written before it begins, and refused where that fails: a file that
        cannot be written must not cost anybody budget. Both lines carry the same id.
        """
        started = time.monotonic()
        line = AuditLine(
            action,
            "asked",
            analyst=token.analyst,
            token=token.id,
            dataset=dataset if dataset in self.hosted.datasets else None,
            request=secure().randbytes(6).hex(),
        )
        if action in LASTING:
            try:
                self.audit.write(line)
            except OutputError as error:
                LOG.error("audit: %s", error.what)
                raise Refusal.NO_AUDIT.problem() from None
        line = replace(line, outcome="done")
        outcome = "interrupted"
        try:
            yield line
            outcome = line.outcome
        except Exception as error:
            problem = problem_of(error)
            outcome = problem.code
            raise problem from None
        finally:
            self._note(replace(line, outcome=outcome, duration=coarse(time.monotonic() - started)))

    def _note(self, line: AuditLine) -> None:
        """A line of the audit file about what is already decided; if it fails, the private log says so."""
        try:
            self.audit.write(line)
        except OutputError as error:
            LOG.error("audit: %s", error.what)


def until_tick(passed: float, tick: float) -> float:
    """The seconds from *passed* to the next whole number of ticks, the first included; none where there are no ticks.

    >>> until_tick(0.03, 0.25), until_tick(0.25, 0.25), until_tick(7.0, 0.0)
    (0.22, 0.0, 0.0)
    """
    return max(1, math.ceil(passed / tick)) * tick - passed if tick > 0 else 0.0


class BoundedExecutor:
    """At most *threads* jobs run at once and *waiting* more wait, in the order they came. Of one event loop.

    One whose client left or whose time is up before its turn never begins, so it is never paid. anyio has the
    queue and the threads; a job keeps its place until it has really ended, since a thread that draws noise
    cannot be stopped.

    >>> asyncio.run(BoundedExecutor(threads=2, waiting=8).run(lambda: 6 * 7, seconds=5))
    42
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._turns, self._threads = CapacityLimiter(threads), CapacityLimiter(math.inf)
        self._most = threads + waiting
        self._held: set[_Turn] = set()
        self._closed = False

    @property
    def at_work(self) -> bool:
        """Whether a thread still computes, the event loop's end notwithstanding."""
        return any(turn.begun and not turn.ended for turn in self._held)

    async def run(self, job: Callable[[], Result], seconds: float, receive: Receive | None = None) -> Result:
        """The job's result; too many waiting are turned away, and waiting counts as time.

        A job that waited too long, or whose client left meanwhile (*receive* tells), is dropped before it
        begins. One that has begun goes on: its answer is recorded and free later.
        """
        if self._closed or len(self._held) >= self._most:
            raise Refusal.TOO_BUSY.problem(1)
        turn = _Turn(time.monotonic() + seconds)
        self._held.add(turn)
        turn.task = task = asyncio.create_task(self._carry_out(job, turn))
        task.add_done_callback(lambda _: self._release(turn))
        leaving = None if receive is None else asyncio.create_task(_left(receive))
        try:
            watched: set[asyncio.Task[Any]] = {task} if leaving is None else {task, leaving}
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not turn.begun:
                # Not by the clock: an event loop counts whole milliseconds and may wake a moment early.
                left = leaving is not None and leaving.done()
                raise Refusal.CLIENT_LEFT.problem() if left else Refusal.WAITED_TOO_LONG.problem(1)
            if not task.done():
                # The engine has its own limit of time, and this one is for whatever ignores it.
                await asyncio.wait({task}, timeout=turn.until + GRACE - time.monotonic())
            if not task.done():
                raise Refusal.TOO_LONG_AT_WORK.problem()
            if task.cancelled():
                raise Refusal.TOO_BUSY.problem(1)
            return task.result()
        finally:
            if leaving is not None:
                leaving.cancel()
            # A request that was cancelled takes a job that has not begun along.
            if not turn.begun:
                task.cancel()

    async def close(self, until: float) -> bool:
        """Nothing more begins; whether what ran has ended by *until* (monotonic)."""
        self._closed = True
        tasks = {turn.task: turn for turn in self._held if turn.task is not None}
        for task, turn in tasks.items():
            if not turn.begun:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, until - time.monotonic()))
        return not self.at_work

    async def _carry_out(self, job: Callable[[], Result], turn: _Turn) -> Result:
        async with self._turns:
            if time.monotonic() >= turn.until:
                raise Refusal.WAITED_TOO_LONG.problem(1)
            turn.begun = True

            def until_it_ends() -> Result:
                try:
                    return job()
                finally:
                    turn.ended = True

            return await to_thread.run_sync(until_it_ends, limiter=self._threads)

    def _release(self, turn: _Turn) -> None:
        """There is room for another, unless the event loop ended before the thread."""
        if turn.ended or not turn.begun:
            self._held.discard(turn)
        if turn.task is not None and not turn.task.cancelled():
            # Looked at, so that Python does not complain of an error whose request has gone.
            turn.task.exception()


@dataclass(eq=False)
class _Turn:
    """How far one job has come; *ended* is written by its thread, everything else by the event loop."""

    until: float
    begun: bool = False
    ended: bool = False
    task: asyncio.Task[Any] | None = None


async def _left(receive: Receive) -> None:
    """Ends when the client does."""
    while (await receive())["type"] != "http.disconnect":
        pass


class RateLimiter:
    """At most *burst* requests at once and *per_minute* on average for each key, in this process's memory.

    The generic cell rate algorithm, which is a token bucket kept as one number: when the key's bucket will be
    full. At most 10,000 keys are kept; beyond that full buckets, which say nothing, are dropped first and
    then the oldest. Why not the library `limits`: docs/decisions/0015.

    >>> limiter = RateLimiter(per_minute=60, burst=2, clock=lambda: 0.0)
    >>> [limiter.take("ana") for _ in range(3)], limiter.take("bia")
    ([0.0, 0.0, 1.0], 0.0)
    """

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval, self._ahead = 60 / per_minute, (burst - 1) * 60 / per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._full: dict[str, float] = {}

    def take(self, key: str) -> float:
        """0 when a request may pass and is counted, else the seconds until one may."""
        with self._lock:
            now = self._clock()
            full = max(now, self._full.get(key, now))
            if (wait := full - now - self._ahead) > 1e-9:
                return wait
            if len(self._full) >= _MOST_KEYS and key not in self._full:
                old = [name for name, at in self._full.items() if at <= now]
                # A tenth at once, so that a flood of new keys does not cost a look at all of them each time.
                for name in old or list(islice(self._full, _MOST_KEYS // 10)):
                    del self._full[name]
            self._full[key] = full + self._interval
            return 0.0


def coarse(seconds: float) -> str:
    """The duration to a power of ten, because how long an answer took can tell of rows.

    >>> coarse(0.02), coarse(3), coarse(1000)
    ('<0.1s', '<10s', '>=100s')
    """
    return next((f"<{bound:g}s" for bound in _COARSE if seconds < bound), f">={_COARSE[-1]:g}s")


@dataclass
class AuditLine:
    """Who asked what and how it ended.

    No value of a row, no answer and no query text: a query may hold values its author typed.

    A question is named by its fingerprint, under which the ledger has it. What changes a ledger has two lines
    with one *request*: "asked" before it begins, and its outcome; an "asked" alone was interrupted.

    >>> AuditLine("token", "refused").text("2026-01-01")
    '{"time": "2026-01-01", "action": "token", "outcome": "refused"}'
    """

    action: str
    outcome: str
    analyst: str | None = None
    token: str | None = None
    dataset: str | None = None
    request: str | None = None
    question: str | None = None
    cost: str | None = None
    duration: str | None = None

    def text(self, at: str) -> str:
        """As one line of JSON, without what is not known."""
        return json.dumps({"time": at} | {k: v for k, v in asdict(self).items() if v is not None})


class AuditFile:
    """A file that is opened for appending alone; every line is one write, so that processes may share it.

    >>> AuditFile(Path("/nowhere/audit.jsonl"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.OutputError: The audit file cannot be opened for writing. ...
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._torn = False
        try:
            self._handle: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            raise OutputError(
                "The audit file cannot be opened for writing.",
                "The service answers only what it can write down.",
                "Check the folder and its rights, or name another in service.toml.",
            ) from None

    def write(self, line: AuditLine) -> None:
        """The line stands in the file, whole, or OutputError."""
        text = line.text(datetime.now(UTC).isoformat(timespec="seconds")) + "\n"
        with self._lock:
            try:
                self._append(text.encode())
            except OSError as error:
                raise OutputError(
                    say("A line of the audit file could not be written ({reason}).", reason=reason_of(error)),
                    "The service answers only what it can write down.",
                    "Make room on its disk, or check the file's rights.",
                ) from None

    def _append(self, line: bytes) -> None:
        """One write; the rest of a short one follows, and what cannot follow does not spoil the next line."""
        if self._handle is None:
            raise OSError(errno.EBADF, "it is closed")
        if self._torn:
            line = b"\n" + line
        written = os.write(self._handle, line)
        while written < len(line):
            self._torn = True
            written += os.write(self._handle, line[written:])
        self._torn = False

    def close(self) -> None:
        """The file is on disk, as far as its disk allows, and closed."""
        with self._lock:
            if self._handle is not None:
                # A pipe or a terminal cannot be synchronised, and needs not be.
                with contextlib.suppress(OSError):
                    os.fsync(self._handle)
                os.close(self._handle)
                self._handle = None
