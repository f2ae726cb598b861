"""The recipe of a federation: misspelt keys and names are answered with the nearest, and it comes back from its own text."""

from dataclasses import replace

import pytest

from velado.errors import ParameterError, SchemaError
from velado.learning.flower.agreement import FederationRecipe, agree, read_agreement, read_recipe

GOOD = {
    "data": {"schema": "schema.toml", "target": "outcome", "table": "people.csv"},
    "anonymization": {
        "method": "mondrian",
        "k": 5,
        "seed": 2,
        "guarantees": [{"name": "l-diversity", "l": 2}],
    },
    "models": {"taxonomy": "ordinal"},
    "federation": {"clients": 3, "rounds": 2},
}


def changed(section: str, **values) -> dict:
    return {**GOOD, section: {**GOOD[section], **values}}


def test_a_recipe_is_read_and_comes_back_without_its_table() -> None:
    recipe = FederationRecipe.from_dict(GOOD)
    assert recipe.anonymization.k == 5 and recipe.models.taxonomy == "ordinal"
    document = recipe.to_dict()
    assert "table" not in document["data"]
    again = FederationRecipe.from_dict(document)
    assert (again.anonymization, again.federation, again.models) == (
        recipe.anonymization,
        recipe.federation,
        recipe.models,
    )


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        ({**GOOD, "federations": {}}, "Did you mean 'federation'"),
        (changed("data", targt="x"), "Did you mean 'target'"),
        (changed("anonymization", methd="x"), "Did you mean 'method'"),
        (changed("anonymization", method="mondrain"), "Did you mean 'mondrian'"),
        (changed("anonymization", method={"name": "mondrian", "cuts": 3}), "Did you mean 'cut'"),
        (changed("anonymization", guarantees=["l-diversty"]), "Did you mean 'l-diversity'"),
        (changed("models", interval="midpoints"), "Did you mean 'midpoint'"),
        (changed("federation", round=3), "Did you mean 'rounds'"),
        (changed("anonymization", k=1), "2 or more"),
        (changed("anonymization", method="original"), "'k' is given, but no method"),
        (changed("anonymization", seed=-1), "a whole number, at least 0"),
        (changed("anonymization", suppression=2), "a number from 0 to 1"),
        (changed("data", target=""), "'target' in .data. of the recipe cannot be"),
        (changed("data", features=5), "It takes"),
        ({**GOOD, "data": 3}, "It takes a table"),
        (changed("data", features=[]), "not empty"),
        (changed("data", table=3), "'table' in .data. of the recipe cannot be 3"),
        (changed("anonymization", guarantees=3), "list of names"),
        (changed("anonymization", guarantees=[{"name": ["a"]}]), "has no name"),
        (changed("anonymization", guarantees="l-diversty"), "Did you mean 'l-diversity'"),
        (changed("anonymization", seed=2**70), "Whole numbers go up to"),
        (changed("models", widest="a"), "'widest' in .models. of the recipe cannot be 'a'"),
        (changed("models", widest=-1), "at least 2"),
        (changed("federation", penalty=float("inf")), "finite number"),
        (changed("federation", alpha=float("inf")), "finite number"),
        (changed("federation", test_share="a"), "'test_share' in .federation. of the recipe cannot be"),
    ],
)
def test_a_mistake_is_one_clear_error(document, hint: str) -> None:
    with pytest.raises((SchemaError, ParameterError), match=hint):
        FederationRecipe.from_dict(document)


def test_one_guarantee_may_be_named_without_a_list() -> None:
    made = FederationRecipe.from_dict(changed("anonymization", guarantees="l-diversity"))
    assert [one.name for one in made.anonymization.guarantees] == ["l-diversity"]


def test_a_target_that_is_not_in_the_schema_is_named(people) -> None:
    with pytest.raises(SchemaError, match="Did you mean 'outcome'"):
        agree(FederationRecipe.from_dict(changed("data", target="outcme")), people.schema)


def test_an_agreement_in_a_folder_has_the_digest_of_its_recipe(people, tmp_path) -> None:
    import tomli_w

    parties = [{"name": f"h{one}", "role": "client", "signing_key": f"{one:064x}"} for one in (1, 2, 3)]
    (people.folder / "recipe.toml").write_text(tomli_w.dumps({**GOOD, "parties": parties}), "utf-8")
    recipe, schema = read_recipe(people.folder / "recipe.toml")
    from velado.learning.flower.deployment import write_deployment

    written = write_deployment(people.folder / "recipe.toml", tmp_path / "machines", "hub.example:9443")
    assert (
        read_agreement(tmp_path / "machines" / "agreement").terms.digest == agree(recipe, schema).terms.digest
    )
    assert written.terms.digest == agree(recipe, schema).terms.digest
    # Who takes part is agreed on too: with another key for one of them it is another agreement.
    recipe = replace(recipe, parties=(*recipe.parties[:2], replace(recipe.parties[2], signing_key="ab" * 32)))
    assert written.terms.digest != agree(recipe, schema).terms.digest
