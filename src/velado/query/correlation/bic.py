"""How many components BIC would take, from coarse to fine with warm starts (section 2.3.3.2; algorithms 4 and 5).

The source fits 100 mixtures, of 1 to 100 components, and keeps the least BIC. Here a rising ladder of sizes is fitted,
each started from the last with its heaviest components split along their longest axis, and the gaps beside the best
size are halved until they close. EM stops early: a score is an upper bound of what more rounds would give.
The choice leaks (it is read off the private records) and is often no choice at all: on Adult the scores fall to the edge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from velado.errors import ParameterError
from velado.query.correlation.em import Mixture, Monomials
from velado.query.correlation.records import Floats

LADDER = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80)
ROUNDS = 40


class AtTheEdge(UserWarning):
    """The least score lies at the most components that were tried, so it is no minimum."""


@dataclass(frozen=True)
class Choice:
    """The chosen number of components, the score of every size that was fitted, and whether it lies at the edge."""

    components: int
    scores: dict[int, float] = field(repr=False)
    at_edge: bool = False


def choose_components(
    values: Floats,
    most: int = 100,
    rounds: int = ROUNDS,
    progress: Callable[[float, str], None] = lambda share, doing: None,
) -> Choice:
    """The size with the least BIC among those tried, all between 1 and *most*; warns where it is *most* itself."""
    if not 1 <= most <= values.shape[0]:
        raise ParameterError(
            "The most components must be at least 1 and at most the number of rows.",
            "A component needs a row of its own.",
            "Choose for example 100.",
        )
    monomials = Monomials.of(values)
    models: dict[int, Mixture] = {}
    scores: dict[int, float] = {}

    def score(size: int) -> None:
        below = max((known for known in models if known < size), default=None)
        start = monomials.whole() if below is None else split(models[below], size)
        models[size], likelihood = monomials.improve(start, rounds)
        scores[size] = monomials.bic(models[size], likelihood)
        progress(min(0.95, len(scores) / 20), "BIC")

    for size in (*[step for step in LADDER if step < most], most):
        score(size)
    while new := _between(scores):
        for size in new:
            score(size)
    best = min(scores, key=scores.__getitem__)
    if best == most:
        warnings.warn(
            f"BIC still falls at {most} components, the most that were tried: this is an edge, not a minimum.",
            AtTheEdge,
            stacklevel=2,
        )
    return Choice(best, dict(sorted(scores.items())), best == most)


def split(mixture: Mixture, components: int) -> Mixture:
    """A start of *components* from a smaller mixture: the heaviest component is split, again and again.

    Its halves stand half a deviation to either side along the longest axis, which is shortened by as much.
    """
    weights = [float(w) for w in mixture.weights]
    means = list(mixture.means)
    covariances = list(mixture.covariances)
    while len(weights) < components:
        at = int(np.argmax(weights))
        lengths, axes = np.linalg.eigh(covariances[at])
        axis = axes[:, -1] * np.sqrt(max(float(lengths[-1]), 0.0)) * 0.5
        weights[at] *= 0.5
        weights.append(weights[at])
        means.append(means[at] + axis)
        means[at] = means[at] - axis
        # Halves at +-a with covariance C - a a^T have together the mean and the covariance they came from.
        covariances[at] = covariances[at] - np.outer(axis, axis)
        covariances.append(covariances[at])
    return Mixture(np.array(weights), np.stack(means), np.stack(covariances))


def _between(scores: dict[int, float]) -> list[int]:
    """The sizes halfway between the best one and its fitted neighbours, where there are any."""
    known = sorted(scores)
    at = known.index(min(scores, key=scores.__getitem__))
    near = [known[i] for i in (at - 1, at + 1) if 0 <= i < len(known)]
    return sorted({(known[at] + other) // 2 for other in near} - set(known))
