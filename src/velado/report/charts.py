"""The one kit of charts: inline SVG without script or network, read aloud (title and description), printable.

`BarChart` draws labelled bars, lying or upright, in one or two series. Every other chart is put together from the
parts below: a `Box` and its `Scale`s, `axes`, then lines, areas, intervals, levels and marks, closed by `svg`. All
text is escaped here, so what comes out is safe markup. An inline `<svg>` needs no namespace: a page holds no address.

Colour alone never tells: series differ in colour and mark, or in dash and in full or hollow marks. Every colour has
a contrast of at least 4.5 to 1 on white.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import ClassVar, Literal

import numpy as np

from velado.text import Sentence, told

BEFORE, AFTER = "#9a6b1f", "#1f5f8b"
INK, GRID, SOFT = "#222", "#d8d8d8", "#555"
COLOURS = (AFTER, "#a84f00", "#6b3fa0", "#1c7a3e", "#a4262c", "#00707a", "#ad2f7c", "#5c5c00")
DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 2")
DOTTED = "1.5 3.5"
"""The dash of a level that nobody chose, such as the commonest class."""

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

Point = tuple[float, float]
Kind = Literal["linear", "log", "root"]

# ---- series: what tells one from another


def colour(at: int) -> str:
    """The colour of series number *at*; they begin again after the last.

    >>> colour(0) == colour(len(COLOURS))
    True
    """
    return COLOURS[at % len(COLOURS)]


def dash(at: int) -> str:
    """The dash of series number *at*; the first is drawn through.

    >>> dash(0), dash(1)
    ('', '6 3')
    """
    return DASHES[at % len(DASHES)]


def mark(at: int, hollow: bool = False) -> str:
    """The name of the mark of series number *at*, for `dot`, `swatch` and the marks of `definitions`.

    >>> mark(1), mark(1, hollow=True)
    ('m1', 'h1')
    """
    return f"{'h' if hollow else 'm'}{at % len(_MARKS)}"


def definitions() -> str:
    """The marks (series, `star`, `gap`, `chosen`) that `dot` and `swatch` refer to, once for a whole page.

    >>> 'id="m0"' in definitions() and 'id="star"' in definitions()
    True
    """
    full = "".join(f'<g id="m{at}" fill="currentColor">{shape}</g>' for at, shape in enumerate(_MARKS))
    hollow = "".join(
        f'<g id="h{at}" fill="#fff" stroke="currentColor" stroke-width="1.6">{shape}</g>'
        for at, shape in enumerate(_MARKS)
    )
    chosen = f'<circle id="chosen" r="9.5" fill="none" stroke="{INK}" stroke-width="1.6"/>'
    star, cross = f'<g id="star" fill="currentColor">{_STAR}</g>', f'<g id="gap">{_CROSS}</g>'
    inside = f"<defs>{full}{hollow}{star}{cross}{chosen}</defs>"
    return f'<svg aria-hidden="true" class="marks" width="0" height="0">{inside}</svg>'


@dataclass(frozen=True)
class LegendEntry:
    """One line of a legend: a small picture, its text, and the *data* by which a script shows or hides it.

    >>> LegendEntry("Mondrian", swatch(colour(0), mark=mark(0)), {"m": 0}).text
    'Mondrian'
    """

    text: str
    picture: str
    data: Mapping[str, int | str] = field(default_factory=dict)


def swatch(colour: str, *, dash: str | None = None, mark: str | None = None) -> str:
    """A short piece of line (none without a *dash*; "" is drawn through) with a mark on it, for a legend.

    >>> swatch("#222", dash="").count("<path")
    1
    """
    line = (
        "" if dash is None else f'<path d="M1 10H35" stroke="currentColor" stroke-width="1.8"{_dash(dash)}/>'
    )
    use = f'<use href="#{mark}" x="18" y="10"/>' if mark else ""
    return f'<svg aria-hidden="true" width="36" height="20" color="{colour}">{line}{use}</svg>'


# ---- scales and axes


@dataclass(frozen=True)
class Box:
    """The inside of a chart: where its axes begin and end, in pixels.

    >>> Box(58, 56, 458, 262).width
    400
    """

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left


@dataclass(frozen=True)
class Scale:
    """Values from *low* to *high* laid out from pixel *start* to pixel *end*, evenly after *kind*.

    >>> scale = Scale.over([0.2, 1.0], 262, 56, most=1.0)
    >>> scale.at(1.0), scale.marks(60, "{:.1f}".format)
    (56.0, [(177.5, '0.5'), (56.0, '1.0')])
    """

    low: float
    high: float
    start: float
    end: float
    kind: Kind = "linear"

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, kind: Kind = "linear", most: float = math.inf
    ) -> Scale:
        """A scale that holds all *values*, its ends a little beyond them but not above *most*, never empty."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if kind == "log":
            return cls(low / 1.25, min(high * 1.25, most), start, end, kind)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        least = 0.0 if low >= 0 and (kind == "root" or low - room < 0) else low - room
        return cls(least, min(high + room, most), start, end, kind)

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = (self._bend(one) for one in (self.low, self.high, value))
        return round(self.start + (self.end - self.start) * (here - low) / (high - low), 1)

    def within(self, value: float) -> float:
        """The pixel of a value, or of the end of the scale that it lies beyond."""
        return self.at(min(max(value, self.low), self.high))

    def marks(self, apart: float, text: Callable[[float], str]) -> list[tuple[float, str]]:
        """The ticks as (pixel, text)."""
        return [(self.at(value), text(value)) for value in self.ticks(apart)]

    def ticks(self, apart: float) -> list[float]:
        """Round values on the axis, at least *apart* pixels from one another."""
        if self.kind == "linear":
            return self._even(apart)
        least = max(self.low, self.high / 1e4)
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(self.high)) + 1)
        round_ones = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        wanted = [0.0, *round_ones] if self.kind == "root" else round_ones
        kept: list[float] = []
        for value in (round(one, 12) for one in wanted if self.low <= one <= self.high):
            if not kept or abs(self.at(value) - self.at(kept[-1])) >= apart:
                kept.append(value)
        return kept

    def _bend(self, value: float) -> float:
        if self.kind == "log":
            return math.log(value)
        return math.sqrt(max(value, 0.0)) if self.kind == "root" else value

    def _even(self, apart: float) -> list[float]:
        most = max(abs(self.end - self.start) / apart, 1)
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        steps = range(first, first + int(most) + 2)
        return [round(n * step, 12) for n in steps if n * step <= self.high + 1e-12]


