"""A workload: several COUNT and HISTOGRAM questions for one charge, no question noisier, in the mean over its values, than asked one by one.

One by one, each count would get the same share of the spend. Drawn together, all are read off a few noisy tables by least squares;
the strategy is taken only if, by the computed variances, no question's mean variance is above its own at that share. Questions that
cannot be taken apart (LIKE, very long domains) keep their share and are drawn alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Literal

import numpy as np
import polars as pl

from velado.data.schema import Schema
from velado.errors import LedgerError, QueryRefused
from velado.query import noise
from velado.query.accuracy import USUAL, Wish, accuracy_sentence, check_total, rounded_up, rows_of_a_key
from velado.query.answer import Cost, bin_names, frame, key_columns
from velado.query.answer_size import MOST_NUMBERS
from velado.query.budget import Facts, Measure, plain
from velado.query.consistency import consistent_floats, ends, rounded
from velado.query.needs import ClassKey, Counts, Engine, GridCells, Rows, cells_of
from velado.query.noise import Mechanism, mixed_factor, sensitivity, standard_deviation
from velado.query.plan import QueryPlan, carry_out, name_of, plan, plan_within, wrong_shape
from velado.query.unit import Promise, Unit
from velado.query.values import Query
from velado.query.workload.classes import Floats, Item, split
from velado.query.workload.strategy import Space, Strategy, answers, estimate, find, padded
from velado.text import Sentence, say, say_n, told

DEPTHS = (1, 2, 3)
MOST_TRIES = 60
LAYOUT = 1


@dataclass(frozen=True)
class TableDraw:
    """One noisy table of counts: the columns' levels, how far one unit moves it, its scale and its exact charge."""

    levels: tuple[int, ...]
    sensitivity: int
    scale: float
    charge: Fraction


