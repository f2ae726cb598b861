"""Staging: what is being written stands in a private place beside its target until it is whole.

The place is a folder `.NAME.velado-XXXXXXXX` of mode 0700, or one file of mode 0600, from the moment it exists. Its writer
holds a lock on it. The system takes the lock away when the writer dies, by whatever means; so a place whose lock is free was
left by a killed run, and the next run for the same target removes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

PRIVATE = "private"
"""The sub-folder that only its owner may read."""

_LOCK, _NEW, _OLD = "lock", "new", "old"  # all that a staging folder ever holds
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A private folder beside *target* that no other run removes; afterwards it is gone, with all it holds."""
    folder, handle = _stage(target)
    try:
        yield folder
    finally:
        os.close(handle)  # which also gives the lock back
        # If an old release could not be put back, it stays for the next run to put back.
        if not (folder / _OLD).exists() or target.exists():
            shutil.rmtree(folder, ignore_errors=True)


def _stage(target: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        folder.chmod(0o700)  # whatever the umask took away
        try:
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # another run swept the folder before it was locked
        locked(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return folder, handle
        os.close(handle)  # swept between the two


def fill(staging: Path, files: Mapping[str, bytes]) -> Path:
    """The folder in *staging* that holds all *files*, on the disk and not only in the system's memory.

    A name may have one sub-folder. What stands in `private` is its owner's from the first moment (folder 0700,
    files 0600, whatever the umask); the rest is 0755 and 0644, or less where the umask says so.
    """
    new = staging / _NEW
    new.mkdir(0o755)
    folders = sorted({PurePosixPath(name).parts[0] for name in files if "/" in name})
    for name in folders:
        _make_folder(new / name, private=name == PRIVATE)
    for name, data in files.items():
        _make_file(new / name, data, private=PurePosixPath(name).parts[0] == PRIVATE and "/" in name)
    for folder in (*(new / name for name in folders), new):
        sync_folder(folder)
    return new


def _make_folder(folder: Path, private: bool) -> None:
    folder.mkdir(0o700 if private else 0o755)
    if private:
        folder.chmod(0o700)


def _make_file(path: Path, data: bytes, private: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    try:
        if private:
            path.chmod(0o600)
        _write_through(handle, data)
    finally:
        os.close(handle)


def put_file(path: Path, data: bytes, private: bool) -> None:
    """*data* stands in *path*, on the disk, with mode 0600 if *private*, else 0644; or nothing has changed."""
    while True:
        handle, name = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)  # mode 0600
        locked(handle, wait=True)
        if os.fstat(handle).st_nlink:
            break
        os.close(handle)  # another run swept the file before it was locked
    scratch = Path(name)
    try:
        scratch.chmod(0o600 if private else 0o644)
        _write_through(handle, data)
        if os.name != "posix":  # Windows renames no open file, and has no lock that would have to be kept
            os.close(handle)
            handle = -1
        scratch.replace(path)
    finally:
        if handle >= 0:
            os.close(handle)
        scratch.unlink(missing_ok=True)


def _write_through(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # the system may take less than it is offered
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """The names in *folder* are on the disk. Where a system cannot promise that of a folder, nothing happens."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def put_in_place(new: Path, target: Path, replace: bool) -> None:
    """*target* is what *new* was. With *replace*, what stood there is where *new* was, or beside it.

    On Linux the two names are exchanged in one step, so that *target* is never missing. Elsewhere, and on file
    systems that cannot, the old one steps aside first; if the new one then fails, the old one is put back.
    """
    if not (replace and target.exists()):
        new.rename(target)  # which fails if another run has put something there meanwhile
    elif not _exchange(new, target):
        old = new.with_name(_OLD)
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """True: the names have changed places in one step. False: this system or file system cannot, nothing is done."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # no such call: not Linux, or a C library without it
        return False
    if exchange(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code))


def sweep(target: Path) -> None:
    """What killed runs for *target* left beside it is gone; what a live process is writing stays.

    An old release that a killed run had set aside is put back if nothing stands in its place. Only places of this
    user are touched, and only if they hold nothing but what staging makes. Cost: one listing of the parent.
    """
    if os.name != "posix":  # without locks the dead cannot be told from the living
        return
    name = re.compile(re.escape(_prefix(target)) + r"[a-z0-9_]{8}")
    try:
        found = [target.parent / entry for entry in os.listdir(target.parent) if name.fullmatch(entry)]
    except OSError:  # no such folder yet; or writing will say what is wrong
        return
    for place in found:
        with suppress(OSError):  # a place that cannot be removed is no reason not to write
            _sweep_one(place, target)


def _sweep_one(place: Path, target: Path) -> None:
    status = place.lstat()
    if status.st_uid != os.geteuid():
        return
    if stat.S_ISREG(status.st_mode):
        handle = os.open(place, os.O_RDWR | os.O_NOFOLLOW)
    elif stat.S_ISDIR(status.st_mode) and set(os.listdir(place)) <= {_LOCK, _NEW, _OLD}:
        # A run killed before it made its lock has left a folder without one.
        handle = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    else:
        return
    try:
        if not locked(handle):
            return
        if stat.S_ISREG(status.st_mode):
            place.unlink()
            return
        if (place / _OLD).exists() and not target.exists():
            (place / _OLD).rename(target)
        shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(handle)


def locked(handle: int, wait: bool = False) -> bool:
    """True: this process holds the open file alone, until it closes it or dies. Without locks: True on Windows."""
    try:
        import fcntl
    except ImportError:  # Windows: an open file is not locked
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _prefix(target: Path) -> str:
    return f".{target.name}.velado-"
