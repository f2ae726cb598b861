"""What somebody decides about a side door or a column, as the recipe carries it; and what is still to be decided.

A door that a run itself still finds is open, whatever was done about it: nobody has decided about it unless somebody
accepted it with a reason and the recipe says so, with the figures it was accepted on. A worse one is undecided again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from velado.apps.desk.answers import DoorAnswer
from velado.apps.desk.project import now, operations_left, user
from velado.data.schema import Column
from velado.errors import InputError
from velado.release.side_doors import DoorDecision, SideDoor
from velado.release.side_doors.decisions import DECISIONS, Decision
from velado.study.recipe import Recipe
from velado.text import Sentence, read_number, say

TAKEN_BACK = "take back"
"""No decision, but the end of one: what a recipe does to a column is done no longer."""


def decision_of(answer: DoorAnswer) -> Decision:
    """The decision that an answer names; refused if there is no such one."""
    found = DECISIONS.get(answer.decision)
    if found is None:
        raise InputError("This is no decision.", "Nothing was done.", "Choose one of the list.")
    return found


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
    column, decision = recipe.schema.columns.get(answer.column), DECISIONS.get(answer.decision)
    if decision is None:
        return False
    kept = not decision.keeps_open or any(door_name(one) == name for one in recipe.doors)
    if column is None:
        return kept and decision.for_the_table
    return kept and decision.stands(column, _entries(recipe), answer.step, answer.reason)


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
    if decision in DECISIONS and DECISIONS[decision].keeps_open:
        # A quasi-identifier is not signed off; of a pair the other one is.
        signable = _signable(columns, recipe)
        column = column if column in signable else next(iter(signable), "")
    step = plain_step(step)
    return DoorAnswer(decision=decision, reason=reason, by=user(), at=now(), column=column, step=step)


def plain_step(step: str) -> str:
    """A step as recipes have it, whatever marks the language that is spoken has; what is no number stays as it is."""
    found = read_number(step)
    return step if found is None else f"{found:.15g}"


def step_offered(spread: Mapping[str, Any] | None) -> str:
    """A step by which about ten different numbers remain of a column's usual ones: 1, 2 or 5 with zeros; "1" goes up one level.

    >>> step_offered({"low": 8.0, "high": 45.0, "whole": False}), step_offered({"low": 0, "high": 6, "whole": True})
    ('5', '1')
    >>> step_offered(None)
    '1'
    """
    wide = 0.0 if spread is None else (spread["high"] - spread["low"]) / 10
    if spread is None or wide <= 0:
        return "1"
    unit = 10.0 ** math.floor(math.log10(wide))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= wide * (1 - 1e-9))
    return f"{max(step, 1.0) if spread['whole'] else step:.15g}"


def remaining(spread: Mapping[str, Any] | None, step: str) -> int | None:
    """About how many different numbers a column's usual ones become by a step; None where that is not known.

    >>> remaining({"low": 8.0, "high": 45.0}, "5"), remaining({"low": 8.0, "high": 45.0}, "100"), remaining(None, "1")
    (8, 1, None)
    """
    width = read_number(step, "en")
    if spread is None or width is None or not 0 < width < math.inf:
        return None
    low, high = (round(float(spread[end]) / width) for end in ("low", "high"))
    return high - low + 1


def refuse_levelled(door: Mapping[str, Any], answer: DoorAnswer) -> None:
    """Nothing, if more than one number remains of a column whose numbers are rounded or put into bands."""
    left = remaining(door.get("spread", {}).get(answer.column), answer.step)
    if decision_of(answer).takes == "step" and left is not None and left < 2:
        raise InputError(
            say("By this step next to nothing remains of '{column}'.", column=answer.column),
            "Nearly all of its numbers would become the same one.",
            "Write a smaller step, or hold the column back.",
        )


def with_door(recipe: Recipe, door: Mapping[str, Any], answer: DoorAnswer) -> Recipe:
    """The recipe with what was decided about a door that a run found; an acceptance is bound to the figures of that run."""
    made, found = with_decision(recipe, answer), door_shown(door)
    others = tuple(one for one in made.doors if not one.is_about(found))
    if not decision_of(answer).keeps_open:
        return replace(made, doors=others)
    taken = DoorDecision.of(found, reason=answer.reason, by=answer.by, at=answer.at)
    return replace(made, doors=(*others, taken))


def with_decision(recipe: Recipe, answer: DoorAnswer) -> Recipe:
    """The recipe with what was decided, in the words of recipes: the core judges it when it is run."""
    column = recipe.schema.columns.get(answer.column)
    if column is not None and answer.decision == TAKEN_BACK:
        return _with_entries(recipe, _others(recipe, column))
    decision = decision_of(answer)
    if decision.takes == "reason" and not answer.reason:
        raise InputError(
            "A side door was accepted without a reason.",
            "Somebody must be able to answer for it.",
            "Write why it may be published, or decide otherwise.",
        )
    if column is None:
        if decision.for_the_table:
            return recipe  # the order of rows and pairs that were not looked at belong to no column
        raise InputError(
            "This side door belongs to no column.",
            "There is nothing to hold back.",
            "Accept it with a reason.",
        )
    made = decision.edit(column, answer.step, answer.reason)
    if made.operation is None:
        return _with_column(recipe, made.column)
    return _with_entries(recipe, [*_others(recipe, column), dict(made.operation)])


def closed_doors(
    answers: Mapping[str, DoorAnswer], recipe: Recipe | None, found: Sequence[str]
) -> dict[str, DoorAnswer]:
    """The decisions that the recipe carries about doors that the run looked at no longer found."""
    return {name: one for name, one in standing(answers, recipe).items() if name not in found}


def without_decision(recipe: Recipe, answer: DoorAnswer) -> Recipe:
    """The recipe as if that had not been decided; the next run finds the door again if it is still there."""
    column = recipe.schema.columns.get(answer.column)
    back = None if column is None else decision_of(answer).taken_back(column)
    if column is None or back is None:
        raise InputError(
            "This decision cannot be taken back here.",
            "How the column was before is not kept.",
            "Say at Roles what the column is.",
        )
    return _with_column(_with_entries(recipe, _others(recipe, column)), back)


def told_decision(answer: DoorAnswer) -> Sentence:
    """What was done, with the step where there is one.

    >>> told_decision(DoorAnswer(decision="round", column="cost", step="12.5"))
    'numbers rounded: 12.5'
    """
    decision = decision_of(answer)
    step = read_number(answer.step, "en") if decision.takes == "step" else None
    return decision.done if step is None else say("{done}: {step:g}", done=decision.done, step=step)


def _others(recipe: Recipe, column: Column) -> list[dict[str, Any]]:
    """What the recipe does to other columns."""
    return [one for one in _entries(recipe) if one.get("column") != column.name]


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
