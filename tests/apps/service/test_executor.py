"""Time limits: what waits too long or for nobody is never begun and never paid, and a stop ends in time."""

import asyncio
import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from velado.apps.service.analyst_service import CLOSING, GRACE, BoundedExecutor
from velado.apps.service.problems import Problem

from .running import BOUND, Reply, Running, running, write_service

COUNT = "SELECT COUNT(*) FROM people"
SUM = "SELECT SUM(age) FROM people"


@contextlib.contextmanager
def ledger_busy(folder: Path) -> Iterator[None]:
    """Another program writes to the ledger: a question that has begun waits for it, beyond any limit of the engine."""
    other = sqlite3.connect(folder / "people.ledger", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        with contextlib.suppress(sqlite3.Error):
            other.execute("ROLLBACK")
        other.close()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + BOUND
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def begin(service: Running, sql: str, into: list[Reply]) -> threading.Thread:
    """The question is asked in a thread; the audit file says that it arrived when this returns."""
    before = outcomes(service).count("asked")

    def ask() -> None:
        with contextlib.suppress(OSError):
            into.append(service.ask(sql))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: outcomes(service).count("asked") > before)
    return thread


def outcomes(service: Running) -> list[str]:
    text = (service.folder / "audit.jsonl").read_text()
    return [json.loads(line)["outcome"] for line in text.splitlines(keepends=True) if line.endswith("\n")]


def paid(service: Running) -> list[str]:
    found = service.call("GET", "/v1/answers?dataset=people").json["answers"]
    return [entry["sql"].split("(")[0].removeprefix("SELECT ") for entry in found]


