"""Published texts read back: what each one states, in the codes of an encoded column.

Every distinct text of a quasi-identifier is read once: `[20..29]`, `[20..30)`, a number, a taxonomy label, `*`
or a blank becomes the range of codes that it states. Nothing that made the text is trusted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn
from velado.data.normal import normal_texts
from velado.data.numbers import with_point
from velado.data.partition import BoolArray, FloatArray
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import TableError

_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_SINGLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN_NUMBER = r"[+-]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][+-]?\d+)?"
_DASH = r"\s*(?:\.\.\.?|\u2026|[-\u2010-\u2015\u2212~;]|,(?=\s)|\s(?:to|a|at\u00e9|ate|e|and|hasta)\s)\s*"
_COMMA_TOO = _DASH.replace(r",(?=\s)", ",")
_INTERVAL = re.compile(rf"([\[(\]]?)\s*({_PLAIN_NUMBER}){_DASH}({_PLAIN_NUMBER})\s*([\])\[]?)")
_INTERVAL_OF_POINTS = re.compile(rf"([\[(\]]?)\s*({_NUMBER}){_COMMA_TOO}({_NUMBER})\s*([\])\[]?)")
_AT_LEAST = re.compile(rf"(?:(>=|>|\u2265)\s*({_PLAIN_NUMBER})|({_PLAIN_NUMBER})\s*\+)")
_AT_MOST = re.compile(rf"(<=|<|\u2264)\s*({_PLAIN_NUMBER})")
_LEADING = re.compile(r"^(?:from|between|de|entre|desde|[^\W\d_]{0,3}\$|[^\W\d_]{1,8}\s)\s*", re.IGNORECASE)
_UNIT = re.compile(r"\s*(?:[^\W\d_]{1,12}\.?|%|\u20ac|\$)$")
NO_CODE = -1  # the code of "covers nothing": no true value is within -1..-1


@dataclass(frozen=True)
class Stated:
    """What a text says of a number: it lies between two ends, which may be infinite, and may be out of it themselves."""

    lower: float
    upper: float
    with_lower: bool = True
    with_upper: bool = True


def stated_number(text: str, decimal: str = ".") -> Stated | None:
    """What a text of a numeric column states: `34`, `[20..29]`, and how others write it; None where that is unclear.

    Others write `20-29`, `20 to 29`, `20 a 29`, `(20, 29]`, `>= 90`, `90+`, and a unit before or after. Only for
    numeric columns: a label or a day may look so too.
    """
    text = text.strip()
    found = _stated(text, decimal)
    if found is None:
        # A unit may stand at either end, or after both of the numbers.
        bare = _UNIT.sub("", _LEADING.sub("", text)) if text[:1] not in "[(]" else text
        found = _stated(bare.strip(), decimal) if bare != text else None
    return found


def _stated(text: str, decimal: str) -> Stated | None:
    single = with_point(text, decimal)
    if _SINGLE.fullmatch(single):
        return _ordered(Stated(float(single), float(single)))
    shape = _INTERVAL_OF_POINTS if decimal == "." else _INTERVAL
    if found := shape.fullmatch(text):
        lower, upper = _number(found[2], decimal), _number(found[3], decimal)
        return _ordered(Stated(lower, upper, found[1] not in ("(", "]"), found[4] not in (")", "[")))
    if found := _AT_LEAST.fullmatch(text):
        return _ordered(Stated(_number(found[2] or found[3], decimal), np.inf, found[1] != ">"))
    if found := _AT_MOST.fullmatch(text):
        return _ordered(Stated(-np.inf, _number(found[2], decimal), True, found[1] != "<"))
    return None


def _number(text: str, decimal: str) -> float:
    pointed = with_point(text, decimal)
    return float(pointed) if _SINGLE.fullmatch(pointed) else np.nan


def _ordered(found: Stated) -> Stated | None:
    return found if found.lower <= found.upper else None  # not where an end is no number


@dataclass(frozen=True, repr=False)
class ReadColumn:
    """One published column: row r shows text ``codes[r]``, and text t states the codes ``low[t]..high[t]``.

    A number that is no original value states no cover (codes -1, *states_cover* False) but has a *value*. For
    numeric columns *value* is the number or the middle of the interval, NaN for a blank; *lower* and *upper* are
    the stated ends. For taxonomy columns the three are NaN. *says_nothing* marks texts that stand for a
    suppressed cell (`*`, or a blank where the original has none): they are false of nobody.
    """

    name: str
    codes: npt.NDArray[np.int32]
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    states_cover: BoolArray
    says_nothing: BoolArray

    def __repr__(self) -> str:
        return f"ReadColumn({self.name!r}, rows={self.codes.size}, texts={self.low.size})"


def read_texts(
    column: EncodedColumn, series: pl.Series, missing_values: tuple[str, ...], *, strict: bool = True
) -> ReadColumn:
    """What each distinct text of a published column states about the codes of *column*; blanks are text 0.

    Texts that state nothing known are refused, or, if not *strict*, state everything.
    """
    texts = series.cast(pl.String)
    blank = texts.is_null() | texts.is_in(list(missing_values))
    if series.dtype.is_float():
        blank = blank | series.is_nan().fill_null(True)
    texts = texts.set(blank, None)
    distinct = texts.drop_nulls().unique().sort()
    codes = np.zeros(len(texts), dtype=np.int32)
    if len(distinct):
        numbers = np.arange(1, len(distinct) + 1, dtype=np.int32)
        coded = texts.replace_strict(distinct, numbers, default=0, return_dtype=pl.Int32)
        codes = coded.fill_null(0).to_numpy().astype(np.int32)
    read = _read_tree if column.tree is not None else _read_numbers
    found = read(column, distinct.to_list())
    if not strict:
        found = [_everything(column) if entry is None else entry for entry in found]
    unreadable = sum(entry is None for entry in found)
    if unreadable:
        raise TableError(
            f"Column '{column.name}' publishes {unreadable} distinct text(s) that are no value, interval or label of it.",
            "What such a text covers cannot be known.",
            "Give the schema and taxonomies the release was made with, or name the texts in a taxonomy.",
        )
    if column.missing >= 0:
        nothing: _Entry = (column.missing, column.missing, np.nan, np.nan, np.nan)
    else:
        # The original has no blanks, so a blank can only be a cell that was suppressed: it may be anything.
        nothing = _everything(column)
    rows = np.array([nothing, *(entry for entry in found if entry is not None)], dtype=np.float64)
    low, high = rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32)
    silent = np.array([column.missing < 0, *(text.strip() == ROOT_LABEL for text in distinct.to_list())])
    return ReadColumn(
        column.name, codes, low, high, rows[:, 2], rows[:, 3], rows[:, 4], low != NO_CODE, silent
    )


_Entry = tuple[float, float, float, float, float]  # low code, high code, value, lower end, upper end


def _everything(column: EncodedColumn) -> _Entry:
    if column.points is None:
        return (0, column.size - 1, np.nan, np.nan, np.nan)
    real = column.points[: column.missing] if column.missing >= 0 else column.points
    # `*` says nothing at all: it is as wide as the domain, also where declared bounds are wider than the data.
    middle = float(real[0] + real[-1]) / 2
    return (0, column.size - 1, middle, middle - column.span / 2, middle + column.span / 2)


def _read_tree(column: EncodedColumn, texts: list[str]) -> list[_Entry | None]:
    assert column.tree is not None
    tree = column.tree
    return [
        None if node < 0 else (int(tree.first[node]), int(tree.last[node]), np.nan, np.nan, np.nan)
        for node in label_nodes(column, texts)
    ]


def label_nodes(column: EncodedColumn, texts: list[str]) -> list[int]:
    """The node each text is the label of: as it is written, else by its normal form where that is of one label; or -1."""
    assert column.tree is not None
    widest = column.tree.widest_node
    nodes = [widest.get(text, -1) for text in texts]
    odd = [at for at, node in enumerate(nodes) if node < 0]
    if not odd:
        return nodes

    def normal(some: list[str]) -> list[str]:
        series = pl.Series(some, dtype=pl.String)
        return normal_texts(series, case=column.case, decimal=column.decimal).to_list()

    by_normal: dict[str, int] = {}
    for form, node in zip(normal(list(widest)), widest.values(), strict=True):
        by_normal[form] = -1 if form in by_normal else node  # of two labels nobody knows which is meant
    for at, form in zip(odd, normal([texts[at] for at in odd]), strict=True):
        nodes[at] = by_normal.get(form, -1)
    return nodes


def _read_numbers(column: EncodedColumn, texts: list[str]) -> list[_Entry | None]:
    assert column.points is not None
    points = column.points[: column.missing] if column.missing >= 0 else column.points
    out: list[_Entry | None] = []
    for raw in texts:
        if raw.strip() == ROOT_LABEL:
            out.append(_everything(column))
            continue
        found = stated_number(raw, column.decimal)
        if found is None:
            out.append(None)
            continue
        low = int(np.searchsorted(points, found.lower, "left" if found.with_lower else "right"))
        high = int(np.searchsorted(points, found.upper, "right" if found.with_upper else "left")) - 1
        codes = (low, high) if low <= high else (NO_CODE, NO_CODE)
        # Without an end, an interval ends where the values do.
        lower = min(float(points[0]), found.upper) if np.isinf(found.lower) else found.lower
        upper = max(float(points[-1]), found.lower) if np.isinf(found.upper) else found.upper
        out.append((*codes, (lower + upper) / 2, lower, upper))
    return out