def axes(
    box: Box,
    *,
    across: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
    across_title: str,
    up_title: str,
) -> str:
    """The axes with their grid: *across* and *up* are (pixel, text) of their ticks, see `Scale.marks`.

    >>> axes(Box(50, 50, 250, 150), across=[(60, "5")], up=[], across_title="k", up_title="loss").count("<text")
    3
    """
    grid = "".join(f'<path d="M{box.left} {y}H{box.right}"/>' for y, _ in up)
    grid += "".join(f'<path d="M{x} {box.bottom}v4"/>' for x, _ in across)
    texts = [label(box.left - 6, y + 4, text, anchor="end") for y, text in up]
    texts += [label(x, box.bottom + 16, text, anchor="middle") for x, text in across]
    middle = (box.left + box.right) / 2
    texts.append(label(middle, box.bottom + 34, across_title, anchor="middle", fill="#444"))
    texts.append(label(4, box.top - 10, up_title, fill="#444"))
    base = f'<path d="M{box.left} {box.bottom}H{box.right}" stroke="{INK}"/>'
    return f'<g stroke="{GRID}">{grid}</g>{base}<g font-size="11">{"".join(texts)}</g>'


# ---- what lies inside the axes; *tip* is a tooltip for readers without a script, *data* what a script knows it by


def group(parts: Iterable[str], colour: str, *, kind: str = "s", **data: int | str | None) -> str:
    """Everything of one series: its parts draw in its *colour*.

    >>> group([line([(0, 0), (5, 5)])], "#222", m=1)
    '<g class="s" data-m="1" color="#222"><path d="M0 0L5 5" fill="none" stroke="currentColor" stroke-width="1.6"/></g>'
    """
    return f'<g{_named(kind, data)} color="{colour}">{"".join(parts)}</g>'


def line(
    points: Sequence[Point | None],
    *,
    dash: str = "",
    thick: float = 1.6,
    tip: str = "",
    kind: str = "",
    **data: int | str | None,
) -> str:
    """A line through *points*; it is broken where there is none, for what lies between is not known.

    >>> 'd="M0 0L1 1M3 3"' in line([(0, 0), (1, 1), None, (3, 3)])
    True
    """
    path, pen = "", "M"
    for point in points:
        path += "" if point is None else f"{pen}{point[0]} {point[1]}"
        pen = "M" if point is None else "L"
    style = f'd="{path}" fill="none" stroke="currentColor" stroke-width="{thick}"{_dash(dash)}'
    return _element("path", style, kind, data, tip)


