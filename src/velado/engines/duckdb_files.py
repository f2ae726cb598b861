"""CSV, Parquet and Arrow files as DuckDB scans them: header read by us, cells as text, names by place, nothing guessed."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from velado.data.blanks import is_text
from velado.data.csv_reading import check_header, header_of, is_utf8_name, refuse_zero_bytes, utf8_blocks
from velado.data.numbers import THOUSANDS
from velado.data.schema import Schema
from velado.engines.places import ARROW, CSV, PARQUET
from velado.errors import EngineError, MissingExtra, TableError
from velado.settings import no_file
from velado.text import say

_HEAD = 1 << 20
_BLOCK = 1 << 22
_GLOB = frozenset("*?[]{}")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Scan:
    """A relation DuckDB can read, whose columns are f0, f1, ... in the file's order, and their true names.

    *placed* is the same with `filename` and `file_row_number` behind them, where the format can tell a row's place. *places*
    are the files as they are read: in UTF-8, and named without anything that would be taken for a pattern; *called* is what a
    person calls them, with the folders below the one that was named. The last *told* columns are those that folders tell. *own* are columns whose type DuckDB does not keep: lengths and moments of time, columns without any
    value. *handed* is what DuckDB is handed as `arrow_files`, where it does not read the files itself.

    >>> Scan("read_csv('stays.csv')", ("home",)).names
    ('home',)
    """

    relation: str
    names: tuple[str, ...]
    separator: str = ","
    placed: str = ""
    places: tuple[Path, ...] = ()
    called: tuple[str, ...] = ()
    told: int = 0
    own: tuple[pa.Field, ...] = ()
    handed: Any = None

    def typed(self, types: pa.Schema) -> pa.Schema:
        """*types* as the files mean them: lengths of time are plain whole numbers to an engine, and moments those of UTC.

        >>> stay = pa.field("stay", pa.duration("s"))
        >>> Scan("", ("stay",), own=(stay,)).typed(pa.schema([("stay", pa.int64())])).types
        [DurationType(duration[s])]
        """
        for field in self.own:
            types = types.set(types.get_field_index(field.name), field)
        return types


def scan(path: Path, schema: Schema, folder: Path) -> Scan:
    """How DuckDB reads the file; *folder* is private and may receive a copy in UTF-8.

    >>> scan(Path("no-such.csv"), Schema({}), Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: There is no file 'no-such.csv'. Nothing was read. Check the path and the spelling.
    """
    return scan_files([path], schema, folder)


def scan_files(paths: Sequence[Path], schema: Schema, folder: Path, root: Path | None = None) -> Scan:
    """How DuckDB reads all *paths* as one table; columns that a folder's name tells (`year=2024/`) come last, as text.

    Only folders below *root* tell columns; by default it is the deepest folder that holds all files. Every file must
    have the same columns, in any order for Parquet, with the same types.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder, f"{n}.csv") for n in range(2)]
    ...     _ = [file.write_text("age,sex\\n31,F\\n") for file in files]
    ...     scan_files(files, Schema({}), Path(folder)).names
    ('age', 'sex')
    """
    told = _folder_cells(paths, root)
    for path in paths:
        if not path.is_file():
            raise TableError(*no_file(told.called[path]))
    endings = {path.suffix.lower() for path in paths}
    if endings <= set(PARQUET):
        return _parquet(paths, folder, told)
    if endings <= set(ARROW):
        return _arrow(paths, told)
    if not endings <= set(CSV):
        odd = next((path for path in paths if path.suffix.lower() not in (*PARQUET, *CSV, *ARROW)), None)
        if odd is None:
            there = [
                next(p for p in paths if p.suffix.lower() in ends)
                for ends in (CSV, PARQUET, ARROW)
                if endings & set(ends)
            ]
            raise TableError(
                say(
                    "Files of different kinds lie side by side, as '{path}' and '{other}'.",
                    path=there[0].name,
                    other=there[1].name,
                ),
                "They would have to be one table, and their cells are of different types.",
                "Give one kind of file, e.g. 'lake/*.parquet'.",
            )
        raise TableError(
            say("'{path}' is neither a CSV nor a Parquet nor an Arrow file by its ending.", path=odd.name),
            "DuckDB is asked to scan those alone.",
            "Rename it, or read it with velado.read_table and query the table.",
        )
    return _csv(paths, schema, folder, told)


def _csv(paths: Sequence[Path], schema: Schema, folder: Path, told: _Folders) -> Scan:
    first: tuple[list[str], str] | None = None
    sources = []
    for number, path in enumerate(paths):
        source = _in_utf8(path, told.called[path], schema.encoding, folder, number, len(paths) > 1)
        found = _header(told.called[path], source, schema, told.names)
        refuse_alike(found[0])
        if first is not None and found != first:
            refuse_alike([*first[0], *(name for name in found[0] if name not in first[0])])
            raise _mixed(told.called[path], told.called[paths[0]], found[0], first[0])
        first = found
        sources.append(source)
    assert first is not None
    header, separator = first
    told.beside(header)
    places = _plain(sources, folder)
    cells = [f"f{number}" for number in range(len(header))]
    columns = ", ".join(f"'{cell}': 'VARCHAR'" for cell in cells)
    reads = (
        f"read_csv([{_listed(places)}], columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = '{quoted(separator)}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true, "
        "hive_partitioning = false"
    )
    names = (*header, *told.names)
    relation = _selected(reads, cells, told, places)
    return Scan(
        relation,
        names,
        separator,
        places=tuple(places),
        called=tuple(told.called.values()),
        told=len(told.names),
    )


def _in_utf8(path: Path, called: str, encoding: str, folder: Path, number: int, one_of_many: bool) -> Path:
    """The file itself if it is in UTF-8, else a copy that is; what memory refuses of its bytes is refused."""
    with path.open("rb") as file, ExitStack() as closing:
        text = utf8_blocks(iter(lambda: file.read(_BLOCK), b""), called, encoding, one_of_many)
        copy = None
        if not is_utf8_name(encoding):
            copy = closing.enter_context((folder / f"utf8-{number}.csv").open("wb"))
        for block in text:
            refuse_zero_bytes(block, called)
            if copy is not None:
                copy.write(block)
    return path if copy is None else Path(copy.name)


def _header(name: str, source: Path, schema: Schema, told: Sequence[str]) -> tuple[list[str], str]:
    with source.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise TableError(
            say("'{path}' is empty.", path=name),
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    # A block may end inside a character; the header is checked up to the last whole line.
    data = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    header, separator = header_of(data.removeprefix(codecs.BOM_UTF8), name, schema.separator)
    check_header(header, name, [known for known in schema.columns if known not in told])
    return header, separator


def _parquet(paths: Sequence[Path], folder: Path, told: _Folders) -> Scan:
    first = _same_columns(paths, told, pq.read_schema, as_stored)
    told.beside(first.names)
    names = (*first.names, *told.names)
    places = _plain(paths, folder)
    union = ", union_by_name = true" if len(paths) > 1 else ""
    reads = f"read_parquet([{_listed(places)}], hive_partitioning = false{union}"
    placed = ""
    if "file_row_number" not in {name.lower() for name in names}:
        placed = _selected(reads, first.names, told, places, placed=True)
    relation = _selected(reads, first.names, told, places)
    own = tuple(pa.field(f.name, f.type) for f in first if _is_own(f.type))
    return Scan(
        relation,
        names,
        placed=placed,
        places=tuple(places),
        called=tuple(told.called.values()),
        told=len(told.names),
        own=own,
    )


def _is_own(type_: pa.DataType) -> bool:
    return bool(pa.types.is_duration(type_) or pa.types.is_timestamp(type_) or pa.types.is_null(type_))


def as_stored(type_: pa.DataType) -> pa.DataType:
    """The type that stands for all those a Parquet file stores alike: how long a text may be, and whether it is a category, is Arrow's alone.

    >>> as_stored(pa.large_string()), as_stored(pa.dictionary(pa.int32(), pa.string()))
    (DataType(string), DataType(string))
    """
    if pa.types.is_dictionary(type_):
        return as_stored(type_.value_type)
    if is_text(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    return type_


def _same_columns(
    paths: Sequence[Path],
    told: _Folders,
    read: Callable[[Path], pa.Schema],
    seen: Callable[[pa.DataType], pa.DataType] = lambda type_: type_,
) -> pa.Schema:
    """The columns of all files, or the error that names the file that differs; *seen* is the same of types that are one."""
    first: pa.Schema | None = None
    for path in paths:
        try:
            own = read(path)
        except (pa.ArrowException, OSError):
            raise TableError(
                say("'{path}' is not a readable Parquet file.", path=told.called[path])
                if path.suffix.lower() in PARQUET
                else say("'{path}' is not a readable Arrow file.", path=told.called[path]),
                "Its content does not have that format.",
                "Check the file, or give it the ending of its true format.",
            ) from None
        refuse_alike(own.names)
        if first is None:
            first = own
        elif {f.name: seen(f.type) for f in own} != {f.name: seen(f.type) for f in first}:
            refuse_alike([*first.names, *(name for name in own.names if name not in first.names)])
            odd = [
                (f.name, f.type, first.field(f.name).type)
                for f in own
                if f.name in first.names and seen(f.type) != seen(first.field(f.name).type)
            ]
            raise _mixed(told.called[path], told.called[paths[0]], own.names, first.names, odd)
    assert first is not None
    return first


def _arrow(paths: Sequence[Path], told: _Folders) -> Scan:
    """Arrow files, which DuckDB is handed piece by piece as Arrow's own reader reads them."""
    import pyarrow.dataset as ds
    import pyarrow.ipc as ipc

    def schema_of(path: Path) -> pa.Schema:
        with pa.memory_map(str(path)) as file:
            return ipc.open_file(file).schema

    first = _same_columns(paths, told, schema_of)
    if told.names:
        raise TableError(
            say("The column '{column}' stands in the names of folders of Arrow files.", column=told.names[0]),
            "Only CSV and Parquet files are read together with their folders' names.",
            "Give the files of one folder, or write them as Parquet.",
        )
    handed = ds.dataset([str(path) for path in paths], schema=first, format="ipc")
    own = tuple(pa.field(f.name, f.type) for f in first if _is_own(f.type))
    relation = f"(SELECT {', '.join(named_cells(first.names))} FROM arrow_files AS r) AS file"
    called = tuple(told.called.values())
    return Scan(relation, tuple(first.names), places=tuple(paths), called=called, own=own, handed=handed)


