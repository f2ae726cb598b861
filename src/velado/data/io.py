"""The door of the table: files, frames, schemas and their taxonomies in; writing is `staging`.

CSV cells are read as text and never re-written, so a column that is not recoded leaves exactly as it came
(`007` stays `007`, `2174.0` stays `2174.0`). Errors never repeat a cell, not even the library's own.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import polars as pl

from velado.data.csv_reading import (
    Ragged,
    as_utf8,
    check_header,
    found_encoding,
    header_of,
    is_utf8_name,
    lines_of,
    ragged_rows,
    refuse_zero_bytes,
    wide_encoding,
)
from velado.data.formats import Wanted, damaged, expected_format, format_of, read_as
from velado.data.frames import CameAs, from_native
from velado.data.level_files import paths_from_levels
from velado.data.schema import Column, Schema, TaxonomySpec, check_separator
from velado.data.staging import reason_of
from velado.data.table import ReadSettings, Table, Undeclared
from velado.errors import NoRows, ParameterError, SchemaError, TableError, TaxonomyError
from velado.settings import Where, made, no_file, parse_toml, toml_trouble
from velado.text import say, say_n


def read_table(
    source: Any,
    schema: Schema | str | Path | None = None,
    undeclared: Undeclared = "refuse",
    encoding: str | None = None,
    known: Collection[str] = (),
    sheet: str | None = None,
) -> Table:
    """A Table from a file (CSV, Parquet, Arrow, spreadsheet, SPSS, Stata, SAS), or from any data frame narwhals understands.

    Without *schema* every column gets the role "other" and kind "text", as `inspect` needs it. *known* are
    further names that the header may hold although they look like values (a column `2020`). The first bytes of a
    file say what it is, whatever its ending. A text that is not UTF-8 is read in the *encoding* that was named here
    or in the schema, else in the one its bytes show, which the table's `encoding` tells. *sheet* is the one to read
    of a spreadsheet with several.

    >>> from velado.data.samples import hospital_csv, hospital_schema
    >>> read_table(hospital_csv(), read_schema(hospital_schema()))
    Table(2000 rows; 3 identifier, 6 quasi, 2 sensitive, 5 other)
    """
    undeclared = made(ReadSettings, {"undeclared": undeclared}, Where("python")).undeclared
    schema = None if schema is None else schema_from(schema)
    if isinstance(source, Table):
        if schema is None:
            return source
        kept = source.source, source.fingerprint, undeclared, source.separator, source.encoding
        return Table.of(source.frame, schema, *kept).blanked().arrived(source.came, source.dropped)
    if isinstance(source, str | Path):
        # A schema's own default is UTF-8, so that only another one is a declaration.
        declared = None if schema is None or is_utf8_name(schema.encoding) else schema.encoding
        names = (*known, *(schema.columns if schema else ()))
        separator = schema.separator if schema else None
        found = _read_file(Path(source), Wanted(encoding or declared, separator, names, sheet))
        name = Path(source).name
    else:
        arrived = from_native(source, () if schema is None else schema.columns)
        found = _Found(arrived.frame, "", came=arrived.came, left_out=arrived.left_out)
        name = type(source).__module__.split(".")[0]
    if schema is None:
        columns = {column: Column(column, "other", "text") for column in found.frame.columns}
        # What was found is said, so that the schema `inspect` proposes says it too.
        schema = Schema(columns, encoding="utf-8" if is_utf8_name(found.encoding) else found.encoding)
    table = Table.of(found.frame, schema, name, found.digest, undeclared, found.separator, found.encoding)
    return table.blanked().arrived(found.came, found.left_out)


@dataclass(frozen=True)
class _Found:
    """What a file was read as."""

    frame: pl.DataFrame
    digest: str
    separator: str = ","
    encoding: str = "utf-8"
    came: CameAs = field(default_factory=CameAs)
    left_out: pl.DataFrame | None = None


_SERVER = ("postgresql:/", "postgres:/")  # as a path has them: with one stroke less than the address


def _read_file(path: Path, wanted: Wanted) -> _Found:
    if str(path).startswith(_SERVER):
        raise ParameterError(
            "The address of a server was given where a file is read.",
            "It is not repeated here because it may hold a password.",
            "Use velado.publish_table, or `velado anonymize`, `inspect`, `verify` or `measure` with --table.",
        )
    try:
        if path.is_dir():
            raise TableError(
                say("'{path}' is a folder.", path=path.name or str(path)),
                "A table is one file.",
                "Name the file inside it.",
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise TableError(*no_file(path.name)) from None
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise TableError(
            say("'{path}' cannot be read ({reason}).", path=path.name, reason=reason_of(error)),
            "Nothing was read.",
            "Check the path and the permissions.",
        ) from None
    return replace(_parse(data, path.name, wanted), digest=hashlib.sha256(data).hexdigest())


def refuse_encoding(path: Path, encoding: str) -> None:
    """A text file that is not in the *encoding* named for it is refused; what cannot be read is for its reader to say.

    >>> from velado.data.samples import hospital_csv
    >>> refuse_encoding(hospital_csv(), "utf-8")
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError):
        return
    format = format_of(data)
    if format is not None and format.unpack is not None:
        data = format.unpack(format, data, path.name)
        format = format_of(data)
    if format is None:
        as_utf8(data, path.name, encoding)


