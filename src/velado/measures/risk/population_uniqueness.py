"""Population uniqueness: how many rows that are unique in the table are unique in the population it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from velado.data.partition import FloatArray, IntArray
from velado.settings import Setting, checked_argument
from velado.text import say

RULE = (
    "Dankar et al. (2012): up to a sampling fraction of 0.1 Pitman's estimate, where it converges, else Zayatz's; "
    "above 0.1 the smaller of Zayatz's and the slide negative binomial's, where that converges"
)
SMALL_FRACTION = 0.1


@dataclass(frozen=True)
class PopulationEstimate:
    """What one model says: *uniques* people of the population are unique, the *share* of it.

    *of_sample_uniques* is the chance that a row unique in the table is unique in the population as well.

    >>> population_uniqueness(np.array([1, 1, 1, 2, 2, 3]), 0.5).estimates["zayatz"].model
    'zayatz'
    """

    model: str
    uniques: float
    share: float
    of_sample_uniques: float

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "population_uniques": self.uniques,
            "share_of_population": self.share,
            "share_of_sample_uniques": self.of_sample_uniques,
        }


@dataclass(frozen=True)
class PopulationUniqueness:
    """All estimates that converged by model name, the one the rule *chosen*, and why others are missing.

    >>> population_uniqueness(np.array([1, 1, 1, 2, 2, 3]), 0.5).sample_uniques
    3
    """

    rows: int
    sample_uniques: int
    fraction: float
    estimates: Mapping[str, PopulationEstimate]
    chosen: str
    not_converged: Mapping[str, str]

    @property
    def estimate(self) -> PopulationEstimate:
        """The estimate the decision rule takes."""
        return self.estimates[self.chosen]

    def to_dict(self) -> dict[str, object]:
        """As plain values, with the rule and what did not converge."""
        return {
            "rows": self.rows,
            "sample_uniques": self.sample_uniques,
            "sampling_fraction": self.fraction,
            "estimates": {name: part.to_dict() for name, part in self.estimates.items()},
            "chosen": self.chosen,
            "rule": RULE,
            "not_converged": dict(self.not_converged),
        }


def population_uniqueness(sizes: IntArray, fraction: float) -> PopulationUniqueness:
    """Estimates from the class *sizes* of a simple random sample of the given *fraction* of the population.

    Assumes that rows are a simple random sample and each is a person of their own; a table of all the people of a
    hospital is the population of that hospital, and only a sample of the city. The population has
    rows / fraction people. With fraction 1 the table is the population and nothing is estimated; without a
    unique row there is nothing to estimate. Cost O(distinct class sizes) per step of each search.

    >>> round(population_uniqueness(np.array([1, 1, 1, 2, 2, 3]), 0.5).estimates["zayatz"].uniques, 2)
    3.05
    """
    check_fraction(fraction)
    sizes = np.asarray(sizes, dtype=np.int64)
    size, number = np.unique(sizes[sizes > 0], return_counts=True)
    rows = int((size * number).sum())
    unique = int(number[0]) if size.size and size[0] == 1 else 0
    if fraction == 1 or not unique:
        counted = _estimate("counted", float(unique), rows, unique, fraction)
        return PopulationUniqueness(rows, unique, fraction, {"counted": counted}, "counted", {})
    found = {"zayatz": _estimate("zayatz", zayatz(size, number, fraction), rows, unique, fraction)}
    failed: dict[str, str] = {}
    for name, model in (("pitman", pitman), ("slide negative binomial", slide_negative_binomial)):
        uniques = model(size, number, fraction)
        if isinstance(uniques, str):
            failed[name] = uniques
        else:
            found[name] = _estimate(name, uniques, rows, unique, fraction)
    chosen = "zayatz"
    if fraction <= SMALL_FRACTION:
        chosen = "pitman" if "pitman" in found else "zayatz"
    elif "slide negative binomial" in found:
        chosen = min(("zayatz", "slide negative binomial"), key=lambda name: found[name].uniques)
    return PopulationUniqueness(rows, unique, fraction, found, chosen, failed)


SAMPLING = Annotated[
    float,
    Setting(
        "share of the population that the original table holds",
        gt=0,
        le=1,
        why="It is the share of the population that the table holds.",
    ),
]
"""A sampling fraction."""


def check_fraction(fraction: float) -> None:
    """A sampling fraction is above 0 and at most 1, or an error says so.

    >>> check_fraction(0.5)
    """
    checked_argument("sampling_fraction", fraction, SAMPLING)


def zayatz(size: IntArray, number: IntArray, fraction: float) -> float:
    """Population uniques after Zayatz (1991): *number* classes have each *size* in the sample.

    The population's class sizes are taken to be spread as the sample's. By Bayes' rule the chance that a
    sample unique comes from a class of one is w_1 h(1) / sum_i w_i h(i), w_i the share of classes of size i,
    h(i) the hypergeometric chance that exactly one of i people is drawn; uniques = chance * sample uniques / fraction.

    >>> round(zayatz(np.array([1, 2, 3]), np.array([3, 2, 1]), 0.5), 2)
    3.05
    """
    from scipy.special import gammaln

    rows = float((size * number).sum())
    people = float(round(rows / fraction))
    i = size.astype(np.float64)
    possible = people - i >= rows - 1
    rest = np.where(possible, people - i, rows)
    chance = (
        np.log(i)
        + (gammaln(rest + 1) - gammaln(rest - rows + 2))
        - (gammaln(people + 1) - gammaln(people - rows + 1))
        + np.log(rows)
    )
    drawn = np.where(possible, np.exp(chance), 0.0) * number
    return float(drawn[0] / drawn.sum() * number[0] / fraction)


def pitman(size: IntArray, number: IntArray, fraction: float) -> float | str:
    """Population uniques under Pitman's sampling formula, fitted by maximum likelihood (Hoshino 2001).

    log L = sum_{i<u} log(theta + i alpha) - sum_{i<n} log(theta + i) + sum over classes log (1 - alpha)_{f-1}
    for n rows in u classes, 0 < alpha < 1, theta > -alpha; the sums are differences of log-gamma functions. The
    population's N people have Gamma(theta + 1) / Gamma(theta + alpha) N^alpha uniques among them. A sentence
    is returned instead when the likelihood has no maximum inside those limits.

    >>> pitman(np.array([1]), np.array([5]), 0.5)
    'Every row is unique, so the likelihood grows without end.'
    """
    from scipy.optimize import minimize
    from scipy.special import expit, gammaln

    rows, classes = float((size * number).sum()), float(number.sum())
    if classes == rows:
        return say("Every row is unique, so the likelihood grows without end.")

    def at(point: FloatArray) -> tuple[float, float]:
        alpha = float(expit(point[1]))
        return float(np.exp(min(point[0], 700.0))) - alpha, alpha

    def loss(point: FloatArray) -> float:
        theta, alpha = at(point)
        if not 1e-12 < alpha < 1 - 1e-12 or theta <= -alpha:
            return np.inf
        ratio = theta / alpha
        climb = (classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1)
        inside = (number * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        value = -float(climb - gammaln(theta + rows) + gammaln(theta + 1) + inside)
        return value if np.isfinite(value) else np.inf

    start = np.array([np.log(rows / 10 + 1), 0.0])
    limits = {"xatol": 1e-10, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000}
    # The simplex may stop early on a ridge; started again from where it stopped it leaves it.
    with np.errstate(invalid="ignore", over="ignore"):
        fit = minimize(loss, start, method="Nelder-Mead", options=limits)
        fit = minimize(loss, fit.x, method="Nelder-Mead", options=limits)
    theta, alpha = at(fit.x)
    if not np.isfinite(fit.fun) or not 1e-6 < alpha < 1 - 1e-6 or theta > 1e12 or theta + alpha < 1e-9:
        return say("The likelihood has no maximum with alpha between 0 and 1.")
    uniques = float(np.exp(gammaln(theta + 1) - gammaln(theta + alpha) + alpha * np.log(rows / fraction)))
    return _possible(uniques, rows / fraction)


def slide_negative_binomial(size: IntArray, number: IntArray, fraction: float) -> float | str:
    """Population uniques when class sizes are 1 + a negative binomial (Chen and Keller-McNulty 1998).

    P(F = 1 + j) = C(a + j - 1, j) b^a (1 - b)^j. A person is drawn with chance f, so with
    G(z) = z (b / (1 - (1 - b) z))^a a class of the population shows no row with chance G(1 - f) and one with
    f G'(1 - f). K = N / (1 + a (1 - b)/b) classes; a and b are solved from the expected number of sample classes,
    K (1 - G), and of sample uniques, K f G', set to those seen; uniques = K b^a. The moments replace the paper's
    (and ARX's) separate estimate of K. A sentence is returned when no a, b meet them.

    >>> round(slide_negative_binomial(np.array([1]), np.array([5]), 0.5), 4)
    10.0
    """
    from scipy.optimize import least_squares
    from scipy.special import expit

    rows, classes, alone = float((size * number).sum()), float(number.sum()), float(number[0])
    people, unseen = rows / fraction, 1.0 - fraction

    def shape(point: FloatArray) -> tuple[float, float, float]:
        a, b = float(np.exp(point[0])), float(expit(point[1]))
        return a, b, people / (1 + a * (1 - b) / b)

    def gap(point: FloatArray) -> FloatArray:
        a, b, cells = shape(point)
        base = 1 - (1 - b) * unseen
        power = np.exp(a * (np.log(b) - np.log(base)))
        once = fraction * power * (1 + unseen * a * (1 - b) / base)
        return np.array(
            [np.log(cells * (1 - unseen * power) / classes), np.log(max(cells * once, 1e-300) / alone)]
        )

    limits = ([-15.0, -25.0], [10.0, 12.0])
    fits = [
        least_squares(gap, [a, b], bounds=limits, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=300)
        for a in (-3.0, 0.0)
        for b in (-6.0, -2.0, 1.0)
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    if float(np.abs(best.fun).max()) > 1e-6:
        return say("No parameters give the classes and unique rows that were seen.")
    a, b, cells = shape(best.x)
    return _possible(cells * b**a, people)


def _possible(uniques: float, people: float) -> float | str:
    if not np.isfinite(uniques) or not 0 <= uniques <= people:
        return say("The fitted model has more unique people than the population has people.")
    return uniques


def _estimate(model: str, uniques: float, rows: int, unique: int, fraction: float) -> PopulationEstimate:
    people = rows / fraction
    drawn = min(uniques * fraction / unique, 1.0) if unique else 0.0
    return PopulationEstimate(model, uniques, uniques / people if people else 0.0, drawn)
