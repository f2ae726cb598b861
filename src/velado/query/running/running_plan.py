"""What a running total draws and costs, by declarations alone: one unit's reach into the blocks of each level, and the noise for it.

In one delivery a unit moves the counted numbers by at most s (`noise.sensitivity`). It counts in at most c deliveries, so on a level it moves
    L1: c s,        L2: s sqrt(c min(c, 2^l)),
since a block of level l holds at most min(c, 2^l) of its deliveries and sum d_i^2 <= max d_i sum d_i. Levels are paid one by one, alike.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar

from velado.data.schema import Schema
from velado.data.toml_keys import toml_key
from velado.errors import ParameterError, QueryRefused
from velado.query import noise
from velado.query.accuracy import USUAL, Wish, chance, check_total, rounded_up
from velado.query.budget import MOST_TOTAL, Facts, Measure, plain
from velado.query.needs import cells_of
from velado.query.noise import MOST_SENSITIVITY, Mechanism, mixed_factor, sensitivity, standard_deviation
from velado.query.plan import QueryPlan, name_of, plan
from velado.query.running.tree_counter import MOST_RELEASES, levels_of, total_deviation, worst_deviation
from velado.query.unit import Promise, Unit
from velado.query.values import Query
from velado.settings import Setting, settings
from velado.text import Sentence, say, say_n

LAYOUT = 2


@settings
class Running:
    """How many totals are given in all, and in how many deliveries one person counts; declared, never read off the rows.

    >>> Running(52, 4).deliveries
    4
    """

    name: ClassVar[str] = say("the running total")

    releases: Annotated[
        int,
        Setting("how many totals are given in all, one after each delivery", ge=1, le=MOST_RELEASES),
    ]
    deliveries: Annotated[
        int,
        Setting(
            "the most deliveries in which one unit counts; further ones of it are left out",
            ge=1,
            le=MOST_RELEASES,
        ),
    ] = 1


@dataclass(frozen=True)
class Level:
    """The noise of one level's blocks: by how much one unit moves them, the scale and the exact charge."""

    sensitivity: int
    scale: float
    charge: Fraction


@dataclass(frozen=True, eq=False)
class RunningPlan:
    """The noise of each level and the cost of all releases together."""

    outline: QueryPlan
    running: Running
    levels: tuple[Level, ...]

    @property
    def charge(self) -> Fraction:
        """What all releases cost together; booked once, before the first delivery is read."""
        return sum((level.charge for level in self.levels), Fraction(0))

    @property
    def mechanism(self) -> Mechanism:
        """The noise that the measure is kept with."""
        return "laplace" if self.outline.measure == "epsilon" else "gaussian"

    @property
    def deviations(self) -> list[float]:
        """The standard deviation of each level's noise."""
        return [standard_deviation(self.mechanism, level.scale) for level in self.levels]

    @property
    def step(self) -> Fraction:
        """What one counted step is in the value's own numbers: 1 for rows, the grid's step for a sum."""
        grid = self.outline.parts[0].grid
        return (
            grid.step if grid is not None and self.outline.query.aggregates[0].kind == "sum" else Fraction(1)
        )

    def _factor(self, confidence: Fraction) -> float:
        # A total is a weighted sum of some of the tree's nodes, of which there are fewer than two for each release.
        return mixed_factor(self.mechanism, self._least_scale, 2 * self.running.releases, confidence)

    @property
    def flat(self) -> bool:
        """Whether deliveries are told one by one and added up: the better way where there are few."""
        return len(self.levels) == 1

    def half_width(self, release: int, confidence: Fraction = USUAL) -> float:
        """By how many steps a total at that release is off at most, with that chance."""
        return total_deviation(release, self.deviations) * self._factor(confidence)

    def widest(self, confidence: Fraction = USUAL) -> float:
        """The largest half-width of all releases, in the value's own numbers."""
        worst = worst_deviation(self.running.releases, self.deviations)
        return worst * self._factor(confidence) * float(self.step)

    @property
    def _least_scale(self) -> float:
        return min(level.scale for level in self.levels)

    def promise(self) -> Promise:
        """Who is protected."""
        unit = self.outline.unit
        promise = unit.guarantee()
        if unit.column is None:
            return replace(promise, unit=say("one record of one delivery"))
        return replace(
            promise,
            # Of all deliveries together, which the promise is about.
            most_rows=unit.rows * min(self.running.deliveries, self.running.releases),
            enforced=say_n(
                "rows beyond the most of a delivery, deliveries of a unit beyond its first {n:,}, and rows without a value of the column are left out",
                "rows beyond the most of a delivery, deliveries of a unit beyond its first {n:,}, and rows without a value of the column are left out",
                self.running.deliveries,
            ),
        )

    def sentences(self, confidence: Fraction = USUAL) -> list[Sentence]:
        """How exact totals are, and who counts how often."""
        out = [
            say_n(
                "{name}: {n:,} total is off by up to ±{width:,.6g} ({chance}).",
                "{name}: each of {n:,} totals is off by up to ±{width:,.6g} ({chance}); all of them are paid once.",
                self.running.releases,
                name=name_of(self.outline.query.aggregates[0]),
                width=self.widest(confidence),
                chance=chance(float(confidence)),
            )
        ]
        unit = self.outline.unit
        if unit.column is None:
            out.append(
                say(
                    "A record counts once. Somebody with records in several deliveries is not covered as a whole."
                )
            )
        else:
            out.append(
                say(
                    "Of all rows with one value of '{column}' at most {rows:,} count in a delivery, and those of its first {deliveries:,} "
                    "deliveries alone; the others are left out, so totals are below those of all rows.",
                    column=unit.column,
                    rows=unit.rows,
                    deliveries=self.running.deliveries,
                )
            )
        return out

    def to_dict(self, confidence: Fraction = USUAL) -> Facts:
        """Levels, charge and accuracy, as JSON has them."""
        return {
            "measure": self.outline.measure,
            "charge": str(self.charge),
            "about": float(self.charge),
            "releases": self.running.releases,
            "deliveries": self.running.deliveries,
            "mechanism": self.mechanism,
            "levels": [plain(level) for level in self.levels],
            "half_width": self.widest(confidence),
        }

    def known_by(self) -> str:
        """All that decides what is counted and how it is drawn: two series with the same text are one."""
        outline = self.outline
        form = {
            "layout": LAYOUT,
            "running": outline.query.canonical(),
            "domains": [[key.column, list(key.domain)] for key in outline.keys],
            "need": [type(outline.draws[0].need).__name__, plain(outline.draws[0].need)],
            "unit": [outline.unit.column, outline.unit.rows],
            "releases": self.running.releases,
            "deliveries": self.running.deliveries,
            "measure": outline.measure,
            "levels": [plain(level) for level in self.levels],
        }
        return json.dumps(form, ensure_ascii=False, sort_keys=True)


