"""`velado presets`: what a table is made for decides what is promised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command
from velado.settings import describe
from velado.text import say

if TYPE_CHECKING:
    from velado.report.blocks import Table
    from velado.study.presets import Preset, PresetPlan


@command("presets")
def presets(
    name: Annotated[str | None, argument("[PRESET]", help="Show what this preset makes of a table.")] = None,
    file: Annotated[Path | None, argument("[TABLE]", help="The table it is shown for.")] = None,
    *,
    schema: flags.MaybeSchema = None,
    reading: flags.ReadingFlags,
) -> None:
    """List the presets, or what one makes of a table.

    With a table: what is done with each column and why. Without --schema the roles are inferred.
    `velado anonymize --preset NAME` publishes with it.
    """
    from velado.study.presets import PRESETS

    if name is None:
        listed = show.table(
            say("Presets"), [say("name"), say("what for")], [[one.name, one.title] for one in PRESETS]
        )
        show.result({"presets": [{"name": one.name, "title": one.title} for one in PRESETS]}, [listed])
        return
    preset = preset_named(name)
    if file is None:
        shown = {**describe(preset), "title": preset.title}
        show.result(shown, [say("{name}: {title}", name=preset.name, title=preset.title)])
        return
    with show.waiting():
        from velado.data.io import read_schema
        from velado.release.anonymize import table_from

        meaning = None if schema is None else read_schema(schema)
        plan = preset.applied(
            reading.table(file, meaning) if meaning is not None else table_from(reading.source(file), None)
        )
    show.result(_facts(plan), _lines(plan))


def preset_named(name: str) -> Preset:
    """The preset of that name with its defaults, or an error that suggests the nearest."""
    from velado.settings import named
    from velado.study.presets import PRESETS

    return named(PRESETS, name, "preset")()


def _facts(plan: PresetPlan) -> dict[str, object]:
    return {
        "k": plan.k,
        "guarantees": [describe(one) for one in plan.guarantees],
        "suppression": plan.suppression,
        "operations": [describe(one) for one in plan.operations],
        "columns": [
            {"column": one.column, "action": one.action, "why": one.why, "rule": one.rule}
            for one in plan.decisions
        ],
        "said": list(plan.said),
    }


def _lines(plan: PresetPlan) -> Iterator[str | Table]:
    from velado.report.phrases import phrase

    if plan.k is not None:
        yield say("k = {k}, at most {share:.0%} of the rows left out.", k=plan.k, share=plan.suppression)
    if plan.decisions:
        yield show.table(
            say("Columns"),
            [say("column"), say("what is done"), say("why"), say("rule")],
            [[one.column, phrase(one.action), one.why, one.rule] for one in plan.decisions],
        )
    yield from plan.said
