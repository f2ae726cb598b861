"""Municipalities of Brazil by IBGE's code of seven or six digits or by name, their state and their region.

A name that several states have needs its state: `Viçosa/MG`, `Viçosa - MG` or `Viçosa (MG)`. Accents, capitals and
hyphens do not matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

from velado.data.hierarchies._bundled import rows_of
from velado.data.hierarchies._hierarchy import Broader, Hierarchy
from velado.text import say

REGIONS: Mapping[str, str] = {
    "1": "Norte",
    "2": "Nordeste",
    "3": "Sudeste",
    "4": "Sul",
    "5": "Centro-Oeste",
}
"""The region by the first digit of a code."""
STATES: Mapping[str, str] = dict(
    pair.split(":")
    for pair in [
        "11:RO",
        "12:AC",
        "13:AM",
        "14:RR",
        "15:PA",
        "16:AP",
        "17:TO",
        "21:MA",
        "22:PI",
        "23:CE",
        "24:RN",
        "25:PB",
        "26:PE",
        "27:AL",
        "28:SE",
        "29:BA",
        "31:MG",
        "32:ES",
        "33:RJ",
        "35:SP",
        "41:PR",
        "42:SC",
        "43:RS",
        "50:MS",
        "51:MT",
        "52:GO",
        "53:DF",
    ]
)
"""The state by the first two digits of a code."""
_WITH_STATE = re.compile(r"(.+?)(?:\s*[-–/,;]\s*|\s*\(\s*|\s+)([A-Za-z]{2})\s*\)?")
_STATE_NAMES = frozenset(STATES.values())


@cache
def _by_code() -> Mapping[str, str]:
    codes = [row[0] for row in rows_of("municipalities.csv")]
    return {**{code: code for code in codes}, **{code[:6]: code for code in codes}}


@cache
def _by_name() -> Mapping[str, tuple[str, ...]]:
    out: dict[str, list[str]] = {}
    for code, *names in rows_of("municipalities.csv"):
        for name in names:
            out.setdefault(_folded(name), []).append(code)
    return {name: tuple(codes) for name, codes in out.items()}


def _folded(name: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "", plain.lower())


def _code(value: str) -> tuple[str, ...]:
    """The codes that *value* may mean."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        known = _by_code().get(text)
        return () if known is None else (known,)
    found = _by_name().get(_folded(text), ())
    with_state = _WITH_STATE.fullmatch(text)
    if with_state is not None and with_state[2].upper() in _STATE_NAMES:
        state = with_state[2].upper()
        named = _by_name().get(_folded(with_state[1]), ())
        found = tuple(code for code in named if STATES[code[:2]] == state) or found
    return found


def _broader(value: str) -> Broader | None:
    codes = _code(value)
    if not codes:
        return None
    return (STATES[codes[0][:2]], REGIONS[codes[0][0]]) if len(codes) == 1 else ()


MUNICIPALITIES = Hierarchy(
    "municipality",
    say("Municipalities of Brazil by IBGE code or name: state and region"),
    _broader,
    advice=say("Write the state after the name, such as Viçosa/MG, or use IBGE's codes."),
    telling=True,
)
