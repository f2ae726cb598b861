"""One job done: a release, what it lost and gives away, and every model that is asked of it.

What cannot be computed is a gap: a result with its reason in place of numbers. Nothing here touches the disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.table import Table
from velado.errors import ParameterError, VeladoError
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import FederatedFit, FederationStopped
from velado.measures.measure_registry import all_measures
from velado.measures.measured import MeasureSettings, Scores, measure, measure_files
from velado.measures.models._model import Model
from velado.measures.models.encoder import Encoder, FloatMatrix, fit_encoder
from velado.measures.models.number_quality import (
    NUMBER_QUALITIES,
    NumberQuality,
    fit_and_estimate,
    number_quality,
    target_numbers,
)
from velado.measures.models.quality import QUALITIES, Quality, fit_and_predict, quality
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.release import Release
from velado.study.evaluate._study_grid import Cell, GridJob, in_turn
from velado.study.evaluate.load import Material
from velado.study.evaluate.protocols import EvaluationProtocol, Split, protocol_named, unshuffled_folds
from velado.study.evaluate.study_settings import label_of
from velado.text import say, say_n


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What is known of one cell; a gap has its *reason* and no numbers, and is tried *again* if the data was not why.

    *split* says how the rows of a federated cell lie, *fit* is its whole run as JSON; both are None elsewhere.

    >>> CellResult(cell="ab", kind="release", method="mdav", seed=0).status
    'done'
    """

    cell: str
    kind: str
    protocol: str | None = None
    scope: str | None = None
    method: str
    k: int | None = None
    guarantees: str = ""
    seed: int
    model: str | None = None
    status: str = "done"
    reason: str = ""
    again: bool = False
    seconds: float | None = None
    rows: int | None = None
    groups: int | None = None
    smallest: int | None = None
    measured: Mapping[str, float | None] = field(default_factory=dict)
    test_rows: int | None = None
    majority: float | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    r2: float | None = None
    rmse: float | None = None
    mae: float | None = None
    split: str | None = None
    fit: str | None = None

    def to_row(self) -> dict[str, object]:
        """By the columns of a study's results: a column for every registered measure."""
        return {name: getattr(self, name, None) for name in columns()} | dict(self.measured)


_TYPES: Mapping[object, type[pl.DataType]] = {
    str: pl.String,
    int: pl.Int64,
    float: pl.Float64,
    bool: pl.Boolean,
}


def columns() -> dict[str, type[pl.DataType]]:
    """The columns of a study's results, the measures of a release where a result holds them.

    >>> [name for name in columns() if "risk" in name]
    ['highest_risk']
    """
    out: dict[str, type[pl.DataType]] = {}
    for name, hint in get_type_hints(CellResult).items():
        if name == "measured":
            out.update((one.name, pl.Float64) for one in all_measures())
        else:
            out[name] = _TYPES[next(one for one in (*get_args(hint), hint) if one is not NoneType)]
    return out


# Partial knowledge tries every part of the quasi-identifiers: minutes on a wide table, and no axis of a study.
_MEASURED = MeasureSettings(partial_knowledge=False)

Lesson = tuple[FloatMatrix, npt.NDArray[Any], FloatMatrix, npt.NDArray[Any]]
"""Training features, training labels or numbers, test features, test labels or numbers."""


@dataclass(frozen=True, repr=False)
class _Ground:
    """What a job works on: the rows that are anonymized, their release, and how long it took."""

    table: Table
    split: Split
    frame: pl.DataFrame
    order: npt.NDArray[np.int64]
    scores: Scores | None
    release: Release | None
    seconds: float


def carry_out(job: GridJob, material: Material) -> Iterator[CellResult]:
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
        lessons: dict[str, list[Lesson]] = {}
        encoder: Encoder | None = None
        for cell in job.cells:
            empty = _result(job, cell)
            try:
                if cell.model is None:
                    yield _release_numbers(empty, ground)
                    continue
                encoder = encoder or _encoder(material, ground)
                protocol = protocol_named(str(cell.protocol))
                if protocol.name not in lessons:
                    lessons[protocol.name] = _encoded(protocol, material, ground, encoder, job.seed)
                yield _model_numbers(empty, cell.model, lessons[protocol.name], material, encoder)
            except Exception as error:
                yield _gap(job, cell, error)


