"""The recipe of a federated run, and the agreement folder: the recipe without rows, which every party has a copy of.

[data]           table (simulation only), schema, target, features, undeclared
[anonymization]  method, k, guarantees, suppression, seed
[models]         interval, taxonomy, widest        (how cells become numbers)
[federation]     the fields of Federation
[[parties]]      who they are, as `velado party keygen` prints it: clients in the order of their numbers (several machines)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from velado.data.io import read_schema, read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError
from velado.learning.flower._local_rows import Locally
from velado.learning.flower._parties import check_parties
from velado.learning.flower._terms import FederationTerms, make_terms
from velado.learning.flower.federation import Federation
from velado.learning.regression.job import Party
from velado.measures.models.encoder import EncoderSettings
from velado.release.run_settings import DataSection
from velado.settings import Setting, Where, describe, nearest, parse_toml, read, settings, table_of
from velado.text import say

ORIGINAL = "original"


@settings(section="data", kw_only=True)
class FederatedData(DataSection):
    """[data] of a federation: a simulation deals out the rows of *table*, several machines have their own.

    >>> FederatedData(schema="schema.toml", target="ill").table is None
    True
    """

    table: Annotated[str | None, Setting("the file whose rows a simulation deals out", items=1)] = None


@settings
class FederationRecipe:
    """A recipe file, checked; files it names are found beside it.

    >>> recipe = FederationRecipe(FederatedData(schema="schema.toml", target="ill"))
    >>> recipe.federation.clients, FederationRecipe.from_dict(recipe.to_dict()) == recipe
    (10, True)
    """

    data: Annotated[FederatedData, Setting("the schema, the target and the features")]
    anonymization: Annotated[Locally, Setting("how every client anonymizes")] = Locally()
    models: Annotated[EncoderSettings, Setting("how cells become numbers")] = EncoderSettings()
    federation: Annotated[Federation, Setting("who trains, and how")] = Federation()
    parties: Annotated[tuple[Party, ...], Setting("who the clients are, in the order of their numbers")] = ()

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> FederationRecipe:
        """From parsed TOML; a misspelt key or name is answered with the nearest."""
        local = document.get("anonymization")
        if isinstance(local, Mapping):
            document = {**document, "anonymization": _original(local)}
        return read(cls, document, Where("file", say("the recipe")))

    def to_dict(self) -> dict[str, object]:
        """The sections, every default written out, without the table: what other parties are given."""
        data = {key: value for key, value in table_of(self.data).items() if key != "table"}
        local = self.anonymization
        how: dict[str, object] = {"seed": local.seed, "suppression": local.suppression}
        how |= {} if local.method is None else {"method": _entry(local.method)}
        how |= {} if local.promised_k is None else {"k": local.promised_k}
        how |= {"guarantees": [_entry(one) for one in local.guarantees]} if local.guarantees else {}
        models, federation = table_of(self.models), table_of(self.federation)
        parties = [table_of(party, defaults=False) for party in self.parties]
        found: dict[str, object] = {
            "data": data,
            "anonymization": how,
            "models": models,
            "federation": federation,
        }
        return {**found, "parties": parties} if parties else found


def _original(local: Mapping[str, object]) -> Mapping[str, object]:
    """[anonymization] in which original rows are no method."""
    method = local.get("method", ORIGINAL)
    if (method.get("name") if isinstance(method, Mapping) else method) != ORIGINAL:
        return local
    if "k" in local:
        raise ParameterError(
            "'k' is given, but no method.", "Original rows keep no k.", 'Add method = "...", or remove k.'
        )
    return {**local, "method": None}


def _entry(part: object) -> dict[str, object]:
    """As it stands in TOML, which has no word for "none": what is none is so by default and left out."""
    return {key: value for key, value in describe(part).items() if value is not None}


def local_entry(locally: Locally) -> dict[str, object]:
    """How clients hold out and anonymize, in plain values, as it stands in the digest.

    >>> local_entry(Locally(seed=3))
    {'method': None, 'k': None, 'guarantees': [], 'suppression': 0.0, 'seed': 3}
    """
    return {
        "method": None if locally.method is None else describe(locally.method),
        "k": locally.promised_k,
        "guarantees": [describe(one) for one in locally.guarantees],
        "suppression": locally.suppression,
        "seed": locally.seed,
    }


@dataclass(frozen=True, repr=False)
class Agreement:
    """A recipe with the terms that follow from its schema alone.

    >>> recipe = FederationRecipe(FederatedData(schema="schema.toml", target="ill"))
    >>> ill = {"role": "sensitive", "values": ["no", "yes"]}
    >>> agree(recipe, Schema.from_dict({"columns": {"ill": ill}})).locally.seed
    0
    """

    recipe: FederationRecipe
    terms: FederationTerms

    @property
    def locally(self) -> Locally:
        """How every client anonymizes."""
        return self.recipe.anonymization

    def read(self, table: Path) -> Table:
        """A client's own table under the agreed schema."""
        return read_table(table, self.terms.schema, self.recipe.data.undeclared)


def read_recipe(path: Path) -> tuple[FederationRecipe, Schema]:
    """The recipe of a file and the schema it names.

    >>> _ = Path("federation.toml").write_text('data = {schema = "schema.toml", target = "ill"}')
    >>> _ = Path("schema.toml").write_text('columns.ill = {role = "sensitive"}')
    >>> recipe, schema = read_recipe(Path("federation.toml"))
    >>> recipe.data.target, list(schema.columns)
    ('ill', ['ill'])
    """
    recipe = FederationRecipe.from_dict(parse_toml(path, say("the recipe")))
    return recipe, read_schema(path.parent / recipe.data.schema)


def read_agreement(folder: Path) -> Agreement:
    """The agreement in *folder* (federation.toml, schema.toml and its taxonomies).

    >>> _ = Path("federation.toml").write_text('data = {schema = "schema.toml", target = "ill"}')
    >>> _ = Path("schema.toml").write_text('columns.ill = {role = "sensitive", values = ["no", "yes"]}')
    >>> read_agreement(Path()).terms.agreed.classes
    2
    """
    return agree(*read_recipe(folder / "federation.toml"))


def agree(recipe: FederationRecipe, schema: Schema) -> Agreement:
    """The terms of *recipe* from the schema alone; what the schema does not declare is an error.

    >>> recipe = FederationRecipe(FederatedData(schema="schema.toml", target="il"))
    >>> agree(recipe, Schema.from_dict({"columns": {"ill": {"role": "sensitive"}}}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: The schema has no target column 'il'... Did you mean 'ill'?
    """
    target = recipe.data.target
    if target not in schema.columns:
        raise SchemaError(
            say("The schema has no target column '{target}'.", target=target),
            "Without it there is nothing to learn.",
            nearest(target, schema.columns) or "Name one of its columns.",
        )
    check_parties(recipe.parties, recipe.federation)
    terms = make_terms(
        schema,
        target,
        recipe.federation,
        local_entry(recipe.anonymization),
        encoding=recipe.models,
        features=recipe.data.features,
        parties=recipe.parties,
    )
    return Agreement(recipe, terms)
