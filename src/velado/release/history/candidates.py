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

import numpy as np
import numpy.typing as npt

from velado.compiled import njit

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint64]

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


def crowd_of(candidates: Ints64, k: int) -> Crowd:
    """What is reported of the candidates of each person; nobody has none but who was never shown.

    >>> crowd_of(np.array([0, 2, 5]), k=5)
    Crowd(least=2, below=1, people=2)
    """
    shown = candidates[candidates > 0]
    least = int(shown.min()) if shown.size else 0
    return Crowd(least, int((shown < k).sum()), int(shown.size))


def candidates_exactly(groups: Ints32) -> Ints64:
    """c_ex of each person; 0 for who was in no release. Signatures are interned release by release: O(T n).

    >>> candidates_exactly(np.array([[0, 0, 0, 1], [0, 0, -1, 0]], np.int32))
    array([2, 2, 1, 1])
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
    sizes = np.bincount(label, minlength=1) if people else np.zeros(1, np.int64)
    return np.where(shown, sizes[label], 0)


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


def candidates_in(groups: Ints32) -> Ints64:
    """c_in of each person; 0 for who was in no release. Everybody is compared with the members of the smallest group.

    >>> candidates_in(np.array([[0, 0, 0, 1], [0, 0, -1, 0]], np.int32))
    array([2, 2, 3, 1])
    """
    groups = np.ascontiguousarray(groups, np.int32)
    releases, people = groups.shape
    if not people:
        return np.empty(0, np.int64)
    best = np.full(people, np.iinfo(np.int32).max, np.int32)
    where = np.full(people, ABSENT, np.int16)
    for t in range(releases):
        column = groups[t]
        sizes = np.bincount(column[column >= 0], minlength=1).astype(np.int32)
        own = np.where(column >= 0, sizes[np.maximum(column, 0)], np.iinfo(np.int32).max)
        smaller = own < best
        where[smaller] = t
        best[smaller] = own[smaller]
    del best
    found = np.zeros(people, np.int32)
    for t in range(releases):
        order = _by_group(groups[t])
        _compare(groups, t, order, where, found)
    return found.astype(np.int64)


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

    >>> Histogram(np.array([0, 0], np.int32), np.array([1, 2], np.int32), np.array([3, 1], np.int32)).dense(1, 3)
    array([[0, 3, 1]], dtype=int32)
    """

    group: Ints32
    value: Ints32
    count: Ints32

    def dense(self, groups: int, values: int) -> Ints32:
        """Counts as a matrix of groups and values."""
        out = np.zeros((groups, values), np.int32)
        out[self.group, self.value] = self.count
        return out


def certain_values(groups: Ints32, shown: Sequence[Histogram], values: int) -> Ints64 | None:
    """The value of each person that follows from all releases, or -1; None where there are too many values to propagate.

    Two homogeneous groups in the second release settle a, b, and what is left of the first is then b's and c's.

    >>> first = Histogram(np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    >>> then = Histogram(np.array([0], np.int32), np.array([0], np.int32), np.array([1], np.int32))
    >>> certain_values(np.array([[0, 0, 0], [0, -1, -1]], np.int32), [first, then], 2)
    array([0, 1, 1])
    """
    if not 0 < values <= MOST_VALUES:
        return None
    people = groups.shape[1]
    every = np.uint64((1 << values) - 1)
    domain = np.full(people, every, np.uint64)
    odd = np.zeros(people, bool)
    for _ in range(MOST_PASSES):
        changed = 0
        for column, histogram in zip(groups, shown, strict=True):
            count = int(column.max(initial=-1)) + 1
            if count:
                changed += _propagate(column, histogram.dense(count, values), domain, odd)
        for one, other in _neighbours(len(groups)):
            rest, left = _rest(groups[one], groups[other], shown[one], shown[other], values)
            changed += _propagate(rest, left, domain, odd)
        if not changed:
            break
    single = (domain & (domain - np.uint64(1))) == 0
    present = (groups >= 0).any(axis=0)
    return np.where(
        single & present & ~odd, np.log2(np.maximum(domain, 1).astype(np.float64)).astype(np.int64), -1
    )


def _neighbours(releases: int) -> list[tuple[int, int]]:
    return [(t + by, t + 1 - by) for t in range(releases - 1) for by in (0, 1)]


def _rest(
    column: Ints32, other: Ints32, shown: Histogram, shown_other: Histogram, values: int
) -> tuple[Ints32, Ints32]:
    """What is left of the groups of one release once groups of another one that lie within them are taken away, and its counts."""
    left = shown.dense(int(column.max(initial=-1)) + 1, values)
    within = _within(column, other, int(other.max(initial=-1)) + 1)
    shown_of = within[shown_other.group]
    inside = shown_of >= 0
    np.subtract.at(left, (shown_of[inside], shown_other.value[inside]), shown_other.count[inside])
    smaller = np.zeros(len(left), bool)
    smaller[within[within >= 0]] = True
    smaller &= (left >= 0).all(axis=1)  # a value that changed: nothing is said
    return _left_over(column, other, within, smaller), left


@njit(cache=True, nogil=True)
def _within(column, other, count):  # type: ignore[no-untyped-def]
    """For each group of *other* the group of *column* that all of its members are in, or below 0."""
    out = np.full(count, -2, np.int32)
    for p in range(column.size):
        g = other[p]
        if g >= 0:
            if out[g] == -2:
                out[g] = column[p]
            elif out[g] != column[p]:
                out[g] = -1
    return out


@njit(cache=True, nogil=True)
def _left_over(column, other, within, smaller):  # type: ignore[no-untyped-def]
    out = np.full(column.size, -1, np.int32)
    for p in range(column.size):
        g = column[p]
        if g >= 0 and smaller[g] and (other[p] < 0 or within[other[p]] < 0):
            out[p] = g
    return out


@njit(cache=True, nogil=True)
def _propagate(column, left, domain, odd):  # type: ignore[no-untyped-def]
    count, values = left.shape
    one = np.uint64(1)
    can = np.zeros((count, values), np.int32)
    doubtful = np.zeros(count, np.bool_)
    for p in range(column.size):
        g = column[p]
        if g < 0:
            continue
        if odd[p]:
            doubtful[g] = True
            continue
        mask = domain[p]
        if mask & (mask - one) == 0:
            for v in range(values):
                if mask >> np.uint64(v) & one:
                    left[g, v] -= 1
                    if left[g, v] < 0:
                        doubtful[g] = True
        else:
            for v in range(values):
                if mask >> np.uint64(v) & one:
                    can[g, v] += 1
    changed = 0
    for p in range(column.size):
        g = column[p]
        if g < 0 or odd[p] or doubtful[g]:
            continue
        mask = domain[p]
        if mask & (mask - one) == 0:
            continue
        now = np.uint64(0)
        for v in range(values):
            if mask >> np.uint64(v) & one and left[g, v] > 0:
                if left[g, v] == can[g, v]:  # nobody else is left for it
                    now = one << np.uint64(v)
                    break
                now |= one << np.uint64(v)
        if now == 0:
            odd[p] = True
            changed += 1
        elif now != mask:
            domain[p] = now
            changed += 1
    return changed
