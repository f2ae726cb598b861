"""A study as Markdown: the recommendation, the tables behind it, the gaps, and what was not tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from velado.study.evaluate.words import number, percent, points, quality_name, say


def to_markdown(study: Mapping[str, Any], language: str) -> str:
    """The page of `Study.to_dict` in *language*."""
    recipe, table = study["recipe"], study["table"]
    seeds = recipe["anonymization"]["seeds"]
    lines = [
        f"# {say(language, 'title', source=table['source'])}",
        "",
        say(
            language,
            "intro" if len(seeds) > 1 else "intro_one",
            rows=number(table["rows"], language, 0),
            target=recipe["data"]["target"],
            classes=table["classes"],
            features=len(table["features"]),
            protocol=study["protocol"],
            confidence=number(100 * recipe["analyses"]["confidence"], language, 0),
            seeds=len(seeds),
        ),
        say(language, "majority_line", rate=percent(study["majority"], language)),
        "",
        f"## {say(language, 'h_recommendation')}",
        "",
        *(f"- {sentence}" for sentence in study["recommendation"]["sentences"]),
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
    if len(study["protocols"]) > 1:
        lines += [f"## {say(language, 'h_protocols')}", "", *_protocols(study, language), ""]
    lines += [f"## {say(language, 'h_gaps')}", "", *_gaps(study, language), ""]
    lines += [f"## {say(language, 'h_not_tested')}", "", *(f"- {text}" for text in study["not_tested"]), ""]
    return "\n".join(lines)


def _grid(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]


def _setting(row: Mapping[str, Any]) -> list[object]:
    return [row["method"], "–" if row["k"] is None else row["k"], row["guarantees"] or "–"]


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
        say(language, "drop", name=quality_name(study["main_quality"], language)),
    ]
    rows = [
        [
            *_setting(row),
            _range(row, "loss", language, 1 if metrics["loss"] == "average_group_size" else 100),
            *(_range(row, name, language) for name in ("risk", "drop")),
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
        rows.append([*([row["protocol"]] if several else []), row["model"], *_setting(row), *cells])
    return _grid(head, rows)


def _best(study: Mapping[str, Any], language: str) -> list[str]:
    head = [say(language, name) for name in ("k", "guarantees", "model", "method", "second", "gain")]
    rows = [
        [
            "–" if row["k"] is None else row["k"],
            row["guarantees"] or "–",
            row["model"],
            row["method"],
            row["second"],
            _range(row, "gain", language),
        ]
        for row in study["best"]
    ]
    return _grid(head, rows)


def _protocols(study: Mapping[str, Any], language: str) -> list[str]:
    head = [
        say(language, "protocol"),
        say(language, "drop", name=quality_name(study["main_quality"], language)),
    ]
    head += [say(language, name) for name in ("between", "due", "reversed")]
    rows = [
        [
            row["protocol"],
            *(points(row[name], language) for name in ("drop", "between", "due")),
            f"{row['reversed']} / {row['pairs']}" if row["pairs"] else "–",
        ]
        for row in study["protocols"]
    ]
    return _grid(head, rows)


def _gaps(study: Mapping[str, Any], language: str) -> list[str]:
    if not study["gaps"]:
        return [say(language, "nothing")]
    counts: dict[tuple[Any, ...], int] = {}
    for gap in study["gaps"]:
        key = (gap["method"], gap["k"], gap["guarantees"], gap["reason"])
        counts[key] = counts.get(key, 0) + 1
    head = [say(language, name) for name in ("method", "k", "guarantees", "cells", "reason")]
    rows = [
        [method, "–" if k is None else k, promised or "–", count, reason]
        for (method, k, promised, reason), count in counts.items()
    ]
    return _grid(head, rows)
