"""Analysis: what the cells of a study come to, setting by setting, with an interval over seeds.

Differences are taken seed by seed (the same split, the same random choices) before they are averaged, so that what all
methods share cancels. Intervals of what models reach are corrected for test parts that share rows (`interval`). With
enough seeds the first ones choose and the others report: what was picked for its luck does not bring the luck along.
Cells are a Polars frame; what they come to are typed rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import fmean, median
from types import MappingProxyType
from typing import Any

import polars as pl

from velado.learning.flower.flower_records import FederatedFit
from velado.measures.measure_registry import all_measures
from velado.measures.models.number_quality import NUMBER_QUALITIES
from velado.measures.models.quality import QUALITIES, UNKNOWN, Interval, bootstrap_interval, interval
from velado.randomness import seeded
from velado.study.evaluate._amounts import better_when_smaller, commas, is_share, promises
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate._work import gaps_of
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, protocol_named

MAJORITY = "majority"
SCORES = (*QUALITIES, *NUMBER_QUALITIES)

LEAST_TO_SPLIT = 8
"""From so many seeds on, some choose and the others report."""


def choosing(seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds a setting is chosen on: the first two of five, so that most are left to report; few seeds do both.

    >>> choosing(range(10)), choosing(range(3))
    ((0, 1, 2, 3), (0, 1, 2))
    """
    return tuple(seeds[: len(seeds) * 2 // 5] if len(seeds) >= LEAST_TO_SPLIT else seeds)


def reporting(seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds whose figures are told: those that did not choose, or all of a few.

    >>> reporting(range(10)), reporting(range(3))
    ((4, 5, 6, 7, 8, 9), (0, 1, 2))
    """
    return tuple(seeds[len(seeds) * 2 // 5 :] if len(seeds) >= LEAST_TO_SPLIT else seeds)


@dataclass(frozen=True)
class ReleaseSetting:
    """A method with its k and the promises beyond k; the untouched table stands among them as `original`.

    >>> ReleaseSetting("mondrian", 6).name, ReleaseSetting("original").is_original
    ('mondrian, k = 6', True)
    """

    method: str
    k: int | None = None
    guarantees: str = ""

    @property
    def is_original(self) -> bool:
        """Whether nothing was done to the rows."""
        return self.method == ORIGINAL

    @property
    def name(self) -> str:
        """`method, k = 10, further promises`."""
        parts = [self.method, *([] if self.k is None else [f"k = {self.k}"])]
        return commas([*parts, *([promises(self.guarantees)] if self.guarantees else [])])

    @property
    def order(self) -> tuple[bool, int, str]:
        """Along k, what has none last."""
        return self.k is None, self.k or 0, self.guarantees


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """What *seeds* repetitions say of a setting: each number with its interval; unknown ones are empty estimates.

    *scope* says what was anonymized, *protocol* how it was tested, *model* what was trained, *split* how the rows lay at
    the clients; each is None where it plays no part.

    >>> StudyRow(setting=ReleaseSetting("mdav", 5), numbers={"ncp": Interval(0.2)})["ncp"].mean
    0.2
    """

    setting: ReleaseSetting
    numbers: Mapping[str, Interval] = field(default_factory=dict)
    seeds: int = 0
    scope: str | None = None
    protocol: str | None = None
    model: str | None = None
    split: str | None = None

    def __getitem__(self, name: str) -> Interval:
        return self.numbers.get(name, UNKNOWN)

    @property
    def learns(self) -> bool:
        """Whether its model is more than the commonest class, and its rows were anonymized."""
        return self.model != MAJORITY and not self.setting.is_original


@dataclass(frozen=True, kw_only=True)
class ProtocolEffect:
    """What a protocol alone does to the differences between methods.

    *drop* is the mean loss of quality against the original. For every two methods of the same k, promises and model:
    *between* is the mean distance of their qualities, *due* how far that difference moves against the default protocol
    (what is moved says nothing about the methods), *default* their mean distance under the default protocol, and
    *reversed* how many of the *pairs* change their order.

    >>> ProtocolEffect(protocol="paper-gok", drop=0.0, due=0.06, default=0.02, pairs=1).share
    0.75
    """

    protocol: str
    drop: float
    between: float | None = None
    due: float | None = None
    default: float | None = None
    reversed: int = 0
    pairs: int = 0

    @property
    def share(self) -> float | None:
        """The part due to the protocol in what is seen: due / (due + default)."""
        if self.due is None or self.default is None or self.due + self.default <= 0:
            return None
        return self.due / (self.due + self.default)


@dataclass(frozen=True, kw_only=True)
class Training:
    """One run across clients, the method named as in the study; *gap* says why one was given up.

    >>> Training(setting=ReleaseSetting("mdav", 5), seed=0, fit=None, gap="Too few clients answered.").gap
    'Too few clients answered.'
    """

    setting: ReleaseSetting
    seed: int
    fit: FederatedFit
    gap: str | None = None

    @property
    def split(self) -> str:
        """How the rows lie: `iid`, or `dirichlet(0.5)`."""
        return self.fit.split if self.fit.split != "dirichlet" else f"dirichlet({self.fit.alpha:g})"


@dataclass(frozen=True, kw_only=True)
class AcrossClients:
    """The trainings of one model, split and setting over all seeds: how rounds and clients fared.

    *missed* counts the answers that were asked for and did not come, *sat_out* the clients without a release or with too
    few rows; *ncp* and *linkage* are those of the clients' own releases: least, median, most. *gaps* are the sentences
    about what is missing, each once with how often it holds.

    >>> row = StudyRow(setting=ReleaseSetting("mdav", 5), model="logistic", split="iid")
    >>> AcrossClients(row=row, rounds=6, applied=5, missed=2, clients=4, sat_out=0, ncp=None, linkage=None).applied
    5
    """

    row: StudyRow
    rounds: int
    applied: int
    missed: int
    clients: int
    sat_out: int
    ncp: tuple[float, float, float] | None
    linkage: tuple[float, float, float] | None


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A cell without numbers, or with one that could not be computed, and the reason.

    >>> Hole(kind="model", setting=ReleaseSetting("mdav", 5), seed=0, reason="It failed.", model="knn").where
    'knn'
    """

    kind: str
    setting: ReleaseSetting
    seed: int
    reason: str
    protocol: str | None = None
    model: str | None = None
    split: str | None = None

    @property
    def where(self) -> str:
        """The model, and the split of a run across clients."""
        return ", ".join(part for part in (self.model, self.split) if part)


@dataclass(frozen=True, repr=False)
class Analysis:
    """The results of a study, one row per cell, and what they come to.

    *planned* counts the cells of the grid; every one of them is in *results*, done or as a gap with its reason.

    >>> from velado.study.evaluate._work import columns
    >>> Analysis(None, pl.DataFrame(schema=columns()), planned=0)
    Analysis(0 of 0 cells, 0 gaps)
    """

    material: Material
    results: pl.DataFrame
    planned: int

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.results.height} of {self.planned} cells, {self.gaps.height} gaps)"
        )

    @property
    def main(self) -> str:
        """The first quality of the recipe: what recommendations and trade-offs are about."""
        return self.material.recipe.metrics.quality[0]

    @property
    def protocol(self) -> str:
        """The protocol that recommendations rest on: the default one where it was run."""
        names = self.material.recipe.analyses.protocols
        return DEFAULT_PROTOCOL if DEFAULT_PROTOCOL in names else names[0]

    def overlap_of(self, protocol: str) -> float:
        """Test rows for each training row under *protocol*: how much the test parts of two seeds share."""
        analyses = self.material.recipe.analyses
        if protocol_named(protocol).sorted_folds:
            return 1 / (analyses.folds - 1)
        return analyses.test_share / (1 - analyses.test_share)

    @property
    def overlap(self) -> float:
        """That of the study's protocol."""
        return self.overlap_of(self.protocol)

    @property
    def reported(self) -> tuple[int, ...]:
        """The seeds whose models and drops are told."""
        return reporting(self.material.recipe.anonymization.seeds)

    @property
    def splits_seeds(self) -> bool:
        """Whether a setting is chosen on other seeds than those it is reported on."""
        return len(self.reported) < len(self.material.recipe.anonymization.seeds)

    @cached_property
    def done(self) -> pl.DataFrame:
        """Cells with numbers."""
        return self.results.filter(pl.col("status") == "done")

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Cells without numbers, with their reasons."""
        return self.results.filter(pl.col("status") == "gap")

    @property
    def partial(self) -> pl.DataFrame:
        """Cells with numbers of which one could not be computed, with its reason."""
        return self.done.filter(pl.col("reason").fill_null("") != "")

    @property
    def any_release(self) -> bool:
        """Whether at least one method made a release."""
        return any(not row.setting.is_original for row in self.releases)

    @cached_property
    def releases(self) -> tuple[StudyRow, ...]:
        """Loss and risk of every setting over seeds. Scope says what was anonymized."""
        numbers = (*(one.name for one in all_measures()), "groups", "smallest", "seconds")
        return self._rows(self.done.filter(pl.col("kind") == "release"), numbers, ("scope",))

    @cached_property
    def quality(self) -> tuple[StudyRow, ...]:
        """Quality of every model and setting under every protocol over the seeds that report.

        `drop_<quality>`: what it lost against the same model on the original rows; with one seed the interval of accuracy is over its test rows.
        """
        numbers = (*SCORES, *(f"drop_{name}" for name in SCORES), MAJORITY, "seconds", "test_rows")
        cells = self._with_drops.filter(pl.col("seed").is_in(self.reported))
        return tuple(self._over_test_rows(row) for row in self._rows(cells, numbers, ("protocol", "model")))

    def _over_test_rows(self, row: StudyRow) -> StudyRow:
        # One seed says nothing about splits, but its test rows say how sure its accuracy is.
        share, rows = row["accuracy"].mean, row["test_rows"].mean
        if row.seeds > 1 or share is None or rows is None:
            return row
        confidence = self.material.recipe.analyses.confidence
        found = bootstrap_interval(share, int(rows), seeded(0, "bootstrap"), confidence)
        return replace(row, numbers={**row.numbers, "accuracy": found})

    @cached_property
    def _with_drops(self) -> pl.DataFrame:
        cells = self.done.filter(pl.col("kind") == "model")
        keys = ["protocol", "seed", "model"]
        base = cells.filter(pl.col("method") == ORIGINAL).select(*keys, *SCORES)
        both = cells.join(base, on=keys, how="left", suffix="_original")
        return both.with_columns(
            ((pl.col(f"{name}_original") - pl.col(name)) * (-1 if better_when_smaller(name) else 1)).alias(
                f"drop_{name}"
            )
            for name in SCORES
        )

    def _rows(
        self,
        cells: pl.DataFrame,
        numbers: Sequence[str],
        labels: Sequence[str] = (),
        overlap: float | None = None,
    ) -> tuple[StudyRow, ...]:
        """One row per setting and *labels*: each of *numbers* over the cells, which differ by seed alone."""
        out = []
        for values, part in cells.group_by("method", "k", "guarantees", *labels, maintain_order=True):
            own = dict(zip(labels, values[3:], strict=True))
            shared = self.overlap_of(str(own["protocol"])) if "protocol" in own else overlap
            found = {
                name: possible(name, self.estimate(part.get_column(name), shared or 0.0, "drop_" in name))
                for name in numbers
            }
            setting = ReleaseSetting(*values[:3])
            if setting.is_original:  # against itself nothing is lost in any seed
                found |= {name: found[name].alone for name in numbers if name.startswith("drop_")}
            out.append(StudyRow(setting=setting, seeds=part.height, numbers=MappingProxyType(found), **own))
        return tuple(out)

    def estimate(self, values: Iterable[float | None], overlap: float, drops: bool = False) -> Interval:
        """Mean and interval of what is known of *values*, whose test parts share *overlap*; *drops* are differences of two qualities."""
        known, asked = [value for value in values if value is not None], self._asked if drops else None
        return interval(known, self.material.recipe.analyses.confidence, overlap, asked)

    @cached_property
    def _asked(self) -> int | None:
        """How many test rows a model of classes is asked about; None of other models, whose quality is no share of rows."""
        cells = self.done.filter((pl.col("kind") == "model") & pl.col("accuracy").is_not_null())
        return int(float(str(cells.get_column("test_rows").median() or 0))) or None

    @cached_property
    def tradeoff(self) -> tuple[StudyRow, ...]:
        """One row per setting under the study's protocol: `loss`, `risk`, and the mean `drop` over models.

        A seed's drop is averaged over the models first; its interval is over the seeds that report. One in which a model is missing does not count.
        """
        metrics, drop = self.material.recipe.metrics, f"drop_{self.main}"
        told = self._over_models.filter(pl.col("seed").is_in(self.reported))
        quality = {row.setting: row for row in self._rows(told, (drop, self.main), overlap=self.overlap)}
        scope = protocol_named(self.protocol).scope
        out = []
        for row in self.releases:
            if row.scope == scope:
                beside = quality.get(row.setting, StudyRow(setting=row.setting))
                numbers = {"loss": row[metrics.loss], "risk": row[metrics.risk]}
                numbers |= {"drop": beside[drop], self.main: beside[self.main]}
                out.append(StudyRow(setting=row.setting, seeds=beside.seeds, numbers=numbers))
        return tuple(out)

    @cached_property
    def compared(self) -> tuple[StudyRow, ...]:
        """The releases of `tradeoff` of which both drop and risk are known."""
        return tuple(
            row
            for row in self.tradeoff
            if not row.setting.is_original and None not in (row["drop"].mean, row["risk"].mean)
        )

    def drops_of(self, setting: ReleaseSetting, model: str | None = None) -> Mapping[int, float]:
        """What *setting* lost of the main quality in each seed that reports; the mean over all models, or one model's."""
        found = self._drops.get((setting, model), {})
        return {seed: drop for seed, drop in found.items() if seed in self.reported}

    def first_look(self, setting: ReleaseSetting) -> Interval:
        """What *setting* lost in the seeds that choose, over all models."""
        seeds = choosing(self.material.recipe.anonymization.seeds)
        found = self._drops.get((setting, None), {})
        return self.estimate((found.get(seed) for seed in seeds), self.overlap, drops=True)

    def gain(self, first: ReleaseSetting, second: ReleaseSetting, model: str) -> Interval:
        """How much more of the main quality *model* keeps with *first* than with *second*, seed by seed."""
        one, two = self.drops_of(first, model), self.drops_of(second, model)
        return self.estimate((two[seed] - one[seed] for seed in one if seed in two), self.overlap, drops=True)

    @cached_property
    def models_asked(self) -> tuple[str, ...]:
        """The models of the study under its protocol, the commonest class left aside."""
        cells = self.results.filter((pl.col("protocol") == self.protocol) & (pl.col("kind") == "model"))
        names = cells.get_column("model").drop_nulls().unique(maintain_order=True)
        return tuple(name for name in names if name != MAJORITY)

    @cached_property
    def models_left_out(self) -> tuple[str, ...]:
        """Those of them that have no drop of the main quality anywhere: no mean over models holds them."""
        known = set(self._model_drops.filter(pl.col("method") != ORIGINAL).get_column("model"))
        return tuple(name for name in self.models_asked if name not in known)

    @cached_property
    def _model_drops(self) -> pl.DataFrame:
        return self._with_drops.filter(
            (pl.col("protocol") == self.protocol)
            & (pl.col("model") != MAJORITY)
            & pl.col(f"drop_{self.main}").is_not_null()
        )

    @cached_property
    def _over_models(self) -> pl.DataFrame:
        """Main quality and drop of each setting and seed, averaged over the models; only where all of them are known."""
        cells = self._model_drops.filter(~pl.col("model").is_in(self.models_left_out))
        means = (pl.col(f"drop_{self.main}").mean(), pl.col(self.main).mean())
        found = cells.group_by("method", "k", "guarantees", "seed", maintain_order=True).agg(*means, pl.len())
        return found.filter(pl.col("len") == cells.get_column("model").n_unique())

    @cached_property
    def _drops(self) -> Mapping[tuple[ReleaseSetting, str | None], Mapping[int, float]]:
        found: dict[tuple[ReleaseSetting, str | None], dict[int, float]] = {}
        whole = self._over_models.with_columns(model=pl.lit(None, dtype=pl.String))
        columns = ("method", "k", "guarantees", "model", "seed", f"drop_{self.main}")
        for frame in (whole, self._model_drops):
            for method, k, guarantees, model, seed, drop in frame.select(columns).iter_rows():
                found.setdefault((ReleaseSetting(method, k, guarantees), model), {})[seed] = drop
        return found

    @cached_property
    def known_drops(self) -> tuple[StudyRow, ...]:
        """The rows of `quality` of releases and true models whose drop of the main quality is known."""
        return tuple(row for row in self.quality if row.learns and row[f"drop_{self.main}"].mean is not None)

    def ranked(self) -> Iterable[list[StudyRow]]:
        """For each k, promise and model the rows under the study's protocol, the least drop first."""
        level: dict[tuple[int | None, str, str | None], list[StudyRow]] = {}
        for row in self.known_drops:
            if row.protocol == self.protocol:
                level.setdefault((row.setting.k, row.setting.guarantees, row.model), []).append(row)
        name = f"drop_{self.main}"
        for rows in level.values():
            yield sorted(rows, key=lambda row: (row[name].mean or 0.0, row.setting.method))

    @cached_property
    def protocols(self) -> tuple[ProtocolEffect, ...]:
        """What each protocol alone does to the differences between methods."""
        drops: dict[str, list[float]] = {}
        level: dict[tuple[str, int | None, str, str | None], dict[str, float]] = {}
        for row in self.known_drops:
            drop, setting, protocol = row[f"drop_{self.main}"].mean or 0.0, row.setting, str(row.protocol)
            drops.setdefault(protocol, []).append(drop)
            level.setdefault((protocol, setting.k, setting.guarantees, row.model), {})[setting.method] = drop
        gaps = {
            (*key, one, two): by_method[two] - by_method[one]
            for key, by_method in level.items()
            for one, two in combinations(sorted(by_method), 2)
        }
        return tuple(_effect(protocol, fmean(own), gaps) for protocol, own in drops.items())

    @cached_property
    def federated(self) -> tuple[Training, ...]:
        """Every run across clients, round by round and client by client."""
        cells = self.results.filter((pl.col("kind") == "federated") & pl.col("fit").is_not_null())
        return tuple(
            Training(
                setting=ReleaseSetting(row["method"], row["k"]),
                seed=row["seed"],
                fit=FederatedFit.from_dict(json.loads(row["fit"])),
                gap=row["reason"] if row["status"] == "gap" else None,
            )
            for row in cells.iter_rows(named=True)
        )

    @cached_property
    def across_clients(self) -> tuple[AcrossClients, ...]:
        """The finished runs across clients, one row per model, split and setting, with intervals over seeds.

        `drop_accuracy` is what was lost, seed by seed, against clients that share their rows untouched.
        """
        cells = self.done.filter(pl.col("kind") == "federated")
        keys = ["model", "split", "seed"]
        base = cells.filter(pl.col("method") == ORIGINAL).select(*keys, untouched=pl.col("accuracy"))
        cells = cells.join(base, on=keys, how="left").with_columns(
            drop_accuracy=pl.col("untouched") - pl.col("accuracy")
        )
        numbers = ("accuracy", "auc", "log_loss", "drop_accuracy", MAJORITY)
        out = []
        part = self.material.recipe.federated
        share = self.material.recipe.analyses.test_share if part is None else part.federation.test_share
        for row in self._rows(cells, numbers, ("model", "split"), share / (1 - share)):
            fits = [
                one.fit
                for one in self.federated
                if (one.setting, one.fit.model, one.split, one.gap)
                == (row.setting, row.model, row.split, None)
            ]
            rounds = [one for fit in fits for one in fit.rounds]
            clients = [one for fit in fits for one in fit.clients]
            out.append(
                AcrossClients(
                    row=row,
                    rounds=len(rounds),
                    applied=sum(one.applied for one in rounds),
                    missed=sum(one.asked - one.replied for one in rounds),
                    clients=len(clients),
                    sat_out=sum(bool(one.gap) for one in clients),
                    ncp=_ends(one.ncp for one in clients),
                    linkage=_ends(one.linkage for one in clients),
                )
            )
        return tuple(out)

    @property
    def federated_gaps(self) -> Mapping[tuple[str, str, ReleaseSetting], tuple[str, ...]]:
        """What is missing inside trainings, by model, split and setting: each sentence once, with how often it holds."""
        out: dict[tuple[str, str, ReleaseSetting], Counter[str]] = {}
        for one in self.federated:
            counts = out.setdefault((one.fit.model, one.split, one.setting), Counter())
            counts.update(gaps_of(one.fit))
        return {
            key: tuple(text if times == 1 else f"{text} (x {times})" for text, times in counts.items())
            for key, counts in out.items()
            if counts
        }

    @property
    def majority(self) -> float | None:
        """The rate of the commonest class among the test rows, averaged over seeds."""
        cells = self.done.filter((pl.col("protocol") == self.protocol) & (pl.col("kind") == "model"))
        known = cells.get_column("majority").drop_nulls().to_list()
        return fmean(known) if known else None


