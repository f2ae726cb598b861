"""An answer, and the price of a question, as the command line shows them."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from velado.apps.cli import show
from velado.apps.cli.words import number, say

PROMISE = {"epsilon": "query_promise_epsilon", "rho": "query_promise_rho"}
TYPE = {"guaranteed": "query_type_guaranteed", "guaranteed-if": "query_type_guaranteed-if"}
# Between two columns of a table as `show.table` draws it.
GAP = 3


def show_answer(
    answer: Any,
    notes: list[tuple[str, dict[str, Any]]],
    schema: Any,
    lang: str,
    delta: Fraction | None = None,
) -> None:
    """The numbers and how they are to be read, then promise, cost, what the ledger has to say, and any warning."""
    _show_numbers(answer, lang)
    promise, cost = answer.guarantee, answer.cost
    for text in _readings(answer, lang):
        show.line(text)
    measure = cost["measure"]
    charge = amount(promise[measure], lang)
    kind = say(lang, TYPE[promise["type"]])
    show.line(say(lang, PROMISE[measure], type=kind, cost=charge, unit=_unit_text(promise, lang)))
    implied = _implied(promise, delta, lang) if measure == "rho" else None
    if implied is not None:
        show.line(implied)
    parts = {"left": amount(cost["left"], lang), "budget": amount(cost["budget"], lang)}
    if answer.stored:
        show.line(say(lang, "query_cost_stored", **parts))
    else:
        show.line(say(lang, "query_cost", measure=measure, cost=amount(cost["spent"], lang), **parts))
    for key, told in notes:
        show.line(say(lang, key, **told))
    declared = schema.group or schema.person
    if promise.get("warnings") and declared is not None:
        show.note(f"{say(lang, 'warning')}: {say(lang, 'query_wrong_unit', column=declared.name)}")


def amount(cost: str | Fraction | float, lang: str) -> str:
    """An exact cost in at most six decimals, without an exponent; a remainder too small for them is called so."""
    from velado.query.answer import rounded, tiny

    if tiny(cost):
        return say(lang, "query_tiny")
    return rounded(cost) if lang == "en" else rounded(cost).replace(".", ",")


def _show_numbers(answer: Any, lang: str) -> None:
    """One column for each value and its ends or, where that is wider than the terminal, one line for each value."""
    frame = answer.frame
    # A quantile has no interval: two columns of nothing would only ask what they mean.
    empty = [
        f"{name}_{end}"
        for name in answer.how["values"]
        for end in ("low", "high")
        if frame[f"{name}_{end}"].null_count() == frame.height
    ]
    frame = frame.drop(empty)
    head = frame.columns
    rows = [[_cell(cell, lang) for cell in row] for row in frame.iter_rows()]
    wide = sum(max(len(line[at]) for line in (head, *rows)) + GAP for at in range(len(head)))
    if wide > _room():
        ends = [name for value in answer.how["values"] for name in (value, f"{value}_low", f"{value}_high")]
        keys = [name for name in head if name not in ends]
        rows = [
            [_cell(row[key], lang) for key in keys]
            + [value, *(_cell(row.get(f"{value}{end}"), lang) for end in ("", "_low", "_high"))]
            for row in frame.iter_rows(named=True)
            for value in answer.how["values"]
        ]
        head = keys + [say(lang, f"query_{word}") for word in ("name", "value", "low", "high")]
    show.table(say(lang, "query_title"), head, rows)


def _room() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else show.NARROW


def _cell(value: Any, lang: str) -> str:
    if value is None:
        return "-"
    return (
        number(value, lang) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )


def _readings(answer: Any, lang: str) -> list[str]:
    """What each value is; an interval is explained where there is one, a rank where there is none."""
    values, promise = answer.how["plan"]["values"], answer.guarantee
    out = []
    for value in values:
        told = {"name": value["name"], "column": value["column"]}
        if value["answered_as"] == "bound":
            out.append(say(lang, "query_bound", **told))
        elif value["answered_as"] == "quantile":
            told |= {"level": _level(value["level"], lang), "asked": value["asked"].upper()}
            key = "query_extreme" if value["asked"] in ("min", "max") else "query_quantile"
            out.append(f"{say(lang, key, **told)} {_rank(value, lang)}")
    if any(value["answered_as"] == "number" for value in values):
        rows = say(lang, "query_every_row")
        if promise["mode"] != "strict":
            rows = say(lang, "query_rows_that_count", rows=promise["most_rows"], column=promise["column"])
        out.append(say(lang, "query_interval", rows=rows, confidence=_level(answer.how["confidence"], lang)))
    return out


def _rank(value: Mapping[str, Any], lang: str) -> str:
    told = value["rank_error"]
    key = "query_rank" if told["beyond"] == "the asked rank" else "query_rank_best"
    return say(
        lang,
        key,
        rows=number(math.ceil(told["rows"]), lang),
        confidence=_level(told["confidence"], lang),
        candidates=number(value["candidates"], lang),
    )


def _level(level: str | float, lang: str) -> str:
    """A level or a confidence in percent, with the digits it has: 99.99% is not 100%."""
    text = f"{float(100 * Fraction(str(level))):.6g}%"
    return text if lang == "en" else text.replace(".", ",")


def _implied(promise: Mapping[str, Any], delta: Fraction | None, lang: str) -> str | None:
    """What rho means as an epsilon, at the delta of the question or else of the ledger."""
    from velado.query.budget import epsilon_of, exact

    if delta is None:
        if "implies" not in promise:
            return None
        delta = exact(promise["implies"]["delta"])
    one, whole = (epsilon_of(Fraction(rho), delta) for rho in (promise["rho"], promise["budget"]["total"]))
    told = f"{float(delta):g}"
    return say(lang, "query_implied", delta=told, epsilon=amount(one, lang), total=amount(whole, lang))


def _unit_text(promise: Mapping[str, Any], lang: str) -> str:
    if promise["mode"] == "strict":
        return say(lang, "query_unit_record")
    if "dependence" in promise:
        return say(lang, "query_unit_dependence", column=promise["column"], dependence=promise["dependence"])
    return say(lang, "query_unit_group", column=promise["column"], rows=promise["most_rows"])


def show_price(told: dict[str, Any], asked: Any, lang: str, as_json: bool) -> None:
    """Every draw with its noise and cost, and their sum beside what was asked for."""
    if as_json:
        show.as_json(told)
        return
    for value in told["values"]:
        if value["answered_as"] == "bound":
            show.line(say(lang, "query_bound", name=value["name"], column=value["column"]))
    if not told["draws"]:
        show.line(say(lang, "query_price_free"))
        return
    ranks = [draw["rank_error"] for draw in told["draws"] if "rank_error" in draw]
    heads = ["query_draw", "query_mechanism", "query_sensitivity", "query_scale", "query_charge"]
    rows = [_price_row(draw, lang) for draw in told["draws"]]
    if ranks:
        heads.insert(-1, "query_rank_error")
        for row, draw in zip(rows, told["draws"], strict=True):
            off = draw.get("rank_error")
            row.insert(-1, "-" if off is None else _rank_rows(off, lang))
    show.table(say(lang, "query_price_title"), [say(lang, key) for key in heads], rows)
    if ranks:
        show.line(say(lang, "query_price_rank", confidence=_level(ranks[0]["confidence"], lang)))
    total, most = (amount(cost, lang) for cost in (told["charge"], asked.total))
    show.line(say(lang, "query_price_total", measure=told["measure"], cost=total, asked=most))


def _price_row(draw: Mapping[str, Any], lang: str) -> list[str]:
    """A quantile's scores have a scale too, but what it means to a person is the rank it may miss by."""
    size = draw.get("in_values", draw)
    noise = [number(size["sensitivity"], lang), number(size["scale"], lang)]
    level = _level(draw["level"], lang) if "level" in draw else ""
    return [
        say(lang, f"query_need_{draw['what']}", column=draw["column"], level=level),
        draw["mechanism"],
        *(["-", "-"] if "rank_error" in draw else noise),
        amount(draw["charge"], lang),
    ]


def _rank_rows(off: Mapping[str, Any], lang: str) -> str:
    return say(lang, "query_rank_rows", rows=number(math.ceil(off["rows"]), lang))
