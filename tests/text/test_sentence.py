"""A sentence is finished English, and the same facts in Portuguese when it is told."""

import copy
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import TableError, VeladoError
from velado.text import Sentence, join, listed, say, say_n, speaking, told, told_error, told_sentences
from velado.text import sentence as module
from velado.text.languages import Catalogue

WORDS = Catalogue(
    {
        "{rows:,} rows": "{rows:,} linhas",
        "Column '{column}' has {rows}.": "A coluna '{column}' tem {rows}.",
        "The {a} before the {b}.": "O {b} depois do {a}.",
        "empty": "vazia",
        "Braces { stay }.": "Chaves { ficam }.",
        "Rate {rate:.1%}, {step:g}, {x:.{digits}f}": "Taxa {rate:.1%}, {step:g}, {x:.{digits}f}",
        "; ": " | ",
    },
    {"{n:,} row of {table}": ("{n:,} linha de {table}", "{n:,} linhas de {table}")},
)


@pytest.fixture
def portuguese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "catalogue", lambda language: WORDS)


def test_the_value_is_what_an_f_string_would_be() -> None:
    column, rows = "age", 1234
    made = say("Column '{column}' has {rows:,} {{rows}}, {path}.", column=column, rows=rows, path=Path("a"))
    assert made == f"Column '{column}' has {rows:,} {{rows}}, {Path('a')}."
    assert isinstance(made, str)
    assert hash(made) == hash(str(made))
    assert json.dumps([made]) == json.dumps([str(made)])


@pytest.mark.usefixtures("portuguese")
def test_parts_are_told_in_the_other_language_and_in_its_order() -> None:
    made = say("Column '{column}' has {rows}.", column="empty", rows=say("{rows:,} rows", rows=1234))
    assert made == "Column 'empty' has 1,234 rows."
    # A column's name is never translated, even where it happens to be a key.
    assert told(made, "pt") == "A coluna 'empty' tem 1.234 linhas."
    assert told(made, "en") == str(made)
    assert told(say("The {a} before the {b}.", a="x", b="y"), "pt") == "O y depois do x."


@pytest.mark.usefixtures("portuguese")
def test_a_plain_text_is_its_own_key_and_an_unknown_one_stays_english() -> None:
    assert told("empty", "pt") == told(say("empty"), "pt") == "vazia"
    assert told("Braces { stay }.", "pt") == told(say("Braces { stay }."), "pt") == "Chaves { ficam }."
    assert told("unknown {x}", "pt") == "unknown {x}"
    assert told(say("unknown {x:,}", x=1000.5), "pt") == "unknown 1.000,5"


@pytest.mark.usefixtures("portuguese")
def test_format_specs_hold_in_both_languages() -> None:
    made = say("Rate {rate:.1%}, {step:g}, {x:.{digits}f}", rate=0.1234, step=0.25, x=1.0, digits=2)
    assert made == "Rate 12.3%, 0.25, 1.00"
    assert told(made, "pt") == "Taxa 12,3%, 0,25, 1,00"


@pytest.mark.parametrize(
    ("n", "portuguese_text"), [(0, "0 linha de t"), (1, "1 linha de t"), (2000, "2.000 linhas de t")]
)
@pytest.mark.usefixtures("portuguese")
def test_each_language_has_its_own_plural(n: int, portuguese_text: str) -> None:
    made = say_n("{n:,} row of {table}", "{n:,} rows of {table}", n, table="t")
    assert made == f"{n:,} row{'' if n == 1 else 's'} of t"
    assert told(made, "pt") == portuguese_text
    assert told(say_n("{n} cow", "{n} cows", np.int64(n)), "pt") == f"{n} cow{'' if n == 1 else 's'}"


@pytest.mark.usefixtures("portuguese")
def test_joined_parts_are_each_told() -> None:
    made = join([say("empty"), "empty", 1.5], say("; "))
    assert (made, told(made, "pt")) == ("empty; empty; 1.5", "vazia | empty | 1,5")
    assert join([]) == told(join([]), "pt") == ""


def test_lists_are_told_with_the_languages_word() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert told(listed("abc", "or"), "pt") == "a, b ou c"
    assert told(listed("abc"), "pt") == "a, b e c"


def test_the_language_spoken_now_is_the_default() -> None:
    with speaking("pt"):
        assert told(listed("ab")) == "a e b"
        with speaking("en"):
            assert told(listed("ab")) == "a and b"
    assert told(listed("ab")) == "a and b"


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],
    ids=["copy", "deep", "pickle"],
)
def test_a_copy_can_still_be_told(again) -> None:
    made = say("{a} of {b}, {c}", a=listed("xy"), b=say_n("{n} row", "{n} rows", 2), c=ValueError("v"))
    other = again(made)
    assert (type(other), other, other.template, other.parts) == (Sentence, made, made.template, made.parts)
    assert told(other, "pt") == "x e y of 2 rows, v"
    assert repr(other) == repr(str(made))


PARTS = [7, 1234567, 0.1, 1e-7, 1e22, True, None, "a,b.c", Decimal("1.50"), Fraction(1, 3), np.float32(0.1)]
PARTS += [np.int64(5), np.float64(2.5), np.bool_(True), [1.5, 2], Path("a.b"), date(2024, 3, 1)]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_any_part_is_written_in_english_as_an_f_string_writes_it(part: object) -> None:
    assert say("{part}", part=part) == f"{part}"


def test_dates_are_written_as_the_language_writes_them() -> None:
    assert told(say("{d}", d=date(2024, 3, 1)), "pt") == "01/03/2024"
    assert told(say("{d:%Y}", d=date(2024, 3, 1)), "pt") == "2024"
    assert told(say("{d}", d=datetime(2024, 3, 1, 4, 5, tzinfo=UTC)), "pt") == "01/03/2024 04:05:00+00:00"


def test_only_numbers_lose_their_points() -> None:
    made = say("{a} {b} {c}", a="1.5", b=[1.5], c=1.5)
    assert told(made, "pt") == "1.5 [1.5] 1,5"


@given(st.floats(), st.sampled_from(["", "g", ",", ".3f", ",.1f", ".1%", "e", "+.2f"]))
def test_portuguese_numbers_are_the_english_ones_with_marks_exchanged(value: float, spec: str) -> None:
    made = say(f"{{x:{spec}}}", x=value)
    assert made == format(value, spec)
    assert told(made, "pt").translate(str.maketrans(",.", ".,")) == made


@pytest.mark.usefixtures("portuguese")
def test_an_error_keeps_its_english_and_can_be_told() -> None:
    error = TableError(say("{rows:,} rows", rows=1000), "empty", "Mend it.")
    assert str(error) == "1,000 rows empty Mend it."
    assert told_sentences(error, "pt") == ("1.000 linhas", "vazia", "Mend it.")
    assert told_error(error, "pt") == "1.000 linhas vazia Mend it."
    assert told_error(error, "en") == str(error)
    # An error inside a sentence is told with it.
    assert told(say("Stopped: {error}", error=error), "pt") == "Stopped: 1.000 linhas vazia Mend it."


def test_an_error_with_a_message_of_its_own_keeps_it_inside_a_sentence() -> None:
    class Brief(VeladoError):
        def __str__(self) -> str:
            return "brief"

    assert say("{error}", error=Brief("a", "b", "c")) == "brief"
