"""open_source(): the rows of whatever place a person names, opened by the engine that can count them there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from velado.data.schema import Schema
from velado.engines.attached_database import database_kind, open_database
from velado.engines.attached_server import open_server
from velado.engines.duckdb_source import open_files
from velado.engines.lake_files import lake_files
from velado.engines.places import DATABASES, REMOTE, SERVERS
from velado.engines.postgres_source import open_table
from velado.engines.remote_files import open_remote
from velado.engines.room import room_of
from velado.engines.row_source import RowSource, as_read
from velado.engines.spark_files import open_spark_files

Reader = Literal["duckdb", "spark"]
"""Who reads files where they lie."""
READERS: dict[str, Callable[..., RowSource]] = {"duckdb": open_files, "spark": open_spark_files}
"""How each of them opens a file, a folder, a pattern or a list of files."""


def is_database(place: str) -> bool:
    """Whether *place* is a file that holds tables of its own: one of DuckDB or of SQLite.

    >>> is_database("people.csv")
    False
    """
    return place.lower().endswith(DATABASES) and database_kind(Path(place)) is not None


def local_files(place: str) -> list[Path]:
    """The files of this machine that *place* stands for; none for an address elsewhere.

    >>> local_files("s3://bucket/*.parquet")
    []
    """
    return [] if place.startswith((*REMOTE, *SERVERS)) else lake_files(place)


def open_source(
    place: str,
    schema: Schema,
    folder: Path,
    *,
    table: str | None = None,
    engine: Reader = "duckdb",
    memory: str | None = None,
    attach: bool = False,
) -> RowSource:
    """The rows of *place*: a *table* of a server or of a database in a file, or a file, a folder or a pattern of files.

    *engine* reads files of this machine; databases and s3:// addresses are read by DuckDB. A server answers itself, unless
    DuckDB is to *attach* it and copy the table.

    *folder* is private: what does not fit in *memory* spills to it. Whoever opens closes.

    >>> open_source("no/such/*.csv", Schema({}), Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.csv'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    room_of(memory)  # a size that none is refused before anything is read
    opened: RowSource
    if place.startswith(SERVERS) and attach:
        opened = open_server(place, table or "", folder, memory=memory)
    elif place.startswith(SERVERS):
        opened = open_table(place, table or "", memory=memory)
    elif place.startswith(REMOTE):
        opened = open_remote(place, folder, memory=memory)
    elif is_database(place):
        opened = open_database(Path(place), table, folder, memory=memory)
    else:
        opened = READERS[engine](place, schema, folder, memory=memory)
    return as_read(opened, schema)
