"""The settings of a run, each wrong in several ways, through every real door and in both languages.

A door may differ from another in nothing but the name of the place: what follows it is compared letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import velado
from velado.apps.cli.main import command
from velado.data.schema import Schema
from velado.errors import ParameterError, VeladoError
from velado.learning.flower.agreement import FederationRecipe
from velado.release.guarantees import LDiversity
from velado.release.joined import anonymize_joined
from velado.release.run_settings import RunSettings
from velado.settings import from_form
from velado.study.evaluate.study_settings import StudyRecipe
from velado.study.recipe import Recipe
from velado.study.run import publish
from velado.text import told_error


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A value that is taken after all would publish into the folder where the tests are run.
    monkeypatch.chdir(tmp_path)


SCHEMA = {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "ill": {"role": "sensitive"}}}
FRAME = pl.DataFrame({"age": [20, 21, 30, 31], "ill": list("abab")})
MEANT = Schema.from_dict(SCHEMA)
Door = Callable[[str, Any, Path], object]


def _anonymize(key: str, value: Any, folder: Path) -> object:
    return velado.anonymize(FRAME, MEANT, **{key: value})


def _publish(key: str, value: Any, folder: Path) -> object:
    return publish(FRAME, MEANT, out=folder / "out", **{key: value})


def _compare(key: str, value: Any, folder: Path) -> object:
    return velado.compare(FRAME, MEANT, **{key: value})


def _verify(key: str, value: Any, folder: Path) -> object:
    return velado.verify(FRAME, MEANT, **{"guarantees": [LDiversity(2)], key: value})


def _read_table(key: str, value: Any, folder: Path) -> object:
    return velado.read_table(FRAME, MEANT, **{key: value})


def _joined(key: str, value: Any, folder: Path) -> object:
    return anonymize_joined({}, **{"method": "mondrian", key: value})


def _recipe(key: str, value: Any, folder: Path) -> object:
    return Recipe.from_dict({"version": 1, "schema": SCHEMA, "method": "mondrian", key: value})


def _study(key: str, value: Any, folder: Path) -> object:
    data: dict[str, Any] = {"table": "t.csv", "schema": "s.toml", "target": "ill"}
    how: dict[str, Any] = {"methods": ["mondrian"]}
    (data if key == "undeclared" else how)[key] = value
    return StudyRecipe.from_dict({"data": data, "anonymization": how, "models": {"use": ["majority"]}})


def _federation(key: str, value: Any, folder: Path) -> object:
    data: dict[str, Any] = {"schema": "s.toml", "target": "ill"}
    how: dict[str, Any] = {"method": "mondrian"}
    (data if key == "undeclared" else how)[key] = value
    return FederationRecipe.from_dict({"data": data, "anonymization": how})


def _form(key: str, value: Any, folder: Path) -> object:
    return from_form(RunSettings, {key: _typed(value)})


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command(name: str) -> Door:
    def run(key: str, value: Any, folder: Path) -> object:
        FRAME.write_csv(folder / "t.csv")
        (folder / "s.toml").write_text(
            '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.ill]\nrole = "sensitive"\n'
        )
        table, schema = str(folder / "t.csv"), str(folder / "s.toml")
        words = ["-t", f"{table}:{schema}"] if name == "joined" else [table, "-s", schema]
        flag = "-k" if key == "k" else f"--{key.replace('_', '-')}"
        return command([name]).main([name, *words, flag, _typed(value)], standalone_mode=False)

    run.__name__ = f"velado_{name}"
    return run


PYTHON = "{key}="
FLAG = "{flag}"
RUN: dict[Door, str] = {
    _anonymize: PYTHON,
    _publish: PYTHON,
    _compare: PYTHON,
    _recipe: "'{key}' in the recipe",
    _form: "'{key}' of RunSettings",
    _command("anonymize"): FLAG,
    _command("compare"): FLAG,
}
VERIFY: dict[Door, str] = {_verify: PYTHON, _command("verify"): FLAG}
JOINED: dict[Door, str] = {_joined: PYTHON, _command("joined"): FLAG}
LOCAL: dict[Door, str] = {_federation: "'{key}' in [anonymization] of the recipe"}
IN_STUDY: dict[Door, str] = {_study: "'{key}' in [anonymization] of the study"}
IN_DATA: dict[Door, str] = {
    _study: "'{key}' in [data] of the study",
    _federation: "'{key}' in [data] of the recipe",
}
DOORS: dict[str, dict[Door, str]] = {
    "k": RUN | JOINED | LOCAL | {_command("verify"): FLAG},
    "seed": RUN | JOINED | LOCAL,
    "suppression": RUN | JOINED | LOCAL | IN_STUDY,
    "per": RUN | IN_STUDY,
    "undeclared": RUN | VERIFY | {_read_table: PYTHON, _command("joined"): FLAG} | IN_DATA,
}
WRONG = [
    ("k", 1, "Give 2 or more."),
    ("k", 2.5, "Write for example 5."),
    ("k", "cinco", "Write for example 5."),
    ("k", True, "Write for example 5."),
    ("seed", -1, "Give 0 or more."),
    ("seed", 2**70, "Give a smaller number."),
    ("seed", "abc", "Give a whole number."),
    ("seed", 1.5, "Give a whole number."),
    ("suppression", -0.5, "Give 0 or more."),
    ("suppression", 2, "Give 1 or less."),
    ("suppression", "abc", "Give a number."),
    ("suppression", "0,5", "Write it with a point: 0.5."),
    ("per", "pessoa", "Did you mean 'person'?"),
    ("per", "xyz", "Choose one of them."),
    ("undeclared", "drp", "Did you mean 'drop'?"),
    ("undeclared", "xyz", "Choose one of them."),
]


def _heard(door: Door, key: str, value: Any, folder: Path, place: str) -> tuple[str, str]:
    """What the door says in English and in Portuguese, without the name of the place."""
    with pytest.raises(VeladoError) as caught:
        door(key, value, folder)
    assert type(caught.value) is ParameterError
    named = place.format(key=key, flag="-k" if key == "k" else f"--{key}")
    in_pt = named.replace("in the recipe", "na receita").replace("of the recipe", "da receita")
    in_pt = (
        in_pt.replace("of the study", "do estudo")
        .replace("in [", "em [")
        .replace("of RunSettings", "(RunSettings)")
    )
    english, portuguese = (told_error(caught.value, tongue) for tongue in ("en", "pt"))
    assert english.startswith(f"{named} ") and portuguese.startswith(f"{in_pt} ")
    return english.removeprefix(named), portuguese.removeprefix(in_pt)


@pytest.mark.parametrize(("key", "value", "fix"), WRONG)
def test_a_wrong_setting_of_a_run_is_refused_in_one_sentence(
    key: str, value: Any, fix: str, tmp_path: Path
) -> None:
    heard = {_heard(door, key, value, tmp_path, place): door for door, place in DOORS[key].items()}
    assert len(heard) == 1, heard
    ((english, portuguese),) = heard
    assert english.endswith(fix)
    assert "It takes" not in portuguese and "Give" not in portuguese and "Aceita" in portuguese


@pytest.mark.parametrize(
    ("value", "fix"),
    [(1, "Give 2 or more."), ("two", "Give a whole number."), (True, "Give a whole number.")],
)
def test_a_wrong_promise_is_refused_in_one_sentence(value: Any, fix: str, tmp_path: Path) -> None:
    entry = {"name": "l-diversity", "l": value}
    text = f"l-diversity: l={_typed(value)}"
    doors: dict[Door, str] = {
        lambda *_: LDiversity(value): "'l' of l-diversity",
        lambda *_: _anonymize("guarantees", [entry], tmp_path): "'l' of [[guarantees]] 1",
        lambda *_: _recipe("guarantees", [entry], tmp_path): "'l' in [[guarantees]] 1 of the recipe",
        lambda *_: _federation(
            "guarantees", [entry], tmp_path
        ): "'l' in [[anonymization.guarantees]] 1 of the recipe",
        lambda *_: from_form(LDiversity, {"l": _typed(value)}): "'l' of l-diversity",
        lambda *_: _command("anonymize")("l-diversity", value, tmp_path): "--l-diversity",
        lambda *_: _command("verify")("l-diversity", value, tmp_path): "--l-diversity",
        lambda *_: _command("joined")("l-diversity", value, tmp_path): "--l-diversity",
        lambda *_: _command("compare")("guarantee", text, tmp_path): "'l' in --guarantee l-diversity",
    }
    heard = set()
    for door, place in doors.items():
        with pytest.raises(ParameterError) as caught:
            door("l", value, tmp_path)
        assert str(caught.value).startswith(f"{place} cannot be ")
        heard.add(
            (str(caught.value).removeprefix(place), told_error(caught.value, "pt").partition(" não ")[2])
        )
    assert len(heard) == 1, heard
    assert next(iter(heard))[0].endswith(fix)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([3, 1], "cannot hold 1. It takes a list of different whole numbers, at least 2."),
        ([3, 3], "holds 3 twice. It takes a list of different whole numbers, at least 2."),
        (1, "cannot hold 1. It takes a list of different whole numbers, at least 2."),
        ([], "cannot be an empty list. It takes a list of different whole numbers, at least 2."),
    ],
)
def test_a_wrong_list_is_told_by_its_wrong_entry(value: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        _study("k", value, tmp_path)
    assert f"{caught.value.what} {caught.value.why}".startswith(
        f"'k' in [anonymization] of the study {said} Below 2 it hides nobody"
    )


def test_one_alone_needs_no_brackets(tmp_path: Path) -> None:
    made: Any = _study("k", 3, tmp_path)
    assert made.anonymization.k == (3,)
    reports: Any = _recipe("reports", "md", tmp_path)
    assert reports.reports == ("md",)
    assert _recipe("guarantees", "l-diversity", tmp_path).guarantees == (LDiversity(),)  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", [LDiversity(), LDiversity, "l-diversity", {"name": "l-diversity"}])
@pytest.mark.parametrize("alone", [True, False])
def test_a_promise_is_taken_by_itself_its_class_or_its_name(given: Any, alone: bool) -> None:
    found = velado.verify(FRAME, MEANT, given if alone else [given])
    assert [one.guarantee for one in found.checked.verdicts] == ["l-diversity"]


@pytest.mark.parametrize("given", [5, [5], None, object(), [velado.Mondrian()]])
def test_what_is_no_promise_is_refused(given: Any) -> None:
    for ask in (
        lambda: velado.verify(FRAME, MEANT, given),
        lambda: velado.anonymize(FRAME, MEANT, guarantees=given),
        lambda: velado.compare(FRAME, MEANT, guarantees=given),
        lambda: anonymize_joined({}, "mondrian", given),
    ):
        with pytest.raises(ParameterError, match=r"^guarantees= cannot (be|hold) "):
            ask()


@pytest.mark.parametrize("given", ["no", "yes", 0, 1, None])
def test_only_true_keeps_the_order_of_the_rows(given: Any, tmp_path: Path) -> None:
    for door in (_anonymize, _publish):
        with pytest.raises(ParameterError, match=r"^keep_order= cannot be .* It takes true or false"):
            door("keep_order", given, tmp_path)


@pytest.mark.parametrize(
    "words",
    [["-k", "3", "-k", "4"], ["-k", "3", "--k", "4"], ["--seed", "1", "--seed=1"]],
)
def test_a_flag_for_one_value_is_given_once(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="is given twice"):
        command(["anonymize"]).main(["anonymize", str(tmp_path / "t.csv"), *words], standalone_mode=False)


def test_a_key_of_a_promise_and_a_flag_of_a_method_are_given_once(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'l' in --guarantee l-diversity is given twice"):
        _command("anonymize")("guarantee", "l-diversity: l=2, l=3", tmp_path)
    words = ["-m", "mondrian", "--cut", "strict", "--cut", "relaxed"]
    with pytest.raises(ParameterError, match="--cut is given twice"):
        command(["anonymize"]).main(["anonymize", str(tmp_path / "t.csv"), *words], standalone_mode=False)


@pytest.mark.parametrize("version", [True, 1.0, "1", None, 2])
def test_a_version_is_a_whole_number(version: Any) -> None:
    with pytest.raises(VeladoError, match="version = 1"):
        Recipe.from_dict({"version": version, "schema": SCHEMA, "method": "mondrian"})
