"""GOK-Privacy: cluster centres moved by the gorilla troops optimizer, fuzzy memberships, at least k in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from velado.compiled import njit
from velado.data.counted import refuse_counted
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, Progress, Promise, silent
from velado.release.methods._cover_tables import CoverTables, FloatArray, Int64Array
from velado.release.methods._method import RecoderName, Takes, in_groups, repair
from velado.release.methods.mondrian import Mondrian
from velado.release.methods.progressive._annealing import records_of
from velado.release.methods.progressive._starts import grouping_cost
from velado.release.methods.progressive.progressive import Progressive
from velado.release.recoded import NoteName, Recoded
from velado.settings import Setting, settings
from velado.text import say

# The optimizers, behind one protocol: on any fitness.

Move = Callable[[FloatArray, FloatArray, int], FloatArray]
"""From the best place of each candidate, its fitness and the number of the iteration to the places tried next."""


@dataclass(frozen=True)
class _Found:
    """What a search found: the best position, its fitness, the fitness after each iteration, and how many it tried."""

    best: FloatArray
    fitness: float
    history: tuple[float, ...]
    evaluations: int


def _unheard(iteration: int, best: float) -> None:
    """Nobody is told how far the search is."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Search:
    """Candidates *start* (N x D) within 0..1 on their way to a lower *fitness*.

    It ends after *iterations*, or after *patience* of them without gain; *told* hears of each.

    >>> random = np.random.default_rng(0)
    >>> search = Search(start=random.random((6, 1)), fitness=lambda x: float(x[0]), random=random, iterations=50, patience=50)
    >>> particle_swarm(search).fitness < 0.01
    True
    """

    start: FloatArray
    fitness: Callable[[FloatArray], float]
    random: np.random.Generator
    iterations: int
    patience: int
    told: Callable[[int, float], None] = _unheard

    def improved(self, *moves: Move) -> _Found:
        """The best place ever seen; each candidate stays at its best one until a move finds a better (greedy selection)."""
        own = self.start.copy()
        scores = np.array([self.fitness(place) for place in own])
        history = [float(scores.min())]
        idle = 0
        for iteration in range(self.iterations):
            for move in moves:
                for at, place in enumerate(np.clip(move(own, scores, iteration), 0.0, 1.0)):
                    score = self.fitness(place)
                    if score < scores[at]:
                        own[at], scores[at] = place, score
            best = float(scores.min())
            idle = idle + 1 if best >= history[-1] else 0
            history.append(best)
            self.told(iteration + 1, best)
            if idle >= self.patience:
                break
        winner = int(np.argmin(scores))
        tried = len(own) * (1 + len(moves) * (len(history) - 1))
        return _Found(own[winner].copy(), float(scores[winner]), tuple(history), tried)


Optimizer = Callable[[Search], _Found]

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
_P, _BETA, _W = 0.03, 3.0, 0.8


def gorilla_troops(search: Search) -> _Found:
    """The least fitness found by a troop.

    >>> troop, random = np.array([[0.9], [0.4], [0.1]]), np.random.default_rng(0)
    >>> bowl = Search(start=troop, fitness=lambda x: float((x[0] - 0.5) ** 2), random=random, iterations=20, patience=20)
    >>> round(float(gorilla_troops(bowl).best[0]), 1)
    0.5
    """
    random = search.random
    c = big_l = 0.0

    def explore(troop: FloatArray, scores: FloatArray, iteration: int) -> FloatArray:
        nonlocal c, big_l
        c = (np.cos(2 * random.random()) + 1) * (1 - (iteration + 1) / search.iterations)
        big_l = c * random.uniform(-1, 1)
        return _explore(troop, c, big_l, random)

    def exploit(troop: FloatArray, scores: FloatArray, iteration: int) -> FloatArray:
        return _exploit(troop, troop[int(np.argmin(scores))].copy(), c, big_l, random)

    return search.improved(explore, exploit)


def _explore(troop: FloatArray, c: float, big_l: float, random: np.random.Generator) -> FloatArray:
    count, width = troop.shape
    out = np.empty_like(troop)
    for at in range(count):
        me = troop[at]
        if random.random() < _P:
            out[at] = random.random(width)
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
) -> FloatArray:
    count, width = troop.shape
    if c >= _W:
        g = 2.0**big_l
        m = (np.abs(troop.mean(axis=0)) ** g) ** (1 / g)
        return np.asarray(troop + big_l * m * (troop - silverback))
    out = np.empty_like(troop)
    for at in range(count):
        q = 2 * random.random() - 1
        e = random.standard_normal(width) if random.random() >= 0.5 else random.standard_normal()
        out[at] = silverback - (silverback - troop[at]) * q * _BETA * e
    return out


