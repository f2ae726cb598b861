"""Values that probably mean "no value": words such as `ignorado`, and numbers far outside the others such as 99.

Both are suggested with their counts. A number is never taken as missing without being asked for, for 99 may be
an age. Only codes of the lists below are ever named, so a suggestion shows nobody's value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

WORDS = frozenset(
    [
        "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "missing", "unknown", "unk", "not informed", "not known",
        "not available", "not stated", "no data", "ignorado", "ignorada", "ign", "nao informado", "nao informada", "ni",
        "nao consta", "sem informacao", "sem dados", "nao se aplica", "desconhecido", "desconhecida", "s/i", "sin informacion",
        "sin datos", "no informado", "no sabe", "desconocido", "desconocida", "no consta", "?", "-", "--", ".", "..",
    ]
)  # fmt: skip
NUMBERS = (
    *(9, 88, 97, 98, 99, 888, 997, 998, 999, 8888, 9998, 9999, 99999, 999999),
    *(-1, -7, -8, -9, -88, -98, -99, -888, -999, -9999),
)


@dataclass(frozen=True)
class MissingCode:
    """A code of *column* that probably means "no value", in *rows* rows; *applied* when the schema calls it missing.

    >>> MissingCode("age", "999", rows=12).applied
    False
    """

    column: str
    code: str
    rows: int
    applied: bool = False


def find_missing_codes(
    name: str, values: pl.Series, counts: np.ndarray[Any, np.dtype[np.int64]], applied: frozenset[str]
) -> tuple[MissingCode, ...]:
    """The probable missing codes among the different *values* of a column, which stand in *counts* rows each.

    >>> ages = pl.Series(["31", "35", "40", "999"])
    >>> find_missing_codes("age", ages, np.array([5, 4, 3, 2]), frozenset())[0].code
    '999'
    """
    words = _folded(values).is_in(list(WORDS)).fill_null(False).to_numpy()
    out = [
        MissingCode(name, text, int(rows), text in applied)
        for text, rows in zip(values.filter(pl.Series(words)).to_list(), counts[words], strict=True)
    ]
    numbers = values.filter(pl.Series(~words)).cast(pl.Float64, strict=False)
    array, rows_of = numbers.to_numpy(), counts[~words]
    if 2 * numbers.null_count() < numbers.len():
        out += [MissingCode(name, str(code), rows) for code, rows in _numbers(array, rows_of)]
    elif numbers.null_count() >= 2 and bool(np.isin(array[np.isfinite(array)], NUMBERS).all()):
        # A lone 99 among words.
        among = np.flatnonzero(np.isin(array, NUMBERS))
        out += [MissingCode(name, str(int(array[i])), int(rows_of[i])) for i in among if rows_of[i] >= 2]
    return tuple(sorted(out, key=lambda code: -code.rows))


def _numbers(
    values: np.ndarray[Any, Any], counts: np.ndarray[Any, np.dtype[np.int64]]
) -> list[tuple[int, int]]:
    whole = np.isfinite(values)
    values, counts = values[whole], counts[whole]
    suspects = np.isin(values, NUMBERS)
    others = values[~suspects]
    if others.size < 2 or not suspects.any():
        return []
    # A smaller code may be a value of the column like any other, so it joins the values it lies among.
    low, high = float(others.min()), float(others.max())
    out = []
    for code, rows in sorted(
        zip(values[suspects].tolist(), counts[suspects].tolist(), strict=True), key=lambda p: abs(p[0])
    ):
        wide = max(high - low, 1.0)
        outside = (code < 0 <= low) or code > high + 0.5 * wide + 1
        if outside and rows >= 2:
            out.append((int(code), int(rows)))
        elif not outside:
            low, high = min(low, code), max(high, code)
    return out


def words_among_numbers(series: pl.Series) -> list[str]:
    """The words for "no value" of a text column whose other values are all numbers or dates.

    >>> words_among_numbers(pl.Series(["31", "ignorado", "40"]))
    ['ignorado']
    """
    distinct = series.drop_nulls().unique()
    short = distinct.filter(distinct.str.len_bytes() <= 24)
    words = short.filter(_folded(short).is_in(list(WORDS)))
    if not words.len() or words.len() == distinct.len():
        return []
    rest = distinct.filter(~distinct.is_in(words.implode()) & (distinct.str.strip_chars() != ""))
    number = r"^\s*[+-]?(?:\d+[.,]?\d*|[.,]\d+)\s*$|^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
    return words.to_list() if rest.len() and bool(rest.str.contains(number).all()) else []


def _folded(texts: pl.Series) -> pl.Series:
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars()
