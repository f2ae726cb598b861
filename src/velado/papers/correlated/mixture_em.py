"""Expectation maximisation for a mixture's BIC, several times faster than a general library's (section 2.3.3.1).

A Gaussian's log density is linear in the monomials of x up to degree two, phi(x) = (1, x_a, x_a x_b): the E-step of all
components is one product phi theta, and the M-step one product R^T phi with the responsibilities R. Blocks of rows keep
both in the cache, and no n x K matrix is stored. Values lie in [0, 1] and are centred first, so what cancels in
E[x x^T] - mu mu^T is of the order of 1e-16, far below the 1e-6 that is added to every variance.

Used only to choose a number of components; the mixture whose memberships count is scikit-learn's.
Cost: O(n K d^2) per round; memory O(n d^2) for the monomials, so records of more than 64 columns are refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from velado.errors import ParameterError
from velado.papers.correlated.correlated_records import Floats, Integers
from velado.text import say

# How many components BIC would take, from coarse to fine with warm starts (section 2.3.3.2; algorithms 4 and 5).
#
# The source fits 100 mixtures, of 1 to 100 components, and keeps the least BIC. Here a rising ladder of sizes is fitted,
# each started from the last with its heaviest components split along their longest axis, and the gaps beside the best
# size are halved until they close. EM stops early: a score is an upper bound of what more rounds would give.
# The choice leaks (it is read off the private records) and is often no choice at all: on Adult the scores fall to the edge.

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


REGULARIZATION = 1e-6
WIDEST = 64
BLOCK = 2048


@dataclass(frozen=True, repr=False)
class Mixture:
    """Weights (K), means (K x d) and covariances (K x d x d), in centred coordinates."""

    weights: Floats
    means: Floats
    covariances: Floats

    @property
    def components(self) -> int:
        """How many Gaussians there are."""
        return int(self.weights.size)

    def parameters(self) -> int:
        """How many free numbers BIC charges for."""
        d = self.means.shape[1]
        return self.components * (d + d * (d + 1) // 2) + self.components - 1


@dataclass(frozen=True, repr=False)
class Monomials:
    """phi(x) of every row, and which pairs of columns its last part holds."""

    phi: Floats
    left: Integers
    right: Integers
    width: int

    @classmethod
    def of(cls, values: Floats) -> Monomials:
        """The monomials of the centred values."""
        width = values.shape[1]
        if width > WIDEST:
            raise ParameterError(
                say(
                    "BIC is scored for records of at most {widest} columns; there are {width}.",
                    widest=WIDEST,
                    width=width,
                ),
                "Each Gaussian has about half that number squared of parameters, and the work grows with it.",
                "Name the number of components yourself, or keep fewer columns.",
            )
        centred = values - values.mean(axis=0)
        left, right = np.triu_indices(width)
        phi = np.concatenate(
            [np.ones((len(values), 1)), centred, centred[:, left] * centred[:, right]], axis=1
        )
        return cls(np.ascontiguousarray(phi), left, right, width)

    def improve(self, mixture: Mixture, rounds: int, tolerance: float = 1e-3) -> tuple[Mixture, float]:
        """The mixture after at most *rounds* of EM, and its log-likelihood; ends when a round gains less per row."""
        statistics, likelihood = self._expect(mixture)
        for _ in range(rounds):
            mixture = self._maximise(statistics)
            before = likelihood
            statistics, likelihood = self._expect(mixture)
            if abs(likelihood - before) < tolerance * self.phi.shape[0]:
                break
        return mixture, likelihood

    def whole(self) -> Mixture:
        """One Gaussian for all rows: already the best of its size."""
        return self._maximise(self.phi.sum(axis=0)[None, :])

    def bic(self, mixture: Mixture, likelihood: float) -> float:
        """-2 log p(X) + (parameters) log n."""
        return -2.0 * likelihood + mixture.parameters() * math.log(self.phi.shape[0])

    def _expect(self, mixture: Mixture) -> tuple[Floats, float]:
        theta = self._linear(mixture)
        statistics = np.zeros((mixture.components, self.phi.shape[1]))
        total = 0.0
        for start in range(0, self.phi.shape[0], BLOCK):
            block = self.phi[start : start + BLOCK]
            share = block @ theta
            top = share.max(axis=1)
            share -= top[:, None]
            np.exp(share, out=share)
            sums = share.sum(axis=1)
            share /= sums[:, None]
            total += float(top.sum() + np.log(sums).sum())
            statistics += share.T @ block
        return statistics, total

    def _linear(self, mixture: Mixture) -> Floats:
        """theta with phi(x) theta_k = log(w_k g_k(x))."""
        precision = np.linalg.inv(mixture.covariances)
        precision = (precision + precision.transpose(0, 2, 1)) / 2
        signs, logs = np.linalg.slogdet(mixture.covariances)
        slope = np.einsum("kab,kb->ka", precision, mixture.means)
        constant = (
            np.log(mixture.weights)
            - 0.5 * (self.width * math.log(2 * math.pi) + np.where(signs > 0, logs, 0.0))
            - 0.5 * np.einsum("ka,ka->k", slope, mixture.means)
        )
        twice = np.where(self.left == self.right, 0.5, 1.0)  # x_a x_b stands once for (a, b) and (b, a)
        square = -precision[:, self.left, self.right] * twice
        return np.asarray(np.concatenate([constant[:, None], slope, square], axis=1).T)

    def _maximise(self, statistics: Floats) -> Mixture:
        size = statistics[:, 0] + 10 * np.finfo(float).eps
        means = statistics[:, 1 : 1 + self.width] / size[:, None]
        products = statistics[:, 1 + self.width :] / size[:, None]
        covariances = np.empty((size.size, self.width, self.width))
        covariances[:, self.left, self.right] = products
        covariances[:, self.right, self.left] = products
        covariances -= means[:, :, None] * means[:, None, :]
        covariances += REGULARIZATION * np.eye(self.width)
        return Mixture(size / size.sum(), means, covariances)
