"""One ledger adds up costs about one unit; costs about different units have no sum.

An epsilon for one record says little of a household of ten, so a ledger that mixed both would show a total that protects
nobody it names. The first session that pays writes down its unit, as an entry that costs nothing, and every later one must
be about the same. The most rows of a group may change: neighbouring tables still differ by that one whole group.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from fractions import Fraction

from velado.errors import ParameterError
from velado.query.ledger import Charge, Ledger, State
from velado.query.unit import Unit

QUESTION = "unit"


def people_state(ledger: Ledger, state: State) -> State:
    """The account as people made it: the entry about the unit is no answer, and no analyst asked for it."""
    if ledger.stored(QUESTION) is None:
        return state
    spent = {name: cost for name, cost in state.by_analyst.items() if cost > 0}
    return replace(state, by_analyst=spent, answers=state.answers - 1)


class UnitOfAccount:
    """The unit a ledger's costs are about, written once and compared ever after. Safe among threads and processes."""

    def __init__(self, ledger: Ledger, unit: Unit, analyst: str) -> None:
        dependence = None if unit.dependence is None else str(unit.dependence)
        self._text = json.dumps({"column": unit.column, "dependence": dependence}, sort_keys=True)
        self._ledger = ledger
        self._analyst = analyst
        self._held = False
        self._lock = threading.Lock()

    def check(self) -> bool:
        """Whether the ledger has its unit already; refuses when it is another one."""
        found = self._ledger.stored(QUESTION)
        if found is not None and found[0] != self._text:
            raise ParameterError(
                "This ledger accounts for another unit than the session's.",
                "Costs about different units cannot be added up to one promise.",
                "Use the unit the ledger was begun with, or a ledger of its own (whose promise stands apart).",
            )
        return found is not None

    def hold(self) -> None:
        """The ledger's costs are about this unit from here on."""
        if self._held:
            return
        with self._lock:
            if not self.check():
                charge = Charge(self._analyst, QUESTION, self._text, Fraction(0))
                self._ledger.record(self._ledger.reserve(charge), QUESTION, self._text)
                # Where two processes came at once, the entry that stands first is the one that counts.
                self.check()
            self._held = True
