"""The gorilla troops optimizer (Abdollahzadeh, Gharehchopogh, Mirjalili 2021), as published, on any fitness.

One step for gorilla X_i of a troop of N, in iteration t of T, uniform r1..r5 in [0, 1]::

    C = (cos(2 r4) + 1)(1 - t/T),   L = C l,   l in [-1, 1]
    exploration   with probability p      lb + r1 (ub - lb)
                  else, half and half     (r2 - C) X_r + L Z X_i,   Z in [-C, C]
                                          X_i - L (L (X_i - G_r) + r3 (X_i - G_r))
    exploitation  if C >= W               X_i + L M (X_i - S),   M = (|mean of the troop|^g)^(1/g),  g = 2^L
                  else                    S - (S - X_i) Q A,   Q = 2 r5 - 1,  A = beta E
    E is a normal vector or, half the time, one normal number; S is the silverback, the best so far.

A move is kept only if it is better (greedy selection), so the best never gets worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Troop:
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
) -> Troop:
    """The least fitness found from the troop *start* (N x D), stopping after *patience* iterations without gain."""
    troop = start.copy()
    count = troop.shape[0]
    scores = np.array([fitness(gorilla) for gorilla in troop])
    history = [float(scores.min())]
    idle = 0
    for iteration in range(iterations):
        c = (np.cos(2 * random.random()) + 1) * (1 - (iteration + 1) / iterations)
        big_l = c * random.uniform(-1, 1)
        for phase in (_explore, _exploit):
            silverback = troop[int(np.argmin(scores))].copy()
            moved = phase(troop, silverback, c, big_l, random, p, beta, w, low, high)
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
    return Troop(troop[winner].copy(), float(scores[winner]), tuple(history))


def _explore(
    troop: FloatArray,
    silverback: FloatArray,
    c: float,
    big_l: float,
    random: np.random.Generator,
    p: float,
    beta: float,
    w: float,
    low: float,
    high: float,
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
    p: float,
    beta: float,
    w: float,
    low: float,
    high: float,
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
