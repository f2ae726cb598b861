"""Fixed intervals: every number goes into one of k intervals of equal width."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._method import Takes
from velado.release.methods.das import (
    ColumnBins,
    as_means,
    bins_by,
    mean_cells,
    numbers_recoded,
    raw_warning,
    stayed_raw,
)
from velado.release.recoded import NoteName, PublishedColumn, Recoded
from velado.settings import Setting, settings
from velado.text import say

_INTERVALS = NoteName("intervals", say("intervals per column"))


def _interval_bins(
    column: EncodedColumn, k: int, paper: bool, counts: npt.NDArray[np.int64] | None
) -> ColumnBins:
    def equal_widths(points: FloatArray, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
        low, span = float(points[0]), float(points[-1] - points[0])
        if paper:
            # The authors' intervals: (min - 1 + i w, min - 1 + (i + 1) w] with a whole width w.
            interval = np.ceil((points - (low - 1)) / (int(span / k) + 1)).astype(np.int64)
        else:
            width = span / k if span > 0 else 1.0
            interval = np.minimum(((points - low) / width).astype(np.int64), k - 1)
        last = np.append(interval[1:] != interval[:-1], True)
        return np.flatnonzero(last), k

    return bins_by(column, equal_widths, counts)


@settings
class FixedInterval:
    """Every number is published as its interval of equal width; columns with a taxonomy stay as they are.

    Onesimu et al. 2022, the scheme the DAS paper compares with. It makes no group size, so what it hides is
    measured, not promised. The default publishes the interval from the least to the greatest value that is
    there, which is true of everybody; ``publish = "mean"`` publishes the interval's mean, a substitution.
    `paper` follows the code behind the DAS paper's tables: whole widths int(range / k) + 1 counted from
    min - 1, means, and one more for a value that is alone in its interval. A missing number stays a blank.
    O(n + U) per column of U distinct values.

    >>> from velado.testing.examples import shown
    >>> shown(FixedInterval(bins=2), [20, 21, 22, 30, 31, 60])
    ['[20..31]', '[20..31]', '[20..31]', '[20..31]', '[20..31]', '60']
    """

    name: ClassVar[str] = "fixed-interval"
    title: ClassVar[str] = say("Fixed intervals")
    promise: ClassVar[Promise] = "measured"
    takes: ClassVar[Takes] = "tuples"
    cost: ClassVar[str] = say("O(n) per numeric column")
    source: ClassVar[str] = "Onesimu et al. 2022, as compared with in Coelho et al. 2024"

    bins: Annotated[int, Setting("intervals per column", ge=2)] = 5
    publish: Annotated[Literal["interval", "mean"], Setting("what an interval is published as")] = "interval"
    profile: Annotated[
        Literal["default", "paper"], Setting("paper: widths, means and singletons of the published tables")
    ] = "default"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table with every numeric quasi-identifier in intervals. Uses no randomness."""
        columns = numbers_recoded(data, progress, lambda column: self._recode(column, data.counts))
        raw = stayed_raw(data, columns)
        warnings = (raw_warning(raw),) if raw else ()
        return Recoded(columns, np.ones(data.rows, dtype=bool), None, {_INTERVALS: self.bins}, warnings)

    def _recode(self, column: EncodedColumn, counts: npt.NDArray[np.int64] | None) -> PublishedColumn:
        paper = self.profile == "paper"
        bins = _interval_bins(column, self.bins, paper, counts)
        codes = bins.of_code[column.codes]
        if self.publish == "interval" and not paper:
            low, high = column.stated(bins.low, bins.high)
            return PublishedColumn(column.name, codes, tuple(column.label(low, high)), low, high)
        cells = mean_cells(column, bins, "keep", exact=paper)
        if paper:
            alone = np.bincount(codes, counts, minlength=bins.count) == 1
            cells = tuple(
                cell + 1 if single and isinstance(cell, float) else cell
                for cell, single in zip(cells, alone, strict=True)
            )
        return as_means(column, bins, cells)
