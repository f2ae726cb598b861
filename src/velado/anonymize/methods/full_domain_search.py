"""Search in the lattice: the node of least loss among those the goal allows.

A node is *allowed* when the rows in groups where the goal fails are within the suppression limit and some
row is left. The loss without suppression, known from column histograms alone, bounds the true loss from
below. A greedy descent from the coarsest node gives a first answer; then every node whose bound is not above
the answer is visited or ruled out. For promises that only get easier with coarser groups a node that is not
allowed rules out everything finer, so coarse nodes come first; otherwise those of smallest bound come first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal, Progress
from velado.anonymize.guarantees.beta_likeness import BetaLikeness
from velado.anonymize.guarantees.delta_presence import DeltaPresence
from velado.anonymize.guarantees.entropy_l_diversity import EntropyLDiversity
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.guarantees.k_map import KMap
from velado.anonymize.guarantees.l_diversity import LDiversity
from velado.anonymize.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.anonymize.guarantees.t_closeness import TCloseness
from velado.anonymize.methods.full_domain_lattice import Lattice, Node
from velado.anonymize.methods.full_domain_losses import Loss, Value, rounded

MOST_NODES = 1 << 20
"""A lattice larger than this is not listed; only an anytime search walks it."""

_GROUPWISE = (KAnonymity, LDiversity, KMap)
_WHEN_NOTHING_IS_SUPPRESSED = (
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
    BetaLikeness,
    DeltaPresence,
)
_Key = tuple[Value, int, int, Node]


@dataclass(frozen=True)
class Found:
    """The best node, its loss, and whether it is proven that there is no better one."""

    node: Node
    value: Value
    suppressed: int
    proven: bool
    visits: int


def easier_when_coarser(goal: Goal, limit: int) -> bool:
    """Whether a node that is not allowed proves that every finer one is not.

    k-anonymity, distinct l-diversity and k-map hold in every union of groups one of which holds. The others
    hold in a union when they hold in *all* its parts (entropy is concave, distances are convex), which is
    enough only where nothing may be suppressed.
    """
    for guarantee in goal.guarantees:
        if isinstance(guarantee, _GROUPWISE):
            continue
        if limit or not isinstance(guarantee, _WHEN_NOTHING_IS_SUPPRESSED):
            return False
    return True


@dataclass
class Search:
    """One search. Ties go to fewer suppressed rows, then lower levels in sum, then the first in order."""

    lattice: Lattice
    loss: Loss
    max_visits: int | None = None
    progress: Progress | None = None
    _seen: dict[Node, _Key | None] = field(default_factory=dict)
    _best: _Key | None = None

    def __post_init__(self) -> None:
        self.limit = self.lattice.goal.suppressible(self.lattice.rows)
        self.monotone = easier_when_coarser(self.lattice.goal, self.limit)
        self._terms = self.loss.column_bounds()
        self._ruled_out: npt.NDArray[np.bool_] | None = None
        self._dead: list[Node] = []

    def run(self) -> Found | None:
        """The best allowed node, or None when no visited node is allowed."""
        listed = self.lattice.nodes <= MOST_NODES
        if listed:
            self._ruled_out = np.zeros([height + 1 for height in self.lattice.heights], dtype=bool)
        top = self.lattice.heights
        allowed = self._visit(top) is not None
        if allowed or not self.monotone:
            self._descend(top)
            proven = self._visit_all() if listed else self._walk()
        else:
            proven = True
        if self._best is None:
            return None
        _, suppressed, _, node = self._best
        return Found(node, self.loss.of(node), suppressed, proven, len(self._seen))

    def _visit(self, node: Node) -> _Key | None:
        if node in self._seen:
            return self._seen[node]
        counted = self.lattice.count(node)
        allowed = counted.suppressed <= self.limit and counted.suppressed < self.lattice.rows
        key: _Key | None = None
        if allowed:
            key = (rounded(self.loss.value(counted)), counted.suppressed, sum(node), node)
            if self._best is None or key < self._best:
                self._best = key
        elif self.monotone or counted.short > self.limit:
            self._rule_out(node)
        self._seen[node] = key
        return key

    def _rule_out(self, node: Node) -> None:
        if self._ruled_out is not None:
            self._ruled_out[tuple(slice(0, level + 1) for level in node)] = True
        else:
            self._dead.append(node)

    def _hopeless(self, node: Node) -> bool:
        if self._ruled_out is not None:
            return bool(self._ruled_out[node])
        return any(all(a <= b for a, b in zip(node, dead, strict=True)) for dead in self._dead)

    def _spent(self) -> bool:
        return self.max_visits is not None and len(self._seen) >= self.max_visits

    def _descend(self, node: Node) -> None:
        # From a node to its best allowed finer neighbour, until none is better.
        key = self._seen[node]
        while not self._spent():
            best: tuple[_Key, Node] | None = None
            for column, level in enumerate(node):
                if level == 0:
                    continue
                finer = (*node[:column], level - 1, *node[column + 1 :])
                if self._hopeless(finer):
                    continue
                found = self._visit(finer)
                if found is not None and (best is None or found < best[0]):
                    best = (found, finer)
            if best is None or (key is not None and best[0] >= key):
                return
            key, node = best

    def _visit_all(self) -> bool:
        """Visit or rule out every node that could be better; False when the visits ran out before."""
        assert self._ruled_out is not None
        shape = self._ruled_out.shape
        index = np.indices(shape).reshape(len(shape), -1)
        terms = [term[levels] for term, levels in zip(self._terms, index, strict=True)]
        bounds = self.loss.bounds(terms)
        slack = 1e-11  # a bound is a sum in another order than the loss it bounds
        bounds -= slack * np.abs(bounds)
        candidates = np.flatnonzero(~self._ruled_out.ravel())
        if self._best is not None:
            candidates = candidates[bounds[candidates, 0] <= self._best[0][0]]
        order = np.lexsort(bounds[candidates].T[::-1])
        candidates = candidates[order[::-1] if self.monotone else order]
        ruled_out = self._ruled_out.ravel()
        for done, at in enumerate(candidates.tolist()):
            if ruled_out[at]:
                continue
            if self._best is not None and tuple(bounds[at].tolist()) > self._best[0]:
                if self.monotone:
                    continue
                break
            if self._spent():
                return False
            self._visit(tuple(index[:, at].tolist()))
            if self.progress is not None and done % 64 == 0:
                self.progress(done / candidates.size, "searching the lattice")
        return True

    def _walk(self) -> bool:
        """Best first from node to neighbouring node, up or down one level, until the visits run out."""
        queue: list[_Key] = sorted(key for key in self._seen.values() if key is not None)
        heights = self.lattice.heights
        while queue and not self._spent():
            _, _, _, node = heapq.heappop(queue)
            for column, level in enumerate(node):
                for other in (level - 1, level + 1):
                    neighbour = (*node[:column], other, *node[column + 1 :])
                    if not 0 <= other <= heights[column] or neighbour in self._seen:
                        continue
                    terms = [term[[at]] for term, at in zip(self._terms, neighbour, strict=True)]
                    bound = tuple(self.loss.bounds(terms)[0].tolist())
                    if self._spent() or self._hopeless(neighbour):
                        continue
                    if self._best is not None and bound > self._best[0]:
                        continue
                    key = self._visit(neighbour)
                    if key is not None:
                        heapq.heappush(queue, key)
        return False
