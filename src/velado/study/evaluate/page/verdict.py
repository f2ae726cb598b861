"""What to decide from: the recommendation, the limit against the original data, who is better, protocols, gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from velado.study.evaluate.amounts import amount, at_most, bare, in_points
from velado.study.evaluate.page.page_words import tell
from velado.study.evaluate.page.plot import figure, lost, measure_name, promise_name, setting_name, span
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_words import percent, say

Row = Mapping[str, Any]
SETTING = ("method", "k", "guarantees")


def state_of(document: Row) -> str:
    """good: the limit is kept with the whole interval; caution: on average only; warning: not, or no choice."""
    told = document["recommendation"]
    choice = told["choice"]
    if choice is None or not told["within_limit"]:
        return "warning"
    sure = choice["drop_high"] is not None and at_most(choice["drop_high"], _limit(document))
    return "good" if sure else "caution"


def _limit(document: Row) -> float:
    return float(document["recipe"]["analyses"]["most_drop"])


def limits(document: Row, language: str) -> list[dict[str, Any]]:
    """For the main quality, and for accuracy beside it: what each model loses with the chosen setting."""
    choice = document["recommendation"]["choice"]
    if choice is None:
        return []
    names = dict.fromkeys((document["main_quality"], "accuracy"))
    return [part for part in (_limit_of(document, choice, name, language) for name in names) if part]


def _limit_of(document: Row, choice: Row, name: str, language: str) -> dict[str, Any] | None:
    rows = [row for row in document["quality"] if row["protocol"] == document["protocol"]]
    before = {row["model"]: row for row in rows if row["method"] == ORIGINAL}
    own = [
        row
        for row in rows
        if row["model"] != "majority"
        and all(row[key] == choice[key] for key in SETTING)
        and row[name] is not None
    ]
    if not own:
        return None
    limit = _limit(document)
    held = [_held(row, f"drop_{name}", limit) for row in own]
    said = tell(
        language,
        "limit_said",
        limit=amount(name, limit, language),
        quality=measure_name(name, language),
        kept=held.count("limit_yes"),
        all=len(held),
        mean=held.count("limit_mean") + held.count("limit_one"),
        missed=held.count("limit_no"),
    )
    head = [
        say(language, "model"),
        f"{measure_name(name, language)}, {tell(language, 'on_original')}",
        f"{measure_name(name, language)}, {tell(language, 'on_release')}",
        tell(language, "lost"),
        tell(language, "limit_kept", limit=amount(name, limit, language)),
    ]
    lines = [
        [
            row["model"],
            span(name, before.get(row["model"], {}), language),
            span(name, row, language),
            lost(name, row, language, f"drop_{name}", limit),
            tell(language, state),
        ]
        for row, state in zip(own, held, strict=True)
    ]
    return {"said": said, "head": head, "lines": lines, "figures": [False, True, True, True, False]}


def _held(row: Row, key: str, limit: float) -> str:
    if row[key] is None:
        return "limit_unknown"
    if not at_most(row[key], limit):
        return "limit_no"
    if row[f"{key}_high"] is None:
        return "limit_one"
    return "limit_yes" if at_most(row[f"{key}_high"], limit) else "limit_mean"


def limit_intro(document: Row, language: str) -> str:
    """Which setting is compared, and what the limit is."""
    setting = setting_name(document["recommendation"]["choice"], language)
    limit = amount(document["main_quality"], _limit(document), language)
    return tell(language, "limit_intro", setting=setting, limit=limit)


def best_here(document: Row, language: str) -> tuple[str, list[str]]:
    """At the recommended k and promises: which method keeps most, model by model, and whether that is sure."""
    choice = document["recommendation"]["choice"]
    if choice is None:
        return "", []
    same = [row for row in document["best"] if all(row[key] == choice[key] for key in ("k", "guarantees"))]
    parts = [f"k = {choice['k']}"] if choice["k"] is not None else [tell(language, "no_k")]
    if choice["guarantees"]:
        parts.append(promise_name(choice["guarantees"], language))
    return tell(language, "best_at", setting=", ".join(parts)), [
        _best(row, document["main_quality"], language) for row in same
    ]


def _best(row: Row, main: str, language: str) -> str:
    key = "best_one" if row["gain_low"] is None else "best_sure" if row["sure"] else "best_unsure"
    return tell(
        language,
        key,
        model=row["model"],
        method=row["method"],
        second=row["second"],
        gain=amount(main, row["gain"], language),
        low=bare(main, row["gain_low"], language),
        high=bare(main, row["gain_high"], language),
        range_end=amount(main, row["gain_high"], language),
    )


def best_table(document: Row, language: str) -> dict[str, Any]:
    """The same for every k and promise."""
    main = document["main_quality"]
    head = [say(language, name) for name in ("k", "guarantees", "model", "method", "second")]
    head.append(_head(main, "gain", language))
    lines = [
        [
            "–" if row["k"] is None else str(row["k"]),
            promise_name(row["guarantees"], language) if row["guarantees"] else "–",
            row["model"],
            row["method"],
            row["second"],
            lost(main, row, language, "gain"),
        ]
        for row in document["best"]
    ]
    return {"head": head, "lines": lines, "figures": [True, *[False] * 4, True]}


def _head(main: str, key: str, language: str) -> str:
    """A heading of differences of the main quality: points, or the plain number."""
    return say(language, key if in_points(main) else f"{key}_plain")


WITHIN = {"surely": "within_surely", "on average": "within_average", "no": "within_no"}


def same_risk(document: Row, language: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """For each k and model the release that loses least, and the other methods where they leave the same risk.

    First at the recommended k and promises, then everywhere; None where there is one method only.
    """
    found = [row for row in document.get("same_risk") or () if row["beside"]]
    if not found:
        return None
    choice = document["recommendation"]["choice"] or found[0]
    here = [row for row in found if all(row[key] == choice[key] for key in ("k", "guarantees"))] or found[:4]
    recipe, main = document["recipe"], document["main_quality"]
    head = [say(language, name) for name in ("k", "guarantees", "model", "method")]
    head += [
        say(language, "risk", name=measure_name(recipe["metrics"]["risk"], language)),
        tell(language, "col_drop", name=measure_name(main, language)),
        tell(language, "limit_kept", limit=amount(main, _limit(document), language)),
        _head(main, "loses_less", language),
        *(say(language, name) for name in ("no_difference", "loses_more", "not_at_risk")),
    ]
    figures = [True, False, False, False, True, True, *[False] * 5]
    made = [
        {"head": head, "lines": [_same_risk(row, document, language) for row in rows], "figures": figures}
        for rows in (here, found)
    ]
    return made[0], made[1]


def _same_risk(row: Row, document: Row, language: str) -> list[str]:
    main = document["main_quality"]
    names: dict[str, list[str]] = {"less": [], "even": [], "more": [], "apart": []}
    for one in row["beside"]:
        less = f" ({bare(main, -one['gain'], language, 2)})" if one["verdict"] == "less" else ""
        names["even" if one["verdict"] == "one" else one["verdict"]].append(f"{one['method']}{less}")
    return [
        "–" if row["k"] is None else str(row["k"]),
        promise_name(row["guarantees"], language) if row["guarantees"] else "–",
        row["model"],
        row["method"],
        figure(document["recipe"]["metrics"]["risk"], row["risk"], language),
        lost(main, row, language, "drop", _limit(document)),
        say(language, WITHIN[row["within"]]),
        *(", ".join(found) or "–" for found in names.values()),
    ]


def protocols(document: Row, language: str) -> dict[str, Any]:
    """How much of the differences between methods each protocol makes by itself."""
    if len(document["protocols"]) < 2:
        return {"said": tell(language, "protocols_one", protocol=document["protocol"]), "lines": []}
    main = document["main_quality"]
    head = [
        say(language, "protocol"),
        tell(language, "col_drop", name=measure_name(main, language)),
        *(_head(main, name, language) for name in ("between", "default")),
        *(say(language, name) for name in ("due", "due_share", "reversed")),
    ]
    lines = [
        [
            row["protocol"],
            *(amount(main, row[name], language) for name in ("drop", "between", "default", "due")),
            percent(row["share"], language, 0),
            f"{row['reversed']} / {row['pairs']}" if row["pairs"] else "–",
        ]
        for row in document["protocols"]
    ]
    said = tell(language, "protocols_intro")
    return {"said": said, "head": head, "lines": lines, "figures": [False, *[True] * 6]}


def gaps(document: Row, language: str) -> dict[str, Any]:
    """What could not be computed, with its reason, counted by setting."""
    planned, done = document["cells"]["planned"], document["cells"]["done"]
    count = planned - done
    if not count:
        return {"said": tell(language, "gaps_none", cells=planned), "lines": []}
    said = tell(language, "gaps_some", gaps=count, cells=planned)
    return {"said": said, **reasons(document["gaps"], language)}


def reasons(cells: Sequence[Row], language: str) -> dict[str, Any]:
    """Cells of the same setting, model and reason as one line."""
    counts: dict[tuple[Any, ...], int] = {}
    for cell in cells:
        model = ", ".join(str(cell[name]) for name in ("model", "split") if cell.get(name))
        key = (*(cell[name] for name in SETTING), model, cell["reason"])
        counts[key] = counts.get(key, 0) + 1
    head = [say(language, name) for name in (*SETTING, "model", "cells", "reason")]
    lines = [
        [
            method,
            "–" if k is None else str(k),
            promise_name(promise, language) if promise else "–",
            model or "–",
            str(count),
            reason,
        ]
        for (method, k, promise, model, reason), count in counts.items()
    ]
    return {"head": head, "lines": lines, "figures": [False, True, False, False, True, False]}
