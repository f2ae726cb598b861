"""What is known of a CSV file before its cells are read: its encoding, its header and the shape of its rows.

Pure: bytes in, findings out. Files are read by `velado.data.io`. Errors never repeat a cell, not even the
library's own, nor the first line, which may be a person.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from velado.errors import TableError
from velado.text import join, say, say_n

SEPARATORS = (",", ";", "\t", "|")
_LONGEST_NAME = 131_072  # the csv module reads no longer field


def as_utf8(data: bytes, name: str, encoding: str) -> bytes:
    """The text as UTF-8, where it is in *encoding*; a text declared as another one but written in UTF-8 is refused.

    >>> as_utf8(b"S\\xe3o Paulo", "t.csv", "latin-1").decode()
    'São Paulo'
    """
    return b"".join(utf8_blocks([data], name, encoding))


def utf8_blocks(
    blocks: Iterable[bytes], name: str, encoding: str, one_of_many: bool = False
) -> Iterator[bytes]:
    """The same for a text of any size, block by block; what is wrong with it is told at its end at the latest.

    *one_of_many* says that other files are read beside it, all in the same encoding.

    >>> b"".join(utf8_blocks([b"S\\xe3", b"o Paulo"], "t.csv", "latin-1")).decode()
    'São Paulo'
    """
    declared_utf8 = is_utf8_name(encoding)
    try:
        b"a".decode(encoding)  # which refuses codecs of something else than text
    except UnicodeDecodeError:
        pass  # one byte is no character yet
    except (LookupError, UnicodeError, ValueError):
        raise _no_encoding(encoding) from None
    own = codecs.getincrementaldecoder("utf-8" if declared_utf8 else encoding)()
    # Text of a one-byte encoding is hardly ever valid UTF-8 by accident once it has accents.
    utf8 = None if declared_utf8 else codecs.getincrementaldecoder("utf-8")()
    accents, lines, bad = False, 0, 0
    for block in chain(blocks, [b""]):
        last = block == b""
        if utf8 is not None:
            accents = accents or not block.isascii()
            try:
                utf8.decode(block, last)
            except UnicodeDecodeError:
                utf8 = None
        if not bad:
            carried = own.getstate()[0].count(b"\n")
            try:
                text = own.decode(block, last)
            except UnicodeDecodeError as error:
                bad = lines - carried + error.object.count(b"\n", 0, error.start) + 1
            except (LookupError, UnicodeError, ValueError):
                raise _no_encoding(encoding) from None
            else:
                if block or text:
                    # Decoding costs little and finds the one thing Polars would report with the cell in the message.
                    yield block if declared_utf8 else text.encode("utf-8")
        if bad and utf8 is None:
            raise TableError(
                say(
                    "'{name}' is not {encoding} text (first bad byte on line {line}).",
                    name=name,
                    encoding=encoding,
                    line=bad,
                ),
                "Accented letters would be garbled or lost.",
                "All files of one table are read in one encoding: save them all as UTF-8, or all in one that you name in [table] of the schema."
                if one_of_many
                else 'Save it as UTF-8, or name its encoding: encoding = "latin-1" (or cp1252) in [table] of the schema, or --encoding where a command has it.',
            )
        lines += block.count(b"\n")
    if utf8 is not None and accents:
        raise TableError(
            say(
                "'{name}' is declared as {encoding} but is written in UTF-8.",
                name=name,
                encoding=encoding,
            ),
            "Read as declared, every accented letter would be garbled.",
            "All files of one table are read in one encoding: save them all as UTF-8, or all in one that you name in [table] of the schema."
            if one_of_many
            else 'Pass --encoding utf-8, or set encoding = "utf-8" in [table] of the schema.',
        )


def _no_encoding(encoding: str) -> TableError:
    return TableError(
        say("'{encoding}' is no encoding a table can be read with.", encoding=encoding),
        "The file cannot be read with it.",
        "Use for example utf-8, latin-1 or cp1252.",
    )


def refuse_zero_bytes(data: bytes, name: str) -> None:
    """Nothing, unless there is a zero byte in the text *data* of a file: readers of CSV differ in what they make of one.

    >>> refuse_zero_bytes(b"age,home\\n31,a\\n", "t.csv")
    """
    if b"\x00" in data:
        raise TableError(
            say("'{name}' holds zero bytes.", name=name),
            "It is a binary file, or a text that was damaged: no CSV file has them.",
            "Give the file the ending of its true format, or take the zero bytes out.",
        )


def header_of(data: bytes, name: str, separator: str | None) -> tuple[list[str], str]:
    """The names in the first record, and the separator that was given or gives the most names.

    >>> header_of(b"nome;idade\\nAna;31\\n", "t.csv", None)
    (['nome', 'idade'], ';')
    """
    text = _first_record(data, name)
    try:
        if separator is None:
            separator = max(SEPARATORS, key=lambda s: len(_names(text, s)))
        return _names(text, separator), separator
    except csv.Error:
        if re.search(r"\r(?!\n)", text):
            raise TableError(
                say("The lines of '{name}' end in a carriage return alone.", name=name),
                "The whole file would be read as its first line.",
                "Save it with ordinary line ends (LF or CR LF).",
            ) from None
        raise TableError(
            say(
                "The first line of '{name}' is no header: a name in it is longer than {longest_name:,} "
                "characters.",
                name=name,
                longest_name=_LONGEST_NAME,
            ),
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
                say("A quote in the first line of '{name}' is never closed.", name=name),
                "The whole file would be read as one name.",
                "Close or remove the quote.",
            )
        begin = end


def check_header(header: list[str], name: str, known: Collection[str] = ()) -> None:
    """The first line holds names: none is blank or twice there, and none has the shape of a person's value.

    >>> check_header(["nome", "idade"], "t.csv")
    """
    if len(set(header)) != len(header):
        raise duplicate_names(header)
    fits = bool(known) and set(known) <= set(header)
    values = 0 if fits else sum(is_value(cell.strip()) for cell in header if cell not in known)
    if values or not header or any(not cell.strip() for cell in header):
        raise TableError(
            say("The first line of '{name}' does not look like a header.", name=name),
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
    """Whether a text has the shape of a person's value: a number, a date, an e-mail address.

    >>> is_value("31"), is_value("2024-02-29"), is_value("idade")
    (True, True, False)
    """
    return _VALUES.fullmatch(text) is not None


_PLAIN_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)


def duplicate_names(names: list[str]) -> TableError:
    """The error for names that occur twice: their places, and those that are surely names rather than values.

    >>> duplicate_names(["age", "sex", "age"]).what
    "1 column name occurs more than once in the header: 'age' in columns 1, 3."
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, 1):
        places.setdefault(name, []).append(place)
    twice = {name: at for name, at in places.items() if len(at) > 1}
    sure = not any(is_value(name.strip()) for name in names)
    shown: list[str] = []
    for name, at in list(twice.items())[:3]:
        called = f"'{name}' " if sure and _PLAIN_NAME.fullmatch(name) else ""
        shown.append(say("{called}in columns {places}", called=called, places=_listed(at, len(at))))
    if len(twice) > 3:
        shown.append(say("and {count} more", count=len(twice) - 3))
    names_twice = join(shown, "; ")
    return TableError(
        say_n(
            "{n} column name occurs more than once in the header: {shown}.",
            "{n} column names occur more than once in the header: {shown}.",
            len(twice),
            shown=names_twice,
        ),
        "It would not be clear which column a role belongs to.",
        "Give every column its own name.",
    )


