"""How many people somebody could be for who has all releases, and which sensitive values follow with certainty.

`groups` is H of shape (releases, people): the visible group of each person in each release, below 0 where absent. Readers:

*in* knows a person's quasi-identifiers and releases the person is in, of nobody when they are missing, and links rows of one person:
c_in(v) = |{u : H[u,t] = H[v,t] for every t with v present}|.
*exactly* knows everybody's quasi-identifiers, presence and absence besides: c_ex(v) = |{u : H[u,t] = H[v,t] for every t}|.

Values are certain by propagation: each person's value is among those of the person's group in every release; a value that is settled
is taken off the counts of all groups of its owner, until nothing more follows. Groups of one release that lie within a group of the
release before or after it are taken off that one: what is left is a group too. A stronger attack may settle more: a lower bound.
It assumes that a person's value stays the same; where none fits any more, nothing is said of that person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from velado.compiled import njit

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

ABSENT = -1
MOST_VALUES = 64
"""More distinct values than this are not propagated: they stand in one machine word."""
MOST_PASSES = 64


@dataclass(frozen=True)
class Crowd:
    """The least number of candidates, how many people have fewer than k, and how many were counted.

    >>> Crowd(least=2, below=3, people=10).share
    0.3
    """

    least: int
    below: int
    people: int

    @property
    def share(self) -> float:
        """The share of people who have fewer than k candidates."""
        return self.below / self.people if self.people else 0.0


def crowd_of(candidates: Ints32, k: int) -> Crowd:
    """What is reported of the candidates of each person; nobody has none but who was never shown.

    >>> crowd_of(np.array([0, 2, 5], np.int32), k=5)
    Crowd(least=2, below=1, people=2)
    """
    shown = candidates > 0
    people, among = int(shown.sum()), int((candidates < k).sum())
    least = int(candidates.min(initial=np.iinfo(np.int32).max, where=shown)) if people else 0
    return Crowd(least, max(among - (candidates.size - people), 0), people)


def candidates_exactly(groups: Ints32) -> Ints32:
    """c_ex of each person; 0 for who was in no release. Signatures are interned release by release: O(T n).

    >>> candidates_exactly(np.array([[0, 0, 0, 1], [0, 0, -1, 0]], np.int32))
    array([2, 2, 1, 1], dtype=int32)
    """
    people = len(groups[0]) if len(groups) else 0
    label, fresh = np.zeros(people, np.int32), np.empty(people, np.int32)
    shown = np.zeros(people, bool)
    slots = np.empty(1 << max(2 * people - 1, 1).bit_length(), np.int32)
    for column in groups:
        shown |= column >= 0
        slots[:] = -1
        _intern(np.ascontiguousarray(column, np.int32), label, fresh, slots)
        label, fresh = fresh, label
    del slots, fresh
    sizes = np.bincount(label, minlength=1).astype(np.int32) if people else np.zeros(1, np.int32)
    found: Ints32 = sizes[label]
    found[~shown] = 0
    return found


@njit(cache=True, nogil=True)
def _intern(column, label, fresh, slots):  # type: ignore[no-untyped-def]
    """Each pair of label and group is a label of its own from now on, in *fresh*; slots hold the first person of each pair."""
    last, count = slots.size - 1, np.int32(0)
    for p in range(label.size):
        key = np.int64(label[p]) << 32 | np.int64(column[p] + 1)
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        at = np.int64(mixed >> np.uint64(24)) & last
        while slots[at] != -1 and (label[slots[at]] != label[p] or column[slots[at]] != column[p]):
            at = (at + 1) & last
        if slots[at] == -1:
            slots[at], fresh[p] = p, count
            count += np.int32(1)
        else:
            fresh[p] = fresh[slots[at]]


def candidates_in(groups: Ints32) -> Ints32:
    """c_in of each person; 0 for who was in no release. Everybody is compared with the members of the smallest group.

    >>> candidates_in(np.array([[0, 0, 0, 1], [0, 0, -1, 0]], np.int32))
    array([2, 2, 3, 1], dtype=int32)
    """
    groups = np.ascontiguousarray(groups, np.int32)
    releases, people = groups.shape
    if not people:
        return np.empty(0, np.int32)
    best = np.full(people, np.iinfo(np.int32).max, np.int32)
    where = np.full(people, ABSENT, np.int16)
    for t in range(releases):
        _smallest(groups[t], t, best, where)
    del best
    found = np.zeros(people, np.int32)
    for t in range(releases):
        order = _by_group(groups[t])
        _compare(groups, t, order, where, found)
    return found


@njit(cache=True, nogil=True)
def _smallest(column, t, best, where):  # type: ignore[no-untyped-def]
    """Where this release shows somebody in a smaller group than those before, it is the one to look at."""
    sizes = np.zeros(max(column.max() + 1, 1), np.int32)
    for group in column:
        if group >= 0:
            sizes[group] += 1
    for p in range(column.size):
        if column[p] >= 0 and sizes[column[p]] < best[p]:
            best[p], where[p] = sizes[column[p]], t


@njit(cache=True, nogil=True)
def _by_group(column):  # type: ignore[no-untyped-def]
    """The positions in the order of their groups, those absent first: sorted by counting, in no more room than the answer."""
    ends = np.zeros(column.max() + 3, np.int32)
    for group in column:
        ends[group + 2] += 1
    for at in range(1, ends.size):
        ends[at] += ends[at - 1]
    order = np.empty(column.size, np.int32)
    for p in range(column.size):
        order[ends[column[p] + 1]] = p
        ends[column[p] + 1] += 1
    return order


@njit(cache=True, nogil=True)
def _compare(groups, t, order, where, found):  # type: ignore[no-untyped-def]
    releases, people = groups.shape
    begin = 0
    while begin < people:
        group = groups[t, order[begin]]
        end = begin + 1
        while end < people and groups[t, order[end]] == group:
            end += 1
        if group >= 0:
            for i in range(begin, end):
                v = order[i]
                if where[v] != t:
                    continue
                count = 0
                for j in range(begin, end):
                    u = order[j]
                    same = True
                    for s in range(releases):
                        if groups[s, v] >= 0 and groups[s, u] != groups[s, v]:
                            same = False
                            break
                    count += same
                found[v] = count
        begin = end


@dataclass(frozen=True)
class Histogram:
    """What one release shows of its groups: for each entry a group, a value and how many members have it.

    >>> Histogram(np.array([0, 0], np.int32), np.array([1, 2], np.int32), np.array([3, 1], np.int32)).by_group(1)[0]
    array([0, 2], dtype=int32)
    """

    group: Ints32
    value: Ints32
    count: Ints32

    def by_group(self, groups: int) -> Entries:
        """The entries in the order of their groups, counts the caller's own."""
        begin, order = begins(self.group, groups)
        return begin, self.value[order].astype(np.uint8), self.count[order].astype(np.int32)


