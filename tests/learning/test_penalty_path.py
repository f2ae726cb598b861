"""A path of penalties from sums is scikit-learn's on the pooled rows, costs nothing further, and says what it tells."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from velado.errors import ParameterError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.parts import result_bytes, result_in
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.who_learns_what import promise
from velado.learning.regression.coefficient_table import path_facts, path_rows
from velado.learning.regression.design_matrix import encoded_columns
from velado.learning.regression.fit import Fit
from velado.learning.regression.held_out import parts_of
from velado.learning.regression.job import Job, Party
from velado.learning.regression.penalty_path import ALPHAS, PathKind, PenaltyPath
from velado.learning.regression.private_sums import noise_plan
from velado.learning.regression.simulate import simulate
from velado.randomness import seeded
from velado.report.penalty_chart import path_chart

NAMES = ("a", "b", "c", "d", "e")


def a_job(path: str = "lasso", protocol: str = "secure-sum", **more: Any) -> Job:
    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(3))]
    if protocol != "secure-sum":
        parties.append(Party("p", "provider"))
    features = tuple(Bounded(name, (Fraction(-60), Fraction(60))) for name in NAMES)
    given: dict[str, Any] = {"moments": "epsilon" not in more, "bits": 40, "most_rows": 10_000, "path": path}
    return Job("t", PROTOCOLS[protocol], features, Bounded("y", (Fraction(-300), Fraction(300))), tuple(parties), **{**given, **more})  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> dict[str, np.ndarray]:
    """Columns of different size and place; b nearly follows from a, and d and e have nothing to do with y."""
    draw = seeded(4, "path")
    a = draw.normal(10, 3, 300)
    table = {"a": a, "b": a + draw.normal(0, 1, 300), "c": draw.normal(-20, 9, 300)}
    table |= {"d": draw.normal(0, 0.5, 300), "e": draw.normal(0, 1, 300)}
    return {**table, "y": 3 * a - 0.5 * table["c"] + draw.normal(0, 4, 300)}


def dealt(table: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    return {f"c{k}": {name: values[k::3] for name, values in table.items()} for k in range(3)}


def pooled(table: dict[str, np.ndarray], penalty: float, alpha: float, intercept: bool = True) -> np.ndarray:
    """scikit-learn on the pooled, standardised rows, back in own units."""
    models = pytest.importorskip("sklearn.linear_model")
    x, y = np.column_stack([table[name] for name in NAMES]), table["y"]
    mean = x.mean(axis=0) if intercept else np.zeros(x.shape[1])
    size = np.sqrt(((x - mean) ** 2).mean(axis=0))
    model = (
        models.ElasticNet(alpha=penalty, l1_ratio=alpha, tol=1e-13, max_iter=10**6, fit_intercept=intercept)
        if alpha
        else models.Ridge(alpha=penalty * len(y), fit_intercept=intercept)
    )
    slopes = model.fit((x - mean) / size, y).coef_ / size
    return np.array([*([model.intercept_ - slopes @ mean] if intercept else []), *slopes])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ALPHAS)
def test_every_point_is_that_of_scikit_learn_on_the_pooled_rows(
    rows: dict[str, np.ndarray], kind: str, intercept: bool
) -> None:
    fit, transcript = simulate(a_job(kind, intercept=intercept), dealt(rows))
    assert fit.path is not None
    for penalty, beta in zip(fit.path.penalties, fit.path.coefficients, strict=True):
        np.testing.assert_allclose(beta, pooled(rows, penalty, ALPHAS[kind], intercept), rtol=1e-6, atol=1e-7)
    assert all(role.outcome.fit.path == fit.path for role in transcript.roles.values())
    assert Fit.from_dict(fit.to_dict()) == fit


def by_hand(table: dict[str, np.ndarray], job: Job, path: PenaltyPath) -> tuple[np.ndarray, np.ndarray]:
    """Errors on parts held out in turn, from the rows themselves: each part's by scikit-learn on the others."""
    parts: list[list[dict[str, np.ndarray]]] = [[] for _ in range(job.folds)]
    for own in dealt(table).values():
        numbered = {**own, "y": own["y"]}
        encoded = encoded_columns(numbered, job)
        row = {tuple(one): at for at, one in enumerate(np.column_stack(encoded).tolist())}
        for place, part in enumerate(parts_of(encoded, numbered, job)):
            picked = [row[tuple(one)] for one in np.column_stack(part).tolist()]
            parts[place].append({name: values[picked] for name, values in own.items()})
    pieces = [{name: np.concatenate([one[name] for one in part]) for name in table} for part in parts]
    errors = []
    for place, held in enumerate(pieces):
        rest = {
            name: np.concatenate([one[name] for at, one in enumerate(pieces) if at != place])
            for name in table
        }
        x = np.column_stack([np.ones(len(held["y"])), *(held[name] for name in NAMES)])
        found = [pooled(rest, penalty, ALPHAS[path.kind]) for penalty in path.penalties]
        errors.append([float(((held["y"] - x @ beta) ** 2).mean()) for beta in found])
    mean = np.average(errors, axis=0, weights=[len(one["y"]) for one in pieces])
    return mean, np.std(errors, axis=0, ddof=1) / len(pieces) ** 0.5


