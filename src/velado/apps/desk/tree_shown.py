"""The hierarchy of a column as the editor shows and changes it: the core builds and edits trees, a page shows one branch at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from velado.apps.desk.profile import Profile
from velado.apps.desk.wording import error_at_the_desk
from velado.data import tree_edits
from velado.data.encode import taxonomy_of
from velado.data.hierarchies import HIERARCHIES, fitting
from velado.data.hierarchies.titles import titles_for
from velado.data.level_files import levels_text, paths_from_levels
from velado.data.numbers import parse_numbers
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.data.taxonomy import Taxonomy, flat, from_paths, parse_dates
from velado.errors import InputError, TaxonomyError, VeladoError
from velado.text import say, say_n, told, written

_FIRST_DAY = date(1970, 1, 1)
_LEVELS = {
    "dia": "day",
    "mês": "month",
    "mes": "month",
    "ano": "year",
    "década": "decade",
    "decada": "decade",
}
"""The levels of days as the page in Portuguese names them."""
SHOWN_CHILDREN = 300
"""Children of a branch that are sent at once; the rest when they are asked for."""


@dataclass(frozen=True)
class ColumnTree:
    """The tree of a column, the values that have no place in it, and why there is none where there is none."""

    column: Column
    values: tuple[str, ...]
    rows: tuple[int, ...]
    tree: Taxonomy | None
    uncovered: tuple[str, ...] = ()
    trouble: VeladoError | None = None


def tree_of_column(schema: Schema, found: Profile, name: str) -> ColumnTree:
    """The tree that the schema makes of a column's values."""
    column = schema.columns[name]
    counted = found.values(name)
    if counted is None:
        return ColumnTree(column, (), (), None)
    values, rows = counted.get_column("text").to_list(), counted.get_column("n").to_list()
    table = _table(schema, column, values)
    try:
        tree = taxonomy_of(table, column, values)
    except VeladoError as error:
        return ColumnTree(column, tuple(values), tuple(rows), None, (), error)
    left = tree_edits.uncovered(tree, values, column.case)
    return ColumnTree(column, tuple(values), tuple(rows), tree, tuple(left))


def _table(schema: Schema, column: Column, values: Sequence[str]) -> Table:
    frame = pl.DataFrame({column.name: pl.Series(values, dtype=pl.String)})
    return Table.of(frame, schema.with_columns([column]), undeclared="keep")


def children(tree: Taxonomy, node: int, begin: int = 0) -> dict[str, Any]:
    """The children of a node, a part at a time: number, label, what a code stands for, leaves below, whether it can be opened."""
    if not 0 <= node < len(tree.labels):
        raise InputError("There is no such branch.", "The hierarchy changed.", "Load the page again.")
    below = tree.children[node]
    part, title = below[begin : begin + SHOWN_CHILDREN], titles_for(tree.labels[: tree.leaves])
    return {
        "nodes": [
            {
                "id": int(child),
                "label": tree.labels[child],
                "title": told(title(tree.labels[child])),
                "leaves": int(tree.leaf_count[child]),
                "open": child >= tree.leaves,
            }
            for child in part
        ],
        "more": max(0, len(below) - begin - len(part)),
        "next": begin + len(part),
    }


def edited(shown: ColumnTree, what: str, nodes: Sequence[int], label: str, under: int | None) -> Taxonomy:
    """The tree after one edit; the core says what cannot be done."""
    tree = shown.tree
    if tree is None:
        tree = flat(list(shown.values), shown.column.name)
    if any(not 0 <= node < len(tree.labels) for node in (*nodes, *(() if under is None else (under,)))):
        raise InputError("There is no such branch.", "The hierarchy changed.", "Load the page again.")
    if not nodes and what != "place":
        raise InputError(
            "Nothing was marked.", "An edit is about marked values.", "Mark values or groups first."
        )
    if what == "group":
        return tree_edits.group(tree, nodes, label)
    if what == "merge":
        return tree_edits.merge(tree, nodes, label)
    if what == "dissolve":
        return tree_edits.dissolve(tree, nodes[0])
    if what == "rename":
        return tree_edits.rename(tree, nodes[0], label)
    if what == "move":
        return tree_edits.move(tree, nodes, tree.root if under is None else under)
    if what == "split":
        return tree_edits.split(tree, int(tree.parent[nodes[0]]), {label: list(nodes)})
    raise InputError("There is no such edit.", "Nothing was done.", "Choose one of the list.")


