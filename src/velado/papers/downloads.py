"""Fetching: a data set's files stand in their places, whole and checked, or an error says why not.

An edge: it reads the network and writes below the data folder. A download goes to a part file first; where the
connection is cut, the next attempt (or the next run) asks for the rest only. Waits between attempts double. What is not
the known file is not put in its place; where no checksum is known, the first download's is written to
`checksums.json` in the data folder and later ones must equal it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit

from velado.data.staging import reason_of
from velado.errors import OutputError, TableError
from velado.papers.public_data import PublicDataSet, RemoteFile
from velado.text import say

RECORD = "checksums.json"
PARTS = ".downloads"
_CHUNK = 1 << 16
STATES = ("there, but another file", "missing", "there, not checked", "there")
"""What a file can be in its place, the worst first."""
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Told(Protocol):
    """Called with the share that is done and what is being done."""

    def __call__(self, share: float, doing: str = "") -> None: ...


@dataclass(frozen=True)
class Retries:
    """How long to try: attempts in all, the first wait between them, and how long to wait for bytes, in seconds.

    >>> Retries(attempts=2).wait
    1.0
    """

    attempts: int = 4
    wait: float = 1.0
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Fetched:
    """One file: its place, its checksum, whether it was there already, and whether the checksum was known before.

    >>> Fetched("uci/cmc.csv", "2efb", already=True, known=True).place
    'uci/cmc.csv'
    """

    place: str
    sha256: str
    already: bool
    known: bool


class _Again(Exception):
    """The attempt failed in a way that another may not."""


def fetch(
    data_set: PublicDataSet,
    folder: Path,
    told: _Told,
    retries: Retries | None = None,
    *,
    force: bool = False,
    unchecked: bool = False,
) -> tuple[Fetched, ...]:
    """Every file of *data_set* stands in its place below *folder*, or an error says which one does not and why.

    A file that is there and right is left alone; one that is there and is another is an error unless *force*.
    *unchecked* keeps a download although its checksum is not the known one.

    >>> from velado.papers.public_data import DATA_SETS
    >>> by_hand = next(one for one in DATA_SETS if not one.files)
    >>> fetch(by_hand, Path("data"), lambda share, doing="": None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: '...' cannot be fetched by velado. ...
    """
    if not data_set.files:
        raise TableError(
            say("'{data_set}' cannot be fetched by velado.", data_set=data_set.name),
            data_set.by_hand,
            say(
                "Get it from {page} and put it at '{place}' below the data folder.",
                page=data_set.page,
                place=data_set.place,
            ),
        )
    out = []
    for at, file in enumerate(data_set.files):

        def part(share: float, doing: str = "", done: int = at) -> None:
            told((done + share) / len(data_set.files), doing)

        out.append(_fetch(file, folder, part, retries or Retries(), force, unchecked))
    return tuple(out)


def status(file: RemoteFile, folder: Path) -> str:
    """ "missing", "there" (and right), "there, not checked" (no checksum is known), or "there, but another file".

    >>> from velado.papers.public_data import data_set_named
    >>> status(data_set_named("cmc").files[0], Path("no such folder"))
    'missing'
    """
    place = folder / file.place
    if not place.is_file():
        return "missing"
    known = file.sha256 or _recorded(folder).get(file.place, {}).get("file")
    if known is None:
        return "there, not checked"
    return "there" if _digest(place.read_bytes()) == known else "there, but another file"


def _fetch(
    file: RemoteFile, folder: Path, told: _Told, retries: Retries, force: bool, unchecked: bool
) -> Fetched:
    record = _recorded(folder).get(file.place, {})
    known = file.sha256 or record.get("file")
    place = folder / file.place
    if place.exists() and not force:
        found = _digest(place.read_bytes()) if place.is_file() else ""
        if known is not None and found != known and not unchecked:
            raise OutputError(
                say("'{place}' is there already, and is another file.", place=file.place),
                "It may be yours, so it was left as it is.",
                "Remove it, or replace it with --force.",
            )
        return Fetched(file.place, found, already=True, known=known is not None)
    raw = _download(file, folder, told, retries)
    source = _digest(raw)
    if record.get("source", source) != source and not unchecked:
        _refuse(file, folder, say("the one that was downloaded first"))
    try:
        data = raw if file.prepare is None else file.prepare(raw)
    except TableError:
        _forget(_part(file, folder))  # a whole download of something else is not worth going on with
        raise
    found = _digest(data)
    if known is not None and found != known and not unchecked:
        _refuse(file, folder, say("the one the experiments were made with"))
    _write(place, data)
    _write_record(folder, file.place, {"url": file.url, "source": source, "file": found})
    _forget(_part(file, folder))
    told(1.0, place.name)
    return Fetched(file.place, found, already=False, known=known is not None)


def _refuse(file: RemoteFile, folder: Path, expected: str) -> None:
    _forget(_part(file, folder))
    raise TableError(
        say(
            "The checksum of the download for '{place}' is wrong: it is not {expected}.",
            place=file.place,
            expected=expected,
        ),
        "It was cut, changed on the way, or replaced at its source, so it was thrown away.",
        "Try again; if it stays so, compare it with the source by hand, or keep it with --unchecked.",
    )


def _download(file: RemoteFile, folder: Path, told: _Told, retries: Retries) -> bytes:
    part = _part(file, folder)
    host = urlsplit(file.url).hostname or "the source"
    trouble = ""
    for attempt in range(retries.attempts):
        if attempt:
            told(
                0.0,
                say(
                    "{host}: {trouble}; attempt {attempt} of {attempts}",
                    host=host,
                    trouble=trouble,
                    attempt=attempt + 1,
                    attempts=retries.attempts,
                ),
            )
            retries.sleep(retries.wait * 2 ** (attempt - 1))
        try:
            _receive(file, part, told, retries.timeout)
        except _Again as error:
            trouble = error.args[0]
            continue
        return part.read_bytes()
    raise TableError(
        say(
            "'{host}' could not be reached or did not send the whole file ({trouble}; {attempts} attempts).",
            host=host,
            trouble=trouble,
            attempts=retries.attempts,
        ),
        "This computer may be offline or behind a proxy, or the source may be down.",
        say(
            "Run the same command again later (it goes on where it stopped), or put the file at '{place}' "
            "by hand.",
            place=file.place,
        ),
    )


def _receive(file: RemoteFile, part: Path, told: _Told, timeout: float) -> None:
    """What is still missing of the part file is appended to it; _Again where another attempt may help."""
    _folder(part.parent)
    have, mark = part.stat().st_size if part.is_file() else 0, _mark(part)
    headers = {"User-Agent": "velado", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if mark.is_file():  # the rest is wanted only of the version that the part is of
            headers["If-Range"] = mark.read_text("utf-8")
    request = urllib.request.Request(file.url, headers=headers)
    try:
        with urllib.request.build_opener(_NoDowngrade).open(request, timeout=timeout) as answer:
            if answer.status == 206 and not _starts_at(answer, have):
                _forget(part)  # another piece than was asked for
                raise _Again(say("the file has changed"))
            start = have if answer.status == 206 else 0
            if not start:
                _keep_version(mark, answer)
            stated = answer.headers.get("Content-Length")
            total = start + int(stated) if stated is not None and stated.isdigit() else None
            if total is not None and total > file.most_bytes:
                raise _too_large(file)
            size = _append(answer, part, start, total, file, told)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # what we have is not a beginning of what there is now
            _forget(part)
            raise _Again(say("the file has changed")) from None
        if error.code in _TRANSIENT:
            raise _Again(f"HTTP {error.code}") from None
        raise TableError(
            say(
                "'{hostname}' answered HTTP {code} for '{place}'.",
                hostname=urlsplit(file.url).hostname,
                code=error.code,
                place=file.place,
            ),
            "The file is no longer at that address, or may not be read from here.",
            "Look at the data set's page (`velado data list`), and put the file in its place by hand.",
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Again(_kind(error)) from None
    if total is not None and size < total:
        raise _Again(say("the connection was cut"))


def _append(answer: Any, part: Path, start: int, total: int | None, file: RemoteFile, told: _Told) -> int:
    size = start
    with _opened(part, start) as out:
        while chunk := answer.read1(_CHUNK):  # what has come, so that a silent server costs nothing of it
            size += len(chunk)
            if size > file.most_bytes:
                out.close()
                _forget(part)
                raise _too_large(file)
            try:
                out.write(chunk)
            except OSError as error:  # a full disk is no fault of the network, and waiting does not help
                raise _unwritable(part.name, error) from None
            told(
                size / total if total else 0.0,
                say("{file}: {size:.1f} MB", file=Path(file.place).name, size=size / 1e6),
            )
    return size


def _opened(part: Path, start: int) -> BinaryIO:
    try:
        out = part.open("r+b" if start else "wb", buffering=0)
        out.seek(start)
    except OSError as error:
        raise _unwritable(part.name, error) from None
    return out


def _mark(part: Path) -> Path:
    """Where it is kept which version of the file a part is of."""
    return part.with_suffix(".version")


def _keep_version(mark: Path, answer: Any) -> None:
    tag = str(answer.headers.get("ETag") or "")
    # A weak tag may stand for other bytes; it cannot join two pieces.
    if tag.startswith('"') and len(tag) < 200 and tag.isascii():
        mark.write_text(tag, "utf-8")
    else:
        mark.unlink(missing_ok=True)


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _mark(part).unlink(missing_ok=True)


def _starts_at(answer: Any, have: int) -> bool:
    return str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from an encrypted address to one that is not."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request that follows, or an error."""
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise TableError(
                say(
                    "'{hostname}' sends us on to an address without encryption.",
                    hostname=urlsplit(req.full_url).hostname,
                ),
                "Anyone on the way could change the file.",
                "Look at the data set's page (`velado data list`), and put the file in its place by hand.",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _kind(error: BaseException) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "its certificate is not trusted here"
    if isinstance(reason, http.client.IncompleteRead | ConnectionResetError | http.client.RemoteDisconnected):
        return "the connection was cut"
    if type(reason).__name__ == "gaierror":
        return "its name was not found"
    return "the network failed"


def _too_large(file: RemoteFile) -> TableError:
    return TableError(
        say(
            "The download for '{place}' is larger than {most_bytes:.0f} MB.",
            place=file.place,
            most_bytes=file.most_bytes / 1e6,
        ),
        "The data set is smaller than that, so this is something else.",
        "Look at the data set's page (`velado data list`), and put the file in its place by hand.",
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _part(file: RemoteFile, folder: Path) -> Path:
    # Named after the address, so that a part of one file is never continued with another.
    return folder / PARTS / f"{Path(file.place).stem}-{_digest(file.url.encode())[:12]}.part"


def _folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder.name, error) from None


def _write(place: Path, data: bytes) -> None:
    _folder(place.parent)
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        scratch.write_bytes(data)
        scratch.replace(place)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise _unwritable(place.name, error) from None


def _unwritable(name: str, error: OSError) -> OutputError:
    return OutputError(
        say("'{name}' cannot be written ({reason}).", name=name, reason=reason_of(error)),
        "The download has no place to go.",
        "Check the data folder, its permissions and the space left.",
    )


def _recorded(folder: Path) -> dict[str, dict[str, str]]:
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise TableError(
            say("'{record}' in the data folder cannot be read.", record=RECORD),
            "It says which files were downloaded first, and later ones are compared with them.",
            "Remove it, if you do not mind that this is forgotten.",
        ) from None
    return found if isinstance(found, dict) else {}


def _write_record(folder: Path, place: str, entry: dict[str, str]) -> None:
    record = {**_recorded(folder), place: entry}
    _write(folder / RECORD, (json.dumps(record, indent=2, sort_keys=True) + "\n").encode())