def area(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """The strip between two lines, lightly filled.

    >>> area([(0, 1), (9, 1)], [(0, 5), (9, 5)])
    '<path d="M0 1L9 1L9 5L0 5Z" fill="currentColor" fill-opacity="0.12"/>'
    """
    edge = "L".join(f"{x} {y}" for x, y in (*upper, *reversed(lower)))
    return f'<path d="M{edge}Z" fill="currentColor" fill-opacity="0.12"/>'


def intervals(spans: Sequence[tuple[float, float, float]]) -> str:
    """An upright stroke at each (x, low, high), all of one series as one path; nothing where there are none.

    >>> intervals([(5, 20, 10)])
    '<path class="w" d="M5 20V10" stroke="currentColor" stroke-opacity="0.55"/>'
    """
    path = "".join(f"M{x} {low}V{high}" for x, low, high in spans)
    return f'<path class="w" d="{path}" stroke="currentColor" stroke-opacity="0.55"/>' if path else ""


def level(box: Box, y: float, tip: str, *, dash: str = "", thick: float = 1.4, kind: str = "base") -> str:
    """A line across the whole chart at one value, such as that of the original data.

    >>> level(Box(0, 0, 9, 9), 4, "original")
    '<path class="base" d="M0 4H9" stroke="#222" stroke-width="1.4"><title>original</title></path>'
    """
    style = f'd="M{box.left} {y}H{box.right}" stroke="{INK}" stroke-width="{thick}"{_dash(dash)}'
    return _element("path", style, kind, {}, tip)


def band(box: Box, top: float, bottom: float) -> str:
    """The strip around a `level` that its interval covers.

    >>> band(Box(0, 0, 9, 9), 2, 5)
    '<rect x="0" y="2" width="9" height="3" fill="#222" fill-opacity="0.07"/>'
    """
    high = round(bottom - top, 1)
    return f'<rect x="{box.left}" y="{top}" width="{box.width}" height="{high}" fill="{INK}" fill-opacity="0.07"/>'


def dot(mark: str, x: float, y: float, *, tip: str = "", **data: int | str | None) -> str:
    """One mark of `definitions` at a point: a series' own, `star`, `gap` or the ring `chosen`.

    >>> dot("star", 5, 7, tip="k = 5", r=3)
    '<use href="#star" x="5" y="7" data-r="3"><title>k = 5</title></use>'
    """
    return _element("use", f'href="#{mark}" x="{x}" y="{y}"', "", data, tip)


def label(
    x: float, y: float, text: str, *, anchor: str = "start", fill: str = "", size: int | None = None
) -> str:
    """A text in the chart.

    >>> label(4, 15, "a < b", size=11)
    '<text x="4" y="15" font-size="11">a &lt; b</text>'
    """
    style = f'x="{x}" y="{y}"'
    style += "" if anchor == "start" else f' text-anchor="{anchor}"'
    style += "" if size is None else f' font-size="{size}"'
    style += f' fill="{fill}"' if fill else ""
    return f"<text {style}>{_text(text)}</text>"


def svg(title: str, description: str, width: int, height: float, parts: Iterable[str]) -> str:
    """A chart with its heading; *description* says what it shows, for those who do not see it.

    >>> svg("Loss", "It rises.", 100, 50, [])[:50]
    '<svg role="img" viewBox="0 0 100 50" width="100" h'
    """
    most = int(width / 7.6)
    head = "".join(
        f'<text x="4" y="{15 + 16 * at}" font-weight="bold" font-size="13">{_text(line)}</text>'
        for at, line in enumerate(_lines(tell(title), most))
    )
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">'
        f"<title>{_text(title)}</title><desc>{_text(description)}</desc>{head}{''.join(parts)}</svg>"
    )


_LETTER = 6.4  # width of one character of an 11-pixel label
_AROUND = ((7, 4, "start"), (-7, 4, "end"), (0, -9, "middle"), (0, 16, "middle"))
_CORNERS = ((6, -6, "start"), (-6, -6, "end"), (6, 13, "start"), (-6, 13, "end"))


