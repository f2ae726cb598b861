"""A synthetic table as somebody gets it: paid, declared values alone, the same again for nothing, and refused where it must be."""

from fractions import Fraction
from typing import get_args

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

import velado
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import BudgetExceeded, ParameterError, QueryRefused
from velado.query.budget import Budget
from velado.query.engines import engine_for_table
from velado.query.store import memory_ledger, open_ledger
from velado.query.synthetic.axes import Axis, axes_of
from velado.query.synthetic.measuring import Till, measure
from velado.query.synthetic.synthesize import Method, RowCounts, Wanted, from_engine, synthesize
from velado.query.unit import Unit
from velado.randomness import seeded

SCHEMA = Schema(
    {
        "who": Column("who", "identifier", "text", person=True, max_rows=2),
        "ward": Column("ward", "quasi", values=("a", "b", "c")),
        "age": Column("age", "quasi", "numeric", bounds=(0, 99), step=1.0),
        "ill": Column("ill", "sensitive", values=("no", "yes"), missing="suppress"),
    }
)


def people(rows: int = 300) -> pl.DataFrame:
    random = seeded(5, "people")
    ward = random.integers(0, 3, rows)
    return pl.DataFrame(
        {
            "who": [f"p{at // 3}" for at in range(rows)],
            "ward": [("a", "b", "c")[one] if at % 17 else "" for at, one in enumerate(ward)],
            "age": [str(30 * one + at % 20) if at % 11 else "unknown" for at, one in enumerate(ward)],
            "ill": ["yes" if one == 2 else "no" for one in ward],
        }
    )


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("spent", [{"epsilon": 20}, {"rho": 20}, {"epsilon": "0.01"}])
def test_the_table_holds_declared_values_and_blanks_alone(method, spent):
    found = synthesize(people(), SCHEMA, method=method, **spent)
    assert found.frame.columns == ["ward", "age", "ill"]
    assert set(found.frame["ward"]) <= {"a", "b", "c", None}
    assert set(found.frame["ill"]) <= {"no", "yes"}
    ages = found.frame["age"].drop_nulls()
    assert ages.str.contains(r"^\d+$").all() and ages.cast(int).is_between(0, 99).all()
    assert found.guarantee.type == "guaranteed"
    assert found.facts()["promise"]["k_anonymity"] == "not promised"
    assert found.guarantee.unit == "all rows with one value of 'who'"


def test_a_large_spend_gives_the_counts_back_with_each_person_cut_to_their_most():
    frame = people()
    found = synthesize(frame, SCHEMA, epsilon=500, method="tree")
    kept = frame.filter(pl.int_range(pl.len()).over("who") < 2)
    for ward in "abc":
        assert (
            abs(
                kept.filter(pl.col("ward") == ward).height - found.frame.filter(pl.col("ward") == ward).height
            )
            <= 5
        )
    crossed = found.frame.filter((pl.col("ward") == "c") != (pl.col("ill") == "yes")).height
    assert crossed <= 10 + kept.filter((pl.col("ward") != "c") & (pl.col("ill") == "yes")).height


def test_codes_of_an_engine_are_those_of_memory():
    frame = people()
    axes = axes_of(SCHEMA, Unit(), bins=7)
    engine = engine_for_table(Table.of(frame, SCHEMA), Unit())
    kept = frame.filter(pl.col("ill").is_in(["no", "yes"]))
    for axis, codes in zip(axes, engine.coded(axes), strict=True):
        assert np.array_equal(codes, axis.codes(kept[axis.column], ("",))), axis.column
    engine.close()


