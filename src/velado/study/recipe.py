"""Recipe: everything that one run needs but the rows. `recipe.toml` in a release repeats the run.

This module is pure: files are read by `velado.data.io`, and `velado.study.run` brings the two together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Annotated, Literal

import tomli_w

from velado.data.formulas import Formulas
from velado.data.level_files import levels_text
from velado.data.schema import Schema
from velado.errors import SchemaError
from velado.release.guarantees._guarantee import Guarantee
from velado.release.history.together import Together
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.run_settings import (
    GUARANTEES_BEYOND,
    METHOD,
    OPERATIONS_FIRST,
    BlindSetting,
    BoundSetting,
    CrowdSetting,
    ImproveSetting,
    OrderSetting,
    SeedSetting,
    SuppressionSetting,
    UndeclaredSetting,
    UnitSetting,
)
from velado.release.side_doors import DoorDecision
from velado.settings import Setting, Where, entry_of, parse_toml, read, settings, table_of, unknown_key
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

    *k* is that of k-anonymity, *guarantees* are those beyond it. *operations* are column operations done first, *doors* what was
    decided about side doors, by whom and on which figures. What
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
    improve: ImproveSetting = False
    blind: BlindSetting = False
    bound: BoundSetting = "fast"
    input: RecipeInput = RecipeInput()
    together: Together = Together()
    operations: Annotated[tuple[Operation, ...], OPERATIONS_FIRST] = ()
    doors: Annotated[
        tuple[DoorDecision, ...], Setting("side doors that were accepted, and on which figures")
    ] = ()

    def to_dict(self) -> dict[str, object]:
        """As the TOML file has it."""
        parts = {
            "method": entry_of(self.method),
            "guarantees": [entry_of(one) for one in self.guarantees],
            "operations": [entry_of(one) for one in self.operations],
            "doors": [table_of(one) for one in self.doors],
            "taxonomies": _taxonomy_entries(self.schema),
            "schema": self.schema.to_dict(),
        }
        rarely = {
            "keep_order": False,
            "improve": False,
            "blind": False,
            "bound": "fast",
            "together": Together(),
        }
        usual = {name for name, value in rarely.items() if getattr(self, name) == value}
        left_out = {*parts} | usual
        plain = {name: value for name, value in table_of(self).items() if name not in left_out}
        return {"version": VERSION, **plain, **{name: part for name, part in parts.items() if part}}

    def to_toml(self) -> str:
        """The text of `recipe.toml`, with comments in the language of its reports."""
        lead = say(
            "How this release was made. Repeat it, or use it on another file of the same form:\n"
            "  velado apply recipe.toml FILE -o FOLDER --key owner.key\n"
            "FILE may be whatever `velado anonymize` takes: a folder or a pattern of files, a database with --table,\n"
            "an address postgresql:// with --table and --to-table.\n"
            "[taxonomies] holds what the taxonomy files said on that day. [input] names the file by a fingerprint\n"
            "that only the holder of the key can compute. This file is private: it says how values were chosen."
        )
        remarks = "".join(f"# {line}\n" for line in told(lead, self.language).splitlines())
        return f"{remarks}\n{tomli_w.dumps(self.to_dict(), multiline_strings=True)}"

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Recipe:
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
            out[name] = {"levels": levels_text(spec.paths)}
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


# The recipe of a joined release: one file with what all tables share, and what each of them means.
#
#     version = 1, k = 5, [method] ...       as in the recipe of one table
#     [tables.visits.schema], .input ...     what is said of each
#
# A table's own part and the shared one make a `Recipe`, so that each is read and checked as such.

_OWN = ("schema", "taxonomies", "input")
_LEAD = (
    "# How these tables were made. Repeat it, or use it on other files of the same names and form:\n"
    "#   velado joined --recipe recipe.toml -t FILE -t FILE -o FOLDER\n"
    "# A pseudonym to join by is asked for anew: its key is not in here. This file is private.\n\n"
)


def joined_toml(recipes: Mapping[str, Recipe]) -> str:
    """The text of `recipe.toml` for tables that are published together; all but schema and input is the same for all.

    >>> from velado.data.schema import Column, Schema
    >>> from velado.release.methods import Mondrian
    >>> ages = Recipe(Schema({"age": Column("age", "quasi")}), Mondrian(), k=4)
    >>> "[tables.two.schema.columns.age]" in joined_toml({"one": ages, "two": ages})
    True
    """
    documents = {name: recipe.to_dict() for name, recipe in recipes.items()}
    shared = {key: value for key, value in next(iter(documents.values())).items() if key not in _OWN}
    tables = {name: {key: one[key] for key in _OWN if key in one} for name, one in documents.items()}
    return _LEAD + tomli_w.dumps({**shared, "tables": tables}, multiline_strings=True)


def read_joined(path: str | Path) -> dict[str, Recipe]:
    """The recipe of each table, by its name, from the file of a joined release.

    >>> read_joined("no-such-recipe.toml")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'no-such-recipe.toml'. Nothing was read. Check the path and the spelling.
    """
    shared = dict(parse_toml(Path(path), say("The recipe file")))
    tables = shared.pop("tables", None)
    if not isinstance(tables, Mapping) or not all(isinstance(own, Mapping) for own in tables.values()):
        raise SchemaError(
            "The recipe has no [tables.NAME] for each table.",
            "It was not written by `velado joined`, and does not say what several tables mean.",
            "Use `velado apply` for the recipe of a single table.",
        )
    return {str(name): Recipe.from_dict({**shared, **own}) for name, own in tables.items()}
