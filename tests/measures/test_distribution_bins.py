"""Pictures of categories: days become months, years or decades, many values a level of their taxonomy."""

from datetime import date, timedelta

import polars as pl
import pytest

from velado.data.schema import Schema
from velado.data.table import Table
from velado.measures.recoded_columns import read_published
from velado.measures.utility.distribution import Distribution, distributions


def drawn(values: list[str | None], published: list[str | None] | None = None, **column) -> Distribution:
    schema = Schema.from_dict({"columns": {"c": {"role": "quasi", **column}}})
    table = Table.of(pl.DataFrame({"c": pl.Series(values, dtype=pl.String)}), schema)
    frame = pl.DataFrame({"c": pl.Series(published or values, dtype=pl.String)})
    (found,) = distributions(read_published(table, frame))
    assert sum(found.before) == pytest.approx(1) and sum(found.after) == pytest.approx(1)
    return found


def days(start: date, step: int, count: int, form: str = "%Y-%m-%d") -> list[str]:
    return [(start + timedelta(days=step * at)).strftime(form) for at in range(count)]


@pytest.mark.parametrize(
    ("step", "grouped", "first", "last"),
    [(3, "month", "1990-02", "1991-09"), (50, "year", "1990", "2017"), (80, "decade", "1990s", "2030s")],
)
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%d%m%Y"])
def test_days_are_shown_by_month_year_or_decade(step, grouped, first, last, form) -> None:
    found = drawn(days(date(1990, 2, 3), step, 200, form), kind="date", format=form)
    assert found.grouped == grouped
    assert (found.labels[0], found.labels[-1]) == (first, last)
    assert len(found.labels) <= 30


@pytest.mark.parametrize("taxonomy", ["flat", "auto"])
def test_days_without_a_calendar_in_their_taxonomy_are_not_shown_either(taxonomy) -> None:
    values = days(date(1950, 1, 31), 40, 200, "%d/%m/%Y")
    found = drawn(values, kind="categorical", taxonomy={"builder": taxonomy})
    assert found.grouped == "year" and not set(values) & set(found.labels)


def test_a_year_without_a_day_keeps_its_place_and_a_published_year_fills_it() -> None:
    values = ["1990-01-05", "1990-06-01", "1993-02-02", None]
    found = drawn(values, ["1990", "1990", "1993-02-02", None], kind="date")
    assert found.labels == ("1990", "1991", "1992", "1993", "")
    assert found.before == found.after == (0.5, 0, 0, 0.25, 0.25)
    assert found.blank == 4 and found.total_variation == 0


def test_a_mistyped_year_does_not_stretch_the_picture() -> None:
    found = drawn(["1990-01-01", "2001-01-01", "9990-01-01"], kind="date")
    assert found.labels == ("1990s", "2000s", "9990s")


def test_many_values_are_shown_at_the_narrowest_level_that_fits() -> None:
    values = [f"{n:03d}" for n in range(0, 400, 4)]
    found = drawn(values, kind="categorical", taxonomy={"builder": "prefix", "keep": [2, 1]})
    assert found.grouped == "level" and found.labels == ("0*", "1*", "2*", "3*")
    assert found.before == pytest.approx((0.25,) * 4)
    few = drawn(values[:20], kind="categorical", taxonomy={"builder": "prefix", "keep": [2, 1]})
    assert few.grouped is None and few.labels[0] == "000"


def test_the_distances_are_those_of_the_values_not_of_their_bins() -> None:
    values = [f"{n:02d}" for n in range(30)]
    moved = [f"{n // 10 * 10:02d}" for n in range(30)]
    found = drawn(values, moved, kind="categorical", taxonomy={"builder": "prefix", "keep": [1]})
    assert found.before == found.after == pytest.approx((1 / 3,) * 3)
    assert found.total_variation == pytest.approx(27 / 30)


def test_codes_of_four_digits_are_no_years() -> None:
    found = drawn(["1984", "1985", "2001"], kind="categorical", taxonomy={"builder": "flat"})
    assert found.grouped is None and found.labels == ("1984", "1985", "2001")
