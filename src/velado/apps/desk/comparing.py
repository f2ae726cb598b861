"""Methods and several k on the same table, for the page that compares them: asked of the core, one after the other."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from velado.apps.desk.wording import at_the_desk
from velado.data.io import read_table
from velado.data.staging import put_file
from velado.release.goal import Progress
from velado.report import charts
from velado.report.charts import Box, Scale
from velado.study.preview import Previewed, draw_sample, preview
from velado.study.recipe import Recipe
from velado.text import LANGUAGES, join, language, percent, say, told

_WIDTH, _HEIGHT = 720, 400
_BOX = Box(64, 48, 690, 350)


def compared(folder: Path, asked: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Loss and risk of every method at every k that was asked for; what is known already stands in `partial.json`."""
    recipe = Recipe.from_dict(tomllib.loads(asked["recipe_text"]))
    source: Any = Path(asked["source"])
    if asked.get("sheet"):
        source = read_table(source, sheet=asked["sheet"])
    table = read_table(source, recipe.schema, recipe.undeclared)
    rows = int(asked["rows"]) or table.rows
    sample = draw_sample(table, rows, operations=recipe.operations, per=recipe.per)
    pairs = [(method, int(k)) for method in asked["methods"] for k in asked["ks"]]
    out: list[dict[str, Any]] = []
    for at, (method, k) in enumerate(pairs):
        progress(at / len(pairs), told(say("{method}, k = {k}", method=method, k=k)))
        found = preview(sample, k, method, recipe.guarantees, suppression=recipe.suppression)
        out.append(_plain(found))
        put_file(folder / "partial.json", json.dumps(out, ensure_ascii=False).encode(), private=True)
    return {"runs": out, "stated": {one: told(sample.stated, one) for one in LANGUAGES}}


def _plain(found: Previewed) -> dict[str, Any]:
    result = found.result
    return {
        "method": result.method,
        "k": found.k,
        "loss": result.loss,
        "highest": found.highest,
        "mean": found.mean,
        "linked": result.linked,
        "suppressed": result.suppressed,
        "groups": result.groups,
        "seconds": result.seconds,
        "failed": {one: told(at_the_desk(result.failed), one) for one in LANGUAGES}
        if result.failed
        else None,
    }


def chart(runs: Sequence[Mapping[str, Any]], method: str, k: int | None) -> str:
    """Loss against risk, a mark for each run in its method's look; the one of the recipe has a ring."""
    known = [run for run in runs if run["loss"] is not None and run["mean"] is not None]
    if not known:
        return ""
    across = Scale.over([run["mean"] for run in known], _BOX.left + 8, _BOX.right - 8)
    up = Scale.over([run["loss"] for run in known], _BOX.bottom, _BOX.top)
    names = list(dict.fromkeys(run["method"] for run in known))
    parts = [
        charts.definitions(),
        charts.axes(
            _BOX,
            across=across.marks(70, percent),
            up=up.marks(40, percent),
            across_title=told(say("mean risk of a person")),
            up_title=told(say("loss")),
        ),
    ]
    for at, name in enumerate(names):
        own = [run for run in known if run["method"] == name]
        spots = [(across.at(run["mean"]), up.at(run["loss"])) for run in own]
        marks = [charts.line(sorted(spots), dash=charts.dash(at))] if len(spots) > 1 else []
        for run, (x, y) in zip(own, spots, strict=True):
            tip = told(
                say(
                    "{method}, k = {k}: loss {loss:.1%}, risk {risk:.1%}",
                    method=name,
                    k=run["k"],
                    loss=run["loss"],
                    risk=run["mean"],
                )
            )
            if name == method and run["k"] == k:
                marks.append(charts.dot("chosen", x, y))
            marks.append(charts.dot(charts.mark(at), x, y, tip=tip, method=name, k=run["k"]))
            marks.append(charts.label(x + 7, y + 4, f"{run['k']}", size=11))
        parts.append(charts.group(marks, charts.colour(at)))
    best = min(known, key=lambda run: run["loss"])
    finding = say(
        "Least loss: {method} at k = {k}, {loss:.1%}.", method=best["method"], k=best["k"], loss=best["loss"]
    )
    return charts.svg(told(say("Loss against risk")), told(join([finding])), _WIDTH, _HEIGHT, parts)


def lines(result: Mapping[str, Any]) -> list[str]:
    """The one run of a result as sentences."""
    run = result["runs"][0]
    if run["failed"]:
        return [run["failed"][language()]]
    said = say(
        "On all rows: loss {loss:.1%}; risk at most {highest:.1%}, {mean:.1%} on average; {rows:,} rows left out.",
        loss=run["loss"],
        highest=run["highest"],
        mean=run["mean"],
        rows=run["suppressed"],
    )
    return [told(said)]


def legend(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The methods of the chart, each with its mark."""
    names = list(dict.fromkeys(run["method"] for run in runs if run["loss"] is not None))
    return [(name, charts.swatch(charts.colour(at), mark=charts.mark(at))) for at, name in enumerate(names)]
