"""A reproduction's table as a figure: what was published and what comes out here over one another, drawn with the one chart kit.

Rows are laid across by one column, split into panels by others (a method, a table), and every further column of numbers is a
line; a published range of words ("0.90 to 0.95") is a band. A table whose rows are names becomes bars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velado.report import charts
from velado.text import NOTHING, few_digits, join, say

Cell = str | int | float | None
_MOST_BARS = 24
_FEW = 12
"""Up to so many different values stand at equal distances; more of them, on a scale."""
_STRETCH = 200.0
"""Values that differ by more than this factor are drawn by their powers of ten."""
_MOST_MARKS = 30
"""A line of more points is drawn without marks."""
_WIDE, _HIGH, _LEGEND_LINE = 660, 132, 18
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_NOWHERE = ("-", None)
"""What stands in the column across where a row holds for every value: the original data, the commonest class."""


@dataclass(frozen=True)
class Drawn:
    """Which columns lie *across*, make the *panels* and are the *lines*, by number; what is not said is found in the table.

    *scaled* puts even few values on a scale; *apart* gives every panel its own heights;
    *marked* is a column whose words, other than "figure only", stand at an upright line.

    >>> Drawn(across=3, panels=(0,)).lines
    ()
    """

    across: int | None = None
    panels: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    scaled: bool = False
    apart: bool = False
    marked: int | None = None


def figure_svg(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], drawn: Drawn
) -> str | None:
    """The figure as the text of an SVG file, in the language spoken; None where there is nothing to draw.

    >>> text = figure_svg("Loss", ("k", "published", "ours"), ((3, 0.1, 0.2), (5, 0.2, 0.3)), Drawn())
    >>> text.count('<g class="s"'), text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    (2, True)
    """
    plot = _Plot.of(title, columns, rows, drawn)
    if not plot.lines or not rows:
        return None
    made = plot.bars() if plot.across is None else plot.panelled()
    return made.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


@dataclass(frozen=True, kw_only=True)
class _Plot:
    """A table and what is drawn of it; *powers* where heights are powers of ten."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    across: int | None
    panels: tuple[int, ...]
    lines: tuple[int, ...]
    drawn: Drawn

    @classmethod
    def of(cls, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], drawn: Drawn) -> _Plot:
        across = drawn.across
        if across is None and (drawn.panels or not all(_is_name(row[0]) for row in rows)):
            across = 0
        taken = {*drawn.panels, across or 0}
        lines = drawn.lines or tuple(
            at
            for at, name in enumerate(columns)
            if at not in taken
            and not _is_spread(name)
            and any(_span(row[at], name) is not None for row in rows)
        )
        panels = drawn.panels or (() if across is None else _panel_column(columns, rows, across, lines))
        return cls(
            title=title,
            columns=columns,
            rows=rows,
            across=across,
            panels=panels,
            lines=lines,
            drawn=drawn,
        )

    def bars(self) -> str:
        """A lying bar, or a pair of them, for every row."""
        chosen = self.lines[:2]
        bars = []
        for row in self.rows[:_MOST_BARS]:
            spans = [_span(row[at], self.columns[at]) for at in chosen]
            values = tuple(0.0 if one is None else one[1] for one in spans)
            texts = tuple(NOTHING if one is None else few_digits(one[1]) for one in spans)
            bars.append(charts.Bar(_words(row[0]), values, texts))
        names = tuple(self.columns[at] for at in chosen)
        axis = names[0] if len(names) == 1 else ""
        chart = charts.BarChart(
            title=self.title, description=self._told(), axis=axis, series=names, bars=tuple(bars)
        )
        return chart.svg()

    def panelled(self) -> str:
        """Lines across, in one panel or several with the same height."""
        split: dict[tuple[Cell, ...], list[Sequence[Cell]]] = {}
        levels = []
        for row in self.rows:
            if row[self.across or 0] in _NOWHERE:
                levels.append(row)
            else:
                split.setdefault(tuple(row[at] for at in self.panels), []).append(row)
        heights = self._heights(self.rows)
        wide = 3 if len(split) == 3 or len(split) > 4 else 2 if len(split) > 1 else 1
        long = len(charts.tell(self.title)) > int(_WIDE / 7.6)
        legend, top = self._legend(52 if long else 36)
        step, high = (_WIDE - 8) / wide, _HIGH if wide > 1 else 1.4 * _HIGH
        parts = [charts.definitions(), *legend]
        for number, (key, rows) in enumerate(split.items()):
            left, start = 8 + step * (number % wide), top + 14 + (number // wide) * (high + 60)
            box = charts.Box(round(left + 52, 1), start, round(left + step - 10, 1), start + high)
            own = self._heights(rows) if self.drawn.apart else heights
            parts.append(self._panel(_words(*key), rows, levels, box, own))
        height = top + math.ceil(len(split) / wide) * (high + 60)
        return charts.svg(self.title, self._told(), _WIDE, height, parts)

    def _heights(self, rows: Sequence[Sequence[Cell]]) -> _Heights:
        spans = [_span(row[at], self.columns[at]) for row in rows for at in self.lines]
        return _Heights.over([value for span in spans if span is not None for value in span])

    def _told(self) -> str:
        names = join([self.columns[at] for at in self.lines], "; ")
        across = say("the rows") if self.across is None else self.columns[self.across]
        return say("{names}, by {across}.", names=names, across=across)

    def _legend(self, top: float) -> tuple[list[str], float]:
        """One line for each series, and where they end."""
        parts = []
        for order, at in enumerate(self.lines):
            y = top + _LEGEND_LINE * order
            parts.append(_swatch(self.columns[at], order, y))
        return parts, top + _LEGEND_LINE * len(self.lines)

    def _panel(
        self,
        name: str,
        rows: Sequence[Sequence[Cell]],
        levels: Sequence[Sequence[Cell]],
        box: charts.Box,
        heights: _Heights,
    ) -> str:
        across = self.across or 0
        up = heights.scale(box)
        cells = list(dict.fromkeys(row[across] for row in rows))
        numbers = [_number(cell) for cell in cells]
        if all(one is not None for one in numbers) and (self.drawn.scaled or len(cells) > _FEW):
            known = [one for one in numbers if one is not None]
            scale = charts.Scale.over(known, box.left, box.right)
            places = {cell: scale.at(one) for cell, one in zip(cells, known, strict=True)}
            ticks = scale.marks(56, few_digits)
        else:
            apart = box.width / len(cells)
            places = {cell: round(box.left + apart * (at + 0.5), 1) for at, cell in enumerate(cells)}
            ticks = [(x, _words(cell)) for cell, x in places.items()]
        parts = [
            charts.label(box.left, box.top - 8, name),
            charts.axes(
                box,
                across=ticks,
                up=heights.marks(up),
                across_title=self.columns[across],
                up_title="",
            ),
        ]
        for row in levels:
            for at in self.lines:
                span = _span(row[at], self.columns[at])
                if span is not None:
                    tip = say("{name}: {value}", name=_row_name(row), value=few_digits(span[0]))
                    parts.append(charts.level(box, up.at(heights.of(span[0])), tip, dash=charts.DOTTED))
        parts += self._marked(rows, places, box)
        # What was published lies on top of what equals it.
        for order, at in sorted(enumerate(self.lines), key=lambda pair: _is_published(self.columns[pair[1]])):
            name = self.columns[at]
            found = [(places[row[across]], _span(row[at], name)) for row in rows]
            known_points = [(x, *span) for x, span in found if span is not None]
            if known_points:
                parts.append(_series(name, order, known_points, up, heights))
        return "".join(parts)

    def _marked(
        self, rows: Sequence[Sequence[Cell]], places: Mapping[Cell, float], box: charts.Box
    ) -> list[str]:
        if self.drawn.marked is None:
            return []
        parts = []
        for row in rows:
            word, x = row[self.drawn.marked], places[row[self.across or 0]]
            if isinstance(word, str) and word != "figure only":
                parts.append(
                    charts.group([charts.intervals([(x, box.bottom, box.top)])], charts.INK, kind="w")
                )
                parts.append(charts.label(round(x + 4, 1), box.top + 10, word, size=11))
        return parts


@dataclass(frozen=True)
class _Heights:
    """All values of a figure, so that its panels can be compared; by powers of ten where they differ that much."""

    least: float
    most: float
    powers: bool

    @classmethod
    def over(cls, values: Sequence[float]) -> _Heights:
        least, most = min(values), max(values)
        return cls(least, most, least > 0 and most / least > _STRETCH)

    def of(self, value: float) -> float:
        return math.log10(value) if self.powers else value

    def scale(self, box: charts.Box) -> charts.Scale:
        return charts.Scale.over([self.of(self.least), self.of(self.most)], box.bottom, box.top)

    def marks(self, scale: charts.Scale) -> list[tuple[float, str]]:
        if not self.powers:
            return scale.marks(30, few_digits)
        return [(scale.at(tick), f"1e{tick:.0f}") for tick in scale.ticks(30) if float(tick).is_integer()]


def _series(
    name: str,
    order: int,
    points: Sequence[tuple[float, float, float]],
    up: charts.Scale,
    heights: _Heights,
) -> str:
    """One line with its marks; a band where the values are ranges."""
    colour, mark, dash = _look(name, order)
    lower = [(x, up.at(heights.of(low))) for x, low, _ in points]
    upper = [(x, up.at(heights.of(high))) for x, _, high in points]
    parts = []
    if lower != upper:
        parts.append(charts.area(upper, lower))
    parts.append(charts.line(upper, dash=dash))
    if lower != upper:
        parts.append(charts.line(lower, dash=dash))
    elif len(points) <= _MOST_MARKS:
        parts += [charts.dot(mark, x, y) for x, y in upper]
    return charts.group(parts, colour)


def _look(name: str, order: int) -> tuple[str, str, str]:
    """Colour, mark and dash of a line; what was published is always drawn alike."""
    if _is_published(name):
        return charts.INK, "star", "6 3"
    return charts.colour(order), charts.mark(order), ""


def _swatch(name: str, order: int, y: float) -> str:
    colour, mark, dash = _look(name, order)
    picture = charts.swatch(colour, dash=dash, mark=mark)
    return f'<g transform="translate(8 {y - 14})">{picture}</g>' + charts.label(50, y, name)


def _is_published(name: str) -> bool:
    return str(name).startswith("published")


def _is_spread(name: str) -> bool:
    """Whether a column is the deviation of another, which would be a line of its own kind."""
    return str(name).split(" ")[0] == "sd"


def _is_name(cell: Cell) -> bool:
    return isinstance(cell, str) and _number(cell) is None and cell not in _NOWHERE


def _number(cell: Cell) -> float | None:
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return None


def _span(cell: Cell, name: str) -> tuple[float, float] | None:
    """The number of a cell, as low and high; the range of words in a published one; None where there is neither."""
    if isinstance(cell, int | float):
        return (float(cell), float(cell)) if math.isfinite(cell) else None
    if isinstance(cell, str) and _is_published(name):
        found = [float(one) for one in _NUMBERS.findall(str(cell))]
        return (found[0], found[-1]) if found else None
    return None


def _panel_column(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], across: int, lines: tuple[int, ...]
) -> tuple[int, ...]:
    """The first column of words, other than those about the table itself, whose words come again."""
    for at, name in enumerate(columns):
        if at == across or at in lines or str(name) in ("promise", "note") or _is_published(name):
            continue
        cells = [row[at] for row in rows if row[across] not in _NOWHERE]
        if all(isinstance(cell, str) for cell in cells) and 1 < len(set(cells)) < len(cells):
            return (at,)
    return ()


def _row_name(row: Sequence[Cell]) -> str:
    return next((cell for cell in row if isinstance(cell, str) and _is_name(cell)), "")


def _words(*cells: Cell) -> str:
    """Cells as a text; a sentence stays one, to be told when it is drawn."""
    texts = [
        cell if isinstance(cell, str) else few_digits(cell) if cell is not None else NOTHING for cell in cells
    ]
    return texts[0] if len(texts) == 1 else join(texts, ", ")
