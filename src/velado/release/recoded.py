"""Recoded: what a method hands to release(): per column, what each row is published as and what that covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedColumn
from velado.data.partition import BoolArray, IntArray, Partition
from velado.data.published_column import Cell as Cell
from velado.data.published_column import PublishedColumn as PublishedColumn
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import ParameterError
from velado.text import Sentence, say, say_n


def true_codes(
    column: EncodedColumn, cells: Sequence[Cell]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The codes each published number is true of: itself, as a run low..high; an empty run where nobody has it.

    >>> from velado.testing.examples import column
    >>> [codes.tolist() for codes in true_codes(column([20, 30]), (20.0, 25.0))]
    [[0, 1], [0, 0]]
    """
    assert column.points is not None
    blank = np.array([cell is None for cell in cells], dtype=bool)
    numbers = np.array(
        [0.0 if cell is None else float(str(cell).replace(column.decimal, ".")) for cell in cells],
        dtype=np.float64,
    )
    at = np.minimum(np.searchsorted(column.points, numbers), column.size - 1)
    known = (column.points[at] == numbers) & (at != column.missing)
    low = np.where(blank, column.missing, np.where(known, at, 1))
    high = np.where(blank, column.missing, np.where(known, at, 0))
    return low.astype(np.int32), high.astype(np.int32)


def as_it_is(column: EncodedColumn) -> PublishedColumn:
    """The column published with its own values.

    >>> from velado.testing.examples import column
    >>> as_it_is(column(["b", "a"])).values
    ('a', 'b')
    """
    every = np.arange(column.size, dtype=np.int32)
    return PublishedColumn(column.name, column.codes, tuple(column.value_texts), every, every)


class NoteName(str):
    """The name of a note about a run: in JSON the code alone, in a report its *words*; a *share* is a percent there.

    >>> note = NoteName("bins", say("intervals per number column"))
    >>> note == "bins", note.words
    (True, 'intervals per number column')
    """

    __slots__ = ("share", "words")

    words: Sentence
    share: bool

    def __new__(cls, code: str, words: Sentence, share: bool = False) -> NoteName:
        """The code, with what a reader is shown."""
        made = super().__new__(cls, code)
        made.words, made.share = words, share
        return made

    def __reduce__(self) -> tuple[type[NoteName], tuple[str, Sentence, bool]]:
        return type(self), (str(self), self.words, self.share)


GROUPS = NoteName("groups", say("groups formed"))
BINS = NoteName("bins", say("intervals per number column"))


@dataclass(frozen=True, repr=False)
class Recoded:
    """The recoded quasi-identifiers of a whole table.

    *kept* is False where the method chose to suppress a row. *partition* is the method's own grouping, for
    the report only: release() never trusts it. *notes* are facts about the run (bins chosen, rounds, bounds)
    that the report shows, each under a NoteName; they hold no cell values. *warnings* are what a reader of the release
    should know of it.

    >>> Recoded((), np.array([True, False]))
    Recoded(rows=2, suppressed=1, columns=0)
    """

    columns: tuple[PublishedColumn, ...]
    kept: BoolArray
    partition: Partition | None = None
    notes: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def of_rows(self, entry_of_row: IntArray) -> Recoded:
        """The same recoding over the rows behind the entries of a counted table."""
        columns = tuple(replace(column, codes=column.codes[entry_of_row]) for column in self.columns)
        partition = None if self.partition is None else self.partition.of_rows(entry_of_row)
        return replace(self, columns=columns, kept=self.kept[entry_of_row], partition=partition)

    def __repr__(self) -> str:
        return f"Recoded(rows={self.kept.size}, suppressed={int((~self.kept).sum())}, columns={len(self.columns)})"


