"""Record linkage: how many people an attacker who holds the original finds again by distance alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, IntArray, group_by_codes
from velado.data.taxonomy import Taxonomy
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.release.recoded import Cell, PublishedColumn, Recoded
from velado.text import say

# The compiled search of record linkage: for each distinct query, its nearest distinct targets, exactly.
#
# Targets are sorted, so they form a tree whose levels are the columns: all targets that share the first values lie
# side by side. A walk from left to right keeps the partial distance of each level; as soon as it, and the least
# the remaining columns must add, exceeds the best distance found, the whole branch is skipped.

IntVector = npt.NDArray[np.int64]
IntMatrix = npt.NDArray[np.int32]
FloatVector = npt.NDArray[np.float64]

SLACK = 1e-10  # distances nearer than this share of each other are one distance: rounding must break no tie


@njit(cache=True)
def _tree_costs(
    node: int,
    targets: IntVector,
    first: IntVector,
    last: IntVector,
    parent: IntVector,
    share: FloatVector,
    base: int,
    costs: FloatVector,
) -> None:
    """Definition 2 between *node* and every target node: the share of leaves under their common ancestor."""
    for symbol in range(targets.size):
        other = targets[symbol]
        above = node
        while first[base + above] > first[base + other] or last[base + above] < last[base + other]:
            above = parent[base + above]
        costs[symbol] = 0.0 if node == other else share[base + above]


@njit(cache=True)
def _gap(values: FloatVector, value: float) -> float:
    """How far *value* lies from the nearest of the rising *values*."""
    at = np.searchsorted(values, value)
    gap = np.inf
    if at < values.size:
        gap = values[at] - value
    if at > 0:
        gap = min(gap, value - values[at - 1])
    return gap


@njit(cache=True)
def _nearest(
    query: IntMatrix,
    query_value: FloatVector,
    query_node: IntVector,
    query_base: IntVector,
    target: IntMatrix,
    target_value: FloatVector,
    target_node: IntVector,
    target_base: IntVector,
    weight: IntVector,
    first_row: IntVector,
    change: IntVector,
    skip: IntMatrix,
    scale: FloatVector,
    first: IntVector,
    last: IntVector,
    parent: IntVector,
    share: FloatVector,
    node_base: IntVector,
    pair_start: IntVector,
    pair_target: IntVector,
    squared: bool,
) -> tuple[IntVector, IntVector, npt.NDArray[np.bool_]]:
    """For each query: how many target rows are nearest, the first of them; for each true pair, if it is nearest.

    *query* and *target* hold symbols; the numbers or tree nodes they stand for start at the column's base.
    *scale* is what a numeric difference is multiplied by, or negative for a tree column. *change* is the first
    level at which a target differs from the one before; *skip* the next target with another beginning.
    """
    queries, columns = query.shape
    targets = target.shape[0]
    ties = np.zeros(queries, dtype=np.int64)
    winner = np.empty(queries, dtype=np.int64)
    near = np.empty(pair_target.size, dtype=np.bool_)
    far = np.empty(pair_target.size, dtype=np.float64)
    costs = np.zeros(target_value.size, dtype=np.float64)
    value = np.zeros(columns, dtype=np.float64)
    least = np.zeros(columns, dtype=np.float64)
    rest = np.zeros(columns + 1, dtype=np.float64)
    partial = np.zeros(columns + 1, dtype=np.float64)
    for q in range(queries):
        for c in range(columns):
            if q > 0 and query[q, c] == query[q - 1, c]:
                continue
            symbol = query_base[c] + query[q, c]
            begin, end = target_base[c], target_base[c + 1]
            if scale[c] < 0:
                _tree_costs(
                    node=query_node[symbol], targets=target_node[begin:end], first=first, last=last, parent=parent, share=share, base=node_base[c],
                    costs=costs[begin:end],
                )  # fmt: skip
                if squared:
                    costs[begin:end] *= costs[begin:end]
                least[c] = costs[begin:end].min()
            else:
                value[c] = query_value[symbol]
                least[c] = _gap(target_value[begin:end], value[c]) * scale[c]
                if squared:
                    least[c] *= least[c]
        for c in range(columns - 1, -1, -1):
            rest[c] = rest[c + 1] + least[c]
        # The true partners bound the search from the start.
        best = np.inf
        for p in range(pair_start[q], pair_start[q + 1]):
            total = 0.0
            for c in range(columns):
                at = target_base[c] + target[pair_target[p], c]
                if scale[c] < 0:
                    step = costs[at]
                else:
                    step = abs(value[c] - target_value[at]) * scale[c]
                    if squared:
                        step *= step
                total += step
            far[p] = total
            best = min(best, total)
        bound = best * (1 + SLACK)
        winner[q] = np.iinfo(np.int64).max
        t = 0
        level = 0
        while t < targets:
            total = partial[level]
            while level < columns:
                at = target_base[level] + target[t, level]
                if scale[level] < 0:
                    step = costs[at]
                else:
                    step = abs(value[level] - target_value[at]) * scale[level]
                    if squared:
                        step *= step
                total += step
                if total + rest[level + 1] > bound * (1 + SLACK):
                    break
                level += 1
                partial[level] = total
            if level < columns:
                t = skip[t, level]
            else:
                if total < best * (1 - SLACK):
                    best = total
                    bound = best * (1 + SLACK)
                    ties[q] = 0
                    winner[q] = np.iinfo(np.int64).max
                if total <= bound:
                    ties[q] += weight[t]
                    winner[q] = min(winner[q], first_row[t])
                t += 1
            if t < targets:
                level = change[t]
        for p in range(pair_start[q], pair_start[q + 1]):
            near[p] = far[p] <= bound
    return ties, winner, near


Direction = Literal["released-to-original", "original-to-released"]
Ties = Literal["expected", "first", "any"]
Scaling = Literal["range", "none", "standard"]
Metric = Literal["manhattan", "euclidean"]


class LinkageRules(TypedDict, total=False):
    """The rules of `record_linkage` that differ from its own, by the names it has for them.

    >>> LinkageRules(ties="first")
    {'ties': 'first'}
    """

    direction: Direction
    ties: Ties
    scaling: Scaling
    metric: Metric


@dataclass(frozen=True)
class LinkageResult:
    """How many of *rows* records were linked to the right person, and by which rules.

    *correct* is a whole number unless *ties* is "expected", when it is the mean over all ways to break them.

    >>> from velado.testing.examples import four_encoded
    >>> data = four_encoded()
    >>> codes = data.columns[0].codes
    >>> record_linkage(data, [ReleasedColumn(codes, codes)]).rows
    4
    """

    correct: float
    rows: int
    share: float
    direction: Direction
    ties: Ties
    scaling: Scaling
    metric: Metric

    def to_dict(self) -> dict[str, object]:
        """As plain values for manifest and report."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class ReleasedColumn:
    """What one column says of each published row: the codes *low*..*high*, or the number *value*.

    A *value* that is not NaN is what was published in place of a number (a mean, a centroid); without one a
    numeric interval stands at its midpoint. A taxonomy column is the lowest common ancestor of *low* and *high*.

    >>> ReleasedColumn(np.array([0, 1]), np.array([1, 1])).high
    array([1, 1])
    """

    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    value: FloatArray | None = None


