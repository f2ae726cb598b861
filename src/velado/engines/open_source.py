"""open_source(): the rows of whatever place a person names, opened by the engine that can count them there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from velado.data.schema import Schema
from velado.engines.duckdb_source import open_files
from velado.engines.postgres_source import open_table
from velado.engines.row_source import RowSource
from velado.engines.spark_files import open_spark_files

Reader = Literal["duckdb", "spark"]
"""Who reads files where they lie."""
_SERVERS = ("postgresql://", "postgres://")


def open_source(
    place: str,
    schema: Schema,
    folder: Path,
    *,
    table: str | None = None,
    engine: Reader = "duckdb",
    memory: str | None = None,
) -> RowSource:
    """The rows of *place*: a server's *table*, or a file, a folder or a pattern that *engine* reads.

    *folder* is private: what does not fit in *memory* spills to it. Whoever opens closes.

    >>> open_source("no/such/*.csv", Schema({}), Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.csv'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    if place.startswith(_SERVERS):
        return open_table(place, table or "")
    reads = open_spark_files if engine == "spark" else open_files
    return reads(place, schema, folder, memory=memory)
