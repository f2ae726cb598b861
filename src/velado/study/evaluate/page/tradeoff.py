"""Loss against risk: one line per method and promise, k along it; one chart for each loss and risk that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from velado.study.evaluate.amounts import in_points
from velado.study.evaluate.page.page_words import tell
from velado.study.evaluate.page.plot import (
    Box,
    Kind,
    Looks,
    Scale,
    frame,
    lost,
    marks,
    measure_name,
    place_labels,
    promise_name,
    setting_name,
    span,
    svg,
    tick,
    title,
)
from velado.study.evaluate.page.plot import figure as shown
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_settings import LOSSES, RISKS
from velado.study.evaluate.study_words import say

WIDTH, HEIGHT = 720, 430
BOX = Box(62, 56, 704, 380)
Row = Mapping[str, Any]
Spot = tuple[int, Row, float, float]


def settings_of(document: Row) -> list[dict[str, Any]]:
    """One entry per setting under the study's protocol: loss, risk, the mean drop and every model's quality.

    The place of an entry in this list is what the charts and the script know it by.
    """
    scope = protocol_named(document["protocol"]).scope
    drops = {_key(row): row for row in document["tradeoff"]}
    quality: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in document["quality"]:
        if row["protocol"] == document["protocol"]:
            quality.setdefault(_key(row), {})[row["model"]] = row
    return [
        {**row, **_drop(drops.get(_key(row), {})), "models": quality.get(_key(row), {})}
        for row in document["releases"]
        if row["scope"] == scope
    ]


def _key(row: Row) -> tuple[Any, ...]:
    return (row["method"], row["k"], row["guarantees"])


def _drop(row: Row) -> dict[str, Any]:
    return {name: row.get(name) for name in ("drop", "drop_low", "drop_high")}


def measured(settings: Sequence[Row], names: Sequence[str], first: str) -> list[str]:
    """The measures that some setting has, the study's own one first."""
    return [
        first,
        *(name for name in names if name != first and any(row[name] is not None for row in settings)),
    ]


def texts_of(
    settings: Sequence[Row], document: Row, models: Sequence[str], language: str
) -> list[dict[str, Any]]:
    """What is shown when a setting is pointed at, part by part: the script picks the measures that are drawn."""
    main = document["main_quality"]
    name = measure_name(main, language)
    head = "drop" if in_points(main) else "drop_plain"
    most = document["recipe"]["analyses"]["most_drop"]
    out = []
    for row in settings:
        lines = [f"{model}: {name} {span(main, row['models'].get(model, {}), language)}" for model in models]
        out.append(
            {
                "head": setting_name(row, language),
                "measures": {
                    one: f"{measure_name(one, language)}: {span(one, row, language)}"
                    for one in (*LOSSES, *RISKS)
                },
                "drop": f"{say(language, head, name=name)}: {lost(main, row, language, 'drop', most)}",
                "models": lines,
            }
        )
    return out


def charts(
    document: Row, settings: Sequence[Row], texts: Sequence[Row], looks: Looks, language: str
) -> list[dict[str, Any]]:
    """Every chart with what it shows; the first is the study's own choice, the others wait for the reader's."""
    metrics = document["recipe"]["metrics"]
    out: list[dict[str, Any]] = []
    for loss in measured(settings, LOSSES, metrics["loss"]):
        for risk in measured(settings, RISKS, metrics["risk"]):
            first = not out
            out.append(
                {
                    "loss": loss,
                    "risk": risk,
                    "first": first,
                    "svg": _chart(document, settings, texts if first else None, loss, risk, looks, language),
                    "missing": _missing(settings, loss, risk, language),
                }
            )
    return out


def _missing(settings: Sequence[Row], loss: str, risk: str, language: str) -> str:
    names = [setting_name(row, language) for row in settings if row[loss] is None or row[risk] is None]
    return tell(language, "not_drawn", names="; ".join(names)) if names else ""


def _chart(
    document: Row,
    settings: Sequence[Row],
    texts: Sequence[Row] | None,
    loss: str,
    risk: str,
    looks: Looks,
    language: str,
) -> str:
    known = [(at, row) for at, row in enumerate(settings) if row[loss] is not None and row[risk] is not None]
    kind = _kind([row[risk] for _, row in known])
    across = Scale.over([row[risk] for _, row in known], BOX.left + 8, BOX.right - 8, kind)
    up = Scale.over([row[loss] for _, row in known], BOX.bottom, BOX.top)
    spots = [(at, row, across.at(row[risk]), up.at(row[loss])) for at, row in known]
    labels = place_labels([(x, y, _label(row)) for _, row, x, y in spots], BOX)
    body = [
        frame(
            BOX,
            marks(across, 46, lambda value: tick(risk, value, language)),
            marks(up, 44, lambda value: tick(loss, value, language)),
            tell(
                language,
                "x_risk",
                name=measure_name(risk, language),
                scale=tell(language, f"scale_{kind}"),
            ),
            tell(language, "y_loss", name=measure_name(loss, language)),
        )
    ]
    choice = document["recommendation"]["choice"] or {}
    series: dict[tuple[str, str], list[int]] = {}
    for number, (_, row, _, _) in enumerate(spots):
        series.setdefault((row["method"], row["guarantees"]), []).append(number)
    above = []
    for (method, promise), numbers in series.items():
        # k along the line; a method without k is one point.
        numbers.sort(key=lambda n: (spots[n][1]["k"] is None, spots[n][1]["k"] or 0))
        own, near = [spots[n] for n in numbers], [labels[n] for n in numbers]
        body.append(_line(method, promise, own, looks))
        above.append(_points(method, promise, own, near, texts, choice, looks))
    # Marks and their labels lie above all lines, so that no line strikes a number through.
    body += above
    name = tell(
        language, "tradeoff_title", loss=measure_name(loss, language), risk=measure_name(risk, language)
    )
    name = name[:1].upper() + name[1:]
    return svg(name, finding(document, settings, loss, risk, language), WIDTH, HEIGHT, "".join(body))


