"""A process of its own in which ledgers are asked by many, and in which askers are killed; run by the tests beside it.

`python lab.py ask WHERE NAME ASKS COST` asks for ASKS answers and prints how many it got. `python lab.py crash WHERE
ROUNDS COST ORDER SEED` forks an asker per round, which dies by SIGKILL at a chosen step or at a random moment, and prints what
became of the ledger. The asker's answers reach its parent through a pipe, as an analyst would see them.
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

from velado.data.seals import Seal
from velado.errors import BudgetExceeded
from velado.query.budget import Charge
from velado.query.store import ChainedLedger, open_ledger
from velado.query.store._ledger import _addresses

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
    if mode == "ask":
        print(json.dumps(ask(where, rest[0], int(rest[1]), Fraction(rest[2]))))
    else:
        print(json.dumps(crash(where, int(rest[0]), Fraction(rest[1]), rest[2], int(rest[3]))))
