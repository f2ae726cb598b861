"""What guarantees about sensitive values share: which columns they read, and their counts without blanks.

A blank is not a value: it neither stands for diversity nor dilutes a distribution. Shares are therefore
taken among the rows whose value is known, in the group and in the whole table alike, and a group in which
no value is known holds no such guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.partition import BoolArray, FloatArray, GroupCounts, ValueCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict


@dataclass(frozen=True)
class KnownValues:
    """The entries of a ValueCounts without blanks, each with its share of the group and of the table.

    Entry e: group ``groups[e]`` holds value ``values[e]`` ``counts[e]`` times, which is ``share[e]`` of its
    *rows* known values; ``overall[v]`` is the share of value v in the whole table.
    """

    groups: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    share: FloatArray
    overall: FloatArray
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, counted: ValueCounts, count: int) -> KnownValues:
        """The known values of *count* groups."""
        known = counted.values != 0
        groups, values, counts = counted.groups[known], counted.values[known], counted.counts[known]
        rows = np.bincount(groups, weights=counts, minlength=count).astype(np.int64)
        totals = counted.totals.astype(np.float64)
        totals[0] = 0.0
        overall = totals / max(float(totals.sum()), 1.0)
        return cls(groups, values, counts, counts / np.maximum(rows[groups], 1), overall, rows)

    def sum_in(self, weights: npt.NDArray[Any]) -> FloatArray:
        """The sum of *weights*, one per entry, in each group."""
        return np.bincount(self.groups, weights=weights, minlength=self.rows.size).astype(np.float64)

    def most_in(self, weights: npt.NDArray[Any]) -> FloatArray:
        """The largest of *weights*, one per entry, in each group; 0 where there is none above."""
        out = np.zeros(self.rows.size)
        np.maximum.at(out, self.groups, weights)
        return out


def chosen_columns(groups: GroupCounts, column: str | None, guarantee: str) -> Mapping[str, ValueCounts]:
    """The counts of *column*, or of every sensitive column when it is None; an error if there are none."""
    chosen = {name: counts for name, counts in groups.sensitive.items() if column in (None, name)}
    if not chosen:
        which = "no sensitive column" if column is None else f"no sensitive column '{column}'"
        raise ParameterError(
            f"{guarantee} was asked for, but there is {which} to check it on.",
            "Without one the promise is empty.",
            'Give a column role = "sensitive" in the schema.',
        )
    return chosen


def verdict_on(
    name: str,
    groups: GroupCounts,
    good: BoolArray,
    needed: float,
    achieved: float,
    unit: str,
    parameters: dict[str, Any],
) -> Verdict:
    """The verdict over all groups, given where the promise holds and the worst value found."""
    return Verdict(
        name,
        bool(good.all()),
        needed,
        achieved,
        unit,
        int((~good).sum()),
        int(groups.rows[~good].sum()),
        parameters,
    )


ROUNDING = 1e-9
"""Shares are sums of rounded fractions; a promise that is met exactly must not fail by the last digit."""
