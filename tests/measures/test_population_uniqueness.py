"""Estimates of population uniqueness against ARX's known answers and simulated populations."""

import json

import numpy as np
import polars as pl
import pytest

from velado.errors import ParameterError
from velado.measures.risk.population_uniqueness import RULE, population_uniqueness


@pytest.fixture
def adult_sizes(data_folder) -> np.ndarray:
    frame = pl.read_csv(data_folder / "adult" / "adult_arx.csv", separator=";", infer_schema=False)
    return frame.group_by(frame.columns).len()["len"].to_numpy()


@pytest.mark.parametrize(
    ("fraction", "chosen", "share"),
    [
        (0.1, "pitman", 0.27684993883653597),
        (0.01, "pitman", 0.1446083531167384),
        (0.2, "zayatz", 0.3577099234829125),
        (1, "counted", 0.5142895033485844),
    ],
)
def test_adult_has_the_population_uniques_of_arx(adult_sizes, fraction, chosen, share) -> None:
    """TestRiskMetrics.java of ARX: nine quasi-identifiers, Dankar's decision rule, four decimals."""
    found = population_uniqueness(adult_sizes, fraction)
    assert found.chosen == chosen
    assert found.estimate.share == pytest.approx(share, abs=1e-6)
    assert found.not_converged == {}


def test_zayatz_on_adult_is_that_of_arx(adult_sizes) -> None:
    found = population_uniqueness(adult_sizes, 0.1).estimates["zayatz"]
    assert found.share == pytest.approx(0.3207402393466189, abs=1e-8)
    assert found.of_sample_uniques == pytest.approx(0.3207402393466189 / 0.5142895033485844)


def pitman_population(people: int, theta: float, alpha: float, random: np.random.Generator) -> np.ndarray:
    """Classes that people join one by one: a new one with chance (theta + alpha classes) / (theta + people so far)."""
    sizes, member = [], []
    for so_far in range(people):
        chance = (theta + alpha * len(sizes)) / (theta + so_far)
        if random.random() < chance:
            member.append(len(sizes))
            sizes.append(1)
            continue
        while True:  # an old class with chance proportional to its size - alpha
            at = member[random.integers(so_far)]
            if random.random() * sizes[at] <= sizes[at] - alpha:
                break
        member.append(at)
        sizes[at] += 1
    return np.array(member)


def test_pitman_finds_the_uniques_of_a_population_that_follows_its_formula() -> None:
    random = np.random.default_rng(3)
    member = pitman_population(60_000, 200.0, 0.6, random)
    truth = int((np.bincount(member) == 1).sum())
    sample = member[random.random(member.size) < 0.05]
    found = population_uniqueness(np.bincount(sample), 0.05)
    assert found.chosen == "pitman"
    assert found.estimate.uniques == pytest.approx(truth, rel=0.1)
    rows = np.bincount(sample, minlength=int(member.max()) + 1)
    both = int(((rows == 1) & (np.bincount(member) == 1)).sum())
    assert found.estimate.of_sample_uniques == pytest.approx(both / int((rows == 1).sum()), abs=0.05)


@pytest.mark.parametrize(("shape", "chance"), [(0.3, 0.05), (1.0, 0.2)])
def test_the_slide_negative_binomial_finds_the_uniques_of_its_own_population(shape, chance) -> None:
    random = np.random.default_rng(1)
    people = 1 + random.negative_binomial(shape, chance, 100_000)
    truth = int((people == 1).sum())
    found = population_uniqueness(random.binomial(people, 0.2), 0.2)
    assert found.estimates["slide negative binomial"].uniques == pytest.approx(truth, rel=0.06)
    assert found.chosen == "slide negative binomial"
    assert found.estimates["zayatz"].uniques > found.estimate.uniques


def test_zayatz_is_right_where_sample_and_population_are_spread_alike() -> None:
    # Nearly the whole population is in the sample, so its spread is the population's.
    random = np.random.default_rng(8)
    people = random.integers(1, 6, 20_000)
    found = population_uniqueness(random.binomial(people, 0.95), 0.95).estimates["zayatz"]
    assert found.uniques == pytest.approx(int((people == 1).sum()), rel=0.05)


def test_a_model_that_does_not_converge_says_so_and_another_is_taken() -> None:
    found = population_uniqueness(np.ones(50, dtype=int), 0.1)
    assert "Every row is unique" in found.not_converged["pitman"]
    assert found.chosen == "zayatz" and found.estimate.of_sample_uniques == pytest.approx(1.0)
    flat = population_uniqueness(np.array([1] * 10 + [2] * 5 + [3] * 2), 0.1)
    assert set(flat.not_converged) == {"pitman", "slide negative binomial"} and flat.chosen == "zayatz"


def test_without_a_unique_row_nothing_is_estimated() -> None:
    found = population_uniqueness(np.array([5, 7, 2]), 0.01)
    assert found.chosen == "counted" and found.estimate.uniques == 0 and found.estimate.share == 0


def test_the_document_states_the_rule_and_is_plain_json() -> None:
    document = population_uniqueness(np.array([1, 1, 2, 9]), 0.3).to_dict()
    assert document["rule"] == RULE and "Dankar" in RULE
    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5, float("nan")])
def test_a_fraction_outside_its_limits_is_refused(fraction) -> None:
    with pytest.raises(ParameterError, match="sampling_fraction= cannot be"):
        population_uniqueness(np.array([1, 2]), fraction)
