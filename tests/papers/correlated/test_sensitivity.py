"""Correlated sensitivities, against the n x n matrices of the source."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from velado.papers.correlated import approaches as dbscan
from velado.papers.correlated import rank_correlation as spearman
from velado.papers.correlated.approaches import Clustered, Memberships, RankedMemberships
from velado.papers.correlated.rank_correlation import (
    AGGREGATIONS,
    Spearman,
    influence,
    ranks_within,
    sensitivity,
)

from ...covering import pairs_in
from . import explicit


def table(rows: int, width: int = 7, seed: int = 0):
    """Coarse values, so that ties, equal records and (in row 0 and 1) constant records occur."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.random((rows, width)) * 4) / 4
    values[:2] = 0.25
    return values, rng


def approaches(values, rng):
    """Every correlation over the same records, with the explicit matrix it stands for."""
    ranks = ranks_within(values)
    rho = explicit.rho(values)
    labels = rng.integers(-1, 3, size=len(values))
    chance = rng.dirichlet(np.full(5, 0.3), size=len(values))
    return {
        "baseline": (Spearman(ranks), rho),
        "baseline above 0.5": (Spearman(ranks, 0.5), np.where(np.abs(rho) > 0.5, rho, 0.0)),
        "dbscan": (Clustered.of(ranks, labels), rho * explicit.same_cluster(labels)),
        "gmm": (RankedMemberships(Memberships.of(chance), ranks), rho * explicit.omega(chance)),
        "gmm-rfe": (Memberships.of(chance), explicit.omega(chance)),
    }


NAMES = ("baseline", "baseline above 0.5", "dbscan", "gmm", "gmm-rfe")


def test_ranks_give_scipys_rho() -> None:
    values, _ = table(12)
    unit = ranks_within(values).unit()
    for i, j in itertools.combinations(range(2, 12), 2):
        assert unit[i] @ unit[j] == pytest.approx(spearmanr(values[i], values[j]).statistic, abs=1e-12)


@pytest.mark.parametrize(("name", "kind"), pairs_in(5, NAMES, AGGREGATIONS, lambda *two: "-".join(two)))
def test_one_query_equals_the_explicit_matrix(name, kind, monkeypatch) -> None:
    monkeypatch.setattr(spearman, "TILE", 32)  # several tiles, the last one narrower
    values, rng = table(300)
    correlation, delta = approaches(values, rng)[name]
    x = rng.normal(size=300) * 100
    for share in (1.0, 0.3):
        inside = rng.random(300) < share
        effect = influence(kind, inside, x)
        fast = sensitivity(correlation, effect.of_row, effect.inside)[0]
        assert fast == pytest.approx(explicit.sensitivity(delta, effect.of_row, inside), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_many_queries_in_one_pass_equal_one_after_the_other(name, monkeypatch) -> None:
    monkeypatch.setattr(spearman, "TILE", 50)
    monkeypatch.setattr(spearman, "TOGETHER", 3)
    monkeypatch.setattr(dbscan, "SMALL", 4)
    values, rng = table(200, seed=3)
    correlation, delta = approaches(values, rng)[name]
    inside = rng.random((200, 7)) < 0.4
    s = np.where(inside, rng.random((200, 7)), 0.0)
    together = sensitivity(correlation, s, inside)
    for q in range(7):
        assert together[q] == pytest.approx(sensitivity(correlation, s[:, q], inside[:, q])[0], rel=1e-12)
        assert together[q] == pytest.approx(explicit.sensitivity(delta, s[:, q], inside[:, q]), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_record_has_the_explicit_matrix_sensitivity(name) -> None:
    values, rng = table(120, seed=5)
    correlation, delta = approaches(values, rng)[name]
    inside = rng.random(120) < 0.7
    inside[:2] = True  # the constant records: rho 0 with everybody, one another too, and 1 with themselves
    s = np.where(inside, 1 + rng.random(120), 0.0)
    found = correlation.of_records(s[:, None], inside[:, None])[:, 0]
    assert np.allclose(found[inside], (np.abs(delta) @ s)[inside], rtol=1e-12, atol=0)


def test_a_family_of_ten_equal_records_counts_as_ten() -> None:
    family = np.tile([[0.1, 0.9, 0.4]], (10, 1))
    effect = influence("count", np.ones(10, dtype=bool))
    assert sensitivity(Spearman(ranks_within(family)), effect.of_row, effect.inside)[0] == pytest.approx(10)


def test_without_correlation_the_sensitivity_is_that_of_independent_records() -> None:
    alone = Memberships.of(np.eye(6))
    effect = influence("sum", np.ones(6, dtype=bool), np.array([3.0, 1, 2, 6, -8, 0]))
    assert sensitivity(alone, effect.of_row, effect.inside)[0] == 8


def test_a_noise_point_is_correlated_with_itself_only() -> None:
    values, _ = table(20)
    labels = np.full(20, -1)
    effect = influence("count", np.ones(20, dtype=bool))
    assert sensitivity(Clustered.of(ranks_within(values), labels), effect.of_row, effect.inside)[
        0
    ] == pytest.approx(1)


def test_wide_records_leave_single_precision() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((30, 400))
    ranks = ranks_within(values)
    assert ranks.vectors.dtype == np.float64
    effect = influence("count", np.ones(30, dtype=bool))
    found = sensitivity(Spearman(ranks), effect.of_row, effect.inside)[0]
    assert found == pytest.approx(
        explicit.sensitivity(explicit.rho(values), effect.of_row, effect.inside), rel=1e-12
    )
    assert ranks_within(values[:, :300]).vectors.dtype == np.float32