# Particle swarm (Kennedy and Eberhart 1995) with the constriction of Clerc and Kennedy (2002): each particle is drawn to the
# best place it has seen and to the best of all, v = chi (v + 2.05 r1 (own - x) + 2.05 r2 (all - x)), x = x + v.
_CHI, _PULL = 0.7298, 2.05


def particle_swarm(search: Search) -> _Found:
    """The least fitness found by a swarm whose particles start at rest; one that would leave 0..1 stops at its border.

    >>> swarm, random = np.array([[0.9], [0.4], [0.1]]), np.random.default_rng(0)
    >>> bowl = Search(start=swarm, fitness=lambda x: float((x[0] - 0.5) ** 2), random=random, iterations=30, patience=30)
    >>> round(float(particle_swarm(bowl).best[0]), 2)
    0.5
    """
    places: FloatArray = search.start.copy()
    speed: FloatArray = np.zeros_like(places)

    def fly(own: FloatArray, scores: FloatArray, iteration: int) -> FloatArray:
        nonlocal places, speed
        pulls = search.random.random((2, *places.shape))
        leader = own[int(np.argmin(scores))]
        speed = _CHI * (speed + _PULL * pulls[0] * (own - places) + _PULL * pulls[1] * (leader - places))
        beyond = places + speed
        places = np.asarray(np.clip(beyond, 0.0, 1.0))
        speed = np.where(places == beyond, speed, 0.0)
        return places

    return search.improved(fly)


# Differential evolution (Storn and Price 1997), DE/rand/1/bin with F = 0.5 and CR = 0.9: a candidate's rival is a + F (b - c) of
# three others, mixed with the candidate coordinate by coordinate; the better one stays.
_FACTOR, _CROSSING = 0.5, 0.9


def differential_evolution(search: Search) -> _Found:
    """The least fitness found by evolution; a coordinate that would leave 0..1 stops at its border.

    >>> few, random = np.array([[0.9], [0.45], [0.1], [0.2]]), np.random.default_rng(0)
    >>> bowl = Search(start=few, fitness=lambda x: float((x[0] - 0.5) ** 2), random=random, iterations=40, patience=40)
    >>> round(float(differential_evolution(bowl).best[0]), 1)
    0.5
    """
    count, width = search.start.shape
    random = search.random

    def breed(own: FloatArray, scores: FloatArray, iteration: int) -> FloatArray:
        # The three others of each candidate: the first three of an order of all the rest.
        others = np.argsort(random.random((count, count)) + 2.0 * np.eye(count), axis=1)[:, :3]
        a, b, c = (own[others[:, min(at, count - 2)]] for at in range(3))
        crossed = random.random((count, width)) < _CROSSING
        crossed[np.arange(count), random.integers(width, size=count)] = True
        return np.where(crossed, a + _FACTOR * (b - c), own)

    return search.improved(breed)


OptimizerName = Literal["gto", "pso", "de"]
OPTIMIZERS: Mapping[OptimizerName, Optimizer] = {
    "gto": gorilla_troops,
    "pso": particle_swarm,
    "de": differential_evolution,
}


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


_SMALLEST_TROOP, _FEWEST_ITERATIONS = 6, 8  # what the largest table is searched with
_NEAR = 6  # nearest centres whose memberships are computed; farther ones are negligible


