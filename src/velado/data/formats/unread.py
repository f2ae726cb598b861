"""Files that are no table, or one that velado does not read: each is named with the way out of it."""

from __future__ import annotations

import re
from functools import partial

from velado.data.formats._format import OLE, ZIP, FileBytes, FileFormat
from velado.text import say

# Text may begin with a byte order mark and blanks.
_LEAD = rb"(?:\xef\xbb\xbf)?\s*"
_JSON = re.compile(_LEAD + rb"(?:\{\s*(?:\"|\})|\[\s*(?:[\[{\"]|-?\d|\]\s*$))")
_XML = re.compile(_LEAD + rb"<\?xml")
_HTML = re.compile(
    _LEAD + rb"(?:<(?:!doctype\s+html|html|head|body|table|meta)\b|(?-i:<\?xml).*<html\b)",
    re.IGNORECASE | re.DOTALL,
)
_DUCKDB = re.compile(rb".{8}DUCK", re.DOTALL)
_DBF = (b"\x03", b"\x30", b"\x83", b"\x8b")


def _is_dbf(file: FileBytes) -> bool:
    data = file.data
    if len(data) < 66:
        return False
    size = int.from_bytes(data[8:10], "little")
    return 1 <= data[2] <= 12 and 1 <= data[3] <= 31 and 65 <= size <= len(data) + 1 and data[32] > 32


def _is_locked(file: FileBytes) -> bool:
    # Names in the directory of a compound document are UTF-16.
    return "EncryptedPackage".encode("utf-16-le") in file.data


def _is_odt(file: FileBytes) -> bool:
    return b"opendocument.text" in file.media_type


_COPY = say("Copy the table into a spreadsheet program and save it as CSV (UTF-8).")
_OPEN = say("Open it in a spreadsheet program and save the one sheet with the rows as CSV (UTF-8).")
_UNLOCK = say("Open it with its password, and save the one sheet with the rows as CSV (UTF-8).")
_EXPORT = say("Export the one table with the rows as CSV, for example with the database's own program.")
_IN_R = say("In R, save the table with write.csv(x, row.names = FALSE).")
_PAGE = say("Ask for the table as CSV or as a spreadsheet; a page is none.")
_PICTURE = say("Ask for the table as CSV or as a spreadsheet; a picture is none.")
_UNPACK = say("Unpack it, and give the file inside.")
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\x00", b"MM\x00*")
_R = (b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n", b"X\n\x00\x00\x00")
_ACCESS = (b"\x00\x01\x00\x00Standard Jet DB", b"\x00\x01\x00\x00Standard ACE DB")
_SQLITE = (b"SQLite format 3\x00",)
_copied, _opened = partial(FileFormat, out=_COPY), partial(FileFormat, out=_OPEN)
_exported, _unpacked = partial(FileFormat, out=_EXPORT), partial(FileFormat, out=_UNPACK)
FORMATS = (
    FileFormat(
        name="feather 1",
        call=say("a Feather file of version 1"),
        begins=(b"FEA1",),
        wordy=True,
        out=say("Write it anew as Parquet or CSV."),
    ),
    FileFormat(
        name="encrypted parquet",
        call=say("an encrypted Parquet file"),
        begins=(b"PARE",),
        wordy=True,
        out=say("Write it anew without encryption."),
    ),
    FileFormat(
        name="protected office",
        call=say("an Office file with a password"),
        begins=(OLE,),
        looks=_is_locked,
        out=_UNLOCK,
    ),
    _copied(name="ole", call=say("an old Office document that is no workbook"), begins=(OLE,)),
    _copied(
        name="docx",
        call=say("a Word document"),
        begins=ZIP,
        looks=lambda file: "word/document.xml" in file.members,
    ),
    _copied(
        name="pptx",
        call=say("a PowerPoint presentation"),
        begins=ZIP,
        looks=lambda file: "ppt/presentation.xml" in file.members,
    ),
    _copied(name="odt", call=say("an OpenDocument text"), begins=ZIP, looks=_is_odt),
    _copied(name="rtf", call=say("a rich text document (RTF)"), begins=(b"{\\rtf",)),
    FileFormat(name="pdf", call=say("a PDF document"), begins=(b"%PDF-",), endings=("pdf",), out=_PAGE),
    _opened(name="html", call=say("a web page (HTML)"), pattern=_HTML),
    _opened(name="xml", call=say("an XML document"), pattern=_XML),
    FileFormat(
        name="json",
        call=say("a JSON document"),
        pattern=_JSON,
        out=say("Turn it into one row per person, and save that as CSV."),
    ),
    _exported(
        name="sqlite",
        call=say("an SQLite database"),
        begins=_SQLITE,
        endings=("sqlite", "sqlite3"),
    ),
    _exported(name="duckdb", call=say("a DuckDB database"), pattern=_DUCKDB),
    _exported(name="access", call=say("an Access database"), begins=_ACCESS),
    _opened(
        name="dbf",
        call=say("a dBase table (DBF or DBC)"),
        begins=_DBF,
        looks=_is_dbf,
        endings=("dbf", "dbc"),
    ),
    FileFormat(
        name="r",
        call=say("a file of R objects"),
        begins=_R,
        endings=("rds", "rdata"),
        out=_IN_R,
    ),
    FileFormat(name="hdf5", call=say("an HDF5 file"), begins=(b"\x89HDF\r\n\x1a\n",)),
    FileFormat(name="orc", call=say("an ORC file"), begins=(b"ORC",), wordy=True),
    FileFormat(name="avro", call=say("an Avro file"), begins=(b"Obj\x01",)),
    _unpacked(name="bzip2", call=say("a bzip2 file"), begins=(b"BZh",), wordy=True),
    _unpacked(name="xz", call=say("an xz file"), begins=(b"\xfd7zXZ\x00",)),
    _unpacked(name="zstd", call=say("a Zstandard file"), begins=(b"(\xb5/\xfd",)),
    _unpacked(name="7z", call=say("a 7z archive"), begins=(b"7z\xbc\xaf'\x1c",)),
    _unpacked(name="rar", call=say("a RAR archive"), begins=(b"Rar!\x1a\x07",)),
    FileFormat(name="image", call=say("a picture"), begins=_PICTURES, wordy=True, out=_PICTURE),
)
