"""joined(): a table that an engine wrote in its own types, written again piece by piece in those of its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from velado.engines.row_source import FileSink

_BATCH = 122_880


def joined(parts: Sequence[Path], types: pa.Schema, sink: FileSink, separator: str) -> int:
    """All Parquet files *parts* in one file, as a table of these *types* in memory would be written; how many rows it has.

    Never more than a piece of one is here at once. Whole numbers where a moment is wanted are microseconds.

    >>> joined.__name__
    'joined'
    """
    rows = 0
    if sink.format == "csv":
        with sink.path.open("wb") as file:
            empty = cast(pl.DataFrame, pl.from_arrow(types.empty_table()))
            empty.write_csv(file, separator=separator)
            for piece in _pieces(parts, types):
                made = cast(pl.DataFrame, pl.from_arrow(piece))
                made.write_csv(file, separator=separator, include_header=False)
                rows += piece.num_rows
        return rows
    with pq.ParquetWriter(sink.path, types, compression="zstd") as writer:
        for piece in _pieces(parts, types):
            writer.write_table(piece, row_group_size=_BATCH)
            rows += piece.num_rows
    return rows


def _pieces(parts: Sequence[Path], types: pa.Schema) -> Iterator[pa.Table]:
    for part in parts:
        for batch in pq.ParquetFile(part).iter_batches(_BATCH):
            given = pa.Table.from_batches([batch]).rename_columns(types.names)
            moments = [
                pa.field(f.name, pa.timestamp("us", own.type.tz))
                if pa.types.is_timestamp(own.type) and pa.types.is_integer(f.type)
                else f
                for f, own in zip(given.schema, types, strict=True)
            ]
            yield given.cast(pa.schema(moments)).cast(types)
