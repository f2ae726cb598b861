"""Logistic, Poisson and weighted regression over sums are those of the pooled rows, whatever each client holds of them."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from velado.errors import InputError, ParameterError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import Job, Party
from velado.learning.regression.newton import MOST_POINTS, point_in
from velado.learning.regression.simulate import simulate
from velado.randomness import seeded

CLIENTS = 4


def a_job(family: str = "logistic", top: int = 1, **more: Any) -> Job:
    parties = (Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(CLIENTS)))
    features = (Bounded("age", (Fraction(0), Fraction(120))), Bounded("dose", (Fraction(-1), Fraction(9))))
    target = Bounded("y", (Fraction(0), Fraction(top)))
    return Job("g", SECURE_SUM, features, target, parties, **{"family": family, "most_rows": 5000, **more})


def pooled(family: str, rows: int = 800) -> dict[str, np.ndarray]:
    draw = seeded(5, f"newton {family}")
    age, dose = draw.integers(20, 95, rows).astype(float), np.round(draw.uniform(0, 8, rows), 3)
    eta = -3 + 0.04 * age + 0.2 * dose
    if family == "logistic":
        y = (draw.uniform(size=rows) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        y = draw.poisson(np.exp(eta / 2)).astype(float)
    return {"age": age, "dose": dose, "y": y}


def skewed(table: dict[str, np.ndarray], by: str = "y") -> dict[str, dict[str, np.ndarray]]:
    """Sorted by the outcome and cut: one client has hardly any case, another hardly anything else."""
    order = np.argsort(table[by], kind="stable")
    return {
        f"c{k}": {name: values[part] for name, values in table.items()}
        for k, part in enumerate(np.array_split(order, CLIENTS))
    }


def irls(table: dict[str, np.ndarray], family: str, weights: Any = None, rounds: int = 60) -> Any:
    """The textbook on the pooled rows, in their own units: coefficients and standard errors."""
    x = np.column_stack([np.ones(len(table["y"])), table["age"], table["dose"]])
    y, w = table["y"], np.ones(len(x)) if weights is None else weights
    beta = np.zeros(3)
    if family == "poisson":
        beta[0] = np.log(y.mean())
    for _ in range(rounds):
        eta = x @ beta
        mean = 1 / (1 + np.exp(-eta)) if family == "logistic" else np.exp(eta)
        v = mean * (1 - mean) if family == "logistic" else mean
        curvature = (x * (w * v)[:, None]).T @ x
        beta = beta + np.linalg.solve(curvature, x.T @ (w * (y - mean)))
    return beta, np.sqrt(np.diag(np.linalg.inv(curvature)))


@pytest.mark.parametrize(("family", "top"), [("logistic", 1), ("poisson", 100)])
def test_the_fit_is_that_of_the_pooled_rows_whatever_the_skew(family: str, top: int) -> None:
    table = pooled(family)
    fit, transcript = simulate(a_job(family, top), skewed(table))
    beta, errors = irls(table, family)
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, errors, rtol=1e-5)
    assert 4 <= fit.facts["rounds"] <= 9
    assert fit.family == family
    assert Fit.from_dict(fit.to_dict()) == fit
    assert all(role.outcome.fit.coefficients == fit.coefficients for role in transcript.roles.values())


def test_logistic_regression_equals_scikit_learn_without_a_penalty() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    table = pooled("logistic")
    model = linear_model.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    x = np.column_stack([table["age"], table["dose"]])
    model.fit(x, table["y"])
    fit, _ = simulate(a_job(), skewed(table))
    np.testing.assert_allclose(fit.coefficients, [*model.intercept_, *model.coef_[0]], rtol=1e-6)
    chances = fit.predict({"age": table["age"], "dose": table["dose"]})
    np.testing.assert_allclose(chances, model.predict_proba(x)[:, 1], rtol=1e-6)


def test_weights_count_as_repeated_rows_do() -> None:
    table = pooled("logistic", 400)
    table["w"] = seeded(6, "weights").integers(1, 4, 400).astype(float)
    weight = Bounded("w", (Fraction(0), Fraction(5)))
    fit, _ = simulate(a_job(weight=weight), skewed(table))
    beta, _ = irls(table, "logistic", table["w"])
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-6)
    linear, _ = simulate(a_job("linear", 1, weight=weight), skewed(table))
    x = np.column_stack([np.ones(400), table["age"], table["dose"]])
    root = np.sqrt(table["w"])
    plain = np.linalg.lstsq(x * root[:, None], table["y"] * root, rcond=None)[0]
    np.testing.assert_allclose(linear.coefficients, plain, rtol=1e-6)


def test_a_penalty_is_in_the_columns_own_units() -> None:
    table = pooled("logistic")
    fit, _ = simulate(a_job(ridge=Fraction(3)), skewed(table))
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = linear_model.LogisticRegression(C=1 / 3, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model.fit(np.column_stack([table["age"], table["dose"]]), table["y"])
    np.testing.assert_allclose(fit.coefficients, [*model.intercept_, *model.coef_[0]], rtol=1e-5)
    assert fit.standard_errors is None


def test_separation_is_refused_in_words() -> None:
    table = pooled("logistic", 200)
    table["y"] = (table["age"] > 60).astype(float)
    with pytest.raises(ProtocolError, match="tell the cases from the others without error: 'age' above all"):
        simulate(a_job(), skewed(table, by="dose"))


def test_columns_that_repeat_one_another_are_named() -> None:
    table = pooled("logistic", 200)
    table["dose"] = table["age"] / 12
    with pytest.raises(ProtocolError, match="age, dose depend linearly"):
        simulate(a_job(), skewed(table, by="dose"))


def test_a_target_other_than_0_and_1_is_refused_by_its_owner() -> None:
    table = pooled("logistic", 200)
    table["y"][3] = 0.5
    with pytest.raises(InputError, match="values other than 0 and 1"):
        simulate(a_job(), skewed(table))


def test_a_rare_outcome_is_not_summed() -> None:
    table = pooled("logistic", 200)
    table["y"] = (np.arange(200) < 4).astype(float)
    with pytest.raises(ProtocolError, match="In y fewer than 10"):
        simulate(a_job(), skewed(table))


def test_what_cannot_be_iterated_is_refused_before_anything_is_sent() -> None:
    job = a_job()
    with pytest.raises(ParameterError, match="fits a linear model without weights only"):
        replace(job, protocol=PROTOCOLS["delegated"], parties=(*job.parties, Party("p", "provider")))
    with pytest.raises(ParameterError, match="bounds 0 and 1"):
        a_job(top=2)
    with pytest.raises(ParameterError, match="ordinary fit alone"):
        a_job(epsilon=Fraction(1), weight=Bounded("w", (Fraction(0), Fraction(1))))
    with pytest.raises(ParameterError, match="below 0"):
        a_job(weight=Bounded("w", (Fraction(-1), Fraction(1))))


@pytest.mark.parametrize("point", [b"", b"[]", b"[1, 2, 3]", b'["nan","0x1p0","0x1p0"]', b'["0x1p0"]', b"{}"])
def test_a_point_that_is_none_is_refused(point: bytes) -> None:
    assert point_in(point, a_job()) is None


def test_no_more_rounds_are_kept_ready_than_are_ever_used() -> None:
    assert MOST_POINTS < 20
