"""Look: before and after, row by row; what was left out and why; what would be cheaper; side doors, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from velado.apps.desk import handed_over
from velado.apps.desk.answers import Answers, DoorAnswer
from velado.apps.desk.deciding import (
    TAKEN_BACK,
    answer_of,
    closed_doors,
    decision_about,
    door_shown,
    plain_step,
    refuse_levelled,
    remaining,
    standing,
    step_offered,
    told_decision,
    with_decision,
    with_door,
    without_decision,
)
from velado.apps.desk.door import form
from velado.apps.desk.jobs import Job
from velado.apps.desk.project import changed_meanwhile, now, roles_digest, settled, user
from velado.apps.desk.run_shown import AFTER, BEFORE
from velado.apps.desk.screens._screen import go, job_told, page, project_of
from velado.apps.desk.screens.promise_screen import begin_run
from velado.apps.desk.walk import Walk
from velado.errors import InputError
from velado.release.side_doors.decisions import DECISIONS
from velado.study.recipe import Recipe
from velado.text import language

screen = APIRouter()
_PAGE = 25
_LARGEST_GROUP = 60
_LAST_ROW = 2**60


@screen.get("/look")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    job = walk.run()
    if job is None:
        return go("/promise")
    if job.state != "done":
        columns = [] if walk.recipe is None else list(walk.recipe.schema.columns.values())
        altered = [] if walk.recipe is None else [one.column for one in walk.recipe.operations if one.column]
        return page(
            request,
            "look",
            walk,
            job=job_told(job),
            result=None,
            published=[one for one in columns if one.published],
            named=_named(job, [one.name for one in columns if one.published]),
            decisions=DECISIONS.values(),
            altered=list(dict.fromkeys(altered)),
            take_back=TAKEN_BACK,
        )
    result = job.result()
    asked = request.query_params
    try:
        first, group = max(0, int(asked.get("from", "0"))), int(asked.get("group", "-1"))
        if max(first, abs(group)) > _LAST_ROW:
            raise ValueError
    except ValueError:
        first, group = 0, -1
    frame = pl.scan_parquet(job.folder / "rows.parquet")
    if group >= 0:
        frame = frame.filter(pl.col("group") == group).head(_LARGEST_GROUP)
    elif asked.get("only") == "suppressed":
        frame = frame.filter(pl.col("group") < 0).slice(first, _PAGE)
    else:
        frame = frame.slice(first, _PAGE)
    names = [one["name"] for one in result["columns"]]
    shown = frame.collect()
    published = [name for name in names if f"{AFTER}{name}" in shown.columns]
    recipe = walk.recipe
    kinds = {} if recipe is None else {name: one.kind for name, one in recipe.schema.columns.items()}
    door_kinds = {door["name"]: [kinds.get(name, "") for name in door["columns"]] for door in result["doors"]}
    return page(
        request,
        "look",
        walk,
        job=job_told(job),
        result=result,
        # To three digits, as both are shown.
        cheaper=[one for one in result["cheaper"] if round(one["loss"], 3) < round(result["loss"], 3)],
        current=walk.is_current(job),
        undecided=walk.undecided(job),
        rows=[_row(row, names, published, result) for row in shown.iter_rows(named=True)],
        names=published,
        published=published,
        first=first,
        at_once=_PAGE,
        group=group,
        only=asked.get("only", ""),
        decisions=DECISIONS.values(),
        door_kinds=door_kinds,
        door_groups=_alike(walk, result["doors"], door_kinds),
        step_offered=step_offered,
        remaining=remaining,
        answered=walk.answers.doors,
        closed=closed_doors(walk.answers.doors, recipe, [door["name"] for door in result["doors"]]),
        told_decision=told_decision,
        decisions_by=DECISIONS,
        worse={
            door["name"]: taken
            for door in result["doors"]
            if (taken := decision_about(door, recipe)) is not None and not taken.covers(door_shown(door))
        },
        recipe=recipe,
    )


def _named(job: Job, columns: Sequence[str]) -> str:
    """The column that a refusal advises about, else one that it names."""
    said = job_told(job)["error"] or {"fix": "", "what": ""}
    return next((one for key in ("fix", "what") for one in columns if f"'{one}'" in said[key]), "")


def _alike(
    walk: Walk, doors: Sequence[Mapping[str, Any]], kinds: Mapping[str, list[str]]
) -> list[dict[str, Any]]:
    """The doors in the order of the run; those of look-alike columns stand together, and one decision is for all of them."""
    groups = [] if walk.profile is None else walk.profile.document["alike"]
    of = {name: at for at, group in enumerate(groups) if len(group) > 1 for name in group}
    out: list[dict[str, Any]] = []
    for door in doors:
        # Of columns of two kinds not every decision fits both.
        key = (of[door["columns"][0]], *kinds[door["name"]]) if _single(door, of) else None
        known = next((one for one in out if key is not None and one["key"] == key), None)
        if known is None:
            out.append({"key": key, "doors": [door]})
        else:
            known["doors"].append(door)
    return out


def _single(door: Mapping[str, Any], of: Mapping[str, int]) -> bool:
    return len(door["columns"]) == 1 and door["columns"][0] in of


def _row(
    row: Mapping[str, Any], names: list[str], published: list[str], result: Mapping[str, Any]
) -> dict[str, Any]:
    before = {name: row[f"{BEFORE}{name}"] for name in names if f"{BEFORE}{name}" in row}
    after = {name: row[f"{AFTER}{name}"] for name in published}
    why = result.get("why", {}).get(str(row["row"]))
    return {
        "row": row["row"],
        "group": row["group"],
        "before": before,
        "after": after,
        "changed": {name for name in published if after[name] != before.get(name)},
        "why": None if why is None else why[language()],
    }


@screen.get("/look/report")
def report(request: Request) -> Response:
    """The report of the run that is looked at."""
    project = project_of(request)
    job = Walk.of(project).run()
    if job is None or job.state != "done":
        return go("/look")
    place = job.folder / "out" / "private" / "report.html"
    return HTMLResponse(handed_over.read_page(project, place), headers=handed_over.ALONE)


@screen.post("/look/again")
async def again(request: Request) -> Response:
    """The same recipe once more."""
    given = await form(request)
    project = project_of(request)
    if given.one("state") != project.state():
        raise changed_meanwhile()
    Walk.of(project).refuse_run()
    begin_run(request)
    return go("/look")


@screen.post("/look/doors")
async def decide(request: Request) -> Response:
    """Somebody decides about side doors, each by itself; then the release is made anew."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    walk.refuse_run()
    job = walk.run()
    if job is None or job.state != "done" or given.one("run") != job.name:
        raise InputError(
            "These side doors are not those of the run that is looked at.",
            "You would decide about what you did not see.",
            "Look at the page as it is now, and decide again.",
        )
    doors = {door["name"]: door for door in job.result()["doors"]}
    # A door that is decided by itself stays as it is decided there, whatever becomes of those alike.
    asked = {name: name if given.one(f"door-{name}") else given.one(f"alike-of-{name}") for name in doors}
    chosen = {name: of for name, of in asked.items() if of and given.one(f"door-{of}")}
    if not chosen:
        raise InputError(
            "Nothing was decided.", "Each side door waits for one.", "Choose what becomes of it."
        )

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None and answers.source is not None
        decided = dict(answers.doors)
        for name, of in chosen.items():
            answer = answer_of(
                recipe,
                doors[name]["columns"],
                given.one(f"column-{name}"),
                given.one(f"door-{of}"),
                reason=given.one(f"reason-{of}").strip(),
                step=given.one(f"step-{name}"),
            )
            refuse_levelled(doors[name], answer)
            recipe = with_door(recipe, doors[name], answer)
            decided[name] = answer
        said = settled(roles_digest(recipe.schema, answers.source.digest))
        return replace(answers, doors=decided, roles=said), recipe

    project.change(edit, given.one("state"))
    begin_run(request)
    return go("/look")


