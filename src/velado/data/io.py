"""The door of the table: files and frames in and out. The only part of `data` that touches the disk.

CSV cells are read as text and never re-written, so a column that is not recoded leaves exactly as it came
(`007` stays `007`, `2174.0` stays `2174.0`). Errors never repeat a cell, not even the library's own.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from velado.data.schema import Schema, TaxonomySpec
from velado.data.table import Table, Undeclared
from velado.errors import InputError, SchemaError, TableError, TaxonomyError

SEPARATORS = (",", ";", "\t", "|")


def read_table(
    source: Any,
    schema: Schema | None = None,
    undeclared: Undeclared = "refuse",
    encoding: str | None = None,
) -> Table:
    """A Table from a CSV, Parquet or Arrow file, or from any data frame narwhals understands.

    Without *schema* every column gets the role "other" and kind "text", as `inspect` needs it.
    """
    if isinstance(source, Table):
        return (
            source
            if schema is None
            else Table.of(
                source.frame, schema, source.source, source.fingerprint, undeclared, source.separator
            )
        )
    separator = ","
    if isinstance(source, str | Path):
        frame, digest, separator = _read_file(Path(source), schema, encoding)
        name = Path(source).name
    else:
        frame, digest, name = from_frame(source), "", type(source).__module__.split(".")[0]
    if schema is None:
        from velado.data.schema import Column

        schema = Schema({column: Column(column, "other", "text") for column in frame.columns})
    return Table.of(frame, schema, name, digest, undeclared, separator)


def from_frame(native: Any) -> pl.DataFrame:
    """Any eager or lazy data frame (pandas, Polars, Arrow, DuckDB, Modin, ...) as Polars, through narwhals."""
    if isinstance(native, pl.DataFrame):
        return native
    import narwhals as nw

    try:
        frame = nw.from_native(native)
    except TypeError:
        raise TableError(
            f"An object of type {type(native).__name__} is neither a path nor a data frame.",
            "velado cannot read a table from it.",
            "Pass a file name, or a pandas, Polars, Arrow or DuckDB frame.",
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect(backend="polars")
    names = frame.columns
    if len(set(names)) != len(names):
        raise _duplicates([name for name in names])
    polars: pl.DataFrame = frame.to_polars()
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
        f"'{like}' is no known kind of frame.", "velado gives polars, pandas or arrow.", "Name one of them."
    )


def _read_file(path: Path, schema: Schema | None, encoding: str | None) -> tuple[pl.DataFrame, str, str]:
    if not path.exists():
        raise TableError(
            f"There is no file '{path.name}'.", "Nothing was read.", "Check the path and the spelling."
        )
    if path.is_dir():
        raise TableError(f"'{path.name}' is a folder.", "A table is one file.", "Name the file inside it.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TableError(
            f"'{path.name}' cannot be read ({error.strerror or 'system error'}).",
            "Nothing was read.",
            "Check the permissions.",
        ) from None
    if not data.strip():
        raise TableError(
            f"'{path.name}' is empty.",
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    digest = hashlib.sha256(data).hexdigest()
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return _binary(lambda: pl.read_parquet(io.BytesIO(data)), path), digest, ","
    if suffix in (".arrow", ".ipc", ".feather"):
        return _binary(lambda: pl.read_ipc(io.BytesIO(data)), path), digest, ","
    frame, separator = parse_csv(
        data,
        path.name,
        encoding or (schema.encoding if schema else "utf-8"),
        schema.separator if schema else None,
    )
    return frame, digest, separator


def _binary(read: Any, path: Path) -> pl.DataFrame:
    try:
        frame = read()
    except (pl.exceptions.PolarsError, OSError):
        raise TableError(
            f"'{path.name}' is not a readable {path.suffix[1:]} file.",
            "Its content does not have that format.",
            "Check the file, or give it the ending of its true format.",
        ) from None
    assert isinstance(frame, pl.DataFrame)
    return frame


def parse_csv(
    data: bytes, name: str, encoding: str = "utf-8", separator: str | None = None
) -> tuple[pl.DataFrame, str]:
    """CSV bytes as a frame of text columns, and the separator that was found or given."""
    utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    try:
        if not utf8:
            if _is_utf8_with_accents(data):
                raise TableError(
                    f"'{name}' is declared as {encoding} but is written in UTF-8.",
                    "Read as declared, every accented letter would be garbled.",
                    'Pass --encoding utf-8, or set encoding = "utf-8" in [table] of the schema.',
                )
            data = data.decode(encoding).encode("utf-8")
        else:
            # Decoding costs little and finds the one thing Polars would report with the cell in the message.
            data.decode("utf-8")
    except LookupError:
        raise TableError(
            f"'{encoding}' is no known encoding.",
            "The file cannot be read with it.",
            "Use for example utf-8, latin-1 or cp1252.",
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"'{name}' is not {encoding} text (first bad byte on line {line}).",
            "Accented letters would be garbled or lost.",
            "Save it as UTF-8, or name its encoding with --encoding latin-1 (or cp1252).",
        ) from None
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if b"\x00" in data[:65536]:
        raise TableError(
            f"'{name}' holds zero bytes.",
            "It is a binary file, not CSV.",
            "Give the file the ending of its true format.",
        )
    header_text = _first_record(data)
    if separator is None:
        separator = max(SEPARATORS, key=lambda s: len(next(csv.reader([header_text], delimiter=s), [])))
    header = next(csv.reader(io.StringIO(header_text), delimiter=separator), [])
    _check_header(header, name)
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
            f"'{name}' has no rows.", "There is nobody to protect.", "Check that the right file was given."
        ) from None
    except pl.exceptions.PolarsError:
        raise TableError(
            f"'{name}' is not a regular CSV file: some rows have more fields than the header, or a quote is never closed.",
            "Fields would land in the wrong columns.",
            "Correct the file, or set `separator` in [table] of the schema.",
        ) from None
    # Polars and the csv module read doubled quotes in a header differently; ours is the one the schema is matched with.
    frame.columns = header
    return frame, separator


def _is_utf8_with_accents(data: bytes) -> bool:
    # Text of a one-byte encoding is hardly ever valid UTF-8 by accident once it has accents.
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _first_record(data: bytes) -> str:
    # The header may hold quoted line breaks, so read until the quotes are balanced.
    end = 0
    while True:
        found = data.find(b"\n", end)
        end = len(data) if found < 0 else found + 1
        if data.count(b'"', 0, end) % 2 == 0 or end == len(data):
            return data[:end].decode("utf-8").rstrip("\r\n")


def _check_header(header: list[str], name: str) -> None:
    if len(set(header)) != len(header):
        raise _duplicates(header)
    numeric = sum(_is_number(cell) for cell in header)
    if (
        any(not cell.strip() for cell in header)
        or (header and numeric > len(header) / 2)
        or (numeric and len(header) == 1)
    ):
        raise TableError(
            f"The first line of '{name}' does not look like a header.",
            "Without column names roles cannot be given, and the first person would be taken for the names.",
            "Add a first line with one non-empty name per column.",
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _duplicates(names: list[str]) -> TableError:
    twice = sorted({name for name in names if names.count(name) > 1})
    return TableError(
        f"{len(twice)} column name(s) occur more than once in the header.",
        "It would not be clear which column a role belongs to.",
        "Give every column its own name.",
    )


def read_schema(path: str | Path) -> Schema:
    """A Schema from a TOML file, with the taxonomy files it names read in."""
    path = Path(path)
    return attach_taxonomies(Schema.from_dict(read_toml(path, SchemaError, "schema")), path.parent)


def read_toml(path: Path, error: type[InputError], what: str) -> Mapping[str, Any]:
    """A parsed TOML file, or one clear error."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
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


