"""What a release adds to a history, what a history holds, and what all its releases tell together. Pure.

An entry's body: 16 bytes for each person not seen before (a hash under the owner's key), four bytes for each person known by then (the
visible group), and the counts of sensitive values in each group.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.errors import HistoryError
from velado.release.history.candidates import (
    ABSENT,
    MOST_VALUES,
    Crowd,
    Entries,
    Ints32,
    begins,
    candidates_exactly,
    candidates_in,
    certain_values,
    crowd_of,
)
from velado.text import say, say_n

Hashes = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
_PIECE = 1 << 16
"""Counts read at once."""
KINDS = ("release", "confirmed", "forgotten", "sealed")
"""What an entry may be. One of another kind is an error: passed over, it would be promised on as if it were not there."""


@dataclass(frozen=True, repr=False)
class HeldState:
    """What is held together: *what*, the class or group of each person (below 0: none), how people and classes stand, and the
    counts of values in each group (group, value, count). *how*: what becomes of people who left (drop, keep), or merge; *k* is that of the promise to people;
    *column*: whose values are counted."""

    what: str
    home: Ints32
    standing: Bools
    over: Bools
    counts: pl.DataFrame
    how: str = ""
    k: int = 0
    column: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """What all releases of a history have in common."""
        return self.what, self.how

    def without(self, place: int) -> HeldState:
        """The state once somebody was erased: the whole class is given up, so that no smaller crowd tells who is missing."""
        if self.what != "people" or self.home[place] < 0:
            return self
        over = self.over.copy()
        over[self.home[place]] = True
        return replace(self, over=over)

    def packed(self, known: int) -> tuple[dict[str, Any], bytes]:
        """As an entry holds it: classes of those who are new, one bit for each person and class, counts that are new."""
        counts = json.dumps(self.counts.to_dict(as_series=False), separators=(",", ":")).encode()
        said = {"what": self.what, "classes": len(self.over), "counts": len(counts)}
        said |= {"how": self.how, "k": self.k, "column": self.column}
        bits = np.packbits(self.standing).tobytes() + np.packbits(self.over).tobytes()
        return said, self.home[known:].astype("<i4").tobytes() + bits + counts


def _held_of(one: Said, before: HeldState | None, new: int, known: int, at: int) -> HeldState | None:
    said = one.said.get("held")
    if said is None:
        return None
    classes = int(said["classes"])
    home = np.frombuffer(one.part(at, 4 * new), "<i4")
    at += 4 * new
    people, ended = (known + 7) // 8, (classes + 7) // 8
    standing = np.unpackbits(np.frombuffer(one.part(at, people), np.uint8), count=known).astype(bool)
    over = np.unpackbits(np.frombuffer(one.part(at + people, ended), np.uint8), count=classes).astype(bool)
    at += people + ended
    counts = pl.DataFrame(
        json.loads(one.part(at, int(said["counts"]))),
        schema={"group": pl.Int64, "value": pl.String, "count": pl.Int64},
    )
    if before is not None:
        home = np.concatenate([before.home, home])
        counts = pl.concat([before.counts, counts])
    what = str(said["what"])
    how, k = str(said.get("how", "drop" if what == "people" else "")), int(said.get("k", 0))
    return HeldState(what, home.astype(np.int32), standing, over, counts, how, k, str(said.get("column", "")))


class Said(Protocol):
    """An entry as a file of a history holds it."""

    @property
    def said(self) -> Mapping[str, Any]: ...
    def part(self, begin: int, length: int) -> bytes: ...


@dataclass(frozen=True, repr=False)
class StoredCounts:
    """The counts of one release in the body of its entry, *counted* of them from *begin* on; *numbers* are those of its values.

    They are read a piece at a time, whenever they are asked for: those of all releases can be larger than all else.
    """

    entry: Said
    begin: int
    counted: int
    numbers: Ints32

    def _column(self, at: int) -> Ints32:
        return np.concatenate([piece for _, piece in self._pieces(at)])

    def _pieces(self, at: int) -> Iterator[tuple[slice, Ints32]]:
        """A column in pieces, each with where it stands."""
        begin = self.begin + 4 * at * self.counted
        for first in range(0, self.counted, _PIECE):
            size = min(_PIECE, self.counted - first)
            yield (
                slice(first, first + size),
                np.frombuffer(self.entry.part(begin + 4 * first, 4 * size), "<i4"),
            )

    def by_group(self, groups: int) -> Entries:
        """The entries in the order of their groups, counts the caller's own."""
        first = self._begins(groups)
        if first is None:
            first, order = begins(self._column(0), groups)
            value = self.numbers.astype(np.uint8)[self._column(1)[order]]
            return first, value, self._column(2)[order].astype(np.int32)
        value, count = np.empty(self.counted, np.uint8), np.empty(self.counted, np.int32)
        for where, piece in self._pieces(1):
            value[where] = self.numbers[piece]
        for where, piece in self._pieces(2):
            count[where] = piece
        return first, value, count

    def _begins(self, groups: int) -> Ints32 | None:
        """Where the entries of each group begin; None where they do not stand in the order of their groups."""
        ends, last = np.zeros(groups + 1, np.int32), 0
        for _, piece in self._pieces(0):
            if piece[0] < last or (piece[1:] < piece[:-1]).any():
                return None
            last = int(piece[-1])
            least = int(piece[0])
            if last < groups:
                ends[least + 1 : last + 2] += np.bincount(piece - least).astype(np.int32)
            else:
                return None
        return np.cumsum(ends, dtype=np.int32)


