"""One job done: a release, what it lost and gives away, and every model that is asked of it.

What cannot be computed is a gap: a row with its reason in place of numbers. Nothing here touches the disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

from velado.data.table import Table
from velado.errors import VeladoError
from velado.learning.flower.federation import Federation
from velado.measures.measured import Scores, Settings, measure, measure_files
from velado.measures.models.encoder import Encoder, fit_encoder
from velado.measures.models.model_registry import Model
from velado.measures.models.quality import QUALITIES, Quality, fit_and_predict, quality
from velado.release.anonymize import anonymize
from velado.release.release import Release
from velado.study.evaluate.federated_cells import federated_numbers, stopped_fit
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import Protocol, Split, protocol_named, unshuffled_folds
from velado.study.evaluate.study_grid import Cell, Job, in_turn
from velado.study.evaluate.study_settings import label as split_label

RELEASE_NUMBERS = (
    "ncp",
    "discernibility",
    "average_group_size",
    "record_linkage",
    "reidentification",
    "highest_risk",
    "attribute_gain",
    "false_cells",
    "suppressed",
)
SCHEMA: Mapping[str, Any] = {
    "cell": pl.String,
    "kind": pl.String,
    "protocol": pl.String,
    "scope": pl.String,
    "method": pl.String,
    "k": pl.Int64,
    "guarantees": pl.String,
    "seed": pl.Int64,
    "model": pl.String,
    "status": pl.String,
    "reason": pl.String,
    "again": pl.Boolean,
    "seconds": pl.Float64,
    "rows": pl.Int64,
    "groups": pl.Int64,
    "smallest": pl.Int64,
    **dict.fromkeys(RELEASE_NUMBERS, pl.Float64),
    "test_rows": pl.Int64,
    "majority": pl.Float64,
    **dict.fromkeys(QUALITIES, pl.Float64),
    "split": pl.String,
    "fit": pl.String,
}
"""The columns of a study's results; a gap has its reason and null numbers.

