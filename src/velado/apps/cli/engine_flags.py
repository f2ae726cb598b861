"""Flags that say where a table's rows are and which engine reads them, and the choice where nobody says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from velado.apps.cli.app import OfSetting, OneOf, option
from velado.apps.cli.options import RUN
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    import polars as pl

    from velado.data.schema import Schema

LARGE = 1 << 30
"""A CSV or Parquet file of more bytes is read by DuckDB where nobody chose an engine."""
SCANNED = (".csv", ".tsv", ".txt", ".parquet", ".pq")


@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """Which engine reads the rows, and how much memory it may hold.

    >>> EngineFlags().engine, EngineFlags().memory
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
            help="What DuckDB or Spark may hold in memory before it spills to disk, e.g. 3GB; default: 600MB, for Spark 1GB.",
        ),
    ] = None
    plan: Annotated[
        Literal["auto", "compress", "cut"],
        option(
            "--plan",
            click_type=OfSetting(f"{RUN}.plan", "auto|compress|cut"),
            help="How an engine's table is grouped: from all its distinct tuples (compress), or by mondrian cut by histograms first (cut), for tables whose rows hardly repeat.",
        ),
    ] = "auto"
    table: Annotated[
        str | None, option("--table NAME", help="The table of a postgresql:// source; SCHEMA.NAME too.")
    ] = None
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
        """Whether *source* is a table on a PostgreSQL server; its names are then complete, or an error says what lacks.

        >>> EngineFlags().serves("people.csv"), EngineFlags(table="a", to_table="b").serves("postgresql:///x")
        (False, True)
        """
        on_server = source.startswith(("postgresql://", "postgres://"))
        given = {"--table": self.table, "--to": self.to, "--to-table": self.to_table}
        if not on_server:
            for flag, value in given.items():
                if value is not None:
                    raise ParameterError(
                        say("{flag} was given, but the source is no postgresql:// address.", flag=flag),
                        "It names a table of a server.",
                        say("Leave {flag} out, or give the server's address as the source.", flag=flag),
                    )
            return False
        for flag in ("--table", "--to-table"):
            if given[flag] is None:
                raise ParameterError(
                    say("A postgresql:// source needs {flag}.", flag=flag),
                    "Which table is read and which one is written must be said.",
                    "Add --table SOURCE_TABLE --to-table NEW_TABLE.",
                )
        return True

    def scans(self, source: str) -> bool:
        """Whether the rows of *source* stay where they are, and DuckDB or Spark counts them.

        >>> EngineFlags().scans("lake/*.parquet"), EngineFlags(engine="memory").scans("lake/*.parquet")
        (True, False)
        """
        if self.engine != "auto":
            return self.engine != "memory"
        if not os.path.isfile(source):
            return is_lake(source)
        return source.lower().endswith(SCANNED) and os.path.getsize(source) > LARGE

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

    @property
    def reader(self) -> Literal["duckdb", "spark"]:
        """The engine that counts rows where they lie.

        >>> EngineFlags().reader
        'duckdb'
        """
        return "spark" if self.engine == "spark" else "duckdb"

    def refuse(self, asked: Sequence[tuple[str, bool]]) -> None:
        """Nothing, if nothing was *asked* (flag, given) that an engine cannot do yet; else an error names it.

        >>> EngineFlags().refuse([("--keep-order", False)])
        """
        for flag, given in asked:
            if given:
                raise ParameterError(
                    say("{flag} cannot be used with an engine yet.", flag=flag),
                    "It needs every row at hand.",
                    say("Leave {flag} out, or use --engine memory.", flag=flag),
                )


def is_lake(source: str) -> bool:
    """Whether *source* is a folder or a pattern rather than a file.

    >>> is_lake("lake/*.parquet"), is_lake("people.csv")
    (True, False)
    """
    return os.path.isdir(source) or bool(set("*?[") & set(source))


def in_memory(source: str, schema: Schema) -> pl.DataFrame:
    """All rows of a folder or a pattern of files as one frame.

    >>> in_memory("no/such/*.csv", None)
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.csv'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    from tempfile import TemporaryDirectory

    from velado.engines.duckdb_source import lake_files, open_files

    files = lake_files(source)
    with TemporaryDirectory(prefix="velado-") as folder:
        opened = open_files(files, schema, Path(folder))
        try:
            return opened.frame()
        finally:
            opened.close()