def _listed(numbers: Sequence[int], count: int) -> str:
    shown = ", ".join(map(str, numbers[:3]))
    return say("{first} and {count} more", first=shown, count=count - 3) if count > 3 else shown


def lines_of(numbers: Sequence[int], count: int) -> str:
    """The numbers of the first of *count* lines.

    >>> lines_of((3, 7, 9), 5)
    'lines 3, 7, 9 and 2 more'
    """
    return say_n("line {numbers}", "lines {numbers}", count, numbers=_listed(numbers, count))


@dataclass(frozen=True)
class Ragged:
    """Records with too few or too many fields and blank ones: how many, and the line numbers of the first three.

    >>> Ragged(short=2, short_lines=(3, 7)).told()
    'fewer fields: lines 3, 7'
    """

    short: int = 0
    long: int = 0
    blank: int = 0
    short_lines: tuple[int, ...] = ()
    long_lines: tuple[int, ...] = ()
    blank_lines: tuple[int, ...] = ()

    def told(self) -> str:
        """`fewer fields: lines 3, 7; blank: line 9`."""
        parts = (
            (say("fewer fields"), self.short, self.short_lines),
            (say("more fields"), self.long, self.long_lines),
            (say("blank"), self.blank, self.blank_lines),
        )
        return join((join((what, lines_of(at, count)), ": ") for what, count, at in parts if count), "; ")


def ragged_rows(data: bytes, separator: str, width: int) -> Ragged:
    """Which records do not have *width* fields; separators and line ends within quotes do not count.

    Whether a byte lies within quotes is the parity of the quotes before it, which doubled quotes leave as it
    is. A few passes over the bytes, one block at a time: O(bytes), about a tenth of a second for a million rows.

    >>> ragged_rows(b"a,b\\n1,2\\n3\\n", ",", 2).short_lines
    (3,)
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


_BLOCK = 1 << 18
"""Bytes looked at together: what is made of them on the way stays in the processor's cache."""


# Which encoding a text is in, by evidence; where the evidence does not decide, it is refused with the line.
#
# UTF-8 is proved by decoding. UTF-16 and UTF-32 show by a byte order mark, or by zero bytes in every second place.
# What is left is taken for Windows-1252 (of which Latin-1 text is a part) where nearly all bytes above 127 are the
# accents, signs and quotation marks of Portuguese, Spanish, English, French or German in places where those stand.
# Pure: bytes in, a name out.

