"""Recipe: everything that one run needs but the rows. `recipe.toml` in a release repeats the run.

This module is pure: files are read by `velado.data.io`, and `velado.study.run` brings the two together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal, get_args

import tomli_w

from velado.data.schema import Schema
from velado.data.staging import Formulas
from velado.data.table import Undeclared
from velado.errors import ParameterError, SchemaError
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import method_named
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.parameters import entry_of, known_keys, part_from
from velado.settings import part_of

Format = Literal["csv", "parquet"]
Language = Literal["en", "pt"]
Report = Literal["html", "md", "json"]
Per = Literal["row", "person"]

VERSION = 1
"""The version of the file's layout; a reader refuses one it does not know."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "per": get_args(Per),
    "format": get_args(Format),
    "formulas": get_args(Formulas),
    "language": get_args(Language),
    "undeclared": get_args(Undeclared),
}
_KEYS = (
    "version",
    "seed",
    "k",
    "suppression",
    *_CHOICES,
    "reports",
    "keep_order",
    "input",
    "method",
    "guarantees",
    "operations",
    "taxonomies",
    "schema",
)


@dataclass(frozen=True)
class Recipe:
    """One run without its rows: input fingerprint, schema, method, promises, limits, seed and output.

    *k* is that of k-anonymity, *guarantees* are those beyond it. *operations* are column operations done first. What
    the taxonomy files said stands in the file too: a recipe repeats its run wherever it lies and whatever became of
    them. *input_digest* is the input's fingerprint under the owner's key, *key_fingerprint* says which key.
    """

    schema: Schema
    method: Method
    guarantees: tuple[Guarantee, ...] = ()
    suppression: float = 0.0
    seed: int = 0
    per: Per | None = None
    operations: tuple[Operation, ...] = ()
    format: Format = "csv"
    formulas: Formulas = "keep"
    language: Language = "en"
    reports: tuple[Report, ...] = ("html",)
    undeclared: Undeclared = "refuse"
    input_name: str = ""
    keep_order: bool = False
    input_digest: str = ""
    key_fingerprint: str = ""
    k: int | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices and not (name == "per" and value is None):
                raise _not_one_of(name, choices)
        if any(kind not in get_args(Report) for kind in self.reports):
            raise _not_one_of("reports", get_args(Report))

    def to_dict(self) -> dict[str, Any]:
        """As the TOML file has it."""
        out: dict[str, Any] = {"version": VERSION, "seed": self.seed, "suppression": self.suppression}
        if self.k is not None:
            out["k"] = self.k
        for name in _CHOICES:
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        out["reports"] = list(self.reports)
        if self.keep_order:
            out["keep_order"] = True
        out["input"] = {"name": self.input_name, "digest": self.input_digest, "key": self.key_fingerprint}
        out["method"] = entry_of(self.method)
        if self.guarantees:
            out["guarantees"] = [entry_of(guarantee) for guarantee in self.guarantees]
        if self.operations:
            out["operations"] = [entry_of(operation) for operation in self.operations]
        taxonomies = _taxonomy_entries(self.schema)
        if taxonomies:
            out["taxonomies"] = taxonomies
        out["schema"] = self.schema.to_dict()
        return out

    def to_toml(self) -> str:
        """The text of `recipe.toml`."""
        lead = (
            "# How this release was made. Repeat it, or use it on another file of the same form:\n"
            "#   velado apply recipe.toml FILE -o FOLDER --key owner.key\n"
            "# [taxonomies] holds what the taxonomy files said on that day. [input] names the file by a fingerprint\n"
            "# that only the holder of the key can compute. This file is private: it says how values were chosen.\n\n"
        )
        return lead + tomli_w.dumps(self.to_dict(), multiline_strings=True)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Recipe:
        """From parsed TOML. Nothing unknown is passed over; files the recipe only names are read by the caller."""
        known_keys(document, _KEYS, "the recipe")
        if document.get("version") != VERSION:
            raise SchemaError(
                f"The recipe does not say version = {VERSION}.",
                "Another layout could be read wrongly.",
                f"Use a recipe written by this velado, or add version = {VERSION} if it has that layout.",
            )
        schema = Schema.from_dict(_table(document, "schema"))
        settings: dict[str, Any] = {"schema": _with_taxonomies(schema, document.get("taxonomies", {}))}
        settings["method"] = _method(_table(document, "method"))
        settings["guarantees"] = tuple(
            _guarantee(entry, number) for number, entry in enumerate(_list(document, "guarantees"), 1)
        )
        settings["operations"] = _operations(_list(document, "operations"))
        source = _table(document, "input") if "input" in document else {}
        known_keys(source, ("name", "digest", "key"), "[input]")
        for key, value in source.items():
            if not isinstance(value, str):
                raise SchemaError(f"'{key}' in [input] is not text.", "It names the input.", "Quote it.")
            settings["key_fingerprint" if key == "key" else f"input_{key}"] = value
        settings.update({name: document[name] for name in _CHOICES if name in document})
        settings.update(_numbers(document))
        if "keep_order" in document:
            if not isinstance(document["keep_order"], bool):
                raise SchemaError(
                    "'keep_order' in the recipe is neither true nor false.",
                    "It says whether rows are published in the order of the input.",
                    "Write keep_order = false, or leave it out.",
                )
            settings["keep_order"] = document["keep_order"]
        if "reports" in document:
            settings["reports"] = tuple(_list(document, "reports"))
        return cls(**settings)


