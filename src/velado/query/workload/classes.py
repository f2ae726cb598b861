"""Questions as linear maps of small tables: each column cut into classes of values that no question tells apart.

A number or a day belongs to a class by the cuts it is not below, a text by the listed texts; missing is a class where a question tells
it apart. Conditions are read under SQL's three-valued logic, on one value for each class, which is exact because no test changes within one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.data.schema import Schema
from velado.query.engines._compile import ColumnPlace, Layout, domain_values, least_above, nearest_double
from velado.query.needs import ClassKey, GridCells
from velado.query.plan import QueryPlan
from velado.query.unit import Unit
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate, leaves

Floats = NDArray[np.float64]
Leaf = Compare | In | Like | IsNull

MOST_CUTS = 400
"""More cuts of one column are too many arms of a statement; such a question is answered alone."""
MOST_CELLS = 1 << 16
MOST_WEIGHTS = 1 << 21
_OTHER, _MISSING = object(), object()


@dataclass(frozen=True, eq=False)
class Factor:
    """A part of a question about some columns alone: *matrix* has an axis for each answered key, then one for each column.

    *outputs* are the places of those keys among all the question's.
    """

    columns: tuple[str, ...]
    outputs: tuple[int, ...]
    matrix: Floats


@dataclass(frozen=True, eq=False)
class Item:
    """One COUNT or HISTOGRAM: answers of that *shape*, the product of its factors' answers."""

    question: int
    aggregate: int
    factors: tuple[Factor, ...]
    shape: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it tells values of, sorted."""
        return tuple(sorted(column for factor in self.factors for column in factor.columns))


@dataclass
class _Cutting:
    """The tests of one column by all questions."""

    place: ColumnPlace
    cuts: set[float | date]
    texts: dict[str, None]
    tests: list[Any]

    def values(self) -> tuple[list[Any], list[float | date]]:
        """One value of each class before merging, and the cuts."""
        if self.place.sort == "text":
            return [*self.texts, _OTHER, _MISSING], []
        cuts: list[Any] = sorted(self.cuts)
        lowest: float | date = -math.inf if self.place.sort == "number" else date.min
        return [lowest, *cuts, _MISSING], cuts


def split(plans: Sequence[QueryPlan], schema: Schema) -> tuple[dict[str, ClassKey], list[Item]]:
    """The classes of each column, and the items of all questions that can be taken apart so; the others are answered alone."""
    layout = Layout.of(schema, Unit())
    apart = [at for at, plan in enumerate(plans) if _can(plan, layout)]
    columns: dict[str, _Cutting] = {}
    for at in apart:
        for test in _tests(plans[at], layout):
            name = test.place.column.name
            found = columns.setdefault(name, _Cutting(test.place, set(), {}, []))
            found.cuts.update(test.cuts)
            found.texts.update(dict.fromkeys(test.texts))
            found.tests.append(test)
    values: dict[str, list[Any]] = {}
    keys: dict[str, ClassKey] = {}
    for name, cutting in sorted(columns.items()):
        every, cuts = cutting.values()
        known: dict[tuple[float, ...], int] = {}
        shown: list[Any] = []
        classes = []
        for value in every:
            told = tuple(test.told(value) for test in cutting.tests)
            if told not in known:
                known[told] = len(known)
                shown.append(value)
            classes.append(known[told])
        values[name] = shown
        keys[name] = ClassKey(name, tuple(cuts), tuple(cutting.texts), tuple(classes), len(known))
    items = [item for at in apart for item in _items(at, plans[at], layout, values)]
    large = {
        item.question
        for item in items
        if prod(keys[name].size for name in item.columns) > MOST_CELLS
        or any(factor.matrix.size > MOST_WEIGHTS for factor in item.factors)
    }
    return keys, [item for item in items if item.question not in large]


@dataclass(frozen=True)
class _Test:
    """What a question tells apart of one column: a condition's leaf, a key, a histogram's bins, or having a value."""

    place: ColumnPlace
    leaf: Leaf | None = None
    listed: Any = None
    edges: tuple[float, ...] | None = None

    @property
    def cuts(self) -> Iterator[float | date]:
        if self.edges is not None:
            yield from self.edges
        points: list[Any] = []
        if self.place.sort == "text":
            return
        if isinstance(self.leaf, Compare):
            point = self._point(self.leaf.value)
            if self.leaf.operator in ("<", ">="):
                yield point
            elif self.leaf.operator in ("<=", ">"):
                yield from _after(point)
            else:
                points = [point]
        elif isinstance(self.leaf, In):
            points = [self._point(value) for value in self.leaf.values]
        elif self.listed is not None:
            points = [date.fromisoformat(one) if isinstance(one, str) else one for one in self.listed]
        for point in points:
            yield point
            yield from _after(point)

    @property
    def texts(self) -> Iterator[str]:
        if self.place.sort != "text":
            return
        if isinstance(self.leaf, Compare):
            yield str(self.leaf.value)
        elif isinstance(self.leaf, In):
            yield from (str(value) for value in self.leaf.values)
        elif self.listed is not None:
            yield from self.listed

    def _point(self, value: Any) -> Any:
        return nearest_double(value) if isinstance(value, Fraction) else value

    def told(self, value: Any) -> float:
        """Truth (1, 0, or 1/2 for unknown), or the place of a key or bin."""
        if self.leaf is not None:
            return self._truth(self.leaf, value)
        if self.listed is not None:
            named = value.isoformat() if isinstance(value, date) else value
            return float(self.listed.get(named, -1)) if isinstance(named, str | float) else -1.0
        if value is _MISSING:
            return -1.0
        return 0.0 if self.edges is None else float(np.searchsorted(self.edges, value, side="right"))

    def _truth(self, leaf: Leaf, value: Any) -> float:
        if isinstance(leaf, IsNull):
            return float(value is _MISSING)
        if value is _MISSING:
            return 0.5
        if isinstance(leaf, In):
            return float(any(self._point(one) == value for one in leaf.values))
        assert isinstance(leaf, Compare)
        point = self._point(leaf.value)
        match leaf.operator:
            case "=":
                return float(value == point)
            case "<>":
                return float(value != point)
            case "<":
                return float(value < point)
            case "<=":
                return float(value <= point)
            case ">":
                return float(value > point)
            case _:
                return float(value >= point)


def _after(point: Any) -> Iterator[float | date]:
    """The least value above; none above the last."""
    if isinstance(point, float):
        if point < math.inf:
            yield math.nextafter(point, math.inf)
    elif point < date.max:
        yield point + timedelta(days=1)


def _can(plan: QueryPlan, layout: Layout) -> bool:
    """Whether the question can be taken apart: LIKE tells texts apart that nobody listed, and long domains make long statements."""
    if any(isinstance(leaf, Like) for leaf in leaves(plan.query.where)):
        return False
    return all(len(list(test.cuts)) <= MOST_CUTS for test in _tests(plan, layout))


def _tests(plan: QueryPlan, layout: Layout) -> list[_Test]:
    """All that the question tells apart: its conditions, its keys, then for each aggregate its bins or its blanks."""
    out = [_Test(layout.place(leaf.column), leaf) for leaf in leaves(plan.query.where)]
    out += _key_tests(plan, layout)
    for at in range(len(plan.query.aggregates)):
        out += _own_tests(plan, layout, at)
    return out


def _key_tests(plan: QueryPlan, layout: Layout) -> list[_Test]:
    places = [(layout.place(key.column), key) for key in plan.keys]
    return [_Test(place, listed=domain_values(place, key, layout.decimal)) for place, key in places]


def _own_tests(plan: QueryPlan, layout: Layout, at: int) -> list[_Test]:
    need = plan.draws[plan.parts[at].draws[0]].need
    if isinstance(need, GridCells):
        inner = tuple(least_above(need.grid, edge - 1) for edge in need.edges[1:-1])
        return [_Test(layout.place(need.grid.column), edges=inner)]
    column = plan.query.aggregates[at].column
    return [] if column is None else [_Test(layout.place(column))]


def _items(at: int, plan: QueryPlan, layout: Layout, values: dict[str, list[Any]]) -> Iterator[Item]:
    for aggregate in range(len(plan.query.aggregates)):
        own = _own_tests(plan, layout, aggregate)
        answered = [(test, key.size) for test, key in zip(_key_tests(plan, layout), plan.keys, strict=True)]
        bins = [test for test in own if test.edges is not None]
        answered += [(test, len(test.edges or ()) + 1) for test in bins]
        parts = _conjuncts(plan.query.where)
        names = [{leaf.column for leaf in leaves(part)} for part in parts]
        names += [{test.place.column.name} for test, _ in answered]
        names += [{test.place.column.name} for test in own if test.edges is None]
        factors = []
        for columns in _connected(names):
            truth = np.ones([len(values[name]) for name in columns])
            for part in parts:
                if {leaf.column for leaf in leaves(part)} <= set(columns):
                    truth = truth * (_tensor(part, columns, layout, values) == 1.0)
            for test in own:
                if test.edges is None and test.place.column.name in columns:
                    truth = truth * _spread(test, columns, values, missing=-1.0)
            outputs = tuple(
                place for place, (test, _) in enumerate(answered) if test.place.column.name in columns
            )
            for number, place in enumerate(outputs):
                test, size = answered[place]
                name = test.place.column.name
                told = np.array([test.told(value) for value in values[name]]).astype(np.int64)
                # A key's last cell holds what is missing or undeclared; a bin holds nothing of the kind.
                told = np.where((told < 0) & (test.edges is None), size - 1, told)
                hot = (np.arange(size)[:, None] == told[None, :]).astype(np.float64)
                shape = [1] * (number + len(columns))
                shape[number + columns.index(name)] = len(told)
                truth = np.expand_dims(truth, number) * hot.reshape([1] * number + [size] + shape[number:])
            factors.append(Factor(columns, outputs, truth))
        yield Item(at, aggregate, tuple(factors), tuple(size for _, size in answered))


def _conjuncts(where: Predicate | None) -> list[Predicate]:
    return [] if where is None else list(where.parts) if isinstance(where, And) else [where]


def _connected(names: Sequence[set[str]]) -> list[tuple[str, ...]]:
    """The columns in parts that no condition joins, each sorted."""
    out: list[set[str]] = []
    for one in names:
        touching = [part for part in out if part & one]
        out = [part for part in out if not part & one] + [one.union(*touching)]
    return sorted(tuple(sorted(part)) for part in out)


def _spread(test: _Test, columns: tuple[str, ...], values: dict[str, list[Any]], missing: float) -> Floats:
    name = test.place.column.name
    told = np.array([test.told(value) for value in values[name]])
    shape = [1] * len(columns)
    shape[columns.index(name)] = len(told)
    out: Floats = (told != missing).astype(np.float64).reshape(shape)
    return out


def _tensor(
    part: Predicate, columns: tuple[str, ...], layout: Layout, values: dict[str, list[Any]]
) -> Floats:
    """Truth of a condition on each combination of classes: Kleene's logic on 0, 1/2 and 1."""
    match part:
        case Not(inner):
            return 1.0 - _tensor(inner, columns, layout, values)
        case And(parts):
            return reduce(np.minimum, [_tensor(one, columns, layout, values) for one in parts])
        case Or(parts):
            return reduce(np.maximum, [_tensor(one, columns, layout, values) for one in parts])
        case _:
            test = _Test(layout.place(part.column), part)
            shape = [1] * len(columns)
            shape[columns.index(part.column)] = len(values[part.column])
            return np.array([test.told(value) for value in values[part.column]]).reshape(shape)
