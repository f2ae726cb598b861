"""Loss against risk: one line per method and promise, k along it; one chart for each loss and risk that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velado.measures.measure_registry import losses, risks
from velado.report import charts
from velado.report.blocks import Drawing
from velado.report.charts import Box, Scale
from velado.study.evaluate._amounts import called, commas, dropped, figure, is_share, promises, span, tick
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate.analysis import ReleaseSetting, StudyRow
from velado.study.evaluate.page._looks import Looks
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.study_outcome import StudyFacts
from velado.text import join, say, told

WIDTH, HEIGHT = 720, 430
BOX = Box(62, 56, 704, 380)
_SCALES: dict[charts.Kind, str] = {
    "linear": "",
    "log": say(" (logarithmic scale)"),
    "root": say(" (square-root scale)"),
}


@dataclass(frozen=True, kw_only=True)
class SettingTip:
    """What is shown when a setting is pointed at, part by part: the script picks the measures that are drawn."""

    head: str
    measures: Mapping[str, str]
    drop: str
    models: tuple[str, ...]

    def tip(self, row: StudyRow) -> str:
        """All that is known of it, for readers without a script."""
        known = [line for name, line in self.measures.items() if row[name].mean is not None]
        return join([self.head, *known, self.drop, *self.models], "\n")


def settings_of(facts: StudyFacts) -> list[StudyRow]:
    """One row per setting under the study's protocol; its place is what the charts and the script know it by."""
    scope = protocol_named(facts.protocol).scope
    return [row for row in facts.releases if row.scope == scope]


def texts_of(settings: Sequence[StudyRow], facts: StudyFacts, models: Sequence[str]) -> list[SettingTip]:
    """What is told of each setting."""
    main = facts.main
    head = say("points of {name} lost" if is_share(main) else "rise of {name}", name=called(main))
    drops = {row.setting: row["drop"] for row in facts.tradeoff}
    quality = {(row.setting, row.model): row for row in facts.quality if row.protocol == facts.protocol}

    def model_text(setting: ReleaseSetting, model: str) -> str:
        found = quality.get((setting, model), StudyRow(setting=setting))
        return join([join([model, ":"], ""), called(main), span(main, found[main])])

    return [
        SettingTip(
            head=row.setting.name,
            measures={
                name: join([called(name), span(name, row[name])], ": ") for name in (*losses(), *risks())
            },
            drop=join([head, dropped(main, (drops.get(row.setting) or row["drop"]), facts.limit)], ": "),
            models=tuple(model_text(row.setting, model) for model in models),
        )
        for row in settings
    ]


def measured(settings: Sequence[StudyRow], names: Sequence[str], first: str) -> list[str]:
    """The measures that some setting has, the study's own one first."""
    others = (name for name in names if name != first and any(row[name].mean is not None for row in settings))
    return [first, *others]


def drawings(
    facts: StudyFacts, settings: Sequence[StudyRow], texts: Sequence[SettingTip], looks: Looks
) -> list[Drawing]:
    """Every chart; the first is the study's own choice, the others wait for the reader's."""
    metrics = facts.recipe.metrics
    pairs = [
        (loss, risk)
        for loss in measured(settings, losses(), metrics.loss)
        for risk in measured(settings, risks(), metrics.risk)
    ]
    return [
        _Chart(facts, settings, loss, risk, looks).drawing(texts if at == 0 else None)
        for at, (loss, risk) in enumerate(pairs)
    ]


