"""Rows dealt out to the clients of a simulation, and each client's held-out rows. Every row goes to exactly one client."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from velado.errors import TableError
from velado.federated.federation import Federation
from velado.randomness import seeded

IntVector = npt.NDArray[np.int64]


def split_rows(
    labels: IntVector, federation: Federation, seed: int, people: IntVector | None = None
) -> tuple[IntVector, ...]:
    """The row numbers of each client, rising; together they are all rows, and no row is in two. O(n log n).

    "iid": people are shuffled and dealt out in parts of equal size (they differ by one at most); classes are *not*
    stratified, so that clients differ as much as chance makes them. "dirichlet": for each class c the shares of the
    clients are drawn, p_c ~ Dirichlet(alpha, ..., alpha), and the class is cut at their cumulative sums (Hsu et al.
    2019); small alpha gives clients that hold few classes and differ in size, and some may be left without rows. All
    rows of a person go to one client; a person counts with the class of their first row.
    """
    unit = np.arange(labels.size) if people is None else np.unique(people, return_inverse=True)[1]
    _, first = np.unique(unit, return_index=True)
    if first.size < federation.clients:
        raise TableError(
            f"{first.size} person(s) cannot be dealt out to {federation.clients} clients.",
            "A client would be empty.",
            "Use more rows, or fewer clients.",
        )
    random = seeded(seed, "federated", "split", federation.split)
    owner = np.empty(first.size, dtype=np.int64)
    if federation.split == "iid":
        order = random.permutation(first.size)
        for client, part in enumerate(np.array_split(order, federation.clients)):
            owner[part] = client
    else:
        of_unit = labels[first]
        for number in np.unique(of_unit):
            members = random.permutation(np.flatnonzero(of_unit == number))
            shares = random.dirichlet(np.full(federation.clients, federation.alpha))
            ends = np.rint(np.cumsum(shares) * members.size).astype(np.int64)
            ends[-1] = members.size  # rounding of the sum must not lose the last member
            owner[members] = np.searchsorted(ends, np.arange(members.size), side="right")
    of_row = owner[unit]
    return tuple(np.flatnonzero(of_row == client) for client in range(federation.clients))


def hold_out(
    labels: IntVector, share: float, random: np.random.Generator, people: IntVector | None = None
) -> tuple[IntVector, IntVector]:
    """(rows to learn from, rows held out): *share* of every class is held out, all rows of a person on one side.

    A person counts with the rarest class among their rows, rare by the number of people who have it. Whoever has a
    class that nobody else has stays in the training part, and every class is taught: no held-out row asks for a class
    that was never seen. A class that two people or more have is held out too, where that leaves all others taught.
    Nothing is held out where that would leave nothing to learn from. O(n log n + n c) for c classes.
    """
    unit = np.arange(labels.size) if people is None else np.unique(people, return_inverse=True)[1]
    units = int(unit.max(initial=-1)) + 1
    classes, number = np.unique(labels, return_inverse=True)
    # One entry for each class of each person; `holders` people have a class.
    pairs = np.unique(unit.astype(np.int64) * max(classes.size, 1) + number)
    holder, held = np.divmod(pairs, max(classes.size, 1))
    holders = np.bincount(held, minlength=classes.size)
    order = np.lexsort((held, holders[held], holder))
    rarest = held[order][np.unique(holder[order], return_index=True)[1]]
    tested = np.zeros(units, dtype=bool)
    for one in np.unique(rarest):
        members = random.permutation(np.flatnonzero(rarest == one))
        if members.size < 2 or holders[one] < 2:
            continue
        tested[members[: min(max(round(share * members.size), 1), members.size - 1)]] = True
    if holder.size > units:  # only where somebody has several classes can one be missing on a side
        _teach_all(tested, holder, held, classes.size, random)
        _ask_all(tested, holder, held, classes.size, random)
    on_test = tested[unit]
    return np.flatnonzero(~on_test), np.flatnonzero(on_test)


def _teach_all(
    tested: npt.NDArray[np.bool_],
    holder: IntVector,
    held: IntVector,
    classes: int,
    random: np.random.Generator,
) -> None:
    """Every class has somebody in the training part: where all who have it were drawn, one of them goes back."""
    for one in range(classes):
        members = holder[held == one]
        if tested[members].all():
            tested[random.permutation(members)[0]] = False


def _ask_all(
    tested: npt.NDArray[np.bool_],
    holder: IntVector,
    held: IntVector,
    classes: int,
    random: np.random.Generator,
) -> None:
    """A class that nobody in the test part has gets somebody there, if all classes stay taught without them."""
    for one in range(classes):
        members = holder[held == one]
        if tested[members].any():
            continue
        taught = np.bincount(held[~tested[holder]], minlength=classes)
        needed = np.unique(holder[taught[held] < 2])  # the last who teach some class
        free = np.setdiff1d(members, needed)
        if free.size:
            tested[random.permutation(free)[0]] = True