def _ground(job: GridJob, material: Material) -> _Ground:
    split = material.split(job.seed)
    table = material.table
    if job.scope == "train":
        table = table.with_frame(table.frame[split.train])
    start = time.process_time()
    if job.method is None:
        published = [name for name in table.frame.columns if table.schema.columns[name].published]
        frame = table.frame.select(published)
        original = measure_files(table, frame, settings=_MEASURED)
        seconds = time.process_time() - start
        return _Ground(table, split, frame, np.arange(table.rows), original, None, seconds)
    axes = material.recipe.anonymization
    release = anonymize(
        table,
        table.schema,
        job.method,
        job.guarantees,
        k=job.k,
        suppression=axes.suppression,
        seed=job.seed,
        improve=axes.improve,
        blind=axes.blind,
        per=axes.per,
    )
    seconds = time.process_time() - start
    scores = measure(release, _MEASURED) if any(cell.model is None for cell in job.cells) else None
    return _Ground(table, split, release.aligned, np.flatnonzero(release.kept), scores, release, seconds)


def _release_numbers(empty: CellResult, ground: _Ground) -> CellResult:
    scores = ground.scores
    assert scores is not None
    unknown = {name: text for name, text in scores.not_measured.items() if name != "partial knowledge"}
    return replace(
        empty,
        reason=_reasons(unknown),
        rows=ground.table.rows,
        groups=scores.after.class_sizes.classes,
        smallest=scores.after.class_sizes.smallest,
        measured=scores.numbers,
        seconds=ground.seconds,
    )


def _reasons(unknown: Mapping[str, str]) -> str:
    return " ".join(f"{name}: {text}" for name, text in sorted(unknown.items()))


def _model_numbers(
    empty: CellResult, model: Model, lessons: list[Lesson], material: Material, encoder: Encoder
) -> CellResult:
    found: list[Quality | NumberQuality] = []
    seconds = 0.0
    for taught, labels, asked, truth in lessons:
        if material.number:
            numbers = fit_and_estimate(model, taught, labels, asked, empty.seed, encoder.ranges)
            found.append(number_quality(truth, numbers.values))
            seconds += numbers.seconds
            continue
        classes = len(material.classes)
        answers = fit_and_predict(model, taught, labels, asked, classes, empty.seed, encoder.ranges)
        found.append(quality(truth, answers, material.positive))
        seconds += answers.seconds

    def mean(name: str) -> float | None:
        values = [getattr(one, name) for one in found]
        return None if any(value is None for value in values) else float(np.mean(values))

    names = NUMBER_QUALITIES if material.number else ("majority", *QUALITIES)
    scored: dict[str, Any] = {name: mean(name) for name in names}
    return replace(
        empty,
        **scored,
        test_rows=sum(one.rows for one in found),
        reason=_reasons({key: text for one in found for key, text in one.reasons.items()}),
        seconds=seconds,
        rows=lessons[0][1].size,
    )


def _encoder(material: Material, ground: _Ground) -> Encoder:
    """Fitted on what is known before the test: the training part's true rows, or under the sources' protocols the
    whole table."""
    recipe = material.recipe
    return fit_encoder(
        ground.table,
        recipe.data.target,
        recipe.models,
        material.features,
        material.classes,
        number=material.number,
    )


def _encoded(
    protocol: EvaluationProtocol, material: Material, ground: _Ground, encoder: Encoder, seed: int
) -> list[Lesson]:
    """What is taught and asked, one entry per fold."""

    def answers(frame: pl.DataFrame) -> npt.NDArray[Any]:
        number, target = material.number, material.recipe.data.target
        return target_numbers(material.table, frame, target) if number else encoder.labels(frame)

    labels = answers(ground.frame)
    if protocol.true_test:
        test = material.table.frame[ground.split.test]
        lessons = encoder.lessons(ground.frame, seeded(seed, "study", "lessons"))
        return [(lessons, labels, encoder.features(test, "whole"), answers(test))]
    features = encoder.features(ground.frame)
    if protocol.sorted_folds:
        folds = unshuffled_folds(_output_order(ground), material.recipe.analyses.folds)
    else:
        # Rows of the release that lie in either part; a suppressed row is in neither.
        tested = np.isin(ground.order, ground.split.test)
        folds = [Split(np.flatnonzero(~tested), np.flatnonzero(tested))]
    return [(features[f.train], labels[f.train], features[f.test], labels[f.test]) for f in folds]


def _output_order(ground: _Ground) -> npt.NDArray[np.int64]:
    """The release as a clustering program writes it: group after group. The original keeps its own order."""
    if ground.release is None:
        return np.arange(ground.frame.height)
    return np.argsort(ground.release.checked.partition.labels, kind="stable")


def _result(job: GridJob, cell: Cell) -> CellResult:
    """The cell without any number."""
    across = job.federation
    kind = "federated" if across is not None else "release" if cell.model is None else "model"
    trained = label_of(cell.model) if cell.model is not None else None
    return CellResult(
        cell=cell.id,
        kind=kind,
        protocol=cell.protocol,
        scope=None if across is not None else job.scope,
        method=job.label,
        k=job.k,
        guarantees=job.promised,
        seed=job.seed,
        model=trained if across is None else across.model,
        split=None if across is None else split_label(across.split, across.alpha),
    )


