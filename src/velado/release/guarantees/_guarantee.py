"""What a guarantee is: it reads GroupCounts and gives a Verdict. It never sees a row.

A new one is a file with a `@settings` class, a line in the registry and a test. It says what it measures in each
group, in which unit, how much is needed and in which direction; all else (which groups hold, the verdict, flags,
forms, recipe, reference) follows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from velado.data.partition import BoolArray, GroupCounts, ValueCounts
from velado.errors import ParameterError
from velado.settings import Setting
from velado.text import Sentence, say, say_n

Numbers = npt.NDArray[Any]
"""One number for each group: counts stay whole numbers, shares and distances are floats."""

ROUNDING = 1e-9
"""Shares are sums of rounded fractions; a promise that is met exactly must not fail by the last digit."""

Reads = Literal["crowd", "values", "population"]
Direction = Literal["at least", "at most"]
Union = Literal["one", "all", "no"]
"""A union of groups holds when one of them does, when all do (concave or convex measures), or neither is known."""
OneColumn = Annotated[str | None, Setting("one sensitive column instead of all")]


@dataclass(frozen=True)
class Verdict:
    """What was asked, what was found, and where it failed.

    *achieved* is the worst value over all groups in the guarantee's own unit (the smallest group, the fewest
    distinct values); *failing_groups* and *failing_rows* say how far from holding a broken promise is.

    >>> Verdict("k-anonymity", True, 5, 7, "rows").sentence()
    'k-anonymity: needs 5 rows, the weakest group has 7; holds.'
    """

    guarantee: str
    holds: bool
    needed: float
    achieved: float
    unit: str
    failing_groups: int = 0
    failing_rows: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def promised(self) -> Sentence:
        """The promise by its name, and the column it was asked for where it was asked for one.

        >>> str(Verdict("l-diversity", True, 2, 3, "distinct values", parameters={"column": "illness"}).promised)
        "l-diversity in 'illness'"
        """
        column = self.parameters.get("column")
        name = Sentence(self.guarantee)
        return name if column is None else say("{promise} in '{column}'", promise=name, column=column)

    def sentence(self) -> str:
        """The verdict in words, without any value of the table."""
        what = say(
            "{guarantee}: needs {needed:g} {unit}, the weakest group has {achieved:g}",
            guarantee=self.promised,
            needed=self.needed,
            unit=self.unit,
            achieved=self.achieved,
        )
        if self.holds:
            return say("{what}; holds.", what=what)
        rows = say_n("{n:,} row", "{n:,} rows", self.failing_rows)
        return say_n(
            "{what}; broken in {n:,} group, {rows}.",
            "{what}; broken in {n:,} groups, {rows}.",
            self.failing_groups,
            what=what,
            rows=rows,
        )

    def failure(self) -> Sentence:
        """How far from holding a broken promise is, as the first sentence of an error."""
        return say_n(
            "{n:,} group with {rows} does not keep {guarantee}: needed {needed:g} {unit}, the weakest has {achieved:g}.",
            "{n:,} groups with {rows} do not keep {guarantee}: needed {needed:g} {unit}, the weakest has {achieved:g}.",
            self.failing_groups,
            rows=say_n("{n:,} row", "{n:,} rows", self.failing_rows),
            guarantee=self.promised,
            needed=self.needed,
            unit=self.unit,
            achieved=self.achieved,
        )

    @property
    def of_values(self) -> bool:
        """Whether it is about sensitive values, which could be guessed, and not about who a row is."""
        return "column" in self.parameters


class Guarantee(ABC):
    """A promise about groups that can be checked from counts alone.

    Subclasses are `@settings` classes. They say what they *read* (the crowd in the table, its sensitive values, or
    a population), when a union of groups holds, the *direction* of what is needed, the unit *measured_in* and which
    setting is the *limit*. *title* is its name in words. `examples` and `holds_for` are what the contracts in
    `velado.testing` try every method with.

    >>> from velado.release.guarantees import KAnonymity
    >>> groups = GroupCounts(rows=np.array([5, 3]))
    >>> KAnonymity(4).holds_in(groups).tolist(), KAnonymity(4).check(groups).achieved
    ([True, False], 3)
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reads: ClassVar[Reads] = "values"
    union_holds_with: ClassVar[Union] = "no"
    direction: ClassVar[Direction] = "at least"
    measured_in: ClassVar[str]
    limit: ClassVar[str]

    @property
    def needed(self) -> float:
        """What the worst group must reach, or may reach at most: the setting that *limit* names."""
        return getattr(self, self.limit)  # type: ignore[no-any-return]

    @abstractmethod
    def measure(self, groups: GroupCounts) -> Numbers:
        """What is compared with *needed*, for each group."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Settings that small tables can keep, one or more for each definition: every method is tried with them."""

    @abstractmethod
    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """Whether the definition holds in one group: slow, obvious, and sharing nothing with `measure`.

        By what it *reads*, the lists are the people of each row in the group and in the table ("crowd"), the known
        sensitive values of the rows in the group and in the table ("values"; never an empty group), or the rows of
        the group and the people of the population who match it ("population").
        """

    @property
    def least_rows(self) -> int:
        """No group with fewer rows can hold; lets methods prune before counting anything else."""
        return 1

    @property
    def is_crowd(self) -> bool:
        """Whether it hides people in a crowd, of the table or of a population."""
        return self.reads != "values"

    @property
    def rows_decide(self) -> bool:
        """Whether the number of rows of a group decides alone, and is `least_rows`."""
        return False

    def counted_by(self, unit: Literal["row", "person"]) -> Guarantee:
        """The same promise counted in rows or in people, where it counts either."""
        return self

    def judge(self, numbers: Numbers, groups: GroupCounts) -> BoolArray:
        """For each group, whether its number is good enough."""
        if self.direction == "at most":
            return np.asarray(numbers <= self.needed + ROUNDING)
        whole = np.issubdtype(numbers.dtype, np.integer)
        return np.asarray(numbers >= (self.needed if whole else self.needed * (1 - ROUNDING)))

    def worst(self, numbers: Numbers, groups: GroupCounts) -> tuple[float, float, str]:
        """What is needed, the number of the worst group, and their unit."""
        worst = numbers.min if self.direction == "at least" else numbers.max
        return self.needed, worst().item() if numbers.size else 0, self.measured_in

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """For each group, whether the promise holds there: what partitioners ask, of many groups at once."""
        return self.judge(self.measure(groups), groups)

    def check(self, groups: GroupCounts) -> Verdict:
        """The verdict over all groups: what `release` and `verify` ask."""
        numbers = self.measure(groups)
        good = self.judge(numbers, groups)
        needed, achieved, unit = self.worst(numbers, groups)
        return Verdict(
            guarantee=self.name,
            holds=bool(good.all()),
            needed=needed,
            achieved=achieved,
            unit=unit,
            failing_groups=int((~good).sum()),
            failing_rows=int(groups.rows[~good].sum()),
            parameters=dict(vars(self)),
        )


