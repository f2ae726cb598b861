"""The file of a history: entries tied to one another under the owner's key, appended, never changed; and its seal.

hash_n = HMAC-SHA256(key, hash_{n-1} || length(said_n) || said_n || body_n), hash_0 = 32 zero bytes. An entry is on the disk before `append`
returns, and only then does the seal, kept apart in the state folder, name it: an older copy put back, a copy that went its own way
and a copy elsewhere do not agree with their seal. A second seal goes with the history, wherever in the account it lies, by a number that
its first entry drew: it knows of what was entered in any copy, so that a release made while an older copy stood in place is not
forgotten once the newest is put back. What a killed run left of an entry is cut off: nothing was published after it.
Where rows of people who left are shown on, the rows of the newest release lie beside it, under a name that an entry gives; older ones
are removed once nothing names them, so that nobody who was forgotten stays in them.
One of the edges; mode 0600. Whoever holds the file open holds a lock, and a second run is refused at once.
"""

from __future__ import annotations

import glob
import hashlib
import hmac
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from velado.data.keys import Key
from velado.data.seals import START, Mark, Seal, appear, default_seal
from velado.data.staging import locked, reason_of
from velado.errors import HistoryError, LedgerError
from velado.randomness import secure
from velado.text import say

MAGIC = b"velado history 1\n"
_SIZES = struct.Struct("<4sQQ")
_ENTRY = b"vhe1"
_MAC = 32
_PIECE = 1 << 20


@dataclass(frozen=True, repr=False)
class HistoryEntry:
    """One entry: what it *said*, and the arrays of its *body* as bytes."""

    said: Mapping[str, Any]
    body: bytes
    hash: str

    def part(self, begin: int, length: int) -> bytes:
        """So many bytes of the body."""
        return self.body[begin : begin + length]


@dataclass(frozen=True, repr=False)
class StoredEntry:
    """An entry of an open file; parts of its body are read when they are asked for, since all bodies together need much memory."""

    said: Mapping[str, Any]
    handle: int
    begin: int
    length: int
    hash: str

    def part(self, begin: int, length: int) -> bytes:
        """So many bytes of the body, while the file is open."""
        return os.pread(self.handle, min(length, self.length - begin), self.begin + begin)


