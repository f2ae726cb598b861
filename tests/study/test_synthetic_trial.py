"""The trial of a synthetic table: whole units on one side, true rows found again, crowds compared, nothing paid."""

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.budget import Budget
from velado.query.synthetic.axes import axes_of
from velado.query.synthetic.synthesize import Wanted
from velado.query.unit import Unit
from velado.randomness import seeded
from velado.report.synthetic_tried import Trial
from velado.study.synthetic_trial import _declared, _held_out, try_synthetic

SCHEMA = Schema(
    {
        "who": Column("who", "identifier", "text", person=True, max_rows=2),
        "ward": Column("ward", "quasi", values=("a", "b", "c"), missing="refuse"),
        "age": Column("age", "quasi", "numeric", bounds=(0, 99), step=1.0),
        "ill": Column("ill", "sensitive", values=("no", "yes")),
    }
)


@pytest.fixture(scope="module")
def table() -> Table:
    random = seeded(11, "trial")
    ward = random.integers(0, 3, 600)
    age = 30 * ward + random.integers(0, 30, 600)
    frame = pl.DataFrame(
        {
            "who": [f"p{at // 2}" for at in range(600)],
            "ward": [("a", "b", "c")[one] for one in ward],
            "age": age.astype(str),
            "ill": ["yes" if one > 45 else "no" for one in age],
        }
    )
    return Table.of(frame, SCHEMA)


@pytest.fixture(scope="module")
def tried(table: Table) -> Trial:
    return try_synthetic(table, Budget.epsilon(500), Unit("who", 2), Wanted())


def test_all_rows_of_a_unit_are_on_one_side(table: Table) -> None:
    out = _held_out(table, Unit("who", 2), seeded(0, "split"))
    sides = table.frame.with_columns(out=out).group_by("who").agg(pl.col("out").n_unique())
    assert sides["out"].max() == 1 and 0.2 < out.mean() < 0.4
    records = _held_out(table, Unit(), seeded(0, "split"))
    assert (
        table.frame.with_columns(out=records).group_by("who").agg(pl.col("out").n_unique())["out"].max() == 2
    )


def test_every_table_is_compared_on_the_same_rows(tried: Trial) -> None:
    assert [one.name for one in tried.tables] == [
        "original",
        "synthetic",
        "microaggregate",
        "k=5",
        "k=25",
        "k=100",
    ]
    assert tried.rows + tried.held_out == 600 and tried.target == "ill" and not tried.no_models
    found = {one.name: one for one in tried.tables}
    assert not any(one.failed for one in tried.tables)
    # With a spend that hides nothing the synthetic pairs are the true ones, nearer than another sample of the same people.
    synthetic, original = found["synthetic"].fidelity, found["original"].fidelity
    assert synthetic is not None and original is not None and synthetic.mean < original.mean
    crowds = [found[name].fidelity for name in ("k=5", "k=25", "k=100")]
    means = [one.mean for one in crowds if one is not None]
    assert means == sorted(means) and means[0] > synthetic.mean
    # The target follows from age: whoever learns from any of them but the coarsest can tell it.
    for name in ("original", "synthetic", "k=5"):
        assert (found[name].areas["decision-tree"] or 0) > 0.9, name


def test_who_has_the_true_rows_finds_their_people(tried: Trial) -> None:
    attack = tried.tables[0].attack
    assert attack is not None and attack.told and attack.null_low < 0.5 < attack.null_high


def test_a_target_that_cannot_be_learnt_is_said_and_the_rest_is_compared(table: Table) -> None:
    found = try_synthetic(table, Budget.rho(1), Unit("who", 2), Wanted(columns=("ill",)))
    assert found.no_models == "There is no other column to learn from." and found.target is None
    own = next(one for one in found.tables if one.name == "synthetic")
    assert own.fidelity is not None and own.fidelity.pair is None and own.areas == {}


def test_undeclared_values_are_blanks_in_every_table(table: Table) -> None:
    """A typo that the schema does not list, and a number that is none, leave no comparison unmade."""
    odd = table.frame.with_columns(
        ill=pl.when(pl.int_range(600) < 5).then(pl.lit("yess")).otherwise("ill"),
        age=pl.when(pl.int_range(600) == 7)
        .then(pl.lit("?"))
        .when(pl.int_range(600) == 9)
        .then(pl.lit("1e9"))
        .otherwise("age"),
        ward=pl.when(pl.int_range(600) < 3).then(pl.lit("q")).otherwise("ward"),
    )
    cleaned = _declared(table.with_frame(odd), axes_of(SCHEMA, Unit("who", 2)))
    # Wards refuse blanks, so those rows are left out, as they are of the synthetic table.
    assert cleaned.rows == 597 and cleaned.frame["ill"].null_count() == 2
    assert cleaned.frame["age"].null_count() == 1 and cleaned.frame["ward"].null_count() == 0
    assert "99" in cleaned.frame["age"].to_list() and "1e9" not in cleaned.frame["age"].to_list()
    tried = try_synthetic(table.with_frame(odd), Budget.epsilon(500), Unit("who", 2), Wanted())
    assert not any(one.failed for one in tried.tables)
