"""t-closeness: in every group the sensitive values are distributed almost as in the whole table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from velado.data.partition import BoolArray, FloatArray, GroupCounts, IntArray, ValueCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.known_values import ROUNDING, KnownValues, chosen_columns, verdict_on
from velado.release.parameter_types import check_types

_BLOCK_CELLS = 1 << 22
"""Groups x values are worked on in blocks of this many cells, so that memory stays bounded."""


@dataclass(frozen=True)
class TCloseness:
    """The earth mover's distance between each group's sensitive values and the whole table's is at most *t*.

    Li, Li and Venkatasubramanian 2007. Moving a share from one value to another costs, by *distance*:
    "equal", 1 between any two values (half the sum of absolute differences of shares);
    "ordered", |rank i - rank j| / (m - 1) on the m values of the table (section 5.1);
    "hierarchical", height of the lowest common ancestor / height of the taxonomy (section 5.2).
    An attacker who finds a person's group learns little more about the value than the table as a whole tells.
    Blanks are no values. O(entries) for "equal", else O(groups x values).
    """

    name: ClassVar[str] = "t-closeness"
    is_crowd: ClassVar[bool] = False
    t: float = field(
        default=0.2,
        metadata={"help": "largest distance from the whole table's distribution", "min": 0, "max": 1},
    )
    distance: Literal["equal", "ordered", "hierarchical"] = field(
        default="equal",
        metadata={"help": "how far apart two values are", "choices": ("equal", "ordered", "hierarchical")},
    )
    column: str | None = field(default=None, metadata={"help": "one sensitive column instead of all"})

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.t <= 1:
            raise ParameterError(
                f"t = {self.t:g} is no distance.", "Distances run from 0 to 1.", "Use for example t = 0.2."
            )

    @property
    def least_rows(self) -> int:
        """1: a single row may have any distance."""
        return 1

    def _distance(self, groups: GroupCounts) -> FloatArray:
        """The distance of the farthest sensitive column of each group; 1 where no value is known."""
        worst = np.zeros(groups.count)
        for name, counted in chosen_columns(groups, self.column, self.name).items():
            known = KnownValues.of(counted, groups.count)
            if self.distance == "equal":
                excess = np.maximum(known.share - known.overall[known.values], 0.0)
                found = known.sum_in(excess)
            else:
                found = self._moved(known, counted, name)
            found[known.rows == 0] = 1.0
            worst = np.maximum(worst, found)
        return worst

    def _moved(self, known: KnownValues, counted: ValueCounts, name: str) -> FloatArray:
        shape = counted.shape
        if self.distance == "ordered":
            if shape is None or shape.order is None:
                raise self._shapeless(name, "order", 'kind = "numeric"')
            present = np.flatnonzero(known.overall > 0)
            values = present[np.argsort(shape.order[present], kind="stable")]
        else:
            if shape is None or shape.levels is None:
                raise self._shapeless(name, "taxonomy", "a taxonomy")
            # Values of one node side by side at every level, so that sums over children are runs.
            everything = np.arange(1, shape.levels.shape[0])
            values = everything[np.lexsort(shape.levels[everything].T)]
        column_of = np.zeros(known.overall.size, dtype=np.int64)
        column_of[values] = np.arange(values.size)
        out = np.zeros(known.rows.size)
        step = max(_BLOCK_CELLS // max(values.size, 1), 1)
        order = np.argsort(known.groups, kind="stable")
        of = known.groups[order]
        for first in range(0, known.rows.size, step):
            last = min(first + step, known.rows.size)
            inside = order[np.searchsorted(of, first) : np.searchsorted(of, last)]
            extra = np.tile(-known.overall[values], (last - first, 1))
            extra[known.groups[inside] - first, column_of[known.values[inside]]] += known.share[inside]
            if self.distance == "ordered":
                out[first:last] = np.abs(np.cumsum(extra, axis=1)).sum(axis=1) / max(values.size - 1, 1)
            else:
                assert shape.levels is not None
                out[first:last] = _hierarchical(extra, shape.levels[values])
        return out

    def _shapeless(self, column: str, what: str, fix: str) -> ParameterError:
        return ParameterError(
            f"t-closeness with the {self.distance} distance needs the {what} of '{column}', which is not known.",
            "Without it no distance between two values is defined.",
            f"Declare {fix} for the column in the schema, or use the equal distance.",
        )

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where every sensitive column is close enough."""
        return np.asarray(self._distance(groups) <= self.t + ROUNDING)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the farthest group with t."""
        distance = self._distance(groups)
        return verdict_on(
            self.name,
            groups,
            np.asarray(distance <= self.t + ROUNDING),
            self.t,
            float(distance.max()) if distance.size else 0.0,
            "earth mover's distance (or less)",
            {"t": self.t, "distance": self.distance, "column": self.column},
        )


def _hierarchical(extra: FloatArray, levels: IntArray) -> FloatArray:
    """sum over inner nodes of height / H x min(surplus, shortage among its children), one value per row.

    A node that repeats at a higher level has one child there, whose surplus and shortage cannot both be
    above 0, so that uneven branches add nothing.
    """
    height = levels.shape[1] - 1
    out = np.zeros(extra.shape[0])
    node = levels[:, 0]
    for level in range(1, height + 1):
        above = levels[:, level]
        child_start = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
        if level == 1:
            child_start = np.arange(node.size)
        parent = above[child_start]
        start = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
        surplus = np.add.reduceat(np.maximum(extra, 0.0), start, axis=1)
        shortage = np.add.reduceat(np.maximum(-extra, 0.0), start, axis=1)
        out += level / height * np.minimum(surplus, shortage).sum(axis=1)
        extra = np.add.reduceat(extra, start, axis=1)
        node = above
    return out
