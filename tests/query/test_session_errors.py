"""What goes wrong is decided by the question, the schema and the ledger; two tables with other rows fail alike."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import VeladoError
from velado.query.session import Session

SCHEMA = Schema(
    {
        "home": Column("home", "identifier", "text", group=True, max_rows=2),
        "sex": Column("sex", "quasi", "categorical", values=("F", "M")),
        "age": Column("age", "quasi", "numeric", bounds=(0.0, 100.0), step=1.0),
        "free": Column("free", "other", "numeric"),
        "day": Column("day", "other", "date"),
    }
)

CELLS = st.fixed_dictionaries(
    {
        "home": st.sampled_from(["a", "b", "c", ""]),
        "sex": st.sampled_from(["F", "M", "other", "", "'"]),
        "age": st.sampled_from(["0", "50", "1e300", "-inf", "inf", "nan", "", "9223372036854775807", "x"]),
        "free": st.sampled_from(["1", "", "inf", "text"]),
        "day": st.sampled_from(["2020-01-01", "", "0001-01-01", "no day"]),
    }
)
TABLES = st.lists(CELLS, min_size=1, max_size=12).map(
    lambda rows: Table.of(
        pl.DataFrame({name: [row[name] for row in rows] for name in SCHEMA.columns}), SCHEMA, "t"
    )
)
QUESTIONS = st.sampled_from(
    [
        "SELECT COUNT(*) FROM t",
        "SELECT COUNT(age) FROM t WHERE sex = 'nobody'",
        "SELECT SUM(age), AVG(age) FROM t WHERE age > 1e308",
        "SELECT sex, AVG(age) FROM t GROUP BY sex",
        "SELECT MIN(age), MAX(age), MEDIAN(age) FROM t WHERE age IS NULL",
        "SELECT QUANTILE(age, 0.9) FROM t",
        "SELECT HISTOGRAM(age, 4) FROM t WHERE day < DATE '2020-01-01'",
        "SELECT SUM(free) FROM t",
        "SELECT COUNT(*) FROM t WHERE free < 3",
        "SELECT COUNT(*) FROM t WHERE home = 'a'",
        "SELECT home, COUNT(*) FROM t GROUP BY home",
        "SELECT free, COUNT(*) FROM t GROUP BY free",
        "SELECT COUNT(*) FROM t WHERE sex LIKE '%''%'",
        "SELECT COUNT(*) FROM t WHERE 1 / 0 = 1",
        "SELECT * FROM t",
        "not sql at all",
    ]
)


def outcome(session: Session, sql: str, spend: str) -> tuple[object, ...]:
    """What an analyst sees of an answer apart from its noisy numbers, or the error word for word."""
    try:
        answer = session.answer(sql, spend=spend)
    except VeladoError as error:
        return type(error).__name__, str(error)
    return (
        answer.frame.columns,
        answer.frame.dtypes,
        answer.frame.height,
        answer.guarantee,
        answer.cost,
        answer.how.plan,
        answer.stored,
    )


@settings(max_examples=60)
@given(
    TABLES,
    TABLES,
    st.lists(st.tuples(QUESTIONS, st.sampled_from(["0.1", "0.4", "0.7"])), min_size=1, max_size=6),
)
def test_two_tables_of_one_schema_fail_and_succeed_alike(one: Table, other: Table, asked) -> None:
    with Session(one, budget=1) as first, Session(other, budget=1) as second:
        for sql, spend in asked:
            assert outcome(first, sql, spend) == outcome(second, sql, spend)
        assert first.state().spent == second.state().spent
