"""What is known of a CSV file before its cells are read: its encoding, its header and the shape of its rows.

Pure: bytes in, findings out. Files are read by `velado.data.io`. Errors never repeat a cell, not even the
library's own, nor the first line, which may be a person.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from velado.data.text_encoding import is_utf8_name
from velado.errors import TableError

SEPARATORS = (",", ";", "\t", "|")
_LONGEST_NAME = 131_072  # the csv module reads no longer field


def as_utf8(data: bytes, name: str, encoding: str) -> bytes:
    """The text as UTF-8, where it is in *encoding*; a text declared as another one but written in UTF-8 is refused."""
    try:
        if is_utf8_name(encoding):
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
    values = 0 if fits else sum(is_value(cell.strip()) for cell in header if cell not in known)
    if values or not header or any(not cell.strip() for cell in header):
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


def is_value(text: str) -> bool:
    """Whether a text has the shape of a person's value: a number, a date, an e-mail address."""
    return _VALUES.fullmatch(text) is not None


_PLAIN_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)


def duplicate_names(names: list[str]) -> TableError:
    """The error for names that occur twice: their places, and those that are surely names rather than values."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, 1):
        places.setdefault(name, []).append(place)
    twice = {name: at for name, at in places.items() if len(at) > 1}
    sure = not any(is_value(name.strip()) for name in names)
    shown = "; ".join(
        (f"'{name}' " if sure and _PLAIN_NAME.fullmatch(name) else "") + "in columns " + _listed(at, len(at))
        for name, at in list(twice.items())[:3]
    )
    more = f"; and {len(twice) - 3} more" if len(twice) > 3 else ""
    return TableError(
        f"{len(twice)} column name(s) occur more than once in the header: {shown}{more}.",
        "It would not be clear which column a role belongs to.",
        "Give every column its own name.",
    )


def _listed(numbers: Sequence[int], count: int) -> str:
    more = f" and {count - 3} more" if count > 3 else ""
    return ", ".join(map(str, numbers[:3])) + more


@dataclass(frozen=True)
class Ragged:
    """Records with too few or too many fields and blank ones: how many, and the line numbers of the first three."""

    short: int = 0
    long: int = 0
    blank: int = 0
    short_lines: tuple[int, ...] = ()
    long_lines: tuple[int, ...] = ()
    blank_lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        """`fewer fields: lines 3, 7; blank: line 9`."""
        parts = (
            ("fewer fields", self.short, self.short_lines),
            ("more fields", self.long, self.long_lines),
            ("blank", self.blank, self.blank_lines),
        )
        return "; ".join(
            f"{what}: line{'s' if count > 1 else ''} {_listed(lines, count)}"
            for what, count, lines in parts
            if count
        )


def ragged_rows(data: bytes, separator: str, width: int) -> Ragged:
    """Which records do not have *width* fields; separators and line ends within quotes do not count.

    Whether a byte lies within quotes is the parity of the quotes before it, which doubled quotes leave as it
    is. A few passes over the bytes, one block at a time: O(bytes), about half a second for a million rows.
    """
    mark, fields, odd, start = ord(separator), 0, 0, 0
    counts = [0, 0, 0]
    places: tuple[list[int], ...] = ([], [], [])
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
        at = np.flatnonzero(counted)
        ends = np.flatnonzero(block[at] == 10)
        if not ends.size:
            fields += at.size
            continue
        separators = np.diff(ends, prepend=-1) - 1
        separators[0] += fields
        fields = at.size - int(ends[-1]) - 1
        stops = begin + at[ends]
        starts = np.concatenate(([start], stops[:-1] + 1))
        start = int(stops[-1]) + 1
        wrong = np.flatnonzero(separators != width - 1)
        # A blank line has nothing but perhaps a carriage return; a cell of one letter is looked at to tell.
        bare = [
            int(one)
            for one in wrong[(stops - starts)[wrong] <= 1]
            if separators[one] == 0 and data[starts[one] : stops[one]] in (b"", b"\r")
        ]
        blank = np.zeros(separators.size, dtype=bool)
        blank[bare] = True
        kinds = ((separators < width - 1) & ~blank, separators > width - 1, blank & (separators != width - 1))
        for kind, (found, seen) in enumerate(zip(kinds, places, strict=True)):
            counts[kind] += int(found.sum())
            seen.extend(int(starts[one]) for one in np.flatnonzero(found)[: 3 - len(seen)])
    lines = [tuple(data.count(b"\n", 0, place) + 1 for place in seen) for seen in places]
    return Ragged(counts[0], counts[1], counts[2], lines[0], lines[1], lines[2])


_BLOCK = 1 << 24
