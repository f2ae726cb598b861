"""The journal: messages that a broker will not send again, on the disk before they are confirmed.

Entries are length, checksum, arrival and payload; the last one may be torn by a crash, was then never confirmed, and is cut off.
Files are private, and those before the position that the state holds are removed.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from velado.release.stream.connectors.connector import MOST, Arrived

_HEAD = struct.Struct("<IId")  # length, checksum, arrival
_SEGMENT = 1 << 26


class Journal:
    """Messages in the order of their arrival; a position counts bytes since the first of all.

    >>> import tempfile
    >>> from contextlib import closing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with closing(Journal(Path(folder))) as journal:
    ...         end = journal.append([b"a", b"b"], [1.0, 2.0])
    ...     with closing(Journal(Path(folder))) as again:
    ...         [(arrived, data) for arrived, data, _ in again.read(0)], end
    ([(1.0, b'a'), (2.0, b'b')], 34)
    """

    def __init__(self, folder: Path, durable: bool = True) -> None:
        self._folder, self._durable = folder, durable
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        last = self._segments()[-1:]
        self._begin = last[0] if last else 0
        self.end = self._begin
        for _, _, after in self._entries(self._begin):
            self.end = after
        self._file = self._opened(self._begin)
        self._file.truncate(self.end - self._begin)
        self._file.seek(0, os.SEEK_END)

    def append(self, payloads: Sequence[bytes], arrived: Sequence[float]) -> int:
        """The position after *payloads*, which are then on the disk."""
        data = b"".join(
            _HEAD.pack(len(one), zlib.crc32(one), at) + one for one, at in zip(payloads, arrived, strict=True)
        )
        self._file.write(data)
        self._file.flush()
        if self._durable:
            os.fsync(self._file.fileno())
        self.end += len(data)
        if self.end - self._begin > _SEGMENT:
            self._file.close()
            self._begin = self.end
            self._file = self._opened(self._begin)
        return self.end

    def close(self) -> None:
        """Nothing more is appended."""
        self._file.close()

    def read(self, position: int) -> Iterator[tuple[float, bytes, int]]:
        """Arrival, payload and the position behind it, of everything from *position* on."""
        for begin in self._segments():
            for arrived, data, after in self._entries(begin):
                if after > position:
                    yield arrived, data, after

    def trim(self, position: int) -> None:
        """Remove the files that end before *position*."""
        begins = self._segments()
        for begin, following in pairwise(begins):
            if following <= position:
                self._path(begin).unlink(missing_ok=True)

    def _entries(self, begin: int) -> Iterator[tuple[float, bytes, int]]:
        path, at = self._path(begin), begin
        if not path.exists():
            return
        with path.open("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum, arrived = _HEAD.unpack(head)
                data = file.read(length)
                if len(data) < length or zlib.crc32(data) != checksum:
                    return
                at += _HEAD.size + length
                yield arrived, data, at

    def _segments(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("*.journal"))

    def _path(self, begin: int) -> Path:
        return self._folder / f"{begin:020d}.journal"

    def _opened(self, begin: int):  # type: ignore[no-untyped-def]
        handle = os.open(self._path(begin), os.O_RDWR | os.O_CREAT, 0o600)
        return os.fdopen(handle, "r+b")


class Replay:
    """What a journal holds from a position on, a part at a time, before anything new is read.

    >>> import tempfile
    >>> from contextlib import closing
    >>> with tempfile.TemporaryDirectory() as folder, closing(Journal(Path(folder))) as journal:
    ...     end = journal.append([b"a"], [1.0])
    ...     again = Replay(journal, 0)
    ...     again.some().payloads, again.some()
    ([b'a'], None)
    """

    def __init__(self, journal: Journal, position: int) -> None:
        self._entries = iter(journal.read(position))

    def some(self) -> Arrived | None:
        """The next of it; None where nothing is left."""
        part = [entry for _, entry in zip(range(MOST), self._entries, strict=False)]
        if not part:
            return None
        return Arrived([data for _, data, _ in part], [at for at, _, _ in part], part[-1][2])
