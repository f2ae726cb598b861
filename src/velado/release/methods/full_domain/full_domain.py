"""Full-domain generalization: one level per column for the whole table, the best combination of levels."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, Partition
from velado.errors import GuaranteeNotMet, ParameterError, SuppressionLimitExceeded
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._method import Takes
from velado.release.methods.full_domain import _generalization_lattice as kernel
from velado.release.methods.full_domain._generalization_lattice import (
    Counted,
    Lattice,
    Node,
    NumericBins,
    column_levels,
)
from velado.release.recoded import NoteName, PublishedColumn, Recoded
from velado.settings import Setting, settings
from velado.text import say

# Losses of a node of the lattice: what is minimised, and a bound on it that needs no grouping.
#
# Every loss is a tuple of numbers compared from the first on (one number, but for "rank"). The definitions
# are those of ARX, so that its published optima can be met:
#
# - "ncp": mean over columns of L_c, the mean certainty penalty of column c, a suppressed row counting 1;
# - "geometric": (prod (1 + L_c))^(1/d) - 1, ARX's default; "rank": the L_c from largest to smallest;
# - "entropy": non-uniform entropy in bits, sum over rows and columns of -log2(rows with the value / rows with
# its generalization), plus the same of the suppressed rows' generalized values among themselves;
# - "discernibility": sum of squared group sizes, a suppressed row counting all rows;
# - "class-size": rows / groups, the suppressed rows counting as one group;
# - "precision": mean of level / height, a suppressed row counting 1; "height": sum of the levels.

LossName = Literal[
    "ncp", "geometric", "rank", "entropy", "discernibility", "class-size", "precision", "height"
]
LOSSES: tuple[LossName, ...] = get_args(LossName)
_PENALTIES = ("ncp", "geometric", "rank")
"""The losses made of the columns' mean certainty penalties."""
Suppressed = Literal["charged", "ignored"]
Value = tuple[float, ...]


