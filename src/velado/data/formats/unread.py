"""Files that are no table, or one that velado does not read: each is named with the way out of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from velado.data.formats._format import OLE, FileBytes, FileFormat, holds
from velado.text import say

_JSON = re.compile(rb"\{\s*(?:\"|\})|\[\s*(?:[\[{\"]|-?\d|\]\s*$)")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|table|meta)\b", re.IGNORECASE)


def _text(file: FileBytes) -> bytes:
    return file.data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()


def _is_html(file: FileBytes) -> bool:
    head = _text(file)
    inside = head.startswith(b"<?xml") and re.search(rb"<html\b", head, re.IGNORECASE)
    return bool(_HTML.match(head) or inside)


def _is_json(file: FileBytes) -> bool:
    return _JSON.match(_text(file)) is not None


def _is_dbf(file: FileBytes) -> bool:
    data = file.data
    if len(data) < 66 or data[0] not in (0x03, 0x30, 0x83, 0x8B):
        return False
    size = int.from_bytes(data[8:10], "little")
    return 1 <= data[2] <= 12 and 1 <= data[3] <= 31 and 65 <= size <= len(data) + 1 and data[32] > 32


def _is_locked(file: FileBytes) -> bool:
    # Names in the directory of a compound document are UTF-16.
    return file.data.startswith(OLE) and "EncryptedPackage".encode("utf-16-le") in file.data


def _is_odt(file: FileBytes) -> bool:
    return file.members is not None and b"opendocument.text" in file.media_type


_COPY = say("Copy the table into a spreadsheet program and save it as CSV (UTF-8).")
_OPEN = say("Open it in a spreadsheet program and save the one sheet with the rows as CSV (UTF-8).")
_UNLOCK = say("Open it with its password, and save the one sheet with the rows as CSV (UTF-8).")
_EXPORT = say("Export the one table with the rows as CSV, for example with the database's own program.")
_SAVE = say("Save or export the table as CSV, and give that file.")
_IN_R = say("In R, save the table with write.csv(x, row.names = FALSE).")
_PAGE = say("Ask for the table as CSV or as a spreadsheet; a page is none.")
_PICTURE = say("Ask for the table as CSV or as a spreadsheet; a picture is none.")
_UNPACK = say("Unpack it, and give the file inside.")
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\x00", b"MM\x00*")
_R = (b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n", b"X\n\x00\x00\x00")
_ACCESS = (b"\x00\x01\x00\x00Standard Jet DB", b"\x00\x01\x00\x00Standard ACE DB")
_SQLITE = (b"SQLite format 3\x00",)


def _looks(name: str, call: str, looks: Callable[[FileBytes], bool], out: str, *endings: str) -> FileFormat:
    return FileFormat(name=name, call=call, looks=looks, out=out, endings=endings)


def _begins(
    name: str, call: str, begins: tuple[bytes, ...], out: str, *endings: str, wordy: bool = False
) -> FileFormat:
    return FileFormat(name=name, call=call, begins=begins, out=out, endings=endings, wordy=wordy)


FORMATS = (
    _begins(
        "feather 1",
        say("a Feather file of version 1"),
        (b"FEA1",),
        say("Write it anew as Parquet or CSV."),
        wordy=True,
    ),
    _begins(
        "encrypted parquet",
        say("an encrypted Parquet file"),
        (b"PARE",),
        say("Write it anew without encryption."),
        wordy=True,
    ),
    _looks("protected office", say("an Office file with a password"), _is_locked, _UNLOCK),
    _begins("ole", say("an old Office document that is no workbook"), (OLE,), _COPY),
    _looks("docx", say("a Word document"), holds("word/document.xml"), _COPY),
    _looks("pptx", say("a PowerPoint presentation"), holds("ppt/presentation.xml"), _COPY),
    _looks("odt", say("an OpenDocument text"), _is_odt, _COPY),
    _begins("rtf", say("a rich text document (RTF)"), (b"{\\rtf",), _COPY),
    _begins("pdf", say("a PDF document"), (b"%PDF-",), _PAGE, "pdf"),
    _looks("html", say("a web page (HTML)"), _is_html, _OPEN),
    _looks("xml", say("an XML document"), lambda file: _text(file).startswith(b"<?xml"), _OPEN),
    _looks(
        "json",
        say("a JSON document"),
        _is_json,
        say("Turn it into one row per person, and save that as CSV."),
    ),
    _begins("sqlite", say("an SQLite database"), _SQLITE, _EXPORT, "sqlite", "sqlite3"),
    _looks("duckdb", say("a DuckDB database"), lambda file: file.data[8:12] == b"DUCK", _EXPORT),
    _begins("access", say("an Access database"), _ACCESS, _EXPORT),
    _looks("dbf", say("a dBase table (DBF or DBC)"), _is_dbf, _OPEN, "dbf", "dbc"),
    _begins("r", say("a file of R objects"), _R, _IN_R, "rds", "rdata"),
    _begins("hdf5", say("an HDF5 file"), (b"\x89HDF\r\n\x1a\n",), _SAVE),
    _begins("orc", say("an ORC file"), (b"ORC",), _SAVE, wordy=True),
    _begins("avro", say("an Avro file"), (b"Obj\x01",), _SAVE),
    _begins("bzip2", say("a bzip2 file"), (b"BZh",), _UNPACK, wordy=True),
    _begins("xz", say("an xz file"), (b"\xfd7zXZ\x00",), _UNPACK),
    _begins("zstd", say("a Zstandard file"), (b"\x28\xb5\x2f\xfd",), _UNPACK),
    _begins("7z", say("a 7z archive"), (b"7z\xbc\xaf\x27\x1c",), _UNPACK),
    _begins("rar", say("a RAR archive"), (b"Rar!\x1a\x07",), _UNPACK),
    _begins("image", say("a picture"), _PICTURES, _PICTURE, wordy=True),
)
