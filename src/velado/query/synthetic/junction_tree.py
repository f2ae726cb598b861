"""A distribution over columns whose pairs are kept: cliques joined to a tree, exact marginals by passing messages.

Columns that were measured together are joined by an edge; the graph is triangulated (least fill first), its largest cliques are the
nodes of a tree in which every column's cliques hang together (Lauritzen and Spiegelhalter 1988). All numbers in it come from
noisy counts, so nothing here looks at a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

Clique = tuple[int, ...]
Floats = NDArray[np.float64]


def cliques_of(columns: int, edges: Iterable[Clique]) -> tuple[Clique, ...]:
    """The largest cliques of the graph after it was triangulated, columns with nothing between them included.

    >>> cliques_of(4, [(0, 1), (1, 2), (0, 2)])
    ((0, 1, 2), (3,))
    """
    near: list[set[int]] = [set() for _ in range(columns)]
    for edge in edges:
        for a, b in combinations(edge, 2):
            near[a].add(b)
            near[b].add(a)
    left, found = set(range(columns)), []
    while left:
        chosen = min(left, key=lambda at: (_fill(near, at), len(near[at]), at))
        found.append(tuple(sorted({chosen, *near[chosen]})))
        for a, b in combinations(sorted(near[chosen]), 2):
            near[a].add(b)
            near[b].add(a)
        for other in near[chosen]:
            near[other].discard(chosen)
        left.discard(chosen)
    largest = [one for one in found if not any(set(one) < set(other) for other in found)]
    return tuple(sorted(set(largest)))


def _fill(near: Sequence[set[int]], at: int) -> int:
    return sum(b not in near[a] for a, b in combinations(sorted(near[at]), 2))


def cells(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """How many numbers the cliques hold together, in whole numbers that cannot overflow.

    >>> cells((2, 3, 10**30), [(0, 1), (2,)])
    1000000000000000000000000000006
    """
    return sum(prod(int(sizes[at]) for at in clique) for clique in cliques)


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each follows its parent; *parents* are their places, -1 for the first.

    >>> tree = JunctionTree.of((2, 3, 4), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.parents
    (((0, 1), (1, 2)), (-1, 0))
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], edges: Iterable[Clique]) -> JunctionTree:
        """The tree of the columns' graph: each clique hangs on the one it shares most columns with."""
        cliques = cliques_of(len(sizes), edges)
        order, parents = [0], [-1]
        left = set(range(1, len(cliques)))
        while left:
            shared = (
                (-len(set(cliques[new]) & set(cliques[old])), new, at)
                for at, old in enumerate(order)
                for new in left
            )
            _, new, at = min(shared)
            order.append(new)
            parents.append(at)
            left.discard(new)
        return cls(tuple(sizes), tuple(cliques[at] for at in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent; nothing for the first."""
        return tuple(
            () if parent < 0 else tuple(sorted(set(clique) & set(self.cliques[parent])))
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """The sizes of a clique's columns."""
        return tuple(self.sizes[at] for at in clique)

    def home(self, columns: Clique) -> int:
        """The place of the smallest clique that holds these columns; -1 where none does."""
        holding = [at for at, clique in enumerate(self.cliques) if set(columns) <= set(clique)]
        return min(holding, key=lambda at: prod(self.shape(self.cliques[at])), default=-1)

    def marginals(self, potentials: Sequence[Floats], total: float) -> list[Floats]:
        """The counts of every clique under exp(sum of potentials), *total* rows in all; they agree where they overlap.

        Messages go from the last clique to the first and back, as logarithms. O(cells).
        """
        beliefs = [part.copy() for part in potentials]
        up: list[Floats] = [np.zeros(())] * len(beliefs)
        for at in range(len(beliefs) - 1, 0, -1):
            up[at] = _log_sum(beliefs[at], self._outside(at))
            beliefs[self.parents[at]] += self._spread(up[at], at, self.parents[at])
        for at in range(1, len(beliefs)):
            parent = self.parents[at]
            outside = tuple(
                place
                for place, column in enumerate(self.cliques[parent])
                if column not in self.separators[at]
            )
            down = _log_sum(beliefs[parent], outside) - up[at]
            beliefs[at] += self._spread(down, at, at)
        out = []
        for belief in beliefs:
            weights = np.exp(belief - belief.max())
            out.append(weights * (total / weights.sum()))
        return out

    def _outside(self, at: int) -> tuple[int, ...]:
        separator = self.separators[at]
        return tuple(place for place, column in enumerate(self.cliques[at]) if column not in separator)

    def _spread(self, message: Floats, at: int, target: int) -> Floats:
        """A message about a separator in a shape that adds to the clique at *target*."""
        shared = set(self.separators[at])
        return message.reshape([self.sizes[c] if c in shared else 1 for c in self.cliques[target]])

    def pairs(self, counts: Sequence[Floats]) -> Iterator[tuple[Clique, Floats]]:
        """The two-way counts of every two columns, exactly: along the tree what lies between is summed out.

        From column a to a clique C with separator S: n(a, b) = sum_S n(a, S) n(b, S) / n(S). O(columns x cells x widest column).
        """
        total = float(counts[0].sum())
        near: list[list[tuple[int, Clique]]] = [[] for _ in self.cliques]
        for at, parent in enumerate(self.parents):
            if parent >= 0:
                near[at].append((parent, self.separators[at]))
                near[parent].append((at, self.separators[at]))
        for a in range(len(self.sizes)):
            start = self.home((a,))
            told: set[int] = {a}
            # What is known of (a, columns of the clique), where the clique holds a itself; else (a, separator).
            waiting: list[tuple[int, int, Clique, Floats | None]] = [(start, -1, (), None)]
            while waiting:
                at, came, separator, carried = waiting.pop()
                clique = self.cliques[at]
                inside = a in clique
                for b in clique:
                    if b in told:
                        continue
                    told.add(b)
                    if b < a:
                        continue
                    if inside:
                        yield (a, b), marginal(counts[at], clique, (a, b))
                    else:
                        assert carried is not None
                        yield (a, b), self._through(carried, separator, counts[at], clique, (b,), total)
                for other, shared in near[at]:
                    if other == came:
                        continue
                    if inside:
                        onward = None if a in shared else marginal(counts[at], clique, (a, *shared))
                    else:
                        assert carried is not None
                        onward = self._through(carried, separator, counts[at], clique, shared, total)
                    waiting.append((other, at, shared, onward))

    def _through(
        self,
        carried: Floats,
        separator: Clique,
        counts: Floats,
        clique: Clique,
        wanted: Clique,
        total: float,
    ) -> Floats:
        """(a, wanted) from (a, separator) and the clique's own counts."""
        both = tuple(sorted({*separator, *wanted}))
        joint = marginal(counts, clique, both)
        if not separator:
            # Nothing is shared, so the two are independent.
            return np.multiply.outer(carried, joint / total)
        below = marginal(joint, both, separator)
        given = np.divide(carried, below, out=np.zeros_like(carried), where=below > 0)
        names = {column: at + 1 for at, column in enumerate(both)}
        out: Floats = np.einsum(
            given,
            [0, *(names[c] for c in separator)],
            joint,
            [names[c] for c in both],
            [0, *(names[c] for c in wanted)],
            optimize=True,
        )
        return out


def marginal(counts: Floats, clique: Clique, wanted: Clique) -> Floats:
    """The counts of the *wanted* columns, axes in their order, from those of a clique that holds them.

    >>> marginal(np.array([[1.0, 2.0], [3.0, 4.0]]), (0, 1), (1,))
    array([4., 6.])
    """
    away = tuple(at for at, column in enumerate(clique) if column not in wanted)
    kept = [column for column in clique if column in wanted]
    summed: Floats = counts.sum(axis=away) if away else counts
    return summed.transpose([kept.index(column) for column in wanted])


def _log_sum(values: Floats, axes: tuple[int, ...]) -> Floats:
    if not axes:
        return values
    top = values.max(axis=axes, keepdims=True)
    out: Floats = np.log(np.exp(values - top).sum(axis=axes)) + top.reshape(
        [size for at, size in enumerate(values.shape) if at not in axes]
    )
    return out
