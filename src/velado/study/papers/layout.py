"""What the tables of every paper share: the names of their columns, how the sources print numbers, quick tables.

Each table has what was *published*, what comes out *as computed* there (the paper profile: the authors' own choices,
mistakes included), and what comes out *measured honestly* (see docs/explanation/measurement.md); its note says in one
sentence why they differ.
"""

from __future__ import annotations

import math
from pathlib import Path

from velado.data.encode import EncodedTable, encode
from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema

PUBLISHED = "published"
PAPER = "ours: paper profile"
HONEST = "ours: measured honestly"
FIGURE = "figure only"
AS_IN_PAPER = "none: as in the paper"
QUICK_STEP = 10
"""A quick run takes every tenth record."""

ADULT = "adult/adult_clean.csv"
EIGHT = ("sex", "age", "race", "marital_status", "education", "native_country", "workclass", "occupation")
"""The quasi-identifiers of Adult in the GFKMC thesis and in GOK-Privacy."""


def truncated(value: float, digits: int = 3) -> float:
    """The number as the sources print it: digits are cut off, not rounded."""
    scale = 10.0**digits
    # A product such as 0.185 * 1000 may fall a hair below the whole number that it is.
    return math.floor(value * scale + 1e-9) / scale


def adult_hierarchy(column: str) -> str:
    """The level file of a column of Adult, below the data folder."""
    return f"adult/hierarchies/adult_hierarchy_{column.replace('_', '-')}.csv"


ADULT_FILES = (ADULT, *(adult_hierarchy(name) for name in EIGHT))


def encoded(data: Path, file: str, schema: Schema, quick: bool = False) -> EncodedTable:
    """The quasi-identifiers of a file below the data folder, encoded; every tenth record where it is to be quick."""
    table = read_table(data / file, attach_taxonomies(schema, data), "drop")
    return encode(table.with_frame(table.frame.gather_every(QUICK_STEP)) if quick else table)


def numeric_schema(*columns: str) -> Schema:
    """Numbers that are quasi-identifiers."""
    return Schema.from_dict({"columns": {name: {"role": "quasi", "kind": "numeric"} for name in columns}})


def adult_schema(age: str = "numeric") -> Schema:
    """Adult's eight quasi-identifiers with their level files; *age* "numeric", or "categorical" for a tree of years."""
    entries: dict[str, dict[str, str]] = {}
    for name in EIGHT:
        entries[name] = {"role": "quasi", "kind": "categorical", "taxonomy": adult_hierarchy(name)}
    if age == "numeric":
        entries["age"] = {"role": "quasi", "kind": "numeric"}
    return Schema.from_dict({"columns": entries})


def short(quick: bool) -> str:
    """What a note says of a quick run."""
    return (
        f" A quick run on every {QUICK_STEP}th record: its cells are not those of the paper." if quick else ""
    )
