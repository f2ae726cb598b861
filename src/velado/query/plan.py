"""What an answer will draw and cost, fixed before any row is seen: a pure function of public things.

COUNT is Rows; SUM is GridSum; AVG is a sum of distances from the grid's centre over Rows(column); HISTOGRAM is
GridCells; quantiles, and MIN and MAX as named quantiles, choose among candidates by noisy scores. What two aggregates
both need is drawn once. The spend is split evenly over the draws, and each draw is charged what OpenDP's map says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NotRequired, TypedDict

import numpy as np

from velado.data.schema import Schema
from velado.errors import EngineError, QueryRefused
from velado.query import noise
from velado.query.budget import Measure, spend_of
from velado.query.domains import key_of
from velado.query.engines._compile import Layout
from velado.query.engines._tally import check as check_engines
from velado.query.needs import Counts, Grid, GridCells, GridSum, Keys, Need, Needs, Rows, Tallies, cells_of
from velado.query.noise import Mechanism, score_sensitivity, sensitivity
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query
from velado.settings import Where
from velado.text import say

# Private quantiles: one candidate chosen by noisy scores that come from exact counts per bin.
#
# A level alpha = a/b asks for the number whose rank is alpha n. The candidate c covers the ranks from #(index < c) to
# #(index <= c); its score is b times the distance of alpha n from that range, a whole number:
#
# score(c) = max(0, b #lt - a n, a n - b #le),   n = all rows with a value
#
# Zero means c is a quantile. The usual |(1 - alpha) #lt - alpha #gt| prefers a value that nobody has over one that many
# share; this one does not. Adding a row moves n by 1 and #lt, #le by 0 or 1, so each term moves by at most max(a, b - a).
#
# Several keys: each key chooses for itself at one scale. A unit with g_k rows in key k costs that key the map of
# g_k max(a, b - a). Under epsilon the map is linear and sum g_k <= g; under rho it is quadratic and sum g_k^2 <= g^2; in
# both cases the keys together cost no more than the map of g max(a, b - a), which is what is charged.

MOST_CANDIDATES = 2_000
LEAST_CANDIDATES = 100
# Scores drawn in one answer, over all keys and quantiles: about ten microseconds each.
MOST_SCORES = 300_000
MOST_DENOMINATOR = 10_000
# Scores stay below this, whatever an engine counts, so that they cannot overflow.
_LARGEST = 1 << 61


def level(at: Fraction) -> Fraction:
    """The level as a fraction with a denominator of at most 10,000, strictly between 0 and 1.

    Scores are whole multiples of 1/b, so a finer level would only be rounded elsewhere.

    >>> level(Fraction("0.123456789"))
    Fraction(10, 81)
    """
    nearest = at.limit_denominator(MOST_DENOMINATOR)
    finest = Fraction(1, MOST_DENOMINATOR)
    return min(max(nearest, finest), 1 - finest)


@lru_cache(maxsize=256)
def candidates(grid: Grid, cells: int) -> tuple[int, ...]:
    """The indices to choose from: all of the grid when it has at most 2,000, else as many, evenly spread.

    With many keys there are fewer, so that no quantile draws more than 300,000 scores.

    >>> candidates(Grid("age", Fraction(1), 0, 3), 1)
    (0, 1, 2, 3)
    """
    most = min(MOST_CANDIDATES, MOST_SCORES // cells)
    points = grid.high - grid.low + 1
    if points <= most:
        return tuple(range(grid.low, grid.high + 1))
    if most < LEAST_CANDIDATES:
        raise QueryRefused(
            "The keys of this query make too many cells for a quantile.",
            say(
                "Each cell chooses among at least {least_candidates} candidates, and one answer draws at "
                "most {most_scores:,} scores.",
                least_candidates=LEAST_CANDIDATES,
                most_scores=MOST_SCORES,
            ),
            "Group by fewer keys, or ask for averages.",
        )
    return tuple(grid.low + (grid.high - grid.low) * i // (most - 1) for i in range(most))


def cells_between(grid: Grid, chosen: tuple[int, ...]) -> GridCells:
    """The bins whose counts give #lt and #le of every candidate exactly: one for it alone, one up to the next.

    >>> cells_between(Grid("age", Fraction(1), 0, 9), (2, 5)).edges
    (0, 2, 3, 5, 6, 10)
    """
    edges = {grid.low, grid.high + 1} | set(chosen) | {c + 1 for c in chosen}
    return GridCells(grid, tuple(sorted(edges)))


@lru_cache(maxsize=256)
def places(need: GridCells, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """The bin of each candidate.

    >>> places(cells_between(Grid("age", Fraction(1), 0, 9), (2, 5)), (2, 5))
    (1, 3)
    """
    return tuple(np.searchsorted(np.array(need.edges, dtype=np.int64), np.array(chosen)).tolist())


def scores_of(tally: Counts, bins: tuple[int, ...], at: Fraction) -> Counts:
    """The score of every candidate, shape (cells, candidates), from the exact counts per bin. O(cells x bins).

    Counts are clipped far above any table's size: clipping moves nothing further, and nothing overflows.

    >>> scores_of(np.array([[3, 4, 1]]), (0, 1, 2), Fraction(1, 2))
    array([[2, 0, 6]])
    """
    a, b = at.numerator, at.denominator
    kept = np.clip(tally, 0, _LARGEST // (b * tally.shape[1]))
    most = np.cumsum(kept, axis=1)
    where = np.array(bins, dtype=np.int64)
    at_or_below = most[:, where]
    below = at_or_below - kept[:, where]
    target = a * most[:, -1:]
    distance: Counts = np.maximum(np.maximum(b * below - target, target - b * at_or_below), 0)
    return distance


def rank_error(scale: float, count: int, at: Fraction, confidence: Fraction) -> float:
    """Rows by which the chosen rank misses the best candidate's, at most, with that confidence.

    Both noises OpenDP draws choose a score worse than the best by t with chance at most count x exp(-t / scale)
    (McSherry and Talwar 2007; permute-and-flip is never worse, McKenna and Sheldon 2020). Scores are b times ranks.

    >>> round(rank_error(2.0, 100, Fraction(1, 2), Fraction(19, 20)), 1)
    7.6
    """
    return scale * math.log(count / float(1 - confidence)) / at.denominator


# How much one answer may be: numbers to draw and to keep, scores to choose by, and what every engine can do.
#
# All of it follows from the question and the schema, so that nobody pays for an answer that is then refused.

# Drawn, kept in the ledger and sent: about 40 microseconds each, so 4 seconds and a megabyte at the most.
MOST_NUMBERS = 100_000


def _check_size(query: Query, schema: Schema, keys: Keys, draws: Sequence[Draw]) -> None:
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
    needs = tuple(dict.fromkeys(draw.need for draw in draws))
    check_engines(Layout.of(schema, Unit()), query.where, keys, needs)


Extremes = Literal["quantile", "bound"]

LOWEST, HIGHEST = Fraction(1, 100), Fraction(99, 100)


class RankError(TypedDict):
    """By how many *rows* a quantile may miss its rank, *beyond* what; by no more with that *confidence*.

    >>> RankError(rows=3.2, confidence=0.95, beyond="the asked rank")["rows"]
    3.2
    """

    rows: float
    confidence: float
    beyond: str


class Swing(TypedDict):
    """By how much one unit moves a draw, and the scale of its noise, in the column's own numbers.

    >>> Swing(sensitivity=120.0, scale=240.0)["scale"]
    240.0
    """

    sensitivity: float
    scale: float


class DrawFacts(TypedDict):
    """A draw as JSON has it.

    >>> Draw(Rows(), "laplace", 1, 10.0, Fraction(1, 10)).to_dict()["charge"]
    '1/10'
    """

    need: str
    what: str
    column: str | None
    mechanism: str
    sensitivity: float
    scale: float
    charge: str
    in_values: NotRequired[Swing]
    level: NotRequired[str]
    candidates: NotRequired[int]
    rank_error: NotRequired[RankError]


class ValueReading(TypedDict):
    """How one value of an answer is to be read, as JSON has it: a number, a quantile or a declared bound.

    >>> ValueReading(name="n", asked="count", column=None, answered_as="number")["answered_as"]
    'number'
    """

    name: str
    asked: str
    column: str | None
    answered_as: Literal["number", "quantile", "bound"]
    level: NotRequired[str]
    candidates: NotRequired[int]
    rank_error: NotRequired[RankError]


class PlanFacts(TypedDict):
    """A plan as JSON has it: what is charged, how it is drawn and how each value is to be read.

    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(1, 2))
    >>> made.to_dict()["values"][0]["name"]
    'count'
    """

    measure: Measure
    charge: str
    about: float
    cells: int
    extremes: Extremes
    draws: list[DrawFacts]
    values: list[ValueReading]


@dataclass(frozen=True)
class Draw:
    """One use of a mechanism on the array of one need; *at* and *candidates* belong to a quantile.

    >>> Draw(Rows(), "laplace", 1, 10.0, Fraction(1, 10)).subject
    ('rows', None)
    """

    need: Need
    mechanism: Mechanism
    sensitivity: int
    scale: float
    charge: Fraction
    at: Fraction | None = None
    candidates: tuple[int, ...] = ()

    def scores(self, tally: Counts) -> Counts:
        """What a noisy maximum chooses by: one score per key and candidate."""
        if self.at is None or not isinstance(self.need, GridCells):
            raise ValueError("only a quantile has scores")
        return scores_of(tally, places(self.need, self.candidates), self.at)

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> DrawFacts:
        """Mechanism, scale, sensitivity and charge; for a quantile also its level and the rank it may miss by."""
        word, column = self.subject
        out: DrawFacts = {
            "need": word if column is None else f"{word} '{column}'",
            "what": word,
            "column": column,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "charge": str(self.charge),
        }
        if isinstance(self.need, GridSum):
            # Noise is drawn in steps of the grid; a person thinks in the column's own numbers.
            step = self.need.grid.step
            out["in_values"] = {
                "sensitivity": float(self.sensitivity * step),
                "scale": self.scale * float(step),
            }
        if self.at is not None:
            out["level"] = str(self.at)
            out["candidates"] = len(self.candidates)
            out["rank_error"] = self.rank_error(confidence)
        return out

    @property
    def subject(self) -> tuple[str, str | None]:
        """What is drawn, as a word of a fixed list and the column it is about."""
        match self.need:
            case Rows(column):
                return ("rows", None) if column is None else ("rows with", column)
            case GridSum(grid, offset):
                return "sum of" if offset == 0 else "centred sum of", grid.column
            case GridCells(grid, _):
                return "histogram of" if self.at is None else "quantile of", grid.column

    def rank_error(self, confidence: Fraction) -> RankError:
        """By how many rows a quantile may miss the rank that was asked for, with that chance, in each cell.

        Where the candidates are fewer than the grid's points, the miss is counted from the best candidate's.
        """
        if self.at is None or not isinstance(self.need, GridCells):
            raise ValueError("only a quantile has a rank")
        grid = self.need.grid
        every = len(self.candidates) == grid.high - grid.low + 1
        return {
            "rows": rank_error(self.scale, len(self.candidates), self.at, confidence),
            "confidence": float(confidence),
            "beyond": "the asked rank" if every else "the best candidate",
        }


@dataclass(frozen=True)
class Part:
    """How one aggregate is made: the places of its draws, its grid, or the declared bound that answers it.

    >>> Part((0, 1), Grid("age", Fraction(1), 0, 120)).draws
    (0, 1)
    """

    draws: tuple[int, ...]
    grid: Grid | None = None
    bound: float | None = None


@dataclass(frozen=True)
class QueryPlan:
    """The draws of a query and their exact cost; *parts* stand in the order of the query's aggregates.

    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(1, 2))
    >>> made.needs, made.to_dict()["cells"]
    ((Rows(column=None),), 1)
    """

    query: Query
    keys: Keys
    measure: Measure
    unit: Unit
    draws: tuple[Draw, ...]
    parts: tuple[Part, ...]
    charge: Fraction
    extremes: Extremes

    @property
    def needs(self) -> Needs:
        """What the engine is asked, each thing once; two quantiles of a column share one."""
        return tuple(dict.fromkeys(draw.need for draw in self.draws))

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> PlanFacts:
        """What is charged, how it is drawn and how each value is to be read, for the answer and for a price beforehand."""
        return {
            "measure": self.measure,
            "charge": str(self.charge),
            "about": float(self.charge),
            "cells": cells_of(self.keys),
            "extremes": self.extremes,
            "draws": [draw.to_dict(confidence) for draw in self.draws],
            "values": [
                self._reading(aggregate, part, confidence)
                for aggregate, part in zip(self.query.aggregates, self.parts, strict=True)
            ],
        }

    def _reading(self, aggregate: Aggregate, part: Part, confidence: Fraction) -> ValueReading:
        """What one value is: a number with an interval, a quantile with a level and a rank error, or a declared bound."""
        out: ValueReading = {
            "name": name_of(aggregate),
            "asked": aggregate.kind,
            "column": aggregate.column,
            "answered_as": "number",
        }
        if part.bound is not None:
            return {**out, "answered_as": "bound"}
        draw = self.draws[part.draws[0]]
        if draw.at is None:
            return out
        return {
            **out,
            "answered_as": "quantile",
            "level": str(draw.at),
            "candidates": len(draw.candidates),
            "rank_error": draw.rank_error(confidence),
        }


def plan(
    query: Query,
    schema: Schema,
    unit: Unit,
    measure: Measure,
    spend: Fraction,
    extremes: Extremes = "quantile",
) -> QueryPlan:
    """Mechanisms, scales and charges whose sum is at most *spend*; QueryRefused where the schema does not allow it.

    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(1, 2))
    >>> made.draws[0].mechanism, made.charge <= Fraction(1, 2)
    ('laplace', True)
    """
    spend = spend_of(spend, "spend", Where("python", say("the question")))
    keys = tuple(key_of(schema, name) for name in query.keys)
    cells = cells_of(keys)
    if len(query.aggregates) > 1 and any(a.kind == "histogram" for a in query.aggregates):
        raise QueryRefused(
            "A histogram is asked together with another aggregate.",
            "Its answer has one line per bin, the others one line per key.",
            "Ask for the histogram in a query of its own.",
        )
    wanted: dict[tuple[Need, Fraction | None, tuple[int, ...]], int] = {}
    parts = []
    for aggregate in query.aggregates:
        grid = None if aggregate.kind == "count" else _grid(aggregate, schema)
        if aggregate.kind in ("min", "max") and extremes == "bound":
            bounds = schema.columns[str(aggregate.column)].bounds
            assert grid is not None and bounds is not None  # Grid.of refuses a column without bounds
            parts.append(Part((), grid, float(bounds[0 if aggregate.kind == "min" else 1])))
            continue
        asked = _asked(aggregate, grid, cells)
        parts.append(Part(tuple(wanted.setdefault(one, len(wanted)) for one in asked), grid))
    share = spend / max(1, len(wanted))
    draws = tuple(_draw(need, at, chosen, unit, measure, share, cells) for need, at, chosen in wanted)
    _check_size(query, schema, keys, draws)
    charge = sum((draw.charge for draw in draws), Fraction(0))
    return QueryPlan(
        query=query,
        keys=keys,
        measure=measure,
        unit=unit,
        draws=draws,
        parts=tuple(parts),
        charge=charge,
        extremes=extremes,
    )


def name_of(aggregate: Aggregate) -> str:
    """What an aggregate's column of the answer is called: the alias, or the kind and column where there is none.

    >>> name_of(Aggregate("avg", "age")), name_of(Aggregate("count", alias="n"))
    ('avg_age', 'n')
    """
    return aggregate.alias or "_".join(filter(None, (aggregate.kind, aggregate.column)))


def histogram_edges(grid: Grid, bins: int) -> tuple[int, ...]:
    """Edges of *bins* equal cells from the lowest to the highest index; the last cell holds the highest too.

    >>> histogram_edges(Grid("age", Fraction(1), 0, 10), 2)
    (0, 5, 11)
    """
    span = grid.high - grid.low
    if bins == span + 1:
        return tuple(range(grid.low, grid.high + 2))
    if not 1 <= bins <= max(1, span):
        raise QueryRefused(
            say("A histogram of '{column}' cannot have that many bins.", column=grid.column),
            "A bin holds at least one step of the column's declared grid.",
            say("Ask for at most {most} bins, or declare a finer step.", most=span + 1),
        )
    return (*(grid.low - (-span * i // bins) for i in range(bins)), grid.high + 1)


def _grid(aggregate: Aggregate, schema: Schema) -> Grid:
    column = schema.columns.get(aggregate.column or "")
    if column is None:
        raise QueryRefused(
            say("The aggregate {kind} names no column of the schema.", kind=aggregate.kind.upper()),
            "Its bounds and step are read from there.",
            "Name a declared column.",
        )
    return Grid.of(column)


def _asked(
    aggregate: Aggregate, grid: Grid | None, cells: int
) -> list[tuple[Need, Fraction | None, tuple[int, ...]]]:
    """The needs of one aggregate, with level and candidates where a quantile is chosen."""
    if grid is None:
        return [(Rows(aggregate.column), None, ())]
    match aggregate.kind:
        case "sum":
            return [(GridSum(grid), None, ())]
        case "avg":
            return [(GridSum(grid, grid.centre), None, ()), (Rows(aggregate.column), None, ())]
        case "histogram":
            return [(GridCells(grid, histogram_edges(grid, aggregate.bins or 0)), None, ())]
        case _:
            at = {"min": LOWEST, "max": HIGHEST}.get(aggregate.kind, aggregate.at)
            if at is None or not 0 < at < 1:
                raise QueryRefused(
                    "A quantile's level is missing or not strictly between 0 and 1.",
                    "It is the share of rows that lie below the answer.",
                    "Ask for example QUANTILE(column, 0.9).",
                )
            chosen = candidates(grid, cells)
            return [(cells_between(grid, chosen), level(at), chosen)]


def _draw(
    need: Need,
    at: Fraction | None,
    chosen: tuple[int, ...],
    unit: Unit,
    measure: Measure,
    share: Fraction,
    cells: int,
) -> Draw:
    """The mechanism of one need with the smallest scale its share allows."""
    mechanism: Mechanism
    if at is not None:
        mechanism, most = "noisy-max", score_sensitivity(at.numerator, at.denominator, unit, cells)
    else:
        mechanism, most = ("laplace" if measure == "epsilon" else "gaussian"), sensitivity(need, unit, cells)
    scale, charge = noise.calibrate(mechanism, measure, most, share)
    return Draw(need, mechanism, most, scale, charge, at, chosen)


def carry_out(plan: QueryPlan, tallies: Tallies, deadline: float | None = None) -> Tallies:
    """One noisy array per draw of *plan*, from one exact array per need: whole numbers, or chosen candidates' places.

    The shape of what an engine returned is checked before anything is drawn; its numbers are not looked at. Between two
    draws, and between two cells of a quantile, a *deadline* that `time.monotonic` has passed is an EngineError.

    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(40))
    >>> abs(int(carry_out(made, (np.array([100]),))[0][0]) - 100) < 5
    True
    """
    cells = cells_of(plan.keys)
    if len(tallies) != len(plan.needs):
        raise _wrong_shape()
    for need, tally in zip(plan.needs, tallies, strict=True):
        expected = (cells, len(need.edges) - 1) if isinstance(need, GridCells) else (cells,)
        if tally.shape != expected or tally.dtype != np.int64:
            raise _wrong_shape()
    exact = dict(zip(plan.needs, tallies, strict=True))
    return tuple(_drawn(draw, plan.measure, exact[draw.need], deadline) for draw in plan.draws)


def _drawn(draw: Draw, measure: Measure, tally: Counts, deadline: float | None) -> Counts:
    noise.check_time(deadline)
    if draw.mechanism == "noisy-max":
        return noise.choose_smallest(measure, draw.scale, draw.scores(tally).tolist(), deadline)
    return noise.add(draw.mechanism, measure, draw.scale, tally)


def _wrong_shape() -> EngineError:
    return EngineError(
        "The engine returned arrays of another shape or type than it was asked for.",
        "Noise is drawn on 64-bit whole numbers, one array per need and one number per cell.",
        "Report this as a fault of the engine.",
    )
