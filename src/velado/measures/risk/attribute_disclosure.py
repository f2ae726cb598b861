"""Attribute disclosure: how well the release lets an attacker guess a sensitive value without finding the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from velado.data.partition import FloatArray, IntArray, Partition, ValueCounts, ValueEntries
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.text import say

HOMOGENEITY = (0.8, 0.9, 1.0)
Z_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution: two-sided 95 % intervals."""


@dataclass(frozen=True)
class WilsonInterval:
    """A share and its 95 % Wilson interval.

    >>> wilson(5, 10).share
    0.5
    """

    share: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """As plain values."""
        return {"share": self.share, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class AttributeDisclosure:
    """How often one sensitive column is guessed right: from the person's class, and from the whole table.

    *rows* are those that have a value; *guessed* leaves the row itself out, *baseline* does not. *with_own_row* counts
    it: what the class gives away about people known to be in the table. *alone* is the share of rows with no
    other value in their class. *homogeneous* maps a threshold to the share of rows in classes where one value
    holds at least that share.

    >>> found = attribute_disclosure("ill", Partition.of(np.array([0, 0, 1, 1])), np.array([1, 1, 2, 2]), 3)
    >>> found.alone
    0.0
    """

    column: str
    rows: int
    guessed: WilsonInterval
    baseline: WilsonInterval
    with_own_row: float
    alone: float
    homogeneous: Mapping[float, float]

    @property
    def gain(self) -> float:
        """How many more guesses are right, as a share of rows, than without the quasi-identifiers."""
        return self.guessed.share - self.baseline.share

    @property
    def beats_baseline(self) -> bool:
        """True when the whole interval of the guess lies above that of the baseline."""
        return self.guessed.low > self.baseline.high

    def to_dict(self) -> dict[str, object]:
        """As plain values, with the rule that made the interval; no sensitive value is named."""
        return {
            "rows": self.rows,
            "guessed": self.guessed.to_dict(),
            "baseline": self.baseline.to_dict(),
            "gain": self.gain,
            "beats_baseline": self.beats_baseline,
            "interval": "Wilson score, 95 %",
            "with_own_row": self.with_own_row,
            "alone": self.alone,
            "homogeneous": {f"{threshold:g}": share for threshold, share in self.homogeneous.items()},
        }


def attribute_disclosure(
    column: str,
    classes: Partition,
    codes: IntArray | ValueEntries,
    size: int,
    thresholds: Sequence[float] = HOMOGENEITY,
) -> AttributeDisclosure:
    """The sensitive value of every row guessed from the other rows of its class, beside the blind guess.

    The attacker knows the person's quasi-identifiers, finds the published class and names its most common value;
    several equally common ones are chosen among at random, so a hit is worth 1 / ties. The row itself is left
    out, so that what is measured is what the *others* give away; a row alone in its class is guessed from the
    whole table. The baseline names the most common value of the whole table, the row counted: max n_v / n, for without
    it two values equally common would never be guessed, and every table would seem to help. Leaving
    one out is strict on evenly mixed classes: one yes and one no count as two misses, which is below chance;
    *with_own_row*, (1/n) sum over classes of the largest count, is the other reading.

    *codes* are 0..size-1 per row of *classes*, or listed for each entry, 0 "no value": such rows have nothing to guess and are left out,
    and so are suppressed rows. The interval treats rows as independent; rows of one class are not quite, so
    with few classes it is too narrow. O(rows), O(rows log rows) where classes times values are many.

    >>> attribute_disclosure("ill", Partition.of(np.array([0, 0, 1, 1])), np.array([1, 1, 2, 2]), 3).guessed.share
    1.0
    """
    labels, weights = classes.labels, classes.weights
    if isinstance(codes, ValueEntries):
        labels, weights, codes = labels[codes.at], codes.counts, codes.codes
    codes = np.asarray(codes)
    if codes.size != labels.size:
        raise ParameterError(
            say(
                "Column '{column}' has {size} values for {rows} published rows.",
                column=column,
                size=codes.size,
                rows=classes.rows,
            ),
            "Every published row must stand beside its own sensitive value.",
            "Give the sensitive values of the published rows, in their order.",
        )
    labels = np.where(codes > 0, labels, -1)
    table = np.where(labels >= 0, 0, -1)
    rows = int((labels >= 0).sum() if weights is None else weights[labels >= 0].sum())
    if not rows:
        none = WilsonInterval(0.0, 0.0, 0.0)
        return AttributeDisclosure(column, 0, none, none, 0.0, 0.0, {t: 0.0 for t in thresholds})
    blind = ValueCounts.of(table, 1, codes, size, weights=weights)
    counts = ValueCounts.of(labels, classes.count, codes, size, weights=weights)
    blind_hits = np.zeros(size)
    leads = blind.counts == blind.counts.max()
    blind_hits[blind.values] = leads / leads.sum()
    hits = _hits(counts)
    starts = _starts(counts.groups)
    held = np.add.reduceat(counts.counts, starts)
    most = np.maximum.reduceat(counts.counts, starts)
    single = held[np.cumsum(_is_start(counts.groups)) - 1] == 1
    hits = np.where(single, blind_hits[counts.values], hits)
    purity = most / held
    return AttributeDisclosure(
        column,
        rows,
        wilson(float((hits * counts.counts).sum()), rows),
        wilson(float((blind_hits[blind.values] * blind.counts).sum()), rows),
        float(most.sum() / rows),
        float(single.sum() / rows),
        # A share such as 4/5 must not fail "at least 0.8" by a rounding error.
        {t: float(held[purity >= t - 1e-12].sum() / rows) for t in thresholds},
    )


def wilson(successes: float, trials: int, z: float = Z_95) -> WilsonInterval:
    """The share *successes* / *trials* with its score interval (Wilson 1927), which never leaves 0..1.

    centre (p + z^2/2n) / (1 + z^2/n), half width z sqrt(p(1-p)/n + z^2/4n^2) / (1 + z^2/n).

    >>> round(wilson(5, 10).low, 3)
    0.237
    """
    if trials <= 0:
        return WilsonInterval(0.0, 0.0, 0.0)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z * sqrt(max(share * (1 - share), 0.0) / trials + z * z / (4 * trials * trials)) / scale
    return WilsonInterval(share, max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share)))


