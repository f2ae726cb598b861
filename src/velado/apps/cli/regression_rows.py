"""The rows of `velado regress` and `velado predict`: which columns, with which public bounds, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from velado.data.identifiers import header_says
from velado.data.identifiers.headers import read_header
from velado.data.numbers import THOUSANDS
from velado.errors import ParameterError, SchemaError, TableError
from velado.text import Sentence, say, say_n

if TYPE_CHECKING:
    import numpy.typing as npt

    from velado.apps.cli.options import ReadingFlags
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.learning.crypto.fixed_point import Bounded

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "?")


def feature_names(listed: str, target: str) -> list[str]:
    """The columns a --features names; one that stands twice, or is the target, is refused.

    >>> feature_names("age, weight", target="cost")
    ['age', 'weight']
    """
    names = [name.strip() for name in listed.split(",") if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or target in names:
        what = (
            say("--features names {columns} twice.", columns=_listed(twice))
            if twice
            else say("--features names the target '{target}'.", target=target)
        )
        raise ParameterError(
            what, "The fit would be singular, or explain a column by itself.", "Name each feature once."
        )
    return names


def public_most(rows: int, least: int, noise: bool) -> int:
    """A round bound on the rows of all clients of a simulation, for the job that everyone reads: never how many there are.

    The next power of ten above them, at least 1,000 and *least*, the fewest the clients must have together; with noise a
    bound that does not follow the rows at all, as long as they are under a million.

    >>> public_most(4_321, 30, noise=False), public_most(4_321, 30, noise=True)
    (10000, 1000000)
    """
    tens: int = 10 ** len(str(rows))
    return max(tens, least, 1_000_000 if noise else 1000)


def read_rows(file: Path, reading: ReadingFlags, schema: Schema | None) -> Table:
    """The table of a file, read as [table] of the schema says (decimal mark, separator, encoding, texts for "no value").

    Its columns need not be those of the schema: a regression takes some of them, and a model's rows may lack the target.

    >>> from velado.apps.cli.options import ReadingFlags
    >>> from velado.data.samples import hospital_csv
    >>> read_rows(hospital_csv(), ReadingFlags(), None).rows
    2000
    """
    if schema is None:
        return reading.table(file)
    return reading.table(file, schema.with_columns(()), "keep", known=tuple(schema.columns))


def category_columns(
    table: Table, names: Sequence[str], schema: Schema | None
) -> tuple[dict[str, pl.Series], dict[str, tuple[str, ...]]]:
    """Those of the columns whose values the schema lists, as text, and their values, the reference first.

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
        and (found := declared[name].values) is not None
    }
    columns = {name: table.frame[name].cast(pl.String).str.strip_chars() for name in listed}
    for name, column in columns.items():
        if column.null_count() or not column.is_in(list(listed[name])).all():
            raise SchemaError(
                say("Column '{name}' has a cell that is none of the values of the schema.", name=name),
                "It would silently count as the reference category.",
                "Correct the cell, leave the row out, or list the value in the schema.",
            )
    return columns, listed


def one_hot(name: str, values: Sequence[str]) -> list[Bounded]:
    """A feature of 0 and 1 for every value but the first, the reference.

    >>> [feature.name for feature in one_hot("sex", ["f", "m"])]
    ['sex=m']
    """
    from velado.learning.crypto.fixed_point import Bounded

    among = tuple(values)
    return [
        Bounded(f"{name}={value}", (Fraction(0), Fraction(1)), column=name, value=value, among=among)
        for value in among[1:]
    ]


def interactions_in(text: str, features: Sequence[Bounded]) -> list[Bounded]:
    """The products that --interactions names, with the bounds that follow from those of their factors.

    >>> interactions_in("sex=m:ward=b", [*one_hot("sex", "fm"), *one_hot("ward", "ab")])[0].high
    Fraction(1, 1)
    """
    from velado.learning.crypto.fixed_point import Bounded

    known = {feature.name: feature for feature in features}
    made = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        factors = tuple(factor.strip() for factor in part.split(":"))
        if len(factors) < 2 or any(factor not in known for factor in factors):
            raise ParameterError(
                "An --interactions cannot be read.",
                say("It is written A:B with features of the fit: {features}.", features=_listed(list(known))),
                "Write for example --interactions age:dose.",
            )
        low = high = Fraction(1)
        for factor in factors:
            ends = [a * b for a in (low, high) for b in known[factor].bounds]
            low, high = min(ends), max(ends)
        made.append(Bounded(":".join(factors), (low, high), factors=factors))
    return made


def number_columns(table: Table, names: Sequence[str] | None) -> dict[str, pl.Series]:
    """The named columns of a table, or all; each holds finite numbers only, else an error names it.

    Cells of a CSV stay text, so that 0.1 is the decimal it says; those of a table with decimal commas get a point.

    >>> from velado.testing.examples import small_table
    >>> number_columns(small_table(age=("other", "text", "31 0.1")), None)["age"].to_list()
    ['31', '0.1']
    """
    frame = table.frame
    absent = [name for name in names or () if name not in frame.columns]
    if absent:
        raise SchemaError(
            say_n(
                "The table has no column {absent}.",
                "The table has no columns {absent}.",
                len(absent),
                absent=_listed(absent),
            ),
            "A model is fitted to columns of the table, and applied to the same ones.",
            _its_columns(frame, names or ()),
        )
    columns = {
        name: _stripped(frame[name], table.schema) for name in (frame.columns if names is None else names)
    }
    if not frame.height:
        raise TableError("The table has no rows.", "There is nothing to fit.", "Give a table with rows.")
    words = [name for name, column in columns.items() if _not_numbers(column)]
    if words:
        raise SchemaError(
            say("{words}: not a number in every row.", words=_listed(words)),
            "A regression multiplies and adds the columns.",
            "List the categories as values in a schema (--schema), or name the numeric columns with --features.",
        )
    empty = {name: column.null_count() for name, column in columns.items() if column.null_count()}
    if empty:
        told = ", ".join(f"'{name}' ({count})" for name, count in empty.items())
        raise TableError(
            say("Missing values in {told}.", told=told),
            "A row with a missing value has no place in the sums, and leaving rows out changes whom the fit is about.",
            "Fill them in or leave those rows out yourself.",
        )
    return columns


