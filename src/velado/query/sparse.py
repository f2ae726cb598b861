"""Counts of a large declared domain of which only those above a threshold are shown, without drawing noise for every empty key.

GROUP BY keys HAVING COUNT(*) >= T means: noise on the count of *every* declared key, then all keys whose noisy count is below T
left out. That is a function of noisy counts, so it costs what they cost. Few keys hold rows, and the noise of the others is not
drawn one by one; what is shown has the very same distribution:

    With X the noise and p = P(X >= T), each empty key is shown with chance p, independently of all else, and then shows X given X >= T.
    So the gaps between shown empty keys, in the order of the domain, are geometric with chance p, and their values are independent.

    Gap: G = floor(ln U / ln(1 - p)), U uniform: P(G >= g) = P(U <= (1 - p)^g) = (1 - p)^g.
    Laplace: X given X >= T is T plus X given X >= 0, for P(X = x) falls by one factor from each x >= 0 to the next. OpenDP draws it.
    Gaussian: P(X = T + k) / P(X = T) = exp(-(k^2 + 2 k T) / 2 s^2). A k >= 0 that OpenDP draws with chances e^(-k/b), b >= s^2 / T, is kept with
    chance exp(-(k^2 + 2 k T) / 2 s^2 + k / b) <= 1 (rejection).

U is drawn bit by bit from the secure source, p and the logarithms are computed between two decimals, and both get more digits until there
is one answer: no chance is rounded. Which keys hold rows decides the work done and nothing else; how long that takes is the
engine's time, as with every question.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from velado.errors import QueryRefused
from velado.query import noise
from velado.query.budget import Measure
from velado.query.needs import Counts
from velado.query.noise import Mechanism
from velado.randomness import secure
from velado.text import say

MOST_CELLS = 1 << 20
"""Declared keys together; a whole number is kept for each while an answer is made."""
MOST_LIFTED = 1_000
"""Empty keys that noise alone may be expected to show."""
DRAWN_ALL = 10_000
"""Up to so many cells noise is drawn for each of them."""
_DIGITS, _BITS = 40, 64


def check_threshold(mechanism: Mechanism, scale: float, least: int, cells: int) -> float:
    """How many empty keys noise is expected to show at most; QueryRefused where that is too many. Public things alone.

    >>> round(check_threshold("laplace", 2.0, 30, 1_000_000), 2)
    0.19
    """
    if mechanism == "gaussian" and scale > noise.SUMMED and cells > DRAWN_ALL:
        raise QueryRefused(
            "The noise of this answer is too wide for so many keys.",
            "Hardly any key would stand out from it.",
            "Spend more on the query, or group by fewer keys.",
        )
    shown = cells * noise.chance_at_least(mechanism, scale, least)
    if shown > MOST_LIFTED and cells > DRAWN_ALL:
        raise QueryRefused(
            say("Noise alone would show about {shown:,} empty keys.", shown=math.ceil(shown)),
            say(
                "HAVING asks for noisy counts of at least {least:,}, and noise reaches that too often.",
                least=least,
            ),
            "Ask for a higher count in HAVING, or spend more on the query.",
        )
    return shown


def draw_above(
    mechanism: Mechanism,
    measure: Measure,
    scale: float,
    tally: Counts,
    least: int,
    deadline: float | None = None,
    bits: Callable[[int], int] | None = None,
) -> tuple[Counts, Counts]:
    """The cells whose noisy count is at least *least*, in their order, and those counts. *bits* gives as many random bits as it is asked for.

    >>> draw_above("laplace", "epsilon", 0.01, np.array([0, 90, 4]), 30)
    (array([1]), array([90]))
    """
    kind = "laplace" if mechanism == "laplace" else "gaussian"
    held = np.arange(len(tally)) if len(tally) <= DRAWN_ALL else np.flatnonzero(tally)
    noisy = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(held), DRAWN_ALL):
        noise.check_time(deadline)
        noisy.append(noise.add(kind, measure, scale, tally[held[start : start + DRAWN_ALL]]))  # type: ignore[arg-type]
    counts = np.concatenate(noisy)
    places, shown = held[counts >= least], counts[counts >= least]
    if len(held) == len(tally):
        return places, shown
    drawn = _Exact(secure().getrandbits if bits is None else bits)
    ranks = drawn.lifted(mechanism, scale, least, len(tally) - len(held), deadline)
    # The empty cell of rank r stands behind r empty ones and all held ones before it.
    empty = ranks + np.searchsorted(held - np.arange(len(held)), ranks, side="right")
    values = drawn.tails(mechanism, measure, scale, least, len(ranks), deadline)
    places, shown = np.concatenate([places, empty]), np.concatenate([shown, values])
    order = np.argsort(places, kind="stable")
    return places[order], shown[order]


class _Exact:
    """Draws whose chances are no decimals, exact: a uniform number gets more bits until the answer is certain."""

    def __init__(self, bits: Callable[[int], int]) -> None:
        self._bits = bits

    def lifted(
        self, mechanism: Mechanism, scale: float, least: int, number: int, deadline: float | None
    ) -> Counts:
        """The ranks, rising, of those of *number* empty cells whose noise is at least *least*."""
        out: list[int] = []
        at = -1
        while True:
            noise.check_time(deadline)
            at += 1 + self._gap(mechanism, scale, least, number)
            if at >= number:
                return np.array(out, dtype=np.int64)
            out.append(at)

    def tails(
        self,
        mechanism: Mechanism,
        measure: Measure,
        scale: float,
        least: int,
        number: int,
        deadline: float | None,
    ) -> Counts:
        """*number* independent noises, each given that it is at least *least*."""
        out: list[int] = []
        wide = scale
        if mechanism == "gaussian":
            exact = Fraction(scale) ** 2 / least
            wide = float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)
        while len(out) < number:
            noise.check_time(deadline)
            tried = noise.add("laplace", measure, wide, np.zeros(2 * (number - len(out)) + 4, dtype=np.int64))
            for k in tried[tried >= 0].tolist():
                if mechanism == "laplace" or self._kept(k, Fraction(scale), least, Fraction(wide)):
                    out.append(least + k)
        return np.array(out[:number], dtype=np.int64)

    def _kept(self, k: int, scale: Fraction, least: int, wide: Fraction) -> bool:
        """True with chance exp(k / wide - (k^2 + 2 k least) / 2 scale^2)."""
        x = (k * k + 2 * k * least) / (2 * scale**2) - k / wide
        digits, bits, drawn = _DIGITS, 0, 0
        while True:
            bits, drawn = bits + _BITS, (drawn << _BITS) | self._bits(_BITS)
            with localcontext() as context:
                context.prec = digits
                limit = (-Decimal(x.numerator) / Decimal(x.denominator)).exp()
                room = Decimal(10) ** (6 - digits)
                whole = Decimal(2) ** bits
                if (drawn + 1) / whole < limit * (1 - room) - room:
                    return True
                if drawn / whole > limit * (1 + room) + room:
                    return False
            digits += 20

    def _gap(self, mechanism: Mechanism, scale: float, least: int, most: int) -> int:
        """How many empty cells are passed over before the next that is shown; *most* or more tells no further."""
        digits, bits, drawn = _DIGITS, 0, 0
        while True:
            bits, drawn = bits + _BITS, (drawn << _BITS) | self._bits(_BITS)
            if drawn:
                low, high = _gap_between(drawn, bits, *_logarithms(mechanism, scale, least, digits), digits)
                if low == high or low >= most:
                    return low
            digits += 20


def _gap_between(drawn: int, bits: int, low: Decimal, high: Decimal, digits: int) -> tuple[int, int]:
    """floor(ln U / ln(1 - p)) at both ends of what is known: U of *bits* bits, and -ln(1 - p) from *low* to *high*."""
    with localcontext() as context:
        context.prec = digits
        room = Decimal(10) ** (6 - digits)
        whole = Decimal(2) ** bits
        least = max(-((drawn + 1) / whole).ln() * (1 - room) - room, Decimal(0))
        most = -(drawn / whole).ln() * (1 + room) + room
        first = (least / high).to_integral_value(ROUND_FLOOR)
        last = (most / low).to_integral_value(ROUND_FLOOR)
    return int(first), int(last)


@lru_cache(maxsize=64)
def _logarithms(mechanism: Mechanism, scale: float, least: int, digits: int) -> tuple[Decimal, Decimal]:
    """Decimals below and above -ln(1 - P(noise >= least))."""
    chance = _chance(mechanism, scale, least, digits + 10)
    with localcontext() as context:
        # 1 - p keeps the digits of a small p.
        context.prec = digits + 10 + max(0, -chance.adjusted())
        found = -(1 - chance).ln()
        room = Decimal(10) ** (3 - digits)
        context.rounding = ROUND_CEILING
        return found * (1 - room), found * (1 + room)


def _chance(mechanism: Mechanism, scale: float, least: int, digits: int) -> Decimal:
    """P(noise >= least), least >= 1, to about *digits* digits."""
    with localcontext() as context:
        context.prec = digits + 10
        exact = Decimal(scale)
        if mechanism == "laplace":
            return (-least / exact).exp() / (1 + (-1 / exact).exp())
        # e^(-(x+1)^2 / 2s^2) = e^(-x^2 / 2s^2) e^(-(2x+1) / 2s^2): two products a term, whose errors the ten digits more take up.
        square = 2 * exact * exact
        step = (-2 / square).exp()
        enough = Decimal(10) ** -(digits + 5)

        def above(first: int) -> Decimal:
            term = (-(Decimal(first) ** 2) / square).exp()
            factor = (-(2 * first + 1) / square).exp()
            total = Decimal(0)
            while term > total * enough:
                total += term
                term *= factor
                factor *= step
            return total

        return above(least) / (1 + 2 * above(1))
