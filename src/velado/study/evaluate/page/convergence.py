"""Convergence of trainings across clients: accuracy, AUC and loss against the round, a line per setting, gaps marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from velado.study.evaluate.page.page_words import tell
from velado.study.evaluate.page.plot import (
    INK,
    Box,
    Looks,
    Scale,
    better_when_smaller,
    dashed,
    entry,
    figure,
    frame,
    lost,
    marks,
    picture,
    setting_name,
    span,
    svg,
    tick,
    tidy,
    title,
)
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_words import number, percent, points, say

# Tables about trainings across clients: who took part, and what anonymizing locally cost and left at each client.

Row = Mapping[str, Any]
Grid = dict[str, Any]


def participation(panels: Mapping[tuple[str, str], Sequence[Curve]], language: str) -> Grid:
    """One line per training: rounds, how many were applied, the fewest replies, what was sent, and the gaps."""
    lines = []
    for (model, split), curves in panels.items():
        for curve in curves:
            rounds = [one for fit in curve.fits for one in fit["rounds"]]
            if not rounds:
                continue
            fewest = min(rounds, key=lambda one: one["replied"])
            sent = [one["bytes_up"] for one in rounds if one.get("bytes_up") is not None]
            stopped = [fit["gap"] for fit in curve.fits if fit.get("gap")]
            reasons = dict.fromkeys([*stopped, *(one["gap"] for one in rounds if one.get("gap"))])
            lines.append(
                [
                    f"{model}, {split}",
                    setting_name(curve.setting, language),
                    number(len(rounds), language, 0),
                    number(sum(one.get("applied") is not False for one in rounds), language, 0),
                    f"{fewest['replied']} / {fewest['asked']}",
                    number(sum(one["replied"] < one["asked"] for one in rounds), language, 0),
                    number(fmean(sent) / 1000, language, 1) if sent else "–",
                    "; ".join(reasons) or "–",
                ]
            )
    head = ["training", "method", "rounds", "rounds_applied", "fewest", "rounds_short", "sent", "gap_reasons"]
    return _grid(head, lines, language, labels=2, last_text=True)


def ends(summary: Sequence[Row], language: str) -> Grid:
    """Quality after the last round, setting by setting, with its interval over seeds."""
    lines = [
        [
            f"{row['model']}, {split_words(row['split'], language)}",
            setting_name({**row, "guarantees": ""}, language),
            *(span(name, row, language) for name in ("accuracy", "auc", "log_loss")),
            lost("accuracy", row, language, "drop_accuracy"),
        ]
        for row in summary
    ]
    head = ["training", "method", "name_accuracy", "name_auc", "name_log_loss", "lost_untouched"]
    return _grid(head, lines, language, labels=2)


def needed(fits: Sequence[Row], language: str) -> str:
    """How many clients a round needs, where all trainings agree on it."""
    told = {(fit["clients_asked"], fit["participation"]) for fit in fits if fit.get("participation")}
    if len(told) != 1:
        return ""
    ((asked, share),) = told
    # 0.8 * 10 is 8.000000000000002 in places: a hair above a whole number is that number.
    return tell(language, "participation_note", needed=math.ceil(asked * share - 1e-9), asked=asked)


def over_clients(fits: Sequence[Row], language: str) -> tuple[Grid, Grid]:
    """Loss and risk over the clients of each setting, and of every client. Trainings of the same rows are averaged."""
    settings: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for fit in fits:
        key = (name_of(fit, language), fit["method"], fit.get("k"), fit.get("guarantees") or "")
        for client in fit.get("clients", ()):
            settings.setdefault(key, {}).setdefault(str(client["name"]), []).append(client)
    short, full = [], []
    for (split, method, k, promise), clients in settings.items():
        name = setting_name({"method": method, "k": k, "guarantees": promise}, language)
        seen = [one for group in clients.values() for one in group]
        gaps = sum(any(one.get("gap") for one in group) for group in clients.values())
        spans = [_over([one.get(key) for one in seen], language) for key in ("ncp", "linkage")]
        short.append([split, name, *spans, f"{gaps} / {len(clients)}"])
        for client, group in clients.items():
            means = [
                _mean([one.get(key) for one in group]) for key in ("rows", "test_rows", "ncp", "linkage")
            ]
            reasons = dict.fromkeys(str(one["gap"]) for one in group if one.get("gap"))
            full.append(
                [
                    split,
                    name,
                    client,
                    *(number(value, language, 0) for value in means[:2]),
                    *(percent(value, language) for value in means[2:]),
                    "; ".join(reasons) or "–",
                ]
            )
    return (
        _grid(["split", "method", "ncp_mean", "linkage_mean", "clients_gap"], short, language, labels=2),
        _grid(
            [
                "split",
                "method",
                "client",
                "client_rows",
                "client_test",
                "name_ncp",
                "name_record_linkage",
                "gap_reasons",
            ],
            full,
            language,
            labels=3,
            last_text=True,
        ),
    )


def _over(values: Sequence[float | None], language: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    return (
        f"{percent(fmean(known), language)} ({points(min(known), language)}…{points(max(known), language)})"
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _grid(
    head: Sequence[str], lines: Sequence[Sequence[str]], language: str, labels: int, last_text: bool = False
) -> Grid:
    texts = [
        say(language, key) if key == "method" or key.startswith("name_") else tell(language, key)
        for key in head
    ]
    figures = [labels <= at < len(head) - last_text for at in range(len(head))]
    return {"head": texts, "lines": lines, "figures": figures}


MEASURES = ("accuracy", "auc", "loss")
WIDTH, HEIGHT = 470, 310
BOX = Box(58, 56, 452, 262)


@dataclass(frozen=True)
class Curve:
    """One setting's trainings of one kind, over all seeds; *number* is what the script knows it by."""

    number: int
    setting: Row
    fits: tuple[Row, ...]

    @property
    def gaps(self) -> dict[int, list[str]]:
        """Rounds that were not applied or left a gap, with what is said of them."""
        out: dict[int, list[str]] = {}
        for fit in self.fits:
            for one in fit["rounds"]:
                if one.get("gap") or one.get("applied") is False:
                    said = f"{one['replied']}/{one['asked']}" + (f": {one['gap']}" if one.get("gap") else "")
                    out.setdefault(int(one["round"]), []).append(said)
        return out

    def points(self, measure: str) -> list[tuple[int, float, float, float]]:
        """(round, mean, least, greatest) over the seeds that know the measure in that round."""
        found: dict[int, list[float]] = {}
        for fit in self.fits:
            for one in fit["rounds"]:
                value = tidy(one.get(measure))
                if value is not None:
                    found.setdefault(int(one["round"]), []).append(float(value))
        return [(n, sum(v) / len(v), min(v), max(v)) for n, v in sorted(found.items())]