Entries = tuple[Ints32, npt.NDArray[np.uint8], Ints32]
"""Where the entries of each group begin (and the last ends), their values, and their counts."""


class Counts(Protocol):
    """What one release shows of its groups, wherever it lies."""

    def by_group(self, groups: int) -> Entries: ...


def begins(group: Ints32, groups: int) -> tuple[Ints32, slice | Ints64]:
    """Where the entries of each group begin once they are in its order, and that order.

    >>> begins(np.array([0, 0, 2], np.int32), 3)
    (array([0, 2, 2, 3], dtype=int32), slice(None, None, None))
    """
    order: slice | Ints64 = slice(None)
    if (group[1:] < group[:-1]).any():
        order = np.argsort(group, kind="stable")
    # Of one type with the groups, or all of these would be copied.
    starts = np.arange(groups + 1, dtype=group.dtype)
    return np.searchsorted(group[order], starts).astype(np.int32), order


def certain_values(groups: Ints32, shown: Sequence[Counts], values: int) -> Ints32 | None:
    """The value of each person that follows from all releases, or -1; None where there are too many values to propagate.

    Two homogeneous groups in the second release settle a, b, and what is left of the first is then b's and c's.

    >>> first = Histogram(np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    >>> then = Histogram(np.array([0], np.int32), np.array([0], np.int32), np.array([1], np.int32))
    >>> certain_values(np.array([[0, 0, 0], [0, -1, -1]], np.int32), [first, then], 2)
    array([0, 1, 1], dtype=int32)
    """
    if not 0 < values <= MOST_VALUES:
        return None
    people = groups.shape[1]
    word: type[np.unsignedinteger[Any]] = np.uint32 if values <= 32 else np.uint64
    domain = np.full(people, (1 << values) - 1, word)
    odd = np.zeros(people, bool)
    room = np.empty(0, np.int32)
    rest = np.empty(people, np.int32)
    for _ in range(MOST_PASSES):
        changed = 0
        for column, histogram in zip(groups, shown, strict=True):
            entries = histogram.by_group(int(column.max(initial=-1)) + 1)
            room = room if room.size >= entries[1].size else np.empty(entries[1].size, np.int32)
            changed += _propagate(column, *entries, domain, odd, room)
        for one, other in _neighbours(len(groups)):
            entries = _rest(groups[one], groups[other], shown[one], shown[other], rest)
            changed += _propagate(rest, *entries, domain, odd, room)
        if not changed:
            break
    del room, rest
    return np.asarray(_settled(groups, domain, odd))


