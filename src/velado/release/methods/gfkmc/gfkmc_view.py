"""The generalized view GFKMC works on: separatrix bins for numbers, one step up the tree for categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, IntArray, group_by_codes
from velado.data.taxonomy import Taxonomy
from velado.release.methods.das import Bins, bin_column, mean_cells
from velado.release.recoded import true_codes
from velado.release.recoders._recoder import View, ViewColumn

Int32Array = npt.NDArray[np.int32]


def one_step_up(tree: Taxonomy, missing: int = -1) -> Int32Array:
    """The node each leaf is generalized to: its parent, or itself where the parent is everything.

    Thesis section 4.2: Japan and India become Asia, while a tree of height one is left as it is.
    """
    leaf = np.arange(tree.leaves, dtype=np.int32)
    above = tree.parent[: tree.leaves]
    node = np.where(above == tree.root, leaf, above).astype(np.int32)
    if missing >= 0:
        node[missing] = missing
    return node


@dataclass(frozen=True, repr=False)
class Generalized:
    """The generalized table as arrays that kernels read, one row per distinct generalized record (a group).

    *view* is what substitutions publish, *group* the group of each row, *sizes* its rows. *places* holds
    per group and column the value: the position of a bin's mean on a line of length 1, or a node number.
    The *n...* matrices are the taxonomies, padded to one shape: parent, first and last leaf, share of all
    leaves, and height below the node over the height of the tree. *numeric* marks numeric columns, *ranges* are
    the raw widths that length 1 stands for.
    """

    view: View
    group: Int32Array
    sizes: npt.NDArray[np.int64]
    places: FloatArray
    numeric: npt.NDArray[np.bool_]
    n_parent: Int32Array
    n_first: Int32Array
    n_last: Int32Array
    n_leaves: FloatArray
    n_height: FloatArray
    ranges: FloatArray
    bins: dict[str, int]


def generalize(data: EncodedTable, paper: bool, raw: bool = False) -> Generalized:
    """The generalized view of *data*; *raw* leaves numbers as they are. O(n d) plus the elbows."""
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
    return Generalized(
        tuple(view),
        group,
        np.bincount(group, minlength=count).astype(np.int64),
        np.ascontiguousarray(table),
        np.array([column.tree is None for column in data.columns]),
        *trees,
        np.array(ranges),
        chosen,
    )


def _positions(column: EncodedColumn, bins: Bins, paper: bool) -> tuple[FloatArray, float]:
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
) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, FloatArray]:
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
