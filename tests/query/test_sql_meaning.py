"""A query means what was written: the same in any style, and the same rows as a real engine finds for the text.

Hypothesis builds conditions as nested values and writes them down in many styles. What we read is evaluated row by row
under three-valued logic and compared with what DuckDB counts for the text itself.
"""

from __future__ import annotations

import operator as op
import random
import re
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.query.sql import parse
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Query

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

SCHEMA = Schema(
    {
        "age": Column("age", kind="numeric", bounds=(0, 8), step=0.5),
        "Cost": Column("Cost", kind="numeric", bounds=(-4, 4), step=0.25),
        "sex": Column("sex", values=("F", "M")),
        "the note": Column("the note", kind="text", values=("", "a", "ab", "b%", "it's")),
        "day": Column("day", kind="date"),
    }
)
DAYS = [date(2020, 2, 27) + timedelta(days=i) for i in range(4)]
ROWS = [
    {"age": age, "Cost": cost, "sex": sex, "the note": note, "day": day}
    for number, (age, cost, sex, note, day) in enumerate(
        (age, cost, sex, note, day)
        for age in (None, 0, 0.5, 3, 8)
        for cost in (None, -1.25, 0, 4)
        for sex in (None, "F", "M")
        for note in (None, "", "a", "ab", "b%", "it's")
        for day in (None, *DAYS)
    )
    if number % 29 in (0, 17)
]

# -- conditions as values: ("cmp", column, operator, literal), ("in", column, literals), ("between", column, low, high),
# ("like", column, pattern), ("null", column), ("not", part), ("and", parts), ("or", parts)
numbers = st.sampled_from([Fraction(n, 4) for n in range(-6, 34)])
days = st.sampled_from(DAYS)
texts = st.sampled_from(["", "a", "ab", "b%", "it's", "F", "M", "f"])
ordered = st.one_of(
    st.tuples(st.sampled_from(["age", "Cost"]), st.just(numbers)), st.tuples(st.just("day"), st.just(days))
)
COMPARISONS = {"=": op.eq, "<>": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}


@st.composite
def single_tests(draw):
    form = draw(st.sampled_from(["cmp", "in", "between", "like", "null", "text"]))
    if form == "null":
        return "null", draw(st.sampled_from(list(SCHEMA.columns)))
    if form == "like":
        pattern = draw(st.sampled_from(["a", "a%", "%", "_", "__", "b%", "%'s", ""]))
        return "like", draw(st.sampled_from(["sex", "the note"])), pattern
    if form == "text":
        column = draw(st.sampled_from(["sex", "the note"]))
        if draw(st.booleans()):
            return "in", column, draw(st.lists(texts, min_size=1, max_size=3))
        return "cmp", column, draw(st.sampled_from(["=", "<>"])), draw(texts)
    column, values = draw(ordered)
    if form == "cmp":
        return "cmp", column, draw(st.sampled_from(list(COMPARISONS))), draw(values)
    if form == "in":
        return "in", column, draw(st.lists(values, min_size=1, max_size=3))
    return "between", column, draw(values), draw(values)


conditions = st.recursive(
    single_tests(),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=8,
)


