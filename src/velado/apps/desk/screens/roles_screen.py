"""Roles: a card for each column, the most dangerous first, look-alikes as one; who can be told apart is counted live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from velado.apps.desk.answers import Answers
from velado.apps.desk.door import Form, form
from velado.apps.desk.profile import Profile
from velado.apps.desk.project import operations_left, person_digest, roles_digest, settled
from velado.apps.desk.screens._screen import go, page, project_of, short
from velado.apps.desk.walk import Walk
from velado.data.schema import Column, Schema
from velado.errors import InputError
from velado.settings import Where, made
from velado.study.recipe import Recipe
from velado.text import Sentence, count, say

screen = APIRouter()
ROLES: tuple[tuple[str, Sentence], ...] = (
    ("identifier", say("names the person: never published")),
    ("quasi", say("outsiders may know it: made coarser")),
    ("sensitive", say("must not be learnt: published as it is")),
    ("other", say("neither: published as it is")),
)
KINDS: tuple[tuple[str, Sentence], ...] = (
    ("numeric", say("numbers")),
    ("categorical", say("categories")),
    ("date", say("days")),
    ("text", say("texts")),
)


@screen.get("/roles")
def show(request: Request) -> Response:
    """The screen."""
    walk = Walk.of(project_of(request))
    if not walk.reading_settled or walk.profile is None or walk.recipe is None:
        return go("/open")
    if not walk.person_settled:
        return go("/people")
    schema = walk.recipe.schema
    numbers = {name: at for at, name in enumerate(schema.columns)}
    alike = [group for group in walk.profile.document["alike"] if len(group) > 1]
    inside = {name: at for at, group in enumerate(alike) for name in group}
    cards: list[dict[str, Any]] = []
    for found in walk.profile.columns:
        name = found["name"]
        group = inside.get(name)
        own = {"found": found, "column": schema.columns[name], "number": numbers[name], "group": group}
        if group is None:
            cards.append({"cards": [own], "group": None})
            continue
        known = next((card for card in cards if card["group"] == group), None)
        if known is None:
            cards.append({"cards": [own], "group": group})
        else:
            known["cards"].append(own)
    for card in cards:
        # What most of a group's columns are is the group's; one that was decided otherwise stands by itself.
        states = [(own["column"].role, own["column"].publish) for own in card["cards"]]
        usual = max(states, key=states.count)
        card["usual"] = card["cards"][states.index(usual)]["column"]
        for own, state in zip(card["cards"], states, strict=True):
            own["alone"] = state != usual
    return page(
        request, "roles", walk, cards=cards, roles=ROLES, kinds=KINDS, counted=_counted(walk.profile, schema)
    )


@screen.post("/roles/count")
async def counted(request: Request) -> JSONResponse:
    """Who could be told apart if the roles were as the page has them; nothing is kept."""
    given = await form(request)
    walk = Walk.of(project_of(request))
    if walk.profile is None or walk.recipe is None:
        raise InputError("No table is open.", "Nothing was counted.", "Open a table first.")
    return JSONResponse(_counted(walk.profile, _chosen(walk.recipe.schema, given, walk.profile)))


@screen.post("/roles")
async def settle(request: Request) -> Response:
    """Somebody settles every column's role."""
    given = await form(request)
    project = project_of(request)
    walk = Walk.of(project)
    source, found = walk.answers.source, walk.profile
    if source is None or found is None or not walk.person_settled:
        raise InputError(
            "Nobody has said yet who one person is.", "Roles depend on it.", "Answer that question first."
        )

    def edit(answers: Answers, recipe: Recipe | None) -> tuple[Answers, Recipe | None]:
        assert recipe is not None
        schema = _chosen(recipe.schema, given, found)
        _refuse_unexplained(schema, given, found)
        changed = replace(recipe, schema=schema, operations=operations_left(recipe, schema))
        said = settled(roles_digest(schema, source.digest))
        person = answers.person
        assert person is not None
        return replace(
            answers, roles=said, person=replace(person, digest=person_digest(changed, source.digest))
        ), changed

    project.change(edit, given.one("state"))
    return go("/promise" if given.one("next") != "hierarchies" else "/hierarchies")


def _refuse_unexplained(schema: Schema, given: Form, found: Profile) -> None:
    """Nothing, if every question of the page is answered why a column that may name people is published as it is."""
    for at, (name, column) in enumerate(schema.columns.items()):
        card = found.column(name)
        asked = f"member-{at}" not in given.fields and (card["identifier"] or card["suspected"])
        if asked and column.published and column.role != "quasi" and not column.reason:
            raise InputError(
                say("Nobody has said why '{column}' names nobody.", column=short(name)),
                "It looks like something that identifies people, and would be published as it is.",
                "On its card say that it names the person, hold it back, or write why it names nobody.",
            )


def _chosen(schema: Schema, given: Form, found: Profile) -> Schema:
    """The schema with the roles that the form names; a group's choice holds for each of its columns."""
    names = list(schema.columns)
    columns = []
    for at, name in enumerate(names):
        column = schema.columns[name]
        group = given.one(f"member-{at}")
        lead = f"g{group}" if group and given.one(f"role-{at}", "group") == "group" else str(at)
        columns.append(_with(column, given, lead, str(at)) if f"role-{lead}" in given.fields else column)
    del found
    return schema.with_columns(columns)


def _with(column: Column, given: Form, lead: str, own: str) -> Column:
    role, kind = given.one(f"role-{lead}"), given.one(f"kind-{own}", column.kind)
    # Who ticks it at one of a group holds that one back, whatever becomes of the others.
    held = (given.one(f"hold-{lead}"), given.one(f"hold-{own}"))
    entry: dict[str, object] = {"role": role, "kind": kind, "publish": "yes" not in held}
    if f"reason-{own}" in given.fields:  # a card that does not ask for it says nothing about it
        reason = given.one(f"reason-{own}").strip()
        entry |= {
            "identifier": "accept" if reason else "refuse",
            "reason": reason or (column.reason if column.side_door == "accept" else ""),
        }
    if role != "quasi" or kind != column.kind:
        entry |= {"round": None}
    if kind != column.kind:
        entry |= {"taxonomy": None, "bounds": None, "clamp": False}
    values = {name: getattr(column, name) for name in column.__dataclass_fields__}
    return made(Column, {**values, **entry}, Where("form"))


def _counted(found: Profile, schema: Schema) -> Mapping[str, object]:
    """How many people every published column together tells apart, and the quasi-identifiers alone."""
    person = None if schema.person is None else schema.person.name
    published = [column.name for column in schema.columns.values() if column.published]
    quasi = [column.name for column in schema.quasi if column.published]
    return {"all": _line(found, published, person), "quasi": _line(found, quasi, person)}


def _line(found: Profile, columns: Sequence[str], person: str | None) -> dict[str, object]:
    counted = found.told_apart(columns, person)
    share = counted.unique_people / max(counted.people, 1)
    return {"alone": count(counted.unique_people), "people": count(counted.people), "share": share}
