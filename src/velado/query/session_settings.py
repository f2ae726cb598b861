"""What a session is given, checked before it is made: names, units, budgets and levels of confidence."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import PurePath
from typing import get_args

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError
from velado.query.budget import Budget, exact
from velado.query.ledger import Ledger
from velado.query.needs import Engine
from velado.query.plan import Extremes
from velado.query.unit import Unit

LEAST_OUTSIDE = Fraction(1, 10**12)
"""The smallest chance with which an interval may miss the exact value."""


def table_name(source: str) -> str:
    """The name a file's table has in SQL: the file's own name without its ending."""
    return (
        re.sub(r"\.(csv|tsv|txt|parquet|pq|arrow|feather|ipc)$", "", PurePath(source).name, flags=re.I)
        or "table"
    )


def schema_of(table: Table | Engine, schema: Schema | None) -> Schema:
    """The schema of a table, or the one given with an engine."""
    if isinstance(table, Table):
        return table.schema if schema is None else schema
    if schema is None:
        raise ParameterError(
            "A session over an engine needs the schema.",
            "Bounds, domains and the unit are declared there and never read off the rows.",
            "Pass schema=read_schema('schema.toml').",
        )
    return schema


def check_unit_column(unit: Unit, schema: Schema) -> None:
    """The column that tells units apart is declared."""
    if unit.column is not None and unit.column not in schema.columns:
        raise ParameterError(
            f"The unit's column '{unit.column}' is not in the schema.",
            "Rows that move together are found by it.",
            "Name a column of the table.",
        )


def check_unit(unit: Unit, schema: Schema, engine: Table | Engine) -> None:
    """The unit's column is declared, and an engine leaves out rows for this very unit."""
    check_unit_column(unit, schema)
    if not isinstance(engine, Table) and engine.unit != unit:
        raise ParameterError(
            "The engine was made for another unit than the session's.",
            "It leaves out rows beyond another most, so the noise would not fit what one unit can move.",
            "Make the engine with the session's unit.",
        )


def budget_of(budget: Budget | Ledger | Fraction | float | str | None) -> Budget | None:
    """The budget of a session's own account, a number being a total epsilon; None where a ledger was handed in."""
    if budget is None:
        raise ParameterError(
            "A session needs a budget.",
            "How much may be learnt in all is the owner's decision, so it has no default.",
            "Pass for example budget=1.0 (a total epsilon), a Budget, or an open ledger.",
        )
    if isinstance(budget, Fraction | float | int | str):
        return Budget.epsilon(budget)
    return budget if isinstance(budget, Budget) else None


def extremes_of(extremes: Extremes) -> Extremes:
    """How MIN and MAX are answered, if it is one of the ways there are."""
    if extremes not in get_args(Extremes):
        raise ParameterError(
            "MIN and MAX are answered by 'quantile' or by 'bound'.",
            "The exact extreme is one person's value.",
            "Choose one of the two.",
        )
    return extremes


def analyst_name(name: str) -> str:
    """The name, if a ledger can hold it."""
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise ParameterError(
            "An analyst's name must be 1 to 200 printable characters.",
            "The ledger writes down who asked.",
            "Give a short name.",
        )
    return name


def confidence_level(confidence: float | Fraction) -> Fraction:
    """The level as an exact fraction above 0 and at most 1 - 1e-12, beyond which tails are not told apart."""
    level = exact(confidence)
    if not 0 < level <= 1 - LEAST_OUTSIDE:
        raise ParameterError(
            "The confidence must lie strictly between 0 and 1, and at least one in 10^12 below 1.",
            "It is the chance with which an interval holds the exact value.",
            "Choose for example 0.95.",
        )
    return level
