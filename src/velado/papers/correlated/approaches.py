"""The source's four ways to say which records move together, as frozen values, and its own settings per data set."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from velado.compiled import njit
from velado.errors import ParameterError
from velado.papers.correlated.correlated_records import Floats, Integers, Records
from velado.papers.correlated.mixture_em import REGULARIZATION, choose_components
from velado.papers.correlated.rank_correlation import (
    Correlation,
    Mask,
    Ranks,
    Spearman,
    centred_within,
    chosen_columns,
    ranks_within,
    scikit_learn,
    spread_over,
    summed,
)
from velado.settings import Setting, settings
from velado.text import say

# Approach 1: only records of one DBSCAN cluster are correlated, by |rho|; a noise point only with itself (algorithm 3).
#
# Within a cluster the sum runs over its distinct rank vectors, as in the baseline; clusters are blocks of a matrix that
# is never made. Cost O(sum u_c^2 d) for clusters of u_c distinct vectors.

SMALL = 64  # blocks up to this many vectors are summed in one loop over all of them


@dataclass(frozen=True, repr=False)
class Clustered:
    """Blocks of distinct (cluster, rank vector) cells, sorted by cluster; *edges* are where clusters begin and end.

    A noise point is a cluster of its own.

    >>> ranks = ranks_within(np.array([[1.0, 2.0], [2.0, 1.0]]))
    >>> Clustered.of(ranks, np.array([0, -1])).of_records(np.ones((2, 1)), np.ones((2, 1), bool)).ravel()
    array([1., 1.])
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


# DBSCAN (Ester, Kriegel, Sander, Xu 1996) without neighbour lists: the same clusters as scikit-learn's, in O(n) memory.
#
# A row is a core point when at least *min_points* rows, itself included, lie within *eps* of it (Euclidean, the border
# included). Core points within *eps* of one another share a cluster; any other row within *eps* of a core point joins the
# first such cluster; the rest is noise. Lists of neighbours would take gigabytes here (each record of Adult has thousands
# within 0.6), so distances are computed where they are needed: a count stops at *min_points*, and two core points that
# are known to share a cluster are not compared. Cost O(n^2 d) at worst.


def clusters(values: Floats, eps: float, min_points: int) -> Integers:
    """The cluster of every row, numbered by their first core point; -1 for noise.

    >>> clusters(np.array([[0.0], [0.1], [0.9]]), eps=0.2, min_points=2)
    array([ 0,  0, -1])
    """
    # Columns that differ most come first, so that most pairs are told apart by the first one or two.
    values = np.ascontiguousarray(values[:, np.argsort(-values.var(axis=0), kind="stable")], dtype=np.float64)
    core = _core_points(values, eps * eps, min_points)
    root = _connected(values, eps * eps, core)
    order = np.flatnonzero(core)
    labels = np.full(len(values), -1, dtype=np.int64)
    _, first, inverse = np.unique(root[order], return_index=True, return_inverse=True)
    labels[order] = np.argsort(np.argsort(first))[inverse.ravel()]
    _join_borders(values, eps * eps, core, labels)
    return labels


@njit(cache=True)
def _near(values, i, j, limit):  # type: ignore[no-untyped-def]
    """Whether two rows lie within the root of *limit*; gives up as soon as they cannot."""
    total = 0.0
    for k in range(values.shape[1]):
        gap = values[i, k] - values[j, k]
        total += gap * gap
        if total > limit:
            return False
    return True


@njit(cache=True)
def _core_points(values, limit, least):  # type: ignore[no-untyped-def]
    """Which rows have at least *least* rows near, themselves included."""
    rows = values.shape[0]
    core = np.zeros(rows, dtype=np.bool_)
    for i in range(rows):
        count = 1
        # Neighbours in a file are often alike: look around the row first, then further and further away.
        for step in range(1, rows):
            if count >= least:
                break
            if i + step < rows and _near(values, i, i + step, limit):
                count += 1
            if i - step >= 0 and _near(values, i, i - step, limit):
                count += 1
        core[i] = count >= least
    return core


@njit(cache=True)
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        # Each look halves the way for the next one, so that long chains never build up.
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def _connected(values, limit, core):  # type: ignore[no-untyped-def]
    """For each core point, the first core point of its cluster."""
    rows = values.shape[0]
    parent = np.arange(rows)
    for i in range(rows):
        if not core[i]:
            continue
        mine = _root(parent, i)
        for j in range(i + 1, rows):
            if core[j]:
                other = _root(parent, j)
                # Two that share a cluster already need no distance: in a dense table that is nearly every pair.
                if other != mine and _near(values, i, j, limit):
                    # The lower number stays the root, so a cluster is known by its first core point.
                    low, high = min(mine, other), max(mine, other)
                    parent[high] = low
                    mine = low
    for i in range(rows):
        parent[i] = _root(parent, i)
    return parent