def record_linkage(
    data: EncodedTable,
    released: Recoded | Sequence[ReleasedColumn],
    rows: IntArray | None = None,
    *,
    direction: Direction = "released-to-original",
    ties: Ties = "expected",
    scaling: Scaling = "range",
    metric: Metric = "manhattan",
) -> LinkageResult:
    """Every record linked to its nearest ones on the other side, exactly.

    The distance of two records is definition 3 of the GFKMC thesis: the sum over columns of |a - b| / range
    for numbers and of (leaves under the common ancestor) / (leaves) for categories, 0 when equal; metric =
    "euclidean" takes the root of the sum of squares, as the DAS paper. *scaling* divides numbers by the
    range or the standard deviation of the original column, or by nothing.

    *direction* says who is looked up where; *ties* what several nearest records are worth: "expected" a link is
    right with probability 1 / ties, "first" the one with the lowest row number is taken, "any" it is enough
    that the right one is among them. *rows* names the original row of each published row (default: all, in
    order). Original rows that were suppressed count as looked up and not found.

    Assumes an attacker who knows every quasi-identifier of everyone; it is a measurement, not a bound. Works
    on distinct records; memory O(n d), time O(distinct x distinct x d) at worst and far less in practice.

    >>> from velado.testing.examples import four_encoded
    >>> data = four_encoded()
    >>> codes = data.columns[0].codes
    >>> record_linkage(data, [ReleasedColumn(codes, codes)]).share
    0.75
    """
    for value, choices, unknown in (
        (direction, get_args(Direction), say("Record linkage has no direction '{word}'.", word=direction)),
        (ties, get_args(Ties), say("Record linkage has no tie rule '{word}'.", word=ties)),
        (scaling, get_args(Scaling), say("Record linkage has no scaling '{word}'.", word=scaling)),
        (metric, get_args(Metric), say("Record linkage has no metric '{word}'.", word=metric)),
    ):
        if value not in choices:
            raise ParameterError(
                unknown,
                "Figures are comparable only under known rules.",
                say("Choose one of {choices}.", choices=", ".join(choices)),
            )
    if isinstance(released, Recoded):
        rows = np.flatnonzero(released.kept)
        released = released_columns(data, released)
    partner = np.arange(data.rows) if rows is None else np.asarray(rows, dtype=np.int64)
    _check(data, released, partner)
    if not partner.size:
        return LinkageResult(0.0, 0, 0.0, direction, ties, scaling, metric)
    axes = [_axis(column, part, scaling) for column, part in zip(data.columns, released, strict=True)]
    to_original = direction == "released-to-original"
    # Few values first: branches are then few and wide, and a wrong turn costs much, so it is cut early.
    axes.sort(key=lambda axis: (axis.original if to_original else axis.released).symbols.size)
    theirs, ours = [axis.released for axis in axes], [axis.original for axis in axes]
    back = np.full(data.rows, -1, dtype=np.int64)  # the published row of each original row
    back[partner] = np.arange(partner.size)
    if to_original:
        correct = _linked(axes, theirs, ours, partner, back, ties, metric)
        looked_up = int(partner.size)
    else:
        correct = _linked(axes, ours, theirs, back, partner, ties, metric)
        looked_up = data.rows
    return LinkageResult(correct, looked_up, correct / looked_up, direction, ties, scaling, metric)


