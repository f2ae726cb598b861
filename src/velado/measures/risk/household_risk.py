"""Household risk: whoever finds one member has found them all; and the risk of a sample, by weights and households."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from velado.data.partition import FloatArray, IntArray
from velado.errors import ParameterError
from velado.measures.recoded_columns import BLANK, PublishedTable
from velado.measures.risk.individual_risk import Blanks, IndividualRisk, individual_risk, risk_of_codes
from velado.measures.sample_design import SampleDesign


def household_risk(risk: FloatArray, households: IntArray) -> FloatArray:
    """For each row the chance that at least one of its household is found: r_h = 1 - product of (1 - r_i).

    The hierarchical risk of sdcMicro: members are taken to be found independently of one another. O(n log n).

    >>> household_risk(np.array([0.5, 0.5, 0.1]), np.array([7, 7, 9])).round(2).tolist()
    [0.75, 0.75, 0.1]
    """
    _, of = np.unique(households, return_inverse=True)
    of = of.reshape(-1)
    # A product of many factors near 1, as the sum of their logarithms; a sure member makes the household sure.
    safe = np.bincount(of, weights=np.log1p(-np.minimum(risk, 1.0 - 1e-16)))
    sure = np.bincount(of, weights=(risk >= 1.0).astype(np.float64)) > 0
    return np.asarray(np.where(sure, 1.0, -np.expm1(safe))[of], dtype=np.float64)


@dataclass(frozen=True)
class SampleRisk:
    """What the rows' own risks add up to; *households* entries are None where no household is declared.

    >>> SampleRisk(rows=2, weighted=True, highest=0.5, expected=0.7).to_dict()["expected_reidentifications"]
    0.7
    """

    rows: int
    weighted: bool
    highest: float
    expected: float
    households: int | None = None
    highest_household: float | None = None
    expected_households: float | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain values; nothing about a single row."""
        return {
            "rows": self.rows,
            "sampling_weights": self.weighted,
            "highest": self.highest,
            "mean": self.expected / self.rows if self.rows else 0.0,
            "expected_reidentifications": self.expected,
            "households": self.households,
            "highest_household": self.highest_household,
            "expected_households": self.expected_households,
        }


@dataclass(frozen=True, repr=False)
class RowRisks:
    """The risk of each row *before*, of the original rows, and *after*, of the published rows, measured alike.

    >>> from velado.testing.examples import four_published
    >>> row_risks(four_published()).after.class_rows.tolist()
    [2, 1, 2, 1]
    """

    before: IndividualRisk
    after: IndividualRisk

    def __repr__(self) -> str:
        return f"RowRisks(before={self.before}, after={self.after})"


def row_risks(published: PublishedTable, weighted: bool = True, blanks: Blanks = "value") -> RowRisks:
    """Each row's risk in both tables by the same measure: by the sampling weights if *weighted* and declared, else 1 / f.

    A published row has the weight of its original, so rows must be paired. *blanks* as in `individual_risk`.

    >>> from velado.testing.examples import four_published
    >>> row_risks(four_published()).before.risk
    array([0.5, 1. , 0.5, 1. ])
    """
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    design = published.sample
    weights = None if design is None or not weighted else design.weights
    after = risk_of_codes(
        [part.codes for part in published.columns],
        [part.low.size for part in published.columns],
        [BLANK if blanks == "wildcard" else -1] * len(published.columns),
        None if weights is None else weights[published.true_rows],
    )
    return RowRisks(individual_risk(published.data, weights, blanks=blanks), after)


def sample_risks(published: PublishedTable, blanks: Blanks = "value") -> tuple[SampleRisk, SampleRisk] | None:
    """The risk by weights and households before and after; None without a design, or where rows are not paired.

    A published row has the weight and the household of its original. *blanks* as in `individual_risk`.

    >>> from velado.measures.recoded_columns import read_published
    >>> from velado.testing.examples import four_people
    >>> table = four_people()
    >>> sample_risks(read_published(table, table.frame)) is None
    True
    """
    design = published.sample
    if design is None or published.true_rows is None:
        return None
    found = row_risks(published, blanks=blanks)
    return _summed(found.before, design), _summed(found.after, design.of_rows(published.true_rows))


def has_blanks(published: PublishedTable) -> bool:
    """A quasi-identifier is blank in some row of the original or of the published table.

    >>> from velado.testing.examples import four_published
    >>> has_blanks(four_published())
    False
    """
    pairs = zip(published.data.columns, published.columns, strict=True)
    return any(
        bool((column.codes == column.missing).any() or (read.codes == BLANK).any()) for column, read in pairs
    )


def _summed(found: IndividualRisk, design: SampleDesign) -> SampleRisk:
    risk, homes = found.risk, design.households
    plain = SampleRisk(
        rows=risk.size,
        weighted=found.weighted,
        highest=float(risk.max(initial=0.0)),
        expected=found.expected_reidentifications,
    )
    if homes is None:
        return plain
    _, first = np.unique(homes, return_index=True)
    by_home = household_risk(risk, homes)[first]
    return SampleRisk(
        rows=plain.rows,
        weighted=plain.weighted,
        highest=plain.highest,
        expected=plain.expected,
        households=int(first.size),
        highest_household=float(by_home.max(initial=0.0)),
        expected_households=float(by_home.sum()),
    )
