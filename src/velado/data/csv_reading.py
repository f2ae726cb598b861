"""What is known of a CSV file before its cells are read: its encoding, its header and the shape of its rows.

Pure: bytes in, findings out. Files are read by `velado.data.io`. Errors never repeat a cell, not even the
library's own, nor the first line, which may be a person.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection

import numpy as np

from velado.errors import TableError

SEPARATORS = (",", ";", "\t", "|")
_LONGEST_NAME = 131_072  # the csv module reads no longer field


def as_utf8(data: bytes, name: str, encoding: str) -> bytes:
    utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    try:
        if utf8:
            # Decoding costs little and finds the one thing Polars would report with the cell in the message.
            data.decode("utf-8")
            return data
        if _is_utf8_with_accents(data):
            raise TableError(
                f"'{name}' is declared as {encoding} but is written in UTF-8.",
                "Read as declared, every accented letter would be garbled.",
                'Pass --encoding utf-8, or set encoding = "utf-8" in [table] of the schema.',
            )
        return data.decode(encoding).encode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"'{name}' is not {encoding} text (first bad byte on line {line}).",
            "Accented letters would be garbled or lost.",
            "Save it as UTF-8, or name its encoding with --encoding latin-1 (or cp1252).",
        ) from None
    except (LookupError, UnicodeError, ValueError):
        raise TableError(
            f"'{encoding}' is no encoding a table can be read with.",
            "The file cannot be read with it.",
            "Use for example utf-8, latin-1 or cp1252.",
        ) from None


def _is_utf8_with_accents(data: bytes) -> bool:
    # Text of a one-byte encoding is hardly ever valid UTF-8 by accident once it has accents.
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def header_of(data: bytes, name: str, separator: str | None) -> tuple[list[str], str]:
    """The names in the first record, and the separator that was given or gives the most names."""
    text = _first_record(data, name)
    try:
        if separator is None:
            separator = max(SEPARATORS, key=lambda s: len(_names(text, s)))
        return _names(text, separator), separator
    except csv.Error:
        if re.search(r"\r(?!\n)", text):
            raise TableError(
                f"The lines of '{name}' end in a carriage return alone.",
                "The whole file would be read as its first line.",
                "Save it with ordinary line ends (LF or CR LF).",
            ) from None
        raise TableError(
            f"The first line of '{name}' is no header: a name in it is longer than {_LONGEST_NAME:,} characters.",
            "Such a name usually means a broken quote or a file in another format.",
            "Correct the first line, or give the file the ending of its true format.",
        ) from None


def _names(text: str, separator: str) -> list[str]:
    # Lines end at LF only, so that a lone carriage return is found rather than taken for a line end.
    return next(csv.reader(io.StringIO(text, newline="\n"), delimiter=separator), [])


def _first_record(data: bytes, name: str) -> str:
    # The header may hold quoted line breaks, so read until the quotes are balanced.
    begin, quotes = 0, 0
    while True:
        found = data.find(b"\n", begin)
        end = len(data) if found < 0 else found + 1
        quotes += data.count(b'"', begin, end)
        if quotes % 2 == 0:
            return data[:end].decode("utf-8").rstrip("\r\n")
        if end == len(data):
            raise TableError(
                f"A quote in the first line of '{name}' is never closed.",
                "The whole file would be read as one name.",
                "Close or remove the quote.",
            )
        begin = end


def check_header(header: list[str], name: str, known: Collection[str] = ()) -> None:
    """The first line holds names: none is blank or twice there, and none has the shape of a person's value."""
    if len(set(header)) != len(header):
        raise duplicate_names(header)
    fits = bool(known) and set(known) <= set(header)
    values = 0 if fits else sum(_is_value(cell.strip()) for cell in header if cell not in known)
    if values or any(not cell.strip() for cell in header):
        raise TableError(
            f"The first line of '{name}' does not look like a header.",
            "Without column names roles cannot be given, and the first person would be taken for the names.",
            "Add a first line with one name per column, neither blank nor a number, a date or an e-mail address; "
            "where numbers are the true names, name all columns of the schema as they stand in the file.",
        )


_VALUES = re.compile(
    r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?"  # a number
    r"|\d{4}-\d{1,2}-\d{1,2}(?:[T ].*)?|\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?: .*)?"  # a date, with or without time
    r"|[^@\s]+@[^@\s]+\.[^@\s]+"  # an e-mail address
    r"|\+?[(]?(?:\d[\s().\-/]*){8,}"  # CPF, CNS, telephone: digits and punctuation
)


def _is_value(text: str) -> bool:
    return _VALUES.fullmatch(text) is not None


def duplicate_names(names: list[str]) -> TableError:
    """The error for names that occur twice."""
    twice = {name for name in names if names.count(name) > 1}
    return TableError(
        f"{len(twice)} column name(s) occur more than once in the header.",
        "It would not be clear which column a role belongs to.",
        "Give every column its own name.",
    )


def short_rows(data: bytes, separator: str, width: int) -> int:
    """How many records have fewer than *width* fields; separators and line ends within quotes do not count.

    Whether a byte lies within quotes is the parity of the quotes before it, which doubled quotes leave as it
    is. A few passes over the bytes, one block at a time: O(bytes), about half a second for a million rows.
    """
    mark, short, fields, odd = ord(separator), 0, 0, 0
    everything = np.frombuffer(data, dtype=np.uint8)
    quoted = b'"' in data
    for begin in range(0, everything.size, _BLOCK):
        block = everything[begin : begin + _BLOCK]
        counted = (block == mark) | (block == 10)
        if quoted:
            parity = np.cumsum(block == 34, dtype=np.uint8)
            parity += np.uint8(odd)
            counted &= (parity & 1) == 0
            odd = int(parity[-1]) & 1
        marks = block[counted]
        ends = np.flatnonzero(marks == 10)
        if not ends.size:
            fields += marks.size
            continue
        separators = np.diff(ends, prepend=-1) - 1
        separators[0] += fields
        short += int((separators < width - 1).sum())
        fields = marks.size - int(ends[-1]) - 1
    return short


_BLOCK = 1 << 24
