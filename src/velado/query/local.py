"""Local privacy: each device adds the noise before it reports, so nobody needs to be trusted with the truth.

Whom it protects: the owner of one report, against everybody, whatever else they know; any two values a device could
hold lead to each report with chances within a factor e^epsilon. It assumes one report per person: several add up.
The collector's estimates are unbiased; their standard error is that of the noise, about the devices that reported.
Their intervals are a normal approximation: good for many reports, too narrow for few and for confidences near 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from velado.errors import ParameterError
from velado.query import noise
from velado.query.budget import Facts, exact
from velado.query.noise import standard_deviation
from velado.text import say

ENOUGH = 30
"""Reports from which a normal approximation is usual at 95 %; with fewer its interval holds the value less often."""


@dataclass(frozen=True)
class Estimate:
    """An unbiased number, its standard error, and an interval of about the stated confidence: a normal approximation.

    Noise has heavier tails than a normal distribution, so the interval covers less often than stated where reports are
    *few* (below 30) or the confidence is far above 95 %. The mechanisms' promise does not rest on it.

    >>> Estimate(0.4, 0.1, 0.2, 0.6, reports=12).few
    True
    """

    value: float
    standard_error: float
    low: float
    high: float
    reports: int

    @property
    def few(self) -> bool:
        """Whether there are too few reports to rely on the interval."""
        return self.reports < ENOUGH

    def to_dict(self) -> Facts:
        """The five numbers, what the interval is, and whether the reports are too few for it."""
        return {**vars(self), "interval": "normal approximation", "few_reports": self.few}


@dataclass(frozen=True)
class RandomizedResponse:
    """A device tells its category with a certain chance, else one of the others, all alike (Warner 1965; k-ary).

    The chance p of the truth is the largest with p / q <= e^epsilon, q = (1 - p) / (k - 1), as OpenDP's map says.

    >>> asked = RandomizedResponse(("yes", "no"), Fraction(2))
    >>> round(asked.chance, 3), len(asked.perturb(["yes", "no"]))
    (0.881, 2)
    """

    categories: tuple[str, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        object.__setattr__(self, "epsilon", _epsilon(self.epsilon))
        if len(self.categories) < 2 or len(set(self.categories)) != len(self.categories):
            raise ParameterError(
                "Randomised response needs at least two categories, all different.",
                "Another answer must be possible for the true one to be deniable.",
                "List every category once.",
            )

    @property
    def chance(self) -> float:
        """The chance p that a report is the truth."""
        return noise.calibrate_response(len(self.categories), self.epsilon)[0]

    @property
    def charge(self) -> Fraction:
        """What one report costs its owner, exactly."""
        return noise.calibrate_response(len(self.categories), self.epsilon)[1]

    def perturb(self, values: Iterable[object]) -> tuple[str, ...]:
        """One report per value; a value outside the categories is an error on the device, and nothing is reported."""
        places = {category: place for place, category in enumerate(self.categories)}
        codes = [places.get(value, -1) if isinstance(value, str) else -1 for value in values]
        if -1 in codes:
            raise _outside(say("A value is none of the declared categories."))
        told = noise.respond(len(self.categories), self.chance, np.array(codes, dtype=np.int64))
        return tuple(self.categories[code] for code in told.tolist())

    def estimate(self, reports: Iterable[str], confidence: float = 0.95) -> dict[str, Estimate]:
        """The share of each category among the devices: (r/n - q) / (p - q), unbiased, possibly below 0 or above 1.

        Given the truth, a share f has the variance (f p(1-p) + (1-f) q(1-q)) / (n (p-q)^2); f is put in clamped.
        """
        return share_estimates(self.categories, self.chance, reports, confidence)

    def to_dict(self) -> Facts:
        """The mechanism and its promise."""
        return {
            "mechanism": "randomised response",
            "categories": list(self.categories),
            "chance": self.chance,
            "guarantee": _guarantee(self.charge),
        }


def share_estimates(
    categories: Sequence[str], p: float, reports: Iterable[str], confidence: float
) -> dict[str, Estimate]:
    """The share of each category, where a report is the truth with the chance *p* and any other category with one chance q.

    >>> share_estimates(("a", "b"), 0.75, ["a"] * 60 + ["b"] * 40, 0.95)["a"].value
    0.7
    """
    counts = Counter(reports)
    if not set(counts) <= set(categories):
        raise _outside(say("A report is none of the declared categories."))
    n = _some(counts.total())
    q = (1 - p) / (len(categories) - 1)
    out = {}
    for category in categories:
        share = (counts[category] / n - q) / (p - q)
        inside = min(max(share, 0.0), 1.0)
        variance = (inside * p * (1 - p) + (1 - inside) * q * (1 - q)) / (n * (p - q) ** 2)
        out[category] = _estimate(share, math.sqrt(variance), n, confidence, 0.0, 1.0)
    return out


@dataclass(frozen=True)
class LocalLaplace:
    """A device adds discrete Laplace noise to a number on a declared grid: low, low + step, ..., high.

    Any two values differ by at most (high - low) / step cells, which is the sensitivity.

    >>> device = LocalLaplace(Fraction(0), Fraction(120), Fraction(1), Fraction(1))
    >>> device.scale, len(device.perturb([40.0]))
    (120.0, 1)
    """

    low: Fraction
    high: Fraction
    step: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, exact(getattr(self, name)))
        object.__setattr__(self, "epsilon", _epsilon(self.epsilon))
        cells = (self.high - self.low) / self.step if self.step > 0 else Fraction(0)
        if not 1 <= cells <= 1 << 40 or cells.denominator != 1:
            raise ParameterError(
                "The bounds must lie a whole number of steps apart, at least 1 and at most 2^40.",
                "Noise is drawn on the grid they make.",
                "Choose for example low 0, high 120 and step 1.",
            )

    @property
    def cells(self) -> int:
        """Steps from the lowest to the highest value."""
        return int((self.high - self.low) / self.step)

    @property
    def scale(self) -> float:
        """The noise's scale, in steps."""
        return noise.calibrate("laplace", "epsilon", self.cells, self.epsilon)[0]

    @property
    def charge(self) -> Fraction:
        """What one report costs its owner, exactly."""
        return noise.calibrate("laplace", "epsilon", self.cells, self.epsilon)[1]

    def perturb(self, values: Sequence[float]) -> tuple[float, ...]:
        """One report per value: the nearest grid value plus noise. NaN or a value outside the bounds is an error."""
        numbers = np.asarray(values, dtype=np.float64)
        if not bool(np.all((numbers >= float(self.low)) & (numbers <= float(self.high)))):
            raise _outside(say("A value is not a number between the declared bounds."))
        steps = np.floor((numbers - float(self.low)) / float(self.step) + 0.5)
        indices = np.clip(steps, 0, self.cells).astype(np.int64)
        noisy = noise.add("laplace", "epsilon", self.scale, indices)
        return tuple(float(self.low + self.step * index) for index in noisy.tolist())

    def estimate(self, reports: Sequence[float], confidence: float = 0.95) -> Estimate:
        """The mean of the devices' grid values: the mean of the reports, unbiased; the error is the noise's sd / sqrt(n)."""
        numbers = np.asarray(reports, dtype=np.float64)
        if not bool(np.all(np.isfinite(numbers))):
            raise _outside(say("A report is not a finite number."))
        n = _some(numbers.size)
        error = standard_deviation("laplace", self.scale) * float(self.step) / math.sqrt(n)
        return _estimate(float(numbers.mean()), error, n, confidence, float(self.low), float(self.high))

    def to_dict(self) -> Facts:
        """The mechanism and its promise."""
        return {
            "mechanism": "discrete Laplace",
            "low": str(self.low),
            "high": str(self.high),
            "step": str(self.step),
            "scale": self.scale,
            "guarantee": _guarantee(self.charge),
        }


