"""What a release cost and bought, measure by measure, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from velado.report.blocks import Table
from velado.text import join, number, percent, say

# How records were linked, as flags and results write it.
_LINKED_BY = {
    str(word): word
    for word in (
        say("released-to-original"),
        say("original-to-released"),
        say("expected"),
        say("first"),
        say("any"),
        say("range"),
        say("standard"),
        say("manhattan"),
        say("euclidean"),
    )
}
_RISKS = (
    (say("risk of being found, highest"), "prosecutor", "highest"),
    (say("risk of being found, mean"), "prosecutor", "mean"),
    (say("journalist's risk, highest"), "journalist", "highest"),
    (say("share a marketer finds"), "marketer", "expected_share"),
)
_SIDES = ("before", "after")


def score_lines(scores: Mapping[str, Any]) -> Iterator[str | Table]:
    yield Table(
        say("What the release cost and bought"),
        [say("measure"), say("original"), say("release")],
        [*_utility(scores), *_risk(scores["risk"])],
    )
    for name, reason in scores["not_measured"].items():
        yield say("Not measured: {name}. {reason}", name=name, reason=reason)
    yield from scores["notes"]


def _utility(scores: Mapping[str, Any]) -> Iterator[list[str]]:
    utility, rows = scores["utility"], scores["rows"]
    yield [say("rows"), number(rows["original"]), number(rows["published"])]
    ncp, size = utility["ncp"], utility["average_group_size"]
    if ncp is not None:
        yield [f"NCP ({ncp['variant']})", "", percent(ncp["overall"])]
        yield from ([f"  {name}", "", percent(share)] for name, share in ncp["by_column"].items())
    if utility["false_cells"] is not None:
        yield [say("false cells"), "", percent(utility["false_cells"]["share"])]
    yield [say("mean group"), "", number(size["mean"], 2)]
    if size["c_avg"] is not None:
        yield [f"C_avg (k = {size['k']})", "", number(size["c_avg"], 3)]
    yield [say("discernibility"), "", number(utility["discernibility"]["value"])]


def _risk(risk: Mapping[str, Any]) -> Iterator[list[str]]:
    before, after = (risk[side] for side in _SIDES)
    for side, unit in (("by_row", say("rows")), ("by_person", say("people"))):
        old, new = before[side], after[side]
        if old is None:
            continue
        for name, part, inner in _RISKS:
            shown = "" if new is None else percent(new[part][inner])
            yield [say("{name} ({unit})", name=name, unit=unit), percent(old[part][inner]), shown]
        unique = f"unique_{unit}"
        shown = "" if new is None else number(after["uniqueness"][unique])
        yield [
            say("{name} ({unit})", name=say("unique"), unit=unit),
            number(before["uniqueness"][unique]),
            shown,
        ]
    found = risk["record_linkage"]
    if found is not None:
        rules = [_rule(name, found[name]) for name in ("direction", "ties", "scaling", "metric")]
        yield [say("linkage ({rules})", rules=join(rules, ", ")), "", percent(found["share"])]
    yield from _disclosure(risk)


def _rule(name: str, value: str) -> str:
    return say("no scaling") if (name, value) == ("scaling", "none") else _LINKED_BY.get(value, value)


def _disclosure(risk: Mapping[str, Any]) -> Iterator[list[str]]:
    """Guessing of sensitive values and partial knowledge, and what was measured on request."""
    for name, found in (risk.get("attribute_disclosure") or {}).items():
        yield [
            say("'{column}' guessed right: from the whole table, from the release", column=name),
            *(percent(found[side]["share"]) for side in ("baseline", "guessed")),
        ]
    partial = risk.get("partial_knowledge")
    if partial is not None:
        yield [
            say(
                "sets of up to 3 columns that single somebody out (of {subsets})", subsets=partial["subsets"]
            ),
            *(number(partial[f"subsets_with_unique_rows_{side}"]) for side in _SIDES),
        ]
    special = risk.get("special_uniques")
    if special is not None:
        rows = [special.get(side) for side in _SIDES]
        shown = [number(one["special_rows"]) if isinstance(one, dict) else "" for one in rows]
        yield [say("rows with a special unique (SUDA)"), *shown]
    population = risk.get("population_uniqueness")
    if population is not None:
        yield [
            say("unique in the population (estimate)"),
            *(_estimate(population.get(side)) for side in _SIDES),
        ]


def _estimate(found: Any) -> str:
    if not isinstance(found, dict):
        return ""
    chosen = found.get("chosen")
    return f"{number(round(found['estimates'][chosen]['population_uniques']))} ({chosen})" if chosen else "-"
