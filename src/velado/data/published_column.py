"""A column as it is published: made by a recoder, or read back from its texts alone; one shape for both.

Read back, every distinct text of a quasi-identifier is read once: `[20..29]`, `[20..30)`, a number, a taxonomy label,
`*` or a blank becomes the range of codes that it states. Nothing that made the text is trusted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from velado.data.encode import CodedTexts, EncodedColumn
from velado.data.normal import normal_texts
from velado.data.numbers import with_point
from velado.data.partition import BoolArray, FloatArray, Int32Array
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import TableError
from velado.text import say_n

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
    """What a text says of a number: it lies between two ends, which may be infinite, and may be out of it themselves.

    >>> Stated(20.0, 30.0, with_upper=False).upper
    30.0
    """

    lower: float
    upper: float
    with_lower: bool = True
    with_upper: bool = True


def stated_number(text: str, decimal: str = ".") -> Stated | None:
    """What a text of a numeric column states: `34`, `[20..29]`, and how others write it; None where that is unclear.

    Others write `20-29`, `20 to 29`, `20 a 29`, `(20, 29]`, `>= 90`, `90+`, and a unit before or after. Only for
    numeric columns: a label or a day may look so too.

    >>> stated_number("[20..29]")
    Stated(lower=20.0, upper=29.0, with_lower=True, with_upper=True)
    >>> stated_number("90+").upper, stated_number("many")
    (inf, None)
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


Cell = str | float | None


@dataclass(frozen=True, repr=False)
class PublishedColumn:
    """One quasi-identifier as it is published, whoever made it: row r shows ``values[codes[r]]``.

    *low* and *high* are the codes of the encoded column that each value stands for: what it is charged for; -1 where it
    is known to cover none. *states_cover* is True when the texts themselves say so (an interval, a taxonomy label, `*`);
    False for a substitution (a mean, a centroid, a most common value), which may be false of the person it stands for:
    the codes its text is true of are *true_low*..*true_high* (low > high for none). *lower* and *upper* are the stated
    ends of the texts of a number that was read back, NaN for blanks and for labels.

    >>> ages = np.array([0, 1, 1], dtype=np.int32)
    >>> PublishedColumn("age", ages, ("[20..29]", "*"), np.array([0, 0]), np.array([4, 9]))
    PublishedColumn('age', rows=3, values=2)
    """

    name: str
    codes: Int32Array
    values: tuple[Cell, ...]
    low: Int32Array
    high: Int32Array
    states_cover: bool = True
    true_low: Int32Array | None = None
    true_high: Int32Array | None = None
    lower: FloatArray = field(default_factory=lambda: np.empty(0))
    upper: FloatArray = field(default_factory=lambda: np.empty(0))

    def __repr__(self) -> str:
        return f"PublishedColumn({self.name!r}, rows={self.codes.size}, values={len(self.values)})"

    @property
    def stated(self) -> BoolArray:
        """For each value whether it states a cover; a number that nobody has states none."""
        return np.asarray(self.low != NO_CODE)

    @property
    def middle(self) -> FloatArray:
        """For each text of a number that was read back, the number or the middle of the interval."""
        return np.asarray((self.lower + self.upper) / 2)

    def says_nothing(self, column: EncodedColumn) -> BoolArray:
        """For each value whether it stands for a suppressed cell, which is false of nobody.

        That is `*`, or a blank where the original has none.
        """
        blank = column.missing < 0
        return np.array([blank if v is None else str(v).strip() == ROOT_LABEL for v in self.values], bool)

    def losses(self, column: EncodedColumn) -> FloatArray:
        """The normalized certainty penalty of each row in this column."""
        return column.loss(self.low, self.high)[self.codes]

    def false_cells(self, column: EncodedColumn, kept: BoolArray) -> int:
        """How many kept rows are published with a value that does not cover their true one."""
        low = (self.low if self.true_low is None else self.true_low)[self.codes]
        high = (self.high if self.true_high is None else self.true_high)[self.codes]
        wrong = (column.codes < low) | (column.codes > high)
        if column.moved is not None:
            wrong |= column.moved & ~self.says_nothing(column)[self.codes]
        return int((wrong & kept).sum())

    def series(self, kept: BoolArray) -> pl.Series:
        """The column of the published table, suppressed rows left out."""
        if all(isinstance(value, float) or value is None for value in self.values):
            values = pl.Series(self.name, list(self.values), dtype=pl.Float64)
        else:
            texts = [None if value is None else str(value) for value in self.values]
            values = pl.Series(self.name, texts, dtype=pl.String)
        return values.gather(self.codes[kept]).alias(self.name)

    def listed(self, kept: BoolArray) -> pl.Series:
        """As `series`, but texts stand in a list once, and rows have their places in it: a quarter of the room or less.

        >>> ages = np.array([0, 1, 1], dtype=np.int32)
        >>> shown = PublishedColumn("age", ages, ("[20..29]", "*"), np.array([0, 0]), np.array([4, 9]))
        >>> shown.listed(np.ones(3, dtype=bool)).to_list()
        ['[20..29]', '*', '*']
        """
        texts = [None if value is None else str(value) for value in self.values]
        distinct = sorted({text for text in texts if text is not None})
        if not distinct or all(isinstance(value, float) or value is None for value in self.values):
            return self.series(kept)
        values = pl.Series(self.name, texts, dtype=pl.Enum(distinct))
        return values.gather(self.codes[kept]).alias(self.name)


