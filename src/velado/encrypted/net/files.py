"""Files that only their owner can read, whole or not there; and the job file."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

from velado.encrypted.job import Job
from velado.errors import InputError, KeyRefused, OutputError, SchemaError

LARGEST_JOB = 1 << 20
LARGEST_SECRET = 1 << 16


def make_private_folder(folder: Path, empty: bool = False) -> Path:
    """*folder* is there and only its owner can enter it; with *empty* it must hold nothing yet."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if empty and any(folder.iterdir()):
            raise OutputError(
                f"The folder '{folder.name}' is not empty.",
                "Keys in it would be overwritten, and with them every job they belong to.",
                "Choose another folder.",
            )
        folder.chmod(0o700)
    except OSError as error:
        raise _unwritten(folder, error) from None
    return folder


def write_private(path: Path, data: bytes) -> None:
    """*data* stands in *path*, mode 0600, on the disk and not only in memory; an older file is replaced as a whole."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        scratch.unlink(missing_ok=True)
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except OSError as error:
        raise _unwritten(path, error) from None


def read_private(path: Path, most: int = LARGEST_SECRET) -> bytes:
    """The bytes of a secret file; one that others may read is refused."""
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(most + 1)
    except OSError as error:
        raise KeyRefused(
            f"'{path.name}' cannot be read ({error.strerror or 'system error'}).",
            "A party without its keys cannot take part.",
            "Give the folder that `velado party keygen` made.",
        ) from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyRefused(
            f"'{path.name}' can be read by others on this machine.",
            "A key that others could copy authenticates nobody.",
            "Run chmod 600 on it, and make new keys if somebody may have seen it.",
        )
    if len(data) > most:
        raise KeyRefused(
            f"'{path.name}' is too large.", "It is not a file of velado.", "Give the folder keygen made."
        )
    return data


def read_passphrase(path: Path) -> str:
    """The passphrase in a file: its text without the line break at the end."""
    try:
        text = path.read_bytes()[:4096].decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise KeyRefused(
            f"The passphrase file '{path.name}' cannot be read.",
            "The party's keys are encrypted with it.",
            "Give a readable file with the passphrase as its only line.",
        ) from None
    return text


def read_job(path: Path) -> Job:
    """The job a TOML file describes."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_JOB + 1)
    except OSError as error:
        raise InputError(
            f"The job file '{path.name}' cannot be read ({error.strerror or 'system error'}).",
            "It says what the parties agreed to compute.",
            "Check the path.",
        ) from None
    try:
        if len(data) > LARGEST_JOB:
            raise ValueError
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise SchemaError(
            f"The job file '{path.name}' is not TOML.",
            "It cannot be read.",
            "Start from the example in docs/how-to/regress-with-three-hospitals.md.",
        ) from None
    return Job.from_dict(document)


def _unwritten(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"'{path.name}' cannot be written ({error.strerror or 'system error'}).",
        "Nothing was kept.",
        "Check the path, the permissions and the space left.",
    )