def place_labels(
    points: Sequence[tuple[float, float, str]], box: Box
) -> list[tuple[float, float, str] | None]:
    """For each point (x, y, text) where its text may stand: (x, y, anchor), or None where it would cover something.

    Greedy: the first of eight places around a point that is free of marks and of earlier labels. O(points^2) in
    NumPy, once per chart.

    >>> place_labels([(50, 50, "5")], Box(0, 0, 99, 99))
    [(57, 54, 'start')]
    """
    taken = np.array([[x - 5, y - 5, x + 5, y + 5] for x, y, _ in points], dtype=float).reshape(-1, 4)
    out: list[tuple[float, float, str] | None] = []
    for x, y, text in points:
        found = None
        for right, down, anchor in (*_AROUND, *_CORNERS):
            wide = _LETTER * len(text)
            left = x + right - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            top, end, bottom = y + down - 9, left + wide, y + down + 1
            if left < box.left or end > box.right or top < box.top or bottom > box.bottom:
                continue
            # A label may stand where no box that is taken reaches into its own.
            beside = (taken[:, 0] >= end) | (taken[:, 2] <= left)
            if bool(np.all(beside | (taken[:, 1] >= bottom) | (taken[:, 3] <= top))):
                found = (round(x + right, 1), round(y + down, 1), anchor)
                taken = np.vstack([taken, (left, top, end, bottom)])
                break
        out.append(found)
    return out


# ---- bars


@dataclass(frozen=True)
class Bar:
    """One label of a bar chart, with the value of each series and the text that says it with its unit.

    >>> Bar("age", (0.25,), ("25%",)).label
    'age'
    """

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BarChart:
    """Bars of one series, or pairs of two (before and after) on one scale; *upright* for many bins.

    *description* says in words what the chart shows, *axis* names the unit. *in_table* is true when a table of the
    same section has all its figures: where charts cannot be drawn it is then left out.

    >>> chart = BarChart(title="Loss", description="Age loses most.", axis="percent", series=("loss",),
    ...     bars=(Bar("age", (1.0,), ("100%",)), Bar("sex", (0.5,), ("50%",))))
    >>> chart.svg().count("<rect"), chart.shape
    (2, 'bars')
    """

    kind: ClassVar[str] = "chart"
    title: str
    description: str
    axis: str
    series: tuple[str, ...]
    bars: tuple[Bar, ...]
    upright: bool = False
    in_table: bool = False

    @property
    def shape(self) -> str:
        """bars, pairs or columns."""
        return "columns" if self.upright else "bars" if len(self.series) == 1 else "pairs"

    def svg(self) -> str:
        """The chart, 640 pixels wide."""
        left, height, parts = _columns(self) if self.upright else _bars(self)
        unit = label(left, height - 6, self.axis, size=11, fill=SOFT)
        return svg(self.title, self.description, _WIDE, height, [*parts, unit])


_WIDE = 640
_CHARACTER = 6.6  # width of one character of the 12-pixel font, to leave room for labels
_LONGEST = 28  # characters of one line of a label; longer ones take a second line


def _bars(chart: BarChart) -> tuple[float, float, list[str]]:
    """Lying bars, the greatest value over the full width: where they begin, how high all is, and the parts."""
    labels = [_lines(tell(bar.label), _LONGEST) for bar in chart.bars]
    left = int(max((len(line) for lines in labels for line in lines), default=0) * _CHARACTER) + 16
    right = (
        int(max((len(tell(text)) for bar in chart.bars for text in bar.texts), default=0) * _CHARACTER) + 12
    )
    most = max((value for bar in chart.bars for value in bar.values), default=0.0) or 1.0
    if len(chart.series) > 1:
        top, step, thick, colours = 48, 34, 12, (BEFORE, AFTER)
        parts = _legend(left, chart.series)
    else:
        top, step, thick, colours = (
            26,
            22 if all(len(lines) == 1 for lines in labels) else 32,
            15,
            (AFTER, ""),
        )
        parts = []
    height = top + step * len(chart.bars) + 26
    parts.append(f'<line x1="{left}" y1="{top - 4}" x2="{left}" y2="{height - 22}" stroke="{GRID}"/>')
    for number, (bar, lines) in enumerate(zip(chart.bars, labels, strict=True)):
        y = top + number * step
        for at, (value, text) in enumerate(zip(bar.values, bar.texts, strict=True)):
            # A value that is not zero is seen, however small it is beside the others.
            long = max((_WIDE - left - right) * value / most, 1.0 if value > 0 else 0.0)
            row = y + 14 * at
            parts.append(
                f'<rect x="{left}" y="{row}" width="{long:.1f}" height="{thick}" fill="{colours[at]}"/>'
            )
            parts.append(label(round(left + long + 5, 1), row + thick - 3, text))
        whole = f"<title>{_text(bar.label)}</title>" if lines[-1].endswith("…") else ""
        first = y + (18 if len(chart.series) > 1 else 12) - 7 * (len(lines) - 1)
        parts += [
            f'<text x="{left - 8}" y="{first + 14 * at}" text-anchor="end">{whole}{_text(line)}</text>'
            for at, line in enumerate(lines)
        ]
    return left, height, parts


