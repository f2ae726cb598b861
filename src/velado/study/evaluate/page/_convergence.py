"""Trainings across clients: quality against the round, a line per setting, and the tables of rounds and clients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from velado.learning.flower.flower_records import ClientRecord
from velado.report import charts
from velado.report.blocks import Block, Bullets, Drawing, Folded, Heading, Legend, Table, Text, text
from velado.report.charts import DOTTED, INK, SOFT, Box, LegendEntry, Scale, swatch
from velado.study.evaluate._amounts import (
    better_when_smaller,
    called,
    commas,
    dropped,
    figure,
    number,
    percent,
    span,
    tick,
)
from velado.study.evaluate.analysis import ReleaseSetting, Training
from velado.study.evaluate.page._looks import COMMONEST, ORIGINAL_DATA, Looks
from velado.study.evaluate.page._panels import better
from velado.study.evaluate.page._study_tables import tidy
from velado.study.evaluate.study_outcome import StudyFacts
from velado.text import NOTHING, Sentence, join, say

MEASURES = {"accuracy": "accuracy", "auc": "auc", "loss": "log_loss"}
"""The measures of a round, each with the quality that it is."""

WIDTH, HEIGHT = 470, 310
BOX = Box(58, 56, 452, 262)
ROUND = say("round")


@dataclass(frozen=True)
class Curve:
    """One setting's trainings of one kind, over all seeds; *number* is what the script knows it by."""

    number: int
    setting: ReleaseSetting
    trainings: tuple[Training, ...]

    @property
    def gaps(self) -> dict[int, list[str]]:
        """Rounds that were not applied or left a gap, with what is said of them."""
        out: dict[int, list[str]] = {}
        for training in self.trainings:
            for one in training.fit.rounds:
                if one.gap or not one.applied:
                    said = f"{one.replied}/{one.asked}"
                    out.setdefault(one.number, []).append(join([said, one.gap], ": ") if one.gap else said)
        return out

    def points(self, measure: str) -> list[tuple[int, float, float, float]]:
        """(round, mean, least, greatest) over the seeds that know the measure in that round."""
        found: dict[int, list[float]] = {}
        for training in self.trainings:
            for one in training.fit.rounds:
                value = tidy(getattr(one, measure))
                if value is not None and math.isfinite(value):
                    found.setdefault(one.number, []).append(value)
        return [(at, fmean(values), min(values), max(values)) for at, values in sorted(found.items())]


Panels = Mapping[tuple[str, str], Sequence[Curve]]
"""The curves of each model and split."""


def split_name(label: str) -> str:
    """`iid`, or `dirichlet(0.5)` as the study writes it, in words.

    >>> split_name("dirichlet(0.5)"), split_name("iid")
    ('uneven clients (Dirichlet, alpha 0.5)', 'rows dealt out evenly')
    """
    name, _, alpha = label.rstrip(")").partition("(")
    if name == "iid":
        return say("rows dealt out evenly")
    if name == "dirichlet":
        return say("uneven clients (Dirichlet, alpha {alpha:g})", alpha=float(alpha or 0))
    return label


def curves_of(trainings: Iterable[Training]) -> Panels:
    """The curves of every panel: one per setting, in the order of the study."""
    panels: dict[tuple[str, str], dict[ReleaseSetting, list[Training]]] = {}
    for one in trainings:
        if one.fit.rounds:
            panels.setdefault((one.fit.model, one.split), {}).setdefault(one.setting, []).append(one)
    out: dict[tuple[str, str], list[Curve]] = {}
    counted = 0
    for panel, settings in panels.items():
        for setting, own in settings.items():
            out.setdefault(panel, []).append(Curve(counted, setting, tuple(own)))
            counted += 1
    return out


