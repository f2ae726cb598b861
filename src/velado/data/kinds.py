"""What kind of values a column holds: numbers, dates, categories or free text, found from its cells.

Cells that mean "no value" are told from the others: words such as `ignorado`, and numbers far outside such as 99.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from velado.data.identifiers import header_names_codes, header_says_day
from velado.data.identifiers._shapes import free_text
from velado.data.numbers import THOUSANDS
from velado.data.schema import Kind
from velado.text import Sentence, join, say

# Values that probably mean "no value" are suggested with their counts. A number is never taken as missing without being asked for, for 99 may be
# an age. Only codes of the lists below are ever named, so a suggestion shows nobody's value.

WORDS = frozenset(
    [
        "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "missing", "unknown", "unk", "not informed", "not known",
        "not available", "not stated", "no data", "ignorado", "ignorada", "ign", "nao informado", "nao informada", "ni",
        "nao consta", "sem informacao", "sem dados", "nao se aplica", "desconhecido", "desconhecida", "s/i", "sin informacion",
        "sin datos", "no informado", "no sabe", "desconocido", "desconocida", "no consta", "?", "-", "--", ".", "..",
    ]
)  # fmt: skip
DOUBTFUL = frozenset({"nd", "n/d", "n.d.", "n.d"})
"""Suggested, never taken unasked: a laboratory also writes ND for what it looked for and did not detect."""
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
    # No word has a digit, so that texts with one need no closer look.
    may_be = ~values.str.contains("[0-9]").fill_null(True)
    words = np.zeros(values.len(), dtype=bool)
    words[may_be.to_numpy()] = _folded(values.filter(may_be)).is_in([*WORDS, *DOUBTFUL]).to_numpy()
    out = [
        MissingCode(name, text, int(rows), text in applied)
        for text, rows in zip(values.filter(pl.Series(words)).to_list(), counts[words], strict=True)
    ]
    written = values.filter(pl.Series(~words))
    # 45,4 is a number here too: whether the file has decimal commas is not settled yet.
    written = written.str.replace(r"^(\s*[+-]?\d*),(\d+\s*)$", "$1.$2")
    numbers = written.str.strip_chars().cast(pl.Float64, strict=False)
    array, rows_of = numbers.to_numpy(), counts[~words]
    if 2 * numbers.null_count() < numbers.len():
        out += [
            MissingCode(name, str(code), rows, str(code) in applied)
            for code, rows in _numbers(array, rows_of)
        ]
    elif numbers.null_count() >= 2 and bool(np.isin(array[np.isfinite(array)], NUMBERS).all()):
        # A lone 99 among words.
        among = np.flatnonzero(np.isin(array, NUMBERS))
        out += [
            MissingCode(name, str(int(array[i])), int(rows_of[i]), str(int(array[i])) in applied)
            for i in among
            if rows_of[i] >= 2
        ]
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
    # No word has a digit, and few columns have texts without: those alone are looked at.
    short = series.filter((series.str.len_bytes() <= 24) & ~series.str.contains("[0-9]")).unique()
    words = short.filter(_folded(short).is_in(list(WORDS)))
    if not words.len():
        return []
    distinct = series.drop_nulls().unique()
    if words.len() == distinct.len():
        return []
    doubtful = short.filter(_folded(short).is_in(list(DOUBTFUL)))
    none = pl.concat([words, doubtful]).implode()
    rest = distinct.filter(~distinct.is_in(none) & (distinct.str.strip_chars() != ""))
    number = r"^\s*[+-]?(?:\d+[.,]?\d*|[.,]\d+)\s*$|^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
    return words.to_list() if rest.len() and bool(rest.str.contains(number).all()) else []


def _folded(texts: pl.Series) -> pl.Series:
    plain = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars()


MISSING_TOKENS = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "?", "-", "--"]
)
DATE_FORMATS = (
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d-%b-%Y",
    "%d %b %Y",
)
DIGIT_FORMATS = ("%Y%m%d", "%d%m%Y", "%m%d%Y")
SHORT_FORMATS = ("%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%d.%m.%y")
DATETIME_FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
)
LOOKS_LIKE_DATES = say("values look like dates, but not all in one form")
_EXACT_LIMIT = 2.0**53
_COMMA = r"^\s*[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class Inferred:
    """The kind of a column, why, and how its numbers or dates are written.

    >>> Inferred("numeric", "numbers").format
    '%Y-%m-%d'
    """

    kind: Kind
    why: str
    decimal_comma: bool = False
    format: str = "%Y-%m-%d"


def missing_tokens(frame: pl.DataFrame) -> tuple[str, ...]:
    """The texts of *frame* that usually mean "no value", as they stand there; "" is always among them.

    Words such as "ignorado" count only where the rest of the column are numbers or dates, which they would hide.

    >>> missing_tokens(pl.DataFrame({"age": ["31", "NA", "ignorado", "40"]}))
    ('', 'NA', 'ignorado')
    """
    found: set[str] = {""}
    for series in frame.get_columns():
        if series.dtype == pl.String:
            short = series.filter(series.str.len_bytes() <= 6).unique()
            found.update(short.filter(short.str.strip_chars().is_in(list(MISSING_TOKENS))).to_list())
            found.update(words_among_numbers(series))
        elif series.dtype.is_float() and bool(series.is_nan().any()):
            found.add("NaN")
    return tuple(sorted(found))


def infer_kind(name: str, texts: pl.Series, dtype: pl.DataType, distinct: int, sample: pl.Series) -> Inferred:
    """The kind of a column. *texts* are its cells without blanks, *sample* some of them, *distinct* how many differ.

    Numbers and dates must fit in every row, because a schema that declares them refuses the rest. Digits
    that are no quantities are categories: with leading zeros, beyond 2^53, one or two different values, or
    under a header that names a code.

    >>> days = pl.Series(["29/02/2024", "01/03/2024"])
    >>> infer_kind("alta", days, pl.String(), 2, days).format
    '%d/%m/%Y'
    """
    if texts.len() == 0:
        return Inferred("text", say("no row has a value"))
    if isinstance(dtype, pl.Date | pl.Datetime):
        return Inferred("date", say("dates"))
    if dtype == pl.Boolean:
        return Inferred("categorical", say("true or false values"))
    return (
        _digit_days(name, texts, sample)
        or _numeric(name, texts, dtype, distinct, sample)
        or _date(texts, sample)
        or _words(name, sample, distinct, texts.len())
    )


def _numeric(
    name: str, texts: pl.Series, dtype: pl.DataType, distinct: int, sample: pl.Series
) -> Inferred | None:
    number = r"^\s*[+-]?(\d+[.,]?\d*|[.,]\d+|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?\s*$"
    numeric_type = dtype.is_numeric()
    if not numeric_type and not bool(sample.str.contains(number).any()):
        return None
    comma = not numeric_type and bool(sample.str.contains(_COMMA).any())
    plain = texts.str.strip_chars()
    if comma:
        # As the release will read them: 18.587,50 has a thousands mark, and any other point two readings.
        thousands = plain.str.contains(THOUSANDS)
        pointed = plain.str.contains(".", literal=True)
        plain = plain.zip_with(~thousands, plain.str.replace_all(".", "", literal=True))
        plain = plain.str.replace(",", ".", literal=True).set(pointed & ~thousands, None)
    parsed = plain.cast(pl.Float64, strict=False)
    bad = int(parsed.is_null().sum())
    if bad:
        if 2 * bad < texts.len():
            why = say(
                "{bad:,} of {count:,} values are no numbers, the others are", bad=bad, count=texts.len()
            )
            # Most numbers of a column with a few words among them show the file's decimal mark all the same.
            marked = comma and 2 * int(sample.str.contains(_COMMA).sum()) > sample.len()
            return Inferred("categorical", why, decimal_comma=marked)
        return None
    array = parsed.to_numpy()
    if not bool(np.isfinite(array).all()):
        return Inferred("categorical", say("numbers, but some are infinite or not a number"))
    if float(np.abs(array).max()) > _EXACT_LIMIT:
        return Inferred("categorical", say("digits too long for a quantity"))
    if not numeric_type and bool(texts.str.contains(r"^\s*0\d+\s*$").any()):
        return Inferred("categorical", say("digits with leading zeros: codes, not quantities"))
    if header_names_codes(name):
        return Inferred("categorical", say("digits under a header that names a code"))
    if distinct <= 2:
        return Inferred("categorical", say("at most two different numbers"))
    written = say("numbers with a decimal comma") if comma else say("numbers")
    return Inferred("numeric", written, decimal_comma=comma)


def _digit_days(name: str, texts: pl.Series, sample: pl.Series) -> Inferred | None:
    """Days written as eight digits: all valid days of 1900 to 2100, under a header of dates or many different ones."""
    if not bool(sample.str.contains(r"^[0-9]{8}$").all()):
        return None
    days = texts.unique()
    if not bool(days.str.contains(r"^[0-9]{8}$").all()):
        return None
    dated = header_says_day(name)
    # By chance one number of eight digits in hundreds is a day, so twenty of them are no chance.
    if not dated and days.len() < 20:
        return None
    for form in DIGIT_FORMATS:
        parsed = days.str.strptime(pl.Date, form, strict=False)
        if parsed.null_count() == 0 and bool(parsed.dt.year().is_between(1900, 2100).all()):
            return Inferred("date", say("dates of the form {form}", form=_pattern(form)), format=form)
    return None


def _date(texts: pl.Series, sample: pl.Series) -> Inferred | None:
    named = r"^\d{1,2}[- ]?\p{L}{3,9}\.?[- ]?\d{4}$|^\d{4}-?W\d{2}$"
    looks = sample.str.contains(
        r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|^\d{1,2}[-/.]\d{4}$|^\d{4}[-/.]\d{1,2}$|" + named
    )
    if not 2 * int(looks.sum()) > sample.len():
        return None
    distinct = texts.unique()
    for form in DATE_FORMATS:
        if _fits(sample, form, pl.Date) and _fits(distinct, form, pl.Date):
            return Inferred("date", say("dates of the form {form}", form=_pattern(form)), format=form)
    if bool(distinct.str.contains(r"^[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2}$").all()):
        for form in SHORT_FORMATS:
            if distinct.str.strptime(pl.Date, form, strict=False).null_count() == 0:
                return Inferred("date", say("dates of the form {form}", form=_pattern(form)), format=form)
    for form in DATETIME_FORMATS:
        if _fits(sample, form, pl.Datetime) and _fits(distinct, form, pl.Datetime):
            return Inferred("date", say("times of the form {form}", form=_pattern(form)), format=form)
    return Inferred("categorical", LOOKS_LIKE_DATES)


def _pattern(form: str) -> Sentence:
    """A form of days as people write it: dd/mm/yyyy for %d/%m/%Y."""
    marks = {"%d": "dd", "%m": "mm", "%Y": say("yyyy"), "%y": say("yy"), "%H": "hh", "%M": "mm", "%S": "ss"}
    return join((marks.get(part, part) for part in re.split("(%[a-zA-Z])", form)), "")


def _fits(texts: pl.Series, form: str, kind: type[pl.Date] | type[pl.Datetime]) -> bool:
    # A two-digit year would be read as a year of the first century, so four digits are asked for.
    parsed = texts.str.strptime(kind, form, strict=False)
    return parsed.null_count() == 0 and bool((parsed.dt.year() >= 1000).all())


def _words(name: str, sample: pl.Series, distinct: int, filled: int) -> Inferred:
    why = free_text(name, sample, distinct, filled)
    return Inferred("categorical", say("words or codes")) if why is None else Inferred("text", why)