class Writer:
    """Writes a condition down in a style of its own seed: case, spaces, brackets, order, sides, quotes."""

    def __init__(self, seed: int, shuffle: bool = True) -> None:
        self.chance = random.Random(seed)
        self.shuffle = shuffle

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def sometimes(self) -> bool:
        return self.chance.random() < 0.5

    def mixed(self, items):
        return self.chance.sample(items, len(items)) if self.shuffle else items

    def word(self, text: str) -> str:
        return self.one(text.upper(), text.lower(), text.title())

    def space(self) -> str:
        return self.one(" ", " ", "  ", "\n", "\t", " /* a remark */ ", " -- it's one\n")

    def join(self, *parts: str) -> str:
        return self.space().join(parts)

    def name(self, column: str) -> str:
        if column == "the note" or self.sometimes():
            return f'"{column}"'
        return self.one(column, column.lower(), f"{self.word('people')}.{column}")

    def literal(self, value) -> str:
        if isinstance(value, Fraction):
            text = (
                str(float(value))
                if value.denominator != 1
                else self.one(str(value), f"{value}.0", f"{value}e0")
            )
            return text
        if isinstance(value, date):
            return self.one(f"{self.word('date')} '{value}'", f"'{value}'")
        return "'" + value.replace("'", "''") + "'"

    def write(self, node) -> str:
        text = self._write(node)
        return f"({text})" if self.sometimes() else text

    def _write(self, node) -> str:
        match node:
            case ("cmp", column, operator, value):
                flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
                shown = {"<>": self.one("<>", "!=")}
                if self.sometimes():
                    return self.join(self.literal(value), shown.get(flipped, flipped), self.name(column))
                return self.join(self.name(column), shown.get(operator, operator), self.literal(value))
            case ("in", column, values):
                again = self.mixed(values)
                listed = "(" + ", ".join(self.literal(value) for value in again) + ")"
                return self.join(self.name(column), self.word("in"), listed)
            case ("between", column, low, high):
                if self.shuffle and self.sometimes():
                    both = [("cmp", column, ">=", low), ("cmp", column, "<=", high)]
                    return "(" + self._write(("and", both)) + ")"
                parts = (self.word("between"), self.literal(low), self.word("and"), self.literal(high))
                return self.join(self.name(column), *parts)
            case ("like", column, pattern):
                return self.join(self.name(column), self.word("like"), self.literal(pattern))
            case ("null", column):
                return self.join(self.name(column), self.word("is"), self.word("null"))
            case ("not", part):
                return self._negated(part)
            case (word, parts):
                again = self.mixed(parts)
                # Brackets are left out only where precedence makes up for them.
                return self.space().join(
                    part if index == 0 else self.join(self.word(word), part)
                    for index, part in enumerate(self._part(word, part) for part in again)
                )

    def _part(self, word: str, part) -> str:
        if part[0] in ("and", "or") and part[0] != word and not (word == "or" and part[0] == "and"):
            return "(" + self._write(part) + ")"
        return self.write(part)

    def _negated(self, part) -> str:
        positive = self._write(part)
        if part[0] in ("in", "between", "like") and self.sometimes() and not positive.startswith("("):
            word = part[0]
            at = re.search(rf"\b{word}\b(?=(?:[^']*'[^']*')*[^']*$)", positive, flags=re.IGNORECASE)
            if at is not None and "--" not in positive and "/*" not in positive:
                return f"{positive[: at.start()]}{self.word('not')} {positive[at.start() :]}"
        if part[0] == "null" and self.sometimes():
            return self.join(self.name(part[1]), self.word("is"), self.word("not"), self.word("null"))
        return self.join(self.word("not"), f"({positive})" if part[0] in ("and", "or") else positive)


def query_text(seed: int, condition) -> str:
    writer = Writer(seed)
    head = writer.join(
        writer.word("select"), writer.one("count(*)", "COUNT ( * )", "Count(*) AS n"), writer.word("from")
    )
    tail = writer.join(
        writer.one("people", "PEOPLE", '"people"'), writer.word("where"), writer.write(condition)
    )
    return head + writer.space() + tail + writer.one("", ";", " -- done")


# -- two evaluators: of what was written, and of what was read


def written(node, row):
    """True, False or None (unknown) for a condition as Hypothesis made it."""
    match node:
        case ("cmp", column, operator, value):
            return compared(row[column], operator, value)
        case ("in", column, values):
            return either([compared(row[column], "=", value) for value in values])
        case ("between", column, low, high):
            return both([compared(row[column], ">=", low), compared(row[column], "<=", high)])
        case ("like", column, pattern):
            return like(row[column], pattern)
        case ("null", column):
            return row[column] is None
        case ("not", part):
            return negate(written(part, row))
        case ("and", parts):
            return both([written(part, row) for part in parts])
        case ("or", parts):
            return either([written(part, row) for part in parts])


def understood(predicate, row):
    """The same for a predicate as it was read."""
    match predicate:
        case Compare(column, operator, value):
            return compared(row[column], operator, value)
        case In(column, values):
            return either([compared(row[column], "=", value) for value in values])
        case Like(column, pattern):
            return like(row[column], pattern)
        case IsNull(column):
            return row[column] is None
        case Not(part):
            return negate(understood(part, row))
        case And(parts):
            return both([understood(part, row) for part in parts])
        case Or(parts):
            return either([understood(part, row) for part in parts])