def test_asked_again_it_is_the_same_table_for_nothing():
    ledger = memory_ledger("people", Budget.epsilon(1))
    first = synthesize(people(), SCHEMA, epsilon=1, ledger=ledger)
    again = synthesize(people(), SCHEMA, epsilon=1, ledger=ledger)
    assert (first.stored, again.stored) == (False, True)
    assert first.frame.equals(again.frame) and again.cost.spent == 0
    assert first.how.steps == again.how.steps
    other = synthesize(people(), SCHEMA, epsilon=1, ledger=ledger, seed=1, rows=50)
    assert other.stored and other.frame.height == 50
    with pytest.raises(BudgetExceeded):
        synthesize(people(), SCHEMA, epsilon="0.5", ledger=ledger)
    with pytest.raises(BudgetExceeded):
        synthesize(people(299), SCHEMA, epsilon=1, ledger=ledger)
    grouped = memory_ledger("people", Budget.rho(2))
    one = synthesize(people(), SCHEMA, rho=1, ledger=grouped, method="microaggregate")
    assert synthesize(people(), SCHEMA, rho=1, ledger=grouped, method="microaggregate").frame.equals(
        one.frame
    )


class Watched:
    """An engine that writes down what the ledger held when its rows were asked for."""

    def __init__(self, engine, ledger) -> None:
        self.engine, self.ledger, self.spent = engine, ledger, []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def coded(self, axes):
        self.spent.append(self.ledger.state().spent)
        return self.engine.coded(axes)


def test_it_is_paid_before_a_row_is_counted_and_refused_rows_are_not_counted():
    ledger = memory_ledger("people", Budget.epsilon(1))
    unit = Unit("who", 2)
    engine = Watched(engine_for_table(Table.of(people(), SCHEMA), unit), ledger)
    axes = axes_of(SCHEMA, unit)
    from_engine(engine, SCHEMA, axes, Wanted(), Budget.epsilon("0.75"), ledger)
    assert engine.spent == [Fraction(3, 4)]
    with pytest.raises(BudgetExceeded):
        from_engine(engine, SCHEMA, axes, Wanted(), Budget.epsilon("0.5"), ledger)
    with pytest.raises(ParameterError, match="counts in epsilon"):
        from_engine(engine, SCHEMA, axes, Wanted(), Budget.rho(1), ledger)
    assert len(engine.spent) == 1


def test_a_file_has_one_account_for_answers_and_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    file = tmp_path / "people.csv"
    people().write_csv(file)
    synthesize(file, SCHEMA, epsilon=1, budget=2)
    ledger = open_ledger(f"{file}.ledger")
    assert ledger.state().spent == 1 and ledger.state().left == 1
    table = Table.of(people(), SCHEMA, "people")
    velado.Session(table, Unit("who", 2), ledger).answer("SELECT COUNT(*) FROM people", spend=Fraction(1, 2))
    assert ledger.verify().spent == Fraction(3, 2)
    ledger.close()
    with pytest.raises(BudgetExceeded):
        synthesize(file, SCHEMA, epsilon=1, method="tree")
    with pytest.raises(ParameterError, match="another unit"):
        synthesize(file, SCHEMA, epsilon="0.25", unit=Unit())


def _only(**column) -> Schema:
    return Schema({"x": Column("x", **column)})


@pytest.mark.parametrize("method", ["auto", "adaptive", "microaggregate"])
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_small_and_constant_tables_are_made(method, rows):
    frame = pl.DataFrame({"x": ["1"] * rows, "y": ["a"] * rows, "z": [""] * rows})
    schema = Schema(
        {
            "x": Column("x", kind="numeric", bounds=(0, 1)),
            "y": Column("y", values=("a",), missing="refuse"),
            "z": Column("z", values=("p", "q")),
        }
    )
    for chosen in (("x",), ("y",), ("x", "y", "z")):
        found = synthesize(frame, schema, epsilon=1, method=method, columns=chosen)
        assert found.frame.columns == list(chosen) and found.frame.height >= 1
        if "x" in chosen:
            assert found.frame["x"].drop_nulls().cast(float).is_between(0, 1).all()


def test_a_file_without_rows_is_noise_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    file = tmp_path / "none.csv"
    file.write_text("x\n")
    found = synthesize(file, _only(values=("a", "b")), epsilon=1)
    assert 1 <= found.frame.height < 200


