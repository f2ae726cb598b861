"""The rows of `velado regress` and `velado predict`: which columns, with which public bounds, and what is wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from velado.errors import ParameterError
from velado.learning.regression.table_columns import named_columns
from velado.settings import nearest
from velado.text import say

if TYPE_CHECKING:
    import numpy.typing as npt

    from velado.apps.cli.options import ReadingFlags
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.learning.crypto.fixed_point import Bounded


def feature_names(listed: str, target: str, weight: str | None = None) -> list[str]:
    """The columns a --features names; one that stands twice, or is the target or the weight, is refused.

    >>> feature_names("age, weight", target="cost")
    ['age', 'weight']
    """
    names = [name.strip() for name in listed.split(",") if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if weight is not None and weight in names:
        raise ParameterError(
            say("--features names the weight '{weight}'.", weight=weight),
            "A column says how much a row counts, or explains the target.",
            "Leave it out of one of the two.",
        )
    if twice or target in names:
        what = (
            say("--features names {columns} twice.", columns=named_columns(twice))
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

    A column of categories without a value stands for all its values but the reference.

    >>> features = [*one_hot("sex", "fm"), *one_hot("ward", "abc")]
    >>> [one.name for one in interactions_in("sex=m:ward", features)]
    ['sex=m:ward=b', 'sex=m:ward=c']
    """
    from velado.learning.crypto.fixed_point import Bounded

    known = {feature.name: feature for feature in features}
    levels: dict[str, list[str]] = {}
    for feature in features:
        if feature.value:
            levels.setdefault(feature.column, []).append(feature.name)
    made: dict[str, Bounded] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        factors = [factor.strip() for factor in part.split(":")]
        strange = [factor for factor in factors if factor not in known and factor not in levels]
        if len(factors) < 2 or strange:
            one = len(factors) < 2
            raise ParameterError(
                say("An --interactions cannot be read.")
                if one
                else say(
                    "--interactions names {columns}: no feature of the fit.", columns=named_columns(strange)
                ),
                say(
                    "It is written A:B with features of the fit: {features}.",
                    features=named_columns([*known, *levels]),
                ),
                (None if one else nearest(strange[0], [*known, *levels]))
                or say("Write for example --interactions age:dose."),
            )
        for chosen in product(*(levels.get(factor, [factor]) for factor in factors)):
            low = high = Fraction(1)
            for factor in chosen:
                ends = [a * b for a in (low, high) for b in known[factor].bounds]
                low, high = min(ends), max(ends)
            made[":".join(chosen)] = Bounded(":".join(chosen), (low, high), factors=chosen)
    return list(made.values())


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
                say("Columns: {columns}.", columns=named_columns(list(columns))),
            )
        found[name] = low, high
    absent = [name for name in columns if name not in found]
    if from_data:
        found |= {name: _around(columns[name]) for name in absent}
    elif absent:
        raise ParameterError(
            say("No bounds were declared for {absent}.", absent=named_columns(absent)),
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
            say("Write the numbers with a point: {bounds}.", bounds=rest.replace(",", "."))
            if re.fullmatch(r"[-+\d,.: ]*\d,\d[-+\d,.: ]*", rest)
            else say("Write for example --bounds age=0:120."),
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
            name: cells_of(column.gather_every(clients, place)) for name, column in columns.items()
        }
        for place in range(clients)
    }


def cells_of(column: pl.Series) -> npt.NDArray[Any]:
    """The cells of a column as an array; true and false are 1 and 0.

    >>> cells_of(pl.Series([True, False])).tolist()
    [1, 0]
    """
    return column.cast(pl.UInt8).to_numpy() if column.dtype == pl.Boolean else column.to_numpy()