def refuse_unrounded(columns: Sequence[EncodedColumn], recoded: Recoded) -> None:
    """Every column whose interval ends are to be rounded is published as intervals, or a ParameterError says so.

    >>> from velado.release.recoders import Cover
    >>> from velado.testing.examples import encoded
    >>> data, groups = encoded(age=[20, 30]), Partition.of(np.array([0, 0]))
    >>> refuse_unrounded(data.columns, Recoded(Cover().publish(data, groups), groups.kept))
    """
    for column, published in zip(columns, recoded.columns, strict=True):
        if column.rounding is not None and not published.states_cover:
            raise ParameterError(
                say(
                    "The interval ends of '{column}' are to be rounded, but it is published as single "
                    "numbers.",
                    column=column.name,
                ),
                "A mean, a centroid or a most common value has no ends: it may be somebody's true value as it stands.",
                "Use a method with the recoder cover (or intervals), or remove 'round' from the column.",
            )


def of_kept_rows(columns: Sequence[EncodedColumn], recoded: Recoded) -> Recoded:
    """The same recoding with every interval drawn around the rows that are kept.

    A method that recodes whole columns (full-domain levels, bins) draws an interval around all rows that fall into it.
    If some of them are then suppressed, an end may be the value of somebody who does not leave: `[8369..7654321]`
    tells the one salary that was to be hidden. Taxonomy labels and `*` say nothing of who is in the table. O(n).

    >>> from velado.release.recoders import Cover
    >>> from velado.testing.examples import encoded
    >>> data, groups = encoded(age=[20, 30, 60]), Partition.of(np.array([0, 0, 0]))
    >>> made = Recoded(Cover().publish(data, groups), np.array([True, True, False]))
    >>> of_kept_rows(data.columns, made).columns[0].values
    ('[20..30]',)
    """
    if bool(recoded.kept.all()):
        return recoded
    published = [
        _around(column, shown, recoded.kept) for column, shown in zip(columns, recoded.columns, strict=True)
    ]
    return replace(recoded, columns=tuple(published))


def _around(column: EncodedColumn, shown: PublishedColumn, kept: BoolArray) -> PublishedColumn:
    if column.points is None or not shown.states_cover:
        return shown
    codes, values = column.codes[kept], shown.codes[kept]
    low = np.full(len(shown.values), column.size, dtype=np.int32)
    high = np.full(len(shown.values), -1, dtype=np.int32)
    np.minimum.at(low, values, codes)
    np.maximum.at(high, values, codes)
    drawn = np.array([value is not None and value != ROOT_LABEL for value in shown.values], dtype=bool)
    drawn &= high >= 0
    low, high = np.where(drawn, low, shown.low), np.where(drawn, high, shown.high)
    stated_low, stated_high = column.stated(low, high)
    labels = column.label(stated_low, stated_high)
    texts = tuple(label if new else old for label, new, old in zip(labels, drawn, shown.values, strict=True))
    return replace(
        shown,
        values=texts,
        low=np.where(drawn, stated_low, shown.low).astype(np.int32),
        high=np.where(drawn, stated_high, shown.high).astype(np.int32),
    )


def refuse_means_of_suppressed(before: Recoded, kept: BoolArray) -> None:
    """No published mean was taken over a row that is suppressed after it: from mean and size its value could be had.

    >>> from velado.release.recoders import Cover
    >>> from velado.testing.examples import encoded
    >>> data, groups = encoded(age=[20, 30]), Partition.of(np.array([0, 0]))
    >>> refuse_means_of_suppressed(Recoded(Cover().publish(data, groups), groups.kept), np.array([True, False]))
    """
    gone = before.kept & ~kept
    for column in before.columns:
        if column.states_cover:
            continue
        shared = np.intersect1d(column.codes[gone], column.codes[kept])
        if shared.size:
            raise ParameterError(
                say_n(
                    "{n:,} value published for '{column}' stands for rows that would be suppressed too.",
                    "{n:,} values published for '{column}' stand for rows that would be suppressed too.",
                    shared.size,
                    column=column.name,
                ),
                "With the number of rows, a mean tells what the suppressed row had.",
                "Use the recoder cover or another method, or allow no suppression and lower k.",
            )
