"""The recipe of a federated run, and the agreement folder: the recipe without rows, which every party has a copy of.

[data]           table (simulation only), schema, target, features, undeclared
[anonymization]  method, k, guarantees, suppression, seed
[models]         interval, taxonomy, widest        (how cells become numbers)
[federation]     the fields of Federation
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from velado.data.io import read_schema, read_table
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.errors import ParameterError, SchemaError
from velado.learning.flower.federation import Federation
from velado.learning.flower.local_rows import Locally
from velado.learning.flower.terms import Terms, make_terms
from velado.measures.models.encoder import EncoderSettings
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import method_named
from velado.release.methods._method import Method
from velado.release.parameters import LARGEST, known_keys, part_from
from velado.release.release import describe
from velado.settings import parse_toml
from velado.text import say

SECTIONS = ("data", "anonymization", "models", "federation")
ORIGINAL = "original"


@dataclass(frozen=True)
class Recipe:
    """A recipe file, checked; files it names are found beside it."""

    schema: str
    target: str
    federation: Federation
    locally: Locally
    encoding: EncoderSettings
    table: str | None = None
    features: tuple[str, ...] | None = None
    undeclared: Undeclared = "refuse"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Recipe:
        """From parsed TOML. Nothing unknown is passed over; a misspelt key or name is answered with the nearest."""
        known_keys(document, SECTIONS, "the recipe")
        parts = {name: document.get(name, {}) for name in SECTIONS}
        for name, part in parts.items():
            if not isinstance(part, Mapping):
                raise SchemaError(f"[{name}] is not a table.", "Its keys cannot be read.", f"Write [{name}].")
        data = parts["data"]
        known_keys(data, ("table", "schema", "target", "features", "undeclared"), "[data]")
        for key in ("schema", "target"):
            if not isinstance(data.get(key), str) or not data[key]:
                raise SchemaError(
                    f"[data] has no '{key}', or it is no text.",
                    "The run cannot be set up without it.",
                    f'Add {key} = "...".',
                )
        undeclared = data.get("undeclared", "refuse")
        if undeclared not in get_args(Undeclared):
            raise _unknown("'undeclared' in [data]", str(undeclared), get_args(Undeclared))
        features = data.get("features")
        if features is not None and not (
            isinstance(features, list) and features and all(isinstance(f, str) for f in features)
        ):
            raise SchemaError(
                "'features' in [data] is not a list of texts, or it is empty.",
                "It names the columns that the model learns from.",
                'Write features = ["a", "b"], or leave it out for all columns.',
            )
        table = data.get("table")
        if table is not None and (not isinstance(table, str) or not table):
            raise SchemaError(
                "'table' in [data] is no text, or it is empty.",
                "It names the file whose rows a simulation deals out.",
                'Write table = "FILE", or leave it out.',
            )
        encoding = parts["models"]
        for key, choices in (
            ("interval", ("midpoint", "bounds")),
            ("taxonomy", ("shares", "multi-hot", "ordinal")),
        ):
            if encoding.get(key, choices[0]) not in choices:
                raise _unknown(f"'{key}' in [models]", str(encoding[key]), choices)
        return cls(
            data["schema"],
            data["target"],
            Federation.from_dict(parts["federation"]),
            _locally(parts["anonymization"]),
            part_from(EncoderSettings, encoding, "[models]"),
            table,
            None if features is None else tuple(features),
            undeclared,
        )

    def to_dict(self) -> dict[str, Any]:
        """The sections, every default written out, without the table: what other parties are given."""
        data: dict[str, Any] = {"schema": self.schema, "target": self.target, "undeclared": self.undeclared}
        if self.features is not None:
            data["features"] = list(self.features)
        local = self.locally
        how: dict[str, Any] = {"seed": local.seed, "suppression": local.suppression}
        if local.method is not None:
            how["method"] = _entry(local.method)
        if local.guarantees:
            how["guarantees"] = [_entry(one) for one in local.guarantees]
        encoding = {part.name: getattr(self.encoding, part.name) for part in fields(EncoderSettings)}
        return {
            "data": data,
            "anonymization": how,
            "models": encoding,
            "federation": self.federation.to_dict(),
        }


def _entry(part: Any) -> dict[str, Any]:
    """As it stands in TOML, which has no word for "none": what is none is so by default and left out."""
    return {key: value for key, value in describe(part).items() if value is not None}


def local_entry(locally: Locally) -> dict[str, Any]:
    """How clients hold out and anonymize, in plain values, as it stands in the digest."""
    return {
        "method": None if locally.method is None else describe(locally.method),
        "guarantees": [describe(one) for one in locally.guarantees],
        "suppression": locally.suppression,
        "seed": locally.seed,
    }


@dataclass(frozen=True, repr=False)
class Agreement:
    """A recipe with the terms that follow from its schema alone."""

    recipe: Recipe
    terms: Terms

    @property
    def locally(self) -> Locally:
        """How every client anonymizes."""
        return self.recipe.locally

    def read(self, table: Path) -> Table:
        """A client's own table under the agreed schema."""
        return read_table(table, self.terms.schema, self.recipe.undeclared)


