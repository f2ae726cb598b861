"""Staging: what is being written stands in a private place beside its target until it is whole.

The place is a folder `.NAME.velado-XXXXXXXX` of mode 0700, or one file of mode 0600, from the moment it exists. Its writer
holds a lock on it. The system takes the lock away when the writer dies, by whatever means; so a place whose lock is free was
left by a killed run, and the next run for the same target removes it.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath

from velado.errors import OutputError
from velado.text import say

PRIVATE = "private"
"""The sub-folder that only its owner may read."""

_LOCK, _NEW, _OLD, _SCRATCH = "lock", "new", "old", "scratch"  # all that a staging folder ever holds
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>


@contextmanager
def _staging_folder(target: Path) -> Iterator[Path]:
    """A private folder beside *target* that no other run removes; afterwards it is gone, with all it holds."""
    folder, handle = _stage(target)
    try:
        yield folder
    finally:
        os.close(handle)  # which also gives the lock back
        # If an old release could not be put back, it stays for the next run to put back.
        if not (folder / _OLD).exists() or target.exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder in the system's place for such, for rows on their way; what killed runs of this user left there is gone.

    >>> with scratch_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    target = Path(tempfile.gettempdir(), "rows")
    _sweep(target)
    with _staging_folder(target) as place:
        yield StagedFolder(place).scratch


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


@dataclass(frozen=True)
class StagedFolder:
    """A folder that is being filled in a private place, and that stands under its name only when it is whole.

    >>> StagedFolder(Path("place")).new.name
    'new'
    """

    place: Path
    folder: Path = Path()

    @property
    def new(self) -> Path:
        """What will stand under the folder's name."""
        return self.place / _NEW

    @property
    def scratch(self) -> Path:
        """A private folder for what a run writes on its way; gone with the staging place."""
        folder = self.place / _SCRATCH
        folder.mkdir(0o700, exist_ok=True)
        return folder

    def file(self, name: str) -> Path:
        """Where a file of that name, of a sub-folder that may leave, is to be written by somebody else."""
        _refuse_names([name])
        self._folders([name])
        return self.new / name

    def put(self, files: Mapping[str, bytes]) -> None:
        """All *files* are in the folder, on the disk and not only in the system's memory.

        A name may have one sub-folder. What stands in `private` is its owner's from the first moment (folder 0700,
        files 0600, whatever the umask); the rest is 0755 and 0644, or less where the umask says so.
        """
        self._folders(files)
        for name, data in files.items():
            _make_file(self.new / name, data, private=PurePosixPath(name).parts[0] == PRIVATE and "/" in name)

    def pour(self, name: str, pieces: Iterable[bytes]) -> str:
        """The *pieces* are in a file of the folder that may leave, one after the other; what is returned is its SHA-256."""
        _refuse_names([name])
        self.put({name: b""})
        digest = hashlib.sha256()
        with (self.new / name).open("ab") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        return digest.hexdigest()

    def read(self, name: str) -> bytes:
        """What was put or poured there, as it stands on the disk."""
        return (self.new / name).read_bytes()

    def settle(self) -> Path:
        """The folder, with all it holds brought to the disk."""
        folders = [entry for entry in self.new.iterdir() if entry.is_dir()]
        for folder in folders:
            for path in folder.iterdir():
                _sync_file(path)
        for folder in (*folders, self.new):
            _sync_folder(folder)
        return self.new

    def _folders(self, names: Iterable[str]) -> None:
        self.new.mkdir(0o755, exist_ok=True)
        for name in sorted({PurePosixPath(name).parts[0] for name in names if "/" in name}):
            if not (self.new / name).is_dir():
                _make_folder(self.new / name, private=name == PRIVATE)


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
    """*data* stands in *path*, on the disk, with mode 0600 if *private*, else 0644; or nothing has changed.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     put_file(Path(folder) / "notes", b"private", private=True)
    ...     oct((Path(folder) / "notes").stat().st_mode & 0o777), (Path(folder) / "notes").read_bytes()
    ('0o600', b'private')
    """
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


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
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


def _put_in_place(new: Path, target: Path, replace: bool) -> None:
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


def _sweep(target: Path) -> None:
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
    elif stat.S_ISDIR(status.st_mode) and set(os.listdir(place)) <= {_LOCK, _NEW, _OLD, _SCRATCH}:
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
    """True: this process holds the open file alone, until it closes it or dies. Without locks: True on Windows.

    >>> file = tempfile.TemporaryFile()
    >>> locked(file.fileno()), file.close()
    (True, None)
    """
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


# Writing: files and folders that are either whole or not there at all.