class ValueGuarantee(Guarantee):
    """A promise about sensitive values: measured in each column it reads, and the worst column counts.

    >>> from velado.release.guarantees import LDiversity
    >>> LDiversity(3, "diagnosis").reads, LDiversity(3).least_rows
    ('values', 3)
    """

    column: OneColumn

    @abstractmethod
    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """The measure of one sensitive column in each of *count* groups."""

    def measure(self, groups: GroupCounts) -> Numbers:
        """The worst of the columns that are read; an error where there is none."""
        chosen = {name: counted for name, counted in groups.sensitive.items() if self.column in (None, name)}
        if not chosen:
            what = (
                say(
                    "{guarantee} was asked for, but there is no sensitive column to check it on.",
                    guarantee=self.name,
                )
                if self.column is None
                else say(
                    "{guarantee} was asked for, but there is no sensitive column '{column}' to check it on.",
                    guarantee=self.name,
                    column=self.column,
                )
            )
            raise ParameterError(
                what,
                "Without one the promise is empty.",
                'Give a column role = "sensitive" in the schema.',
            )
        worst = np.minimum if self.direction == "at least" else np.maximum
        found = [self.measure_in(counted, groups.count, name) for name, counted in chosen.items()]
        return np.asarray(worst.reduce(found))


class DiversityGuarantee(ValueGuarantee):
    """A promise that every group holds values enough: about *l* of them, and so no fewer rows.

    >>> from velado.release.guarantees import EntropyLDiversity
    >>> EntropyLDiversity(2.5).least_rows
    3
    """

    limit: ClassVar[str] = "l"
    l: float

    @property
    def least_rows(self) -> int:
        """l, rounded up: as many rows as distinct values are needed at least."""
        return math.ceil(self.l - ROUNDING)


class PopulationGuarantee(Guarantee):
    """A promise about the people of a population whom each group could be.

    >>> from velado.release.guarantees import KMap
    >>> KMap(5).is_crowd, KMap(5).least_rows
    (True, 1)
    """

    reads: ClassVar[Reads] = "population"

    def matches(self, groups: GroupCounts) -> npt.NDArray[np.int64]:
        """How many people of the population match each group, or an error when no population is known."""
        if groups.population is None:
            raise ParameterError(
                say("{guarantee} was asked for, but no population is known.", guarantee=self.name),
                "It compares each group with the people of the population that match it.",
                "Name a table of the population, or ask for k-anonymity instead.",
            )
        return groups.population