@pytest.mark.slow
def test_a_stop_while_a_question_hangs_ends_within_the_limit(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    file.write_text(file.read_text().replace("query_seconds = 20", "query_seconds = 1"))
    with running(file) as service, ledger_busy(tmp_path):
        thread = begin(service, COUNT, [])
        started = time.monotonic()
        code, log = service.stop()
        took = time.monotonic() - started
        thread.join()
        tokens = service.tokens
    assert code == 0 and took < 1 + GRACE + CLOSING + 4, took
    assert "beyond its time" in log and "COUNT" not in log
    # What was cut off harmed nothing.
    with running(file, tokens) as service:
        assert service.ask(COUNT).status == 200
        assert service.call("GET", "/v1/ledger/verify?dataset=people", who="root").status == 200


@pytest.mark.slow
def test_a_question_whose_turn_does_not_come_in_time_is_not_paid(tmp_path: Path) -> None:
    file = write_service(tmp_path, limits="concurrent_queries = 1")
    file.write_text(file.read_text().replace("query_seconds = 20", "query_seconds = 1"))
    with running(file) as service:
        first: list[Reply] = []
        second: list[Reply] = []
        with ledger_busy(tmp_path):
            threads = [begin(service, COUNT, first), begin(service, SUM, second)]
            for thread in threads:
                thread.join()
        assert (first[0].status, first[0].json["code"]) == (504, "time")
        assert (second[0].status, second[0].json["code"]) == (503, "busy")
        assert "Nothing was spent" in second[0].text and second[0].headers["retry-after"] == "1"
        until(lambda: service.ask(COUNT).json.get("stored", False))
        assert paid(service) == ["COUNT"]


@pytest.mark.slow
def test_a_question_whose_client_left_before_its_turn_is_not_paid(tmp_path: Path) -> None:
    file = write_service(tmp_path, limits="concurrent_queries = 1")
    with running(file) as service:
        first: list[Reply] = []
        with ledger_busy(tmp_path):
            thread = begin(service, COUNT, first)
            connection = service.connect()
            body = json.dumps({"dataset": "people", "sql": SUM})
            head = {"Authorization": f"Bearer {service.tokens['ana']}", "Content-Type": "application/json"}
            connection.request("POST", "/v1/answers", body, head)
            until(lambda: outcomes(service).count("asked") == 2)
            connection.close()
            until(lambda: "left" in outcomes(service))
        thread.join()
        assert first[0].status == 200
        # One thread alone: this comes after whatever still waited.
        assert service.ask("SELECT MAX(age) FROM people").status == 200
        assert paid(service) == ["MAX", "COUNT"]
        assert Fraction(service.call("GET", "/v1/budget").json["budgets"][0]["spent"]) <= Fraction(1, 5)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What jobs wait for; set at the end even where a test fails, or Python would wait for their threads."""
    event = threading.Event()
    yield event
    event.set()


async def begun(job: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The job waits for its turn, or has begun if there was a thread for it."""
    task = asyncio.create_task(job)
    await asyncio.sleep(0.05)
    return task


def test_turns_come_in_order_and_room_is_given_back(gate: threading.Event) -> None:
    async def play() -> None:
        executor = BoundedExecutor(1, 2)
        seen: list[int] = []
        running_job = await begun(executor.run(gate.wait, BOUND))
        waiting = [await begun(executor.run(lambda n=n: seen.append(n), BOUND)) for n in (1, 2)]  # type: ignore[misc]
        with pytest.raises(Problem, match="busy"):
            await executor.run(lambda: seen.append(3), BOUND)
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        # Its room is free at once, and whose time is up before its turn never begins.
        with pytest.raises(Problem, match="busy"):
            await executor.run(lambda: seen.append(4), 0.1)
        last = await begun(executor.run(lambda: seen.append(5), BOUND))
        gate.set()
        assert await running_job
        await asyncio.gather(waiting[1], last)
        assert seen == [2, 5]
        with pytest.raises(ZeroDivisionError):
            await executor.run(lambda: 1 // 0, BOUND)
        assert await executor.run(lambda: 6, BOUND) == 6 and not executor.at_work

    asyncio.run(play())


def test_time_that_is_up_is_not_called_a_client_that_left(gate: threading.Event) -> None:
    """Event loops wake early: uvloop counts whole milliseconds."""

    class Early(asyncio.SelectorEventLoop):
        def call_later(self, delay: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
            return super().call_later(max(0.0, delay - 0.02), *args, **kwargs)

    async def play() -> None:
        executor = BoundedExecutor(1, 1)
        job = await begun(executor.run(gate.wait, BOUND))
        never = asyncio.Event()

        async def receive() -> dict[str, str]:
            await never.wait()
            return {"type": "http.disconnect"}

        with pytest.raises(Problem, match="busy"):
            await executor.run(lambda: None, 0.1, receive)
        gate.set()
        assert await job

    with asyncio.Runner(loop_factory=Early) as runner:
        runner.run(play())


def test_a_job_whose_request_has_gone_keeps_its_place_until_its_thread_ends(gate: threading.Event) -> None:
    """Otherwise hanging questions, each given up by its client, would pile up beyond any limit."""

    async def play() -> None:
        executor = BoundedExecutor(2, 0)
        for _ in range(2):
            (await begun(executor.run(gate.wait, BOUND))).cancel()
        await asyncio.sleep(0.05)
        with pytest.raises(Problem, match="busy"):
            await executor.run(lambda: None, BOUND)
        assert executor.at_work
        gate.set()
        while executor.at_work:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert await executor.run(lambda: 7, BOUND) == 7

    asyncio.run(play())


def test_a_close_drops_what_waits_and_says_what_did_not_end(gate: threading.Event) -> None:
    async def play() -> None:
        executor = BoundedExecutor(1, 2)
        seen: list[int] = []
        stuck = await begun(executor.run(gate.wait, BOUND))
        waiting = await begun(executor.run(lambda: seen.append(1), BOUND))
        started = time.monotonic()
        assert not await executor.close(started + 0.2) and 0.15 < time.monotonic() - started < 5
        for job in (waiting, executor.run(lambda: seen.append(2), BOUND)):
            with pytest.raises(Problem, match="busy"):
                await job
        gate.set()
        assert await executor.close(time.monotonic() + BOUND) and await stuck and seen == []

    asyncio.run(play())


def test_a_thread_that_outlives_the_event_loop_is_known(gate: threading.Event) -> None:
    executor = BoundedExecutor(1, 0)

    async def leave() -> None:
        await begun(executor.run(gate.wait, BOUND))

    asyncio.run(leave())
    assert executor.at_work
    gate.set()
    until(lambda: not executor.at_work)