def holes(cells: pl.DataFrame) -> tuple[Hole, ...]:
    """The cells of a frame by their settings and reasons.

    >>> from velado.study.evaluate._work import columns
    >>> holes(pl.DataFrame(schema=columns()))
    ()
    """
    columns = ("kind", "seed", "reason", "protocol", "model", "split")
    return tuple(
        Hole(
            setting=ReleaseSetting(row["method"], row["k"], row["guarantees"]),
            **{name: row[name] for name in columns},
        )
        for row in cells.iter_rows(named=True)
    )


def _effect(protocol: str, drop: float, gaps: Mapping[Any, float]) -> ProtocolEffect:
    own = {key[1:]: gap for key, gap in gaps.items() if key[0] == protocol}
    honest = {key: gaps[DEFAULT_PROTOCOL, *key] for key in own if (DEFAULT_PROTOCOL, *key) in gaps}

    def mean(values: Iterable[float]) -> float | None:
        known = [abs(value) for value in values]
        return fmean(known) if known else None

    return ProtocolEffect(
        protocol=protocol,
        drop=drop,
        between=mean(own.values()),
        due=mean(own[key] - gap for key, gap in honest.items()),
        default=mean(honest.values()),
        reversed=sum(own[key] * gap < 0 for key, gap in honest.items()),
        pairs=len(honest),
    )


def _ends(values: Iterable[float | None]) -> tuple[float, float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), median(known), max(known)) if known else None


def possible(name: str, found: Interval) -> Interval:
    """The interval without what cannot be: with three seeds it reaches beyond 100 %.

    >>> possible("accuracy", Interval(0.9, 0.7, 1.1)).high
    1.0
    """
    if found.mean is None or found.low is None or found.high is None:
        return found
    measure = next((one for one in all_measures() if one.name == name), None)
    if name == "r2":
        return replace(found, high=max(min(found.high, 1.0), found.mean))
    if name.startswith("drop_") or (measure is not None and measure.signed):
        return found
    if measure is not None:
        share = measure.is_share
    else:
        share = name == MAJORITY or (name in SCORES and is_share(name))
    high = min(found.high, 1.0) if share else found.high
    return replace(found, low=max(found.low, 0.0), high=max(high, found.mean))
