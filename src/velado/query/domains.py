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
from velado.errors import QueryRefused
from velado.query.needs import Grid, GroupKey

MOST_VALUES = 10_000


def key_of(schema: Schema, column: str, limit: int = MOST_VALUES) -> GroupKey:
    """The declared domain of *column*: its `values`, else the leaves of its taxonomy, else the numbers of its grid.

    Texts that mean "no value" are left out, since their cells are missing. A number's texts are the exact decimals of
    index x step, `2` or `0.5`, with the schema's decimal mark; a row belongs to the one it equals. A taxonomy counts
    when its values stand in a file or in the schema; one that is built from the rows does not.
    """
    declared = schema.columns[column]
    domain: tuple[str, ...]
    if declared.values is not None:
        domain = _checked(declared, declared.values, schema.decimal)
    elif declared.kind == "numeric":
        domain = _numbers(declared, limit, schema.decimal)
    elif declared.kind == "date":
        raise QueryRefused(
            f"Column '{column}' is a date without declared values, so it has no keys.",
            "Days found in the rows would tell who is there.",
            f"Filter by it in WHERE, or declare the days as values in [columns.{column}].",
        )
    else:
        domain = _leaves(declared)
    if declared.kind not in ("numeric", "date"):
        domain = tuple(text for text in domain if text not in schema.missing_values)
    if not domain or len(domain) > limit:
        raise QueryRefused(
            f"The declared domain of column '{column}' has {len(domain):,} values.",
            f"At least 1 and at most {limit:,} keys can be answered, because every one of them is.",
            "Group by a coarser column.",
        )
    return GroupKey(column, domain)


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
            f"The values declared for column '{column.name}' are not all different {column.kind} values.",
            "A row must belong to one key at most.",
            f"Correct values, kind or format in [columns.{column.name}].",
        )
    return values


def _numbers(column: Column, limit: int, decimal: str) -> tuple[str, ...]:
    if column.step is None or column.bounds is None:
        raise QueryRefused(
            f"Column '{column.name}' is numeric without declared bounds and step, so it has no keys.",
            "Numbers are grouped by their declared grid, and numbers found in the rows would tell of them.",
            f"Declare bounds and step in [columns.{column.name}], or ask for a HISTOGRAM.",
        )
    grid = Grid.of(column)
    if grid.high - grid.low >= limit:
        raise QueryRefused(
            f"The grid of column '{column.name}' has {grid.high - grid.low + 1:,} numbers.",
            f"At most {limit:,} keys can be answered, because every one of them is.",
            "Ask for a HISTOGRAM of it, or declare a wider step.",
        )
    numbers = (grid.step * index for index in range(grid.low, grid.high + 1))
    return tuple(decimal_text(number).replace(".", decimal) for number in numbers)


def decimal_text(value: Fraction) -> str:
    """A number with finitely many decimals, written out exactly without an exponent or trailing zeros."""
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
            f"Column '{column.name}' has no declared domain.",
            _why_none(spec),
            f'Declare values = ["...", "..."] in [columns.{column.name}], or a taxonomy file.',
        )
    return tuple(dict.fromkeys(leaf for leaf in found if leaf not in ("", ROOT_LABEL)))


def _why_none(spec: TaxonomySpec | None) -> str:
    if spec is not None and spec.file is None:
        return "Its taxonomy is built from the rows, and keys taken from the rows would tell who is there."
    if spec is not None:
        return "Its taxonomy file has not been read together with the schema."
    return "Keys taken from the rows would tell who is there, so a public list is needed."


def _below(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for inner in node.values():
            yield from _below(inner)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for leaf in node:
            yield str(leaf)
    else:
        yield str(node)
