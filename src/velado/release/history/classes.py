"""Classes for life: who is shown together once is shown together until the epoch ends, or not at all.

A class is a crowd of at least *start* people, made once, from newcomers alone. Two rules say what happens when some of it leave.

*drop*: those here are shown as long as at least k of the class were in every release of it. Let C be these; whoever v is, all of C
shared v's group in every release v was in, so that a reader *in* (who knows v's quasi-identifiers and releases v is in, of nobody when they are missing, and links rows) is
left with at least k people. A class whose C falls below k is given up until the epoch ends: a smaller one would be subtracted from
the larger ones published before.

*keep*: rows of people who left are shown on, until at least k of the class are gone and at least k (or none) are here; then those gone
are taken out together. People of one class taken out in one release, and those never taken out, have one history each: both are blocks
of at least k, which is what a reader *exactly* (who knows everybody's presence too) is left with.

Nobody who was taken out or given up is shown again in the epoch: a second crowd would meet the first in that person alone. What
`grouping` may look at are quasi-identifiers and presence, never a sensitive value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.text import say

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Leavers = Literal["drop", "keep"]
Grouping = Callable[[Ints], npt.NDArray[np.integer[Any]]]
"""From the positions of newcomers among those here to a group of each, counted from 0; below 0: to wait on."""

NOBODY = -1


@dataclass(frozen=True)
class Classes:
    """Everybody who was ever put into a class in this epoch: *people* (ascending), the class of each, and how each stands.

    *standing*: under *drop*, in every release of the class so far; under *keep*, not yet taken out. *over* tells for each class
    whether it was given up.

    >>> Classes.none().people.size
    0
    """

    people: Ints
    home: Ints
    standing: Bools
    over: Bools

    @staticmethod
    def none() -> Classes:
        """The state before the first release of an epoch."""
        return Classes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool), np.empty(0, bool))

    def places(self, people: Ints) -> Ints:
        """Where each of *people* stands in `people`, or NOBODY."""
        if not self.people.size:
            return np.full(people.size, NOBODY, np.int64)
        at = np.minimum(np.searchsorted(self.people, people), self.people.size - 1)
        return np.where(self.people[at] == people, at, NOBODY)


@dataclass(frozen=True)
class Shown:
    """What one release may show of those *here*, and the state for the next one.

    *classes* has for each of those here the class they are shown with, or NOBODY; each is then *waiting* (a newcomer, may come later)
    or *given_up* (not again in this epoch). *stale* are people who left and whose rows are shown on, *stale_classes* with whom.

    >>> first = shown_together(Classes.none(), np.arange(4), k=2, start=4, grouping=lambda at: at // 4)
    >>> first.classes, first.after.over
    (array([0, 0, 0, 0]), array([False]))
    """

    classes: Ints
    waiting: Bools
    given_up: Bools
    stale: Ints
    stale_classes: Ints
    after: Classes


def shown_together(
    before: Classes, here: Ints, *, k: int, start: int, grouping: Grouping, leavers: Leavers = "drop"
) -> Shown:
    """What of the people *here* (distinct whole numbers) may be shown, with whom, and who waits or was given up.

    Newcomers are grouped as soon as at least *start* of them are here, by *grouping*, whose groups have at least *start* people;
    a smaller group is an error, never published. O(n log n) for n people of the epoch.

    Three of six leave, and with k = 4 their class ends; who comes back stays out, and newcomers wait for a crowd.

    >>> one = lambda at: np.zeros(at.size, np.int64)
    >>> first = shown_together(Classes.none(), np.arange(6), k=4, start=6, grouping=one)
    >>> then = shown_together(first.after, np.array([0, 1, 2, 9]), k=4, start=6, grouping=one)
    >>> then.classes, then.given_up, then.waiting
    (array([-1, -1, -1, -1]), array([ True,  True,  True, False]), array([False, False, False,  True]))
    """
    if not 1 <= k <= start:
        raise ParameterError(
            say("A class was to start with {start} people, and k is {k}.", start=start, k=k),
            "A class that starts below k can never be shown.",
            "Ask for a start of at least k; twice k leaves room for people who leave.",
        )
    if np.unique(here).size != here.size:
        raise ParameterError(
            "A person was named twice among those here.",
            "A crowd is counted in people, and this one would be counted twice.",
            "Give every person once.",
        )
    places = before.places(here)
    present = np.zeros(before.people.size, bool)
    present[places[places >= 0]] = True
    held = _dropped(before, present, k) if leavers == "drop" else _kept(before, present, k)
    classes = np.full(here.size, NOBODY, np.int64)
    old = places >= 0
    # Under `drop` a member who was away may be shown again with the class: those of every release are the crowd.
    may = ~held.over[held.home] if leavers == "drop" else held.standing & ~held.over[held.home]
    classes[old] = np.where(may[places[old]], held.home[places[old]], NOBODY)
    stale = np.flatnonzero(may & ~present) if leavers == "keep" else np.empty(0, np.int64)
    newcomers = np.flatnonzero(~old)
    after = held
    if newcomers.size >= start:
        groups = _checked(np.asarray(grouping(newcomers), np.int64), newcomers.size, start)
        classes[newcomers] = np.where(groups >= 0, groups + before.over.size, NOBODY)
        after = _joined(held, here[newcomers], classes[newcomers])
    return Shown(
        classes=classes,
        waiting=~old & (classes < 0),
        given_up=old & (classes < 0),
        stale=before.people[stale],
        stale_classes=before.home[stale],
        after=after,
    )


def taken_out(before: Classes, person: int) -> Classes:
    """The state once *person* was erased: the whole class is given up, so that no smaller crowd tells who is missing.

    >>> first = shown_together(Classes.none(), np.arange(4), k=2, start=2, grouping=lambda at: at // 2)
    >>> taken_out(first.after, 3).over
    array([False,  True])
    """
    place = before.places(np.array([person]))[0]
    if place < 0:
        return before
    over = before.over.copy()
    over[before.home[place]] = True
    return replace(before, over=over)


def _dropped(before: Classes, present: Bools, k: int) -> Classes:
    standing = before.standing & present
    core = np.bincount(before.home[standing], minlength=before.over.size)
    any_here = np.bincount(before.home[present], minlength=before.over.size) > 0
    # A class of which nobody is here is not shown, so that nobody is absent from a release of it.
    over = before.over | (any_here & (core < k))
    standing = np.where(any_here[before.home], standing, before.standing)
    return replace(before, standing=standing, over=over)


def _kept(before: Classes, present: Bools, k: int) -> Classes:
    sizes = before.over.size
    here = np.bincount(before.home[before.standing & present], minlength=sizes)
    gone = np.bincount(before.home[before.standing & ~present], minlength=sizes)
    leave = (gone >= k) & ((here >= k) | (here == 0))
    return replace(before, standing=before.standing & (present | ~leave[before.home]))


def _checked(groups: Ints, newcomers: int, start: int) -> Ints:
    sizes = np.bincount(groups[groups >= 0]) if (groups >= 0).any() else np.empty(0, np.int64)
    if groups.size != newcomers or (sizes < start).any():
        raise ParameterError(
            say("A new class has fewer than {start} people.", start=start),
            "The classes were made by a method that does not keep to the size it was asked for.",
            "Use a method whose groups have at least the k it is given.",
        )
    return groups


def _joined(held: Classes, people: Ints, classes: Ints) -> Classes:
    in_class = classes >= 0
    people, classes = people[in_class], classes[in_class]
    grown = int(classes.max()) + 1 if classes.size else held.over.size
    order = np.argsort(np.concatenate([held.people, people]), kind="stable")
    return Classes(
        people=np.concatenate([held.people, people])[order],
        home=np.concatenate([held.home, classes])[order],
        standing=np.concatenate([held.standing, np.ones(people.size, bool)])[order],
        over=np.concatenate([held.over, np.zeros(grown - held.over.size, bool)]),
    )
