"""Numbers as they stand in files: parsed with every surprise counted and named, and written back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from velado.data.schema import Column
from velado.errors import TableError
from velado.text import say, say_n

if TYPE_CHECKING:
    from velado.data.partition import BoolArray, FloatArray
    from velado.data.table import Table  # which asks this module what a number is

_EXACT_LIMIT = 2.0**53  # beyond this, neighbouring whole numbers share one double


def parse_numbers(table: Table, column: Column, blank: BoolArray) -> tuple[FloatArray, bool]:
    """The column as doubles (blank rows hold 0) and whether every number is whole.

    Refuses text among the numbers, decimal commas that were not declared, NaN, infinity, numbers too
    large to be told apart, and values outside the declared bounds unless the column says clamp = true.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35.5"))
    >>> parse_numbers(table, table.schema.quasi[0], np.zeros(2, dtype=bool))
    (array([31. , 35.5]), False)
    """
    values, whole, _ = parse_and_clamp(table, column, blank)
    return values, whole


def parse_and_clamp(
    table: Table, column: Column, blank: BoolArray
) -> tuple[FloatArray, bool, BoolArray | None]:
    """As `parse_numbers`, and which rows were moved onto a bound (None when there are none).

    >>> from velado.testing.examples import small_table
    >>> age = Column("age", "quasi", "numeric", bounds=(0, 120), clamp=True)
    >>> parse_and_clamp(small_table(age=("quasi", "numeric", "31 135")), age, np.zeros(2, dtype=bool))[0]
    array([ 31., 120.])
    """
    series = table.frame.get_column(column.name)
    name = column.name
    if series.dtype == pl.String:
        text = series.str.strip_chars()
        if table.schema.decimal == ",":
            text = _with_points(text, blank, name)
        parsed = text.cast(pl.Float64, strict=False)
        bad = parsed.is_null().to_numpy() & ~blank
        if bad.any():
            _refuse_text(text.filter(pl.Series(bad)), int(bad.sum()), int((~blank).sum()), name)
        array = parsed.to_numpy()
    elif series.dtype.is_numeric() or series.dtype == pl.Boolean:
        array = series.cast(pl.Float64).to_numpy()
    else:
        raise TableError(
            say("Column '{name}' is declared numeric but holds {dtype}.", name=name, dtype=series.dtype),
            "Its values cannot be ordered as numbers.",
            'Set kind = "date" or kind = "categorical" for it in the schema.',
        )
    values = np.where(blank, 0.0, np.nan_to_num(array, nan=np.nan, posinf=np.inf, neginf=-np.inf))
    _refuse_odd_numbers(values, name)
    moved = None
    if column.bounds is not None:
        values, moved = _within_bounds(values, blank, column)
    return values, bool(np.all(values == np.floor(values))), moved


def _with_points(text: pl.Series, blank: BoolArray, name: str) -> pl.Series:
    # In a decimal-comma table 1.234 is a thousand and more; a point anywhere else has two possible readings.
    pointed = text.str.contains(".", literal=True).fill_null(False) & ~pl.Series(blank)
    if not pointed.any():
        return text.str.replace(",", ".", literal=True)
    thousands = text.str.contains(THOUSANDS).fill_null(False)
    odd = int((pointed & ~thousands).sum())
    if odd:
        raise TableError(
            say_n(
                "Column '{name}' holds {n:,} number with a point that marks no thousands, in a table with decimal commas.",
                "Column '{name}' holds {n:,} numbers with a point that marks no thousands, in a table with decimal commas.",
                odd,
                name=name,
            ),
            "Whether the point is a decimal or a thousands mark cannot be known, and the number would be a thousandfold off.",
            'Write those numbers with a comma, or set decimal = "." in [table] of the schema.',
        )
    plain = text.zip_with(~thousands, text.str.replace_all(".", "", literal=True))
    return plain.str.replace(",", ".", literal=True)


def _refuse_text(sample: pl.Series, bad: int, total: int, name: str) -> None:
    commas = int(sample.str.contains(r"^[+-]?\d{1,3}(\.\d{3})*,\d+$|^[+-]?\d+,\d+$").sum())
    if commas == bad:
        raise TableError(
            say_n(
                "Column '{name}' writes {n:,} number with a decimal comma.",
                "Column '{name}' writes {n:,} numbers with a decimal comma.",
                bad,
                name=name,
            ),
            "Read with a decimal point they would not be numbers at all.",
            'Set decimal = "," in [table] of the schema.',
        )
    raise TableError(
        say(
            "Column '{name}' is declared numeric but {bad} of its {total} values are no numbers.",
            name=name,
            bad=bad,
            total=total,
        ),
        "Mixed types cannot be ordered or averaged.",
        'List texts that mean "no value" in missing_values of [table], correct the cells, or set kind = "categorical".',
    )


def _refuse_odd_numbers(values: FloatArray, name: str) -> None:
    for count, what in (
        (int(np.isnan(values).sum()), say("NaN (not a number)")),
        (int(np.isinf(values).sum()), say("infinity")),
    ):
        if count:
            raise TableError(
                say_n(
                    "Column '{name}' holds {what} in {n:,} row.",
                    "Column '{name}' holds {what} in {n:,} rows.",
                    count,
                    name=name,
                    what=what,
                ),
                "It has no place on the number line, so no interval covers it.",
                'Leave those cells blank, or list the text in missing_values of [table], e.g. missing_values = ["", "NaN"].',
            )
    large = int((np.abs(values) > _EXACT_LIMIT).sum())
    if large:
        raise TableError(
            say_n(
                "Column '{name}' holds {n:,} number beyond 2^53.",
                "Column '{name}' holds {n:,} numbers beyond 2^53.",
                large,
                name=name,
            ),
            "Such numbers cannot be told apart exactly; they look like identifiers rather than quantities.",
            'Give the column role = "identifier", or kind = "categorical".',
        )


def _within_bounds(
    values: FloatArray, blank: BoolArray, column: Column
) -> tuple[FloatArray, BoolArray | None]:
    assert column.bounds is not None
    low, high = column.bounds
    moved = ((values < low) | (values > high)) & ~blank
    outside = int(moved.sum())
    if outside and not column.clamp:
        raise TableError(
            say_n(
                "Column '{column}' has {n:,} value outside its declared bounds.",
                "Column '{column}' has {n:,} values outside its declared bounds.",
                outside,
                column=column.name,
            ),
            "The bounds are the public domain by which loss is measured.",
            "Widen the bounds, correct the values, or set clamp = true to publish them as the nearest bound.",
        )
    return np.asarray(np.clip(values, low, high), dtype=np.float64), moved if outside else None


# Numbers as short as they can be written without changing them.

THOUSANDS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"
"""A number with points as thousands marks, as tables with decimal commas write it."""


def number_text(value: float, whole: bool, decimal: str = ".") -> str:
    """A number as short as it can be written without changing it, whole numbers without a point.

    >>> number_text(2.0, whole=True), number_text(2.5, whole=False, decimal=",")
    ('2', '2,5')
    """
    if whole or value == int(value):
        return str(int(value))
    text = repr(value)
    return text.replace(".", decimal) if decimal != "." else text


def with_point(text: str, decimal: str = ".") -> str:
    """A number's text as Python reads it: thousands marks left out, the decimal comma a point.

    >>> with_point("1.234,5", ",")
    '1234.5'
    """
    if decimal == ".":
        return text
    return (text.replace(".", "") if re.match(THOUSANDS, text) else text).replace(",", ".")