@njit(cache=True)
def _join_borders(values, limit, core, labels):  # type: ignore[no-untyped-def]
    """Rows that are no core points join the lowest cluster that has a core point near."""
    for i in range(values.shape[0]):
        if core[i]:
            continue
        for j in range(values.shape[0]):
            if core[j] and (labels[i] < 0 or labels[j] < labels[i]) and _near(values, i, j, limit):
                labels[i] = labels[j]


# Approaches 2 and 3: two records are correlated as far as they are likely to stem from one Gaussian (definition 11).
#
# M_ik is the probability that record i belongs to component k of a Gaussian mixture. Omega_ij = sum_k M_ik M_jk for
# i != j, Omega_ii = 1. Neither approach needs Omega:
#
# * approach 3, delta = Omega: CS = M (M^T s) + (1 - |M_i|^2) s_i, exactly, in O(n K);
# * approach 2, delta = Omega x rho: CS_i = sum_k M_ik (|P| G)_(a(i), k) + (1 - |M_i|^2) s_i, where a(i) is the rank vector
# of row i, P the rho of distinct rank vectors and G_bk = sum of M_jk s_j over the rows with vector b. The baseline's
# tiles serve all K components in one pass.


@dataclass(frozen=True, repr=False)
class Memberships:
    """Approach 3's correlation: *probability* (n x K) is M, *apart* (n) is 1 - |M_i|^2, the diagonal's correction.

    >>> Memberships.of(np.array([[1.0, 0.0], [0.5, 0.5]])).apart
    array([0. , 0.5])
    """

    probability: Floats
    apart: Floats

    @classmethod
    def of(cls, probability: Floats) -> Memberships:
        """M with the diagonal's correction worked out once. O(n K)."""
        probability = np.ascontiguousarray(probability)
        return cls(probability, 1.0 - np.einsum("ik,ik->i", probability, probability))

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS = M (M^T s) + (1 - |M_i|^2) s_i."""
        if influence.shape[1] == 1:
            one = np.ascontiguousarray(influence[:, 0])
            return np.asarray(_one_query(self.probability, self.apart, one, inside[:, 0]))[:, None]
        shared = self.probability.T @ influence
        return np.asarray(self.probability @ shared + self.apart[:, None] * influence)


@dataclass(frozen=True, repr=False)
class RankedMemberships:
    """Approach 2's correlation: probabilities of a common component times |rho|.

    >>> one = Memberships.of(np.ones((2, 1)))
    >>> both = RankedMemberships(one, ranks_within(np.array([[1.0, 2.0], [2.0, 1.0]])))
    >>> both.of_records(np.ones((2, 1)), np.ones((2, 1), bool)).ravel()
    array([2., 2.])
    """

    memberships: Memberships
    ranks: Ranks

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS_i = sum_j Omega_ij |rho_ij| s_j with a diagonal of 1; one pass of tiles per query, over K columns."""
        chance, ranks = self.memberships.probability, self.ranks
        out = np.zeros_like(influence)
        alone = ranks.norms[ranks.of_row] == 0.0
        for q in range(influence.shape[1]):
            s = influence[:, q]
            rows = np.flatnonzero(s)
            weights = summed(ranks.of_row[rows], chance[rows] * s[rows, None], ranks.norms.size)
            wanted = np.bincount(ranks.of_row, inside[:, q], minlength=ranks.norms.size) > 0
            spread = spread_over(ranks, weights, wanted)
            among = np.flatnonzero(inside[:, q])
            total = np.einsum("ik,ik->i", chance[among], spread[ranks.of_row[among]])
            # A constant record's rho is 0 even with itself, so its whole diagonal is still to be added.
            own = np.where(alone[among], 1.0, self.memberships.apart[among])
            out[among, q] = total + own * s[among]
        return out