def compared(cell, operator, value):
    if cell is None:
        return None
    cell = Fraction(cell) if isinstance(cell, int | float) else cell
    return COMPARISONS[operator](cell, value)


def like(cell, pattern):
    if cell is None:
        return None
    form = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch(form, cell, flags=re.DOTALL) is not None


def negate(value):
    return None if value is None else not value


def both(values):
    return False if False in values else None if None in values else True


def either(values):
    return True if True in values else None if None in values else False


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    connection.execute('CREATE TABLE people (age DOUBLE, "Cost" DOUBLE, sex TEXT, "the note" TEXT, day DATE)')
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", [list(row.values()) for row in ROWS])
    yield connection
    connection.close()


def check_meaning(engine, condition, seeds) -> None:
    texts = [query_text(seed, condition) for seed in seeds]
    queries = [parse(text, SCHEMA, "people") for text in texts]
    truths = [written(condition, row) for row in ROWS]
    for text, query in zip(texts, queries, strict=True):
        assert isinstance(query, Query)
        assert [understood(query.where, row) for row in ROWS] == truths, text
        assert engine.execute(text).fetchone()[0] == truths.count(True), text
        assert query.canonical() == queries[0].canonical(), texts


seeds = st.lists(st.integers(0, 2**32), min_size=2, max_size=2)


@settings(max_examples=80)
@given(condition=conditions, seeds=seeds)
def test_a_condition_in_any_style_means_what_was_written_to_us_and_to_a_real_engine(engine, condition, seeds):
    check_meaning(engine, condition, seeds)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(condition=conditions, seeds=seeds)
def test_many_more_conditions_mean_what_was_written(engine, condition, seeds):
    check_meaning(engine, condition, seeds)


@settings(max_examples=100)
@given(one=conditions, other=conditions, seeds=seeds)
def test_equal_canonical_texts_are_never_two_meanings(one, other, seeds):
    first, second = (
        parse(query_text(seed, part), SCHEMA, "people")
        for seed, part in zip(seeds, (one, other), strict=True)
    )
    if any(written(one, row) is not written(other, row) for row in ROWS):
        assert first.canonical() != second.canonical()


AGGREGATES = {
    "count(*)": ("count", None, None),
    'count("the note")': ("count", "the note", None),
    "sum(age)": ("sum", "age", None),
    'avg("Cost")': ("avg", "Cost", None),
    "min(cost)": ("min", "Cost", None),
    "max(people.age)": ("max", "age", None),
    "median(age)": ("quantile", "age", Fraction(1, 2)),
    "quantile(cost, 0.5)": ("quantile", "Cost", Fraction(1, 2)),
    "percentile_disc(0.25) within group (order by age)": ("quantile", "age", Fraction(1, 4)),
}


def shouted(text: str) -> str:
    return "".join(
        part if index % 2 else part.upper() for index, part in enumerate(re.split('(".*?")', text))
    )


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    chosen=st.lists(st.sampled_from(list(AGGREGATES)), min_size=1, max_size=9, unique=True),
    keys=st.lists(st.sampled_from(["sex", "the note", "age"]), max_size=3, unique=True),
)
def test_aggregates_and_keys_come_back_as_they_were_asked(seed, chosen, keys):
    writer = Writer(seed)
    shown = writer.mixed(keys)[: seed % (len(keys) + 1)]
    items = [*map(writer.name, shown), *(writer.one(text, shouted(text)) for text in chosen)]
    group = f" {writer.word('group by')} {', '.join(map(writer.name, keys))}" if keys else ""
    text = f"{writer.word('select')} {', '.join(writer.mixed(items))} {writer.word('from')} people{group}"
    query = parse(text, SCHEMA, "people")
    assert query.keys == tuple(keys)
    asked = sorted(str(AGGREGATES[text]) for text in chosen)
    assert sorted(str((a.kind, a.column, a.at)) for a in query.aggregates) == asked
    heads = [a.alias + end for a in query.aggregates for end in ("", "_low", "_high")] + list(query.keys)
    assert len({head.casefold() for head in heads}) == len(heads)
