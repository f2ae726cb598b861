"""Answer: the numbers, what they promise, what they cost, and how they were made.

Intervals say where the exact answer lies with at least the stated confidence, cell by cell: the answer over the rows
that count (a unit's rows beyond the most are out) and on the declared grid. They cover the noise alone, not sampling.

What cannot be is not said: counts, and sums of numbers on one side of 0, are moved to possible ones (`consistency`), and their intervals are cut at 0. A number drawn on the wrong side of 0 has the interval of a drawn
0: wider than what is left of its own, so it holds the exact value as often. An average is a ratio; where noise leaves the whole
declared range possible, it is unknown (null), and the answer says so. All of that is done to drawn numbers and costs nothing.
A histogram has one line per key and bin, with the bin in a column of its own.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.frames import to_frame
from velado.errors import ParameterError
from velado.query.accuracy import USUAL, above_sentence, average_widths, chance, size
from velado.query.budget import Facts, Measure, measure_word, plain, short
from velado.query.consistency import consistent, ends
from velado.query.draws import Draw, quantile_sentence
from velado.query.needs import Counts, Grid, GridCells, Keys, Tallies, cells_of
from velado.query.noise import half_width, standard_deviation
from velado.query.plan import Part, PlanFacts, QueryPlan, name_of, one_sided
from velado.query.unit import Promise
from velado.query.values import Aggregate
from velado.text import Sentence, say, say_n, told

FORMAT = 1
"""The layout of `Answer.to_dict`; a reader refuses any other."""

_TYPES: Facts = {
    "text": pl.String,
    "whole": pl.Int64,
    "number": pl.Float64,
    "date": pl.Date,
    "yes/no": pl.Boolean,
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an answer took of the budget, was allowed to take, and what is left of how much; all in one measure.

    >>> Cost(measure="epsilon", spent=Fraction(0), asked=Fraction(1, 2), left=Fraction(1), budget=Fraction(1)).spent
    Fraction(0, 1)
    """

    measure: Measure
    spent: Fraction
    asked: Fraction
    left: Fraction
    budget: Fraction

    def to_dict(self) -> Facts:
        """Exact fractions as text, with floats beside them."""
        about = {name: float(getattr(self, name)) for name in ("spent", "left", "budget")}
        return {**plain(self), "about": about}


