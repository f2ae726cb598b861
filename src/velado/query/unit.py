"""Who is protected, and which rows move together. Declared by the owner, never read off the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from velado.data.schema import Schema
from velado.data.toml_keys import toml_key
from velado.errors import ParameterError
from velado.query.budget import Facts, plain
from velado.settings import Setting, settings
from velado.text import say

Mode = Literal["strict", "groups"]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is promised, to whom and what it covers; *type* is guaranteed or guaranteed-if.

    *epsilon* or *rho* is the cost of one answer, *implies* the (epsilon, delta) that it stands for.

    >>> Unit("household", rows=4).guarantee().to_dict()["unit"]
    "all rows with one value of 'household'"
    """

    type: Literal["guaranteed", "guaranteed-if"] = "guaranteed"
    mode: Mode
    unit: str
    column: str | None = None
    most_rows: int | None = None
    enforced: str | None = None
    holds_for: str
    dependence: Fraction | None = None
    definition: str | None = None
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    implies: dict[str, float] | None = None
    budget: Facts | None = None
    covers: str | None = None
    warnings: tuple[str, ...] | None = None

    def to_dict(self) -> Facts:
        """As JSON has it, without what does not apply."""
        facts: Facts = plain(self)
        return facts

    @classmethod
    def from_dict(cls, facts: Facts) -> Promise:
        """The promise that `to_dict` wrote."""
        told: Facts = {**facts, "warnings": tuple(facts["warnings"]) if "warnings" in facts else None}
        told |= {name: Fraction(facts[name]) for name in ("dependence", "epsilon", "rho") if name in facts}
        return cls(**told)


GroupRows = Annotated[
    int, Setting("its most rows", ge=1, why=say("It bounds how far one unit can move an answer."))
]
Dependence = Annotated[
    Fraction,
    Setting(
        "the most by which a related row moves",
        ge=0,
        le=1,
        takes=say("a number from 0 to 1, or a text such as '1/3'"),
        why=say("It is the largest fraction by which a related row moves."),
        example="0.5",
    ),
]


@settings
class Unit:
    """One record (*column* None), or all rows with one value of *column*, of which at most *rows* count.

    Rows without a value of *column* belong to nobody the promise names, so they do not count at all.

    Neighbouring tables differ by one whole unit, added or removed, so whatever moves together inside a unit is
    covered and nothing across units is. *dependence* d in [0, 1] is an optional declared bound: when one row of a
    group changes, each other row moves by at most the fraction d of what it could. One row then moves an answer by at
    most 1 + (rows - 1) d of its own swing (Liu, Chakraborty, Mittal 2016), and the promise is about that one row, in
    groups that really have at most *rows* rows: which rows are left out of larger ones may follow from their content.

    >>> Unit("household", rows=4).times(10), Unit("household", 4, Fraction(1, 3)).times(10)
    (40, 20)
    """

    name: ClassVar[str] = say("the unit")

    column: Annotated[str | None, Setting("whose rows move together; none: one record", items=1)] = None
    rows: GroupRows = 1
    dependence: Dependence | None = None

    def __post_init__(self) -> None:
        if self.column is None and self.rows != 1:
            raise ParameterError(
                "A unit of more than one row has no column.",
                "Which rows belong together is found by it; without one the unit is one record.",
                "Name the group column and declare its most rows, for example Unit('household', rows=10).",
            )
        if self.column is None and self.dependence is not None:
            raise ParameterError(
                "A dependence bound was declared for single records.",
                "It is the largest fraction by which a related row of a group moves.",
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

    def guarantee(self) -> Promise:
        """The promise in words a machine can read, before any cost is known."""
        if self.column is None:
            return Promise(
                mode="strict",
                unit=say("one record"),
                holds_for=say("rows that tell nothing of one another"),
            )
        whole = Promise(
            mode="groups",
            unit=say("all rows with one value of '{column}'", column=self.column),
            column=self.column,
            most_rows=self.rows,
            enforced=say(
                "rows beyond the most, and rows without a value of the column, are left out of every answer"
            ),
            holds_for=say("any correlation inside a group, none across groups"),
        )
        if self.dependence is None:
            return whole
        return replace(
            whole,
            type="guaranteed-if",
            unit=say("one record together with its group"),
            dependence=self.dependence,
            holds_for=say(
                "correlation inside a group up to the declared dependence, in groups of at most the declared rows"
            ),
        )

    @classmethod
    def declared(cls, schema: Schema) -> Unit:
        """The unit the schema names: its group, else its person, else one record."""
        column = schema.group or schema.person
        if column is None:
            return cls()
        if column.max_rows is None:
            raise ParameterError(
                say(
                    "The schema groups rows by '{column}' but does not say how many of a group's rows count.",
                    column=column.name,
                ),
                "Without a declared most one group could move an answer without limit.",
                say("Add for example max_rows = 4 to [columns.{column}].", column=toml_key(column.name)),
            )
        return cls(column.name, column.max_rows)