def _selected(
    reads: str, names: Sequence[str], told: _Folders, places: Sequence[Path], placed: bool = False
) -> str:
    """Every column by its name, as f0, f1, ...; *reads* is a call that still lacks its end."""
    file = "filename"
    while file in {name.lower() for name in names}:
        file += "_"
    if told.names or placed:
        reads += ", filename = true" if file == "filename" else f", filename = '{file}'"
    if placed:
        reads += ", file_row_number = true"
    more = [f"f{at}" for at in range(len(names), len(names) + len(told.names))]
    cells = named_cells(names) + [f"t.{cell}" for cell in more]
    joined = ""
    if placed:
        cells += [f"r.{file} AS filename", "r.file_row_number"]
    if told.names:
        rows = [
            ", ".join("NULL::VARCHAR" if cell is None else f"'{quoted(cell)}'" for cell in (str(place), *own))
            for place, own in zip(places, told.cells, strict=True)
        ]
        listed = ", ".join(["place", *more])
        joined = f" JOIN (VALUES ({'), ('.join(rows)})) AS t({listed}) ON r.{file} = t.place"
    return f"(SELECT {', '.join(cells)} FROM {reads}) AS r{joined}) AS file"


def named_cells(names: Sequence[str]) -> list[str]:
    """Each column of a relation `r` by its name, as f0, f1, ...

    >>> named_cells(["age"])
    ['r."age" AS f0']
    """
    doubled = [name.replace('"', '""') for name in names]
    return [f'r."{name}" AS f{at}' for at, name in enumerate(doubled)]