*split* says how the rows of a federated cell lie, *fit* is its whole run as JSON; both are null elsewhere.
"""


# Partial knowledge tries every part of the quasi-identifiers: minutes on a wide table, and no axis of a study.
_SETTINGS = Settings(partial_knowledge=False)


@dataclass(frozen=True, repr=False)
class _Ground:
    """What a job works on: the rows that are anonymized, their release, and how long it took."""

    table: Table
    split: Split
    frame: pl.DataFrame
    order: Any
    scores: Scores | None
    release: Release | None
    seconds: float


def carry_out(job: Job, material: Material) -> Iterator[dict[str, Any]]:
    """The result of every cell of *job*, one after the other, each as soon as it is known."""
    if job.federation is not None:
        yield from (_across_clients(job, cell, job.federation, material) for cell in job.cells)
        return
    # Cells run side by side in processes of their own; threads inside each would only get in one another's way.
    with import_module("threadpoolctl").threadpool_limits(limits=1):
        try:
            ground = _ground(job, material)
        except Exception as error:
            yield from (_gap(job, cell, error) for cell in job.cells)
            return
        encoders: dict[str, Any] = {}
        for cell in job.cells:
            try:
                if cell.model is None:
                    yield _row(job, cell, _release_numbers(ground))
                else:
                    yield _row(job, cell, _model_numbers(job, cell, cell.model, material, ground, encoders))
            except Exception as error:
                yield _gap(job, cell, error)


def _ground(job: Job, material: Material) -> _Ground:
    split = material.split(job.seed)
    table = material.table
    if job.scope == "train":
        table = table.with_frame(table.frame[split.train])
    start = time.process_time()
    if job.method is None:
        published = [name for name in table.frame.columns if table.schema.columns[name].published]
        frame = table.frame.select(published)
        original = measure_files(table, frame, settings=_SETTINGS)
        return _Ground(
            table, split, frame, np.arange(table.rows), original, None, time.process_time() - start
        )
    recipe = material.recipe
    release = anonymize(
        table,
        table.schema,
        recipe.method(job.method),
        job.guarantees,
        k=job.k,
        suppression=recipe.suppression,
        seed=job.seed,
        per=recipe.per,
    )
    seconds = time.process_time() - start
    scores = measure(release, _SETTINGS) if any(c.model is None for c in job.cells) else None
    return _Ground(table, split, release.aligned, np.flatnonzero(release.kept), scores, release, seconds)


def _across_clients(job: Job, cell: Cell, federation: Federation, material: Material) -> dict[str, Any]:
    """The row of a federated cell: what its last round reached, and the whole run beside it."""
    # Side by side with other cells a run has one thread; alone it has what the engine gives it.
    threads = None if in_turn(material) else 1
    try:
        with import_module("threadpoolctl").threadpool_limits(limits=threads):
            return _row(job, cell, federated_numbers(job, federation, material))
    except Exception as error:
        # A run that had to be given up tells how far it came.
        return {**_gap(job, cell, error), "fit": stopped_fit(error)}


def _release_numbers(ground: _Ground) -> dict[str, Any]:
    assert ground.scores is not None
    said = ground.scores.to_dict()
    utility, risk = said["utility"], said["risk"]
    after = risk["after"]["by_person"] or risk["after"]["by_row"]
    gains = [one["gain"] for one in (risk.get("attribute_disclosure") or {}).values() if one]
    sizes = risk["after"]["class_sizes"]
    unknown = {name: text for name, text in said["not_measured"].items() if name != "partial knowledge"}
    return {
        "reason": " ".join(f"{name}: {text}" for name, text in sorted(unknown.items())),
        "rows": ground.table.rows,
        "groups": sizes["classes"],
        "smallest": sizes["smallest"],
        "ncp": None if utility["ncp"] is None else utility["ncp"]["overall"],
        "discernibility": utility["discernibility"]["normalized"],
        "average_group_size": utility["average_group_size"]["mean"],
        "record_linkage": None if risk["record_linkage"] is None else risk["record_linkage"]["share"],
        "reidentification": after["marketer"]["expected_share"],
        "highest_risk": after["prosecutor"]["highest"],
        "attribute_gain": max(gains, default=None),
        "false_cells": None if utility["false_cells"] is None else utility["false_cells"]["share"],
        "suppressed": said["rows"]["suppressed"] / ground.table.rows,
        "seconds": ground.seconds,
    }


def _model_numbers(
    job: Job,
    cell: Cell,
    model: Model,
    material: Material,
    ground: _Ground,
    made: dict[str, Any],
) -> dict[str, Any]:
    protocol = protocol_named(str(cell.protocol))
    if protocol.name not in made:
        made["ranges"] = _encoder(material, ground).ranges
        made[protocol.name] = _encoded(protocol, material, ground)
    parts = made[protocol.name]
    found = []
    seconds = 0.0
    for taught, labels, asked, truth in parts:
        answers = fit_and_predict(
            model, taught, labels, asked, len(material.classes), job.seed, made["ranges"]
        )
        found.append(quality(truth, answers, material.positive))
        seconds += answers.seconds
    return {**_mean_quality(found), "seconds": seconds, "rows": parts[0][1].size}


def _encoded(protocol: Protocol, material: Material, ground: _Ground) -> list[tuple[Any, Any, Any, Any]]:
    """(training features, training labels, test features, test labels), one entry per fold.

    The encoder is fitted on what is known before the test: the training part's true rows, or under the sources'
    protocols the whole table.
    """
    recipe = material.recipe
    encoder = _encoder(material, ground)
    features, labels = encoder.features(ground.frame), encoder.labels(ground.frame)
    if protocol.true_test:
        test = material.table.frame[ground.split.test]
        return [(features, labels, encoder.features(test, "whole"), encoder.labels(test))]
    if protocol.sorted_folds:
        folds = unshuffled_folds(_output_order(encoder, ground), recipe.folds)
    else:
        # Rows of the release that lie in either part; a suppressed row is in neither.
        tested = np.isin(ground.order, ground.split.test)
        folds = [Split(np.flatnonzero(~tested), np.flatnonzero(tested))]
    return [(features[f.train], labels[f.train], features[f.test], labels[f.test]) for f in folds]


def _encoder(material: Material, ground: _Ground) -> Encoder:
    recipe = material.recipe
    return fit_encoder(ground.table, recipe.target, recipe.encoder, material.features, material.classes)


def _output_order(encoder: Encoder, ground: _Ground) -> Any:
    """The release as a clustering program writes it: class after class. The original keeps its own order."""
    if ground.release is None:
        return np.arange(ground.frame.height)
    return np.argsort(ground.release.checked.partition.labels, kind="stable")


def _mean_quality(found: list[Quality]) -> dict[str, Any]:
    out: dict[str, Any] = {"test_rows": sum(one.rows for one in found)}
    for name in ("majority", *QUALITIES):
        values = [getattr(one, name) for one in found]
        out[name] = None if any(value is None for value in values) else float(np.mean(values))
    reasons = {key: text for one in found for key, text in one.reasons.items()}
    if reasons:
        out["reason"] = " ".join(f"{key}: {text}" for key, text in sorted(reasons.items()))
    return out


def _row(job: Job, cell: Cell, numbers: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(SCHEMA)
    return {
        **empty,
        "cell": cell.id,
        "kind": _kind(job, cell),
        "protocol": cell.protocol,
        "scope": None if job.federation else job.scope,
        "method": job.label,
        "k": job.k,
        "guarantees": job.promised,
        "seed": job.seed,
        "model": _model(job, cell),
        "split": None if job.federation is None else split_label(job.federation),
        "status": "done",
        "reason": "",
        "again": False,
        **numbers,
    }


def _kind(job: Job, cell: Cell) -> str:
    if job.federation is not None:
        return "federated"
    return "release" if cell.model is None else "model"


def _model(job: Job, cell: Cell) -> str | None:
    if job.federation is not None:
        return job.federation.model
    return None if cell.model is None else model_label(cell.model)


def _gap(job: Job, cell: Cell, error: Exception) -> dict[str, Any]:
    # Our own errors say why and hold no value; others may quote cells, so that only their kind is kept.
    known = isinstance(error, VeladoError)
    reason = str(error) if known else f"An unexpected {type(error).__name__} stopped it."
    return {**_row(job, cell, {}), "status": "gap", "reason": reason, "again": not known}


def lost(job: Job) -> list[dict[str, Any]]:
    """The gaps of a job whose process ended before it could say anything."""
    reason = "The process that computed it ended without a word, as it does when memory runs out."
    return [{**_row(job, cell, {}), "status": "gap", "reason": reason, "again": True} for cell in job.cells]


def model_label(model: Model) -> str:
    """`name` or `name(setting=value, ...)`, defaults left out."""
    plain = type(model)()
    given = {name: value for name, value in vars(model).items() if value != getattr(plain, name)}
    inside = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{model.name}({inside})" if inside else model.name
