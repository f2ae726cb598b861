"""Every file format velado knows, told from a file's first bytes whatever its name ends in.

One file, one registry line: a module of this folder with a tuple `FORMATS`, listed in `MODULES` below. What no format
recognises is text, and text is taken for CSV (`velado.data.csv_reading`). Pure: bytes in, a `FileFormat` or None out.

    >>> format_of(b"PAR1\\x15\\x04").call, format_of(b"name,age\\nAna,31\\n")
    ('a Parquet file', None)
"""

from __future__ import annotations

from pathlib import PurePath

import polars as pl

from velado.data.formats import columnar, foreign, packed, unread
from velado.data.formats._format import FileBytes, FileFormat, Wanted, damaged, unreadable
from velado.errors import VeladoError

# In this order: a workbook is a zip archive too, so that the plain archive comes last.
MODULES = (columnar, foreign, unread, packed)
FORMATS: dict[str, FileFormat] = {one.name: one for module in MODULES for one in module.FORMATS}


def format_of(data: bytes) -> FileFormat | None:
    """The format that the bytes show, or None where they may be CSV text.

    >>> format_of(b"%PDF-1.7").name
    'pdf'
    """
    file = FileBytes(data)
    return next((one for one in FORMATS.values() if one.recognises(file)), None)


def expected_format(name: str) -> FileFormat | None:
    """The format that a file name's ending promises, or None where it promises none but text.

    >>> expected_format("rows.xlsm").name
    'xlsx'
    """
    ending = PurePath(name).suffix.lower().lstrip(".")
    return next((one for one in FORMATS.values() if ending and ending in one.endings), None)


def read_as(format: FileFormat, data: bytes, name: str, wanted: Wanted) -> pl.DataFrame:
    """The frame in *data*, which has the given *format*; every fault of the bytes is one TableError.

    >>> import io
    >>> pl.DataFrame({"age": [31]}).write_parquet(file := io.BytesIO())
    >>> read_as(FORMATS["parquet"], file.getvalue(), "t.parquet", Wanted()).rows()
    [(31,)]
    """
    if format.read is None:
        raise unreadable(format, name)
    try:
        frame = format.read(format, data, name, wanted)
        columnar.refuse_far_dates(frame, name)
    except (VeladoError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # The readers raise a dozen types with cells in their messages, and a panic of a Rust library is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise damaged(format, name) from None
    return frame


__all__ = ["FORMATS", "FileFormat", "Wanted", "damaged", "expected_format", "format_of", "read_as"]