@screen.post("/look/column")
async def decide_column(request: Request) -> Response:
    """Somebody decides about a column that a refused run named; then the release is made anew."""
    given = await form(request)
    project = project_of(request)
    Walk.of(project).refuse_run()

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None and answers.source is not None
        column, reason = given.one("column"), given.one("reason").strip()
        if column not in recipe.schema.columns:
            raise InputError("There is no such column.", "Nothing was done.", "Choose one of the list.")
        answer = DoorAnswer(
            decision=given.one("decision"), reason=reason, column=column, step=plain_step(given.one("step"))
        )
        made = with_decision(recipe, answer)
        said = settled(roles_digest(made.schema, answers.source.digest))
        return replace(answers, roles=said), made

    project.change(edit, given.one("state"))
    begin_run(request)
    return go("/look")


@screen.post("/look/closed")
async def decide_again(request: Request) -> Response:
    """A decision about a door that is closed by it is taken back, or taken with another step; then the release is made anew."""
    given = await form(request)
    project = project_of(request)
    Walk.of(project).refuse_run()
    name = given.one("door")

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None and answers.source is not None
        before = standing(answers.doors, recipe).get(name)
        if before is None:
            raise InputError(
                "There is no such decision.", "Nothing was done.", "Look at the page as it is now."
            )
        decided = {key: one for key, one in answers.doors.items() if key != name}
        if given.one("do") == "back":
            made = without_decision(recipe, before)
        else:
            answer = replace(before, step=plain_step(given.one("step")), by=user(), at=now())
            made, decided[name] = with_decision(recipe, answer), answer
        said = settled(roles_digest(made.schema, answers.source.digest))
        return replace(answers, doors=decided, roles=said), made

    project.change(edit, given.one("state"))
    begin_run(request)
    return go("/look")


def finished(walk: Walk) -> Job:
    """The run that is looked at, if it is done, of the recipe as it stands, and every side door is decided."""
    walk.refuse_run()
    job = walk.run()
    if job is None or job.state != "done":
        raise InputError(
            "There is no finished run.", "Only a finished run can be signed.", "Make a release first."
        )
    if not walk.is_current(job):
        raise InputError(
            "The recipe or the table changed after this run.",
            "You would sign another release than the project describes.",
            "Make the release again and look at it.",
        )
    if walk.undecided(job):
        raise InputError(
            "Side doors of this release are undecided.",
            "Each still gives a protected column away in this very run, whatever was done about it, and nobody accepted it with a reason.",
            "On the screen 'Look', close each or accept it with a reason.",
        )
    return job