def split_label(split: str, alpha: float | None) -> str:
    """How the rows lie at the clients: `iid`, or `dirichlet(0.5)`.

    >>> split_label("dirichlet", 0.5)
    'dirichlet(0.5)'
    """
    return split if split != "dirichlet" else f"dirichlet({alpha:g})"


def _gap(job: GridJob, cell: Cell, error: Exception) -> CellResult:
    # Our own errors say why and hold no value; others may quote cells, so that only their kind is kept.
    known = isinstance(error, VeladoError)
    reason = str(error) if known else say("An unexpected {kind} stopped it.", kind=type(error).__name__)
    return replace(_result(job, cell), status="gap", reason=reason, again=not known)


def lost(job: GridJob) -> list[CellResult]:
    """The gaps of a job whose process ended before it could say anything."""
    reason = say("The process that computed it ended without a word, as it does when memory runs out.")
    return [replace(_result(job, cell), status="gap", reason=reason, again=True) for cell in job.cells]


# ---- runs across clients that anonymize their own rows, tested on true rows


def _across_clients(job: GridJob, cell: Cell, federation: Federation, material: Material) -> CellResult:
    """What the last round of a run reached, and the whole run beside it."""
    # Side by side with other cells a run has one thread; alone it has what the engine gives it.
    threads = None if in_turn(material) else 1
    try:
        with import_module("threadpoolctl").threadpool_limits(limits=threads):
            return _federated_numbers(_result(job, cell), job, federation, material)
    except Exception as error:
        # A run that had to be given up tells how far it came.
        fit = error.fit if isinstance(error, FederationStopped) else None
        return replace(_gap(job, cell, error), fit=None if fit is None else as_json(fit))


def _federated_numbers(
    empty: CellResult, job: GridJob, federation: Federation, material: Material
) -> CellResult:
    """Rounds and clients that are missing stay in the fit as gaps."""
    from velado.learning.flower import simulate

    recipe = material.recipe
    assert recipe.federated is not None
    fit = simulate(
        material.table,
        material.table.schema,
        job.method,
        federation,
        target=recipe.data.target,
        encoding=recipe.models,
        seed=job.seed,
        k=job.k,
        features=material.features,
        suppression=recipe.anonymization.suppression,
        engine=recipe.federated.engine,
    )
    measured = [one for one in fit.rounds if one.accuracy is not None]
    if not measured or not any(one.applied for one in fit.rounds):
        raise FederationStopped(
            say_n(
                "The only round was not applied ({n}).", "None of {n} rounds was applied.", len(fit.rounds)
            ),
            "Too few clients answered, so that no model was trained.",
            "Lower 'participation' or k, or use fewer clients with more rows each.",
            fit,
        )
    last = measured[-1]
    return replace(
        empty,
        accuracy=last.accuracy,
        auc=last.auc,
        log_loss=last.loss,
        majority=fit.majority,
        rows=sum(one.rows for one in fit.clients),
        test_rows=sum(one.test_rows for one in fit.clients),
        measured={
            "ncp": mean_by_rows((one.ncp, one.rows) for one in fit.clients),
            "record_linkage": mean_by_rows((one.linkage, one.rows) for one in fit.clients),
        },
        seconds=sum(one.seconds for one in fit.rounds),
        reason=" ".join(gaps_of(fit)),
        fit=as_json(fit),
    )


def as_json(fit: FederatedFit) -> str:
    """The run on one line; a number that is none would be an error here, not a hole in a chart."""
    try:
        return json.dumps(fit.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise ParameterError(
            "A round of the run has a quality that is not a number.",
            "The model diverged, so that what it says means nothing.",
            "Use more clients or rows, or a stronger 'penalty'.",
        ) from None


def mean_by_rows(values: Iterable[tuple[float | None, int]]) -> float | None:
    """The mean over the clients that have a value, each counted with its rows.

    >>> mean_by_rows([(0.1, 30), (0.4, 10), (None, 5)])
    0.175
    """
    known = [(value, rows) for value, rows in values if value is not None and rows]
    total = sum(rows for _, rows in known)
    return sum(value * rows for value, rows in known) / total if total else None


def gaps_of(fit: FederatedFit) -> list[str]:
    """What is missing in a run: clients that sat out, each with its reason, and how many rounds were not applied."""
    out = [f"{one.name}: {one.gap}" for one in fit.clients if one.gap]
    skipped = sum(not one.applied for one in fit.rounds)
    if skipped:
        out.append(
            say("{skipped} of {rounds} rounds were not applied.", skipped=skipped, rounds=len(fit.rounds))
        )
    return out