def test_a_domain_product_beyond_any_number_is_no_problem():
    names = [f"c{at}" for at in range(30)]
    schema = Schema({name: Column(name, kind="numeric", bounds=(0, 10**9)) for name in names})
    frame = pl.DataFrame({name: [str(at * 10**7) for at in range(40)] for name in names})
    found = synthesize(frame, schema, epsilon=1, bins=1000)
    assert found.frame.width == 30 and found.how.way in ("alone", "tree")
    wide = _only(values=tuple(f"v{at}" for at in range(9000)))
    assert synthesize(pl.DataFrame({"x": ["v1"] * 10}), wide, epsilon=1).frame.height >= 1


@pytest.mark.parametrize(
    ("column", "fix"),
    [
        ({"kind": "numeric"}, "bounds = [low, high]"),
        ({"kind": "categorical"}, "values = ["),
        ({"kind": "text"}, "values = ["),
        ({"kind": "date"}, "values = ["),
        ({"values": tuple(f"v{at}" for at in range(10_001))}, "coarser"),
    ],
)
def test_a_column_without_a_declared_domain_is_refused_with_what_to_add(column, fix):
    with pytest.raises(QueryRefused) as refused:
        synthesize(pl.DataFrame({"x": ["secret"]}), _only(**column), epsilon=1)
    assert fix in refused.value.fix and "x" in refused.value.fix + refused.value.what
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "either epsilon or rho"),
        ({"epsilon": 1, "rho": 1}, "either epsilon or rho"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1, "bins": 0}, "bins"),
        ({"epsilon": 1, "method": "magic"}, "method"),
        ({"epsilon": 1, "columns": ("who",)}, "who"),
        ({"epsilon": 1, "columns": ("ghost",)}, "ghost"),
        ({"epsilon": 1, "rows": 0}, "rows"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(wrong, words):
    with pytest.raises(ParameterError, match=words):
        synthesize("no-such-file.csv", SCHEMA, **wrong)


def test_numbers_without_a_step_are_told_in_few_digits_within_their_bounds():
    axis = Axis.of(_only(kind="numeric", bounds=(0.5, 12.25)), "x", 8)
    told = axis.values(np.arange(axis.size, dtype=np.int32).repeat(200), seeded(0, "values"))
    numbers = told.drop_nulls()
    assert numbers.str.len_chars().max() <= 6 and numbers.cast(float).is_between(0.5, 12.25).all()
    comma = Axis.of(Schema(_only(kind="numeric", bounds=(0, 1), step=0.25).columns, decimal=","), "x")
    assert set(comma.values(np.arange(comma.size, dtype=np.int32), seeded(0, "v"))) == {
        "0",
        "0,25",
        "0,5",
        "0,75",
        "1",
        None,
    }


def _bound(hits: int, runs: int, misses: int) -> float:
    """A lower bound on epsilon that holds but for one chance in a million."""
    low = beta.ppf(5e-7, hits, runs - hits + 1) if hits else 0.0
    high = beta.ppf(1 - 5e-7, misses + 1, runs - misses)
    return float(np.log(low / high)) if low > 0 else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("doubled", [False, True])
def test_an_auditor_finds_no_more_than_was_paid_and_catches_a_doubled_loss(doubled):
    """With and without one person, alone in a cell of two columns: the count of the cell, over many tables."""
    runs, claimed = 1500, 2.0
    hits = []
    for there in (1, 0):
        codes = [np.array([0] * 20 + [1] * there, dtype=np.int32)] * 2
        rows = RowCounts((2, 2), codes)
        count = 0
        for _ in range(runs):
            till = Till("epsilon", Fraction(4 if doubled else 2), Unit())
            told = measure((2, 2), rows, till, "tree").measured[-1]
            count += int(told.counts[1, 1] >= 1)
        hits.append(count)
    found = _bound(hits[0], runs, hits[1])
    assert (found > claimed) == doubled


def test_the_public_name_is_this_one():
    assert velado.synthesize is synthesize
