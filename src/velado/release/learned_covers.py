"""Learned covers: what a release says of its groups, kept without its rows, so that new rows can be placed in it.

Only what the release published is kept: the distinct published tuples, and how wide each is. A new row goes to the
narrowest tuple that is true of it, or, where none is, to the nearest. Nobody promises that k new rows share a tuple, so
that whatever is placed is measured, never guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from velado.data.encode import EncodedColumn, encode_column, text_codes
from velado.data.normal import normal_texts
from velado.data.numbers import parse_and_clamp
from velado.data.partition import BoolArray, FloatArray, Int32Array
from velado.data.published_column import stated_number
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.release.release import Release

_AT_ONCE = 4_000_000
"""So many distances of rows to tuples are held at a time."""


@dataclass(frozen=True, repr=False)
class _NumberColumn:
    """The published values of a numeric column: each between two ends, or a blank; `*` has no ends."""

    lower: FloatArray
    upper: FloatArray
    blank: BoolArray
    span: float

    @classmethod
    def of(cls, texts: Sequence[str | None], column: Column, decimal: str) -> _NumberColumn:
        lower, upper = np.full(len(texts), -np.inf), np.full(len(texts), np.inf)
        for at, text in enumerate(texts):
            found = None if text is None else stated_number(text, decimal)
            if found is not None:
                lower[at] = found.lower if found.with_lower else np.nextafter(found.lower, np.inf)
                upper[at] = found.upper if found.with_upper else np.nextafter(found.upper, -np.inf)
        ends = np.concatenate((lower, upper))
        ends = ends[np.isfinite(ends)]
        low, high = column.bounds or ((ends.min(), ends.max()) if ends.size else (0.0, 0.0))
        blank = np.array([text is None for text in texts], dtype=bool)
        return cls(lower, upper, blank, float(high - low) or 1.0)

    def gaps(self, table: Table, column: Column) -> tuple[FloatArray, Int32Array]:
        """How far each distinct value lies outside each published one, as a share of the domain, and each row's value."""
        missing = table.is_missing(column.name).to_numpy()
        numbers = parse_and_clamp(table, column, missing)[0]
        points, codes = np.unique(numbers, return_inverse=True)
        far = np.maximum(self.lower - points[:, None], points[:, None] - self.upper)
        far = np.where(self.blank, 1.0, np.clip(far / self.span, 0.0, None))
        says_all = np.isneginf(self.lower) & np.isposinf(self.upper)
        blanks = np.where(self.blank | says_all, 0.0, 1.0)
        out = np.where(missing, points.size, codes.reshape(-1)).astype(np.int32)
        return np.vstack((far, blanks)), out


@dataclass(frozen=True, repr=False)
class _LabelColumn:
    """The published labels of a column with a taxonomy, each in its normal form; a blank is none."""

    labels: tuple[str | None, ...]
    case: str
    decimal: str

    @classmethod
    def of(cls, texts: Sequence[str | None], column: EncodedColumn) -> _LabelColumn:
        return cls(tuple(_normal(texts, column.case, column.decimal)), column.case, column.decimal)

    def gaps(self, table: Table, column: Column) -> tuple[FloatArray, Int32Array]:
        """For each distinct value 0 beside the labels that are true of it and 1 beside the others; each row's value."""
        missing = table.is_missing(column.name).to_numpy()
        at = {label: n for n, label in enumerate(self.labels)}
        widest = [at[one] for one in (ROOT_LABEL,) if one in at]
        blank = np.ones(len(self.labels))
        blank[[*widest, *([at[None]] if None in at else [])]] = 0.0
        codes = np.zeros(table.rows, dtype=np.int32)
        if missing.all():
            return blank[None, :], codes
        present = table.with_frame(table.frame.filter(pl.Series(~missing)))
        found = encode_column(present, column)
        assert found.tree is not None
        labels = _normal(found.tree.labels, self.case, self.decimal)
        far = np.ones((found.tree.leaves + 1, len(self.labels)))
        far[-1] = blank
        for leaf in range(found.tree.leaves):
            node = leaf
            while True:
                if labels[node] in at:
                    far[leaf, at[labels[node]]] = 0.0
                if node == found.tree.root:
                    break
                node = int(found.tree.parent[node])
        codes[~missing] = found.codes
        codes[missing] = found.tree.leaves
        return far, codes


def _normal(texts: Sequence[str | None], case: str, decimal: str) -> list[str | None]:
    return normal_texts(pl.Series(texts, dtype=pl.String), case=case, decimal=decimal).to_list()


@dataclass(frozen=True, repr=False)
class Placed:
    """New rows in learned groups: the tuple each row is shown as, and whether it is true of the row.

    >>> Placed(np.array([0, 0, 1], dtype=np.int32), np.array([True, False, True])).smallest
    1
    """

    tuples: Int32Array
    fits: BoolArray

    @property
    def smallest(self) -> int:
        """How many of the new rows share the tuple that fewest share."""
        sizes = np.bincount(self.tuples)
        return int(sizes[sizes > 0].min())

    def below(self, k: int) -> int:
        """How many of the new rows share their tuple with fewer than k new rows, themselves counted.

        >>> Placed(np.array([0, 0, 1], dtype=np.int32), np.array([True, False, True])).below(2)
        1
        """
        return int((np.bincount(self.tuples)[self.tuples] < k).sum())


