"""An auditor with the neighbours at which a mechanism loses all it may: a doubled loss shows in what is chosen, and in synthetic rows.

The event is looked for in a third of the outputs (the one that tells the two tables apart best) and tried on the others, which
had no part in the choice: so Clopper-Pearson's two bounds hold for it, and their ratio is a lower bound of the true epsilon.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query import noise
from velado.query.budget import Budget
from velado.query.engines import engine_for_table
from velado.query.session import Session
from velado.query.synthetic.axes import axes_of
from velado.query.synthetic.measuring import Till, measure
from velado.query.synthetic.synthesize import RowCounts, Wanted, _draw, _rows
from velado.query.unit import Unit

# Each audit alone raises a false alarm in fewer than one run of a million.
ERROR = 1e-6
Numbers = np.ndarray


def least_epsilon(one: Numbers, other: Numbers) -> float:
    """A lower bound, with confidence 1 - ERROR, on the epsilon of outputs told as one number each."""
    third = min(one.size, other.size) // 3
    places = np.unique(
        np.quantile(
            np.concatenate([one[:third], other[:third]]), np.linspace(0, 1, 41), method="inverted_cdf"
        )
    )
    events: list[Callable[[Numbers], Numbers]] = []
    for at in places.tolist():
        events += [lambda x, at=at: x >= at, lambda x, at=at: x < at, lambda x, at=at: x == at]
    _, event, likely, rare = max(
        (
            (bound(event(a[:third]), event(b[:third]), ERROR), event, a, b)
            for event in events
            for a, b in ((one, other), (other, one))
        ),
        key=lambda found: found[0],
    )
    return max(0.0, bound(event(likely[third:]), event(rare[third:]), ERROR))


def bound(likely: Numbers, rare: Numbers, error: float) -> float:
    """ln of the least chance the first is true with, over the largest of the second: each but for half of the error."""
    hits, more = int(likely.sum()), int(rare.sum())
    low = beta.ppf(error / 2, hits, likely.size - hits + 1) if hits else 0.0
    high = beta.ppf(1 - error / 2, more + 1, rare.size - more) if more < rare.size else 1.0
    return math.log(low / high) if low > 0 else -math.inf


def test_the_auditor_is_right_where_the_loss_is_known() -> None:
    """Randomized response at epsilon 1, and outputs that do not differ at all: the bound is below the truth, and near it."""
    random = np.random.default_rng(5)
    tells = math.e / (1 + math.e)
    bounds = [least_epsilon(random.random(9000) < tells, random.random(9000) >= tells) for _ in range(20)]
    assert np.median(bounds) > 0.7 and max(bounds) <= 1
    assert max(least_epsilon(random.random(600), random.random(600)) for _ in range(20)) == 0


# A grid of more numbers than there are candidates, so that rows lie between two of them. The candidates at one end and next to it
# are nearly as good: one has too few rows below it, the other too few above it, and a unit at the end moves the first up and the
# second down, each by all that it may. Whatever else is chosen there is far worse. (With 1,501 cells there are 199 candidates: 0, 50, ... 9949, 10000.)
WARDS, LAST = 1500, 10_000
UNIT = Unit("home", 2)
SCHEMA = Schema(
    {
        "home": Column("home", "identifier", "text", group=True, max_rows=2),
        "ward": Column("ward", "quasi", "categorical", values=tuple(f"w{at}" for at in range(WARDS))),
        "x": Column("x", "quasi", "numeric", bounds=(0.0, float(LAST)), step=1.0),
    }
)
CHOICES = {
    "median": ("MEDIAN(x)", Fraction(1, 2), False),
    "quantile": ("QUANTILE(x, 0.9)", Fraction(9, 10), False),
    "max": ("MAX(x)", Fraction(99, 100), False),
    "min": ("MIN(x)", Fraction(99, 100), True),
}


def tied(level: Fraction, mirrored: bool, family: int) -> Table:
    """In every ward two candidates that are equally good with a family of two at the end, and one that is worse without it."""
    a, b = level.numerator, level.denominator
    # Enough rows at both ends that candidates further off are hopeless, and between that both scores stay above nought.
    top, between = 24 if level == Fraction(1, 2) else 2, 4
    # The scores a n - b low and b (low + between) - a n are equal.
    low = (2 * a * top + (2 * a - b) * between) // (2 * (b - a))
    beside, inner, end = (50, 5, 0) if mirrored else (9949, 9995, LAST)
    values = [beside] * low + [inner] * between + [end] * (top - 2)
    wards = [f"w{at}" for at in range(WARDS)]
    homes = (
        pl.DataFrame({"ward": wards}).join(pl.DataFrame({"x": values}), how="cross").with_row_index("home")
    )
    # Of a family only two rows count, however many it has.
    families = pl.DataFrame({"ward": wards, "x": [end] * WARDS, "home": wards}).select(
        pl.all().repeat_by(family).explode()
    )
    rows = [one.select(pl.col(*SCHEMA.columns).cast(pl.String)) for one in (homes, families) if one.height]
    return Table.of(pl.concat(rows), SCHEMA, "people")


def chosen(engine: Any, value: str, asks: int) -> Numbers:
    """The value of every ward, each a draw of its own, in fresh sessions at epsilon 1."""
    out: list[Numbers] = []
    for _ in range(asks):
        with Session(engine, UNIT, 1, schema=SCHEMA, name="people") as session:
            answer = session.answer(f"SELECT ward, {value} AS v FROM people GROUP BY ward", spend=1)
            assert Fraction(answer.guarantee.epsilon) <= 1
            out.append(answer.frame["v"].fill_null(-1.0).to_numpy()[:WARDS])
    return np.concatenate(out)


def with_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every draw has half of the scale that was paid for: twice the loss."""
    add, choose = noise.add, noise.choose_smallest
    monkeypatch.setattr(
        noise, "add", lambda kind, measure, scale, values: add(kind, measure, scale / 2, values)
    )
    monkeypatch.setattr(
        noise, "choose_smallest", lambda measure, scale, rows, deadline=None: choose(measure, scale / 2, rows)
    )