def _kind(values: Sequence[float]) -> Kind:
    """Risks span orders of magnitude: steps that multiply where none is zero, else a square root."""
    if not values or max(values) <= 0 or max(values) < 8 * min(values):
        return "linear"
    return "log" if min(values) > 0 else "root"


def _label(row: Row) -> str:
    if row["method"] == ORIGINAL:
        return ORIGINAL
    return str(row["k"]) if row["k"] is not None else str(row["method"])[:24]


def _line(method: str, promise: str, spots: Sequence[Spot], looks: Looks) -> str:
    if len(spots) < 2:
        return ""
    path = "L".join(f"{x} {y}" for _, _, x, y in spots)
    drawn = f'<path d="M{path}" fill="none" stroke="currentColor" stroke-width="1.6"{looks.dash(promise)}/>'
    return f"{_group(method, promise, looks)}{drawn}</g>"


def _points(
    method: str,
    promise: str,
    spots: Sequence[Spot],
    labels: Sequence[tuple[float, float, str] | None],
    texts: Sequence[Row] | None,
    choice: Row,
    looks: Looks,
) -> str:
    parts = [_group(method, promise, looks)]
    mark = looks.mark(method, promise)
    for (at, row, x, y), label in zip(spots, labels, strict=True):
        if all(row[name] == choice.get(name) for name in ("method", "k", "guarantees")):
            parts.append(f'<use href="#chosen" x="{x}" y="{y}"/>')
        inside = "" if texts is None else title(tip(texts[at], row))
        parts.append(f'<use href="#{mark}" x="{x}" y="{y}" data-s="{at}">{inside}</use>')
        if label is not None:
            parts.append(
                f'<text x="{label[0]}" y="{label[1]}" text-anchor="{label[2]}" font-size="11" '
                f'fill="currentColor">{escape(_label(row))}</text>'
            )
    return "".join(parts) + "</g>"


def _group(method: str, promise: str, looks: Looks) -> str:
    if method == ORIGINAL:
        return f'<g class="s" color="{looks.colour(method)}">'
    at = looks.promises.index(promise)
    return f'<g class="s" data-m="{looks.method(method)}" data-g="{at}" color="{looks.colour(method)}">'


def tip(text: Row, row: Row) -> str:
    """The tooltip of a setting without a script: all that is known of it."""
    known = [line for name, line in text["measures"].items() if row.get(name) is not None]
    return "\n".join([text["head"], *known, text["drop"], *text["models"]])


def finding(document: Row, settings: Sequence[Row], loss: str, risk: str, language: str) -> str:
    """What the chart shows, in words: how far k takes the chosen method, and who is best at the middle k."""
    rows = [
        row
        for row in settings
        if row["method"] != ORIGINAL and row[loss] is not None and row[risk] is not None
    ]
    if not rows:
        return tell(language, "tradeoff_none")
    choice = document["recommendation"]["choice"] or rows[0]
    own = sorted(
        (
            row
            for row in rows
            if row["k"] is not None and all(row[name] == choice[name] for name in ("method", "guarantees"))
        ),
        key=lambda row: row["k"],
    )
    said = []
    if len(own) > 1:
        first, last = own[0], own[-1]
        said.append(
            tell(
                language,
                "tradeoff_found",
                first=first["k"],
                last=last["k"],
                method=setting_name({**first, "k": None}, language),
                risk_first=shown(risk, first[risk], language),
                risk_last=shown(risk, last[risk], language),
                loss_first=shown(loss, first[loss], language),
                loss_last=shown(loss, last[loss], language),
            )
        )
    level = [row for row in rows if row["k"] == choice["k"] and row["guarantees"] == choice["guarantees"]]
    if choice["k"] is not None and level:
        least, safest = min(level, key=lambda r: r[loss]), min(level, key=lambda r: r[risk])
        said.append(
            tell(
                language,
                "tradeoff_at",
                k=choice["k"],
                promise=promise_words(choice["guarantees"], language),
                method=least["method"],
                loss=shown(loss, least[loss], language),
                safest=safest["method"],
                risk=shown(risk, safest[risk], language),
            )
        )
    before = [row[risk] for row in settings if row["method"] == ORIGINAL and row[risk] is not None]
    if before:
        said.append(tell(language, "tradeoff_original", risk=shown(risk, before[0], language)))
    return " ".join(said)


def promise_words(promise: str, language: str) -> str:
    """` with l-diversity`; nothing where there is only k."""
    return tell(language, "promise_with", promise=promise_name(promise, language)) if promise else ""