def fit(values: Floats, components: int, rng: np.random.Generator) -> Any:
    """A Gaussian mixture of scikit-learn: full covariances, one start by k-means, variances regularised by 1e-6.

    >>> fit(np.array([[0.0], [0.1], [0.9], [1.0]]), 2, np.random.default_rng(0)).n_components
    2
    """
    if components > values.shape[0]:
        raise ParameterError(
            say(
                "{components} Gaussians cannot be fitted to {rows} rows.",
                components=components,
                rows=values.shape[0],
            ),
            "A component needs a row of its own.",
            "Choose fewer components, or leave them out: BIC then chooses.",
        )
    scikit_learn(say("A Gaussian mixture"))
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(components, reg_covar=REGULARIZATION, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # The source, too, takes the mixture as it stands after scikit-learn's most rounds.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(values)


def memberships(values: Floats, components: int, rng: np.random.Generator) -> Memberships:
    """M of a mixture of this many components fitted to *values*.

    >>> memberships(np.array([[0.0], [0.1], [0.9], [1.0]]), 2, np.random.default_rng(0)).probability.shape
    (4, 2)
    """
    return Memberships.of(np.asarray(fit(values, components, rng).predict_proba(values), dtype=np.float64))


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _one_query(chance, apart, influence, inside):  # type: ignore[no-untyped-def]
    """Approach 3 for one query: rows that matter are read twice, the others never."""
    components = chance.shape[1]
    shared = np.zeros(components)
    for i in range(influence.size):
        weight = influence[i]
        # Outside the answer s is 0: a selective query reads few of the n x K probabilities.
        if weight != 0.0:
            for k in range(components):
                shared[k] += weight * chance[i, k]
    out = np.zeros(influence.size)
    for i in range(influence.size):
        if inside[i]:
            total = 0.0
            for k in range(components):
                total += chance[i, k] * shared[k]
            out[i] = total + apart[i] * influence[i]
    return out


Threshold = Annotated[float, Setting("rho at or below it counts as 0", ge=0, lt=1, example="0")]
Coefficient = Annotated[
    Literal["spearman", "pearson"], Setting("which coefficient rho is, over ranks or over values")
]
Components = Annotated[
    int | None,
    Setting("Gaussians; none: BIC chooses", ge=1, why="Every record stems from one of them.", example="60"),
]


def _within(values: Floats, coefficient: str) -> Ranks:
    return ranks_within(values) if coefficient == "spearman" else centred_within(values)


@settings
class Baseline:
    """Every pair of records, by Spearman's rho (Zhu et al. 2015, as the source runs it), or by Pearson's as they had it.

    >>> records = Records(np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]), ("a", "b", "c"))
    >>> Baseline().fit(records, np.random.default_rng(0)).of_records(np.ones((2, 1)), np.ones((2, 1), bool)).ravel()
    array([2., 2.])
    """

    name: ClassVar[str] = "baseline"
    threshold: Threshold = 0.0
    coefficient: Coefficient = "spearman"

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Ranks, or centred values, within every record."""
        return Spearman(_within(records.values, self.coefficient), self.threshold)


@settings
class Dbscan:
    """Approach 1: pairs within a cluster of DBSCAN, by Spearman's rho (algorithm 3).

    >>> Dbscan(eps=0.4).min_points
    2
    """

    name: ClassVar[str] = "dbscan"
    eps: Annotated[float, Setting("how near neighbours are", gt=0, example="0.4")] = 0.4
    min_points: Annotated[int, Setting("neighbours that make a core point, itself included", ge=1)] = 2
    threshold: Threshold = 0.0
    coefficient: Coefficient = "spearman"

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Clusters, and ranks or centred values within every record."""
        labels = clusters(records.values, self.eps, self.min_points)
        return Clustered.of(_within(records.values, self.coefficient), labels, self.threshold)


@settings
class Gmm:
    """Approach 2: the chance of a common Gaussian times Spearman's rho (algorithm 4). No components: BIC chooses.

    >>> Gmm(components=60)
    Gmm(components=60, coefficient='spearman')
    """

    name: ClassVar[str] = "gmm"
    components: Components = None
    coefficient: Coefficient = "spearman"

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """A mixture, and ranks within every record."""
        size = self.components or choose_components(records.values).components
        within = _within(records.values, self.coefficient)
        return RankedMemberships(memberships(records.values, size, rng), within)


@settings
class GmmRfe:
    """Approach 3: the chance of a common Gaussian over the columns a random forest kept (algorithm 5).

    >>> GmmRfe(12, keep=8)
    GmmRfe(components=12, keep=8)
    """

    name: ClassVar[str] = "gmm-rfe"
    components: Components = None
    keep: Annotated[int, Setting("columns that are kept", ge=1)] = 8

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Columns chosen, then a mixture over them."""
        columns = chosen_columns(records, self.keep, rng)
        values = np.ascontiguousarray(records.values[:, columns])
        size = self.components or choose_components(values).components
        return memberships(values, size, rng)


Approach = Baseline | Dbscan | Gmm | GmmRfe
APPROACHES: tuple[type[Approach], ...] = (Baseline, Dbscan, Gmm, GmmRfe)

# The source's settings: section 4.3.1 (eps), tables 10 (components), 11 (columns kept) and 12 (components after RFE).
PRESETS: dict[str, tuple[Baseline, Dbscan, Gmm, GmmRfe]] = {
    "adult": (Baseline(), Dbscan(eps=0.4), Gmm(60), GmmRfe(12, 8)),
    "ccc": (Baseline(), Dbscan(eps=0.5), Gmm(32), GmmRfe(9, 10)),
    "hapt": (Baseline(), Dbscan(eps=5.0), Gmm(79), GmmRfe(76, 60)),
}
