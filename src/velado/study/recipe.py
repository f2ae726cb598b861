"""Recipe: everything that one run needs but the rows. `recipe.toml` in a release repeats the run.

This module is pure: files are read by `velado.data.io`, and `velado.study.run` brings the two together.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Annotated, Literal

import tomli_w

from velado.data.schema import Schema
from velado.data.staging import Formulas
from velado.errors import SchemaError
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.run_settings import (
    GUARANTEES_BEYOND,
    METHOD,
    OPERATIONS_FIRST,
    CrowdSetting,
    OrderSetting,
    SeedSetting,
    SuppressionSetting,
    UndeclaredSetting,
    UnitSetting,
)
from velado.settings import Setting, Where, entry_of, read, settings, table_of, unknown_key
from velado.text import Language, say, told

Format = Literal["csv", "parquet"]
Report = Literal["html", "md", "json"]
Per = Literal["row", "person"]

VERSION = 1
"""The version of the file's layout; a reader refuses one it does not know."""
_DOCUMENT = Where("file", say("the recipe"))


@settings(section="input", kw_only=True)
class RecipeInput:
    """[input]: the file of the run, by name and by its fingerprint under the owner's key; *key* says which key.

    >>> RecipeInput(name="stays.csv").digest
    ''
    """

    name: Annotated[str, Setting("the file's name")] = ""
    digest: Annotated[str, Setting("the file's fingerprint under the owner's key")] = ""
    key: Annotated[str, Setting("the fingerprint of that key")] = ""


@settings
class Recipe:
    """One run without its rows: input fingerprint, schema, method, promises, limits, seed and output.

    *k* is that of k-anonymity, *guarantees* are those beyond it. *operations* are column operations done first. What
    the taxonomy files said stands in the file too: a recipe repeats its run wherever it lies and whatever became of
    them.

    >>> from velado.data.schema import Column
    >>> from velado.release.methods import Mondrian
    >>> recipe = Recipe(Schema({"age": Column("age", "quasi")}), Mondrian(), k=4)
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    """

    schema: Annotated[Schema, Setting("what each column means")]
    method: Annotated[Method, METHOD]
    guarantees: Annotated[tuple[Guarantee, ...], GUARANTEES_BEYOND] = ()
    seed: SeedSetting = 0
    k: CrowdSetting = None
    suppression: SuppressionSetting = 0.0
    per: UnitSetting = None
    format: Annotated[Format, Setting("format of the table that leaves")] = "csv"
    formulas: Annotated[Formulas, Setting("cells that begin like a spreadsheet formula")] = "keep"
    language: Annotated[Language, Setting("language of the reports")] = "en"
    undeclared: UndeclaredSetting = "refuse"
    reports: Annotated[tuple[Report, ...], Setting("formats of the report")] = ("html",)
    keep_order: OrderSetting = False
    input: RecipeInput = RecipeInput()
    operations: Annotated[tuple[Operation, ...], OPERATIONS_FIRST] = ()

    def to_dict(self) -> dict[str, object]:
        """As the TOML file has it."""
        parts = {
            "method": entry_of(self.method),
            "guarantees": [entry_of(one) for one in self.guarantees],
            "operations": [entry_of(one) for one in self.operations],
            "taxonomies": _taxonomy_entries(self.schema),
            "schema": self.schema.to_dict(),
        }
        left_out = {*parts} if self.keep_order else {*parts, "keep_order"}
        plain = {name: value for name, value in table_of(self).items() if name not in left_out}
        return {"version": VERSION, **plain, **{name: part for name, part in parts.items() if part}}

    def to_toml(self) -> str:
        """The text of `recipe.toml`, with comments in the language of its reports."""
        lead = say(
            "How this release was made. Repeat it, or use it on another file of the same form:\n"
            "  velado apply recipe.toml FILE -o FOLDER --key owner.key\n"
            "[taxonomies] holds what the taxonomy files said on that day. [input] names the file by a fingerprint\n"
            "that only the holder of the key can compute. This file is private: it says how values were chosen."
        )
        remarks = "".join(f"# {line}\n" for line in told(lead, self.language).splitlines())
        return f"{remarks}\n{tomli_w.dumps(self.to_dict(), multiline_strings=True)}"

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> "Recipe":
        """From parsed TOML. Nothing unknown is passed over; files the recipe only names are read by the caller."""
        entries = dict(document)
        version = entries.pop("version", None)
        if version != VERSION or type(version) is not int:  # true and 1.0 are equal to 1
            raise SchemaError(
                say("The recipe does not say version = {version}.", version=VERSION),
                "Another layout could be read wrongly.",
                say(
                    "Use a recipe written by this velado, or add version = {version} if it has that layout.",
                    version=VERSION,
                ),
            )
        taxonomies = entries.pop("taxonomies", {})
        schema = entries.get("schema")
        if isinstance(schema, Mapping):
            entries["schema"] = _with_taxonomies(Schema.from_dict(schema), taxonomies)
        return read(cls, entries, _DOCUMENT)


