"""Ten made-up tables that nothing was tuned on: does the default lose least on them too, and what does it cost?

`python -m benchmarks losses --only own` prints them. Every table comes from its own seed; the columns have the shapes that
tables about people have: skewed incomes, dates with weekly waves, trees of places and diagnoses, blanks, many equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import BoolArray, FloatArray, Int64Array
from velado.data.taxonomy import from_paths

_Draw = np.random.Generator


def _number(name: str, values: FloatArray, blank: BoolArray | None = None) -> EncodedColumn:
    points, codes = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    span, missing = float(points[-1] - points[0]), -1
    if blank is not None:
        missing = points.size
        codes = np.where(blank, missing, codes)
        points = np.append(points, points[-1] + 1)
    return EncodedColumn(name, codes.astype(np.int32), points.size, missing, points=points, span=span)


def _tree(name: str, values: Int64Array, *branches: int) -> EncodedColumn:
    """Each branches[0] leaves are a branch, each branches[1] of these the next, and so on."""
    leaves = int(values.max()) + 1
    widths = np.cumprod(branches, dtype=np.int64).tolist()
    paths = [
        [f"v{v}", *(f"{level}-{v // width}" for level, width in enumerate(widths))] for v in range(leaves)
    ]
    tree = from_paths(paths, name)
    codes = np.array([tree.code_of[f"v{v}"] for v in range(leaves)], dtype=np.int32)[values]
    return EncodedColumn(name, codes, tree.leaves, tree=tree)


def _table(*columns: EncodedColumn) -> EncodedTable:
    return EncodedTable(columns, columns[0].codes.size)


def _skewed(draw: _Draw, rows: int, values: int, power: float = 1.5) -> Int64Array:
    share = np.arange(1, values + 1) ** -power
    return np.asarray(draw.choice(values, rows, p=share / share.sum()))


def _numeric(draw: _Draw) -> EncodedTable:
    """Body measures: four correlated numbers with three digits."""
    height = draw.normal(169, 9, 3000)
    weight = 0.9 * (height - 100) * np.exp(draw.normal(0, 0.15, 3000))
    waist = 0.8 * weight + draw.normal(22, 5, 3000)
    pressure = 90 + 0.4 * weight + draw.normal(0, 10, 3000)
    named = {"height": height, "weight": weight, "waist": waist, "pressure": pressure}
    return _table(*(_number(name, values.round(1)) for name, values in named.items()))


def _mixed(draw: _Draw) -> EncodedTable:
    """A survey: two numbers, a tree of places, three answers."""
    age = np.clip(draw.gamma(7, 6.5, 4000), 15, 95).round()
    return _table(
        _number("age", age),
        _number("hours", np.clip(draw.normal(38, 9, 4000), 0, 80).round()),
        _tree("place", _skewed(draw, 4000, 60, 0.8), 6, 3),
        _tree("work", _skewed(draw, 4000, 12), 4),
        _tree("answer", _skewed(draw, 4000, 5, 0.4)),
        _tree("sex", draw.integers(0, 2, 4000)),
    )


def _trees(draw: _Draw) -> EncodedTable:
    """Diagnoses, places, trades and sex: categories alone."""
    place = _skewed(draw, 5000, 120, 0.9)
    return _table(
        _tree("diagnosis", _skewed(draw, 5000, 90, 1.1), 5, 6),
        _tree("place", place, 8, 5),
        _tree("trade", (_skewed(draw, 5000, 24, 0.7) + place // 40) % 24, 6),
        _tree("sex", draw.integers(0, 2, 5000)),
    )


def _wide(draw: _Draw) -> EncodedTable:
    """Forty columns: a questionnaire of scales from a few hidden opinions."""
    opinions = draw.normal(size=(1500, 4))
    answers = opinions @ draw.normal(size=(4, 40)) + draw.normal(size=(1500, 40))
    return _table(*(_number(f"q{n}", np.clip(np.round(answers[:, n] + 4), 1, 7)) for n in range(40)))


def _duplicates(draw: _Draw) -> EncodedTable:
    """Tickets: few values, most rows many times."""
    return _table(
        _number("age band", 10.0 * np.minimum(draw.geometric(0.3, 6000), 9)),
        _number("people", np.minimum(draw.geometric(0.5, 6000), 6).astype(float)),
        _tree("kind", _skewed(draw, 6000, 8), 3),
        _tree("zone", _skewed(draw, 6000, 9, 1.0), 3),
    )


def _blanks(draw: _Draw) -> EncodedTable:
    """Laboratory values that are often missing."""
    level = draw.normal(size=2500)
    values = [np.exp(0.5 * level + draw.normal(0, 0.5, 2500)).round(2) for _ in range(6)]
    columns = [_number(f"v{n}", v, draw.random(2500) < 0.05 + 0.06 * n) for n, v in enumerate(values)]
    return _table(*columns, _tree("ward", _skewed(draw, 2500, 15), 5))


def _incomes(draw: _Draw) -> EncodedTable:
    """Incomes, wealth and debts with long tails, and an age."""
    age = draw.integers(18, 90, 8000).astype(float)
    income = (draw.lognormal(7.5, 0.8, 8000) * (0.5 + age / 90)).round(-1)
    wealth = (income * draw.pareto(1.8, 8000) * 3).round(-2)
    return _table(
        _number("age", age),
        _number("income", income),
        _number("wealth", wealth),
        _number("debt", np.where(draw.random(8000) < 0.6, 0, draw.lognormal(8, 1, 8000)).round(-2)),
    )


def _dates(draw: _Draw) -> EncodedTable:
    """Stays in hospital: born, came and left in days, and a ward."""
    came = np.floor(np.sort(draw.uniform(0, 730, 3500)) / 7) * 7 + draw.binomial(6, 0.3, 3500)
    return _table(
        _number("born", np.floor(-365.25 * np.clip(draw.gamma(6, 9, 3500), 0, 100))),
        _number("came", came),
        _number("left", came + draw.geometric(0.15, 3500)),
        _tree("ward", _skewed(draw, 3500, 20, 0.9), 4),
        _tree("sex", draw.integers(0, 2, 3500)),
    )


def _near_unique(draw: _Draw) -> EncodedTable:
    """Coordinates of homes in towns, a time stamp and an amount: hardly a value twice."""
    towns = draw.uniform(0, 10, (25, 2))
    home = towns[_skewed(draw, 12000, 25, 0.8)] + draw.normal(0, 0.15, (12000, 2))
    return _table(
        _number("east", home[:, 0]),
        _number("north", home[:, 1]),
        _number("time", draw.uniform(0, 1, 12000)),
        _number("amount", draw.lognormal(3, 1, 12000)),
    )


def _few_rows(draw: _Draw) -> EncodedTable:
    """A rare disease: sixty people."""
    return _table(
        _number("age", draw.integers(2, 80, 60).astype(float)),
        _number("years ill", draw.exponential(4, 60).round()),
        _tree("place", draw.integers(0, 30, 60), 5, 3),
        _tree("sex", draw.integers(0, 2, 60)),
    )


_MAKERS: Mapping[str, Callable[[_Draw], EncodedTable]] = {
    "body measures": _numeric,
    "survey": _mixed,
    "diagnoses": _trees,
    "questionnaire": _wide,
    "tickets": _duplicates,
    "laboratory": _blanks,
    "incomes": _incomes,
    "stays": _dates,
    "homes": _near_unique,
    "rare disease": _few_rows,
}
OWN = tuple(_MAKERS)


def own_table(name: str) -> EncodedTable:
    """One of the ten."""
    return _MAKERS[name](np.random.default_rng([2027, OWN.index(name)]))
