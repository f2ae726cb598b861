"""One query answered as in the source (algorithms 1 and 2): f(D) + Laplace(CS_f / epsilon of the source).

`paper_answer` needs no session and pays no budget, because it promises nothing: the scale is computed from the private
records. It refuses a table that has a ledger, answers that do not exist, and, unless told to show them, answers that
would leave without any noise (MIN and MAX where the extreme is held by several rows: about 70 % of queries).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from velado.data.table import Table
from velado.errors import ParameterError, QueryRefused
from velado.query.correlation.approaches import Approach
from velado.query.correlation.influence import AGGREGATIONS, Aggregation, influence
from velado.query.correlation.laplace import draw
from velado.query.correlation.matching import matching_rows, numbers_or_nan
from velado.query.correlation.records import records_of
from velado.query.correlation.spearman import Correlation, sensitivity
from velado.query.values import Query

WHY_NONE = "the noise is scaled to a sensitivity computed from the private records, which the answer and its scale tell of"


@dataclass(frozen=True)
class PaperAnswer:
    """Noisy values by the name of their aggregate, the scale of each, and the promise: none."""

    values: dict[str, float]
    scales: dict[str, float] = field(repr=False)
    guarantee: dict[str, Any] = field(repr=False)
    how: dict[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The answer with its promise beside it."""
        return {"values": self.values, "scales": self.scales, "guarantee": self.guarantee, "how": self.how}


def paper_answer(
    table: Table,
    query: Query,
    approach: Approach,
    scale_parameter: float,
    rng: np.random.Generator,
    *,
    has_ledger: bool,
    columns: tuple[str, ...] | None = None,
    target: str | None = None,
    show_unprotected: bool = False,
    fitted: Correlation | None = None,
) -> PaperAnswer:
    """The source's answer to every aggregate of *query*; *scale_parameter* is the epsilon of the source.

    *columns* are what records are compared by (default: all but identifiers and *target*); *fitted* spares the fit
    where the approach was fitted to the same columns before.
    """
    _refuse(query, scale_parameter, has_ledger)
    inside = matching_rows(table, query.where)
    learnt = fitted
    values: dict[str, float] = {}
    scales: dict[str, float] = {}
    for number, aggregate in enumerate(query.aggregates):
        kind: Aggregation = aggregate.kind  # type: ignore[assignment]  # checked by _refuse
        column = aggregate.column
        if column is None:
            x = None
        elif kind == "count":
            x = np.where(table.is_missing(column).to_numpy(), np.nan, 0.0)
        else:
            x = numbers_or_nan(table, column)
        effect = influence(kind, inside, x)
        if learnt is None:
            learnt = approach.fit(records_of(table, columns, target), rng)
        reach = float(sensitivity(learnt, effect.of_row, effect.inside)[0])
        if reach == 0.0 and not show_unprotected:
            raise QueryRefused(
                f"{kind.upper()} would be answered without any noise.",
                "The source's sensitivity is 0 where removing any one row leaves the answer as it is, and the exact value would leave.",
                "Pass show_unprotected to see what the source would publish; or ask for a private quantile.",
            )
        name = aggregate.alias or f"{kind}_{column or 'rows'}"
        name = name if name not in values else f"{name}_{number + 1}"
        scales[name] = reach / scale_parameter
        values[name] = effect.answer + draw(scales[name], rng)
    guarantee = {
        "type": "none",
        "as_in": "paper",
        "approach": approach.name,
        "why": WHY_NONE,
        "without_noise": [name for name, scale in scales.items() if scale == 0.0],
    }
    how = {
        "approach": approach.name,
        **asdict(approach),
        "scale_parameter": scale_parameter,
        "mechanism": "laplace",
    }
    return PaperAnswer(values, scales, guarantee, how)


def _refuse(query: Query, scale_parameter: float, has_ledger: bool) -> None:
    if has_ledger:
        raise QueryRefused(
            "This table has a ledger, so it is not answered as in the source.",
            "An answer that promises nothing would undo what the ledger has paid for.",
            "Ask through the session; or use a copy made for research that no promise was given about.",
        )
    if not (math.isfinite(scale_parameter) and scale_parameter > 0.0):
        raise ParameterError(
            "The epsilon of the source must be above 0.",
            "The noise's scale is the sensitivity divided by it.",
            "The source takes 1.0.",
        )
    if query.keys:
        raise QueryRefused(
            "The source answers no GROUP BY.",
            "Its sensitivities are of one number at a time.",
            "Ask once per group, with a WHERE.",
        )
    odd = sorted({a.kind for a in query.aggregates} - set(AGGREGATIONS))
    if odd or not query.aggregates:
        raise QueryRefused(
            f"The source does not answer {', '.join(odd).upper() or 'an empty list of aggregates'}.",
            "It knows COUNT, SUM, AVG, MIN and MAX.",
            "Use one of them, or ask in groups or strict mode.",
        )
    if any(a.kind != "count" and a.column is None for a in query.aggregates):
        raise QueryRefused("An aggregate names no column.", "Only COUNT can do without.", "Name the column.")
