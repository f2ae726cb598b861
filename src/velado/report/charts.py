"""Charts as inline SVG: no script, no network, readable aloud (title and description) and in print.

Every function takes finished texts and numbers and returns one `<svg>`; all text is escaped here. An inline
`<svg>` needs no namespace, so the page holds no address at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

BEFORE = "#9a6b1f"
AFTER = "#1f5f8b"
_INK = "#222"
_GRID = "#d8d8d8"
_CHARACTER = 6.6  # width of one character of the 12-pixel font, to leave room for labels
_LONGEST = 28  # characters of one line of a label; longer ones take a second line
_SLANTED = 28


@dataclass(frozen=True)
class Bar:
    """One labelled bar: *value* sets its length, *text* says the value with its unit."""

    label: str
    value: float
    text: str


@dataclass(frozen=True)
class Pair:
    """One labelled pair of bars, before and after."""

    label: str
    before: Bar
    after: Bar


def bars(title: str, description: str, items: Sequence[Bar], axis: str, colour: str = AFTER) -> str:
    """Horizontal bars, one per item, longest value over the full width."""
    left = _label_width([item.label for item in items])
    right = _text_width([item.text for item in items])
    top, step = 26, 22 if all(len(_lines(item.label)) == 1 for item in items) else 32
    height = top + step * len(items) + 26
    most = max((item.value for item in items), default=0.0) or 1.0
    parts = [_upright(left, top, height)]
    for number, item in enumerate(items):
        y = top + number * step
        parts.append(_row(item, y, left, 640 - left - right, most, colour, 15))
        parts.append(_label(item.label, left, y + 12))
    return _svg(title, description, height, parts, axis, left)


def paired_bars(
    title: str, description: str, items: Sequence[Pair], axis: str, before: str, after: str
) -> str:
    """Two horizontal bars per item on one scale, with a legend."""
    left = _label_width([item.label for item in items])
    right = _text_width([text for item in items for text in (item.before.text, item.after.text)])
    top, step = 48, 34
    height = top + step * len(items) + 26
    most = max((max(i.before.value, i.after.value) for i in items), default=0.0) or 1.0
    parts = [
        *_legend(left, before, after),
        _upright(left, top, height),
    ]
    for number, item in enumerate(items):
        y = top + number * step
        width = 640 - left - right
        parts.append(_row(item.before, y, left, width, most, BEFORE, 12))
        parts.append(_row(item.after, y + 14, left, width, most, AFTER, 12))
        parts.append(_label(item.label, left, y + 18))
    return _svg(title, description, height, parts, axis, left)


def columns(title: str, description: str, items: Sequence[Pair], axis: str, before: str, after: str) -> str:
    """Upright pairs of bars over a row of labels, for distributions with many bins; a line marks the scale."""
    top, tall, right = 62, 150, 46
    # A slanted label ends under its bars, so the first ones need room to their left.
    rough = (640 - right) / max(len(items), 1)
    reach = [min(len(item.label), _SLANTED) * 4.4 - (at + 0.5) * rough for at, item in enumerate(items)]
    left = max(12, int(max(reach, default=0)))
    pairs = [side for item in items for side in (item.before, item.after)]
    highest = max(pairs, key=lambda side: side.value, default=Bar("", 0.0, ""))
    most = highest.value or 1.0
    wide = (640 - left - right) / max(len(items), 1)
    parts = [
        *_legend(left, before, after),
        f'<line x1="{left}" y1="{top}" x2="{640 - right}" y2="{top}" stroke="{_GRID}"/>',
        f'<text x="{640 - right + 4}" y="{top + 4}" font-size="11">{escape(highest.text)}</text>',
        f'<line x1="{left}" y1="{top + tall}" x2="{640 - right}" y2="{top + tall}" stroke="{_INK}"/>',
    ]
    for number, item in enumerate(items):
        x = left + number * wide
        for shift, side, series, colour in (
            (0.06, item.before, before, BEFORE),
            (0.5, item.after, after, AFTER),
        ):
            high = tall * side.value / most
            parts.append(
                f'<rect x="{x + wide * shift:.1f}" y="{top + tall - high:.1f}" width="{wide * 0.42:.1f}" '
                f'height="{high:.1f}" fill="{colour}">'
                f"<title>{escape(item.label)}, {escape(series)}: {escape(side.text)}</title></rect>"
            )
        parts.append(
            f'<text transform="translate({x + wide / 2 + 4:.1f} {top + tall + 10}) rotate(-50)" '
            f'text-anchor="end" font-size="11">{escape(_short(item.label, _SLANTED))}</text>'
        )
    labels = max((min(len(item.label), _SLANTED) for item in items), default=0)
    return _svg(title, description, top + tall + 34 + int(labels * 5), parts, axis, left)


def _legend(left: float, before: str, after: str) -> list[str]:
    return [
        f'<rect x="{left}" y="26" width="11" height="11" fill="{BEFORE}"/>',
        f'<text x="{left + 16}" y="36">{escape(before)}</text>',
        f'<rect x="{left + 190}" y="26" width="11" height="11" fill="{AFTER}"/>',
        f'<text x="{left + 206}" y="36">{escape(after)}</text>',
    ]


def _upright(left: float, top: float, height: float) -> str:
    return f'<line x1="{left}" y1="{top - 4}" x2="{left}" y2="{height - 22}" stroke="{_GRID}"/>'


def _row(bar: Bar, y: float, left: float, width: float, most: float, colour: str, thick: int) -> str:
    length = max(width * bar.value / most, 1.0 if bar.value > 0 else 0.0)
    return (
        f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{thick}" fill="{colour}"/>'
        f'<text x="{left + length + 5:.1f}" y="{y + thick - 3}">{escape(bar.text)}</text>'
    )


def _label(text: str, left: float, y: float) -> str:
    lines = _lines(text)
    whole = f"<title>{escape(text)}</title>" if lines[-1].endswith("…") else ""
    top = y - 7 * (len(lines) - 1)
    return "".join(
        f'<text x="{left - 8}" y="{top + 14 * at}" text-anchor="end">{whole}{escape(line)}</text>'
        for at, line in enumerate(lines)
    )


def _lines(text: str) -> list[str]:
    """A label on one line or two, cut where a word ends; only what two lines cannot hold is left out."""
    if len(text) <= _LONGEST:
        return [text]
    space = text.rfind(" ", 0, _LONGEST + 1)
    at = space if space > _LONGEST // 3 else _LONGEST
    return [text[:at].strip(), _short(text[at:].strip(), _LONGEST)]


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _label_width(labels: Sequence[str]) -> int:
    longest = max((len(line) for label in labels for line in _lines(label)), default=0)
    return int(longest * _CHARACTER) + 16


def _text_width(texts: Sequence[str]) -> int:
    return int(max((len(text) for text in texts), default=0) * _CHARACTER) + 12


def _svg(title: str, description: str, height: float, parts: Sequence[str], axis: str, left: float) -> str:
    body = "".join(parts)
    return (
        f'<svg role="img" viewBox="0 0 640 {height}" width="640" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{_INK}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f'<text x="0" y="14" font-weight="bold" font-size="13">{escape(title)}</text>'
        f"{body}"
        f'<text x="{left}" y="{height - 6}" font-size="11" fill="#555">{escape(axis)}</text></svg>'
    )