def read_texts(
    column: EncodedColumn,
    series: pl.Series,
    missing_values: tuple[str, ...],
    *,
    strict: bool = True,
    seen: CodedTexts | None = None,
) -> PublishedColumn:
    """What each distinct text of a published column states about the codes of *column*; blanks are text 0.

    Texts that state nothing known are refused, or, if not *strict*, state everything. *seen* is the column as it was
    coded before, where that was done.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> ages = encode(small_table(age=("quasi", "numeric", "20 25 40"))).columns[0]
    >>> read_texts(ages, pl.Series(["[20..30]", "*"]), ("",)).high
    array([2, 2, 1], dtype=int32)
    """
    blanks_seen = seen is None or bool(seen.texts.is_in(list(missing_values)).any())
    if seen is None or blanks_seen or series.dtype.is_float():
        texts = series.cast(pl.String)
        blank = texts.is_null() | texts.is_in(list(missing_values))
        if series.dtype.is_float():
            blank = blank | series.is_nan().fill_null(True)
        seen = CodedTexts.of(texts.set(blank, None))
    distinct = seen.texts.to_list()
    read = _read_tree if column.tree is not None else _read_numbers
    found = read(column, distinct)
    unread = np.isnan(found[:, 0])
    if not strict:
        found[unread] = _everything(column)
    elif unread.any():
        raise TableError(
            say_n(
                "Column '{column}' publishes {n:,} text that is no value, interval or label of it.",
                "Column '{column}' publishes {n:,} distinct texts that are no value, interval or label of it.",
                int(unread.sum()),
                column=column.name,
            ),
            "What such a text covers cannot be known.",
            "Give the schema and taxonomies the release was made with, or name the texts in a taxonomy.",
        )
    # Where the original has no blanks, a blank can only be a cell that was suppressed: it may be anything.
    blanks = column.missing
    nothing = (blanks, blanks, np.nan, np.nan) if blanks >= 0 else _everything(column)
    rows = np.vstack((np.array([nothing], dtype=np.float64), found))
    low, high = rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32)
    values = (None, *distinct)
    return PublishedColumn(column.name, seen.codes, values, low, high, lower=rows[:, 2], upper=rows[:, 3])


_Entry = tuple[float, float, float, float]  # low code, high code, lower end, upper end


def _everything(column: EncodedColumn) -> _Entry:
    if column.points is None:
        return (0, column.size - 1, np.nan, np.nan)
    # `*` says nothing at all: it is as wide as the domain, also where declared bounds are wider than the data.
    middle = float(column.numbers[0] + column.numbers[-1]) / 2
    return (0, column.size - 1, middle - column.span / 2, middle + column.span / 2)


def _read_tree(column: EncodedColumn, texts: list[str]) -> FloatArray:
    """An entry for each text, its first number not a number where the text is no label."""
    assert column.tree is not None
    tree = column.tree
    out = np.full((len(texts), 4), np.nan)
    nodes = np.array(label_nodes(column, texts), dtype=np.int64)
    known = nodes >= 0
    out[known, 0], out[known, 1] = tree.first[nodes[known]], tree.last[nodes[known]]
    return out


def label_nodes(column: EncodedColumn, texts: list[str]) -> list[int]:
    """The node each text is the label of: as it is written, else by its normal form where that is of one label; or -1.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> label_nodes(encode(small_table(sex=("quasi", "categorical", "F M"))).columns[0], ["M", "m", "x", "*"])
    [1, 1, -1, 2]
    """
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


def _read_numbers(column: EncodedColumn, texts: list[str]) -> FloatArray:
    """An entry for each text, its first number not a number where the text states none."""
    points = column.numbers
    lower, upper, known = _plain_ends(texts, column.decimal)
    closed = np.ones((len(texts), 2), dtype=bool)
    everything = np.zeros(len(texts), dtype=bool)
    for at in np.flatnonzero(~known).tolist():
        raw = texts[at]
        found = stated_number(raw, column.decimal)
        everything[at] = raw.strip() == ROOT_LABEL
        if found is not None:
            known[at] = True
            lower[at], upper[at], closed[at] = found.lower, found.upper, (found.with_lower, found.with_upper)
    low = np.where(
        closed[:, 0], np.searchsorted(points, lower, "left"), np.searchsorted(points, lower, "right")
    )
    high = np.where(
        closed[:, 1], np.searchsorted(points, upper, "right"), np.searchsorted(points, upper, "left")
    )
    high = high - 1
    inside = low <= high
    # Without an end, an interval ends where the values do.
    ends = (
        np.where(np.isinf(lower), np.minimum(points[0], upper), lower),
        np.where(np.isinf(upper), np.maximum(points[-1], lower), upper),
    )
    out = np.stack([np.where(inside, low, NO_CODE), np.where(inside, high, NO_CODE), *ends], axis=1)
    out[~known] = np.nan
    out[everything] = _everything(column)
    return np.asarray(out, dtype=np.float64)


def _plain_ends(texts: list[str], decimal: str) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The ends of texts written as velado writes them, `20` or `[20..29]`, and which of them are: read all at once."""
    plain = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?" if decimal == "." else "-?[0-9]{1,15}"
    series = pl.Series(texts, dtype=pl.String)
    alone = series.str.extract(f"^({plain})$")
    ends = [
        alone.fill_null(series.str.extract(shape)).cast(pl.Float64).to_numpy().astype(np.float64)
        for shape in (rf"^\[({plain})\.\.{plain}\]$", rf"^\[{plain}\.\.({plain})\]$")
    ]
    # Not where an end is no number, nor where the ends stand the wrong way round.
    return ends[0], ends[1], np.asarray(ends[0] <= ends[1])
