"""The choice by non-inferiority: a setting is recommended only if the whole interval of its loss keeps the limit.

Among the settings whose interval lies within `most_drop` on the seeds that choose (and whose risk keeps `most_risk`, where
one is given), the one with the least risk; ties by the smaller loss. The seeds that report must then say the same of it, or
the table cannot decide. A mean within the limit is no evidence: half of all settings that lie just beyond it have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from velado.measures.models.quality import LEAST_VALUES, Interval
from velado.measures.models.significance import NOTHING_BELOW, Needed, chance, holm, needed
from velado.study.evaluate._amounts import at_most
from velado.study.evaluate.analysis import LEAST_TO_SPLIT, Analysis, ReleaseSetting, StudyRow, reporting

SAME = 0.02
"""Risks within this share of each other are taken for equal."""

Within = Literal["surely", "on average", "one", "no"]
Decision = Literal["use", "open", "beyond", "none"]
"""Use it; the seeds leave it open; every setting surely loses more; there is nothing to choose from."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The setting that is spoken of, how far it is decided, and what would decide it.

    *more_seeds* and *rows* are None where nothing is open, or where neither would be honest advice.

    >>> Choice(row=None, decision="none").more_seeds is None
    True
    """

    row: StudyRow | None
    decision: Decision
    more_seeds: int | None = None
    rows: int | None = None


def choose(study: Analysis) -> Choice:
    """The setting to recommend, or the one that comes nearest and why it is not recommended."""
    rows = considered(study)
    if not rows:
        return Choice(row=None, decision="none")
    most = study.material.recipe.analyses.most_drop
    good = kept_at_first(study, rows)
    if good:
        row = _least_risk(good, lambda one: study.first_look(one.setting))
        if within(row["drop"], most) == "surely":
            return Choice(row=row, decision="use")
        return _open(study, row)
    undecided = [row for row in rows if row["drop"].low is None or at_most(row["drop"].low, most)]
    if undecided and all(row["drop"].high is None for row in undecided):
        # Too few seeds for any interval: the means say where to look.
        near = [row for row in undecided if at_most(row["drop"].mean or 0.0, most)]
        return _open(study, _least_risk(near, _drop) if near else min(undecided, key=_by_drop))
    if undecided:
        return _open(study, min(undecided, key=_by_upper_end))
    return Choice(row=min(rows, key=_by_drop), decision="beyond")


def kept_at_first(study: Analysis, rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Those that surely keep the limit on the seeds that choose.

    Where other seeds report, it is enough that the whole interval keeps it: the others must confirm the one that is chosen.
    Where the same seeds do both, the best of many settings would pass by luck, so that Holm's rule holds over all of them.
    """
    analyses = study.material.recipe.analyses
    most = analyses.most_drop
    found = {row.setting: study.first_look(row.setting) for row in rows}
    kept = {setting for setting, drop in found.items() if within(drop, most) == "surely"}
    if not study.splits_seeds:
        chances = {
            # Without any spread a mean is on its side of the limit, or at it, and that is that.
            setting: 0.0 if (drop.error or 0.0) <= NOTHING_BELOW else chance(drop, most)
            for setting, drop in found.items()
        }
        sure: frozenset[ReleaseSetting] = holm(chances, 1 - analyses.confidence)
        kept &= sure
    return [row for row in rows if row.setting in kept]


def considered(study: Analysis) -> list[StudyRow]:
    """The settings of which drop and risk are known, within the limit of the risk where there is one."""
    most = study.material.recipe.analyses.most_risk
    return [row for row in study.compared if most is None or risk_of(row) <= most]


def risk_of(row: StudyRow) -> float:
    """The mean risk of a setting.

    >>> from velado.study.evaluate.analysis import ReleaseSetting
    >>> risk_of(StudyRow(setting=ReleaseSetting("mdav", 5), numbers={"risk": Interval(0.2)}))
    0.2
    """
    return row["risk"].mean or 0.0


def _drop(row: StudyRow) -> Interval:
    return row["drop"]


def _by_upper_end(row: StudyRow) -> tuple[bool, float, float, str]:
    high = row["drop"].high
    return high is None, high or 0.0, risk_of(row), row.setting.method


def _by_drop(row: StudyRow) -> tuple[float, float, str]:
    return row["drop"].mean or 0.0, risk_of(row), row.setting.method


def _least_risk(rows: list[StudyRow], drop: Callable[[StudyRow], Interval]) -> StudyRow:
    least = min(risk_of(row) for row in rows)
    near = [row for row in rows if risk_of(row) <= least * (1 + SAME)]
    return min(near, key=lambda row: (drop(row).mean or 0.0, risk_of(row), row.setting.method))


def _open(study: Analysis, row: StudyRow) -> Choice:
    """The choice left open, with what would decide it: more seeds, where they can, else more rows."""
    seeds = len(study.material.recipe.anonymization.seeds)
    analyses = study.material.recipe.analyses
    drop = row["drop"]
    if drop.count < LEAST_VALUES:
        return Choice(row=row, decision="open", more_seeds=max(LEAST_TO_SPLIT + 2 - seeds, 1))
    found: Needed = needed(drop, analyses.most_drop, analyses.confidence, study.overlap)
    more = None if found.values is None else _more_seeds(seeds, found.values)
    if more is not None and not study.splits_seeds:
        more = max(more, LEAST_TO_SPLIT - seeds)  # by then seeds that did not choose can confirm
    rows = None if found.times is None else round_up(study.material.table.rows * max(found.times, 1.1))
    return Choice(row=row, decision="open", more_seeds=more, rows=rows)


def _more_seeds(seeds: int, wanted: int) -> int:
    """So many more seeds that *wanted* of them report."""
    total = seeds + 1
    while len(reporting(range(total))) < wanted:
        total += 1
    return total - seeds


def round_up(count: float) -> int:
    """A number of rows with two digits, never less than *count*.

    >>> round_up(1999), round_up(2001)
    (2000, 2100)
    """
    whole = int(-(-count // 1))
    unit: int = 10 ** max(len(str(whole)) - 2, 0)
    return -(-whole // unit) * unit


def within(drop: Interval, most: float) -> Within:
    """Whether a drop keeps the limit: surely, on average (its interval reaches beyond), without an interval, or not.

    >>> within(Interval(0.005, 0.0, 0.02), 0.01)
    'on average'
    """
    if drop.mean is None or not at_most(drop.mean, most):
        return "no"
    if drop.high is None:
        return "one"
    return "surely" if at_most(drop.high, most) else "on average"
