"""Looks: the colour, mark and dash by which a method, a promise or a k is told from the others, on screen and in print.

Colour alone never tells: methods differ in colour and mark, promises in dash and in full or hollow marks. Every colour
has a contrast of at least 4.5 to 1 on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.page.figures import promise_name
from velado.study.report.charts import AFTER

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
