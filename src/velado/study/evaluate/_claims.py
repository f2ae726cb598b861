"""Which differences a page may call sure: every comparison it makes, and Holm's rule over all of them.

Half of the error that the study allows (5 % at 95 % confidence) goes to the sentences about the chosen setting, half to the
tables of every other k. So at most one page in twenty calls anything sure that is not, however much it compares; and the
sentences that matter most do not pay for a long table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import polars as pl

from velado.measures.models.quality import Interval
from velado.measures.models.significance import chance, holm
from velado.study.evaluate._choice import Choice, choose, risk_of
from velado.study.evaluate._matched import Leader, Rival, beside, leaders
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate.analysis import MAJORITY, Analysis, ReleaseSetting


@dataclass(frozen=True, kw_only=True)
class Best:
    """The release from which a model loses least among those of one k and promise, and the runner-up.

    *gain* is what it keeps more, *sure* whether that holds among all comparisons of the page.

    >>> Best(setting=ReleaseSetting("mdav", 5), model="knn", drop=0.01, second="gok", gain=Interval(0.02)).sure
    False
    """

    setting: ReleaseSetting
    model: str
    drop: float
    second: str
    gain: Interval
    sure: bool = False


@dataclass(frozen=True)
class Above:
    """A model with a setting: how often it is right, and by how much it beats the commonest class.

    *clear* says that it does so in every seed, or by more than two standard errors: then few seeds are why it is not sure.

    >>> Above("knn", 0.8, Interval(0.2, 0.1, 0.3), True).sure
    False
    """

    model: str
    accuracy: float
    gain: Interval
    clear: bool
    sure: bool = False


@dataclass(frozen=True, kw_only=True)
class Claims:
    """All comparisons of a page, each with whether it is sure.

    *rivals* are the other methods beside the chosen setting, over all models (None) and model by model; *above* says of the
    chosen setting and of the original rows whether models beat the commonest class. *count* is how many comparisons the
    sentences about the chosen setting rest on.
    """

    choice: Choice
    rivals: Mapping[str | None, tuple[Rival, ...]]
    best: tuple[Best, ...]
    above: Mapping[ReleaseSetting, tuple[Above, ...]]
    leaders: tuple[Leader, ...]
    count: int


def claims_of(study: Analysis) -> Claims:
    """Every comparison of the page of *study*, judged together. O(methods x k x models)."""
    choice = choose(study)
    row = choice.row
    chosen = None if row is None else row.setting
    rivals: dict[str | None, tuple[Rival, ...]] = {}
    above: dict[ReleaseSetting, tuple[Above, ...]] = {}
    if row is not None:
        models = [
            one.model for one in study.known_drops if _is(study, one.protocol, one.setting, row.setting)
        ]
        rivals = {model: beside(study, row.setting, risk_of(row), model) for model in (None, *models)}
        above[row.setting] = above_majority(study, row.setting)
        if study.main == "accuracy":
            above[ReleaseSetting(ORIGINAL)] = above_majority(study, ReleaseSetting(ORIGINAL))
    best, tables = _best(study), leaders(study)

    told: dict[Hashable, Interval] = {}
    told |= {("rival", model, one.method): one.gain for model, found in rivals.items() for one in found}
    told |= {("above", where, one.model): one.gain for where, found in above.items() for one in found}
    told |= {("best", one.setting, one.model): one.gain for one in best if _at(one.setting, chosen)}
    beyond: dict[Hashable, Interval] = {
        ("best", one.setting, one.model): one.gain for one in best if not _at(one.setting, chosen)
    }
    beyond |= {
        _key(one, other, chosen): other.gain
        for one in tables
        for other in one.beside
        if _key(one, other, chosen) not in told
    }
    level = (1 - study.material.recipe.analyses.confidence) / 2
    sure = frozenset(
        chain.from_iterable(holm({k: chance(v) for k, v in part.items()}, level) for part in (told, beyond))
    )
    return Claims(
        choice=choice,
        rivals={
            model: tuple(one.judged(("rival", model, one.method) in sure, risk_of(row)) for one in found)
            for model, found in rivals.items()
            if row is not None
        },
        best=tuple(replace(one, sure=("best", one.setting, one.model) in sure) for one in best),
        above={
            where: tuple(
                replace(one, sure=("above", where, one.model) in sure and (one.gain.mean or 0.0) > 0)
                for one in found
            )
            for where, found in above.items()
        },
        leaders=tuple(
            replace(
                one,
                beside=tuple(
                    other.judged(_key(one, other, chosen) in sure, one.risk or 0.0) for other in one.beside
                ),
            )
            for one in tables
        ),
        count=len(told),
    )


def _is(study: Analysis, protocol: str | None, setting: ReleaseSetting, chosen: ReleaseSetting) -> bool:
    return (protocol, setting) == (study.protocol, chosen)


def _at(setting: ReleaseSetting, chosen: ReleaseSetting | None) -> bool:
    """Whether a setting has the k and the promises of the chosen one."""
    return chosen is not None and (setting.k, setting.guarantees) == (chosen.k, chosen.guarantees)


def _key(leader: Leader, other: Rival, chosen: ReleaseSetting | None) -> Hashable:
    """A comparison with the chosen setting is the same one, wherever it is told."""
    if leader.setting == chosen:
        return "rival", leader.model, other.method
    return "leader", leader.setting, leader.model, other.method


def _best(study: Analysis) -> tuple[Best, ...]:
    """For each k, promise and model, the method that keeps most, the runner-up, and the difference's interval."""
    return tuple(
        Best(
            setting=first.setting,
            model=str(first.model),
            drop=first[f"drop_{study.main}"].mean or 0.0,
            second=second.setting.method,
            gain=study.gain(first.setting, second.setting, str(first.model)),
        )
        for first, second, *_ in (rows for rows in study.ranked() if len(rows) > 1)
    )


def above_majority(study: Analysis, setting: ReleaseSetting) -> tuple[Above, ...]:
    """Every model with *setting*, the most often right first."""
    cells = study.done.filter(
        (pl.col("protocol") == study.protocol)
        & (pl.col("kind") == "model")
        & (pl.col("model") != MAJORITY)
        & pl.col("seed").is_in(study.reported)
        & (pl.col("method") == setting.method)
        & pl.col("k").eq_missing(pl.lit(setting.k))
        & (pl.col("guarantees") == setting.guarantees)
        & pl.col("accuracy").is_not_null()
        & pl.col("majority").is_not_null()
    )
    found = []
    for (model,), part in cells.group_by(["model"], maintain_order=True):
        gains = (part.get_column("accuracy") - part.get_column("majority")).to_list()
        right = fmean(part.get_column("accuracy").to_list())
        gain = study.estimate(gains, study.overlap, drops=True)
        found.append(Above(str(model), right, gain, _clear(gains, gain)))
    return tuple(sorted(found, key=lambda one: -one.accuracy))


def _clear(gains: list[float], gain: Interval) -> bool:
    mean = fmean(gains)
    return mean > 0 and (min(gains) > 0 or (gain.error is not None and mean > 2 * gain.error))