@dataclass
class Loss:
    """One loss on one lattice.

    *suppressed* "ignored" takes suppressed rows as generalized like the rest (ARX's monotonic variants).
    *balance* (penalties only) is ARX's gsFactor: 0.5 charges both in full, towards 0 suppression ever less
    beyond the generalization that the row would have had, towards 1 generalization ever less.
    *weights* multiply the columns' terms after division by the largest.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 21, 30, 31])
    >>> lattice = Lattice(data, (column_levels(data.columns[0], "halves"),), Goal((KAnonymity(2),)), None, {})
    >>> Loss("ncp", lattice).of(lattice.heights)
    (1.0,)
    """

    name: LossName
    lattice: Lattice
    suppressed: Suppressed = "charged"
    balance: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lattice = self.lattice
        generalizing = 1.0 if self.balance < 0.5 else 2.0 - 2.0 * self.balance
        self._suppressing = 2.0 * self.balance if self.balance < 0.5 else 1.0
        # ARX scales leaves / T, not the penalty, and then maps T's own share to 0 and 1 to 1.
        trees = [column.tree for column in lattice.data.columns]
        self._generalizing = np.array(
            [
                generalizing * (tree.leaves - 1) / (tree.leaves - generalizing)
                if tree is not None and tree.leaves > 1
                else generalizing
                for tree in trees
            ]
        )
        given = [float(self.weights.get(c.name, 1.0)) for c in lattice.data.columns]
        largest = max(given)
        self._weight = [weight / largest if self.weights else 1.0 for weight in given]
        self._charge = np.concatenate(
            [
                levels.loss[level][levels.group[level]]
                for levels in lattice.levels
                for level in range(levels.height + 1)
            ]
        )
        histograms = [lattice.histogram(c).astype(np.float64) for c in range(len(lattice.levels))]
        # Per column and level: the penalty of all rows, and their entropy.
        self._total: list[FloatArray] = []
        self._entropy: list[FloatArray] = []
        for levels, histogram in zip(lattice.levels, histograms, strict=True):
            penalties = [levels.loss[at][levels.group[at]] for at in range(levels.height + 1)]
            self._total.append(np.array([histogram @ penalty for penalty in penalties]))
            own = float(_n_log_n(histogram).sum())
            self._entropy.append(
                np.array([_n_log_n(np.bincount(g, weights=histogram)).sum() - own for g in levels.group])
            )

    def column_bounds(self) -> list[FloatArray]:
        """For each column, what each of its levels adds at least; `combine` makes a bound of one per column."""
        lattice = self.lattice
        if self.name in _PENALTIES:
            scaled = zip(self._weight, self._generalizing, self._total, strict=True)
            terms = [w * factor * total / lattice.rows for w, factor, total in scaled]
            return [np.log1p(term) for term in terms] if self.name == "geometric" else terms
        if self.name == "entropy":
            return [w * entropy for w, entropy in zip(self._weight, self._entropy, strict=True)]
        if self.name in ("discernibility", "class-size"):
            # There are no more groups than combinations of values.
            return [-np.log(np.array(levels.sizes, dtype=np.float64)) for levels in lattice.levels]
        levels_of = [np.arange(height + 1.0) for height in lattice.heights]
        if self.name == "height":
            return levels_of
        return [
            w * level / max(height, 1)
            for w, level, height in zip(self._weight, levels_of, lattice.heights, strict=True)
        ]

    def bounds(self, terms: list[FloatArray]) -> FloatArray:
        """Lower bounds of many nodes: *terms* has per column one number per node; one row per node comes back."""
        if self.name == "rank":
            return -np.sort(-np.stack(terms, axis=1), axis=1)
        total = np.zeros_like(terms[0])
        for term in terms:
            total = total + term
        columns, rows = len(terms), float(self.lattice.rows)
        if self.name == "geometric":
            total = np.expm1(total / columns)
        elif self.name in ("ncp", "precision"):
            total = total / columns
        elif self.name == "discernibility":
            total = np.maximum(np.exp(total) * rows, 1.0) * rows
        elif self.name == "class-size":
            total = np.maximum(np.exp(total) * rows, 1.0)
        return total[:, None]

    def value(self, counted: Counted) -> Value:
        """The loss of a counted node."""
        lattice, node = self.lattice, counted.node
        rows = float(lattice.rows)
        dropped = 0.0 if self.suppressed == "ignored" else float(counted.suppressed)
        if self.name in _PENALTIES:
            return self._penalty(counted, dropped)
        if self.name == "entropy":
            base = [w * e[level] for w, e, level in zip(self._weight, self._entropy, node, strict=True)]
            return (float(sum(base)) + (self._entropy_of_suppressed(counted) if dropped else 0.0),)
        if self.name in ("discernibility", "class-size"):
            present = counted.rows > 0
            kept = counted.rows[present if self.suppressed == "ignored" else present & counted.good]
            if self.name == "discernibility":
                return (float((kept.astype(np.float64) ** 2).sum()) + dropped * rows,)
            return (rows / (kept.size + (dropped > 0)),)
        if self.name == "height":
            return (float(sum(node)),)
        heights = lattice.heights
        terms = [w * at / max(h, 1) for w, at, h in zip(self._weight, node, heights, strict=True)]
        precision = sum(terms) / len(terms)
        share = dropped / rows
        return (precision * (1 - share) + share,)

    def _penalty(self, counted: Counted, dropped: float) -> Value:
        node, rows = counted.node, float(self.lattice.rows)
        failing = np.zeros(len(node))
        if dropped:
            kernel.failing_charges(
                counted.tuples.codes,
                counted.tuples.weights,
                counted.labels,
                counted.good,
                self._charge,
                self.lattice.starts(node),
                failing,
            )
        total = np.array([total[level] for total, level in zip(self._total, node, strict=True)])
        more = self._suppressing * (dropped - self._generalizing * failing)
        column = (self._generalizing * total + more) / rows * self._weight
        if self.name == "rank":
            return tuple(sorted(column.tolist(), reverse=True))
        if self.name == "geometric":
            return (float(np.expm1(np.log1p(column).mean())),)
        return (float(column.mean()),)

    def _entropy_of_suppressed(self, counted: Counted) -> float:
        failing = ~counted.good[counted.labels]
        weights = counted.tuples.weights[failing].astype(np.float64)
        whole = float(_n_log_n(np.array([weights.sum()]))[0])
        total = 0.0
        for c, level in enumerate(counted.node):
            group = self.lattice.levels[c].group[level]
            found = np.bincount(group[counted.tuples.codes[c, failing]], weights=weights)
            total += self._weight[c] * (whole - float(_n_log_n(found).sum()))
        return total

    def of(self, node: Node) -> Value:
        """The loss at a node, whether or not the goal's suppression limit allows it."""
        return self.value(self.lattice.count(node))