_LETTERS = "ÀÁÂÃÄÇÈÉÊËÍÎÏÑÓÔÕÖÙÚÛÜßàáâãäçèéêëíîïñóôõöùúûüœŒ"
_SIGNS = "€£§©«»®°±²³´·¹º¼½¾¿¡ª–—‘’“”•…™ \u00a0"
_BETWEEN_LETTERS = "’–—´·"  # the only signs that stand between two letters: D’Ávila, norte–sul
_UNUSED = (0x81, 0x8D, 0x8F, 0x90, 0x9D)  # bytes that Windows-1252 does not have
_ENOUGH = 0.9
_SAMPLE = 1 << 16

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# What UTF-8 makes of an accented letter or a curly quote; in Windows-1252 the same bytes are no text of any language.
_UTF8_ACCENT = re.compile(rb"\xc3[\x80-\xbf]|\xc2[\xa0-\xbf]|\xe2\x80[\x80-\xbf]")


def is_utf8_name(encoding: str) -> bool:
    """Whether *encoding* is a name of UTF-8.

    >>> is_utf8_name("UTF_8"), is_utf8_name("latin-1")
    (True, False)
    """
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, where a byte order mark or the places of the zero bytes show it.

    >>> wide_encoding("nome".encode("utf-16"))
    'utf-16'
    """
    for mark, name in _MARKS[1:]:
        if data.startswith(mark):
            return name
    head = np.frombuffer(data[:_SAMPLE], dtype=np.uint8)
    head = head[: head.size // 2 * 2]
    if head.size < 4:
        return None
    even, odd = float((head[0::2] == 0).mean()), float((head[1::2] == 0).mean())
    # Text of our languages is nearly all below U+0100; separators and digits are in any language.
    if odd > 0.4 and even < 0.02:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.02 else None


def found_encoding(data: bytes, name: str) -> str:
    """The encoding of the text *data*: utf-8, utf-16, utf-16-le, utf-16-be, utf-32 or cp1252; or a TableError.

    >>> found_encoding("São João".encode("latin-1"), "t.csv")
    'cp1252'
    """
    wide = wide_encoding(data)
    if wide is not None:
        return wide
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.start
    else:
        return "utf-8"
    values = np.frombuffer(data, dtype=np.uint8)
    unused = np.isin(values, _UNUSED)
    if _UTF8_ACCENT.search(data):
        raise _in_doubt(data, name, bad, say("mixes UTF-8 with another encoding, first"))
    if unused.any():
        raise _in_doubt(data, name, int(unused.argmax()), say("has a byte that no usual encoding has"))
    at = np.flatnonzero(values >= 128)
    typical = _typical(values, at)
    if typical.mean() < _ENOUGH or _foreign_runs(at) > 0.05:
        raise _in_doubt(
            data, name, int(at[typical.argmin()]), say("is neither UTF-8 nor surely Windows-1252; look")
        )
    return "cp1252"


def _typical(values: npt.NDArray[np.uint8], at: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """For each byte above 127 whether it is, read as Windows-1252, what our languages write in that place."""
    letters, signs, joining, upper, lower = (
        _members(text) for text in (_LETTERS, _SIGNS, _BETWEEN_LETTERS, _UPPER, _UPPER.lower())
    )
    zero = np.zeros(1, dtype=np.uint8)
    padded = np.concatenate((zero, values, zero))
    byte, before, after = values[at], padded[at], padded[at + 2]
    between = (upper | lower)[before] & (upper | lower)[after]
    # A small accent between capitals is the mark of an old DOS code page, whose capitals lie there.
    small = (byte >= 0xE0) & upper[before] & upper[after]
    typical: npt.NDArray[np.bool_] = (letters[byte] & ~small) | (signs[byte] & (~between | joining[byte]))
    return typical


_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _members(text: str) -> npt.NDArray[np.bool_]:
    found = np.zeros(256, dtype=bool)
    found[list(text.encode("cp1252"))] = True
    return found


def _foreign_runs(at: npt.NDArray[np.intp]) -> float:
    # Three accents in a row are no word of ours; in Cyrillic, Greek or Chinese text most bytes stand so.
    return float(((at[2:] - at[:-2]) == 2).sum()) / max(1, at.size)


def _in_doubt(data: bytes, name: str, place: int, what: str) -> TableError:
    line = data.count(b"\n", 0, place) + 1
    return TableError(
        say("'{name}' is not UTF-8 text and {what} on line {line}.", name=name, what=what, line=line),
        "Read with the wrong encoding, accented letters would be garbled or lost.",
        'Save it as UTF-8, or name its encoding: encoding = "latin-1" (or cp1252, cp850, mac-roman) in [table] of the schema, or --encoding where a command has it.',
    )
