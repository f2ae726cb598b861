"""Model quality against k: one panel per model, with intervals, the original data's line and the commonest class's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.page.figures import (
    better_when_smaller,
    figure,
    is_share,
    measure_name,
    setting_name,
    span,
    tick,
)
from velado.study.evaluate.page.looks import Looks, title
from velado.study.evaluate.page.plot import Box, Scale, frame, marks, svg
from velado.study.evaluate.page.tradeoff import promise_words
from velado.study.evaluate.page.words import tell

WIDTH, HEIGHT = 470, 310
BOX = Box(58, 56, 458, 262)
Row = Mapping[str, Any]


def panels(
    document: Row, rows: Sequence[Row], models: Sequence[str], looks: Looks, language: str
) -> list[dict[str, Any]]:
    """Every panel: protocol by quality by model. *rows* are the lines of the table, known by their place in it."""
    out = []
    numbered = list(enumerate(rows))
    for protocol in document["recipe"]["analyses"]["protocols"]:
        here = [(at, row) for at, row in numbered if row["protocol"] == protocol]
        for metric in document["recipe"]["metrics"]["quality"]:
            first = protocol == document["protocol"] and metric == document["main_quality"]
            for number, model in enumerate(models):
                own = [(at, row) for at, row in here if row["model"] == model]
                lows = [row for _, row in here if row["model"] == "majority"]
                drawn = _panel(document, own, lows, model, metric, looks, language, first)
                entry = {
                    "protocol": protocol,
                    "metric": metric,
                    "model": number,
                    "first": first,
                    "svg": drawn,
                }
                out.append(entry)
    return out


def _panel(
    document: Row,
    rows: Sequence[tuple[int, Row]],
    majority: Sequence[Row],
    model: str,
    metric: str,
    looks: Looks,
    language: str,
    told: bool,
) -> str:
    known = [(at, row) for at, row in rows if row.get(metric) is not None and row["method"] != ORIGINAL]
    base = next((row for _, row in rows if row["method"] == ORIGINAL and row.get(metric) is not None), None)
    common = next((row[metric] for row in majority if row.get(metric) is not None), None)
    up = _scale([row for _, row in known] + ([base] if base else []), common, metric)
    columns = {
        k: BOX.left + (BOX.right - BOX.left) * (at + 0.5) / len(looks.ks) for at, k in enumerate(looks.ks)
    }
    body = [
        frame(
            BOX,
            [(round(x, 1), tell(language, "no_k") if k is None else str(k)) for k, x in columns.items()],
            marks(up, 34, lambda value: tick(metric, value, language)),
            tell(language, "quality_x"),
            tell(
                language,
                "quality_y",
                metric=measure_name(metric, language),
                better=tell(language, "quality_worse" if better_when_smaller(metric) else "quality_better"),
            ),
        ),
        *_lines(base, common, metric, up, language),
    ]
    pairs = list(
        dict.fromkeys((row["method"], row["guarantees"]) for _, row in rows if row["method"] != ORIGINAL)
    )
    step = min(9.0, 0.7 * (BOX.right - BOX.left) / len(looks.ks) / max(len(pairs), 1)) if looks.ks else 0.0
    for number, (method, promise) in enumerate(pairs):
        shift = step * (number - (len(pairs) - 1) / 2)
        own = [(at, row) for at, row in rows if (row["method"], row["guarantees"]) == (method, promise)]
        places = {k: round(x + shift, 1) for k, x in columns.items()}
        body.append(_series(document, own, metric, places, up, looks, language, told))
    name = tell(language, "quality_title", model=model, metric=measure_name(metric, language))
    return svg(
        name,
        finding(document, [row for _, row in known], base, common, model, metric, language),
        WIDTH,
        HEIGHT,
        "".join(body),
    )


def _scale(rows: Sequence[Row], common: float | None, metric: str) -> Scale:
    values = [row[f"{metric}{end}"] for row in rows for end in ("", "_low", "_high")]
    values = [value for value in [*values, common] if value is not None]
    if is_share(metric):
        values = [min(max(value, 0.0), 1.0) for value in values]
    scale = Scale.over(values, BOX.bottom, BOX.top)
    # No share lies above one, and no loss below zero.
    return (
        Scale(scale.low, min(scale.high, 1.0), scale.start, scale.end)
        if is_share(metric) and values
        else scale
    )


def _lines(base: Row | None, common: float | None, metric: str, up: Scale, language: str) -> list[str]:
    out = []
    across = f"M{BOX.left} {{y}}H{BOX.right}"
    if base is not None:
        low, high = base.get(f"{metric}_low"), base.get(f"{metric}_high")
        if low is not None and high is not None:
            top, bottom = up.at(min(high, up.high)), up.at(max(low, up.low))
            out.append(
                f'<rect x="{BOX.left}" y="{top}" width="{BOX.right - BOX.left}" height="{round(bottom - top, 1)}" '
                'fill="#222" fill-opacity="0.07"/>'
            )
        text = f"{tell(language, 'line_original')}: {span(metric, base, language)}"
        path = across.format(y=up.at(base[metric]))
        out.append(f'<path class="base" d="{path}" stroke="#222" stroke-width="1.4">{title(text)}</path>')
    if common is not None:
        text = f"{tell(language, 'line_majority')}: {figure(metric, common, language)}"
        path = across.format(y=up.at(common))
        out.append(
            f'<path class="common" d="{path}" stroke="#222" stroke-width="1.6" stroke-dasharray="1.5 3.5">'
            f"{title(text)}</path>"
        )
    return out


def _series(
    document: Row,
    own: Sequence[tuple[int, Row]],
    metric: str,
    places: Mapping[Any, float],
    up: Scale,
    looks: Looks,
    language: str,
    told: bool,
) -> str:
    """One method and promise: a line over k, its intervals, its marks, and a cross for what is missing."""
    method, promise = own[0][1]["method"], own[0][1]["guarantees"]
    at_promise = looks.promises.index(promise)
    parts = [
        f'<g class="s" data-m="{looks.method(method)}" data-g="{at_promise}" color="{looks.colour(method)}">'
    ]
    known = [(at, row) for at, row in own if row.get(metric) is not None]
    known.sort(key=lambda pair: (pair[1]["k"] is None, pair[1]["k"] or 0))
    with_k = [row for _, row in known if row["k"] is not None]
    if len(with_k) > 1:
        path = "L".join(f"{places[row['k']]} {up.at(row[metric])}" for row in with_k)
        parts.append(
            f'<path d="M{path}" fill="none" stroke="currentColor" stroke-width="1.6"{looks.dash(promise)}/>'
        )
    whiskers = "".join(
        f"M{places[row['k']]} {up.at(max(row[f'{metric}_low'], up.low))}V{up.at(min(row[f'{metric}_high'], up.high))}"
        for _, row in known
        if row.get(f"{metric}_low") is not None and row.get(f"{metric}_high") is not None
    )
    if whiskers:
        parts.append(f'<path class="w" d="{whiskers}" stroke="currentColor" stroke-opacity="0.55"/>')
    mark = looks.mark(method, promise)
    for at, row in known:
        inside = (
            title(f"{setting_name(row, language)}\n{row['model']}: {span(metric, row, language)}")
            if told
            else ""
        )
        parts.append(
            f'<use href="#{mark}" x="{places[row["k"]]}" y="{up.at(row[metric])}" data-r="{at}">{inside}</use>'
        )
    seeds = len(document["recipe"]["anonymization"]["seeds"])
    for at, row in own:
        if row["seeds"] < seeds or row.get(metric) is None:
            text = tell(
                language,
                "gap_seeds",
                setting=setting_name(row, language),
                missing=seeds - row["seeds"] if row.get(metric) is not None else seeds,
                seeds=seeds,
            )
            parts.append(
                f'<use href="#gap" x="{places[row["k"]]}" y="{BOX.bottom - 5}" data-r="{at}" data-gap="1">{title(text)}</use>'
            )
    return "".join(parts) + "</g>"


def finding(
    document: Row,
    rows: Sequence[Row],
    base: Row | None,
    common: float | None,
    model: str,
    metric: str,
    language: str,
) -> str:
    """What the panel shows, in words: best and worst at the recommended k, the original data, the commonest class."""
    name = measure_name(metric, language)
    if not rows:
        return tell(language, "quality_none", metric=name, model=model)
    choice = document["recommendation"]["choice"] or rows[0]
    level = [row for row in rows if row["k"] == choice["k"] and row["guarantees"] == choice["guarantees"]]
    level = level or [row for row in rows if row["k"] == rows[0]["k"]]
    ranked = sorted(level, key=lambda row: row[metric], reverse=not better_when_smaller(metric))
    best, worst = ranked[0], ranked[-1]
    said = [
        tell(
            language,
            "quality_found" if len(ranked) > 1 else "quality_found_one",
            k="–" if best["k"] is None else best["k"],
            promise=promise_words(best["guarantees"], language),
            metric=name,
            best=best["method"],
            best_value=span(metric, best, language),
            worst=worst["method"],
            worst_value=span(metric, worst, language),
        )
    ]
    if base is not None:
        said.append(tell(language, "quality_original", value=span(metric, base, language)))
    if common is not None:
        said.append(tell(language, "quality_majority", value=figure(metric, common, language)))
    return " ".join(said)
