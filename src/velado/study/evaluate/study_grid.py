"""The cells of a study: each one number to know, with an id made of everything it depends on.

A *release cell* is what one release lost and what an attacker can do with it; a *model cell* is how good one model is
that learned from it; a *federated cell* is one model trained across clients that each anonymize their own rows. Cells that
need the same release are one *job*; a federated cell is a job of its own. An id is a digest of the table, the schema and all
settings the cell depends on, and of nothing else: a study that gains a method or a k computes the new cells only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from velado.learning.flower.federation import Federation
from velado.measures.models.model_registry import Majority, Model, parameters
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import method_named
from velado.release.parameters import entry_of
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import Scope, protocol_named
from velado.study.evaluate.study_settings import has_k

ORIGINAL = "original"
"""The name under which the untouched table stands beside the methods."""

VERSION = 3
"""Raised when cells mean something else than before, so that old results are not taken for new ones."""

METHOD_PACE = 0.4
"""Seconds a method takes for 10,000 rows, roughly."""

FEDERATED_PACE: Mapping[str, float] = {"logistic": 0.007, "xgboost": 0.014}
"""Seconds of a client's turn in a round, with 3,000 rows of 100 features."""

ENGINE_START, ENGINE_TURN = 10.0, 0.03
"""What Flower's simulation engine adds: seconds until it runs, and seconds for each client's turn."""


@dataclass(frozen=True)
class Cell:
    """One thing to know. *model* and *protocol* are None for a release cell."""

    id: str
    protocol: str | None
    model: Model | None


@dataclass(frozen=True)
class Job:
    """One release, and the cells that need it. *method* None is the original table.

    With a *federation* the job is one run across clients, and its only cell that run.
    """

    scope: Scope
    method: Mapping[str, Any] | None
    k: int | None
    guarantees: tuple[Guarantee, ...]
    seed: int
    cells: tuple[Cell, ...]
    federation: Federation | None = None

    @property
    def label(self) -> str:
        """The method and every setting that is not its default."""
        return ORIGINAL if self.method is None else label_of(self.method)

    @property
    def promised(self) -> str:
        """The guarantees beyond k, as a label; empty where there are none."""
        return " + ".join(label_of(entry_of(one), one) for one in self.guarantees)

    def only(self, ids: set[str]) -> Job:
        """The same release with the cells of *ids*."""
        return replace(self, cells=tuple(cell for cell in self.cells if cell.id in ids))


def label_of(entry: Mapping[str, Any], part: Any = None) -> str:
    """`name` or `name(setting=value, ...)`, defaults left out."""
    kind: Any = type(part) if part is not None else method_named(str(entry["name"]))
    defaults = {one.name: one.default for one in fields(kind)}
    given = {key: value for key, value in entry.items() if key != "name" and defaults.get(key) != value}
    inside = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{entry['name']}({inside})" if inside else str(entry["name"])


def plan(material: Material) -> tuple[Job, ...]:
    """Every job of the study, seed by seed, the originals first: an interrupted study has whole repetitions."""
    recipe = material.recipe
    scopes = dict.fromkeys(protocol_named(name).scope for name in recipe.protocols)
    jobs = []
    for seed in recipe.seeds:
        for scope in scopes:
            jobs.append(_job(material, scope, None, None, (), seed))
            for entry in recipe.methods:
                for k in recipe.k if has_k(str(entry["name"])) else (None,):
                    for promised in recipe.guarantees:
                        jobs.append(_job(material, scope, entry, k, promised, seed))
    return (*jobs, *_federated(material))


def _federated(material: Material) -> list[Job]:
    """The runs across clients, after everything else: they take all cores."""
    part = material.recipe.federated
    if part is None:
        return []
    jobs = []
    for seed in part.seeds:
        for federation in part.federations:
            jobs.append(_federated_job(material, federation, None, None, seed))
            for entry in part.methods:
                for k in part.k if has_k(str(entry["name"])) else (None,):
                    jobs.append(_federated_job(material, federation, entry, k, seed))
    return jobs