def split_words(label: str, language: str) -> str:
    """`iid`, or `dirichlet(0.5)` as the study writes it, in words."""
    name, _, alpha = label.rstrip(")").partition("(")
    return name_of({"split": name, "alpha": float(alpha or 0)}, language)


def name_of(fit: Row, language: str) -> str:
    """How the rows lie at the clients, in words."""
    if fit["split"] == "iid":
        return tell(language, "split_iid")
    if fit["split"] == "dirichlet":
        return tell(language, "split_dirichlet", alpha=tick("loss", fit.get("alpha") or 0.0, language))
    return str(fit["split"])


def curves_of(fits: Sequence[Row], language: str) -> dict[tuple[str, str], list[Curve]]:
    """The curves of every panel, (model, split): one per setting, in the order of the study."""
    panels: dict[tuple[str, str], dict[tuple[Any, ...], list[Row]]] = {}
    for fit in fits:
        panel = panels.setdefault((str(fit["model"]), name_of(fit, language)), {})
        panel.setdefault((fit["method"], fit.get("k"), fit.get("guarantees") or ""), []).append(fit)
    out: dict[tuple[str, str], list[Curve]] = {}
    counted = 0
    for panel_name, settings in panels.items():
        for (method, k, promise), own in settings.items():
            setting = {"method": method, "k": k, "guarantees": promise}
            out.setdefault(panel_name, []).append(Curve(counted, setting, tuple(own)))
            counted += 1
    return out


