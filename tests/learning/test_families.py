"""What every registered family of regression must keep, whatever else it does: a new one is held to all of it by its name alone."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from velado.apps.cli.commands import _regress
from velado.errors import InputError, ParameterError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.families import FAMILIES
from velado.learning.regression.families._family import Family
from velado.learning.regression.fit import Fit, mean_of
from velado.learning.regression.job import DEFAULT_PROTOCOL, Job, Party
from velado.learning.regression.private_newton import STEPS, round_plan
from velado.learning.regression.simulate import simulate
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.randomness import seeded

ALL = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
CLIENTS = 4


def targets(family: Family, rows: int) -> tuple[Bounded, np.ndarray]:
    """Bounds and values that the family takes: of a yes or no, of amounts above 0, or of counts, the first of them."""
    draw = seeded(3, "families", family.name)
    for low, high, values in (
        (Fraction(0), Fraction(1), (draw.random(rows) < 0.4).astype(float)),
        (Fraction(1, 2), Fraction(20), draw.uniform(0.6, 19, rows).round(3)),
        (Fraction(0), Fraction(12), draw.integers(0, 12, rows).astype(float)),
    ):
        target = Bounded("y", (low, high))
        try:
            family.refuse_target(target)
            family.refuse_values(values, "y")
        except (InputError, ParameterError):
            continue
        return target, values
    raise AssertionError("no target of these is one of the family's")


def a_job(family: Family, target: Bounded, **more: Any) -> Job:
    parties = (Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(CLIENTS)))
    features = (Bounded("a", (Fraction(-2), Fraction(3))), Bounded("b", (Fraction(0), Fraction(2))))
    return Job(
        "f", SECURE_SUM, features, target, parties, **{"family": family.name, "most_rows": 5000, **more}
    )


def pooled(family: Family, rows: int = 400) -> tuple[Bounded, dict[str, np.ndarray]]:
    target, values = targets(family, rows)
    draw = seeded(4, "families", family.name)
    # Both columns have something to do with the target, so that no coefficient is 0 by design.
    lift = (values - values.mean()) / values.std()
    a = np.clip(0.5 + 0.3 * lift + draw.normal(0, 0.5, rows), -2, 3).round(3)
    return target, {"a": a, "b": draw.uniform(0, 2, rows).round(3), "y": values}


def dealt(table: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    order = np.argsort(table["y"], kind="stable")  # clients that differ as much as they can
    parts = np.array_split(order, CLIENTS)
    return {f"c{k}": {key: cells[part] for key, cells in table.items()} for k, part in enumerate(parts)}


@ALL
def test_slope_curvature_mean_and_deviance_belong_together(family: Family) -> None:
    """d deviance / d eta = -2 pull, the pull of the mean itself is 0, and the curvature is what the pull loses there."""
    _, values = targets(family, 50)
    eta, step = np.linspace(-1.5, 1.5, 50), 1e-5
    above, below = (family.at(values, eta + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(
        (above.deviance - below.deviance) / (2 * step), -2 * family.at(values, eta).pull, rtol=1e-5, atol=1e-6
    )
    mean = family.mean(eta)
    assert np.abs(family.at(mean, eta).pull).max() < 1e-9
    above, below = (family.at(mean, eta + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(
        (below.pull - above.pull) / (2 * step), family.at(mean, eta).spread, rtol=1e-5, atol=1e-6
    )
    assert (mean_of(family.name, eta) == mean).all()


@ALL
def test_the_fit_is_the_least_deviance_of_the_pooled_rows(family: Family) -> None:
    target, table = pooled(family)
    fit, transcript = simulate(a_job(family, target), dealt(table))
    x = np.column_stack([np.ones(len(table["y"])), table["a"], table["b"]])

    def height(beta: np.ndarray) -> tuple[float, np.ndarray]:
        found = family.at(table["y"], x @ beta)
        return float(found.deviance.sum()), -2 * x.T @ found.pull

    best = minimize(height, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit.coefficients, best, rtol=1e-4, atol=1e-5)
    assert fit.family == family.name and Fit.from_dict(fit.to_dict()) == fit
    assert sum(message.kind == "masked" for message in transcript.messages) // CLIENTS == (
        2 if family.sums else 1 + fit.facts["rounds"]
    )
    means = fit.predict({"a": table["a"], "b": table["b"]})
    np.testing.assert_allclose(means, family.mean(x @ best), rtol=1e-3, atol=1e-4)
    # Weights of 1 go through the rounds: the same model, found otherwise where one round is enough.
    weighted = a_job(family, target, weight=Bounded("w", (Fraction(0), Fraction(1))))
    heavy = {name: {**rows, "w": np.ones(len(rows["y"]))} for name, rows in dealt(table).items()}
    np.testing.assert_allclose(simulate(weighted, heavy)[0].coefficients, best, rtol=1e-4, atol=1e-5)


@ALL
def test_noise_is_accounted_for_or_refused(family: Family) -> None:
    target, _ = targets(family, 50)
    if family.noisy is None and not family.sums:
        with pytest.raises(ParameterError, match="cannot be fitted with noise"):
            a_job(family, target, epsilon=Fraction(1))
        return
    job = a_job(family, target, epsilon=Fraction(1))
    if family.sums:
        return  # in one round, whose account is that of `test_noise`
    top = float(target.high)
    plan, eta = round_plan(job, STEPS), np.linspace(-40, 40, 4001)
    mean, spread = family.noisy.mean_and_spread(eta, top)
    assert (mean >= 0).all() and (mean <= 1).all() and (spread >= 0).all() and (spread <= 1).all()
    for value in (0.0, 1.0):
        gradient = (value - mean) ** 2 * float(plan.lengths[0]) / plan.first
        curvature = spread**2 * float(plan.lengths[1]) / plan.second
        assert (gradient + curvature).max() / (2 * plan.summands) <= plan.rho
    assert family.noisy.start(0.3, top) == pytest.approx(float(eta[np.argmin(np.abs(mean - 0.3))]), abs=0.02)


def test_a_name_that_is_no_family_is_refused_wherever_it_stands() -> None:
    target = Bounded("y", (Fraction(0), Fraction(1)))
    job = a_job(FAMILIES["linear"], target)
    with pytest.raises(ParameterError, match="linear, logistic, poisson"):
        replace(job, family="gamm")
    with pytest.raises(KeyError):
        mean_of("gamm", np.zeros(1))


def test_the_command_line_offers_what_is_registered() -> None:
    from typing import get_args, get_type_hints

    hints = get_type_hints(_regress.regress, include_extras=True)
    for flag, registry in (("family", FAMILIES), ("protocol", WITH_PAPER)):
        (told,) = [one for one in get_args(hints[flag]) if hasattr(one, "param_decls")]
        assert told.click_type.get_metavar().split("|") == list(registry)
    assert set(PROTOCOLS) <= set(WITH_PAPER) and DEFAULT_PROTOCOL in PROTOCOLS
