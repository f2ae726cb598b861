"""The source's matrices written out, n x n, for tables small enough: what the fast ways are compared with."""

import numpy as np
from scipy.stats import rankdata


def rho(values):
    """Spearman's rho of every pair of records, ranks within a record; a constant record has 0, the diagonal is 1."""
    ranks = rankdata(values, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.nan_to_num((ranks @ ranks.T) / np.outer(norms, norms))
    np.fill_diagonal(out, 1.0)
    return out


def omega(probability):
    """How likely two records share a component; the diagonal is 1."""
    out = probability @ probability.T
    np.fill_diagonal(out, 1.0)
    return out


def sensitivity(delta, s, inside):
    """max over the rows of the answer of sum_j |delta_ij| s_j."""
    return float((np.abs(delta) @ s)[inside].max())


def same_cluster(labels):
    """1 where two records share a cluster; a noise point (-1) only with itself."""
    out = (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None]
    np.fill_diagonal(out, True)
    return out


def influence(kind, inside, values):
    """|f(D) - f(D without j)| by removing row after row."""
    functions = {"count": len, "sum": np.sum, "avg": np.mean, "min": np.min, "max": np.max}
    rows = np.flatnonzero(inside)
    out = np.zeros(inside.size)
    for j in rows:
        rest = values[rows[rows != j]]
        out[j] = abs(functions[kind](values[rows]) - functions[kind](rest))
    return out