@dataclass(frozen=True, repr=False)
class Shown(Sequence[StoredCounts]):
    """The counts of each release."""

    parts: tuple[StoredCounts, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, at: int) -> StoredCounts: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[StoredCounts]: ...
    def __getitem__(self, at: int | slice) -> StoredCounts | Sequence[StoredCounts]:
        return self.parts[at]

    @property
    def all_counted(self) -> bool:
        """Whether every release has counts."""
        return all(one.counted for one in self.parts)


@dataclass(frozen=True, repr=False)
class People:
    """Hashes of people, two words each, read from the entries that name them first whenever they are asked for.

    >>> len(People(()))
    0
    """

    parts: tuple[tuple[Said, int], ...]

    def __len__(self) -> int:
        return sum(new for _, new in self.parts)

    @property
    def hashes(self) -> Hashes:
        """All of them, in the order in which they came."""
        out, at = np.empty((len(self), 2), np.uint64), 0
        for one, new in self.parts:
            out[at : at + new] = np.frombuffer(one.part(0, 16 * new), "<u8").reshape(new, 2)
            at += new
        return out


@dataclass(frozen=True, repr=False)
class Record:
    """All releases of a history: hashes of *people*, visible groups, counts of values, names of values.

    >>> Record.of([]).releases
    0
    """

    people: People
    groups: Ints32
    shown: Shown
    values: tuple[str, ...]
    tables: tuple[str, ...]
    pending: bool = False
    held: HeldState | None = None
    sealed_anew: int = 0

    @property
    def releases(self) -> int:
        """How many releases are in it, one that was begun and never confirmed among them."""
        return len(self.tables)

    @classmethod
    def of(cls, entries: Sequence[Said]) -> Record:
        """The releases of the *entries* of a file, in their order."""
        if any(one.said["kind"] not in KINDS for one in entries):
            raise HistoryError(
                "The history holds an entry of an unknown kind.",
                "It may be an erasure, or a release, that this version of velado does not know how to count.",
                "Use the version of velado that wrote it.",
            )
        begun = [one for one in entries if one.said["kind"] == "release"]
        total = sum(int(one.said["new"]) for one in begun)
        people = list[tuple[Said, int]]()
        groups = np.full((len(begun), total), ABSENT, np.int32)
        known, names, shown = 0, dict[str, int](), list[StoredCounts]()
        held: HeldState | None = None
        t = -1
        for one in entries:
            if one.said["kind"] == "forgotten" and held is not None:
                held = held.without(int(one.said["place"]))
            if one.said["kind"] != "release":
                continue
            t += 1
            new, counted = int(one.said["new"]), int(one.said["counts"])
            people.append((one, new))
            known += new
            groups[t, :known] = np.frombuffer(one.part(16 * new, 4 * known), "<i4")
            here = np.array([names.setdefault(name, len(names)) for name in one.said["values"]], np.int32)
            counts = 16 * new + 4 * known
            held = _held_of(one, held, new, known, counts + 12 * counted)
            shown.append(StoredCounts(one, counts, counted, here))
        confirmed = {one.said["table"] for one in entries if one.said["kind"] == "confirmed"}
        tables = tuple(str(one.said["table"]) for one in begun)
        waiting = any(table not in confirmed for table in tables)
        anew = sum(one.said["kind"] == "sealed" for one in entries)
        return cls(
            People(tuple(people)), groups, Shown(tuple(shown)), tuple(names), tables, waiting, held, anew
        )

    def places(self, people: Hashes) -> npt.NDArray[np.int64]:
        """Where each of *people* stands, or -1."""
        return places_in(self.people.hashes, people)