@pytest.mark.parametrize("kind", ["lasso", "ridge"])
def test_the_choice_on_held_out_rows_is_that_of_the_rows_themselves(
    rows: dict[str, np.ndarray], kind: str
) -> None:
    job = a_job(kind, folds=4)
    fit, transcript = simulate(job, dealt(rows))
    assert fit.path is not None
    mean, spread = by_hand(rows, job, fit.path)
    np.testing.assert_allclose(fit.path.held_out, mean, rtol=1e-6)
    np.testing.assert_allclose(fit.path.held_out_errors, spread, rtol=1e-4)
    assert fit.path.chosen == int(np.argmin(mean))
    high, low = fit.path.as_good
    assert high >= fit.path.penalties[fit.path.chosen] >= low
    told = " ".join(path_facts(fit))
    assert "predicted rows that were held out in turn best" in told and "BIC chose" not in told
    # The coefficients themselves are those of all rows, as without parts.
    assert fit.path.coefficients == simulate(a_job(kind), dealt(rows))[0].path.coefficients
    assert all(role.outcome.fit.path == fit.path for role in transcript.roles.values())
    assert Fit.from_dict(fit.to_dict()) == fit
    assert "of each of 4 parts of the rows" in promise(job).reveals


def test_a_part_that_would_show_few_people_is_not_summed(rows: dict[str, np.ndarray]) -> None:
    """Twelve members are enough in all, and too few in a part: nothing but counts was opened."""
    few = {**rows, "e": (np.arange(300) % 25 == 0).astype(float)}
    assert simulate(a_job(), dealt(few))[0].path is not None
    with pytest.raises(ProtocolError, match="In e fewer than 10 rows differ"):
        simulate(a_job(folds=4), dealt(few))


def test_neither_precision_nor_bounds_nor_spelling_make_other_parts(rows: dict[str, np.ndarray]) -> None:
    """Else every job would open sums over ever other parts of the same rows."""
    job, numbers = a_job(folds=5), np.arange(300)
    wide = tuple(replace(one, bounds=(one.low - 1, one.high + 3)) for one in job.features)
    spelt = {name: np.array([f"{value!r}" for value in values.tolist()]) for name, values in rows.items()}
    places = []
    for table, other in (
        (rows, job),
        (rows, replace(job, bits=job.bits + 3)),
        (rows, replace(job, features=wide)),
        (spelt, job),
    ):
        parts = parts_of([numbers], table, other)
        places.append([part[0].tolist() for part in parts])
    assert places[0] == places[1] == places[2] == places[3]


def test_the_same_rows_make_the_same_parts_in_any_order(rows: dict[str, np.ndarray]) -> None:
    job, order = a_job(folds=5), seeded(1, "order").permutation(300)
    table = {name: np.round(values) for name, values in rows.items()}
    turned = {name: values[order] for name, values in table.items()}
    one = parts_of(encoded_columns(table, job), table, job)
    other = parts_of(encoded_columns(turned, job), turned, job)
    for part, again in zip(one, other, strict=True):
        assert sorted(np.column_stack(part).tolist()) == sorted(np.column_stack(again).tolist())
    assert min(len(part[0]) for part in one) > 35
    # Equal rows are spread over the parts: a part is not a cell of the table.
    same = [np.ones(50, dtype=np.int64)] * 2
    assert [len(part[0]) for part in parts_of(same, {"x": same[0]}, job)] == [10] * 5


@pytest.mark.parametrize(
    "settings",
    [
        {"folds": 2},
        {"path": "none", "folds": 5},
        {"folds": 5, "epsilon": 1},
        {"folds": 5, "protocol": "delegated"},
    ],
)
def test_parts_that_cannot_be_held_out_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="Parts held out in turn"):
        a_job(**settings)


def test_bic_keeps_what_matters_and_leaves_out_what_does_not(rows: dict[str, np.ndarray]) -> None:
    fit, _ = simulate(a_job(), dealt(rows))
    assert fit.path is not None
    named = dict(zip(fit.names, fit.path.best, strict=True))
    assert named["a"] > 2 and named["c"] < -0.3
    assert named["d"] == named["e"] == 0
    # BIC by hand, from the rows.
    x = np.column_stack([np.ones(300), *(rows[name] for name in NAMES)])
    for beta, told in zip(fit.path.coefficients, fit.path.bic, strict=True):
        rest = rows["y"] - x @ np.array(beta)
        assert told == pytest.approx(
            300 * np.log(rest @ rest / 300) + np.count_nonzero(beta) * np.log(300), rel=1e-6
        )
    assert fit.path.chosen == int(np.argmin(fit.path.bic))
    assert fit.at_choice().coefficients == fit.path.best
    assert fit.at_choice().standard_errors is None


