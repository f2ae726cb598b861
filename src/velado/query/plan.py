"""What an answer will draw and cost, fixed before any row is seen: a pure function of public things.

COUNT is Rows; SUM is GridSum; AVG is a sum of distances from the grid's centre over Rows(column); HISTOGRAM is
GridCells; quantiles, and MIN and MAX as named quantiles, choose among candidates by noisy scores. What two aggregates
both need is drawn once, and each draw is charged what OpenDP's map says. A spend is split evenly over the draws, which
blurs every value by the same part of all it can be. For a wish of accuracy each draw gets the least that the wish needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal, NotRequired, TypedDict

import numpy as np

from velado.data.schema import Schema
from velado.errors import EngineError, QueryRefused
from velado.query import noise
from velado.query.accuracy import (
    USUAL,
    AverageWish,
    ValueAccuracy,
    Wish,
    above_sentence,
    accuracy,
    accuracy_sentence,
    average_accuracy,
    check_rows,
    check_total,
    lowered_sentence,
    noise_warning,
    rows_of_a_key,
    share_for_rank,
    share_for_width,
    size,
)
from velado.query.answer_size import MOST_NUMBERS, check_engines, check_size
from velado.query.budget import Measure, spend_of
from velado.query.domains import check_above, check_rolled_up, key_of, most_values
from velado.query.draws import Draw, DrawFacts, LevelDraw, RankError, quantile_sentence
from velado.query.hierarchy import Tree, half_widths, least_spend_within
from velado.query.needs import Counts, Grid, GridCells, GridSum, Keys, Need, Needs, Rows, Tallies, cells_of
from velado.query.noise import Mechanism, half_width, score_sensitivity, sensitivity
from velado.query.quantiles import candidates, cells_between, level
from velado.query.sparse import check_threshold, draw_above
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query
from velado.settings import Where
from velado.text import Sentence, say, told

Extremes = Literal["quantile", "bound"]

LOWEST, HIGHEST = Fraction(1, 100), Fraction(99, 100)


class ValueReading(ValueAccuracy):
    """How one value of an answer is to be read, as JSON has it: a number, a quantile or a declared bound; and how exact it is.

    >>> ValueReading(name="n", asked="count", column=None, answered_as="number", mostly_noise=False)["answered_as"]
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
    within: str | None
    draws: list[DrawFacts]
    values: list[ValueReading]


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
    rows: int | None = None
    wish: tuple[Wish, Fraction] | None = None
    tree: Tree | None = None

    @property
    def needs(self) -> Needs:
        """What the engine is asked, each thing once; two quantiles of a column share one."""
        return tuple(dict.fromkeys(draw.need for draw in self.draws))

    def _above(self, draw: Draw, least: int, confidence: Fraction) -> ValueAccuracy:
        """How exact the shown counts of many keys are; one of them may hold all rows."""
        half = half_width(draw.mechanism, draw.scale, confidence)
        shown = check_threshold(draw.mechanism, draw.scale, least, cells_of(self.keys))
        rows = rows_of_a_key(self.rows, 1)
        return {**accuracy(float(half), rows), "least": least, "lifted": shown}

    def half_widths(self, confidence: Fraction) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
        """Of a hierarchy: by how much each node of each level is off at most, with that chance."""
        assert self.tree is not None
        scales = [draw.scale for draw in self.draws]
        return half_widths(self.tree, self.draws[0].mechanism, scales, confidence)

    def to_dict(self, confidence: Fraction = USUAL) -> PlanFacts:
        """What is charged, how it is drawn and how each value is to be read, for the answer and for a price beforehand."""
        return {
            "measure": self.measure,
            "charge": str(self.charge),
            "about": float(self.charge),
            "cells": cells_of(self.keys),
            "extremes": self.extremes,
            "within": None if self.wish is None else str(self.wish[0]),
            "draws": [draw.to_dict(confidence) for draw in self.draws],
            "values": [
                self._reading(aggregate, part, confidence)
                for aggregate, part in zip(self.query.aggregates, self.parts, strict=True)
            ],
        }

    def sentences(self, confidence: Fraction = USUAL) -> list[Sentence]:
        """By how much each value will be off at most, what is left out or moved, and a warning where noise would be paid for."""
        values = self.to_dict(confidence)["values"]
        said = [accuracy_sentence(value["name"], value, confidence) for value in values]
        out = [sentence for sentence in said if sentence is not None]
        out += [
            quantile_sentence(one["name"], one["asked"], one["level"], one["rank_error"], one["candidates"])
            for one in values
            if one["answered_as"] == "quantile"
        ]
        if self.tree is not None:
            out.append(
                say(
                    "From all rows down to the keys, the {levels} levels are off by up to {widths}; children add up to their parent.",
                    levels=len(self.tree.sizes),
                    widths=", ".join(f"±{told(size(width))}" for width in values[0]["levels"]),
                )
            )
        out += [
            above for value in values if (above := above_sentence(value, cells_of(self.keys), confidence))
        ]
        if self.draws and self.unit.column is not None:
            out.append(
                say(
                    "Of all rows with one value of '{column}' at most {rows:,} count; the others are left out.",
                    column=self.unit.column,
                    rows=self.unit.rows,
                )
            )
        grids = {part.grid: None for part in self.parts if part.grid is not None and part.bound is None}
        out += [
            say(
                "Numbers of '{column}' beyond its declared bounds, {low:.6g} to {high:.6g}, count as the bound.",
                column=grid.column,
                low=grid.value(grid.low),
                high=grid.value(grid.high),
            )
            for grid in grids
        ]
        out += [lowered_sentence(one["name"], one["lowered"]) for one in values if "lowered" in one]
        if self.tree is not None:
            out.append(
                say(
                    "That is the noise. Where numbers below 0 are set to 0, what they gain is taken from their neighbours, small ones first, so that "
                    "children add up. These may then be off by more; their intervals allow for it."
                )
            )
        warning = noise_warning([value["name"] for value in values if value["mostly_noise"]])
        return out if warning is None else [*out, warning]

    def _reading(self, aggregate: Aggregate, part: Part, confidence: Fraction) -> ValueReading:
        """What one value is: a number with an interval, a quantile with a level and a rank error, or a declared bound."""
        out: ValueReading = {
            "name": name_of(aggregate),
            "asked": aggregate.kind,
            "column": aggregate.column,
            "answered_as": "number",
            "mostly_noise": False,
        }
        if part.bound is not None:
            return {**out, "answered_as": "bound"}
        draw = self.draws[part.draws[0]]
        if self.tree is not None:
            widths = self.half_widths(confidence)
            most = max(float(one.max()) for one in widths)
            facts = accuracy(most, None if self.rows is None else Fraction(self.rows))
            return {**out, **facts, "kept": "tree", "levels": [float(one.max()) for one in widths]}
        if self.query.least is not None:
            return {**out, **self._above(draw, self.query.least, confidence)}
        rows = rows_of_a_key(self.rows, prod(len(key.domain) for key in self.keys))
        if draw.at is not None:
            off = draw.rank_error(confidence)
            return {
                **out,
                "answered_as": "quantile",
                "level": str(draw.at),
                "candidates": len(draw.candidates),
                "rank_error": off,
                "mostly_noise": accuracy(off["rows"], rows)["mostly_noise"],
            }
        if aggregate.kind == "avg" and part.grid is not None:
            scales = (draw.scale, self.draws[part.draws[1]].scale)
            return {**out, **average_accuracy(draw.mechanism, scales, part.grid, rows, confidence)}
        step = part.grid.step if aggregate.kind == "sum" and part.grid is not None else Fraction(1)
        half, usual = (half_width(draw.mechanism, draw.scale, one) * step for one in (confidence, USUAL))
        reading: ValueReading = {**out, **accuracy(float(half), largest(aggregate, part.grid, rows))}
        if one_sided(part.grid if aggregate.kind == "sum" else None):
            reading["kept"] = "possible"
            if cells_of(self.keys) > 1 or aggregate.kind == "histogram":
                reading["kept"], reading["lowered"] = "sum", float(usual)
        return reading


