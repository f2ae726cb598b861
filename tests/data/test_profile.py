"""What a steward first sees: cards in the order of danger, look-alikes, candidates; and counters that never lie low."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.data.normal import normal_texts
from velado.data.profile import profile
from velado.data.separation import exposure
from velado.data.told_apart import ToldApart
from velado.errors import ParameterError
from velado.text import told

DRAW = np.random.default_rng(4)
ROWS = 600
FRAME = pl.DataFrame(
    {
        "patient_id": [f"P{n:05d}" for n in DRAW.integers(0, 200, ROWS)],
        "age": [str(n) for n in DRAW.integers(0, 99, ROWS)],
        "sex": DRAW.choice(["F", "M", ""], ROWS),
        "admission_date": [f"20{n:02d}-03-0{n % 9 + 1}" for n in DRAW.integers(0, 24, ROWS)],
        **{f"lab_{n}": [f"{x:.2f}" for x in DRAW.normal(5, 1, ROWS)] for n in range(4)},
        "ward": DRAW.choice(["A", "B"], ROWS),
    }
)


def test_cards_stand_in_the_order_of_danger_and_show_no_identifier() -> None:
    found = profile(FRAME)
    names = [card.name for card in found.columns]
    assert (
        names[0] == "patient_id" and found.columns[0].bars == () and names.index("age") < names.index("ward")
    )
    dangers = [card.danger for card in found.columns]
    assert dangers == sorted(dangers, reverse=True) and max(dangers) <= 1
    assert {card.name: card.found for card in found.columns} == {f.name: f for f in inspect(FRAME).columns}


def test_bars_hold_every_row_with_a_value() -> None:
    for card in profile(FRAME).columns:
        if card.bars:
            assert sum(bar.rows for bar in card.bars) == ROWS - card.found.missing
            assert len(card.bars) <= 13


def test_look_alikes_are_one_decision_and_people_are_candidates() -> None:
    found = profile(FRAME)
    assert found.alike == (("lab_0", "lab_1", "lab_2", "lab_3"),)
    (candidate,) = found.candidates
    sizes = FRAME["patient_id"].value_counts()["count"]
    assert (candidate.column, candidate.people, candidate.most) == ("patient_id", len(sizes), sizes.max())


def test_values_that_hardly_repeat_are_not_shown() -> None:
    codes = pl.DataFrame({"code": [f"x{n:04d}" for n in range(200)], "age": ["31", "32"] * 100})
    card = next(card for card in profile(codes).columns if card.name == "code")
    assert card.bars == () and card.unique == 1.0


def test_how_the_file_was_read_is_told(tmp_path: object) -> None:
    path = tmp_path / "t.csv"  # type: ignore[operator]
    path.write_bytes("nome;peso\nJosé;70,5\nAna;NA\nEva;61,2\nRui;80\nIda;55,5\n".encode("latin-1"))
    reading = profile(path).reading
    assert (reading.separator, reading.decimal) == (";", ",") and "NA" in reading.missing_values
    assert reading.encoding != "utf-8"


def test_the_counter_counts_what_inspect_counts() -> None:
    table = read_table(FRAME).with_schema(inspect(FRAME).schema)
    counter = ToldApart.of(table)
    for columns in (["age"], ["age", "sex"], ["age", "sex", "admission_date", "ward"]):
        for person in (None, "patient_id"):
            assert counter.count(columns, person) == exposure(table, columns, person)


@given(
    st.lists(st.sampled_from(FRAME.columns[1:]), unique=True, max_size=6), st.sampled_from(FRAME.columns[1:])
)
def test_one_more_column_never_hides_anybody(columns: list[str], more: str) -> None:
    counter = ToldApart.of(read_table(FRAME))
    for person in (None, "patient_id"):
        fewer, wider = counter.count(columns, person), counter.count([*columns, more], person)
        assert wider.unique_rows >= fewer.unique_rows and wider.unique_people >= fewer.unique_people


def test_without_columns_all_are_alike_and_a_wrong_name_is_refused() -> None:
    counter = ToldApart.of(read_table(FRAME))
    assert counter.count([]).unique_rows == 0 and counter.count([]).smallest == ROWS
    with pytest.raises(ParameterError, match="'agee'"):
        counter.count(["agee"])


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_that_are_short_already_stay_as_they_are(decimal: str) -> None:
    signs, wholes, rests = (
        ("", "+", "-"),
        ("", "0", "00", "7", "07", "120"),
        ("", ".", ".0", ".5", ".50", ".05"),
    )
    texts = [sign + whole + rest for sign in signs for whole in wholes for rest in rests]
    numbers = [text for text in texts if any(c.isdigit() for c in text)]
    once = normal_texts(pl.Series([text.replace(".", decimal) for text in numbers]), decimal=decimal)
    assert normal_texts(once).to_list() == once.to_list()
    assert [float(text) for text in once] == [float(text) for text in numbers]
    assert len(set(once)) == len({float(text) for text in numbers})  # each number has one form


def test_a_bar_holds_the_rows_between_the_ends_it_names() -> None:
    ages = [int(n) for n in DRAW.integers(0, 95, ROWS)]
    doses = [round(float(n), 2) for n in DRAW.lognormal(0, 2, ROWS)]
    frame = pl.DataFrame({"age": [str(n) for n in ages], "dose": [f"{n:.2f}" for n in doses]})
    cards = {card.name: card for card in profile(frame).columns}
    for name, numbers in (("age", ages), ("dose", doses)):
        ends = [[float(end) for end in bar.label.split(" to ")] for bar in cards[name].bars]
        if (
            name == "age"
        ):  # whole numbers: both ends belong to the bar, and each bar but the outer ones has as many
            assert [low - 1 for low, _ in ends[1:]] == [high for _, high in ends[:-1]]
            assert len({high - low for low, high in ends[1:-1]}) == 1
            ends = [[low, high + 1] for low, high in ends]
            numbers, ends[-1][1] = list(numbers), max(numbers)
        assert (ends[0][0], ends[-1][1]) == (min(numbers), max(numbers))
        for (low, high), bar in zip(ends, cards[name].bars, strict=True):
            last = high == ends[-1][1]
            assert bar.rows == sum(low <= n < high or (last and n == high) for n in numbers)


def test_the_ends_of_bars_are_written_as_the_language_does() -> None:
    label = next(card for card in profile(FRAME).columns if card.name == "lab_0").bars[3].label
    assert "," in told(label, "pt") and "." not in told(label, "pt")


def laboratory(rows: int = 300) -> pl.DataFrame:
    draw = np.random.default_rng(7)
    frame = {
        "idade": [str(n) for n in draw.integers(0, 90, rows)],
        "sexo": list(draw.choice(["F", "M", "9"], rows)),
    }
    for name in ("Na", "K", "Cl", "Ureia", "BD"):
        cells = [f"{n:.1f}".replace(".", ",") for n in draw.normal(60, 5, rows)]
        frame[name] = [
            "ND" if n < 0.05 else "-999" if n < 0.1 else cell
            for n, cell in zip(draw.random(rows), cells, strict=True)
        ]
    return pl.DataFrame(frame)


def test_a_laboratory_with_words_among_its_numbers_shows_its_decimal_mark_and_codes() -> None:
    found = inspect(laboratory())
    assert found.schema.decimal == "," and found.schema.missing_values == ("",)
    assert {code.code for code in found.missing_codes if code.column == "Na"} == {"ND", "-999"}


def test_codes_somebody_declared_are_no_values_and_are_not_asked_again() -> None:
    frame = laboratory()
    found = inspect(frame, missing_values=("", "ND", "-999"))
    assert {c.name: c.kind for c in found.columns}["Na"] == "numeric"
    assert all(code.applied for code in found.missing_codes if code.code in ("ND", "-999"))
    assert found.schema.missing_values == ("", "ND", "-999")
    assert profile(read_table(frame), found).alike == (("Na", "K", "Cl", "Ureia", "BD"),)


def test_a_few_commas_are_no_decimal_mark() -> None:
    answers = ["1", "2", "1,2", "3", "1,2,3", "4"] * 20
    found = inspect(pl.DataFrame({"answer": answers, "dose": ["1.5", "2.25", "3.5"] * 40}))
    assert found.schema.decimal == "."


@pytest.mark.parametrize("header", ["num_sih", "n_aih", "numero", "casa", "campo_x"])
def test_who_shares_birth_and_sex_is_a_candidate_whatever_the_header_says(header: str) -> None:
    people = DRAW.integers(0, 200, ROWS)
    kept = {
        "nascimento": [f"19{p % 90 + 10}-0{p % 9 + 1}-1{p % 8}" for p in people],
        "sexo": ["FM"[p % 2] for p in people],
    }
    stays = pl.DataFrame({header: [f"{p:07d}" for p in people], **kept})
    found = profile(stays)
    assert header in [candidate.column for candidate in found.candidates]
    finding = next(f for f in found.inspection.columns if f.name == header)
    assert finding.may_be_person and (finding.identifier is not None or not finding.publish)
    # A house's number that agrees with nobody's birth is no candidate.
    houses = pl.DataFrame({"num_casa": [f"{n:04d}" for n in DRAW.integers(0, 200, ROWS)], **kept})
    assert "num_casa" not in [candidate.column for candidate in profile(houses).candidates]
