"""Poisson regression: counts, by the logarithm of their mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from velado.errors import ParameterError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.regression.families._family import AtPoint, Family, Floats, NoisySteps
from velado.text import Sentence, say

MOST_ETA = 27.0
CAREFUL_DISPERSION = 1.5
GRADIENT = Fraction(7, 10)
"""The gradient's share of a step's rho."""


class PoissonSteps(NoisySteps):
    """A mean is never taken for more than the upper bound u; gradient and curvature of a row can both be long, so that rho is shared out."""

    wider = (1 / GRADIENT, 1 / (1 - GRADIENT))
    shares = (1.0, 1.0)

    def mean_and_spread(self, eta: Floats, top: float) -> tuple[Floats, Floats]:
        """mu / u, twice."""
        mean = np.exp(np.minimum(np.clip(eta, -500, 500) - math.log(top), 0.0))
        return mean, mean

    def start(self, share: float, top: float) -> float:
        """Its logarithm."""
        return math.log(share * top)

    def unit(self, top: float) -> float:
        """A count's variance is its mean: over u^2 that is v / u."""
        return top


class Poisson(Family):
    """ln mu = x beta, with the variance mu.

    >>> Poisson().at(np.array([1.0]), np.array([0.0])).deviance.tolist()
    [0.0]
    """

    name: ClassVar[str] = "poisson"
    about: ClassVar[str] = say("a Poisson model (the target is a count)")
    ratio: ClassVar[str] = say("rate ratio")
    noisy: ClassVar[NoisySteps | None] = PoissonSteps()

    def mean(self, scores: Floats) -> Floats:
        """e to their power."""
        return np.asarray(np.exp(np.minimum(scores, 700)))

    def at(self, target: Floats, eta: Floats) -> AtPoint:
        """y - mu, mu and 2 (y ln (y / mu) - (y - mu))."""
        mean = np.exp(np.clip(eta, -500, MOST_ETA))
        logs = np.log(np.where(target > 0, target, 1.0)) - np.clip(eta, -500, MOST_ETA)
        deviance = 2 * (np.where(target > 0, target * logs, 0.0) - (target - mean))
        return AtPoint(pull=target - mean, spread=mean, deviance=deviance)

    def refuse_target(self, target: Bounded) -> None:
        """No count is below 0."""
        if target.low < 0:
            raise ParameterError(
                "Counts and weights cannot be below 0.",
                "They say how many, or how much a row counts.",
                "Set the lower bound to 0.",
            )

    def remark(self, facts: Mapping[str, float], degrees: int) -> Sentence | None:
        """That counts vary more than Poisson's law says."""
        ratio = facts.get("deviance", 0.0) / degrees
        if ratio <= CAREFUL_DISPERSION:
            return None
        return say(
            "The deviance is {ratio:.2f} times its degrees of freedom: the counts vary more than Poisson's law says. Standard errors "
            "are too small, by a factor of about {factor:.2f}.",
            ratio=ratio,
            factor=math.sqrt(ratio),
        )
