"""Figures 3 to 12 of GOK-Privacy: accuracy and F1 of five models by k, on the tables at hand.

The paper's own data, traffic of an intensive care unit (Hussain et al. 2021), is not ours to hand on: put
`icu/icu.csv` below the data folder, made of the archive's Attack, environmentMonitoring and patientMonitoring files one
below the other. The paper prints no numbers; what its text says, of that data, stands in the column *published*. Models
have the parameters of the published code where velado's models have them (not the perceptron's second layer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from velado.anonymize.goal import Progress
from velado.anonymize.methods import GOK, Method, Mondrian, TopDownGreedy
from velado.data.encode import EncodedTable, encode
from velado.data.schema import Column, Schema
from velado.measure.models.encoder import fit_encoder
from velado.measure.models.registry import KNN, MLP, DecisionTree, GaussianNB, Model, RandomForest, require
from velado.measure.models.training import IntVector
from velado.randomness import seeded
from velado.study.papers import gok_code
from velado.study.papers.gok_code import Coded, asked_in_folds
from velado.study.papers.layout import (
    ADULT_FILES,
    AS_IN_PAPER,
    HONEST,
    PAPER,
    PUBLISHED,
    adult_schema,
    numeric_schema,
    short,
)
from velado.study.papers.model_trials import Asked, Trial
from velado.study.papers.registry import Cell, Reproduced, Reproduction

SOURCE = "Pimenta et al. 2025, Anonimização de dados para inteligência artificial usando o algoritmo da tropa dos gorilas"
KS = (5, 10, 25, 50)
QUICK_KS = (10, 50)

Code = Callable[[EncodedTable, int, np.random.Generator], Coded]
METHODS: dict[str, tuple[Code, Callable[[int], Method]]] = {
    "GOK-Privacy": (gok_code.gok, lambda k: GOK(k=k)),
    "Top-Down": (gok_code.top_down, lambda k: TopDownGreedy(k=k)),
    "Mondrian": (gok_code.mondrian, lambda k: Mondrian(k=k)),
}
"""Each method as the published code behaves, and velado's own of that name."""


@dataclass(frozen=True)
class DataSet:
    """A table, its quasi-identifiers and its target; *large* ones are thinned in a quick run."""

    name: str
    title: str
    needs: tuple[str, ...]
    quasi: Schema
    target: str
    large: bool = False

    def trial(self, data: Path, quick: bool) -> Trial:
        """The table and its split."""
        columns = {**self.quasi.columns, self.target: Column(self.target, "sensitive", "categorical")}
        return Trial.of(data, self.needs[0], Schema(columns), self.target, quick and self.large)


_TOPICS = ("ip.src", "ip.dst", "mqtt.topic")
_COUNTS = ("tcp.srcport", "tcp.dstport", "frame.time_relative", "frame.len", "mqtt.topic_len")
DATA_SETS = (
    DataSet("adult", "Adult", ADULT_FILES, adult_schema(), "income", large=True),
    DataSet(
        "cmc",
        "contraceptive method choice",
        ("uci/cmc.csv",),
        numeric_schema("age", "Weducation", "children"),
        "method",
    ),
    DataSet(
        "mgm",
        "mammographic masses",
        ("uci/mgm.csv",),
        numeric_schema("bi_rads_assessment", "age", "shape", "margin", "density"),
        "severity",
    ),
    DataSet(
        "cahousing",
        "California housing",
        ("uci/cahousing.csv",),
        numeric_schema("longitude", "latitude", "housing_median_age", "median_income", "median_house_value"),
        "ocean_proximity",
        large=True,
    ),
    DataSet(
        "icu",
        "traffic of an intensive care unit",
        ("icu/icu.csv",),
        Schema(
            {name: Column(name, "quasi", "categorical") for name in _TOPICS}
            | {name: Column(name, "quasi", "numeric") for name in _COUNTS}
        ),
        "label",
        large=True,
    ),
)


def accuracy(truth: IntVector, answers: IntVector) -> float:
    """The share of right answers."""
    return float((truth == answers).mean())


def weighted_f1(truth: IntVector, answers: IntVector) -> float:
    """The F1 of every class, weighted by how many rows have it."""
    total = 0.0
    for one in np.unique(truth):
        said, true = answers == one, truth == one
        right = int((said & true).sum())
        total += float(true.sum()) * 2 * right / max(int(said.sum() + true.sum()), 1)
    return total / truth.size


Score = Callable[[IntVector, IntVector], float]
_TREE, _BAYES, _FOREST = DecisionTree(leaf=1), GaussianNB(smoothing=0.01), RandomForest(leaf=1)
_NEAREST, _NETWORK = KNN(neighbours=5), MLP(hidden=100)
FIGURES: dict[int, tuple[Model, str, Score]] = {
    3: (_TREE, "F1", weighted_f1),
    4: (_TREE, "accuracy", accuracy),
    5: (_BAYES, "F1", weighted_f1),
    6: (_BAYES, "accuracy", accuracy),
    7: (_FOREST, "F1", weighted_f1),
    8: (_FOREST, "accuracy", accuracy),
    9: (_NEAREST, "accuracy", accuracy),
    10: (_NEAREST, "F1", weighted_f1),
    11: (_NETWORK, "F1", weighted_f1),
    12: (_NETWORK, "accuracy", accuracy),
}
RAW = "records published raw, paper profile"
COLUMNS = ("k", "method", PUBLISHED, PAPER, f"{PAPER}, folds shuffled", HONEST, RAW)


