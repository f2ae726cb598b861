"""Optimizers of GOK behind one protocol: gorilla troops, particle swarm, differential evolution, on any fitness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from velado.release.methods._cover_tables import FloatArray

Move = Callable[[FloatArray, FloatArray, int], FloatArray]
"""From the best place of each candidate, its fitness and the number of the iteration to the places tried next."""


@dataclass(frozen=True)
class Found:
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
    """

    start: FloatArray
    fitness: Callable[[FloatArray], float]
    random: np.random.Generator
    iterations: int
    patience: int
    told: Callable[[int, float], None] = _unheard

    def improved(self, *moves: Move) -> Found:
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
        return Found(own[winner].copy(), float(scores[winner]), tuple(history), tried)


Optimizer = Callable[[Search], Found]

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


def gorilla_troops(search: Search) -> Found:
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


def particle_swarm(search: Search) -> Found:
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


def differential_evolution(search: Search) -> Found:
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
