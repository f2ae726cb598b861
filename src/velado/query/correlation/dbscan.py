"""Approach 1: only records of one DBSCAN cluster are correlated, by |rho|; a noise point only with itself (algorithm 3).

Within a cluster the sum runs over its distinct rank vectors, as in the baseline; clusters are blocks of a matrix that
is never made. Cost O(sum u_c^2 d) for clusters of u_c distinct vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from velado.query.correlation.influence import Mask
from velado.query.correlation.ranks import Ranks
from velado.query.correlation.records import Floats, Integers
from velado.query.correlation.spearman import spread_over, summed

SMALL = 64  # blocks up to this many vectors are summed in one loop over all of them


@dataclass(frozen=True, repr=False)
class Clustered:
    """Blocks of distinct (cluster, rank vector) cells, sorted by cluster; *edges* are where clusters begin and end.

    A noise point is a cluster of its own.
    """

    ranks: Ranks
    cell_of_row: Integers
    edges: Integers
    threshold: float = 0.0

    @classmethod
    def of(cls, ranks: Ranks, labels: Integers, threshold: float = 0.0) -> Clustered:
        """Rows sorted into cells. O(n log n)."""
        noise = labels < 0
        own = labels.copy()
        own[noise] = labels.max(initial=-1) + 1 + np.arange(int(noise.sum()))
        pairs = np.stack([own, ranks.of_row], axis=1)
        cells, cell_of_row = np.unique(pairs, axis=0, return_inverse=True)
        edges = np.flatnonzero(np.diff(cells[:, 0], prepend=-1))
        which = cells[:, 1]
        inner = Ranks(*ranks.take(which), np.asarray(cell_of_row, dtype=np.int64).ravel())
        return cls(inner, inner.of_row, np.append(edges, which.size), threshold)

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS_i = sum over the j of i's cluster of |rho_ij| s_j, rho_ii = 1."""
        ranks = self.ranks
        weights = summed(self.cell_of_row, influence, ranks.norms.size)
        wanted = np.bincount(self.cell_of_row, inside.any(axis=1), minlength=ranks.norms.size) > 0
        out = np.zeros_like(weights)
        sizes = np.diff(self.edges)
        safe = np.where(ranks.norms > 0.0, ranks.norms, np.inf)
        small = np.flatnonzero(sizes <= SMALL)
        _small_blocks(
            ranks.vectors,
            safe,
            self.edges[small],
            self.edges[small + 1],
            np.ascontiguousarray(weights),
            self.threshold,
            out,
        )
        for block in np.flatnonzero(sizes > SMALL):
            part = slice(self.edges[block], self.edges[block + 1])
            cluster = Ranks(ranks.vectors[part], ranks.norms[part], self.cell_of_row)
            out[part] = spread_over(cluster, weights[part], wanted[part], self.threshold)
        alone = ranks.norms[self.cell_of_row] == 0.0
        return np.asarray(out[self.cell_of_row] + np.where(alone[:, None], influence, 0.0))


@njit(cache=True)
def _small_blocks(vectors, norms, starts, ends, weights, threshold, out):  # type: ignore[no-untyped-def]
    """out += |rho| weights within each block; a constant vector has an infinite norm, so its rho is 0."""
    width = vectors.shape[1]
    for block in range(starts.size):
        for i in range(starts[block], ends[block]):
            for j in range(starts[block], ends[block]):
                product = np.float64(0.0)
                for k in range(width):
                    product += np.float64(vectors[i, k]) * np.float64(vectors[j, k])
                if abs(product) > threshold * norms[i] * norms[j] or threshold == 0.0:
                    rho = abs(product) / (norms[i] * norms[j])
                    for q in range(out.shape[1]):
                        out[i, q] += rho * weights[j, q]
