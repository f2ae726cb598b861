"""Promise: sliders in words, presets, what is not protected; what it costs is redrawn at once, on a sample."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from velado.apps.desk import previewing
from velado.apps.desk.answers import Answers
from velado.apps.desk.door import Form, form
from velado.apps.desk.project import changed_meanwhile, roles_digest, settled
from velado.apps.desk.screens._screen import awaited, go, page, project_of, start
from velado.apps.desk.tree_shown import fitting_ones, without_place
from velado.apps.desk.walk import Walk
from velado.errors import ParameterError
from velado.study.recipe import Recipe
from velado.text import language, say

screen = APIRouter()
L_DIVERSITY = "l-diversity"


@screen.get("/promise")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    if walk.recipe is None or not walk.roles_settled:
        return go("/roles" if walk.person_settled else "/people" if walk.reading_settled else "/open")
    recipe = _offered(walk.recipe, request)
    return page(
        request,
        "promise",
        walk,
        recipe=recipe,
        changed=recipe != walk.recipe,
        l=_asked_l(walk.recipe),
        reach=_reach(recipe),
        offered_loss=_offered_loss(recipe, request),
        sensitive=[column.name for column in walk.recipe.schema.sensitive],
        presets=previewing.presets(),
        said=walk.answers.said.get(language(), []),
        entry=walk.recipe.to_dict(),
        fits=[] if walk.profile is None else list(fitting_ones(walk.recipe.schema, walk.profile)),
        unplaced={} if walk.profile is None else without_place(walk.recipe.schema, walk.profile),
    )


def _reach(recipe: Recipe) -> dict[str, float | str]:
    """How far the sliders go: a figure written into the recipe by hand is within reach, so that no page moves it unasked.

    >>> schema = {"columns": {"age": {"role": "quasi", "kind": "numeric"}}}
    >>> found = _reach(Recipe.from_dict({"version": 1, "schema": schema, "method": "mdav", "k": 80, "suppression": 0.0025}))
    >>> found["k"], found["percent"], found["step"]
    (80, 0.25, 'any')
    """
    percent = round(100 * recipe.suppression, 6)
    return {
        "k": max(50, recipe.k or 0),
        "l": max(10, _asked_l(recipe)),
        "percent": percent,
        "most": max(20, percent),
        "step": "0.5" if (2 * percent).is_integer() else "any",
    }


def _offered(recipe: Recipe, request: Request) -> Recipe:
    """The recipe with the figures that a link proposes, for the page to show; nothing is kept."""
    asked = request.query_params
    try:
        k, suppression = int(asked["k"]), float(asked["suppression"])
    except (KeyError, ValueError):
        return recipe
    return replace(recipe, k=k, suppression=suppression) if k >= 2 and 0 <= suppression <= 1 else recipe


def _offered_loss(recipe: Recipe, request: Request) -> float | None:
    """What a link says that its figures lost, where the preview is not made by the recipe's own method."""
    try:
        loss = float(request.query_params["loss"])
    except (KeyError, ValueError):
        return None
    return loss if 0 <= loss <= 1 and recipe.method.name != previewing.QUICK else None


@screen.post("/promise/preview")
async def preview(request: Request) -> JSONResponse:
    """Loss and risk on a sample, if the promise were as the page has it; nothing is kept."""
    given = await form(request)
    walk = Walk.of(project_of(request))
    _, recipe = walk.refuse_run()
    return JSONResponse(await run_in_threadpool(previewing.on_sample, walk, promised(recipe, given)))


@screen.post("/promise/preset")
async def preset(request: Request) -> Response:
    """A preset's settings stand in the recipe."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    walk.refuse_run()
    name = given.one("preset")
    if name not in [one for one, _ in previewing.presets()]:
        raise ParameterError("There is no such preset.", "Nothing was done.", "Choose one of the list.")
    text = project.recipe_file.read_text("utf-8")
    job = start(request, "preset", walk, recipe_text=text, preset=name, before=walk.answers.preset)
    plan = (await run_in_threadpool(awaited, request, job)).result()

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None and answers.source is not None
        made = Recipe.from_dict(tomllib.loads(plan["recipe_text"]))
        said = settled(roles_digest(made.schema, answers.source.digest))
        return replace(answers, preset=name, said=plan["said"], roles=said), made

    project.change(edit, given.one("state"))
    return go("/promise?saved")


@screen.post("/promise")
async def promise(request: Request) -> Response:
    """The promise stands in the recipe; with "run" a release is made in a process of its own."""
    given = await form(request)
    project = project_of(request)
    Walk.of(project).refuse_run()

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        return answers, replace(promised(recipe, given), language=language())

    project.change(edit, given.one("state"))
    if given.one("do") != "run":
        return go("/promise?saved")
    begin_run(request)
    return go("/look")


def begin_run(request: Request) -> str:
    """A release is made with the recipe as it stands: its file is copied, so that later edits do not reach the run."""
    project = project_of(request)
    with project.lock:
        walk = Walk.of(project)
        walk.refuse_run()
        before = walk.state
        recipe = project.recipe_file.read_bytes()
        name = start(
            request,
            "release",
            walk,
            recipe=walk.recipe_digest(),
            recipe_text=recipe.decode(),
            preset=walk.answers.preset,
        )
        if before != project.state():
            raise changed_meanwhile()

        def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
            return replace(answers, run=name), recipe

        project.change(edit)
    return name


def promised(recipe: Recipe, given: Form) -> Recipe:
    """The recipe with the promise that the form names; every value is checked by the one reader of recipes."""
    document = recipe.to_dict()
    document["k"] = _number(given, "k", recipe.k)
    document["suppression"] = (_number(given, "suppression", 100 * recipe.suppression) or 0) / 100
    if "method" in given.fields and given.one("method") != recipe.method.name:
        document["method"] = {"name": given.one("method")}
    least = int(_number(given, "l", _asked_l(recipe)) or 0)
    others: list[Mapping[str, Any]] = []
    entries = document.get("guarantees", [])
    assert isinstance(entries, list)
    others = [one for one in entries if one.get("name") != L_DIVERSITY]
    if least > 1:
        columns = [column.name for column in recipe.schema.sensitive]
        others += [{"name": L_DIVERSITY, "l": least, "column": name} for name in columns]
    document["guarantees"] = others
    made = Recipe.from_dict(document)
    return replace(made, schema=recipe.schema)


def _number(given: Form, name: str, otherwise: float | None) -> Any:
    text = given.one(name).strip().replace(",", ".")
    if not text:
        return otherwise
    try:
        number = float(text)
    except ValueError:
        raise ParameterError(
            say("'{name}' is no number.", name=name), "The promise needs one.", "Write a number."
        ) from None
    return int(number) if number == int(number) else number


def _asked_l(recipe: Recipe) -> int:
    found = recipe.to_dict().get("guarantees", [])
    assert isinstance(found, list)
    return max((int(one["l"]) for one in found if one.get("name") == L_DIVERSITY), default=1)
