"""CutPlan: what both engines of Mondrian read: the code matrix, and how wide and how cut each column is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.taxonomy import Taxonomy

_BLANK_WIDTH = 3.0  # wider than any column can be (2, with blanks), so that blanks are split off first


@dataclass(frozen=True, repr=False)
class CutPlan:
    """Columns as flat arrays, those of column c starting at its *base*.

    *codes* has one column per quasi-identifier, and one more (0 value, 1 blank) for each that has blanks.
    *places* is where each code of a column without a tree lies. A column with a tree has *stride* > 0:
    *path* holds *stride* ancestors per leaf from the root down (short branches repeat their leaf) and
    *node_loss* the loss of each node; it is cut into its tree's branches.
    """

    codes: npt.NDArray[np.int32]
    trees: tuple[Taxonomy | None, ...]
    places: npt.NDArray[np.float64]
    place_base: npt.NDArray[np.int64]
    path: npt.NDArray[np.int32]
    path_base: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]
    node_loss: npt.NDArray[np.float64]
    node_base: npt.NDArray[np.int64]
    widest: int

    @classmethod
    def of(cls, data: EncodedTable, ordered: bool) -> CutPlan:
        """The plan for *data*; *ordered* takes categories for equally spaced points in leaf order."""
        blanks = [c for c in data.columns if c.missing >= 0 and bool((c.codes == c.missing).any())]
        codes = data.matrix
        if blanks:
            flags = [(c.codes == c.missing).astype(np.int32) for c in blanks]
            codes = np.ascontiguousarray(np.column_stack([codes, *flags]))
        trees = tuple(None if ordered else c.tree for c in data.columns) + (None,) * len(blanks)
        none = np.empty(0)
        weights = [c.weight for c in data.columns] + [1.0] * len(blanks)
        places = [c.weight * c.positions for c in data.columns]
        places += [np.array([0.0, _BLANK_WIDTH])] * len(blanks)
        paths = [np.empty((0, 0), np.int32) if tree is None else tree.levels[:, ::-1] for tree in trees]
        losses = [
            none if tree is None else weight * tree.loss(np.arange(tree.root + 1))
            for tree, weight in zip(trees, weights, strict=True)
        ]
        return cls(
            codes,
            trees,
            np.concatenate(places),
            _bases([place.size for place in places]),
            np.concatenate([path.ravel() for path in paths]),
            _bases([path.size for path in paths]),
            np.array([path.shape[1] for path in paths], dtype=np.int64),
            np.concatenate(losses),
            _bases([loss.size for loss in losses]),
            max(column.size for column in data.columns) + 1,
        )

    def widths(
        self, column: int, low: npt.NDArray[np.int32], high: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """How wide one column is in groups whose codes run from *low* to *high*."""
        tree = self.trees[column]
        if tree is not None:
            # Selecting among the same numbers as the compiled engine keeps comparisons bit for bit alike.
            return np.asarray(self.node_loss[self.node_base[column] + tree.common_ancestor(low, high)])
        base = self.place_base[column]
        return np.asarray(self.places[base + high] - self.places[base + low])


def _bases(sizes: list[int]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
