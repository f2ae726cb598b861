"""What a place for entries must do; a file and a server do it in their own ways."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from velado.query.store.chain import Entry


class Shelf(Protocol):
    """An open place that keeps entries in order. Every failure of the place is a LedgerError."""

    def writing(self) -> AbstractContextManager[None]:
        """Nobody else appends meanwhile; what was appended is durable afterwards, or nothing of it is there."""

    def at(self, number: int) -> Entry | None:
        """The entry with this number."""

    def after(self, number: int, limit: int) -> list[Entry]:
        """Up to *limit* entries above *number*, in order."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries, inside `writing`."""

    def close(self) -> None:
        """Give the place back."""


class Place(Protocol):
    """An address where a ledger is or may be made."""

    @property
    def identity(self) -> str:
        """One text per ledger, whatever way its address was spelled; never a password."""

    @property
    def name(self) -> str:
        """The address as a person may read it."""

    def present(self) -> bool:
        """Whether anything is there."""

    def open(self) -> Shelf:
        """The ledger that is there."""

    def create(self) -> Shelf:
        """A new empty ledger, or the empty one whose making was interrupted."""
