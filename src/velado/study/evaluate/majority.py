"""Whether models learn anything: are they right more often than always saying the commonest class, and is that sure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from velado.measure.models.quality import Interval
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.words import percent, say

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study


@dataclass(frozen=True)
class Above:
    """A model with a setting: how often it is right, and by how much it beats the commonest class.

    *clear* says that it does so in every seed, or by more than two standard errors: then few seeds are why it is not
    sure, for Student's interval of two seeds is thirteen standard errors wide on either side.
    """

    model: str
    accuracy: float
    gain: Interval
    clear: bool

    @property
    def sure(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.gain.low is not None and self.gain.low > 0


def above_majority(study: Study, setting: dict[str, Any]) -> list[Above]:
    """Every model with *setting*, the most often right first."""
    same = pl.all_horizontal(
        pl.col(name).eq_missing(pl.lit(setting[name])) for name in ("method", "k", "guarantees")
    )
    cells = study.done.filter(
        same
        & (pl.col("protocol") == study.protocol)
        & (pl.col("kind") == "model")
        & (pl.col("model") != "majority")
        & pl.col("accuracy").is_not_null()
        & pl.col("majority").is_not_null()
    )
    found = []
    for (model,), part in cells.group_by(["model"], maintain_order=True):
        gains = part.get_column("accuracy") - part.get_column("majority")
        gain = study.interval_of(gains)
        if gain is not None:
            mean: Any = part.get_column("accuracy").mean()
            found.append(Above(str(model), float(mean), gain, _clear(gains)))
    return sorted(found, key=lambda one: -one.accuracy)


def _clear(gains: pl.Series) -> bool:
    values = [float(value) for value in gains]
    mean = math.fsum(values) / len(values)
    if mean <= 0 or len(values) == 1:
        return mean > 0
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    return min(values) > 0 or mean > 2 * error


def over_majority(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """Whether models learn anything from the release, and whether there is anything to learn at all.

    One model that surely does is enough. Where none surely does but one clearly lies above, the seeds are too few.
    """
    majority = percent(study.majority(), language)
    out = []
    found = above_majority(study, chosen)
    if found:
        key, one = _told(found)
        out.append(
            say(
                language,
                f"{key}_majority",
                model=one.model,
                value=percent(one.accuracy, language),
                majority=majority,
                seeds=one.gain.count,
            )
        )
    before = above_majority(study, {"method": ORIGINAL, "k": None, "guarantees": ""})
    if not before or study.main != "accuracy":
        return out
    key, one = _told(before)
    if key == "near":
        out.append(say(language, "nothing_to_learn", majority=majority))
    elif key == "few":
        value = percent(one.accuracy, language)
        out.append(
            say(
                language,
                "few_to_learn",
                model=one.model,
                value=value,
                majority=majority,
                seeds=one.gain.count,
            )
        )
    return out


def _told(found: list[Above]) -> tuple[str, Above]:
    """Which sentence is true, and of which model: over, one (a single seed), few or near."""
    for one in found:
        if one.sure:
            return "over", one
    for one in found:
        if one.clear:
            return ("one" if one.gain.low is None else "few"), one
    return "near", found[0]
