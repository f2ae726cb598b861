"""Optimizers of GOK behind one protocol: gorilla troops, particle swarm, differential evolution, on any fitness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from velado.release.methods._cover_tables import FloatArray

Fitness = Callable[[FloatArray], float]
Told = Callable[[int, float], None]


@dataclass(frozen=True)
class Found:
    """What a search found: the best position, its fitness, the fitness after each iteration, and how many it tried."""

    best: FloatArray
    fitness: float
    history: tuple[float, ...]
    evaluations: int


def unheard(iteration: int, best: float) -> None:
    """Nobody is told how far the search is."""


class Optimizer(Protocol):
    """Moves the candidates *start* (N x D) within 0..1 towards a lower *fitness*; the best ever seen is found.

    It stops after *iterations*, or after *patience* of them without gain.
    """

    def __call__(
        self,
        start: FloatArray,
        fitness: Fitness,
        random: np.random.Generator,
        iterations: int,
        patience: int,
        *,
        told: Told = unheard,
    ) -> Found: ...


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


def gorilla_troops(
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
    told: Told = unheard,
) -> Found:
    """The least fitness found from the troop *start* (N x D), stopping after *patience* iterations without gain.

    >>> troop, random = np.array([[0.9], [0.4], [0.1]]), np.random.default_rng(0)
    >>> found = gorilla_troops(troop, lambda x: float((x[0] - 0.5) ** 2), random, iterations=20, patience=20)
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
    evaluations = count * (2 * len(history) - 1)
    return Found(troop[winner].copy(), float(scores[winner]), tuple(history), evaluations)


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


# Particle swarm (Kennedy and Eberhart 1995) with the constriction of Clerc and Kennedy (2002): each particle is drawn to the
# best place it has seen and to the best of all, v = chi (v + 2.05 r1 (own - x) + 2.05 r2 (all - x)), x = x + v.
_CHI, _PULL = 0.7298, 2.05


def particle_swarm(
    start: FloatArray,
    fitness: Fitness,
    random: np.random.Generator,
    iterations: int,
    patience: int,
    *,
    told: Told = unheard,
) -> Found:
    """The least fitness found by a swarm whose particles start at rest; one that would leave 0..1 stops at its border.

    >>> swarm, random = np.array([[0.9], [0.4], [0.1]]), np.random.default_rng(0)
    >>> found = particle_swarm(swarm, lambda x: float((x[0] - 0.5) ** 2), random, iterations=30, patience=30)
    >>> round(float(found.best[0]), 2)
    0.5
    """
    places: FloatArray = start.copy()
    speed: FloatArray = np.zeros_like(start)

    def moved(own: FloatArray, scores: FloatArray) -> FloatArray:
        nonlocal places, speed
        pulls = random.random((2, *start.shape))
        leader = own[int(np.argmin(scores))]
        speed = _CHI * (speed + _PULL * pulls[0] * (own - places) + _PULL * pulls[1] * (leader - places))
        beyond = places + speed
        places = np.asarray(np.clip(beyond, 0.0, 1.0))
        speed = np.where(places == beyond, speed, 0.0)
        return places

    return _improved(start, fitness, moved, iterations, patience, told)


# Differential evolution (Storn and Price 1997), DE/rand/1/bin with F = 0.5 and CR = 0.9: a candidate's rival is a + F (b - c) of
# three others, mixed with the candidate coordinate by coordinate; the better one stays.
_FACTOR, _CROSSING = 0.5, 0.9


def differential_evolution(
    start: FloatArray,
    fitness: Fitness,
    random: np.random.Generator,
    iterations: int,
    patience: int,
    *,
    told: Told = unheard,
) -> Found:
    """The least fitness found by evolution; a coordinate that would leave 0..1 stops at its border.

    >>> few, random = np.array([[0.9], [0.45], [0.1], [0.2]]), np.random.default_rng(0)
    >>> found = differential_evolution(few, lambda x: float((x[0] - 0.5) ** 2), random, iterations=40, patience=40)
    >>> round(float(found.best[0]), 1)
    0.5
    """
    count, width = start.shape

    def moved(own: FloatArray, scores: FloatArray) -> FloatArray:
        # The three others of each candidate: the first three of an order of all the rest.
        others = np.argsort(random.random((count, count)) + 2.0 * np.eye(count), axis=1)[:, :3]
        a, b, c = (own[others[:, min(at, count - 2)]] for at in range(3))
        crossed = random.random((count, width)) < _CROSSING
        crossed[np.arange(count), random.integers(width, size=count)] = True
        return np.asarray(np.clip(np.where(crossed, a + _FACTOR * (b - c), own), 0.0, 1.0))

    return _improved(start, fitness, moved, iterations, patience, told)


def _improved(
    start: FloatArray,
    fitness: Fitness,
    moved: Callable[[FloatArray, FloatArray], FloatArray],
    iterations: int,
    patience: int,
    told: Told,
) -> Found:
    """The best of candidates that are *moved*, each remembering the best place it was at."""
    own = start.copy()
    scores = np.array([fitness(place) for place in own])
    history = [float(scores.min())]
    idle = 0
    for iteration in range(iterations):
        for at, place in enumerate(moved(own, scores)):
            score = fitness(place)
            if score < scores[at]:
                own[at], scores[at] = place, score
        best = float(scores.min())
        idle = idle + 1 if best >= history[-1] else 0
        history.append(best)
        told(iteration + 1, best)
        if idle >= patience:
            break
    winner = int(np.argmin(scores))
    return Found(own[winner].copy(), float(scores[winner]), tuple(history), len(own) * len(history))


OptimizerName = Literal["gto", "pso", "de"]
OPTIMIZERS: Mapping[OptimizerName, Optimizer] = {
    "gto": gorilla_troops,
    "pso": particle_swarm,
    "de": differential_evolution,
}