PUBLIC = "release"
"""The sub-folder that leaves the house; the other one, `private`, stays."""

MANIFEST = "manifest.json"
PUBLIC_FILES = frozenset({"table.csv", "table.parquet", "values.csv", MANIFEST, "about.html"})
"""What `release/` may hold beside the tables its manifest lists."""

PRIVATE_FILES = frozenset(
    {"report.html", "report.md", "report.json", "recipe.toml", "schema.toml"}
    | {"owner.key", "rows.csv", "measured.json"}
)
"""What `private/` may hold."""

FLAT_FILES = frozenset(
    {"table.csv", "table.parquet", MANIFEST}
    | {"report.html", "report.md", "report.json", "recipe.toml", "schema.toml"}
)
"""What a release without sub-folders may hold beside the tables its manifest lists."""


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, read piece by piece.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t").write_bytes(b"")
    ...     file_digest(Path(folder, "t"))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def day_of_writing() -> date:
    """Today, in UTC; or the day that SOURCE_DATE_EPOCH names, so that a run can be repeated on another day.

    >>> day_of_writing() >= date(1970, 1, 1)
    True
    """
    named = os.environ.get("SOURCE_DATE_EPOCH", "")
    if named.isdecimal() and int(named) < 2**34:
        return datetime.fromtimestamp(int(named), UTC).date()
    return datetime.now(UTC).date()


def reason_of(error: OSError | ValueError) -> str:
    """What the system says of a fault with a file; a name that cannot exist at all is a ValueError.

    >>> reason_of(FileNotFoundError(2, "No such file or directory"))
    'No such file or directory'
    """
    return getattr(error, "strerror", None) or say("system error")


def write_folder(
    folder: Path, files: Mapping[str, bytes], force: bool = False, reads: Iterable[Path] = ()
) -> Path:
    """All *files* stand in *folder*, or nothing was written.

    A name is a file's, or a sub-folder's and a file's (`release/table.csv`); what is in `private/` can be read
    by its owner alone, from the first moment. Everything is written to a private folder beside the target, brought
    to the disk, and put in place in one step. An existing folder is an error unless *force*; then it is replaced as
    a whole, and on Linux there is no moment without a whole release under the name. Only a release is ever
    replaced: see `refuse_folder`. Where *folder* is a link, what it points to is replaced and the link stays.
    What a killed run for the same folder has left is removed first.

    >>> folder = tempfile.TemporaryDirectory()
    >>> write_folder(Path(folder.name) / "out", {"release/table.csv": b"age"}).name, folder.cleanup()
    ('out', None)
    """
    with staged_folder(folder, force, reads) as staged:
        _refuse_names(files)
        staged.put(files)
    return Path(os.path.abspath(folder))


