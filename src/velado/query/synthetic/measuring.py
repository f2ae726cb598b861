"""Which columns are counted together and with how much noise: everything the rows are asked for a synthetic table.

First every column alone; then a tree of pairs, each chosen by a noisy maximum of how far two columns are from independent (the
maximum spanning tree of McKenna, Miklau, Sheldon 2021); then, where there are rows enough, further rounds that choose the
pair that the table so far gets most wrong, and spend more on each as the errors become small (AIM; McKenna et al. 2022). What a
round asks depends on earlier noisy answers alone, and the sum of all charges is held to the total fixed before (costs of
adaptively chosen steps add under either measure: Whitehouse, Ramdas, Rogers, Wu 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Literal, Protocol

import numpy as np

from velado.errors import QueryRefused
from velado.query import noise
from velado.query.budget import Measure
from velado.query.needs import Counts, Rows
from velado.query.synthetic.fit import Measured, fit, total_of
from velado.query.synthetic.junction_tree import Clique, cells, cliques_of
from velado.query.unit import Unit

Way = Literal["auto", "tree", "adaptive"]

MOST_PAIR = 1 << 16
"""Two columns that make more cells together are not counted together: noise would be all there is in them."""
MOST_MODEL = 1 << 16
"""Further rounds choose no pair with which a clique would hold more cells: fitting it would take minutes."""
ALONE, CHOICE, TREE = Fraction(1, 10), Fraction(1, 10), Fraction(8, 10)
"""Shares of the spend for single columns, for choosing the tree's pairs and for counting them, where there are no rounds."""
ALONE_OF_ROUNDS, TREE_OF_ROUNDS = Fraction(1, 10), Fraction(3, 10)
"""With rounds: the shares of single columns and of the tree, its choices included; the rounds have the rest."""
CHOICE_OF_ROUND = Fraction(1, 10)
FIRST_FIT, NEXT_FIT = 60, 25
"""Steps of the fits between rounds: good enough to tell the worst pairs; the table itself is fitted to the end."""
CRUMBS = Fraction(1, 10**6)
"""Charges are a few last bits below what was asked; what that leaves is not worth a round."""


class Marginals(Protocol):
    """The exact counts that a measurement begins with; whoever holds the rows gives them."""

    def count(self, columns: Clique) -> Counts:
        """Rows in each cell that the columns make together."""


@dataclass(frozen=True)
class Step:
    """One use of a mechanism: what it was for, on which columns, how far one unit moves it, its scale and its exact charge.

    >>> Step("counts", (0,), "gaussian", 1, 3.0, Fraction(1, 18)).charge
    Fraction(1, 18)
    """

    what: Literal["counts", "choice", "averages"]
    columns: Clique
    mechanism: str
    sensitivity: int
    scale: float
    charge: Fraction