def _numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, kinds in (("seed", (int,)), ("k", (int,)), ("suppression", (int, float))):
        if name in document:
            value = document[name]
            if isinstance(value, bool) or not isinstance(value, kinds) or value < 0:
                raise SchemaError(
                    f"'{name}' in the recipe is not a number of at least 0.",
                    "The run could not be repeated with it.",
                    f"Write for example {name} = 0.",
                )
            out[name] = float(value) if name == "suppression" else value
    return out


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    entry = document.get(name)
    if not isinstance(entry, Mapping):
        raise SchemaError(
            f"The recipe has no [{name}].", "The run cannot be made without it.", f"Add a table [{name}]."
        )
    return entry


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    entries = document.get(name, [])
    if not isinstance(entries, list):
        raise SchemaError(
            f"'{name}' in the recipe is not a list.", "Its entries cannot be read.", f"Write [[{name}]]."
        )
    return entries


def _named(entry: Any, where: str) -> str:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise SchemaError(f"{where} has no name.", "What to run is not known.", 'Add name = "...".')
    return str(entry["name"])


def _method(entry: Mapping[str, Any]) -> Method:
    method: Method = part_from(method_named(_named(entry, "[method]")), entry, "[method]")
    return method


def _guarantee(entry: Any, number: int) -> Guarantee:
    where = f"guarantee {number}"
    name = _named(entry, where)
    for kind in GUARANTEES:
        if kind.name == name:
            guarantee: Guarantee = part_from(kind, entry, where)
            return guarantee
    raise ParameterError(
        f"There is no guarantee '{name}'.",
        "Only registered guarantees can be checked.",
        f"Choose one of {', '.join(kind.name for kind in GUARANTEES)}.",
    )


def _operations(entries: list[Any]) -> tuple[Operation, ...]:
    if not entries:
        return ()
    from velado.release.operations import OPERATIONS

    return tuple(
        part_of(OPERATIONS, entry, f"operation {number}", "operation") for number, entry in enumerate(entries, 1)
    )


def _not_one_of(name: str, choices: tuple[str, ...]) -> ParameterError:
    return ParameterError(
        f"'{name}' has a value that is not known.", f"It is one of {', '.join(choices)}.", "Correct it."
    )


def without_folders(schema: Schema) -> Schema:
    """The same schema, its taxonomy files named without their folders: the recipe holds what they say."""
    columns = []
    for column in schema.columns.values():
        spec = column.taxonomy
        if spec is not None and (spec.file is not None or spec.paths is not None):
            name = f"{column.name}.csv" if spec.file is None else PurePath(spec.file).name
            column = replace(column, taxonomy=replace(spec, file=name))
        columns.append(column)
    return schema.with_columns(columns)


def _taxonomy_entries(schema: Schema) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, column in schema.columns.items():
        spec = column.taxonomy
        read = column.published and column.role in ("quasi", "sensitive")
        if not read or spec is None or spec.file is None or (spec.paths is None and spec.tree is None):
            continue  # a recipe holds what its run reads, and no other file
        out[name] = {}
        if spec.paths is not None:
            text = io.StringIO()
            csv.writer(text, delimiter=";", lineterminator="\n").writerows(spec.paths)
            out[name]["levels"] = text.getvalue()
        else:
            out[name]["nodes"] = dict(spec.tree or {})
    return out


def _with_taxonomies(schema: Schema, entries: Any) -> Schema:
    """The schema with the content of its taxonomy files, as the recipe has it."""
    if not isinstance(entries, Mapping):
        raise SchemaError(
            "'taxonomies' in the recipe is not a table.", "It cannot be read.", "Write [taxonomies.COLUMN]."
        )
    columns = dict(schema.columns)
    for name, entry in entries.items():
        where = f"[taxonomies.{name}]"
        spec = columns[name].taxonomy if name in columns else None
        if spec is None or spec.file is None or not isinstance(entry, Mapping):
            raise SchemaError(
                f"{where} belongs to no column with a taxonomy file.",
                "What it says would be passed over.",
                f"Remove it, or give [schema.columns.{name}] a taxonomy file.",
            )
        content = "nodes" if spec.builder == "tree" else "levels"
        known_keys(entry, (content,), where)
        value: Any = entry.get(content)
        fits = isinstance(value, Mapping if content == "nodes" else str)
        if not fits:
            raise SchemaError(
                f"{where} lacks '{content}', or has a value of the wrong type.",
                "The column cannot be generalized without it.",
                f"Give {content} as a release writes it, or remove {where} to read the file beside the recipe.",
            )
        if content == "nodes":
            spec = replace(spec, tree=value)
        else:
            spec = replace(spec, paths=_level_rows(str(value), where))
        columns[name] = replace(columns[name], taxonomy=spec)
    return schema.with_columns(columns.values())


def _level_rows(text: str, where: str) -> tuple[tuple[str, ...], ...]:
    try:
        return tuple(tuple(row) for row in csv.reader(io.StringIO(text), delimiter=";") if row)
    except csv.Error:
        raise SchemaError(
            f"'levels' in {where} is not CSV.", "Its rows cannot be read.", "Write leaf;broader;broadest."
        ) from None
