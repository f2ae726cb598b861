"""Who is a person? Candidates with their rows; that each row is a person of its own must be said, never assumed."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from velado.apps.desk.answers import Answers
from velado.apps.desk.door import form
from velado.apps.desk.project import person_digest, settled
from velado.apps.desk.screens._screen import go, page, project_of
from velado.apps.desk.walk import Walk
from velado.errors import InputError
from velado.study.recipe import Recipe

screen = APIRouter()


@screen.get("/people")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    if not walk.reading_settled or walk.profile is None or walk.recipe is None:
        return go("/open")
    person = walk.recipe.schema.person
    candidates = walk.profile.document["candidates"]
    return page(
        request,
        "people",
        walk,
        candidates=candidates,
        repeated=[one for one in candidates if one["several"]],
        names=list(walk.recipe.schema.columns),
        person=None if person is None else person.name,
        per=walk.recipe.per,
        rows=walk.profile.document["rows"],
    )


@screen.post("/people")
async def answer(request: Request) -> Response:
    """Somebody says who one person is."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    source, found = walk.answers.source, walk.profile
    if not walk.reading_settled or source is None or found is None:
        raise InputError("No table is open.", "Nothing was done.", "Open a table first.")
    column, by_row = given.one("column"), given.one("answer") == "row"
    repeated = [one["column"] for one in found.document["candidates"] if one["several"]]
    if by_row and repeated and given.one("seen") != "yes":
        raise InputError(
            "It was not said that the rows of each candidate were looked at.",
            "Columns of this table have values that stand in several rows; if one of them names people, a crowd of rows could be a single person.",
            "Look at the rows of each candidate, then tick the box if each row is a person all the same.",
        )

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        return with_person(answers, recipe, None if by_row else column, source.digest)

    project.change(edit, given.one("state"))
    return go("/roles")


def with_person(answers: Answers, recipe: Recipe, column: str | None, digest: str) -> tuple[Answers, Recipe]:
    """Somebody said that rows which share *column* are one person, or, with None, that each row is one."""
    if column is not None and column not in recipe.schema.columns:
        raise InputError("There is no such column.", "Nothing was done.", "Choose one of the list.")
    columns = [replace(one, person=one.name == column) for one in recipe.schema.columns.values()]
    made = replace(recipe, schema=recipe.schema.with_columns(columns), per="row" if column is None else None)
    said = settled(person_digest(made, digest))
    return replace(answers, person=said, roles=None), made
