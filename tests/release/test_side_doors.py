"""A published column that gives a quasi-identifier away is named, and a one-to-one copy is refused."""

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.io import read_schema, read_table
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import SideDoorOpen
from velado.release._copies import numbers_in
from velado.release.side_doors import (
    SideDoor,
    find,
    find_side_doors,
    promise_with_side_doors,
    refuse_copies,
)
from velado.release.side_doors import (
    _narrowing as _together,
)

ADULT_QUASI = [
    "sex",
    "age",
    "race",
    "marital_status",
    "education",
    "native_country",
    "workclass",
    "occupation",
]


def table_of(cells: dict[str, list[str]], **columns: Column) -> Table:
    """A table whose column `q` is a quasi-identifier and whose others are published as they are."""
    schema = {name: Column(name, "quasi" if name.startswith("q") else "other") for name in cells}
    schema |= columns
    return Table.of(pl.DataFrame(cells, schema={name: pl.String for name in cells}), Schema(schema))


def doors(table: Table) -> dict[tuple[str, str], str]:
    return {(door.column, door.reveals): door.kind for door in find_side_doors(table)}


def guessed_by_hand(column: list[str], quasi: list[str]) -> float:
    """Leave-one-out guessing, row by row: the reference the table of counts must agree with."""
    commonest = max(sorted(set(quasi)), key=Counter(quasi).__getitem__)
    total = 0.0
    for row, value in enumerate(column):
        rest = Counter(q for at, q in enumerate(quasi) if at != row and column[at] == value)
        if not rest:
            total += quasi[row] == commonest
            continue
        best = [q for q, count in rest.items() if count == max(rest.values())]
        total += (quasi[row] in best) / len(best)
    return total / len(column)


def test_a_recoding_under_other_names_is_a_copy_and_is_refused_with_its_name() -> None:
    quasi = ["a", "b", "c", "a", "b", "c"] * 5
    table = table_of({"q": quasi, "again": [{"a": "1", "b": "2", "c": "3"}[v] for v in quasi]})
    found = find_side_doors(table)
    assert [(d.column, d.reveals, d.kind, d.guess, d.rows_revealed) for d in found] == [
        ("again", "q", "copy", 1.0, 30)
    ]
    with pytest.raises(SideDoorOpen, match="'again' repeats quasi-identifier 'q' one to one") as error:
        refuse_copies(found)
    assert 'side_door = "accept"' in error.value.fix


def test_an_accepted_copy_is_named_but_not_refused() -> None:
    quasi = ["a", "b"] * 10
    table = table_of({"q": quasi, "again": quasi}, again=Column("again", side_door="accept"))
    found = find_side_doors(table)
    assert found[0].kind == "copy" and found[0].accepted
    refuse_copies(found)


@pytest.mark.parametrize("column", [Column("again", "identifier"), Column("again", publish=False)])
def test_a_copy_that_is_not_published_is_no_side_door(column: Column) -> None:
    quasi = ["a", "b"] * 10
    assert find_side_doors(table_of({"q": quasi, "again": quasi}, again=column)) == ()


def test_a_finer_column_is_functional_and_not_a_copy() -> None:
    fine = ["a1", "a2", "b1", "b2"] * 10
    table = table_of({"q": [value[0] for value in fine], "fine": fine})
    assert doors(table) == {("fine", "q"): "functional"}
    refuse_copies(find_side_doors(table))


def test_a_coarser_column_does_not_count_as_giving_the_finer_one_away() -> None:
    fine = [f"{letter}{number}" for letter in "ab" for number in range(10)] * 10
    assert doors(table_of({"q": fine, "coarse": [value[0] for value in fine]})) == {}


def test_identical_texts_are_a_copy_even_where_every_value_is_rare() -> None:
    values = [str(number) for number in range(80)]
    assert doors(table_of({"q": values, "again": values}))[("again", "q")] == "copy"


def test_two_unrelated_columns_without_repeats_are_no_copy_of_one_another() -> None:
    table = table_of({"q": [f"q{i}" for i in range(80)], "other": [f"o{i * 37 % 80}" for i in range(80)]})
    assert doors(table) == {("other", ""): "near-unique"}
    refuse_copies(find_side_doors(table))


def test_a_near_unique_column_needs_half_the_rows_and_ten_of_them() -> None:
    quasi = ["a", "b"] * 30
    half = [str(i) if i < 30 else "same" for i in range(60)]
    less = [str(i) if i < 29 else "same" for i in range(60)]
    assert ("c", "") in doors(table_of({"q": quasi, "c": half}))
    assert ("c", "") not in doors(table_of({"q": quasi, "c": less}))
    assert ("c", "") in doors(table_of({"q": quasi[:10], "c": [str(i) for i in range(10)]}))
    assert ("c", "") not in doors(table_of({"q": quasi[:9], "c": [str(i) for i in range(9)]}))


BIRTHS = [date(1950, 1, 1) + timedelta(days=(i * 7919) % 20000) for i in range(60)]


