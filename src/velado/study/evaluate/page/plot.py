"""Axes, scales and labels of a chart as inline SVG. All text is escaped here; an inline `<svg>` needs no namespace."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.measures.models.quality import QUALITIES
from velado.report.charts import AFTER
from velado.study.evaluate.amounts import bare, digits_beside
from velado.study.evaluate.page.page_words import tell
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_settings import LOSSES, RISKS
from velado.study.evaluate.study_words import number, percent, points, promises_in, say

# The lines of the big table: every setting, model and protocol with its figures, gaps among them, and as plain data.

Row = Mapping[str, Any]
KEYS = ("protocol", "model", "method", "k", "guarantees")
_RELEASE = (*LOSSES, *RISKS, "attribute_gain", "false_cells", "suppressed")


def in_order(document: Row) -> dict[str, Any]:
    """The study with its rows in the order of the recipe: cells arrive as they are finished, readers look for order."""
    methods, models = _recipe_names(document)

    def key(row: Row) -> tuple[Any, ...]:
        promised, model = row.get("guarantees") or "", row.get("model")
        method = (_place(methods, row["method"]), row["method"])
        return (*method, row["k"] is None, row["k"] or 0, promised, _place(models, model), model or "")

    parts = ("releases", "quality", "gaps", "partial", "federated")
    return {**document, **{name: sorted(document.get(name) or (), key=key) for name in parts}}


def _recipe_names(document: Row) -> tuple[list[str], list[str]]:
    recipe = document["recipe"]
    entries = (recipe["anonymization"]["methods"], recipe["models"]["use"])
    methods, models = ([str(one["name"]) for one in listed] for listed in entries)
    return methods, models


def _place(names: Sequence[str], label: str | None) -> int:
    name = (label or "").partition("(")[0]
    return names.index(name) if name in names else -1


def methods_of(document: Row) -> list[str]:
    """The methods that were run, each with its settings, those of which nothing came to an end among them."""
    rows = [*document["releases"], *(row for row in document["gaps"] if row["kind"] != "federated")]
    found = {str(row["method"]) for row in rows if row["method"] != ORIGINAL}
    names = _recipe_names(document)[0]
    return sorted(found, key=lambda label: (_place(names, label), label))


def models_of(document: Row) -> list[str]:
    """The models that were trained, each with its settings; the commonest class only where the recipe lists it."""
    rows = [*document["quality"], *(row for row in document["gaps"] if row["kind"] == "model")]
    found = {str(row["model"]) for row in rows if row["model"] is not None}
    names = _recipe_names(document)[1]
    found -= {"majority"} - set(names)
    return sorted(found, key=lambda label: (_place(names, label), label))


def lines_of(document: Row) -> list[dict[str, Any]]:
    """One line per setting, model and protocol; what has no result at all is a line of Nones with 0 seeds."""
    releases = {
        (row["scope"], row["method"], row["k"], row["guarantees"]): row for row in document["releases"]
    }
    lines = []
    seen = set()
    for row in document["quality"]:
        seen.add(tuple(row[name] for name in KEYS))
        scope = protocol_named(row["protocol"]).scope
        release = releases.get((scope, row["method"], row["k"], row["guarantees"]), {})
        lines.append({**_spreads(release, _RELEASE), **row})
    for gap in document["gaps"]:
        key = tuple(gap[name] for name in KEYS)
        if gap["kind"] == "model" and key not in seen:
            seen.add(key)
            lines.append(dict(zip(KEYS, key, strict=True)) | {"seeds": 0} | _empty(document))
    order = {name: at for at, name in enumerate(document["recipe"]["analyses"]["protocols"])}
    # Stable: what could not be computed goes after what was, protocol by protocol.
    return sorted(lines, key=lambda row: order.get(row["protocol"], len(order)))


def _spreads(row: Row, names: Sequence[str]) -> dict[str, Any]:
    return {f"{name}{end}": row.get(f"{name}{end}") for name in names for end in ("", "_low", "_high")}


def _empty(document: Row) -> dict[str, Any]:
    drops = [f"drop_{name}" for name in QUALITIES]
    return _spreads({}, (*_RELEASE, *QUALITIES, *drops, "majority", "seconds", "test_rows"))


def columns_of(document: Row, language: str) -> list[dict[str, Any]]:
    """The headings of the table: what each says, the number it sorts by, whether it is a figure."""
    metrics, main = document["recipe"]["metrics"], document["main_quality"]
    several = len(document["recipe"]["analyses"]["protocols"]) > 1
    labels = [*(["protocol"] if several else []), "model", "method", "k", "guarantees"]
    out = [{"key": name, "text": say(language, name), "figure": name == "k"} for name in labels]
    out += [{"key": metrics["loss"], "text": measure_name(metrics["loss"], language), "figure": True}]
    out += [{"key": metrics["risk"], "text": measure_name(metrics["risk"], language), "figure": True}]
    out += [
        {"key": name, "text": measure_name(name, language), "figure": True} for name in metrics["quality"]
    ]
    name = tell(language, "col_drop", name=measure_name(main, language))
    out.append({"key": f"drop_{main}", "text": name, "figure": True})
    out += [
        {"key": name, "text": tell(language, f"col_{name}"), "figure": True} for name in ("seeds", "seconds")
    ]
    return out


def cells_of(line: Row, columns: Sequence[Row], document: Row, language: str) -> list[str]:
    """The texts of one line."""
    seeds = len(document["recipe"]["anonymization"]["seeds"])
    out = []
    for column in columns:
        key = column["key"]
        if key == "k":
            out.append("–" if line["k"] is None else str(line["k"]))
        elif key == "guarantees":
            out.append(promise_name(line[key], language) if line[key] else "–")
        elif key in KEYS:
            out.append(str(line[key]))
        elif key == "seeds":
            done = tell(language, "missing_seeds", done=line["seeds"], seeds=seeds)
            out.append(done if line["seeds"] else f"{done} – {tell(language, 'table_gap')}")
        elif key == "seconds":
            out.append(number(line[key], language, 2))
        elif key.startswith("drop_"):
            limit = document["recipe"]["analyses"]["most_drop"]
            out.append(lost(key.removeprefix("drop_"), line, language, key, limit))
        else:
            out.append(span(key, line, language))
    return out


def plain(document: Row, lines: Sequence[Row]) -> dict[str, Any]:
    """The table as data to save: names of the columns, and one list per line, numbers unrounded by the language."""
    drops = [f"drop_{name}" for name in document["recipe"]["metrics"]["quality"]]
    numbers = [*_RELEASE, *document["recipe"]["metrics"]["quality"], *drops, "majority"]
    names = [
        *KEYS,
        "seeds",
        *(f"{name}{end}" for name in numbers for end in ("", "_low", "_high")),
        "seconds",
        "test_rows",
    ]
    return {"columns": names, "rows": [[tidy(line.get(name)) for name in names] for line in lines]}


def tidy(value: Any) -> Any:
    """A number with seven digits, None for one that is not finite; anything else as it is."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None


