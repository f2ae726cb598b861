"""What a kind of source or sink is: its settings, how it is opened, and what the loop may ask of it once it is open.

A new kind is one file, with its settings as a class of `SourceKind` or `SinkKind`, and a line in `kinds.py`. What the rest of a
stream must know of it (whether a record may come twice, whether there is an end) it says itself, since no list of names would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from velado.release.stream.connectors.state_file import Parcel
from velado.settings import Setting

if TYPE_CHECKING:
    from velado.release.stream.stream_settings import StreamSettings

MOST = 10_000
"""Messages handed on at once."""

Topic = Annotated[str, Setting("the topic", items=1)]
User = Annotated[str, Setting("the user")]
PasswordFile = Annotated[str, Setting("the file that holds the password")]
CaFile = Annotated[str, Setting("certificates of who may have signed the broker's; turns TLS on")]
Queue = Annotated[int, Setting("messages that may wait; then the sender is held back", ge=1, le=10_000_000)]


@dataclass(frozen=True, repr=False)
class Arrived:
    """Payloads, when each arrived, the position behind the last of them, and how many more are known to be lost."""

    payloads: list[bytes]
    times: list[float]
    position: Any
    lost: int = 0


class Source(Protocol):
    """What the loop reads."""

    ended: bool

    def poll(self, seconds: float) -> Arrived:
        """What arrived, after at most so many seconds."""
        ...

    def settled(self, position: Any) -> None:
        """The state that holds *position* is on the disk: what came before is not needed again."""
        ...

    def close(self) -> None:
        """Nothing more is read."""
        ...


class Sink(Protocol):
    """What the loop publishes to. It takes a window again without harm: after a crash the last ones are handed over once more."""

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The windows are published, or an error was raised; a second time changes nothing. *position*: how far the source was read."""
        ...

    def close(self) -> None:
        """Nothing more is published."""
        ...


@dataclass(frozen=True, repr=False)
class Place:
    """Where a stream runs: the folder that paths are relative to, all its settings, and what separates the cells of its files."""

    folder: Path
    asked: StreamSettings
    separator: str = ","

    @property
    def private(self) -> Path:
        """The folder of state and journal."""
        return self.folder / self.asked.state


class SourceKind:
    """The settings of one kind of source, named as `kind` in [source] names it.

    *again* says whether it may deliver a record twice: records then need a time or an id, or a repeated one would be a second reading.
    """

    name: ClassVar[str]
    again: ClassVar[bool]

    @property
    def whole(self) -> bool:
        """Whether it ends by itself, so that what it holds was there before anybody decided when."""
        raise NotImplementedError

    def open(self, place: Place, position: Any) -> Source:
        """The source, which goes on from *position*; None: from its beginning."""
        raise NotImplementedError


class SinkKind:
    """The settings of one kind of sink, named as `kind` in [sink] names it."""

    name: ClassVar[str]

    def check(self, source: SourceKind) -> None:
        """An error where it cannot be opened beside *source*; it may have left something to it."""

    def open(self, place: Place) -> Sink:
        """The sink."""
        raise NotImplementedError


@dataclass(frozen=True)
class Login:
    """Who we are to a broker, and how it is known; *section* is where that stands.

    >>> Login("ward", "", "").kind
    (False, True)
    """

    username: str
    password_file: str
    ca_file: str
    section: str = "source"

    @property
    def kind(self) -> tuple[bool, bool]:
        """Whether TLS is on, and whether there is a user."""
        return bool(self.ca_file), bool(self.username)

    def password(self, folder: Path) -> str | None:
        """What stands in the password's file."""
        return (folder / self.password_file).read_text("utf-8").strip() if self.password_file else None