def federated_blocks(facts: StudyFacts, panels: Panels, looks: Looks | None) -> list[Block]:
    """Everything about trainings across clients; the charts where there are *looks*."""
    if not panels:
        return [
            text(
                say(
                    "Asked for, but none of the trainings across clients came to anything; the reasons stand under what "
                    "could not be computed."
                )
                if facts.recipe.federated
                else say("Not tested: this study did not train across clients.")
            )
        ]
    fits = [one.fit for one in facts.federated if one.fit.rounds]
    intro = say(
        "{fits} trainings: each client anonymizes its own rows, then all train one model together; it is asked about true "
        "rows that were set aside.",
        fits=len(fits),
    )
    blocks: list[Block] = [text(intro, needed(facts.federated))]
    if looks is not None:
        note = say(
            "Each line is the mean over seeds, shaded from the least to the greatest seed. A cross at the foot marks a round "
            "in which the replies were too few or that left a gap. Dotted line: always saying the commonest class."
        )
        blocks += [
            *drawings(panels, looks),
            Legend(tuple(legend(facts.federated, looks))),
            Text(note, hint=True),
        ]
    if facts.across_clients:
        blocks += [Heading(say("After the last round")), ends(facts)]
    short, full = over_clients(facts.federated)
    gaps = [
        join([commas([model, split, setting.name]), gap], ": ")
        for (model, split, setting), found in facts.federated_gaps.items()
        for gap in found
    ]
    return [
        *blocks,
        Heading(say("Participation")),
        participation(panels),
        Heading(say("Loss and risk at each client")),
        short,
        Folded(say("Every client"), (full,)),
        *([Bullets(tuple(gaps))] if gaps and looks is None else []),
    ]


# ---- tables


def ends(facts: StudyFacts) -> Table:
    """Quality after the last round, setting by setting, with its interval over seeds."""
    header = (say("training"), say("method"), *(called(name) for name in ("accuracy", "auc", "log_loss")))
    rows = tuple(
        (
            commas([row.model, split_name(str(row.split))]),
            row.setting.name,
            *(span(name, row[name]) for name in ("accuracy", "auc", "log_loss")),
            dropped("accuracy", row["drop_accuracy"]),
        )
        for row in (one.row for one in facts.across_clients)
    )
    return Table("", (*header, say("accuracy lost against untouched rows")), rows, labels=2)


def participation(panels: Panels) -> Table:
    """One line per training: rounds, how many were applied, the fewest replies, what was sent, and the gaps."""
    rows = []
    for (model, split), curves in panels.items():
        for curve in curves:
            rounds = [one for training in curve.trainings for one in training.fit.rounds]
            fewest = min(rounds, key=lambda one: one.replied)
            stopped = [training.gap for training in curve.trainings if training.gap]
            reasons = dict.fromkeys([*stopped, *(one.gap for one in rounds if one.gap)])
            rows.append(
                (
                    commas([model, split_name(split)]),
                    curve.setting.name,
                    number(len(rounds), 0),
                    number(sum(one.applied for one in rounds), 0),
                    f"{fewest.replied} / {fewest.asked}",
                    number(sum(one.replied < one.asked for one in rounds), 0),
                    number(fmean(one.bytes_up for one in rounds) / 1000, 1),
                    commas(list(reasons), "; "),
                )
            )
    header = (
        say("training"),
        say("method"),
        say("rounds of all seeds"),
        say("rounds applied"),
        say("fewest replies in a round"),
        say("rounds with missing replies"),
        say("sent by all clients in a round, kB"),
        say("gaps"),
    )
    return Table("", header, tuple(rows), figures=(False, False, *[True] * 5, False))


def needed(trainings: Iterable[Training]) -> str:
    """How many clients a round needs, where all trainings agree on it."""
    told = {(one.fit.clients_asked, one.fit.participation) for one in trainings if one.fit.participation}
    if len(told) != 1:
        return ""
    ((asked, share),) = told
    # 0.8 * 10 is 8.000000000000002 in places: a hair above a whole number is that number.
    least = math.ceil(asked * share - 1e-9)
    return say("At least {needed} of {asked} clients must reply in each round.", needed=least, asked=asked)