@dataclass(frozen=True, eq=False)
class WorkloadPlan:
    """What a workload draws and costs; *alone* are the questions that are drawn by themselves, by their place."""

    plans: tuple[QueryPlan, ...]
    alone: tuple[int, ...]
    measure: Measure
    unit: Unit
    keys: dict[str, ClassKey]
    items: tuple[Item, ...]
    strategy: Strategy | None
    draws: tuple[TableDraw, ...]
    charge: Fraction
    wish: tuple[Wish, Fraction] | None = None
    asked: tuple[tuple[int, Query], ...] = ()

    @property
    def questions(self) -> tuple[tuple[int, Query], ...]:
        """The questions in the order they were asked, each with the place of its plan: equal ones have one plan, and are paid once."""
        return self.asked or tuple((at, one.query) for at, one in enumerate(self.plans))

    @property
    def mechanism(self) -> Mechanism:
        """The noise that the measure is kept with."""
        return "laplace" if self.measure == "epsilon" else "gaussian"

    @property
    def weights(self) -> list[float]:
        """One over the variance of each drawn table's cells."""
        return [standard_deviation(self.mechanism, draw.scale) ** -2 for draw in self.draws]

    def deviations(self, item: Item) -> Floats:
        """The standard deviation of each answer of an item that is read off the drawn tables."""
        assert self.strategy is not None
        return np.sqrt(self.strategy.variances(item, self.weights))

    def half_widths(self, item: Item, confidence: Fraction) -> Floats:
        """By how much each answer of an item is off at most, with that chance."""
        assert self.strategy is not None
        least = min(draw.scale for draw in self.draws)
        cells = sum(self.strategy.space.cells(draw.levels) for draw in self.draws)
        return self.deviations(item) * mixed_factor(self.mechanism, least, cells, confidence)

    def widest(self, confidence: Fraction = USUAL) -> list[list[float]]:
        """For each question, and each of its aggregates, the largest half-width of its values."""
        out = [[0.0] * len(one.query.aggregates) for one in self.plans]
        for at in self.alone:
            for place, value in enumerate(self.plans[at].to_dict(confidence)["values"]):
                out[at][place] = value.get("half_width", math.inf)
        for item in self.items:
            out[item.question][item.aggregate] = float(self.half_widths(item, confidence).max())
        return out

    def sentences(self, confidence: Fraction = USUAL) -> list[Sentence]:
        """By how much the values of each question are off at most, and how they are drawn."""
        out = []
        widest = self.widest(confidence)
        for number, (at, query) in enumerate(self.questions, 1):
            for aggregate, width in zip(query.aggregates, widest[at], strict=True):
                said = accuracy_sentence(
                    name_of(aggregate), {"half_width": width, "mostly_noise": False}, confidence
                )
                out.append(say("Question {number}, {sentence}", number=number, sentence=said))
        if any(math.prod(item.shape) > 1 for item in self.items) or any(
            "lowered" in value for at in self.alone for value in self.plans[at].to_dict(confidence)["values"]
        ):
            out.append(
                say(
                    "That is the noise. Numbers below 0 are set to 0; what that adds is taken, as far as it goes, from the others of the question that are smaller "
                    "than twice their half-width (95%), at most that half-width from each. These may be off by so much more; their intervals allow for it."
                )
            )
        single = sum(at in self.alone for at, _ in self.questions)
        together = len(self.questions) - single
        if together:
            out.append(
                say_n(
                    "{n} question is read off {tables} by least squares.",
                    "{n} questions are read off {tables} by least squares; before they are rounded and set to 0 where below, their answers agree.",
                    together,
                    tables=say_n("{n} noisy table", "{n} noisy tables", len(self.draws)),
                )
            )
        if single:
            out.append(say_n("{n} question is drawn alone.", "{n} questions are drawn one by one.", single))
        return out

    def to_dict(self, confidence: Fraction = USUAL) -> Facts:
        """Charge, tables and the largest half-width of each value, as JSON has it."""
        columns = () if self.strategy is None else self.strategy.space.columns
        widest = self.widest(confidence)
        return {
            "measure": self.measure,
            "charge": str(self.charge),
            "about": float(self.charge),
            "within": None if self.wish is None else str(self.wish[0]),
            "tables": [
                {
                    "columns": [name for name, level in zip(columns, draw.levels, strict=True) if level],
                    "mechanism": self.mechanism,
                    "sensitivity": draw.sensitivity,
                    "scale": draw.scale,
                    "charge": str(draw.charge),
                }
                for draw in self.draws
            ],
            "alone": [place for place, (at, _) in enumerate(self.questions) if at in self.alone],
            "questions": [
                {"query": json.loads(query.canonical()), "half_widths": widest[at]}
                for at, query in self.questions
            ],
        }

    def known_by(self) -> Facts:
        """All that decides how the numbers are drawn."""
        return {
            "layout": LAYOUT,
            "workload": [one.query.canonical() for one in self.plans],
            "domains": [[[key.column, list(key.domain)] for key in one.keys] for one in self.plans],
            "unit": [self.unit.column, self.unit.rows, str(self.unit.dependence)],
            "measure": self.measure,
            "keys": [plain(key) for key in self.keys.values()],
            "chains": [] if self.strategy is None else [list(chain) for chain in self.strategy.space.chains],
            "tables": [plain(draw) for draw in self.draws],
            "alone": [[plain(draw) for draw in self.plans[at].draws] for at in self.alone],
        }


def plan_workload(
    queries: Sequence[Query], schema: Schema, unit: Unit, measure: Measure, spend: Fraction
) -> WorkloadPlan:
    """The plan of a workload for at most *spend*; QueryRefused where a question is no count or the schema does not allow it."""
    queries, asked = _once(queries)
    outlines = _outlines(queries, schema, unit, measure)
    found = _strategy(outlines, schema, measure)
    number = sum(len(one.query.aggregates) for one in outlines)
    plans = list(outlines)
    for at in _alone(outlines, found):
        share = spend * len(outlines[at].query.aggregates) / number
        plans[at] = plan(outlines[at].query, schema, unit, measure, share)
    made = _drawn(plans, found, spend * (0 if found is None else len(found[1])) / number)
    return replace(made, asked=asked)


