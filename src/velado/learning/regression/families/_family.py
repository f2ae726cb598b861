"""What a family of generalized linear models says of itself; everything else reads it here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from velado.errors import InputError
from velado.learning.crypto.fixed_point import Bounded
from velado.text import Sentence, say

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AtPoint:
    """Of every row at a point: the *pull* that the slope sums (y - mu for a canonical link), the weight v of its curvature, and its deviance."""

    pull: Floats
    spread: Floats
    deviance: Floats


class NoisySteps(ABC):
    """How far one row moves the noisy sums of a step (`private_newton`), everything over u, the target's upper bound.

    *wider* are the factors by which the noise on gradient and curvature is wider than either alone would need, and *shares* the largest parts of both
    that one row can have together: with noise of these variances a step costs max(r^2 / wider_0 + v^2 / wider_1) <= 1 times its budget.
    """

    wider: tuple[Fraction, Fraction]
    shares: tuple[float, float]

    @abstractmethod
    def mean_and_spread(self, eta: Floats, top: float) -> tuple[Floats, Floats]:
        """mu / u and v, both within 0 and 1."""

    @abstractmethod
    def start(self, share: float, top: float) -> float:
        """The intercept at which the mean is that share of the upper bound."""

    @abstractmethod
    def unit(self, top: float) -> float:
        """By how much the variance of a count is larger than v."""


class Family(ABC):
    """One family: its mean, variance and deviance, what its target may be, and its words. Frozen, without state.

    *sums* says that without weights the solution follows from X'X and X'y, in one round. *ratio* is what e to the power of a coefficient is
    called, nothing where it has no name. *noisy* is None where it cannot be fitted with noise in steps; such jobs are refused, unless *sums*.
    *dispersed*: standard errors count the deviance over its degrees of freedom.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    sums: ClassVar[bool] = False
    dispersed: ClassVar[bool] = False
    ratio: ClassVar[str] = ""
    noisy: ClassVar[NoisySteps | None] = None
    own_bounds: ClassVar[str] = ""
    """LOW:HIGH of every target of the family, where all have the same."""

    @abstractmethod
    def mean(self, scores: Floats) -> Floats:
        """The mean of the target that linear scores stand for."""

    @abstractmethod
    def at(self, target: Floats, eta: Floats) -> AtPoint:
        """The rows at a point whose linear scores are *eta*."""

    def refuse_target(self, target: Bounded) -> None:
        """Nothing, where the target's public bounds are those of such a family; else ParameterError."""
        return  # whatever they are

    def refuse_values(self, values: ArrayLike, target: str) -> None:
        """Nothing, where a client's own values of the target can be this family's; else InputError. What is no number, the encoding says."""
        return  # whatever they are

    def without_end(self, column: str, rounds: int) -> InputError:
        """Why Newton's method did not end: *column* moved most in the last of so many rounds."""
        return InputError(
            say(
                "No coefficients were found in {rounds} rounds: '{name}' still moves.",
                rounds=rounds,
                name=column,
            ),
            "Perhaps a category has no counts at all, or the bounds are far too wide.",
            "Leave the column out, join its categories, or set lambda above 0.",
        )

    def remark(self, facts: Mapping[str, float], degrees: int) -> Sentence | None:
        """What a reader should know of the spread about the means, or nothing."""
        return None
