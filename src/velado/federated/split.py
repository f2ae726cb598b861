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

    A class that a single person has stays in the training part. Nothing is held out where that would leave nothing to
    learn from.
    """
    unit = np.arange(labels.size) if people is None else np.unique(people, return_inverse=True)[1]
    _, first = np.unique(unit, return_index=True)
    of_unit = labels[first]
    tested = np.zeros(first.size, dtype=bool)
    for number in np.unique(of_unit):
        members = random.permutation(np.flatnonzero(of_unit == number))
        if members.size < 2:
            continue
        tested[members[: min(max(round(share * members.size), 1), members.size - 1)]] = True
    on_test = tested[unit]
    return np.flatnonzero(~on_test), np.flatnonzero(on_test)
