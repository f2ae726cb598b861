"""Which encoding a text is in, by evidence; where the evidence does not decide, it is refused with the line.

UTF-8 is proved by decoding. UTF-16 and UTF-32 show by a byte order mark, or by zero bytes in every second place.
What is left is taken for Windows-1252 (of which Latin-1 text is a part) where nearly all bytes above 127 are the
accents, signs and quotation marks of Portuguese, Spanish, English, French or German in places where those stand.
Pure: bytes in, a name out.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from velado.errors import TableError

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
    """Whether *encoding* is a name of UTF-8."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, where a byte order mark or the places of the zero bytes show it."""
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
    """The encoding of the text *data*: utf-8, utf-16, utf-16-le, utf-16-be, utf-32 or cp1252; or a TableError."""
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
        raise _in_doubt(data, name, bad, "mixes UTF-8 with another encoding, first")
    if unused.any():
        raise _in_doubt(data, name, int(unused.argmax()), "has a byte that no usual encoding has")
    at = np.flatnonzero(values >= 128)
    typical = _typical(values, at)
    if typical.mean() < _ENOUGH or _foreign_runs(at) > 0.05:
        raise _in_doubt(
            data, name, int(at[typical.argmin()]), "is neither UTF-8 nor surely Windows-1252; look"
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
        f"'{name}' is not UTF-8 text and {what} on line {line}.",
        "Read with the wrong encoding, accented letters would be garbled or lost.",
        "Save it as UTF-8, or name its encoding with --encoding latin-1 (or cp1252, cp850, mac-roman).",
    )


__all__ = ["found_encoding", "is_utf8_name", "wide_encoding"]
