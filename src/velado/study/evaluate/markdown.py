"""A study as Markdown: the recommendation, the tables behind it, the gaps, and what was not tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from velado.study.evaluate.amounts import amount, bare, digits_beside, in_points
from velado.study.evaluate.study_words import number, percent, promises_in, quality_name, say

_MARKS = {mark: f"\\{mark}" for mark in "\\`<>|*&"}


def to_markdown(study: Mapping[str, Any], language: str) -> str:
    """The page of `Study.to_dict` in *language*."""
    recipe, table = study["recipe"], study["table"]
    seeds = recipe["anonymization"]["seeds"]
    lines = [
        f"# {_plain(say(language, 'title', source=table['source']))}",
        "",
        say(
            language,
            "intro" if len(seeds) > 1 else "intro_one",
            rows=number(table["rows"], language, 0),
            target=_plain(recipe["data"]["target"]),
            classes=table["classes"],
            features=len(table["features"]),
            protocol=study["protocol"],
            confidence=number(100 * recipe["analyses"]["confidence"], language, 0),
            seeds=len(seeds),
        ),
        say(language, "majority_line", rate=percent(study["majority"], language)),
        say(language, "averaged_one" if "positive" in recipe["data"] else "averaged"),
        "",
        f"## {say(language, 'h_recommendation')}",
        "",
        *(f"- {_plain(sentence)}" for sentence in study["recommendation"]["sentences"]),
        "",
        f"## {say(language, 'h_tradeoff')}",
        "",
        *_tradeoff(study, language),
        "",
        f"## {say(language, 'h_quality')}",
        "",
        *_quality(study, language),
        "",
    ]
    if study["best"]:
        lines += [f"## {say(language, 'h_best')}", "", *_best(study, language), ""]
    if any(row["beside"] for row in study["same_risk"]):
        lines += [f"## {say(language, 'h_same_risk')}", "", *_same_risk(study, language), ""]
    if len(study["protocols"]) > 1:
        lines += [f"## {say(language, 'h_protocols')}", "", *_protocols(study, language), ""]
    if study["recipe"].get("federated"):
        lines += [f"## {say(language, 'h_federated')}", "", *_federated(study, language), ""]
    lines += [f"## {say(language, 'h_gaps')}", "", *_gaps(study, language), ""]
    lines += [
        f"## {say(language, 'h_not_tested')}",
        "",
        *(f"- {_plain(text)}" for text in study["not_tested"]),
        "",
    ]
    return "\n".join(lines)


def _plain(text: object) -> str:
    """The text with nothing in it that Markdown reads as a mark: names and reasons come from outside."""
    marked = "".join(_MARKS.get(letter, letter) for letter in str(text))
    return " ".join(marked.replace("](", "]\\(").splitlines())


def _grid(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(_plain(cell) for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]


def _setting(row: Mapping[str, Any], language: str) -> list[object]:
    return [row["method"], "–" if row["k"] is None else row["k"], _promised(row, language)]


def _promised(row: Mapping[str, Any], language: str) -> str:
    return promises_in(row["guarantees"] or "", language) or "–"


def _head(study: Mapping[str, Any], key: str, language: str) -> str:
    """A heading of differences of the main quality: points, or the plain number."""
    main = study["main_quality"]
    name = key if in_points(main) else f"{key}_plain"
    return say(language, name, **({"name": quality_name(main, language)} if key == "drop" else {}))


def _lost(study: Mapping[str, Any], row: Mapping[str, Any], name: str, language: str, digits: int = 1) -> str:
    """A difference of the main quality with its interval, and the digits that show which side of the limit it lies."""
    main, ends = study["main_quality"], [row.get(f"{name}{end}") for end in ("", "_low", "_high")]
    if name == "drop":
        digits = digits_beside(main, ends, study["recipe"]["analyses"]["most_drop"], digits)
    return (
        _range(row, name, language, 100, digits)
        if in_points(main)
        else _range(row, name, language, 1, digits + 2)
    )


def _range(row: Mapping[str, Any], name: str, language: str, scale: float = 100, digits: int = 1) -> str:
    if row.get(name) is None:
        return "–"
    middle = number(scale * row[name], language, digits)
    if row.get(f"{name}_low") is None:
        return middle
    low, high = (number(scale * row[f"{name}_{end}"], language, digits) for end in ("low", "high"))
    return f"{middle} ({low}…{high})"


def _tradeoff(study: Mapping[str, Any], language: str) -> list[str]:
    metrics = study["recipe"]["metrics"]
    head = [say(language, name) for name in ("method", "k", "guarantees")] + [
        say(language, "loss", name=say(language, f"name_{metrics['loss']}")),
        say(language, "risk", name=say(language, f"name_{metrics['risk']}")) + ", %",
        _head(study, "drop", language),
    ]
    rows = [
        [
            *_setting(row, language),
            _range(row, "loss", language, 1 if metrics["loss"] == "average_group_size" else 100),
            _range(row, "risk", language),
            _lost(study, row, "drop", language),
        ]
        for row in study["tradeoff"]
    ]
    return _grid(head, rows)


def _quality(study: Mapping[str, Any], language: str) -> list[str]:
    names = study["recipe"]["metrics"]["quality"]
    several = len({row["protocol"] for row in study["quality"]}) > 1
    head = [*([say(language, "protocol")] if several else [])]
    head += [say(language, name) for name in ("model", "method", "k", "guarantees")]
    head += [quality_name(name, language) + ("" if name == "log_loss" else ", %") for name in names]
    rows = []
    for row in sorted(study["quality"], key=lambda one: (one["protocol"], one["model"])):
        cells = [
            _range(row, name, language, 1, 3) if name == "log_loss" else _range(row, name, language)
            for name in names
        ]
        rows.append([*([row["protocol"]] if several else []), row["model"], *_setting(row, language), *cells])
    return _grid(head, rows)


def _best(study: Mapping[str, Any], language: str) -> list[str]:
    head = [say(language, name) for name in ("k", "guarantees", "model", "method", "second")]
    head.append(_head(study, "gain", language))
    rows = [
        [
            "–" if row["k"] is None else row["k"],
            _promised(row, language),
            row["model"],
            row["method"],
            row["second"],
            _lost(study, row, "gain", language),
        ]
        for row in study["best"]
    ]
    return _grid(head, rows)


def _same_risk(study: Mapping[str, Any], language: str) -> list[str]:
    recipe, main = study["recipe"], study["main_quality"]
    most = amount(main, recipe["analyses"]["most_drop"], language)
    head = [say(language, name) for name in ("k", "guarantees", "model", "method")]
    head += [say(language, "risk", name=say(language, f"name_{recipe['metrics']['risk']}")) + ", %"]
    head += [_head(study, "lost", language), say(language, "within", most=most)]
    head.append(_head(study, "loses_less", language))
    head += [say(language, name) for name in ("no_difference", "loses_more", "not_at_risk")]
    rows = []
    for row in study["same_risk"]:
        names: dict[str, list[str]] = {"less": [], "even": [], "more": [], "apart": []}
        for one in row["beside"]:
            less = f" ({bare(main, -one['gain'], language, 2)})" if one["verdict"] == "less" else ""
            names["even" if one["verdict"] == "one" else one["verdict"]].append(f"{one['method']}{less}")
        rows.append(
            [
                "–" if row["k"] is None else row["k"],
                _promised(row, language),
                row["model"],
                row["method"],
                number(None if row["risk"] is None else 100 * row["risk"], language, 2),
                _lost(study, row, "drop", language, 2),
                say(language, _WITHIN[row["within"]]),
                *(", ".join(found) or "–" for found in names.values()),
            ]
        )
    return [say(language, "same_risk_note"), "", *_grid(head, rows)]


_WITHIN = {"surely": "within_surely", "on average": "within_average", "no": "within_no"}


def _protocols(study: Mapping[str, Any], language: str) -> list[str]:
    head = [say(language, "protocol")]
    head += [_head(study, name, language) for name in ("drop", "between", "default")]
    head += [say(language, name) for name in ("due", "due_share", "reversed")]
    rows = [
        [
            row["protocol"],
            *(
                bare(study["main_quality"], row[name], language)
                for name in ("drop", "between", "default", "due")
            ),
            percent(row["share"], language, 0),
            f"{row['reversed']} / {row['pairs']}" if row["pairs"] else "–",
        ]
        for row in study["protocols"]
    ]
    return _grid(head, rows)


def _federated(study: Mapping[str, Any], language: str) -> list[str]:
    part = study["recipe"]["federated"]
    lines = [
        say(
            language,
            "federated_intro",
            clients=part["clients"],
            rounds=part["rounds"],
            share=percent(part["participation"], language, 0),
            test=percent(part["test_share"], language, 0),
        ),
        "",
    ]
    rows = study["federated_summary"]
    if not rows:
        return [*lines, say(language, "federated_none")]
    where = [say(language, name) for name in ("model", "split", "method", "k")]
    head = [*where, *(quality_name(name, language) for name in ("accuracy", "auc", "log_loss"))]
    head = [*head[:4], f"{head[4]}, %", f"{head[5]}, %", head[6]]
    head += [say(language, name) for name in ("federated_drop", "applied", "missed")]
    first = [
        [
            *_client_setting(row),
            _range(row, "accuracy", language),
            _range(row, "auc", language),
            _range(row, "log_loss", language, 1, 3),
            _range(row, "drop_accuracy", language),
            f"{row['applied']} / {row['rounds']}",
            row["missed"],
        ]
        for row in rows
    ]
    second_head = [*where, *(say(language, f"clients_{name}") for name in ("ncp", "linkage", "sat_out"))]
    second = [
        [
            *_client_setting(row),
            *(_least_to_most(row, name, language) for name in ("ncp", "linkage")),
            f"{row['sat_out']} / {row['clients']}",
        ]
        for row in rows
    ]
    missing = [
        "- " + _plain(f"{row['model']}, {row['split']}, {row['method']}, k = {row['k'] or '–'}: {text}")
        for row in study["federated_gaps"]
        for text in row["gaps"]
    ]
    return [
        *lines,
        *_grid(head, first),
        "",
        *_grid(second_head, second),
        *(["", *missing] if missing else []),
    ]


def _client_setting(row: Mapping[str, Any]) -> list[object]:
    return [row["model"], row["split"], row["method"], "–" if row["k"] is None else row["k"]]


def _least_to_most(row: Mapping[str, Any], name: str, language: str) -> str:
    found = [row[f"{name}_{end}"] for end in ("least", "median", "most")]
    return "–" if found[0] is None else " · ".join(number(100 * value, language) for value in found)


def _gaps(study: Mapping[str, Any], language: str) -> list[str]:
    """Cells without a result, then those that lack a figure; each reason once with the number of its cells."""
    lines = _reasons(study["gaps"], language) if study["gaps"] else []
    if study.get("partial"):
        lines += [*([""] if lines else []), say(language, "partial"), ""]
        lines += _reasons(study["partial"], language, models=True)
    return lines or [say(language, "nothing")]


def _reasons(cells: Sequence[Mapping[str, Any]], language: str, models: bool = False) -> list[str]:
    counts: dict[tuple[Any, ...], int] = {}
    for cell in cells:
        # What became of a release holds for every model on it; a run across clients is named with its own.
        named = cell["kind"] == "federated" or models
        where = ", ".join(str(cell[name]) for name in ("model", "split") if cell[name]) if named else ""
        key = (cell["method"], cell["k"], _promised(cell, language), where or "–", cell["reason"])
        counts[key] = counts.get(key, 0) + 1
    place = "model" if models else "across"
    head = [say(language, name) for name in ("method", "k", "guarantees", place, "cells", "reason")]
    rows = [
        [method, "–" if k is None else k, promised, where, count, reason]
        for (method, k, promised, where, reason), count in counts.items()
    ]
    return _grid(head, rows)
