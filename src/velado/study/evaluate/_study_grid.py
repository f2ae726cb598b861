"""The cells of a study: each one number to know, with an id made of everything it depends on.

A *release cell* is what one release lost and what an attacker can do with it; a *model cell* is how good one model is
that learned from it; a *federated cell* is one model trained across clients that each anonymize their own rows. Cells that
need the same release are one *job*; a federated cell is a job of its own. An id is a digest of the table's fingerprint under
the owner's key, the schema and all settings the cell depends on, and of nothing else: a study that gains a method or a k
computes the new cells only, and ids tell nobody else which table it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from velado.learning.flower.federation import Federation
from velado.measures.models._model import Model
from velado.measures.models.model_registry import Majority
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods._method import Method
from velado.settings import entry_of
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import Scope, protocol_named
from velado.study.evaluate.study_settings import has_k, label_of

ORIGINAL = "original"
"""The name under which the untouched table stands beside the methods."""

VERSION = 5
"""Raised when cells mean something else than before, so that old results are not taken for new ones."""

METHOD_PACE = 0.4
"""Seconds a method takes for 10,000 rows, roughly."""

FEDERATED_PACE: Mapping[str, float] = {"logistic": 0.007, "xgboost": 0.014}
"""Seconds of a client's turn in a round, with 3,000 rows of 100 features."""

ENGINE_START, ENGINE_TURN = 10.0, 0.03
"""What Flower's simulation engine adds: seconds until it runs, and seconds for each client's turn."""


At = tuple[Method | None, int | None]
"""A method and its k; (None, None) is the original table."""


@dataclass(frozen=True)
class Cell:
    """One thing to know. *model* and *protocol* are None for a release cell."""

    id: str
    protocol: str | None
    model: Model | None


@dataclass(frozen=True)
class GridJob:
    """One release, and the cells that need it. *method* None is the original table.

    With a *federation* the job is one run across clients, and its only cell that run.
    """

    scope: Scope
    method: Method | None
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
        return " + ".join(label_of(one) for one in self.guarantees)

    def only(self, ids: set[str]) -> GridJob:
        """The same release with the cells of *ids*."""
        return replace(self, cells=tuple(cell for cell in self.cells if cell.id in ids))


def plan(material: Material) -> tuple[GridJob, ...]:
    """Every job of the study, seed by seed, the originals first: an interrupted study has whole repetitions."""
    recipe, axes = material.recipe, material.recipe.anonymization
    scopes = dict.fromkeys(protocol_named(name).scope for name in recipe.analyses.protocols)
    jobs = []
    for seed in axes.seeds:
        for scope in scopes:
            jobs.append(_job(material, scope, (None, None), (), seed))
            jobs += [
                _job(material, scope, at, promised, seed)
                for at in at_each_k(axes.methods, axes.k)
                for promised in axes.guarantees
            ]
    return (*jobs, *_federated(material))


def at_each_k(methods: Iterable[Method], ks: Iterable[int]) -> Iterator[At]:
    """Every method at every k; one that promises no group size once.

    >>> from velado.release.methods import DAS, Mondrian
    >>> [k for _, k in at_each_k([Mondrian(), DAS()], [3, 6])]
    [3, 6, None]
    """
    ks = tuple(ks)
    for method in methods:
        yield from ((method, k) for k in (ks if has_k(method) else (None,)))


def _federated(material: Material) -> list[GridJob]:
    """The runs across clients, after everything else: they take all cores."""
    part = material.recipe.federated
    if part is None:
        return []
    return [
        _federated_job(material, federation, at, seed)
        for seed in part.seeds
        for federation in part.federations
        for at in ((None, None), *at_each_k(part.methods, part.k))
    ]


def _release_content(material: Material, at: At, seed: int) -> dict[str, object]:
    """What every cell of a release depends on; rows without a target are left out under every protocol."""
    return {
        "version": VERSION,
        "table": material.fingerprint,
        "schema": material.schema_digest,
        "method": None if at[0] is None else entry_of(at[0]),
        "k": at[1],
        "suppression": material.recipe.anonymization.suppression,
        "seed": seed,
        "target": material.recipe.data.target,
    }


def _model_content(material: Material) -> dict[str, object]:
    """What every cell of a model depends on besides its release."""
    return {
        "positive": material.recipe.data.positive,
        "features": list(material.features),
        "encoder": material.recipe.models.encoding,
    }


def _federated_job(material: Material, federation: Federation, at: At, seed: int) -> GridJob:
    content = {"cell": "federated", **_release_content(material, at, seed), **_model_content(material)}
    cell = Cell(_digest({**content, "federation": asdict(federation)}), None, None)
    return GridJob("train", *at, (), seed, (cell,), federation)


def _job(material: Material, scope: Scope, at: At, promised: tuple[Guarantee, ...], seed: int) -> GridJob:
    recipe = material.recipe
    share = recipe.analyses.test_share
    release = {
        **_release_content(material, at, seed),
        "scope": scope,
        "guarantees": [entry_of(one) for one in promised],
        "per": recipe.anonymization.per,
        # The split, and with it the training part, follows from the target's classes.
        **({"test_share": share} if scope == "train" else {}),
    }
    cells = [Cell(_digest({"cell": "release", **release}), None, None)]
    models = list(recipe.models.use)
    common = any(isinstance(model, Majority) for model in models)
    if at[0] is None and not common and not recipe.number:  # always saying the mean has an R2 of 0 anyway
        models.append(Majority())  # the line that every model must beat stands in every study
    for protocol in map(protocol_named, recipe.analyses.protocols):
        if protocol.scope != scope:
            continue
        content = {
            "cell": "model",
            **release,
            **_model_content(material),
            "protocol": protocol.name,
            "folds": recipe.analyses.folds if protocol.sorted_folds else None,
            "test_share": share,
        }
        cells += [
            Cell(_digest({**content, "model": entry_of(model)}), protocol.name, model) for model in models
        ]
    return GridJob(scope, *at, promised, seed, tuple(cells))


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def cells_of(jobs: tuple[GridJob, ...]) -> Iterator[tuple[GridJob, Cell]]:
    """Every cell with its job."""
    for job in jobs:
        for cell in job.cells:
            yield job, cell


def estimate(job: GridJob, material: Material) -> float:
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
            folds = material.recipe.analyses.folds if protocol_named(str(cell.protocol)).sorted_folds else 1
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
