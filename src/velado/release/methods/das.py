"""DAS, dynamic anonymization by separatrices: every number becomes the mean of its percentile bin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.numbers import number_text
from velado.data.partition import FloatArray, IntArray, Partition
from velado.data.taxonomy import Taxonomy
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._method import Takes
from velado.release.recoded import BINS, Cell, NoteName, PublishedColumn, Recoded, as_it_is, true_codes
from velado.settings import Setting, settings
from velado.text import Sentence, say, say_n

# Separatrices: how many bins a column of numbers wants, where they are cut, and how they nest.
#
# Coelho et al. 2024, section III ("Dynamic Anonymization by Separatrices"). Pure arrays: nothing here knows
# about tables. A bin is a run of consecutive *codes*, the ranks of the distinct values; bins are named by
# the last code of each, so ``[3, 7, 9]`` are the codes 0..3, 4..7 and 8..9.

_MOST_POINTS = 1 << 15
"""Beyond this many distinct values the elbow is read off evenly spaced ones: the curve is the same."""
_MOST_BINS = 1000
"""No more bins than this are tried; a curve without a knee by then is cut where it bends most."""


def elbow(values: npt.ArrayLike) -> int:
    """The number of bins at the knee of the clustering cost of the distinct values, counted once each.

    The cost of k = 2..U-1 clusters of U distinct values is the least possible sum of squared distances to
    the cluster means (exact dynamic programming, one row per k, each by divide and conquer over the
    monotone split points); the knee is Kneedle's first (Satopaa et al. 2011, S = 1, convex, decreasing).
    Rows are computed only until the knee shows: the last point of the curve, which Kneedle needs to
    normalise it, is known without them (U - 1 clusters join only the two nearest values). Deterministic,
    where the authors average ten unseeded k-means runs; equal to theirs on all published columns.

    One or two distinct values give as many bins; a curve without a knee gives its point of largest
    distance from the diagonal. O(k U log U) with k about 2 U^(1/3).

    >>> elbow([1, 1, 2, 2, 3, 50, 51, 52, 90, 91, 92, 93])
    3
    """
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    if distinct.size <= 3:
        return min(int(distinct.size), 2)
    return int(_first_knee(*_curve_setup(distinct)))


def elbow_costs(values: npt.ArrayLike, most: int) -> FloatArray:
    """The curve that `elbow` reads: the least cost of 2..*most* clusters, as shares of that of two. O(most U log U).

    >>> elbow_costs([1, 1, 2, 2, 3, 50, 51, 52, 90, 91, 92, 93], 4).round(3).tolist()
    [1.0, 0.003, 0.002]
    """
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    if distinct.size <= 3:
        return np.ones(0)
    x = _curve_setup(distinct)[0]
    one, two = (np.concatenate([[0.0], np.cumsum(x**power)]) for power in (1, 2))
    row = np.maximum(two[1:] - one[1:] ** 2 / np.arange(1, x.size + 1), 0.0)
    other, split, costs = np.empty(x.size), np.zeros(x.size, dtype=np.int64), []
    for _ in range(2, min(most, x.size) + 1):
        _next_row(row, other, split, one, two)
        row, other = other, row
        costs.append(float(row[-1]))
    return np.asarray(costs) / costs[0] if costs[0] > 0 else np.ones(0)


def _curve_setup(distinct: FloatArray) -> tuple[FloatArray, float, int, int]:
    # Shifted and scaled to -0.5..0.5 so that the sums of squares lose no digits to a large mean.
    scaled = (distinct - distinct[0]) / (distinct[-1] - distinct[0]) - 0.5
    last_cost = float(np.diff(scaled).min()) ** 2 / 2
    points = distinct.size - 2
    if scaled.size > _MOST_POINTS:
        chosen = np.round(np.linspace(0, scaled.size - 1, _MOST_POINTS)).astype(np.int64)
        scaled, last_cost = scaled[chosen], 0.0
    return np.ascontiguousarray(scaled), last_cost, points, min(points, _MOST_BINS, scaled.size - 2)


@njit(cache=True)
def _first_knee(x: FloatArray, last_cost: float, points: int, tried: int) -> int:
    """Kneedle on the cost curve of k = 2..points+1, at most *tried* of its points computed."""
    n = x.size
    one = np.zeros(n + 1)
    two = np.zeros(n + 1)
    for i in range(n):
        one[i + 1] = one[i] + x[i]
        two[i + 1] = two[i] + x[i] * x[i]
    row = np.empty(n)
    for j in range(n):
        row[j] = max(two[j + 1] - one[j + 1] * one[j + 1] / (j + 1), 0.0)
    other = np.empty(n)
    split = np.zeros(n, dtype=np.int64)
    height = np.empty(tried)  # Kneedle's difference curve: normalised fall minus normalised k
    first_cost = 0.0
    threshold = np.inf
    at = -1
    for i in range(tried):
        _next_row(row, other, split, one, two)
        row, other = other, row
        cost = row[n - 1] if i < points - 1 else last_cost
        if i == 0:
            first_cost = cost
            if first_cost <= last_cost:
                return 2
        height[i] = (first_cost - cost) / (first_cost - last_cost) - i / (points - 1)
        if i == 0:
            continue
        # Point i - 1 can be judged now that its right neighbour is known.
        mid = i - 1
        left = height[mid - 1] if mid > 0 else height[mid]
        if height[mid] >= left and height[mid] >= height[i]:
            threshold = height[mid] - 1.0 / (points - 1)
            at = mid
        if at >= 0 and height[mid] <= left and height[mid] <= height[i]:
            threshold = 0.0
        if at >= 0 and height[i] < threshold:
            return at + 2
    return int(np.argmax(height[:tried])) + 2


@njit(cache=True)
def _next_row(
    before: FloatArray,
    after: FloatArray,
    split: npt.NDArray[np.int64],
    one: FloatArray,
    two: FloatArray,
) -> None:
    """From the least cost of every prefix in k - 1 clusters to that in k.

    The best start of the last cluster never moves left as the prefix grows, so solving the prefixes
    middle first bounds every later search by its neighbours' answers: O(U) work on each of log U levels.
    """
    n = before.size
    step = 1
    while step < n:
        step *= 2
    while step >= 1:
        j = step - 1
        while j < n:
            low = split[j - step] if j - step >= 0 else 0
            high = split[j + step] if j + step < n else j
            if high > j:
                high = j
            best = np.inf
            where = low
            for i in range(low, high + 1):  # the last cluster is i..j
                total = one[j + 1] - one[i]
                cost = two[j + 1] - two[i] - total * total / (j + 1 - i)
                if cost < 0.0:
                    cost = 0.0
                if i > 0:
                    cost += before[i - 1]
                if cost < best:
                    best = cost
                    where = i
            after[j] = best
            split[j] = where
            j += 2 * step
        step //= 2


def cut(values: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """The last code of each of at most *k* bins, cut at the percentiles 100 i / k of *values*.

    The percentile is the closest observation over all rows (Hyndman and Fan 1996, type 3, numpy's
    `closest_observation`, computed in whole numbers), and all rows equal to it stay in the lower bin. ColumnBins
    that would be empty because ties span several percentiles do not exist, so every bin holds a value and
    every value is in one bin. O(n log n).

    >>> cut([21, 24, 25, 30, 34, 33, 38, 41, 39], 3).tolist()
    [2, 5, 8]
    """
    _, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return cut_counted(counts, k)


def cut_counted(counts: IntArray, k: int) -> npt.NDArray[np.int64]:
    """As `cut`, from how often each distinct value occurs (every count at least 1).

    >>> cut_counted(np.array([1, 1, 4, 2]), 2).tolist()
    [2, 3]
    """
    running = np.cumsum(np.asarray(counts, dtype=np.int64))
    rows = int(running[-1])
    part = np.arange(1, k + 1, dtype=np.int64)
    # Position n i / k - 1/2 as the fraction (2 n i - k) / 2 k; an exact hit on an even rank stays there.
    whole, rest = np.divmod(2 * rows * part - k, 2 * k)
    rank = np.clip(np.where((rest == 0) & (whole % 2 == 0), whole, whole + 1), 1, rows)
    ends = np.searchsorted(running, rank, side="left")
    ends[-1] = running.size - 1
    return np.unique(ends).astype(np.int64)


def nested(values: npt.ArrayLike, k: int) -> list[npt.NDArray[np.int64]]:
    """ColumnBins that nest: the bins of `cut`, then unions of two neighbours, and so on up to everything.

    >>> [level.tolist() for level in nested(range(1, 11), 5)]
    [[1, 3, 5, 7, 9], [3, 7, 9], [7, 9], [9]]
    """
    _, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return nested_counted(counts, k)


def nested_counted(counts: IntArray, k: int) -> list[npt.NDArray[np.int64]]:
    """As `nested`, from how often each distinct value occurs (every count at least 1).

    >>> [level.tolist() for level in nested_counted(np.ones(10, dtype=np.int64), 5)]
    [[1, 3, 5, 7, 9], [3, 7, 9], [7, 9], [9]]
    """
    levels = [cut_counted(counts, k)]
    while levels[-1].size > 1:
        ends = levels[-1]
        levels.append(np.unique(np.append(ends[1::2], ends[-1])))
    return levels


def bin_of(ends: IntArray, size: int) -> npt.NDArray[np.int32]:
    """The bin of each of the codes 0..size-1, given the last code of each bin.

    >>> bin_of(np.array([3, 7, 9]), 10).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    """
    return np.searchsorted(ends, np.arange(size), side="left").astype(np.int32)


Rounding = Literal["keep", "round", "truncate"]
Cutter = Callable[[FloatArray, npt.NDArray[np.int64]], tuple[npt.NDArray[np.int64], int]]
_DIGITS = 6


@dataclass(frozen=True, repr=False)
class ColumnBins:
    """One numeric column in bins: the bin of each code, and each bin's mean and range of codes.

    A missing number is a bin of its own, the last one, whose mean is NaN. *chosen* is the number of bins
    asked of the separatrices; ties may leave fewer.

    >>> from velado.testing.examples import column
    >>> bin_column(column([20, 22, 60]), 2).means.tolist()
    [21.0, 60.0]
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


