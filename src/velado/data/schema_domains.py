"""Bounds and values that may be declared of a column: proposals from the rows that tell nobody's own number or text.

Noise is sized by declarations and never by the rows, so nothing of this holds until somebody who knows what is public has
confirmed it. Protects against a schema that is handed on unread: a value stands in it only if many people have it, and a
number only rounded outwards to a step of the range's own size.
"""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl

from velado.data.schema import Column

CROWD = 20
"""A value stands in a proposal if at least so many people have it: so many times the most rows that one person has."""
MOST_VALUES = 50
LEAST_ROWS = 100
"""Bounds are proposed where at least so many rows have a number."""


def domain_to_confirm(column: Column, sizes: pl.DataFrame, decimal: str, most_rows: int = 1) -> str | None:
    """A line of a schema for the column's bounds or values, from its different texts with their rows; None where nothing can be said.

    >>> sizes = pl.DataFrame({"value": ["F", "M", "X"], "rows": [60, 30, 1]})
    >>> domain_to_confirm(Column("sex", "quasi", "categorical"), sizes, ".")
    'values = ["F", "M"]'
    >>> ages = pl.DataFrame({"value": [str(age) for age in range(3, 99)], "rows": [5] * 96})
    >>> domain_to_confirm(Column("age", "quasi", "numeric"), ages, ".")
    'bounds = [0, 100]'
    """
    filled = sizes.drop_nulls("value")
    if column.kind == "categorical":
        if filled.height > MOST_VALUES:
            return None
        common = filled.filter(pl.col("rows") >= CROWD * most_rows).get_column("value").sort().to_list()
        return f"values = {as_toml(common)}" if common else None
    if column.kind != "numeric" or int(filled["rows"].sum()) < LEAST_ROWS * most_rows:
        return None
    texts = filled.get_column("value").cast(pl.String)
    texts = texts.str.replace(",", ".", literal=True) if decimal == "," else texts
    numbers = texts.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    if 10 * numbers.size < 9 * texts.len() or numbers.size < 2:
        return None
    low, high = rounded_outwards(float(numbers.min()), float(numbers.max()))
    return f"bounds = [{low:.15g}, {high:.15g}]"


def as_toml(value: object) -> str:
    """A text, number, truth value or list as TOML has it: as JSON does, except that TOML wants DEL escaped too.

    >>> as_toml(["F", "M"])
    '["F", "M"]'
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def rounded_outwards(least: float, greatest: float) -> tuple[float, float]:
    """The range between multiples of 1, 2 or 5 times a power of ten, the least such step above a quarter of it; 0 where that is near.

    >>> rounded_outwards(1987, 2023), rounded_outwards(12.5, 52), rounded_outwards(-3, 3)
    ((1980.0, 2030.0), (0.0, 60.0), (-4.0, 4.0))
    """
    span = greatest - least or max(abs(greatest), 1.0)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= span / 4)
    low, high = math.floor(least / step) * step, math.ceil(greatest / step) * step
    return (0.0 if 0 <= least <= span else low), (high if high > low else high + step)