def attach_taxonomies(schema: Schema, folder: Path) -> Schema:
    """The schema with every taxonomy file it names read from *folder*."""
    columns = []
    for column in schema.columns.values():
        spec = column.taxonomy
        if spec is not None and spec.file is not None and spec.paths is None:
            column = replace(column, taxonomy=_read_taxonomy(spec, folder, column.name))
        columns.append(column)
    return schema.with_columns(columns)


def _read_taxonomy(spec: TaxonomySpec, folder: Path, column: str) -> TaxonomySpec:
    assert spec.file is not None
    path = folder / spec.file
    if spec.builder == "tree":
        tree = read_toml(path, TaxonomyError, "taxonomy")
        return replace(spec, tree=tree, digest=hashlib.sha256(path.read_bytes()).hexdigest())
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise TaxonomyError(
            f"The taxonomy file of column '{column}' is not there ('{Path(spec.file).name}').",
            "The column cannot be generalized without it.",
            "Paths are relative to the schema file; correct the path or add the file.",
        ) from None
    except OSError:
        raise TaxonomyError(
            f"The taxonomy file of column '{column}' cannot be read.",
            "The column cannot be generalized without it.",
            "Check the path and the permissions.",
        ) from None
    except UnicodeDecodeError:
        raise TaxonomyError(
            f"The taxonomy file of column '{column}' is not UTF-8 text.",
            "Its labels would not match the table.",
            "Save it as UTF-8.",
        ) from None
    lines = [line for line in text.splitlines() if line.strip()]
    separator = spec.options.get("separator")
    if separator is None and lines:
        separator = max((";", ",", "\t", "|"), key=lambda s: len(next(csv.reader([lines[0]], delimiter=s))))
    paths = tuple(
        tuple(cell.strip() for cell in row) for row in csv.reader(lines, delimiter=separator or ";")
    )
    return replace(spec, paths=paths, digest=hashlib.sha256(data).hexdigest())
