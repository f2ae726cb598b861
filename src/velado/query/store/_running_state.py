"""Where a running total keeps what the next delivery needs: exact sums of unfinished blocks, and who was counted how often.

It is as private as the rows: a folder of the user's alone beside the seals, known by the ledger's own name and the series. Which file
counts is said by the ledger, which holds its keyed hash, so an older copy or an edited one is refused. A file is written whole before the ledger
names it, and earlier ones go after that: whoever dies between the two leaves one too many, never one too few.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from velado.data.keys import state_folder
from velado.data.seals import appear
from velado.data.staging import locked
from velado.errors import LedgerError
from velado.query.store._ledger import ChainedLedger
from velado.randomness import secure
from velado.text import say

_ENDING = ".state"


class RunningShelf:
    """The states of one series: files for a ledger that lasts, memory for one that does not.

    >>> from velado.query.budget import Budget
    >>> from velado.query.store import memory_ledger
    >>> shelf = RunningShelf(memory_ledger("stays", Budget.epsilon(1)), "weekly")
    >>> mark = shelf.put(3, b"sums")
    >>> shelf.find(3, mark), shelf.find(3, "other"), shelf.releases()
    (b'sums', None, [3])
    """

    def __init__(self, ledger: ChainedLedger, series: str) -> None:
        name = hashlib.sha256(f"{ledger.name}:{series}".encode()).hexdigest()[:32]
        self._folder = state_folder() / "running" / name if ledger.lasting else None
        self._memory: dict[str, bytes] = {}
        self.key = self._key()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time works on the series."""
        if self._folder is None:
            yield
            return
        handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            locked(handle, wait=True)
            yield
        finally:
            os.close(handle)

    def put(self, release: int, content: bytes) -> str:
        """The content is kept, durably; what is returned is its keyed hash, by which the ledger names it."""
        mark = self.digest(content)
        if self._folder is None:
            self._memory[f"{release}-{mark}"] = content
            return mark
        try:
            with suppress(FileExistsError):
                appear(self._folder / f"{release}-{mark}{_ENDING}", content)
        except OSError as error:
            raise _unusable(str(error.strerror)) from None
        return mark

    def find(self, release: int, mark: str) -> bytes | None:
        """The content of this hash, if it is there and was not changed."""
        if self._folder is None:
            return self._memory.get(f"{release}-{mark}")
        try:
            content = (self._folder / f"{release}-{mark}{_ENDING}").read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(str(error.strerror)) from None
        return content if hmac.compare_digest(self.digest(content), mark) else None

    def releases(self) -> list[int]:
        """The releases of which something is kept, the newest first."""
        names = list(self._memory) if self._folder is None else [one.stem for one in self._files()]
        numbers = [name.partition("-")[0] for name in names]
        # What somebody else laid there is none of ours.
        return sorted(
            {int(number) for number in numbers if number.isascii() and number.isdigit()}, reverse=True
        )

    def forget_but(self, release: int, mark: str) -> None:
        """Only this one is left."""
        kept = f"{release}-{mark}"
        self._memory = {name: held for name, held in self._memory.items() if name == kept}
        for file in self._files():
            if file.stem != kept:
                file.unlink(missing_ok=True)

    def digest(self, content: bytes) -> str:
        """The hash of *content* under the series' own key: it tells nothing to whoever has not that key."""
        return hmac.digest(self.key, content, "sha256").hex()

    def _files(self) -> list[Path]:
        return [] if self._folder is None else [*self._folder.glob(f"*-*{_ENDING}")]

    def _key(self) -> bytes:
        if self._folder is None:
            return secure().randbytes(32)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):
                if not (self._folder / "key").exists():
                    appear(self._folder / "key", secure().randbytes(32))
            return (self._folder / "key").read_bytes()
        except OSError as error:
            raise _unusable(str(error.strerror)) from None


def _unusable(reason: str) -> LedgerError:
    return LedgerError(
        say(
            "What a running total keeps between deliveries cannot be read or written ({reason}).",
            reason=reason,
        ),
        "Without it the next total cannot be made.",
        "Make the state folder readable and writable, or set VELADO_STATE to the one that was used before.",
    )