def released_columns(data: EncodedTable, recoded: Recoded) -> tuple[ReleasedColumn, ...]:
    """What the kept rows of *recoded* are published as, column by column.

    >>> import velado
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35 31 40"))
    >>> release = velado.anonymize(table, table.schema, method="mondrian", k=2)
    >>> released_columns(release.data, release.recoded)[0].low
    array([0, 1, 0, 1], dtype=int32)
    """
    return tuple(
        _released(column, part, part.codes[recoded.kept])
        for column, part in zip(data.columns, recoded.columns, strict=True)
    )


def _released(column: EncodedColumn, part: PublishedColumn, codes: npt.NDArray[np.int32]) -> ReleasedColumn:
    low, high = part.low.copy(), part.high.copy()
    if part.states_cover:
        return ReleasedColumn(low[codes], high[codes])
    blank = np.array([cell is None for cell in part.values])
    if column.missing >= 0:
        low[blank] = high[blank] = column.missing
    if column.tree is not None:
        nodes = np.array([column.tree.widest_node.get(str(cell), -1) for cell in part.values])
        known = nodes >= 0
        low[known], high[known] = column.tree.first[nodes[known]], column.tree.last[nodes[known]]
        return ReleasedColumn(low[codes], high[codes])
    numbers = np.array([_number(cell, column.decimal) for cell in part.values])
    return ReleasedColumn(low[codes], high[codes], numbers[codes])


