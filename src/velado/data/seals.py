"""The seal of a ledger: a small file kept apart from it that knows the key and how far the chain had come.

A ledger alone cannot tell that an older copy of it was put back. The seal can: the entry it names must be there with
the hash it names. It is written after the ledger's commit and before a reservation is handed out, so no answer is ever
drawn that the seal does not know of; a crash in between leaves the ledger ahead of its seal, which is accepted.

What it cannot see: ledger and seal put back, or deleted, together, as from an image of the whole disk. Against that there are the
receipts that analysts hold (`velado ledger verify --receipt`). Whoever reads the seal can forge the ledger: mode 0600.
Layout: a header with key and name of the ledger, then two slots written in turn, each in its own sector and with its
own checksum, so that a torn write leaves the other one whole. Locks need a POSIX system and a local file system.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from velado.data.keys import state_folder
from velado.errors import LedgerError
from velado.randomness import secure
from velado.text import say

START = "0" * 64
"""What stands before the first entry of a chain."""
MAGIC = b"velado seal 1\n\0\0"
SECTOR = 4096
_HEADER = struct.Struct("<16s32s16s32s")
_SLOT = struct.Struct("<Q32s32s")
PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""


@dataclass(frozen=True)
class Mark:
    """An entry the seal knows: its number and hash. Number 0: the ledger was about to be made."""

    number: int
    hash: str


class Keeper:
    """Who holds the key of a ledger and remembers its newest sealed entry; this one is gone with its process."""

    def __init__(self) -> None:
        self.key, self.ledger = secure().randbytes(32), secure().randbytes(16).hex()
        self._mark = Mark(0, START)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else writes the ledger meanwhile."""
        yield

    def read(self) -> Mark:
        """The newest mark."""
        return self._mark

    def write(self, mark: Mark) -> None:
        """The mark is as durable afterwards as the keeper is."""
        self._mark = mark

    def close(self) -> None:
        """Give back what is open."""


def default_seal(identity: str) -> Path:
    """Where the seal of a ledger lies unless told: in the state folder, by the ledger's address."""
    name = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
    return state_folder() / "seals" / (name + ".seal")


class Seal(Keeper):
    """An open seal file. One object belongs to one process; its lock keeps processes apart, not threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            here = os.fstat(self._file)
            self._opened = (here.st_dev, here.st_ino)
        except OSError as error:
            raise _unusable(path, str(error.strerror)) from None
        try:
            magic, self.key, name, check = _HEADER.unpack(os.pread(self._file, _HEADER.size, 0))
        except (struct.error, OSError):
            self.close()
            raise _unusable(path, say("it is cut short or a folder")) from None
        if magic != MAGIC or not hmac.compare_digest(check, hashlib.sha256(magic + self.key + name).digest()):
            self.close()
            raise _unusable(path, say("it is not a seal, or was damaged"))
        self.ledger = name.hex()
        self._raw = b""
        self._marks: tuple[Mark | None, Mark | None] = (None, None)

    @classmethod
    def create(cls, path: Path) -> Seal:
        """A new seal with a new key stands at *path*, whole and durable; an existing one is an error."""
        key, name = secure().randbytes(32), secure().randbytes(16)
        head = _HEADER.pack(MAGIC, key, name, hashlib.sha256(MAGIC + key + name).digest())
        slot = _slot(key, Mark(0, START))
        try:
            _private_folder(path.parent)
            appear(path, head.ljust(SECTOR, b"\0") + slot.ljust(SECTOR, b"\0") + slot)
        except FileExistsError:
            raise _unusable(path, say("a seal is there already")) from None
        except OSError as error:
            raise _unusable(path, str(error.strerror)) from None
        return cls(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other process writes the ledger meanwhile; LedgerError when one does not finish within half a minute."""
        # Imported here, so that a ledger in memory works on systems without it.
        import fcntl

        deadline, pause = time.monotonic() + PATIENCE, 0.0002
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LedgerError(
                        "Another process has held the ledger for half a minute.",
                        "Two writers at once could spend the same budget twice.",
                        "Try again, and look for a stopped process that uses this ledger.",
                    ) from None
                time.sleep(pause)
                pause = min(pause * 1.5, 0.002)
            except OSError as error:
                raise _unusable(self.path, str(error.strerror)) from None
        try:
            self._still_there()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def read(self) -> Mark:
        """The newest of the two slots that is whole."""
        self._still_there()
        marks = self._slots()
        found = [mark for mark in marks if mark is not None]
        if not found:
            raise _unusable(self.path, say("both of its marks are damaged"))
        return max(found, key=lambda mark: mark.number)

    def write(self, mark: Mark) -> None:
        """The mark is on the disk, in the slot that does not hold the newest."""
        first, second = self._slots()
        older = 1 if first is None or (second is not None and first.number <= second.number) else 2
        try:
            os.pwrite(self._file, _slot(self.key, mark), older * SECTOR)
            getattr(os, "fdatasync", os.fsync)(self._file)
        except OSError as error:
            raise _unusable(self.path, str(error.strerror)) from None

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def _slots(self) -> tuple[Mark | None, Mark | None]:
        try:
            raw = os.pread(self._file, SECTOR + _SLOT.size, SECTOR)
        except OSError as error:
            raise _unusable(self.path, str(error.strerror)) from None
        # The same bytes under the same key are the same marks; between two writes they are read many times.
        if raw != self._raw:
            self._marks = _mark(self.key, raw[: _SLOT.size]), _mark(self.key, raw[SECTOR:])
            self._raw = raw
        return self._marks

    def _still_there(self) -> None:
        try:
            there = os.stat(self.path)
        except OSError:
            raise missing_seal(self.path) from None
        if (there.st_dev, there.st_ino) != self._opened:
            raise _unusable(self.path, say("it was replaced while in use"))


def _private_folder(folder: Path) -> None:
    """The folder is there; those made for it are the user's alone, for who may rename a folder may swap a seal."""
    for part in (*reversed(folder.parents), folder):
        if not part.is_dir():
            part.mkdir(mode=0o700, exist_ok=True)


def appear(path: Path, content: bytes) -> None:
    """A whole and durable file stands at *path*; FileExistsError where one stood before, which is left as it is."""
    handle, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A link fails where a file is, a rename would replace it.
        os.link(draft, path)
    finally:
        os.unlink(draft)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """The names in *folder* are durable too, where the system lets a folder be synced."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _slot(key: bytes, mark: Mark) -> bytes:
    body = struct.pack("<Q32s", mark.number, bytes.fromhex(mark.hash))
    return body + hmac.digest(key, b"slot" + body, "sha256")


def _mark(key: bytes, raw: bytes) -> Mark | None:
    if len(raw) != _SLOT.size:
        return None
    number, digest, check = _SLOT.unpack(raw)
    if not hmac.compare_digest(check, hmac.digest(key, b"slot" + raw[:40], "sha256")):
        return None
    return Mark(number, digest.hex())


def missing_seal(path: Path) -> LedgerError:
    """The error for a ledger whose seal is not there."""
    return LedgerError(
        say("The seal of the ledger is missing: {path}.", path=path),
        "Without it nobody can tell whether this ledger is the newest, so nothing is answered.",
        "Put the seal back, or name where it is (--seal); if it is lost, treat the whole budget as spent.",
    )


def _unusable(path: Path, reason: str) -> LedgerError:
    return LedgerError(
        say("The seal of the ledger cannot be used: {path}: {reason}.", path=path, reason=reason),
        "The seal proves that the ledger is the newest one, so nothing is answered without it.",
        "Mend the file's place and permissions, or put its newest copy back.",
    )
