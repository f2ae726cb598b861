"""Logistic regression: the chance of a 1, by its log odds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from velado.errors import InputError, ParameterError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.regression.families._family import AtPoint, Family, Floats, NoisySteps
from velado.text import say, say_n


class LogisticSteps(NoisySteps):
    """u = 1 and v = |r| (1 - |r|): where the gradient of a row is long its curvature is 0, so that it costs nothing beside it."""

    wider = (Fraction(1), Fraction(902, 10_000))
    """The second is m of `private_newton`: above max r^2 (1 - r) / (1 + r) = 0.09017."""
    shares = (1.0, 0.0)
    """r^2 + v^2 / m is 1 at most, at r = 1, where v is 0."""

    def mean_and_spread(self, eta: Floats, top: float) -> tuple[Floats, Floats]:
        """The chance p, and p (1 - p)."""
        mean = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
        return mean, mean * (1 - mean)

    def start(self, share: float, top: float) -> float:
        """Its log odds."""
        return math.log(share / (1 - share))

    def unit(self, top: float) -> float:
        """1: v is the variance."""
        return 1.0


class Logistic(Family):
    """ln (mu / (1 - mu)) = x beta.

    >>> Logistic().mean(np.array([0.0])).tolist()
    [0.5]
    """

    name: ClassVar[str] = "logistic"
    about: ClassVar[str] = say("a logistic model (the target is 0 or 1)")
    ratio: ClassVar[str] = say("odds ratio")
    noisy: ClassVar[NoisySteps | None] = LogisticSteps()
    own_bounds: ClassVar[str] = "0:1"

    def mean(self, scores: Floats) -> Floats:
        """Chances."""
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -700, 700))))

    def at(self, target: Floats, eta: Floats) -> AtPoint:
        """y - p, p (1 - p) and -2 ln of the chance of what happened."""
        eta = np.clip(eta, -500, 500)
        mean = 1 / (1 + np.exp(-eta))
        deviance = 2 * (np.logaddexp(0, eta) - target * eta)
        return AtPoint(pull=target - mean, spread=mean * (1 - mean), deviance=deviance)

    def refuse_target(self, target: Bounded) -> None:
        """Its bounds are 0 and 1."""
        if target.bounds != (Fraction(0), Fraction(1)):
            raise ParameterError(
                "The target of a logistic regression has bounds 0 and 1.",
                "It says for every row whether something was so.",
                "Write bounds = [0, 1], or choose another family.",
            )

    def refuse_values(self, values: ArrayLike, target: str) -> None:
        """Every value is 0 or 1."""
        try:
            neither = ~np.isin(np.asarray(values).astype(np.float64), (0.0, 1.0))
        except ValueError:
            return  # no number: the encoding says so
        if neither.any():
            raise InputError(
                say_n(
                    "The target '{name}' has values other than 0 and 1 in {n:,} row of {rows:,}.",
                    "The target '{name}' has values other than 0 and 1 in {n:,} rows of {rows:,}.",
                    int(neither.sum()),
                    name=target,
                    rows=neither.size,
                ),
                "Logistic regression (family logistic) is about something that was so or not.",
                "Code it as 0 and 1, or choose another family.",
            )

    def without_end(self, column: str, rounds: int) -> InputError:
        """Separation."""
        return InputError(
            say("The columns tell the cases from the others without error: '{name}' above all.", name=column),
            "Then coefficients grow without end (separation), and no finite ones are the most likely.",
            "Leave the column out, join its categories, or set lambda above 0.",
        )
