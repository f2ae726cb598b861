"""The folder of one simulation: private, gone when the run ends, and swept by the next run if the process was killed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "vf-"
_LOCK = "lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that only this user may look into; it is removed afterwards, and what killed runs left is removed now.

    It is locked as long as this process lives, and the kernel lets go of the lock of a process that was killed: unlike a
    process number, a lock is never somebody else's.
    """
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = _locked(folder)
    try:
        yield folder
    finally:
        _remove(folder)
        if held is not None:
            os.close(held)


def sweep(place: Path) -> int:
    """How many folders of runs that live no more were removed from *place*; another user's are left alone."""
    if sys.platform == "win32":
        return 0
    import fcntl

    removed = 0
    for folder in place.glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # not a folder of ours, or gone by now
        try:
            with suppress(OSError):  # locked: its run lives
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
                removed += 1
        finally:
            os.close(handle)
    return removed


def _locked(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    # Locked before it has its name: nobody ever finds it unlocked while this process lives.
    unnamed = folder / f".{_LOCK}"
    handle = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(folder / _LOCK)
    return handle


def _remove(folder: Path) -> None:
    shutil.rmtree(folder / "rows", ignore_errors=True)  # true rows go first
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)  # Ray's processes may still write their last line