def _listed(places: Sequence[Path]) -> str:
    return ", ".join(f"'{quoted(str(place))}'" for place in places)


def refuse_alike(names: Sequence[str]) -> None:
    """Nothing, if every column has a name and no two are the same but for capital letters, which DuckDB does not see.

    >>> refuse_alike(["code", "CODE"])
    Traceback (most recent call last):
    velado.errors.TableError: The columns 'code' and 'CODE' have the same name but for capital letters. An engine may take one for the other. Rename one of them; a single file can also be read with --engine memory.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not name:
            raise TableError(
                "A column has no name.",
                "It could be mistaken for another.",
                "Name it, or leave it out of the files.",
            )
        if name.lower() in seen:
            raise TableError(
                say(
                    "The columns '{column}' and '{other}' have the same name but for capital letters.",
                    column=seen[name.lower()],
                    other=name,
                ),
                "An engine may take one for the other.",
                "Rename one of them; a single file can also be read with --engine memory.",
            )
        seen[name.lower()] = name


@dataclass(frozen=True)
class _Folders:
    """The columns that folders tell, as `year` in `lake/year=2024/part.parquet`, their cells for each file, and what it is *called*."""

    names: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...]
    called: Mapping[Path, str]

    def beside(self, names: Sequence[str]) -> None:
        """Nothing, if no column of the files is told by a folder too; else an error."""
        for at, name in enumerate(self.names):
            if name in names or name in self.names[:at]:
                raise TableError(
                    say("The column '{column}' is told by a folder's name and once more.", column=name),
                    "Which of the two values is meant cannot be known.",
                    "Rename the column or the folders, or give the files of one folder.",
                )
        refuse_alike([*names, *self.names])


def _folder_cells(paths: Sequence[Path], root: Path | None) -> _Folders:
    parents = [os.path.abspath(path.parent) for path in paths]
    base = os.path.commonpath(parents) if root is None else os.path.abspath(root)
    told = [
        [part.partition("=") for part in Path(os.path.relpath(parent, base)).parts if "=" in part[1:]]
        for parent in parents
    ]
    names = [tuple(name for name, _, _ in own) for own in told]
    if any(own != names[0] for own in names):
        raise TableError(
            "Some of the files lie in folders that name a value (as in year=2024), and others do not.",
            "A column would be missing in part of the table.",
            "Give the files of one level.",
        )
    cells = [tuple(None if cell == _NO_VALUE else unquote(cell) for _, _, cell in own) for own in told]
    return _Folders(names[0], tuple(cells), called_parts(paths, base))


def called_parts(paths: Sequence[Path], base: str) -> dict[Path, str]:
    """What a message calls each file: its name with the folders below *base*, and its number where others would be called the same.

    What a folder tells of a column is a cell of the table, and is left out.

    >>> list(called_parts([Path("lake/m=1/p.csv"), Path("lake/m=2/p.csv")], "lake").values())
    ['m=…/p.csv (file 1 of 2)', 'm=…/p.csv (file 2 of 2)']
    >>> list(called_parts([Path("lake/a/p.csv"), Path("lake/b/p.csv")], "lake").values())
    ['a/p.csv', 'b/p.csv']
    """
    below = [PurePath(os.path.relpath(path, base)) for path in paths]
    folders = [
        [f"{part.partition('=')[0]}=…" if "=" in part[1:] else part for part in own.parts[:-1]]
        for own in below
    ]
    names = [str(PurePath(*own, path.name)) for own, path in zip(folders, below, strict=True)]
    alike = Counter(names)
    return {
        path: name
        if alike[name] < 2
        else str(say("{name} (file {at:,} of {all:,})", name=name, at=at, all=len(paths)))
        for at, (path, name) in enumerate(zip(paths, names, strict=True), 1)
    }


def _mixed(
    path: str,
    other: str,
    names: Sequence[str],
    expected: Sequence[str],
    odd: Sequence[tuple[str, pa.DataType, pa.DataType]] = (),
) -> TableError:
    absent = [name for name in expected if name not in names]
    more = [name for name in names if name not in expected]
    if absent:
        what = say("'{path}' lacks the column '{column}'.", path=path, column=absent[0])
    elif more:
        what = say(
            "'{path}' has the column '{column}', which '{other}' does not have.",
            path=path,
            column=more[0],
            other=other,
        )
    elif odd:
        what = say(
            "Column '{column}' is {type} in '{path}' and {expected} in '{other}'.",
            column=odd[0][0],
            type=odd[0][1],
            path=path,
            expected=odd[0][2],
            other=other,
        )
    else:
        what = say(
            "The columns of '{path}' stand in another order than in '{other}'.",
            path=path,
            other=other,
        )
    return TableError(
        what,
        "Files that are read as one table must have the same columns.",
        "Leave the file out, or write it again like the others.",
    )


def _plain(paths: Sequence[Path], folder: Path) -> list[Path]:
    # DuckDB reads *, ? and brackets in a path as patterns, so such a file is reached through a link without them; so is one
    # that is named twice, because its folders' values are told by its name.
    places: dict[Path, None] = {}
    for number, path in enumerate(paths):
        place = path.resolve()
        if _GLOB & set(str(place)) or place in places:
            mark = hashlib.sha256(os.fsencode(place)).hexdigest()[:12]
            link = folder.absolute() / f"rows-{number}-{mark}{place.suffix.lower()}"
            if not link.is_symlink():
                link.symlink_to(place)
            place = link
        places[place] = None
    return list(places)


def stamp(path: Path) -> Stamp | None:
    """What changes when a file is written or replaced; a file that is not there is refused by whoever reads it.

    >>> stamp(Path("no-such-file")) is None
    True
    """
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns


def bytes_digest(files: Sequence[Path]) -> bytes:
    """A digest of the bytes of all files, whatever they are called and in whatever order they come.

    >>> bytes_digest([]).hex()[:8]
    'e3b0c442'
    """
    each = []
    for path in files:
        with path.open("rb") as file:
            each.append(hashlib.file_digest(file, "sha256").digest())
    return hashlib.sha256(b"".join(sorted(each))).digest()


def refuse_changed(files: Sequence[Path], stamps: Sequence[Stamp | None]) -> None:
    """Nothing, if every file has the stamp it had; else an error.

    >>> refuse_changed([Path("no-such-file")], [None])
    """
    for path, before in zip(files, stamps, strict=True):
        if stamp(path) != before:
            raise TableError(
                say("'{path}' changed while it was read.", path=path.name),
                "What was counted and what would be published could be different rows.",
                "Try again when nobody writes to the files, or take a copy of them.",
            )


def need(library: str, why: str, extra: str) -> None:
    """Nothing, if an optional library is installed; else the error names the extra that brings it.

    >>> need("polars", "Tables are read by it.", "all")
    """
    if find_spec(library) is None:
        raise MissingExtra(
            say("The library {library} is not installed.", library=library),
            why,
            say("Install velado[{extra}].", extra=extra),
        )


def threads() -> int:
    """How many threads an engine uses where nobody says.

    >>> 1 <= threads() <= 8
    True
    """
    return max(1, min(8, os.cpu_count() or 1))


def connect(threads: int | None, memory: str | None, spill: str, database: str = ":memory:") -> Any:
    """A fresh database that spills to *spill* (nowhere if blank) and loads no extension.

    >>> connect(1, None, "").execute("SELECT 1").fetchone()
    (1,)
    """
    import duckdb

    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": spill,
    }
    if threads is not None:
        config["threads"] = threads
    if memory is not None:
        config["memory_limit"] = memory
    try:
        connection = duckdb.connect(database, config=config)
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error:
        raise EngineError(
            "DuckDB could not be opened with these settings.",
            "The limit of threads or memory is not one it understands, or the disk is full.",
            "Use for example threads = 2 and memory = '4GB'.",
        ) from None
    return connection


def number_text_sql(text: str, decimal: str) -> str:
    """An expression for the number in a text as DuckDB casts it, NULL for what only DuckDB takes for one.

    >>> number_text_sql("t", ".")
    "CASE WHEN contains(t, '_') THEN NULL ELSE t END"
    """
    # An underscore between digits is a number to DuckDB, but not to anyone who writes tables.
    text = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
    if decimal == ".":
        return text
    trimmed = f"trim({text})"
    plain = f"CASE WHEN regexp_matches({trimmed}, '{THOUSANDS}') THEN replace({trimmed}, '.', '') ELSE {trimmed} END"
    return f"CASE WHEN contains({plain}, '.') THEN NULL ELSE replace({plain}, ',', '.') END"


def quoted(text: str) -> str:
    """The inside of a SQL text literal.

    >>> quoted("O'Hara")
    "O''Hara"
    """
    return text.replace("'", "''")
