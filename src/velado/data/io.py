"""The door of the table: files and frames in and out. The only part of `data` that touches the disk.

CSV cells are read as text and never re-written, so a column that is not recoded leaves exactly as it came
(`007` stays `007`, `2174.0` stays `2174.0`). Errors never repeat a cell, not even the library's own.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from velado.data.csv_reading import (
    SEPARATORS,
    as_utf8,
    check_header,
    duplicate_names,
    header_of,
    short_rows,
)
from velado.data.schema import Schema, TaxonomySpec
from velado.data.schema_checks import check_separator
from velado.data.table import Table, Undeclared
from velado.errors import InputError, SchemaError, TableError, TaxonomyError


def read_table(
    source: Any,
    schema: Schema | None = None,
    undeclared: Undeclared = "refuse",
    encoding: str | None = None,
    known: Collection[str] = (),
) -> Table:
    """A Table from a CSV, Parquet or Arrow file, or from any data frame narwhals understands.

    Without *schema* every column gets the role "other" and kind "text", as `inspect` needs it. *known* are
    further names that the header may hold although they look like values (a column `2020`).
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
        frame, digest, separator = _read_file(Path(source), schema, encoding, known)
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
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="polars")
        names = list(frame.columns)
    except TypeError:
        raise TableError(
            f"An object of type {type(native).__name__} is neither a path nor a data frame.",
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
            f"The {type(native).__module__.split('.')[0]} frame cannot be converted ({type(error).__name__}).",
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
        f"'{like}' is no known kind of frame.", "velado gives polars, pandas or arrow.", "Name one of them."
    )


def _read_file(
    path: Path, schema: Schema | None, encoding: str | None, known: Collection[str]
) -> tuple[pl.DataFrame, str, str]:
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
        (*known, *(schema.columns if schema else ())),
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
            f"'{name}' holds zero bytes.",
            "It is a binary file, not CSV.",
            "Give the file the ending of its true format.",
        )
    header, separator = header_of(data, name, separator)
    check_header(header, name, known)
    if len(header) > 1:
        data = data.rstrip(b"\r\n") + b"\n"
        short = short_rows(data, separator, len(header))
        if short:
            raise TableError(
                f"{short} row(s) of '{name}' have fewer fields than the header, or are blank lines.",
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
    try:
        if separator is None and lines:
            separator = max(
                (";", ",", "\t", "|"), key=lambda s: len(next(csv.reader([lines[0]], delimiter=s)))
            )
        rows = list(csv.reader(lines, delimiter=separator or ";"))
    except csv.Error:
        raise TaxonomyError(
            f"The taxonomy file of column '{column}' is not a regular CSV file.",
            "A label in it is too long or a quote is never closed.",
            "Correct the file: one value per line, narrowest label first.",
        ) from None
    paths = tuple(tuple(cell.strip() for cell in row) for row in rows)
    return replace(spec, paths=paths, digest=hashlib.sha256(data).hexdigest())


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
