"""What somebody decides about a side door or a column, as the recipe carries it; and what is still to be decided.

A door that a run itself still finds is open, whatever was done about it: nobody has decided about it unless somebody
accepted it with a reason and the recipe says so, with the figures it was accepted on. A worse one is undecided again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from velado.apps.desk.answers import DoorAnswer
from velado.apps.desk.project import now, operations_left, user
from velado.data.schema import Column
from velado.errors import InputError, ParameterError
from velado.release.side_doors import DoorDecision, SideDoor
from velado.study.recipe import Recipe
from velado.text import Sentence, say

DECISIONS: tuple[tuple[str, Sentence], ...] = (
    ("hold", say("hold the column back")),
    ("round", say("round its numbers")),
    ("generalize", say("make it coarser")),
    ("quasi", say("treat it as something outsiders know")),
    ("accept", say("publish it all the same, for this reason:")),
)
DECIDED: Mapping[str, Sentence] = {
    "hold": say("held back"),
    "round": say("numbers rounded"),
    "generalize": say("made coarser"),
    "quasi": say("treated as something outsiders know"),
    "accept": say("published all the same"),
}
TAKEN_BACK = "take back"


def door_name(door: SideDoor | DoorDecision) -> str:
    """A name for a door by which an answer finds it again: what is read, what it gives away, and how."""
    return hashlib.sha256("\0".join((*door.columns, door.reveals, door.kind)).encode()).hexdigest()[:16]


def door_shown(entry: Mapping[str, Any]) -> SideDoor:
    """The door that a run found, from what is kept of it; refused where its figures were not kept."""
    if "door" not in entry:
        raise InputError(
            "The figures of this side door were not kept.",
            "A decision holds for the figures it was taken on.",
            "Make the release again, and decide then.",
        )
    found = dict(entry["door"])
    return SideDoor(**{**found, "together": tuple(found["together"])})


def decided(door: Mapping[str, Any], recipe: Recipe | None) -> bool:
    """Whether somebody accepted a door that a run found open, when it was no less open, and the run was made with that."""
    taken = decision_about(door, recipe)
    if recipe is None or taken is None or not door.get("accepted") or not taken.covers(door_shown(door)):
        return False
    signable = [recipe.schema.columns[name] for name in _signable(door["columns"], recipe)]
    return not signable or any(one.published and one.side_door == "accept" for one in signable)


def decision_about(door: Mapping[str, Any], recipe: Recipe | None) -> DoorDecision | None:
    """What the recipe carries of a decision about a door."""
    if recipe is None or "door" not in door:
        return None
    found = door_shown(door)
    return next((one for one in recipe.doors if one.is_about(found)), None)


def carried(name: str, answer: DoorAnswer, recipe: Recipe) -> bool:
    """Whether the recipe still does what was decided about the door of that *name*."""
    column = recipe.schema.columns.get(answer.column)
    if answer.decision == "accept":
        signed = column is None or (column.published and column.side_door == "accept")
        return signed and any(door_name(one) == name for one in recipe.doors)
    if column is None:
        return False
    if answer.decision == "hold":
        return not column.published
    if answer.decision == "quasi":
        return column.role == "quasi"
    try:
        wanted = _operation(column, answer.decision, answer.step).items()
    except (InputError, ParameterError):
        return False
    return any(wanted <= one.items() for one in _entries(recipe))


def standing(answers: Mapping[str, DoorAnswer], recipe: Recipe | None) -> dict[str, DoorAnswer]:
    """The decisions that the recipe carries; one that somebody undid later is not told as if it held."""
    return (
        {} if recipe is None else {name: one for name, one in answers.items() if carried(name, one, recipe)}
    )


def answer_of(
    recipe: Recipe, columns: Sequence[str], chosen: str, decision: str, *, reason: str, step: str
) -> DoorAnswer:
    """This user's decision, now, about the door of these *columns*."""
    column = chosen if chosen in columns else next(iter(columns), "")
    if decision == "accept":
        # A quasi-identifier is not signed off; of a pair the other one is.
        signable = _signable(columns, recipe)
        column = column if column in signable else next(iter(signable), "")
    return DoorAnswer(decision=decision, reason=reason, by=user(), at=now(), column=column, step=step)


