"""Whether a published table tells who was in it: an attack by likeness, and what the same attack finds where there is nothing to find.

The attacker knows whole rows of people who are in the table and of people who are not, and calls those members whose nearest published
row is nearest. It reads true rows, so its result is for the owner alone and is not differentially private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
ASKED = 500
"""So many people of either kind are tried; the nearest row of each is looked for among all published rows."""
NULLS = 400


@dataclass(frozen=True, kw_only=True)
class Membership:
    """The chance that a member looks more like one than somebody else does (0.5: nothing is told), and its null.

    *null_low* .. *null_high* hold 95% of what is found when members and others are told apart by lot.

    >>> Membership(area=0.52, null_low=0.46, null_high=0.54, members=500, others=500).told
    False
    """

    area: float
    null_low: float
    null_high: float
    members: int
    others: int

    @property
    def told(self) -> bool:
        """Whether the table tells more than chance does."""
        return self.area > self.null_high


def membership(
    members: Sequence[Codes], others: Sequence[Codes], shown: Sequence[Codes], random: np.random.Generator
) -> Membership:
    """The attack on *shown* with rows that were in the table and rows that were not, as columns of cells.

    Likeness is the number of columns in which the nearest published row agrees, and among equal ones how many published rows
    agree so well. The area under the curve is that of Mann and Whitney, ties counting half. O(asked x published rows x columns).

    >>> true, false = [np.array([0, 1], dtype=np.int32)], [np.array([2, 3], dtype=np.int32)]
    >>> membership(true, false, true, np.random.Generator(np.random.PCG64(0))).area
    1.0
    """
    asked = [_some(one, random) for one in (members, others)]
    likeness = np.concatenate([_likeness(one, shown) for one in asked])
    yes = np.arange(likeness.size) < asked[0][0].size
    found = _area(likeness, yes)
    null = [_area(likeness, random.permutation(yes)) for _ in range(NULLS)]
    low, high = np.quantile(null, [0.025, 0.975])
    return Membership(
        area=found,
        null_low=float(low),
        null_high=float(high),
        members=int(yes.sum()),
        others=int((~yes).sum()),
    )


def _some(rows: Sequence[Codes], random: np.random.Generator) -> list[Codes]:
    chosen = random.permutation(rows[0].size)[:ASKED]
    return [column[chosen] for column in rows]


def _likeness(asked: Sequence[Codes], shown: Sequence[Codes]) -> NDArray[np.float64]:
    out = np.zeros(asked[0].size)
    for at in range(asked[0].size):
        agree = np.zeros(shown[0].size, dtype=np.int16)
        for mine, theirs in zip(asked, shown, strict=True):
            agree += theirs == mine[at]
        best = int(agree.max(initial=0))
        out[at] = best + (agree == best).sum() / (shown[0].size + 1)
    return out


def _area(scores: NDArray[np.float64], yes: NDArray[np.bool_]) -> float:
    """Mann and Whitney's U over the product of both counts."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    members = int(yes.sum())
    others = yes.size - members
    if not members or not others:
        return 0.5
    return float((ranks[yes].sum() - members * (members + 1) / 2) / (members * others))
