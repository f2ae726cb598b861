"""A question built as values, past the SQL text: whatever the SQL refuses is refused there too, before anything is paid.

Each entry was answered, or broke with another error than a refusal, before questions by hand were held to the SQL's rules.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import QueryRefused
from velado.query.session import Session
from velado.query.values import (
    Aggregate,
    And,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Query,
    leaves,
)

pytest.importorskip("sqlglot")
pytest.importorskip("opendp")

SCHEMA = Schema(
    {
        "patient": Column("patient", role="identifier", kind="text", person=True, max_rows=4),
        "card": Column("card", role="identifier", kind="text"),
        "remark": Column("remark", role="other", kind="text", publish=False),
        "age": Column("age", role="quasi", kind="numeric", bounds=(0, 120), step=1),
        "raw": Column("raw", role="other", kind="numeric"),
        "sex": Column("sex", role="quasi", kind="categorical", values=("F", "M")),
        'odd "name"': Column('odd "name"', role="other", kind="categorical", values=("a", "b'c")),
        "town": Column("town", role="other", kind="categorical"),
        "day": Column("day", role="other", kind="date", format="%d/%m/%Y"),
        "many": Column("many", role="other", kind="numeric", bounds=(0, 9_000), step=1),
    }
)
CLOSED = {"patient", "card", "remark"}
COUNT = (Aggregate("count"),)


@pytest.fixture(scope="module")
def session():
    cells = {
        "patient": "p1",
        "card": "c1",
        "remark": "Zebedeu",
        "age": "40",
        "raw": "1",
        "sex": "F",
        'odd "name"': "a",
        "town": "x",
        "day": "01/02/2020",
        "many": "7",
    }
    table = Table.of(pl.DataFrame({name: [text] * 3 for name, text in cells.items()}), SCHEMA, "t")
    with Session(table, budget=1000, each=1) as made:
        yield made


def counting(where: Any) -> Query:
    return Query("t", COUNT, where)


def nested(times: int) -> Predicate:
    part: Predicate = IsNull("age")
    for _ in range(times):
        part = Not(part)
    return part


def doubled(times: int) -> Predicate:
    """A small value in memory that is 2^times tests when it is written out."""
    part: Predicate = IsNull("age")
    for at in range(times):
        part = Or((part, part)) if at % 2 else And((part, part))
    return part


def ladder(times: int) -> Predicate:
    part: Predicate = IsNull("age")
    for at in range(times):
        other = Compare("age", "<", Fraction(at))
        part = Or((part, other)) if at % 2 else And((part, other))
    return part


age = Compare("age", ">", Fraction(3))
REFUSED: dict[str, Any] = {
    "no query": None,
    "bytes": b"SELECT COUNT(*) FROM t",
    "another table": Query("u", COUNT),
    "table of no text": Query(3, COUNT),
    "no aggregate": Query("t", ()),
    "aggregates in a list": Query("t", [Aggregate("count")]),
    "an aggregate of text": Query("t", ("count",)),
    "keys as one text": Query("t", COUNT, keys="sex"),
    "keys in a list": Query("t", COUNT, keys=["sex"]),
    "a key twice": Query("t", COUNT, keys=("sex", "sex")),
    "a key without a domain": Query("t", COUNT, keys=("town",)),
    "a key nobody declared": Query("t", COUNT, keys=("nowhere",)),
    "a key of no text": Query("t", COUNT, keys=(None,)),
    "the person as key": Query("t", COUNT, keys=("patient",)),
    "an identifier as key": Query("t", COUNT, keys=("card",)),
    "too many cells": Query("t", COUNT, keys=("many", "age")),
    "count of the person": Query("t", (Aggregate("count", "patient"),)),
    "count of an identifier": Query("t", (Aggregate("count", "card"),)),
    "count of what is held back": Query("t", (Aggregate("count", "remark"),)),
    "count of nothing declared": Query("t", (Aggregate("count", "nowhere"),)),
    "sum of text": Query("t", (Aggregate("sum", "town"),)),
    "sum of no column": Query("t", (Aggregate("sum"),)),
    "sum without bounds": Query("t", (Aggregate("sum", "raw"),)),
    "an unknown kind": Query("t", (Aggregate("variance", "age"),)),
    "a kind of no text": Query("t", (Aggregate(["count"], "age"),)),
    "an aggregate twice": Query("t", (Aggregate("sum", "age"), Aggregate("sum", "age", alias="b"))),
    "21 aggregates": Query("t", tuple(Aggregate("quantile", "age", Fraction(n, 100)) for n in range(1, 22))),
    "quantile without a level": Query("t", (Aggregate("quantile", "age"),)),
    "quantile at 0": Query("t", (Aggregate("quantile", "age", Fraction(0)),)),
    "quantile above 1": Query("t", (Aggregate("quantile", "age", Fraction(3, 2)),)),
    "quantile at a third": Query("t", (Aggregate("quantile", "age", Fraction(1, 3)),)),
    "quantile too fine": Query("t", (Aggregate("quantile", "age", Fraction(1, 10**7)),)),
    "quantile at a float": Query("t", (Aggregate("quantile", "age", 0.5),)),
    "quantile at NaN": Query("t", (Aggregate("quantile", "age", float("nan")),)),
    "quantile at yes": Query("t", (Aggregate("quantile", "age", True),)),
    "a level for a count": Query("t", (Aggregate("count", at=Fraction(1, 2)),)),
    "bins for a sum": Query("t", (Aggregate("sum", "age", bins=4),)),
    "histogram without bins": Query("t", (Aggregate("histogram", "age"),)),
    "no bins": Query("t", (Aggregate("histogram", "age", bins=0),)),
    "fewer than no bins": Query("t", (Aggregate("histogram", "age", bins=-3),)),
    "more bins than steps": Query("t", (Aggregate("histogram", "age", bins=500),)),
    "too many bins": Query("t", (Aggregate("histogram", "many", bins=1001),)),
    "bins of a float": Query("t", (Aggregate("histogram", "age", bins=4.0),)),
    "bins of yes": Query("t", (Aggregate("histogram", "age", bins=True),)),
    "histogram with another": Query("t", (Aggregate("histogram", "age", bins=4), Aggregate("count"))),
    "an alias that is a column": Query("t", (Aggregate("count", alias="AGE"),)),
    "a long alias": Query("t", (Aggregate("count", alias="a" * 64),)),
    "an alias with a line end": Query("t", (Aggregate("count", alias="a\nb"),)),
    "an alias of no text": Query("t", (Aggregate("count", alias=5),)),
    "one alias twice": Query("t", (Aggregate("count", alias="n"), Aggregate("sum", "age", alias="N"))),
    "an alias that is an interval's": Query(
        "t", (Aggregate("count", alias="n"), Aggregate("sum", "age", alias="n_low"))
    ),
    "one person's rows": counting(Compare("patient", "=", "p1")),
    "rows of an identifier": counting(In("card", ("c1", "c2"))),
    "a pattern on what is held back": counting(Like("remark", "Zeb%")),
    "missing persons": counting(IsNull("patient")),
    "a test nobody declared": counting(IsNull("nowhere")),
    "no predicate": counting("age > 3"),
    "an operator that is SQL": counting(Compare("age", "= 1 OR 1", Fraction(1))),
    "text in order": counting(Compare("town", "<", "x")),
    "number with text": counting(Compare("town", "=", Fraction(1))),
    "text with number": counting(Compare("age", "=", "1")),
    "a day in text": counting(Compare("day", "=", "01/02/2020")),
    "a moment for a day": counting(Compare("day", "=", datetime(2020, 2, 1, 12))),
    "a day for a number": counting(Compare("age", "=", date(2020, 2, 1))),
    "a float": counting(Compare("age", "=", 0.5)),
    "NaN": counting(Compare("age", "=", float("nan"))),
    "infinity": counting(Compare("age", "<", float("inf"))),
    "a Decimal": counting(Compare("age", "<", Decimal(3))),
    "yes": counting(Compare("age", "=", True)),
    "null": counting(Compare("age", "=", None)),
    "a list": counting(Compare("age", "=", [Fraction(1)])),
    "a number without an end": counting(Compare("age", "=", Fraction(1, 3))),
    "a huge number": counting(Compare("age", "<", Fraction(10**400))),
    "a number of a million digits": counting(Compare("age", "<", Fraction(1 << 4_000_000))),
    "a tiny number": counting(Compare("age", "<", Fraction(1, 10**400))),
    "a control character": counting(Compare("town", "=", "a\0b")),
    "half a character": counting(Compare("town", "=", "\ud800")),
    "a long text": counting(Compare("town", "=", "x" * 10_001)),
    "IN of nothing": counting(In("age", ())),
    "IN of a list": counting(In("age", [Fraction(1)])),
    "IN of lists": counting(In("age", ((Fraction(1),), (Fraction(2),)))),
    "IN of several kinds": counting(In("age", (Fraction(1), "2"))),
    "IN of 1,001": counting(In("age", tuple(Fraction(n) for n in range(1_001)))),
    "a pattern on numbers": counting(Like("age", "1%")),
    "a pattern of no text": counting(Like("town", Fraction(1))),
    "AND of nothing": counting(And(())),
    "OR of nothing": counting(Or(())),
    "AND of a list": counting(And([age, IsNull("town")])),
    "AND of no predicate": counting(And((age, None))),
    "NOT of nothing": counting(Not(None)),
    "201 tests": counting(And(tuple(Compare("age", "<>", Fraction(n)) for n in range(201)))),
    "a deep ladder": counting(ladder(150)),
    "a ladder without end": counting(ladder(20_000)),
    "half a trillion tests": counting(doubled(39)),
    "100,000 times not": counting(nested(100_000)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_sql_refuses_is_refused_by_hand_and_costs_nothing(session: Session, name: str) -> None:
    for ask in (session.price, session.answer):
        with pytest.raises(QueryRefused) as told:
            ask(REFUSED[name])
        assert "Zebedeu" not in str(told.value) and "p1" not in str(told.value)
    assert session.state().spent == 0


def test_a_class_that_lies_about_its_canonical_form_is_not_believed(session: Session) -> None:
    class Liar(Query):
        def canonical(self) -> str:
            return Query("t", COUNT).canonical()

    made = session.price(Liar("t", (Aggregate("sum", "age"),)))
    assert made.query.canonical() == Query("t", (Aggregate("sum", "age"),)).canonical()
    assert type(made.query) is Query


def test_a_refusal_does_not_depend_on_what_was_asked_before(session: Session) -> None:
    session.price(Query("t", (Aggregate("quantile", "age", Fraction(1, 2)),)))
    # 0.5 equals one half and has its hash, so a cache of plans would know it.
    with pytest.raises(QueryRefused):
        session.price(Query("t", (Aggregate("quantile", "age", 0.5),)))  # type: ignore[arg-type]


def test_by_hand_and_as_text_are_one_question(session: Session) -> None:
    text = (
        'SELECT sex, SUM(age) AS "n ""x""", QUANTILE(age, 0.25), COUNT(town) FROM t WHERE NOT (age BETWEEN 3 AND 1.5e2 '
        "OR town IN ('it''s', 'b')) AND day >= DATE '0987-01-02' AND town LIKE '%a_' GROUP BY sex"
    )
    by_hand = Query(
        "t",
        (
            Aggregate("sum", "age", alias='n "x"'),
            Aggregate("quantile", "age", Fraction(1, 4)),
            Aggregate("count", "town"),
        ),
        # In no canonical order, with an AND inside an AND, a NOT of a NOT, and a whole number.
        And(
            (
                Not(Not(Like("town", "%a_"))),
                And(
                    (
                        Not(
                            Or(
                                (
                                    In("town", ("it's", "b", "b")),
                                    And((Compare("age", ">=", 3), Compare("age", "<=", Fraction(150)))),
                                )
                            )
                        ),
                        Compare("day", ">=", date(987, 1, 2)),
                    )
                ),
            )
        ),
        ("sex",),
    )
    assert session.price(by_hand) == session.price(text)
    # Sums nested to the left, as `a AND b AND c ...` is read, are one AND, however long.
    long: Predicate = IsNull("age")
    for number in range(150):
        long = And((long, Compare("age", "<>", Fraction(number))))
    listed = " AND ".join(["age IS NULL", *(f"age <> {number}" for number in range(150))])
    assert session.price(counting(long)) == session.price(f"SELECT COUNT(*) FROM t WHERE {listed}")


