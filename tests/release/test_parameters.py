"""One wrong value of every kind tells the same through every door: Python, recipe, study, federation, flag, form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from velado.apps.cli.options import guarantee_from, split_flags
from velado.data.schema import Schema
from velado.errors import ParameterError, SchemaError, VeladoError
from velado.learning.flower.agreement import FederationRecipe
from velado.measures.models.model_registry import MODELS
from velado.release.guarantees import GUARANTEES
from velado.release.methods import METHODS, method_named
from velado.release.operations import OPERATIONS
from velado.settings import LARGEST, form, from_form, specs
from velado.study.evaluate.study_settings import StudyRecipe
from velado.study.recipe import Recipe

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


DOORS = [by_python, by_recipe, by_study, by_federation, by_flag, by_form]
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
        "Give a number, without quotes.",
    ),
}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_told_in_the_same_words(door: Callable[..., object], wrong: str) -> None:
    name, values, why, fix = WRONG[wrong]
    with pytest.raises(ParameterError) as caught:
        door(name, values)
    (key,) = values
    assert key in caught.value.what
    assert (caught.value.why, caught.value.fix) == (why, fix)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_misspelt_key_is_answered_with_the_nearest(door: Callable[..., object]) -> None:
    kind = SchemaError if door in FILES else ParameterError
    with pytest.raises(kind, match="cutt") as caught:
        door("mondrian", {"cutt": "strict"})
    assert caught.value.fix in ("Did you mean 'cut'?", "Did you mean '--cut'?")


@pytest.mark.parametrize("door", FILES, ids=lambda door: door.__name__)
def test_a_method_has_no_k_of_its_own(door: Callable[..., object]) -> None:
    with pytest.raises(VeladoError, match="k"):
        door("mondrian", {"k": 5})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("l-diversity: l=1", "'l' in --guarantee l-diversity cannot be 1"),
        ("l-diversity: l=two", "Give a number, without quotes"),
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