def _parse(data: bytes, name: str, wanted: Wanted, unpacked: bool = False) -> _Found:
    """The bytes read as what they show to be, else as what the name's ending says, else as CSV."""
    if not data.strip(b" \t\r\n\0\xef\xbb\xbf"):
        raise TableError(
            say("'{name}' is empty.", name=name),
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    format = format_of(data)
    promised = None if unpacked else expected_format(name)
    if format is None and promised is not None and wide_encoding(data) is None:
        raise damaged(promised, name)
    if wanted.sheet is not None and (format is None or not (format.sheets or format.unpack)):
        call = say("a text file") if format is None else format.call
        raise TableError(
            say("'{name}' is {call} and has no sheets.", name=name, call=call),
            "A sheet was asked for.",
            "Leave the sheet out.",
        )
    if format is None:
        encoding = wanted.encoding or found_encoding(data, name)
        frame, separator = parse_csv(data, name, encoding, wanted.separator, wanted.known)
        return _Found(frame, "", separator, encoding)
    if format.unpack is None:
        return _Found(read_as(format, data, name, wanted), "")
    if unpacked:
        raise TableError(
            say("'{name}' is packed twice.", name=name),
            "velado unpacks one layer.",
            "Unpack it, and give the file inside.",
        )
    # The name of a file inside may be a person's: the archive's own stands in every message.
    return _parse(format.unpack(format, data, name), name, wanted, unpacked=True)


def parse_csv(
    data: bytes, name: str, encoding: str = "utf-8", separator: str | None = None, known: Collection[str] = ()
) -> tuple[pl.DataFrame, str]:
    """CSV bytes as a frame of text columns, and the separator that was found or given.

    *known* are the column names the schema has: they are names whatever they look like, and a header that holds
    all of them is one whatever else it holds.

    >>> parse_csv(b"nome;idade\\nAna;031\\n", "t.csv")[0].rows()
    [('Ana', '031')]
    """
    if separator is not None:
        check_separator(separator, "The separator")
    data = as_utf8(data, name, encoding)
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    refuse_zero_bytes(data, name)
    header, separator = header_of(data, name, separator)
    check_header(header, name, known)
    if len(header) > 1:
        data = data.rstrip(b"\r\n") + b"\n"
        found = ragged_rows(data, separator, len(header))
        if found.short or found.blank:
            raise TableError(
                say_n(
                    "{n:,} row of '{name}' has fewer fields than the header, or is a blank line ({found}).",
                    "{n:,} rows of '{name}' have fewer fields than the header, or are blank lines ({found}).",
                    found.short + found.blank,
                    name=name,
                    found=found.told(),
                ),
                "Their values may stand in the wrong columns, and blank lines would be published as people.",
                "Complete or remove those rows, or set `separator` in [table] of the schema.",
            )
    try:
        frame = pl.scan_csv(
            io.BytesIO(data), separator=separator, infer_schema=False, quote_char='"', low_memory=False
        ).collect()
    except pl.exceptions.NoDataError:
        raise NoRows(
            say("'{name}' has no rows.", name=name),
            "There is nobody to protect.",
            "Check that the right file was given.",
        ) from None
    except pl.exceptions.PolarsError:
        raise _irregular(name, ragged_rows(data.rstrip(b"\r\n") + b"\n", separator, len(header))) from None
    # Polars and the csv module read doubled quotes in a header differently; ours is the one the schema is matched with.
    if frame.width != len(header):
        raise _irregular(name, Ragged())
    frame.columns = header
    return frame, separator


def _irregular(name: str, found: Ragged) -> TableError:
    if found.long:
        what = say_n(
            "{n:,} row has more fields than the header ({lines})",
            "{n:,} rows have more fields than the header ({lines})",
            found.long,
            lines=lines_of(found.long_lines, found.long),
        )
    else:
        what = say("some rows have more fields than the header, or a quote is never closed")
    return TableError(
        say("'{name}' is not a regular CSV file: {what}.", name=name, what=what),
        "Fields would land in the wrong columns.",
        "Correct the file, or set `separator` in [table] of the schema.",
    )


def schema_from(schema: Schema | str | Path) -> Schema:
    """The schema itself, or that of a file.

    >>> schema_from(5)
    Traceback (most recent call last):
    velado.errors.ParameterError: A schema cannot be a int. It says which columns identify and what each means. Pass the path of a schema file, or velado.read_schema(path).
    """
    return schema if isinstance(schema, Schema) else read_schema(schema)


def read_schema(path: str | Path) -> Schema:
    """A Schema from a TOML file, with the taxonomy files it names read in.

    >>> from velado.data.samples import hospital_schema
    >>> read_schema(hospital_schema()).person.name
    'cpf'
    """
    if not isinstance(path, str | Path):
        raise ParameterError(
            say("A schema cannot be a {kind}.", kind=type(path).__name__),
            "It says which columns identify and what each means.",
            "Pass the path of a schema file, or velado.read_schema(path).",
        )
    path = Path(path)
    schema = attach_taxonomies(Schema.from_dict(parse_toml(path, say("The schema file"))), path.parent)
    about = schema.dataset
    for file, what in (
        (about.population, say("The population in [dataset]")),
        (about.ledger, say("The ledger in [dataset]")),
    ):
        if file:
            contained(file, path.parent, what)
    if not about.population and not about.ledger:
        return schema
    return replace(schema, dataset=replace(schema.dataset, folder=str(path.parent.absolute())))


# The taxonomy files that a schema names, read from the schema's own folder and from nowhere else.
#
# A schema or recipe may come from somebody else. What it names is read into the recipe and the report, so a path that
# leads out of its folder (absolute, with `..`, or through a link) would let its author have any file copied. Such a
# path is refused before anything is read, and taxonomies of columns that are never generalized are not read at all.


def attach_taxonomies(schema: Schema, folder: Path) -> Schema:
    """The schema with the taxonomy files of its used columns read from *folder*; no path may lead out of it.

    >>> attach_taxonomies(Schema({"age": Column("age", "quasi", "numeric")}), Path()).columns["age"].taxonomy
    """
    columns = []
    for column in schema.columns.values():
        spec = column.taxonomy
        if spec is not None and spec.file is not None and spec.paths is None and spec.tree is None:
            # A path that leads out is refused even where it would not be followed: nobody meant well with it.
            place = contained(spec.file, folder, _file_of(column.name))
            if _is_used(column):
                column = replace(column, taxonomy=_read(spec, place, column.name))
        columns.append(column)
    return schema.with_columns(columns)


def _is_used(column: Column) -> bool:
    """Whether any step reads the column's taxonomy: an identifier's or a held-back column's is never looked at."""
    return column.published or column.role == "sensitive"


def _file_of(column: str) -> str:
    return say("The taxonomy file of column '{column}'", column=column)


def contained(file: object, folder: Path, what: str) -> Path:
    """The true place of *file* below *folder*, or a SchemaError that names *what* where it leads out of it.

    >>> contained("city.csv", Path("schemas"), "The taxonomy").name
    'city.csv'
    """
    if not isinstance(file, str) or not file.strip() or any(ord(c) < 32 or ord(c) == 127 for c in file):
        raise SchemaError(
            say("{what} is no name of a file.", what=what),
            "It is empty, no text, or has characters that no file name has.",
            "Write the path of the file, relative to the schema file.",
        )
    for path in (PurePosixPath(file), PureWindowsPath(file)):
        # The rules of both systems hold on either: the same schema must be as safe on another machine.
        if path.root or path.drive or ".." in path.parts:
            raise _leads_out(what)
    try:
        home = folder.resolve()
        place = (home / file).resolve()
    except (OSError, RuntimeError, ValueError):
        raise _unreadable(what) from None
    if not place.is_relative_to(home):
        raise _leads_out(what)
    return place


def _leads_out(what: str) -> SchemaError:
    return SchemaError(
        say("{what} lies outside the folder of the schema.", what=what),
        "A schema from elsewhere could have any file of this machine copied into the release's papers.",
        "Put the file beside the schema or in a folder below, and name it without '..', a leading slash or a link that leads out.",
    )


def _unreadable(what: str) -> TaxonomyError:
    return TaxonomyError(
        say("{what} cannot be read.", what=what),
        "The column cannot be generalized without it.",
        "Check that the path names a file, and the permissions.",
    )


def _bytes_of(path: Path, column: str) -> bytes:
    try:
        # The links were followed when the place was checked; one put there since is not. A device or a pipe would
        # make the run wait for ever, so the file is opened without waiting and looked at first.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _unreadable(_file_of(column))
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        raise TaxonomyError(
            say(
                "The taxonomy file of column '{column}' is not there ('{path}').",
                column=column,
                path=path.name,
            ),
            "The column cannot be generalized without it.",
            "Paths are relative to the schema file; correct the path or add the file.",
        ) from None
    except OSError:
        raise _unreadable(_file_of(column)) from None


def _read(spec: TaxonomySpec, path: Path, column: str) -> TaxonomySpec:
    data = _bytes_of(path, column)
    digest = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TaxonomyError(
            say("The taxonomy file of column '{column}' is not UTF-8 text.", column=column),
            "Its labels would not match the table.",
            "Save it as UTF-8.",
        ) from None
    if spec.builder == "tree":
        try:
            return replace(spec, tree=tomllib.loads(text), digest=digest)
        except tomllib.TOMLDecodeError as problem:
            raise TaxonomyError(
                say(
                    "The taxonomy file of column '{column}' is not valid TOML: {problem}.",
                    column=column,
                    problem=toml_trouble(str(problem)),
                ),
                "Nothing was read.",
                "Correct that place.",
            ) from None
    return replace(spec, paths=paths_from_levels(text, column, spec.separator), digest=digest)