NAMES = st.sampled_from([*SCHEMA.columns, "nowhere", "AGE"])
OPEN = st.sampled_from(sorted(set(SCHEMA.columns) - CLOSED))
TEXTS = st.one_of(st.sampled_from(["F", "x", "it's", "%_", 'a"b', "--", "\\", "é"]), st.text(max_size=4))
NUMBERS = st.one_of(
    st.integers(-200, 200).map(Fraction),
    st.builds(lambda m, e: Fraction(m) * Fraction(10) ** e, st.integers(-(10**70), 10**70), st.integers(-365, 365)),
    st.fractions(max_denominator=20),
)  # fmt: skip
VALUES = st.one_of(NUMBERS, TEXTS, st.dates(), st.integers(-9, 9), st.floats(), st.none(), st.booleans())
COLUMNS = st.one_of(OPEN, NAMES)
TESTS = st.one_of(
    st.builds(Compare, st.just("age"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS),
    st.builds(Compare, COLUMNS, st.sampled_from(["=", "<>", "<", ">=", "LIKE"]), VALUES),
    st.builds(In, st.just("town"), st.lists(TEXTS, max_size=4).map(tuple)),
    st.builds(In, COLUMNS, st.lists(VALUES, max_size=3).map(tuple)),
    st.builds(Like, COLUMNS, TEXTS),
    st.builds(IsNull, COLUMNS),
)
PREDICATES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
AGGREGATES = st.one_of(
    st.builds(Aggregate, st.sampled_from(["count", "sum", "avg", "min", "max"]), st.just("age")),
    st.builds(
        Aggregate,
        st.sampled_from(["count", "sum", "avg", "min", "max", "quantile", "histogram"]),
        st.one_of(st.none(), COLUMNS),
        st.one_of(st.none(), st.sampled_from([Fraction(1, 4), Fraction(9, 10), Fraction(1, 7), Fraction(1)])),
        st.one_of(st.none(), st.integers(-1, 130)),
        st.one_of(st.just(""), st.text(max_size=5), st.sampled_from(["n", 'a "b"', "age", "n_low"])),
    ),
)
QUERIES = st.builds(
    Query,
    st.sampled_from(["t", "t", "t", "T", 't"; --']),
    st.lists(AGGREGATES, min_size=0, max_size=3).map(tuple),
    st.one_of(st.none(), PREDICATES),
    st.lists(st.one_of(st.just("sex"), COLUMNS), max_size=2).map(tuple),
)


def written(query: Query) -> str:
    """The question as SQL, by a writer of the tests' own: every part in brackets, numbers with an exponent."""

    def name(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    def value(given: Any) -> str:
        if isinstance(given, str):
            return "'" + given.replace("'", "''") + "'"
        if isinstance(given, date):
            return f"DATE '{given.isoformat()}'"
        number, places = Fraction(given), 0
        while number.denominator != 1:
            number, places = number * 10, places + 1
        digits = str(abs(number.numerator))
        while digits.endswith("0") and digits != "0":
            digits, places = digits[:-1], places - 1
        sign = "-" if number < 0 else ""
        if 0 <= places <= 60:
            digits = digits.zfill(places + 1)
            return f"{sign}{digits[: len(digits) - places]}.{digits[len(digits) - places :]}"
        after = min(60, len(digits) - 1) if places <= 300 else 60
        # An exponent ends at 300; what is beyond is written out.
        beyond = max(0, after - places - 300)
        digits, places = digits + "0" * beyond, places + beyond
        digits = digits.zfill(after + 1)
        whole, rest = digits[: len(digits) - after], digits[len(digits) - after :]
        return f"{sign}{whole}.{rest}e{after - places}"

    def test(part: Any) -> str:
        match part:
            case Compare(column, operator, given):
                return f"{name(column)} {operator} {value(given)}"
            case In(column, values):
                return f"{name(column)} IN ({', '.join(map(value, values))})"
            case Like(column, pattern):
                return f"{name(column)} LIKE {value(pattern)}"
            case IsNull(column):
                return f"{name(column)} IS NULL"
            case Not(inner):
                return f"NOT ({test(inner)})"
            case And(parts):
                return " AND ".join(f"({test(inner)})" for inner in parts)
        return " OR ".join(f"({test(inner)})" for inner in part.parts)

    items = []
    for one in query.aggregates:
        column = "*" if one.column is None else name(one.column)
        more = "" if one.at is None else f", {value(one.at)}"
        more += "" if one.bins is None else f", {one.bins}"
        items.append(f"{one.kind.upper()}({column}{more})" + (f" AS {name(one.alias)}" if one.alias else ""))
    text = f"SELECT {', '.join(items)} FROM {name(query.table)}"
    text += "" if query.where is None else f" WHERE {test(query.where)}"
    return text + (f" GROUP BY {', '.join(map(name, query.keys))}" if query.keys else "")


@pytest.mark.slow
@settings(max_examples=300)
@given(QUERIES)
def test_any_query_by_hand_is_refused_or_is_what_its_text_asks(session: Session, query: Query) -> None:
    try:
        made = session.price(query)
    except QueryRefused:
        return
    assert made == session.price(written(query))
    # And this by itself, whatever the reader of SQL thinks:
    touched = {one.column for one in query.aggregates} | set(query.keys)
    touched |= {leaf.column for leaf in leaves(query.where)}
    assert touched <= set(SCHEMA.columns) - CLOSED | {None} and query.table == "t"
    for leaf in leaves(query.where):
        for value in (leaf.value,) if isinstance(leaf, Compare) else getattr(leaf, "values", ()):
            kind = SCHEMA.columns[leaf.column].kind
            wanted = {"numeric": Fraction | int, "date": date}.get(kind, str)
            assert isinstance(value, wanted) and not isinstance(value, bool | datetime)
    assert all(one.kind == "count" or one.column in ("age", "many") for one in query.aggregates)


PLAIN = st.text(st.characters(exclude_categories=["C"]), max_size=4)
DECIMALS = st.one_of(
    st.integers(-200, 200).map(Fraction),
    st.builds(
        lambda m, e: Fraction(m) * Fraction(10) ** e, st.integers(-(10**70), 10**70), st.integers(-365, 365)
    ),
)
GOOD_TESTS = st.one_of(
    st.builds(Compare, st.just("age"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), DECIMALS),
    st.builds(Compare, st.just('odd "name"'), st.sampled_from(["=", "<>"]), PLAIN),
    st.builds(Compare, st.just("day"), st.sampled_from(["=", "<", ">"]), st.dates()),
    st.builds(In, st.just("town"), st.lists(PLAIN, min_size=1, max_size=4).map(tuple)),
    st.builds(Like, st.sampled_from(["town", "sex"]), PLAIN),
    st.builds(IsNull, st.sampled_from(["age", "raw", "day", 'odd "name"'])),
)
GOOD_PREDICATES = st.recursive(
    GOOD_TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(
    st.sampled_from(["count", "sum", "avg", "min"]),
    st.sampled_from(["age", "many"]),
    st.one_of(st.none(), GOOD_PREDICATES),
    st.sampled_from([(), ("sex",), ('odd "name"', "sex")]),
)
def test_what_the_text_can_ask_can_be_asked_by_hand(
    session: Session, kind: Any, column: str, where: Predicate | None, keys: tuple[str, ...]
) -> None:
    query = Query("t", (Aggregate(kind, column), Aggregate("quantile", "age", Fraction(1, 8))), where, keys)
    try:
        made = session.price(written(query))
    except QueryRefused:
        # Beyond the digits or the exponent that a number may have.
        with pytest.raises(QueryRefused):
            session.price(query)
    else:
        assert session.price(query) == made
