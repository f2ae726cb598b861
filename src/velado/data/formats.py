"""What a file is, told from its first bytes whatever its name ends in; what is no table is named with the way out.

Pure: bytes in, a `FileFormat` or None out. None means that nothing but text is left, and text is taken for CSV.
Signatures are those of the formats' own descriptions; a zip archive is known by the names of its members.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from velado.errors import TableError

Reader = Literal["columns", "spreadsheet", "statistics", "gzip", "zip", "none"]


@dataclass(frozen=True)
class FileFormat:
    """One format: its short *name*, what to *call* it in a sentence, who reads it, and the way *out* where nobody does."""

    name: str
    call: str
    reader: Reader = "none"
    out: str = "Save or export the table as CSV, and give that file."


_SPREADSHEET_OUT = "Open it in a spreadsheet program and save the one sheet with the rows as CSV (UTF-8)."
_PAGES_OUT = "Copy the table into a spreadsheet program and save it as CSV (UTF-8)."
_DATABASE_OUT = "Export the one table with the rows as CSV, for example with the database's own program."
_UNPACK = "Unpack it, and give the file inside."

FORMATS = {
    f.name: f
    for f in (
        FileFormat("parquet", "a Parquet file", "columns"),
        FileFormat("arrow", "an Arrow file", "columns"),
        FileFormat("arrow stream", "an Arrow stream", "columns"),
        FileFormat("xlsx", "an Excel workbook (xlsx)", "spreadsheet"),
        FileFormat("xlsb", "a binary Excel workbook (xlsb)", "spreadsheet"),
        FileFormat("xls", "an old Excel workbook (xls)", "spreadsheet"),
        FileFormat("ods", "an OpenDocument spreadsheet (ods)", "spreadsheet"),
        FileFormat("sav", "an SPSS file", "statistics"),
        FileFormat("por", "a portable SPSS file", "statistics"),
        FileFormat("dta", "a Stata file", "statistics"),
        FileFormat("sas7bdat", "a SAS data set", "statistics"),
        FileFormat("xpt", "a SAS transport file", "statistics"),
        FileFormat("gzip", "a gzip file", "gzip"),
        FileFormat("zip", "a zip archive", "zip"),
        FileFormat("feather 1", "a Feather file of version 1", out="Write it anew as Parquet or CSV."),
        FileFormat("encrypted parquet", "an encrypted Parquet file", out="Write it anew without encryption."),
        FileFormat(
            "protected office",
            "an Office file with a password",
            out="Open it with its password, and save the one sheet with the rows as CSV (UTF-8).",
        ),
        FileFormat("ole", "an old Office document that is no workbook", out=_PAGES_OUT),
        FileFormat("docx", "a Word document", out=_PAGES_OUT),
        FileFormat("pptx", "a PowerPoint presentation", out=_PAGES_OUT),
        FileFormat("odt", "an OpenDocument text", out=_PAGES_OUT),
        FileFormat("rtf", "a rich text document (RTF)", out=_PAGES_OUT),
        FileFormat(
            "pdf", "a PDF document", out="Ask for the table as CSV or as a spreadsheet; a page is none."
        ),
        FileFormat("html", "a web page (HTML)", out=_SPREADSHEET_OUT),
        FileFormat("xml", "an XML document", out=_SPREADSHEET_OUT),
        FileFormat("json", "a JSON document", out="Turn it into one row per person, and save that as CSV."),
        FileFormat("sqlite", "an SQLite database", out=_DATABASE_OUT),
        FileFormat("duckdb", "a DuckDB database", out=_DATABASE_OUT),
        FileFormat("access", "an Access database", out=_DATABASE_OUT),
        FileFormat("dbf", "a dBase table (DBF or DBC)", out=_SPREADSHEET_OUT),
        FileFormat(
            "r", "a file of R objects", out="In R, save the table with write.csv(x, row.names = FALSE)."
        ),
        FileFormat("hdf5", "an HDF5 file"),
        FileFormat("orc", "an ORC file"),
        FileFormat("avro", "an Avro file"),
        FileFormat("bzip2", "a bzip2 file", out=_UNPACK),
        FileFormat("xz", "an xz file", out=_UNPACK),
        FileFormat("zstd", "a Zstandard file", out=_UNPACK),
        FileFormat("7z", "a 7z archive", out=_UNPACK),
        FileFormat("rar", "a RAR archive", out=_UNPACK),
        FileFormat(
            "image", "a picture", out="Ask for the table as CSV or as a spreadsheet; a picture is none."
        ),
    )
}

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "parquet"),
    (b"PARE", "encrypted parquet"),
    (b"ARROW1\x00\x00", "arrow"),
    (b"FEA1", "feather 1"),
    (b"$FL2", "sav"),
    (b"$FL3", "sav"),
    (b"<stata_dta>", "dta"),
    (b"HEADER RECORD*******LIB", "xpt"),
    (
        b"\0" * 12 + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011"),
        "sas7bdat",
    ),
    (b"\x1f\x8b", "gzip"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"%PDF-", "pdf"),
    (b"{\\rtf", "rtf"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"ORC", "orc"),
    (b"Obj\x01", "avro"),
    (b"RDX2\n", "r"),
    (b"RDX3\n", "r"),
    (b"RDA2\n", "r"),
    (b"RDA3\n", "r"),
    (b"X\n\x00\x00\x00", "r"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "image"),
    (b"II*\x00", "image"),
    (b"MM\x00*", "image"),
    (b"\x00\x01\x00\x00Standard Jet DB", "access"),
    (b"\x00\x01\x00\x00Standard ACE DB", "access"),
)
_WORDS_IN_BINARY = {"orc", "bzip2", "image", "parquet", "encrypted parquet", "feather 1", "sav"}
"""Formats whose signature is letters alone: a header may begin so (`ORCID,...`), and then no control byte follows."""

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENDINGS = {
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
    "xlsx": "xlsx", "xlsm": "xlsx", "xlsb": "xlsb", "xls": "xls", "ods": "ods", "sav": "sav", "zsav": "sav",
    "por": "por", "dta": "dta", "sas7bdat": "sas7bdat", "xpt": "xpt", "gz": "gzip", "zip": "zip", "pdf": "pdf",
    "sqlite": "sqlite", "sqlite3": "sqlite", "rds": "r", "rdata": "r", "dbf": "dbf", "dbc": "dbf",
}  # fmt: skip


def format_of(data: bytes) -> FileFormat | None:
    """The format that the bytes show, or None where they may be CSV text."""
    for signature, name in _SIGNATURES:
        if data.startswith(signature) and not (name in _WORDS_IN_BINARY and _is_plain(data[:512])):
            return FORMATS[name]
    other = _other(data)
    return None if other is None else FORMATS[other]


def expected_format(name: str) -> FileFormat | None:
    """The format that a file name's ending promises, or None where it promises none but text."""
    ending = PurePath(name).suffix.lower().lstrip(".")
    return FORMATS[_ENDINGS[ending]] if ending in _ENDINGS else None