def one_sided(grid: Grid | None) -> bool:
    """Whether a count (no grid), or a sum over the grid, lies on one side of 0 whatever the rows are.

    >>> one_sided(None), one_sided(Grid("age", Fraction(1), 0, 9)), one_sided(Grid("change", Fraction(1), -5, 5))
    (True, True, False)
    """
    return grid is None or grid.low >= 0 or grid.high <= 0


def largest(aggregate: Aggregate, grid: Grid | None, rows: Fraction | None) -> Fraction | None:
    """All that a count, a rank, a sum or an average can be by what is declared; None where the table's size is needed and is not.

    >>> largest(Aggregate("sum", "age"), Grid("age", Fraction(1), 0, 120), Fraction(10))
    Fraction(1200, 1)
    """
    if aggregate.kind == "avg" and grid is not None:
        return grid.step * (grid.high - grid.low)
    if rows is None or aggregate.kind != "sum" or grid is None:
        return rows
    return rows * grid.step * (max(grid.high, 0) - min(grid.low, 0))


Wanted = tuple[Need, Fraction | None, tuple[int, ...]]
"""A need to be drawn, with level and candidates where a quantile is chosen."""


@dataclass(frozen=True, kw_only=True)
class _Outline:
    """A query before its budget is shared: what is to be drawn, each thing once, and which aggregates it makes."""

    query: Query
    schema: Schema
    unit: Unit
    measure: Measure
    extremes: Extremes
    keys: Keys
    parts: tuple[Part, ...]
    wanted: tuple[Wanted, ...]
    tree: Tree | None = None

    @classmethod
    def of(cls, query: Query, schema: Schema, unit: Unit, measure: Measure, extremes: Extremes) -> _Outline:
        """QueryRefused where the schema does not allow the query."""
        keys = tuple(key_of(schema, name, most_values(query.least)) for name in query.keys)
        if len(query.aggregates) > 1 and any(a.kind == "histogram" for a in query.aggregates):
            raise QueryRefused(
                "A histogram is asked together with another aggregate.",
                "Its answer has one line per bin, the others one line per key.",
                "Ask for the histogram in a query of its own.",
            )
        if query.least is not None:
            check_above(query.aggregates, query.keys)
        if query.rollup:
            return cls._rolled_up(query, schema, unit, measure, extremes, keys)
        wanted: dict[Wanted, int] = {}
        parts = []
        for aggregate in query.aggregates:
            grid = None if aggregate.kind == "count" else _grid(aggregate, schema)
            if aggregate.kind in ("min", "max") and extremes == "bound":
                bounds = schema.columns[str(aggregate.column)].bounds
                assert grid is not None and bounds is not None  # Grid.of refuses a column without bounds
                parts.append(Part((), grid, float(bounds[0 if aggregate.kind == "min" else 1])))
                continue
            asked = _asked(aggregate, grid, cells_of(keys))
            parts.append(Part(tuple(wanted.setdefault(one, len(wanted)) for one in asked), grid))
        return cls(
            query=query,
            schema=schema,
            unit=unit,
            measure=measure,
            extremes=extremes,
            keys=keys,
            parts=tuple(parts),
            wanted=tuple(wanted),
        )

    @classmethod
    def _rolled_up(
        cls, query: Query, schema: Schema, unit: Unit, measure: Measure, extremes: Extremes, keys: Keys
    ) -> _Outline:
        """One count, drawn at every level of the keys' hierarchy."""
        check_rolled_up(query.aggregates)
        if cells_of(keys) > MOST_NUMBERS:
            check_size(query, schema, keys, ())
        tree = Tree.of(keys, schema)
        return cls(
            query=query,
            schema=schema,
            unit=unit,
            measure=measure,
            extremes=extremes,
            keys=keys,
            parts=(Part(tuple(range(len(tree.sizes)))),),
            wanted=((Rows(query.aggregates[0].column), None, ()),) * len(tree.sizes),
            tree=tree,
        )

    def shares(self, spend: Fraction) -> list[Fraction]:
        """A spend over all that is drawn: alike, but for the levels of a hierarchy."""
        if self.tree is None:
            return [spend / max(1, len(self.wanted))] * len(self.wanted)
        mechanism: Mechanism = "laplace" if self.measure == "epsilon" else "gaussian"
        return [spend * share for share in self.tree.shares(mechanism)]

    def noise_of(self, place: int) -> tuple[Mechanism, int]:
        """The mechanism of one thing that is drawn, and the most by which one unit moves it."""
        need, at, _ = self.wanted[place]
        cells = cells_of(self.keys) if self.tree is None else self.tree.sizes[place]
        if at is not None:
            return "noisy-max", score_sensitivity(at.numerator, at.denominator, self.unit, cells)
        mechanism: Mechanism = "laplace" if self.measure == "epsilon" else "gaussian"
        return mechanism, sensitivity(need, self.unit, cells)

    def drawn(self, shares: Sequence[Fraction], wish: tuple[Wish, Fraction] | None = None) -> QueryPlan:
        """The plan in which each thing is drawn with the smallest scale its share allows."""
        draws = []
        for place, (need, at, chosen) in enumerate(self.wanted):
            mechanism, most = self.noise_of(place)
            scale, charge = noise.calibrate(mechanism, self.measure, most, shares[place])
            if self.tree is None:
                draws.append(Draw(need, mechanism, most, scale, charge, at, chosen))
            else:
                draws.append(LevelDraw(need, mechanism, most, scale, charge, depth=place))
        if self.query.least is None:
            check_size(self.query, self.schema, self.keys, draws)
        else:
            check_engines(self.query, self.schema, self.keys, draws)
            check_threshold(draws[0].mechanism, draws[0].scale, self.query.least, cells_of(self.keys))
        return QueryPlan(
            query=self.query,
            keys=self.keys,
            measure=self.measure,
            unit=self.unit,
            draws=tuple(draws),
            parts=self.parts,
            charge=sum((draw.charge for draw in draws), Fraction(0)),
            extremes=self.extremes,
            rows=self.schema.dataset.rows,
            wish=wish,
            tree=self.tree,
        )

    def least_shares(self, wish: Wish, confidence: Fraction) -> list[Fraction]:
        """For each thing that is drawn the least share with which every value that uses it keeps the wish."""
        if self.tree is not None:
            # A percentage is of all rows, which is what the widest node can be.
            width = wish.in_units(rows_of_a_key(self.schema.dataset.rows, 1))
            moved = [self.noise_of(place)[1] for place in range(len(self.wanted))]
            return self.shares(least_spend_within(self.tree, self.measure, moved, width, confidence))
        # A key above a threshold may hold all rows.
        even = 1 if self.query.least is not None else prod(len(key.domain) for key in self.keys)
        rows = rows_of_a_key(self.schema.dataset.rows, even)
        shares = [Fraction(0)] * len(self.wanted)
        averages = []
        for aggregate, part in zip(self.query.aggregates, self.parts, strict=True):
            if not part.draws:
                continue
            width = wish.in_units(largest(aggregate, part.grid, rows))
            if aggregate.kind == "avg":
                averages.append((part, width))
                continue
            (place,) = part.draws
            _, at, chosen = self.wanted[place]
            mechanism, most = self.noise_of(place)
            if at is not None:
                needed = share_for_rank(self.measure, most, (len(chosen), at), width, confidence)
            else:
                steps = width / part.grid.step if aggregate.kind == "sum" and part.grid else width
                needed = share_for_width(mechanism, self.measure, most, min(int(steps), 1 << 60), confidence)
            shares[place] = max(shares[place], needed)
        # Last, because a count that another value needs anyway serves the average too.
        for part, width in averages:
            assert part.grid is not None
            of_sum, of_count = part.draws
            asked = AverageWish(
                measure=self.measure,
                most=(self.noise_of(of_sum)[1], self.noise_of(of_count)[1]),
                reach=part.grid.centred_reach,
                width=float(width / part.grid.step),
                rows=check_rows(rows),
                confidence=confidence,
            )
            for place, share in zip(
                part.draws, asked.shares((shares[of_sum], shares[of_count])), strict=True
            ):
                shares[place] = max(shares[place], share)
        return shares


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
    outline = _Outline.of(query, schema, unit, measure, extremes)
    return outline.drawn(outline.shares(spend))


