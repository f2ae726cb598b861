"""One zip of named files, of which there is one form alone: who reads one writes it again and compares the bytes.

So nothing can hide in it: no second file of a name, none outside the list, no comment, no gap, no other time stamp, and no
compressed file that grows without end, for nothing in it is compressed.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Mapping

from velado.errors import EvidenceRefused
from velado.text import say

LARGEST = 32 << 20
"""Bytes of a pack at most; a pack of figures and pages has a hundredth of it."""
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """The zip of *files*: stored, sorted by name, without times. The same files give the same bytes.

    >>> write_archive({"a": b"1"}) == write_archive({"a": b"1"})
    True
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, files[name])
    return out.getvalue()


def read_archive(content: bytes, expected: Collection[str]) -> dict[str, bytes]:
    """The files of a pack, if it holds exactly the *expected* ones and is written as `write_archive` does.

    >>> read_archive(write_archive({"a": b"1"}), ["a"])
    {'a': b'1'}
    >>> read_archive(write_archive({"a": b"1", "b": b"2"}), ["a"])
    Traceback (most recent call last):
    velado.errors.EvidenceRefused: The pack does not hold exactly the files of an evidence pack. What is not listed is signed by nobody, and what is missing cannot be checked. Ask for the pack again, from who signed it.
    """
    if len(content) > LARGEST:
        raise EvidenceRefused(
            say("The pack is larger than {largest:,} bytes.", largest=LARGEST),
            "No evidence pack is, and it could fill the memory.",
            "Ask for the pack again, from who signed it.",
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if sorted(entry.filename for entry in entries) != sorted(expected):
                raise EvidenceRefused(
                    "The pack does not hold exactly the files of an evidence pack.",
                    "What is not listed is signed by nobody, and what is missing cannot be checked.",
                    "Ask for the pack again, from who signed it.",
                )
            if any(
                entry.compress_type != zipfile.ZIP_STORED
                or entry.file_size != entry.compress_size
                or entry.file_size > len(content)
                for entry in entries
            ):
                raise _other_form()
            files = {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, OSError, EOFError):
        raise EvidenceRefused(
            "The file is not a zip archive that can be read whole.",
            "It was cut short or changed, or is another file.",
            "Ask for the pack again, from who signed it.",
        ) from None
    if write_archive(files) != content:
        raise _other_form()
    return files


def _other_form() -> EvidenceRefused:
    return EvidenceRefused(
        "The archive is not written as velado writes a pack.",
        "It was packed anew or something was put between its files, where a signature does not reach.",
        "Ask for the pack again, from who signed it, as it was written.",
    )
