"""Tables about trainings across clients: who took part, and what anonymizing locally cost and left at each client."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from velado.study.evaluate.page.convergence import Curve, name_of, split_words
from velado.study.evaluate.page.figures import lost, setting_name, span
from velado.study.evaluate.page.words import tell
from velado.study.evaluate.words import number, percent, points, say

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
