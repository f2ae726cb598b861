"""Noise on the device: unbiased estimates, errors that are as large as stated, and no more told than charged."""

import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from velado.errors import ParameterError
from velado.query.local import LocalLaplace, RandomizedResponse

from ..covering import one_in

YES_NO = RandomizedResponse(("no", "yes"), Fraction(1))
FOUR = RandomizedResponse(("a", "b", "c", "d"), Fraction("1.5"))
AGE = LocalLaplace(Fraction(0), Fraction(120), Fraction(1), Fraction(2))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", one_in(2, [FOUR, YES_NO]), ids=["four", "binary"])
def test_shares_are_unbiased_and_their_errors_calibrated(mechanism) -> None:
    truth = [c for place, c in enumerate(mechanism.categories) for _ in range(20 * (place + 1))]
    rounds, shares = 100, Counter(truth)
    z = {c: [] for c in mechanism.categories}
    held = 0
    for _ in range(rounds):
        for category, estimate in mechanism.estimate(mechanism.perturb(truth)).items():
            exact = shares[category] / len(truth)
            z[category].append((estimate.value - exact) / estimate.standard_error)
            held += estimate.low <= exact <= estimate.high
    for category, values in z.items():
        # A mean of standard normal numbers stays within 5.3 / sqrt(rounds), their spread within 5.3 / sqrt(2 rounds).
        assert abs(np.mean(values)) < 5.3 / math.sqrt(rounds), category
        assert abs(np.std(values) - 1) < 5.3 / math.sqrt(2 * rounds), category
    # 76 of 100 at 95 % has a chance of 1e-10; the two shares of the binary case are one and the same trial.
    assert held / (rounds * len(shares)) > 0.77


def test_means_are_unbiased_and_their_errors_calibrated() -> None:
    values = np.random.default_rng(3).integers(18, 90, 200).astype(float)
    estimates = [AGE.estimate(AGE.perturb(values)) for _ in range(250)]
    z = np.array([(e.value - values.mean()) / e.standard_error for e in estimates])
    assert abs(z.mean()) < 5.3 / math.sqrt(z.size) and abs(z.std() - 1) < 5.3 / math.sqrt(2 * z.size)
    assert np.mean([e.low <= values.mean() <= e.high for e in estimates]) > 0.83


@pytest.mark.parametrize("mechanism", one_in(2, [YES_NO, FOUR]), ids=["binary", "four"])
def test_the_chances_of_a_report_differ_by_no_more_than_charged(mechanism) -> None:
    n = 5_000
    told = {c: Counter(mechanism.perturb([c] * n)) for c in mechanism.categories}
    k = len(mechanism.categories)
    lie = (1 - mechanism.chance) / (k - 1)
    for truth, counts in told.items():
        for report in mechanism.categories:
            chance = mechanism.chance if report == truth else lie
            # Six standard deviations; a mechanism of twice the epsilon lies more than twenty away.
            assert abs(counts[report] / n - chance) < 6 * math.sqrt(chance * (1 - chance) / n)
    assert math.log(mechanism.chance / lie) <= float(mechanism.charge) * (1 + 1e-12)
    assert mechanism.epsilon * Fraction(99, 100) < mechanism.charge <= mechanism.epsilon


def test_reports_of_the_two_ends_differ_by_no_more_than_charged() -> None:
    n, steps = 40_000, LocalLaplace("0", "4", "1", "1")
    low, high = (Counter(steps.perturb([end] * n)) for end in (0.0, 4.0))
    most = 0.0
    for report in range(-3, 8):
        a, b = low[float(report)], high[float(report)]
        error = 6 * math.sqrt(1 / a + 1 / b)
        assert abs(math.log(a / b)) <= float(steps.charge) + error
        most = max(most, abs(math.log(a / b)) + error)
    # The loss is used up at the ends: half the noise, or twice, would be seen.
    assert most > 0.95
    assert Fraction(99, 100) < steps.charge <= 1


def test_reports_are_whole_steps_of_the_grid_and_nothing_finer() -> None:
    tenth = LocalLaplace("0", "1", "0.1", "1")
    allowed = {float(Fraction(index, 10)) for index in range(-2_000, 2_001)}
    assert set(tenth.perturb([0.123456, 0.3, 0.99999] * 300)) <= allowed


@pytest.mark.parametrize("value", [math.nan, -0.001, 120.5, math.inf])
def test_a_number_outside_its_domain_is_refused_on_the_device(value) -> None:
    with pytest.raises(ParameterError, match="declared bounds") as caught:
        AGE.perturb([30.0, value])
    assert "120.5" not in str(caught.value)


@pytest.mark.parametrize("value", ["maybe", None, math.nan, ["no"]])
def test_a_category_outside_its_domain_is_refused_on_the_device(value) -> None:
    with pytest.raises(ParameterError, match="declared categories") as caught:
        YES_NO.perturb(["yes", value])
    assert "maybe" not in str(caught.value)


def test_settings_and_reports_that_make_no_sense_are_refused() -> None:
    for wrong in (
        lambda: RandomizedResponse(("a",), Fraction(1)),
        lambda: RandomizedResponse(("a", "a"), Fraction(1)),
        lambda: RandomizedResponse(("a", "b"), Fraction(0)),
        lambda: RandomizedResponse(("a", "b"), Fraction(31)),
        lambda: LocalLaplace("0", "1", "0.3", "1"),
        lambda: LocalLaplace("1", "0", "1", "1"),
        lambda: LocalLaplace("0", "1", "0", "1"),
        lambda: YES_NO.estimate([]),
        lambda: YES_NO.estimate(["maybe"]),
        lambda: AGE.estimate([]),
        lambda: AGE.estimate([math.nan]),
        lambda: AGE.estimate([1.0], confidence=1.0),
    ):
        with pytest.raises(ParameterError):
            wrong()


@pytest.mark.parametrize("mechanism", [YES_NO, FOUR, AGE], ids=["binary", "four", "number"])
def test_the_promise_is_machine_readable(mechanism) -> None:
    told = json.loads(json.dumps(mechanism.to_dict()))["guarantee"]
    assert (told["type"], told["model"]) == ("guaranteed", "local")
    assert Fraction(told["epsilon"]) == mechanism.charge
    hash(mechanism)


def test_an_interval_is_called_an_approximation_and_few_reports_are_flagged() -> None:
    few, many = (AGE.estimate(AGE.perturb([40.0] * n)).to_dict() for n in (29, 30))
    assert few["interval"] == many["interval"] == "normal approximation"
    assert few["few_reports"] and not many["few_reports"]
    share = YES_NO.estimate(YES_NO.perturb(["yes"] * 5))["yes"]
    assert share.few and share.to_dict()["reports"] == 5
