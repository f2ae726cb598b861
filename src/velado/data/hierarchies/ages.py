"""Ages in years: five, ten and twenty years, and everybody from 90 on together."""

from __future__ import annotations

import re

from velado.data.hierarchies._hierarchy import Broader, Hierarchy
from velado.data.taxonomy import interval_paths
from velado.text import say

OLDEST = 90
"""From here on people are so few that their ages are published together (as HIPAA's Safe Harbor rule has it)."""
_AGE = re.compile(r"\s*\d{1,3}([.,]\d+)?\s*")


def years(text: str) -> float:
    """The age that *text* says.

    >>> years(" 31,5 ")
    31.5
    """
    return float(text.strip().replace(",", "."))


def _broader(value: str) -> Broader | None:
    if not _AGE.fullmatch(value) or years(value) > 130:
        return None
    age = years(value)
    if age >= OLDEST:
        return (f">={OLDEST}",)
    five, ten, twenty = interval_paths([age // 1], 5, [1, 2, 4], whole=True)[0]
    # Twenty years that reach over the oldest's edge hold only those below it, and say so.
    return five, ten, ten if age >= OLDEST - OLDEST % 20 else twenty


AGES = Hierarchy(
    "ages", say("Ages in years: 5, 10 and 20 years, 90 and more together"), _broader, first=years
)