def _columns(chart: BarChart) -> tuple[float, float, list[str]]:
    """Upright pairs over a row of slanted labels, for distributions with many bins; a line marks the scale."""
    top, tall, right = 62, 150, 46
    count = max(len(chart.bars), 1)
    lengths = [min(len(tell(bar.label)), _LONGEST) for bar in chart.bars]
    # A slanted label ends under its bars, so the first ones need room to their left.
    reach = [long * 4.4 - (at + 0.5) * (_WIDE - right) / count for at, long in enumerate(lengths)]
    left = max(12, int(max(reach, default=0)))
    values = [pair for bar in chart.bars for pair in zip(bar.values, bar.texts, strict=True)]
    most, highest = max(values, key=lambda pair: pair[0], default=(0.0, ""))
    wide, end = (_WIDE - left - right) / count, _WIDE - right
    parts = [
        *_legend(left, chart.series),
        f'<line x1="{left}" y1="{top}" x2="{end}" y2="{top}" stroke="{GRID}"/>',
        label(end + 4, top + 4, highest, size=11),
        f'<line x1="{left}" y1="{top + tall}" x2="{end}" y2="{top + tall}" stroke="{INK}"/>',
    ]
    for number, bar in enumerate(chart.bars):
        x = left + number * wide
        for shift, value, text, series, fill in zip(
            (0.06, 0.5), bar.values, bar.texts, chart.series, (BEFORE, AFTER), strict=True
        ):
            high = tall * value / (most or 1.0)
            parts.append(
                f'<rect x="{x + wide * shift:.1f}" y="{top + tall - high:.1f}" width="{wide * 0.42:.1f}" '
                f'height="{high:.1f}" fill="{fill}">'
                f"<title>{_text(bar.label)}, {_text(series)}: {_text(text)}</title></rect>"
            )
        parts.append(
            f'<text transform="translate({x + wide / 2 + 4:.1f} {top + tall + 10}) rotate(-50)" '
            f'text-anchor="end" font-size="11">{_text(_short(tell(bar.label), _LONGEST))}</text>'
        )
    return left, top + tall + 34 + 5 * max(lengths, default=0), parts


def _legend(left: float, series: Sequence[str]) -> list[str]:
    return [
        f'<rect x="{left + 190 * at}" y="26" width="11" height="11" fill="{fill}"/>'
        + label(left + 190 * at + 16, 36, name)
        for at, (name, fill) in enumerate(zip(series, (BEFORE, AFTER), strict=True))
    ]


# ---- small pieces of markup


def tell(text: str) -> str:
    """A sentence in the language spoken now; what is no sentence, such as the name of a column, as it is.

    >>> tell("rows")
    'rows'
    """
    return told(text) if isinstance(text, Sentence) else text


def _text(text: str) -> str:
    return escape(tell(text))


def _lines(text: str, most: int) -> list[str]:
    """A text on one line or two, cut where a word ends; only what two lines cannot hold is left out."""
    if len(text) <= most:
        return [text]
    space = text.rfind(" ", 0, most + 1)
    at = space if space > most // 3 else most
    return [text[:at].strip(), _short(text[at:].strip(), most)]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _dash(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""


def _named(kind: str, data: Mapping[str, int | str | None]) -> str:
    told = "".join(
        f' data-{name}="{escape(str(value))}"' for name, value in data.items() if value is not None
    )
    return (f' class="{kind}"' if kind else "") + told


def _element(tag: str, style: str, kind: str, data: Mapping[str, int | str | None], tip: str) -> str:
    # The class comes first and the data last, whatever stands between.
    opening = f"<{tag}{_named(kind, {})} {style}{_named('', data)}"
    return f"{opening}><title>{_text(tip)}</title></{tag}>" if tip else f"{opening}/>"
