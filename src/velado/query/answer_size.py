"""How much one answer may be: numbers to draw and to keep, scores to choose by, and what every engine can do.

All of it follows from the question and the schema, so that nobody pays for an answer that is then refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query.draws import Draw
from velado.query.engines._compile import Layout
from velado.query.engines._tally import check
from velado.query.needs import GridCells, Keys, cells_of
from velado.query.quantiles import MOST_SCORES
from velado.query.unit import Unit
from velado.query.values import Query
from velado.text import say

# Drawn, kept in the ledger and sent: about 40 microseconds each, so 4 seconds and a megabyte at the most.
MOST_NUMBERS = 100_000


def check_size(query: Query, schema: Schema, keys: Keys, draws: Sequence[Draw]) -> None:
    """Nothing, where the answer is small enough and no engine will refuse it; else QueryRefused. Linear in the question."""
    cells = cells_of(keys)
    scores = sum(cells * len(draw.candidates) for draw in draws if draw.at is not None)
    numbers = sum(
        cells * (len(draw.need.edges) - 1) if isinstance(draw.need, GridCells) and draw.at is None else cells
        for draw in draws
    )
    # A declared bound is drawn from nothing, but it is written into every line.
    if max(numbers, cells * len(query.aggregates)) > MOST_NUMBERS:
        raise QueryRefused(
            "The keys, bins and aggregates of this query make too many numbers together.",
            say(
                "One answer draws and keeps at most {most_numbers:,}; an average needs two for every cell.",
                most_numbers=MOST_NUMBERS,
            ),
            "Ask for fewer things at once, or group by fewer keys.",
        )
    if scores > MOST_SCORES:
        raise QueryRefused(
            "The quantiles of this query, MIN and MAX among them, choose among too many candidates together.",
            say(
                "One answer draws at most {most_scores:,} scores, one for every quantile, cell and "
                "candidate.",
                most_scores=MOST_SCORES,
            ),
            "Ask for fewer quantiles at once, or group by fewer keys.",
        )
    check_engines(query, schema, keys, draws)


def check_engines(query: Query, schema: Schema, keys: Keys, draws: Sequence[Draw]) -> None:
    """Nothing, where no engine will refuse to count for these draws; else QueryRefused."""
    needs = tuple(dict.fromkeys(draw.need for draw in draws))
    check(Layout.of(schema, Unit()), query.where, keys, needs)