@pytest.mark.parametrize("rows", [40, 60])
@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d 00:00:00", "%d/%m/%y"]
)
def test_a_date_written_otherwise_is_a_copy_though_every_date_is_rare(rows: int, form: str) -> None:
    quasi = [day.isoformat() for day in BIRTHS[:rows]]
    found = doors(table_of({"q": quasi, "again": [day.strftime(form) for day in BIRTHS[:rows]]}))
    assert found[("again", "q")] == "copy"


def test_a_date_in_the_format_of_the_schema_is_read_with_it() -> None:
    quasi = [day.strftime("%Y_%d_%m") for day in BIRTHS]
    table = table_of(
        {"q": quasi, "again": [day.isoformat() for day in BIRTHS]},
        q=Column("q", "quasi", "date", format="%Y_%d_%m"),
    )
    assert doors(table)[("again", "q")] == "copy"


@pytest.mark.parametrize(
    "written",
    [
        lambda v: f"{v}.0",
        lambda v: f"{v},00",
        lambda v: f" {v} ",
        lambda v: f"{v:05d}",
    ],
)
def test_a_number_written_otherwise_is_a_copy(written: Callable[[int], str]) -> None:
    values = [1000 + 37 * i for i in range(40)]
    found = doors(table_of({"q": [str(v) for v in values], "again": [written(v) for v in values]}))
    assert found[("again", "q")] == "copy"


def test_case_and_space_do_not_hide_a_copy() -> None:
    names = [f"São José  do {chr(97 + i % 26)}{i}" for i in range(40)]
    again = [" ".join(name.upper().split()) + " " * (i % 3) for i, name in enumerate(names)]
    assert doors(table_of({"q": names, "again": again}))[("again", "q")] == "copy"


AGES = [str(20 + i * i % 40) for i in range(60)]


@pytest.mark.parametrize("new", ["99", "", "21 "])
@pytest.mark.parametrize("recode", [lambda v: v, lambda v: f"code {int(v) * 3 % 101}"])
def test_one_altered_or_blank_cell_does_not_turn_a_copy_into_a_warning(
    new: str, recode: Callable[[str], str]
) -> None:
    again = [recode(value) for value in AGES]
    again[7] = new
    assert doors(table_of({"q": AGES, "again": again}))[("again", "q")] == "copy"


def test_trailing_spaces_do_not_turn_a_copy_into_a_warning() -> None:
    again = [f"code {int(value) * 3 % 101}" + " " * (i % 2) for i, value in enumerate(AGES)]
    assert doors(table_of({"q": AGES, "again": again}))[("again", "q")] == "copy"


def test_a_copy_in_some_rows_and_blank_in_the_others_is_a_copy() -> None:
    again = [value if i % 3 == 0 else "" for i, value in enumerate(AGES)]
    assert doors(table_of({"q": AGES, "again": again}))[("again", "q")] == "copy"


def test_two_columns_that_are_nearly_always_zero_are_no_copies() -> None:
    quasi = ["1" if i in (3, 500) else "0" for i in range(1000)]
    other = ["1" if i in (3, 700) else "0" for i in range(1000)]
    assert ("c", "q") not in doors(table_of({"q": quasi, "c": other}))


def test_a_column_that_disagrees_in_a_twentieth_of_the_rows_is_no_copy() -> None:
    quasi = [str(i % 7) for i in range(1000)]
    other = ["8" if i % 20 == 0 else f"x{value}" for i, value in enumerate(quasi)]
    assert doors(table_of({"q": quasi, "c": other})) == {("c", "q"): "near-functional"}


def test_a_column_that_settles_some_values_only_is_named() -> None:
    # Half of the women have a diagnosis only women have; it removes few wrong guesses, but settles a quarter.
    quasi = ["f"] * 40 + ["f"] * 40 + ["m"] * 80
    table = table_of({"q": quasi, "diagnosis": ["o80"] * 40 + ["j10", "i21"] * 60})
    assert doors(table) == {("diagnosis", "q"): "near-functional"}


