"""The lines of the big table: every setting, model and protocol with its figures, gaps among them, and as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from velado.measure.models.quality import QUALITIES
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.page.figures import lost, measure_name, promise_name, span
from velado.study.evaluate.page.words import tell
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.recipe import LOSSES, RISKS
from velado.study.evaluate.words import number, say

Row = Mapping[str, Any]
KEYS = ("protocol", "model", "method", "k", "guarantees")
_RELEASE = (*LOSSES, *RISKS, "attribute_gain", "false_cells", "suppressed")


def in_order(document: Row) -> dict[str, Any]:
    """The study with its rows in the order of the recipe: cells arrive as they are finished, readers look for order."""
    methods, models = _recipe_names(document)

    def key(row: Row) -> tuple[Any, ...]:
        promised, model = row.get("guarantees") or "", row.get("model")
        method = (_place(methods, row["method"]), row["method"])
        return (*method, row["k"] is None, row["k"] or 0, promised, _place(models, model), model or "")

    parts = ("releases", "quality", "gaps", "partial", "federated")
    return {**document, **{name: sorted(document.get(name) or (), key=key) for name in parts}}


def _recipe_names(document: Row) -> tuple[list[str], list[str]]:
    recipe = document["recipe"]
    entries = (recipe["anonymization"]["methods"], recipe["models"]["use"])
    methods, models = ([str(one["name"]) for one in listed] for listed in entries)
    return methods, models


def _place(names: Sequence[str], label: str | None) -> int:
    name = (label or "").partition("(")[0]
    return names.index(name) if name in names else -1


def methods_of(document: Row) -> list[str]:
    """The methods that were run, each with its settings, those of which nothing came to an end among them."""
    rows = [*document["releases"], *(row for row in document["gaps"] if row["kind"] != "federated")]
    found = {str(row["method"]) for row in rows if row["method"] != ORIGINAL}
    names = _recipe_names(document)[0]
    return sorted(found, key=lambda label: (_place(names, label), label))


def models_of(document: Row) -> list[str]:
    """The models that were trained, each with its settings; the commonest class only where the recipe lists it."""
    rows = [*document["quality"], *(row for row in document["gaps"] if row["kind"] == "model")]
    found = {str(row["model"]) for row in rows if row["model"] is not None}
    names = _recipe_names(document)[1]
    found -= {"majority"} - set(names)
    return sorted(found, key=lambda label: (_place(names, label), label))


def lines_of(document: Row) -> list[dict[str, Any]]:
    """One line per setting, model and protocol; what has no result at all is a line of Nones with 0 seeds."""
    releases = {
        (row["scope"], row["method"], row["k"], row["guarantees"]): row for row in document["releases"]
    }
    lines = []
    seen = set()
    for row in document["quality"]:
        seen.add(tuple(row[name] for name in KEYS))
        scope = protocol_named(row["protocol"]).scope
        release = releases.get((scope, row["method"], row["k"], row["guarantees"]), {})
        lines.append({**_spreads(release, _RELEASE), **row})
    for gap in document["gaps"]:
        key = tuple(gap[name] for name in KEYS)
        if gap["kind"] == "model" and key not in seen:
            seen.add(key)
            lines.append(dict(zip(KEYS, key, strict=True)) | {"seeds": 0} | _empty(document))
    order = {name: at for at, name in enumerate(document["recipe"]["analyses"]["protocols"])}
    # Stable: what could not be computed goes after what was, protocol by protocol.
    return sorted(lines, key=lambda row: order.get(row["protocol"], len(order)))


def _spreads(row: Row, names: Sequence[str]) -> dict[str, Any]:
    return {f"{name}{end}": row.get(f"{name}{end}") for name in names for end in ("", "_low", "_high")}


def _empty(document: Row) -> dict[str, Any]:
    drops = [f"drop_{name}" for name in QUALITIES]
    return _spreads({}, (*_RELEASE, *QUALITIES, *drops, "majority", "seconds", "test_rows"))


def columns_of(document: Row, language: str) -> list[dict[str, Any]]:
    """The headings of the table: what each says, the number it sorts by, whether it is a figure."""
    metrics, main = document["recipe"]["metrics"], document["main_quality"]
    several = len(document["recipe"]["analyses"]["protocols"]) > 1
    labels = [*(["protocol"] if several else []), "model", "method", "k", "guarantees"]
    out = [{"key": name, "text": say(language, name), "figure": name == "k"} for name in labels]
    out += [{"key": metrics["loss"], "text": measure_name(metrics["loss"], language), "figure": True}]
    out += [{"key": metrics["risk"], "text": measure_name(metrics["risk"], language), "figure": True}]
    out += [
        {"key": name, "text": measure_name(name, language), "figure": True} for name in metrics["quality"]
    ]
    name = tell(language, "col_drop", name=measure_name(main, language))
    out.append({"key": f"drop_{main}", "text": name, "figure": True})
    out += [
        {"key": name, "text": tell(language, f"col_{name}"), "figure": True} for name in ("seeds", "seconds")
    ]
    return out


def cells_of(line: Row, columns: Sequence[Row], document: Row, language: str) -> list[str]:
    """The texts of one line."""
    seeds = len(document["recipe"]["anonymization"]["seeds"])
    out = []
    for column in columns:
        key = column["key"]
        if key == "k":
            out.append("–" if line["k"] is None else str(line["k"]))
        elif key == "guarantees":
            out.append(promise_name(line[key], language) if line[key] else "–")
        elif key in KEYS:
            out.append(str(line[key]))
        elif key == "seeds":
            done = tell(language, "missing_seeds", done=line["seeds"], seeds=seeds)
            out.append(done if line["seeds"] else f"{done} – {tell(language, 'table_gap')}")
        elif key == "seconds":
            out.append(number(line[key], language, 2))
        elif key.startswith("drop_"):
            limit = document["recipe"]["analyses"]["most_drop"]
            out.append(lost(key.removeprefix("drop_"), line, language, key, limit))
        else:
            out.append(span(key, line, language))
    return out


def plain(document: Row, lines: Sequence[Row]) -> dict[str, Any]:
    """The table as data to save: names of the columns, and one list per line, numbers unrounded by the language."""
    drops = [f"drop_{name}" for name in document["recipe"]["metrics"]["quality"]]
    numbers = [*_RELEASE, *document["recipe"]["metrics"]["quality"], *drops, "majority"]
    names = [
        *KEYS,
        "seeds",
        *(f"{name}{end}" for name in numbers for end in ("", "_low", "_high")),
        "seconds",
        "test_rows",
    ]
    return {"columns": names, "rows": [[tidy(line.get(name)) for name in names] for line in lines]}


def tidy(value: Any) -> Any:
    """A number with seven digits, None for one that is not finite; anything else as it is."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None
