"""Mondrian: cut the table in two again and again, as long as every part keeps the goal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.mondrian_levels import partition_levels
from velado.anonymize.methods.mondrian_plan import CutPlan
from velado.anonymize.parameter_types import check_types
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import RECODERS, recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.errors import ParameterError

_CUTS = ("strict", "relaxed")
_CATEGORIES = ("taxonomy", "ordered")
_RECODERS = tuple(kind.name for kind in RECODERS)


@dataclass(frozen=True)
class Mondrian:
    """Every group keeps the goal, and none can be cut further where Mondrian would cut it.

    LeFevre, DeWitt, Ramakrishnan, *Mondrian Multidimensional K-Anonymity* (2006). A group is cut along its
    widest attribute (interval / domain for numbers, loss of the lowest common ancestor for categories); if a
    part would break the goal, along the next widest. Numbers are cut at the median: "strict" keeps equal
    values together, "relaxed" shares them out so that both halves are equal. Categories are cut into the
    children of the group's lowest common ancestor; with categories = "ordered" their leaves count as equally
    spaced points and are cut like numbers, which no rare branch can block but which straddles branches. Either way the published
    value is the lowest common ancestor.

    Departures. Of the two strict boundaries next to the median the more balanced one is taken, where the
    paper always keeps the median left: it can only allow more cuts. Blanks are split from values
    before anything else where the goal allows it, because only `*` would cover both.

    No choice is random: the same rows give the same groups. O(n d log(n / k)).
    """

    name: ClassVar[str] = "mondrian"
    title: ClassVar[str] = "Mondrian multidimensional partitioning"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(n d log(n / k))"
    source: ClassVar[str] = "LeFevre, DeWitt, Ramakrishnan 2006"

    k: int = field(default=5, metadata={"help": "rows in each group at least", "min": 2})
    cut: Literal["strict", "relaxed"] = field(
        default="strict",
        metadata={"help": "keep rows equal in the cut column together, or share them out", "choices": _CUTS},
    )
    categories: Literal["taxonomy", "ordered"] = field(
        default="taxonomy",
        metadata={"help": "cut categories into the taxonomy's branches, or at the median leaf", "choices": _CATEGORIES},
    )  # fmt: skip
    recoder: str = field(default="cover", metadata={"help": "how a group is published", "choices": _RECODERS})

    def __post_init__(self) -> None:
        check_types(self)
        if self.k < 2:
            raise ParameterError(
                f"k = {self.k} hides nobody.", "A group of one is a person.", "Use k = 2 or more."
            )
        for what, value, choices in (
            ("cut", self.cut, _CUTS),
            ("categories", self.categories, _CATEGORIES),
            ("recoder", self.recoder, _RECODERS),
        ):
            if value not in choices:
                raise ParameterError(
                    f"Mondrian has no {what} '{value}'.",
                    "Only the listed ways are defined.",
                    f"Choose one of {', '.join(choices)}.",
                )

    def partition(self, data: EncodedTable, goal: Goal, progress: Progress) -> Partition:
        """The groups alone, every one keeping the goal, numbered from left to right in the tree of cuts."""
        plan = CutPlan.of(data, self.categories == "ordered")
        least = max(self.k, goal.least_rows)
        relaxed = self.cut == "relaxed"
        if goal.rows_only:
            labels, count = _compiled(plan, least, relaxed)
        else:
            labels, count = partition_levels(data, plan, goal, least, relaxed, progress)
        # Does nothing unless not even the whole table keeps the goal; then it says so.
        return repair(data, Partition(labels, count), goal, progress)

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table published group by group; *random* is not used."""
        progress(0.0, "cutting the table")
        groups = self.partition(data, goal, progress)
        progress(0.9, "publishing groups")
        columns = recoder_named(self.recoder).publish(data, groups)
        progress(1.0, "done")
        notes = {"groups": groups.count, "cut": self.cut, "categories": self.categories}
        return Recoded(columns, groups.kept, groups, notes)


def _compiled(plan: CutPlan, least: int, relaxed: bool) -> tuple[npt.NDArray[np.int32], int]:
    # Imported here so that listing the methods does not load the compiler.
    from velado.anonymize.methods.mondrian_kernel import partition_rows

    labels, count = partition_rows(
        plan.codes,
        least,
        relaxed,
        plan.places,
        plan.place_base,
        plan.path,
        plan.path_base,
        plan.stride,
        plan.node_loss,
        plan.node_base,
        plan.widest,
    )
    return labels, int(count)
