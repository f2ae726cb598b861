"""A published table read back against the original, trusting nothing but its texts.

Every distinct text of a quasi-identifier is read once: `[20..29]`, `[20..30)`, a number, a taxonomy label, `*`
or a blank becomes the range of codes of the *original* encoded column that it states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn, EncodedTable, VisibleTexts, encode
from velado.data.partition import BoolArray, FloatArray, IntArray, Partition, ValueEntries
from velado.data.published_column import NO_CODE, PublishedColumn, read_texts
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import TableError
from velado.measures.sample_design import SampleDesign, sample_design
from velado.measures.utility.ncp import Covers
from velado.text import say

Substitutions = Literal["auto", "value", "class"]
BLANK = 0
"""The code of a blank in a published column."""


@dataclass(frozen=True, repr=False)
class PublishedTable:
    """A published table beside the original: what each text states, and which row is which, if known.

    *true_rows* are the numbers of the original rows that the published rows came from, None when rows are
    missing and nobody said which. *agreeing* is the share of paired rows whose other columns are unchanged. *schema*
    says how the original's cells are read, *sample* how its rows were drawn, if that is declared; *seen* is what the
    quasi-identifiers show. Where both tables are counted tuples, *values* lists the published sensitive values of each entry.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> read_published(table, table.frame).rows
    4
    """

    data: EncodedTable
    columns: tuple[PublishedColumn, ...]
    classes: Partition
    true_rows: npt.NDArray[np.int64] | None
    agreeing: float | None = None
    schema: Schema | None = None
    sample: SampleDesign | None = None
    seen: VisibleTexts | None = None
    values: Mapping[str, ValueEntries] | None = None

    def __repr__(self) -> str:
        return f"PublishedTable({self.rows} of {self.data.total} rows, paired={self.true_rows is not None})"

    @property
    def rows(self) -> int:
        """How many rows were published."""
        return self.classes.rows if self.classes.weights is None else int(self.classes.sizes.sum())

    @property
    def suppressed(self) -> int:
        """How many original rows were not published."""
        return self.data.total - self.rows

    @property
    def unpaired(self) -> tuple[str, str, str]:
        """Why metrics that compare row by row are refused, in three sentences."""
        if self.data.counts is not None:
            return (
                say("Rows are counted where they lie, and no row is compared with another."),
                say("Comparing each published row with its own original needs both at hand."),
                say("Use --engine memory, and give the whole folder of a release."),
            )
        return (
            say(
                "The published table has {published} rows and the original {original}, and which rows were "
                "suppressed is not known.",
                published=self.rows,
                original=self.data.rows,
            )
            if self.suppressed
            else say(
                "The published table has as many rows as the original ({published}), but they are not known to be in "
                "the same order.",
                published=self.rows,
            ),
            say("Comparing each published row with its own original needs to know which it is."),
            say(
                "Give the whole folder of a release, whose private part says it, or say which rows were kept; "
                "if you know that no row changed its place, pass --same-order."
            ),
        )

    @cached_property
    def kept(self) -> BoolArray | None:
        """True for original rows that were published; None when that is not known."""
        if self.true_rows is None:
            return None
        kept = np.zeros(self.data.rows, dtype=bool)
        kept[self.true_rows] = True
        return kept

    @cached_property
    def original_classes(self) -> Partition | None:
        """The published classes over the original rows, suppressed rows -1; None when rows are not paired."""
        if self.true_rows is None:
            return None
        labels = np.full(self.data.rows, -1, dtype=np.int32)
        labels[self.true_rows] = self.classes.labels
        return Partition(labels, self.classes.count)

    def covers(self, substitutions: Substitutions = "auto") -> tuple[Covers, ...] | None:
        """What each row is charged for, over original rows where the pairing is known, else published rows.

        A text that is true of every row that shows it is charged for what it states. One that is false of
        some row, or states nothing, is a substitution: it is charged for the smallest range that holds what it
        states and the true values it stands for: with "value" those of all rows that show the same text in
        this column (bins of a column, as DAS makes them), with "class" those of the same published class (a
        centroid). "auto" takes "value" for a column in which equal true values always show equal texts, for
        then the text was chosen by the value and not by the class. Without pairing, the stated covers; None when
        some text states none, for then nobody can say what it stands for.
        """
        if self.true_rows is None:
            # A text known to be a substitution says nothing about whom it stands for.
            if substitutions != "auto" or not all(
                bool(read.stated[read.codes].all()) for read in self.columns
            ):
                return None
            return tuple(
                Covers(
                    read.low[read.codes], read.high[read.codes], _width(read.lower, read.upper)[read.codes]
                )
                for read in self.columns
            )
        pairs = zip(self.data.columns, self.columns, strict=True)
        return tuple(self._charged(column, read, substitutions) for column, read in pairs)

    def _charged(self, column: EncodedColumn, read: PublishedColumn, substitutions: Substitutions) -> Covers:
        assert self.true_rows is not None
        truth = column.codes[self.true_rows]
        by_value = substitutions == "value" or (
            substitutions == "auto" and _chosen_by_value(truth, column, read)
        )
        groups = Partition.of(read.codes) if by_value else self.classes
        order, starts = groups.members()
        text = read.codes[order[starts]]  # all rows of a group show the same text
        least, most = groups.least_and_greatest(truth)
        low, high, lower, upper = read.low[text], read.high[text], read.lower[text], read.upper[text]
        wrong = (low == NO_CODE) | (least < low) | (most > high)
        charged_low = np.where(wrong, np.where(low == NO_CODE, least, np.minimum(least, low)), low)
        charged_high = np.where(wrong, np.maximum(most, high), high)
        if column.points is not None:
            lower = np.where(wrong, np.fmin(lower, column.points[least]), lower)
            upper = np.where(wrong, np.fmax(upper, column.points[most]), upper)
        of_row = groups.labels
        out = [np.zeros(self.data.rows, dtype=np.int32) for _ in range(2)]
        width = np.zeros(self.data.rows)
        out[0][self.true_rows] = charged_low[of_row]
        out[1][self.true_rows] = charged_high[of_row]
        width[self.true_rows] = _width(lower, upper)[of_row]
        return Covers(out[0], out[1], width if column.is_numeric else None)


def read_published(
    table: Table,
    frame: pl.DataFrame,
    kept: BoolArray | None = None,
    data: EncodedTable | None = None,
    *,
    rows: IntArray | None = None,
    drawn: bool | None = False,
    seen: VisibleTexts | None = None,
) -> PublishedTable:
    """What *frame* states about the rows of *table*, text by text.

    Published rows are in the original order with suppressed rows left out; *kept* marks the original rows that
    were published. Where they stand in another order, *rows* has the number of each one's original row. Without
    either the rows are paired when both tables have as many, and not otherwise; *drawn* says that the order was drawn
    and they are not, and None that nobody knows: then they are paired only if every row fits its place, that is every
    text is true of the original there, the other columns are the same, and the rows moved by one would not fit too.
    *data* is the encoded original, *seen* what *frame* shows, where the caller has it. O(rows) and one parse per distinct text.

    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> read_published(table, table.frame).columns[0].name
    'age'
    """
    data = encode(table) if data is None else data
    # What was published is read from its texts, whatever rounding the schema asks of a release.
    if any(column.rounding is not None for column in data.columns):
        data = replace(data, columns=tuple(column.unrounded for column in data.columns))
    names = [column.name for column in data.columns]
    refuse_absent(names, frame.columns)
    if rows is not None:
        true_rows: npt.NDArray[np.int64] | None = _numbered(data.rows, frame.height, rows)
    else:
        true_rows = None if drawn and kept is None else _pairing(data.rows, frame.height, kept)
    seen = VisibleTexts.of(frame, names) if seen is None else seen
    columns = tuple(
        read_texts(
            column,
            frame.get_column(column.name),
            table.schema.missing_texts(column.name),
            seen=seen.columns[column.name],
        )
        for column in data.columns
    )
    agreeing = None if true_rows is None else _agreeing(table, frame, names, true_rows)
    if true_rows is not None and drawn is None and rows is None and kept is None:
        moved = np.roll(true_rows, 1)
        shown = data, columns
        if not (_fits(*shown, true_rows) and agreeing in (None, 1.0)) or (
            _fits(*shown, moved) and _agreeing(table, frame, names, moved) in (None, 1.0)
        ):
            true_rows = agreeing = None
    return PublishedTable(
        data=data,
        columns=columns,
        classes=seen.groups,
        true_rows=true_rows,
        agreeing=agreeing,
        schema=table.schema,
        sample=sample_design(table),
        seen=seen,
    )


def refuse_absent(quasi: Sequence[str], present: Sequence[str]) -> None:
    """Nothing, if every quasi-identifier is among the published columns; else the error that names those that lack.

    >>> refuse_absent(["age"], ["age", "ill"])
    """
    absent = [name for name in quasi if name not in present]
    if absent:
        raise TableError(
            say("The published table lacks quasi-identifiers: {names}.", names=", ".join(absent[:5])),
            "What they lost or gave away cannot be measured.",
            "Give the matching schema, or set publish = false for a column that was kept back.",
        )


def _pairing(rows: int, published: int, kept: BoolArray | None) -> npt.NDArray[np.int64] | None:
    if kept is None:
        if published > rows:
            raise TableError(
                say(
                    "The published table has {published} rows, the original only {rows}.",
                    published=published,
                    rows=rows,
                ),
                "A release never has more rows than the table it was made from.",
                "Check that the two files belong together.",
            )
        return np.arange(rows) if published == rows else None
    kept = np.asarray(kept, dtype=bool)
    if kept.size != rows or int(kept.sum()) != published:
        raise TableError(
            say(
                "The mask keeps {sum} of {size} rows; the tables have {published} and {rows}.",
                sum=int(kept.sum()),
                size=kept.size,
                published=published,
                rows=rows,
            ),
            "Rows would be compared with other people's.",
            "Give one entry per original row, True where it was published.",
        )
    return np.flatnonzero(kept)


def _numbered(originals: int, published: int, rows: IntArray) -> npt.NDArray[np.int64]:
    numbers = np.asarray(rows, dtype=np.int64)
    inside = numbers.size == published and bool(((numbers >= 0) & (numbers < originals)).all())
    if not inside or np.unique(numbers).size != published:
        raise TableError(
            say(
                "The numbers of rows do not fit: {size} of them, for {published} published rows of "
                "{originals}.",
                size=numbers.size,
                published=published,
                originals=originals,
            ),
            "Rows would be compared with other people's.",
            "Give the original's row for each published row, each once.",
        )
    return numbers


def _fits(data: EncodedTable, columns: tuple[PublishedColumn, ...], true_rows: npt.NDArray[np.int64]) -> bool:
    """Every text is true of the original row it is compared with; a blank may stand for any value."""
    for column, read in zip(data.columns, columns, strict=True):
        truth = column.codes[true_rows]
        inside = (truth >= read.low[read.codes]) & (truth <= read.high[read.codes])
        if not bool((inside | (read.codes == BLANK)).all()):
            return False
    return True


def _agreeing(
    table: Table, frame: pl.DataFrame, quasi: list[str], true_rows: npt.NDArray[np.int64]
) -> float | None:
    # Other columns leave as they came, so they show whether the order of rows was kept.
    names = [name for name in frame.columns if name in table.frame.columns and name not in quasi]
    if not names or not frame.height:
        return None
    before = table.frame.select(names)[true_rows]
    same = np.ones(frame.height, dtype=bool)
    for name in names:
        left, right = before.get_column(name).cast(pl.String), frame.get_column(name).cast(pl.String)
        same &= left.fill_null("").eq(right.fill_null("")).to_numpy()
    return float(same.mean())


def _chosen_by_value(truth: npt.NDArray[np.int32], column: EncodedColumn, read: PublishedColumn) -> bool:
    text_of = np.zeros(column.size, dtype=np.int32)
    text_of[truth] = read.codes
    return bool((text_of[truth] == read.codes).all())


def _width(lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.float64]:
    return np.nan_to_num(upper - lower, nan=0.0)