def plan_workload_within(
    queries: Sequence[Query],
    schema: Schema,
    unit: Unit,
    measure: Measure,
    wish: Wish,
    confidence: Fraction = USUAL,
    *,
    least: Fraction = Fraction(0),
) -> WorkloadPlan:
    """The cheaper of two plans whose every value keeps the *wish*: with the strategy for a spend, or one by one. Never dearer than that.

    Questions that are alone pay for their own wish. Another strategy, made for the wish, might cost less. Where both are less than
    the *least* a question spends, all shares grow alike.
    """
    queries, every = _once(queries)
    outlines = _outlines(queries, schema, unit, measure)
    found = _strategy(outlines, schema, measure)
    asked = (wish, confidence)
    single = [plan_within(one.query, schema, unit, measure, wish, confidence) for one in outlines]
    made = _drawn(single, None, Fraction(0), asked)
    part = Fraction(0)
    if found is not None:
        part = _least_part(single, found, _limits(outlines, schema, wish), asked, made.charge)
        together = None if part == 0 else _drawn(single, found, part, asked)
        if together is not None and together.charge < made.charge:
            made = together
    if made.charge < least:
        more = least / made.charge
        for at in made.alone:
            own = single[at].charge * more
            single[at] = plan_within(outlines[at].query, schema, unit, measure, wish, confidence, least=own)
        made = _drawn(single, found if made.draws else None, part * more, asked)
    check_total(made.charge, measure)
    return replace(made, asked=every)


def _once(queries: Sequence[Query]) -> tuple[list[Query], tuple[tuple[int, Query], ...]]:
    """The different questions, and for each that was asked which of them it is: by what is counted, whatever it is called."""
    known: dict[str, int] = {}
    first: list[Query] = []
    asked = []
    for query in queries:
        at = known.setdefault(query.canonical(), len(first))
        if at == len(first):
            first.append(query)
        asked.append((at, query))
    return first, tuple(asked)


def _limits(outlines: Sequence[QueryPlan], schema: Schema, wish: Wish) -> list[float]:
    """The half-width that the wish means for each question."""
    keys = [prod(len(key.domain) for key in one.keys) for one in outlines]
    return [float(wish.in_units(rows_of_a_key(schema.dataset.rows, number))) for number in keys]


