"""An answer, and the price of a question, as the command line shows them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from velado.apps.cli import show
from velado.apps.cli.words import number, percent, say

PROMISE = {"epsilon": "query_promise_epsilon", "rho": "query_promise_rho"}
TYPE = {"guaranteed": "query_type_guaranteed", "guaranteed-if": "query_type_guaranteed-if"}


def _cell(value: Any, lang: str) -> str:
    if value is None:
        return "-"
    return (
        number(value, lang) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )


def show_answer(answer: Any, notes: list[tuple[str, dict[str, Any]]], schema: Any, lang: str) -> None:
    """The numbers with their intervals, then promise, cost, what the ledger has to say, and any warning."""
    rows = [[_cell(cell, lang) for cell in row] for row in answer.frame.iter_rows()]
    show.table(say(lang, "query_title"), answer.frame.columns, rows)
    promise, cost = answer.guarantee, answer.cost
    measure = cost["measure"]
    charge = _amount(promise[measure], lang)
    kind = say(lang, TYPE[promise["type"]])
    show.line(say(lang, PROMISE[measure], type=kind, cost=charge, unit=_unit_text(promise, lang)))
    parts = {"left": _amount(cost["left"], lang), "budget": _amount(cost["budget"], lang)}
    if answer.stored:
        show.line(say(lang, "query_cost_stored", **parts))
    else:
        show.line(say(lang, "query_cost", measure=measure, cost=_amount(cost["spent"], lang), **parts))
    show.line(say(lang, "query_interval", confidence=percent(answer.how["confidence"], lang)))
    for key, told in notes:
        show.line(say(lang, key, **told))
    declared = schema.group or schema.person
    if promise.get("warnings") and declared is not None:
        show.note(f"{say(lang, 'warning')}: {say(lang, 'query_wrong_unit', column=declared.name)}")


def _amount(cost: str, lang: str) -> str:
    """An exact cost in at most six digits; what is left is rounded as little."""
    text = f"{float(Fraction(cost)):.6g}"
    return text if lang == "en" else text.replace(".", ",")


def _unit_text(promise: Mapping[str, Any], lang: str) -> str:
    if promise["mode"] == "strict":
        return say(lang, "query_unit_record")
    if "dependence" in promise:
        return say(lang, "query_unit_dependence", column=promise["column"], dependence=promise["dependence"])
    return say(lang, "query_unit_group", column=promise["column"], rows=promise["most_rows"])


def show_price(told: dict[str, Any], made: Any, asked: Any, lang: str, as_json: bool) -> None:
    """Every draw with its noise and cost, and their sum beside what was asked for."""
    if as_json:
        show.as_json(told)
        return
    if not made.draws:
        show.line(say(lang, "query_price_free"))
        return
    heads = ("query_draw", "query_mechanism", "query_sensitivity", "query_scale", "query_charge")
    rows = [
        [
            type(draw.need).__name__,
            draw.mechanism,
            number(draw.sensitivity, lang),
            number(draw.scale, lang),
            _amount(str(draw.charge), lang),
        ]
        for draw in made.draws
    ]
    show.table(say(lang, "query_price_title"), [say(lang, key) for key in heads], rows)
    total, most = (_amount(str(cost), lang) for cost in (made.charge, asked.total))
    show.line(say(lang, "query_price_total", measure=made.measure, cost=total, asked=most))
