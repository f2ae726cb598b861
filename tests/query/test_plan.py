"""A plan never charges more than was asked, shares what can be shared, and refuses from public things alone."""

import json
import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.errors import ParameterError, QueryRefused
from velado.query.needs import Grid, GridCells, GridSum, Rows
from velado.query.noise import calibrate, measurement
from velado.query.plan import histogram_edges, plan
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query
from velado.text import told

SCHEMA = Schema(
    {
        "sex": Column("sex", values=("F", "M")),
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
        "cost": Column("cost", kind="numeric", bounds=(0, 1e6)),
        "free": Column("free", kind="numeric"),
        "home": Column("home", group=True, max_rows=4),
    }
)
GROUP = Unit("home", 4)


def asked(*aggregates: Aggregate, keys: tuple[str, ...] = ()) -> Query:
    return Query("people", aggregates, keys=keys)


def planned(*aggregates, measure="epsilon", spend=Fraction(1), extremes="quantile", keys=()):
    return plan(asked(*aggregates, keys=keys), SCHEMA, GROUP, measure, spend, extremes)


COUNT, AVG = Aggregate("count"), Aggregate("avg", "age")


def test_each_aggregate_becomes_its_primitives() -> None:
    assert planned(COUNT).needs == (Rows(),)
    total, rows = planned(AVG).needs
    assert isinstance(total, GridSum) and total.offset == total.grid.centre == 60
    assert rows == Rows("age")
    assert planned(Aggregate("sum", "age")).draws[0].sensitivity == 480
    assert planned(AVG).draws[0].sensitivity == 240
    (cells,) = planned(Aggregate("histogram", "age", bins=12)).needs
    assert isinstance(cells, GridCells) and cells.edges == (*range(0, 120, 10), 121)


def test_what_two_aggregates_need_is_drawn_and_paid_once() -> None:
    both = planned(AVG, Aggregate("count", "age", alias="n"), AVG, Aggregate("max", "age"))
    assert len(both.draws) == 3 and both.parts[0] == both.parts[2]
    assert both.parts[1].draws == (both.parts[0].draws[1],)
    two = planned(Aggregate("quantile", "age", Fraction(1, 4)), Aggregate("quantile", "age", Fraction(3, 4)))
    assert len(two.draws) == 2 and len(two.needs) == 1


@pytest.mark.parametrize(
    ("measure", "mechanism"), [("epsilon", "laplace"), ("rho", "gaussian")], ids=["pure", "concentrated"]
)
def test_the_measure_decides_the_noise(measure, mechanism) -> None:
    made = planned(COUNT, Aggregate("min", "age"), measure=measure)
    assert [draw.mechanism for draw in made.draws] == [mechanism, "noisy-max"]


def test_declared_bounds_cost_nothing_and_draw_nothing() -> None:
    free = planned(Aggregate("min", "cost"), Aggregate("max", "cost"), extremes="bound")
    assert free.charge == 0 and free.draws == () and free.needs == ()
    assert [part.bound for part in free.parts] == [0.0, 1e6]
    assert planned(COUNT, Aggregate("max", "age"), extremes="bound").charge > Fraction(99, 100)


@settings(max_examples=200)
@given(
    st.sampled_from(["laplace", "gaussian", "noisy-max"]),
    st.sampled_from(["epsilon", "rho"]),
    st.integers(1, 1 << 53),
    st.one_of(
        st.fractions(Fraction(1, 1000), 100),
        st.floats(1e-3, 100).map(Fraction),
        st.integers(1, 1000).map(lambda n: Fraction(1, n)),
    ),
)
def test_no_scale_is_charged_more_than_asked_nor_much_less(mechanism, measure, sensitivity, share) -> None:
    if mechanism != "noisy-max":
        measure = {"laplace": "epsilon", "gaussian": "rho"}[mechanism]
    try:
        scale, charge = calibrate(mechanism, measure, sensitivity, share)
    except QueryRefused:
        # Only noise that would fill the 64-bit range is refused.
        assert sensitivity / share > 2**49 or sensitivity / math.sqrt(share) > 2**49
        return
    assert share * (1 - Fraction(1, 10**12)) <= charge <= share
    assert charge == Fraction(measurement(mechanism, measure, scale).map(sensitivity))


def test_the_scale_is_not_the_one_that_rounds_the_wrong_way() -> None:
    # 10 / 0.7 as a float maps to a little more than 0.7: the case that must be stepped over.
    asked_for = Fraction(7, 10)
    assert Fraction(measurement("laplace", "epsilon", 10 / 0.7).map(10)) > asked_for
    assert calibrate("laplace", "epsilon", 10, asked_for)[1] <= asked_for


AGGREGATES = st.sampled_from(
    [
        COUNT,
        AVG,
        Aggregate("count", "age"),
        Aggregate("sum", "age"),
        Aggregate("sum", "cost"),
        Aggregate("avg", "cost"),
        Aggregate("min", "age"),
        Aggregate("max", "age"),
        Aggregate("quantile", "age", Fraction(1, 3)),
    ]
)


