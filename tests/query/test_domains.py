"""Keys come from what the owner declared, whole and in order; where nothing is declared, nothing is grouped."""

from fractions import Fraction

import pytest

from velado.data.io import read_schema
from velado.data.samples import SAMPLE_FOLDER
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.errors import QueryRefused
from velado.query.domains import decimal_text, key_of


def domain(column: Column, limit: int = 10_000, **settings) -> tuple[str, ...]:
    key = key_of(Schema({column.name: column}, **settings), column.name, limit)
    assert key.column == column.name
    return key.domain


def test_declared_values_are_the_domain_in_their_own_order():
    assert domain(Column("sex", values=("M", "F"))) == ("M", "F")


def test_texts_that_mean_no_value_are_no_keys():
    assert domain(Column("sex", values=("M", "", "NA", "F")), missing_values=("", "NA")) == ("M", "F")


def test_the_leaves_of_a_declared_taxonomy_are_the_domain():
    paths = (
        ("Viçosa", "MG", "*"),
        ("Ubá", "MG", "*"),
        ("Santos", "SP", "*"),
        ("Ubá", "MG", "*"),
        ("*", "*", "*"),
    )
    assert domain(Column("city", taxonomy=TaxonomySpec("levels", file="c.csv", paths=paths))) == (
        "Viçosa",
        "Ubá",
        "Santos",
    )
    tree = {"Asia": ["Japan", "India"], "Europe": {"North": ["Norway"], "South": "Malta"}}
    assert domain(Column("land", taxonomy=TaxonomySpec("tree", tree=tree))) == (
        "Japan",
        "India",
        "Norway",
        "Malta",
    )


def test_a_taxonomy_file_of_the_sample_gives_its_column_keys():
    schema = read_schema(SAMPLE_FOLDER / "hospital.schema.toml")
    keys = key_of(schema, "raca_cor").domain
    assert len(keys) > 2
    lines = (SAMPLE_FOLDER / "taxonomies" / "raca_cor.csv").read_text("utf-8").splitlines()
    assert [line.split(";")[0] for line in lines] == list(keys)


@pytest.mark.parametrize(
    ("bounds", "step", "expected"),
    [
        ((0, 3), 1, ("0", "1", "2", "3")),
        ((-1, 1), 0.5, ("-1", "-0.5", "0", "0.5", "1")),
        ((0.1, 0.3), 0.1, ("0.1", "0.2", "0.3")),
        ((-0.15, 0.15), 0.1, ("-0.1", "0", "0.1")),
        ((0, 250), 100, ("0", "100", "200")),
    ],
)
def test_numbers_have_the_points_of_their_grid(bounds, step, expected):
    # A bound is the decimal the owner wrote, not the double beside it: 0.1 and 0.3 are on the grid.
    assert domain(Column("x", kind="numeric", bounds=bounds, step=step)) == expected


def test_numbers_are_written_with_the_decimal_mark_of_the_table():
    assert domain(Column("x", kind="numeric", bounds=(0, 1), step=0.5), decimal=",") == ("0", "0,5", "1")


def test_values_of_numbers_and_dates_are_checked_against_their_kind():
    assert domain(Column("x", kind="numeric", values=("1", "2.5"))) == ("1", "2.5")
    assert domain(Column("d", kind="date", format="%d/%m/%Y", values=("01/02/2020",))) == ("01/02/2020",)
    for column in (
        Column("x", kind="numeric", values=("1", "one")),
        Column("x", kind="numeric", values=("1", "1.0")),
        Column("x", kind="date", values=("2020-02-30",)),
    ):
        with pytest.raises(QueryRefused, match="not all different"):
            domain(column)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (Column("c"), "public list"),
        (Column("c", kind="text"), "public list"),
        (Column("c", kind="date"), "date"),
        (Column("c", taxonomy=TaxonomySpec("prefix", keep=(2,))), "built from the rows"),
        (Column("c", taxonomy=TaxonomySpec("auto")), "built from the rows"),
        (Column("c", taxonomy=TaxonomySpec("levels", file="c.csv")), "not been read"),
        (Column("c", kind="numeric"), "bounds and step"),
        (Column("c", kind="numeric", bounds=(0, 9)), "bounds and step"),
        (Column("c", kind="numeric", step=1), "bounds and step"),
        (Column("c", kind="numeric", bounds=(0, 10_000), step=1), "10,001"),
        (Column("c", values=tuple(str(i) for i in range(10_001))), "10,001"),
        (Column("c", values=("",)), "0 values"),
    ],
)
def test_without_a_declared_domain_the_reason_is_given(column, reason):
    with pytest.raises(QueryRefused) as caught:
        domain(column)
    assert reason in str(caught.value)


def test_the_limit_is_the_callers():
    assert len(domain(Column("c", values=("a", "b", "c")), limit=3)) == 3
    with pytest.raises(QueryRefused, match="at most 2 keys"):
        domain(Column("c", values=("a", "b", "c")), limit=2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("12", "12"),
        ("-1/2", "-0.5"),
        ("1/8", "0.125"),
        ("-1001/100", "-10.01"),
        ("1/500", "0.002"),
    ],
)
def test_a_decimal_is_written_out_exactly(value, text):
    assert decimal_text(Fraction(value)) == text
    assert Fraction(text) == Fraction(value)
