"""Numbers as the page writes them: each measure with its unit, its interval, and the short form of an axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.study.evaluate.amounts import bare, digits_beside
from velado.study.evaluate.page.words import tell
from velado.study.evaluate.words import number, percent, points, promises_in, say

# What is no share of a whole, and the decimals it is written with.
DECIMALS = {"average_group_size": 1, "log_loss": 3, "loss": 3}


def is_share(name: str) -> bool:
    """Whether the measure is a share, written in percent."""
    return name not in DECIMALS


def better_when_smaller(name: str) -> bool:
    """Whether a smaller quality is the better one."""
    return name in ("log_loss", "loss")


def figure(name: str, value: float | None, language: str) -> str:
    """One value of a measure with its unit; a dash where there is none."""
    return percent(value, language) if is_share(name) else number(value, language, DECIMALS[name])


def span(name: str, row: Mapping[str, Any], language: str, key: str | None = None) -> str:
    """`68.6 % (60.4…76.8)`: the value of *row* under *key* (the measure's own name by default) and its interval."""
    key = key or name
    middle = figure(name, row.get(key), language)
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if row.get(key) is None or low is None or high is None:
        return middle
    return f"{middle} ({_bare(name, low, language)}…{_bare(name, high, language)})"


def _bare(name: str, value: float, language: str) -> str:
    return points(value, language) if is_share(name) else number(value, language, DECIMALS[name])


def lost(
    name: str, row: Mapping[str, Any], language: str, key: str, limit: float | None = None, digits: int = 1
) -> str:
    """A drop of quality with its interval: points of a share, else the plain difference.

    Beside a *limit* it has as many digits as show that what lies above the limit does.
    """
    if row.get(key) is None:
        return "–"
    ends = [row.get(f"{key}{end}") for end in ("", "_low", "_high")]
    if limit is not None:
        digits = digits_beside(name, ends, limit, digits)
    value, low, high = (bare(name, end, language, digits) for end in ends)
    known = ends[1] is not None and ends[2] is not None
    if not is_share(name):
        return f"{value} ({low}…{high})" if known else value
    if not known:
        return tell(language, "lost_points", value=value)
    return tell(language, "lost_points_span", value=value, low=low, high=high)


def tick(name: str, value: float, language: str) -> str:
    """A value on an axis, with no more decimals than it has."""
    scaled = 100 * value if is_share(name) else value
    digits = next((d for d in range(4) if abs(round(scaled, d) - scaled) <= 1e-9 * max(1, abs(scaled))), 4)
    return number(scaled, language, digits) + (" %" if is_share(name) else "")


def measure_name(name: str, language: str) -> str:
    """A loss, risk or quality as a person calls it."""
    return say(language, f"name_{name}")


def promise_name(label: str, language: str) -> str:
    """A set of promises beyond k; each known one by its name in the language."""
    return promises_in(label, language) or tell(language, "k_alone")


def setting_name(row: Mapping[str, Any], language: str) -> str:
    """`method, k = 10, further promises`."""
    parts = [str(row["method"])]
    if row["k"] is not None:
        parts.append(f"k\u00a0=\u00a0{row['k']}")  # never broken over two lines
    if row.get("guarantees"):
        parts.append(promise_name(row["guarantees"], language))
    return ", ".join(parts)
