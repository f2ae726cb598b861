"""verify() trusts the file alone: open side doors break the promise, and what was not checked is named."""

from pathlib import Path

import polars as pl
import pytest

from velado.data.published_column import stated_number
from velado.data.schema import Schema
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.verify import verify

from ..tables import schema

ROWS = 40
AGE = [20 + (7 * i) % 20 for i in range(ROWS)]
PUBLISHED = {
    "age": ["[20..29]" if age < 30 else "[30..39]" for age in AGE],
    "illness": [f"i{i % 3}" for i in range(ROWS)],
}


def schema_of(more: dict | None = None, **table: str) -> Schema:
    return schema({"age": "quasi numeric", "illness": "sensitive", **(more or {})}, **table)


def frame(**more: list[str]) -> pl.DataFrame:
    return pl.DataFrame({**PUBLISHED, **more})


def test_the_original_column_added_back_breaks_the_promise_and_is_named() -> None:
    added = frame(years=[str(age) for age in AGE])
    found = verify(added, schema_of(), (KAnonymity(5),), undeclared="keep")
    assert found.smallest_behind is not None and found.smallest_behind < 5
    assert not found.holds and not found.facts()["holds"]
    assert found.facts()["open_side_doors"] == ["years"]
    assert found.broken is not None
    assert "'years'" in found.broken.what and "'age'" in found.broken.what
    assert not [value for value in map(str, AGE) if f" {value} " in str(found.broken)]


def test_an_original_column_is_found_though_the_published_intervals_overlap() -> None:
    # Mondrian cuts the ages of each city elsewhere, so an age lies in more than one published interval.
    ages = [20 + (7 * i) % 20 for i in range(80)]
    city = ["a" if i < 40 else "b" for i in range(80)]
    cut = {"a": 30, "b": 25}
    texts = [
        f"[20..{cut[c] - 1}]" if age < cut[c] else f"[{cut[c]}..39]"
        for age, c in zip(ages, city, strict=True)
    ]
    table = pl.DataFrame({"age": texts, "city": city, "years": [str(age) for age in ages]})
    schema = Schema.from_dict(
        {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "city": {"role": "quasi"}}}
    )
    found = verify(table, schema, (KAnonymity(5),), undeclared="keep")
    assert not found.holds
    assert found.facts()["open_side_doors"] == ["years"]


def test_a_column_that_only_repeats_the_published_value_does_not_break_it() -> None:
    again = frame(band=["young" if text == "[20..29]" else "older" for text in PUBLISHED["age"]])
    found = verify(again, schema_of({"band": {"role": "other"}}), (KAnonymity(5),))
    assert [door.kind for door in found.side_doors] == ["copy"]
    assert found.holds and found.broken is None
    assert found.facts()["open_side_doors"] == []


def test_an_unrelated_column_does_not_break_it() -> None:
    other = frame(score=[str((11 * i) % 17) for i in range(ROWS)])
    assert verify(other, schema_of({"score": {"role": "other"}}), (KAnonymity(5),)).holds


def test_an_accepted_side_door_is_named_and_does_not_break_it() -> None:
    added = frame(years=[str(age) for age in AGE])
    schema = schema_of({"years": {"role": "other", "side_door": "accept"}})
    found = verify(added, schema, (KAnonymity(5),))
    assert found.holds and found.side_doors
    assert found.smallest_behind is not None and found.smallest_behind < 5


def test_a_sensitive_column_that_is_not_in_the_file_is_named_as_unchecked() -> None:
    schema = schema_of({"income": {"role": "sensitive", "publish": False}})
    found = verify(frame(), schema, (KAnonymity(5), LDiversity(2)))
    assert found.holds
    assert found.unchecked == ("income",)
    assert found.facts()["unchecked_columns"] == ["income"]


def test_nothing_is_unchecked_where_no_promise_reads_the_column() -> None:
    schema = schema_of({"income": {"role": "sensitive", "publish": False}})
    assert verify(frame(), schema, (KAnonymity(5),)).unchecked == ()
    assert verify(frame(), schema, (KAnonymity(5), LDiversity(2, "illness"))).unchecked == ()


@pytest.mark.parametrize("separator", ["~", "^", " ", ":"])
def test_a_file_is_read_with_the_separator_of_the_schema(tmp_path: Path, separator: str) -> None:
    file = tmp_path / "table.csv"
    frame().write_csv(file, separator=separator)
    assert verify(file, schema_of(separator=separator), (KAnonymity(5),)).holds


def test_a_header_that_holds_another_separator_is_read_with_that_of_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    frame(**{"a;b;c;d": ["x", "y"] * 20}).write_csv(file, separator=",")
    schema = schema_of({"a;b;c;d": {"role": "other"}}, separator=",")
    assert verify(file, schema, (KAnonymity(5),)).holds


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_release_is_utf8_whatever_the_schema_says_of_the_original(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "table.csv"
    text = frame(place=["São Paulo", "Pará"] * 20).write_csv()
    file.write_bytes(text.encode(encoding))
    schema = schema_of({"place": {"role": "other"}}, encoding="latin-1")
    assert verify(file, schema, (KAnonymity(5),)).holds


def test_a_population_is_read_with_the_separator_of_the_schema(tmp_path: Path) -> None:
    from velado.release.guarantees import KMap

    file, everyone = tmp_path / "table.csv", tmp_path / "all.csv"
    frame().write_csv(file, separator="~")
    pl.DataFrame({"age": [str(age) for age in AGE * 2]}).with_columns(x=pl.lit("1")).write_csv(
        everyone, separator="~"
    )
    found = verify(file, schema_of(separator="~"), (KMap(40),), population=everyone)
    assert found.holds


@pytest.mark.parametrize(
    ("text", "decimal", "ends"),
    [
        ("-5", ".", (-5, -5)),
        ("-5--1", ".", (-5, -1)),
        ("[20..30)", ".", (20, 30)),
        ("(20,29]", ".", (20, 29)),
        ("(20,5; 29,5]", ",", (20.5, 29.5)),
        ("[20,5..29,5]", ",", (20.5, 29.5)),
        ("1e3", ".", (1000, 1000)),
        ("R$ 20-29", ".", (20, 29)),
        ("de 20 até 29 anos", ".", (20, 29)),
        ("< 5", ".", (-float("inf"), 5)),
        ("29-20", ".", None),
        ("2020-05-01", ".", None),
        ("01/02/2020", ".", None),
        ("young", ".", None),
        ("A-20", ".", None),
        ("", ".", None),
    ],
)
def test_what_a_published_number_states(text: str, decimal: str, ends: tuple[float, float] | None) -> None:
    found = stated_number(text, decimal)
    assert (None if found is None else (found.lower, found.upper)) == ends
