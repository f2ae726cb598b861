"""Individual risk: the chance that each row is re-identified, for the private report and never the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, IntArray, group_by_codes
from velado.errors import ParameterError
from velado.text import say

Formula = Literal["approximate", "exact"]
Blanks = Literal["wildcard", "value"]
PATTERNS = 512
"""Above this many different sets of blank columns the pairwise matching of patterns is refused."""


@dataclass(frozen=True, repr=False)
class IndividualRisk:
    """One risk per row. *risk* is about single people: it belongs in the private report only.

    *class_rows* is how many rows of the table a row may be (f), *class_people* how many people of the
    population that stands for (F, the summed sampling weights; equal to f without weights).

    >>> from velado.testing.examples import four_encoded
    >>> individual_risk(four_encoded()).class_rows
    array([2, 1, 2, 1])
    """

    risk: FloatArray
    class_rows: npt.NDArray[np.int64]
    class_people: FloatArray
    formula: Formula
    weighted: bool

    def __repr__(self) -> str:
        return f"IndividualRisk(rows={self.risk.size}, weighted={self.weighted})"

    @property
    def expected_reidentifications(self) -> float:
        """The sum of the risks: how many rows an attacker who tries all of them is expected to get right."""
        return float(self.risk.sum())

    def to_dict(self) -> dict[str, object]:
        """A summary as plain values; the rows themselves are not in it."""
        rows = self.risk.size
        return {
            "rows": rows,
            "formula": self.formula if self.weighted else "1 / rows of the class",
            "sampling_weights": self.weighted,
            "highest": float(self.risk.max()) if rows else 0.0,
            "mean": float(self.risk.mean()) if rows else 0.0,
            "expected_reidentifications": self.expected_reidentifications,
            "unique_rows": int((self.class_rows == 1).sum()),
        }


def individual_risk(
    data: EncodedTable,
    weights: FloatArray | None = None,
    *,
    formula: Formula = "approximate",
    blanks: Blanks = "value",
) -> IndividualRisk:
    """The risk of every row of *data*: 1 / f without *weights*, the estimate of `posterior_risk` with them.

    *weights* say how many people of the population each sampled row stands for. *blanks* "value" makes a missing
    value one of its own, as everywhere in velado; "wildcard" lets it match any other, in both directions, as sdcMicro
    does: few blanks then make most risk vanish.

    >>> from velado.testing.examples import four_encoded
    >>> individual_risk(four_encoded()).risk
    array([0.5, 1. , 0.5, 1. ])
    """
    if blanks not in ("wildcard", "value"):
        raise ParameterError(
            say("Blanks cannot be read as '{blanks}'.", blanks=blanks),
            "Whether a blank matches every value decides who is alone.",
            "Choose wildcard or value.",
        )
    if weights is not None:
        weights = _checked(weights, data.rows)
    return risk_of_codes(
        [column.codes for column in data.columns],
        [column.size for column in data.columns],
        [column.missing if blanks == "wildcard" else -1 for column in data.columns],
        weights,
        formula=formula,
    )


def risk_of_codes(
    codes: Sequence[npt.NDArray[np.int32]],
    sizes: Sequence[int],
    missing: Sequence[int],
    weights: FloatArray | None = None,
    *,
    formula: Formula = "approximate",
) -> IndividualRisk:
    """The same from codes per column, as a published table shows them; *missing* is the code that matches all, -1 for none.

    >>> risk_of_codes([np.array([0, 1, 1], dtype=np.int32)], [2], [-1]).risk
    array([1. , 0.5, 0.5])
    """
    one = np.ones(codes[0].size)
    kinds = [one, one if weights is None else weights]
    rows, people = matching_weights(list(codes), list(sizes), list(missing), kinds)
    found = np.rint(rows).astype(np.int64)
    if weights is None:
        return IndividualRisk(1.0 / found, found, people, formula, False)
    return IndividualRisk(posterior_risk(found, people, formula), found, people, formula, True)


def posterior_risk(rows: IntArray, people: FloatArray, formula: Formula = "approximate") -> FloatArray:
    """E(1/F | f) for a class with f = *rows* in the sample and an estimated F = *people* in the population.

    Benedetti and Franconi (1998): F given f is negative binomial with success p = f / F-hat, which gives
    p^f / f * 2F1(f, f; f + 1; 1 - p). Euler's transformation turns that into p / f * 2F1(1, 1; f + 1; 1 - p),
    which neither under- nor overflows for large f. "approximate" replaces it by p / (f - (1 - p)) above two
    rows, as sdcMicro's default does. With F = f both give 1 / f. O(distinct pairs).

    >>> posterior_risk(np.array([2]), np.array([2.0]))
    array([0.5])
    """
    if formula not in ("approximate", "exact"):
        raise ParameterError(
            say("Individual risk has no formula '{formula}'.", formula=formula),
            "Figures are comparable only under a known formula.",
            "Choose approximate or exact.",
        )
    from scipy.special import hyp2f1

    pairs, of = np.unique(
        np.stack([np.asarray(rows, dtype=np.float64), people], axis=1), axis=0, return_inverse=True
    )
    f = pairs[:, 0]
    # A weight below one would make the population smaller than the sample: the sample is then all of it.
    p = np.minimum(f / np.maximum(pairs[:, 1], f), 1.0)
    few = f < 20
    series = np.ones(f.size)
    series[few] = hyp2f1(1.0, 1.0, f[few] + 1.0, 1.0 - p[few])
    # SciPy's function fails for hundreds of rows. There the terms k! (1-p)^k / ((f+1)...(f+k)) fall fast: from
    # twenty rows on, sixty of them are exact to the last digit.
    term = np.ones(f.size - int(few.sum()))
    for k in range(60):
        term = term * (k + 1) / (f[~few] + 1 + k) * (1.0 - p[~few])
        series[~few] += term
    risk = p / f * series
    if formula == "approximate":
        risk = np.where(f > 2, p / (f - (1.0 - p)), risk)
    return np.asarray(risk[of.reshape(-1)], dtype=np.float64)


def matching_weights(
    codes: list[npt.NDArray[np.int32]], sizes: list[int], missing: list[int], weights: list[FloatArray]
) -> tuple[FloatArray, ...]:
    """For each row and each kind of weight, the summed weight of the rows that could be the same person.

    Two rows agree when every column is equal, or missing in one of them. *missing* is the code that matches
    everything, -1 for none. Distinct tuples are split by their pattern of blanks and every pair of patterns is
    matched on the columns both show: O(P G) for P patterns and G distinct tuples, never rows x rows. Refused
    above PATTERNS patterns.

    >>> matching_weights([np.array([0, 1, 1], dtype=np.int32)], [2], [0], [np.ones(3)])
    (array([3., 3., 3.]),)
    """
    rows = codes[0].size
    if not rows:
        return tuple(np.zeros(0) for _ in weights)
    labels, count = group_by_codes(codes, sizes)
    example = np.empty(count, dtype=np.int64)
    example[labels] = np.arange(rows)
    held: list[FloatArray] = [
        np.bincount(labels, weights=weight, minlength=count).astype(np.float64) for weight in weights
    ]
    tuples = [column[example] for column in codes]
    blank = np.stack([column == code for column, code in zip(tuples, missing, strict=True)], axis=1)
    if not blank.any():
        return tuple(part[labels] for part in held)
    patterns, of = np.unique(blank, axis=0, return_inverse=True)
    if len(patterns) > PATTERNS:
        raise ParameterError(
            say(
                "The rows have {patterns} different sets of blank columns; the limit is {patterns_2}.",
                patterns=len(patterns),
                patterns_2=PATTERNS,
            ),
            "Each set is matched with every other when a blank may be any value.",
            "Read blanks as a value of their own, or measure fewer columns.",
        )
    members = [np.flatnonzero(of.reshape(-1) == number) for number in range(len(patterns))]
    out: list[FloatArray] = [np.zeros(count) for _ in weights]
    for mine, pattern in zip(members, patterns, strict=True):
        for theirs, other in zip(members, patterns, strict=True):
            shown = np.flatnonzero(~pattern & ~other)
            both = np.concatenate((mine, theirs))
            joint, groups = np.zeros(both.size, dtype=np.int32), 1
            if shown.size:
                joint, groups = group_by_codes(
                    [tuples[at][both] for at in shown], [sizes[at] for at in shown]
                )
            for total, part in zip(out, held, strict=True):
                summed = np.bincount(joint[mine.size :], weights=part[theirs], minlength=groups)
                total[mine] += summed[joint[: mine.size]]
    return tuple(total[labels] for total in out)


def _checked(weights: FloatArray, rows: int) -> FloatArray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (rows,) or not bool(np.isfinite(weights).all()) or bool((weights <= 0).any()):
        raise ParameterError(
            say("The sampling weights are not {rows} positive numbers.", rows=rows),
            "A weight says how many people of the population a row stands for.",
            "Give one weight above 0 for each row, or none at all.",
        )
    return weights
