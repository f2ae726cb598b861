"""Gzip and zip: the one file inside, up to a limit on what it may unpack to."""

from __future__ import annotations

import io
import zipfile
import zlib

from velado.data.formats._format import ZIP, FileFormat, damaged
from velado.errors import TableError
from velado.text import say

MOST_BYTES = 4 << 30
"""The most bytes that a compressed file may unpack to."""
_MOST_RATIO, _FREE_BYTES = 1000, 16 << 20


def _unpack_gzip(format: FileFormat, data: bytes, name: str) -> bytes:
    """What a gzip file holds, all its members one after the other.

    >>> import gzip
    >>> _unpack_gzip(FORMATS[0], gzip.compress(b"a,b"), "t.gz")
    b'a,b'
    """
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


def _unpack_zip(format: FileFormat, data: bytes, name: str) -> bytes:
    """The one file that a zip archive holds."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [m for m in archive.infolist() if not m.is_dir() and not _is_litter(m.filename)]
    except Exception:  # hostile bytes raise whatever zipfile stumbles over first: all of it means one thing
        raise damaged(format, name) from None
    if len(members) != 1:
        raise TableError(
            say("'{name}' holds {members} files.", name=name, members=len(members)),
            "A table is one file, and velado does not guess which.",
            "Unpack it, and give the file with the table.",
        )
    return _member(archive, members[0], format, name, _limit(len(data)))


def check_members(format: FileFormat, data: bytes, name: str) -> None:
    """Every part of a zipped workbook has its checksum, and all of them unpacked keep to the limit.

    >>> empty = b"PK\\x05\\x06" + bytes(18)
    >>> check_members(FORMATS[1], empty, "t.xlsx")
    """
    archive, left = zipfile.ZipFile(io.BytesIO(data)), _limit(len(data))
    for member in archive.infolist():
        left -= len(_member(archive, member, format, name, left))


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
            say("'{name}' is protected by a password.", name=name),
            "velado asks for none.",
            say("Unpack it, and give the file inside."),
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
        say(
            "'{name}' unpacks to more than {most_ratio} times its size, or to more than 4 GiB.",
            name=name,
            most_ratio=_MOST_RATIO,
        ),
        "Such a file fills the memory, and may have been made to do so.",
        "Unpack it yourself if you trust it, and give the file inside.",
    )


FORMATS = (
    FileFormat(
        name="gzip", call=say("a gzip file"), begins=(b"\x1f\x8b",), endings=("gz",), unpack=_unpack_gzip
    ),
    FileFormat(
        name="zip",
        call=say("a zip archive"),
        begins=ZIP,
        endings=("zip",),
        unpack=_unpack_zip,
    ),
)
