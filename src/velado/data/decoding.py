"""Published intervals as numbers: `[20..29]` is its middle, or its two ends; what tells nothing is missing.

Only the text of a cell is read, so that who decodes learns nothing that the table did not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import polars as pl

from velado.data.published_column import stated_number
from velado.data.schema import Schema
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import ParameterError
from velado.settings import Setting, Where, made, settings
from velado.text import say

Intervals = Literal["text", "middle", "ends"]
LOW, HIGH = "_low", "_high"


@settings
class DecodingSettings:
    """What becomes of published numbers and intervals when a table goes on to a program that calculates.

    >>> DecodingSettings().intervals
    'text'
    """

    intervals: Annotated[
        Intervals, Setting("intervals as their text, as the number in their middle, or as two columns")
    ] = "text"


def decoded(frame: pl.DataFrame, schema: Schema, intervals: str = "text") -> pl.DataFrame:
    """The published *frame* with every numeric column as numbers, or, with "text", as it is.

    A quasi-identifier becomes the middle of its intervals, or two columns `age_low` and `age_high`; any other numeric
    column its own numbers. `*` and blanks are missing, and so is an end that an interval does not have. A column that
    publishes words (labels of a taxonomy) stays as it is, and so do dates.

    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> ages = pl.DataFrame({"age": ["[20..29]", "34", "*"]})
    >>> decoded(ages, schema, "middle")["age"].to_list(), decoded(ages, schema, "ends").row(0)
    ([24.5, 34.0, None], (20.0, 29.0))
    """
    asked = made(DecodingSettings, {"intervals": intervals}, Where("python")).intervals
    if asked == "text":
        return frame
    out: list[pl.Series] = []
    for series in frame.get_columns():
        column = schema.columns[series.name]
        if column.kind != "numeric":
            out.append(series)
        elif column.role == "quasi":
            out += _ends_of(series, schema, asked)
        else:
            out += _ends_of(series, schema, "middle") if series.dtype == pl.String else [series]
    _refuse_taken(out)
    return pl.DataFrame(out)


def _ends_of(series: pl.Series, schema: Schema, how: str) -> list[pl.Series]:
    """A column of stated numbers as one series of middles or two of ends; the series itself where it states others."""
    texts = series.cast(pl.String)
    texts = texts.set(texts.is_in([*schema.missing_texts(series.name), ROOT_LABEL]).fill_null(False), None)
    distinct = texts.drop_nulls().unique()
    decimal = schema.decimal if series.dtype == pl.String else "."
    found = [stated_number(text, decimal) for text in distinct]
    stated = [one for one in found if one is not None]
    if len(stated) < len(found):
        return [series]
    low, high = np.array([one.lower for one in stated]), np.array([one.upper for one in stated])
    if how == "ends":
        parts = {series.name + LOW: low, series.name + HIGH: high}
    else:
        with np.errstate(invalid="ignore"):
            parts = {series.name: (low + high) / 2}
    return [_placed(texts, distinct, numbers, name) for name, numbers in parts.items()]


def _placed(
    texts: pl.Series, distinct: pl.Series, numbers: np.ndarray[tuple[int], np.dtype[np.float64]], name: str
) -> pl.Series:
    """The number of each row's text; none where the text is none or the number is not finite."""
    finite = pl.Series(np.where(np.isfinite(numbers), numbers, np.nan), dtype=pl.Float64).fill_nan(None)
    return texts.replace_strict(distinct, finite, default=None, return_dtype=pl.Float64).alias(name)


def _refuse_taken(columns: Sequence[pl.Series]) -> None:
    names = [series.name for series in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(
            say("The table has a column '{name}' already.", name=twice),
            "The ends of an interval would take its name.",
            'Rename the column, or take the intervals as "middle" or "text".',
        )