@dataclass
class Till:
    """Noise for money: every draw is entered, and none goes beyond the total.

    >>> till = Till("epsilon", Fraction(1), Unit())
    >>> till.counts((0,), np.array([3, 4]), Fraction(1, 2)).counts.shape, till.left
    ((2,), Fraction(1, 2))
    """

    measure: Measure
    total: Fraction
    unit: Unit
    steps: list[Step] = field(default_factory=list)

    @property
    def spent(self) -> Fraction:
        """The sum of all charges so far."""
        return sum((step.charge for step in self.steps), Fraction(0))

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.total - self.spent

    @property
    def mechanism(self) -> Literal["laplace", "gaussian"]:
        """The noise that the measure is kept with."""
        return "laplace" if self.measure == "epsilon" else "gaussian"

    def reach(self) -> int:
        """How far one unit moves the counts of any columns in L1 and L2, and the L1 distance of them from anything fixed.

        A row stands in one cell; one more row moves one cell, and so each of these, by 1. (|n - e| moves by no more than n.)
        """
        return noise.sensitivity(Rows(), self.unit, 2)

    def deviation(self, share: Fraction) -> float:
        """The standard deviation of counts that cost *share*."""
        scale, _ = noise.calibrate(self.mechanism, self.measure, self.reach(), share)
        return noise.standard_deviation(self.mechanism, scale)

    def expected(self, share: Fraction) -> float:
        """The mean size of the noise in one cell of counts that cost *share*."""
        scale, _ = noise.calibrate(self.mechanism, self.measure, self.reach(), share)
        return scale if self.mechanism == "laplace" else scale * math.sqrt(2 / math.pi)

    def counts(self, columns: Clique, exact: Counts, share: Fraction) -> Measured:
        """The counts with noise, for at most *share*."""
        scale, charge = noise.calibrate(self.mechanism, self.measure, self.reach(), share)
        self.enter(Step("counts", columns, self.mechanism, self.reach(), scale, charge))
        noisy = noise.add(self.mechanism, self.measure, scale, exact)
        return Measured(columns, noisy, noise.standard_deviation(self.mechanism, scale))

    def choose(self, scores: Mapping[Clique, int], share: Fraction) -> Clique:
        """The columns whose score is largest after noise, for at most *share*; one candidate alone costs nothing."""
        listed = sorted(scores)
        if len(listed) == 1:
            return listed[0]
        scale, charge = noise.calibrate("noisy-max", self.measure, self.reach(), share)
        self.enter(Step("choice", (), "noisy-max", self.reach(), scale, charge))
        place = noise.choose_smallest(self.measure, scale, [[-scores[one] for one in listed]])
        return listed[int(place[0])]

    def enter(self, step: Step) -> None:
        """A draw is written down before it is made; one beyond the total is refused."""
        if self.spent + step.charge > self.total:
            raise QueryRefused(
                "A further draw would cost more than the table may.",
                "What was promised would not hold.",
                "This is a fault of the program; please report it.",
            )
        self.steps.append(step)


@dataclass(frozen=True)
class Model:
    """What was measured, and *way*: how the pairs were chosen.

    >>> Model((), "tree").way
    'tree'
    """

    measured: tuple[Measured, ...]
    way: str


def wins_adaptive(rows: float, deviation: float, sizes: Sequence[int]) -> bool:
    """Whether further rounds are expected to gain: whether the tree's pairs hold more signal than noise.

    *rows* is the noisy total that was paid for already, *deviation* the noise of a pair of the tree. The noise of an average
    pair, as a total variation, is about deviation x cells / (2 rows) at most; rounds pay where it is small.

    >>> wins_adaptive(30_000, 10, [5] * 9), wins_adaptive(300, 10, [5] * 9)
    (True, False)
    """
    typical = math.exp(2 * sum(math.log(size) for size in sizes) / len(sizes))
    return deviation * typical / (2 * rows) < ENOUGH


ENOUGH = 0.3
"""Measured on tables of people at falling spends: below it rounds win clearly, above it neither does."""


def measure(sizes: Sequence[int], marginals: Marginals, till: Till, way: Way = "auto") -> Model:
    """Everything is measured and fitted within the till's total.

    Whether there are rounds is decided by the noisy counts of single columns and by public figures.
    """
    columns = range(len(sizes))
    # Single columns get the same noise whichever way follows, so the choice between the ways can read them.
    alone = till.total * ALONE / len(sizes) if len(sizes) > 1 else till.total
    measured = [till.counts((at,), marginals.count((at,)), alone) for at in columns]
    total = total_of(measured)
    pairs = [pair for pair in combinations(columns, 2) if sizes[pair[0]] * sizes[pair[1]] <= MOST_PAIR]
    if not pairs:
        return Model(tuple(measured), "alone")
    edges = min(len(sizes) - 1, len(pairs))
    rounds = way == "adaptive"
    tree = till.total * TREE_OF_ROUNDS
    if way == "auto":
        each = tree * TREE / (TREE + CHOICE) / edges
        rounds = len(pairs) > edges and wins_adaptive(total, till.deviation(each), sizes)
    if not rounds:
        tree = till.left
    measured += _tree(sizes, pairs, measured, marginals, till, tree, total)
    if not rounds:
        return Model(tuple(measured), "tree")
    return Model(tuple(_further(sizes, pairs, measured, marginals, till)), "adaptive")