def _n_log_n(counts: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(counts * np.log2(np.maximum(counts, 1.0)), dtype=np.float64)


def rounded(value: Value) -> Value:
    """Twelve significant digits: two nodes whose losses differ only by the order of a sum are a tie.

    >>> rounded((0.1 + 0.2,)) == rounded((0.3,))
    True
    """
    return tuple(float(f"{part:.12g}") for part in value)


# Search in the lattice: the node of least loss among those the goal allows.
#
# A node is *allowed* when the rows in groups where the goal fails are within the suppression limit and some
# row is left. The loss without suppression, known from column histograms alone, bounds the true loss from
# below. A greedy descent from the coarsest node gives a first answer; then every node whose bound is not above
# the answer is visited or ruled out. For promises that only get easier with coarser groups a node that is not
# allowed rules out everything finer, so coarse nodes come first; otherwise those of smallest bound come first.

_MOST_NODES = 1 << 20
"""A lattice larger than this is not listed; only an anytime search walks it."""

_Key = tuple[Value, int, int, Node]


@dataclass(frozen=True)
class _BestNode:
    """The best node, its loss, and whether it is proven that there is no better one."""

    node: Node
    value: Value
    suppressed: int
    proven: bool
    visits: int


def _easier_when_coarser(goal: Goal, limit: int) -> bool:
    """Whether a node that is not allowed proves that every finer one is not.

    k-anonymity, distinct l-diversity and k-map hold in every union of groups one of which holds. The others
    hold in a union when they hold in *all* its parts (entropy is concave, distances are convex), which is
    enough only where nothing may be suppressed.
    """
    enough = ("one",) if limit else ("one", "all")
    return all(guarantee.union_holds_with in enough for guarantee in goal.guarantees)


@dataclass
class Search:
    """One search. Ties go to fewer suppressed rows, then lower levels in sum, then the first in order.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 21, 30, 31])
    >>> lattice = Lattice(data, (column_levels(data.columns[0], "halves"),), Goal((KAnonymity(2),)), None, {})
    >>> Search(lattice, Loss("ncp", lattice)).run()
    _BestNode(node=(1,), value=(0.09090909090909091,), suppressed=0, proven=True, visits=3)
    """

    lattice: Lattice
    loss: Loss
    max_visits: int | None = None
    progress: Progress | None = None
    _seen: dict[Node, _Key | None] = field(default_factory=dict)
    _best: _Key | None = None

    def __post_init__(self) -> None:
        self.limit = self.lattice.goal.suppressible(self.lattice.rows)
        self.monotone = _easier_when_coarser(self.lattice.goal, self.limit)
        self._terms = self.loss.column_bounds()
        self._ruled_out: npt.NDArray[np.bool_] | None = None
        self._dead: list[Node] = []

    def run(self) -> _BestNode | None:
        """The best allowed node, or None when no visited node is allowed."""
        listed = self.lattice.nodes <= _MOST_NODES
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
        return _BestNode(node, self.loss.of(node), suppressed, proven, len(self._seen))

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


@settings
class FullDomain:
    """Every value of a column is generalized to the same level; rows in groups that fail are suppressed.

    The global optimum of the chosen loss over all level combinations whose suppressed rows stay within the
    goal's limit: the problem of Samarati 2001, LeFevre et al. 2005 (Incognito), El Emam et al. 2009 (OLA) and
    Kohlmayer et al. 2012 (Flash). Equal values are published equally, which is what many analyses need, at a
    higher loss than methods that recode locally. Levels are those of a column's taxonomy; a numeric column's
    are nested quantile bins. Among equal losses fewer suppressed rows win, then lower levels.
    Cost: O(distinct tuples) per visited node; on Adult (nine columns, 12,960 nodes) some 500 are visited.
    Departure: those algorithms prune by monotone privacy models or losses; here the loss without
    suppression is a lower bound that prunes for every loss, and monotony is used only where it holds.

    >>> from velado.testing.examples import shown
    >>> shown(FullDomain(), [20, 21, 22, 30, 31, 60])
    ['[20..22]', '[20..22]', '[20..22]', '[30..60]', '[30..60]', '[30..60]']
    """

    name: ClassVar[str] = "full-domain"
    title: ClassVar[str] = say("Full-domain optimal generalization")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "tuples"
    cost: ClassVar[str] = say("distinct tuples x visited nodes")
    source: ClassVar[str] = "El Emam et al. 2009; Kohlmayer et al. 2012; losses as in ARX 3.9"

    loss: Annotated[LossName, Setting("what is minimised")] = "ncp"
    search: Annotated[
        Literal["exact", "anytime"],
        Setting("exact proves the optimum; anytime stops after --max-visits and says whether it is proven"),
    ] = "exact"
    max_visits: Annotated[int, Setting("level combinations an anytime search counts", ge=1)] = 1000
    suppressed: Annotated[
        Suppressed,
        Setting("whether suppressed rows are charged by the loss, or taken as generalized like the rest"),
    ] = "charged"
    balance: Annotated[
        float,
        Setting(
            "0.5 charges generalization and suppression in full, 0 only generalization, 1 only suppression",
            ge=0.0,
            le=1.0,
        ),
    ] = 0.5
    weights: Annotated[str, Setting("importance of columns, for example 'age=2,city=1'; others count 1")] = ""
    bins: Annotated[
        NumericBins,
        Setting("numeric levels: quantile bins halved in number, or the bins of DAS and their unions"),
    ] = "halves"

    def __post_init__(self) -> None:
        if self.balance != 0.5 and self.loss not in _PENALTIES:
            raise ParameterError(
                say("The loss '{loss}' has no balance.", loss=self.loss),
                "It does not charge generalization and suppression apart.",
                say("Use one of {penalties}, or leave the balance at 0.5.", penalties=", ".join(_PENALTIES)),
            )
        if self.weights and self.loss in ("discernibility", "class-size", "height"):
            raise ParameterError(
                say("The loss '{loss}' has no weights.", loss=self.loss),
                "It is not made of one term per column.",
                "Use ncp, geometric, rank, entropy or precision, or leave the weights out.",
            )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table at the best levels; deterministic, *random* is not drawn from."""
        lattice = Lattice(
            data,
            tuple(column_levels(column, self.bins, data.counts) for column in data.columns),
            goal,
            data.population,
            dict(data.shapes or {}),
        )
        if self.search == "exact" and lattice.nodes > _MOST_NODES:
            raise ParameterError(
                say("{nodes} level combinations are too many to search exactly.", nodes=lattice.nodes),
                say(
                    "An exact search lists them all; up to {most_nodes} can be listed.",
                    most_nodes=_MOST_NODES,
                ),
                "Use --search anytime, or taxonomies with fewer levels.",
            )
        loss = Loss(self.loss, lattice, self.suppressed, self.balance, self._weights(data))
        search = Search(lattice, loss, self.max_visits if self.search == "anytime" else None, progress)
        found = search.run()
        if found is None:
            raise self._nothing_allowed(lattice, search.limit)
        return self._publish(data, lattice, found)

    def _publish(self, data: EncodedTable, lattice: Lattice, found: _BestNode) -> Recoded:
        kept, group = lattice.kept(lattice.count(found.node))
        published = []
        for column, levels, level in zip(data.columns, lattice.levels, found.node, strict=True):
            low, high = column.stated(levels.low[level], levels.high[level])
            values = tuple(column.label(low, high))
            published.append(
                PublishedColumn(column.name, levels.group[level][column.codes], values, low, high)
            )
        levels_of = {
            column.name: f"{level} of {height}"
            for column, level, height in zip(data.columns, found.node, lattice.heights, strict=True)
        }
        notes: dict[str, object] = {
            NoteName("levels", say("level of generalization per column")): levels_of,
            NoteName("loss", say("loss that was minimized")): self.loss,
            NoteName("loss_value", say("value of that loss")): list(found.value)
            if len(found.value) > 1
            else found.value[0],
            NoteName("level_combinations", say("combinations of levels")): lattice.nodes,
            NoteName("visited", say("combinations looked at")): found.visits,
            NoteName("proven_optimal", say("proven to be the best combination")): found.proven,
        }
        partition = Partition.of(np.where(kept, group, -1), weights=data.counts)
        return Recoded(tuple(published), kept, partition, notes)

    def _weights(self, data: EncodedTable) -> Mapping[str, float]:
        names = {column.name for column in data.columns}
        out: dict[str, float] = {}
        for part in filter(None, (piece.strip() for piece in self.weights.split(","))):
            name, _, number = part.rpartition("=")
            try:
                weight = float(number)
            except ValueError:
                weight = -1.0
            if name.strip() not in names or not 0 <= weight < float("inf"):
                raise ParameterError(
                    "A weight does not read as column=number.",
                    "Each names a quasi-identifier and a number of at least 0.",
                    "Write for example --weights age=2,city=1.",
                )
            out[name.strip()] = weight
        if out and max(out.values()) == 0 and len(out) == len(names):
            raise ParameterError(
                "Every column has weight 0.",
                "Then every result is as good as any.",
                "Give one a weight above 0.",
            )
        return out

    def _nothing_allowed(self, lattice: Lattice, limit: int) -> GuaranteeNotMet:
        needed = lattice.count(lattice.heights).suppressed
        kind = SuppressionLimitExceeded if limit else GuaranteeNotMet
        return kind(
            say(
                "No combination of levels keeps {promises} with at most {limit} of {rows} rows suppressed.",
                promises=", ".join(guarantee.name for guarantee in lattice.goal.guarantees),
                limit=limit,
                rows=lattice.rows,
            ),
            say(
                "With every column at its broadest level {needed} rows are in groups that fail.",
                needed=needed,
            ),
            "Allow more suppression, lower the parameter, or add rows with other values.",
        )
