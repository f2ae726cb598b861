"""Where noise is drawn: one module, OpenDP alone, whole numbers of the expected shape."""

import ast
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import velado.query
from velado.data.schema import Column, Schema
from velado.errors import EngineError
from velado.query import noise
from velado.query.plan import carry_out, plan
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query

ROOM = Path(velado.query.__file__).parent
SCHEMA = Schema(
    {
        "sex": Column("sex", values=("F", "M")),
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
    }
)


def planned(*aggregates, measure="epsilon", spend=Fraction(1), keys=("sex",)):
    return plan(Query("people", aggregates, keys=keys), SCHEMA, Unit(), measure, spend)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_opendp_is_imported_by_one_module_of_the_package() -> None:
    package = ROOM.parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "opendp" in path.read_text("utf-8")  # most files need no parsing
        and any(name.split(".")[0] == "opendp" for name in imports(path))
    }
    assert users == {"query/noise.py"}


def test_nothing_safe_can_reach_numpys_random_numbers() -> None:
    for path in sorted(ROOM.rglob("*.py")):
        source = path.read_text("utf-8")
        # A synthetic table is drawn from counts that have their noise already.
        drawn = {"random"} if path.parent.name == "synthetic" else set()
        used = {
            node.attr
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Attribute)
            and node.attr in {"random", "default_rng", "laplace", "normal"} - drawn
        }
        assert not used, f"{path.name} uses {used}"
        reached = {name for name in imports(path) if "random" in name or "papers" in name}
        if path.name in {"noise.py", "plan.py", "answer.py", "local.py"}:
            assert not reached, f"{path.name} imports {reached}"


def test_contrib_is_the_only_feature_enabled() -> None:
    calls = [
        [ast.literal_eval(argument) for argument in node.args]
        for node in ast.walk(ast.parse((ROOM / "noise.py").read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "enable_features"
    ]
    assert calls == [["contrib"]]


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_each_draw_is_64_bit_whole_numbers_of_the_shape_of_its_need(measure) -> None:
    made = planned(Aggregate("avg", "age"), Aggregate("max", "age"), measure=measure)
    tallies = tuple(
        np.zeros((3, 121) if place == 2 else 3, dtype=np.int64) for place in range(len(made.needs))
    )
    drawn = carry_out(made, tallies)
    assert [array.shape for array in drawn] == [(3,), (3,), (3,)]
    assert all(array.dtype == np.int64 for array in drawn)
    assert all(0 <= place < 121 for place in drawn[2].tolist())
    (bins,) = carry_out(
        planned(Aggregate("histogram", "age", bins=4), measure=measure), (np.zeros((3, 4), dtype=np.int64),)
    )
    assert bins.shape == (3, 4)


@pytest.mark.parametrize(
    "tallies",
    [
        (),
        (np.zeros(2, dtype=np.int64),),
        (np.zeros(3),),
        (np.zeros((3, 1), dtype=np.int64),),
        (np.zeros(3, dtype=np.int64),) * 2,
    ],
)
def test_an_engine_that_returns_another_shape_is_refused_before_a_draw(tallies) -> None:
    with pytest.raises(EngineError, match="another shape"):
        carry_out(planned(Aggregate("count")), tallies)


@pytest.mark.parametrize("aggregate", [Aggregate("count"), Aggregate("max", "age")])
def test_a_deadline_that_has_passed_stops_the_draws(aggregate: Aggregate) -> None:
    made = planned(aggregate)
    tallies = (np.zeros(3 if aggregate.kind == "count" else (3, 121), dtype=np.int64),)
    with pytest.raises(EngineError, match="longer than the time allowed"):
        carry_out(made, tallies, deadline=time.monotonic() - 1)
    assert carry_out(made, tallies, deadline=time.monotonic() + 60)[0].shape == (3,)


def test_a_deadline_stops_a_choice_between_two_cells() -> None:
    rows = [[0] * 2_000] * 5_000
    began = time.monotonic()
    with pytest.raises(EngineError):
        noise.choose_smallest("epsilon", 20.0, rows, deadline=began + 0.2)
    # All of them would take about a hundred seconds.
    assert time.monotonic() - began < 40


def test_almost_no_noise_gives_the_exact_numbers_back() -> None:
    # A scale of a thousandth: another number than the true one has odds of e^-1000.
    made = planned(Aggregate("count"), spend=Fraction(1000))
    exact = np.array([5, -(1 << 62), 1 << 62])
    assert carry_out(made, (exact,))[0].tolist() == exact.tolist()


def test_the_largest_numbers_saturate_instead_of_wrapping() -> None:
    most = np.iinfo(np.int64).max
    noisy = noise.add("laplace", "epsilon", 3.0, np.array([most, -most]))
    assert noisy[0] > 1 << 61 and noisy[1] < -(1 << 61)


def test_threads_draw_at_once_and_no_two_alike() -> None:
    made = planned(Aggregate("count"), spend=Fraction(1, 10**9), keys=())
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: carry_out(made, (np.zeros(1, dtype=np.int64),))[0][0], range(400)))
    # At scale 1e9 two equal draws among 400 have a chance below 1e-4, and three below 1e-11.
    assert len(set(drawn)) >= 398


@pytest.mark.parametrize("categories", [2, 3, 11])
@pytest.mark.parametrize("asked", [Fraction(1, 100), Fraction(7, 10), Fraction(5), Fraction(30)])
def test_a_randomised_response_is_charged_what_its_map_says(categories, asked) -> None:
    chance, charge = noise.calibrate_response(categories, asked)
    assert 1 / categories < chance < 1
    assert asked * Fraction(98, 100) <= charge <= asked