def read_recipe(path: Path) -> tuple[Recipe, Schema]:
    """The recipe of a file and the schema it names."""
    recipe = Recipe.from_dict(parse_toml(path, say("The recipe file")))
    return recipe, read_schema(path.parent / recipe.schema)


def read_agreement(folder: Path) -> Agreement:
    """The agreement in *folder* (federation.toml, schema.toml and its taxonomies)."""
    return agree(*read_recipe(folder / "federation.toml"))


def agree(recipe: Recipe, schema: Schema) -> Agreement:
    """The terms of *recipe* from the schema alone; what the schema does not declare is an error."""
    if recipe.target not in schema.columns:
        near = difflib.get_close_matches(recipe.target, list(schema.columns), n=1)
        raise SchemaError(
            f"The schema has no target column '{recipe.target}'.",
            "Without it there is nothing to learn.",
            f"Did you mean '{near[0]}'?" if near else "Name one of its columns.",
        )
    terms = make_terms(
        schema,
        recipe.target,
        recipe.federation,
        local_entry(recipe.locally),
        encoding=recipe.encoding,
        features=recipe.features,
    )
    return Agreement(recipe, terms)


def _locally(entry: Mapping[str, Any]) -> Locally:
    known_keys(entry, ("method", "k", "guarantees", "suppression", "seed"), "[anonymization]")
    method: Method | None = None
    named = entry.get("method", ORIGINAL)
    values = {"name": named} if isinstance(named, str) else named
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise SchemaError("'method' in [anonymization] has no name.", "It is not known.", 'Write "NAME".')
    if values["name"] != ORIGINAL:
        given = {**values, **({"k": entry["k"]} if "k" in entry else {})}
        method = part_from(method_named(values["name"]), given, f"method '{values['name']}'")
    elif "k" in entry:
        raise ParameterError(
            "'k' is given, but no method.", "Original rows keep no k.", 'Add method = "...", or remove k.'
        )
    guarantees = _guarantees(entry.get("guarantees", []))
    seed = entry.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST:
        raise ParameterError(
            f"'seed' in [anonymization] is no whole number from 0 to {LARGEST}.",
            "It numbers a run.",
            "Correct it.",
        )
    suppression = entry.get("suppression", 0.0)
    if isinstance(suppression, bool) or not isinstance(suppression, int | float) or not 0 <= suppression <= 1:
        raise ParameterError("'suppression' is not a share.", "It is a number from 0 to 1.", "Correct it.")
    return Locally(method, guarantees, float(suppression), seed)


def _guarantees(entry: Any) -> tuple[Guarantee, ...]:
    """A name, a table with a name, or a list of both."""
    kinds = {kind.name: kind for kind in GUARANTEES}
    out: list[Guarantee] = []
    for one in entry if isinstance(entry, list) else [entry]:
        said = {"name": one} if isinstance(one, str) else one
        if not isinstance(said, Mapping) or not isinstance(said.get("name"), str):
            raise SchemaError(
                "'guarantees' in [anonymization] has an entry without a name.",
                "Which promise is meant cannot be known.",
                'Write guarantees = ["l-diversity"], or [{ name = "l-diversity", l = 3 }].',
            )
        name = said["name"]
        if name not in kinds:
            raise _unknown("guarantee", name, kinds)
        out.append(part_from(kinds[name], said, f"guarantee '{name}'"))
    return tuple(out)


def _unknown(what: str, name: str, choices: Iterable[str]) -> ParameterError:
    choices = list(choices)
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.4)
    return ParameterError(
        f"'{name}' is not known ({what}).",
        f"It is one of {', '.join(choices)}.",
        f"Did you mean '{near[0]}'?" if near else "Choose one of them.",
    )
