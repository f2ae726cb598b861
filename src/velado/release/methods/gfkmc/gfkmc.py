"""GFKMC: generalize first, then gather what is still rare into clusters of k members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.data.counted import refuse_counted
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import BoolArray, FloatArray, IntArray, Partition, group_by_codes
from velado.data.taxonomy import Taxonomy
from velado.release.goal import Goal, Progress, Promise, silent
from velado.release.methods._cover_tables import in_blocks
from velado.release.methods._method import BlockRows, Takes, repair
from velado.release.methods.das import ColumnBins, bin_column, mean_cells
from velado.release.methods.gfkmc._gfkmc_kernels import Int64Array, Trees, cluster_groups, place_groups
from velado.release.recoded import BINS, NoteName, Recoded, true_codes
from velado.release.recoders import recoder_named
from velado.release.recoders._recoder import View, ViewColumn
from velado.settings import Setting, settings
from velado.text import say

# The generalized view: separatrix bins for numbers, one step up the tree for categories.


def one_step_up(tree: Taxonomy, missing: int = -1) -> npt.NDArray[np.int32]:
    """The node each leaf is generalized to: its parent, or itself where the parent is everything.

    Thesis section 4.2: Japan and India become Asia, while a tree of height one is left as it is.

    >>> from velado.data.taxonomy import from_paths
    >>> tree = from_paths([("Japan", "Asia"), ("India", "Asia"), ("Peru", "America")])
    >>> [tree.labels[node] for node in one_step_up(tree)]
    ['Asia', 'Asia', 'America']
    """
    leaf = np.arange(tree.leaves, dtype=np.int32)
    above = tree.parent[: tree.leaves]
    node = np.where(above == tree.root, leaf, above).astype(np.int32)
    if missing >= 0:
        node[missing] = missing
    return node


@dataclass(frozen=True, repr=False)
class _Generalized:
    """The generalized table as arrays that kernels read, one row per distinct generalized record (a group).

    *view* is what substitutions publish, *group* the group of each row, *sizes* its rows. *places* holds
    per group and column the value: the position of a bin's mean on a line of length 1, or a node number.
    The *n...* matrices are the taxonomies, padded to one shape: parent, first and last leaf, share of all
    leaves, and height below the node over the height of the tree. *numeric* marks numeric columns, *ranges* are
    the raw widths that length 1 stands for.
    """

    view: View
    group: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]
    places: FloatArray
    numeric: npt.NDArray[np.bool_]
    n_parent: npt.NDArray[np.int32]
    n_first: npt.NDArray[np.int32]
    n_last: npt.NDArray[np.int32]
    n_leaves: FloatArray
    n_height: FloatArray
    ranges: FloatArray
    bins: dict[str, int]


def generalize(data: EncodedTable, paper: bool, raw: bool = False) -> _Generalized:
    """The generalized view of *data*; *raw* leaves numbers as they are. O(n d) plus the elbows.

    >>> from velado.testing.examples import encoded
    >>> generalize(encoded(age=[20, 21, 60, 61]), paper=False).group.tolist()
    [0, 0, 1, 1]
    """
    view: list[ViewColumn] = []
    places: list[FloatArray] = []
    ranges: list[float] = []
    chosen: dict[str, int] = {}
    for column in data.columns:
        if column.tree is None:
            # As many percentiles as rows cut between all distinct values.
            bins = bin_column(column, data.rows if raw else None)
            chosen[column.name] = bins.count if raw else bins.chosen
            cells = mean_cells(column, bins, "truncate" if paper or raw else "keep", exact=paper or raw)
            view.append(ViewColumn(bins.of_code[column.codes], cells, *true_codes(column, cells)))
            place, width = _positions(column, bins, paper)
            places.append(place)
            ranges.append(width)
        else:
            node = one_step_up(column.tree, column.missing)
            labels = [None if at == column.missing else label for at, label in enumerate(column.tree.labels)]
            view.append(ViewColumn(node[column.codes], tuple(labels), column.tree.first, column.tree.last))
            places.append(np.arange(len(column.tree.labels), dtype=np.float64))
            ranges.append(1.0)
    group, count = group_by_codes([seen.codes for seen in view], [len(seen.values) for seen in view])
    example = np.zeros(count, dtype=np.int64)
    example[group] = np.arange(data.rows)
    table = np.stack([place[seen.codes[example]] for seen, place in zip(view, places, strict=True)], axis=1)
    trees = _padded([column.tree for column in data.columns])
    return _Generalized(
        tuple(view),
        group,
        np.bincount(group, minlength=count).astype(np.int64),
        np.ascontiguousarray(table),
        np.array([column.tree is None for column in data.columns]),
        *trees,
        np.array(ranges),
        chosen,
    )


def _positions(column: EncodedColumn, bins: ColumnBins, paper: bool) -> tuple[FloatArray, float]:
    # Distances divide by the range of the generalized values (definition 1); a missing number lies one
    # whole range beyond the largest, and every width is capped at 1, so it is far from everything.
    means = np.trunc(bins.means) if paper and column.whole else bins.means.copy()
    known = ~np.isnan(means)
    if not known.any():
        return np.zeros(means.size), 1.0
    least, most = float(means[known].min()), float(means[known].max())
    width = most - least if most > least else 1.0
    out = (means - least) / width
    out[~known] = 2.0
    return np.asarray(out, dtype=np.float64), width


def _padded(
    trees: list[Taxonomy | None],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray, FloatArray]:
    width = max((len(tree.labels) for tree in trees if tree is not None), default=1)
    whole = np.zeros((3, len(trees), width), dtype=np.int32)
    share = np.zeros((2, len(trees), width), dtype=np.float64)
    for at, tree in enumerate(trees):
        if tree is None:
            continue
        nodes = len(tree.labels)
        parts: tuple[IntArray, IntArray, IntArray] = (tree.parent, tree.first, tree.last)
        for level, part in enumerate(parts):
            whole[level, at, :nodes] = part
        share[0, at, :nodes] = tree.leaf_count / max(tree.leaves, 1)
        share[1, at, :nodes] = tree.node_height / max(tree.height, 1)
    return whole[0], whole[1], whole[2], share[0], share[1]


# How unusual each generalized record is (definitions 5-8), and which groups are set aside (algorithm 4.3).


def weights(seen: _Generalized, small: IntArray, paper: bool) -> FloatArray:
    """W = |T| - (rank of the numeric score + rank of the categorical score) / 2, for every group.

    Definition 5: the summed distance from each column's mean (in units of the column's range, so that no
    unit of measurement decides; raw in `paper`), ranked from the largest. Definition 6: the mean frequency
    of the categories, ranked from the smallest. Then definitions 7 and 8: the strangest record has the
    largest weight. By default T is the whole table, ranks are dense and ties share one, so W is the same
    for all rows of a group. In `paper` T is the list of groups below k, one record each, numbered one by
    one: with it the authors' figures come out (see the tests), and only those groups have a weight.

    >>> from velado.testing.examples import encoded
    >>> seen = generalize(encoded(age=[20, 20, 20, 90]), paper=False)
    >>> weights(seen, np.arange(seen.sizes.size), paper=False).tolist()
    [2.5, 3.0]
    """
    counted = seen.sizes.astype(np.float64)
    if paper:
        counted = np.zeros(seen.sizes.size)
        counted[small] = 1.0
    number = np.zeros(seen.sizes.size)
    category = np.zeros(seen.sizes.size)
    for at, numeric in enumerate(seen.numeric):
        place = seen.places[:, at]
        if numeric:
            away = np.abs(place - float(np.average(place, weights=counted)))
            number += away * (seen.ranges[at] if paper else 1.0)
        else:
            node = place.astype(np.int64)
            category += np.bincount(node, weights=counted)[node]
    if not paper:
        return np.asarray(counted.sum() - (_dense(-number) + _dense(category)) / 2, dtype=np.float64)
    ranks = np.zeros(seen.sizes.size)
    for score in (-number[small], category[small]):
        ranks[small[np.argsort(score, kind="stable")]] += np.arange(1, small.size + 1)
    return np.where(counted > 0, small.size - ranks / 2, 0.0)


def _dense(score: FloatArray) -> npt.NDArray[np.int64]:
    # Scores are sums of a few floats; rounding keeps equal ones equal whatever the order of the columns.
    return np.asarray(np.unique(np.round(score, 9), return_inverse=True)[1].ravel() + 1, dtype=np.int64)


def outliers(weight: FloatArray, sizes: IntArray, rows: int, beta: float, paper: bool) -> BoolArray:
    """True for the groups whose weight is at least the limit: that of the record at place *beta*, counted from 0.

    Algorithm 4.3 of the thesis: line 7 takes `outlier_value = sorted_scores[beta]` from the weights in falling
    order, and line 10 sets a group aside where `weight_scores[r] >= outlier_value`. So a weight equal to the
    limit is an outlier's, in both profiles, and ties can set more aside than beta counts. Section 4.3 says of line
    7 only that "o valor da pontuação de peso do beta-th registro" is the limit; the place is the listing's.

    beta is a share of all *rows* (in `paper`, of the groups below k); at 0 nobody is set aside (lines 3 and 4).
    Where the groups hold no more records than beta counts the text names no record; those stranger than the
    median record are set aside then, the one place with `>`, so that something is left to cluster.

    >>> outliers(np.array([9.0, 2.0, 1.0]), np.array([1, 4, 5]), rows=10, beta=0.1, paper=False).tolist()
    [True, True, False]
    """
    if paper:
        count, ordered = int(beta * weight.size), np.sort(weight)[::-1]
    else:
        count, ordered = int(beta * rows), np.sort(np.repeat(weight, sizes))[::-1]
    if count == 0:
        return np.zeros(weight.size, dtype=bool)
    if count >= ordered.size:
        return np.asarray(weight > ordered[ordered.size // 2])
    return np.asarray(weight >= ordered[count])


# GFKMC's four phases, from the generalized view to the cluster of each row (algorithms 4.2-4.6).


@dataclass(frozen=True, repr=False)
class Clusters:
    """Moves of rows from groups into clusters, and the group that seeded each cluster.

    The last *placed* moves are those of the adjustment: what was left over, or set aside as an outlier.

    >>> from velado.testing.examples import encoded
    >>> seen = generalize(encoded(age=[20, 20, 20, 90]), paper=False)
    >>> cluster(seen, 2, 0.0, False, np.random.default_rng(0)).initial
    1
    """

    group: Int64Array
    rows: Int64Array
    into: Int64Array
    seeds: Int64Array
    initial: int
    outliers: int
    placed: int


def cluster(seen: _Generalized, k: int, beta: float, paper: bool, random: np.random.Generator) -> Clusters:
    """Every group's rows are in clusters of at least k rows.

    >>> from velado.testing.examples import encoded
    >>> seen = generalize(encoded(age=[20, 20, 20, 90]), paper=False)
    >>> cluster(seen, 2, 0.0, False, np.random.default_rng(0)).into.tolist()
    [0, 0]
    """
    large = np.flatnonzero(seen.sizes >= k)  # algorithm 4.2
    small = np.flatnonzero(seen.sizes < k)
    moves = [(large, seen.sizes[large], np.arange(large.size))]
    if not small.size:
        return Clusters(*moves[0], large, int(large.size), 0, 0)
    weight = weights(seen, small, paper)
    strange = outliers(weight[small], seen.sizes[small], int(seen.sizes.sum()), beta, paper)
    if not large.size and seen.sizes[small[~strange]].sum() < k:
        strange[:] = False  # without any group yet, nobody may be set aside
    trees = (seen.n_parent, seen.n_first, seen.n_last, seen.n_leaves, seen.n_height)
    scale = seen.ranges if paper else np.ones(seen.numeric.size)
    usual = small[~strange]
    left = seen.sizes.copy()
    part = seen.sizes[usual].copy()
    seeds = np.empty(0, dtype=np.int64)
    if part.sum() >= k:
        group, rows, into, seeds = cluster_groups(
            k=k,
            start=int(random.integers(usual.size)),
            farthest_first=not paper,
            places=seen.places[usual],
            left=part,
            weight=weight[usual],
            numeric=seen.numeric,
            scale=scale,
            trees=trees,
        )
        moves.append((usual[group], rows, into + large.size))
        seeds = usual[seeds]
        left[usual] = part
    every = np.concatenate([large, seeds])
    remaining = usual[left[usual] > 0]
    order = np.concatenate([random.permutation(remaining), random.permutation(small[strange])])
    if not every.size:  # fewer rows than k: one cluster of all, for repair() to judge
        return Clusters(small, seen.sizes[small], np.zeros(small.size, np.int64), small[:1], 0, 0, 0)
    if order.size:
        # The code of the paper offers new clusters only; without any, the initial groups must do.
        candidates = np.arange(every.size)
        if paper and seeds.size:
            candidates = candidates[large.size :]
        low, high, rows, squares = _covers(seen, moves, every.size, weight, trees)
        target = place_groups(
            order=order,
            left=left,
            places=seen.places,
            weight=weight,
            low=low[candidates],
            high=high[candidates],
            rows=rows[candidates],
            squares=squares[candidates],
            numeric=seen.numeric,
            scale=scale,
            trees=trees,
        )
        moves.append((order, left[order], candidates[target]))
    group, rows, into = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    return Clusters(group, rows, into, every, int(large.size), int(strange.sum()), int(order.size))


def _covers(
    seen: _Generalized,
    moves: list[tuple[Int64Array, Int64Array, Int64Array]],
    clusters: int,
    weight: FloatArray,
    trees: Trees,
) -> tuple[FloatArray, FloatArray, Int64Array, FloatArray]:
    """Cover, rows and summed squared weights of the clusters as they stand after *moves*."""
    group, rows, into = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    size = np.bincount(into, weights=rows, minlength=clusters).astype(np.int64)
    squares = np.bincount(into, weights=rows * weight[group] ** 2, minlength=clusters).astype(np.float64)
    low: FloatArray = np.full((clusters, seen.numeric.size), np.inf)
    high: FloatArray = np.full((clusters, seen.numeric.size), -np.inf)
    for at, numeric in enumerate(seen.numeric):
        place = seen.places[group, at]
        if numeric:
            np.minimum.at(low[:, at], into, place)
            np.maximum.at(high[:, at], into, place)
            continue
        parent, first, last = trees[0][at], trees[1][at], trees[2][at]
        node = place.astype(np.int64)
        least = np.full(clusters, first.size, dtype=np.int64)
        most = np.full(clusters, -1, dtype=np.int64)
        np.minimum.at(least, into, first[node])
        np.maximum.at(most, into, last[node])
        common = np.zeros(clusters, dtype=np.int64)
        common[into] = node  # climb from any member until everything is covered
        while True:
            narrow = (first[common] > least) | (last[common] < most)
            if not narrow.any():
                break
            common[narrow] = parent[common[narrow]]
        low[:, at] = high[:, at] = common
    return low, high, size, squares


def _to_rows(
    data: EncodedTable, seen: _Generalized, found: Clusters
) -> tuple[Int64Array, BoolArray, Int64Array]:
    """The cluster of each row, whether the adjustment put it there, and a row that seeded each cluster.

    A group whose rows go to several clusters is dealt out in order of the true codes, so that neighbours
    stay together and the order of rows in the table does not matter.
    """
    record, _ = group_by_codes([c.codes for c in data.columns], [c.size for c in data.columns])
    order = np.lexsort((record, seen.group))
    dealt = np.argsort(found.group, kind="stable")
    labels = np.empty(data.rows, dtype=np.int64)
    labels[order] = np.repeat(found.into[dealt], found.rows[dealt])
    placed = np.empty(data.rows, dtype=bool)
    late = np.arange(found.group.size) >= found.group.size - found.placed
    placed[order] = np.repeat(late[dealt], found.rows[dealt])
    starts = np.concatenate(([0], np.cumsum(seen.sizes)[:-1]))
    return labels, placed, order[starts[found.seeds]]


def _drop_costly(data: EncodedTable, labels: Int64Array, placed: BoolArray, droppable: int) -> Int64Array:
    """The labels with -1 for placed rows that cost their group more certainty than they hold themselves.

    For each group the loss of its rows together is compared with the loss of the others alone plus a
    whole loss for each placed row dropped; the groups that gain most per dropped row come first, while
    *droppable* rows last. So the loss, suppressed rows counted as 1, never rises. O(n d).
    """
    count = int(labels.max()) + 1
    together = Partition(labels.astype(np.int32), count)
    alone = Partition(np.where(placed, -1, labels).astype(np.int32), count)
    extra = together.sizes - alone.sizes
    gain = -extra.astype(np.float64) * len(data.columns)
    for column in data.columns:
        gain += together.sizes * column.loss(*together.least_and_greatest(column.codes))
        gain -= alone.sizes * column.loss(*alone.least_and_greatest(column.codes))
    good = np.flatnonzero(gain > 1e-9)
    good = good[np.argsort(-gain[good] / extra[good], kind="stable")]
    good = good[np.cumsum(extra[good]) <= droppable]
    chosen = np.zeros(count, dtype=bool)
    chosen[good] = True
    return np.where(placed & chosen[labels], -1, labels)


_RECODERS = ("cover", "centroid", "most-common-record", "most-common-value")


@settings
class GFKMC:
    """Every group has at least *k* rows that were alike, or nearly so, once generalized one step.

    Generalization First k-Member Clustering (thesis section 2.5 and chapter 4). Numbers go into separatrix
    bins (DAS), categories one step up their taxonomy; groups of identical generalized records with k or
    more rows are clusters already; the rest are weighted (definitions 5-8), the strangest *beta* set aside (algorithm
    4.3), the others clustered k at a time around seeds that lie far apart (4.4, 4.5), and all that is left
    joins the cluster whose weighted information loss (definition 10) rises least (4.6).

    Where the text and the authors' code differ, the default follows the text: ranks are dense with shared
    ties, beta counts records, every numeric term is divided by its column's range, the next seed is the
    group whose nearest seed is farthest, and the initial clusters too may take in what is left. Where fewer
    records remain than beta counts, half of them are still clustered. `paper` follows the code: ordinal
    ranks, beta of the groups, raw numeric spread, farthest seed, new clusters only. The published figures
    on the whole Adult table were made without bins (numbers = "raw").

    The default recoder publishes the tight cover of the members' true values, so nothing false is said; the
    thesis's three recoders are substitutions made from the generalized values. A suppression limit is spent
    on leftovers that cost their group more certainty than they hold. Guarantees beyond k in rows
    are reached by merging. O(n log n + G C d) for G small groups, C clusters.

    >>> from velado.testing.examples import shown
    >>> shown(GFKMC(), [20, 21, 22, 30, 31, 60])
    ['[20..21]', '[20..21]', '[22..30]', '[22..30]', '[31..60]', '[31..60]']
    """

    name: ClassVar[str] = "gfkmc"
    title: ClassVar[str] = say("Generalization first k-member clustering")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "rows"
    cost: ClassVar[str] = say(
        "O(n log n + G C d) for G generalized groups below k and C clusters; in blocks of b rows"
    )
    source: ClassVar[str] = "Coelho, GFKMC thesis, sections 2.5 and 4; Coelho et al. 2024 for the bins"

    profile: Annotated[Literal["default", "paper"], Setting("paper: the choices of the authors' code")] = (
        "default"
    )
    recoder: Annotated[
        str | None,
        Setting("how a group is published; left out: cover (default), centroid (paper)", choices=_RECODERS),
    ] = None
    beta: Annotated[
        float, Setting("share of records set aside as outliers while clustering", ge=0.0, le=1.0)
    ] = 0.05
    numbers: Annotated[Literal["separatrices", "raw"], Setting("how numbers are generalized first")] = (
        "separatrices"
    )

    block: BlockRows = 50_000

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Groups that keep the goal, published by the recoder."""
        refuse_counted(data)
        paper = self.profile == "paper"
        progress(0.0, "generalizing")
        seen = generalize(data, paper, self.numbers == "raw")
        notes: dict[str, object] = {
            BINS: seen.bins,
            NoteName("generalized_groups", say("groups after generalization")): int(seen.sizes.size),
        }
        if data.rows <= self.block:
            partition = self._cluster(data, seen, goal, random, progress, notes)
        else:
            # Blocks of neighbouring rows, each generalized and clustered by itself: the promise holds in each.
            partition = in_blocks(
                data,
                self.block,
                max(goal.least_rows, 1),
                lambda part: self._cluster(
                    part, generalize(part, paper, self.numbers == "raw"), goal, random, silent, {}
                ),
                progress,
                self.title,
            )
        partition = repair(data, partition, goal, progress)
        recoder = recoder_named(self.recoder or ("centroid" if paper else "cover"))
        progress(1.0, "publishing")
        return Recoded(recoder.publish(data, partition, seen.view), partition.kept, partition, notes)

    def _cluster(
        self,
        data: EncodedTable,
        seen: _Generalized,
        goal: Goal,
        random: np.random.Generator,
        progress: Progress,
        notes: dict[str, object],
    ) -> Partition:
        """Groups of *data* by algorithms 4.2 to 4.6; facts about the run go into *notes*."""
        progress(0.2, "clustering")
        found = cluster(seen, max(goal.least_rows, 1), self.beta, self.profile == "paper", random)
        labels, placed, centres = _to_rows(data, seen, found)
        droppable = 0 if self.profile == "paper" else goal.suppressible(data.rows)
        if droppable and found.placed:
            fewer = _drop_costly(data, labels, placed, droppable)
            # The dropped rows may hold the only second diagnosis: then the promise needs them back.
            rest = Partition(np.minimum(fewer, 0).astype(np.int32), 1)
            if bool(goal.holds_in_parts(data, rest)[0]):
                labels = fewer
        notes[NoteName("initial_classes", say("groups large enough from the start"))] = found.initial
        notes[NoteName("new_clusters", say("groups formed by clustering"))] = (
            int(found.seeds.size) - found.initial
        )
        notes[NoteName("outlier_groups", say("groups treated as outliers"))] = found.outliers
        return Partition.of(labels, centres)