@contextmanager
def staged_folder(folder: Path, force: bool = False, reads: Iterable[Path] = ()) -> Iterator[StagedFolder]:
    """What is put into the staged folder stands in *folder* as a whole afterwards; after an error nothing does.

    The rules are those of `write_folder`.

    >>> with tempfile.TemporaryDirectory() as home:
    ...     with staged_folder(Path(home) / "out") as staged:
    ...         _ = staged.file("release/table.csv").write_bytes(b"age")
    ...     (Path(home) / "out" / "release" / "table.csv").read_bytes()
    b'age'
    """
    folder = Path(os.path.abspath(folder))
    reads = list(reads)
    target = Path(os.path.realpath(folder))
    _sweep(target)
    refuse_folder(folder, force, reads)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _staging_folder(target) as place:
            staged = StagedFolder(place, folder)
            yield staged
            new = staged.settle()
            refuse_folder(folder, force, reads)  # writing took time, and somebody may have put a file there
            _put_in_place(new, target, replace=force)
            _settle(target)
    except OSError as error:
        raise OutputError(
            say(
                "The folder '{folder}' cannot be written ({reason}).",
                folder=folder.name,
                reason=reason_of(error),
            ),
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None


def _refuse_names(names: Iterable[str]) -> None:
    for name in names:
        parts = name.split("/")
        odd = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
        if odd or len(parts) > 2:
            raise OutputError(
                say("{name} is no name for a file of a release.", name=repr(name)),
                "A file stands in the release folder or in one sub-folder of it.",
                "Give a plain name, or one like 'release/table.csv'.",
            )


def _settle(target: Path) -> None:
    """The name of *target* is on the disk."""
    try:
        _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(
            say(
                "'{target}' was written, but the disk did not confirm it ({reason}).",
                target=target.name,
                reason=reason_of(error),
            ),
            "It may be gone after a loss of power.",
            "Check the disk, and write it again with --force.",
        ) from None


def refuse_folder(folder: Path, force: bool | None = False, reads: Iterable[Path] = ()) -> None:
    """Nothing, if results may be written to *folder*; else an error, before any work is done.

    *force* is None where nobody can ask for it: the results of a run that are no release.

    An existing folder is replaced only with *force*, only if all it holds are files of a release, and only if
    none of them is a file this run *reads*: what a person put there is never deleted.

    >>> refuse_folder(Path("no such folder"))
    """
    folder = Path(os.path.abspath(folder))
    name = folder.name or str(folder)
    # os.path answers False where a name cannot exist at all; writing then gives the error.
    if not os.path.exists(folder):
        return
    if not os.path.isdir(folder):
        raise OutputError(
            say("'{name}' is a file.", name=name), "Results are written to a folder.", "Choose another name."
        )
    target = Path(os.path.realpath(folder))
    if Path(os.path.realpath(os.curdir)).is_relative_to(target):
        raise OutputError(
            say("The output folder '{name}' is the one the command runs in, or holds it.", name=name),
            "It cannot be replaced from inside.",
            "Choose another folder, or run the command from elsewhere.",
        )
    if force is None:
        raise OutputError(
            say("The output folder '{name}' exists already.", name=name),
            "Writing into it would mix the results of two runs.",
            "Choose another folder.",
        )
    if not force:
        raise OutputError(
            say("The output folder '{name}' exists already.", name=name),
            "Writing into it would mix two releases.",
            "Choose another folder, or pass --force to replace it.",
        )
    for path in reads:
        if Path(os.path.realpath(path)).is_relative_to(target):
            raise OutputError(
                say(
                    "The output folder '{name}' holds '{path}', which this run reads.",
                    name=name,
                    path=Path(path).name,
                ),
                "Replacing the folder would delete it.",
                "Choose another folder, or keep that file elsewhere.",
            )
    try:
        replaceable = not any(target.iterdir()) or _is_release(target)
    except OSError as error:
        raise OutputError(
            say(
                "The output folder '{name}' cannot be looked into ({reason}).",
                name=name,
                reason=reason_of(error),
            ),
            "What it holds may not be a release.",
            "Choose another folder, or check its permissions.",
        ) from None
    if not replaceable:
        raise OutputError(
            say("'{name}' holds other files than a release.", name=name),
            "Replacing it would delete them.",
            "Choose another folder, or empty this one first.",
        )


def _is_release(folder: Path) -> bool:
    nested = any(entry.name in (PUBLIC, PRIVATE) for entry in folder.iterdir())
    found: list[Path] = []
    for entry in folder.iterdir():
        inside = nested and entry.name in (PUBLIC, PRIVATE) and entry.is_dir() and not entry.is_symlink()
        found += entry.iterdir() if inside else [entry]
    if not all(path.is_file() and not path.is_symlink() for path in found):
        return False
    public = folder / PUBLIC if nested else folder
    listed = _listed(public / MANIFEST)
    if listed is None:
        return False
    known = {public / name for name in listed | (PUBLIC_FILES if nested else FLAT_FILES)}
    known |= {folder / PRIVATE / name for name in PRIVATE_FILES if nested}
    return known.issuperset(found)


def _listed(manifest: Path) -> set[str] | None:
    """The tables that a manifest of ours lists; None where it is not ours."""
    # A manifest.json alone proves nothing: many programs write one.
    try:
        document = json.loads(manifest.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("manifest_version"), int):
        return None
    tables = document.get("tables")
    entries = [document, *tables.values()] if isinstance(tables, dict) else [document]
    outputs = [entry.get("output") for entry in entries if isinstance(entry, dict)]
    files = {str(output["file"]) for output in outputs if isinstance(output, dict) and "file" in output}
    return {Path(file).name for file in files if file in (Path(file).name, f"{PUBLIC}/{Path(file).name}")}


def write_file(path: Path, data: bytes, force: bool = False, private: bool = False) -> Path:
    """*data* stands in *path* whole and on the disk, or nothing was written.

    *private*: only its owner could ever read it, and what a killed run has left of it is removed.

    >>> folder = tempfile.TemporaryDirectory()
    >>> write_file(Path(folder.name) / "t.csv", b"age").name, folder.cleanup()
    ('t.csv', None)
    """
    path = Path(path)
    if path.exists() and not force:
        raise OutputError(
            say("'{path}' exists already.", path=path.name),
            "It would be overwritten.",
            "Choose another name, or pass --force.",
        )
    if private:
        _sweep(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put_file(path, data, private)
        _settle(path)
    except OSError as error:
        raise OutputError(
            say("'{path}' cannot be written ({reason}).", path=path.name, reason=reason_of(error)),
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    return path
