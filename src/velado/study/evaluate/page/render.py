"""render(): a study as one self-contained HTML page: no network, everything escaped, readable without a script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.page import clients, convergence, rows, tradeoff, verdict
from velado.study.evaluate.page.panels import panels
from velado.study.evaluate.page.figures import measure_name, promise_name
from velado.study.evaluate.page.looks import INK, Looks, definitions, entry, picture
from velado.study.evaluate.page.words import PAGE_WORDS, tell
from velado.study.evaluate.recipe import LOSSES, RISKS
from velado.study.evaluate.words import number, percent, say
from velado.study.recipe import Language
from velado.study.report.words import HTML_LANGUAGE, Words

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study

Row = Mapping[str, Any]


def render(study: Study, language: Language = "en") -> str:
    """The page of *study* in *language*."""
    Words(language)  # an unknown language is refused here, with the known ones named
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
    report = PackageLoader("velado.study.report", "templates").get_source(environment, "report.html.j2")[0]
    found = re.search(r"<style>\n(.*?)</style>", report, re.DOTALL)
    assert found is not None
    return found[1] + _source(environment, "page.css")


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