def test_with_noise_the_path_follows_from_the_same_noisy_sums(rows: dict[str, np.ndarray]) -> None:
    """No further noise and no further cost: the plan of the noise and the messages are those of a run without a path."""
    many = {name: np.tile(values, 20) for name, values in rows.items()}
    job, plain = a_job(epsilon=Fraction(50)), a_job("none", epsilon=Fraction(50))
    assert noise_plan(job) == noise_plan(plain)
    fit, transcript = simulate(job, dealt(many), seed=b"1" * 32)
    other, beside = simulate(plain, dealt(many), seed=b"1" * 32)
    # Seeds are bound to the job, so the draws differ; what is sent up to the result is as long and as often.
    kinds = [[(m.kind, m.sender) for m in one.messages] for one in (transcript, beside)]
    assert kinds[0] == kinds[1]
    assert fit.path is not None and other.path is None
    assert fit.path.coefficients[-1] == pytest.approx(fit.coefficients, rel=0.5, abs=15)
    assert "many penalties" not in str(fit.promise.reveals)


def test_an_exact_path_tells_the_pooled_sums_and_says_so(rows: dict[str, np.ndarray]) -> None:
    fit, _ = simulate(a_job("ridge"), dealt(rows))
    assert "many penalties" in str(fit.promise.reveals)
    assert "pooled sums" not in str(fit.promise.hides)
    assert "follow from exact coefficients" in str(fit.learned.parties["client"].infers)
    # As it says: with (R + l I) b = r at every penalty, R is found up to its scale by linear equations.
    assert fit.path is not None
    x = np.column_stack([rows[name] for name in NAMES])
    size, inner = x.std(axis=0), np.corrcoef(x.T)
    slopes = [np.array(beta[1:]) * size for beta in fit.path.coefficients]
    places = np.triu_indices(5)
    equations, right = [], []
    for penalty, beta in zip(fit.path.penalties, slopes, strict=True):
        for i in range(5):
            line = np.zeros((5, 5))
            line[i] += beta
            line = line + line.T - np.diag(np.diag(line))
            equations.append([*line[places], *(-(np.arange(5) == i).astype(float))])
            right.append(-penalty * beta[i])
    found = np.linalg.lstsq(np.array(equations), np.array(right), rcond=None)[0][:15]
    np.testing.assert_allclose(found, inner[places], atol=1e-4)


def test_a_path_that_cannot_be_told_is_refused() -> None:
    for more in ({"moments": False}, {"moments": False, "ridge": Fraction(1)}):
        with pytest.raises(ParameterError, match="A path goes with a linear fit"):
            a_job(**more)
    with pytest.raises(ParameterError, match="A path goes with a linear fit"):
        a_job(weight=Bounded("w", (Fraction(0), Fraction(1))))
    with pytest.raises(ParameterError, match="A path goes with a linear fit"):
        a_job(protocol="masked", moments=False)
    with pytest.raises(ParameterError, match="path"):
        a_job("las")


def test_a_result_with_a_false_path_is_refused(rows: dict[str, np.ndarray]) -> None:
    job = a_job()
    fit, _ = simulate(job, dealt(rows))
    from velado.learning.regression.fit import Solved

    solved = Solved(coefficients=fit.coefficients, errors=fit.standard_errors, rows=300, path=fit.path)
    assert result_in(result_bytes(solved), job).path == fit.path
    told = result_bytes(solved)
    chosen = f'"chosen":{fit.path.chosen}'.encode()  # type: ignore[union-attr]
    for false in (
        told.replace(chosen, b'"chosen":30'),
        told.replace(chosen, b'"chosen":true'),
        told.replace(b'"lasso"', b'"ridge"'),
        told.replace(b'"penalties":[', b'"penalties":[NaN,'),
        result_bytes(Solved(coefficients=fit.coefficients, errors=fit.standard_errors, rows=300)),
    ):
        with pytest.raises(ProtocolError, match="no result of this job"):
            result_in(false, job)
    with pytest.raises(ProtocolError, match="no result of this job"):
        result_in(told, a_job("none"))


def test_table_and_chart_show_every_column(rows: dict[str, np.ndarray]) -> None:
    fit, _ = simulate(a_job(), dealt(rows))
    assert fit.path is not None
    head, lines = path_rows(fit)
    assert [line[0] for line in lines[1:]] == list(NAMES) and len(head) == 4
    assert any("BIC chose penalty" in str(line) for line in path_facts(fit))
    drawn = path_chart(fit.path, fit.names)
    assert drawn.count('class="column"') == 5 and drawn.startswith("<svg xmlns=") and "<desc>" in drawn
    many = path_chart(fit.path, [fit.names[0], "<b>", *fit.names[2:]])
    assert "<b>" not in many and "&lt;b&gt;" in many
    assert set(ALPHAS) == set(get_args(PathKind)) - {"none"}
