"""Special uniques: rows that few quasi-identifiers already single out, and how strongly (SUDA2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, FloatArray, IntArray, group_by_codes
from velado.measures.risk.partial_linkage import key_sets
from velado.measures.risk.population_uniqueness import check_fraction

LARGEST_KEY = 4


@dataclass(frozen=True, repr=False)
class SpecialUniques:
    """Rows with minimal sample uniques, their scores, and what each column contributes.

    A minimal sample unique of a row is a set of columns whose values no other row shares while every smaller
    set is shared. *keys_by_size* counts them; *scores* and *intrusion* (DIS-SUDA) have one entry per row and
    belong in the private report only. *contributions* are percentages: in how much of the total score a column
    takes part, so they sum to more than 100.

    >>> from velado.testing.examples import four_encoded
    >>> special_uniques_of(four_encoded()).columns
    ('age',)
    """

    rows: int
    columns: tuple[str, ...]
    largest_key: int
    fraction: float
    unique_rows: int
    pairs: int
    keys_by_size: Mapping[int, int]
    contributions: Mapping[str, float]
    scores: FloatArray
    intrusion: FloatArray

    def __repr__(self) -> str:
        return (
            f"SpecialUniques(rows={self.rows}, special={self.special_rows}, largest_key={self.largest_key})"
        )

    @property
    def special_rows(self) -> int:
        """How many rows have at least one minimal sample unique of the sizes searched."""
        return int((self.scores > 0).sum())

    def to_dict(self) -> dict[str, object]:
        """A summary as plain values; the scores of single rows are not in it."""
        return {
            "rows": self.rows,
            "largest_key": self.largest_key,
            "sampling_fraction": self.fraction,
            "special_rows": self.special_rows,
            "special_rows_share": self.special_rows / self.rows if self.rows else 0.0,
            "unique_rows": self.unique_rows,
            "keys_by_size": {str(size): number for size, number in self.keys_by_size.items()},
            "highest_score": float(self.scores.max()) if self.rows else 0.0,
            "total_score": float(self.scores.sum()),
            "highest_intrusion": float(self.intrusion.max()) if self.rows else 0.0,
            "contribution_percent": dict(self.contributions),
        }


def special_uniques_of(
    data: EncodedTable, largest_key: int | None = None, fraction: float = 0.01
) -> SpecialUniques:
    """Special uniques of the original table, on its encoded values.

    >>> from velado.testing.examples import four_encoded
    >>> special_uniques_of(four_encoded()).unique_rows
    2
    """
    columns = data.columns
    return special_uniques(
        [column.name for column in columns],
        [column.codes for column in columns],
        [column.size for column in columns],
        [column.missing for column in columns],
        largest_key=largest_key,
        fraction=fraction,
    )


def special_uniques(
    names: Sequence[str],
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    missing: Sequence[int] | None = None,
    *,
    largest_key: int | None = None,
    fraction: float = 0.01,
) -> SpecialUniques:
    """Every minimal sample unique of at most *largest_key* columns, and the SUDA2 score of each row.

    With d columns a minimal unique of k columns weighs prod_{i=k}^{min(M, d-1)} (d - i), M = *largest_key*
    (Elliot, Manning and Ford 2002; with M = d that is (d - k)!), and a row's score is the sum of its weights.
    The intrusion score spreads the table's chance that a unique match is right, DIS = U f / (U f + P (1 - f))
    with U unique rows, P classes of two and sampling *fraction* f, over the rows by their score s, as sdcMicro
    does: 1 / (1 + U (1/DIS - 1) / (s^q A)), q = 1 + (8 - d)/20, A = sum of s^-q over rows with a score.

    A blank (code *missing* of its column, -1 for none) is nothing an attacker knows: it is part of no key and
    equal to no value, so it may leave others alone but never singles out its own row.

    Where SUDA2 walks a tree of items, this tests every set of columns: sum_{k<=M} C(d, k) groupings of the
    distinct tuples, and a set is minimal where no set with one column less is unique. Refused above KEY_SETS.

    >>> special_uniques(["age", "sex"], [np.array([0, 1, 1]), np.array([0, 0, 1])], [2, 2]).unique_rows
    3
    """
    columns = len(codes)
    largest = min(columns, LARGEST_KEY) if largest_key is None else largest_key
    check_fraction(fraction)
    key_sets(columns, largest)
    missing = [-1] * columns if missing is None else list(missing)
    rows = int(codes[0].size)
    labels, count = group_by_codes(list(codes), sizes)
    held = np.bincount(labels, minlength=count)
    example = np.empty(count, dtype=np.int64)
    example[labels] = np.arange(rows)
    tuples = [np.asarray(column)[example] for column in codes]
    known = [column != code for column, code in zip(tuples, missing, strict=True)]
    last = min(largest, columns - 1)
    score = np.zeros(count)
    by_column = np.zeros(columns)
    keys: dict[int, int] = {}
    before: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {}
    for size in range(1, largest + 1):
        weight = float(prod(columns - i for i in range(size, last + 1)))
        now: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {}
        keys[size] = 0
        for chosen in combinations(range(columns), size):
            alone = _alone([tuples[at] for at in chosen], [sizes[at] for at in chosen], held)
            for at in chosen:
                alone &= known[at]
            covered = np.zeros((count + 7) // 8, dtype=np.uint8)
            for left_out in range(size if size > 1 else 0):
                covered |= before[chosen[:left_out] + chosen[left_out + 1 :]]
            minimal = alone & ~np.unpackbits(covered, count=count).astype(bool)
            found = int(minimal.sum())
            keys[size] += found
            score[minimal] += weight
            by_column[list(chosen)] += weight * found
            now[chosen] = np.packbits(alone)
        before = now
    total = float(score.sum())
    percent = 100.0 * by_column / total if total else np.zeros(columns)
    unique, pairs = int((held == 1).sum()), int((held == 2).sum())
    return SpecialUniques(
        rows=rows,
        columns=tuple(names),
        largest_key=largest,
        fraction=fraction,
        unique_rows=unique,
        pairs=pairs,
        keys_by_size=keys,
        contributions=dict(zip(names, percent.tolist(), strict=True)),
        scores=score[labels],
        intrusion=_intrusion(score, columns, fraction, unique, pairs)[labels],
    )


def _alone(columns: list[IntArray], sizes: list[int], held: IntArray) -> BoolArray:
    labels, count = group_by_codes(columns, sizes)
    crowd = np.bincount(labels, weights=held, minlength=count)
    return np.asarray(crowd[labels] == 1)


def _intrusion(score: FloatArray, columns: int, fraction: float, unique: int, pairs: int) -> FloatArray:
    out = np.zeros(score.size)
    special = score > 0
    if not special.any():
        return out
    # U (1/DIS - 1) = P (1 - f) / f: written so, no unique row is needed to divide by.
    odds = pairs * (1.0 - fraction) / fraction
    power = score[special] ** (1.0 + (8.0 - columns) / 20.0)
    out[special] = 1.0 / (1.0 + odds / (power * (1.0 / power).sum()))
    return out
