"""Hierarchies: how the values of a column become broader; a tree to edit, bands to drag, ready ones to take."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from velado.apps.desk import tree_shown, undoing
from velado.apps.desk.answers import Answers
from velado.apps.desk.door import Form, form
from velado.apps.desk.profile import Profile
from velado.apps.desk.screens._screen import go, page, project_of
from velado.apps.desk.tree_shown import ColumnTree
from velado.apps.desk.walk import Walk
from velado.apps.desk.wording import error_at_the_desk
from velado.data.level_files import levels_text, paths_from_levels
from velado.data.schema import Schema
from velado.errors import InputError
from velado.study.recipe import Recipe
from velado.text import Sentence, say

screen = APIRouter()
_BARS = 60
BUILDERS: tuple[tuple[str, Sentence], ...] = (
    ("core", say("as velado finds it")),
    ("intervals", say("intervals, each wider than the last: 5 10 20")),
    ("prefix", say("first characters: 5 3 2")),
    ("dates", say("days: month year decade")),
    ("flat", say("no groups: a value, or nothing")),
)


@screen.get("/hierarchies")
def show(request: Request) -> Response:
    """The columns that become coarser, and how."""
    walk = Walk.of(project_of(request))
    if walk.recipe is None or walk.profile is None or not walk.roles_settled:
        return go("/roles" if walk.person_settled else "/people" if walk.reading_settled else "/open")
    columns = [
        (number, column)
        for number, column in enumerate(walk.recipe.schema.columns.values())
        if column.published and column.role in ("quasi", "sensitive")
    ]
    fits = tree_shown.fitting_ones(walk.recipe.schema, walk.profile)
    told_by = {name: title for name, title in (*BUILDERS, *tree_shown.bundled())}
    told_by["levels"] = say("edited by hand")
    return page(request, "hierarchies", walk, columns=columns, shown=None, fits=fits, told_by=told_by)


@screen.get("/hierarchies/{number}")
def edit(request: Request, number: int) -> Response:
    """The editor of one column."""
    walk, recipe, _, shown = _opened(request, number)
    dated = shown.column.kind == "date"
    numbers = tree_shown.numbers_of(recipe.schema, shown) if shown.column.kind == "numeric" else []
    numbers = tree_shown.days_of(shown) if dated else numbers
    bars: list[dict[str, float]] = []
    if numbers:
        rows, edges = np.histogram(
            numbers, bins=min(_BARS, max(len(numbers), 1)), weights=np.array(shown.rows)
        )
        top = float(rows.max()) or 1.0
        bars = [{"x": at / len(rows), "w": 1 / len(rows), "h": float(n) / top} for at, n in enumerate(rows)]
        assert len(edges) == len(rows) + 1
    root = None if shown.tree is None else shown.tree.root
    spec = shown.column.taxonomy
    return page(
        request,
        "hierarchies",
        walk,
        columns=[],
        shown=shown,
        number=number,
        root=root,
        trouble=() if shown.trouble is None else error_at_the_desk(shown.trouble),
        numbers=numbers,
        low=min(numbers, default=0.0),
        high=max(numbers, default=0.0),
        bars=bars,
        ends=tree_shown.ends(numbers, dated),
        dated=dated,
        edges=_edges(shown),
        spec=None if spec is None else spec.builder,
        options=""
        if spec is None
        else " ".join(
            str(one) for values in spec.options.values() if isinstance(values, list) for one in values
        ),
        builders=BUILDERS,
        bundled=tree_shown.bundled(),
        groups=_groups(shown),
        can_undo=undoing.can_undo(project_of(request), recipe.schema.columns[shown.column.name]),
    )


@screen.get("/hierarchies/{number}/nodes")
def nodes(request: Request, number: int) -> JSONResponse:
    """The children of one branch, for the page's script."""
    shown = _opened(request, number)[3]
    asked = request.query_params
    if shown.tree is None:
        return JSONResponse({"nodes": [], "more": 0, "next": 0})
    return JSONResponse(
        tree_shown.children(
            shown.tree, _whole(asked.get("under"), shown.tree.root), _whole(asked.get("from"), 0)
        )
    )


