"""A table as the bytes of a file: CSV, piece by piece where it is large, or Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial

import polars as pl

from velado.data.formulas import Formulas, escape_formulas, refuse_formulas
from velado.data.partition import Int64Array

_PIECE = 1 << 15
"""Rows written at a time: a large table in another order is never held a second time."""
_WORTH_A_KERNEL = 1 << 17
"""Rows from which on compiled code saves more than it takes to load."""


def csv_pieces(frame: pl.DataFrame, separator: str = ",", order: Int64Array | None = None) -> Iterator[bytes]:
    """The frame as UTF-8 CSV piece by piece, its rows in *order* where one is given.

    >>> list(csv_pieces(pl.DataFrame({"age": [31, 35]})))
    [b'age\\n31\\n35\\n']
    """
    if frame.height >= _WORTH_A_KERNEL:
        # Loaded where it is wanted: it takes longer than a small table does.
        from velado.data.listed_csv import ListedCells

        cells = ListedCells.of(
            frame, separator, partial(pl.DataFrame.write_csv, include_header=False, separator=separator)
        )
        if cells is not None:
            yield as_texts(frame.head(0)).write_csv(separator=separator).encode()
            yield from cells.pieces(_PIECE, order)
            return
    for begin in range(0, max(frame.height, 1), _PIECE):
        part = frame[begin : begin + _PIECE] if order is None else frame[order[begin : begin + _PIECE]]
        buffer = io.BytesIO()
        as_texts(part).write_csv(buffer, separator=separator, include_header=not begin)
        yield buffer.getvalue()


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with texts where it has listed ones: a list tells values of rows that are not in the frame.

    >>> as_texts(pl.DataFrame({"sex": ["F"]}, schema={"sex": pl.Enum(["F", "M"])})).schema
    Schema([('sex', String)])
    """
    listed = [n for n, dtype in frame.schema.items() if isinstance(dtype, pl.Categorical | pl.Enum)]
    return frame.with_columns(pl.col(listed).cast(pl.String)) if listed else frame


def escaped_pieces(
    frame: pl.DataFrame, separator: str = ",", formulas: Formulas = "keep", order: Int64Array | None = None
) -> Iterator[bytes]:
    """As `csv_bytes`, piece by piece; what is refused is refused before the first.

    >>> list(escaped_pieces(pl.DataFrame({"note": ["=1+1"]}), formulas="escape"))
    [b"note\\n'=1+1\\n"]
    """
    if formulas == "refuse":
        refuse_formulas(frame)
    elif formulas == "escape":
        frame = escape_formulas(frame)
    return csv_pieces(frame, separator, order)


def csv_bytes(
    frame: pl.DataFrame, separator: str = ",", formulas: Formulas = "keep", order: Int64Array | None = None
) -> bytes:
    """The frame as UTF-8 CSV in *order*. Headers and text cells like formulas are kept, escaped with `'`, or refused.

    >>> csv_bytes(pl.DataFrame({"note": ["=1+1"]}), formulas="escape")
    b"note\\n'=1+1\\n"
    """
    buffer = io.BytesIO()
    for piece in escaped_pieces(frame, separator, formulas, order):
        buffer.write(piece)
    return buffer.getvalue()


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """The frame as Parquet.

    >>> parquet_bytes(pl.DataFrame({"age": [31]}))[:4]
    b'PAR1'
    """
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def parquet_frame(content: bytes) -> pl.DataFrame:
    """The frame that was written so.

    >>> parquet_frame(parquet_bytes(pl.DataFrame({"age": [31]}))).rows()
    [(31,)]
    """
    return pl.read_parquet(io.BytesIO(content))


def written_cells(content: bytes, separator: str = ",") -> pl.DataFrame:
    """The cells of a written table as texts, its rows as they stand in the file.

    >>> written_cells(b"age\\n31\\n").rows()
    [('31',)]
    """
    if content.startswith(b"PAR1"):
        return pl.read_parquet(io.BytesIO(content)).select(pl.all().cast(pl.String))
    return pl.read_csv(io.BytesIO(content), separator=separator, infer_schema=False)