def placed(shown: ColumnTree, values: Sequence[str], under: int | None) -> Taxonomy:
    """The tree with *values* that had no place, below a group."""
    if shown.tree is None:
        raise InputError("There is no hierarchy yet.", "Nothing was placed.", "Choose a hierarchy first.")
    where = shown.tree.root if under is None else under
    return tree_edits.place_values(shown.tree, dict.fromkeys(values, where))


def with_tree(schema: Schema, name: str, tree: Taxonomy, number: int) -> Schema:
    """The schema with the column's hierarchy as a level file, which the recipe holds too."""
    paths = paths_from_levels(levels_text(tree), name, ";")
    return with_paths(schema, name, paths, number)


def with_paths(schema: Schema, name: str, paths: Sequence[Sequence[str]], number: int) -> Schema:
    """The schema with the column's hierarchy from the lines of a level file."""
    from_paths(paths, name)  # refuses what is no tree
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_")
    spec = {"builder": "levels", "file": f"taxonomies/{plain or 'column'}-{number}.csv"}
    column = _column(schema.columns[name], spec)
    assert column.taxonomy is not None
    column = replace(column, taxonomy=replace(column.taxonomy, paths=tuple(tuple(path) for path in paths)))
    return schema.with_columns({**schema.columns, name: column}.values())


def with_builder(schema: Schema, shown: ColumnTree, spec: Mapping[str, object] | None, number: int) -> Schema:
    """The schema with the column's hierarchy made by a builder; None leaves it to the core.

    Where one that comes with velado does not know every value, or not which of two it is, what it knows becomes a level
    file: the others are listed beside it and placed by hand.
    """
    name = shown.column.name
    ready = None if spec is None else next((one for one in HIERARCHIES if one.name == spec["builder"]), None)
    if ready is not None:
        placed = ready.place(shown.values)
        if placed.paths and (placed.unknown or placed.ambiguous):
            return with_tree(schema, name, from_paths(placed.paths, name), number)
    column = _column(schema.columns[name], spec)
    return schema.with_columns({**schema.columns, name: column}.values())


def _column(column: Column, spec: Mapping[str, object] | None) -> Column:
    plain = replace(column, taxonomy=None, round=None, clamp=False if spec is not None else column.clamp)
    if spec is None:
        return plain
    entry = {**plain.to_dict(), "taxonomy": dict(spec)}
    return Schema.from_dict({"columns": {column.name: entry}}).columns[column.name]


def number_bands(schema: Schema, shown: ColumnTree, edges: Sequence[float]) -> Taxonomy:
    """Bands of numbers that begin at *edges*."""
    numbers = numbers_of(schema, shown)
    if not numbers:
        raise TaxonomyError(
            "The column holds no plain numbers.",
            "Bands have edges on a line of numbers.",
            "Use a tree instead.",
        )
    return tree_edits.number_bands(
        shown.values, numbers, sorted(set(edges)), shown.column.name, schema.decimal
    )


def day_bands(shown: ColumnTree, edges: Sequence[str]) -> Taxonomy:
    """Bands of days that begin at *edges*, written 2024-03-07 or as the column writes its days."""
    days = sorted({_day(edge, shown.column.format).isoformat() for edge in edges})
    return tree_edits.date_bands(shown.values, days, shown.column.format, shown.column.name)


