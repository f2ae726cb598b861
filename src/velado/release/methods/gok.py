"""GOK-Privacy: cluster centres moved by the gorilla troops optimizer, fuzzy memberships, at least k in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numba import njit

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, Progress, Promise, silent
from velado.release.methods._cover_tables import CoverTables, FloatArray, Int64Array
from velado.release.methods._method import RecoderName, repair
from velado.release.methods.mondrian import Mondrian
from velado.release.recoded import GROUPS, NoteName, Recoded
from velado.release.recoders import recoder_named
from velado.settings import Setting, settings
from velado.text import say

# The gorilla troops optimizer (Abdollahzadeh, Gharehchopogh, Mirjalili 2021), as published, on any fitness.
#
# One step for gorilla X_i of a troop of N, in iteration t of T, uniform r1..r5 in [0, 1]::
#
# C = (cos(2 r4) + 1)(1 - t/T),   L = C l,   l in [-1, 1]
# exploration   with probability p      lb + r1 (ub - lb)
# else, half and half     (r2 - C) X_r + L Z X_i,   Z in [-C, C]
# X_i - L (L (X_i - G_r) + r3 (X_i - G_r))
# exploitation  if C >= W               X_i + L M (X_i - S),   M = (|mean of the troop|^g)^(1/g),  g = 2^L
# else                    S - (S - X_i) Q A,   Q = 2 r5 - 1,  A = beta E
# E is a normal vector or, half the time, one normal number; S is the silverback, the best so far.
#
# A move is kept only if it is better (greedy selection), so the best never gets worse.


@dataclass(frozen=True)
class _Troop:
    """What the search found: the best position, its fitness, and the fitness after each iteration."""

    best: FloatArray
    fitness: float
    history: tuple[float, ...]


def search(
    start: FloatArray,
    fitness: Callable[[FloatArray], float],
    random: np.random.Generator,
    iterations: int,
    patience: int,
    p: float = 0.03,
    beta: float = 3.0,
    w: float = 0.8,
    low: float = 0.0,
    high: float = 1.0,
    told: Callable[[int, float], None] = lambda iteration, best: None,
) -> _Troop:
    """The least fitness found from the troop *start* (N x D), stopping after *patience* iterations without gain.

    >>> troop, random = np.array([[0.9], [0.4], [0.1]]), np.random.default_rng(0)
    >>> found = search(troop, lambda x: float((x[0] - 0.5) ** 2), random, iterations=20, patience=20)
    >>> round(float(found.best[0]), 1)
    0.5
    """
    troop = start.copy()
    count = troop.shape[0]
    scores = np.array([fitness(gorilla) for gorilla in troop])
    history = [float(scores.min())]
    idle = 0
    for iteration in range(iterations):
        c = (np.cos(2 * random.random()) + 1) * (1 - (iteration + 1) / iterations)
        big_l = c * random.uniform(-1, 1)
        for exploring in (True, False):
            silverback = troop[int(np.argmin(scores))].copy()
            if exploring:
                moved = _explore(troop, c, big_l, random, p, low, high)
            else:
                moved = _exploit(troop, silverback, c, big_l, random, beta, w)
            for at in range(count):
                candidate = np.clip(moved[at], low, high)
                score = fitness(candidate)
                if score < scores[at]:
                    troop[at], scores[at] = candidate, score
        best = float(scores.min())
        idle = idle + 1 if best >= history[-1] else 0
        history.append(best)
        told(iteration + 1, best)
        if idle >= patience:
            break
    winner = int(np.argmin(scores))
    return _Troop(troop[winner].copy(), float(scores[winner]), tuple(history))


def _explore(
    troop: FloatArray, c: float, big_l: float, random: np.random.Generator, p: float, low: float, high: float
) -> FloatArray:
    count, width = troop.shape
    out = np.empty_like(troop)
    for at in range(count):
        me = troop[at]
        if random.random() < p:
            out[at] = low + random.random(width) * (high - low)
        elif random.random() >= 0.5:
            other = troop[random.integers(count)]
            out[at] = (random.random() - c) * other + big_l * random.uniform(-c, c, width) * me
        else:
            other = troop[random.integers(count)]
            out[at] = me - big_l * (big_l * (me - other) + random.random() * (me - other))
    return out


def _exploit(
    troop: FloatArray,
    silverback: FloatArray,
    c: float,
    big_l: float,
    random: np.random.Generator,
    beta: float,
    w: float,
) -> FloatArray:
    count, width = troop.shape
    if c >= w:
        g = 2.0**big_l
        m = (np.abs(troop.mean(axis=0)) ** g) ** (1 / g)
        return np.asarray(troop + big_l * m * (troop - silverback))
    out = np.empty_like(troop)
    for at in range(count):
        q = 2 * random.random() - 1
        e = random.standard_normal(width) if random.random() >= 0.5 else random.standard_normal()
        out[at] = silverback - (silverback - troop[at]) * q * beta * e
    return out


# Fuzzy assignment under a minimum of k: memberships decide who goes where, and who is lent to whom.


@njit(cache=True)
def memberships(distance: FloatArray, fuzziness: float) -> FloatArray:
    """Equation 4: mu_ij = 1 / sum_c (d_ij / d_ic)^(2 / (m - 1)), over the nearest centres of each record.

    A record that sits on a centre belongs to it wholly.

    >>> memberships(np.array([[1.0, 3.0], [0.0, 2.0]]), 2.0).round(2).tolist()
    [[0.9, 0.1], [1.0, 0.0]]
    """
    rows, near = distance.shape
    power = 2.0 / (fuzziness - 1.0)
    out = np.zeros((rows, near))
    for row in range(rows):
        if distance[row, 0] <= 0.0:
            out[row, 0] = 1.0
            continue
        total = 0.0
        for at in range(near):
            if np.isfinite(distance[row, at]):
                total += (distance[row, 0] / distance[row, at]) ** power
        for at in range(near):
            if np.isfinite(distance[row, at]):
                out[row, at] = (distance[row, 0] / distance[row, at]) ** power / total
    return out


@njit(cache=True)
def assign(centre: Int64Array, member: FloatArray, weight: Int64Array, centres: int, k: int) -> Int64Array:
    """The cluster of each record so that clusters below k are filled up or given up; -1 where none is left.

    *centre* and *member* hold each record's nearest centres and its memberships in them, best first; a record
    stands for *weight* table rows. Clusters below k are served from the largest down: each borrows, in order of
    membership, records whose own cluster can spare them (He et al. 2012); one that cannot be filled is given up
    and its records go to the best cluster that is left.

    >>> centre = np.array([[0, 1], [0, 1], [0, 1], [1, 0]])
    >>> member = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.9, 0.1]])
    >>> assign(centre, member, np.ones(4, dtype=np.int64), 2, 2).tolist()
    [0, 0, 1, 1]
    """
    rows, near = centre.shape
    label = centre[:, 0].copy()
    size = np.zeros(centres, dtype=np.int64)
    for row in range(rows):
        size[label[row]] += weight[row]
    # Records that know a cluster, best membership first: candidates it may borrow.
    count = np.zeros(centres + 1, dtype=np.int64)
    for row in range(rows):
        for at in range(near):
            if member[row, at] > 0.0:
                count[centre[row, at] + 1] += 1
    begin = np.cumsum(count)
    fill = begin[:-1].copy()
    who = np.empty(begin[-1], dtype=np.int64)
    how = np.empty(begin[-1])
    for row in range(rows):
        for at in range(near):
            if member[row, at] > 0.0:
                place = fill[centre[row, at]]
                who[place] = row
                how[place] = member[row, at]
                fill[centre[row, at]] += 1
    gone = np.zeros(centres, dtype=np.bool_)
    order = np.argsort(-size, kind="mergesort")
    for cluster in order:
        if size[cluster] >= k:
            continue
        if size[cluster] == 0:
            gone[cluster] = True
            continue
        low, high = begin[cluster], begin[cluster + 1]
        ranked = np.argsort(-how[low:high], kind="mergesort")
        lent = np.empty(high - low, dtype=np.int64)
        lenders = np.empty(high - low, dtype=np.int64)
        loans = 0
        for at in ranked:
            row = who[low + at]
            owner = label[row]
            if owner == cluster or gone[owner] or size[owner] - weight[row] < k:
                continue
            label[row] = cluster
            size[owner] -= weight[row]
            size[cluster] += weight[row]
            lent[loans] = row
            lenders[loans] = owner
            loans += 1
            if size[cluster] >= k:
                break
        if size[cluster] < k:
            for at in range(loans):
                row = lent[at]
                label[row] = lenders[at]
                size[lenders[at]] += weight[row]
                size[cluster] -= weight[row]
            gone[cluster] = True
    for row in range(rows):
        if gone[label[row]]:
            found = np.int64(-1)
            for at in range(near):
                if member[row, at] > 0.0 and not gone[centre[row, at]]:
                    found = centre[row, at]
                    break
            label[row] = found
    return label


_NEAR = 6  # nearest centres whose memberships are computed; farther ones are negligible


@settings
class GOK:
    """Cluster centres are moved by gorillas, memberships are fuzzy, and every cluster holds at least k.

    GOK-Privacy (Pimenta, Araújo, Rodrigues, Silveira and Gomes 2025): a gorilla is a set of c = floor(n / k) centres in the unit cube of the
    quasi-identifiers; fitness is the truthful NCP of the clusters it makes (their published covers); records go
    to the centre of highest fuzzy membership (equation 4), clusters below k borrow from those that can spare, and
    the search stops when NCP no longer improves. The optimizer is the real one (`search`). Part of the
    troop starts from Mondrian's groups (three kinds of cut) and part from drawn records, and the best partition ever
    seen is kept, so the result is never worse than Mondrian's.

    >>> from velado.testing.examples import shown
    >>> shown(GOK(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "gok"
    title: ClassVar[str] = say("GOK-Privacy (gorilla troops + fuzzy clustering)")
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = say("O(iterations x troop x n log(n / k) d)")
    source: ClassVar[str] = "GOK-Privacy; optimizer of Abdollahzadeh, Gharehchopogh, Mirjalili 2021"
    troop: Annotated[int, Setting("gorillas (candidate sets of centres)", ge=3, le=200)] = 6
    iterations: Annotated[int, Setting("iterations at most", ge=1, le=10_000)] = 8
    patience: Annotated[int, Setting("stop after so many iterations without gain", ge=1)] = 3
    fuzziness: Annotated[float, Setting("the fuzzifier m of equation 4", ge=1.05)] = 2.0
    centres: Annotated[int, Setting("most cluster centres a gorilla holds", ge=1)] = 8192
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The best clusters found, repaired until the goal holds."""
        k = max(goal.least_rows, 1)
        problem = _Problem.of(data, goal, k, self.fuzziness)
        starts = self._starts(data, goal, random, progress)
        best = min(starts, key=problem.loss)
        start_loss = problem.loss(best)
        count = max(min(data.rows // k, self.centres), 1)
        troop = np.stack([problem.centres(part, count, random).ravel() for part in starts[: self.troop]])
        drawn = [problem.drawn(count, random).ravel() for _ in range(self.troop - len(troop))]
        troop = np.vstack([troop, *drawn]) if drawn else troop
        seen = [(start_loss, best)]

        def fitness(position: FloatArray) -> float:
            partition = problem.decode(position.reshape(count, -1))
            loss = problem.loss(partition)
            if loss < seen[0][0]:
                seen[0] = (loss, partition)
            return loss

        found = search(
            troop,
            fitness,
            random,
            self.iterations,
            self.patience,
            told=lambda turn, _: progress(turn / self.iterations, self.title),
        )
        partition = seen[0][1]
        notes: dict[str, object] = {
            GROUPS: partition.count,
            NoteName("iterations", say("iterations")): len(found.history) - 1,
            NoteName("loss_of_the_best_start", say("loss of the best start")): start_loss,
            NoteName("loss_found_by_the_troop", say("loss found by the search")): found.fitness,
            NoteName("evaluations", say("solutions evaluated")): self.troop * (2 * len(found.history) - 1),
        }
        return Recoded(recoder_named(self.recoder).publish(data, partition), partition.kept, partition, notes)

    @staticmethod
    def _starts(
        data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> list[Partition]:
        out = []
        for method in (Mondrian(), Mondrian(cut="relaxed"), Mondrian(categories="ordered")):
            made = method.anonymize(data, goal, random, progress).partition
            assert made is not None
            out.append(made)
        return out


@dataclass(frozen=True, repr=False)
class _Problem:
    """The table as distinct points in the unit cube, and how a set of centres becomes a partition."""

    data: EncodedTable
    goal: Goal
    k: int
    fuzziness: float
    tables: CoverTables
    points: FloatArray

    @classmethod
    def of(cls, data: EncodedTable, goal: Goal, k: int, fuzziness: float) -> _Problem:
        tables = CoverTables.of(data)
        columns = [column.positions[tables.records[:, at]] for at, column in enumerate(data.columns)]
        points = np.stack([place / max(float(place.max()), 1.0) for place in columns], axis=1)
        return cls(data, goal, k, fuzziness, tables, np.ascontiguousarray(points))

    def loss(self, partition: Partition) -> float:
        """Truthful NCP of the partition's covers, all rows."""
        total = 0.0
        for column in self.data.columns:
            low, high = partition.least_and_greatest(column.codes)
            total += float((column.loss(low, high) * partition.sizes).sum())
        suppressed = int((~partition.kept).sum()) * len(self.data.columns)
        return (total + suppressed) / (self.data.rows * len(self.data.columns))

    def centres(self, partition: Partition, count: int, random: np.random.Generator) -> FloatArray:
        """The mean of each group, filled up to *count* with drawn records (or thinned to it)."""
        of_row = self.points[self.tables.record_of]
        order, starts = partition.members()
        means = np.add.reduceat(of_row[order], starts, axis=0) / partition.sizes[:, None]
        if means.shape[0] >= count:
            return np.asarray(means[:count])
        return np.vstack([means, self.drawn(count - means.shape[0], random)])

    def drawn(self, count: int, random: np.random.Generator) -> FloatArray:
        """Centres on drawn rows: dense places get more."""
        rows = random.choice(self.tables.record_of, size=count, replace=count > self.data.rows)
        jitter = 1e-6 * random.standard_normal((count, self.points.shape[1]))
        return np.asarray(np.clip(self.points[rows] + jitter, 0.0, 1.0))

    def decode(self, centres: FloatArray) -> Partition:
        """The partition a set of centres makes: fuzzy memberships, at least k each, then the goal's repair."""
        from scipy.spatial import cKDTree

        near = min(_NEAR, centres.shape[0])
        distance, centre = cKDTree(centres).query(self.points, k=near)
        distance, centre = distance.reshape(-1, near), centre.reshape(-1, near).astype(np.int64)
        member = memberships(distance, self.fuzziness)
        label = assign(centre, member, self.tables.weight, centres.shape[0], self.k)
        lost = label < 0
        if bool(lost.all()):
            label[:] = 0
        elif bool(lost.any()):
            alive = np.unique(label[~lost])
            _, nearest = cKDTree(centres[alive]).query(self.points[lost])
            label[lost] = alive[nearest]
        return repair(self.data, Partition.of(label[self.tables.record_of]), self.goal, silent)
