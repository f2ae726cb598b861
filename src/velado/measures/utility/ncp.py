"""Normalized certainty penalty: how much of what could be known of each value is no longer said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import BoolArray, FloatArray, IntArray, Partition, ValueCounts
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.text import say

Variant = Literal["leaves-1", "leaves/total", "sets", "thesis", "thesis-distinct", "gok", "das-eq1"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
_BY_CLASS = ("sets", "gok")


@dataclass(frozen=True, repr=False)
class Covers:
    """What one column's published value covers in each row: codes *low*..*high* of the encoded column.

    *width* is the width a numeric text itself states, where that may be more than its outermost codes say
    (`[20..29]` in a column whose values in that range are 21 and 27).

    >>> Covers(np.array([0, 1]), np.array([2, 1])).high
    array([2, 1])
    """

    low: IntArray
    high: IntArray
    width: FloatArray | None = None


@dataclass(frozen=True)
class CertaintyPenalty:
    """The penalty of a whole release: 0 nothing lost, 1 everything lost, with the variant that was computed.

    ``overall = sum(by_column) / divisor_columns``; each column's share is a mean over *rows*, suppressed ones
    included as 1 each.

    >>> CertaintyPenalty(0.25, {"age": 0.25}, "leaves-1", 4, 0, 1).overall
    0.25
    """

    overall: float
    by_column: Mapping[str, float]
    variant: Variant
    rows: int
    suppressed: int
    divisor_columns: int

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "variant": self.variant,
            "overall": self.overall,
            "by_column": dict(self.by_column),
            "rows": self.rows,
            "suppressed_rows_counted_as_1": self.suppressed,
            "divisor": {"rows": self.rows, "columns": self.divisor_columns},
        }


def normalized_certainty_penalty(
    data: EncodedTable,
    covers: Sequence[Covers],
    kept: BoolArray | None = None,
    variant: Variant = "leaves-1",
    *,
    rows: int | None = None,
    partition: Partition | None = None,
    divisor_columns: int | None = None,
    weights: IntArray | None = None,
) -> CertaintyPenalty:
    """Every row is charged for what its published value covers; suppressed rows are charged 1.

    *covers* has one entry per column of *data*, each with one cover per row (where the pairing of rows is not
    known: one per published row). *kept* is False where a row was suppressed; *rows* counts the original
    table when it has rows that *data* has not (they count as suppressed). *partition* holds the published
    classes, for the variants that need them. *divisor_columns* replaces the number of columns in the divisor. Where each
    cover stands for several published rows, *weights* says how many.
    Cost O(rows x columns). Variants:

    - ``leaves-1`` (default): numbers, width / domain width; taxonomies, (leaves under node - 1)/(leaves - 1).
    - ``leaves/total``: taxonomies instead 0 for a leaf, else leaves under node / leaves.
    - ``sets``: as the default, but a flat column (no level between values and `*`) is charged as if each class
      published the set of its values: (distinct in class - 1)/(distinct in table - 1).
    - ``thesis``: GFKMC thesis eqs. 6.2-6.4: width / *observed* range; 0 for a leaf, else leaves under the lowest
      common ancestor / |T_C|. The text calls |T_C| a number of attributes, which cannot be meant; it is read as
      the leaves of the tree, in ``thesis-distinct`` as the distinct values in the table (then it may exceed 1).
    - ``gok``: GOK-Privacy eqs. 5 and 6, on the true values of each class: (range / range) (sd / sd), and
      (distinct - 1)/(distinct - 1) x (class size / rows); averaged over rows, which the paper leaves open.
    - ``das-eq1``: DAS paper eq. (1) = thesis eq. 6.1: numeric columns only, width / observed range. The paper's
      Adult figure divides by all 15 columns of the table: that is ``divisor_columns=15``.

    >>> from velado.testing.examples import four_encoded
    >>> data = four_encoded()
    >>> everything = Covers(np.zeros(4, dtype=np.int64), np.full(4, 2))
    >>> normalized_certainty_penalty(data, [everything], np.ones(4, dtype=bool), rows=4).overall
    1.0
    """
    if variant not in VARIANTS:
        raise ParameterError(
            "This variant of the normalized certainty penalty is not known.",
            "Each variant is another number, so it must be named exactly.",
            say("Choose one of {variants}.", variants=", ".join(VARIANTS)),
        )
    if divisor_columns is not None and divisor_columns < 1:
        raise ParameterError(
            say("A divisor of {divisor_columns} columns is not possible.", divisor_columns=divisor_columns),
            "The penalty is a mean over columns.",
            "Give a number from 1, or leave it out.",
        )
    pairs = list(zip(data.columns, covers, strict=True))
    if variant == "das-eq1":
        pairs = [(column, cover) for column, cover in pairs if column.is_numeric]
    if not pairs:
        raise ParameterError(
            "There is no column to charge.",
            "This variant of the normalized certainty penalty is about columns the table has not.",
            "Choose another variant, such as leaves-1.",
        )
    size = int(np.asarray(covers[0].low).size)
    kept = np.ones(size, dtype=bool) if kept is None else np.asarray(kept, dtype=bool)
    total = size if rows is None else rows
    suppressed = total - int(kept.sum() if weights is None else weights[kept].sum())
    classes = _classes(data, partition, kept, variant, size)
    by_column = {}
    for column, cover in pairs:
        losses = _losses(column, cover, variant, classes)[kept]
        charged = losses.sum() if weights is None else losses @ weights[kept]
        by_column[column.name] = float((charged + suppressed) / total)
    divisor = len(pairs) if divisor_columns is None else divisor_columns
    overall = float(sum(by_column.values()) / divisor)
    return CertaintyPenalty(overall, by_column, variant, total, suppressed, divisor)


def _classes(
    data: EncodedTable, partition: Partition | None, kept: BoolArray, variant: Variant, size: int
) -> Partition | None:
    if variant not in _BY_CLASS:
        return None
    if partition is None or size != data.rows:
        raise ParameterError(
            say(
                "The variant '{variant}' needs the classes and the true values of their rows.",
                variant=variant,
            ),
            "Which original row each published row came from is not known here.",
            "Say which rows were kept, or choose a variant that reads the published values only.",
        )
    return Partition.of(np.where(kept, partition.labels, -1))


def _losses(
    column: EncodedColumn, cover: Covers, variant: Variant, classes: Partition | None
) -> npt.NDArray[np.float64]:
    if variant == "gok" and classes is not None:
        return _per_row(_gok(column, classes), classes)
    if variant == "sets" and classes is not None and column.tree is not None and column.tree.height <= 1:
        return _per_row(_distinct_share(column, classes), classes)
    observed = variant in ("thesis", "thesis-distinct", "das-eq1")
    if column.tree is None:
        return _numeric(column, cover, observed)
    if variant in ("leaves-1", "sets"):
        return column.loss(cover.low, cover.high)
    leaves = column.tree.shown_leaves[column.tree.common_ancestor(cover.low, cover.high)]
    whole = _distinct(column) if variant == "thesis-distinct" else column.tree.leaves
    return np.where(leaves <= 1, 0.0, leaves / max(whole, 1))


def _numeric(column: EncodedColumn, cover: Covers, observed: bool) -> npt.NDArray[np.float64]:
    losses = column.loss(cover.low, cover.high)
    span = column.span
    if observed:
        low, high = _observed(column)
        if high > low:
            # The domain's width may be declared wider than what was observed; a clipped loss of 1 stays 1.
            losses = np.minimum(losses * (span / (high - low)), 1.0)
            span = high - low
    if cover.width is not None and span > 0:
        losses = np.maximum(losses, np.clip(cover.width / span, 0.0, 1.0))
    return losses


def _observed(column: EncodedColumn) -> tuple[float, float]:
    assert column.points is not None
    real = column.points[: column.missing] if column.missing >= 0 else column.points
    return (float(real[0]), float(real[-1])) if real.size else (0.0, 0.0)


def _distinct(column: EncodedColumn) -> int:
    return int(np.count_nonzero(np.bincount(column.codes, minlength=column.size)))


def _distinct_share(column: EncodedColumn, classes: Partition) -> npt.NDArray[np.float64]:
    whole = _distinct(column)
    if whole <= 1:
        return np.zeros(classes.count)
    counts = ValueCounts.of(classes.labels, classes.count, column.codes, column.size)
    distinct = counts.distinct(classes.count, blanks=True)
    return np.asarray((distinct - 1) / (whole - 1), dtype=np.float64)


def _gok(column: EncodedColumn, classes: Partition) -> npt.NDArray[np.float64]:
    if column.tree is not None:
        return _distinct_share(column, classes) * classes.sizes / max(column.codes.size, 1)
    assert column.points is not None
    low, high = _observed(column)
    deviation = float(np.std(column.points[column.codes]))
    if high <= low or deviation <= 0:
        return np.zeros(classes.count)
    order, starts = classes.members()
    values = column.points[column.codes[order]]
    mean = np.repeat(np.add.reduceat(values, starts) / classes.sizes, classes.sizes)
    spread = np.sqrt(np.add.reduceat((values - mean) ** 2, starts) / classes.sizes)
    least, most = classes.least_and_greatest(column.codes)
    width = column.unrounded.loss(least, most) * (column.span / (high - low))
    return np.asarray(width * spread / deviation, dtype=np.float64)


def _per_row(by_class: npt.NDArray[np.float64], classes: Partition) -> npt.NDArray[np.float64]:
    return np.asarray(by_class[np.maximum(classes.labels, 0)], dtype=np.float64)


NCP = Measure(
    name="ncp",
    title=say("information loss (NCP)"),
    of=lambda published, scores: None if scores.ncp is None else scores.ncp.overall,
    detailed=True,
)
