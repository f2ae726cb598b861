"""Accuracy first: a wish is kept at the least spend, from public things alone, and refused in words where it cannot be."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from velado.data.schema import AboutDataset, Column, Schema
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes
from velado.errors import ParameterError, QueryRefused
from velado.query.accuracy import Wish, average_widths, rounded_up, suggested_spend
from velado.query.answer import Answer, Cost, Making, frame
from velado.query.budget import MOST_TOTAL, Budget
from velado.query.noise import half_width, joint_width, widest_scale
from velado.query.plan import carry_out, plan, plan_within
from velado.query.session import Session
from velado.query.store import create_ledger, memory_ledger, open_ledger
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query
from velado.report.blocks import Table as Lines
from velado.report.query_lines import answer_lines
from velado.settings import Where

ROWS = 4_000
SURE = Fraction(19, 20)
COLUMNS = {
    "home": Column("home", "identifier", "text", group=True, max_rows=2),
    "sex": Column("sex", values=("F", "M")),
    "age": Column("age", kind="numeric", bounds=(0, 100), step=1),
    "debt": Column("debt", kind="numeric", bounds=(0, 1e6), step=1),
    "change": Column("change", kind="numeric", bounds=(-50, 50), step=0.5),
}
SCHEMA = Schema(COLUMNS, dataset=AboutDataset(rows=ROWS))
SIZELESS = Schema(COLUMNS)
UNIT = Unit("home", 2)
COUNT, AVG = Aggregate("count", alias="n"), Aggregate("avg", "age", alias="a")
SUM = Aggregate("sum", "age", alias="s")


def wished(wish: str, *aggregates: Aggregate, schema=SCHEMA, measure="epsilon", keys=(), sure=SURE):
    asked = Wish.of(wish, "within", Where("flag"))
    return plan_within(Query("people", aggregates, keys=keys), schema, UNIT, measure, asked, sure)


def people(schema: Schema = SCHEMA) -> Table:
    rows = range(ROWS)
    columns = {
        "home": [f"h{at // 2}" for at in rows],
        "sex": ["FM"[at % 2] for at in rows],
        "age": [str(at % 91) for at in rows],
        "debt": ["10" for _ in rows],
        "change": [str(at % 40 - 20) for at in rows],
    }
    return Table.of(pl.DataFrame(columns), schema, "people")


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("width", [0, 1, 10, 240, 100_000])
@pytest.mark.parametrize("sure", [Fraction(9, 10), SURE, Fraction(999_999, 1_000_000)])
def test_a_count_costs_the_least_that_keeps_its_width(measure: str, width: int, sure: Fraction) -> None:
    wish = str(width) if width else "0.5"
    made = wished(wish, COUNT, measure=measure, sure=sure)
    draw = made.draws[0]
    assert half_width(draw.mechanism, draw.scale, sure) <= width
    # A thousandth less would not do.
    less = plan(made.query, SCHEMA, UNIT, measure, made.charge * Fraction(999, 1000))
    assert half_width(draw.mechanism, less.draws[0].scale, sure) > width
    assert made.to_dict(sure)["values"][0]["half_width"] <= max(width, 0.5)


def test_a_percentage_is_of_all_that_a_value_can_be_by_what_is_declared() -> None:
    told = wished("5%", COUNT, SUM, AVG, keys=("sex",)).to_dict()["values"]
    assert [one["range"] for one in told] == [ROWS / 2, ROWS / 2 * 100, 100]
    for one in told:
        assert 0.95 * one["range"] / 20 <= one["half_width"] <= one["range"] / 20
    assert told[2]["at_rows"] == ROWS / 2 and told[2]["declared"] is True
    rank = wished("5%", Aggregate("quantile", "age", Fraction(1, 2))).to_dict()["values"][0]
    assert 0.99 * ROWS / 20 <= rank["rank_error"]["rows"] <= ROWS / 20


def test_without_a_declared_size_a_percentage_and_an_average_are_refused_in_words() -> None:
    for wish, aggregate in (("5%", COUNT), ("5%", SUM), ("3", AVG), ("5%", Aggregate("max", "age"))):
        with pytest.raises(QueryRefused, match=r"not declared.*rows = N in \[dataset\]"):
            wished(wish, aggregate, schema=SIZELESS)
    # A percentage of an average's range is known, but not over how many rows it is taken.
    with pytest.raises(QueryRefused, match="not declared"):
        wished("5%", AVG, schema=SIZELESS)
    assert wished("10", COUNT, SUM, schema=SIZELESS).charge > 0


def test_values_that_share_a_draw_pay_for_it_once_and_as_the_stricter_one_needs() -> None:
    both = wished("3", AVG, Aggregate("count", "age", alias="m"))
    count = wished("3", Aggregate("count", "age", alias="m"))
    average = wished("3", AVG)
    assert len(both.draws) == 2 and both.charge < count.charge + average.charge
    # The count is drawn exactly anyway, so the average's sum may be blurred more than alone.
    assert both.draws[1].charge == count.charge and both.draws[0].scale > average.draws[0].scale
    assert all(one["half_width"] <= 3 for one in both.to_dict()["values"])


def test_an_average_costs_about_the_least_there_is() -> None:
    made = wished("2", AVG)
    half = made.to_dict()["values"][0]["half_width"]
    assert 1.99 < half <= 2
    for first, second in ((0.7, 1.28), (1.28, 0.7), (1, 0.99), (0.99, 1)):
        shares = [
            draw.charge * Fraction(part) for draw, part in zip(made.draws, (first, second), strict=True)
        ]
        scales = tuple(
            draw.scale * float(draw.charge / s) for draw, s in zip(made.draws, shares, strict=True)
        )
        moved = replace(
            made, draws=tuple(replace(d, scale=s) for d, s in zip(made.draws, scales, strict=True))
        )
        assert moved.to_dict()["values"][0]["half_width"] > 2


WISHES = st.one_of(
    st.integers(1, 10**6).map(str),
    st.sampled_from(["0.5", "1/3", "1%", "5%", "50%", "250%", "0.01%"]),
    st.floats(1e-6, 1e9).map(str),
)
AGGREGATES = st.sampled_from(
    [
        COUNT,
        AVG,
        SUM,
        Aggregate("count", "age", alias="m"),
        Aggregate("sum", "debt", alias="d"),
        Aggregate("avg", "change", alias="c"),
        Aggregate("sum", "change", alias="e"),
        Aggregate("max", "age", alias="x"),
        Aggregate("quantile", "age", Fraction(1, 3), alias="q"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    WISHES, st.lists(AGGREGATES, min_size=1, max_size=3), st.sampled_from(["epsilon", "rho"]), st.booleans()
)
def test_every_wish_is_kept_for_every_value_or_refused_as_too_dear(wish, aggregates, measure, by_sex) -> None:
    try:
        made = wished(wish, *aggregates, measure=measure, keys=("sex",) if by_sex else ())
    except QueryRefused as refused:
        assert "may ever be spent" in refused.what
        assume(False)
    assert 0 < made.charge <= MOST_TOTAL
    asked = Wish.of(wish, "within", Where("flag"))
    for value in made.to_dict()["values"]:
        if value["answered_as"] == "quantile":
            most = float(asked.in_units(Fraction(ROWS, 2 if by_sex else 1)))
            assert value["rank_error"]["rows"] <= most * (1 + 1e-9)
        else:
            assert value["half_width"] <= float(asked.in_units(Fraction(value["range"]))) * (1 + 1e-9)


def test_an_average_keeps_its_wish_beside_a_sum_that_is_drawn_more_exactly() -> None:
    made = wished("30", Aggregate("avg", "change", alias="a"), Aggregate("sum", "change", alias="s"))
    average, total = made.to_dict()["values"]
    assert average["half_width"] <= 30 and total["half_width"] <= 30
    # Asked twice, or beside what is exact enough for it, it costs nothing more.
    once, twice = (wished("1", *[Aggregate("avg", "age", alias="a")] * times) for times in (1, 2))
    assert once.charge == twice.charge


def test_a_wish_beyond_any_budget_is_refused_in_words() -> None:
    with pytest.raises(QueryRefused, match=r"takes epsilon [\d,.]+, and at most 1000 may ever be spent"):
        wished("3", Aggregate("sum", "debt"))
    with pytest.raises(QueryRefused, match="larger half-width"):
        wished("0.01", Aggregate("avg", "debt"))


@pytest.mark.parametrize(
    "wish", ["0", "-3", "x", "", "%", "5%%", "nan", "inf", "0%", "1e999", True, None, [3]]
)
def test_what_is_no_wish_is_told_what_is_one(wish) -> None:
    with pytest.raises(ParameterError, match="a number above 0, or a percentage such as '5%'"):
        Wish.of(wish, "within", Where("flag"))


def test_a_price_says_the_width_before_paying_what_is_left_out_and_warns_of_noise() -> None:
    with Session(people(), budget=1) as session:
        said = list(map(str, session.price("SELECT COUNT(*), SUM(age) FROM people", 0.5).sentences()))
        assert said[0] == "count: off by up to ±24 (95%)." and said[1].startswith(
            "sum_age: off by up to ±2,400 "
        )
        assert "Of all rows with one value of 'home' at most 2 count; the others are left out." in said
        assert "Numbers of 'age' beyond its declared bounds, 0 to 100, count as the bound." in said
        assert not any("noise" in one for one in said)
        noisy = session.price("SELECT COUNT(*), AVG(age) FROM people", 0.001)
        assert str(noisy.sentences()[-1]).startswith("Mostly noise: count, avg_age.")
        assert session.state().spent == 0


def test_a_price_says_where_numbers_may_be_off_by_more_than_their_noise() -> None:
    with Session(people(), budget=1) as session:
        several = session.price("SELECT sex, COUNT(*) FROM people GROUP BY sex", 0.5)
        (facts,) = several.to_dict()["values"]
        assert facts["lowered"] == facts["half_width"]
        assert any("All others stay as drawn" in str(one) for one in several.sentences())
        wider = several.to_dict(Fraction(999, 1000))["values"][0]
        # What is shown does not depend on the confidence, so what may be lowered does not.
        assert wider["lowered"] == facts["lowered"] < wider["half_width"]
        alone = map(str, session.price("SELECT COUNT(*) FROM people", 0.5).sentences())
        assert not any("All others stay as drawn" in one for one in alone)
        tree = session.price("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)", 0.5)
        assert any("small ones first" in str(one) for one in tree.sentences())
        texts = ["SELECT sex, COUNT(*) FROM people GROUP BY sex", "SELECT COUNT(*) FROM people"]
        assert any(
            "twice their half-width" in str(one) for one in session.price_workload(texts, 0.5).sentences()
        )
        one = session.price_workload(texts[1:], 0.5).sentences()
        assert not any("twice their half-width" in str(said) for said in one)


def test_a_price_is_made_of_public_things_alone() -> None:
    """Two tables with nothing in common but their schema have one price."""
    other = people()
    other = Table.of(other.frame.head(3).with_columns(age=pl.lit("99")), SCHEMA, "people")
    with Session(people(), budget=1) as one, Session(other, budget=1) as two:
        for sql in (
            "SELECT COUNT(*), AVG(age) FROM people",
            "SELECT sex, SUM(debt) FROM people GROUP BY sex",
        ):
            assert one.price(sql, within="10%") == two.price(sql, within="10%")
            assert one.price(sql, within="10%").to_dict() == two.price(sql, within="10%").to_dict()


def test_an_answer_keeps_its_wish_and_is_free_the_second_time(tmp_path) -> None:
    ledger = create_ledger(tmp_path / "l", "people", Budget.epsilon(5), tmp_path / "s")
    sql = "SELECT COUNT(*) FROM people"
    with Session(people(), budget=ledger) as session:
        first = session.answer(sql, within=25)
        low, high = first.interval()
        assert (high - low) / 2 == 25 and abs(first.value - ROWS) < 250
        assert first.cost.spent == first.cost.asked == session.price(sql, within="25").charge
        assert not first.stored and session.answer(sql, within="25").stored
        # The spend that it came to, evenly shared, is the same question for one draw; another accuracy is not.
        assert not session.answer(sql, within=24).stored
        # A wish with another chance is another wish.
        assert not session.answer(sql, within=25, confidence=0.99).stored
        with pytest.raises(QueryRefused, match=r"more than the 0\.01 allowed"):
            session.answer(sql, within=23, spend="0.01")
    ledger.close()
    ledger = open_ledger(tmp_path / "l", tmp_path / "s")
    with Session(people(), budget=ledger) as session:
        assert session.answer(sql, within=25).value == first.value
    ledger.close()


def test_the_usual_spend_follows_from_the_tables_size() -> None:
    for measure, budget in (("epsilon", Budget.epsilon(50)), ("rho", Budget.rho(5))):
        with Session(people(), budget=memory_ledger("people", budget)) as session:
            assert session.each == suggested_spend(UNIT, ROWS, measure)
            width = session.price("SELECT COUNT(*) FROM people").to_dict()["values"][0]["half_width"]
            assert width == math.isqrt(ROWS)
    with Session(people(), budget="0.1") as small, Session(people(SIZELESS), budget=50) as sizeless:
        assert small.each == Fraction(1, 100) and sizeless.each == 5


@pytest.mark.parametrize("rows", [0, -5, 2.5, "many", 10**13])
def test_a_size_that_is_none_is_refused_by_the_schema(rows) -> None:
    with pytest.raises(ParameterError, match="rows"):
        AboutDataset(rows=rows)


def test_an_unknown_average_is_said_so_everywhere() -> None:
    query = Query("people", (AVG, COUNT), keys=("sex",))
    made = plan(query, SIZELESS, UNIT, "epsilon", Fraction(1))
    # Drawn: centred sums and counts of F, M and the missing; of the last two nobody can tell whether there is anyone.
    drawn = (np.array([-5_000, 90, -70]), np.array([900, 4, -6]), np.array([900, 5, -7]))
    cost = {name: Fraction(1) for name in ("spent", "asked", "left", "budget")}
    answer = Answer(
        frame=frame(made, drawn, SURE),
        guarantee=UNIT.guarantee(),
        cost=Cost(measure="epsilon", **cost),
        how=Making(
            query=query.canonical(),
            values=("a", "n"),
            keys=("sex",),
            plan=made.to_dict(),
            extremes="quantile",
            confidence=0.95,
            table={},
            ledger={},
        ),
        question="",
        stored=False,
        receipt="",
    )
    assert answer.frame["a"].is_null().to_list() == [False, True, True]
    assert answer.frame.select("a_low", "a_high").row(1) == (0.0, 100.0)
    said = "\n".join(map(str, answer.notes()))
    assert "a: 2 values are unknown at this spend" in said and "stands at a declared bound" not in said
    assert "n: 2 values of 3 are smaller than the noise may be" in said and "All others are as drawn." in said
    again = Answer.from_dict(json.loads(answer.to_json()))
    assert again.frame.equals(answer.frame) and again.notes() == answer.notes()
    assert answer.to("pandas")["a"].isna().tolist() == [False, True, True]
    shown = [row for line in answer_lines(answer, None, 200) if isinstance(line, Lines) for row in line.rows]
    assert [row[1] for row in shown][1:] == ["unknown", "unknown"]
    assert csv_bytes(answer.frame).decode().splitlines()[2].startswith("M,,0.0,100.0,")
    assert "unknown" in answer._repr_html_() and "unknown" in str(answer)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0, 3_000.0])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 7.0])
def test_a_joint_width_holds_for_the_discrete_sum(mechanism: str, scale: float, weight: float) -> None:
    """Against the exact distribution of X + weight Y, summed over all whole numbers that matter."""
    x = np.arange(-int(14 * scale + 14), int(14 * scale + 14) + 1)
    x = x[:: max(1, len(x) // 4001)]  # of wide noise every so many steps: a coarser sum of the same shape
    mass = np.exp(-np.abs(x) / scale) if mechanism == "laplace" else np.exp(-0.5 * (x / scale) ** 2)
    mass /= mass.sum()
    t = joint_width(mechanism, (scale, scale), weight, SURE)
    # P(|X + w Y| > t) = sum over y of P(X > t - w y) + P(X < -t - w y)
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    upper = above[np.searchsorted(x, t - weight * x, side="right")]
    lower = 1 - above[np.searchsorted(x, -t - weight * x, side="left")]
    assert float((mass * (upper + lower)).sum()) <= 0.05 + 1e-9


def test_the_joint_width_is_convex_in_its_weight() -> None:
    """The chord of `average_widths` lies above it only then; it depends on the ratio of the scales alone."""
    ratios = np.concatenate([np.linspace(0, 3, 301), np.geomspace(3, 1e4, 60)[1:]])
    widths = np.array([joint_width("laplace", (1e9, 1e9), float(r), SURE) for r in ratios])
    slopes = np.diff(widths) / np.diff(ratios)
    assert (np.diff(slopes) >= -1e-6 * slopes[1:]).all()


def test_both_noises_together_are_narrower_than_each_alone() -> None:
    for mechanism, gain in (("laplace", 0.6), ("gaussian", 0.65)):
        both = average_widths(mechanism, (5_000.0, 100.0), 50, SURE)
        each = [half_width(mechanism, scale, (1 + SURE) / 2) for scale in (5_000.0, 100.0)]
        assert both["of_sum"] + 50 * both["of_count"] < gain * (each[0] + 50 * each[1])


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_values_asked_within_a_width_are_off_by_more_as_seldom_as_stated(measure: str) -> None:
    """From exact tallies through the plan's own noise: counts, sums and averages of the worst column there is."""
    cells = 500
    schema = Schema(
        {
            "age": COLUMNS["age"],
            "cell": Column("cell", values=tuple(f"c{at}" for at in range(cells - 1))),
        },
        dataset=AboutDataset(rows=1_000 * (cells - 1)),
    )
    query = Query("t", (COUNT, SUM, AVG), keys=("cell",))
    made = plan_within(query, schema, Unit(), measure, Wish(Fraction(3), percent=True), SURE)
    counts = np.full(cells, 1_000)
    sums = np.where(np.arange(cells) % 2, 100_000, 0)  # every average at a bound
    exact = {"n": (counts, 30), "s": (sums, 3_000.0), "a": (sums / 1_000, 3.0)}
    tallies = (counts, sums, sums - 50 * counts, counts)
    off, held, trials = dict.fromkeys(exact, 0), dict.fromkeys(exact, 0), 0
    for _ in range(12):
        out = frame(made, carry_out(made, tallies), SURE)
        trials += cells
        for name, (truth, width) in exact.items():
            value = out[name].fill_null(float("nan")).to_numpy()
            off[name] += int((~(np.abs(value - truth) <= width + 1e-9)).sum())
            held[name] += int(
                (
                    (out[f"{name}_low"].to_numpy() <= truth + 1e-9)
                    & (truth - 1e-9 <= out[f"{name}_high"].to_numpy())
                ).sum()
            )
    most = trials * 0.05 + 5.5 * (trials * 0.05 * 0.95) ** 0.5
    assert max(off.values()) <= most and trials - min(held.values()) <= most, (off, held)


@given(st.fractions(Fraction(1, 10**9), 10**6))
def test_amounts_are_rounded_up_by_a_hair(amount: Fraction) -> None:
    assert amount <= rounded_up(amount) <= amount * (1 + Fraction(1, 10**5))
    assert rounded_up(rounded_up(amount)) == rounded_up(amount)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@given(width=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_the_widest_scale_is_just_within(mechanism: str, width: int) -> None:
    scale = widest_scale(mechanism, width, SURE)
    assert half_width(mechanism, scale, SURE) <= width < half_width(mechanism, scale * 1.001 + 1e-6, SURE)
