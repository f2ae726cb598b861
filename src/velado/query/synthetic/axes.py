"""The cells of each column of a synthetic table: what the schema declares, never what the rows hold.

A text belongs to the declared value it equals; a number to the bin of its declared bounds that holds its grid index. What is missing
or undeclared is one more cell, which is published as a blank, or, where the schema says that blanks are refused or suppressed, whose
rows are left out. So the published table holds declared values and blanks alone, whatever the rows hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.schema import Column, Schema
from velado.data.toml_keys import toml_key
from velado.errors import ParameterError, QueryRefused
from velado.query.domains import decimal_text, key_of
from velado.query.needs import Grid
from velado.query.unit import Unit
from velado.text import join, listed, say

DEFAULT_BINS = 32


@dataclass(frozen=True)
class Axis:
    """One column: its declared texts, or its grid cut at *edges* (bin b holds edges[b] <= index < edges[b+1]).

    *blanks*: one more cell, the last, holds what is missing or undeclared. *decimals*: so many are published of a number whose
    step nobody declared.

    >>> axis = Axis.of(Schema({"age": Column("age", kind="numeric", bounds=(0, 99), step=1.0)}), "age", bins=10)
    >>> axis.size, axis.edges[:3], axis.blanks
    (11, (0, 10, 20), True)
    """

    column: str
    texts: tuple[str, ...] = ()
    grid: Grid | None = None
    edges: tuple[int, ...] = ()
    blanks: bool = True
    decimals: int | None = None
    decimal: str = "."

    @property
    def declared(self) -> int:
        """Cells without the one of blanks."""
        return len(self.texts) if self.grid is None else len(self.edges) - 1

    @property
    def size(self) -> int:
        """Cells in all."""
        return self.declared + self.blanks

    @classmethod
    def of(cls, schema: Schema, name: str, bins: int = DEFAULT_BINS) -> Axis:
        """The axis the schema declares for a column; QueryRefused where it declares none."""
        column = schema.columns[name]
        blanks = schema.missing_policy(column) == "value"
        if column.kind == "numeric" and column.values is None:
            grid = Grid.of(column)
            points = grid.high - grid.low + 1
            cut = min(bins, points)
            edges = tuple(grid.low + points * at // cut for at in range(cut + 1))
            return cls(name, (), grid, edges, blanks, _decimals(column, grid, cut), schema.decimal)
        return cls(name, key_of(schema, name).domain, blanks=blanks)

    def values(self, codes: NDArray[np.int32], random: np.random.Generator) -> pl.Series:
        """What is published for codes: the declared text, a number of the bin drawn evenly, or a blank (null)."""
        if self.grid is None:
            shown = pl.Series(self.column, [*self.texts, None], dtype=pl.String)
            return shown.gather(pl.Series(codes).cast(pl.UInt32))
        edges = np.array([*self.edges, self.edges[-1] + 1], dtype=np.int64)
        low, width = edges[codes], edges[codes + 1] - edges[codes]
        indices = low + np.floor(random.random(codes.size) * width).astype(np.int64)
        return self.numbers(np.where(codes < self.declared, indices, self.edges[-1]))

    def numbers(self, indices: NDArray[np.int64]) -> pl.Series:
        """Grid indices as the texts of their numbers; one beyond the grid is a blank (null)."""
        grid = self.grid
        assert grid is not None
        distinct, places = np.unique(indices, return_inverse=True)
        texts = [None if index > grid.high else self._text(int(index)) for index in distinct.tolist()]
        return pl.Series(self.column, texts, dtype=pl.String).gather(pl.Series(places).cast(pl.UInt32))

    def _text(self, index: int) -> str:
        assert self.grid is not None
        value = self.grid.step * index
        if self.decimals is not None:
            scale = Fraction(10) ** self.decimals
            # Toward the middle of the grid, so that rounding leaves no bound behind.
            inside = value * scale
            whole = -((-inside) // 1) if index <= self.grid.centre else inside // 1
            value = whole / scale
        return decimal_text(value).replace(".", self.decimal)

    def codes(self, series: pl.Series, missing: Sequence[str]) -> NDArray[np.int32]:
        """The cells of texts or numbers in memory, as an engine would tell them; what is none is the cell after the last declared."""
        if self.grid is None:
            places = {text: at for at, text in enumerate(self.texts)}
            texts = series.cast(pl.String)
            found = texts.replace_strict(places, default=len(self.texts), return_dtype=pl.Int32)
            return found.fill_null(len(self.texts)).to_numpy()
        given = self.given(series, missing)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.floor(given / float(self.grid.step) + 0.5)
        index = np.clip(np.nan_to_num(near), self.grid.low, self.grid.high).astype(np.int64)
        bins = np.searchsorted(np.array(self.edges), index, side="right") - 1
        return np.where(np.isnan(given), self.declared, bins).astype(np.int32)

    def given(self, series: pl.Series, missing: Sequence[str]) -> NDArray[np.float64]:
        """The numbers that texts or numbers in memory are read as, NaN for what is none."""
        if series.dtype == pl.String:
            numbers = series.set(series.is_in(list(missing)), None)
            if self.decimal != ".":
                numbers = numbers.str.replace_all(".", "", literal=True).str.replace(
                    self.decimal, ".", literal=True
                )
            values = numbers.str.strip_chars().cast(pl.Float64, strict=False)
        else:
            values = series.cast(pl.Float64)
        return values.fill_null(float("nan")).to_numpy()

    def moved(self, series: pl.Series, missing: Sequence[str]) -> pl.Series:
        """The texts of a column of numbers, those beyond its bounds as the bound that they count as; others as they are."""
        assert self.grid is not None
        given = self.given(series, missing)
        ends = (self.grid.value(self.grid.low), self.grid.value(self.grid.high))
        with np.errstate(invalid="ignore"):
            beyond = (given < ends[0]), (given > ends[1])
        texts = series.cast(pl.String)
        for out, index in zip(beyond, (self.grid.low, self.grid.high), strict=True):
            texts = texts.set(pl.Series(out), self._text(index))
        return texts


def _decimals(column: Column, grid: Grid, cut: int) -> int | None:
    """A hundredth of a bin is as fine as a number without a declared step is told."""
    if column.step is not None:
        return None
    width = float(grid.step) * (grid.high - grid.low + 1) / cut
    return max(0, int(np.ceil(-np.log10(width / 100)))) if width > 0 else 0


def axes_of(
    schema: Schema, unit: Unit, columns: Sequence[str] | None = None, bins: int = DEFAULT_BINS
) -> tuple[Axis, ...]:
    """The axes of the columns to publish, in the schema's order: those named, else all but identifiers and the unit's own.

    >>> axes_of(Schema({"ward": Column("ward", values=("a", "b"))}), Unit())[0].size
    3
    """
    if columns is not None:
        unknown = [name for name in columns if name not in schema.columns]
        if unknown:
            raise ParameterError(
                say("{names} is not in the schema.", names=listed(unknown)),
                "The cells of a synthetic table are declared there.",
                "Name columns of the schema.",
            )
    chosen = [
        column
        for name, column in schema.columns.items()
        if (name in columns if columns is not None else column.published)
    ]
    hidden = [column.name for column in chosen if column.role == "identifier" or column.name == unit.column]
    if columns is not None and hidden:
        raise ParameterError(
            say("{names} tells people apart and has no place in a synthetic table.", names=listed(hidden)),
            "Its values belong to single people, who are not in the table.",
            "Leave it out of the columns.",
        )
    chosen = [column for column in chosen if column.name not in hidden and not column.person]
    if not chosen:
        raise ParameterError(
            "No column is left to publish.",
            "Identifiers and the column that tells people apart have no place in a synthetic table.",
            "Declare at least one other column in the schema.",
        )
    axes, problems = [], list[str]()
    for column in chosen:
        try:
            axes.append(Axis.of(schema, column.name, bins))
        except QueryRefused as error:
            problems.append(error.what)
            last = error
    if problems:
        fixes = list(_fixes(chosen, schema))
        raise QueryRefused(
            join(problems),
            "The cells of a synthetic table are declared and never read off the rows: values found there would tell who is there.",
            join(fixes) if fixes else last.fix,
        )
    return tuple(axes)


def _fixes(columns: Sequence[Column], schema: Schema) -> Iterator[str]:
    """What to add to the schema, column by column."""
    for column in columns:
        try:
            Axis.of(schema, column.name)
        except QueryRefused as error:
            if column.kind == "numeric" and column.bounds is None and column.values is None:
                yield say("Add bounds = [low, high] to [columns.{column}].", column=toml_key(column.name))
            elif column.values is None and column.kind != "numeric":
                yield say(
                    'Add values = ["...", "..."] to [columns.{column}], or leave the column out.',
                    column=toml_key(column.name),
                )
            else:
                yield error.fix
