"""Losses of a node of the lattice: what is minimised, and a bound on it that needs no grouping.

Every loss is a tuple of numbers compared from the first on (one number, but for "rank"). The definitions
are those of ARX, so that its published optima can be met:

- "ncp": mean over columns of L_c, the mean certainty penalty of column c, a suppressed row counting 1;
- "geometric": (prod (1 + L_c))^(1/d) - 1, ARX's default; "rank": the L_c from largest to smallest;
- "entropy": non-uniform entropy in bits, sum over rows and columns of -log2(rows with the value / rows with
  its generalization), plus the same of the suppressed rows' generalized values among themselves;
- "discernibility": sum of squared group sizes, a suppressed row counting all rows;
- "class-size": rows / groups, the suppressed rows counting as one group;
- "precision": mean of level / height, a suppressed row counting 1; "height": sum of the levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.anonymize.methods import full_domain_kernel as kernel
from velado.anonymize.methods.full_domain_lattice import Counted, Lattice, Node
from velado.data.partition import FloatArray

LossName = Literal[
    "ncp", "geometric", "rank", "entropy", "discernibility", "class-size", "precision", "height"
]
LOSSES: tuple[LossName, ...] = (
    "ncp",
    "geometric",
    "rank",
    "entropy",
    "discernibility",
    "class-size",
    "precision",
    "height",
)
PENALTIES = ("ncp", "geometric", "rank")
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
        if self.name in PENALTIES:
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
        if self.name in PENALTIES:
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
    """Twelve significant digits: two nodes whose losses differ only by the order of a sum are a tie."""
    return tuple(float(f"{part:.12g}") for part in value)