# Numbers as the page writes them: each measure with its unit, its interval, and the short form of an axis.

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


# Looks: the colour, mark and dash by which a method, a promise or a k is told from the others, on screen and in print.
#
# Colour alone never tells: methods differ in colour and mark, promises in dash and in full or hollow marks. Every colour
# has a contrast of at least 4.5 to 1 on white.

COLOURS = (AFTER, "#a84f00", "#6b3fa0", "#1c7a3e", "#a4262c", "#00707a", "#ad2f7c", "#5c5c00")
DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 2")
INK = "#222"
_MARKS = (
    '<circle r="4.2"/>',
    '<path d="M-4-4H4V4H-4Z"/>',
    '<path d="M0-5 5 4H-5Z"/>',
    '<path d="M0-5.4 5.4 0 0 5.4-5.4 0Z"/>',
    '<path d="M0 5-5-4H5Z"/>',
    '<path d="M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z"/>',
)
_STAR = '<path d="M0-6.5 1.9-2 6.5-1.9 2.9 1.1 4 5.8 0 3.1-4 5.8-2.9 1.1-6.5-1.9-1.9-2Z"/>'
_CROSS = '<path d="M-3.5-3.5 3.5 3.5M3.5-3.5-3.5 3.5" stroke="currentColor" stroke-width="1.8"/>'