@dataclass
class HistoryFile:
    """An open history, held alone. *trouble* says why it may not be the newest copy; empty where its seals agree.

    *seal* is that of its path, *all_copies* that of every copy of it.
    """

    path: Path
    secret: bytes
    handle: int
    entries: list[StoredEntry] = field(default_factory=list)
    trouble: str = ""
    seal: Seal | None = None
    all_copies: Seal | None = None

    def append(self, said: Mapping[str, Any], body: bytes = b"") -> None:
        """The entry is on the disk, and the seal knows it."""
        if not self.entries:
            said = {**said, "history": secure().randbytes(16).hex()}
        text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        previous = self.entries[-1].hash if self.entries else START
        mac = _mac(self.secret, previous, text, body)
        try:
            begin = os.lseek(self.handle, 0, os.SEEK_END) + _SIZES.size + len(text)
            rest = memoryview(_SIZES.pack(_ENTRY, len(text), len(body)) + text + body + mac)
            while rest:
                rest = rest[os.write(self.handle, rest) :]
            os.fsync(self.handle)
        except OSError as error:
            raise _unusable(self.path, reason_of(error)) from None
        self.entries.append(StoredEntry(said, self.handle, begin, len(body), mac.hex()))
        try:
            if self.seal is not None and not self.trouble:
                self.seal.write(Mark(len(self.entries), mac.hex()))
            self._told_all_copies(Mark(len(self.entries), mac.hex()))
        except LedgerError as error:
            raise _unusable(self.path, error.what) from None

    def _told_all_copies(self, mark: Mark) -> None:
        """The seal of all copies has *mark* as its newest, so that every other copy disagrees with it from now on."""
        if self.all_copies is None:
            place = _place_of_all(self.entries)
            if place is None:
                return
            self.all_copies = Seal(place) if place.exists() else Seal.create(place)
        newest = self.all_copies.read().number
        self.all_copies.write(mark if mark.number > newest else Mark(newest + 1, mark.hash))

    def seal_anew(self, reason: str) -> None:
        """A history that came here without its seal has one again; an entry says so for good, whose word it was and why.

        Where a seal stands that knows better (an older copy, one that went another way), and where nothing is amiss, it is an error.
        """
        if not self.trouble or self.seal is not None or _went_on(self.entries, self.all_copies):
            raise HistoryError(
                say("The history '{path}' has its seal.", path=self.path.name)
                if not self.trouble
                else say(
                    "The seal of '{path}' knows of a newer copy ({trouble}).",
                    path=self.path.name,
                    trouble=self.trouble,
                ),
                "A new seal is for a history that was moved to another place, machine or account.",
                "Use it as it is."
                if not self.trouble
                else "Put the newest copy back; if it is lost, begin a new history.",
            )
        # The entry comes first: a run killed in between leaves a history that says it was sealed anew.
        self.append({"kind": "sealed", "reason": reason, "after": len(self.entries)})
        place = default_seal(_identity(self.path))
        try:
            place.unlink(missing_ok=True)  # a damaged one
            self.seal = Seal.create(place)
            self.seal.write(Mark(len(self.entries), self.entries[-1].hash))
        except (OSError, LedgerError) as error:
            reason = error.what if isinstance(error, LedgerError) else reason_of(error)
            raise _unusable(self.path, reason) from None
        self.trouble = ""

    def rows(self) -> bytes | None:
        """The rows that lie beside it, None where no entry names any; lost or altered ones are an error."""
        name = self._named()
        if name is None:
            return None
        try:
            content = self._place(name).read_bytes()
        except OSError as error:
            raise _no_rows(self.path, reason_of(error)) from None
        if not hmac.compare_digest(hashlib.sha256(content).hexdigest(), name):
            raise _no_rows(self.path, say("they are not those that were written"))
        return content

    def put_rows(self, content: bytes) -> str:
        """The rows lie beside it, durably; an entry that is then appended names them by what is returned."""
        name = hashlib.sha256(content).hexdigest()
        try:
            with suppress(FileExistsError):
                appear(self._place(name), content)
        except OSError as error:
            raise _unusable(self.path, reason_of(error)) from None
        return name

    def sweep(self) -> None:
        """Rows that no entry needs any more are gone."""
        name = self._named()
        for place in self.path.parent.glob(glob.escape(self.path.name) + ".rows-*"):
            if name is None or place != self._place(name):
                place.unlink(missing_ok=True)

    def _named(self) -> str | None:
        return next((str(one.said["rows"]) for one in reversed(self.entries) if "rows" in one.said), None)

    def _place(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.rows-{name[:16]}")


def create_history(path: Path, key: Key) -> None:
    """A new history with its seal stands at *path*; where one stands or stood, it is an error.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, VELADO_STATE=home):
    ...     create_history(path := Path(home) / "visits.history", Key(bytes(range(40))))
    ...     with history_held(path, Key(bytes(range(40)))) as file:
    ...         len(file.entries), str(file.trouble)
    (0, '')
    """
    place = default_seal(_identity(path))
    if path.exists():
        raise HistoryError(
            say("There is a file '{path}' already.", path=path.name),
            "A history in its place would know nothing of the releases it may hold.",
            "Use it, if it is your history, or name another file.",
        )
    if place.exists():
        raise HistoryError(
            say("A history stood at '{path}' before.", path=path.name),
            "An empty one in its place would know nothing of the releases it held.",
            "Put its newest copy back, or begin a new one under another name.",
        )
    try:
        appear(path, MAGIC + key.fingerprint.encode() + b"\n")
    except OSError as error:
        raise _unusable(path, reason_of(error)) from None
    try:
        Seal.create(place).close()
    except LedgerError as error:
        raise _unusable(path, error.what) from None


@contextmanager
def history_held(path: Path, key: Key) -> Iterator[HistoryFile]:
    """The history at *path*, every entry checked, held alone until the end; an edited one is an error."""
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise _unusable(path, say("it is not there")) from None
    except OSError as error:
        raise _unusable(path, reason_of(error)) from None
    seal, file = None, None
    try:
        if not locked(handle):
            raise HistoryError(
                say("Another run is using the history '{path}'.", path=path.name),
                "Two releases made at once would not know of one another.",
                "Wait until it has ended, and run this again.",
            )
        file = HistoryFile(path, key.seed_for("history"), handle)
        _read(file, key)
        file.trouble, seal = _compared(file)
        file.seal = seal
        place = _place_of_all(file.entries)
        if place is not None and place.exists():
            file.all_copies = _opened(place, path)
            if not file.trouble and _went_on(file.entries, file.all_copies):
                file.trouble = say("another copy of it went on, and releases left that are not in this one")
        yield file
    finally:
        if seal is not None:
            seal.close()
        if file is not None and file.all_copies is not None:
            file.all_copies.close()
        os.close(handle)


def _read(file: HistoryFile, key: Key) -> None:
    size = os.fstat(file.handle).st_size
    head = MAGIC + key.fingerprint.encode() + b"\n"
    found = os.pread(file.handle, len(head), 0)
    if not found.startswith(MAGIC):
        raise _unusable(file.path, say("it is no history"))
    if found != head:
        raise _unusable(file.path, say("it was made under another key"))
    at, previous = len(head), START
    while at < size:
        sizes = os.pread(file.handle, _SIZES.size, at)
        if len(sizes) < _SIZES.size:
            break
        magic, said, body = _SIZES.unpack(sizes)
        end = at + _SIZES.size + said + body + _MAC
        if magic != _ENTRY:
            raise _edited(file, len(file.entries) + 1)
        if end > size:
            break
        text = os.pread(file.handle, said, at + _SIZES.size)
        begin = at + _SIZES.size + said
        whole = _mac_of(file.secret, previous, text)
        for piece in range(begin, begin + body, _PIECE):
            whole.update(os.pread(file.handle, min(_PIECE, begin + body - piece), piece))
        mac = os.pread(file.handle, _MAC, begin + body)
        if not hmac.compare_digest(mac, whole.digest()):
            raise _edited(file, len(file.entries) + 1)
        file.entries.append(StoredEntry(json.loads(text), file.handle, begin, body, mac.hex()))
        at, previous = end, mac.hex()
    if at < size:  # a run was killed while it wrote
        os.ftruncate(file.handle, at)


def _compared(file: HistoryFile) -> tuple[str, Seal | None]:
    """Why this may not be the newest copy, or nothing; and its seal."""
    try:
        seal = Seal(default_seal(_identity(file.path)))
        mark = seal.read()
    except LedgerError:
        return say("its seal is missing or damaged: it was moved, copied, or the seal was lost"), None
    if mark.number > len(file.entries):
        return say("it is an older copy: entries are missing at its end"), seal
    if mark.number and file.entries[mark.number - 1].hash != mark.hash:
        return say("it went another way than the one that was sealed"), seal
    return "", seal


def _place_of_all(entries: list[StoredEntry]) -> Path | None:
    """Where the seal of all copies lies; None where the history is empty, or was begun before there was one."""
    name = entries[0].said.get("history") if entries else None
    return None if name is None else default_seal(f"all copies of history {name}")


def _opened(place: Path, path: Path) -> Seal:
    try:
        return Seal(place)
    except LedgerError as error:
        raise _unusable(path, error.what) from None


def _went_on(entries: list[StoredEntry], all_copies: Seal | None) -> bool:
    """Whether another copy has entries that are not among these."""
    if all_copies is None:
        return False
    mark = all_copies.read()
    return mark.number > len(entries) or bool(mark.number and entries[mark.number - 1].hash != mark.hash)


def _identity(path: Path) -> str:
    return "history " + os.path.realpath(path)


def _mac(secret: bytes, previous: str, text: bytes, body: bytes) -> bytes:
    whole = _mac_of(secret, previous, text)
    whole.update(body)
    return whole.digest()


def _mac_of(secret: bytes, previous: str, text: bytes) -> hmac.HMAC:
    return hmac.new(secret, bytes.fromhex(previous) + struct.pack("<Q", len(text)) + text, "sha256")


def _edited(file: HistoryFile, number: int) -> HistoryError:
    return HistoryError(
        say("Entry {number} of the history '{path}' does not hold.", number=number, path=file.path.name),
        "It is not what was written, so nothing can be said about earlier releases.",
        "Put its newest untouched copy back.",
    )


def _unusable(path: Path, reason: str) -> HistoryError:
    return HistoryError(
        say("The history '{path}' cannot be used ({reason}).", path=path.name, reason=reason),
        "What earlier releases showed is not known without it, and nothing was published.",
        "Check the path, the permissions and --key, or make one with `velado history create FILE`.",
    )


def _no_rows(path: Path, reason: str) -> HistoryError:
    return HistoryError(
        say("The rows beside the history '{path}' cannot be used ({reason}).", path=path.name, reason=reason),
        "Rows of people who left are shown on from them, and nothing was published.",
        "Put the newest copies of the history and of the file FILE.rows-... beside it back, or begin a new history.",
    )