def plan_running(
    query: Query, schema: Schema, unit: Unit, measure: Measure, spend: Fraction, running: Running
) -> RunningPlan:
    """The plan of a running total for at most *spend* in all; QueryRefused where it is no count, sum or histogram.

    The tree is as high as is best for the declared number of releases: each level more costs a share, and saves blocks in a total.
    """
    outline = _outline(query, schema, unit, measure, running)
    heights = range(1, levels_of(running.releases) + 1)
    plans = [RunningPlan(outline, running, _levels(outline, running, spend, number)) for number in heights]
    return min(plans, key=RunningPlan.widest)


def _levels(outline: QueryPlan, running: Running, spend: Fraction, number: int) -> tuple[Level, ...]:
    """The lowest *number* levels, paid alike."""
    unit, measure = outline.unit, outline.measure
    mechanism: Mechanism = "laplace" if measure == "epsilon" else "gaussian"
    most, c = sensitivity(outline.draws[0].need, unit, cells_of(outline.keys)), running.deliveries
    levels = []
    for level in range(number):
        moved = most * c if mechanism == "laplace" else most * (math.isqrt(c * min(c, 1 << level) - 1) + 1)
        if moved > MOST_SENSITIVITY:
            raise QueryRefused(
                "One unit could move this total by more than 2^53 steps of the column's grid.",
                "Noise that hides so much cannot be drawn exactly.",
                "Declare a coarser step, narrower bounds, or fewer rows or deliveries.",
            )
        levels.append(Level(moved, *noise.calibrate(mechanism, measure, moved, spend / number)))
    return tuple(levels)


def plan_running_within(
    query: Query,
    schema: Schema,
    unit: Unit,
    measure: Measure,
    wish: Wish,
    running: Running,
    confidence: Fraction = USUAL,
) -> RunningPlan:
    """The least cost, to one part in a thousand, at which every total keeps the *wish*, a half-width in the value's own unit."""
    if wish.percent:
        raise QueryRefused(
            "The accuracy of a running total was asked for as a percentage.",
            "How large a total gets over time is declared nowhere, so there is nothing to take it of.",
            "Name the half-width in the value's own unit, for example --within 50.",
        )
    limit = float(wish.amount)

    def keeps(spend: Fraction) -> RunningPlan | None:
        try:
            made = plan_running(query, schema, unit, measure, spend, running)
        except QueryRefused:
            return None
        return made if made.widest(confidence) <= limit else None

    _outline(query, schema, unit, measure, running)
    low, high = Fraction(0), Fraction(1, 1024)
    while (best := keeps(high)) is None:
        low, high = high, high * 2
        if high > 2 * MOST_TOTAL:
            check_total(high, measure)
    while high - low > high / 1000:
        middle = rounded_up((low + high) / 2)
        if not low < middle < high:
            break
        made = keeps(middle)
        if made is None:
            low = middle
        else:
            high, best = middle, made
    check_total(best.charge, measure)
    return best


def _outline(query: Query, schema: Schema, unit: Unit, measure: Measure, running: Running) -> QueryPlan:
    if query.rollup or query.least is not None:
        raise QueryRefused(
            "A running total of a hierarchy, or with HAVING, is asked for.",
            "Totals that grow over time are kept for all keys, and for the keys alone.",
            "Write GROUP BY without ROLLUP and HAVING, and work on the totals, which is free.",
        )
    if len(query.aggregates) != 1 or query.aggregates[0].kind not in ("count", "sum", "histogram"):
        raise QueryRefused(
            "A running total is one COUNT, SUM or HISTOGRAM.",
            "Only what adds up from delivery to delivery can be kept as a total.",
            "Ask for one of the three; begin another running total for the next.",
        )
    if unit.dependence is not None:
        raise ParameterError(
            "A dependence bound was declared for a running total.",
            "It speaks of one table, not of rows that come over time.",
            "Leave it out: all rows of a group are protected together.",
        )
    if unit.column is None and running.deliveries != 1:
        raise ParameterError(
            "A record cannot count in several deliveries.",
            "Without a person or group column every row is a record of its own, in one delivery.",
            "Name who is protected (a person column in the schema, or --unit), or leave the number of deliveries out.",
        )
    if unit.column is not None and schema.columns[unit.column].kind in ("numeric", "date"):
        raise ParameterError(
            say("The unit's column '{column}' is declared as a number or a date.", column=unit.column),
            "Over several deliveries people are known by the text in it.",
            say('Declare kind = "text" in [columns.{column}].', column=toml_key(unit.column)),
        )
    return plan(query, schema, unit, measure, Fraction(1))
