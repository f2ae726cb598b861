"""Compare: methods and several k as a chart and a table of loss and risk; a click chooses."""

from __future__ import annotations

import json
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from velado.apps.desk import comparing, jobs
from velado.apps.desk.answers import Answers
from velado.apps.desk.door import form
from velado.apps.desk.previewing import QUICK, method_names
from velado.apps.desk.project import digest_of
from velado.apps.desk.screens._screen import go, job_told, page, project_of, start
from velado.apps.desk.screens.promise_screen import promised
from velado.apps.desk.walk import Walk
from velado.errors import ParameterError
from velado.release.methods import METHODS
from velado.study.recipe import Recipe
from velado.text import language, say

screen = APIRouter()
KS = (2, 3, 5, 10, 20)
USUAL = ("mondrian", "full-domain", "mdav", "progressive")
SAMPLE_ROWS = 2_000


@screen.get("/compare")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    if walk.recipe is None or not walk.roles_settled:
        return go("/roles" if walk.person_settled else "/people" if walk.reading_settled else "/open")
    job = walk.job(walk.answers.compared)
    runs, stated = [], ""
    if job is not None and job.state == "done":
        result = job.result()
        runs, stated = result["runs"], result["stated"][language()]
    elif job is not None and (job.folder / "partial.json").exists():
        runs = json.loads((job.folder / "partial.json").read_bytes())
    return page(
        request,
        "compare",
        walk,
        job=job_told(job),
        runs=runs,
        stated=stated,
        old=job is not None and job.asked.get("about") != about(walk.recipe),
        chart=comparing.chart(runs, walk.recipe.method.name, walk.recipe.k),
        legend=comparing.legend(runs),
        methods=method_names(),
        titles={method.name: method.title for method in METHODS},
        usual=USUAL,
        ks=KS,
        recipe=walk.recipe,
        sample=SAMPLE_ROWS,
    )


@screen.post("/compare")
async def begin(request: Request) -> Response:
    """The methods and k that were chosen are tried, in a process of its own."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    _, recipe = walk.refuse_run()
    methods = [name for name in given.all("method") if name in method_names()]
    try:
        ks = sorted({int(k) for k in given.all("k")})
    except ValueError:
        ks = []
    if not methods or not ks or min(ks) < 2 or len(ks) > 20:
        raise ParameterError(
            "Nothing to compare was chosen.",
            "A comparison has methods and sizes of crowds.",
            "Tick at least one of each.",
        )
    rows = 0 if given.one("rows") == "all" else SAMPLE_ROWS
    name = _compare(request, walk, recipe, {"methods": methods, "ks": ks, "rows": rows})

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        return replace(answers, compared=name), recipe

    project.change(edit)
    return go("/compare")


@screen.post("/compare/choose")
async def choose(request: Request) -> Response:
    """A method and a k stand in the recipe."""
    given = await form(request)
    project = project_of(request)
    Walk.of(project).refuse_run()
    method, _, k = given.one("choice").rpartition("@")
    if method not in method_names() or not k.isdigit():
        raise ParameterError(say("There is no such choice."), "Nothing was done.", "Choose one of the list.")

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        document = recipe.to_dict()
        if method != recipe.method.name:
            document["method"] = {"name": method}
        document["k"] = int(k)
        return answers, replace(Recipe.from_dict(document), schema=recipe.schema)

    project.change(edit, given.one("state"))
    return go("/promise?saved")


@screen.post("/promise/whole")
async def whole(request: Request) -> JSONResponse:
    """The same promise on all rows, by a process of its own; the page asks how it stands."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    _, recipe = walk.refuse_run()
    asked = promised(recipe, given)
    earlier = given.one("earlier")
    if earlier:
        jobs.cancel(project.runs, earlier)
    return JSONResponse(
        {"job": _compare(request, walk, asked, {"methods": [QUICK], "ks": [asked.k or 5], "rows": 0})}
    )


@screen.get("/promise/whole/{name}")
def wholly(request: Request, name: str) -> JSONResponse:
    """What the promise costs on all rows, once it is known."""
    job = jobs.look(project_of(request).runs, name)
    told = job_told(job)
    if job.state != "done":
        return JSONResponse({**told, "lines": []})
    return JSONResponse({**told, "lines": comparing.lines(job.result())})


def _compare(request: Request, walk: Walk, recipe: Recipe, asked: dict[str, object]) -> str:
    return start(request, "compare", walk, recipe_text=recipe.to_toml(), about=about(recipe), **asked)


def about(recipe: Recipe) -> str:
    """The digest of what a comparison depends on: all of the recipe but method and k."""
    document = {key: part for key, part in recipe.to_dict().items() if key not in ("method", "k", "language")}
    return digest_of(document)