def _tree(
    sizes: Sequence[int],
    pairs: Sequence[Clique],
    alone: Sequence[Measured],
    marginals: Marginals,
    till: Till,
    share: Fraction,
    total: float,
) -> list[Measured]:
    """Noisy counts of the pairs of a tree: each joins two parts that no pair had joined, chosen by a noisy maximum."""
    start = fit(sizes, alone, total, rounds=60)
    single = [start.of((at,)) for at in range(len(sizes))]
    edges = len(sizes) - 1
    choice = share * CHOICE / (CHOICE + TREE) / edges
    each = share * TREE / (CHOICE + TREE) / edges
    noisy = till.expected(each)
    exact: dict[Clique, Counts] = {}
    scores: dict[Clique, int] = {}
    for pair in pairs:
        exact[pair] = marginals.count(pair)
        near = np.rint(np.multiply.outer(single[pair[0]], single[pair[1]]) / total).astype(np.int64)
        scores[pair] = score(exact[pair], near, noisy)
    parts = {at: at for at in range(len(sizes))}
    chosen: list[Clique] = []
    while candidates := {pair: scores[pair] for pair in pairs if parts[pair[0]] != parts[pair[1]]}:
        a, b = till.choose(candidates, choice)
        chosen.append((a, b))
        joined, gone = parts[a], parts[b]
        parts = {at: joined if part == gone else part for at, part in parts.items()}
    # A choice among one costs nothing, and where too few pairs may be counted there are fewer: what was set aside goes to the counts.
    chosen_for = sum((step.charge for step in till.steps if step.what == "choice"), Fraction(0))
    each = max(each, (share - chosen_for) / len(chosen)) if chosen else each
    return [till.counts(pair, exact[pair], each) for pair in chosen]


def score(exact: Counts, near: Counts, noisy: float) -> int:
    """How much is gained by counting a pair: the rows that the table so far has in wrong cells, less those noise would put there.

    Whole numbers throughout, so that one row more moves it by at most 1, without rounding.

    >>> score(np.array([[5, 0], [0, 5]]), np.array([[3, 2], [2, 3]]), 0.5)
    6
    """
    return int(np.abs(exact - near).sum()) - round(noisy * exact.size)


def _further(
    sizes: Sequence[int],
    pairs: Sequence[Clique],
    measured: list[Measured],
    marginals: Marginals,
    till: Till,
) -> list[Measured]:
    """Rounds of choosing the worst pair and counting it, until the till is empty; a round that gains little makes the next dearer."""
    rounds = min(2 * len(sizes), 24)
    share = till.left / rounds
    known: dict[Clique, Counts] = {}
    fitted = fit(sizes, measured, total_of(measured), rounds=FIRST_FIT)
    while till.left > till.total * CRUMBS:
        if till.left < 2 * share:
            share = till.left
        each, choice = share * (1 - CHOICE_OF_ROUND), share * CHOICE_OF_ROUND
        noisy = till.expected(each)
        edges = [one.columns for one in measured]
        near = dict(fitted.tree.pairs(fitted.counts))
        scores: dict[Clique, int] = {}
        for pair in pairs:
            if pair not in edges and cells(sizes, cliques_of(len(sizes), [*edges, pair])) > MOST_MODEL:
                continue
            if pair not in known:
                known[pair] = marginals.count(pair)
            scores[pair] = score(known[pair], np.rint(near[pair]).astype(np.int64), noisy)
        if not scores:
            break
        pair = till.choose(scores, choice)
        measured.append(till.counts(pair, known[pair], each))
        if till.left <= till.total * CRUMBS:
            break
        before = near[pair]
        fitted = fit(sizes, measured, total_of(measured), before=fitted, rounds=NEXT_FIT)
        moved = float(np.abs(fitted.of(pair) - before).sum())
        if moved <= noisy * before.size:
            share *= 2
    return measured
