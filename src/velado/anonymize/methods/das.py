"""DAS, dynamic anonymization by separatrices: every number becomes the mean of its percentile bin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.separatrices import bin_of, cut_counted, elbow
from velado.anonymize.parameter_types import check_types
from velado.anonymize.recoded import Cell, PublishedColumn, Recoded, true_codes
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.number_text import number_text
from velado.data.partition import FloatArray, Partition
from velado.errors import ParameterError

Rounding = Literal["keep", "round", "truncate"]
Cutter = Callable[[FloatArray, npt.NDArray[np.int64]], tuple[npt.NDArray[np.int64], int]]
_DIGITS = 6


@dataclass(frozen=True, repr=False)
class Bins:
    """One numeric column in bins: the bin of each code, and each bin's mean and range of codes.

    A missing number is a bin of its own, the last one, whose mean is NaN. *chosen* is the number of bins
    asked of the separatrices; ties may leave fewer.
    """

    of_code: npt.NDArray[np.int32]
    means: FloatArray
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    chosen: int

    @property
    def count(self) -> int:
        """How many bins hold a row, the one of missing values included."""
        return int(self.means.size)


def bin_column(column: EncodedColumn, k: int | None = None) -> Bins:
    """The *k* separatrix bins of a numeric column (None: as many as its elbow says). O(n + k U log U)."""

    def separatrices(points: FloatArray, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
        chosen = elbow(points) if k is None else k
        return cut_counted(rows, chosen), chosen

    return bins_by(column, separatrices)


def bins_by(column: EncodedColumn, cutter: Cutter) -> Bins:
    """The bins *cutter* makes: given the distinct numbers and their rows, the last number of each bin. O(n)."""
    assert column.points is not None
    counts = np.bincount(column.codes, minlength=column.size)
    numbers = counts.copy()
    if column.missing >= 0:
        numbers[column.missing] = 0
    present = np.flatnonzero(numbers)  # a part of a table may lack some codes of the whole
    of_code = np.zeros(column.size, dtype=np.int32)
    if not present.size:
        blank = np.full(1, column.missing, dtype=np.int32)
        return Bins(of_code, np.full(1, np.nan), blank, blank, 0)
    points = column.points[present]
    ends, chosen = cutter(points, numbers[present])
    bins = bin_of(ends, present.size)
    rows = np.bincount(bins, weights=numbers[present])
    # Means are taken from the bin's own lowest value, so that a far-off origin costs no digits.
    starts = np.concatenate(([0], ends[:-1] + 1))
    offset = np.bincount(bins, weights=numbers[present] * (points - points[starts][bins]))
    means = points[starts] + offset / rows
    low, high = present[starts].astype(np.int32), present[ends].astype(np.int32)
    of_code[:] = np.searchsorted(high, np.arange(column.size), side="left").clip(max=ends.size - 1)
    if column.missing >= 0:
        of_code[column.missing] = ends.size - 1
        if counts[column.missing]:
            of_code[column.missing] = ends.size
            means = np.append(means, np.nan)
            low = np.append(low, column.missing).astype(np.int32)
            high = np.append(high, column.missing).astype(np.int32)
    return Bins(of_code, means, low, high, chosen)


def mean_cells(
    column: EncodedColumn, bins: Bins, rounding: Rounding, exact: bool = False
) -> tuple[Cell, ...]:
    """What each bin is published as: its mean, rounded as asked; None for the bin of missing values.

    "round" and "truncate" act on whole-number columns only and give whole numbers. Means that are kept are
    given to six digits of the column's range (exactly, if *exact*): more would be noise, and a mean
    with sixteen digits can betray its members.
    """
    whole = column.whole and rounding != "keep"
    spread = column.span if column.span > 0 else 1.0
    digits = max(_DIGITS - 1 - math.floor(math.log10(spread)), 0)
    cells: list[Cell] = []
    for mean in bins.means.tolist():
        if math.isnan(mean):
            cells.append(None)
        elif whole:
            cells.append(number_text(float(round(mean) if rounding == "round" else math.trunc(mean)), True))
        else:
            kept = float(mean if exact else round(mean, digits))
            # A decimal comma exists in text only.
            cells.append(kept if column.decimal == "." else number_text(kept, False, column.decimal))
    return tuple(cells)


@dataclass(frozen=True)
class DAS:
    """Every number is published as the mean of its percentile bin; columns with a taxonomy stay as they are.

    Coelho et al. 2024, algorithm 1: the elbow of the distinct values gives the number of bins, the bins are
    cut at the percentiles 100 i / k, each value is replaced by its bin's mean. A substitution, and no class
    size: on both tables of the paper the smallest class is one row. What it hides is measured, not promised.

    The authors' code fails where the maximum's ties start before the last bin and on a constant column;
    here such bins do not exist. `paper` truncates the means of whole-number columns towards 0, whatever
    *rounding* says, as writing them into an integer column did there (171.67 becomes 171 in Table II), and
    keeps all digits elsewhere; by default a kept mean has six digits of its column's range. It changes nothing
    else: bins are the exact ones in both profiles. A missing number stays a blank of its own. O(n + k U log U) per column of U distinct values.
    """

    name: ClassVar[str] = "das"
    title: ClassVar[str] = "Dynamic anonymization by separatrices"
    promise: ClassVar[Promise] = "measured"
    cost: ClassVar[str] = "O(n + k U log U) per numeric column with U distinct values"
    source: ClassVar[str] = (
        "Coelho et al. 2024, A Dynamic Approach to Health Data Anonymization by Separatrices"
    )

    bins: int | None = field(
        default=None,
        metadata={"help": "bins per column; left out: the elbow of each", "min": 2},
    )
    rounding: Rounding = field(
        default="keep",
        metadata={
            "help": "what becomes of the means of whole-number columns",
            "choices": ("keep", "round", "truncate"),
        },
    )
    profile: Literal["default", "paper"] = field(
        default="default",
        metadata={
            "help": "paper: means of whole-number columns lose their decimals whatever --rounding says, "
            "others keep every digit",
            "choices": ("default", "paper"),
        },
    )

    def __post_init__(self) -> None:
        check_types(self)
        if self.bins is not None and self.bins < 2:
            raise ParameterError(
                f"{self.bins} bin(s) leave nothing of a column.",
                "Every number would become the mean of all.",
                "Use 2 or more, or leave it out for the elbow of each column.",
            )
        for value, known, what in (
            (self.rounding, ("keep", "round", "truncate"), "rounding"),
            (self.profile, ("default", "paper"), "profile"),
        ):
            if value not in known:
                raise ParameterError(
                    f"There is no {what} '{value}' in DAS.",
                    "Only known settings can be repeated by others.",
                    f"Choose one of {', '.join(known)}.",
                )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table with every numeric quasi-identifier replaced by bin means. Uses no randomness."""
        paper = self.profile == "paper"
        published: list[PublishedColumn] = []
        chosen: dict[str, int] = {}
        for at, column in enumerate(data.columns):
            progress(at / len(data.columns), f"bins of '{column.name}'")
            if not column.is_numeric:
                every = np.arange(column.size, dtype=np.int32)
                published.append(
                    PublishedColumn(column.name, column.codes, tuple(column.value_texts), every, every)
                )
                continue
            bins = bin_column(column, self.bins)
            chosen[column.name] = bins.chosen
            cells = mean_cells(column, bins, "truncate" if paper else self.rounding, exact=paper)
            published.append(
                PublishedColumn(
                    column.name,
                    bins.of_code[column.codes],
                    cells,
                    bins.low,
                    bins.high,
                    False,
                    *true_codes(column, cells),
                )
            )
        partition = Partition.by_codes([p.codes for p in published], [len(p.values) for p in published])
        return Recoded(tuple(published), np.ones(data.rows, dtype=bool), partition, {"bins": chosen})