def _federated_job(
    material: Material, federation: Federation, entry: Mapping[str, Any] | None, k: int | None, seed: int
) -> Job:
    recipe = material.recipe
    content = {
        "cell": "federated",
        "version": VERSION,
        "table": material.fingerprint,
        "schema": material.schema_digest,
        "method": None if entry is None else entry_of(recipe.method(entry)),
        "k": k,
        "seed": seed,
        "target": recipe.target,
        "positive": recipe.positive,
        "features": list(material.features),
        "encoder": asdict(recipe.encoder),
        "suppression": recipe.suppression,
        "federation": asdict(federation),
    }
    cell = Cell(_digest(content), None, None)
    return Job("train", entry, k, (), seed, (cell,), federation)


def _job(
    material: Material,
    scope: Scope,
    entry: Mapping[str, Any] | None,
    k: int | None,
    promised: tuple[Guarantee, ...],
    seed: int,
) -> Job:
    recipe = material.recipe
    method = None if entry is None else entry_of(recipe.method(entry))
    release = {
        "version": VERSION,
        "table": material.fingerprint,
        "schema": material.schema_digest,
        "scope": scope,
        "method": method,
        "k": k,
        "guarantees": [entry_of(one) for one in promised],
        "suppression": recipe.suppression,
        "per": recipe.per,
        "seed": seed,
        # Rows without a target are left out under every protocol.
        "target": recipe.target,
        # The split, and with it the training part, follows from the target's classes.
        **({"test_share": recipe.test_share} if scope == "train" else {}),
    }
    cells = [Cell(_digest({"cell": "release", **release}), None, None)]
    models = list(recipe.models)
    if entry is None and not any(isinstance(model, Majority) for model in models):
        models.append(Majority())  # the line that every model must beat stands in every study
    for name in recipe.protocols:
        protocol = protocol_named(name)
        if protocol.scope != scope:
            continue
        for model in models:
            content = {
                "cell": "model",
                **release,
                "protocol": name,
                "folds": recipe.folds if protocol.sorted_folds else None,
                "test_share": recipe.test_share,
                "positive": recipe.positive,
                "features": list(material.features),
                "encoder": asdict(recipe.encoder),
                "model": parameters(model),
            }
            cells.append(Cell(_digest(content), name, model))
    return Job(scope, entry, k, promised, seed, tuple(cells))


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def cells_of(jobs: tuple[Job, ...]) -> Iterator[tuple[Job, Cell]]:
    """Every cell with its job."""
    for job in jobs:
        for cell in job.cells:
            yield job, cell


def estimate(job: Job, material: Material) -> float:
    """Seconds the job will take on one core, roughly: paces measured once, in proportion to rows and features.

    A run across clients that takes all cores has seconds of the clock.
    """
    if job.federation is not None:
        return federated_estimate(job.federation, material)
    size = material.table.rows / 10_000
    wide = max(material.width / 100, 0.2)
    seconds = 0.3 + (METHOD_PACE * size if job.method is not None else 0.2 * size)
    for cell in job.cells:
        if cell.model is not None:
            folds = material.recipe.folds if protocol_named(str(cell.protocol)).sorted_folds else 1
            seconds += folds * cell.model.pace * size * wide
    return seconds


def federated_estimate(federation: Federation, material: Material) -> float:
    """Seconds of one run across clients: every client's turn in every round, and what the engine adds."""
    each = material.table.rows / federation.clients / 3_000 * max(material.width / 100, 0.2)
    turns = federation.rounds * federation.clients
    seconds = 0.5 + turns * FEDERATED_PACE[federation.model] * (0.2 + 0.8 * each)
    return seconds + (ENGINE_START + turns * ENGINE_TURN if in_turn(material) else 0.0)


def in_turn(material: Material) -> bool:
    """Whether runs across clients take all cores, so that they go one after the other."""
    part = material.recipe.federated
    return part is not None and part.engine == "flower"
