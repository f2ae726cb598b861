"""The columns of a table as a regression takes them: numbers as exact decimals, categories as text; what is wrong is named and counted.

One reader for everybody who has rows: `velado regress`, `velado predict`, and a hospital's `velado party client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from velado.data.identifiers import header_says
from velado.data.identifiers.headers import read_header
from velado.data.numbers import THOUSANDS
from velado.errors import SchemaError, TableError
from velado.text import Sentence, join, say, say_n

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.learning.crypto.fixed_point import Bounded, Columns

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")
MOST_VALUES = 50
"""More different words are no categories."""
_COMMA = r"^[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?$"
_THREES = r"^[+-]?[1-9]\d{0,2}(?:,\d{3})+$"
"""1,234 is one and a bit, or a thousand and more: alone it does not show which mark the decimals have."""


def columns_in(table: Table, wanted: Sequence[Bounded], decimal: str | None) -> Columns:
    """The columns of a table that these are made from, as arrays; absent ones are left to whoever makes the design.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> from velado.testing.examples import small_table
    >>> columns_in(small_table(age=("other", "text", "31,5 0,1")), [Bounded("age", (0, 120))], None)["age"].tolist()
    ['31.5', '0.1']
    """
    here = set(table.frame.columns)
    names = list(dict.fromkeys(one.name for one in wanted if not one.value and not one.factors))
    texts = dict.fromkeys(one.column for one in wanted if one.value)
    numbers = number_columns(table, [name for name in names if name in here], decimal)
    return {
        **{name: column.to_numpy() for name, column in numbers.items()},
        **{name: table.frame[name].cast(pl.String).to_numpy() for name in texts if name in here},
    }


def category_columns(
    table: Table, names: Sequence[str], schema: Schema | None, from_rows: bool = False
) -> tuple[dict[str, pl.Series], dict[str, tuple[str, ...]]]:
    """Those of the columns whose values the schema lists, as text, and their values, the reference first.

    With *from_rows* also categories of the schema whose values it does not list, in the order of the alphabet; those of numbers stay numbers.

    >>> from velado.testing.examples import small_table
    >>> category_columns(small_table(age=("other", "text", "31 0.1")), ["age"], None)
    ({}, {})
    """
    declared = {} if schema is None else schema.columns
    listed = {
        name: tuple(found)
        for name in names
        if name in table.frame.columns
        and name in declared
        and declared[name].kind == "categorical"
        and (found := declared[name].values or (_values_in(table, name) if from_rows else None)) is not None
    }
    columns = {name: table.frame[name].cast(pl.String).str.strip_chars() for name in listed}
    for name, column in columns.items():
        strange = ~column.is_in(list(listed[name])).fill_null(False)
        if strange.any():
            raise SchemaError(
                say_n(
                    "Column '{name}' has {n:,} cell that is none of the values of the schema, in row {first:,} of {rows:,}.",
                    "Column '{name}' has {n:,} cells that are none of the values of the schema, the first in row {first:,} of {rows:,}.",
                    int(strange.sum()),
                    name=name,
                    first=int(strange.arg_max() or 0) + 1,
                    rows=strange.len(),
                ),
                "It would silently count as the reference category.",
                "Correct the cell, leave the row out, or list the value in the schema.",
            )
    return columns, listed


def _values_in(table: Table, name: str) -> tuple[str, ...] | None:
    """The values of a column of words, if they are few; blanks are left for the refusal of cells that are none of them."""
    texts = _stripped(table.frame[name].cast(pl.String), table.schema).drop_nulls().unique()
    if not 2 <= texts.len() <= MOST_VALUES or _not_numbers(texts) is None:
        return None
    return tuple(sorted(texts.to_list()))


def number_columns(
    table: Table, names: Sequence[str] | None, decimal: str | None = None
) -> dict[str, pl.Series]:
    """The named columns of a table, or all; each holds finite numbers only, else an error names it and counts the rows.

    Cells of a CSV stay text, so that 0.1 is the decimal it says. *decimal* is the mark that a schema says; without one it is found:
    a comma where most cells can be read in no other way. A cell with the other mark is refused then: a mark is found, no cell is guessed.

    >>> from velado.testing.examples import small_table
    >>> number_columns(small_table(age=("other", "text", "31 0.1")), None)["age"].to_list()
    ['31', '0.1']
    >>> number_columns(small_table(age=("other", "text", "31,25 1,5")), None)["age"].to_list()
    ['31.25', '1.5']
    """
    frame = table.frame
    absent = [name for name in names or () if name not in frame.columns]
    if absent:
        raise SchemaError(
            say_n(
                "The table has no column {absent}.",
                "The table has no columns {absent}.",
                len(absent),
                absent=named_columns(absent),
            ),
            "A model is fitted to columns of the table, and applied to the same ones.",
            _its_columns(frame, names or ()),
        )
    if not frame.height:
        raise TableError("The table has no rows.", "There is nothing to fit.", "Give a table with rows.")
    stripped = {
        name: _stripped(frame[name], table.schema) for name in (frame.columns if names is None else names)
    }
    mark = decimal or _found_mark(stripped)
    thousands = decimal is not None
    columns = {
        name: _with_points(column, thousands) if mark == "," else column for name, column in stripped.items()
    }
    _refuse_words(columns, stripped, mark)
    empty = {name: column.null_count() for name, column in columns.items() if column.null_count()}
    if empty:
        told = ", ".join(f"'{name}' ({count})" for name, count in empty.items())
        raise TableError(
            say("Missing values in {told}.", told=told),
            "A row with a missing value has no place in the sums, and leaving rows out changes whom the fit is about.",
            "Fill them in or leave those rows out yourself.",
        )
    return columns


def named_columns(names: Sequence[str]) -> str:
    """Names in quotes, no more than a dozen of them.

    >>> named_columns(["age", "dose"])
    "'age', 'dose'"
    """
    shown = ", ".join(f"'{name}'" for name in names[:12])
    return shown if len(names) <= 12 else say("{shown} and {more} more", shown=shown, more=len(names) - 12)


def _its_columns(frame: pl.DataFrame, asked: Sequence[str]) -> Sentence:
    """The columns a table has, by name only where its first line is surely a header: else they may be a person's cells.

    It is one where a column that was asked for stands in it, or where velado knows what most of its names mean.
    """
    known = sum(
        read_header(name) is not None or any(header_says(name, topic) for topic in ("quasi", "sensitive"))
        for name in frame.columns
    )
    if set(asked) & set(frame.columns) or 2 * known > frame.width:
        return say("Its columns are {columns}.", columns=named_columns(frame.columns))
    return say_n(
        "It has {n} column: check that its first line names it, and the spelling.",
        "It has {n} columns: check that its first line names them, and the spelling.",
        frame.width,
    )


def _stripped(column: pl.Series, schema: Schema) -> pl.Series:
    """The cells without spaces around them and with nothing where they say that there is nothing."""
    if column.dtype != pl.String:
        return column.cast(pl.Float64).fill_nan(None) if column.dtype.is_float() else column
    text = column.str.strip_chars()
    low = text.str.to_lowercase()
    if low.is_in(["true", "false"]).all() and column.len():
        return low.replace({"true": "1", "false": "0"})
    return text.set(text.is_in([*MISSING, *schema.missing_texts(column.name)]), None)


def _found_mark(columns: dict[str, pl.Series]) -> str:
    """A comma where more cells can be read with it alone than have a point alone; the others are no numbers then, whichever it is."""
    texts = [column for column in columns.values() if column.dtype == pl.String]
    points = sum(int(column.str.contains(r"^[^,]*\.[^,]*$").sum()) for column in texts)
    commas = sum(int((column.str.contains(_COMMA) & ~column.str.contains(_THREES)).sum()) for column in texts)
    return "," if commas > points else "."


def _with_points(text: pl.Series, thousands: bool) -> pl.Series:
    """Cells with decimal commas as the decimals they say; a point that marks no thousands has two readings, so such a cell is no number.

    Alone it marks them only where a schema says that decimals have a comma (*thousands*).
    """
    if text.dtype != pl.String:
        return text
    marked = text.str.contains(THOUSANDS) & (text.str.contains(",", literal=True) | thousands)
    marked = marked.fill_null(False)
    odd = text.str.contains(".", literal=True).fill_null(False) & ~marked
    plain = text.zip_with(~marked, text.str.replace_all(".", "", literal=True))
    return plain.str.replace(",", ".", literal=True).set(odd, "?")


def _not_numbers(column: pl.Series) -> pl.Series | None:
    """In which rows a cell is no finite number; None where there is none such."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return None
    if column.dtype != pl.String:
        return column.is_not_null()
    read = column.cast(pl.Float64, strict=False)
    bad = (read.is_null() | ~read.is_finite()).fill_null(True) & column.is_not_null()
    return bad if bool(bad.any()) else None