def _number(cell: Cell, decimal: str) -> float:
    if cell is None:
        return float("nan")
    try:
        return float(cell if isinstance(cell, float) else cell.replace(decimal, "."))
    except ValueError:  # an interval or `*`: it stands at the midpoint of what it covers
        return float("nan")


@dataclass(frozen=True, repr=False)
class _Side:
    """One column of one side: row r has symbol ``codes[r]``, which is the number or tree node ``symbols[...]``."""

    codes: npt.NDArray[np.int32]
    symbols: npt.NDArray[Any]

    @classmethod
    def of(cls, per_row: npt.NDArray[Any]) -> _Side:
        symbols, codes = np.unique(per_row, return_inverse=True)
        return cls(codes.astype(np.int32), symbols)

    @classmethod
    def coded(cls, codes: IntArray, values: npt.NDArray[Any] | None = None) -> _Side:
        """The same for `values[codes]`, by default the codes themselves, without sorting the rows: codes are counted."""
        present = np.flatnonzero(np.bincount(codes))
        symbols, found = np.unique(present if values is None else values[present], return_inverse=True)
        number = np.zeros(int(present[-1]) + 1 if present.size else 0, dtype=np.int32)
        number[present] = found
        return cls(number[codes], symbols)


@dataclass(frozen=True, repr=False)
class _Axis:
    """One column: both sides, the factor of numeric differences (-1 for a tree), and the tree."""

    original: _Side
    released: _Side
    scale: float
    tree: Taxonomy | None


def _axis(column: EncodedColumn, part: ReleasedColumn, scaling: Scaling) -> _Axis:
    if column.tree is not None:
        node = column.tree.common_ancestor(part.low, part.high)
        return _Axis(_Side.coded(column.codes), _Side.coded(node), -1.0, column.tree)
    assert column.points is not None
    points = column.points
    real = points[: column.missing] if column.missing >= 0 else points
    place = (points[part.low] + points[part.high]) / 2
    if column.missing >= 0:  # `*` covers blanks and numbers: it says nothing, so it stands in the middle
        mixed = (part.high == column.missing) & (part.low != column.missing)
        place = np.where(mixed, (real[0] + real[-1]) / 2, place)
    if part.value is not None:
        place = np.where(np.isnan(part.value), place, part.value)
    known = column.codes[column.codes != column.missing]
    spread = 1.0
    if scaling == "range" and known.size:
        spread = float(points[known.max()] - points[known.min()])
    elif scaling == "standard" and known.size:
        spread = float(points[known].std())
    scale = 1.0 / spread if spread > 0 else 1.0
    return _Axis(_Side.coded(column.codes, points), _Side.of(place), scale, None)


def _linked(
    axes: list[_Axis],
    queries: list[_Side],
    targets: list[_Side],
    true_target: npt.NDArray[np.int64],
    true_query: npt.NDArray[np.int64],
    ties: Ties,
    metric: Metric,
) -> float:
    """How many query rows find their true target; *true_target* and *true_query* are -1 where there is none."""
    query, query_codes, _, _ = _distinct(queries)
    target, target_codes, weight, first_row = _distinct(targets)
    has = np.flatnonzero(true_target >= 0)
    pair, pairs = group_by_codes(
        [query[has], target[true_target[has]]], [len(query_codes), len(target_codes)]
    )
    example = np.empty(pairs, dtype=np.int64)
    example[pair] = has
    of_query = query[example]  # pairs are numbered in order of their query
    change, skip = _branches(target_codes)
    query_value, query_node, query_base = _flat(queries, axes)
    target_value, target_node, target_base = _flat(targets, axes)
    first, last, parent, share, node_base = _trees(axes)
    found, winner, near = _nearest(
        query=query_codes,
        query_value=query_value,
        query_node=query_node,
        query_base=query_base,
        target=target_codes,
        target_value=target_value,
        target_node=target_node,
        target_base=target_base,
        weight=weight,
        first_row=first_row,
        change=change,
        skip=skip,
        scale=np.array([axis.scale for axis in axes]),
        first=first,
        last=last,
        parent=parent,
        share=share,
        node_base=node_base,
        pair_start=np.searchsorted(of_query, np.arange(len(query_codes) + 1)),
        pair_target=target[true_target[example]].astype(np.int64),
        squared=metric == "euclidean",
    )
    if ties == "first":
        owner = true_query[winner]
        return float(((owner >= 0) & (query[np.maximum(owner, 0)] == np.arange(len(winner)))).sum())
    rows = np.bincount(pair, minlength=pairs)
    if ties == "any":
        return float(rows[near].sum())
    return float((rows[near] / found[of_query[near]]).sum())


