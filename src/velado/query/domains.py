"""The public keys of a GROUP BY: what the owner declared, never what the rows hold.

A key that appears because somebody has it, or is absent because nobody does, tells about people. So every declared
value is answered, zeros too, and what is missing or undeclared falls together into one more cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from math import gcd
from typing import Any

from velado.data.numbers import with_point
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.taxonomy import ROOT_LABEL
from velado.data.toml_keys import toml_key
from velado.errors import QueryRefused
from velado.query.needs import Grid, GroupKey
from velado.query.values import Aggregate
from velado.text import say

MOST_VALUES = 10_000
MOST_SPARSE = 1 << 20
"""Of keys of which only those above a threshold are shown."""


def key_of(schema: Schema, column: str, limit: int = MOST_VALUES) -> GroupKey:
    """The declared domain of *column*: its `values`, else the leaves of its taxonomy, else the numbers of its grid.

    Texts that mean "no value" are left out, since their cells are missing. A number's texts are the exact decimals of
    index x step, `2` or `0.5`, with the schema's decimal mark; a row belongs to the one it equals. A taxonomy counts
    when its values stand in a file or in the schema; one that is built from the rows does not.

    >>> schema = Schema({"sex": Column("sex", values=("F", "M"))})
    >>> key_of(schema, "sex")
    GroupKey(column='sex', domain=('F', 'M'))
    """
    declared = schema.columns[column]
    domain: tuple[str, ...]
    if declared.values is not None:
        domain = _checked(declared, declared.values, schema.decimal)
    elif declared.kind == "numeric":
        domain = _numbers(declared, limit, schema.decimal)
    elif declared.kind == "date":
        raise QueryRefused(
            say("Column '{column}' is a date without declared values, so it has no keys.", column=column),
            "Days found in the rows would tell who is there.",
            say(
                "Filter by it in WHERE, or declare the days as values in [columns.{column}].",
                column=toml_key(column),
            ),
        )
    else:
        domain = _leaves(declared)
    if declared.kind not in ("numeric", "date"):
        domain = tuple(text for text in domain if text not in schema.missing_texts(column))
    if not domain or len(domain) > limit:
        raise QueryRefused(
            say(
                "The declared domain of column '{column}' has {domain:,} values.",
                column=column,
                domain=len(domain),
            ),
            say(
                "At least 1 and at most {limit:,} keys can be answered, because every one of them is.",
                limit=limit,
            ),
            say("Group by a coarser column, or leave out small keys with HAVING COUNT(*) >= 50."),
        )
    return GroupKey(column, domain)


def most_values(least: int | None) -> int:
    """How many declared values a key may have: more where only those above a threshold are shown.

    >>> most_values(None), most_values(20)
    (10000, 1048576)
    """
    return MOST_VALUES if least is None else MOST_SPARSE


def check_above(aggregates: Sequence[Aggregate], keys: Sequence[str]) -> None:
    """Nothing, where these can be answered for keys above a threshold alone; else QueryRefused.

    >>> check_above((Aggregate("count"),), ("city",))
    """
    if len(aggregates) != 1 or aggregates[0].kind != "count" or not keys:
        raise QueryRefused(
            "HAVING goes with something else than one COUNT of keys.",
            "It leaves out keys by their noisy count, so that count is what is answered.",
            "Ask for COUNT(*) or COUNT of a column alone, with GROUP BY.",
        )


def check_rolled_up(aggregates: Sequence[Aggregate]) -> None:
    """Nothing, where a hierarchy of these can be answered; else QueryRefused.

    >>> check_rolled_up((Aggregate("count"),))
    """
    if len(aggregates) != 1 or aggregates[0].kind != "count":
        raise QueryRefused(
            "A hierarchy is asked with something else than one COUNT.",
            "Its levels are made to agree, which is done for counts.",
            "Ask for COUNT(*) or COUNT of a column alone with GROUP BY ROLLUP.",
        )


def _checked(column: Column, values: tuple[str, ...], decimal: str) -> tuple[str, ...]:
    """The declared values, where each is of the column's kind and no two are one number or one day."""
    meant: set[object] = set()
    try:
        for text in values:
            if column.kind == "numeric":
                meant.add(Fraction(with_point(text.strip(), decimal)))
            elif column.kind == "date":
                meant.add(datetime.strptime(text, column.format).date())
            else:
                meant.add(text)
    except (ValueError, ZeroDivisionError):
        meant = set()
    if len(meant) != len(values):
        raise QueryRefused(
            say(
                "The values declared for column '{column}' are not all different {kind} values.",
                column=column.name,
                kind=column.kind,
            ),
            "A row must belong to one key at most.",
            say("Correct values, kind or format in [columns.{column}].", column=toml_key(column.name)),
        )
    return values


