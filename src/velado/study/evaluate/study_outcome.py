"""Study: the outcome of an evaluation, and its facts, from which JSON, Markdown, the page and the terminal are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from velado.measures.models.quality import Interval
from velado.study.evaluate._advice import Recommendation, not_tested, recommend
from velado.study.evaluate._claims import Best, claims_of
from velado.study.evaluate._matched import Leader
from velado.study.evaluate.analysis import (
    MAJORITY,
    AcrossClients,
    Analysis,
    Hole,
    ProtocolEffect,
    ReleaseSetting,
    StudyRow,
    Training,
    holes,
    reporting,
)
from velado.study.evaluate.study_settings import StudyRecipe
from velado.text import Language, told

Plain = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class StudiedTable:
    """The table of a study in numbers: no cell of it, and no digest that others could test guesses with.

    *keyed_sha256* is its fingerprint under the owner's key that *key* names. *alone* classes were never asked about.

    >>> shape = {"rows": 240, "dropped": 0, "alone": 0, "classes": 2, "features": ("age",), "encoded": 1}
    >>> StudiedTable(source="people.csv", described={}, keyed_sha256="ab", key="01", **shape).rows
    240
    """

    source: str
    described: Plain
    keyed_sha256: str
    key: str
    rows: int
    dropped: int
    alone: int
    classes: int
    features: tuple[str, ...]
    encoded: int


@dataclass(frozen=True, kw_only=True)
class StudyFacts:
    """Everything a study found, typed and without language; no cell of the table.

    *left_out* are the models whose main quality is not known anywhere; *same_risk* has for each k, promise and model the
    release that loses least beside all others at its risk; *partial* are cells of which one number is missing.

    >>> sorted(one for one in vars(StudyFacts) if one in ("choice", "limit", "methods"))
    ['choice', 'limit', 'methods']
    """

    recipe: StudyRecipe
    table: StudiedTable
    planned: int
    done: int
    main: str
    protocol: str
    majority: float | None
    left_out: tuple[str, ...]
    recommendation: Recommendation
    tradeoff: tuple[StudyRow, ...]
    releases: tuple[StudyRow, ...]
    quality: tuple[StudyRow, ...]
    best: tuple[Best, ...]
    same_risk: tuple[Leader, ...]
    protocols: tuple[ProtocolEffect, ...]
    federated: tuple[Training, ...]
    across_clients: tuple[AcrossClients, ...]
    federated_gaps: Mapping[tuple[str, str, ReleaseSetting], tuple[str, ...]]
    gaps: tuple[Hole, ...]
    partial: tuple[Hole, ...]
    not_tested: tuple[str, ...]

    @property
    def choice(self) -> StudyRow | None:
        """The recommended setting."""
        return self.recommendation.choice

    @property
    def limit(self) -> float:
        """How much of the main quality a recommended setting may lose."""
        return self.recipe.analyses.most_drop

    @property
    def seeds(self) -> int:
        """How often everything was repeated."""
        return len(self.recipe.anonymization.seeds)

    @property
    def reported(self) -> int:
        """How many of the repetitions the figures of models come from; the others chose."""
        return len(reporting(self.recipe.anonymization.seeds))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run, each with its settings, those of which nothing came to an end among them."""
        holes = (hole.setting for hole in self.gaps if hole.kind != "federated")
        settings = {row.setting for row in self.releases} | set(holes)
        found = {setting.method for setting in settings if not setting.is_original}
        return tuple(sorted(found, key=self._method_place))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were trained, each with its settings; the commonest class only where the recipe lists it."""
        names = (
            *(row.model for row in self.quality),
            *(hole.model for hole in self.gaps if hole.kind == "model"),
        )
        found = {name for name in names if name is not None}
        found -= {MAJORITY} - {one.name for one in self.recipe.models.use}
        return tuple(sorted(found, key=self._model_place))

    def in_order(self) -> StudyFacts:
        """The rows in the order of the recipe: cells arrive as they are finished, readers look for order."""

        def key(row: StudyRow | Hole) -> tuple[object, ...]:
            return (
                *self._method_place(row.setting.method),
                *row.setting.order,
                *self._model_place(row.model or ""),
            )

        def place(one: Training) -> tuple[object, ...]:
            return *self._method_place(one.setting.method), *one.setting.order

        return replace(
            self,
            releases=tuple(sorted(self.releases, key=key)),
            quality=tuple(sorted(self.quality, key=key)),
            gaps=tuple(sorted(self.gaps, key=key)),
            partial=tuple(sorted(self.partial, key=key)),
            federated=tuple(sorted(self.federated, key=place)),
        )

    def _method_place(self, label: str) -> tuple[int, str]:
        return _place([one.name for one in self.recipe.anonymization.methods], label)

    def _model_place(self, label: str) -> tuple[int, str]:
        return _place([one.name for one in self.recipe.models.use], label)

    def to_dict(self, language: Language = "en") -> dict[str, object]:
        """Plain values for study.json, sentences in *language*."""
        said, table = self.recommendation, self.table
        return {
            "study_version": 2,
            "language": language,
            "recipe": self.recipe.to_dict(),
            "table": {
                "source": table.source,
                **table.described,
                "keyed_sha256": table.keyed_sha256,
                "key": table.key,
                "rows_without_target": table.dropped,
                "classes_never_tested": table.alone,
                "classes": table.classes,
                "features": list(table.features),
                "features_encoded": table.encoded,
            },
            "cells": {"planned": self.planned, "done": self.done, "gaps": len(self.gaps)},
            "main_quality": self.main,
            "protocol": self.protocol,
            "majority": self.majority,
            "models_left_out": list(self.left_out),
            "recommendation": {
                "choice": None if said.choice is None else flat(said.choice),
                "decision": said.decision,
                "within_limit": said.within_limit,
                "more_seeds": said.more_seeds,
                "rows": said.rows,
                "sentences": [told(sentence, language) for sentence in said.sentences],
            },
            **{
                name: [flat(one) for one in getattr(self, name)]
                for name in ("tradeoff", "releases", "quality", "same_risk", "gaps", "partial")
            },
            "best": [flat(one) for one in self.best],
            "protocols": [{**flat(one), "share": one.share} for one in self.protocols],
            "federated": [
                {**one.fit.to_dict(), **flat(one.setting), "seed": one.seed, "gap": one.gap}
                for one in self.federated
            ],
            "federated_summary": [flat(one) for one in self.across_clients],
            "federated_gaps": [
                {
                    "model": model,
                    "split": split,
                    **flat(setting),
                    "gaps": [told(gap, language) for gap in gaps],
                }
                for (model, split, setting), gaps in self.federated_gaps.items()
            ],
            "not_tested": [told(sentence, language) for sentence in self.not_tested],
        }


def flat(one: Any) -> dict[str, object]:
    """A row as plain values on one level: an interval becomes three numbers, what plays no part is left out.

    >>> flat(StudyRow(setting=ReleaseSetting("mdav", 5), seeds=2, numbers={"ncp": Interval(0.2, 0.1, 0.3)}))
    {'method': 'mdav', 'k': 5, 'guarantees': '', 'ncp': 0.2, 'ncp_low': 0.1, 'ncp_high': 0.3, 'seeds': 2}
    """
    out: dict[str, object] = {}
    for name, value in vars(one).items():
        if name in ("setting", "row"):
            out |= flat(value)
        elif name == "numbers":
            for number, found in value.items():
                out |= _spread(number, found.ends)
        elif isinstance(value, Interval):
            out |= _spread(name, value.ends)
        elif name == "beside":
            out[name] = [flat(other) for other in value]
        elif isinstance(one, AcrossClients) and not isinstance(value, int):
            out |= _spread(name, value or (None, None, None), ("_least", "_median", "_most"))
        elif value is not None or not isinstance(one, StudyRow):
            out[name] = value
    return out


def _spread(
    name: str, values: Sequence[float | None], ends: Sequence[str] = ("", "_low", "_high")
) -> dict[str, float | None]:
    return {f"{name}{end}": value for end, value in zip(ends, values, strict=True)}


@dataclass(frozen=True, repr=False)
class Study(Analysis):
    """What `evaluate` gives back: the results of the cells, what they come to, and the advice that follows.

    >>> import polars as pl
    >>> from velado.study.evaluate._work import columns
    >>> Study(None, pl.DataFrame(schema=columns()), planned=4)
    Study(0 of 4 cells, 0 gaps)
    """

    def facts(self) -> StudyFacts:
        """Everything the study found."""
        material, claims = self.material, claims_of(self)
        return StudyFacts(
            recipe=material.recipe,
            table=StudiedTable(
                source=material.table.source,
                described=material.table.to_dict(),
                keyed_sha256=material.fingerprint,
                key=material.key,
                rows=material.table.rows,
                dropped=material.dropped,
                alone=material.alone,
                classes=len(material.classes),
                features=material.features,
                encoded=material.width,
            ),
            planned=self.planned,
            done=self.done.height,
            main=self.main,
            protocol=self.protocol,
            majority=self.majority,
            left_out=self.models_left_out,
            recommendation=recommend(self, claims),
            tradeoff=self.tradeoff,
            releases=self.releases,
            quality=self.quality,
            best=claims.best,
            same_risk=claims.leaders,
            protocols=self.protocols,
            federated=self.federated,
            across_clients=self.across_clients,
            federated_gaps=self.federated_gaps,
            gaps=holes(self.gaps),
            partial=holes(self.partial),
            not_tested=tuple(not_tested(self)),
        )


def _place(names: list[str], label: str) -> tuple[int, str]:
    name = label.partition("(")[0]
    return (names.index(name) if name in names else -1), label