@dataclass(frozen=True)
class _Chart:
    facts: StudyFacts
    settings: Sequence[StudyRow]
    loss: str
    risk: str
    looks: Looks

    def drawing(self, texts: Sequence[SettingTip] | None) -> Drawing:
        """The chart; with *texts* its points have tooltips."""
        name = say("{loss} against {risk}", loss=called(self.loss), risk=called(self.risk))
        said = told(name)
        finding = self.finding()
        missing = [row.setting.name for row in self.settings if None in self.figures(row)]
        return Drawing(
            charts.svg(said[:1].upper() + said[1:], finding, WIDTH, HEIGHT, self.parts(texts)),
            finding,
            say("Not drawn, because loss or risk is not known: {names}.", names=commas(missing, "; "))
            if missing
            else "",
            {"loss": self.loss, "risk": self.risk},
            hidden=texts is None,
            wide=True,
        )

    def figures(self, row: StudyRow) -> tuple[float | None, float | None]:
        """Loss and risk."""
        return row[self.loss].mean, row[self.risk].mean

    def parts(self, texts: Sequence[SettingTip] | None) -> list[str]:
        """Axes and lines; marks and their labels lie above all lines, so that no line strikes a number through."""
        known = [
            (at, row, risk, loss)
            for at, row in enumerate(self.settings)
            for loss, risk in (self.figures(row),)
            if loss is not None and risk is not None
        ]
        kind = scale_kind([risk for _, _, risk, _ in known])
        across = Scale.over([risk for _, _, risk, _ in known], BOX.left + 8, BOX.right - 8, kind)
        up = Scale.over([loss for *_, loss in known], BOX.bottom, BOX.top)
        spots = [(at, row.setting, across.at(risk), up.at(loss)) for at, row, risk, loss in known]
        labels = charts.place_labels([(x, y, _label(setting)) for _, setting, x, y in spots], BOX)
        series: dict[ReleaseSetting, list[int]] = {}
        for place, (_, setting, _, _) in enumerate(spots):
            series.setdefault(ReleaseSetting(setting.method, None, setting.guarantees), []).append(place)
        lines, above = [], []
        for setting, places in series.items():
            # k along the line; a method without k is one point.
            places.sort(key=lambda place: spots[place][1].order)
            if len(places) > 1:
                path = [spots[place][2:] for place in places]
                lines.append(self.looks.group(setting, [charts.line(path, dash=self.looks.dash(setting))]))
            marks = []
            for place in places:
                at, own, x, y = spots[place]
                if self.facts.choice is not None and own == self.facts.choice.setting:
                    marks.append(charts.dot("chosen", x, y))
                tip = "" if texts is None else texts[at].tip(self.settings[at])
                marks.append(charts.dot(self.looks.mark(own), x, y, tip=tip, s=at))
                if (label := labels[place]) is not None:
                    marks.append(
                        charts.label(*label[:2], _label(own), anchor=label[2], fill="currentColor", size=11)
                    )
            above.append(self.looks.group(setting, marks))
        title = say("risk: {name}{scale}", name=called(self.risk), scale=_SCALES[kind])
        axes = charts.axes(
            BOX,
            across=across.marks(46, lambda value: tick(self.risk, value)),
            up=up.marks(44, lambda value: tick(self.loss, value)),
            across_title=title,
            up_title=say("loss: {name}", name=called(self.loss)),
        )
        return [axes, *lines, *above]

    def finding(self) -> str:
        """What the chart shows, in words: how far k takes the chosen method, and who is best at its k."""
        loss, risk = self.loss, self.risk
        rows = [row for row in self.settings if not row.setting.is_original and None not in self.figures(row)]
        if not rows:
            return say("No setting has both a loss and this risk.")
        choice = rows[0].setting if self.facts.choice is None else self.facts.choice.setting
        said: list[str] = []
        own = [
            row
            for row in rows
            if row.setting.k is not None
            and (row.setting.method, row.setting.guarantees) == (choice.method, choice.guarantees)
        ]
        if len(own) > 1:
            own.sort(key=lambda row: row.setting.order)
            first, last = own[0], own[-1]
            said.append(
                say(
                    "Raising k from {first} to {last} takes {method} from a risk of {risk_first} to {risk_last} and from "
                    "a loss of {loss_first} to {loss_last}.",
                    first=first.setting.k,
                    last=last.setting.k,
                    method=ReleaseSetting(choice.method, None, choice.guarantees).name,
                    risk_first=figure(risk, first[risk].mean),
                    risk_last=figure(risk, last[risk].mean),
                    loss_first=figure(loss, first[loss].mean),
                    loss_last=figure(loss, last[loss].mean),
                )
            )
        level = [
            row for row in rows if (row.setting.k, row.setting.guarantees) == (choice.k, choice.guarantees)
        ]
        if choice.k is not None and level:
            least = min(level, key=lambda row: row[loss].mean or 0.0)
            safest = min(level, key=lambda row: row[risk].mean or 0.0)
            parts = {
                "k": choice.k,
                "promise": with_promise(choice),
                "method": least.setting.method,
                "loss": figure(loss, least[loss].mean),
                "risk": figure(risk, safest[risk].mean),
            }
            if len({row.setting.method for row in level}) == 1:
                said.append(
                    say("At k = {k}{promise}, {method} has a loss of {loss} and a risk of {risk}.", **parts)
                )
            elif least is safest:
                said.append(
                    say(
                        "At k = {k}{promise}, {method} loses least ({loss}) and leaves the least risk ({risk}).",
                        **parts,
                    )
                )
            else:
                said.append(
                    say(
                        "At k = {k}{promise}, {method} loses least ({loss}) and {safest} leaves the least risk ({risk}).",
                        safest=safest.setting.method,
                        **parts,
                    )
                )
        before = next((row[risk].mean for row in self.settings if row.setting.is_original), None)
        if before is not None:
            said.append(say("The original data: a risk of {risk}.", risk=figure(risk, before)))
        return join(said)


def scale_kind(values: Sequence[float]) -> charts.Kind:
    """Risks span orders of magnitude: steps that multiply where none is zero, else a square root.

    >>> scale_kind([0.1, 0.2]), scale_kind([0.01, 0.9]), scale_kind([0.0, 0.9])
    ('linear', 'log', 'root')
    """
    if not values or max(values) <= 0 or max(values) < 8 * min(values):
        return "linear"
    return "log" if min(values) > 0 else "root"


def _label(setting: ReleaseSetting) -> str:
    if setting.is_original:
        return ORIGINAL
    return str(setting.k) if setting.k is not None else setting.method[:24]


def with_promise(setting: ReleaseSetting) -> str:
    """The promises beyond k as the end of a phrase; nothing where there is only k.

    >>> with_promise(ReleaseSetting("mdav", 5, "l-diversity"))
    ' with l-diversity'
    """
    return say(" with {promise}", promise=promises(setting.guarantees)) if setting.guarantees else ""