@dataclass(frozen=True)
class Cells:
    """One method at one k: the score in the paper's folds, in shuffled ones, on true rows; records published raw."""

    k: int
    method: str
    paper: float
    shuffled: float
    honest: float
    raw: int


def figures(
    data: Path, progress: Progress, data_set: DataSet, quick: bool, wanted: Sequence[int]
) -> dict[int, Reproduced]:
    """The *wanted* figures on one table; each release is made once, and each model taught once, for all of them."""
    models = {FIGURES[figure][0].name: FIGURES[figure][0] for figure in wanted}
    for model in models.values():
        require(model)
    trial = data_set.trial(data, quick)
    table = encode(trial.table)
    encoder = fit_encoder(trial.table, trial.target)
    labels, classes = encoder.labels(trial.table.frame), len(encoder.classes)
    original = {name: trial.on_true_rows(None, model) for name, model in models.items()}
    found: dict[int, list[Cells]] = {figure: [] for figure in wanted}
    ks = QUICK_KS if quick else KS
    for at, k in enumerate(ks):
        for number, (name, (code, make)) in enumerate(METHODS.items()):
            progress((at + number / len(METHODS)) / len(ks), f"{name}, k = {k}")
            coded = code(table, k, seeded(0, name, str(k)))
            taught = trial.taught(make(k))
            for model in models.values():
                paper = asked_in_folds(table, coded, labels, classes, model)
                shuffled = asked_in_folds(table, coded, labels, classes, model, seeded(0, "folds"))
                honest = trial.on_true_rows(taught, model)
                for figure in wanted:
                    if FIGURES[figure][0] == model:
                        score = FIGURES[figure][2]
                        scores = (
                            score(*paper),
                            score(*shuffled),
                            score(honest.truth, honest.answers.labels),
                        )
                        found[figure].append(Cells(k, name, *scores, int(coded.raw.sum())))
    return {
        figure: _table(figure, found[figure], original[FIGURES[figure][0].name], trial, data_set, quick)
        for figure in wanted
    }


def why(found: Sequence[Cells], records: int, column: str) -> str:
    """Why the columns differ, in the numbers of this very table, at its largest k."""
    last = max(one.k for one in found)
    gok, top, mondrian = (
        next(one for one in found if one.k == last and one.method == name) for name in METHODS
    )
    return (
        f"Why they differ: at k = {last} GOK-Privacy as coded publishes {gok.raw:,} of {records:,} records raw and scores "
        f"{gok.paper:.3f} in folds that follow its clusters, {gok.shuffled:.3f} when the same folds are shuffled; velado's, "
        f"which keeps k and is asked about true rows, scores {gok.honest:.3f}. Top-Down as coded makes one class of all "
        f"records, so that only the commonest answer can be learned ({top.paper:.3f}; velado's {top.honest:.3f}), and "
        f"Mondrian as coded cuts '{column}' alone ({mondrian.paper:.3f}, shuffled {mondrian.shuffled:.3f}; velado's "
        f"{mondrian.honest:.3f})."
    )


def said_of(method: str, model: Model) -> str:
    """What the text says of a method's scores with a model."""
    if method == "GOK-Privacy":
        return "0.90 to 0.95"
    if method == "Mondrian":
        return "0.55 to 0.75"
    if model.name == "decision-tree":
        return "about 0.65"
    return "between the two" if model.name == "random-forest" else "close to GOK-Privacy"


def _table(
    figure: int, found: Sequence[Cells], original: Asked, trial: Trial, data_set: DataSet, quick: bool
) -> Reproduced:
    model, _, score = FIGURES[figure]
    majority = np.full_like(original.truth, np.bincount(original.truth).argmax())
    alone = score(original.truth, original.answers.labels)
    rows: list[tuple[Cell, ...]] = [
        ("-", "majority class", None, None, None, score(original.truth, majority), None),
        ("-", "original data", None, None, None, alone, None),
    ]
    of_icu = "" if data_set.name == "icu" else " (ICU)"
    for one in found:
        published = f"{said_of(one.method, model)}{of_icu}"
        rows.append((str(one.k), one.method, published, one.paper, one.shuffled, one.honest, one.raw))
    column = max(encode(trial.table).columns, key=lambda part: part.size).name
    note = (
        f"{why(found, trial.table.rows, column)} The published words are about the ICU data. {trial.table.rows:,} records, "
        f"one split with {trial.test.size:,} test rows."
    )
    return Reproduced(COLUMNS, tuple(rows), note + short(quick and data_set.large), AS_IN_PAPER)


def _one(data: Path, progress: Progress, data_set: DataSet, figure: int, quick: bool) -> Reproduced:
    return figures(data, progress, data_set, quick, (figure,))[figure]


def _all(data: Path, progress: Progress, quick: bool, data_set: DataSet) -> Mapping[str, Reproduced]:
    made = figures(data, progress, data_set, quick, tuple(FIGURES))
    return {f"gok-figure-{figure}-{data_set.name}": one for figure, one in made.items()}


def _reproductions(data_set: DataSet) -> list[Reproduction]:
    return [
        Reproduction(
            f"gok-figure-{figure}-{data_set.name}",
            SOURCE,
            f"Figure {figure}: {model.title}, {measure} by k ({data_set.title})",
            data_set.needs,
            partial(_one, data_set=data_set, figure=figure, quick=False),
            partial(_one, data_set=data_set, figure=figure, quick=True),
            partial(_all, data_set=data_set),
        )
        for figure, (model, measure, _) in FIGURES.items()
    ]


REPRODUCTIONS = tuple(one for data_set in DATA_SETS for one in _reproductions(data_set))
