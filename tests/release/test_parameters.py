"""One wrong value of every kind tells the same through every door: Python, recipe, study, federation, flag, form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

from velado.apps.cli.main import command
from velado.apps.cli.options import PromiseFlags, guarantee_from, split_flags
from velado.data.schema import Schema
from velado.errors import ParameterError, SchemaError, VeladoError
from velado.learning.flower.agreement import FederationRecipe
from velado.measures.models.model_registry import MODELS
from velado.release.guarantees import GUARANTEES
from velado.release.methods import METHODS, method_named
from velado.release.operations import OPERATIONS
from velado.settings import LARGEST, at_flags, form, from_form, specs
from velado.study.evaluate.study_settings import StudyRecipe
from velado.study.recipe import Recipe
from velado.study.run import publish
from velado.text import told

SCHEMA = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}}).to_dict()
DATA = {"table": "t.csv", "schema": "s.toml", "target": "ill"}
Method = dict[str, Any]


def by_python(name: str, values: Method) -> object:
    return method_named(name)(**values)


def by_recipe(name: str, values: Method) -> object:
    return Recipe.from_dict({"version": 1, "schema": SCHEMA, "method": {"name": name, **values}})


def by_study(name: str, values: Method) -> object:
    anonymization = {"methods": [{"name": name, **values}], "k": [5]}
    models = {"use": ["majority"]}
    return StudyRecipe.from_dict({"data": DATA, "anonymization": anonymization, "models": models})


def by_federation(name: str, values: Method) -> object:
    local = {"method": {"name": name, **values}, "k": 5}
    return FederationRecipe.from_dict({"data": DATA, "anonymization": local})


def by_flag(name: str, values: Method) -> object:
    words = [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]
    return split_flags(["--method", name, *words], {"--method": True}, method_named)


def by_form(name: str, values: Method) -> object:
    return from_form(method_named(name), {key: str(value) for key, value in values.items()})


DOORS = {
    by_python: "'{key}' of {method}",
    by_recipe: "'{key}' in [method] of the recipe",
    by_study: "'{key}' in [[anonymization.methods]] 1 of the study",
    by_federation: "'{key}' in [anonymization.method] of the recipe",
    by_flag: "--{key}",
    by_form: "'{key}' of {method}",
}
FILES = (by_recipe, by_study, by_federation)

WRONG = {
    "too small": ("mdav", {"block": 5}, "It takes a whole number, at least 100.", "Give 100 or more."),
    "too large": ("gok", {"troop": 900}, "It takes a whole number from 3 to 200.", "Give 200 or less."),
    "no known word": (
        "mondrian",
        {"cut": "relaxd"},
        "It takes one of strict, relaxed.",
        "Did you mean 'relaxed'?",
    ),
    "not finite": (
        "gfkmc",
        {"beta": float("nan")},
        "It takes a number from 0 to 1.",
        "Give a finite number.",
    ),
    "beyond every kernel": (
        "mdav",
        {"block": LARGEST + 1},
        f"It takes a whole number, at least 100. Whole numbers go up to {LARGEST}.",
        "Give a smaller number.",
    ),
    "of the wrong type": (
        "mdav",
        {"block": "many"},
        "It takes a whole number, at least 100.",
        "Give a whole number.",
    ),
}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_told_in_the_same_words(door: Callable[..., object], wrong: str) -> None:
    name, values, why, fix = WRONG[wrong]
    with pytest.raises(ParameterError) as caught:
        door(name, values)
    (key,) = values
    assert caught.value.what.startswith(DOORS[door].format(key=key, method=name) + " cannot be ")
    assert (caught.value.why, caught.value.fix) == (why, fix)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_misspelt_key_is_answered_with_the_nearest(door: Callable[..., object]) -> None:
    kind = SchemaError if door in FILES else ParameterError
    with pytest.raises(kind, match="cutt") as caught:
        door("mondrian", {"cutt": "strict"})
    if door is not by_flag:  # the command line answers for its own flags and the method's at once
        assert caught.value.what == f"Unknown key {DOORS[door].format(key='cutt', method='mondrian')}."
    assert caught.value.fix in ("Did you mean 'cut'?", "Did you mean '--cut'?")


FRAME = pl.DataFrame({"age": [20, 21, 30, 31]})
GOAL: dict[str, float] = {"k": 1, "suppression": 2.0}


def k_by_python(key: str, value: float, folder: Path) -> object:
    goal: dict[str, Any] = {key: value}
    return publish(FRAME, Schema.from_dict(SCHEMA), out=folder / "out", **goal)


def k_by_recipe(key: str, value: float, folder: Path) -> object:
    return Recipe.from_dict({"version": 1, "schema": SCHEMA, "method": "mondrian", key: value})


def k_by_command(key: str, value: float, folder: Path) -> object:
    FRAME.write_csv(folder / "t.csv")
    (folder / "s.toml").write_text(tomli_w.dumps(SCHEMA))
    words = [str(folder / "t.csv"), "-s", str(folder / "s.toml"), "-o", str(folder / "out")]
    return command(["anonymize"]).main(["anonymize", *words, f"--{key}={value}"], standalone_mode=False)


@pytest.mark.parametrize("key", GOAL)
def test_the_goal_is_refused_in_the_same_words_under_the_name_its_door_has(key: str, tmp_path: Path) -> None:
    places = {
        k_by_python: f"{key}=",
        k_by_recipe: f"'{key}' in the recipe",
        k_by_command: "-k" if key == "k" else f"--{key}",
    }
    heard = set()
    for door, place in places.items():
        with pytest.raises(ParameterError) as caught:
            door(key, GOAL[key], tmp_path)
        assert str(caught.value).startswith(f"{place} cannot be ")
        heard.add(str(caught.value).removeprefix(place))
    assert len(heard) == 1


def test_a_guarantee_with_a_flag_of_its_own_is_refused_by_that_flag() -> None:
    with pytest.raises(ParameterError) as caught:
        PromiseFlags(l_diversity=1).guarantees()
    told = at_flags(caught.value, {"l-diversity": "--l-diversity", "k": "--k"})
    assert told.what == "--l-diversity cannot be 1."
    assert (told.why, told.fix) == (caught.value.why, caught.value.fix)
    assert at_flags(caught.value, {"k": "--k"}) is caught.value


@pytest.mark.parametrize(
    ("name", "told_in_pt"), [("mondrin", "Não existe o método 'mondrin'."), ("x", "Não existe o método 'x'.")]
)
def test_a_part_that_does_not_exist_is_told_in_whole_sentences(name: str, told_in_pt: str) -> None:
    with pytest.raises(ParameterError) as caught:
        method_named(name)
    assert told(caught.value.what, "pt") == told_in_pt


@pytest.mark.parametrize("door", FILES, ids=lambda door: door.__name__)
def test_a_method_has_no_k_of_its_own(door: Callable[..., object]) -> None:
    with pytest.raises(VeladoError, match="k"):
        door("mondrian", {"k": 5})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("l-diversity: l=1", "'l' in --guarantee l-diversity cannot be 1"),
        ("l-diversity: l=two", "Give a whole number"),
        ("l-diversty", "Did you mean 'l-diversity'?"),
        ("l-diversity: ll=2", "Did you mean 'l'?"),
        ("t-closeness: t", "key=value"),
    ],
)
def test_a_wrong_guarantee_on_the_command_line_is_explained(text: str, part: str) -> None:
    with pytest.raises(ParameterError) as caught:
        guarantee_from(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "kind", [*METHODS, *GUARANTEES, *OPERATIONS, *MODELS], ids=lambda kind: f"{kind.__module__}-{kind.name}"
)
def test_every_setting_says_what_it_is_and_has_a_form(kind: type[Any]) -> None:
    assert all(spec.setting.help for spec in specs(kind).values())
    assert set(form(kind)["properties"]) == set(specs(kind))
