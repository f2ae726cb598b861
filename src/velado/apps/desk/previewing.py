"""What a promise would cost, at once: the core's quick preview on the sample that the profile keeps."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from velado.apps.desk import profile
from velado.apps.desk.walk import Walk
from velado.apps.desk.wording import at_the_desk
from velado.data.io import read_table
from velado.release.goal import DEFAULT_K
from velado.release.methods import METHODS
from velado.study.presets import PRESETS
from velado.study.preview import Previewed, Sample, draw_sample, preview
from velado.study.recipe import Recipe
from velado.text import LANGUAGES, Sentence, say, told

QUICK = "mondrian"
"""The method whose figures stand for those of slower ones while a slider moves; the page says so."""


def on_sample(walk: Walk, recipe: Recipe) -> dict[str, Any]:
    """Loss and risk of the recipe's promise on the sample, as lines to read and as numbers."""
    assert walk.profile is not None
    sample = _sample(str(walk.profile.folder), recipe)
    method = recipe.method.name if recipe.method.name == QUICK else QUICK
    found = preview(sample, recipe.k or DEFAULT_K, method, recipe.guarantees, suppression=recipe.suppression)
    lines = told_lines(found)
    if found.result.failed:
        return {"lines": [told(line) for line in lines], "loss": None, "highest": None}
    if recipe.method.name != method:
        lines.append(
            say(
                "By {quick}, which is quick; {method} mostly loses less.",
                quick=method,
                method=recipe.method.name,
            )
        )
    lines.append(Sentence(found.stated) if not isinstance(found.stated, Sentence) else found.stated)
    return {"lines": [told(line) for line in lines], "loss": found.result.loss, "highest": found.highest}


def told_lines(found: Previewed) -> list[Sentence | str]:
    """The figures of one goal as sentences."""
    result = found.result
    if result.failed or result.loss is None:
        return [at_the_desk(result.failed)]
    return [
        say("Loss {loss:.1%} of what the columns tell.", loss=result.loss),
        say(
            "By what outsiders may know alone, for one row at a time, somebody who knows a person finds the right row with a "
            "chance of at most {highest:.1%}, {mean:.1%} on average.",
            highest=found.highest or 0.0,
            mean=found.mean or 0.0,
        ),
        say("{rows:,} rows are left out.", rows=result.suppressed or 0),
    ]


@lru_cache(maxsize=2)
def _sample_of(folder: str, text: str) -> Sample:
    recipe = Recipe.from_dict(tomllib.loads(text))
    found = profile.load(Path(folder))
    assert found is not None
    person = recipe.schema.person
    frame = found.sample(None if person is None else person.name)
    table = read_table(frame, recipe.schema)
    whole = draw_sample(table, table.rows, operations=recipe.operations, per=recipe.per)
    return Sample(whole.table, found.document["rows"], whole.seed, whole.operations, whole.per)


def _sample(folder: str, recipe: Recipe) -> Sample:
    # What the sample is prepared for depends on all of the recipe but the promise.
    plain = replace(recipe, k=DEFAULT_K, guarantees=(), suppression=0.0)
    return _sample_of(folder, plain.to_toml())


def method_names() -> tuple[str, ...]:
    """The methods that promise a crowd."""
    return tuple(method.name for method in METHODS if method.promise == "guaranteed")


def presets() -> list[tuple[str, str]]:
    """The presets that are offered, with their titles."""
    return [(preset.name, told(preset.title)) for preset in PRESETS]


def told_by(chosen: str) -> tuple[str, str]:
    """For whom and for what a table is, as the chosen preset says; nothing where nobody chose one.

    >>> told_by("public-download"), told_by("")
    (('anyone', 'open data'), ('', ''))
    """
    found = next((preset for preset in PRESETS if preset.name == chosen), None)
    return ("", "") if found is None else (told(found.recipient), told(found.purpose))


def planned(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with what a preset says of the whole table, and the sentences that go with it; a process of its own does it."""
    recipe = Recipe.from_dict(tomllib.loads(asked["recipe_text"]))
    source: Any = Path(asked["source"])
    if asked.get("sheet"):
        source = read_table(source, sheet=asked["sheet"])
    table = read_table(source, recipe.schema, recipe.undeclared)
    kind = next(preset for preset in PRESETS if preset.name == asked["preset"])
    plan = kind().applied(table)
    before = next((preset() for preset in PRESETS if preset.name == asked.get("before")), None)
    # What another preset did goes with it; what a person decided about a column stays.
    gone = () if before is None else before.applied(table).operations
    named = {one.column for one in plan.operations}
    kept = [one for one in recipe.operations if one not in gone and one.column not in named]
    kept = [one for one in kept if one.column is None or plan.schema.columns[one.column].published]
    made = replace(recipe, schema=plan.schema, operations=(*kept, *plan.operations))
    said = list(plan.said)
    if plan.k is not None:
        made = replace(made, k=plan.k, guarantees=plan.guarantees, suppression=plan.suppression)
    else:
        # What another preset promised goes with it; what a person chose stays.
        if before is not None and getattr(before, "k", None) == recipe.k:
            made = replace(made, k=DEFAULT_K, guarantees=(), suppression=0.0)
        said.append(
            say(
                "This choice promises no crowd by itself; each still hides among {k} here.",
                k=made.k or DEFAULT_K,
            )
        )
    said += [
        say("{column}: held back ({why})", column=one.column, why=one.why)
        if one.action == "held back"
        else say("{column}: {why}", column=one.column, why=one.why)
        for one in plan.decisions
        if one.action != "as the schema says"
    ]
    lines = {tongue: [told(text, tongue) for text in said] for tongue in LANGUAGES}
    return {"recipe_text": made.to_toml(), "said": lines}