def _its_columns(frame: pl.DataFrame, asked: Sequence[str]) -> Sentence:
    """The columns a table has, by name only where its first line is surely a header: else they may be a person's cells.

    It is one where a column that was asked for stands in it, or where velado knows what most of its names mean.
    """
    known = sum(
        read_header(name) is not None or any(header_says(name, topic) for topic in ("quasi", "sensitive"))
        for name in frame.columns
    )
    if set(asked) & set(frame.columns) or 2 * known > frame.width:
        return say("Its columns are {columns}.", columns=_listed(frame.columns))
    return say_n(
        "It has {n} column: check that its first line names it, and the spelling.",
        "It has {n} columns: check that its first line names them, and the spelling.",
        frame.width,
    )


def _stripped(column: pl.Series, schema: Schema) -> pl.Series:
    if column.dtype != pl.String:
        return column.cast(pl.Float64).fill_nan(None) if column.dtype.is_float() else column
    text = column.str.strip_chars()
    low = text.str.to_lowercase()
    if low.is_in(["true", "false"]).all() and column.len():
        return low.replace({"true": "1", "false": "0"})
    text = text.set(text.is_in([*MISSING, *schema.missing_texts(column.name)]), None)
    if schema.decimal == ".":
        return text
    thousands = text.str.contains(THOUSANDS).fill_null(False)
    # A point that marks no thousands has two readings, so such a cell is left to be no number.
    odd = text.str.contains(".", literal=True).fill_null(False) & ~thousands
    plain = text.zip_with(~thousands, text.str.replace_all(".", "", literal=True))
    return plain.str.replace(",", ".", literal=True).set(odd, "?")


def _not_numbers(column: pl.Series) -> bool:
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return False
    if column.dtype != pl.String:
        return True
    read = column.cast(pl.Float64, strict=False)
    return bool((read.is_null() & column.is_not_null()).any()) or bool(read.is_infinite().any())


def bounds_for(
    columns: Mapping[str, pl.Series], given: Sequence[str], schema: Schema | None, from_data: bool
) -> tuple[dict[str, Bounded], list[str]]:
    """The public bounds of every column: from --bounds, else from the schema, else, if allowed, from the rows; and of which.

    >>> bounds_for({"age": pl.Series([31, 35])}, ["age=0:120"], None, from_data=False)[0]["age"].high
    Fraction(120, 1)
    """
    from velado.learning.crypto.fixed_point import Bounded

    found: dict[str, tuple[Fraction, Fraction]] = {}
    if schema is not None:
        for name, column in schema.columns.items():
            if column.bounds is not None:
                found[name] = Fraction(str(column.bounds[0])), Fraction(str(column.bounds[1]))
    for text in given:
        name, low, high = _bounds_in(text)
        if name not in columns:
            raise ParameterError(
                say("--bounds names '{name}', which is no feature and not the target.", name=name),
                "A misspelt column would be left without bounds.",
                say("Columns: {columns}.", columns=_listed(list(columns))),
            )
        found[name] = low, high
    absent = [name for name in columns if name not in found]
    if from_data:
        found |= {name: _around(columns[name]) for name in absent}
    elif absent:
        raise ParameterError(
            say("No bounds were declared for {absent}.", absent=_listed(absent)),
            "Bounds are public and fix how numbers are encoded; real parties cannot read them off rows they do not see.",
            "Write --bounds NAME=LOW:HIGH for each, or a schema with bounds; in a simulation --bounds-from-data reads them off.",
        )
    return {name: Bounded(name, found[name]) for name in columns}, absent


def _bounds_in(text: str) -> tuple[str, Fraction, Fraction]:
    name, equals, rest = text.rpartition("=")
    low, colon, high = rest.partition(":")
    try:
        if not (name and equals and colon):
            raise ValueError
        return name, Fraction(low.strip()), Fraction(high.strip())
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            "A --bounds cannot be read.",
            "It is written NAME=LOW:HIGH.",
            "Write for example --bounds age=0:120.",
        ) from None


def _around(column: pl.Series) -> tuple[Fraction, Fraction]:
    """The least and largest value, each moved outwards to the next digit of their span."""
    values = column.cast(pl.Float64)
    low, high = Fraction(float(values.min())), Fraction(float(values.max()))  # type: ignore[arg-type]
    if low == high:
        return low - 1, high + 1
    step = Fraction(10) ** math.floor(math.log10(high - low))
    return math.floor(low / step) * step, math.ceil(high / step) * step


def shared_out(columns: Mapping[str, pl.Series], clients: int) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The rows dealt out to so many clients, one after the other as cards are.

    >>> [client["age"].tolist() for client in shared_out({"age": pl.Series([31, 35, 40])}, 2).values()]
    [[31, 40], [35]]
    """
    return {
        f"client-{place + 1}": {
            name: _cells(column.gather_every(clients, place)) for name, column in columns.items()
        }
        for place in range(clients)
    }


def _cells(column: pl.Series) -> npt.NDArray[Any]:
    return column.cast(pl.UInt8).to_numpy() if column.dtype == pl.Boolean else column.to_numpy()


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:12])
    return shown if len(names) <= 12 else say("{shown} and {more} more", shown=shown, more=len(names) - 12)