@pytest.mark.slow
@pytest.mark.parametrize("which", CHOICES)
def test_a_choice_loses_what_it_says_and_twice_as_much_is_seen(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, level, mirrored = CHOICES[which]
    two = [engine_for_table(tied(level, mirrored, family), UNIT) for family in (5, 0)]
    assert 0.3 < least_epsilon(*(chosen(one, value, 1) for one in two)) <= 1
    with_half_the_noise(monkeypatch)
    assert least_epsilon(*(chosen(one, value, 2) for one in two)) > 1
    for one in two:
        one.close()


# Synthetic tables, each made anew from the true rows; of each one number is told.
CLAIM = Budget.epsilon(2)
LETTERS = Schema({"a": Column("a", "quasi", values=("x", "y"), missing="refuse")})
NUMBER = Schema({"a": Column("a", "quasi", "numeric", bounds=(0.0, 1e8), step=1.0, missing="refuse")})


def tables(
    schema: Schema, values: list[str], wanted: Wanted, told: Callable[[pl.DataFrame], float], number: int
) -> Numbers:
    """What *told* says of so many tables, each drawn from the same true rows."""
    axes = axes_of(schema, Unit())
    engine = engine_for_table(Table.of(pl.DataFrame({"a": values}), schema, "people"), Unit())
    out = [told(_rows(_draw(engine, axes, wanted, CLAIM), axes, wanted)) for _ in range(number)]
    engine.close()
    return np.array(out, dtype=np.float64)


def counted(person: bool, number: int) -> Numbers:
    """Rows of one value in the table, with one person who has it or without."""
    rows = ["x", "y"] * 20 + ["x"] * person
    return tables(LETTERS, rows, Wanted(), lambda made: made.filter(a="x").height, number)


def averaged(person: bool, number: int) -> Numbers:
    """The average of a group at the upper bound; a person at the lower one comes first in the order and pushes one of them out."""
    rows = ["0"] * person + ["100000000"] * 150
    wanted = Wanted(method="microaggregate", group_size=100)
    return tables(NUMBER, rows, wanted, lambda made: float(made["a"][0]), number)


def of_a_tree(person: bool, number: int) -> Numbers:
    """The noisy count of a cell of two columns, as the ledger keeps it: before the fit, which takes nothing back."""
    code = np.array([0, 1] * 20 + [0] * person, dtype=np.int32)
    rows = RowCounts((2, 2), (code, code))
    models = [measure((2, 2), rows, Till("epsilon", CLAIM.total, Unit()), "tree") for _ in range(number)]
    return np.array([model.measured[-1].counts[0, 0] for model in models], dtype=np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("told", "number"), [(counted, 1000), (averaged, 2500), (of_a_tree, 1500)])
def test_a_synthetic_table_loses_what_it_says_and_twice_as_much_is_seen(
    told: Callable[[bool, int], Numbers], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0.3 < least_epsilon(told(True, 500), told(False, 500)) <= CLAIM.total
    with_half_the_noise(monkeypatch)
    assert least_epsilon(told(True, number), told(False, number)) > CLAIM.total
