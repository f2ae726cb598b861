"""The recipe of a joined release: one file with what all tables share, and what each of them means.

    version = 1, k = 5, [method] ...       as in the recipe of one table
    [tables.visits.schema], .input ...     what is said of each

A table's own part and the shared one make a `Recipe`, so that each is read and checked as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomli_w

from velado.errors import SchemaError
from velado.settings import parse_toml
from velado.study.recipe import Recipe
from velado.text import say

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