def _day(text: str, form: str) -> date:
    for known in ("%Y-%m-%d", form):
        try:
            return datetime.strptime(text, known).date()
        except ValueError:
            continue
    raise InputError(
        "This is no day.",
        say("A band begins at a day, written as {day} or as the column writes it.", day="2024-03-07"),
        "Write the days with a blank between them.",
    )


def ends(numbers: Sequence[float], dated: bool) -> tuple[str, str]:
    """The first and the last of numbers, or of days counted from the first of 1970, as they are written.

    >>> ends([0, 30.5], dated=False), ends([0, 31], dated=True)
    (('0', '30.5'), ('1970-01-01', '1970-02-01'))
    """
    if not numbers:
        return "", ""
    low, high = min(numbers), max(numbers)
    if dated:
        first, last = ((_FIRST_DAY + timedelta(days=day)).isoformat() for day in (low, high))
        return first, last
    return written(low, "g"), written(high, "g")


def days_of(shown: ColumnTree) -> list[float]:
    """The days that the values are, counted from the first of 1970; none where they are not all days."""
    try:
        days = parse_dates(shown.values, shown.column.format, shown.column.name)
    except VeladoError:
        return []
    return [float((day - _FIRST_DAY).days) for day in days]


def numbers_of(schema: Schema, shown: ColumnTree) -> list[float]:
    """The numbers that the values are; none where they are not all numbers."""
    column = replace(shown.column, kind="numeric", taxonomy=None, bounds=None)
    table = _table(schema, column, shown.values)
    try:
        found = parse_numbers(table, column, np.zeros(table.rows, dtype=bool))[0]
    except VeladoError:
        return []
    return [float(number) for number in found]


def bundled() -> Sequence[tuple[str, str]]:
    """The hierarchies that come with velado, with their titles."""
    return [(one.name, one.title) for one in HIERARCHIES]


def fitting_ones(schema: Schema, found: Profile) -> dict[str, tuple[str, str]]:
    """Of each column that has no groups of its own yet, the bundled hierarchy that its values are of: name and title."""
    out = {}
    for column in schema.columns.values():
        if not column.published or column.role not in ("quasi", "sensitive"):
            continue
        if column.taxonomy is not None or column.kind != "categorical":
            continue
        counted = found.values(column.name)
        ready = None if counted is None else fitting(counted.get_column("text").to_list())
        if ready is not None:
            out[column.name] = (ready.name, ready.title)
    return out


def without_place(schema: Schema, found: Profile) -> dict[str, tuple[int, str]]:
    """Of each column whose hierarchy lacks some of its values: its number, and what is wrong. A release of it would be refused."""
    out = {}
    for number, column in enumerate(schema.columns.values()):
        if column.taxonomy is None or not column.published or column.role not in ("quasi", "sensitive"):
            continue
        shown = tree_of_column(schema, found, column.name)
        left = len(shown.uncovered)
        if shown.trouble is not None:
            out[column.name] = number, error_at_the_desk(shown.trouble)[0]
        elif left:
            out[column.name] = number, say_n("{n:,} value has no place", "{n:,} values have no place", left)
    return out


def checked_spec(builder: str, text: str) -> Mapping[str, object] | None:
    """A builder with its options as a form names them; `settings` says what is wrong with them."""
    numbers = [part for part in re.split(r"[\s;]+|,(?!\d)", text.strip()) if part]
    if builder in ("", "core"):
        return None
    if builder == "intervals":
        return {"builder": builder, "widths": [number_of(part) for part in numbers]}
    if builder == "prefix":
        return {"builder": builder, "keep": [int(number_of(part)) for part in numbers]}
    if builder == "dates":
        levels = [_LEVELS.get(part.lower(), part) for part in numbers]
        return {"builder": builder, "levels": levels} if levels else {"builder": builder}
    return {"builder": builder}


def number_of(text: str) -> float:
    """A number as somebody wrote it."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(
            "This is no number.", "The hierarchy needs one.", "Write numbers, such as 5 10 20."
        ) from None
