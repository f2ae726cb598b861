"""What a format says of itself, and the errors that all of them share."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from velado.errors import TableError
from velado.text import say


@dataclass(frozen=True)
class Wanted:
    """What is known of a file before it is read: declared encoding and separator, names it may have, its sheet."""

    encoding: str | None = None
    separator: str | None = None
    known: Collection[str] = ()
    sheet: str | None = None


@dataclass(frozen=True, repr=False)
class FileBytes:
    """The bytes of a file, and what several formats ask of them."""

    data: bytes

    @cached_property
    def is_plain(self) -> bool:
        """Whether the beginning has no control characters, as text has none."""
        return not any(byte < 32 and byte not in (9, 10, 13) for byte in self.data[:512])

    @cached_property
    def members(self) -> frozenset[str]:
        """The names in a zip archive; empty where its directory is damaged."""
        try:
            return frozenset(zipfile.ZipFile(io.BytesIO(self.data)).namelist())
        except Exception:  # a damaged directory raises half a dozen types
            return frozenset()

    @cached_property
    def media_type(self) -> bytes:
        """Where an OpenDocument archive says what it is: in its first bytes, or in a member of that name."""
        head = self.data[:200]
        if "mimetype" in self.members:
            archive = zipfile.ZipFile(io.BytesIO(self.data))
            if archive.getinfo("mimetype").file_size < 200:
                try:
                    head += archive.read("mimetype")
                except Exception:  # a damaged member too
                    return head
        return head


ZIP = (b"PK\x03\x04", b"PK\x05\x06")
OLE = bytes.fromhex("d0cf11e0a1b11ae1")
"""What a compound document begins with: the Office files before 2007, and those with a password."""

Read = Callable[["FileFormat", bytes, str, Wanted], pl.DataFrame]
Unpack = Callable[["FileFormat", bytes, str], bytes]


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """One format: its short *name*, what to *call* it in a sentence, how it is recognised and read, or the way *out*.

    It begins with one of *begins*, or as *pattern* says; where several formats begin so, *looks* tells it from the others.
    *wordy*: the first bytes are letters that a header may begin with too (`ORCID,...`), so that they count only where no
    plain text follows. *read* makes a frame of the bytes
    and the file's name; *unpack* the bytes of the one file inside; *endings* are those of its files' names.
    """

    name: str
    call: str
    begins: tuple[bytes, ...] = ()
    pattern: re.Pattern[bytes] | None = None
    looks: Callable[[FileBytes], bool] | None = None
    wordy: bool = False
    endings: tuple[str, ...] = ()
    read: Read | None = None
    unpack: Unpack | None = None
    sheets: bool = False
    out: str = say("Save or export the table as CSV, and give that file.")

    def recognises(self, file: FileBytes) -> bool:
        """Whether the bytes are of this format."""
        begun = file.data.startswith(self.begins) or (self.pattern and self.pattern.match(file.data[:4096]))
        if not begun or (self.wordy and file.is_plain):
            return False
        return self.looks is None or self.looks(file)


def unreadable(format: FileFormat, name: str) -> TableError:
    """The error for a format that velado names but does not read."""
    return TableError(
        say("'{name}' is {call}.", name=name, call=format.call),
        "velado does not read tables from it.",
        format.out,
    )


def damaged(format: FileFormat, name: str) -> TableError:
    """The error for a file that begins as *format* does and cannot be read to its end."""
    return TableError(
        say("'{name}' is not a readable {format} file.", name=name, format=format.name),
        say(
            "It begins or is named as {call}, but its content is damaged, cut short or of another format.",
            call=format.call,
        ),
        "Copy or export it anew; if it is CSV text, give it the ending .csv.",
    )