@dataclass(frozen=True, repr=False)
class LearnedCovers:
    """The distinct published tuples of a release, narrowest first; no row of it, and no value that it did not publish.

    *frame* holds the tuples, *schema* the columns with every automatic taxonomy written out, so that a new value is
    placed the same way whatever other rows come with it.

    >>> from velado.testing.examples import small_release
    >>> LearnedCovers.of(small_release().release)
    LearnedCovers(4 tuples of 1 column)
    """

    frame: pl.DataFrame
    schema: Schema
    _codes: tuple[Int32Array, ...]
    _columns: tuple[_NumberColumn | _LabelColumn, ...]

    def __repr__(self) -> str:
        columns = "column" if self.frame.width == 1 else "columns"
        return f"LearnedCovers({self.frame.height} tuples of {self.frame.width} {columns})"

    @classmethod
    def of(cls, release: Release) -> LearnedCovers:
        """What *release* published of its quasi-identifiers. O(n log n)."""
        schema = _written_out(release)
        names = [column.name for column in release.data.columns]
        losses = [p.losses(c) for c, p in zip(release.data.columns, release.recoded.columns, strict=True)]
        shown = release.aligned.select(pl.col(names).cast(pl.String)).with_columns(
            pl.Series("\0width", np.sum(losses, axis=0)[release.recoded.kept])
        )
        tuples = shown.group_by(names).agg(pl.col("\0width").min()).sort("\0width", *names).drop("\0width")
        codes, columns = [], []
        for encoded in release.data.columns:
            coded, _ = text_codes(tuples[encoded.name])
            texts = [None, *tuples[encoded.name].drop_nulls().unique().sort()]
            column = schema.columns[encoded.name]
            codes.append(coded)
            columns.append(
                _NumberColumn.of(texts, column, encoded.decimal)
                if encoded.tree is None
                else _LabelColumn.of(texts, encoded)
            )
        return cls(tuples, schema, tuple(codes), tuple(columns))

    def place(self, table: Table) -> Placed:
        """The tuple of each row of *table*, which has the same columns: the narrowest that fits, else the nearest.

        The distance of a number is how far it lies outside an interval, as a share of the domain; a label that is not
        true of a value is 1 away. O(rows x tuples).

        >>> from velado.testing.examples import small_release, table
        >>> covers = LearnedCovers.of(small_release().release)
        >>> placed = covers.place(table(age=[20, 33]))
        >>> covers.frame["age"][placed.tuples].to_list(), placed.fits.tolist()
        (['[20..21]', '[30..31]'], [True, False])
        """
        quasi = [self.schema.columns[name] for name in self.frame.columns]
        tuples, nearest = np.empty(table.rows, dtype=np.int32), np.empty(table.rows)
        step = max(1, _AT_ONCE // max(self.frame.height, 1))
        for start in range(0, table.rows, step):
            some = table.with_frame(table.frame.slice(start, step))
            far = np.zeros((some.rows, self.frame.height))
            for column, known, codes in zip(quasi, self._columns, self._codes, strict=True):
                gaps, values = known.gaps(some, column)
                far += gaps[values][:, codes]
            found = far.argmin(axis=1)
            tuples[start : start + step] = found
            nearest[start : start + step] = far[np.arange(some.rows), found]
        return Placed(tuples, nearest == 0)

    def shown(self, table: Table, placed: Placed) -> pl.DataFrame:
        """The published columns of *table*, in their order, with the tuple of each row in place of its quasi-identifiers.

        >>> from velado.testing.examples import small_release, table
        >>> covers, new = LearnedCovers.of(small_release().release), table(age=[50])
        >>> covers.shown(new, covers.place(new)).rows()
        [('[50..51]',)]
        """
        cover = self.frame[placed.tuples]
        columns = [n for n in table.frame.columns if table.schema.columns[n].published]
        return pl.DataFrame([(cover if n in cover.columns else table.frame)[n] for n in columns])


def _written_out(release: Release) -> Schema:
    """The schema with the taxonomies that were made from the values as builders: which one depends on all values."""
    columns = dict(release.table.schema.columns)
    for encoded in release.data.columns:
        column = columns[encoded.name]
        automatic = column.taxonomy is None or column.taxonomy.builder == "auto"
        if encoded.tree is None or not automatic or column.kind == "date":
            continue
        length = max(len(label) for label in encoded.tree.labels[: encoded.tree.leaves])
        spec = TaxonomySpec("flat")
        if encoded.tree.height > 1:
            spec = TaxonomySpec("prefix", keep=tuple(range(length - 1, 0, -1)))
        columns[encoded.name] = replace(column, taxonomy=spec)
    return release.table.schema.with_columns(columns.values())
