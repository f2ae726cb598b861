"""Model quality against k: one panel per model, with intervals, the original data's line and the commonest class's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velado.report import charts
from velado.report.blocks import Drawing
from velado.report.charts import DOTTED, Box, Scale
from velado.study.evaluate._amounts import better_when_smaller, called, figure, is_share, span, tick
from velado.study.evaluate.analysis import MAJORITY, ReleaseSetting, StudyRow
from velado.study.evaluate.page._looks import COMMONEST, ORIGINAL_DATA, Looks
from velado.study.evaluate.page._study_tables import k_text
from velado.study.evaluate.page._tradeoff import with_promise
from velado.study.evaluate.study_outcome import StudyFacts
from velado.text import join, say

WIDTH, HEIGHT = 470, 310
BOX = Box(58, 56, 458, 262)
Numbered = tuple[int, StudyRow]
"""A line of the table of all figures, with its place in it."""


def drawings(
    facts: StudyFacts, lines: Sequence[StudyRow], models: Sequence[str], looks: Looks
) -> list[Drawing]:
    """Every panel: protocol by quality by model. *lines* are those of the table, known by their place in it."""
    out = []
    for protocol in facts.recipe.analyses.protocols:
        here = [(at, row) for at, row in enumerate(lines) if row.protocol == protocol]
        for metric in facts.recipe.metrics.quality:
            first = protocol == facts.protocol and metric == facts.main
            common = next((row[metric].mean for _, row in here if row.model == MAJORITY), None)
            for place, model in enumerate(models):
                own = [(at, row) for at, row in here if row.model == model]
                panel = _Panel(facts, own, common, model, metric, looks, tips=first)
                finding = panel.finding()
                title = say("{model}: {metric}", model=model, metric=called(metric))
                out.append(
                    Drawing(
                        charts.svg(title, finding, WIDTH, HEIGHT, panel.parts()),
                        finding,
                        data={"metric": metric, "protocol": protocol, "o": place},
                        hidden=not first,
                    )
                )
    return out


def better(metric: str) -> str:
    """The quality of an axis, and which way is better.

    >>> better("log_loss")
    'log loss, lower is better'
    """
    way = say("lower is better") if better_when_smaller(metric) else say("higher is better")
    return join([called(metric), way], ", ")


@dataclass(frozen=True)
class _Panel:
    facts: StudyFacts
    rows: Sequence[Numbered]
    common: float | None
    model: str
    metric: str
    looks: Looks
    tips: bool

    @property
    def known(self) -> list[StudyRow]:
        """The releases whose quality is known."""
        return [
            row for _, row in self.rows if not row.setting.is_original and row[self.metric].mean is not None
        ]

    @property
    def base(self) -> StudyRow | None:
        """The same model on the original rows."""
        rows = (row for _, row in self.rows if row.setting.is_original and row[self.metric].mean is not None)
        return next(rows, None)

    def scale(self) -> Scale:
        """Holds every value and interval; no share lies above one."""
        rows = [*self.known, *([self.base] if self.base else [])]
        found = [end for row in rows for end in row[self.metric].ends]
        values = [value for value in (*found, self.common) if value is not None]
        if not is_share(self.metric) or not values:
            return Scale.over(values, BOX.bottom, BOX.top)
        return Scale.over([min(max(value, 0.0), 1.0) for value in values], BOX.bottom, BOX.top, most=1.0)

    def parts(self) -> list[str]:
        """Axes, levels, and one group for each method and promise, side by side within each k."""
        up, ks = self.scale(), self.looks.ks
        columns = {k: BOX.left + BOX.width * (at + 0.5) / len(ks) for at, k in enumerate(ks)}
        axes = charts.axes(
            BOX,
            across=[(round(x, 1), say("no k") if k is None else str(k)) for k, x in columns.items()],
            up=up.marks(34, lambda value: tick(self.metric, value)),
            across_title="k",
            up_title=better(self.metric),
        )
        series: dict[ReleaseSetting, list[Numbered]] = {}
        for at, row in self.rows:
            if not row.setting.is_original:
                series.setdefault(
                    ReleaseSetting(row.setting.method, None, row.setting.guarantees), []
                ).append((at, row))
        step = min(9.0, 0.7 * BOX.width / len(ks) / max(len(series), 1)) if ks else 0.0
        groups = []
        for place, (setting, own) in enumerate(series.items()):
            shift = step * (place - (len(series) - 1) / 2)
            places = {k: round(x + shift, 1) for k, x in columns.items()}
            groups.append(self.looks.group(setting, self.series(setting, own, places, up)))
        return [axes, *self.levels(up), *groups]

    def levels(self, up: Scale) -> list[str]:
        """The original data with their interval, and always saying the commonest class."""
        out = []
        if self.base is not None:
            found = self.base[self.metric]
            if found.low is not None and found.high is not None:
                out.append(charts.band(BOX, up.within(found.high), up.within(found.low)))
            tip = join([ORIGINAL_DATA, span(self.metric, found)], ": ")
            out.append(charts.level(BOX, up.at(found.mean or 0.0), tip))
        if self.common is not None:
            tip = join([COMMONEST, figure(self.metric, self.common)], ": ")
            out.append(charts.level(BOX, up.at(self.common), tip, dash=DOTTED, thick=1.6, kind="common"))
        return out

    def series(
        self, setting: ReleaseSetting, own: Sequence[Numbered], places: Mapping[int | None, float], up: Scale
    ) -> list[str]:
        """One method and promise: a line over k, its intervals, its marks, and a cross for what is missing."""
        known = [(at, row, row[self.metric]) for at, row in own if row[self.metric].mean is not None]
        known.sort(key=lambda one: one[1].setting.order)
        path = [
            (places[row.setting.k], up.at(found.mean or 0.0))
            for _, row, found in known
            if row.setting.k is not None
        ]
        parts = [charts.line(path, dash=self.looks.dash(setting))] if len(path) > 1 else []
        spans = [
            (places[row.setting.k], up.within(found.low), up.within(found.high))
            for _, row, found in known
            if found.low is not None and found.high is not None
        ]
        parts.append(charts.intervals(spans))
        for at, row, found in known:
            told = join([self.model, span(self.metric, found)], ": ")
            tip = join([row.setting.name, told], "\n") if self.tips else ""
            spot = (places[row.setting.k], up.at(found.mean or 0.0))
            parts.append(charts.dot(self.looks.mark(row.setting), *spot, tip=tip, r=at))
        seeds = self.facts.reported
        for at, row in own:
            done = 0 if row[self.metric].mean is None else row.seeds
            if done < seeds:
                tip = say(
                    "{setting}: {missing} of {seeds} seeds missing",
                    setting=row.setting.name,
                    missing=seeds - done,
                    seeds=seeds,
                )
                parts.append(charts.dot("gap", places[row.setting.k], BOX.bottom - 5, tip=tip, r=at, gap=1))
        return parts

    def finding(self) -> str:
        """What the panel shows, in words: best and worst at the recommended k, the original data, the commonest class."""
        metric, name, rows = self.metric, called(self.metric), self.known
        if not rows:
            return say("No value of {metric} is known for {model}.", metric=name, model=self.model)
        choice = rows[0].setting if self.facts.choice is None else self.facts.choice.setting
        level = [
            row for row in rows if (row.setting.k, row.setting.guarantees) == (choice.k, choice.guarantees)
        ]
        level = level or [row for row in rows if row.setting.k == rows[0].setting.k]
        level.sort(key=lambda row: row[metric].mean or 0.0, reverse=not better_when_smaller(metric))
        best, worst = level[0], level[-1]
        said: list[str] = [
            say(
                "At k = {k}{promise}, {best} keeps most of {metric} ({best_value}) and {worst} least ({worst_value})."
                if len(level) > 1
                else "At k = {k}{promise}, {best} has {metric} {best_value}.",
                k=k_text(best.setting),
                promise=with_promise(best.setting),
                metric=name,
                best=best.setting.method,
                best_value=span(metric, best[metric]),
                worst=worst.setting.method,
                worst_value=span(metric, worst[metric]),
            )
        ]
        if self.base is not None:
            said.append(say("The original data give {value}.", value=span(metric, self.base[metric])))
        if self.common is not None:
            value = figure(metric, self.common)
            said.append(say("Always saying the commonest class gives {value}.", value=value))
        return join(said)