@settings(max_examples=60)
@given(
    st.lists(AGGREGATES, min_size=1, max_size=6),
    st.fractions(Fraction(1, 10**4), 50),
    st.sampled_from(["epsilon", "rho"]),
    st.integers(1, 50),
    st.sampled_from([(), ("sex",)]),
)
def test_a_plan_never_charges_more_than_is_spent(aggregates, spend, measure, rows, keys) -> None:
    made = plan(asked(*aggregates, keys=keys), SCHEMA, Unit("home", rows), measure, spend)
    assert made.charge == sum(draw.charge for draw in made.draws)
    assert spend * (1 - Fraction(1, 10**11)) <= made.charge <= spend


def test_what_cannot_be_answered_is_refused_with_the_reason() -> None:
    with pytest.raises(QueryRefused, match="query of its own"):
        planned(Aggregate("histogram", "age", bins=3), COUNT)
    with pytest.raises(QueryRefused, match="no declared bounds"):
        planned(Aggregate("sum", "free"))
    with pytest.raises(QueryRefused, match="names no column"):
        planned(Aggregate("sum", "other"))
    with pytest.raises(QueryRefused, match="level"):
        planned(Aggregate("quantile", "age", Fraction(1)))
    with pytest.raises(QueryRefused, match="that many bins"):
        planned(Aggregate("histogram", "age", bins=122))
    with pytest.raises(QueryRefused, match="too many numbers"):
        planned(Aggregate("histogram", "cost", bins=200_000))
    for little in (Fraction(1, 10**60), Fraction(1, 10**400)):
        with pytest.raises(QueryRefused, match="too small"):
            planned(COUNT, spend=little)
    with pytest.raises(ParameterError, match="above 0"):
        planned(COUNT, spend=Fraction(0))


@given(st.integers(-50, 50), st.integers(0, 80), st.data())
def test_histogram_cells_cover_the_grid_once_and_are_equal(low, span, data) -> None:
    grid = Grid("x", Fraction(1), low, low + span)
    bins = data.draw(st.integers(1, span + 1))
    edges = histogram_edges(grid, bins)
    assert len(edges) == bins + 1 and (edges[0], edges[-1]) == (grid.low, grid.high + 1)
    widths = [b - a for a, b in pairwise(edges)]
    assert min(widths) >= 1 and max(widths[:-1] or [1]) - min(widths[:-1] or [1]) <= 1


def test_the_plan_tells_what_it_will_do_in_plain_json() -> None:
    facts = json.loads(json.dumps(planned(AVG, Aggregate("max", "age"), keys=("sex",)).to_dict()))
    assert facts["cells"] == 3 and Fraction(facts["charge"]) <= 1
    assert [draw["mechanism"] for draw in facts["draws"]] == ["laplace", "laplace", "noisy-max"]
    assert facts["draws"][2]["level"] == "99/100" and facts["draws"][2]["candidates"] == 121
    assert facts["draws"][2]["rank_error"]["rows"] > 0


def test_a_price_says_of_quantiles_too_how_exact_they_are() -> None:
    made = planned(Aggregate("min", "age"), Aggregate("count"), Aggregate("max", "cost"))
    said = [told(sentence) for sentence in made.sentences(Fraction(9, 10))]
    off = {
        value["name"]: value["rank_error"]
        for value in made.to_dict(Fraction(9, 10))["values"]
        if "rank_error" in value
    }
    assert len(off) == 2
    for name, one in off.items():
        (own,) = [sentence for sentence in said if sentence.startswith(f"{name}: ")]
        assert f"miss the asked rank by {math.ceil(one['rows']):,} rows" in own and "at least 90%" in own
    assert any(sentence.startswith("count: off by up to") for sentence in said)


def test_each_value_says_whether_it_is_a_number_a_quantile_or_a_bound() -> None:
    low, top, half, n = planned(
        Aggregate("min", "age", alias="a"),
        Aggregate("max", "cost", alias="b"),
        Aggregate("quantile", "age", Fraction(1, 2), alias="c"),
        Aggregate("count", alias="d"),
    ).to_dict(Fraction(9, 10))["values"]
    assert (low["asked"], low["answered_as"], low["level"]) == ("min", "quantile", "1/100")
    assert (top["level"], half["level"], n["answered_as"]) == ("99/100", "1/2", "number")
    # The ages are all candidates; a million costs are not, and then the best candidate's own miss comes on top.
    assert (
        low["rank_error"]["beyond"] == "the asked rank"
        and top["rank_error"]["beyond"] == "the best candidate"
    )
    assert low["rank_error"]["confidence"] == 0.9 and "rank_error" not in n
    # Each quantile has its own: scores of the first are hundredths of a rank, of the third halves.
    assert low["rank_error"]["rows"] != half["rank_error"]["rows"]
    bound = planned(Aggregate("max", "age", alias="m"), extremes="bound").to_dict()["values"][0]
    assert bound["answered_as"] == "bound" and "rank_error" not in bound


def test_a_sum_is_priced_in_the_columns_own_numbers_too() -> None:
    draw = planned(Aggregate("sum", "cost")).to_dict()["draws"][0]
    assert draw["need"] == "sum of 'cost'" and (draw["what"], draw["column"]) == ("sum of", "cost")
    assert draw["in_values"]["sensitivity"] == 4e6 < draw["sensitivity"] * 1000
    assert draw["in_values"]["scale"] == pytest.approx(4e6, rel=1e-3)