@dataclass(frozen=True)
class Looks:
    """The methods and promises of a study in the order they are told apart; the original data stand outside."""

    methods: tuple[str, ...]
    promises: tuple[str, ...]
    ks: tuple[int | None, ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Looks:
        """The looks of everything that occurs in *rows*."""
        rows = list(rows)
        methods = dict.fromkeys(str(row["method"]) for row in rows if row["method"] != ORIGINAL)
        promises = dict.fromkeys(
            str(row.get("guarantees") or "") for row in rows if row["method"] != ORIGINAL
        )
        ks = {row["k"] for row in rows if row["method"] != ORIGINAL}
        known = sorted(k for k in ks if k is not None)
        return cls(tuple(methods), tuple(promises), (*known, *([None] if None in ks else [])))

    def method(self, name: str) -> int:
        """The number of a method; -1 for the original data."""
        return -1 if name == ORIGINAL else self.methods.index(name)

    def colour(self, name: str) -> str:
        """The colour of a method."""
        return INK if name == ORIGINAL else COLOURS[self.method(name) % len(COLOURS)]

    def mark(self, name: str, promise: str = "") -> str:
        """The id of a method's mark, hollow for every promise but the first."""
        if name == ORIGINAL:
            return "star"
        hollow = promise in self.promises and self.promises.index(promise) > 0
        return f"{'h' if hollow else 'm'}{self.method(name) % len(_MARKS)}"

    def dash(self, promise: str) -> str:
        """The dash of a promise as an attribute; the first one is drawn through."""
        return dashed(self.promises.index(promise) if promise in self.promises else 0)

    def legend(self, language: str, only: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Entries of a legend: a small picture, a text, and what the filters call it; *only* these methods, or all."""
        entries = [
            entry(name, picture(self.colour(name), "", self.mark(name)), method=at)
            for at, name in enumerate(self.methods)
            if only is None or name in only
        ]
        if len(self.promises) > 1 and only is None:
            entries += [
                entry(
                    promise_name(one, language),
                    picture("#555", dashed(at), "h0" if at else "m0"),
                    promise=at,
                )
                for at, one in enumerate(self.promises)
            ]
        return entries


def dashed(at: int) -> str:
    """The dash attribute of the entry number *at*."""
    return f' stroke-dasharray="{DASHES[at % len(DASHES)]}"' if at % len(DASHES) else ""


def picture(colour: str, dash: str | None, mark: str | None) -> str:
    """A short piece of line with a mark, for a legend."""
    line = "" if dash is None else f'<path d="M1 10H35" stroke="currentColor" stroke-width="1.8"{dash}/>'
    use = f'<use href="#{mark}" x="18" y="10"/>' if mark else ""
    return f'<svg aria-hidden="true" width="36" height="20" color="{colour}">{line}{use}</svg>'


def entry(text: str, drawn: str, method: int | None = None, promise: int | None = None) -> dict[str, Any]:
    """One line of a legend; *method* and *promise* are the filters it goes with."""
    return {"text": text, "picture": drawn, "method": method, "promise": promise}


def definitions() -> str:
    """The marks, once for the whole page."""
    full = "".join(f'<g id="m{at}" fill="currentColor">{mark}</g>' for at, mark in enumerate(_MARKS))
    hollow = "".join(
        f'<g id="h{at}" fill="#fff" stroke="currentColor" stroke-width="1.6">{mark}</g>'
        for at, mark in enumerate(_MARKS)
    )
    chosen = '<circle id="chosen" r="9.5" fill="none" stroke="#222" stroke-width="1.6"/>'
    star, cross = f'<g id="star" fill="currentColor">{_STAR}</g>', f'<g id="gap">{_CROSS}</g>'
    return f'<svg aria-hidden="true" class="marks" width="0" height="0"><defs>{full}{hollow}{star}{cross}{chosen}</defs></svg>'


def title(text: str) -> str:
    """A tooltip for readers without a script."""
    return f"<title>{escape(text)}</title>"


Kind = Literal["linear", "log", "root"]
_GRID = "#d8d8d8"
_LETTER = 6.4  # width of one character of an 11-pixel label
_AROUND = ((7, 4, "start"), (-7, 4, "end"), (0, -9, "middle"), (0, 16, "middle"))
_CORNERS = ((6, -6, "start"), (-6, -6, "end"), (6, 13, "start"), (-6, 13, "end"))


@dataclass(frozen=True)
class Box:
    """The inside of a chart: where its axes begin and end, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Scale:
    """Values from *low* to *high* laid out from pixel *start* to pixel *end*, evenly after *kind*."""

    low: float
    high: float
    start: float
    end: float
    kind: Kind = "linear"

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, kind: Kind = "linear") -> Scale:
        """A scale that holds all *values*, its ends a little beyond them, never an empty one."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if kind == "log":
            return cls(low / 1.25, high * 1.25, start, end, kind)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        least = 0.0 if low >= 0 and (kind == "root" or low - room < 0) else low - room
        return cls(least, high + room, start, end, kind)

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = (self._bend(one) for one in (self.low, self.high, value))
        return round(self.start + (self.end - self.start) * (here - low) / (high - low), 1)

    def _bend(self, value: float) -> float:
        if self.kind == "log":
            return math.log(value)
        return math.sqrt(max(value, 0.0)) if self.kind == "root" else value

    def ticks(self, apart: float) -> list[float]:
        """Round values on the axis, at least *apart* pixels from one another."""
        if self.kind == "linear":
            return self._even(apart)
        powers = range(
            math.floor(math.log10(max(self.low, self.high / 1e4))), math.ceil(math.log10(self.high)) + 1
        )
        round_ones = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        wanted = [0.0, *round_ones] if self.kind == "root" else round_ones
        kept: list[float] = []
        for value in (round(one, 12) for one in wanted if self.low <= one <= self.high):
            if not kept or abs(self.at(value) - self.at(kept[-1])) >= apart:
                kept.append(value)
        return kept

    def _even(self, apart: float) -> list[float]:
        most = max(abs(self.end - self.start) / apart, 1)
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [
            round(n * step, 12) for n in range(first, first + int(most) + 2) if n * step <= self.high + 1e-12
        ]


def frame(
    box: Box,
    across: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
    across_title: str,
    up_title: str,
) -> str:
    """The axes with their grid: *across* and *up* are (pixel, text) of their ticks."""
    parts = [f'<g stroke="{_GRID}">']
    parts += [f'<path d="M{box.left} {y}H{box.right}"/>' for y, _ in up]
    parts += [f'<path d="M{x} {box.bottom}v4"/>' for x, _ in across]
    parts.append(f'</g><path d="M{box.left} {box.bottom}H{box.right}" stroke="#222"/><g font-size="11">')
    parts += [
        f'<text x="{box.left - 6}" y="{y + 4}" text-anchor="end">{escape(text)}</text>' for y, text in up
    ]
    parts += [
        f'<text x="{x}" y="{box.bottom + 16}" text-anchor="middle">{escape(text)}</text>'
        for x, text in across
    ]
    middle = (box.left + box.right) / 2
    parts.append(
        f'<text x="{middle}" y="{box.bottom + 34}" text-anchor="middle" fill="#444">{escape(across_title)}</text>'
    )
    parts.append(f'<text x="4" y="{box.top - 10}" fill="#444">{escape(up_title)}</text></g>')
    return "".join(parts)


def marks(scale: Scale, apart: float, text: Callable[[float], str]) -> list[tuple[float, str]]:
    """Ticks as (pixel, text)."""
    return [(scale.at(value), text(value)) for value in scale.ticks(apart)]


def svg(title: str, description: str, width: int, height: int, body: str) -> str:
    """A chart with its heading; *description* says what it shows, for those who do not see it."""
    head = "".join(
        f'<text x="4" y="{15 + 16 * at}" font-weight="bold" font-size="13">{escape(line)}</text>'
        for at, line in enumerate(heading(title, width))
    )
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#222">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{head}"
        f"{body}</svg>"
    )


def heading(title: str, width: int) -> list[str]:
    """The heading in at most two lines that fit the *width*."""
    most = int(width / 7.6)
    if len(title) <= most:
        return [title]
    space = title.rfind(" ", 0, most + 1)
    at = space if space > most // 3 else most
    rest = title[at:].strip()
    return [title[:at].strip(), rest if len(rest) <= most else rest[: most - 1] + "…"]


def place_labels(
    points: Sequence[tuple[float, float, str]], box: Box
) -> list[tuple[float, float, str] | None]:
    """For each point (x, y, text) where its text may stand: (x, y, anchor), or None where it would cover something.

    Greedy: the first of eight places around a point that is free of marks and of earlier labels. O(points^2) in
    NumPy, once per chart.
    """
    taken = _boxes(np.array([[x - 5, y - 5, x + 5, y + 5] for x, y, _ in points], dtype=float))
    out: list[tuple[float, float, str] | None] = []
    for x, y, text in points:
        found = None
        for right, down, anchor in (*_AROUND, *_CORNERS):
            wide = _LETTER * len(text)
            left = x + right - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            spot = (left, y + down - 9, left + wide, y + down + 1)
            inside = (
                spot[0] >= box.left and spot[2] <= box.right and spot[1] >= box.top and spot[3] <= box.bottom
            )
            if inside and not _covered(taken, spot):
                found = (round(x + right, 1), round(y + down, 1), anchor)
                taken = np.vstack([taken, spot])
                break
        out.append(found)
    return out


def _boxes(made: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return made if made.size else np.empty((0, 4))


def _covered(taken: npt.NDArray[np.float64], spot: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = spot
    return bool(
        np.any((taken[:, 0] < right) & (taken[:, 2] > left) & (taken[:, 1] < bottom) & (taken[:, 3] > top))
    )
