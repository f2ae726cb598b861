"""Frames from files that are no text: Parquet, Arrow, spreadsheets, SPSS, Stata and SAS files, gzip and zip.

Bytes in, a frame out, and every fault of the bytes is one TableError. Arrow's own reader is used for Parquet and
Arrow: it checks what it reads, where Polars' ends the process on some damaged files. The libraries for spreadsheets
and statistics files come with the extra `files` and work in a process of their own, `foreign_files`.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

import polars as pl

from velado.data import binary_files as foreign_files
from velado.data.csv_reading import check_header, is_value
from velado.data.formats import FORMATS, FileFormat, damaged
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
        else:
            if data.startswith(b"PK"):
                _check_members(data, format, name)
            frame = _apart(data, format, name, sheet, known)
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


def _apart(
    data: bytes, format: FileFormat, name: str, sheet: str | None, known: Collection[str]
) -> pl.DataFrame:
    """The frame that the program `foreign_files` finds in *data*; a program that ends early means a damaged file."""
    library, why = _LIBRARIES[format.reader]
    if find_spec(library) is None:
        raise MissingExtra(
            f"The library '{library}' is not installed.", why, 'Install it with pip install "velado[files]".'
        )
    # -P: nothing that lies in the current folder is imported.
    command = [sys.executable, "-P", foreign_files.__file__, format.name, *([] if sheet is None else [sheet])]
    try:
        done = subprocess.run(command, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, ValueError):
        raise TableError(
            f"'{name}' is {format.call}, and no second Python process could be started to read it.",
            "Such files are read apart, because damaged ones can end the process that reads them.",
            format.out,
        ) from None
    line, _, body = done.stdout.partition(b"\n")
    answer = json.loads(line) if done.returncode == 0 else {"problem": "damaged"}
    if "header" not in answer:
        raise _problem(answer, format, name)
    header = [str(one) for one in answer["header"]]
    check_header(header, name, known)
    frame = _columns(body, FORMATS["arrow stream"], name)
    frame.columns = header
    return frame


_LIBRARIES = {
    "spreadsheet": ("fastexcel", "Spreadsheets are read by it."),
    "statistics": ("pyreadstat", "Files of SPSS, Stata and SAS are read by it."),
}


def _problem(answer: Mapping[str, Any], format: FileFormat, name: str) -> TableError:
    sheets = [str(one) for one in answer.get("sheets", ())]
    shown = ", ".join("(a number or date)" if is_value(one) else f"'{one}'" for one in sheets[:10])
    if answer["problem"] == "no such sheet":
        return TableError(
            f"'{name}' has no sheet of that name.",
            f"It has {shown}.",
            "Name one of them, as it is spelt there.",
        )
    if answer["problem"] == "several sheets":
        return TableError(
            f"'{name}' has {len(sheets)} sheets with rows: {shown}.",
            "A table is one sheet, and velado does not guess which.",
            "Save the sheet you mean as a file of its own, or in Python pass sheet=... to velado.read_table.",
        )
    if answer["problem"] == "no rows":
        return TableError(
            f"'{name}' has no rows.", "There is nobody to protect.", "Check that the right file was given."
        )
    return damaged(format, name)


def _check_members(data: bytes, format: FileFormat, name: str) -> None:
    """Every part of a zipped workbook has its checksum, and all of them unpacked keep to the limit."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    left = _limit(len(data))
    for member in archive.infolist():
        left -= len(_member(archive, member, format, name, left))


__all__ = ["MOST_BYTES", "read_binary", "unpacked_gzip", "unpacked_zip"]


# A program of its own that turns a spreadsheet or a file of SPSS, Stata or SAS into an Arrow stream.
#
# python foreign_files.py FORMAT [SHEET] < file > answer
#
# The libraries that read these formats end the whole process on some damaged files, or print cells while they fail.
# So `velado.data.binary_files` runs them apart: with a limit on memory, without standard error, and with nothing of
# velado's in reach. The answer is one line of JSON and, where there is a table, its columns `c0`, `c1`, ... as an
# Arrow stream. The line has "header" (the columns' names), or "problem" (why there is no table) and perhaps "sheets".