def _distinct(
    sides: list[_Side],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The record of each row, the sorted distinct records, how many rows have each, and the first of them."""
    labels, count = group_by_codes([side.codes for side in sides], [side.symbols.size for side in sides])
    first = np.empty(count, dtype=np.int64)
    first[labels[::-1]] = np.arange(labels.size - 1, -1, -1)
    records = np.stack([side.codes[first] for side in sides], axis=1)
    return labels, np.ascontiguousarray(records), np.bincount(labels, minlength=count), first


def _branches(records: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    count, columns = records.shape
    change = np.zeros(count, dtype=np.int64)
    change[1:] = np.argmax(records[1:] != records[:-1], axis=1)
    skip = np.empty((count, columns), dtype=np.int32)
    for level in range(columns):
        heads = np.flatnonzero(change <= level)
        skip[:, level] = np.append(heads, count)[np.searchsorted(heads, np.arange(count), side="right")]
    return change, skip


def _flat(
    sides: list[_Side], axes: list[_Axis]
) -> tuple[FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    values = np.concatenate([side.symbols.astype(np.float64) for side in sides])
    # The symbols of a tree column are nodes; those of a numeric column have none.
    trees = np.repeat([axis.tree is not None for axis in axes], [side.symbols.size for side in sides])
    base = np.concatenate(([0], np.cumsum([side.symbols.size for side in sides])))
    return values, np.where(trees, values, 0).astype(np.int64), base.astype(np.int64)


def _trees(axes: list[_Axis]) -> tuple[npt.NDArray[Any], ...]:
    """First leaf, last leaf, parent and share of leaves of every node, and where each column's nodes start."""
    trees = [axis.tree for axis in axes]
    none = np.empty(0, dtype=np.int64)
    first = np.concatenate([none if t is None else t.first.astype(np.int64) for t in trees])
    last = np.concatenate([none if t is None else t.last.astype(np.int64) for t in trees])
    parent = np.concatenate([none if t is None else t.parent.astype(np.int64) for t in trees])
    share = np.concatenate([np.empty(0) if t is None else t.leaf_count / t.leaves for t in trees])
    sizes = [0 if t is None else len(t.labels) for t in trees]
    return first, last, parent, share, (np.cumsum(sizes) - sizes).astype(np.int64)


def _check(data: EncodedTable, released: Sequence[ReleasedColumn], partner: npt.NDArray[np.int64]) -> None:
    wrong = [part for part in released if part.low.size != partner.size or part.high.size != partner.size]
    if len(released) != len(data.columns) or wrong:
        raise ParameterError(
            say(
                "The released columns do not fit: {released} for {columns} quasi-identifiers, {wrong} of another "
                "length.",
                released=len(released),
                columns=len(data.columns),
                wrong=len(wrong),
            ),
            "Each published row must be paired with its original row.",
            "Give every quasi-identifier in the order of the schema, and the original row of each published row.",
        )


RECORD_LINKAGE = Measure(
    name="record_linkage",
    title=say("record linkage"),
    of=lambda published, scores: None if scores.linkage is None else scores.linkage.share,
    detailed=True,
)
