"""Axes, scales and labels of a chart as inline SVG. All text is escaped here; an inline `<svg>` needs no namespace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
import numpy.typing as npt

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
