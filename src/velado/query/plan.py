"""What an answer will draw and cost, fixed before any row is seen: a pure function of public things.

COUNT is Rows; SUM is GridSum; AVG is a sum of distances from the grid's centre over Rows(column); HISTOGRAM is
GridCells; quantiles, and MIN and MAX as named quantiles, choose among candidates by noisy scores. What two aggregates
both need is drawn once. The spend is split evenly over the draws, and each draw is charged what OpenDP's map says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from velado.data.schema import Schema
from velado.errors import ParameterError, QueryRefused
from velado.query import limits, quantiles
from velado.query.budget import Measure
from velado.query.domains import key_of
from velado.query.grid import Grid
from velado.query.needs import Counts, GridCells, GridSum, Key, Need, Rows, cells_of
from velado.query.noise import Mechanism, calibrate
from velado.query.sensitivity import score_sensitivity, sensitivity
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query

Extremes = Literal["quantile", "bound"]

LOWEST, HIGHEST = Fraction(1, 100), Fraction(99, 100)
MOST_HISTOGRAM_CELLS = 100_000


@dataclass(frozen=True)
class Draw:
    """One use of a mechanism on the array of one need; *at* and *candidates* belong to a quantile."""

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
        return quantiles.scores(tally, quantiles.places(self.need, self.candidates), self.at)

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> dict[str, Any]:
        """Mechanism, scale, sensitivity and charge; for a quantile also its level and the rank it may miss by."""
        word, column = self.subject
        out: dict[str, Any] = {
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

    def rank_error(self, confidence: Fraction) -> dict[str, Any]:
        """By how many rows a quantile may miss the rank that was asked for, with that chance, in each cell.

        Where the candidates are fewer than the grid's points, the miss is counted from the best candidate's.
        """
        if self.at is None or not isinstance(self.need, GridCells):
            raise ValueError("only a quantile has a rank")
        grid = self.need.grid
        every = len(self.candidates) == grid.high - grid.low + 1
        return {
            "rows": quantiles.rank_error(self.scale, len(self.candidates), self.at, confidence),
            "confidence": float(confidence),
            "beyond": "the asked rank" if every else "the best candidate",
        }


@dataclass(frozen=True)
class Part:
    """How one aggregate is made: the places of its draws, its grid, or the declared bound that answers it."""

    draws: tuple[int, ...]
    grid: Grid | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Plan:
    """The draws of a query and their exact cost; *parts* stand in the order of the query's aggregates."""

    query: Query
    keys: tuple[Key, ...]
    measure: Measure
    unit: Unit
    draws: tuple[Draw, ...]
    parts: tuple[Part, ...]
    charge: Fraction
    extremes: Extremes

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the engine is asked, each thing once; two quantiles of a column share one."""
        return tuple(dict.fromkeys(draw.need for draw in self.draws))

    def to_dict(self, confidence: Fraction = Fraction(19, 20)) -> dict[str, Any]:
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

    def _reading(self, aggregate: Aggregate, part: Part, confidence: Fraction) -> dict[str, Any]:
        """What one value is: a number with an interval, a quantile with a level and a rank error, or a declared bound."""
        out: dict[str, Any] = {
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
) -> Plan:
    """Mechanisms, scales and charges whose sum is at most *spend*; QueryRefused where the schema does not allow it."""
    if not spend > 0:
        raise ParameterError(
            "What is spent on a query must be above 0.",
            "Nothing can be answered for nothing.",
            "Spend for example 0.1.",
        )
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
    limits.check(query, schema, keys, draws)
    charge = sum((draw.charge for draw in draws), Fraction(0))
    return Plan(query, keys, measure, unit, draws, tuple(parts), charge, extremes)


def name_of(aggregate: Aggregate) -> str:
    """What an aggregate's column of the answer is called: the alias, or the kind and column where there is none."""
    return aggregate.alias or "_".join(filter(None, (aggregate.kind, aggregate.column)))


def histogram_edges(grid: Grid, bins: int) -> tuple[int, ...]:
    """Edges of *bins* equal cells from the lowest to the highest index; the last cell holds the highest too."""
    span = grid.high - grid.low
    if bins == span + 1:
        return tuple(range(grid.low, grid.high + 2))
    if not 1 <= bins <= max(1, span):
        raise QueryRefused(
            f"A histogram of '{grid.column}' cannot have that many bins.",
            "A bin holds at least one step of the column's declared grid.",
            f"Ask for at most {span + 1} bins, or declare a finer step.",
        )
    return (*(grid.low - (-span * i // bins) for i in range(bins)), grid.high + 1)


def _grid(aggregate: Aggregate, schema: Schema) -> Grid:
    column = schema.columns.get(aggregate.column or "")
    if column is None:
        raise QueryRefused(
            f"The aggregate {aggregate.kind.upper()} names no column of the schema.",
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
            edges = histogram_edges(grid, aggregate.bins or 0)
            if cells * (len(edges) - 1) > MOST_HISTOGRAM_CELLS:
                raise QueryRefused(
                    "The keys and bins of this histogram make too many cells.",
                    f"One answer draws at most {MOST_HISTOGRAM_CELLS:,} numbers.",
                    "Ask for fewer bins, or group by fewer keys.",
                )
            return [(GridCells(grid, edges), None, ())]
        case _:
            at = {"min": LOWEST, "max": HIGHEST}.get(aggregate.kind, aggregate.at)
            if at is None or not 0 < at < 1:
                raise QueryRefused(
                    "A quantile's level is missing or not strictly between 0 and 1.",
                    "It is the share of rows that lie below the answer.",
                    "Ask for example QUANTILE(column, 0.9).",
                )
            chosen = quantiles.candidates(grid, cells)
            return [(quantiles.cells_between(grid, chosen), quantiles.level(at), chosen)]


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
    scale, charge = calibrate(mechanism, measure, most, share)
    return Draw(need, mechanism, most, scale, charge, at, chosen)
