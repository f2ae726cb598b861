"""Parquet files under s3:// and its like, read by the user's own DuckDB with the secrets it has; none of them is written or shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from velado.engines.duckdb_files import connect, named_cells, need, quoted, refuse_alike, threads
from velado.engines.duckdb_source import DEFAULT_MEMORY, DuckDBSource, counted_source
from velado.engines.lake_files import is_hidden
from velado.engines.places import PARQUET
from velado.errors import MissingExtra, ParameterError, TableError
from velado.text import say


@dataclass(frozen=True, repr=False)
class RemoteFiles(DuckDBSource):
    """Parquet files that lie elsewhere; *place* is their address, which may hold a secret and is never told.

    >>> issubclass(RemoteFiles, DuckDBSource)
    True
    """

    place: str = ""
    listing: tuple[tuple[Any, ...], ...] = ()

    def unchanged(self) -> None:
        """Nothing, if the files are those that were first counted; else an error."""
        if self.tried(lambda: _listing(self.connection, self.place)) != self.listing:
            raise TableError(
                say("'{path}' changed while it was read.", path=self.name),
                "What was counted and what would be published could be different rows.",
                "Try again when nobody writes to the files, or take a copy of them.",
            )


def open_remote(place: str, folder: Path, *, memory: str | None = None) -> RemoteFiles:
    """The table in the Parquet files of an address or a pattern of them; *folder* is private, and what spills lies there.

    >>> open_remote("s3://bucket/rows.csv", Path("."))
    Traceback (most recent call last):
    velado.errors.ParameterError: Only Parquet files are read from an address that is no file of this machine. A text file's header would have to be fetched first. Write Parquet there, or copy the file here.
    """
    need("duckdb", say("Files beyond memory are read by it."), "duckdb")
    if not place.split("?")[0].lower().endswith(PARQUET):
        raise ParameterError(
            "Only Parquet files are read from an address that is no file of this machine.",
            "A text file's header would have to be fetched first.",
            "Write Parquet there, or copy the file here.",
        )
    connection = connect(threads(), memory or DEFAULT_MEMORY, str(folder / "spill"))
    try:
        _load_httpfs(connection)
        return of_parquet(connection, place)
    except BaseException:
        connection.close()
        raise


def _load_httpfs(connection: Any) -> None:
    import duckdb

    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        raise MissingExtra(
            "DuckDB's extension httpfs is not installed here.",
            "It reads s3:// addresses, and velado fetches nothing from a network by itself.",
            "Run `INSTALL httpfs` once in your own DuckDB, with the same version, or copy the files here.",
        ) from None


def of_parquet(connection: Any, place: str) -> RemoteFiles:
    """The Parquet files that *connection* finds at *place*, which must all have the same columns.

    >>> import duckdb, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = duckdb.sql("SELECT 31 AS age").write_parquet(f"{folder}/a.parquet")
    ...     of_parquet(duckdb.connect(), f"{folder}/*.parquet").rows
    1
    """
    name = PurePosixPath(place.split("?")[0]).name
    made = RemoteFiles(name, connection, "", pa.schema([]), 0, place=place)
    files = made.tried(lambda: _files(connection, place))
    if not files:
        raise TableError(
            say("No file matches '{place}'.", place=name),
            "Nothing was read.",
            "Check the address; files and folders whose names begin with _ or . are unfinished work, and left out.",
        )
    address = f"[{_listed(files)}]"
    shapes = made.tried(
        lambda: connection.execute(
            "SELECT DISTINCT cells FROM (SELECT list(name || ' ' || coalesce(type, '') ORDER BY name) AS cells "
            f"FROM parquet_schema({address}) WHERE num_children IS NULL OR num_children = 0 GROUP BY file_name)"
        ).fetchall()
    )
    if len(shapes) != 1:
        raise TableError(
            say("The files of '{name}' have different columns, or columns of different types.", name=name),
            "Files that are read as one table must have the same columns.",
            "Leave the odd ones out, or write them again like the others.",
        )
    shown = made.tried(
        lambda: connection.execute(f"SELECT name, num_children FROM parquet_schema({address})").fetchall()
    )
    names = _top_names(shown)
    refuse_alike(names)
    options = "hive_partitioning = false, union_by_name = true"
    connection.execute(
        "SET disabled_optimizers = 'statistics_propagation'"
    )  # whose least and greatest leave NaN out
    source = RemoteFiles(
        name=name,
        connection=connection,
        relation=f"(SELECT {', '.join(named_cells(names))} FROM read_parquet({address}, {options}) AS r) AS file",
        types=pa.schema([(f"f{at}", pa.string()) for at in range(len(names))]),
        rows=0,
        place=place,
        listing=made.tried(lambda: _listing(connection, place)),
    )
    return counted_source(source, names)


def _top_names(shown: Sequence[tuple[str, int | None]]) -> list[str]:
    """The columns of the first file, as they are written there; what lies within one is left out."""
    names, at = [], 1
    for _ in range(shown[0][1] or 0):
        names.append(shown[at][0])
        within = 1
        while within:
            within += (shown[at][1] or 0) - 1
            at += 1
    return names


def _listing(connection: Any, place: str) -> tuple[tuple[Any, ...], ...]:
    files = _files(connection, place)
    if not files:
        return ()
    found = connection.execute(
        f"SELECT filename, size, last_modified FROM read_blob([{_listed(files)}]) ORDER BY filename"
    ).fetchall()
    return tuple(found)


def _files(connection: Any, place: str) -> list[str]:
    """The files that *place* names, without unfinished work: as for a lake on this machine."""
    if not _MAGIC & set(place.split("?")[0]):
        return [place]
    root, asked = PurePosixPath(), list[str]()
    for part in PurePosixPath(place).parts:
        if asked or _MAGIC & set(part):
            asked.append(part)
        else:
            root /= part
    found = connection.execute(f"SELECT file FROM glob('{quoted(place)}') ORDER BY file").fetchall()
    return [file for (file,) in found if not is_hidden(PurePosixPath(file), root, asked)]


def _listed(files: Sequence[str]) -> str:
    return ", ".join(f"'{quoted(file)}'" for file in files)


_MAGIC = frozenset("*[")
