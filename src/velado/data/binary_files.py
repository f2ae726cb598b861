"""Frames from files that are no text: Parquet, Arrow, spreadsheets, SPSS, Stata and SAS files, gzip and zip.

Bytes in, a frame out, and every fault of the bytes is one TableError. Arrow's own reader is used for Parquet and
Arrow: it checks what it reads, where Polars' ends the process on some damaged files. The libraries for spreadsheets
and statistics files come with the extra `files`; whatever they print while they fail may hold cells and is not shown.
"""

from __future__ import annotations

import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

import polars as pl

from velado.data.csv_reading import check_header, is_value
from velado.data.formats import FileFormat, damaged
from velado.errors import MissingExtra, TableError, VeladoError

MOST_BYTES = 4 << 30
"""The most bytes that a compressed file may unpack to."""
_MOST_RATIO, _FREE_BYTES = 1000, 16 << 20


def read_binary(
    data: bytes, format: FileFormat, name: str, sheet: str | None = None, known: Collection[str] = ()
) -> pl.DataFrame:
    """The frame in *data*, which has the given *format*; *sheet* and *known* matter to spreadsheets."""
    try:
        if format.reader == "columns":
            frame = _columns(data, format, name)
        elif format.reader == "spreadsheet":
            frame = _spreadsheet(data, format, name, sheet, known)
        else:
            frame = _statistics(data, format)
        _refuse_far_dates(frame, name)
    except (VeladoError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # The readers raise a dozen types with cells in their messages, and a panic of a Rust library is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise damaged(format, name) from None
    return frame


def unpacked_gzip(data: bytes, format: FileFormat, name: str) -> bytes:
    """What a gzip file holds, all its members one after the other, up to the limit on unpacked bytes."""
    parts, limit, left = [], _limit(len(data)), data
    try:
        while left:
            one = zlib.decompressobj(wbits=31)
            part = one.decompress(left, limit + 1)
            limit -= len(part)
            if limit < 0:
                raise _too_large(name)
            if not one.eof:
                raise damaged(format, name)
            parts.append(part)
            # Some writers pad the end with zero bytes, which are no member.
            left = one.unused_data.lstrip(b"\0")
    except zlib.error:
        raise damaged(format, name) from None
    return b"".join(parts)


def unpacked_zip(data: bytes, format: FileFormat, name: str) -> bytes:
    """The one file that a zip archive holds, up to the limit on unpacked bytes."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [m for m in archive.infolist() if not m.is_dir() and not _is_litter(m.filename)]
    except Exception:
        raise damaged(format, name) from None
    if len(members) != 1:
        raise TableError(
            f"'{name}' holds {len(members)} files.",
            "A table is one file, and velado does not guess which.",
            "Unpack it, and give the file with the table.",
        )
    return _member(archive, members[0], format, name, _limit(len(data)))


def _limit(size: int) -> int:
    return min(MOST_BYTES, max(_FREE_BYTES, _MOST_RATIO * size))


def _is_litter(member: str) -> bool:
    # What Mac OS and Windows add to archives of their own accord.
    last = member.rsplit("/", 1)[-1]
    return member.startswith("__MACOSX/") or last in (".DS_Store", "Thumbs.db", "desktop.ini")


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, format: FileFormat, name: str, limit: int
) -> bytes:
    if member.flag_bits & 1:
        raise TableError(
            f"'{name}' is protected by a password.",
            "velado asks for none.",
            "Unpack it, and give the file inside.",
        )
    try:
        with archive.open(member) as stream:
            content = stream.read(limit + 1)
            if len(content) <= limit:
                stream.read(1)  # at its end the checksum is compared
    except Exception:  # zipfile raises a dozen types for damaged members
        raise damaged(format, name) from None
    if len(content) > limit:
        raise _too_large(name)
    return content


def _too_large(name: str) -> TableError:
    return TableError(
        f"'{name}' unpacks to more than {_MOST_RATIO} times its size, or to more than 4 GiB.",
        "Such a file fills the memory, and may have been made to do so.",
        "Unpack it yourself if you trust it, and give the file inside.",
    )


def _columns(data: bytes, format: FileFormat, name: str) -> pl.DataFrame:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    source = pa.BufferReader(data)
    if format.name == "parquet":
        table = pyarrow.parquet.ParquetFile(source).read()
    elif format.name == "arrow":
        options = pyarrow.ipc.IpcReadOptions(use_threads=False)
        table = pyarrow.ipc.open_file(source, options=options).read_all()
    else:
        options = pyarrow.ipc.IpcReadOptions(use_threads=False)
        table = pyarrow.ipc.open_stream(source, options=options).read_all()
    table.validate(full=True)
    names = [field.name for field in table.schema]  # raises for names that are no UTF-8
    if len(set(names)) != len(names):
        raise TableError(
            f"Column names of '{name}' occur more than once.",
            "It would not be clear which column a role belongs to.",
            "Give every column its own name.",
        )
    with _no_panic_text():
        frame = pl.from_arrow(table.replace_schema_metadata(None))
    assert isinstance(frame, pl.DataFrame)
    return frame


_FIRST_DAY, _LAST_DAY = (
    -719_162,
    2_932_896,
)  # days since 1970 of the first of January 1 and the last of December 9999


def _refuse_far_dates(frame: pl.DataFrame, name: str) -> None:
    # A date far outside the calendar is damage, and Polars ends the process when it writes one.
    for series in frame.get_columns():
        if series.dtype == pl.Date:
            days = series.to_physical()
        elif isinstance(series.dtype, pl.Datetime):
            day = 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[series.dtype.time_unit]
            days = series.to_physical() // day
        else:
            continue
        if not bool(days.is_between(_FIRST_DAY, _LAST_DAY).all()):
            raise TableError(
                f"Column '{series.name}' of '{name}' has a date outside the years 1 to 9999.",
                "It is no date of a person, and may mean a damaged file.",
                "Correct the column, or export the file anew.",
            )


def _spreadsheet(
    data: bytes, format: FileFormat, name: str, sheet: str | None, known: Collection[str]
) -> pl.DataFrame:
    if format.name != "xls":
        _check_members(data, format, name)
    with _no_panic_text():
        book = _library("fastexcel", "Spreadsheets are read by it.").read_excel(data)
        chosen = _chosen_sheet(book, name, sheet)
        # Every cell of the first row as text: the library renames equal and blank names, and we refuse them.
        first = book.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_polars()
        if not first.height:
            raise _no_rows(name)
        header = ["" if cell is None else str(cell) for cell in first.row(0)]
        while header and not header[-1].strip():
            header.pop()  # cells that were formatted but never written to
        check_header(header, name, known)
        # All rows decide a column's type: by default the first thousand do, and the rest is made blank.
        frame = book.load_sheet(
            chosen, header_row=0, schema_sample_rows=None, use_columns=list(range(len(header)))
        ).to_polars()
    frame.columns = header
    # A row without any cell is nobody; spreadsheets keep such rows where something once stood.
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if not frame.height:
        raise _no_rows(name)
    return _whole_numbers(_days(frame))


def _days(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of times that are all midnight become dates: a spreadsheet knows no others."""
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    days = [
        name for name in times if bool((frame[name].dt.date().cast(frame.schema[name]) == frame[name]).all())
    ]
    return frame.with_columns(pl.col(name).dt.date() for name in days) if days else frame


def _chosen_sheet(book: Any, name: str, sheet: str | None) -> str:
    names = [str(one) for one in book.sheet_names]
    shown = ", ".join(f"'{one}'" if not is_value(one) else "(a number or date)" for one in names[:10])
    if sheet is not None:
        if sheet in names:
            return sheet
        raise TableError(
            f"'{name}' has no sheet of that name.",
            f"It has {shown}.",
            "Name one of them, as it is spelt there.",
        )
    if len(names) == 1:
        return names[0]
    filled = [one for one in names if book.load_sheet(one, header_row=None, n_rows=2, dtypes="string").height]
    if not filled:
        raise _no_rows(name)
    if len(filled) > 1:
        raise TableError(
            f"'{name}' has {len(filled)} sheets with rows: {shown}.",
            "A table is one sheet, and velado does not guess which.",
            "Save the sheet you mean as a file of its own, or in Python pass sheet=... to velado.read_table.",
        )
    return filled[0]


def _no_rows(name: str) -> TableError:
    return TableError(
        f"'{name}' has no rows.", "There is nobody to protect.", "Check that the right file was given."
    )


_ROW, _FAR_COLUMN, _SECOND_COLUMN = (
    re.compile(rb'<row\b[^>]*?\br="(\d+)"'),
    re.compile(rb'\br="[A-Za-z]{3,}\d'),
    re.compile(rb'\br="[A-Za-z]{2}\d'),
)
_MANY_CELLS, _SPARSE = 50_000_000, 100


def _check_members(data: bytes, format: FileFormat, name: str) -> None:
    """Every part of a zipped workbook has its checksum, all of them fit in memory, and no sheet is nearly all holes.

    The reader lays a sheet out in full, from its first to its last cell: two cells in far corners would take
    hundreds of gigabytes.
    """
    archive = zipfile.ZipFile(io.BytesIO(data))
    left = _limit(len(data))
    for member in archive.infolist():
        content = _member(archive, member, format, name, left)
        left -= len(content)
        if not (member.filename.startswith("xl/worksheets/") and member.filename.endswith(".xml")):
            continue
        cells = max(1, content.count(b"<c "))
        rows = max((int(row) for row in _ROW.findall(content)), default=0)
        wide = 16_384 if _FAR_COLUMN.search(content) else 702 if _SECOND_COLUMN.search(content) else 26
        if rows * wide > max(_MANY_CELLS, _SPARSE * cells):
            raise TableError(
                f"A sheet of '{name}' has few cells spread over more than {_MANY_CELLS:,} places.",
                "Laid out as a table it would fill the memory.",
                "Save the sheet with the rows as CSV (UTF-8), and give that file.",
            )


def _statistics(data: bytes, format: FileFormat) -> pl.DataFrame:
    library = _library("pyreadstat", "Files of SPSS, Stata and SAS are read by it.")
    read: Callable[..., tuple[Any, Any]] = {
        "sav": library.read_sav,
        "por": library.read_por,
        "dta": library.read_dta,
        "sas7bdat": library.read_sas7bdat,
        "xpt": library.read_xport,
    }[format.name]
    # Codes stay codes: their labels are in the file, but two codes may share one.
    with _no_panic_text():
        frame, _ = read(io.BytesIO(data), output_format="polars")
    assert isinstance(frame, pl.DataFrame)
    return _whole_numbers(frame)


def _whole_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of numbers that are all whole become whole numbers: these formats know no others, and `7` is not `7.0`."""
    floats = [name for name, kind in frame.schema.items() if kind in (pl.Float32, pl.Float64)]
    out = frame.with_columns(pl.col(name).fill_nan(None) for name in floats) if floats else frame
    whole = [
        name
        for name in floats
        if bool(((out[name] == out[name].round(0)) & (out[name].abs() < 2**53)).all()) and out[name].count()
    ]
    return out.with_columns(out[name].cast(pl.Int64) for name in whole) if whole else out


def _library(name: str, why: str) -> Any:
    if find_spec(name) is None:
        raise MissingExtra(
            f"The library '{name}' is not installed.", why, 'Install it with pip install "velado[files]".'
        )
    return import_module(name)


class _Silence:
    """Standard error leads nowhere while at least one reader works, whichever threads they work in."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.readers = 0
        self.kept = -1

    def begin(self) -> None:
        with self.lock:
            self.readers += 1
            if self.readers > 1:
                return
            try:
                sys.stderr.flush()
                self.kept = os.dup(2)
            except (OSError, ValueError, AttributeError):
                return  # a service without a terminal has no standard error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)

    def end(self) -> None:
        with self.lock:
            self.readers -= 1
            if self.readers == 0 and self.kept >= 0:
                os.dup2(self.kept, 2)
                os.close(self.kept)
                self.kept = -1


_SILENCE = _Silence()


@contextmanager
def _no_panic_text() -> Iterator[None]:
    """What a library writes to standard error by itself, as a Rust panic does, is not shown.

    The text of a panic may hold a cell, and no setting of the library keeps it back; so the descriptor itself
    leads nowhere in the meantime.
    """
    _SILENCE.begin()
    try:
        yield
    finally:
        _SILENCE.end()


__all__ = ["MOST_BYTES", "read_binary", "unpacked_gzip", "unpacked_zip"]
