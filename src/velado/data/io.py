"""The door of the table: files and frames in and out. Reading; writing is `folders`.

CSV cells are read as text and never re-written, so a column that is not recoded leaves exactly as it came
(`007` stays `007`, `2174.0` stays `2174.0`). Errors never repeat a cell, not even the library's own.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from velado.data.csv_reading import (
    SEPARATORS,
    Ragged,
    as_utf8,
    check_header,
    duplicate_names,
    found_encoding,
    header_of,
    is_utf8_name,
    ragged_rows,
    wide_encoding,
)
from velado.data.formats import Wanted, damaged, expected_format, format_of, read_as
from velado.data.schema import Schema, check_separator
from velado.data.table import Table, Undeclared
from velado.data.taxonomy_files import attach_taxonomies
from velado.errors import InputError, SchemaError, TableError
from velado.text import say


def read_table(
    source: Any,
    schema: Schema | None = None,
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
    """
    if isinstance(source, Table):
        if schema is None:
            return source
        kept = source.source, source.fingerprint, undeclared, source.separator, source.encoding
        return Table.of(source.frame, schema, *kept)
    if isinstance(source, str | Path):
        # A schema's own default is UTF-8, so that only another one is a declaration.
        declared = None if schema is None or is_utf8_name(schema.encoding) else schema.encoding
        names = (*known, *(schema.columns if schema else ()))
        separator = schema.separator if schema else None
        found = _read_file(Path(source), Wanted(encoding or declared, separator, names, sheet))
        name = Path(source).name
    else:
        found = _Found(from_frame(source), "")
        name = type(source).__module__.split(".")[0]
    if schema is None:
        from velado.data.schema import Column

        columns = {column: Column(column, "other", "text") for column in found.frame.columns}
        # What was found is said, so that the schema `inspect` proposes says it too.
        schema = Schema(columns, encoding="utf-8" if is_utf8_name(found.encoding) else found.encoding)
    return Table.of(found.frame, schema, name, found.digest, undeclared, found.separator, found.encoding)


def from_frame(native: Any) -> pl.DataFrame:
    """Any eager or lazy data frame (pandas, Polars, Arrow, DuckDB, Modin, ...) as Polars, through narwhals."""
    if isinstance(native, pl.DataFrame):
        return native
    import narwhals as nw

    try:
        frame = nw.from_native(native)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="polars")
        names = list(frame.columns)
    except TypeError:
        raise TableError(
            say("An object of type {kind} is neither a path nor a data frame.", kind=type(native).__name__),
            "velado cannot read a table from it.",
            "Pass a file name, or a pandas, Polars, Arrow or DuckDB frame.",
        ) from None
    except nw.exceptions.DuplicateError:
        raise duplicate_names(list(map(str, native.columns))) from None
    if len(set(names)) != len(names):
        raise duplicate_names(names)
    polars: pl.DataFrame
    try:
        polars = frame.to_polars()
    except Exception as error:  # the libraries below raise a dozen types, and their messages hold cells
        raise TableError(
            say(
                "The {split} frame cannot be converted ({kind}).",
                split=type(native).__module__.split(".")[0],
                kind=type(error).__name__,
            ),
            "A column of it seems to mix values of several types.",
            "Give every column one type, for example text.",
        ) from None
    return polars


def to_frame(frame: pl.DataFrame, like: str = "polars") -> Any:
    """The frame as "polars", "pandas" or "arrow"."""
    if like == "polars":
        return frame
    if like == "pandas":
        import narwhals as nw

        return nw.from_native(frame).to_pandas()
    if like == "arrow":
        return frame.to_arrow()
    raise TableError(
        say("'{like}' is no known kind of frame.", like=like),
        "velado gives polars, pandas or arrow.",
        "Name one of them.",
    )


@dataclass(frozen=True)
class _Found:
    """What a file was read as."""

    frame: pl.DataFrame
    digest: str
    separator: str = ","
    encoding: str = "utf-8"


