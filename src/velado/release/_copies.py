"""Copies: whether one column repeats another, however its cells are written.

`1950-03-07` and `07/03/1950`, `34` and ` 34.0`, `Recife` and `RECIFE ` tell the same. A column that repeats
another in all but a few rows undoes a generalization as well as one that repeats it everywhere, so that an
altered cell or a blank one must not hide it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.normal import normal_texts, tidy_texts

# What a column says however its cells are written: days with the month in letters, amounts with a currency, ages with a unit.

_MOST_UNREAD = 0.01
"""A column is read as something else if all but this share of its texts (one may always differ) can be."""
_PROBE = 200
_CLOCK = r"[Tt ]\d{1,2}:\d{2}.*$"
_MONTHS = (
    r"jan(?:uary|eiro)?|ene(?:ro)?",
    r"feb(?:ruary|rero)?|fev(?:ereiro)?",
    r"mar(?:ch|ço|co|zo)?",
    r"apr(?:il)?|abr(?:il)?",
    r"may|mai(?:o)?|mayo",
    r"jun(?:e|ho|io)?",
    r"jul(?:y|ho|io)?",
    r"aug(?:ust)?|ago(?:sto)?",
    r"sep(?:t|tember|tiembre)?|set(?:embro|iembre)?",
    r"oct(?:ober|ubre)?|out(?:ubro)?",
    r"nov(?:ember|embro|iembre)?",
    r"dec(?:ember)?|dez(?:embro)?|dic(?:iembre)?",
)
_MONTH = rf"(?:^|[^\p{{L}}])(?:{'|'.join(_MONTHS)})(?:[^\p{{L}}]|$)"
_PARTED = r"^\d{1,4}/\d{1,2}/\d{1,4}$"
_TOGETHER = r"^(?:\d{5,6}|\d{7,8})$"
_PARTED_FORMS = ("%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%y/%m/%d")
_EIGHT_FORMS = ("%Y%m%d", "%d%m%Y", "%m%d%Y")
_SIX_FORMS = ("%d%m%y", "%m%d%y", "%y%m%d")
_NUMBER = r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*"
_SIGNED = rf"(?:^|[^\p{{L}}\d])(-(?:{_NUMBER}))"


def plain(series: pl.Series) -> pl.Series:
    """Texts without unseen characters and needless blanks, in small letters: what numbers and days are read from."""
    return tidy_texts(series).str.to_lowercase()


def nearly_all_read(text: pl.Series, read: pl.Series, most: float = _MOST_UNREAD) -> bool:
    """Whether all but a few of the texts could be read as something else."""
    values = len(text) - text.null_count()
    unread = read.null_count() - text.null_count()
    return unread < values and unread <= max(1, most * values)


def days_in(text: pl.Series, date_format: str | None = None, most: float = _MOST_UNREAD) -> list[pl.Series]:
    """Every reading of plain texts as days; `03/07/1950` has two.

    Months may be numbers or English, Portuguese or Spanish names, short or long, and whatever parts the numbers
    does not count. Five to eight digits are a date without marks, whose first zero may be lost.
    """
    found = []
    if date_format is not None:
        found.append(text.str.to_date(in_small_letters(date_format), strict=False))
    probe = _parts(text.drop_nulls().head(_PROBE))
    shaped = [probe.str.contains(shape) for shape in (_PARTED, _TOGETHER)]
    if len(probe) and max(2 * int(like.sum()) for like in shaped) > len(probe):
        parted = int(shaped[0].sum()) >= int(shaped[1].sum())
        wide = not parted and 2 * int((probe.str.len_chars() > 6).sum()) > len(probe)
        forms: tuple[str, ...] = _PARTED_FORMS if parted else _EIGHT_FORMS if wide else _SIX_FORMS
        probe = probe if parted else probe.str.zfill(8 if wide else 6)
        # A format that fails on the first rows is not tried on all of them.
        forms = tuple(f for f in forms if 2 * _days(probe, f).null_count() < len(probe))
        if forms:
            parts = _parts(text)
            parts = parts if parted else parts.str.zfill(8 if wide else 6)
            found += [_days(parts, form) for form in forms]
    return [days for days in found if nearly_all_read(text, days, most)]


def in_small_letters(date_format: str) -> str:
    """A format for texts in small letters: what stands between its parts is lowered, the parts are not."""
    return re.sub(r"%.|[^%]", lambda found: found[0] if found[0][0] == "%" else found[0].lower(), date_format)


def _days(parts: pl.Series, form: str) -> pl.Series:
    days = parts.str.to_date(form, strict=False)
    # `%Y` also takes two digits for a year of the first century.
    return days.set((days.dt.year() < 1000).fill_null(False), None) if "%Y" in form else days


def _parts(text: pl.Series) -> pl.Series:
    """Texts with months as numbers and one mark between the parts."""
    out = text.str.replace(_CLOCK, "")
    if bool(out.head(_PROBE).str.contains(_MONTH).any()):
        for number, names in enumerate(_MONTHS, 1):
            out = out.str.replace(rf"(^|[^\p{{L}}])(?:{names})([^\p{{L}}]|$)", f"${{1}}/{number:02d}/${{2}}")
        out = out.str.replace_all(r"\b(?:de|del|of)\b", "/").str.replace_all(
            r"(\d)(?:st|nd|rd|th|º|o)\b", "$1"
        )
    return out.str.replace_all(r"[^\p{L}\d]+", "/").str.strip_chars("/")


def numbers_in(text: pl.Series, most: float = _MOST_UNREAD, within: bool = True) -> list[pl.Series]:
    """Every reading of plain texts as numbers: the texts themselves, or the one number *within* each of them.

    `R$ 4.123,50`, `~4123.50` and `34 anos` hold one. A mark before three last digits may part thousands or not, and
    gives two readings.
    """
    whole = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    if nearly_all_read(text, whole, most):
        out = [whole]
        thousands = r"^[+-]?\d{1,3}(?:[.,]\d{3})+$"
        if bool(text.head(_PROBE).str.contains(thousands).any()):
            out.append(text.str.replace_all("[.,]", "").cast(pl.Float64, strict=False))
        return out
    probe = text.drop_nulls().head(_PROBE)
    if not within or not len(probe) or int((probe.str.count_matches(_NUMBER) == 1).sum()) < 0.9 * len(probe):
        return []
    distinct = text.drop_nulls().unique()
    if 2 * len(distinct) > len(text):
        read = _numbers_within(text)
    else:
        read = [
            text.replace_strict(distinct, found, default=None, return_dtype=pl.Float64)
            for found in _numbers_within(distinct)
        ]
    return read if nearly_all_read(text, read[0], most) else []


def _numbers_within(text: pl.Series) -> list[pl.Series]:
    """The one number within each text, by the mark that parts thousands; two readings where that mark is not told.

    What is asked of all texts together is whether any is so, so that distinct texts give the same answer as all rows.
    """
    one = text.str.count_matches(_NUMBER) == 1
    token = text.str.extract(_SIGNED).fill_null(text.str.extract(f"({_NUMBER})"))
    token = token.set(~one.fill_null(False), None).str.replace_all(" ", "", literal=True)
    last = token.str.extract(r"([.,])\d+$")
    both = token.str.contains(".", literal=True) & token.str.contains(",", literal=True)
    many = ~both & (token.str.count_matches("[.,]") > 1)
    comma = bool((both & (last == ",")).any())
    # Where some texts show both marks, they say for all which one parts thousands.
    point = bool((both & (last == ".")).any())
    without = token.str.replace_all("[.,]", "")
    pointed = (
        token.str.replace(r"[.,](\d+)$", "|$1")
        .str.replace_all("[.,]", "")
        .str.replace("|", ".", literal=True)
    )
    parts_thousands = many | ((last == ".") & comma & ~both) | ((last == ",") & point & ~both)
    chosen = pl.select(pl.when(parts_thousands).then(without).otherwise(pointed)).to_series()
    numbers = chosen.cast(pl.Float64, strict=False)
    if comma or point or not bool(token.str.contains(r"^-?\d{1,3}[.,]\d{3}$").any()):
        return [numbers]
    return [numbers, without.cast(pl.Float64, strict=False)]


Codes = tuple[npt.NDArray[np.int32], int]
Counts = npt.NDArray[np.int64]

_SHARE = 0.99
"""A copy agrees in this share of the rows where both columns have a value (one row may always differ) ..."""
GAIN = 0.9
"""... and in nine tenths of those that do not hold the commonest value, which agree without any copying."""
LEAST_ROWS = 10
_LEAST_ROWS_OF_A_RECODING = 20
"""Fewer rows than these are enough only where they are all there are."""


def folded(series: pl.Series) -> pl.Series:
    """Texts in the one normal form: what a reader takes for one value is one, whatever the case or the zeros."""
    distinct = series.drop_nulls().unique()
    if 2 * len(distinct) > len(series):
        return normal_texts(series)
    return series.replace_strict(distinct, normal_texts(distinct), default=None, return_dtype=pl.String)


def readings(series: pl.Series, date_format: str | None = None, within: bool = True) -> tuple[pl.Series, ...]:
    """Everything the texts of a column may mean: normal text, and numbers and days where nearly all are such.

    *within* lets a number stand within a text (`34 y`): not in categories, where `3a` and `3b` are two.

    Days are six digits, year (of the century), month and day, since many files leave the century out. A
    text with two readings as a date (`03/07/1950`) is given both.
    """
    text = plain(series)
    out = [folded(series), *numbers_in(text, within=within)]
    for days in days_in(text, date_format):
        years = days.dt.year() % 100
        out.append((years * 10_000 + days.dt.month().cast(pl.Int32) * 100 + days.dt.day()).cast(pl.Int32))
    return tuple(out)


def same_values(own: Sequence[pl.Series], other: Sequence[pl.Series]) -> bool:
    """Whether some reading of one column holds the values of a reading of the other, row by row."""
    both = own[0].is_not_null() & other[0].is_not_null()
    rows = int(both.sum())
    if rows < min(LEAST_ROWS, len(both)):
        return False
    for mine in own:
        for theirs in other:
            if mine.dtype != theirs.dtype:
                continue
            agreeing = int((mine == theirs).sum())
            if rows - agreeing > max(1, (1 - _SHARE) * rows):
                continue
            commonest = int(theirs.filter(both).unique_counts().to_numpy().max())
            if _beyond_chance(rows, agreeing, commonest):
                return True
    return False


def one_to_one(column: Counts, quasi: Counts, counts: Counts) -> bool:
    """Whether values go together in pairs, in all but a few rows. Takes the occurring pairs and their counts.

    Blanks (code 0) are tried as a value like others, and left out.
    """
    if _paired(column, quasi, counts):
        return True
    both = (column > 0) & (quasi > 0)
    if bool(both.all()) or int(counts[both].sum()) < _LEAST_ROWS_OF_A_RECODING:
        return False
    return _paired(column[both], quasi[both], counts[both])


def _paired(column: Counts, quasi: Counts, counts: Counts) -> bool:
    # Each value's commonest partner; adding the position makes every count its own, so that ties have one winner.
    rank = counts * counts.size + np.arange(counts.size)
    best_of_column = np.zeros(int(column.max()) + 1, dtype=np.int64)
    best_of_quasi = np.zeros(int(quasi.max()) + 1, dtype=np.int64)
    np.maximum.at(best_of_column, column, rank)
    np.maximum.at(best_of_quasi, quasi, rank)
    mutual = (rank == best_of_column[column]) & (rank == best_of_quasi[quasi])
    rows, agreeing = int(counts.sum()), int(counts[mutual].sum())
    commonest = int(np.bincount(quasi, weights=counts).max())
    return rows - agreeing <= max(1, (1 - _SHARE) * rows) and _beyond_chance(rows, agreeing, commonest)


def _beyond_chance(rows: int, agreeing: int, commonest: int) -> bool:
    rest = rows - commonest
    return rest > 0 and rows - agreeing <= (1 - GAIN) * rest


def count_pairs(column: Codes, quasi: Codes) -> tuple[Counts, Counts, Counts]:
    """Occurring pairs of codes, ordered by the column's code, and how often each occurs."""
    space = column[1] * quasi[1]
    key = column[0].astype(np.int64) * quasi[1] + quasi[0]
    if space <= 4 * key.size:
        dense = np.bincount(key, minlength=space)
        pairs = np.flatnonzero(dense)
        counts = dense[pairs]
    else:
        pairs, counts = np.unique(key, return_counts=True)
    return pairs // quasi[1], pairs % quasi[1], counts.astype(np.int64)


def repeats(own: Sequence[pl.Series], other: Sequence[pl.Series]) -> bool:
    """Whether one column repeats another in its values or one to one, from the readings of all rows."""
    if same_values(own, other):
        return True
    return one_to_one(*count_pairs(text_codes(own[0]), text_codes(other[0])))
