"""A recipe written and read back is the same run; what it cannot mean is refused with a hint."""

import tomllib
from dataclasses import replace

import pytest

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.errors import InputError, ParameterError, VeladoError
from velado.release.guarantees import LDiversity
from velado.release.methods import DAS, Mondrian
from velado.release.operations import Permute
from velado.study.recipe import Recipe, RecipeInput

SCHEMA = Schema.from_dict(
    {
        "table": {"missing_values": ["", "NA"]},
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]},
            'a "b".c ç': {"role": "quasi", "taxonomy": {"builder": "prefix", "keep": [3, 1]}},
            "illness": {"role": "sensitive"},
        },
    }
)


def document(**changes: object) -> dict:
    return {**tomllib.loads(Recipe(SCHEMA, Mondrian(), k=4).to_toml()), **changes}


def test_a_recipe_written_and_read_back_is_the_same() -> None:
    recipe = Recipe(
        SCHEMA,
        Mondrian(cut="relaxed"),
        (LDiversity(3, "illness"),),
        suppression=0.05,
        seed=11,
        per="row",
        format="parquet",
        formulas="escape",
        language="pt",
        reports=("html", "md"),
        undeclared="keep",
        input=RecipeInput(name="people.csv", digest="ab" * 32, key="0123abcd"),
        k=7,
    )
    assert Recipe.from_dict(tomllib.loads(recipe.to_toml())) == recipe


def test_operations_are_written_and_read_back() -> None:
    operation = Permute("illness")
    recipe = Recipe(SCHEMA, Mondrian(), operations=(operation,), k=2)
    assert Recipe.from_dict(tomllib.loads(recipe.to_toml())) == recipe


def test_a_parameter_that_is_none_by_default_is_left_out_and_comes_back_as_none() -> None:
    recipe = Recipe(SCHEMA, DAS())
    assert "k" not in recipe.to_dict()["method"]
    assert Recipe.from_dict(tomllib.loads(recipe.to_toml())).method == DAS()


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"sede": 3}, "'seed'"),
        ({"method": {"name": "mondrian", "cutt": "strict"}}, "'cut'"),
        ({"method": {"name": "mondrain"}}, "'mondrian'"),
        ({"guarantees": [{"name": "l-diversity", "colunm": "illness"}]}, "'column'"),
        ({"guarantees": [{"name": "z-secrecy"}]}, "l-diversity"),
        ({"input": {"nam": "x"}}, "'name'"),
        ({"schema": {"columns": {"age": {"role": "quasi", "kin": "numeric"}}}}, "'kind'"),
    ],
)
def test_an_unknown_key_or_name_is_refused_with_the_nearest_one(changes: dict, hint: str) -> None:
    with pytest.raises(VeladoError) as caught:
        Recipe.from_dict(document(**changes))
    assert hint in f"{caught.value.why} {caught.value.fix}"


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 99},
        {"seed": -1},
        {"seed": True},
        {"suppression": "a lot"},
        {"method": {"name": "mondrian", "k": "five"}},
        {"method": {"name": "mondrian", "k": True}},
        {"method": {"name": "mondrian", "k": 5.5}},
        {"method": {"name": "mondrian", "cut": "sideways"}},
        {"method": 3},
        {"method": {"k": 5}},
        {"guarantees": [{"l": 2}]},
        {"guarantees": 2},
        {"format": "xlsx"},
        {"language": "fr"},
        {"reports": ["pdf"]},
        {"input": {"name": 3}},
    ],
)
def test_a_value_the_run_could_not_use_is_refused(changes: dict) -> None:
    with pytest.raises((InputError, ParameterError)):
        Recipe.from_dict(document(**changes))


def test_a_recipe_without_a_method_or_schema_is_refused() -> None:
    for name in ("method", "schema", "version"):
        whole = document()
        del whole[name]
        with pytest.raises(InputError):
            Recipe.from_dict(whole)


CITY = TaxonomySpec(
    "levels",
    file="city.csv",
    paths=(("a", "x y", "*"), ('b; "c"', "x y", "*"), ("d",)),
)


def with_taxonomy(spec: TaxonomySpec) -> Recipe:
    city = Column("city", "quasi", taxonomy=spec)
    return Recipe(Schema({**SCHEMA.columns, "city": city}), Mondrian(), k=4)


@pytest.mark.parametrize(
    "spec",
    [
        CITY,
        replace(CITY, separator=","),
        TaxonomySpec("tree", file="city.toml", tree={"x": ["a", "b"], "y": {"z": ["c"]}}),
    ],
)
def test_taxonomies_are_written_into_the_recipe_and_read_back(spec: TaxonomySpec) -> None:
    recipe = with_taxonomy(spec)
    assert Recipe.from_dict(tomllib.loads(recipe.to_toml())) == recipe


@pytest.mark.parametrize(
    "entry",
    [
        {"nothing": {"levels": "a;b\n"}},
        {"age": {"levels": "a;b\n"}},
        {"city": {"levels": 3}},
        {"city": {"levels": "a;b\n", "sha256": "ab"}},
        {"city": {}},
        {"city": {"level": "a;b\n"}},
        {"city": {"nodes": {"x": ["a"]}}},
        {"city": "a;b"},
        ["city"],
    ],
)
def test_a_taxonomy_the_recipe_could_not_use_is_refused(entry: object) -> None:
    whole = with_taxonomy(CITY).to_dict()
    with pytest.raises(InputError):
        Recipe.from_dict({**whole, "taxonomies": entry})
