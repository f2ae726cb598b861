"""render(): a study as one self-contained HTML page: no network, everything escaped, readable without a script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from velado.report.render import HTML_LANGUAGE
from velado.study.evaluate.page import convergence, tradeoff, verdict
from velado.study.evaluate.page import convergence as clients
from velado.study.evaluate.page import plot as rows
from velado.study.evaluate.page.page_words import PAGE_WORDS, tell
from velado.study.evaluate.page.plot import (
    INK,
    Box,
    Looks,
    Scale,
    better_when_smaller,
    definitions,
    entry,
    figure,
    frame,
    is_share,
    marks,
    measure_name,
    picture,
    promise_name,
    setting_name,
    span,
    svg,
    tick,
    title,
)
from velado.study.evaluate.page.tradeoff import promise_words
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_settings import LOSSES, RISKS
from velado.study.evaluate.study_words import number, percent, say
from velado.study.recipe import Language

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study


# Model quality against k: one panel per model, with intervals, the original data's line and the commonest class's.

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
            for place, model in enumerate(models):
                own = [(at, row) for at, row in here if row["model"] == model]
                lows = [row for _, row in here if row["model"] == "majority"]
                drawn = _panel(document, own, lows, model, metric, looks, language, first)
                entry = {
                    "protocol": protocol,
                    "metric": metric,
                    "model": place,
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
    for place, (method, promise) in enumerate(pairs):
        shift = step * (place - (len(pairs) - 1) / 2)
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


def render(study: Study, language: Language = "en") -> str:
    """The page of *study* in *language*."""
    return render_document(study.to_dict(language), language)


def render_document(document: Row, language: Language = "en") -> str:
    """The page of what `Study.to_dict` returned.

    The policy in the page's head names the digests of its one style and one script: nothing else runs, not even where
    a name in the study holds markup. O(lines x qualities).
    """
    environment = Environment(
        loader=PackageLoader("velado.study.evaluate.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style, script = _style(environment), _source(environment, "page.js")
    return environment.get_template("page.html.j2").render(
        language=HTML_LANGUAGE[language],
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        marks=Markup(definitions()),
        t=PAGE_WORDS[language],
        say=lambda key, **values: say(language, key, **values),
        **_content(document, language),
    )


def _unbroken(value: Any) -> Any:
    """A number and its percent sign, and the two ends of an interval, stay on one line; markup is left as it is."""
    return value.replace(" %", "\u00a0%").replace("…", "\u2060…\u2060") if type(value) is str else value


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _style(environment: Environment) -> str:
    """The look of the release report, and what only this page has."""
    report = PackageLoader("velado.report", "templates").get_source(environment, "report.css")[0]
    return report + _source(environment, "page.css")


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _content(document: Row, language: Language) -> dict[str, Any]:
    document = rows.in_order(document)
    fits = [fit for fit in document.get("federated") or () if fit.get("rounds")]
    choice = document["recommendation"]["choice"]
    lines = rows.lines_of(document)
    settings = tradeoff.settings_of(document)
    looks = Looks.of([*settings, *lines, *fits])
    models = list(dict.fromkeys(line["model"] for line in lines if line["model"] != "majority"))
    texts = tradeoff.texts_of(settings, document, models, language)
    columns = rows.columns_of(document, language)
    curves = convergence.curves_of(fits, language)
    heads = {
        name: say(language, f"h_{name}")
        for name in ("tradeoff", "quality", "same_risk", "federated", "protocols", "gaps", "not_tested")
    }
    heads |= {name: tell(language, f"h_{name}") for name in ("limit", "table")}
    return {
        **_opening(document, language),
        "heads": heads,
        "state": verdict.state_of(document),
        "limits": verdict.limits(document, language),
        "limit_intro": verdict.limit_intro(document, language) if choice else "",
        "same_risk": verdict.same_risk(document, language),
        "best": verdict.best_here(document, language),
        "best_table": verdict.best_table(document, language),
        "filters": _filters(looks, models, language),
        "legend": looks.legend(language),
        "legend_marks": [
            entry(tell(language, "line_original"), picture(INK, None, "star")),
            *([entry(tell(language, "recommended_mark"), picture(INK, None, "chosen"))] if choice else []),
        ],
        "legend_lines": _line_legend(language),
        "tradeoffs": tradeoff.charts(document, settings, texts, looks, language),
        "losses": _choices(
            tradeoff.measured(settings, LOSSES, document["recipe"]["metrics"]["loss"]), language
        ),
        "risks": _choices(
            tradeoff.measured(settings, RISKS, document["recipe"]["metrics"]["risk"]), language
        ),
        "panels": panels(document, lines, models, looks, language),
        "metrics": _choices(document["recipe"]["metrics"]["quality"], language),
        "protocol_names": document["recipe"]["analyses"]["protocols"],
        "protocol": document["protocol"],
        "main_quality": document["main_quality"],
        "quality_note": _quality_note(document, language),
        "federated": _federated(document, fits, curves, looks, language),
        "federated_not": tell(
            language, "federated_failed" if document["recipe"].get("federated") else "federated_not"
        ),
        "columns": columns,
        "lines": _table(lines, columns, looks, models, document, language),
        "table_note": tell(language, "table_note", confidence=_confidence(document, language)),
        "protocols": verdict.protocols(document, language),
        "gaps": verdict.gaps(document, language),
        "partial": verdict.reasons(document["partial"], language) if document.get("partial") else None,
        "not_tested": document["not_tested"],
        "data": {
            "language": HTML_LANGUAGE[language],
            "words": {key: PAGE_WORDS[language][key] for key in ("shown", "round", "mark_gap")},
            "measures": {name: tell(language, f"measure_{name}") for name in convergence.MEASURES},
            "settings": texts,
            "curves": convergence.data_of(curves, language),
            "table": rows.plain(document, lines),
        },
    }


def _opening(document: Row, language: str) -> dict[str, Any]:
    recipe, table = document["recipe"], document["table"]
    seeds = recipe["anonymization"]["seeds"]
    intro = say(
        language,
        "intro" if len(seeds) > 1 else "intro_one",
        rows=number(table["rows"], language, 0),
        target=recipe["data"]["target"],
        classes=table["classes"],
        features=len(table["features"]),
        protocol=document["protocol"],
        confidence=_confidence(document, language),
        seeds=len(seeds),
    )
    cells = document["cells"]
    key = [
        ("rows", number(table["rows"], language, 0)),
        ("target", recipe["data"]["target"]),
        ("methods", ", ".join(rows.methods_of(document)) or "–"),
        ("k_values", ", ".join(map(str, recipe["anonymization"]["k"]))),
        ("seeds", number(len(seeds), language, 0)),
        ("models", ", ".join(rows.models_of(document)) or "–"),
        ("protocol_used", document["protocol"]),
        (
            "cells",
            tell(
                language,
                "cells_of",
                done=number(cells["done"], language, 0),
                planned=number(cells["planned"], language, 0),
            ),
        ),
    ]
    return {
        "title": say(language, "title", source=table["source"]),
        "intro": intro,
        "majority_line": say(language, "majority_line", rate=percent(document["majority"], language)),
        "key_figures": [(tell(language, name), value, name in ("methods", "models")) for name, value in key],
        "sentences": document["recommendation"]["sentences"],
        "footer": tell(language, "footer", digest=table["sha256"]),
    }


def _confidence(document: Row, language: str) -> str:
    return number(100 * document["recipe"]["analyses"]["confidence"], language, 0)


def _quality_note(document: Row, language: str) -> str:
    seeds = len(document["recipe"]["anonymization"]["seeds"])
    key = "quality_note" if seeds > 1 else "quality_note_one"
    return tell(language, key, confidence=_confidence(document, language), seeds=seeds)


def _choices(names: Sequence[str], language: str) -> list[tuple[str, str]]:
    return [(name, measure_name(name, language)) for name in names]


def _filters(looks: Looks, models: Sequence[str], language: str) -> list[dict[str, Any]]:
    """Boxes to tick: methods, promises, models; a kind with a single entry has nothing to choose."""
    kinds = (
        ("m", "filter_method", looks.methods),
        ("g", "filter_guarantee", tuple(promise_name(one, language) for one in looks.promises)),
        ("o", "filter_model", tuple(models)),
    )
    return [
        {"kind": kind, "text": tell(language, key), "names": names}
        for kind, key, names in kinds
        if len(names) > 1
    ]


def _line_legend(language: str) -> list[dict[str, Any]]:
    return [
        entry(tell(language, "line_original"), picture(INK, "", None)),
        entry(tell(language, "line_majority"), picture(INK, ' stroke-dasharray="1.5 3.5"', None)),
        entry(tell(language, "mark_gap"), picture(INK, None, "gap")),
    ]


def _table(
    lines: Sequence[Row],
    columns: Sequence[Row],
    looks: Looks,
    models: Sequence[str],
    document: Row,
    language: str,
) -> list[dict[str, Any]]:
    out = []
    for line in lines:
        own = line["method"] == ORIGINAL
        out.append(
            {
                "cells": rows.cells_of(line, columns, document, language),
                "method": None if own else looks.method(line["method"]),
                "promise": None if own else looks.promises.index(line["guarantees"] or ""),
                "model": models.index(line["model"]) if line["model"] in models else None,
                "gap": line["seeds"] == 0,
            }
        )
    return out


def _federated(
    document: Row, fits: Sequence[Row], curves: Mapping[tuple[str, str], Any], looks: Looks, language: str
) -> dict[str, Any] | None:
    if not fits:
        return None
    short, full = clients.over_clients(fits, language)
    return {
        "intro": tell(language, "federated_intro", fits=len(fits)),
        "charts": convergence.charts(curves, looks, language),
        "measures": [(name, tell(language, f"measure_{name}")) for name in convergence.MEASURES],
        "legend": convergence.legend(fits, looks, language),
        "ends": clients.ends(document.get("federated_summary") or (), language),
        "participation": clients.participation(curves, language),
        "needed": clients.needed(fits, language),
        "clients": short,
        "every_client": full,
    }
