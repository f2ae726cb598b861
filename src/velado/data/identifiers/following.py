"""Columns that follow people over their rows: one value for each person, which hardly anybody else has.

Such a column names nobody and is a pseudonym all the same. Whoever reads it links the rows of a person, and a crowd of
k people for each row alone is then no crowd for all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from velado.data.identifiers.headers import Identifying
from velado.data.normal import value_codes
from velado.data.partition import Int32Array, Int64Array
from velado.data.table import Table
from velado.text import say

CONSTANT = 0.5
"""A column follows people if this share of those with several rows has one value in all of them ..."""
ALONE = 0.2
"""... and if this share of all people has a value, or a combination of values, that nobody else has."""
LEAST_PEOPLE = 5
LEAST_TOGETHER = 20
"""People from which on combinations are judged: among fewer, everybody differs from everybody in something."""
PROBE = 2_000
WHY = say("in doubt: all rows of a person share its value and hardly anybody else has it, so it links them")
WHY_TOGETHER = say(
    "in doubt: with other columns that stay the same for a person it tells people apart and links their rows"
)


def following_columns(table: Table, person: str, names: Iterable[str]) -> tuple[Identifying, ...]:
    """Those columns of *names* that link the rows of a person although they are not *person* itself.

    Each alone, or several together: height and blood type name nobody, and hardly two people share both. Of several the
    one with most values is named first, until what is left tells few people apart. () where no person has several
    rows: there is nothing to link. O(n log n) for a column that passes a first look at 2,000 people; others cost O(n).

    >>> from velado.testing.factory import small_table
    >>> who = ("identifier", "text", " ".join(f"p{n // 2}" for n in range(40)))
    >>> table = small_table(who=who, ward=("other", "categorical", " ".join(f"w{n // 2}" for n in range(40))))
    >>> [found.column for found in following_columns(table, "who", ["ward"])]
    ['ward']
    """
    people, size = value_codes(table, table.schema.columns[person])
    known = people > 0
    rows = np.bincount(people[known], minlength=size)
    everybody = int((rows > 0).sum())
    if not bool((rows > 1).any()) or everybody < LEAST_PEOPLE:
        return ()
    some = known & (people <= PROBE)
    out, constant = [], {}
    for name in names:
        if name == person:
            continue
        codes, values = value_codes(table, table.schema.columns[name])
        if (constant_share(people[some], codes[some], values) or 0.0) < CONSTANT:
            continue
        if (constant_share(people[known], codes[known], values) or 0.0) < CONSTANT:
            continue
        if _alone(people[known], codes[known], values, everybody) >= ALONE:
            out.append(Identifying("record", WHY, sure=False, column=name))
            continue
        of_person = np.zeros(size, dtype=np.int64)
        of_person[people[known]] = codes[known]  # the last row's, where a person's rows differ
        constant[name] = of_person[rows > 0]
    if everybody >= LEAST_TOGETHER:
        out += _together(table, constant)
    return tuple(out)


def _together(table: Table, constant: dict[str, Int64Array]) -> list[Identifying]:
    """Columns to hold back until the others, read together, leave most people in company."""
    # What is no sensitive value can be made coarser or left out at less cost: it goes first.
    order = sorted(
        constant,
        key=lambda name: (table.schema.columns[name].role == "sensitive", -np.unique(constant[name]).size),
    )
    out = []
    while len(order) > 1:
        joint = np.stack([constant[name] for name in order], axis=1)
        _, counts = np.unique(joint, axis=0, return_counts=True)
        if int((counts == 1).sum()) < ALONE * joint.shape[0]:
            break
        out.append(Identifying("record", WHY_TOGETHER, sure=False, column=order.pop(0)))
    return out


def _pairs(people: Int32Array, codes: Int32Array, values: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    filled = codes > 0
    pairs, counts = np.unique(people[filled].astype(np.int64) * values + codes[filled], return_counts=True)
    return pairs // values, pairs % values, counts


def constant_share(people: Int32Array, codes: Int32Array, values: int) -> float | None:
    """The share of people with several filled rows who have one value in all of them; None when nobody has several.

    >>> people, wards = np.array([1, 1, 2, 2], np.int32), np.array([1, 1, 1, 2], np.int32)
    >>> constant_share(people, wards, values=3)
    0.5
    """
    who, _, counts = _pairs(people, codes, values)
    if not who.size:
        return None
    rows = np.bincount(who, weights=counts)
    several = rows > 1
    return float((np.bincount(who)[several] == 1).mean()) if bool(several.any()) else None


def _alone(people: Int32Array, codes: Int32Array, values: int, everybody: int) -> float:
    """The share of people who have a value that nobody else has."""
    who, value, _ = _pairs(people, codes, values)
    holders = np.bincount(value, minlength=values)
    return int(np.unique(who[holders[value] == 1]).size) / everybody