def places_in(known: Hashes, people: Hashes) -> npt.NDArray[np.int64]:
    """Where each of *people* stands among those *known*, or -1.

    >>> places_in(np.array([[7, 1], [3, 2]], np.uint64), np.array([[3, 2], [4, 4]], np.uint64))
    array([ 1, -1])
    """
    if not len(known):
        return np.full(len(people), -1, np.int64)
    order = np.argsort(known[:, 0], kind="stable")
    at = np.minimum(np.searchsorted(known[order, 0], people[:, 0]), len(order) - 1)
    found = order[at]
    alike = known[found, 0] == people[:, 0]
    if (alike & (known[found, 1] != people[:, 1])).any():
        raise HistoryError(
            "Two people of the history have the same hash.",
            "They could not be told apart, and crowds would be counted wrongly.",
            "Begin a new history.",
        )
    return np.where(alike, found, -1)


def hashes_of(names: pl.Series, secret: bytes) -> Hashes:
    """Sixteen bytes for each of *names*, which nobody can compute without the *secret*.

    >>> hashes_of(pl.Series(["ana", "bia"]), bytes(32)).shape
    (2, 2)
    """
    made = b"".join(
        hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16, key=secret).digest()
        for name in names.cast(pl.String).to_list()
    )
    return np.frombuffer(made, "<u8").reshape(-1, 2)


