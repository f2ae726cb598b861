"""What codes of a bundled hierarchy stand for, to be shown beside them: the labels of a tree stay codes, recipes hold on to these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from velado.data.hierarchies import HIERARCHIES

_LOOKED_AT = 500


def titles_for(values: Sequence[str]) -> Callable[[str], str]:
    """What a label stands for in words, empty where that is unknown, among labels of a column with these *values*.

    A hierarchy speaks where it knows at least half of the values, whoever made the tree: a shelf called A00-A09 in a column
    of shelves is no infection. O(values), of which at most 500 are looked at.

    >>> str(titles_for(["J18.9", "C50"])("J09-J18")), titles_for(["shelf 1", "shelf 2"])("J09-J18")
    ('influenza and pneumonia', '')
    """
    seen = list(islice(values, 0, None, max(1, -(-len(values) // _LOOKED_AT))))
    # A hierarchy without words is not asked: thousands of names would be read to say nothing.
    speaking = [
        one.meaning
        for one in HIERARCHIES
        if one.meaning and seen and 2 * sum(bool(one.broader(value)) for value in seen) >= len(seen)
    ]

    def title(label: str) -> str:
        return next((found for meaning in speaking if (found := meaning(label))), "")

    return title
