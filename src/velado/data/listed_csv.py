"""CSV of a large table whose columns are lists of texts: each text is quoted once, and rows are put together from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from velado.compiled import njit

if TYPE_CHECKING:
    import numpy.typing as npt

    from velado.data.partition import Int32Array, Int64Array, IntArray

    ByteArray = npt.NDArray[np.uint8]


@njit(cache=True)
def rows_of_cells(codes: Int32Array, first: Int64Array, starts: Int64Array, cells: ByteArray) -> ByteArray:
    """The bytes of rows, cell after cell: cell x of column c is ``cells[starts[first[c] + x] : starts[first[c] + x + 1]]``.

    *codes* is column x row; each cell ends with the mark that follows it. O(bytes).
    """
    columns, rows = codes.shape
    length = 0
    for column in range(columns):
        for row in range(rows):
            cell = first[column] + codes[column, row]
            length += starts[cell + 1] - starts[cell]
    out = np.empty(length, dtype=np.uint8)
    place = 0
    for row in range(rows):
        for column in range(columns):
            cell = first[column] + codes[column, row]
            for at in range(starts[cell], starts[cell + 1]):
                out[place] = cells[at]
                place += 1
    return out


@dataclass(frozen=True, repr=False)
class ListedCells:
    """The cells of a frame as CSV writes them: those of each column in a row, the blank last, and which of them each row has.

    >>> frame = pl.DataFrame({"sex": ["F", None], "town": ["a,b", "c"]})
    >>> enums = frame.with_columns(pl.col("sex").cast(pl.Enum(["F"])), pl.col("town").cast(pl.Enum(["c", "a,b"])))
    >>> list(ListedCells.of(enums, ",", lambda texts: texts.write_csv(include_header=False)).pieces(2))
    [b'F,"a,b"\\n,c\\n']
    """

    places: tuple[IntArray, ...]
    first: Int64Array
    starts: Int64Array
    cells: ByteArray

    @classmethod
    def of(
        cls, frame: pl.DataFrame, separator: str, write: Callable[[pl.DataFrame], str]
    ) -> ListedCells | None:
        """None where a column is no list, or *write* writes its texts otherwise than by the one rule that is known here."""
        if frame.width < 2 or not all(isinstance(dtype, pl.Enum) for dtype in frame.dtypes):
            return None
        parts: list[pl.Series] = []
        for at, series in enumerate(frame.get_columns(), 1):
            assert isinstance(series.dtype, pl.Enum)
            texts = _written(series.dtype.categories, separator, write)
            if texts is None:
                return None
            end = separator if at < frame.width else "\n"
            parts.append(pl.concat([texts, pl.Series([""])]) + end)
        every = pl.concat(parts)
        sizes = np.array([len(part) for part in parts])
        return cls(
            tuple(map(_places, frame.get_columns())),
            np.concatenate(([0], np.cumsum(sizes[:-1]))),
            np.concatenate(([0], np.cumsum(every.str.len_bytes().to_numpy(), dtype=np.int64))),
            np.frombuffer("".join(every.to_list()).encode(), dtype=np.uint8),
        )

    def pieces(self, rows: int, order: Int64Array | None = None) -> Iterator[bytes]:
        """All rows, in *order* where one is given, so many at a time and without a header."""
        height = self.places[0].size
        for begin in range(0, height, rows):
            chosen = slice(begin, begin + rows) if order is None else order[begin : begin + rows]
            codes = np.empty((len(self.places), min(rows, height - begin)), dtype=np.int32)
            for out, places in zip(codes, self.places, strict=True):
                out[:] = places[chosen]
            yield rows_of_cells(codes, self.first, self.starts, self.cells).tobytes()


def _places(series: pl.Series) -> IntArray:
    """Where the text of each row stands in its list: behind all of them where the cell is blank."""
    assert isinstance(series.dtype, pl.Enum)
    places = series.to_physical()
    if series.null_count():
        places = places.cast(pl.Int32).fill_null(len(series.dtype.categories))
    return places.to_numpy()


def _written(texts: pl.Series, separator: str, write: Callable[[pl.DataFrame], str]) -> pl.Series | None:
    """Texts as cells of a CSV file, which are compared with what the writer of all other tables makes of them."""
    quoted = texts.str.contains_any([separator, '"', "\n", "\r"]) | (texts == "")
    within = pl.format('"{}"', pl.col("text").str.replace_all('"', '""', literal=True))
    frame = pl.DataFrame({"text": texts, "quoted": quoted})
    cells = frame.select(pl.when("quoted").then(within).otherwise("text").alias("cell")).get_column("cell")
    plain = write(texts.alias("text").to_frame())
    return cells if "".join(f"{cell}\n" for cell in cells) == plain else None
