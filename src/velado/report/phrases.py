"""Codes of other rooms (guarantees, units, kinds of side door) as words a reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.release.side_doors import SideDoor
from velado.report.report_words import Words


def guarantee_name(name: str, say: Words) -> str:
    """k-anonymity, k-anonimato."""
    return guarantee_in(say.language, name)


def unit_name(unit: str, say: Words) -> str:
    """What a guarantee counts."""
    return unit_in(say.language, unit)


def verdict_sentence(verdict: Mapping[str, Any], say: Words) -> str:
    """One verdict in plain words."""
    found = say.plain(verdict["achieved"])
    if verdict["guarantee"] == "k-anonymity" and verdict["unit"] == "people":
        return say("verdict_k_people", k=int(verdict["needed"]), found=found)
    if verdict["guarantee"] == "k-anonymity":
        return say("verdict_k_rows", k=int(verdict["needed"]), found=found)
    if verdict["guarantee"] == "l-diversity":
        column = verdict["parameters"].get("column")
        where = say("each_sensitive_column") if column is None else column
        return say("verdict_l", l=int(verdict["needed"]), found=found, column=where)
    return say(
        "verdict_other",
        guarantee=guarantee_name(verdict["guarantee"], say),
        needed=say.plain(verdict["needed"]),
        unit=unit_name(verdict["unit"], say),
        found=found,
    )


def role_name(role: str, say: Words) -> str:
    """What a published column is."""
    known = {"quasi": say("role_quasi"), "sensitive": say("role_sensitive"), "other": say("role_other")}
    return known[role]


def promise_name(kind: str, say: Words) -> str:
    """guaranteed, measured, as in the paper."""
    known = {
        "guaranteed": say("guaranteed"),
        "measured": say("measured"),
        "as in the paper": say("as_in_the_paper"),
    }
    return known[kind]


def promise_explanation(kind: str, say: Words) -> str:
    """What that type of promise means."""
    known = {
        "guaranteed": say("guaranteed_means"),
        "measured": say("measured_means"),
        "as in the paper": say("as_in_the_paper_means"),
    }
    return known[kind]


def attacker(name: str, say: Words) -> str:
    """The name of one line of the risk table."""
    known = {
        "prosecutor_highest": say("prosecutor_highest"),
        "prosecutor_mean": say("prosecutor_mean"),
        "journalist_highest": say("journalist_highest"),
        "marketer": say("marketer"),
    }
    return known[name]


def linkage_rule(linkage: Mapping[str, Any], say: Words) -> str:
    """In which direction records were linked, and how ties were counted."""
    directions = {
        "released-to-original": say("released_to_original"),
        "original-to-released": say("original_to_released"),
    }
    ties = {"expected": say("ties_expected"), "first": say("ties_first"), "any": say("ties_any")}
    return say(
        "linkage_rule",
        direction=directions.get(linkage["direction"], linkage["direction"]),
        ties=ties.get(linkage["ties"], linkage["ties"]),
    )


def risk_change(before: float, after: float, say: Words) -> str:
    """How the highest chance to pick a person out changed, by the figures that are shown."""
    old, new = say.share(before), say.share(after)
    if old == new:
        return say("risk_chart_stays", after=new)
    if after > before:
        return say("risk_chart_rises", before=old, after=new)
    return say("risk_chart_described", before=old, after=new)


def grouped_sentence(grouped: str | None, column: str, say: Words) -> str:
    """What one bar of a distribution joins; nothing when it is one value."""
    known = {
        "month": say("grouped_month", column=column),
        "year": say("grouped_year", column=column),
        "decade": say("grouped_decade", column=column),
        "level": say("grouped_level", column=column),
    }
    return "" if grouped is None else known[grouped]


def variant_name(variant: str, say: Words) -> str:
    """The NCP variant with its formula."""
    return say("variant_leaves_1") if variant == "leaves-1" else variant


def blank_reading(name: str, say: Words) -> str:
    """One reading of blanks."""
    known = {
        "a blank is a value of its own": say("blank_own"),
        "a blank matches anything": say("blank_anything"),
    }
    return known.get(name, name)


def door_sentence(door: Mapping[str, Any], say: Words) -> str:
    """One side door in words."""
    column, reveals, share = door["column"], door["reveals"], say.share(door["guess"])
    chance, rows = say.share(door["baseline"]), door["rows_revealed"]
    known = {
        "copy": say("door_copy", column=column, reveals=reveals),
        "original": say("door_original", column=column, reveals=reveals, share=share, chance=chance),
        "near-copy": say("door_near_copy", column=column, reveals=reveals, share=share),
        "order": say("door_order", column=column, reveals=reveals, share=share, chance=chance),
        "functional": say("door_functional", column=column, reveals=reveals),
        "part-copy": say("door_part", column=column, reveals=reveals, share=share, chance=chance),
        "narrows": say("door_narrows", column=column, reveals=reveals, share=share),
        "near-functional": say("door_near", column=column, reveals=reveals, share=share),
        "near-unique": say("door_unique", column=column, rows=rows),
        "row-order": say("door_rows", reveals=reveals, share=share, chance=chance),
        "unseen": say("door_unseen", pairs=rows),
    }
    signed = say("door_accepted") if door["accepted"] else ""
    # A kind without words of ours is said in English rather than not at all.
    fields = {**door, "together": tuple(door.get("together", ()))}
    text = known[door["kind"]] if door["kind"] in known else SideDoor(**fields).sentence()
    return f"{text} {signed}".strip()


# What each guarantee counts, in the languages people read. English is the code's own word.

PORTUGUESE = {
    "rows": "linhas",
    "people": "pessoas",
    "distinct values": "valores distintos",
    "effective values": "valores efetivos",
    "people of the population": "pessoas da população",
    "earth mover's distance (or less)": "de distância (ou menos)",
    "of the allowed gain (or less)": "do ganho permitido (ou menos)",
    "likelihood of presence (or more)": "de probabilidade de presença (ou mais)",
    "likelihood of presence (or less)": "de probabilidade de presença (ou menos)",
    "times the rarer values (or less)": "vezes os valores mais raros (ou menos)",
}
GUARANTEES_PORTUGUESE = {
    "k-anonymity": "k-anonimato",
    "l-diversity": "l-diversidade",
    "entropy-l-diversity": "l-diversidade por entropia",
    "recursive-l-diversity": "l-diversidade recursiva",
    "t-closeness": "t-proximidade",
    "beta-likeness": "beta-semelhança",
    "k-map": "k-mapa",
    "delta-presence": "delta-presença",
}


def unit_in(language: str, unit: str) -> str:
    """The unit of a verdict in *language*."""
    return PORTUGUESE.get(unit, unit) if language == "pt" else unit


def guarantee_in(language: str, name: str) -> str:
    """The name of a guarantee in *language*."""
    return GUARANTEES_PORTUGUESE.get(name, name) if language == "pt" else name