@settings
class GOK:
    """Cluster centres are moved by gorillas, memberships are fuzzy, and every cluster holds at least k.

    GOK-Privacy (Pimenta, Araújo, Rodrigues, Silveira and Gomes 2025): a gorilla is a set of c = floor(n / k) centres in the unit cube of the
    quasi-identifiers; fitness is the truthful NCP of the clusters it makes (their published covers); records go
    to the centre of highest fuzzy membership (equation 4), clusters below k borrow from those that can spare, and
    the search stops when NCP no longer improves. The optimizer is the real one (`gto`); particle swarm
    and differential evolution (`pso`, `de`) are there to compare it with, on the same start and fitness. Part of the
    troop starts from Mondrian's groups (three kinds of cut) and part from drawn records, and the best partition ever
    seen is kept, so the result is never worse than Mondrian's, nor than the start of progressive generalization, from
    which one gorilla sets out too (*start* = cuts leaves it out). How much less progressive generalization loses after
    a fast search stands in the notes.

    >>> from velado.testing.examples import shown
    >>> shown(GOK(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "gok"
    title: ClassVar[str] = say("GOK-Privacy (gorilla troops + fuzzy clustering)")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "rows"
    cost: ClassVar[str] = say("O(iterations x troop x n log(n / k) d)")
    source: ClassVar[str] = "GOK-Privacy; optimizer of Abdollahzadeh, Gharehchopogh, Mirjalili 2021"
    optimizer: Annotated[
        OptimizerName,
        Setting("how centres are moved: gorilla troops, particle swarm or differential evolution"),
    ] = "gto"
    troop: Annotated[int, Setting("gorillas (candidate sets of centres)", ge=3, le=200)] = 20
    iterations: Annotated[int, Setting("iterations at most", ge=1, le=10_000)] = 40
    patience: Annotated[int, Setting("stop after so many iterations without gain", ge=1)] = 20
    work: Annotated[
        int,
        Setting("rows times candidates tried, about: larger tables get a smaller troop, fewer times", ge=1),
    ] = 2_500_000
    fuzziness: Annotated[float, Setting("the fuzzifier m of equation 4", ge=1.05)] = 2.0
    centres: Annotated[int, Setting("most cluster centres a gorilla holds", ge=1)] = 8192
    start: Annotated[
        Literal["progressive", "cuts"],
        Setting(
            "what part of the troop starts from: progressive generalization and Mondrian, or Mondrian alone"
        ),
    ] = "progressive"
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The best clusters found, repaired until the goal holds."""
        refuse_counted(data)
        k = max(goal.least_rows, 1)
        problem = _Problem.of(data, goal, k, self.fuzziness)
        starts = self._starts(data, goal, random, progress)
        other = None
        if self.start == "progressive":
            begun, other = _progressive(data, goal)
            starts.insert(0, begun)
        best = min(starts, key=problem.loss)
        start_loss = problem.loss(best)
        count = max(min(data.rows // k, self.centres), 1)
        size, iterations = self._search_size(data.rows)
        troop = np.stack([problem.centres(part, count, random).ravel() for part in starts[:size]])
        drawn = [problem.drawn(count, random).ravel() for _ in range(size - len(troop))]
        troop = np.vstack([troop, *drawn]) if drawn else troop
        seen = [(start_loss, best)]

        def fitness(position: FloatArray) -> float:
            partition = problem.decode(position.reshape(count, -1))
            loss = problem.loss(partition)
            if loss < seen[0][0]:
                seen[0] = (loss, partition)
            return loss

        search = Search(
            start=troop,
            fitness=fitness,
            random=random,
            iterations=iterations,
            patience=self.patience,
            told=lambda turn, _: progress(turn / iterations, self.title),
        )
        found = OPTIMIZERS[self.optimizer](search)
        partition = seen[0][1]
        notes: dict[str, object] = {
            NoteName("iterations", say("iterations")): len(found.history) - 1,
            NoteName("loss_of_the_best_start", say("loss of the best start")): start_loss,
            NoteName("loss_found_by_the_troop", say("loss found by the search")): found.fitness,
            NoteName("evaluations", say("solutions evaluated")): found.evaluations,
        }
        if other is not None:
            reached = seen[0][0]
            notes[
                NoteName("loss_of_progressive", say("compared with it, progressive generalization loses"))
            ] = other
            below = 1 - other / reached if reached > 0 else 0.0
            notes[NoteName("progressive_below", say("which is below it by"), share=True)] = below
        return in_groups(data, partition, self.recoder, notes)

    def _search_size(self, rows: int) -> tuple[int, int]:
        """Candidates and iterations: as set, unless the table is so large that *work* allows fewer."""
        tried = self.work // rows
        troop = min(self.troop, max(tried // (2 * _FEWEST_ITERATIONS), _SMALLEST_TROOP))
        return troop, min(self.iterations, max(tried // (2 * troop), _FEWEST_ITERATIONS))

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


def _progressive(data: EncodedTable, goal: Goal) -> tuple[Partition, float]:
    """The start of progressive generalization, and the loss it reaches from there by a fast search."""
    method, rows = Progressive("fast"), records_of(data)
    begun = method.start(data, rows, goal, 0, silent)
    labels = method.searched(data, rows, goal, begun, 0, silent)
    return Partition.of(begun.labels), grouping_cost(rows, labels) / (data.rows * len(data.columns))


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
