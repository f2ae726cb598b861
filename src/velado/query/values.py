"""What may be asked, as frozen values: the SQL text ends here, and engines see nothing else.

A query is one table, some aggregates, a predicate and keys. Two texts that mean the same have one canonical form,
and that form is what the ledger knows a query by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Literal

Value = str | Fraction | date
Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
AggregateKind = Literal["count", "sum", "avg", "min", "max", "quantile", "histogram"]


@dataclass(frozen=True)
class Compare:
    """`column operator value`; a missing cell is unknown, as in SQL.

    >>> Query("t", (Aggregate("count"),), Compare("age", ">", Fraction(60))).columns()
    ('age',)
    """

    column: str
    operator: Comparison
    value: Value


@dataclass(frozen=True)
class In:
    """`column IN (values)`, values sorted and different.

    >>> predicate_form(In("sex", ("F", "M")))
    ['in', 'sex', ['text', 'F'], ['text', 'M']]
    """

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Like:
    """`column LIKE pattern`: % is any text, _ one character, no escape, case counts.

    >>> predicate_form(Like("city", "Ri%"))
    ['like', 'city', 'Ri%']
    """

    column: str
    pattern: str


@dataclass(frozen=True)
class IsNull:
    """`column IS NULL`: true for a missing cell, never unknown.

    >>> predicate_form(IsNull("age"))
    ['null', 'age']
    """

    column: str


@dataclass(frozen=True)
class Not:
    """`NOT part`; not unknown is unknown.

    >>> predicate_form(Not(IsNull("age")))
    ['not', ['null', 'age']]
    """

    part: Predicate


@dataclass(frozen=True)
class And:
    """Every part, at least two, in canonical order.

    >>> predicate_form(And((IsNull("a"), IsNull("b"))))
    ['and', ['null', 'a'], ['null', 'b']]
    """

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """Any part, at least two, in canonical order.

    >>> predicate_form(Or((IsNull("a"), IsNull("b"))))
    ['or', ['null', 'a'], ['null', 'b']]
    """

    parts: tuple[Predicate, ...]


Predicate = Compare | In | Like | IsNull | Not | And | Or


@dataclass(frozen=True)
class Aggregate:
    """One number (or, for a histogram, one per bin) to answer for every key.

    *column* None is `COUNT(*)`. *at* is a quantile's level strictly between 0 and 1, *bins* a histogram's number of
    equal cells between the declared bounds. *alias* names the column of the result and does not change the question.

    >>> Aggregate("quantile", "age", at=Fraction(1, 2)).kind
    'quantile'
    """

    kind: AggregateKind
    column: str | None = None
    at: Fraction | None = None
    bins: int | None = None
    alias: str = ""


@dataclass(frozen=True)
class Query:
    """What is asked of one table: aggregates, of the rows where the predicate is true, for every key.

    With *rollup* for every node of the keys' hierarchy too: all rows, the levels of their taxonomies, and the keys; with *least* for keys
    alone whose noisy count is at least that.

    >>> Query("stays", (Aggregate("avg", "age", alias="mean"),), keys=("sex",)).canonical()
    '{"table":"stays","aggregates":[["avg","age",null,null]],"where":null,"keys":["sex"]}'
    """

    table: str
    aggregates: tuple[Aggregate, ...]
    where: Predicate | None = None
    keys: tuple[str, ...] = ()
    rollup: bool = False
    least: int | None = None

    def canonical(self) -> str:
        """One text for every way to ask the same: aliases left out, parts in order, numbers as fractions.

        The order of aggregates and keys is kept because it is the order of the answer's columns.
        """
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        levels = [None if a.at is None else str(a.at) for a in self.aggregates]
        aggregates = [[a.kind, a.column, at, a.bins] for a, at in zip(self.aggregates, levels, strict=True)]
        where = None if self.where is None else predicate_form(self.where)
        form: dict[str, object] = {
            "table": self.table,
            "aggregates": aggregates,
            "where": where,
            "keys": list(self.keys),
        }
        # Left out where it is not asked for, so that a question has the form it always had.
        if self.rollup:
            form["rollup"] = True
        if self.least is not None:
            form["least"] = self.least
        return json.dumps(form, ensure_ascii=False, separators=(",", ":"))

    def columns(self) -> tuple[str, ...]:
        """Every column the query touches, each once, sorted."""
        touched = {a.column for a in self.aggregates if a.column is not None} | set(self.keys)
        touched |= {leaf.column for leaf in leaves(self.where)}
        return tuple(sorted(touched))


def value_form(value: Value) -> list[str]:
    """A literal with its type, so that the text '1' and the number 1 differ.

    >>> value_form("1"), value_form(Fraction(1))
    (['text', '1'], ['number', '1'])
    """
    if isinstance(value, Fraction):
        return ["number", str(value)]
    if isinstance(value, date):
        return ["date", value.isoformat()]
    return ["text", value]


def predicate_form(predicate: Predicate) -> list[object]:
    """A predicate as nested lists, for the canonical text and for sorting parts.

    >>> predicate_form(Compare("age", "<", Fraction(1, 2)))
    ['<', 'age', ['number', '1/2']]
    """
    match predicate:
        case Compare(column, operator, value):
            return [operator, column, value_form(value)]
        case In(column, values):
            return ["in", column, *[value_form(value) for value in values]]
        case Like(column, pattern):
            return ["like", column, pattern]
        case IsNull(column):
            return ["null", column]
        case Not(part):
            return ["not", predicate_form(part)]
        case And(parts):
            return ["and", *[predicate_form(part) for part in parts]]
        case Or(parts):
            return ["or", *[predicate_form(part) for part in parts]]


def leaves(predicate: Predicate | None) -> Iterator[Compare | In | Like | IsNull]:
    """The predicate's tests of single columns, left to right.

    >>> [leaf.column for leaf in leaves(And((IsNull("a"), Not(IsNull("b")))))]
    ['a', 'b']
    """
    if predicate is None:
        return
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves(part)
    elif isinstance(predicate, Not):
        yield from leaves(predicate.part)
    else:
        yield predicate
