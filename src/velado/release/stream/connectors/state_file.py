"""The state of a stream in one private file, replaced whole: what is published next stands in it before it is published.

A seal in the user's state folder knows how often it was written: with an older one put back, people of an epoch would be put into
classes anew, beside those that left. What the seal cannot see is a folder that was moved, or a machine without it: it then begins there.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.seals import Mark, Seal, default_seal
from velado.data.staging import locked, write_file
from velado.errors import LedgerError, OutputError, ParameterError, TableError
from velado.release.history.classes import Classes
from velado.release.stream.manifest import digest
from velado.release.stream.window_release import Epoch
from velado.release.stream.windows import Counts, StreamState
from velado.text import Sentence, say

_VERSION = 2
"""Bytes stand in it in base 64. In layout 1 they stood in base 85, which took most of a second for what a busy stream remembers."""


@dataclass(frozen=True, repr=False)
class Parcel:
    """A window on its way out: its number, the bytes of its table, if any, and its manifest."""

    number: int
    table: bytes | None
    manifest: bytes


class StateFile:
    """Where a stream's state lies. One process has it at a time; whoever reads an altered one is told.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StateFile(Path(folder)).load() is None
    True
    """

    def __init__(self, folder: Path, begun_with: Mapping[str, str] | None = None) -> None:
        """*begun_with*: what may not change while a stream goes on, by the names of its settings, each as a digest."""
        self._begun_with = dict(begun_with or {})
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._path = folder / "state.json"
        self._place = default_seal("state of a stream " + os.path.realpath(folder))
        self._seal: Seal | None = None
        self._saved = 0
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not locked(self._lock):
            raise OutputError(
                say("Another process runs the stream of '{folder}'.", folder=folder.name),
                "Two would publish the same people in different crowds.",
                "End the other one, or give this stream a state folder of its own.",
            )

    def load(self) -> tuple[StreamState, Any, list[Parcel]] | None:
        """State, position of the source and what was on its way out; None before the first save. An older one is an error."""
        mark = self._sealed()
        if not self._path.exists():
            if mark.number:
                raise _older(say("it is not there"))
            return None
        sealed, _, body = self._path.read_bytes().partition(b"\n")
        if sealed.decode("ascii", "replace") != digest(body):
            raise TableError(
                "The state of the stream was changed or is not whole.",
                "With a state that is not true, people could be published in crowds that single them out.",
                "Put the file back as it was, or move the folder away: the stream then begins a new chain and a new epoch.",
            )
        read = json.loads(body)
        version = read.get("version")
        if version not in (1, _VERSION):
            raise TableError(
                say(
                    "The state of the stream has a layout of its own ({version}).",
                    version=str(version)[:20],
                ),
                say(
                    "This velado reads layout {version}: what stands where in another one it does not know.",
                    version=_VERSION,
                ),
                "Run the stream with the velado that wrote it. Or let the epoch end, and begin a new stream with folders of its own.",
            )
        for name, was in read.get("begun_with", {}).items():
            if self._begun_with.get(name, was) != was:
                raise ParameterError(
                    say("The stream was begun with another '{setting}'.", setting=name),
                    "Windows of one epoch, some made with the one and some with the other, could single people out who were promised a crowd in both.",
                    "Put it back as it was. Or let the epoch end, move the folders of state and windows away, and begin a new stream.",
                )
        self._saved = int(read.get("saved", 0))
        if self._saved < mark.number or (
            self._saved == mark.number and mark.number and mark.hash != digest(body)
        ):
            raise _older(say("it is an older one, or of another stream"))
        packed = _Packed(base64.b85decode if version == 1 else base64.b64decode)
        parcels = [
            Parcel(one["number"], packed.bytes(one["table"]), packed.bytes(one["manifest"]) or b"")
            for one in read["outbox"]
        ]
        return packed.state(read["state"]), read["position"], parcels

    def save(self, state: StreamState, position: Any, outbox: Sequence[Parcel]) -> None:
        """*state* is on the disk, with the *position* of the source and what goes out next."""
        whole = {
            "version": _VERSION,
            "saved": self._saved + 1,
            "begun_with": self._begun_with,
            "state": _plain(state),
            "position": position,
            "outbox": [
                {"number": one.number, "table": _text(one.table), "manifest": _text(one.manifest)}
                for one in outbox
            ],
        }
        body = json.dumps(whole).encode()
        write_file(self._path, digest(body).encode() + b"\n" + body, force=True, private=True)
        self._saved += 1
        self._sealed()
        assert self._seal is not None
        try:
            self._seal.write(Mark(self._saved, digest(body)))
        except LedgerError as error:
            raise _unsealed(error) from None

    def _sealed(self) -> Mark:
        """What the seal knows; it is made where there is none."""
        try:
            if self._seal is None:
                self._seal = Seal(self._place) if self._place.exists() else Seal.create(self._place)
            return self._seal.read()
        except LedgerError as error:
            raise _unsealed(error) from None

    def close(self) -> None:
        """Another process may have the stream."""
        if self._seal is not None:
            self._seal.close()
        os.close(self._lock)


def _older(reason: Sentence) -> TableError:
    return TableError(
        say("The state of the stream is not the one that was written last ({reason}).", reason=reason),
        "Windows may have left that are not in it: people of this epoch would be published in other crowds than those they were published in.",
        "Put the newest one back. If it is lost, let the epoch end, and begin a new stream with folders of its own for state and windows.",
    )


def _unsealed(error: LedgerError) -> TableError:
    return TableError(
        say("The seal of the stream's state cannot be used ({reason}).", reason=error.what),
        "Without it an older state that was put back would not be noticed.",
        "Check the permissions of the folder that VELADO_STATE names, and start the stream again.",
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _frame_text(frame: pl.DataFrame) -> str:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return _text(buffer.getvalue()) or ""


def _array(values: npt.NDArray[Any]) -> list[str]:
    return [values.dtype.str, _text(values.tobytes()) or ""]


def _classes(one: Classes) -> list[list[str]]:
    return [_array(part) for part in (one.people, one.home, one.standing, one.over)]


def _plain(state: StreamState) -> dict[str, Any]:
    return {
        "window": state.window,
        "head": state.head,
        "epoch": [state.epoch.number, _classes(state.epoch.classes), _classes(state.epoch.before)],
        "open": [_frame_text(part) for part in state.open],
        "waiting": _frame_text(state.waiting),
        "through": state.through,
        "latest": state.latest if np.isfinite(state.latest) else None,
        "keys": [_array(part) for part in state.keys],
        "counts": asdict(state.counts),
    }


@dataclass(frozen=True)
class _Packed:
    """What a state's file holds, read by its layout's way to write bytes."""

    decode: Callable[[str], bytes]

    def bytes(self, text: str | None) -> bytes | None:
        return None if text is None else self.decode(text)

    def frame(self, text: str) -> pl.DataFrame:
        return pl.read_ipc(io.BytesIO(self.decode(text)))

    def array(self, told: list[str]) -> npt.NDArray[Any]:
        return np.frombuffer(self.decode(told[1]), dtype=told[0]).copy()

    def state(self, read: dict[str, Any]) -> StreamState:
        number, classes, before = read["epoch"]
        return StreamState(
            window=read["window"],
            head=read["head"],
            epoch=Epoch(number, Classes(*map(self.array, classes)), Classes(*map(self.array, before))),
            open=tuple(map(self.frame, read["open"])),
            waiting=self.frame(read["waiting"]),
            through=read["through"],
            latest=float("-inf") if read["latest"] is None else read["latest"],
            keys=tuple(map(self.array, read["keys"])),
            counts=Counts(**read["counts"]),
        )