def _epsilon(value: Fraction | float | str) -> Fraction:
    epsilon = exact(value)
    # Above 30 a float can no longer tell the chance of the truth from certainty.
    if not Fraction(1, 1_000_000) <= epsilon <= 30:
        raise ParameterError(
            "Local epsilon must lie between 0.000001 and 30.",
            "Below nothing is learnt, above nothing is protected.",
            "Choose for example 1.",
        )
    return epsilon


def _guarantee(charge: Fraction) -> Facts:
    return {
        "type": "guaranteed",
        "model": "local",
        "measure": "epsilon",
        "epsilon": str(charge),
        "about": float(charge),
        "unit": "one report",
        "holds_for": "any two values of one report, against everybody including the collector",
    }


def _estimate(
    value: float, error: float, reports: int, confidence: float, least: float, most: float
) -> Estimate:
    noise.check_confidence(confidence)
    width = -NormalDist().inv_cdf((1 - confidence) / 2) * error
    low, high = (min(max(end, least), most) for end in (value - width, value + width))
    return Estimate(value, error, low, high, reports)


def _some(reports: int) -> int:
    if reports == 0:
        raise ParameterError(
            "There are no reports.", "A mean of nothing is not defined.", "Collect at least one report."
        )
    return reports


def _outside(what: str) -> ParameterError:
    return ParameterError(
        what,
        "The promise is made for declared values alone, and noise around another would tell of it.",
        "Correct the value, or declare a wider domain before collecting.",
    )
