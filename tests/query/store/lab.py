"""A process of its own in which ledgers are asked by many, and in which askers are killed; run by the tests beside it.

`python lab.py ask WHERE NAME ASKS COST` asks for ASKS answers and prints how many it got. `python lab.py crash WHERE
ROUNDS COST ORDER SEED` forks an asker per round, which dies by SIGKILL at a chosen step or at a random moment, and prints what
became of the ledger. The asker's answers reach its parent through a pipe, as an analyst would see them. `python lab.py contend WHERE
ASKERS KILLS COST SEED` keeps ASKERS processes asking real questions of a table at once, kills one after the other at random moments, begins
a new one for each, and then lets the last ones ask until nothing is left.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

import polars as pl

from velado.data.schema import Column, Schema
from velado.data.seals import Seal
from velado.data.table import Table
from velado.errors import BudgetExceeded
from velado.query.budget import Charge
from velado.query.engines import engine_for_table
from velado.query.session import Session
from velado.query.store import ChainedLedger, open_ledger
from velado.query.store._ledger import _addresses
from velado.query.unit import Unit

STEPS = ("locked", "begun", "appended", "committed", "sealed", "released", "reserved", "drawn", "recorded")
RANDOM = "random"


class TellingShelf:
    """A shelf that says each step it has taken."""

    def __init__(self, shelf, tell: Callable[[str], None]) -> None:
        self._shelf, self._tell = shelf, tell
        self.at, self.after, self.close = shelf.at, shelf.after, shelf.close

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._shelf.writing():
            self._tell("begun")
            yield
        self._tell("committed")

    def append(self, entries) -> None:
        self._shelf.append(entries)
        self._tell("appended")


class TellingSeal(Seal):
    """A seal that says each step it has taken."""

    tell: Callable[[str], None]

    @contextmanager
    def held(self) -> Iterator[None]:
        with super().held():
            self.tell("locked")
            yield
        self.tell("released")

    def write(self, mark) -> None:
        super().write(mark)
        self.tell("sealed")


def telling_ledger(where: str, tell: Callable[[str], None]) -> ChainedLedger:
    place, path = _addresses(where, None)

    def connect():
        seal = TellingSeal(path)
        seal.tell = tell
        return TellingShelf(place.open(), tell), seal

    return ChainedLedger(connect)


def asker(where: str, cost: Fraction, out: int, dies_at: str, after: int, order: str, name: str) -> None:
    """Asks until killed; each answer is written to *out* once it is recorded."""
    seen = 0

    def tell(step: str) -> None:
        nonlocal seen
        seen += step == dies_at
        if step == dies_at and seen > after:
            os.kill(os.getpid(), signal.SIGKILL)

    ledger = telling_ledger(where, tell)
    seen = 0
    for n in range(200):
        question = f"{name}-{n}"
        charge = Charge(name, question, "SELECT COUNT(*)", cost)
        if order == "reply-first":
            os.write(out, b"answer\n")
            ledger.reserve(charge)
            for step in ("reserved", "drawn", "recorded"):
                tell(step)
            continue
        held = ledger.reserve(charge)
        tell("reserved")
        answer = json.dumps({"n": n})
        tell("drawn")
        ledger.record(held, question, answer)
        tell("recorded")
        os.write(out, b"answer\n")


def crash(where: str, rounds: int, cost: Fraction, order: str, seed: int) -> dict[str, object]:
    chance = random.Random(seed)
    answers = kills = 0
    ledger = open_ledger(where)
    for n in range(rounds):
        dies_at = (*STEPS, RANDOM)[n % (len(STEPS) + 1)]
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reads)
            try:
                asker(where, cost, writes, dies_at, chance.randrange(3), order, f"round{n}")
            finally:
                os._exit(3)
        os.close(writes)
        if dies_at == RANDOM:
            time.sleep(0.002 + chance.random() * 0.03)
            os.kill(child, signal.SIGKILL)
        with os.fdopen(reads, "rb") as stream:
            answers += stream.read().count(b"answer\n")
        _, status = os.waitpid(child, 0)
        kills += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        # The one that lives on asks too: no killed asker may block or confuse it.
        held = ledger.reserve(Charge("survivor", f"s{n}", "", cost))
        ledger.record(held, f"s{n}", "{}")
    state = ledger.verify()
    ledger.close()
    again = open_ledger(where).verify()
    return {
        "answers": answers + rounds,
        "kills": kills,
        "spent": str(state.spent),
        "recorded": state.answers,
        "same": state == again,
    }


SCHEMA = Schema({"ward": Column("ward", values=("a", "b"))})
LEFT_OUT = "refused"


def contender(where: str, cost: Fraction, out: int, name: str) -> None:
    """Asks a session of its own, each time something else, until killed or until the budget is gone; tells each answer's entry."""
    ledger = open_ledger(where)
    table = Table.of(pl.DataFrame({"ward": ["a"] * 40 + ["b"] * 60}), SCHEMA, "people")
    session = Session(
        engine_for_table(table, Unit()), Unit(), ledger, schema=SCHEMA, name="people", analyst=name
    )
    os.write(out, b"ready\n")
    n = 0
    while True:
        n += 1
        try:
            # A spend of its own for each question, so that none is stored already: *cost* and less than a hundredth of it.
            part = Fraction(1000 * int(name[1:]) + n, 10**8)
            answer = session.answer("SELECT COUNT(*) FROM people WHERE ward = 'a'", spend=cost * (1 + part))
        except BudgetExceeded:
            os.write(out, f"{LEFT_OUT}\n".encode())
            return
        os.write(out, f"{answer.receipt} {answer.cost.spent}\n".encode())


