"""The four approaches fitted to records: clusters, mixtures, the choice of columns and of components."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import DBSCAN
from sklearn.mixture import GaussianMixture

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import MissingExtra, ParameterError
from velado.papers.correlated import rank_correlation as extra
from velado.papers.correlated.approaches import (
    APPROACHES,
    PRESETS,
    Baseline,
    Dbscan,
    Gmm,
    GmmRfe,
    clusters,
    memberships,
)
from velado.papers.correlated.correlated_records import Records, records_of, scaled
from velado.papers.correlated.mixture_em import AtTheEdge, Monomials, choose_components, split
from velado.papers.correlated.rank_correlation import (
    AGGREGATIONS,
    chosen_columns,
    influence,
    ranks_within,
    sensitivity,
)
from velado.randomness import seeded
from velado.settings import named

from . import explicit


def three_clouds(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.1, 0.1, 0.9], [0.9, 0.2, 0.1], [0.5, 0.9, 0.5]])
    return centres[rng.integers(3, size=rows)] + rng.normal(scale=0.03, size=(rows, 3))


def test_categories_are_codes_in_the_order_of_their_names_and_columns_lie_between_0_and_1() -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "age": {"role": "other", "kind": "numeric"},
                "sex": {"role": "other", "kind": "categorical"},
                "same": {"role": "other", "kind": "numeric"},
                "ill": {"role": "sensitive", "kind": "categorical"},
            }
        }
    )
    frame = pl.DataFrame(
        {"age": ["9", "10", "11"], "sex": ["m", "f", "x"], "same": ["2"] * 3, "ill": ["y", "n", "y"]}
    )
    found = records_of(Table.of(frame, schema), target="ill")
    assert found.columns == ("age", "sex", "same")
    assert found.values.tolist() == [[0, 0.5, 0], [0.5, 0, 0], [1, 1, 0]]
    assert found.target is not None and found.target.tolist() == [1, 0, 1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("points", [1, 2, 5, 12])
def test_clusters_are_scikit_learns(seed, points) -> None:
    values = np.round(three_clouds(200, seed), 2)  # rounded, so that equal rows and equal distances occur
    for eps in (0.011, 0.021, 0.035, 0.2):
        theirs = DBSCAN(eps=eps, min_samples=points).fit(values).labels_
        assert clusters(values, eps, points).tolist() == theirs.tolist()


def test_memberships_are_scikit_learns_and_repeat_with_the_seed() -> None:
    values = three_clouds()
    one, again = (memberships(values, 3, seeded(1)).probability for _ in range(2))
    assert np.array_equal(one, again)
    assert np.allclose(one.sum(axis=1), 1)
    assert sorted(one.argmax(axis=1).tolist().count(k) > 100 for k in range(3)) == [True] * 3


def test_bic_finds_three_clouds_and_agrees_with_scikit_learn() -> None:
    values = three_clouds()
    found = choose_components(values, most=12)
    assert found.components == 3
    assert not found.at_edge
    model = GaussianMixture(3, reg_covar=1e-6, random_state=0).fit(values)
    assert found.scores[3] == pytest.approx(model.bic(values), rel=1e-3)
    one = GaussianMixture(1, reg_covar=1e-6).fit(values)
    assert found.scores[1] == pytest.approx(one.bic(values), rel=1e-9)


def test_a_minimum_at_the_edge_is_told() -> None:
    with pytest.warns(AtTheEdge, match="edge"):
        found = choose_components(three_clouds(), most=2)
    assert found.at_edge and found.components == 2


def test_splitting_a_gaussian_keeps_its_mean_and_covariance() -> None:
    whole = Monomials.of(three_clouds()).whole()
    halves = split(whole, 4)
    mean = halves.weights @ halves.means
    spread = sum(
        w * (c + np.outer(m - mean, m - mean))
        for w, m, c in zip(halves.weights, halves.means, halves.covariances, strict=True)
    )
    assert halves.weights.sum() == pytest.approx(1)
    assert np.allclose(mean, whole.means[0], atol=1e-12)
    assert np.allclose(spread, whole.covariances[0], atol=1e-12)


def test_elimination_keeps_the_columns_that_tell_the_target() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((400, 5))
    target = (values[:, 1] + values[:, 3] > 1).astype(int)
    records = Records(values, tuple("abcde"), target, (0, 1, 2, 3, 4))
    assert chosen_columns(records, 2, seeded(0)) == (1, 3)


def test_elimination_needs_a_target_and_enough_columns() -> None:
    records = Records(np.eye(4), tuple("abcd"))
    with pytest.raises(ParameterError, match="target"):
        chosen_columns(records, 2, seeded(0))
    with pytest.raises(ParameterError, match="kept"):
        chosen_columns(Records(np.eye(4), tuple("abcd"), np.arange(4), (0, 1, 2)), 4, seeded(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Baseline(1.0),
        lambda: Baseline(-0.1),
        lambda: Baseline(float("nan")),
        lambda: Dbscan(0.0),
        lambda: Dbscan(0.4, 0),
        lambda: Gmm(0),
        lambda: GmmRfe(-1),
        lambda: named(APPROACHES, "pearson"),
    ],
)
def test_settings_outside_their_limits_are_refused(make) -> None:
    with pytest.raises(ParameterError):
        make()


def test_the_sources_settings_are_on_file() -> None:
    assert [approach.name for approach in APPROACHES] == ["baseline", "dbscan", "gmm", "gmm-rfe"]
    assert named(APPROACHES, "gmm") is Gmm
    assert [PRESETS[name][1].eps for name in ("adult", "ccc", "hapt")] == [0.4, 0.5, 5.0]  # section 4.3.1
    assert [PRESETS[name][2].components for name in ("adult", "ccc", "hapt")] == [60, 32, 79]  # table 10
    assert [PRESETS[name][3].keep for name in ("adult", "ccc", "hapt")] == [8, 10, 60]  # table 11
    assert [PRESETS[name][3].components for name in ("adult", "ccc", "hapt")] == [12, 9, 76]  # table 12


@pytest.mark.parametrize("approach", [Gmm(2), GmmRfe(2, 1)])
def test_without_scikit_learn_the_extra_is_named(approach, monkeypatch) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    records = Records(three_clouds(20), tuple("abc"), np.arange(20) % 2, (0, 1, 2))
    with pytest.raises(MissingExtra, match=r"velado\[ml\]"):
        approach.fit(records, seeded(0))


@pytest.mark.slow
@pytest.mark.parametrize("at", range(4))
def test_on_2000_rows_of_adult_every_approach_equals_its_matrix(at, data_folder) -> None:
    frame = pl.read_csv(data_folder / "adult" / "adult_clean.csv", n_rows=2000)
    columns = [c for c in frame.columns if c != "income"]
    values = np.stack(
        [
            scaled(
                (frame[c].rank("dense") if frame[c].dtype == pl.String else frame[c]).to_numpy().astype(float)
            )
            for c in columns
        ],
        axis=1,
    )
    records = Records(
        values, tuple(columns), frame["income"].rank("dense").to_numpy().astype(int), tuple(range(14))
    )
    approach = (Baseline(), Dbscan(), Gmm(12), GmmRfe(12, 8))[at]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        correlation = approach.fit(records, seeded(0))
    rho = explicit.rho(values)
    if isinstance(approach, Baseline):
        delta = rho
    elif isinstance(approach, Dbscan):
        delta = rho * explicit.same_cluster(clusters(values, approach.eps, 2))
    elif isinstance(approach, Gmm):
        delta = rho * explicit.omega(correlation.memberships.probability)
    else:
        delta = explicit.omega(correlation.probability)
    inside = frame["age"].to_numpy() > 35
    hours = (
        frame["hours_per_week"].to_numpy() + np.arange(2000) / 1e4
    )  # no ties, so that MIN and MAX have a gap
    assert ranks_within(values).of_row.size == 2000
    for kind in AGGREGATIONS:
        effect = influence(kind, inside, hours)
        fast = sensitivity(correlation, effect.of_row, effect.inside)[0]
        assert fast > 0
        assert fast == pytest.approx(explicit.sensitivity(delta, effect.of_row, inside), rel=1e-9)


@pytest.mark.parametrize("threshold", [0.0, 0.6])
def test_pearson_is_the_coefficient_of_the_records_values(threshold) -> None:
    values = np.vstack([three_clouds(40, 2), np.full((1, 3), 0.3), three_clouds(3, 2)[:1]])
    rho = np.zeros((42, 42))
    varied = [at for at in range(42) if values[at].std() > 0]
    rho[np.ix_(varied, varied)] = np.abs(np.corrcoef(values[varied]))
    rho[rho <= threshold] = 0.0
    np.fill_diagonal(rho, 1.0)
    weights = np.abs(seeded(3).normal(size=(42, 2)))
    every = np.ones((42, 2), dtype=bool)
    records = Records(values, ("a", "b", "c"))
    found = Baseline(threshold, "pearson").fit(records, seeded(0)).of_records(weights, every)
    assert np.allclose(found, rho @ weights)
    whole = Dbscan(eps=9.0, threshold=threshold, coefficient="pearson").fit(records, seeded(0))
    assert np.allclose(whole.of_records(weights, every), rho @ weights)
    ranked = Baseline(threshold).fit(records, seeded(0)).of_records(weights, every)
    assert not np.allclose(ranked, found)