def charts(
    panels: Mapping[tuple[str, str], Sequence[Curve]], looks: Looks, language: str
) -> list[dict[str, Any]]:
    """Every chart: measure by panel; those of the first measure are shown at once."""
    return [
        {
            "measure": measure,
            "first": measure == MEASURES[0],
            "svg": _chart(model, split, curves, measure, looks, language),
        }
        for measure in MEASURES
        for (model, split), curves in panels.items()
    ]


def data_of(panels: Mapping[tuple[str, str], Sequence[Curve]], language: str) -> list[dict[str, Any]]:
    """What the script tells of a curve: its name, and (round, value) of each measure in the order they are drawn."""
    out = []
    for (model, split), curves in panels.items():
        for curve in curves:
            points = {
                measure: [[n, tidy(mean)] for n, mean, _, _ in curve.points(measure)] for measure in MEASURES
            }
            head = f"{setting_name(curve.setting, language)}\n{model}, {split}"
            out.append({"head": head, "points": points})
    return out


def legend(fits: Sequence[Row], looks: Looks, language: str) -> list[dict[str, Any]]:
    """Methods by colour and mark, k by dash, of what was trained across clients."""
    methods = {str(fit["method"]) for fit in fits}
    ks = {fit.get("k") for fit in fits}
    out = looks.legend(language, only=list(methods))
    if ORIGINAL in methods:
        out.append(entry(tell(language, "line_original"), picture(INK, "", "star")))
    out += [
        entry(f"k = {k}", picture("#555", dashed(at), None))
        for at, k in enumerate(looks.ks)
        if k is not None and k in ks
    ]
    return [*out, entry(tell(language, "line_majority"), picture(INK, ' stroke-dasharray="1.5 3.5"', None))]


def _chart(model: str, split: str, curves: Sequence[Curve], measure: str, looks: Looks, language: str) -> str:
    known = [(curve, curve.points(measure)) for curve in curves]
    rates = [tidy(fit.get("majority")) for curve in curves for fit in curve.fits]
    common = [rate for rate in rates if rate is not None] if measure == "accuracy" else []
    majority = sum(common) / len(common) if common else None
    values = [value for _, points in known for point in points for value in point[1:]]
    up = Scale.over([*values, *([majority] if majority is not None else [])], BOX.bottom, BOX.top)
    if measure != "loss":
        up = Scale(up.low, min(up.high, 1.0), up.start, up.end)
    last = max((point[0] for _, points in known for point in points), default=1)
    across = Scale(0, max(last, 1), BOX.left, BOX.right)
    name = tell(language, f"measure_{measure}")
    better = tell(language, "quality_worse" if better_when_smaller(measure) else "quality_better")
    rounds = sorted({0, *(int(n) for n in across.ticks(44) if n == int(n))})
    body = [
        frame(
            BOX,
            [(across.at(n), str(n)) for n in rounds],
            marks(up, 34, lambda value: tick(measure, value, language)),
            tell(language, "round"),
            tell(language, "quality_y", metric=name, better=better),
        )
    ]
    if majority is not None:
        text = f"{tell(language, 'line_majority')}: {figure(measure, majority, language)}"
        body.append(
            f'<path class="common" d="M{BOX.left} {up.at(majority)}H{BOX.right}" stroke="#222" stroke-width="1.6" '
            f'stroke-dasharray="1.5 3.5">{title(text)}</path>'
        )
    body += [_curve(curve, points, across, up, looks, language) for curve, points in known]
    heading = tell(language, "curve_title", model=model, split=split, measure=name)
    return svg(heading, finding(known, measure, last, language), WIDTH, HEIGHT, "".join(body))