def _read_file(path: Path, wanted: Wanted) -> _Found:
    try:
        if path.is_dir():
            raise TableError(
                say("'{path}' is a folder.", path=path.name),
                "A table is one file.",
                "Name the file inside it.",
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise TableError(
            say("There is no file '{path}'.", path=path.name),
            "Nothing was read.",
            "Check the path and the spelling.",
        ) from None
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise TableError(
            say(
                "'{path}' cannot be read ({getattr}).",
                path=path.name,
                getattr=getattr(error, "strerror", None) or "system error",
            ),
            "Nothing was read.",
            "Check the path and the permissions.",
        ) from None
    return replace(_parse(data, path.name, wanted), digest=hashlib.sha256(data).hexdigest())


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
    if format is None:
        encoding = wanted.encoding or found_encoding(data, name)
        frame, separator = parse_csv(data, name, encoding, wanted.separator, wanted.known)
        return _Found(frame, "", separator, encoding)
    if wanted.sheet is not None and not format.sheets and format.unpack is None:
        raise TableError(
            say("'{name}' is {call} and has no sheets.", name=name, call=format.call),
            "A sheet was asked for.",
            "Leave the sheet out.",
        )
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
    data: bytes,
    name: str,
    encoding: str = "utf-8",
    separator: str | None = None,
    known: Collection[str] = (),
) -> tuple[pl.DataFrame, str]:
    """CSV bytes as a frame of text columns, and the separator that was found or given.

    *known* are the column names the schema has: they are names whatever they look like, and a header that holds
    all of them is one whatever else it holds.
    """
    if separator is not None:
        check_separator(separator, "The separator")
    data = as_utf8(data, name, encoding)
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if b"\x00" in data[:65536]:
        raise TableError(
            say("'{name}' holds zero bytes.", name=name),
            "It is a binary file, not CSV.",
            "Give the file the ending of its true format.",
        )
    header, separator = header_of(data, name, separator)
    check_header(header, name, known)
    if len(header) > 1:
        data = data.rstrip(b"\r\n") + b"\n"
        found = ragged_rows(data, separator, len(header))
        if found.short or found.blank:
            raise TableError(
                say(
                    "{short} row(s) of '{name}' have fewer fields than the header, or are blank lines "
                    "({found}).",
                    short=found.short + found.blank,
                    name=name,
                    found=found,
                ),
                "Their values may stand in the wrong columns, and blank lines would be published as people.",
                "Complete or remove those rows, or set `separator` in [table] of the schema.",
            )
    try:
        frame = pl.scan_csv(
            io.BytesIO(data),
            separator=separator,
            infer_schema=False,
            quote_char='"',
            low_memory=False,
        ).collect()
    except pl.exceptions.NoDataError:
        raise TableError(
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
        what = f"{found.long} row(s) have more fields than the header (line{'s' if found.long > 1 else ''} "
        what += ", ".join(map(str, found.long_lines)) + (" and further ones)" if found.long > 3 else ")")
    else:
        what = "some rows have more fields than the header, or a quote is never closed"
    return TableError(
        say("'{name}' is not a regular CSV file: {what}.", name=name, what=what),
        "Fields would land in the wrong columns.",
        "Correct the file, or set `separator` in [table] of the schema.",
    )


def read_schema(path: str | Path) -> Schema:
    """A Schema from a TOML file, with the taxonomy files it names read in."""
    path = Path(path)
    return attach_taxonomies(Schema.from_dict(read_toml(path, SchemaError, "schema")), path.parent)


def read_toml(path: Path, error: type[InputError], what: str) -> Mapping[str, Any]:
    """A parsed TOML file, or one clear error."""
    import tomllib

    try:
        # Some editors put a byte order mark first, which TOML does not know.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise error(
            f"There is no {what} file '{path.name}'.", "Nothing was read.", "Check the path and the spelling."
        ) from None
    except OSError:
        raise error(
            f"The {what} file '{path.name}' cannot be read.",
            "Nothing was read.",
            "Check that it is a file and its permissions.",
        ) from None
    except UnicodeDecodeError:
        raise error(
            f"The {what} file '{path.name}' is not UTF-8 text.", "TOML files are UTF-8.", "Save it as UTF-8."
        ) from None
    except tomllib.TOMLDecodeError as problem:
        raise error(
            f"The {what} file '{path.name}' is not valid TOML: {problem}.",
            "Nothing was read.",
            "Correct that place.",
        ) from None


__all__ = [
    "SEPARATORS",
    "attach_taxonomies",
    "from_frame",
    "parse_csv",
    "read_schema",
    "read_table",
    "read_toml",
    "to_frame",
]
