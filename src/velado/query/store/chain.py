"""The chain of a ledger: entries tied to one another by a key, and the account they add up to. Pure.

hash_n = HMAC-SHA256(key, hash_{n-1} || canonical(n, kind_n, payload_n)), hash_0 = 64 zeros. Without the key nobody can
make an entry that holds, and with it nobody can change one without changing every hash after it. Costs are exact
fractions written as text; each entry carries the running total, which the account recomputes and compares.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from velado.errors import LedgerError

Kind = Literal["open", "reserve", "answer", "cap", "raise"]
KINDS: tuple[str, ...] = get_args(Kind)

START = "0" * 64
"""What stands before the first entry."""
VERSION = 1

# Made once: an encoder for every entry would cost as much as the entry.
_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
_packed = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. *payload* is canonical JSON, kept as the text that was signed."""

    number: int
    kind: str
    payload: str
    previous: str
    hash: str

    def fields(self) -> dict[str, Any]:
        """What the payload says, or a LedgerError that repeats nothing of it."""
        try:
            found = json.loads(self.payload)
        except (ValueError, RecursionError):
            raise broken(self.number, "its text cannot be read") from None
        if not isinstance(found, dict):
            raise broken(self.number, "its text cannot be read")
        return found


def canonical(payload: Mapping[str, Any]) -> str:
    """One ASCII text for one payload: keys sorted, no spaces."""
    return _sorted(payload)


def signature(key: bytes, number: int, kind: str, payload: str, previous: str) -> str:
    """The hash of an entry. The fields are JSON texts of one list, so no two entries have the same bytes."""
    message = previous + _packed([number, kind, payload])
    return hmac.digest(key, message.encode("utf-8", "surrogatepass"), "sha256").hex()


def make_entry(key: bytes, number: int, previous: str, kind: Kind, payload: Mapping[str, Any]) -> Entry:
    """The entry that follows *previous*."""
    text = canonical(payload)
    return Entry(number, kind, text, previous, signature(key, number, kind, text, previous))


def check_link(key: bytes, entry: Entry, number: int, previous: str) -> None:
    """The entry stands at its place, follows the one before it, and was made with the key."""
    if entry.number != number:
        raise broken(number, "it is missing, or stands at another place")
    if entry.previous != previous:
        raise broken(
            number, "it does not follow the entry before it: entries were removed, moved or replaced"
        )
    if not holds(key, entry):
        raise broken(number, "its text is not the one that was signed")


def holds(key: bytes, entry: Entry) -> bool:
    """Whether the entry's own hash was made with the key from what it says."""
    expected = signature(key, entry.number, entry.kind, entry.payload, entry.previous)
    return hmac.compare_digest(expected.encode(), entry.hash.encode("utf-8", "surrogatepass"))


def entry_of(row: Sequence[Any]) -> Entry:
    """An entry from a row of a store, whose types nobody vouches for."""
    number = row[0] if type(row[0]) is int else 0
    if not all(isinstance(cell, str) for cell in row[1:]):
        raise broken(number, "a part of it has the wrong type")
    return Entry(number, *row[1:])


def broken(number: int, reason: str) -> LedgerError:
    """The error for an entry that does not hold."""
    return LedgerError(
        f"Entry {number} of the ledger does not hold: {reason}.",
        "What was spent can no longer be proven, so nothing is answered.",
        "Put back the newest untouched copy of the ledger, or treat the whole budget as spent.",
    )


def fraction(text: Any, number: int) -> Fraction:
    """A fraction from its one spelling, n or n/d in lowest terms, never negative."""
    if not isinstance(text, str) or not text.isascii() or not text.replace("/", "", 1).isdigit():
        raise broken(number, "an amount in it is not a fraction")
    try:
        over, _, under = text.partition("/")
        value = Fraction(int(over), int(under or 1))
    except (ValueError, ZeroDivisionError):
        raise broken(number, "an amount in it is not a fraction") from None
    if str(value) != text:
        raise broken(number, "an amount in it is not in lowest terms")
    return value