@screen.get("/hierarchies/{number}/levels.csv")
def export(request: Request, number: int) -> Response:
    """The hierarchy as a level file."""
    shown = _opened(request, number)[3]
    if shown.tree is None:
        raise InputError("There is no hierarchy yet.", "Nothing can be saved.", "Make one first.")
    name = f"levels-{number}.csv"
    return Response(
        levels_text(shown.tree).encode(),
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


@screen.post("/hierarchies/{number}/edit")
async def change(request: Request, number: int) -> JSONResponse:
    """One edit of the tree: group, merge, dissolve, rename, move, split, place."""
    given = await form(request)

    def made(schema: Schema, shown: ColumnTree) -> Schema:
        what, under = given.one("what"), given.one("under")
        where = None if under == "" else _whole(under, -1)
        if what == "place":
            tree = tree_shown.placed(shown, given.all("value"), where)
        else:
            marked = [_whole(node, -1) for node in given.all("node")]
            tree = tree_shown.edited(shown, what, marked, given.one("label").strip(), where)
        return tree_shown.with_tree(schema, shown.column.name, tree, number)

    _change(request, number, given, made)
    return JSONResponse({"go": f"/hierarchies/{number}"})


@screen.post("/hierarchies/{number}/place")
async def place(request: Request, number: int) -> Response:
    """Values without a place get one, without a script."""
    given = await form(request)

    def made(schema: Schema, shown: ColumnTree) -> Schema:
        under = given.one("under")
        tree = tree_shown.placed(shown, given.all("value"), None if under == "" else _whole(under, -1))
        return tree_shown.with_tree(schema, shown.column.name, tree, number)

    _change(request, number, given, made)
    return go(f"/hierarchies/{number}?saved")


@screen.post("/hierarchies/{number}/builder")
async def build(request: Request, number: int) -> Response:
    """The hierarchy is made by a builder, or taken from those that come with velado."""
    given = await form(request)

    def made(schema: Schema, shown: ColumnTree) -> Schema:
        if given.one("builder") == "levels":  # it stands already, edited by hand
            return schema
        spec = tree_shown.checked_spec(given.one("builder"), given.one("options"))
        return tree_shown.with_builder(schema, shown, spec, number)

    _change(request, number, given, made)
    return go(f"/hierarchies/{number}?saved")


@screen.post("/hierarchies/{number}/bands")
async def bands(request: Request, number: int) -> Response:
    """The hierarchy is bands of numbers or days that begin at the edges given."""
    given = await form(request)

    def made(schema: Schema, shown: ColumnTree) -> Schema:
        parts = given.one("edges").split()
        if shown.column.kind == "date":
            tree = tree_shown.day_bands(shown, parts)
        else:
            tree = tree_shown.number_bands(schema, shown, [tree_shown.number_of(part) for part in parts])
        return tree_shown.with_tree(schema, shown.column.name, tree, number)

    _change(request, number, given, made)
    return go(f"/hierarchies/{number}?saved")


@screen.post("/hierarchies/{number}/levels")
async def take(request: Request, number: int) -> Response:
    """The hierarchy is that of a level file, as ARX writes it."""
    given = await form(request)

    def made(schema: Schema, shown: ColumnTree) -> Schema:
        paths = paths_from_levels(given.one("levels").lstrip("\ufeff"), shown.column.name)
        return tree_shown.with_paths(schema, shown.column.name, paths, number)

    _change(request, number, given, made)
    return go(f"/hierarchies/{number}?saved")


@screen.post("/hierarchies/{number}/undo")
async def undo(request: Request, number: int) -> Response:
    """The hierarchy is as it was before its last edit."""
    given = await form(request)
    project, name = project_of(request), _opened(request, number)[3].column.name

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        return answers, replace(recipe, schema=undoing.undone(project, recipe.schema, name))

    with project.lock:
        project.change(edit, given.one("state"))
        undoing.forget_last(project, name)
    return go(f"/hierarchies/{number}?saved")


def _change(request: Request, number: int, given: Form, made: Callable[[Schema, ColumnTree], Schema]) -> None:
    project = project_of(request)
    shown = _opened(request, number)[3]

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        schema = made(recipe.schema, shown)
        undoing.keep(project, recipe.schema.columns[shown.column.name], schema.columns[shown.column.name])
        return answers, replace(recipe, schema=schema)

    project.change(edit, given.one("state"))


def _opened(request: Request, number: int) -> tuple[Walk, Recipe, Profile, ColumnTree]:
    walk = Walk.of(project_of(request))
    if walk.recipe is None or walk.profile is None or not walk.roles_settled:
        raise InputError(
            "The roles of the columns are not settled.",
            "Hierarchies are for columns that become coarser.",
            "Settle the roles first.",
        )
    names = list(walk.recipe.schema.columns)
    if not 0 <= number < len(names):
        raise InputError("There is no such column.", "Nothing was done.", "Choose one of the list.")
    shown = tree_shown.tree_of_column(walk.recipe.schema, walk.profile, names[number])
    return walk, walk.recipe, walk.profile, shown


def _groups(shown: ColumnTree) -> list[tuple[int, str]]:
    """The groups that values can be placed in, the largest first."""
    tree = shown.tree
    if tree is None or not shown.uncovered:
        return []
    inner = sorted(range(tree.leaves, len(tree.labels)), key=lambda node: -int(tree.leaf_count[node]))
    return [(node, tree.labels[node]) for node in inner[:500]]


def _edges(shown: ColumnTree) -> list[str]:
    """The edges of bands as the present groups of numbers or days have them, as they are written."""
    tree = shown.tree
    if tree is None or shown.column.kind not in ("numeric", "date"):
        return []
    narrow = {tree.labels[int(tree.parent[leaf])] for leaf in range(tree.leaves)}
    if shown.column.kind == "date":
        begun = {match[1] for label in narrow if (match := re.match(r"(?:>=|\[)(\d{4}-\d\d-\d\d)", label))}
        return sorted(begun)[:200]
    found: set[float] = set()
    for label in narrow:
        match = re.match(r"(?:>=|\[)(-?\d+(?:[.,]\d+)?)", label)
        if match:
            found.add(float(match[1].replace(",", ".")))
    return [f"{edge:g}" for edge in sorted(found)[:200]]


def _whole(text: Any, otherwise: int) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        return otherwise
