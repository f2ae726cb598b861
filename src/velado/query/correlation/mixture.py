"""Approaches 2 and 3: two records are correlated as far as they are likely to stem from one Gaussian (definition 11).

M_ik is the probability that record i belongs to component k of a Gaussian mixture. Omega_ij = sum_k M_ik M_jk for
i != j, Omega_ii = 1. Neither approach needs Omega:

* approach 3, delta = Omega: CS = M (M^T s) + (1 - |M_i|^2) s_i, exactly, in O(n K);
* approach 2, delta = Omega x rho: CS_i = sum_k M_ik (|P| G)_(a(i), k) + (1 - |M_i|^2) s_i, where a(i) is the rank vector
  of row i, P the rho of distinct rank vectors and G_bk = sum of M_jk s_j over the rows with vector b. The baseline's
  tiles serve all K components in one pass.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from velado.query.correlation.em import REGULARIZATION
from velado.query.correlation.extra import scikit_learn
from velado.query.correlation.influence import Mask
from velado.query.correlation.ranks import Ranks
from velado.query.correlation.records import Floats
from velado.query.correlation.spearman import spread_over, summed


@dataclass(frozen=True, repr=False)
class Memberships:
    """Approach 3's correlation: *probability* (n x K) is M, *apart* (n) is 1 - |M_i|^2, the diagonal's correction."""

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
    """Approach 2's correlation: probabilities of a common component times |rho|."""

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
    """A Gaussian mixture of scikit-learn: full covariances, one start by k-means, variances regularised by 1e-6."""
    scikit_learn("A Gaussian mixture")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(components, reg_covar=REGULARIZATION, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # The source, too, takes the mixture as it stands after scikit-learn's most rounds.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(values)


def memberships(values: Floats, components: int, rng: np.random.Generator) -> Memberships:
    """M of a mixture of this many components fitted to *values*."""
    return Memberships.of(np.asarray(fit(values, components, rng).predict_proba(values), dtype=np.float64))


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _one_query(chance, apart, influence, inside):  # type: ignore[no-untyped-def]
    """Approach 3 for one query: rows that matter are read twice, the others never."""
    components = chance.shape[1]
    shared = np.zeros(components)
    for i in range(influence.size):
        weight = influence[i]
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