def entry_of(
    before: Record,
    people: pl.Series,
    groups: Ints32,
    values: pl.Series | None,
    secret: bytes,
    unseen: Sequence[str] = (),
) -> tuple[dict[str, Any], bytes]:
    """What the written rows add: *people* and visible *groups* of each row, and its sensitive value where there is one of each.

    Somebody with several rows is in a group of exactly those who have rows in the same groups. *unseen* people are known from
    now on, though no row of theirs was shown.

    >>> said, body = entry_of(Record.of([]), pl.Series(["a", "b"]), np.array([0, 0], np.int32), None, bytes(32))
    >>> said["new"], len(body)
    (2, 40)
    """
    rows = pl.DataFrame({"person": people.cast(pl.String), "group": groups})
    each = rows.group_by("person", maintain_order=True).agg(pl.col("group").sort())
    if each.height == rows.height:
        own = np.asarray(groups, np.int32)
    else:
        own = each["group"].cast(pl.List(pl.String)).list.join(" ").rank("dense").to_numpy().astype(np.int32)
        own, values = own - 1, None
    hashes = hashes_of(each["person"], secret)
    places = before.places(hashes)
    new = places < 0
    known = len(before.people)
    places[new] = known + np.arange(int(new.sum()))
    column = np.full(known + int(new.sum()), ABSENT, np.int32)
    column[places] = own
    rest = pl.Series(unseen, dtype=pl.String)
    further = hashes_of(rest.filter(~rest.is_in(each["person"].implode())), secret)
    further = further[before.places(further) < 0]
    column = np.concatenate([column, np.full(len(further), ABSENT, np.int32)])
    names: list[str] = []
    triples = np.empty((3, 0), np.int32)
    if values is not None:
        texts = values.cast(pl.String).fill_null("")
        codes = texts.rank("dense").to_numpy().astype(np.int64) - 1
        distinct = texts.unique().sort()
        names = [
            hashlib.blake2b(name.encode(), digest_size=8, key=secret).hexdigest()
            for name in distinct.to_list()
        ]
        pairs, counts = np.unique(own.astype(np.int64) * len(names) + codes, return_counts=True)
        triples = np.stack([pairs // len(names), pairs % len(names), counts]).astype(np.int32)
    fresh = np.concatenate([hashes[new], further])
    said = {"kind": "release", "new": len(fresh), "counts": triples.shape[1], "values": names}
    return said, fresh.astype("<u8").tobytes() + column.astype("<i4").tobytes() + triples.astype(
        "<i4"
    ).tobytes()


@dataclass(frozen=True)
class ToldByReleases:
    """What all releases of a history tell together: *certain* values are None where they were not looked for."""

    releases: int
    k: int
    inside: Crowd
    exactly: Crowd
    certain: int | None
    trouble: str = ""
    pending: bool = False
    sealed_anew: int = 0
    strangers: bool = False
    grouped: bool = False

    def sentences(self) -> tuple[str, ...]:
        """The figures for the owner, what was noticed about the history first."""
        out = []
        if self.trouble:
            out.append(
                say(
                    "The history may not be the newest one ({trouble}): releases it does not know of are not counted, "
                    "and the figures below may be too good.",
                    trouble=self.trouble,
                )
            )
        if self.sealed_anew:
            out.append(
                say_n(
                    "The history was sealed anew {n:,} time, on its owner's word that it was the newest copy: nobody checked that.",
                    "The history was sealed anew {n:,} times, on its owner's word that it was the newest copy: nobody checked that.",
                    self.sealed_anew,
                )
            )
        if self.pending:
            out.append(
                say(
                    "A run was interrupted before it was confirmed: its release is counted as if it had left."
                )
            )
        if self.strangers:
            out.append(
                say(
                    "Nobody of the newest release is known from an earlier one. If they are the same people, written in another way, "
                    "nothing was held together or measured across releases: compare the person columns."
                )
            )
        known = {"releases": self.releases, "k": self.k}
        out.append(
            say(
                "This and earlier releases together ({releases:,} in the history), for who links the rows of a person: the "
                "least number of candidates is {least:,}; {below:,} of {people:,} people ({share:.1%}) have fewer than {k}. Measured.",
                **known,
                least=self.inside.least,
                below=self.inside.below,
                people=self.inside.people,
                share=self.inside.share,
            )
        )
        out.append(
            say(
                "For who also knows exactly who was in which release: the least number of candidates is {least:,}; {below:,} people "
                "({share:.1%}) have fewer than {k}.",
                k=self.k,
                least=self.exactly.least,
                below=self.exactly.below,
                share=self.exactly.share,
            )
        )
        if self.grouped:
            out.append(
                say(
                    "Sensitive values that follow with certainty were not looked for: rows name groups in the place of values, and the "
                    "counts of each group (values.csv) are what is told of them."
                )
            )
        elif self.certain is None:
            out.append(
                say(
                    "Sensitive values that follow with certainty were not looked for: that needs one sensitive column with at most "
                    "{most} different values and one row for each person, in every release.",
                    most=MOST_VALUES,
                )
            )
        else:
            out.append(
                say(
                    "Sensitive values that follow with certainty for who knows which group each person is in: at least "
                    "{certain:,} of {people:,} ({share:.1%}); values are taken to stay the same, and a stronger attack may find more.",
                    certain=self.certain,
                    people=self.inside.people,
                    share=self.certain / max(self.inside.people, 1),
                )
            )
        return tuple(out)


def told_by(record: Record, k: int, trouble: str = "", pending: bool = False) -> ToldByReleases:
    """The figures of a whole record.

    >>> said, body = entry_of(Record.of([]), pl.Series(["a", "b"]), np.array([0, 0], np.int32), pl.Series(["x", "x"]), bytes(32))
    >>> from velado.data.history_file import HistoryEntry
    >>> told = told_by(Record.of([HistoryEntry({**said, "table": ""}, body, "")]), k=2)
    >>> told.inside.least, told.certain
    (2, 2)
    """
    with_values = record.shown.all_counted
    found = certain_values(record.groups, record.shown, len(record.values)) if with_values else None
    certain = None if found is None else int((found >= 0).sum())
    del found  # room for the readers
    return ToldByReleases(
        releases=record.releases,
        k=k,
        inside=crowd_of(candidates_in(record.groups), k),
        exactly=crowd_of(candidates_exactly(record.groups), k),
        certain=certain,
        trouble=trouble,
        pending=pending,
        sealed_anew=record.sealed_anew,
        strangers=_all_strangers(record),
        grouped=record.held is not None and record.held.what == "values",
    )


def _all_strangers(record: Record) -> bool:
    """Whether nobody of the newest release was shown before: first visits, or people whose names were written otherwise."""
    if record.releases < 2:
        return False
    here = record.groups[-1] >= 0
    return bool(here.any()) and not any((here & (one >= 0)).any() for one in record.groups[:-1])