def over_clients(trainings: Iterable[Training]) -> tuple[Table, Table]:
    """Loss and risk over the clients of each setting, and of every client. Trainings of the same rows are averaged."""
    settings: dict[tuple[str, ReleaseSetting], dict[str, list[ClientRecord]]] = {}
    for one in trainings:
        for client in one.fit.clients:
            own = settings.setdefault((one.split, one.setting), {})
            own.setdefault(client.name, []).append(client)
    short, full = [], []
    for (split, setting), clients in settings.items():
        lead = (split_name(split), setting.name)
        seen = [one for group in clients.values() for one in group]
        gaps = sum(any(one.gap for one in group) for group in clients.values())
        spans = (_over([one.ncp for one in seen]), _over([one.linkage for one in seen]))
        short.append((*lead, *spans, f"{gaps} / {len(clients)}"))
        for name, group in clients.items():
            full.append(
                (
                    *lead,
                    name,
                    number(_mean([one.rows for one in group]), 0),
                    number(_mean([one.test_rows for one in group]), 0),
                    percent(_mean([one.ncp for one in group])),
                    percent(_mean([one.linkage for one in group])),
                    commas(list(dict.fromkeys(one.gap for one in group if one.gap)), "; "),
                )
            )
    lead = (say("split of the rows"), say("method"))
    header = (
        *lead,
        say("NCP, mean (least…most)"),
        say("record linkage, mean (least…most)"),
        say("clients with a gap"),
    )
    every = (
        *lead,
        say("client"),
        say("rows"),
        say("test rows"),
        called("ncp"),
        called("record_linkage"),
        say("gaps"),
    )
    figures = (False, False, False, *[True] * 4, False)
    return Table("", header, tuple(short), labels=2), Table("", every, tuple(full), figures=figures)


def _over(values: Sequence[float | None]) -> str:
    known = [100 * value for value in values if value is not None]
    if not known:
        return NOTHING
    parts = {"mean": number(fmean(known)), "least": number(min(known)), "most": number(max(known))}
    return Sentence("{mean}% ({least}…{most})", parts)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


# ---- charts


def drawings(panels: Panels, looks: Looks) -> list[Drawing]:
    """Every chart: measure by panel; those of the first measure are shown at once."""
    out = []
    for measure, quality in MEASURES.items():
        for (model, split), curves in panels.items():
            known = [(curve, curve.points(measure)) for curve in curves]
            finding = _finding(known, quality)
            name = say(
                "{model}, {split}: {measure}", model=model, split=split_name(split), measure=called(quality)
            )
            svg = charts.svg(name, finding, WIDTH, HEIGHT, _parts(known, quality, looks))
            out.append(Drawing(svg, finding, data={"measure": measure}, hidden=measure != "accuracy"))
    return out


def data_of(panels: Panels) -> list[dict[str, object]]:
    """What the script tells of a curve: its name, and (round, value) of each measure in the order they are drawn."""
    return [
        {
            "head": join([curve.setting.name, commas([model, split_name(split)])], "\n"),
            "points": {
                measure: [[at, tidy(mean)] for at, mean, _, _ in curve.points(measure)]
                for measure in MEASURES
            },
        }
        for (model, split), curves in panels.items()
        for curve in curves
    ]


def legend(trainings: Iterable[Training], looks: Looks) -> list[LegendEntry]:
    """Methods by colour and mark, k by dash, of what was trained across clients."""
    settings = {one.setting for one in trainings}
    out = looks.legend(only=[setting.method for setting in settings])
    if any(setting.is_original for setting in settings):
        out.append(LegendEntry(ORIGINAL_DATA, swatch(INK, dash="", mark="star")))
    ks = {setting.k for setting in settings}
    out += [
        LegendEntry(f"k = {k}", swatch(SOFT, dash=charts.dash(at)))
        for at, k in enumerate(looks.ks)
        if k is not None and k in ks
    ]
    return [*out, LegendEntry(COMMONEST, swatch(INK, dash=DOTTED))]


Points = Sequence[tuple[int, float, float, float]]
Known = Sequence[tuple[Curve, Points]]