def with_door(recipe: Recipe, door: Mapping[str, Any], answer: DoorAnswer) -> Recipe:
    """The recipe with what was decided about a door that a run found; an acceptance is bound to the figures of that run."""
    made, found = with_decision(recipe, answer), door_shown(door)
    others = tuple(one for one in made.doors if not one.is_about(found))
    if answer.decision != "accept":
        return replace(made, doors=others)
    taken = DoorDecision.of(found, reason=answer.reason, by=answer.by, at=answer.at)
    return replace(made, doors=(*others, taken))


def with_decision(recipe: Recipe, answer: DoorAnswer) -> Recipe:
    """The recipe with what was decided, in the words of recipes: the core judges it when it is run."""
    if answer.decision == "accept" and not answer.reason:
        raise InputError(
            "A side door was accepted without a reason.",
            "Somebody must be able to answer for it.",
            "Write why it may be published, or decide otherwise.",
        )
    column = recipe.schema.columns.get(answer.column)
    if column is None:
        if answer.decision == "accept":
            return recipe  # the order of rows and pairs that were not looked at belong to no column
        raise InputError(
            "This side door belongs to no column.",
            "There is nothing to hold back.",
            "Accept it with a reason.",
        )
    if answer.decision == "hold":
        return _with_column(recipe, replace(column, publish=False))
    if answer.decision == "accept":
        return _with_column(recipe, replace(column, side_door="accept", reason=answer.reason))
    if answer.decision == "quasi":
        return _with_column(recipe, replace(column, role="quasi"))
    others = [one for one in _entries(recipe) if one.get("column") != column.name]
    if answer.decision == TAKEN_BACK:
        return _with_entries(recipe, others)
    return _with_entries(recipe, [*others, _operation(column, answer.decision, answer.step)])


def _operation(column: Column, decision: str, step: str) -> dict[str, Any]:
    """The entry of a recipe that a decision is; refused if it cannot be done to such a column."""
    try:
        width = float(step.replace(",", "."))
    except ValueError:
        raise ParameterError(
            say("No step was given for '{column}'.", column=column.name),
            "Numbers are rounded to its multiples.",
            "Write a number above 0, such as 100.",
        ) from None
    if decision == "round":
        if column.kind != "numeric":
            raise InputError(
                say("'{column}' does not hold numbers, so they cannot be rounded.", column=column.name),
                "Nothing was changed, and nothing was run.",
                "Hold it back, make it coarser, or decide otherwise.",
            )
        return {"name": "round", "column": column.name, "to": width}
    if decision != "generalize":
        raise InputError("This is no decision.", "Nothing was done.", "Choose one of the list.")
    if column.kind == "numeric" and column.taxonomy is None:
        return {"name": "generalize", "column": column.name, "width": width}
    if not (width >= 1 and width == width // 1):
        raise ParameterError(
            say("'{column}' cannot be made coarser by this step.", column=column.name),
            "It goes up a hierarchy, level by level.",
            "Write a whole number of levels, such as 1.",
        )
    return {"name": "generalize", "column": column.name, "level": int(width)}


def _signable(columns: Sequence[str], recipe: Recipe) -> list[str]:
    known = recipe.schema.columns
    return [name for name in columns if name in known and known[name].role != "quasi"]


def _entries(recipe: Recipe) -> list[dict[str, Any]]:
    entries = recipe.to_dict().get("operations", [])
    assert isinstance(entries, list)
    return entries


def _with_entries(recipe: Recipe, entries: list[dict[str, Any]]) -> Recipe:
    document = {**recipe.to_dict(), "operations": entries}
    return replace(Recipe.from_dict(document), schema=recipe.schema)


def _with_column(recipe: Recipe, column: Column) -> Recipe:
    columns = {**recipe.schema.columns, column.name: column}
    schema = recipe.schema.with_columns(columns.values())
    return replace(recipe, schema=schema, operations=operations_left(recipe, schema))