def test_pure_small_groups_of_a_common_value_are_chance() -> None:
    # A third of such groups hold nobody of the 5 %, and that tells nothing.
    rng = np.random.default_rng(1)
    quasi = np.where(rng.random(4000) < 0.95, "common", "seldom").tolist()
    assert doors(table_of({"q": quasi, "c": [str(i // 20) for i in range(4000)]})) == {}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=2, max_size=30))
def test_the_share_guessed_from_counts_is_that_of_guessing_row_by_row(rows: list[tuple[str, str]]) -> None:
    column, quasi = [row[0] for row in rows], [row[1] for row in rows]
    # Ties for the commonest value of all are broken alike by naming the codes in order.
    codes = np.array(["abcd".index(v) + 1 for v in column], dtype=np.int32)
    other = np.array(["xyz".index(v) + 1 for v in quasi], dtype=np.int32)
    found = find._dependence((codes, 5), (other, 4))
    assert found.guess == pytest.approx(guessed_by_hand(column, quasi))
    pinned = [v for v in set(column) if len({q for c, q in rows if c == v}) == 1 and column.count(v) > 1]
    assert found.rows_revealed == sum(column.count(v) for v in pinned)


def test_a_sample_finds_doors_but_a_copy_is_confirmed_on_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "SAMPLE_ROWS", 200)
    quasi = [str(i * i % 7) for i in range(1000)]
    copy = [f"x{value}" for value in quasi]
    # None of the altered rows, a tenth of all, is in the sample of every fifth row.
    flawed = [f"y{int(value) + 1}" if i % 10 == 1 else f"x{value}" for i, value in enumerate(quasi)]
    rare = [str(i // 2) for i in range(1000)]
    table = table_of({"q": quasi, "copy": copy, "flawed": flawed, "q2": [v[-1] for v in rare], "rare": rare})
    found = doors(table)
    assert found[("copy", "q")] == "copy"
    assert found[("flawed", "q")] == "functional"
    assert found[("rare", "q2")] == "functional"  # evenly spaced rows would never meet a value twice
    assert next(door for door in find_side_doors(table) if door.column == "copy").rows_revealed == 1000


def test_the_promise_is_what_is_left_when_the_attacker_reads_more_columns() -> None:
    frame = pl.DataFrame({"q": ["*"] * 6, "fine": ["a", "a", "a", "b", "b", "c"]})
    assert promise_with_side_doors(frame, ["q"], []) == 6
    assert promise_with_side_doors(frame, ["q"], ["fine"]) == 1


def test_no_finding_repeats_a_cell() -> None:
    quasi = ["secretA", "secretB"] * 10
    for door in find_side_doors(table_of({"q": quasi, "again": quasi})):
        assert "secret" not in f"{door!r} {door.sentence()}"


def test_the_hospital_sample_has_no_copy_and_its_diagnosis_tells_of_sex() -> None:
    table = read_table(hospital_csv(), read_schema(hospital_schema()))
    found = doors(table)
    assert "copy" not in found.values()
    assert found[("cid10", "sexo")] == "near-functional"


def test_adult_has_one_copy_and_two_columns_that_often_give_one_away(data_folder: Path) -> None:
    plain = read_table(data_folder / "adult" / "adult_clean.csv")
    roles = {name: "quasi" for name in ADULT_QUASI} | {"income": "sensitive"}
    schema = Schema({name: Column(name, roles.get(name, "other")) for name in plain.frame.columns})  # type: ignore[arg-type]
    assert doors(read_table(plain, schema)) == {
        ("education_num", "education"): "copy",
        ("relationship", "sex"): "near-functional",
        ("relationship", "marital_status"): "near-functional",
    }


def test_pairs_that_were_not_looked_at_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "MOST_ORDERS", 2)
    cells = {"q": [str(i * i % 7) for i in range(200)]}
    cells |= {f"c{n}": [str((i * 31 + n) ** 2 % (n + 3)) for i in range(200)] for n in range(4)}
    unseen = [door for door in find_side_doors(table_of(cells)) if door.kind == "unseen"]
    # Four columns and one quasi-identifier: twenty orders of two of them, less those of two that are one.
    assert len(unseen) == 1 and unseen[0].rows_revealed >= 10
    assert "not looked at" in unseen[0].sentence() and unseen[0].columns == ()


def test_a_pair_keeps_its_columns_under_the_name_of_its_table() -> None:
    pair = SideDoor("a + b", "q", "near-copy", 1.0, 0.0, 0, False, ("a", "b"))
    moved = pair.within("visits")
    assert moved.columns == ("visits.a", "visits.b") and moved.reveals == "visits.q"
    assert moved.column == "visits.a + visits.b"
    with pytest.raises(
        SideDoorOpen, match=r"'visits\.a' and 'visits\.b' repeat quasi-identifier 'visits\.q'"
    ):
        refuse_copies([moved])


def test_a_near_copy_in_a_sensitive_column_is_named_only() -> None:
    ages = [10 + i * 37 % 90 for i in range(360)]
    near = [str(age + (i + i // 90) % 3 - 1) for i, age in enumerate(ages)]
    cells = {"q": [str(age) for age in ages], "c": near}
    with pytest.raises(SideDoorOpen, match="'c'"):
        refuse_copies(find_side_doors(table_of(cells)))
    found = find_side_doors(table_of(cells, c=Column("c", "sensitive", "numeric")))
    assert [door.kind for door in found] == ["narrows"]
    refuse_copies(found)


@pytest.mark.parametrize(
    "texts",
    [
        ["34 y", "35 y", None, "36 y"],
        ["r$ 4.123,50", "r$ 12,00", "r$ 7,5"],
        ["~4.123", "~5.120", "~1.001"],
        ["<=50k", ">50k", "-3 k"],
    ],
)
def test_texts_that_repeat_are_read_as_the_numbers_they_are_alone(texts: list[str | None]) -> None:
    once = pl.Series(texts, dtype=pl.String)
    often = pl.concat([once] * 20)  # read as distinct texts; the few alone are read row by row
    alone, repeated = numbers_in(once), numbers_in(often)
    assert alone
    assert len(alone) == len(repeated)
    for one, many in zip(alone, repeated, strict=True):
        assert many.to_list() == one.to_list() * 20
