"""Spreadsheets and the files of SPSS, Stata and SAS, whose libraries come with the extra `files`.

Those libraries end the whole process on some damaged files, or print cells while they fail. So the program
`_foreign_reader` runs them apart, and a program that ends early means a damaged file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import polars as pl

from velado.data.csv_reading import check_header, is_value
from velado.data.formats._format import OLE, ZIP, FileBytes, FileFormat, Wanted, damaged
from velado.data.formats.columnar import STREAM, read_columns
from velado.data.formats.packed import check_members
from velado.errors import MissingExtra, NoRows, TableError
from velado.text import say

_PROGRAM = Path(__file__).with_name("_foreign_reader.py")


class _Answer(TypedDict, total=False):
    """The line of JSON that the program answers: the columns' names, or why there is no table."""

    header: list[str]
    problem: str
    sheets: list[str]


def _read_apart(
    format: FileFormat, data: bytes, name: str, wanted: Wanted, *, library: str, why: str
) -> pl.DataFrame:
    if data.startswith(b"PK"):
        check_members(format, data, name)
    if find_spec(library) is None:
        raise MissingExtra(
            say("The library '{library}' is not installed.", library=library),
            why,
            'Install it with pip install "velado[files]".',
        )
    # -P: nothing that lies in the current folder is imported.
    command = [sys.executable, "-P", str(_PROGRAM), format.name]
    command += [] if wanted.sheet is None else [wanted.sheet]
    try:
        done = subprocess.run(command, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, ValueError):
        raise TableError(
            say(
                "'{name}' is {call}, and no second Python process could be started to read it.",
                name=name,
                call=format.call,
            ),
            "Such files are read apart, because damaged ones can end the process that reads them.",
            format.out,
        ) from None
    line, _, body = done.stdout.partition(b"\n")
    answer: _Answer = json.loads(line) if done.returncode == 0 else {"problem": "damaged"}
    if "header" not in answer:
        raise _problem(answer, format, name)
    header = [str(one) for one in answer["header"]]
    check_header(header, name, wanted.known)
    frame = read_columns(STREAM, body, name, wanted)
    frame.columns = header
    return frame


def _problem(answer: _Answer, format: FileFormat, name: str) -> TableError:
    sheets = [str(one) for one in answer.get("sheets", ())]
    shown = ", ".join("(a number or date)" if is_value(one) else f"'{one}'" for one in sheets[:10])
    if answer["problem"] == "no such sheet":
        return TableError(
            say("'{name}' has no sheet of that name.", name=name),
            say("It has {shown}.", shown=shown),
            "Name one of them, as it is spelt there.",
            choices=sheets,
        )
    if answer["problem"] == "several sheets":
        return TableError(
            say(
                "'{name}' has {sheets} sheets with rows: {shown}.", name=name, sheets=len(sheets), shown=shown
            ),
            "A table is one sheet, and velado does not guess which.",
            "Name the sheet: --sheet NAME, in Python sheet=... of velado.read_table; or save it as a file of its own.",
            choices=sheets,
        )
    if answer["problem"] == "no rows":
        return NoRows(
            say("'{name}' has no rows.", name=name),
            "There is nobody to protect.",
            "Check that the right file was given.",
        )
    return damaged(format, name)


def _is_xlsx(file: FileBytes) -> bool:
    # The directory of a zip stands at its end: where it was cut off, the first member still tells.
    marks = (b"[Content_Types].xml", b"docProps/", b"xl/")
    cut = not file.members and any(mark in file.data[:4096] for mark in marks)
    return cut or "xl/workbook.xml" in file.members


def _is_ods(file: FileBytes) -> bool:
    return b"opendocument.spreadsheet" in file.media_type


def _is_xls(file: FileBytes) -> bool:
    # Names in the directory of a compound document are UTF-16.
    names = [word.encode("utf-16-le") for word in ("EncryptedPackage", "Workbook", "Book\0")]
    locked, *books = (name in file.data for name in names)
    return not locked and any(books)


_sheet = partial(
    FileFormat,
    read=partial(_read_apart, library="fastexcel", why=say("Spreadsheets are read by it.")),
    sheets=True,
)
_statistics = partial(
    FileFormat,
    read=partial(_read_apart, library="pyreadstat", why=say("Files of SPSS, Stata and SAS are read by it.")),
)
# Up to 12: a release number from 102 to 115, the byte order, a 1 and a 0.
_OLD_STATA = re.compile(rb"[\x66-\x73][\x01\x02]\x01\x00.", re.DOTALL)
_SAS = b"\0" * 12 + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
FORMATS = (
    _sheet(
        name="xlsx",
        call=say("an Excel workbook (xlsx)"),
        begins=ZIP,
        looks=_is_xlsx,
        endings=("xlsx", "xlsm"),
    ),
    _sheet(
        name="xlsb",
        call=say("a binary Excel workbook (xlsb)"),
        begins=ZIP,
        looks=lambda file: "xl/workbook.bin" in file.members,
        endings=("xlsb",),
    ),
    _sheet(
        name="xls", call=say("an old Excel workbook (xls)"), begins=(OLE,), looks=_is_xls, endings=("xls",)
    ),
    _sheet(
        name="ods", call=say("an OpenDocument spreadsheet (ods)"), begins=ZIP, looks=_is_ods, endings=("ods",)
    ),
    _statistics(
        name="sav", call=say("an SPSS file"), begins=(b"$FL2", b"$FL3"), wordy=True, endings=("sav", "zsav")
    ),
    _statistics(
        name="por",
        call=say("a portable SPSS file"),
        pattern=re.compile(rb".{0,226}SPSS PORT FILE", re.DOTALL),
        endings=("por",),
    ),
    _statistics(
        name="dta", call=say("a Stata file"), begins=(b"<stata_dta>",), pattern=_OLD_STATA, endings=("dta",)
    ),
    _statistics(name="sas7bdat", call=say("a SAS data set"), begins=(_SAS,), endings=("sas7bdat",)),
    _statistics(
        name="xpt", call=say("a SAS transport file"), begins=(b"HEADER RECORD*******LIB",), endings=("xpt",)
    ),
)
