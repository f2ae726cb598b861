"""Both languages say the same things, every text is used, and numbers are written as each language does."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from velado.errors import ParameterError
from velado.report import report_words as words
from velado.report.report_words import WORDS, Words

ROOM = Path(words.__file__).parent


def used_keys() -> set[str]:
    """Every key asked for by a call of `say(...)` or `self(...)` in the report's sources."""
    found = set()
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("say", "self")
            ):
                assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno} hides its key"
                found.add(node.args[0].value)
    return found


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys() -> None:
    assert WORDS["en"].keys() == WORDS["pt"].keys()


def test_no_key_is_unused_and_none_is_missing() -> None:
    assert used_keys() == set(WORDS["en"])


@pytest.mark.parametrize("key", sorted(WORDS["en"]))
def test_both_texts_name_the_same_values(key: str) -> None:
    assert placeholders(WORDS["en"][key]) == placeholders(WORDS["pt"][key])
    assert WORDS["en"][key].strip() and WORDS["pt"][key].strip()


def test_long_texts_are_translated_not_copied() -> None:
    same = [key for key, text in WORDS["en"].items() if len(text) > 14 and WORDS["pt"][key] == text]
    assert same == []


def test_the_template_holds_no_text_of_its_own() -> None:
    page = (ROOM / "templates" / "report.html.j2").read_text("utf-8")
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    shown = re.sub(r"<[^>]*>", "", re.sub(r"{[{%].*?[%}]}", "", body))
    assert shown.split() == []


def test_numbers_are_written_as_the_language_does() -> None:
    english, portuguese = Words("en"), Words("pt")
    assert (english.number(1234.5), portuguese.number(1234.5)) == ("1,234.5", "1.234,5")
    assert (english.count(1234567), portuguese.count(1234567)) == ("1,234,567", "1.234.567")
    assert (english.share(0.1234), portuguese.share(0.1234)) == ("12.3%", "12,3%")
    assert (english.plain(5.0), portuguese.plain(2.5)) == ("5", "2,50")
    assert english.number(float("nan")) == "–"


def test_a_small_share_is_never_shown_as_zero() -> None:
    assert Words("en").share(0.00001) == "< 0.1%"
    assert Words("pt").share(0.00001) == "< 0,1%"
    assert Words("en").share(0.0) == "0.0%"


def test_names_are_listed_as_in_a_sentence() -> None:
    assert Words("en").listed(["a", "b", "c"]) == "a, b and c"
    assert Words("pt").listed(["a", "b"]) == "a e b"
    assert Words("pt").listed(["a"]) == "a"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ParameterError):
        Words("fr")