_READERS = {
    "sav": "read_sav",
    "por": "read_por",
    "dta": "read_dta",
    "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}
_MEMORY, _PER_BYTE = 8 << 30, 200


def main() -> None:
    """The file on standard input is answered on standard output."""
    data = sys.stdin.buffer.read()
    _limit_memory(len(data))
    format, sheet = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else None)
    try:
        line, frame = _statistics(data, format) if format in _READERS else _spreadsheet(data, sheet)
        body = io.BytesIO()
        if frame is not None:
            # Equal names are the caller's to refuse; numbers in their place are never equal.
            frame.columns = [f"c{number}" for number in range(frame.width)]
            frame.write_ipc_stream(body, compat_level=_oldest())
    except Exception:  # what the libraries say may hold cells
        line, body = {"problem": "damaged"}, io.BytesIO()
    out = sys.stdout.buffer
    out.write(json.dumps(line).encode() + b"\n")
    out.write(body.getbuffer())
    out.flush()


def _oldest() -> Any:
    import polars as pl

    return pl.CompatLevel.oldest()


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    wanted = _MEMORY + _PER_BYTE * size
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or wanted < most:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def _statistics(data: bytes, format: str) -> tuple[dict[str, Any], Any]:
    import pyreadstat

    # Codes stay codes: their labels are in the file too, but two codes may share one.
    frame, _ = getattr(pyreadstat, _READERS[format])(io.BytesIO(data), output_format="polars")
    return {"header": frame.columns}, _whole_numbers(frame)


def _spreadsheet(data: bytes, sheet: str | None) -> tuple[dict[str, Any], Any]:
    import fastexcel
    import polars as pl

    book = fastexcel.read_excel(data)
    names = [str(one) for one in book.sheet_names]
    if sheet is not None and sheet not in names:
        return {"problem": "no such sheet", "sheets": names}, None
    filled = [sheet] if sheet is not None else names
    if len(filled) > 1:
        filled = [
            one for one in names if book.load_sheet(one, header_row=None, n_rows=2, dtypes="string").height
        ]
    if len(filled) > 1:
        return {"problem": "several sheets", "sheets": filled}, None
    # Every cell of the first row as text: the library would rename equal and blank names.
    first = (
        book.load_sheet(filled[0], header_row=None, n_rows=1, dtypes="string").to_polars() if filled else None
    )
    if first is None or not first.height:
        return {"problem": "no rows"}, None
    header = ["" if cell is None else str(cell) for cell in first.row(0)]
    while header and not header[-1].strip():
        header.pop()  # cells that were formatted but never written to
    # All rows decide a column's type: by default the first thousand do, and what differs later is made blank.
    frame = book.load_sheet(
        filled[0], header_row=0, schema_sample_rows=None, use_columns=list(range(len(header)))
    ).to_polars()
    # A row without any cell is nobody; spreadsheets keep such rows where something once stood.
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if not frame.height:
        return {"problem": "no rows"}, None
    return {"header": header}, _whole_numbers(_days(frame))


def _whole_numbers(frame: Any) -> Any:
    """Columns of numbers that are all whole become whole numbers: these formats know no others, and `7` is not `7.0`."""
    import polars as pl

    floats = [name for name, kind in frame.schema.items() if kind in (pl.Float32, pl.Float64)]
    out = frame.with_columns(pl.col(name).fill_nan(None) for name in floats) if floats else frame
    whole = [
        name
        for name in floats
        if bool(((out[name] == out[name].round(0)) & (out[name].abs() < 2**53)).all()) and out[name].count()
    ]
    return out.with_columns(out[name].cast(pl.Int64) for name in whole) if whole else out


def _days(frame: Any) -> Any:
    """Columns of times that are all midnight become dates: a spreadsheet knows no others."""
    import polars as pl

    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    days = [
        name for name in times if bool((frame[name].dt.date().cast(frame.schema[name]) == frame[name]).all())
    ]
    return frame.with_columns(pl.col(name).dt.date() for name in days) if days else frame


if __name__ == "__main__":
    main()
