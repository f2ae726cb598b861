"""Flags that say where a table's rows are and which engine reads them, and the choice where nobody says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast

from velado.apps.cli.app import OfSetting, OneOf, option
from velado.apps.cli.options import RUN
from velado.engines.places import ARROW, CSV, DATABASES, PARQUET, REMOTE, SERVERS
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.engines.duckdb_source import DuckDBSource
    from velado.engines.row_source import RowSource

LARGE = 1 << 30
"""A CSV or Parquet file of more bytes is read by DuckDB where nobody chose an engine."""


@dataclass(frozen=True, kw_only=True)
class RowSourceFlags:
    """Which engine reads the rows, how much memory it may hold, and which table of a server is meant.

    >>> RowSourceFlags().engine, RowSourceFlags().memory
    ('auto', None)
    """

    engine: Annotated[
        Literal["auto", "memory", "duckdb", "spark"],
        option(
            "--engine",
            click_type=OneOf("auto", "memory", "duckdb", "spark"),
            help="Where rows are worked on; auto: DuckDB for a folder, a pattern ('lake/*.parquet') or a file beyond 1 GB.",
        ),
    ] = "auto"
    memory: Annotated[
        str | None,
        option(
            "--memory SIZE",
            help="What may be held in memory, by DuckDB and Spark before they spill to disk, e.g. 3GB; default: 600MB, for Spark 1GB.",
        ),
    ] = None
    table: Annotated[
        str | None,
        option(
            "--table NAME", help="The table of a postgresql:// source or a database file; SCHEMA.NAME too."
        ),
    ] = None

    @property
    def _names(self) -> dict[str, str | None]:
        """The flags that name something on a server, and what they say."""
        return {"--table": self.table}

    def serves(self, source: str) -> bool:
        """Whether *source* is a table on a PostgreSQL server; its names are then complete, or an error says what lacks.

        >>> RowSourceFlags().serves("people.csv"), RowSourceFlags(table="a").serves("postgresql:///x")
        (False, True)
        """
        on_server = source.startswith(SERVERS)
        if not on_server:
            of_file = is_database(source)
            for flag, value in self._names.items():
                if value is not None and not (of_file and flag == "--table"):
                    raise ParameterError(
                        say(
                            "--table was given, but the source is neither a postgresql:// address nor a database."
                        )
                        if flag == "--table"
                        else say("{flag} was given, but the source is no postgresql:// address.", flag=flag),
                        "It names a table of a server.",
                        say("Leave {flag} out, or give the server's address as the source.", flag=flag),
                    )
            return False
        needed = [flag for flag in self._names if flag != "--to"]
        for flag in needed:
            if self._names[flag] is None:
                raise ParameterError(
                    say("A postgresql:// source needs {flag}.", flag=flag),
                    "Which table is read and which one is written must be said."
                    if len(needed) > 1
                    else "Which table is read must be said.",
                    "Add --table SOURCE_TABLE --to-table NEW_TABLE."
                    if len(needed) > 1
                    else "Add --table NAME.",
                )
        if self.engine in ("memory", "spark"):
            raise ParameterError(
                say("--engine {engine} cannot read a postgresql:// source.", engine=self.engine),
                "The server itself counts its rows.",
                "Leave --engine out.",
            )
        return True

    def scans(self, source: str) -> bool:
        """Whether the rows of *source* stay where they are, and DuckDB or Spark counts them.

        >>> RowSourceFlags().scans("lake/*.parquet"), RowSourceFlags(engine="memory").scans("lake/*.parquet")
        (True, False)
        """
        if source.startswith(SERVERS):
            return True  # copied by DuckDB, as nobody else was asked to
        if source.startswith(REMOTE) or is_database(source):
            if self.engine in ("memory", "spark"):
                raise ParameterError(
                    say("--engine {engine} reads neither databases nor s3:// addresses.", engine=self.engine),
                    "DuckDB reads them.",
                    "Leave --engine out.",
                )
            return True
        if self.engine != "auto":
            return self.engine != "memory"
        if not os.path.isfile(source):
            return is_lake(source)
        return source.lower().endswith((*CSV, *PARQUET, *ARROW)) and os.path.getsize(source) > LARGE

    def stays(self, source: str) -> bool:
        """Whether the rows of *source* stay where they are: on a server, or in files that an engine counts.

        >>> RowSourceFlags().stays("people.csv"), RowSourceFlags(table="a").stays("postgresql:///x")
        (False, True)
        """
        return self.serves(source) or self.scans(source)

    @contextmanager
    def opened(self, source: str, schema: Schema) -> Iterator[RowSource]:
        """The rows of *source* where they lie, with a private folder to spill to that is gone afterwards.

        >>> with RowSourceFlags().opened("no/such/*.csv", None) as rows:
        ...     pass
        Traceback (most recent call last):
        velado.errors.TableError: No file matches 'no/such/*.csv'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
        """
        from velado.data.staging import scratch_folder
        from velado.engines.open_source import open_source

        with scratch_folder() as folder:
            rows = open_source(
                source, schema, folder, table=self.table, engine=self.reader, memory=self.memory
            )
            try:
                yield rows
            finally:
                rows.close()

    @property
    def reader(self) -> Literal["duckdb", "spark"]:
        """The engine that counts rows where they lie.

        >>> RowSourceFlags().reader
        'duckdb'
        """
        return "spark" if self.engine == "spark" else "duckdb"

    def refuse(self, asked: Sequence[tuple[str, bool]], source: str = "") -> None:
        """Nothing, if nothing was *asked* (flag, given) that an engine cannot do yet with *source*; else an error names it.

        >>> RowSourceFlags().refuse([("--keep-order", False)])
        """
        for flag, given in asked:
            if given:
                raise ParameterError(
                    say("{flag} cannot be used with an engine yet.", flag=flag),
                    "It needs every row at hand.",
                    say("Leave {flag} out, or write the rows to a file first.", flag=flag)
                    if source.startswith((*SERVERS, *REMOTE)) or is_database(source)
                    else say("Leave {flag} out, or use --engine memory.", flag=flag),
                )


@dataclass(frozen=True, kw_only=True)
class EngineFlags(RowSourceFlags):
    """The same, how the table is grouped there, and where a server gets the published table.

    >>> EngineFlags(table="a", to_table="b").serves("postgresql:///x")
    True
    """

    plan: Annotated[
        Literal["auto", "compress", "cut"],
        option(
            "--plan",
            click_type=OfSetting(f"{RUN}.plan", "auto|compress|cut"),
            help="How an engine's table is grouped: from all its distinct tuples (compress), or by mondrian cut by histograms first (cut), for tables whose rows hardly repeat.",
        ),
    ] = "auto"
    to: Annotated[
        str | None,
        option(
            "--to URL", help="The PostgreSQL server that gets the published table; default: the source's."
        ),
    ] = None
    to_table: Annotated[
        str | None, option("--to-table NAME", help="The published table's name on that server.")
    ] = None

    def serves(self, source: str) -> bool:
        """As above; a server's table that DuckDB is to copy into files is not served by the server.

        >>> EngineFlags(table="a", engine="duckdb").serves("postgresql:///x")
        False
        """
        if not (source.startswith(SERVERS) and self.engine == "duckdb"):
            return super().serves(source)
        if self.to is not None or self.to_table is not None:
            raise ParameterError(
                "--engine duckdb and a table to be written on a server were both given.",
                "DuckDB copies the rows and publishes them into files; into a table they are written by the server itself.",
                "Leave --engine out, or --to and --to-table.",
            )
        if self.table is None:
            raise ParameterError(
                say("A postgresql:// source needs {flag}.", flag="--table"),
                "Which table is read must be said.",
                "Add --table NAME.",
            )
        return False

    @property
    def _names(self) -> dict[str, str | None]:
        return {**super()._names, "--to": self.to, "--to-table": self.to_table}

    def refuse_plan(self, elsewhere: bool) -> None:
        """Nothing, unless a plan was given for rows that no engine works on.

        >>> EngineFlags().refuse_plan(elsewhere=False)
        """
        if self.plan != "auto" and not elsewhere:
            raise ParameterError(
                say("--plan was given, but the rows are worked on in memory."),
                "It says how an engine groups a table that stays where it lies.",
                "Leave --plan out, or add --engine duckdb.",
            )


def is_lake(source: str) -> bool:
    """Whether *source* is a folder, a pattern or an address rather than a file.

    >>> is_lake("lake/*.parquet"), is_lake("people.csv")
    (True, False)
    """
    return source.startswith(REMOTE) or os.path.isdir(source) or bool(set("*?[") & set(source))


def is_database(source: str) -> bool:
    """Whether *source* is a file of DuckDB or SQLite, which holds tables of its own.

    >>> is_database("people.csv")
    False
    """
    if not source.lower().endswith(DATABASES):
        return False  # without a look at the libraries that could tell
    from velado.engines.open_source import is_database as holds_tables

    return holds_tables(source)


def in_memory(source: str, schema: Schema) -> Table:
    """All rows of a folder or a pattern of files as one table, whose columns have no meaning yet.

    >>> in_memory("no/such/*.csv", None)
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.csv'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    from velado.data.schema import Schema
    from velado.data.table import Table

    with RowSourceFlags().opened(source, schema) as opened:
        rows = cast("DuckDBSource", opened)
        return Table.of(rows.frame(), Schema({}), rows.name, undeclared="keep", separator=rows.separator)
