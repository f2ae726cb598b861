"""What cannot be answered is refused by the plan, from public things alone, so that nobody pays for a refusal."""

from fractions import Fraction

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError, QueryRefused
from velado.query.needs import Grid, cells_of
from velado.query.plan import plan
from velado.query.session import Session, confidence_level
from velado.query.unit import Unit
from velado.query.values import Aggregate, And, Compare, In, Like, Query

SCHEMA = Schema(
    {
        "ten": Column("ten", values=tuple(map(str, range(9)))),
        "hundred": Column("hundred", values=tuple(map(str, range(99)))),
        "thousand": Column("thousand", values=tuple(map(str, range(999)))),
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
        "cost": Column("cost", kind="numeric", bounds=(0, 1e6)),
        "day": Column("day", kind="date"),
    }
)


def planned(*aggregates: Aggregate, keys=(), where=None, extremes="quantile"):
    return plan(Query("t", aggregates, where, keys), SCHEMA, Unit(), "epsilon", Fraction(1), extremes)


def quantiles(number: int, column: str = "cost") -> list[Aggregate]:
    return [Aggregate("quantile", column, Fraction(n, number + 1)) for n in range(1, number + 1)]


def test_numbers_are_counted_over_all_draws() -> None:
    count, average = Aggregate("count"), Aggregate("avg", "age")
    assert cells_of(planned(count, keys=("hundred", "thousand")).keys) == 100_000
    with pytest.raises(QueryRefused, match="too many numbers"):
        planned(count, Aggregate("count", "age"), keys=("hundred", "thousand"))
    with pytest.raises(QueryRefused, match="too many numbers"):
        planned(average, keys=("hundred", "thousand"))
    planned(Aggregate("count", "age"), Aggregate("sum", "age"), average, keys=("ten", "thousand"))


def test_scores_are_counted_over_all_draws() -> None:
    made = planned(*quantiles(15), keys=("ten",))
    assert sum(10 * len(draw.candidates) for draw in made.draws) == 300_000
    with pytest.raises(QueryRefused, match="too many candidates"):
        planned(*quantiles(16), keys=("ten",))
    with pytest.raises(QueryRefused):
        planned(*quantiles(1), keys=("ten", "thousand"))


def test_a_quantile_asked_twice_counts_once() -> None:
    planned(*quantiles(15), *quantiles(15), keys=("ten",))


def test_declared_bounds_are_written_into_no_more_lines_than_anything_else() -> None:
    low = Aggregate("min", "age")
    planned(low, keys=("hundred", "thousand"), extremes="bound")
    with pytest.raises(QueryRefused, match="too many numbers"):
        planned(low, Aggregate("max", "age"), keys=("hundred", "thousand"), extremes="bound")


@pytest.mark.parametrize(
    "where",
    [
        Compare("nowhere", "=", "x"),
        Compare("ten", "=", "a\0b"),
        Compare("ten", "=", Fraction(1)),
        Compare("age", "= 1 OR 1", Fraction(1)),  # type: ignore[arg-type]
        Like("day", "%"),
        And(tuple(In("ten", tuple(f"{n} {m}" for m in range(1000))) for n in range(61))),
    ],
)
def test_what_an_engine_would_refuse_is_refused_before_it_is_paid(where) -> None:
    table = Table.of(
        pl.DataFrame({name: ["1"] for name in SCHEMA.columns}, schema={n: pl.String for n in SCHEMA.columns}),
        SCHEMA,
        "t",
    )
    with Session(table, budget=1) as session:
        with pytest.raises(QueryRefused):
            session.answer(Query("t", (Aggregate("count"),), where))
        assert session.state().spent == 0


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ((0, 1e-300), None),
        ((0, 1), 1e-291),
        ((-1.7e308, 1.7e308), None),
        ((0, 1e308), 1e300),
        ((0, 1e-300), 1e-300),
    ],
)
def test_numbers_that_cannot_be_summed_are_refused_by_the_grid(bounds, step) -> None:
    column = Column("x", kind="numeric", bounds=bounds, step=step)
    with pytest.raises(QueryRefused):
        Grid.of(column)
    schema = Schema({"x": column})
    frame = pl.DataFrame({"x": ["0"]})
    with Session(Table.of(frame, schema, "t"), budget=1) as session:
        with pytest.raises(QueryRefused):
            session.answer("SELECT SUM(x) FROM t")
        assert session.state().spent == 0
        assert session.answer("SELECT COUNT(x) FROM t").frame.height == 1


@pytest.mark.parametrize(
    ("bounds", "step"),
    [((0, 1e-280), None), ((0, 1e293), None), ((-1e290, 1e290), 1e288), ((0, 1e-285), 1e-290)],
)
@pytest.mark.parametrize("spend", [0.1, 1e-9])
def test_the_widest_and_narrowest_grids_there_are_can_be_answered(bounds, step, spend) -> None:
    schema = Schema({"x": Column("x", kind="numeric", bounds=bounds, step=step)})
    frame = pl.DataFrame({"x": ["0", str(bounds[1]), "inf"]})
    with Session(Table.of(frame, schema, "t"), budget=1, least=spend) as session:
        for asked in ("SUM(x)", "AVG(x)", "MAX(x)", "HISTOGRAM(x, 2)"):
            session.answer(f"SELECT {asked} FROM t", spend=spend, confidence=confidence_level(1 - 1e-12))


@pytest.mark.parametrize("level", [0, 1, 1 - 1e-13, Fraction(10**400 - 1, 10**400), -0.5, 2])
def test_a_confidence_nobody_can_compute_is_refused_before_anything_is_paid(level) -> None:
    schema = Schema({"x": Column("x", kind="numeric", bounds=(0, 1), step=1)})
    with Session(Table.of(pl.DataFrame({"x": ["0"]}), schema, "t"), budget=1) as session:
        with pytest.raises(ParameterError):
            session.answer("SELECT COUNT(*) FROM t", confidence=level)
        assert session.state().spent == 0
