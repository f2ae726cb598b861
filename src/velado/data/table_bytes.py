"""A table as the bytes of a file: CSV, piece by piece where it is large, or Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator

import polars as pl

from velado.data.formulas import Formulas, escape_formulas, refuse_formulas
from velado.data.partition import Int64Array

_PIECE = 1 << 17
"""Rows written at a time: a large table in another order is never held a second time."""


def csv_pieces(frame: pl.DataFrame, separator: str = ",", order: Int64Array | None = None) -> Iterator[bytes]:
    """The frame as UTF-8 CSV piece by piece, its rows in *order* where one is given.

    >>> list(csv_pieces(pl.DataFrame({"age": [31, 35]})))
    [b'age\\n31\\n35\\n']
    """
    for begin in range(0, max(frame.height, 1), _PIECE):
        part = frame[begin : begin + _PIECE] if order is None else frame[order[begin : begin + _PIECE]]
        buffer = io.BytesIO()
        part.write_csv(buffer, separator=separator, include_header=not begin)
        yield buffer.getvalue()


def csv_bytes(
    frame: pl.DataFrame, separator: str = ",", formulas: Formulas = "keep", order: Int64Array | None = None
) -> bytes:
    """The frame as UTF-8 CSV in *order*. Headers and text cells like formulas are kept, escaped with `'`, or refused.

    >>> csv_bytes(pl.DataFrame({"note": ["=1+1"]}), formulas="escape")
    b"note\\n'=1+1\\n"
    """
    if formulas == "refuse":
        refuse_formulas(frame)
    elif formulas == "escape":
        frame = escape_formulas(frame)
    buffer = io.BytesIO()
    for piece in csv_pieces(frame, separator, order):
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