def bin_column(
    column: EncodedColumn, k: int | None = None, counts: npt.NDArray[np.int64] | None = None
) -> ColumnBins:
    """The *k* separatrix bins of a numeric column (None: as many as its elbow says). O(n + k U log U).

    Its entries stand for *counts* rows each, by default one.

    >>> from velado.testing.examples import column
    >>> bin_column(column([20, 22, 60, 61]), 2).of_code.tolist()
    [0, 0, 1, 1]
    """

    def separatrices(points: FloatArray, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
        chosen = elbow(points) if k is None else k
        return cut_counted(rows, chosen), chosen

    return bins_by(column, separatrices, counts)


def bins_by(
    column: EncodedColumn, cutter: Cutter, rows_of: npt.NDArray[np.int64] | None = None
) -> ColumnBins:
    """The bins *cutter* makes: given the distinct numbers and their rows, the last number of each bin. O(n).

    Entries of the column stand for *rows_of* rows each, by default one.

    >>> from velado.testing.examples import column
    >>> bins_by(column([20, 22, 60]), lambda points, rows: (np.array([0, 2]), 2)).means.tolist()
    [20.0, 41.0]
    """
    assert column.points is not None
    counts = np.bincount(column.codes, rows_of, minlength=column.size).astype(np.int64)
    numbers = counts.copy()
    if column.missing >= 0:
        numbers[column.missing] = 0
    present = np.flatnonzero(numbers)  # a part of a table may lack some codes of the whole
    of_code = np.zeros(column.size, dtype=np.int32)
    if not present.size:
        blank = np.full(1, column.missing, dtype=np.int32)
        return ColumnBins(of_code, np.full(1, np.nan), blank, blank, 0)
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
    return ColumnBins(of_code, means, low, high, chosen)


def mean_cells(
    column: EncodedColumn, bins: ColumnBins, rounding: Rounding, exact: bool = False
) -> tuple[Cell, ...]:
    """What each bin is published as: its mean, rounded as asked; None for the bin of missing values.

    "round" and "truncate" act on whole-number columns only and give whole numbers. Means that are kept are
    given to six digits of the column's range (exactly, if *exact*): more would be noise, and a mean
    with sixteen digits can betray its members.

    >>> from velado.testing.examples import column
    >>> ages = column([20, 23, 60])
    >>> mean_cells(ages, bin_column(ages, 2), "keep"), mean_cells(ages, bin_column(ages, 2), "truncate")
    ((21.5, 60.0), ('21', '60'))
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


# Categories: the levels of a taxonomy are bins that nest, and the same knee says which of them to publish.

_LEVELS = NoteName("levels", say("level of generalization per column"))


def knee_level(tree: Taxonomy, present: IntArray) -> int | None:
    """The level of the taxonomy at the knee of the cost of its bins; None where no level is a choice.

    *present* are the values that occur, counted once each, as `elbow` counts numbers. The cost of a bin of n values is
    that of k-means, 1/(2n) times the sum of their squared distances over ordered pairs, with the distance of
    taxonomies: the share of all leaves under the lowest common ancestor (Byun et al. 2007). The curve goes from the
    root, one bin, to the values themselves, which cost nothing; the level chosen is the one farthest above the straight line
    between the two, both axes scaled to 0..1 (Kneedle's distance; a curve of so few points has no smoother knee).
    Levels that leave one bin, or every value its own, are no choice. O(nodes).

    >>> from velado.data.taxonomy import from_paths
    >>> towns = [("a", "MG", "SE"), ("b", "MG", "SE"), ("c", "SP", "SE"), ("d", "SP", "SE"), ("e", "BA", "NE")]
    >>> knee_level(from_paths(towns), np.arange(5))
    1
    """
    bins = [np.unique(tree.levels[present, level]) for level in range(tree.height + 1)]
    cost_of = _bin_costs(tree, present)
    costs = np.array([cost_of[nodes].sum() for nodes in bins])
    counts = np.array([nodes.size for nodes in bins])
    choice = np.flatnonzero((counts > 1) & (counts < present.size))
    if not choice.size:
        return None
    height = (costs[-1] - costs) / costs[-1] - (counts - 1) / (present.size - 1)
    return int(choice[np.argmax(height[choice])])


def _bin_costs(tree: Taxonomy, present: IntArray) -> FloatArray:
    """For each node, the cost of one bin of the present values under it."""
    count = np.zeros(len(tree.labels))
    count[present] = 1.0
    squares = np.zeros(len(tree.labels))  # over the ordered pairs under a node, their squared distances
    below = np.zeros(len(tree.labels))  # of these, how many pairs lie within one child
    for node in range(len(tree.labels)):  # children come before their parents
        # The pairs that meet in this node are all pairs under it but those that have met below.
        if node >= tree.leaves:
            squares[node] += (count[node] ** 2 - below[node]) * (tree.leaf_count[node] / tree.leaves) ** 2
        if node != tree.root:
            above = tree.parent[node]
            count[above] += count[node]
            squares[above] += squares[node]
            below[above] += count[node] ** 2
    return np.asarray(squares / (2.0 * np.maximum(count, 1.0)), dtype=np.float64)


def _at_level(column: EncodedColumn, level: int) -> PublishedColumn:
    assert column.tree is not None
    tree = column.tree
    nodes, codes = np.unique(tree.levels[:, level], return_inverse=True)
    low, high = tree.first[nodes], tree.last[nodes]
    shown = codes.astype(np.int32)[column.codes]
    # A bin of one value of the taxonomy is published as that value, which says the same.
    return PublishedColumn(column.name, shown, tuple(column.label(low, high)), low, high)


def stayed_raw(data: EncodedTable, columns: Sequence[PublishedColumn]) -> list[str]:
    """The quasi-identifiers without numbers that are published with every value of their own.

    >>> from velado.testing.examples import encoded
    >>> towns = encoded(town=["b", "a"])
    >>> stayed_raw(towns, [as_it_is(towns.columns[0])])
    ['town']
    """
    pairs = zip(data.columns, columns, strict=True)
    return [
        column.name
        for column, shown in pairs
        if not column.is_numeric and np.array_equal(shown.low, shown.high) and column.size > 1
    ]


def raw_warning(names: Sequence[str]) -> Sentence:
    """The warning for quasi-identifiers that a method for numbers has left as they were.

    >>> str(raw_warning(["town"])).partition(".")[0]
    "Left as it came, since this method recodes numbers: 'town'"
    """
    return say_n(
        "Left as it came, since this method recodes numbers: {columns}. Whoever knows its value finds rows by it as before; "
        "generalize it with a column operation, or use a method that recodes categories too.",
        "Left as they came, since this method recodes numbers: {columns}. Whoever knows their values finds rows by them as "
        "before; generalize them with column operations, or use a method that recodes categories too.",
        len(names),
        columns=", ".join(f"'{name}'" for name in names),
    )


def numbers_recoded(
    data: EncodedTable, progress: Progress, recode: Callable[[EncodedColumn], PublishedColumn]
) -> tuple[PublishedColumn, ...]:
    """Every numeric column as *recode* publishes it; one with a taxonomy keeps its own values.

    >>> from velado.release.goal import silent
    >>> from velado.testing.examples import encoded
    >>> [one.values for one in numbers_recoded(encoded(town=["b", "a"]), silent, lambda column: None)]
    [('a', 'b')]
    """
    out = []
    for at, column in enumerate(data.columns):
        progress(at / len(data.columns), f"bins of '{column.name}'")
        out.append(recode(column) if column.is_numeric else as_it_is(column))
    return tuple(out)


def as_means(column: EncodedColumn, bins: ColumnBins, cells: tuple[Cell, ...]) -> PublishedColumn:
    """The column with the cell of its bin in each row: a substitution, true of those alone who have that value.

    >>> from velado.testing.examples import column
    >>> ages = column([20, 22, 60])
    >>> as_means(ages, bin_column(ages, 2), (21.0, 60.0)).codes.tolist()
    [0, 0, 1]
    """
    true = true_codes(column, cells)
    return PublishedColumn(column.name, bins.of_code[column.codes], cells, bins.low, bins.high, False, *true)


@settings
class DAS:
    """Every number is published as the mean of its percentile bin; categories stay, or go up their taxonomy.

    Coelho et al. 2024, algorithm 1: the elbow of the distinct values gives the number of bins, the bins are
    cut at the percentiles 100 i / k, each value is replaced by its bin's mean. A substitution, and no group
    size: on both tables of the paper the smallest group is one row. What it hides is measured, not promised.

    The authors' code fails where the maximum's ties start before the last bin and on a constant column;
    here such bins do not exist. `paper` truncates the means of whole-number columns towards 0, whatever
    *rounding* says, as writing them into an integer column did there (171.67 becomes 171 in Table II), and
    keeps all digits elsewhere; by default a kept mean has six digits of its column's range. It changes nothing
    else: bins are the exact ones in both profiles.

    The paper is of numbers alone: categories leave as they came, and a warning names them. With *categories*
    "taxonomy" each is published at the level of its taxonomy that `knee_level` chooses, our extension of the same
    idea; a column without a level between its values and the root stays, and is named. A missing number stays a blank of its own. O(n + k U log U) per column of U distinct values.

    >>> from velado.testing.examples import shown
    >>> shown(DAS(bins=2), [20, 21, 22, 30, 31, 60])
    [21.0, 21.0, 21.0, 40.3333, 40.3333, 40.3333]
    """

    name: ClassVar[str] = "das"
    title: ClassVar[str] = say("Dynamic anonymization by separatrices")
    promise: ClassVar[Promise] = "measured"
    takes: ClassVar[Takes] = "tuples"
    cost: ClassVar[str] = say("O(n + k U log U) per numeric column with U distinct values")
    source: ClassVar[str] = (
        "Coelho et al. 2024, A Dynamic Approach to Health Data Anonymization by Separatrices"
    )

    bins: Annotated[int | None, Setting("bins per column; left out: the elbow of each", ge=2)] = None
    rounding: Annotated[Rounding, Setting("what becomes of the means of whole-number columns")] = "keep"
    categories: Annotated[
        Literal["keep", "taxonomy"],
        Setting("taxonomy: categories are published at the level where their curve of costs has its knee"),
    ] = "keep"
    profile: Annotated[
        Literal["default", "paper"],
        Setting(
            "paper: means of whole-number columns lose their decimals whatever --rounding says, others keep every digit"
        ),
    ] = "default"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table with every numeric quasi-identifier replaced by bin means. Uses no randomness."""
        paper = self.profile == "paper"
        chosen: dict[str, int] = {}

        def recode(column: EncodedColumn) -> PublishedColumn:
            bins = bin_column(column, self.bins, data.counts)
            chosen[column.name] = bins.chosen
            return as_means(
                column, bins, mean_cells(column, bins, "truncate" if paper else self.rounding, exact=paper)
            )

        levels: dict[str, str] = {}

        def choose(column: EncodedColumn, shown: PublishedColumn) -> PublishedColumn:
            if self.categories == "keep" or column.tree is None:
                return shown
            present = np.setdiff1d(column.codes, [column.missing])
            level = knee_level(column.tree, present) if present.size > 1 else None
            if level is None:
                return shown
            levels[column.name] = f"{level} of {column.tree.height}"
            return _at_level(column, level)

        recoded = numbers_recoded(data, progress, recode)
        published = tuple(choose(column, shown) for column, shown in zip(data.columns, recoded, strict=True))
        raw = stayed_raw(data, published)
        warnings = (raw_warning(raw),) if raw else ()
        partition = Partition.by_codes(
            [p.codes for p in published], [len(p.values) for p in published], data.counts
        )
        notes: dict[str, object] = {BINS: chosen, **({_LEVELS: levels} if levels else {})}
        return Recoded(published, np.ones(data.rows, dtype=bool), partition, notes, warnings)