@dataclass(frozen=True, kw_only=True)
class Making:
    """How an answer was made: the canonical query, the names of values and keys, the plan, the table and its ledger.

    >>> making = Making(query="{}", values=("n",), keys=(), plan={}, extremes="quantile", confidence=0.95, table={}, ledger={})
    >>> making.values
    ('n',)
    """

    query: str
    values: tuple[str, ...]
    keys: tuple[str, ...]
    plan: PlanFacts
    extremes: str
    confidence: float
    table: Facts
    ledger: Facts


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answered question. Everything in it may be shown to the analyst who asked.

    *frame* has one row per key (or one row in all): the keys, then for each aggregate its value (null where it is unknown
    at this spend) and the interval `_low` .. `_high` (null where there is none: quantiles, MIN and MAX). `how.plan["values"]` says how each is to be
    read. *guarantee* is the promise, *cost* what it took of the budget, *how* the query, the mechanisms
    and their scales. *question* is a fingerprint of what was asked, *receipt* the head of the ledger's chain at its entry,
    and *stored* tells that these numbers were drawn before and cost nothing now. *entry* is the name by which the ledger
    knows the question on this content of the table; it is made from the exact rows, so it is the owner's alone and no
    written form of the answer has it.

    >>> from velado.query.unit import Unit
    >>> cost = Cost(measure="epsilon", spent=Fraction(0), asked=Fraction(1), left=Fraction(1), budget=Fraction(1))
    >>> how = Making(query="", values=("n",), keys=(), plan={}, extremes="bound", confidence=0.95, table={}, ledger={})
    >>> frame = pl.DataFrame({"n": [7], "n_low": [4], "n_high": [10]})
    >>> answer = Answer(frame=frame, guarantee=Unit().guarantee(), cost=cost, how=how, question="", stored=True, receipt="")
    >>> answer.value, answer.interval(), Answer.from_dict(json.loads(answer.to_json())).value
    (7, (4, 10), 7)
    """

    frame: pl.DataFrame
    guarantee: Promise
    cost: Cost
    how: Making
    question: str
    stored: bool
    receipt: str
    entry: str = field(default="", repr=False, compare=False)

    @property
    def value(self) -> Any:
        """The number itself, where one number was asked for."""
        return self.frame.item(0, self._only())

    def interval(self) -> tuple[Any, Any]:
        """The interval around a single number, at the confidence that was asked for."""
        name = self._only()
        return self.frame.item(0, f"{name}_low"), self.frame.item(0, f"{name}_high")

    def _only(self) -> str:
        names = [name for name in self.how.values if name in self.frame.columns]
        if self.frame.height != 1 or len(names) != 1:
            raise ParameterError(
                say_n(
                    "The answer has {n} row, with {values} in each.",
                    "The answer has {n} rows, with {values} in each.",
                    self.frame.height,
                    values=say_n("{n} value", "{n} values", len(names)),
                ),
                "Only an answer of one row and one value is a single number.",
                "Read its frame instead.",
            )
        return names[0]

    def to(self, like: str = "polars") -> Any:
        """The frame as "polars", "pandas" or "arrow"."""
        return to_frame(self.frame, like)

    def to_dict(self) -> Facts:
        """Everything as JSON has it: fractions as text, floats to their last bit, missing as null."""
        return {
            "format": FORMAT,
            "question": self.question,
            "stored": self.stored,
            "receipt": self.receipt,
            "guarantee": self.guarantee.to_dict(),
            "cost": self.cost.to_dict(),
            "how": plain(self.how),
            "columns": [{"name": name, "type": _type_of(dtype)} for name, dtype in self.frame.schema.items()],
            "rows": plain(list(self.frame.iter_rows())),
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, document: Facts) -> Answer:
        """The answer that `to_dict` wrote, equal in every number."""
        try:
            if document["format"] != FORMAT:
                raise KeyError("format")
            cost = {name: value for name, value in document["cost"].items() if name != "about"}
            amounts = {name: Fraction(value) for name, value in cost.items() if name != "measure"}
            how = document["how"]
            return cls(
                frame=_frame_of(document["columns"], document["rows"]),
                guarantee=Promise.from_dict(document["guarantee"]),
                cost=Cost(measure=cost["measure"], **amounts),
                how=Making(**{**how, "values": tuple(how["values"]), "keys": tuple(how["keys"])}),
                question=document["question"],
                stored=document["stored"],
                receipt=document["receipt"],
            )
        except (LookupError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
            raise ParameterError(
                "This is not an answer as this version of velado writes it.",
                "Its parts are missing or of another layout.",
                "Read a file that `velado query --json` or `Answer.to_json` wrote.",
            ) from None

    def sentences(self) -> list[Sentence]:
        """How the numbers are to be read, the promise, the cost and what is left, as a person reads them."""
        cost, promise, measure = self.cost, self.guarantee, self.cost.measure
        out = [*_readings(self.how, promise), *self.notes()]
        kind = say("guaranteed") if promise.type == "guaranteed" else say("guaranteed-if")
        about = {"definition": say(promise.definition or ""), "unit": promise.unit}
        out.append(say("Promise ({kind}): {definition} for {unit}.", kind=kind, **about))
        if promise.implies is not None:
            said = {"delta": promise.implies["delta"], "epsilon": short(promise.implies["epsilon"])}
            out.append(say("At delta {delta:g} this answer alone implies an epsilon of {epsilon}.", **said))
        left = {"measure": measure_word(measure), "left": short(cost.left)}
        if self.stored:
            out.append(
                say(
                    "Cost: nothing; asked before, these are the same numbers. Left: {measure} {left}.", **left
                )
            )
        else:
            left |= {"spent": short(cost.spent), "budget": short(cost.budget)}
            out.append(say("Cost: {measure} {spent}. Left: {measure} {left} of {budget}.", **left))
        out.append(say("Covers {covers}.", covers=say(promise.covers or "")))
        return out + [say("Warning: {text}", text=text) for text in promise.warnings or ()]

    def notes(self) -> list[Sentence]:
        """What was made of the drawn numbers, which values stay unknown, and which are mostly noise."""
        numbers = [value for value in self.how.plan.get("values", ()) if value["answered_as"] == "number"]
        out: list[Sentence] = []
        for value in numbers:
            above = above_sentence(value, self.how.plan["cells"], self.how.confidence)
            out += [] if above is None else [above]
        cut = [value for value in numbers if "kept" in value and self._touches_zero(value["name"])]
        if cut:
            out.append(
                say(
                    "Numbers that noise moved to the wrong side of 0 were set to 0, and intervals cut there; that costs nothing."
                )
            )
        out += [
            say(
                "{name}: what that added was taken, as far as it went, from the others within ±{large} of 0, at most {half} from each. "
                "All others are as drawn.",
                name=value["name"],
                half=size(value["lowered"]),
                large=size(2 * value["lowered"]),
            )
            for value in cut
            if value["kept"] == "sum" and "lowered" in value
        ]
        if any(value["kept"] == "tree" for value in cut):
            out.append(
                say(
                    "What was lifted to 0 was taken from its neighbours, small ones first, so that children still add up."
                )
            )
        for value in self.how.plan.get("values", ()):
            nobody = self.frame[value["name"]].null_count() if value["answered_as"] == "quantile" else 0
            if nobody:
                out.append(
                    say_n(
                        "{name}: {n:,} value is unknown at this spend: by the count beside it there may be nobody.",
                        "{name}: {n:,} values are unknown at this spend: by the counts beside them there may be nobody.",
                        nobody,
                        name=value["name"],
                    )
                )
            if value["answered_as"] == "quantile" and value["mostly_noise"]:
                out.append(
                    say(
                        "{name}: it may miss its rank by more than half of the rows that the declared size gives each key, so it tells little.",
                        name=value["name"],
                    )
                )
        for value in numbers:
            drawn, name = self.frame[value["name"]], value["name"]
            unknown = drawn.null_count()
            if unknown:
                out.append(
                    say_n(
                        "{name}: {n:,} value is unknown at this spend: what was drawn lies beyond the declared bounds, or all between them is possible. "
                        "Its interval holds. Spend more, or ask about more rows at once.",
                        "{name}: {n:,} values are unknown at this spend: what was drawn lies beyond the declared bounds, or all between them is possible. "
                        "Their intervals hold. Spend more, or ask about more rows at once.",
                        unknown,
                        name=name,
                    )
                )
            at_bound = 0
            if value["asked"] == "avg":
                low, high = (self.frame[f"{name}_{end}"] for end in ("low", "high"))
                at_bound = int((((drawn == low) | (drawn == high)) & (low < high)).sum())
            if at_bound:
                out.append(
                    say_n(
                        "{name}: {n:,} value stands at a declared bound, because what was drawn lies there or beyond it.",
                        "{name}: {n:,} values stand at a declared bound, because what was drawn lies there or beyond it.",
                        at_bound,
                        name=name,
                    )
                )
            half = value.get("half_width")
            noisy = 0 if half is None or value["asked"] == "avg" else int((drawn.abs() < half).sum())
            if value.get("kept") == "tree":
                # The levels are not equally exact, so each line is held against its own interval.
                noisy = int((self.frame[f"{name}_low"] == 0).sum())
            if noisy:
                out.append(
                    say_n(
                        "{name}: {n:,} value of {all:,} is smaller than the noise may be, so it tells little.",
                        "{name}: {n:,} values of {all:,} are smaller than the noise may be, so they tell little.",
                        noisy,
                        name=name,
                        all=self.frame.height,
                    )
                )
        return out

    def _touches_zero(self, name: str) -> bool:
        """Whether a value or an end of its interval stands at 0, where it may have been put."""
        return any(bool((self.frame[f"{name}{end}"] == 0).any()) for end in ("", "_low", "_high"))

    def __str__(self) -> str:
        return "\n".join([_table_text(self.frame), *map(told, self.sentences())])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.frame.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.frame.iter_rows()
        )
        notes = "".join(f"<li>{html.escape(told(text))}</li>" for text in self.sentences())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{notes}</ul>"


def _readings(how: Making, promise: Promise) -> list[Sentence]:
    """What each value of an answer is, and what its interval or its rank says; nothing is said that is not so."""
    values = how.plan.get("values", ())
    out = []
    for value in values:
        name, column, asked = value["name"], value["column"], value["asked"]
        if value["answered_as"] == "bound":
            out.append(
                say(
                    "{name} is the declared bound of '{column}'; no rows were looked at.",
                    name=name,
                    column=column,
                )
            )
        elif value["answered_as"] == "quantile":
            out.append(
                quantile_sentence(name, asked, value["level"], value["rank_error"], value["candidates"])
            )
    # Of keys above a threshold the notes say it, since which of them are shown depends on the noise.
    if any(value["answered_as"] == "number" and "least" not in value for value in values):
        kept = say("every row") if promise.mode == "strict" else say("the rows that count")
        if promise.most_rows is not None:
            kept = say("{kept} (at most {rows} per unit)", kept=kept, rows=promise.most_rows)
        out.append(
            say(
                "Each interval holds the exact value over {kept}, with numbers moved to their declared bounds and "
                "steps, with a chance of at least {chance}. It is about the noise alone.",
                kept=kept,
                chance=chance(how.confidence),
            )
        )
    return out


def _cell_text(cell: Any) -> str:
    """One cell of an answer as text; a missing key is the cell of missing and undeclared values."""
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _table_text(frame: pl.DataFrame) -> str:
    """A frame as lines of aligned columns."""
    lines = [list(frame.columns)] + [[_cell_text(cell) for cell in row] for row in frame.iter_rows()]
    widths = [max(len(line[at]) for line in lines) for at in range(frame.width)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def _frame_of(columns: list[Facts], rows: list[list[Any]]) -> pl.DataFrame:
    types = {column["name"]: _TYPES[column["type"]] for column in columns}
    read = pl.DataFrame(
        rows, {name: pl.String if type_ == pl.Date else type_ for name, type_ in types.items()}, orient="row"
    )
    return read.with_columns(pl.col(name).str.to_date() for name, type_ in types.items() if type_ == pl.Date)


def _type_of(dtype: Any) -> str:
    if dtype.is_integer():
        return "whole"
    if dtype.is_float():
        return "number"
    return {pl.Date: "date", pl.Boolean: "yes/no"}.get(dtype.base_type(), "text")


# From noisy whole numbers to a data frame of values and intervals: nothing here sees a row or an exact count.

Floats = NDArray[np.float64]
Numbers = Floats | Counts | pl.Series
_LIMIT = (1 << 63) - 1


def frame(plan: QueryPlan, drawn: Tallies, confidence: Fraction) -> pl.DataFrame:
    """Key columns (null in the last cell of each), then value, low and high of every aggregate. O(cells).

    >>> from velado.data.schema import Schema
    >>> from velado.query.plan import plan
    >>> from velado.query.unit import Unit
    >>> from velado.query.values import Query
    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(1))
    >>> frame(made, (np.array([7]),), Fraction(19, 20)).row(0)
    (7, 4, 10)
    >>> frame(made, (np.array([-9]),), Fraction(19, 20)).row(0)
    (0, 0, 3)
    """
    if plan.query.least is not None:
        return _frame_above(plan, drawn, confidence)
    if plan.tree is not None:
        return _tree_frame(plan, drawn, confidence)
    lines = cells_of(plan.keys)
    columns: dict[str, pl.Series] = {}
    first = plan.query.aggregates[0]
    bins: tuple[str, ...] = ()
    if first.kind == "histogram":
        need = plan.draws[plan.parts[0].draws[0]].need
        assert isinstance(need, GridCells)
        bins = bin_names(need)
    for key, series in zip(plan.keys, key_columns(plan.keys, max(1, len(bins))), strict=True):
        columns[key.column] = series
    if bins:
        columns[f"{name_of(first)}_bin"] = pl.Series(list(bins) * lines, dtype=pl.String)
    for aggregate, part in zip(plan.query.aggregates, plan.parts, strict=True):
        value, low, high = _estimate(aggregate, part, plan.draws, drawn, confidence)
        name = name_of(aggregate)
        shown = pl.Series(value).new_from_index(0, lines) if part.bound is not None else pl.Series(value)
        columns[name] = shown if part.bound is not None else _unless_of_nobody(plan, drawn, aggregate, shown)
        for end, limit in (("low", low), ("high", high)):
            columns[f"{name}_{end}"] = (
                pl.Series([None] * lines, dtype=pl.Float64) if limit is None else pl.Series(limit)
            )
    return pl.DataFrame(columns)


def _unless_of_nobody(plan: QueryPlan, drawn: Tallies, aggregate: Aggregate, values: pl.Series) -> pl.Series:
    """A quantile, least or greatest value, null where the line's own noisy count may be that of nobody: it would look like any other.

    It rests on numbers that were drawn for the same answer alone, and so costs nothing.
    """
    if aggregate.kind not in ("quantile", "min", "max"):
        return values
    for other, part in zip(plan.query.aggregates, plan.parts, strict=True):
        if other.kind == "count" and other.column in (None, aggregate.column):
            draw = plan.draws[part.draws[0]]
            few = drawn[part.draws[0]] <= half_width(draw.mechanism, draw.scale, USUAL)
            values = values.set(pl.Series(few), None)
    return values


def _frame_above(plan: QueryPlan, drawn: Tallies, confidence: Fraction) -> pl.DataFrame:
    """One line for each key whose noisy count reached the threshold, in the order of the domain."""
    places, counts = drawn
    name, (draw,) = name_of(plan.query.aggregates[0]), plan.draws
    # None is below 0, so none is lifted.
    low, high = _possible(counts, half_width(draw.mechanism, draw.scale, confidence), 0, None)[1:]
    left, columns = places, {}
    for key in reversed(plan.keys):
        left, code = np.divmod(left, key.size)
        columns[key.column] = pl.Series([*key.domain, None], dtype=pl.String).gather(code)
    ordered = {key.column: columns[key.column] for key in plan.keys}
    return pl.DataFrame({**ordered, name: counts, f"{name}_low": low, f"{name}_high": high})


def _tree_frame(plan: QueryPlan, drawn: Tallies, confidence: Fraction) -> pl.DataFrame:
    """One line for each node of a hierarchy, each parent before its children: least squares, then possible whole numbers that add up.

    An interval is that of the least-squares number, cut at 0, and widened where the possible one lies outside.
    """
    assert plan.tree is not None
    tree, name = plan.tree, name_of(plan.query.aggregates[0])
    variances = [standard_deviation(draw.mechanism, draw.scale) ** 2 for draw in plan.draws]
    found = tree.estimates(drawn, variances)
    told: list[tuple[Counts, Counts, Counts]] = []
    shown = tree.possible(found, plan.half_widths(USUAL))
    for value, one, width in zip(shown, found, plan.half_widths(confidence), strict=True):
        low, high = ends(one, width)
        told.append((value, np.minimum(low, value), np.maximum(high, value)))
    columns = tree.frame()
    lines = tree.lines()
    for place, end in enumerate(("", "_low", "_high")):
        numbers = [told[level][place][node] for level, node in lines]
        columns[f"{name}{end}"] = pl.Series(np.array(numbers, dtype=np.int64))
    return pl.DataFrame(columns)


def key_columns(keys: Keys, repeat: int = 1) -> list[pl.Series]:
    """The key values of every cell, row-major with the last key fastest, each cell *repeat* times."""
    sizes = [len(key.domain) + 1 for key in keys]
    out = []
    for place, key in enumerate(keys):
        inner = repeat * int(np.prod(sizes[place + 1 :], dtype=np.int64))
        outer = int(np.prod(sizes[:place], dtype=np.int64))
        codes = np.tile(np.repeat(np.arange(sizes[place]), inner), outer)
        out.append(pl.Series([*key.domain, None], dtype=pl.String).gather(codes))
    return out


def bin_names(need: GridCells) -> tuple[str, ...]:
    """Each bin as the interval of values it holds: closed below, open above, the last one closed."""
    edges, step = need.edges, need.grid.step
    texts = [_text(step * edge) for edge in edges[:-1]]
    last = _text(step * (edges[-1] - 1))
    inner = (f"[{low}, {high})" for low, high in pairwise(texts))
    return (*inner, f"[{texts[-1]}, {last}]")


def _text(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


def _estimate(
    aggregate: Aggregate, part: Part, draws: tuple[Draw, ...], drawn: Tallies, confidence: Fraction
) -> tuple[Numbers, Numbers | None, Numbers | None]:
    """Value, low and high of one aggregate; None where there is no interval to state."""
    if part.bound is not None:
        # The declared bound says nothing of the rows.
        return np.array([part.bound]), None, None
    used, noisy = [draws[place] for place in part.draws], [drawn[place] for place in part.draws]
    first, counts = used[0], noisy[0]
    if first.at is not None and part.grid is not None:
        # The rank it may miss by is public and stands in the plan; the values at those ranks are not.
        return _numbers(part.grid, np.array(first.candidates, dtype=np.int64)[counts], 0), None, None
    if aggregate.kind == "avg" and part.grid is not None:
        return _average(part.grid, used, noisy, confidence)
    # What is shown is the same at every confidence, so what may be lowered is told by the usual one.
    t, usual = (half_width(first.mechanism, first.scale, one) for one in (confidence, USUAL))
    if aggregate.kind == "sum" and part.grid is not None:
        value, low, high = (_numbers(part.grid, one, 0) for one in _possible(counts, t, usual, part.grid))
        return value, low, high
    return _possible(counts, t, usual, None)


def _possible(drawn: Counts, t: int, usual: int, grid: Grid | None) -> tuple[Counts, Counts, Counts]:
    """Numbers and the ends of their intervals, none of them on the side of 0 where a count, or a sum over *grid*, cannot be.

    Bins of a histogram are made possible together with those of their key, other numbers with those of all keys. Where that moves a number out
    of its interval, as it can below the usual confidence, the interval is widened to hold it: more is always as sure.
    """
    flat = drawn.ravel()
    middle = np.clip(flat, t - _LIMIT, _LIMIT - t)
    if not one_sided(grid):
        return flat, middle - t, middle + t
    if grid is not None and grid.low < 0:
        value, low, high = _possible(-drawn, t, usual, None)
        return -value, -high, -low
    rows = drawn if drawn.ndim == 2 else drawn[np.newaxis]
    value = np.concatenate([consistent(row, usual) for row in rows])
    return value, np.minimum(np.maximum(middle - t, 0), value), np.maximum(np.maximum(middle, 0) + t, value)


def _numbers(grid: Grid, indices: Counts, shift: int) -> Floats:
    """(index + shift) x step, rounded once from the exact product."""
    over, under = grid.step.numerator, grid.step.denominator
    return np.array([over * (index + shift) / under for index in indices.tolist()], dtype=np.float64)


def _average(
    grid: Grid, used: list[Draw], noisy: list[Counts], confidence: Fraction
) -> tuple[pl.Series, Floats, Floats]:
    """centre + noisy centred sum / noisy count, with Fieller's interval, both within the grid; null where it is unknown.

    It is where the interval is the whole grid, and where the drawn quotient is none that an average can have (its bound in its place
    would be a number that nobody drew) while more than a tenth of the grid is possible. Where less is, the bound stands for it.

    At the exact average m the noisy |sum - m count| is at most of_sum + of_count |m| with the stated chance
    (`average_widths`), so m lies between the smallest and the largest quotient that this leaves. A count that may be
    nothing leaves every quotient.
    """
    scales = (used[0].scale, used[1].scale)
    widths = average_widths(used[0].mechanism, scales, grid.centred_reach, confidence)
    total, count = (part.astype(np.float64) for part in noisy)
    # A quotient beyond the bounds is read as the bound: what is left of its own interval would look surer than it is.
    room = np.maximum(count, 1)
    drawn = total
    total = np.clip(total, (grid.low - grid.centre) * room, (grid.high - grid.centre) * room)
    below, above = total - widths["of_sum"], total + widths["of_sum"]
    # Where the count may be nothing, any average fits; elsewhere both divisors are above 0.
    told = count > widths["of_count"]
    least, most = (np.where(told, count + side * widths["of_count"], 1.0) for side in (-1, 1))
    low = np.where(told, np.where(below < 0, below / least, below / most), -np.inf)
    high = np.where(told, np.where(above > 0, above / least, above / most), np.inf)
    low, high = _on_scale(grid, low), _on_scale(grid, high)
    value = np.clip(_on_scale(grid, total / room), low, high)
    first, last = grid.value(grid.low), grid.value(grid.high)
    beyond = (drawn != total) | (count < 1)
    unknown = (low <= first) & (high >= last) & (first < last)
    unknown |= beyond & (high - low > (last - first) / 10)
    return pl.Series(value).set(pl.Series(unknown), None), low, high


def _on_scale(grid: Grid, centred: Floats) -> Floats:
    clamped = np.clip(centred, grid.low - grid.centre, grid.high - grid.centre)
    scaled = (grid.centre + clamped) * float(grid.step)
    out: Floats = np.clip(scaled, grid.value(grid.low), grid.value(grid.high))
    return out