def _is_start(groups: IntArray) -> IntArray:
    return np.concatenate(([1], (groups[1:] != groups[:-1]).astype(np.int64)))


def _starts(groups: IntArray) -> IntArray:
    return np.flatnonzero(_is_start(groups))


def _hits(counts: ValueCounts) -> FloatArray:
    """For each entry (class, value), the chance that a row with it is guessed right from the others.

    Without the row its value is held one time less. It wins if it still leads, shares if it then draws level
    with the runners-up, and loses otherwise; so only a sole leader can be hit.
    """
    starts = _starts(counts.groups)
    of = np.cumsum(_is_start(counts.groups)) - 1
    most = np.maximum.reduceat(counts.counts, starts)
    leads = counts.counts == most[of]
    sole = np.add.reduceat(leads.astype(np.int64), starts) == 1
    second = np.maximum.reduceat(np.where(leads, 0, counts.counts), starts)
    level = np.add.reduceat((counts.counts == second[of]).astype(np.int64), starts)
    left = most - 1
    chance = np.where(left > second, 1.0, np.where((left == second) & (left > 0), 1.0 / (1 + level), 0.0))
    return np.asarray(np.where(leads & sole[of], chance[of], 0.0), dtype=np.float64)


ATTRIBUTE_GAIN = Measure(
    name="attribute_gain",
    title=say("Guessing sensitive values"),
    of=lambda published, scores: max(
        (one.gain for one in (scores.disclosure.attributes if scores.disclosure else ())), default=None
    ),
    signed=True,
    detailed=True,
)