def _parts(known: Known, quality: str, looks: Looks) -> list[str]:
    rates = [
        one.fit.majority for curve, _ in known for one in curve.trainings if one.fit.majority is not None
    ]
    majority = fmean(rates) if rates and quality == "accuracy" else None
    values = [value for _, points in known for point in points for value in point[1:]]
    most = math.inf if quality == "log_loss" else 1.0
    up = Scale.over([*values, *([] if majority is None else [majority])], BOX.bottom, BOX.top, most=most)
    last = max((point[0] for _, points in known for point in points), default=1)
    across = Scale(0, max(last, 1), BOX.left, BOX.right)
    rounds = sorted({0, *(int(tick) for tick in across.ticks(44) if tick == int(tick))})
    axes = charts.axes(
        BOX,
        across=[(across.at(at), str(at)) for at in rounds],
        up=up.marks(34, lambda value: tick(quality, value)),
        across_title=ROUND,
        up_title=better(quality),
    )
    common = []
    if majority is not None:
        tip = join([COMMONEST, figure(quality, majority)], ": ")
        common = [charts.level(BOX, up.at(majority), tip, dash=DOTTED, thick=1.6, kind="common")]
    return [axes, *common, *(_curve(curve, points, across, up, looks) for curve, points in known)]


def _curve(curve: Curve, points: Points, across: Scale, up: Scale, looks: Looks) -> str:
    setting = curve.setting
    parts = []
    if any(low < high for _, _, low, high in points):
        upper, lower = ([(across.at(point[0]), up.at(point[end])) for point in points] for end in (3, 2))
        parts.append(charts.area(upper, lower))
    if points:
        path: list[charts.Point | None] = []
        for at, (number_, mean, _, _) in enumerate(points):
            # A round without a value breaks the line: what lies between is not known.
            if at and points[at - 1][0] != number_ - 1:
                path.append(None)
            path.append((across.at(number_), up.at(mean)))
        dash = "" if setting.is_original else charts.dash(looks.ks.index(setting.k))
        parts.append(charts.line(path, dash=dash, thick=1.7, tip=setting.name, kind="c", c=curve.number))
        parts.append(charts.dot(looks.mark(setting), across.at(points[-1][0]), up.at(points[-1][1])))
    for at, said in sorted(curve.gaps.items()):
        line = join([join([ROUND, str(at)]), commas(list(dict.fromkeys(said)), "; ")], ": ")
        tip = join([setting.name, line], "\n")
        parts.append(charts.dot("gap", across.at(at), BOX.bottom - 5, tip=tip, gap=1))
    return looks.group(setting, parts)


def _finding(known: Known, quality: str) -> str:
    """What the chart shows, in words: who stands best and worst at the end, and how many rounds have gaps."""
    ended = [(curve, points[-1][1]) for curve, points in known if points]
    if not ended:
        return say("No value of {metric} is known for {model}.", metric=called(quality), model=NOTHING)
    ranked = [one for one in ended if not one[0].setting.is_original] or ended
    ranked.sort(key=lambda one: one[1], reverse=not better_when_smaller(quality))
    (best, best_value), (worst, worst_value) = ranked[0], ranked[-1]
    said: list[str] = [
        say(
            "After {rounds} rounds {best} stands at {best_value} and {worst} at {worst_value}."
            if len(ranked) > 1
            else "After {rounds} rounds {best} stands at {best_value}.",
            rounds=max(points[-1][0] for _, points in known if points),
            best=best.setting.name,
            best_value=figure(quality, best_value),
            worst=worst.setting.name,
            worst_value=figure(quality, worst_value),
        )
    ]
    before = [value for curve, value in ended if curve.setting.is_original]
    if before and len(ended) > 1:
        said.append(say("The original data: {value}.", value=figure(quality, before[0])))
    gaps = sum(len(curve.gaps) for curve, _ in known)
    return join([*said, *([say("{gaps} rounds have gaps.", gaps=gaps)] if gaps else [])])
