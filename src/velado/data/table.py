"""Table: columns and what each means. Immutable, checked when made, and its repr never shows a cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
import polars as pl

from velado.data.blanks import NoValue, blanked
from velado.data.frames import CameAs
from velado.data.schema import Column, Schema
from velado.errors import NoRows, ParameterError, SchemaError, TableError
from velado.settings import Setting, Where, made, settings
from velado.text import say, say_n

if TYPE_CHECKING:
    from velado.data.partition import Int32Array

T = TypeVar("T")
Undeclared = Literal["refuse", "drop", "keep"]


@settings
class ReadSettings:
    """How a table meets its schema.

    >>> ReadSettings().undeclared
    'refuse'
    """

    undeclared: Annotated[Undeclared, Setting("columns that the schema does not name")] = "refuse"


@dataclass(frozen=True, repr=False)
class Table:
    """A frame whose every column the schema names, in the frame's own order.

    *fingerprint* is the SHA-256 of the bytes it came from, for the owner alone: whoever has it can test guesses of
    them. *source* is a name for messages; *encoding* what a text file was found or declared to be in. *dropped* are
    the columns that `undeclared="drop"` left out, and the levels of a pandas index that the schema does not declare: they
    are never published, but may still tell who is a person. *came* is the kind of frame the table was. *behind* says
    how many rows of the source each row stands for, where it is one of distinct values; None: each for itself.

    >>> frame = pl.DataFrame({"age": ["31", "NA"]})
    >>> table = Table.of(frame, Schema({"age": Column("age", "quasi", "numeric")}, missing_values=("NA",)))
    >>> table, table.is_missing("age").to_list()
    (Table(2 rows; 1 quasi), [False, True])
    """

    frame: pl.DataFrame
    schema: Schema
    source: str = "table"
    fingerprint: str = ""
    separator: str = ","
    encoding: str = "utf-8"
    dropped: pl.DataFrame | None = None
    came: CameAs = field(default_factory=CameAs)
    behind: pl.Series | None = None
    # What was worked out of the cells once (spellings); a table with other cells or another schema begins anew.
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    # What depends on the cells and on which of them are missing alone: the same cells under another schema know it too.
    _cells: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        schema: Schema,
        source: str = "table",
        fingerprint: str = "",
        undeclared: Undeclared = "refuse",
        separator: str = ",",
        encoding: str = "utf-8",
    ) -> Table:
        """Bring frame and schema together, or say which column does not fit."""
        undeclared = made(ReadSettings, {"undeclared": undeclared}, Where("python")).undeclared
        absent = [name for name in schema.columns if name not in frame.columns]
        if absent:
            raise SchemaError(
                say("The schema names {absent}, which the table does not have.", absent=_list(absent)),
                "A promise about a column that is not there cannot be kept.",
                "Correct the name in the schema or the header of the table.",
            )
        unnamed = [name for name in frame.columns if name not in schema.columns]
        if unnamed and undeclared == "refuse":
            raise SchemaError(
                say("The table has {unnamed}, which the schema does not name.", unnamed=_list(unnamed)),
                "A column nobody thought about could identify people.",
                "Add it to the schema, or pass --undeclared drop or --undeclared keep.",
            )
        dropped = None
        if unnamed and undeclared == "drop":
            dropped = frame.select(unnamed)
            frame = pl.DataFrame([s for s in frame.get_columns() if s.name not in unnamed])
        columns = [schema.columns.get(name) or Column(name, "other", "text") for name in frame.columns]
        if frame.height == 0:
            raise NoRows(
                "The table has no rows.",
                "There is nobody to protect and nothing to publish.",
                "Check that the right file was given.",
            )
        _refuse_odd_columns(frame)
        _refuse_huge_cells(frame, schema.max_cell_bytes)
        return cls(frame, schema.with_columns(columns), source, fingerprint, separator, encoding, dropped)

    def __repr__(self) -> str:
        roles = {role: 0 for role in ("identifier", "quasi", "sensitive", "other")}
        for column in self.schema.columns.values():
            roles[column.role] += 1
        counts = ", ".join(f"{count} {role}" for role, count in roles.items() if count)
        return f"Table({self.rows} rows; {counts})"

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return self.frame.height

    def once(self, asked: tuple[object, ...], make: Callable[[], T]) -> T:
        """What *make* works out of the cells; the second who asks for it gets what the first got."""
        if asked not in self._known:
            self._known[asked] = make()
        found: T = self._known[asked]
        return found

    def of_cells(self, asked: tuple[object, ...], make: Callable[[], T]) -> T:
        """As `once`, for what no role and no kind changes: the table with another schema gets it too."""
        key = (self.schema.all_missing_texts, *asked)
        if key not in self._cells:
            self._cells[key] = make()
        found: T = self._cells[key]
        return found

    def arrived(self, came: CameAs, left_out: pl.DataFrame | None = None) -> Table:
        """The same cells with how they came, and with what else was *left_out* of the frame."""
        parts = [part for part in (self.dropped, left_out) if part is not None]
        return replace(self, came=came, dropped=reduce(pl.DataFrame.hstack, parts) if parts else None)

    def with_frame(self, frame: pl.DataFrame) -> Table:
        """The same schema over another frame (after an operation on its columns).

        With other rows, the columns that were left out no longer belong to them and are forgotten.
        """
        stays = self.dropped is not None and self.dropped.height == frame.height
        return replace(self, frame=frame, dropped=self.dropped if stays else None)

    def held_in(self, frame: pl.DataFrame) -> Table:
        """The same cells held in another *frame*, such as its own `packed_frame`: what was worked out of them stays known."""
        out = replace(self, frame=frame)
        object.__setattr__(out, "_known", self._known)
        object.__setattr__(out, "_cells", self._cells)
        return out

    def with_schema(self, schema: Schema) -> Table:
        """The same cells with another meaning."""
        out = replace(self, schema=schema)
        object.__setattr__(out, "_cells", self._cells)
        return out

    def is_missing(self, name: str) -> pl.Series:
        """True where a column has no value: null, or what the schema says to mean none in it."""
        return self.of_cells(("missing", name), lambda: self._missing(name))

    def _missing(self, name: str) -> pl.Series:
        series = self.frame.get_column(name)
        texts = self.schema.missing_texts(name)
        missing = series.is_null() | NoValue.of(texts, self.schema.decimal).marks(series)
        if series.dtype in (pl.String, pl.Categorical, pl.Enum) and "" in texts:
            missing = missing | (series.cast(pl.String) == "")
        return missing.fill_null(True)

    def listed(self, name: str) -> pl.Series:
        """A column; a text column of few values has them in a list once, and its rows have places in it.

        >>> Table.of(pl.DataFrame({"sex": ["F", "M"] * 32}), Schema({"sex": Column("sex", "quasi")})).listed("sex").dtype
        Enum(categories=['F', 'M'])
        """
        return self.of_cells(("listed", name), lambda: _packed(self.frame.get_column(name)))

    def packed_frame(self) -> pl.DataFrame:
        """The same cells, every column `listed`: a quarter of the room or less.

        Only for cells that were judged: what texts look like is asked of text columns alone.
        """
        return pl.DataFrame([self.listed(name) for name in self.frame.columns])

    def few_cells(self, name: str) -> tuple[Table, Int32Array] | None:
        """The distinct texts of a column as a table of their own, with the rows behind each, and which of them each row has.

        None where they are many: then nothing is gained by asking each of them once.

        >>> table = Table.of(pl.DataFrame({"sex": ["F", "M"] * 32}), Schema({"sex": Column("sex", "quasi")}))
        >>> cells, which = table.few_cells("sex")
        >>> cells.frame["sex"].to_list(), cells.behind.to_list(), which[:3]
        (['F', 'M'], [32, 32], array([0, 1, 0], dtype=int32))
        """
        listed = self.listed(name)
        if self.frame.schema[name] != pl.String or not isinstance(listed.dtype, pl.Enum):
            return None
        texts = listed.dtype.categories
        which = listed.to_physical().cast(pl.Int32).fill_null(len(texts)).to_numpy()
        rows = None if self.behind is None else self.behind.to_numpy()
        kind = pl.UInt32() if self.behind is None else self.behind.dtype
        behind = pl.Series(np.bincount(which, weights=rows)).cast(kind)
        if len(behind) > len(texts):
            texts = texts.extend_constant(None, 1)
        return replace(self.with_frame(texts.alias(name).to_frame()), behind=behind), which

    def blanked(self) -> Table:
        """The same table with nothing in the cells that the schema says to mean no value: so it is published."""
        frame = blanked(self.frame, self.schema)
        return self if frame is self.frame else self.with_frame(frame)

    def text(self, name: str) -> pl.Series:
        """A column as text, missing values as null."""
        series = self.frame.get_column(name)
        if isinstance(series.dtype, pl.Datetime) and self.schema.columns[name].kind == "date":
            series = series.dt.date()  # a date is a day; the hour has no place in its taxonomy
        return series.cast(pl.String).set(self.is_missing(name), None)

    def to_dict(self) -> dict[str, int]:
        """What may be said of the table without showing it."""
        return {"rows": self.rows, "columns": self.frame.width}


def table_given(table: Any) -> Table:
    """The same, if it is a Table; else the error that says how to make one.

    >>> table_given(None)
    Traceback (most recent call last):
    velado.errors.ParameterError: A Table cannot be a NoneType. It knows what each column means. Make one: velado.read_table(source, schema).
    """
    if not isinstance(table, Table):
        raise ParameterError(
            say("A Table cannot be a {kind}.", kind=type(table).__name__),
            "It knows what each column means.",
            "Make one: velado.read_table(source, schema).",
        )
    return table


_REPEATED = 32
"""Rows for each distinct text from which on a list of the texts is worth its while."""


def _packed(series: pl.Series) -> pl.Series:
    if series.dtype != pl.String:
        return series
    values = series.unique().drop_nulls()
    few = 0 < len(values) * _REPEATED <= len(series)
    return series.cast(pl.Enum(values.sort())) if few else series


_ODD_TYPES = (pl.List, pl.Array, pl.Struct, pl.Object, pl.Binary, pl.Duration)


def _refuse_odd_columns(frame: pl.DataFrame) -> None:
    for name, dtype in frame.schema.items():
        if isinstance(dtype, _ODD_TYPES):
            raise TableError(
                say(
                    "Column '{name}' holds values of type {type}.",
                    name=name,
                    type=type(dtype).__name__.lower(),
                ),
                "Only texts, numbers, dates and yes/no values can be compared, published and written to every format.",
                "Turn the column into text or numbers, or drop it before.",
            )
    patterns = [name for name in frame.columns if name == "*" or (name[:1] == "^" and name[-1:] == "$")]
    if patterns:
        raise TableError(
            say_n(
                "{n} column name is a pattern: '*', or a text from '^' to '$'.",
                "{n} column names are patterns: '*', or a text from '^' to '$'.",
                len(patterns),
            ),
            "Such a name would stand for several columns at once.",
            "Rename the column.",
        )


def _refuse_huge_cells(frame: pl.DataFrame, limit: int) -> None:
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not texts:
        return
    longest = frame.select(pl.col(texts).str.len_bytes().max()).row(0, named=True)
    for name, size in longest.items():
        if size is not None and size > limit:
            raise TableError(
                say(
                    "Column '{name}' has a cell of {size:,} bytes; the limit is {limit:,}.",
                    name=name,
                    size=size,
                    limit=limit,
                ),
                "Such a cell usually means a broken quote or a file in the wrong format.",
                "Correct the file, drop the column, or raise max_cell_bytes in [table] of the schema.",
            )


def _list(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    if len(names) > 5:
        return say("the columns {shown} and {count} more", shown=shown, count=len(names) - 5)
    return say_n("the column {shown}", "the columns {shown}", len(names), shown=shown)
