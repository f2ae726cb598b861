"""Figures 6.7 to 6.10 of the GFKMC thesis: what k-NN, a forest, an SVM and XGBoost learn from a release, by k.

The thesis anonymizes the whole table, then splits it, so that a model is both taught and tested with published cells:
it is asked to find what the release still says, not what is true. Measured honestly the table is split first, only
the training part is anonymized, and the test part stays as it is. Figures are published without numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from velado.anonymize.goal import Progress
from velado.data.schema import Column
from velado.measure.models.quality import Quality, quality
from velado.measure.models.registry import KNN, SVM, Model, RandomForest, XGBoost, require
from velado.study.papers.gfkmc import PAPER_GFKMC, PEERS, SOURCE, Maker
from velado.study.papers.layout import (
    ADULT,
    ADULT_FILES,
    AS_IN_PAPER,
    FIGURE,
    HONEST,
    PAPER,
    PUBLISHED,
    adult_schema,
    short,
)
from velado.study.papers.model_trials import Asked, Trial
from velado.study.papers.registry import Cell, Reproduced, Reproduction

KS = (3, 5, 10, 20, 50, 100)
QUICK_KS = (10,)
TARGET, POSITIVE = "income", ">50K"
METHODS: dict[str, Maker] = {"GFKMC": PAPER_GFKMC, **PEERS}


def trial_of(data: Path, quick: bool) -> Trial:
    """One split of Adult with its eight quasi-identifiers and income."""
    schema = adult_schema()
    columns = {**schema.columns, TARGET: Column(TARGET, "sensitive", "categorical")}
    return Trial.of(data, ADULT, type(schema)(columns), TARGET, quick)


def model_by_k(data: Path, progress: Progress, model: Model, quick: bool) -> Reproduced:
    """One of the figures: accuracy under both protocols; precision, recall and F1 of the high incomes, honestly."""
    require(model)
    trial = trial_of(data, quick)
    ks: Sequence[int] = QUICK_KS if quick else KS
    base = _scored(trial.on_true_rows(None, model))
    rows: list[tuple[Cell, ...]] = [_row("-", "original data", base, base)]
    for at, k in enumerate(ks):
        for number, (name, make) in enumerate(METHODS.items()):
            progress((at + number / len(METHODS)) / len(ks), f"{name}, k = {k}")
            method = make(k)
            paper = _scored(trial.all_then_split(method, model))
            rows.append(_row(str(k), name, paper, _scored(trial.on_true_rows(method, model))))
    columns = (
        "k",
        "method",
        PUBLISHED,
        f"{PAPER}, accuracy",
        f"{HONEST}, accuracy",
        "precision",
        "recall",
        "F1",
        "majority",
    )
    error = 100 * math.sqrt(base.accuracy * (1 - base.accuracy) / base.rows)
    note = (
        "Why they differ: anonymized whole and split afterwards, the model is asked about rows as blurred as those it "
        "was taught with; split first, it is asked about true people. GFKMC is the paper profile, published as "
        f"centroids. One split with {base.rows:,} test rows: an accuracy has a standard error of about {error:.1f} "
        "points. The model's parameters are velado's, the thesis does not give its own."
    )
    return Reproduced(columns, tuple(rows), note + short(quick), AS_IN_PAPER)


def _scored(asked: Asked) -> Quality:
    return quality(asked.truth, asked.answers, asked.classes.index(POSITIVE))


def _row(k: str, method: str, paper: Quality, honest: Quality) -> tuple[Cell, ...]:
    scores = (honest.precision, honest.recall, honest.f1, honest.majority)
    return (k, method, FIGURE, paper.accuracy, honest.accuracy, *scores)


def _of(figure: str, model: Model) -> Reproduction:
    return Reproduction(
        f"gfkmc-figure-{figure}",
        SOURCE,
        f"Figure {figure}: {model.title} by k",
        ADULT_FILES,
        partial(model_by_k, model=model, quick=False),
        partial(model_by_k, model=model, quick=True),
    )


REPRODUCTIONS = (
    _of("6.7", KNN()),
    _of("6.8", RandomForest()),
    _of("6.9", SVM()),
    _of("6.10", XGBoost()),
)
