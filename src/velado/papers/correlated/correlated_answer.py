"""One query answered as in the source (algorithms 1 and 2): f(D) + Laplace(CS_f / epsilon of the source).

`paper_answer` needs no session and pays no budget, because it promises nothing: the scale is computed from the private
records. It refuses a table that has a ledger, answers that do not exist, and, unless told to show them, answers that
would leave without any noise (MIN and MAX where the extreme is held by several rows: about 70 % of queries).
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl

from velado.data.numbers import parse_numbers
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, QueryRefused
from velado.papers.correlated.approaches import Approach
from velado.papers.correlated.correlated_records import Floats, records_of
from velado.papers.correlated.rank_correlation import (
    AGGREGATIONS,
    Aggregation,
    Correlation,
    Mask,
    influence,
    sensitivity,
)
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate, Query, Value, leaves
from velado.text import say

# Laplace noise as the source draws it: floating point, from an ordinary generator. It protects nobody.
#
# Apart from the product's own noise on purpose: a double's bits alone can give the answer away, and the scale here comes
# from the private records. Nothing that promises anything imports this file.


def draw(scale: float, rng: np.random.Generator) -> float:
    """One draw of Laplace(0, *scale*) (definition 4); a scale of 0 gives no noise at all.

    >>> draw(0.0, np.random.default_rng(0))
    0.0
    """
    return float(rng.laplace(0.0, scale)) if scale > 0.0 else 0.0


def density(x: float, scale: float) -> float:
    """The density of Laplace(0, *scale*) at x: exp(-|x| / scale) / (2 scale).

    >>> density(0.0, 2.0)
    0.25
    """
    return math.exp(-abs(x) / scale) / (2.0 * scale)


def expected_relative_error(scale: float, answer: float) -> float:
    """The mean of |noise| / |answer| over the noise: scale / |answer| (definition 10's error, without its luck).

    >>> expected_relative_error(5.0, 100.0)
    0.05
    """
    return scale / abs(answer)


# Which rows a query asks about, over the frame in memory. Unknown (a missing cell) is not true, as in SQL.


def matching_rows(table: Table, where: Predicate | None) -> Mask:
    """True for every row where the predicate is true. O(n) per test.

    >>> from velado.data.schema import Column, Schema
    >>> table = Table.of(pl.DataFrame({"sex": ["M", "F"]}), Schema({"sex": Column("sex")}), "t")
    >>> matching_rows(table, Compare("sex", "=", "F"))
    array([False,  True])
    """
    if where is None:
        return np.ones(table.rows, dtype=np.bool_)
    frame = pl.DataFrame(
        [typed_column(table, name) for name in sorted({leaf.column for leaf in leaves(where)})]
    )
    kept = frame.select(_expression(where, frame).fill_null(False).alias("kept")).get_column("kept")
    return kept.to_numpy().astype(np.bool_)


def numbers_or_nan(table: Table, name: str) -> Floats:
    """A numeric column, NaN where a cell is missing.

    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", kind="numeric")})
    >>> numbers_or_nan(Table.of(pl.DataFrame({"age": ["20", ""]}), schema, "t"), "age")
    array([20., nan])
    """
    column = table.schema.columns.get(name)
    if column is None or column.kind != "numeric":
        raise QueryRefused(
            say("Column '{name}' is not a numeric column of the schema.", name=name),
            "Only numbers can be added up or compared by size.",
            "Name a numeric column.",
        )
    blank = table.is_missing(name).to_numpy()
    values, _ = parse_numbers(table, column, blank)
    return np.where(blank, np.nan, values)


def typed_column(table: Table, name: str) -> pl.Series:
    """A column as numbers, days or text, as the schema has it; null where a cell is missing.

    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", kind="numeric")})
    >>> typed_column(Table.of(pl.DataFrame({"age": ["20", ""]}), schema, "t"), "age").to_list()
    [20.0, None]
    """
    column = table.schema.columns.get(name)
    if column is None:
        raise QueryRefused(
            say("There is no column '{name}'.", name=name),
            "The schema names every column.",
            "Check the spelling.",
        )
    if column.kind == "numeric":
        return pl.Series(name, numbers_or_nan(table, name)).fill_nan(None)
    if column.kind == "date":
        return table.text(name).str.to_date(column.format, strict=False)
    return table.text(name)


def _expression(part: Predicate, frame: pl.DataFrame) -> pl.Expr:
    match part:
        case And(parts):
            return pl.all_horizontal([_expression(inner, frame) for inner in parts])
        case Or(parts):
            return pl.any_horizontal([_expression(inner, frame) for inner in parts])
        case Not(inner):
            return ~_expression(inner, frame)
        case IsNull(column):
            return pl.col(column).is_null()
        case Like(column, pattern):
            _same_type(frame, column, "")
            return pl.col(column).str.contains(_regular(pattern))
        case In(column, values):
            for value in values:
                _same_type(frame, column, value)
            return pl.any_horizontal([pl.col(column) == _literal(value) for value in values])
        case Compare(column, operator, value):
            _same_type(frame, column, value)
            cell, literal = pl.col(column), _literal(value)
            return {
                "=": cell == literal,
                "<>": cell != literal,
                "<": cell < literal,
                "<=": cell <= literal,
                ">": cell > literal,
                ">=": cell >= literal,
            }[operator]


def _literal(value: Value) -> pl.Expr:
    return pl.lit(float(value) if isinstance(value, Fraction) else value)


def _same_type(frame: pl.DataFrame, column: str, value: Value) -> None:
    kind = frame.schema[column]
    fits = (
        isinstance(value, Fraction)
        if kind == pl.Float64
        else isinstance(value, date)
        if kind == pl.Date
        else isinstance(value, str)
    )
    if not fits:
        raise QueryRefused(
            say("Column '{column}' is compared with a value of another type.", column=column),
            "A number, a day and a text are never equal.",
            "Write the value as the schema's kind of the column has it.",
        )


def _regular(pattern: str) -> str:
    """LIKE as a regular expression: % is any text, _ one character."""
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    return "(?s)^" + "".join(parts) + "$"


WHY_NONE = "the noise is scaled to a sensitivity computed from the private records, which the answer and its scale tell of"


@dataclass(frozen=True)
class PaperAnswer:
    """Noisy values by the name of their aggregate, the scale of each, and the promise: none.

    >>> PaperAnswer({"n": 7.0}, {"n": 1.0}, {"type": "none"}, {})
    PaperAnswer(values={'n': 7.0})
    """

    values: dict[str, float]
    scales: dict[str, float] = field(repr=False)
    guarantee: dict[str, object] = field(repr=False)
    how: dict[str, object] = field(repr=False)

    def to_dict(self) -> dict[str, object]:
        """The answer with its promise beside it."""
        return {"values": self.values, "scales": self.scales, "guarantee": self.guarantee, "how": self.how}


def bounded_by_its_rows(table: Table) -> Schema:
    """The table's schema with bounds read off the rows wherever a numeric column declares none.

    The source clamps nothing and needs no bounds; the reader of questions does. Such bounds tell of the rows, as all
    of the source's answers do: they serve here and nowhere else.

    >>> from velado.data.schema import Column
    >>> table = Table.of(pl.DataFrame({"a": [3, 1]}), Schema({"a": Column("a", kind="numeric")}), "t")
    >>> bounded_by_its_rows(table).columns["a"].bounds
    (1.0, 3.0)
    """
    found = []
    for column in table.schema.columns.values():
        if column.kind == "numeric" and column.bounds is None and column.role != "identifier":
            numbers = numbers_or_nan(table, column.name)
            if not np.isnan(numbers).all():
                low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
                column = replace(column, bounds=(low, high if high > low else low + 1.0))
        found.append(column)
    return table.schema.with_columns(found)


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

    >>> from velado.data.schema import Column, Schema
    >>> from velado.papers.correlated.approaches import Baseline
    >>> from velado.query.sql import parse
    >>> schema = Schema({name: Column(name, kind="numeric", bounds=(0, 9)) for name in ("a", "b", "c")})
    >>> table = Table.of(pl.DataFrame({"a": [1, 2, 3], "b": [2, 1, 3], "c": [3, 3, 1]}), schema, "t")
    >>> query = parse("SELECT COUNT(*) AS n FROM t", schema, "t")
    >>> paper_answer(table, query, Baseline(), 1.0, np.random.default_rng(0), has_ledger=False).guarantee["type"]
    'none'
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
                say("{kind} would be answered without any noise.", kind=kind.upper()),
                "The source's sensitivity is 0 where removing any one row leaves the answer as it is, and the exact value would leave.",
                "Pass show_unprotected to see what the source would publish; or ask for a private quantile.",
            )
        name = aggregate.alias or f"{kind}_{column or 'rows'}"
        name = name if name not in values else f"{name}_{number + 1}"
        scales[name] = reach / scale_parameter
        values[name] = effect.answer + draw(scales[name], rng)
    guarantee: dict[str, object] = {
        "type": "none",
        "as_in": "paper",
        "approach": approach.name,
        "why": WHY_NONE,
        "without_noise": [name for name, scale in scales.items() if scale == 0.0],
    }
    how: dict[str, object] = {
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
            say(
                "The source does not answer {kind}.",
                kind=", ".join(odd).upper() or say("an empty list of aggregates"),
            ),
            "It knows COUNT, SUM, AVG, MIN and MAX.",
            "Use one of them, or ask in groups or strict mode.",
        )
    if any(a.kind != "count" and a.column is None for a in query.aggregates):
        raise QueryRefused("An aggregate names no column.", "Only COUNT can do without.", "Name the column.")