def unreadable(format: FileFormat, name: str) -> TableError:
    """The error for a format that velado names but does not read."""
    return TableError(f"'{name}' is {format.call}.", "velado does not read tables from it.", format.out)


def damaged(format: FileFormat, name: str) -> TableError:
    """The error for a file that begins as *format* does and cannot be read to its end."""
    return TableError(
        f"'{name}' is not a readable {format.name} file.",
        f"It begins or is named as {format.call}, but its content is damaged, cut short or of another format.",
        "Copy or export it anew; if it is CSV text, give it the ending .csv.",
    )


def _is_plain(head: bytes) -> bool:
    return not any(byte < 32 and byte not in (9, 10, 13) for byte in head)


def _other(data: bytes) -> str | None:
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data)
    if data.startswith(_OLE):
        return _ole_kind(data)
    if data[8:12] == b"DUCK":
        return "duckdb"
    if data[:4] == b"\xff\xff\xff\xff" and 0 < int.from_bytes(data[4:8], "little") < 1 << 28:
        return "arrow stream"
    # Stata up to 12: a release number, the byte order, a 1 and a 0.
    if len(data) > 4 and 102 <= data[0] <= 115 and data[1] in (1, 2) and data[2] == 1 and data[3] == 0:
        return "dta"
    if b"SPSS PORT FILE" in data[:240]:
        return "por"
    if _is_dbf(data):
        return "dbf"
    return _markup(data)


def _zip_kind(data: bytes) -> str:
    head = data[:200]
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = set(archive.namelist())
        if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
            head += archive.read("mimetype")
    except Exception:  # a damaged directory raises half a dozen types
        names = set()
    for member, name in (
        ("xl/workbook.xml", "xlsx"),
        ("xl/workbook.bin", "xlsb"),
        ("word/document.xml", "docx"),
        ("ppt/presentation.xml", "pptx"),
    ):
        if member in names:
            return name
    if b"opendocument.spreadsheet" in head:
        return "ods"
    if b"opendocument.text" in head:
        return "odt"
    # The directory of a zip stands at its end: where it was cut off, the first member still tells.
    first = data[:4096]
    office = any(mark in first for mark in (b"[Content_Types].xml", b"docProps/", b"xl/"))
    return "xlsx" if not names and office else "zip"


def _ole_kind(data: bytes) -> str:
    # Names in the directory of a compound document are UTF-16.
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "protected office"
    books = [word.encode("utf-16-le") for word in ("Workbook", "Book\0")]
    return "xls" if any(book in data for book in books) else "ole"


def _is_dbf(data: bytes) -> bool:
    if len(data) < 66 or data[0] not in (0x03, 0x30, 0x83, 0x8B):
        return False
    size = int.from_bytes(data[8:10], "little")
    return 1 <= data[2] <= 12 and 1 <= data[3] <= 31 and 65 <= size <= len(data) + 1 and data[32] > 32


_JSON = re.compile(rb"\{\s*(?:\"|\})|\[\s*(?:[\[{\"]|-?\d|\]\s*$)")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|table|meta)\b", re.IGNORECASE)


def _markup(data: bytes) -> str | None:
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if _HTML.match(head):
        return "html"
    if head.startswith(b"<?xml"):
        return "html" if re.search(rb"<html\b", head, re.IGNORECASE) else "xml"
    return "json" if _JSON.match(head) else None


__all__ = ["FORMATS", "FileFormat", "damaged", "expected_format", "format_of", "unreadable"]
