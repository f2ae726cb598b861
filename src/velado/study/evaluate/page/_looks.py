"""Looks: the colour, mark and dash by which a method, a promise or a k is told from the others, on screen and in print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from velado.report import charts
from velado.report.charts import INK, SOFT, LegendEntry, swatch
from velado.study.evaluate._amounts import promises
from velado.study.evaluate.analysis import ReleaseSetting
from velado.text import say

ORIGINAL_DATA = say("original data")
COMMONEST = say("commonest class")


@dataclass(frozen=True)
class Looks:
    """The methods, promises and k of a study in the order they are told apart; the original data stand outside.

    >>> looks = Looks.of([ReleaseSetting("original"), ReleaseSetting("mdav", 5), ReleaseSetting("das")])
    >>> looks.methods, looks.ks, looks.mark(ReleaseSetting("das")), looks.mark(ReleaseSetting("original"))
    (('mdav', 'das'), (5, None), 'm1', 'star')
    """

    methods: tuple[str, ...]
    promises: tuple[str, ...]
    ks: tuple[int | None, ...]

    @classmethod
    def of(cls, settings: Iterable[ReleaseSetting]) -> Looks:
        """The looks of everything that occurs."""
        changed = [one for one in settings if not one.is_original]
        ks = sorted({one.k for one in changed}, key=lambda k: (k is None, k or 0))
        methods = dict.fromkeys(one.method for one in changed)
        return cls(tuple(methods), tuple(dict.fromkeys(one.guarantees for one in changed)), tuple(ks))

    def tags(self, setting: ReleaseSetting) -> dict[str, int]:
        """The numbers by which filters know a setting."""
        if setting.is_original:
            return {}
        return {"m": self.methods.index(setting.method), "g": self.promises.index(setting.guarantees)}

    def colour(self, setting: ReleaseSetting) -> str:
        """The colour of its method."""
        return INK if setting.is_original else charts.colour(self.methods.index(setting.method))

    def mark(self, setting: ReleaseSetting) -> str:
        """The mark of its method, hollow for every promise but the first."""
        if setting.is_original:
            return "star"
        hollow = self.promises.index(setting.guarantees) > 0
        return charts.mark(self.methods.index(setting.method), hollow)

    def dash(self, setting: ReleaseSetting) -> str:
        """The dash of its promise; the first one is drawn through."""
        return "" if setting.is_original else charts.dash(self.promises.index(setting.guarantees))

    def group(self, setting: ReleaseSetting, parts: Iterable[str]) -> str:
        """The parts of one series in its colour."""
        tags = self.tags(setting)
        return charts.group(parts, self.colour(setting), m=tags.get("m"), g=tags.get("g"))

    def legend(self, only: Iterable[str] | None = None) -> list[LegendEntry]:
        """Methods by colour and mark, promises by dash; *only* these methods, or all."""
        shown = self.methods if only is None else set(only)
        entries = [
            LegendEntry(name, swatch(charts.colour(at), dash="", mark=charts.mark(at)), {"m": at})
            for at, name in enumerate(self.methods)
            if name in shown
        ]
        if len(self.promises) > 1 and only is None:
            entries += [
                LegendEntry(
                    promises(one) or say("k alone"),
                    swatch(SOFT, dash=charts.dash(at), mark=charts.mark(0, hollow=at > 0)),
                    {"g": at},
                )
                for at, one in enumerate(self.promises)
            ]
        return entries