def _numbers(column: Column, limit: int, decimal: str) -> tuple[str, ...]:
    if column.step is None or column.bounds is None:
        raise QueryRefused(
            say(
                "Column '{column}' is numeric without declared bounds and step, so it has no keys.",
                column=column.name,
            ),
            "Numbers are grouped by their declared grid, and numbers found in the rows would tell of them.",
            say(
                "Declare bounds and step in [columns.{column}], or ask for a HISTOGRAM.",
                column=toml_key(column.name),
            ),
        )
    grid = Grid.of(column)
    if grid.high - grid.low >= limit:
        raise QueryRefused(
            say(
                "The grid of column '{column}' has {numbers:,} numbers.",
                column=column.name,
                numbers=grid.high - grid.low + 1,
            ),
            say("At most {limit:,} keys can be answered, because every one of them is.", limit=limit),
            say(
                "Ask for a HISTOGRAM of it, declare a wider step, or leave out small keys with HAVING COUNT(*) >= 50."
            ),
        )
    if grid.step.denominator == 1:
        return tuple(str(index * grid.step.numerator) for index in range(grid.low, grid.high + 1))
    numbers = (grid.step * index for index in range(grid.low, grid.high + 1))
    return tuple(decimal_text(number).replace(".", decimal) for number in numbers)


def decimal_text(value: Fraction) -> str:
    """A number with finitely many decimals, written out exactly without an exponent or trailing zeros.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(-3))
    ('0.125', '-3')
    """
    # Only factors 2 and 5 of the denominator end; the larger power says how many decimals there are.
    places, left = 0, value.denominator
    while left != 1:
        places += 1
        left //= gcd(left, 10)
    digits = str(abs(int(value * 10**places))).zfill(places + 1)
    whole, rest = (digits[:-places], digits[-places:]) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + ("." + rest if rest else "")


def _leaves(column: Column) -> tuple[str, ...]:
    spec = column.taxonomy
    found: Iterator[str] | None = None
    if spec is not None and spec.paths is not None:
        found = (path[0] for path in spec.paths if path)
    elif spec is not None and spec.tree is not None:
        found = _below(spec.tree)
    if found is None:
        raise QueryRefused(
            say("Column '{column}' has no declared domain.", column=column.name),
            _why_none(spec),
            say(
                'Declare values = ["...", "..."] in [columns.{column}], or a taxonomy file.',
                column=toml_key(column.name),
            ),
        )
    return tuple(dict.fromkeys(leaf for leaf in found if leaf not in ("", ROOT_LABEL)))


def _why_none(spec: TaxonomySpec | None) -> str:
    if spec is None:
        return say("Keys taken from the rows would tell who is there, so a public list is needed.")
    if spec.file is None:
        return say(
            "Its taxonomy is built from the rows, and keys taken from the rows would tell who is there."
        )
    return say("Its taxonomy file has not been read together with the schema.")


def _below(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for inner in node.values():
            yield from _below(inner)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for leaf in node:
            yield str(leaf)
    else:
        yield str(node)
