"""A workload on PostgreSQL as on files, and a black-box audit that sees noise which is half of what was paid for."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import psycopg
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.engines import engine_for_postgres, engine_for_table
from velado.query.sql import parse
from velado.query.unit import Unit
from velado.query.workload.workload import counted, draw_workload, plan_workload

SCHEMA = Schema(
    {
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1.0),
        "sex": Column("sex", values=("F", "M")),
        "day": Column("day", kind="date"),
    }
)
TEXTS = (
    "SELECT COUNT(*) FROM t WHERE age > 40",
    "SELECT COUNT(*) FROM t WHERE age > 60.5 OR sex IS NULL",
    "SELECT sex, COUNT(*) FROM t GROUP BY sex",
    "SELECT HISTOGRAM(age, 6) FROM t",
    "SELECT COUNT(day) FROM t WHERE day >= DATE '2020-06-01'",
)
ROWS = [
    (
        None if at % 11 == 0 else at % 97 / 2,
        (None, "F", "M", "x")[at % 4],
        None if at % 7 == 0 else f"2020-{at % 12 + 1:02}-03",
    )
    for at in range(300)
]


def planned(measure: str, spend: Fraction = Fraction(1)):
    return plan_workload([parse(text, SCHEMA, "t") for text in TEXTS], SCHEMA, Unit(), measure, spend)


def in_memory(rows: list[tuple]) -> Table:
    columns = [[None if cell is None else str(cell) for cell in column] for column in zip(*rows, strict=True)]
    frame = pl.DataFrame(
        dict(zip(SCHEMA.columns, columns, strict=True)), dict.fromkeys(SCHEMA.columns, pl.String)
    )
    return Table.of(frame, SCHEMA, "t")


def test_postgresql_counts_the_same_tables_as_a_file(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE asked_together (age float8, sex text, day date)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO asked_together VALUES (%s, %s, %s)", ROWS)
    made = planned("epsilon")
    assert made.draws
    with closing(engine_for_table(in_memory(ROWS), Unit())) as here:
        expected = counted(made, here)
    with closing(engine_for_postgres(postgres_url, "asked_together", SCHEMA, Unit())) as there:
        found = counted(made, there)
        assert [one.shape for one in draw_workload(made, there)][: len(found)] == [one.shape for one in found]
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_a_black_box_audit_sees_a_doubled_loss_and_no_loss_above_the_charge(noise: float) -> None:
    made = planned("epsilon", Fraction(2))
    weaker = replace(made, draws=tuple(replace(draw, scale=draw.scale * noise) for draw in made.draws))
    assert made.draws
    with closing(engine_for_table(in_memory(ROWS[:40]), Unit())) as one:
        without = counted(made, one)
        first = _scores(weaker, one, without, 700)
    with closing(engine_for_table(in_memory([*ROWS[:40], (50.0, "F", "2020-09-03")]), Unit())) as other:
        second = _scores(weaker, other, without, 700)
    # Half of the draws choose the event, the other half judge it: the loss is above the charge only if it truly is.
    events = np.quantile(np.concatenate([first[:350], second[:350]]), np.linspace(0.3, 0.95, 14))
    rates = [((second[:350] >= c).mean(), (first[:350] >= c).mean()) for c in events]
    chosen = events[int(np.argmax([np.log((p + 0.01) / (q + 0.01)) for p, q in rates]))]
    p, q = (second[350:] >= chosen).mean(), (first[350:] >= chosen).mean()
    lower = p - 3 * np.sqrt(max(p * (1 - p), 0.003) / 350)
    upper = q + 3 * np.sqrt(max(q * (1 - q), 0.003) / 350)
    loss = np.log(max(lower, 1e-9) / upper)
    assert (loss > float(made.charge)) == (noise < 1)


def _scores(made, engine, without, times: int):
    """How much more likely the person's presence makes what was drawn, by the noise that was promised."""
    with closing(engine_for_table(in_memory([*ROWS[:40], (50.0, "F", "2020-09-03")]), Unit())) as other:
        present = counted(made, other)
    out = []
    for _ in range(times):
        drawn = draw_workload(made, engine)[: len(made.draws)]
        out.append(
            sum(
                float((np.abs(z - a) - np.abs(z - b)).sum()) / draw.scale
                for z, a, b, draw in zip(drawn, without, present, made.draws, strict=True)
            )
        )
    return np.array(out)