class Contender:
    """A process that asks, and what came out of it so far."""

    def __init__(self, where: str, cost: Fraction, name: str) -> None:
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reads)
            code = 3
            try:
                contender(where, cost, writes, name)
                code = 0
            finally:
                os._exit(code)
        os.close(writes)
        self.stream = os.fdopen(reads, "rb")
        self.ready = False

    def wait_until_ready(self) -> None:
        """It has opened the ledger and asks from here on."""
        assert self.stream.readline() == b"ready\n"
        self.ready = True

    def kill(self) -> bool:
        """Dies by SIGKILL; whether it was still there to be killed."""
        os.kill(self.pid, signal.SIGKILL)
        return os.WIFSIGNALED(os.waitpid(self.pid, 0)[1])

    def said(self) -> list[tuple[str, str]]:
        """Receipt and charge of every answer that came out; waits until it has ended. A line cut off did not come out."""
        whole = self.stream.read().decode().rpartition("\n")[0].splitlines()
        self.stream.close()
        return [tuple(line.split(" ")) for line in whole if line not in ("ready", LEFT_OUT)]


def contend(where: str, askers: int, kills: int, cost: Fraction, seed: int) -> dict[str, object]:
    chance = random.Random(seed)
    numbers = iter(range(10**6))
    alive = [Contender(where, cost, f"c{next(numbers)}") for _ in range(askers)]
    told: list[tuple[str, str]] = []
    killed = before = 0
    while killed < kills:
        at = chance.randrange(askers)
        victim = alive[at]
        if not victim.ready and chance.random() < 0.9:  # a tenth dies while it opens the ledger
            victim.wait_until_ready()
        time.sleep(chance.random() * 0.12)
        killed += victim.kill()
        said = victim.said()
        told += said
        before += len(said)
        alive[at] = Contender(where, cost, f"c{next(numbers)}")
    for one in alive:
        told += one.said()
        assert os.waitpid(one.pid, 0)[1] == 0
    ledger = open_ledger(where)
    state = ledger.verify()
    entries = list(ledger.entries())
    ledger.close()
    paid = {entry.hash for entry in entries if entry.kind == "answer"}
    return {
        "kills": killed,
        "before": before,
        "told": len(told),
        "unpaid": sum(receipt not in paid for receipt, _ in told),
        "charged": str(sum((Fraction(charge) for _, charge in told), Fraction(0))),
        "spent": str(state.spent),
        "recorded": state.answers,
        "debits": len([entry for entry in entries if entry.kind == "reserve"]),
    }


def ask(where: str, name: str, asks: int, cost: Fraction) -> dict[str, object]:
    ledger = open_ledger(where)
    answered = refused = 0
    for n in range(asks):
        question = f"{name}-{n}"
        try:
            held = ledger.reserve(Charge(name, question, "", cost))
        except BudgetExceeded:
            refused += 1
            continue
        ledger.record(held, question, json.dumps({"n": n}))
        answered += 1
    ledger.close()
    return {"answered": answered, "refused": refused}


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    if mode == "contend":
        askers, kills, cost, seed = rest
        print(json.dumps(contend(where, int(askers), int(kills), Fraction(cost), int(seed))))
    elif mode == "ask":
        print(json.dumps(ask(where, rest[0], int(rest[1]), Fraction(rest[2]))))
    else:
        print(json.dumps(crash(where, int(rest[0]), Fraction(rest[1]), rest[2], int(rest[3]))))
