"""A hierarchy answered level by level: least squares as the textbook has it, children that add up, intervals that hold."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import QueryRefused
from velado.query.accuracy import Wish
from velado.query.answer import frame
from velado.query.budget import Budget
from velado.query.domains import key_of
from velado.query.hierarchy import Tree
from velado.query.plan import carry_out, plan, plan_within
from velado.query.session import Session
from velado.query.sql import parse
from velado.query.store import create_ledger
from velado.query.unit import Unit
from velado.settings import Where

PATHS = (
    ("Vicosa", "MG", "BR"),
    ("Uba", "MG", "BR"),
    ("Santos", "SP", "BR"),
    ("Campinas", "SP", "BR"),
    ("Brasilia", "DF", "BR"),
    ("Porto", "Norte", "PT"),
    ("Lisboa", "Centro", "PT"),
    ("Vaticano", "Vaticano", "Vaticano"),
)
SCHEMA = Schema(
    {
        "city": Column("city", taxonomy=TaxonomySpec("levels", file="cities.csv", paths=PATHS)),
        "age": Column(
            "age",
            kind="numeric",
            bounds=(0, 29),
            step=1,
            taxonomy=TaxonomySpec("intervals", widths=(5, 10)),
        ),
        "sex": Column("sex", values=("F", "M")),
    }
)
BY_CITY = "SELECT city, COUNT(*) AS n FROM stays GROUP BY ROLLUP (city)"
HALF = Fraction(19, 20)


def tree_of(*columns: str) -> Tree:
    return Tree.of(tuple(key_of(SCHEMA, column) for column in columns), SCHEMA)


def stays(rows: int = 600) -> Table:
    rng = np.random.default_rng(7)
    cities = [path[0] for path in PATHS] + ["elsewhere"]
    frame = pl.DataFrame(
        {
            "city": rng.choice(cities, rows, p=[0.3, 0.2, 0.3, 0.1, 0.04, 0.02, 0.02, 0.01, 0.01]),
            "age": rng.integers(0, 30, rows).astype(str),
            "sex": rng.choice(["F", "M"], rows),
        }
    )
    return Table.of(frame, SCHEMA, "stays")


def design(tree: Tree) -> np.ndarray:
    """Which cells each node of each level holds, as rows of zeros and ones."""
    cells = [tree.summed(row) for row in np.eye(tree.sizes[-1], dtype=np.int64)]
    return np.concatenate([np.array([one[d] for one in cells]).T for d in range(len(tree.sizes))])


@pytest.mark.parametrize("columns", [("city",), ("age",), ("sex", "city")])
@given(seed=st.integers(0, 999))
@settings(max_examples=8, deadline=None)
def test_estimates_and_variances_are_those_of_weighted_least_squares(
    columns: tuple[str, ...], seed: int
) -> None:
    tree = tree_of(*columns)
    rng = np.random.default_rng(seed)
    noise = (10 ** rng.uniform(-1, 2, len(tree.sizes))).tolist()
    drawn = [rng.integers(-20, 200, size) for size in tree.sizes]
    matrix = design(tree)
    weights = np.concatenate([np.full(size, 1 / one) for size, one in zip(tree.sizes, noise, strict=True)])
    inverse = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    leaves = inverse @ matrix.T @ (weights * np.concatenate(drawn))
    found = tree.estimates(drawn, noise)
    assert np.allclose(np.concatenate(found), matrix @ leaves, atol=1e-6)
    assert np.allclose(
        np.concatenate(tree.variances(noise)), np.einsum("ij,jk,ik->i", matrix, inverse, matrix), rtol=1e-9
    )
    widths = [np.full(size, float(rng.integers(0, 60))) for size in tree.sizes]
    shown = tree.possible(found, widths)
    for parent, above, below in zip(tree.parents, shown, shown[1:], strict=False):
        assert np.array_equal(np.bincount(parent, below, minlength=len(above)).astype(np.int64), above)
    assert min(int(one.min()) for one in shown) >= 0


def test_the_tree_is_that_of_the_declared_taxonomy_and_names_what_is_not_in_it() -> None:
    tree = tree_of("city")
    assert tree.sizes == (1, 4, 7, 9)
    shown = pl.DataFrame(tree.frame())
    assert shown.row(0) == (0, "*", None)
    assert ("MG", "BR") in shown.select("city", "city_in").rows()
    assert ("Uba", "MG") in shown.select("city", "city_in").rows()
    # A branch without narrower levels, and what is missing or undeclared, stand once, below all.
    assert shown.filter(pl.col("city") == "Vaticano").rows() == [(3, "Vaticano", "*")]
    assert shown.filter(pl.col("city").is_null()).rows() == [(3, None, "*")]


def test_several_keys_and_intervals_of_numbers_are_nested() -> None:
    shown = pl.DataFrame(tree_of("sex", "age").frame())
    assert (1, "F", "*", None) in shown.rows() and (4, "M", "7", "[5..9]") in shown.rows()
    assert shown.filter((pl.col("sex") == "F") & (pl.col("age") == "[10..19]")).height == 1


def test_without_noise_the_answer_is_the_table_counted_by_hand() -> None:
    table = stays()
    with Session(table, budget=400) as session:
        found = session.answer(BY_CITY, spend=390).frame
    got = {city: n for _, city, _, n, _, _ in found.rows()}
    cities = table.frame["city"]
    assert (
        got["*"] == 600
        and got["BR"] == cities.is_in(["Vicosa", "Uba", "Santos", "Campinas", "Brasilia"]).sum()
    )
    assert got["MG"] == cities.is_in(["Vicosa", "Uba"]).sum() and got[None] == (cities == "elsewhere").sum()


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_half_widths_hold_at_every_node_and_children_add_up(measure) -> None:
    query = parse(BY_CITY, SCHEMA, "stays")
    made = plan(query, SCHEMA, Unit(), measure, Fraction(1, 50))
    tally = np.array([900, 400, 800, 600, 500, 700, 600, 600, 400])
    assert made.tree is not None
    exact = np.array([made.tree.summed(tally)[d][i] for d, i in made.tree.lines()])
    trials, held = 500, np.zeros(len(exact))
    for _ in range(trials):
        found = frame(made, carry_out(made, (tally,)), HALF)
        held += ((found["n_low"] <= exact.tolist()) & (found["n_high"] >= exact.tolist())).to_numpy()
        level = dict(zip(found["city"].to_list(), found["n"].to_list(), strict=True))
        assert level["BR"] == level["MG"] + level["SP"] + level["Brasilia"]
    # Four standard errors below 95 %; intervals of everything would hold always.
    assert held.min() / trials >= 0.95 - 4 * (0.95 * 0.05 / trials) ** 0.5
    assert held.mean() / trials < 0.985


def test_no_level_is_less_exact_than_drawn_alone_with_its_share() -> None:
    for measure in ("epsilon", "rho"):
        made = plan(parse(BY_CITY, SCHEMA, "stays"), SCHEMA, Unit(), measure, Fraction(1))  # type: ignore[arg-type]
        assert made.tree is not None and made.charge <= 1
        scales = [draw.scale for draw in made.draws]
        for one, scale in zip(made.tree.variances([scale**2 for scale in scales]), scales, strict=True):
            assert one.max() <= scale**2 * (1 + 1e-12)


@given(seed=st.integers(0, 99), rows=st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_one_unit_moves_all_levels_together_by_no_more_than_is_charged(seed: int, rows: int) -> None:
    made = plan(parse(BY_CITY, SCHEMA, "stays"), SCHEMA, Unit("sex", rows), "epsilon", Fraction(1))
    rng = np.random.default_rng(seed)
    tally = rng.integers(0, 9, 9)
    other = tally.copy()
    for _ in range(rows):
        other[rng.integers(9)] += 1
    assert made.tree is not None
    loss = sum(
        int(np.abs(a - b).sum()) / draw.scale
        for a, b, draw in zip(made.tree.summed(tally), made.tree.summed(other), made.draws, strict=True)
    )
    assert loss <= float(made.charge) * (1 + 1e-12)


def test_a_wish_is_priced_before_it_is_paid_once(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "stays.ledger", "stays", Budget.epsilon(2), seal=tmp_path / "seal")
    with Session(stays(), budget=ledger, name="stays") as session:
        price = session.price(BY_CITY, within=30)
        assert ledger.state().spent == 0
        assert max(float(one.max()) for one in price.half_widths(HALF)) <= 30
        answer = session.answer(BY_CITY, within=30)
        assert ledger.state().spent == answer.cost.spent == price.charge
        again = session.answer(BY_CITY, within=30)
        assert again.stored and again.frame.equals(answer.frame) and ledger.state().spent == price.charge
    ledger.close()


def test_it_costs_less_than_its_levels_asked_one_by_one() -> None:
    wish = Wish.of(30, "within", Where("python", "the question"))
    made = plan_within(parse(BY_CITY, SCHEMA, "stays"), SCHEMA, Unit(), "epsilon", wish)
    single = plan_within(
        parse("SELECT COUNT(*) FROM stays", SCHEMA, "stays"), SCHEMA, Unit(), "epsilon", wish
    )
    assert made.charge < 0.9 * len(made.draws) * single.charge


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) FROM stays GROUP BY ROLLUP (city)",
        "SELECT COUNT(*), COUNT(age) FROM stays GROUP BY ROLLUP (city)",
        "SELECT COUNT(*) FROM stays GROUP BY sex, ROLLUP (city)",
        "SELECT COUNT(*) FROM stays GROUP BY city WITH ROLLUP",
        "SELECT COUNT(*) FROM stays GROUP BY ROLLUP ()",
        "SELECT COUNT(*) FROM stays GROUP BY ROLLUP (city, city)",
        "SELECT COUNT(*) FROM stays GROUP BY ROLLUP ((city, sex))",
        "SELECT COUNT(*) FROM stays WHERE ROLLUP (city) = 'a'",
        "SELECT ROLLUP (city), COUNT(*) FROM stays GROUP BY city",
    ],
)
def test_what_is_no_hierarchy_of_one_count_is_refused(sql: str) -> None:
    with Session(stays(20), budget=1) as session, pytest.raises(QueryRefused):
        session.price(sql)


def test_a_question_by_hand_is_the_one_by_text() -> None:
    asked = parse(BY_CITY, SCHEMA, "stays")
    with Session(stays(20), budget=5) as session:
        assert session.answer(asked, spend=1).frame.equals(session.answer(BY_CITY, spend=1).frame)
    plain = parse(BY_CITY.replace("ROLLUP (city)", "city"), SCHEMA, "stays")
    assert plain.canonical() != asked.canonical() and "rollup" not in plain.canonical()