def plan_within(
    query: Query,
    schema: Schema,
    unit: Unit,
    measure: Measure,
    wish: Wish,
    confidence: Fraction = USUAL,
    extremes: Extremes = "quantile",
    *,
    least: Fraction = Fraction(0),
) -> QueryPlan:
    """The plan of least cost whose every value keeps the *wish* with that chance; QueryRefused where none may cost so much.

    Where that is less than the *least* a question spends, all shares grow alike, and the values are more exact than was asked.

    >>> made = plan_within(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Wish(Fraction(10)))
    >>> made.sentences()[0], round(float(made.charge), 3)
    ('count: off by up to ±10 (95%).', 0.284)
    """
    outline = _Outline.of(query, schema, unit, measure, extremes)
    shares = outline.least_shares(wish, confidence)
    total = sum(shares, Fraction(0))
    if 0 < total < least:
        shares = [share * least / total for share in shares]
    check_total(sum(shares, Fraction(0)), measure)
    return outline.drawn(shares, (wish, confidence))


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


def _asked(aggregate: Aggregate, grid: Grid | None, cells: int) -> list[Wanted]:
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
        raise wrong_shape()
    for need, tally in zip(plan.needs, tallies, strict=True):
        expected = (cells, len(need.edges) - 1) if isinstance(need, GridCells) else (cells,)
        if tally.shape != expected or tally.dtype != np.int64:
            raise wrong_shape()
    exact = dict(zip(plan.needs, tallies, strict=True))
    if plan.query.least is not None:
        (draw,) = plan.draws
        return draw_above(draw.mechanism, plan.measure, draw.scale, tallies[0], plan.query.least, deadline)
    if plan.tree is not None:
        levels = plan.tree.summed(tallies[0])
        return tuple(
            _drawn(draw, plan.measure, one, deadline) for draw, one in zip(plan.draws, levels, strict=True)
        )
    return tuple(_drawn(draw, plan.measure, exact[draw.need], deadline) for draw in plan.draws)


def _drawn(draw: Draw, measure: Measure, tally: Counts, deadline: float | None) -> Counts:
    noise.check_time(deadline)
    if draw.mechanism == "noisy-max":
        return noise.choose_smallest(measure, draw.scale, draw.scores(tally).tolist(), deadline)
    return noise.add(draw.mechanism, measure, draw.scale, tally)


def wrong_shape() -> EngineError:
    """The error for an engine that returned what it was not asked for.

    >>> wrong_shape().fix
    'Report this as a fault of the engine.'
    """
    return EngineError(
        "The engine returned arrays of another shape or type than it was asked for.",
        "Noise is drawn on 64-bit whole numbers, one array per need and one number per cell.",
        "Report this as a fault of the engine.",
    )
