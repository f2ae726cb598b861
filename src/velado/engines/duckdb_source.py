"""DuckDB answers for files, folders of files and Arrow tables; what does not fit in memory spills to a private folder."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl
import pyarrow as pa

from velado.data.blanks import NoValue, is_text
from velado.data.schema import Schema
from velado.engines.damaged_part import damaged_part
from velado.engines.duckdb_files import (
    Stamp,
    bytes_digest,
    connect,
    need,
    quoted,
    refuse_alike,
    refuse_changed,
    scan_files,
    stamp,
    threads,
)
from velado.engines.lake_files import lake_files, lake_root
from velado.engines.piecewise import joined
from velado.engines.room import DEFAULT_ROOM
from velado.engines.row_source import (
    PLACE,
    ROWS,
    Coding,
    FileSink,
    Order,
    Recoding,
    Sink,
    TupleKeys,
    coded_cells,
    coding_list,
    tuple_statement,
    without_values,
)
from velado.engines.sql_cut import SqlLots, cut_columns
from velado.errors import EngineError, OutputError, ParameterError, TableError
from velado.text import say, say_n

T = TypeVar("T")

DEFAULT_MEMORY = DEFAULT_ROOM
"""What DuckDB may hold in memory where nobody says; the rest spills to disk."""
_ROW_GROUP = 122_880
_WHOLE_HASH = 1 << 64
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_LOOKS = 0.5


@dataclass(frozen=True, repr=False)
class DuckDBSource:
    """A table that DuckDB scans each time it is asked; only what is asked for is read.

    Make one with `open_files` or `of_arrow`. *relation* has columns f0, f1, ...; *where* are conditions on them. *own* are columns whose
    type in *types* is not DuckDB's but the files'. *order* is "numbered" where DuckDB hands rows over in any order unless it numbers them, as after a join.
    *parts* are the files as DuckDB is given them, each with what a person calls it.

    >>> source = of_arrow(pa.table({"sex": ["F", "F", None]}))
    >>> source.domain("sex").sort_by("rows").to_pydict()
    {'value': [None, 'F'], 'rows': [1, 2]}
    """

    name: str
    connection: Any
    relation: str
    types: pa.Schema
    rows: int
    files: tuple[Path, ...] = ()
    stamps: tuple[Stamp | None, ...] = ()
    separator: str = ","
    where: tuple[str, ...] = ()
    engine: str = "DuckDB"
    placed: str = ""
    own: frozenset[str] = frozenset()
    order: Order = "scan"
    libraries: tuple[str, ...] = ("duckdb", "pyarrow")
    parts: tuple[tuple[Path, str], ...] = ()

    def __repr__(self) -> str:
        return f"DuckDBSource({self.name!r}, {self.rows:,} rows, {len(self.types)} columns)"

    def blanked(self, none: Mapping[str, NoValue]) -> DuckDBSource:
        """The same rows with nothing in the cells that mean no value, which *none* says by column."""
        changed = {}
        for name in self.types.names:
            if name in none:
                cell, type_ = self._cell(name), self.types.field(name).type
                made = without_values(cell, type_, none[name], lambda text: f"'{quoted(text)}'") or cell
                if pa.types.is_floating(type_) and none[name].nan:
                    made = f"CASE WHEN isnan({cell}) THEN NULL ELSE {made} END"
                if made != cell:
                    changed[cell] = made
        return _with_cells(self, changed)

    def filled(self, columns: Sequence[str], blanks: Sequence[str]) -> DuckDBSource:
        """The rows that have a value in each of *columns*; *blanks* are texts that mean none."""
        conditions = []
        for name in columns:
            cell, type_ = self._cell(name), self.types.field(name).type
            conditions.append(f"{cell} IS NOT NULL")
            if is_text(type_) and blanks:
                listed = ", ".join(f"'{quoted(text)}'" for text in blanks)
                conditions.append(f"{cell} NOT IN ({listed})")
            elif pa.types.is_floating(type_) and any(text.lower() == "nan" for text in blanks):
                conditions.append(f"NOT isnan({cell})")
        kept = replace(self, where=(*self.where, *conditions))
        ((rows,),) = kept._ask("SELECT count(*) FROM {rows}").fetchall()
        return replace(kept, rows=int(rows))

    def sample(self, most: int, whole: str | None = None) -> pa.Table:
        """All rows where there are at most *most*, else about so many, the same each time.

        With *whole*, a column, all rows of some of its values.
        """
        chosen = ""
        if self.rows > most:
            # By its place where the file tells it; else equal rows would come all together, or not at all.
            place = "filename, file_row_number" if self.placed else ", ".join(self._cells)
            place = self._cell(whole) if whole is not None else place
            chosen = f" WHERE hash({place}) < {int(_WHOLE_HASH * (most / self.rows))}::UBIGINT"
        cells = ", ".join(self._cells)
        asked = f"SELECT {cells} FROM {{rows}}{chosen}"
        if self.order == "numbered":
            numbered = f"SELECT {cells}, row_number() OVER () AS place FROM {{rows}}{chosen}"
            asked = f"SELECT {cells} FROM ({numbered}) AS numbered ORDER BY place"
        found = self._arrow(asked, placed=bool(chosen) and whole is None)
        return self._typed(found.rename_columns(self.types.names))

    def frame(self) -> pl.DataFrame:
        """All rows, for who has room for them."""
        return cast(pl.DataFrame, pl.from_arrow(self.sample(self.rows)))

    def domain(self, column: str) -> pa.Table:
        """The distinct values of a column (`value`, null among them) and their `rows`."""
        return self.counts([column]).rename_columns(["value", ROWS])

    def extremes(self, column: str) -> pa.Table:
        """The least and the greatest `value` of a column of numbers."""
        cell = self._cell(column)
        found = self._arrow(f"SELECT unnest([min({cell}), max({cell})]) AS value FROM {{rows}}")
        return self._typed(found.rename_columns([column])).rename_columns(["value"])

    def distinct(self, column: str) -> tuple[int, int]:
        """How many rows have a value in a column, and how many different values they are."""
        cell = self._cell(column)
        ((filled, values),) = self._ask(
            f"SELECT count({cell}), count(DISTINCT {cell}) FROM {{rows}}"
        ).fetchall()
        return int(filled), int(values)

    def lone(self, column: str) -> int:
        """How many values of a column stand in one row only."""
        cell = self._cell(column)
        once = f"SELECT 1 FROM {{rows}} WHERE {cell} IS NOT NULL GROUP BY {cell} HAVING count(*) = 1"
        ((values,),) = self._ask(f"SELECT count(*) FROM ({once})").fetchall()
        return int(values)

    def tuples(self, keys: TupleKeys, beside: Coding | None = None) -> pa.Table:
        """The distinct tuples of codes as keys, with the `code` of another column *beside* them, and their `rows`."""
        codes, joins = self._coded([*keys.codings, *([] if beside is None else [beside])])
        _, sql = tuple_statement(keys, codes, joins)
        return self._arrow(sql)

    def about_tuples(self, columns: Sequence[str]) -> int:
        """About how many different combinations of cells *columns* have, a few percent off."""
        cells = ", ".join(self._cell(name) for name in columns)
        ((found,),) = self._ask(f"SELECT approx_count_distinct(hash({cells})) FROM {{rows}}").fetchall()
        return min(int(found), self.rows)

    def numbered(self) -> DuckDBSource:
        """The same rows set aside, each with its number in a further column."""
        relation, condition = self._rows()
        number = f"row_number() OVER () - 1 AS f{len(self.types)}"
        self._run(
            f"CREATE OR REPLACE TEMP TABLE numbered_rows AS SELECT {', '.join(self._cells)}, {number} FROM {relation}{condition}"
        )
        return self._with_numbers()

    def _with_numbers(self) -> DuckDBSource:
        types = self.types.append(pa.field(PLACE, pa.int64()))
        return replace(self, relation="temp.numbered_rows", types=types, where=(), placed="")

    def room(self) -> int:
        """How many bytes DuckDB may hold in memory."""
        ((told,),) = self._ask("SELECT current_setting('memory_limit')").fetchall()
        number, unit = str(told).split()
        return int(float(number) * _UNITS[unit])

    def cut_rows(self, keys: TupleKeys, beside: Sequence[Coding], blanks: Sequence[int]) -> SqlLots:
        """The coded rows, to be cut into parts; *blanks* has each key column's code of "no value", -1 for none."""
        codes, joins = self._coded([*keys.codings, *beside])
        relation, condition = self._rows()
        made = SqlLots(DuckDBTables(self), keys, cut_columns(len(keys.codings), blanks), len(beside))
        made.begin(f"{relation}{joins}{condition}", codes, beside)
        return made

    def counts(self, columns: Sequence[str]) -> pa.Table:
        """The distinct combinations of cells of *columns*, as they stand, and their `rows`."""
        cells = ", ".join(self._cell(name) for name in columns)
        found = self._arrow(f"SELECT {cells}, count(*) AS {ROWS} FROM {{rows}} GROUP BY {cells}")
        return self._typed(found.rename_columns([*columns, ROWS]))

    def write(self, recoding: Recoding, sink: Sink) -> int:
        """The recoded rows stand in *sink*, in an order made of what is published and the owner's number; how many."""
        if not isinstance(sink, FileSink):
            raise ParameterError(
                "Files are published into files.",
                "They cannot be written to a server's table yet.",
                "Leave --to out, and load the published file there.",
            )
        if recoding.keys.placed and PLACE not in self.types.names:
            return self._with_numbers().write(recoding, sink)
        codes, joins = self._coded(recoding.keys.codings)
        keys = recoding.keys.expressions(codes)
        self._hold("tuple_groups", recoding.mapping)
        tuples = "tuple_groups"
        if recoding.entries is None:
            tuples = "(SELECT t.*, g.grp FROM cut_tuples AS t JOIN tuple_groups AS g ON g.cell = t.cell)"
        self._hold("group_texts", recoding.texts)
        match = " AND ".join(f"{key} = m.{name}" for key, name in zip(keys, recoding.keys.names, strict=True))
        texts = {name: f"t{at}" for at, name in enumerate(recoding.labels)}
        own = [self._cell(name) for name in recoding.columns if name not in texts]
        wanted = [
            f'{f"g.{texts[name]}" if name in texts else self._written(name)} AS "{_named(name)}"'
            for name in recoding.columns
        ]
        alike = ", ".join(["m.grp", *own])
        relation, condition = self._rows()
        # Rows that are published alike are counted and told apart by number alone, so that their order is scattered too.
        body = (
            f"SELECT {alike}, unnest(range(n)) AS copy FROM (SELECT {alike}, count(*) AS n FROM {relation}{joins} "
            f"JOIN {tuples} AS m ON {match}{condition} GROUP BY {alike}) AS m"
        )
        placed = ", ".join([f"{recoding.order}::UBIGINT", *alike.split(", "), "copy"])
        how = f"FORMAT parquet, ROW_GROUP_SIZE {_ROW_GROUP}{self._told_types(recoding)}"
        if sink.format == "csv":
            how = f"FORMAT csv, HEADER, DELIMITER '{quoted(self.separator)}', NULLSTR ''"
        types = self._published_types(recoding)
        # DuckDB writes moments with a time zone in microseconds only.
        again = sink.format == "parquet" and any(
            pa.types.is_timestamp(f.type) and f.type.tz is not None and f.type.unit != "us" for f in types
        )
        path = sink.path.with_name(f".{sink.path.name}.part") if again else sink.path
        try:
            written = self._run(
                f"COPY (SELECT {', '.join(wanted)} FROM ({body}) AS m JOIN group_texts AS g ON g.grp = m.grp "
                f"ORDER BY hash({placed})) TO '{quoted(str(path))}' ({how})",
                writes=sink.path,
            ).fetchall()
            return joined([path], types, sink, self.separator) if again else int(written[0][0])
        except OSError:
            raise OutputError(
                say("'{path}' cannot be written.", path=sink.path.name),
                "Nothing was published.",
                "Check the permissions and the space left.",
            ) from None
        finally:
            if again:
                path.unlink(missing_ok=True)

    def _written(self, name: str) -> str:
        """A cell that leaves as it came, in the unit of time that its file has."""
        type_, cell = self.types.field(name).type, self._cell(name)
        if name in self.own and pa.types.is_timestamp(type_) and type_.tz is None:
            kinds = {"s": "TIMESTAMP_MS", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}
            return f"CAST({cell} AS {kinds[type_.unit]})"
        return cell

    def _published_types(self, recoding: Recoding) -> pa.Schema:
        shown = recoding.labels
        return pa.schema(
            [
                pa.field(name, shown[name].type if name in shown else self.types.field(name).type)
                for name in recoding.columns
            ]
        )

    def _told_types(self, recoding: Recoding) -> str:
        """What a Parquet file tells Arrow's readers of types that the format itself does not know: time zones, columns of no values."""
        if not self.own.intersection(recoding.columns):
            return ""
        told = base64.b64encode(self._published_types(recoding).serialize().to_pybytes()).decode()
        return f", KV_METADATA {{'ARROW:schema': '{told}'}}"

    def fingerprint(self) -> bytes:
        """A digest of the files' bytes, or where there are none of the rows, whatever their order."""
        if self.files:
            return bytes_digest(self.files)
        row = f"hash({', '.join(self._cells)})"
        found = self._ask(f"SELECT count(*), sum({row}::HUGEINT), bit_xor({row}) FROM {{rows}}").fetchall()
        return hashlib.sha256(repr(found).encode()).digest()

    def unchanged(self) -> None:
        """Nothing, if the files are those that were first counted; else an error."""
        refuse_changed(self.files, self.stamps)

    @contextmanager
    def watched(self, told: Callable[[float], None]) -> Iterator[None]:
        """While a long question is answered, another thread is told twice a second how much of it is done, 0..1.

        >>> with of_arrow(pa.table({"age": [31]})).watched(print) as _:
        ...     pass
        """
        self._run("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        over = threading.Event()

        def look() -> None:
            while not over.wait(_LOOKS):
                share = float(self.connection.query_progress()) / 100
                if share >= 0:
                    told(min(share, 1.0))

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()

    def close(self) -> None:
        """Give memory and what was written to the private folder back."""
        self.connection.close()

    def _typed(self, found: pa.Table) -> pa.Table:
        """An answer whose moments, lengths of time and columns without values have the types that the files give them."""
        fields = [
            self.types.field(f.name) if f.name in self.own and f.name in self.types.names else f
            for f in found.schema
        ]
        return found.cast(pa.schema(fields)) if self.own else found

    @property
    def _cells(self) -> list[str]:
        return [f"f{at}" for at in range(len(self.types))]

    def _cell(self, name: str) -> str:
        return f"f{self.types.get_field_index(name)}"

    def _rows(self, placed: bool = False) -> tuple[str, str]:
        relation = self.placed if placed and self.placed else self.relation
        return relation, f" WHERE {' AND '.join(self.where)}" if self.where else ""

    def _asked(self, sql: str, placed: bool = False) -> str:
        # Conditions are met before any join, so that a name cannot be mistaken for one of a coding.
        relation, condition = self._rows(placed)
        rows = f"(SELECT * FROM {relation}{condition}) AS r" if condition else relation
        return sql.replace("{rows}", rows)

    def _coded(self, codings: Sequence[Coding]) -> tuple[list[str], str]:
        for at, coding in enumerate(codings):
            self._hold(f"coding{at}", coding_list(coding))
        return coded_cells(codings, [self._cell(coding.column) for coding in codings])

    def _hold(self, name: str, table: pa.Table) -> None:
        # Kept in DuckDB's own format: an Arrow table would be read anew by every thread.
        self.connection.register("handed_over", table)
        self._run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM handed_over")
        self.connection.unregister("handed_over")

    def _arrow(self, sql: str, placed: bool = False) -> pa.Table:
        return self.tried(lambda: self.connection.sql(self._asked(sql, placed)).to_arrow_table())

    def _ask(self, sql: str) -> Any:
        return self._run(self._asked(sql))

    def _run(self, sql: str, writes: Path | None = None) -> Any:
        return self.tried(lambda: self.connection.execute(sql), writes)

    def tried(self, work: Callable[[], T], writes: Path | None = None) -> T:
        """What *work* gives; whatever DuckDB says becomes one sentence, because its own may quote a cell or an address."""
        import duckdb

        try:
            return work()
        except duckdb.OutOfMemoryException:
            raise no_room() from None
        except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
            raise damaged_part(str(error), self.parts) or TableError(
                say("The rows of '{name}' cannot be read.", name=self.name),
                "A row has too few or too many fields, a part is damaged, or the text is not in UTF-8.",
                "Look at the files one by one, each with `velado inspect FILE`.",
            ) from None
        except duckdb.IOException as error:
            self.unchanged()
            if writes is None and "write" in str(error).lower():
                raise no_room() from None  # what does not fit in memory could not be set aside
            if writes is not None:
                raise OutputError(
                    say("'{path}' cannot be written.", path=writes.name),
                    "Nothing was published.",
                    "Check the permissions and the space left.",
                ) from None
            raise damaged_part(str(error), self.parts) or TableError(
                say("A part of '{name}' cannot be read.", name=self.name),
                "It is damaged, or nobody may read it. Nothing was published.",
                "Check the files and their permissions.",
            ) from None
        except duckdb.Error as error:
            # DuckDB's own messages may quote cells.
            raise damaged_part(str(error), self.parts) or EngineError(
                say("DuckDB could not answer ({kind}).", kind=type(error).__name__),
                "Nothing was published.",
                "Check the files; if they are whole, please report it.",
            ) from None


@dataclass(frozen=True, repr=False)
class DuckDBTables:
    """Temporary tables of a source's own connection, for `SqlLots`.

    >>> kept = DuckDBTables(of_arrow(pa.table({"age": [31]})))
    >>> kept.make("cut_rows", "SELECT 1 AS part")
    >>> kept.ask("SELECT part FROM cut_rows", ["part"]).to_pydict()
    {'part': [1]}
    """

    source: DuckDBSource

    def make(self, name: str, select: str) -> None:
        """A table *name* holds the rows of *select*, which may read the one that has the name now."""
        self.source._run(f"CREATE TEMP TABLE {name}_next AS {select}")
        self.drop(name)
        self.source._run(f"ALTER TABLE {name}_next RENAME TO {name}")

    def drop(self, name: str) -> None:
        """There is no table *name* of the run; one of somebody else's stays."""
        self.source._run(f"DROP TABLE IF EXISTS temp.{name}")

    def hold(self, name: str, table: pa.Table) -> None:
        """A table *name* holds what is handed over."""
        self.source._hold(name, table)

    def append(self, name: str, table: pa.Table) -> None:
        """More rows of whole numbers stand in table *name*."""
        self.source.connection.register("more_handed_over", table)
        self.append_select(name, "SELECT * FROM more_handed_over")
        self.source.connection.unregister("more_handed_over")

    def append_select(self, name: str, select: str) -> None:
        """The rows of *select* stand in table *name* too."""
        self.source._run(
            f"CREATE TEMP TABLE IF NOT EXISTS {name} AS SELECT * FROM ({select}) AS empty LIMIT 0"
        )
        self.source._run(f"INSERT INTO {name} {select}")

    def ask(self, sql: str, names: Sequence[str]) -> pa.Table:
        """The answer, columns of whole numbers called *names*."""
        return self.source._arrow(sql).rename_columns(names)

    def lay(self, name: str) -> None:
        """Nothing: rows that were written in order are skipped by their least and greatest."""


D = TypeVar("D", bound=DuckDBSource)


def no_room() -> EngineError:
    """The error that neither memory nor the disk has room for what is set aside.

    >>> no_room().what
    'DuckDB ran out of memory, or of disk space to spill to.'
    """
    return EngineError(
        "DuckDB ran out of memory, or of disk space to spill to.",
        "Nothing was published.",
        "Allow more with --memory, or make room on the disk of the output folder.",
    )


def _named(name: str) -> str:
    return name.replace('"', '""')


def open_files(
    place: str | Path | Sequence[Path], schema: Schema, folder: Path, *, memory: str | None = None
) -> DuckDBSource:
    """The table in one or several files, with *folder*, a private one, to spill to.

    *place* is a path, a folder, a pattern, or files. *memory* is what DuckDB may hold, e.g. "3GB".

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "stays.csv").write_text("home\\na\\na\\nb\\n")
    ...     open_files(Path(folder, "stays.csv"), Schema({}), Path(folder)).rows
    3
    """
    need("duckdb", say("Files beyond memory are read by it."), "duckdb")
    paths = lake_files(place) if isinstance(place, str | Path) else list(place)
    stamps = tuple(stamp(path) for path in paths)
    root = lake_root(place) if isinstance(place, str | Path) else None
    found = scan_files(paths, schema, folder, root)
    connection = connect(threads(), memory or DEFAULT_MEMORY, str(folder / "spill"))
    # A Parquet file's statistics leave NaN out, and DuckDB would conclude from them that no cell is one.
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    if found.handed is not None:
        _registered(connection, "arrow_files", found.handed)
    name = paths[0].name if len(paths) == 1 else say_n("{n:,} file", "{n:,} files", len(paths))
    source = DuckDBSource(
        name=name,
        connection=connection,
        relation=found.relation,
        types=pa.schema([(f"f{at}", pa.string()) for at in range(len(found.names))]),
        rows=0,
        files=tuple(paths),
        stamps=stamps,
        separator=found.separator,
        placed=found.placed,
        order="numbered" if found.told else "scan",
        parts=tuple(zip(found.places, found.called, strict=True)),
    )
    try:
        counted = counted_source(source, found.names)
        return replace(
            counted, types=found.typed(counted.types), own=frozenset(field.name for field in found.own)
        )
    except BaseException:
        connection.close()
        raise


def of_arrow(table: pa.Table, *, name: str = "table", memory: str | None = None) -> DuckDBSource:
    """DuckDB over an Arrow table.

    >>> of_arrow(pa.table({"age": [31, 35]})).distinct("age")
    (2, 2)
    """
    need("duckdb", say("Files beyond memory are read by it."), "duckdb")
    refuse_alike(table.column_names)
    connection = connect(threads(), memory, "")
    places = [f"f{at}" for at in range(table.num_columns)]
    _registered(connection, "handed_in", table.rename_columns(places))
    source = DuckDBSource(name, connection, "handed_in", pa.schema([(p, pa.string()) for p in places]), 0)
    return counted_source(source, table.column_names)


def _registered(connection: Any, name: str, rows: Any) -> None:
    import duckdb

    try:
        connection.register(name, rows)
    except duckdb.Error:
        connection.close()
        raise TableError(
            "A column has a type that DuckDB does not read.",
            "Nothing was read.",
            "Write it with a plainer type, as 32-bit for 16-bit floats, or use --engine memory.",
        ) from None


def _with_cells(source: D, changed: Mapping[str, str]) -> D:
    """The same rows, some of whose cells are what SQL makes of them."""
    if not changed:
        return source
    made = ", ".join(f"{sql} AS {cell}" for cell, sql in changed.items())
    return replace(
        source,
        relation=f"(SELECT * REPLACE ({made}) FROM {source.relation}) AS file",
        placed=f"(SELECT * REPLACE ({made}) FROM {source.placed}) AS file" if source.placed else "",
    )


def counted_source(source: D, names: Sequence[str]) -> D:
    """The source with its columns' true *names*, their types and the number of its rows.

    >>> rows = of_arrow(pa.table({"f0": [31, 35]}))
    >>> counted_source(rows, ["age"]).types.names
    ['age']
    """
    shown = source._arrow("SELECT * FROM {rows} LIMIT 0").schema
    ((rows,),) = source._ask("SELECT count(*) FROM {rows}").fetchall()
    # To DuckDB -0.0 and 0.0 are equal, but their texts are not: there is one zero.
    zeros = {
        f"f{at}": f"CASE WHEN f{at} = 0 THEN abs(f{at}) ELSE f{at} END"
        for at, field in enumerate(shown)
        if pa.types.is_floating(field.type)
    }
    source = _with_cells(source, zeros)
    types = pa.schema([pa.field(name, field.type) for name, field in zip(names, shown, strict=True)])
    return replace(source, types=types, rows=int(rows))