def _least_part(
    plans: Sequence[QueryPlan],
    found: _Found,
    limits: Sequence[float],
    wish: tuple[Wish, Fraction],
    most: Fraction,
) -> Fraction:
    """The least spend of the strategy's tables with which their answers keep the limits; 0 where that is more than *most*."""

    def keeps(part: Fraction) -> bool:
        try:
            made = _drawn(plans, found, part, wish)
        except QueryRefused:
            return False
        return all(
            float(made.half_widths(item, wish[1]).max()) <= limits[item.question] for item in made.items
        )

    low, high = Fraction(0), rounded_up(most)
    if not keeps(high):
        return Fraction(0)
    while high - low > high / 1000:
        middle = rounded_up((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def _outlines(
    queries: Sequence[Query], schema: Schema, unit: Unit, measure: Measure
) -> tuple[QueryPlan, ...]:
    """Each question's keys and needs, checked as a question of its own; counts alone are taken."""
    if not queries:
        raise QueryRefused(
            "The workload holds no question.",
            "There is nothing to answer.",
            "Write one SELECT COUNT or HISTOGRAM after another, each ended by a semicolon.",
        )
    for number, query in enumerate(queries, 1):
        if query.rollup or query.least is not None:
            raise QueryRefused(
                say("Question {number} of the workload has ROLLUP or HAVING.", number=number),
                "Its noise is drawn in a way of its own.",
                "Ask it by itself, outside the workload.",
            )
        if any(aggregate.kind not in ("count", "histogram") for aggregate in query.aggregates):
            raise QueryRefused(
                say("Question {number} of the workload asks for more than counts.", number=number),
                "Only COUNT and HISTOGRAM can be read off common tables.",
                "Ask it by itself, outside the workload.",
            )
    outlines = tuple(plan(query, schema, unit, measure, Fraction(1)) for query in queries)
    numbers = sum(cells_of(one.keys) * len(one.draws) for one in outlines)
    if numbers > MOST_NUMBERS:
        raise QueryRefused(
            "The questions of this workload have too many values together.",
            say("One answer draws and keeps at most {most_numbers:,}.", most_numbers=MOST_NUMBERS),
            "Ask for fewer things at once, or group by fewer keys.",
        )
    return outlines


_Found = tuple[dict[str, ClassKey], tuple[Item, ...], Strategy] | None


def _strategy(outlines: tuple[QueryPlan, ...], schema: Schema, measure: Measure) -> _Found:
    """The best strategy found, if no question is less exact with it than one by one; from public things alone.

    All questions together are tried first; where that would make one less exact, questions join one after another, those about few
    columns first, and one that does not gain by it stays alone.
    """
    _, items = split(outlines, schema)
    apart = list(dict.fromkeys(item.question for item in items))
    every = _best(apart, outlines, schema, measure)
    if every is not None or len(apart) < 2:
        return None if every is None else every[1]
    columns = {item.question: len(item.columns) for item in items}
    order = sorted(apart, key=lambda at: (columns[at], at))
    chosen, held = [order[0]], None
    for at in order[1 : MOST_TRIES + 1]:
        tried = _best([*chosen, at], outlines, schema, measure)
        # Alone, a question has an error of 1 for each of its counts.
        more = len(outlines[at].query.aggregates)
        before = sum(len(outlines[one].query.aggregates) for one in chosen) if held is None else held[0]
        if tried is not None and tried[0] < before + more:
            chosen, held = sorted([*chosen, at]), tried
        elif held is None:
            chosen = [at]
    return None if held is None else held[1]


def _best(
    questions: Sequence[int], outlines: tuple[QueryPlan, ...], schema: Schema, measure: Measure
) -> tuple[float, tuple[dict[str, ClassKey], tuple[Item, ...], Strategy]] | None:
    """The strategy of some questions with the least sum of errors, as parts of those one by one; None where one would be above 1."""
    keys, found = split([outlines[at] for at in questions], schema)
    items = [replace(item, question=questions[item.question]) for item in found]
    if len(items) < 2 or {item.question for item in items} != set(questions):
        return None
    mechanism: Mechanism = "laplace" if measure == "epsilon" else "gaussian"
    # Together they have as many shares as there are items; one alone has one of them.
    power = 2 if mechanism == "laplace" else 1
    targets = np.full(len(items), float(len(items)) ** power)
    best: tuple[float, Strategy] | None = None
    for depth in DEPTHS:
        space = Space.of(keys, depth)
        if depth > 1 and space.chains == Space.of(keys, depth - 1).chains:
            continue
        designed = find(items, space, mechanism, targets)
        if designed is None:
            continue
        strategy, worst = designed
        numbers = sum(space.cells(table) for table in strategy.tables)
        # A margin for what rounding of shares and scales takes away.
        if worst > 1 - 1e-4 or numbers > MOST_NUMBERS:
            continue
        weights = [share**power for share in strategy.shares]
        error = sum(float(strategy.variances(item, weights).mean()) for item in items) / float(targets[0])
        if best is None or error < best[0]:
            best = (error, strategy)
    return None if best is None else (best[0], (keys, tuple(items), best[1]))


def _alone(outlines: Sequence[QueryPlan], found: _Found) -> list[int]:
    together = set() if found is None else {item.question for item in found[1]}
    return [at for at in range(len(outlines)) if at not in together]


def _drawn(
    plans: Sequence[QueryPlan], found: _Found, part: Fraction, wish: tuple[Wish, Fraction] | None = None
) -> WorkloadPlan:
    """Scales and charges where the strategy's tables have *part* together, and each question that is alone its own plan."""
    keys, items, strategy = ({}, (), None) if found is None else found
    measure, unit = plans[0].measure, plans[0].unit
    mechanism: Mechanism = "laplace" if measure == "epsilon" else "gaussian"
    draws = []
    if strategy is not None:
        for levels, share in zip(strategy.tables, strategy.shares, strict=True):
            most = sensitivity(Rows(), unit, strategy.space.cells(levels))
            # Rounded down, so that the shares never make more than the whole.
            asked = part * Fraction(math.floor(share * 10**9), 10**9)
            scale, charge = noise.calibrate(mechanism, measure, most, asked)
            draws.append(TableDraw(levels, most, scale, charge))
    alone = _alone(plans, found)
    charge = sum((draw.charge for draw in draws), Fraction(0))
    charge += sum((plans[at].charge for at in alone), Fraction(0))
    return WorkloadPlan(
        plans=tuple(plans),
        alone=tuple(alone),
        measure=measure,
        unit=unit,
        keys=keys,
        items=items,
        strategy=strategy,
        draws=tuple(draws),
        charge=charge,
        wish=wish,
    )


def draw_workload(made: WorkloadPlan, engine: Engine, seconds: float | None = None) -> list[Counts]:
    """Noisy numbers: the strategy's tables, then the draws of each question that is alone. The exact ones stay here."""
    name: Literal["laplace", "gaussian"] = "laplace" if made.mechanism == "laplace" else "gaussian"
    exact = counted(made, engine, seconds)
    out = [
        noise.add(name, made.measure, draw.scale, one) for draw, one in zip(made.draws, exact, strict=True)
    ]
    for at in made.alone:
        one = made.plans[at]
        out += carry_out(one, engine.tally(one.query.where, one.keys, one.needs, seconds))
    return out


def counted(made: WorkloadPlan, engine: Engine, seconds: float | None = None) -> list[Counts]:
    """The exact counts of the strategy's tables, to which noise is added; one statement for each set of columns."""
    out: list[Counts] = []
    known: dict[tuple[str, ...], Counts] = {}
    for draw in made.draws:
        assert made.strategy is not None
        space = made.strategy.space
        names = tuple(name for name, level in zip(space.columns, draw.levels, strict=True) if level)
        if names not in known:
            keys = tuple(made.keys[name] for name in names)
            (tally,) = engine.tally(None, keys, (Rows(),), seconds)
            if tally.shape != (cells_of(keys),) or tally.dtype != np.int64:
                raise wrong_shape()
            known[names] = tally.reshape([key.size for key in keys])
        exact = known[names]
        for axis, name in enumerate(names):
            chain = space.chain(name)
            exact = _summed(exact, axis, chain[-1], chain[draw.levels[space.columns.index(name)]])
        out.append(
            exact.reshape([chain[level] for chain, level in zip(space.chains, draw.levels, strict=True)])
        )
    return out


def _summed(counts: Counts, axis: int, size: int, cells: int) -> Counts:
    """Padded to *size* along an axis, and added up to *cells* equal blocks."""
    whole = padded(counts, axis, size)  # type: ignore[arg-type]
    shape = whole.shape
    out: Counts = whole.reshape(*shape[:axis], cells, size // cells, *shape[axis + 1 :]).sum(axis=axis + 1)
    return out


def frames(made: WorkloadPlan, drawn: Sequence[Counts], confidence: Fraction) -> list[pl.DataFrame]:
    """One frame per question: keys, then value, low and high; from drawn numbers alone."""
    tables = [array.astype(np.float64) for array in drawn[: len(made.draws)]]
    left = list(drawn[len(made.draws) :])
    out: dict[int, pl.DataFrame] = {}
    columns: dict[int, dict[str, pl.Series]] = {}
    for at in made.alone:
        number = len(made.plans[at].draws)
        out[at], left = frame(made.plans[at], tuple(left[:number]), confidence), left[number:]
    known: dict[tuple[str, ...], Floats] = {}
    for item in made.items:
        assert made.strategy is not None
        if item.columns not in known:
            known[item.columns] = estimate(made.strategy, made.weights, tables, item.columns)
        values = answers(item, known[item.columns], made.strategy.space)
        one = made.plans[item.question]
        low, high = ends(values.ravel(), made.half_widths(item, confidence).ravel())
        name = name_of(one.query.aggregates[item.aggregate])
        shown = _possible(values.ravel(), made.half_widths(item, USUAL).ravel())
        found = columns.setdefault(item.question, _keys(one))
        found[name] = pl.Series(shown)
        found[f"{name}_low"] = pl.Series(np.minimum(low, shown))
        found[f"{name}_high"] = pl.Series(np.maximum(high, shown))
    out.update({at: pl.DataFrame(found) for at, found in columns.items()})
    return [_called(out[at], made.plans[at].query, query) for at, query in made.questions]


def _possible(values: Floats, widths: Floats) -> Counts:
    """Whole numbers of at least 0: small ones keep their sum, as far as it goes, as those of a question that is asked alone do."""
    if values.size == 0 or float(values.min()) >= 0:
        return np.rint(values).astype(np.int64)
    found = consistent_floats(values, widths)
    total = np.array([round(float(found.sum()))], dtype=np.int64)
    return rounded(found, np.zeros(values.size, dtype=np.int64), total)


def _called(found: pl.DataFrame, drawn: Query, asked: Query) -> pl.DataFrame:
    """The answer under the names that were asked for, where an equal question was drawn under others."""
    names: dict[str, str] = {}
    for one, other in zip(drawn.aggregates, asked.aggregates, strict=True):
        names |= {name_of(one) + end: name_of(other) + end for end in ("", "_low", "_high", "_bin")}
    return found.rename({old: new for old, new in names.items() if old in found.columns and old != new})


def _keys(one: QueryPlan) -> dict[str, pl.Series]:
    first = one.query.aggregates[0]
    need = one.draws[one.parts[0].draws[0]].need
    bins = bin_names(need) if isinstance(need, GridCells) else ()
    columns = {
        key.column: series
        for key, series in zip(one.keys, key_columns(one.keys, max(1, len(bins))), strict=True)
    }
    if bins:
        columns[f"{name_of(first)}_bin"] = pl.Series(list(bins) * cells_of(one.keys), dtype=pl.String)
    return columns


def written(drawn: Sequence[Counts], analyst: str) -> str:
    """The drawn whole numbers as the ledger keeps them."""
    arrays = [{"shape": list(array.shape), "numbers": array.ravel().tolist()} for array in drawn]
    return json.dumps({"layout": LAYOUT, "analyst": analyst, "drawn": arrays}, separators=(",", ":"))


def read(text: str) -> list[Counts]:
    """The numbers that `written` wrote."""
    try:
        return [
            np.array(one["numbers"], dtype=np.int64).reshape(one["shape"])
            for one in json.loads(text)["drawn"]
        ]
    except (ValueError, KeyError, TypeError, OverflowError):
        raise LedgerError(
            "The ledger holds an answer to this question that cannot be read.",
            "Drawing another would tell more than was paid for.",
            "Check the ledger with `velado ledger verify`, or ask with another spend.",
        ) from None


@dataclass(frozen=True, kw_only=True)
class WorkloadAnswer:
    """The answers of a workload, one frame per question in the order they were asked; everything written may be shown to the analyst.

    *entry* is the name by which the ledger knows it: it is made from the exact rows, so it is the owner's alone and in no written form.
    """

    frames: tuple[pl.DataFrame, ...]
    guarantee: Promise
    cost: Cost
    plan: Facts
    notes: tuple[str, ...]
    stored: bool
    receipt: str
    entry: str = field(default="", repr=False)

    def to_dict(self) -> Facts:
        """Everything as JSON has it."""
        return {
            "stored": self.stored,
            "receipt": self.receipt,
            "guarantee": self.guarantee.to_dict(),
            "cost": self.cost.to_dict(),
            "plan": self.plan,
            "notes": [told(note) for note in self.notes],
            "answers": [
                {"columns": list(one.columns), "rows": plain(list(one.iter_rows()))} for one in self.frames
            ],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)