def _curve(
    curve: Curve,
    points: Sequence[tuple[int, float, float, float]],
    across: Scale,
    up: Scale,
    looks: Looks,
    language: str,
) -> str:
    method, k = curve.setting["method"], curve.setting["k"]
    promise = curve.setting["guarantees"]
    tags = "" if method == ORIGINAL else f' data-m="{looks.method(method)}"'
    if promise in looks.promises and method != ORIGINAL:
        tags += f' data-g="{looks.promises.index(promise)}"'
    dash = "" if method == ORIGINAL else dashed(looks.ks.index(k) if k in looks.ks else 0)
    parts = [f'<g class="s"{tags} color="{looks.colour(method)}">']
    if points and any(low < high for _, _, low, high in points):
        edge = [f"{across.at(n)} {up.at(high)}" for n, _, _, high in points]
        edge += [f"{across.at(n)} {up.at(low)}" for n, _, low, _ in reversed(points)]
        parts.append(f'<path d="M{"L".join(edge)}Z" fill="currentColor" fill-opacity="0.12"/>')
    if points:
        path = "".join(
            # A round without a value breaks the line: what lies between is not known.
            f"{'L' if at and points[at - 1][0] == n - 1 else 'M'}{across.at(n)} {up.at(mean)}"
            for at, (n, mean, _, _) in enumerate(points)
        )
        text = title(setting_name(curve.setting, language))
        parts.append(
            f'<path class="c" data-c="{curve.number}" d="{path}" fill="none" stroke="currentColor" '
            f'stroke-width="1.7"{dash}>{text}</path>'
        )
        n, mean, _, _ = points[-1]
        parts.append(f'<use href="#{looks.mark(method, promise)}" x="{across.at(n)}" y="{up.at(mean)}"/>')
    for n, said in sorted(curve.gaps.items()):
        text = f"{setting_name(curve.setting, language)}\n{tell(language, 'round')} {n}: {'; '.join(dict.fromkeys(said))}"
        parts.append(
            f'<use href="#gap" x="{across.at(n)}" y="{BOX.bottom - 5}" data-gap="1">{title(text)}</use>'
        )
    return "".join(parts) + "</g>"


def finding(
    known: Sequence[tuple[Curve, Sequence[tuple[int, float, float, float]]]],
    measure: str,
    rounds: int,
    language: str,
) -> str:
    """What the chart shows, in words: who stands best and worst at the end, and how many rounds have gaps."""
    ends = [(curve, points[-1][1]) for curve, points in known if points]
    releases = [one for one in ends if one[0].setting["method"] != ORIGINAL] or ends
    if not releases:
        return tell(language, "quality_none", metric=tell(language, f"measure_{measure}"), model="–")
    ranked = sorted(releases, key=lambda one: one[1], reverse=not better_when_smaller(measure))
    said = [
        tell(
            language,
            "curve_found" if len(ranked) > 1 else "curve_found_one",
            rounds=rounds,
            best=setting_name(ranked[0][0].setting, language),
            best_value=figure(measure, ranked[0][1], language),
            worst=setting_name(ranked[-1][0].setting, language),
            worst_value=figure(measure, ranked[-1][1], language),
        )
    ]
    before = [value for curve, value in ends if curve.setting["method"] == ORIGINAL]
    if before and len(ends) > 1:
        said.append(tell(language, "curve_original", value=figure(measure, before[0], language)))
    gaps = sum(len(curve.gaps) for curve, _ in known)
    if gaps:
        said.append(tell(language, "curve_gaps", gaps=gaps))
    return " ".join(said)
