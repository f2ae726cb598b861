"""Time limits: what waits too long or for nobody is never begun and never paid, and a stop ends in time."""

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.web.failures import Problem
from velado.apps.web.service import CLOSING, GRACE
from velado.apps.web.turns import Turns

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


def test_turns_come_in_order_and_room_is_given_back() -> None:
    turns = Turns(1, 2)
    gate, seen = threading.Event(), []
    later = time.monotonic() + BOUND
    running_job = turns.take(gate.wait, later)
    until(running_job.running)
    waiting = [turns.take(lambda n=n: seen.append(n), later) for n in (1, 2)]  # type: ignore[misc]
    with pytest.raises(Problem, match="busy"):
        turns.take(lambda: seen.append(3), later)
    assert waiting[0].cancel()
    late = turns.take(lambda: seen.append(4), time.monotonic() - 1)
    gate.set()
    with pytest.raises(Problem, match="busy"):
        late.result(BOUND)
    assert waiting[1].result(BOUND) is None and seen == [2]
    broken = turns.take(lambda: 1 // 0, later)
    with pytest.raises(ZeroDivisionError):
        broken.result(BOUND)
    assert turns.take(lambda: 5, later).result(BOUND) == 5


def test_a_close_drops_what_waits_and_says_what_did_not_end() -> None:
    turns = Turns(1, 2)
    gate, seen = threading.Event(), []
    later = time.monotonic() + BOUND
    stuck = turns.take(gate.wait, later)
    until(stuck.running)
    waiting = turns.take(lambda: seen.append(1), later)
    started = time.monotonic()
    assert not turns.close(started + 0.2) and 0.15 < time.monotonic() - started < 5
    assert waiting.cancelled()
    with pytest.raises(Problem):
        turns.take(lambda: seen.append(2), later)
    gate.set()
    assert turns.close(time.monotonic() + BOUND) and seen == []