def _refuse_words(columns: dict[str, pl.Series], written: dict[str, pl.Series], mark: str) -> None:
    found = {name: bad for name, column in columns.items() if (bad := _not_numbers(column)) is not None}
    if not found:
        return
    parts = [
        say_n(
            "'{name}' ({n:,} row of {rows:,}: row {first:,})",
            "'{name}' ({n:,} rows of {rows:,}, the first is row {first:,})",
            int(bad.sum()),
            name=name,
            rows=bad.len(),
            first=int(bad.arg_max() or 0) + 1,
        )
        for name, bad in list(found.items())[:12]
    ]
    cells = pl.concat(
        [
            written[name].filter(bad) if written[name].dtype == pl.String else pl.Series([""])
            for name, bad in found.items()
        ],
        rechunk=False,
    )
    days = cells.str.contains(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
    units = ~days & cells.str.contains(r"\d") & cells.str.contains(r"[^\d.,+\-\seE]")
    marked = ~days & ~units & cells.str.contains("," if mark == "." else ".", literal=True)
    do: list[Sentence] = []
    if marked.any():
        do.append(
            say(
                'Numbers with a comma: where it marks decimals in the whole file, say decimal = "," in [table] of a schema (--schema); '
                "else correct those cells."
            )
            if mark == "."
            else say(
                "Numbers with a point in a file with decimal commas have two readings: write them with a comma."
            )
        )
    if units.any():
        do.append(
            say("Something stands beside the number, such as a unit, % or a letter: write the number alone.")
        )
    if days.any():
        do.append(say("Days are no numbers: give for example the days since a date."))
    if not (marked | units | days).all():
        do.append(
            say(
                "Words: correct the cells; list categories as values in a schema (--schema), and leave other columns out."
            )
        )
    raise SchemaError(
        say("Not a number in every row: {columns}.", columns=join(parts, ", ")),
        "A regression multiplies and adds the columns.",
        join(do),
    )
