"""Local privacy for devices that report again and again: what a device says of one value is drawn once, and blurred anew each time.

A device with the category v draws a *permanent* answer m, once for each value that it ever has, and keeps it; each report is m after a second,
*instantaneous* draw (Erlingsson, Pihur, Korolova 2014, RAPPOR; here both draws are k-ary randomised responses). With the chances p1 and p2
of telling what is given, and q = (1 - p) / (k - 1) for each other category, one report is v with the chance

    P = p1 p2 + q1 (1 - p2),        any other category with (1 - P) / (k - 1).

Promised to the owner of a device, against everybody who sees its reports, the collector included:
    one report alone is epsilon-private with *once* = ln(P (k - 1) / (1 - P)) at most;
    all reports together, however many, are epsilon-private with *forever* = ln(p1 (k - 1) / (1 - p1)) at most, while the device's value stays
    as it is: they are made from m alone;
    where it takes d values over time, d times *forever* hides which values those were. *That* it changed, and when, is not hidden in the long
    run: many reports before and after tell two permanent answers apart. Whoever needs that hidden must report fewer times: n reports cost n *once*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from velado.errors import ParameterError
from velado.query import noise
from velado.query.budget import Facts, exact
from velado.query.local import Estimate, RandomizedResponse, share_estimates
from velado.text import say


@dataclass(frozen=True)
class MemoizedResponse:
    """Reports of one category, over and over; *once* and *forever* are epsilons, once below forever.

    >>> asked = MemoizedResponse(("calm", "pain", "panic"), once=Fraction(1), forever=Fraction(2))
    >>> report, memo = asked.report("pain", {})
    >>> again, same = asked.report("pain", memo)
    >>> report in asked.categories, memo == same, round(asked.chance, 3)
    (True, True, 0.576)
    """

    categories: tuple[str, ...]
    once: Fraction
    forever: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        for name in ("once", "forever"):
            object.__setattr__(self, name, exact(getattr(self, name)))
        RandomizedResponse(
            self.categories, self.once
        )  # categories and the epsilon are what such a response takes
        RandomizedResponse(self.categories, self.forever)
        if not self.once < self.forever:
            raise ParameterError(
                "The epsilon of one report is not below that of all reports.",
                "What is drawn anew for each report comes on top of what was drawn once.",
                "Choose for example 1 for one report and 2 for all.",
            )

    @cached_property
    def permanent(self) -> float:
        """The chance p1 that the permanent answer is the truth."""
        return noise.calibrate_response(len(self.categories), self.forever)[0]

    @cached_property
    def instantaneous(self) -> float:
        """The chance p2 that a report is the permanent answer: the largest with which one report stays within *once*."""
        p, others = self.permanent, len(self.categories) - 1
        other = (1 - p) / others
        most = 1 / (1 + others * math.exp(-float(self.once)))
        # Rounded down, so that the last bits of the floats never give more than was asked.
        return (most - other) / (p - other) * (1 - 1e-9)

    @cached_property
    def chance(self) -> float:
        """The chance P that one report is the truth."""
        p, p2 = self.permanent, self.instantaneous
        return p * p2 + (1 - p) / (len(self.categories) - 1) * (1 - p2)

    def report(self, value: str, memo: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """One report of *value*, and the *memo* of permanent answers to be kept on the device, before the report leaves it."""
        if value not in self.categories:
            raise ParameterError(
                "The value is none of the declared categories.",
                "The promise is made for declared values alone, and noise around another would tell of it.",
                "Correct the value, or declare a wider domain before collecting.",
            )
        kept = dict(memo)
        if kept.get(value) not in self.categories:
            kept[value] = self._drawn(value, self.permanent)
        return self._drawn(kept[value], self.instantaneous), kept

    def _drawn(self, category: str, chance: float) -> str:
        code = np.array([self.categories.index(category)], dtype=np.int64)
        return self.categories[int(noise.respond(len(self.categories), chance, code)[0])]

    def estimate(self, reports: Iterable[str], confidence: float = 0.95) -> dict[str, Estimate]:
        """The share of each category among devices that sent *one* report each; unbiased, possibly below 0 or above 1.

        More reports of the same devices share their permanent answers: put together they are no more exact than *forever* allows, and this
        interval would be too narrow for them.
        """
        return share_estimates(self.categories, self.chance, reports, confidence)

    def to_dict(self) -> Facts:
        """The mechanism and its promise, with what it does not cover."""
        return {
            "mechanism": "memoized randomised response",
            "categories": list(self.categories),
            "chances": {
                "permanent": self.permanent,
                "instantaneous": self.instantaneous,
                "report": self.chance,
            },
            "guarantee": {
                "type": "guaranteed",
                "model": "local",
                "measure": "epsilon",
                "one report": str(self.once),
                "all reports while the value stays": str(self.forever),
                "which values, where there were d": f"d * {self.forever}",
                "not covered": "that a value changed, and when",
            },
        }


def explained(asked: MemoizedResponse) -> list[str]:
    """The promise in sentences.

    >>> len(explained(MemoizedResponse(("a", "b"), Fraction(1), Fraction(2))))
    2
    """
    return [
        say(
            "One report is private with epsilon {once:.6g}, all reports together with {forever:.6g} while the value stays as it is.",
            once=float(asked.once),
            forever=float(asked.forever),
        ),
        say(
            "With each further value that a device has, {forever:.6g} more; that a value changed, and when, is not hidden in the long run.",
            forever=float(asked.forever),
        ),
    ]