def without_folders(schema: Schema) -> Schema:
    """The same schema, its taxonomy files named without their folders: the recipe holds what they say.

    >>> from velado.data.schema import Column, TaxonomySpec
    >>> city = Column("city", "quasi", taxonomy=TaxonomySpec("levels", file="trees/city.csv"))
    >>> without_folders(Schema({"city": city})).columns["city"].taxonomy.file
    'city.csv'
    """
    columns = []
    for column in schema.columns.values():
        spec = column.taxonomy
        if spec is not None and (spec.file is not None or spec.paths is not None):
            name = f"{column.name}.csv" if spec.file is None else PurePath(spec.file).name
            column = replace(column, taxonomy=replace(spec, file=name))
        columns.append(column)
    return schema.with_columns(columns)


def _taxonomy_entries(schema: Schema) -> dict[str, dict[str, object]]:
    out: dict[str, dict[str, object]] = {}
    for name, column in schema.columns.items():
        spec = column.taxonomy
        # A recipe holds what its run reads, and no other file.
        if (
            spec is None
            or spec.file is None
            or not column.published
            or column.role not in ("quasi", "sensitive")
        ):
            continue
        if spec.paths is not None:
            text = io.StringIO()
            csv.writer(text, delimiter=";", lineterminator="\n").writerows(spec.paths)
            out[name] = {"levels": text.getvalue()}
        elif spec.tree is not None:
            out[name] = {"nodes": dict(spec.tree)}
    return out


def _with_taxonomies(schema: Schema, entries: object) -> Schema:
    """The schema with the content of its taxonomy files, as the recipe has it."""
    if not isinstance(entries, Mapping):
        raise SchemaError(
            "'taxonomies' in the recipe is not a table.", "It cannot be read.", "Write [taxonomies.COLUMN]."
        )
    columns = dict(schema.columns)
    for name, entry in entries.items():
        place = _DOCUMENT.inside("taxonomies").inside(name)
        spec = columns[name].taxonomy if name in columns else None
        if spec is None or spec.file is None or not isinstance(entry, Mapping):
            raise SchemaError(
                say("{place} belongs to no column with a taxonomy file.", place=place.here),
                "What it says would be passed over.",
                say("Remove it, or give [schema.columns.{name}] a taxonomy file.", name=name),
            )
        content = "nodes" if spec.builder == "tree" else "levels"
        for key in entry:
            if key != content:
                raise unknown_key(str(key), [content], place)
        value = entry.get(content)
        if content == "nodes" and isinstance(value, Mapping):
            spec = replace(spec, tree=value)
        elif content == "levels" and isinstance(value, str):
            spec = replace(spec, paths=_level_rows(value, place))
        else:
            raise SchemaError(
                say(
                    "{place} lacks '{content}', or has a value of the wrong type.",
                    place=place.here,
                    content=content,
                ),
                "The column cannot be generalized without it.",
                say(
                    "Give {content} as a release writes it, or remove {place} to read the file beside the recipe.",
                    content=content,
                    place=place.here,
                ),
            )
        columns[name] = replace(columns[name], taxonomy=spec)
    return schema.with_columns(columns.values())


def _level_rows(text: str, place: Where) -> tuple[tuple[str, ...], ...]:
    try:
        return tuple(tuple(row) for row in csv.reader(io.StringIO(text), delimiter=";") if row)
    except csv.Error:
        raise SchemaError(
            say("'levels' in {place} is not CSV.", place=place.here),
            "Its rows cannot be read.",
            "Write leaf;broader;broadest.",
        ) from None
