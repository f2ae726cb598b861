"""Who is protected, and which rows move together. Declared by the owner, never read off the rows."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.query.budget import Charge, Ledger, State

Mode = Literal["strict", "groups"]


@dataclass(frozen=True)
class Unit:
    """One record (*column* None), or all rows with one value of *column*, of which at most *rows* count.

    Rows without a value of *column* belong to nobody the promise names, so they do not count at all.

    Neighbouring tables differ by one whole unit, added or removed, so whatever moves together inside a unit is
    covered and nothing across units is. *dependence* d in [0, 1] is an optional declared bound: when one row of a
    group changes, each other row moves by at most the fraction d of what it could. One row then moves an answer by at
    most 1 + (rows - 1) d of its own swing (Liu, Chakraborty, Mittal 2016), and the promise is about that one row, in
    groups that really have at most *rows* rows: which rows are left out of larger ones may follow from their content.
    """

    column: str | None = None
    rows: int = 1
    dependence: Fraction | None = None

    def __post_init__(self) -> None:
        if self.rows < 1 or (self.column is None and self.rows != 1):
            raise ParameterError(
                "The number of rows of a unit must be at least 1, and exactly 1 where the unit is one record.",
                "It bounds how far one unit can move an answer.",
                "Name the group column and declare its most rows, for example Unit('household', rows=10).",
            )
        if self.dependence is not None and (self.column is None or not 0 <= self.dependence <= 1):
            raise ParameterError(
                "A dependence bound must lie between 0 and 1 and belongs to a group.",
                "It is the largest fraction by which a related row moves.",
                "Leave it out (every row may move fully), or declare it with the group column.",
            )

    @property
    def mode(self) -> Mode:
        """strict: one record; groups: all rows of a declared group."""
        return "strict" if self.column is None else "groups"

    def times(self, reach: int) -> int:
        """The most one unit can move a sum whose single rows reach *reach*: reach x rows, or reach x (1 + (rows-1) d), rounded up."""
        if self.dependence is None:
            return reach * self.rows
        return math.ceil(reach * (1 + (self.rows - 1) * self.dependence))

    def guarantee(self) -> dict[str, Any]:
        """The promise in words a machine can read; `type` is guaranteed or guaranteed-if."""
        if self.column is None:
            return {
                "type": "guaranteed",
                "mode": "strict",
                "unit": "one record",
                "holds_for": "rows that tell nothing of one another",
            }
        out: dict[str, Any] = {
            "type": "guaranteed",
            "mode": "groups",
            "unit": f"all rows with one value of '{self.column}'",
            "column": self.column,
            "most_rows": self.rows,
            "enforced": "rows beyond the most, and rows without a value of the column, are left out of every answer",
            "holds_for": "any correlation inside a group, none across groups",
        }
        if self.dependence is not None:
            out["type"] = "guaranteed-if"
            out["unit"] = "one record together with its group"
            out["dependence"] = str(self.dependence)
            out["holds_for"] = (
                "correlation inside a group up to the declared dependence, in groups of at most the declared rows"
            )
        return out

    @classmethod
    def declared(cls, schema: Schema) -> Unit:
        """The unit the schema names: its group, else its person, else one record."""
        column = schema.group or schema.person
        if column is None:
            return cls()
        if column.max_rows is None:
            raise ParameterError(
                f"The schema groups rows by '{column.name}' but does not say how many of a group's rows count.",
                "Without a declared most one group could move an answer without limit.",
                f"Add for example max_rows = 4 to [columns.{column.name}].",
            )
        return cls(column.name, column.max_rows)


# One ledger adds up costs about one unit; costs about different units have no sum.
#
# An epsilon for one record says little of a household of ten, so a ledger that mixed both would show a total that protects
# nobody it names. The first session that pays writes down its unit, as an entry that costs nothing, and every later one must
# be about the same. The most rows of a group may change: neighbouring tables still differ by that one whole group.

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
