"""Differences of a quality with one unit everywhere: points of a share, the plain number of what is no share.

A loss that is below zero is told as a gain, and a digit is added where rounding would hide on which side of a limit a
number lies. O(1) each.
"""

from __future__ import annotations

from collections.abc import Sequence

from velado.study.evaluate.study_words import number, quality_name, say

EVEN = 1e-9
"""Differences of this size come from how numbers are stored, not from the data."""

_MORE_DIGITS = 3


def in_points(name: str) -> bool:
    """Whether a difference of this quality is told in percentage points."""
    return name != "log_loss"


def at_most(value: float, limit: float) -> bool:
    """Whether *value* keeps *limit*."""
    return value <= limit + EVEN


def bare(name: str, value: float | None, language: str, digits: int = 1) -> str:
    """A difference of the quality *name* without its unit; what is no share has two digits more."""
    if value is None:
        return "–"
    return number(100 * value, language, digits) if in_points(name) else number(value, language, digits + 2)


def amount(name: str, value: float | None, language: str, digits: int = 1) -> str:
    """A difference of the quality *name* with its unit."""
    text = bare(name, value, language, digits)
    return say(language, "points", value=text) if in_points(name) and value is not None else text


def digits_beside(name: str, values: Sequence[float | None], limit: float, digits: int = 1) -> int:
    """As many digits as show that what lies above *limit* does."""
    above = [value for value in values if value is not None and not at_most(value, limit)]
    for more in range(digits, digits + _MORE_DIGITS):
        if all(bare(name, value, "en", more) != bare(name, limit, "en", more) for value in above):
            return more
    return digits + _MORE_DIGITS


def lost(verb: str, name: str, drop: float, language: str, digits: int = 1) -> str:
    """What became of the quality: lost or gained, raised or lowered; *verb* is the family of words."""
    gained = drop < 0 and float(bare(name, drop, "en", digits).replace(",", "")) != 0
    kind = ("gains" if gained else "loses") if in_points(name) else ("lowers" if gained else "raises")
    told = amount(name, abs(drop), language, digits)
    return say(language, f"{verb}_{kind}", amount=told, quality=quality_name(name, language))


def span(
    name: str, drop: float, low: float | None, high: float | None, language: str, digits: int = 1
) -> str:
    """The interval of a drop in brackets, turned round where `lost` tells a gain; nothing where there is none."""
    if low is None or high is None:
        return ""
    if drop < 0 and float(bare(name, drop, "en", digits).replace(",", "")) != 0:
        low, high = -high, -low
    return say(
        language, "range", low=bare(name, low, language, digits), high=bare(name, high, language, digits)
    )