@njit(cache=True, nogil=True)
def _settled(groups, domain, odd):  # type: ignore[no-untyped-def]
    """The one value that is left for each person who was shown, or -1."""
    out = np.full(domain.size, -1, np.int32)
    for p in range(domain.size):
        mask = domain[p]
        if odd[p] or mask & (mask - np.uint64(1)) != 0:
            continue
        for t in range(groups.shape[0]):
            if groups[t, p] >= 0:
                while mask > np.uint64(0):
                    mask >>= np.uint64(1)
                    out[p] += 1
                break
    return out


def _neighbours(releases: int) -> list[tuple[int, int]]:
    return [(t + by, t + 1 - by) for t in range(releases - 1) for by in (0, 1)]


def _rest(column: Ints32, other: Ints32, shown: Counts, shown_other: Counts, out: Ints32) -> Entries:
    """In *out* what is left of the groups of one release once groups of another one that lie within them are taken away; its counts."""
    begin, value, left = shown.by_group(int(column.max(initial=-1)) + 1)
    taken = shown_other.by_group(int(other.max(initial=-1)) + 1)
    _left_over(column, other, begin, value, left, *taken, out)
    return begin, value, left


@njit(cache=True, nogil=True)
def _left_over(column, other, begin, value, left, other_begin, other_value, other_count, out):  # type: ignore[no-untyped-def]
    within = np.full(other_begin.size - 1, -2, np.int32)
    for p in range(column.size):
        g = other[p]
        if g >= 0:
            if within[g] == -2:
                within[g] = column[p]
            elif within[g] != column[p]:
                within[g] = -1
    # 0: nothing lies within it; 1: it is smaller now; 2: a value changed, and nothing is said of it.
    state = np.zeros(begin.size - 1, np.int8)
    for g in range(within.size):
        whole = within[g]
        if whole < 0:
            continue
        if state[whole] == 0:
            state[whole] = 1
        for entry in range(other_begin[g], other_begin[g + 1]):
            found = False
            for at in range(begin[whole], begin[whole + 1]):
                if value[at] == other_value[entry]:
                    left[at] -= other_count[entry]
                    found = left[at] >= 0
                    break
            if not found:
                state[whole] = 2
    for p in range(column.size):
        g = column[p]
        out[p] = -1
        if g >= 0 and state[g] == 1 and (other[p] < 0 or within[other[p]] < 0):
            out[p] = g


@njit(cache=True, nogil=True)
def _propagate(column, begin, value, left, domain, odd, can):  # type: ignore[no-untyped-def]
    """How many domains became smaller. *can* is room for a number of each entry."""
    one = np.uint64(1)
    can[: value.size] = 0
    doubtful = np.zeros(begin.size, np.bool_)
    for p in range(column.size):
        g = column[p]
        if g < 0:
            continue
        if odd[p]:
            doubtful[g] = True
            continue
        mask = domain[p]
        if mask & (mask - one) == 0:
            found = False
            for at in range(begin[g], begin[g + 1]):
                if mask >> np.uint64(value[at]) & one:
                    left[at] -= 1
                    found = left[at] >= 0
                    break
            if not found:
                doubtful[g] = True
        else:
            for at in range(begin[g], begin[g + 1]):
                if mask >> np.uint64(value[at]) & one:
                    can[at] += 1
    changed = 0
    for p in range(column.size):
        g = column[p]
        if g < 0 or odd[p] or doubtful[g]:
            continue
        mask = domain[p]
        if mask & (mask - one) == 0:
            continue
        now = np.uint64(0)
        for at in range(begin[g], begin[g + 1]):
            if mask >> np.uint64(value[at]) & one and left[at] > 0:
                if left[at] == can[at]:  # nobody else is left for it
                    now = one << np.uint64(value[at])
                    break
                now |= one << np.uint64(value[at])
        if now == 0:
            odd[p] = True
            changed += 1
        elif now != mask:
            domain[p] = now
            changed += 1
    return changed
