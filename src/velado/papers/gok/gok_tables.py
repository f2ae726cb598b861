"""Figures 3 to 12 of GOK-Privacy: accuracy and F1 of five models by k, on the tables at hand.

The paper's own data, simulated traffic of an intensive care unit (Hussain et al. 2021), is not ours to hand on: put
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

from velado.data.encode import EncodedTable, encode
from velado.data.schema import Column, Schema
from velado.measures.models._model import Model, require
from velado.measures.models.encoder import fit_encoder
from velado.measures.models.model_registry import KNN, MLP, DecisionTree, GaussianNB, RandomForest
from velado.measures.models.quality import IntVector
from velado.papers.gok.gok_code import (
    ITERATIONS,
    SETS,
    Coded,
    Evaluation,
    asked_in_folds,
    features_of,
    gok,
    mondrian,
    top_down,
)
from velado.papers.model_trials import Asked, ModelTrial
from velado.papers.paper_figure import Drawn
from velado.papers.paper_registry import (
    ADULT_FILES,
    AS_IN_PAPER,
    METHOD,
    PUBLISHED,
    Cell,
    Reproduced,
    Reproduction,
    adult_schema,
    numeric_schema,
    step,
)
from velado.randomness import seeded
from velado.release.goal import Progress
from velado.release.methods import GOK, Method, Mondrian, TopDownGreedy
from velado.text import Sentence, join, listed, say

SOURCE = "Pimenta et al. 2025, Anonimização de dados para inteligência artificial usando o algoritmo da tropa dos gorilas"
KS = (5, 10, 25, 50)
QUICK_KS = (10, 50)

Code = Callable[[EncodedTable, int, np.random.Generator], Coded]
METHODS: dict[str, tuple[Code, Method]] = {
    "GOK-Privacy": (gok, GOK(troop=6, iterations=8, patience=3, work=10**9, start="cuts")),
    "Top-Down": (top_down, TopDownGreedy()),
    "Mondrian": (mondrian, Mondrian()),
}
"""Each method as the published code behaves, and velado's own of that name.

GOK's own search is a short one, since forty tables are made of it; the method's default searches longer.
"""


@dataclass(frozen=True)
class GokData:
    """A table, its quasi-identifiers and its target; models see the other columns too, but those that number rows.

    >>> [one.name for one in DATA_SETS]
    ['adult', 'cmc', 'mgm', 'cahousing', 'icu']
    """

    name: str
    title: str
    needs: tuple[str, ...]
    quasi: Schema
    target: str
    numbers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def trial(self, data: Path) -> ModelTrial:
        """The table and its split."""
        others = [Column(name, "other", "numeric") for name in self.numbers]
        others += [Column(name, "other", "categorical") for name in self.words]
        columns = {**self.quasi.columns, self.target: Column(self.target, "sensitive", "categorical")}
        columns |= {column.name: column for column in others}
        return ModelTrial.of(data, self.needs[0], Schema(columns), self.target)


_NUMBERS = ("final_weight", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_TOPICS = ("ip.src", "ip.dst", "mqtt.topic")
_COUNTS = ("tcp.srcport", "tcp.dstport", "frame.time_relative", "frame.len", "mqtt.topic_len")
DATA_SETS = (
    GokData("adult", "Adult", ADULT_FILES, adult_schema(), "income", _NUMBERS, ("relationship",)),
    GokData(
        "cmc",
        say("contraceptive method choice"),
        ("uci/cmc.csv",),
        numeric_schema("age", "Weducation", "children"),
        "method",
        ("Heducation", "religion", "working", "occupation", "solindex", "exposure"),
    ),
    GokData(
        "mgm",
        say("mammographic masses"),
        ("uci/mgm.csv",),
        numeric_schema("bi_rads_assessment", "age", "shape", "margin", "density"),
        "severity",
    ),
    GokData(
        "cahousing",
        say("California housing"),
        ("uci/cahousing.csv",),
        numeric_schema("longitude", "latitude", "housing_median_age", "median_income", "median_house_value"),
        "ocean_proximity",
        ("mean_rooms", "mean_bedrooms", "population", "households"),
    ),
    GokData(
        "icu",
        say("traffic of an intensive care unit"),
        ("icu/icu.csv",),
        Schema(
            {name: Column(name, "quasi", "categorical") for name in _TOPICS}
            | {name: Column(name, "quasi", "numeric") for name in _COUNTS}
        ),
        "label",
    ),
)


def accuracy(truth: IntVector, answers: IntVector) -> float:
    """The share of right answers.

    >>> accuracy(np.array([1, 0, 1]), np.array([1, 1, 1]))
    0.6666666666666666
    """
    return float((truth == answers).mean())


def weighted_f1(truth: IntVector, answers: IntVector) -> float:
    """The F1 of every class, weighted by how many rows have it.

    >>> weighted_f1(np.array([1, 0, 1]), np.array([1, 1, 1]))
    0.5333333333333333
    """
    total = 0.0
    for one in np.unique(truth):
        said, true = answers == one, truth == one
        right = int((said & true).sum())
        total += float(true.sum()) * 2 * right / max(int(said.sum() + true.sum()), 1)
    return total / truth.size


Score = Callable[[IntVector, IntVector], float]
_TREE, _BAYES, _FOREST = DecisionTree(leaf=1), GaussianNB(smoothing=0.01), RandomForest(leaf=1)
_NEAREST, _NETWORK = KNN(neighbours=5), MLP(hidden=100)
_ACCURACY = say("accuracy")
FIGURES: dict[int, tuple[Model, str, Score]] = {
    3: (_TREE, "F1", weighted_f1),
    4: (_TREE, _ACCURACY, accuracy),
    5: (_BAYES, "F1", weighted_f1),
    6: (_BAYES, _ACCURACY, accuracy),
    7: (_FOREST, "F1", weighted_f1),
    8: (_FOREST, _ACCURACY, accuracy),
    9: (_NEAREST, _ACCURACY, accuracy),
    10: (_NEAREST, "F1", weighted_f1),
    11: (_NETWORK, "F1", weighted_f1),
    12: (_NETWORK, _ACCURACY, accuracy),
}
STEPS = {
    say("as coded"): Evaluation(),
    say("rows shuffled"): Evaluation(in_order=False),
    say("and columns equal"): Evaluation(in_order=False, columns_as_coded=False),
}
"""The faults of the evaluation taken away one after another; the release stays as coded."""
HONEST_SPLIT = say("honest: velado's method, asked about true rows")
RAW = say("records published raw as coded")
COLUMNS = ("k", METHOD, join([PUBLISHED, say("of the ICU data")], ", "), *STEPS, HONEST_SPLIT, RAW)


@dataclass(frozen=True)
class Cells:
    """One method at one k: its score at each of STEPS, velado's own on true rows; records published raw.

    >>> Cells(5, "Mondrian", (0.5, 0.8, 0.8), honest=0.7, raw=0).steps[0]
    0.5
    """

    k: int
    method: str
    steps: tuple[float, ...]
    honest: float
    raw: int


def figures(
    data: Path, progress: Progress, data_set: GokData, quick: bool, wanted: Sequence[int]
) -> dict[int, Reproduced]:
    """The *wanted* figures on one table; each release is made once, and each model taught once, for all of them.

    >>> from velado.release.goal import silent
    >>> some = DATA_SETS[0]
    >>> figures(Path("no such folder"), silent, some, quick=True, wanted=())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TaxonomyError: ...
    """
    models = {FIGURES[figure][0].name: FIGURES[figure][0] for figure in wanted}
    for model in models.values():
        require(model)
    trial = data_set.trial(data)
    table = encode(trial.table)
    labels = fit_encoder(trial.table, trial.target).labels(trial.table.frame)
    original = {name: trial.on_true_rows(None, model) for name, model in models.items()}
    found: dict[int, list[Cells]] = {figure: [] for figure in wanted}
    ks = QUICK_KS if quick else KS
    for at, k in enumerate(ks):
        for number, (name, (code, method)) in enumerate(METHODS.items()):
            progress((at + number / len(METHODS)) / len(ks), step(name, k))
            coded = code(table, k, seeded(0, name, str(k)))
            features = features_of(trial.table, trial.target, table, coded)
            taught = trial.taught(method, k)
            for model in models.values():
                asked = [
                    asked_in_folds(features, coded, labels, model, step, seeded(0, "folds"))
                    for step in STEPS.values()
                ]
                honest = trial.on_true_rows(taught, model)
                for figure in wanted:
                    if FIGURES[figure][0] == model:
                        score = FIGURES[figure][2]
                        steps = tuple(score(*answers) for answers in asked)
                        own = score(honest.truth, honest.answers.labels)
                        found[figure].append(Cells(k, name, steps, own, int(coded.raw.sum())))
    return {
        figure: _table(figure, found[figure], original[FIGURES[figure][0].name], trial, data_set)
        for figure in wanted
    }


def why(found: Sequence[Cells], records: int, column: str, left_raw: Sequence[str]) -> Sentence:
    """Why the columns differ, in the numbers of this very table, at its largest k; *left_raw* by Top-Down as coded.

    >>> steps = (0.5, 0.8, 0.8)
    >>> "(here none)" in why([Cells(5, name, steps, 0.7, 0) for name in METHODS], 100, "age", ())
    True
    """
    last = max(one.k for one in found)
    gok, top, mondrian = (
        next(one for one in found if one.k == last and one.method == name) for name in METHODS
    )
    return say(
        "Why they differ: at k = {k} GOK-Privacy as coded publishes {raw:,} of {records:,} records raw, in table order, and scores "
        "{gok:.3f}, shuffled {gok_shuffled:.3f}; velado's, which keeps k and is asked about true rows, {gok_honest:.3f}. Mondrian as "
        "coded cuts '{column}' alone and its rows, alone of the three, are sorted by it: {mondrian:.3f}, shuffled "
        "{mondrian_shuffled:.3f}, with all columns {mondrian_equal:.3f}; velado's {mondrian_honest:.3f}. Top-Down as coded makes one "
        "group of all records, and of its quasi-identifiers those alone stay raw whose first and last row agree ({left_raw}): "
        "{top:.3f}, shuffled {top_shuffled:.3f}; velado's {top_honest:.3f}.",
        k=last,
        raw=gok.raw,
        records=records,
        gok=gok.steps[0],
        gok_shuffled=gok.steps[1],
        gok_honest=gok.honest,
        column=column,
        mondrian=mondrian.steps[0],
        mondrian_shuffled=mondrian.steps[1],
        mondrian_equal=mondrian.steps[2],
        mondrian_honest=mondrian.honest,
        left_raw=say("here {names}", names=listed(left_raw)) if left_raw else say("here none"),
        top=top.steps[0],
        top_shuffled=top.steps[1],
        top_honest=top.honest,
    )


def said_of(method: str, figure: int) -> Sentence:
    """What the text (section 4.2) says of a method's scores in a figure, of the traffic of the intensive care unit.

    Its ranges are of accuracies; of F1 it says only that it goes with them.

    >>> said_of("Mondrian", 9), said_of("Mondrian", 10)
    ('0.55 to 0.75', 'proportionally low')
    """
    model, _, score = FIGURES[figure]
    if method in _RANGES and score is accuracy:
        low, high = _RANGES[method]
        return say("{low:.2f} to {high:.2f}", low=low, high=high)
    if method == "GOK-Privacy":
        return say("proportionally high")
    if method == "Mondrian":
        trees = model.name in ("decision-tree", "random-forest")
        return say("proportionally low, near the lower end") if trees else say("proportionally low")
    if model.name == "decision-tree":
        return say("about {score:.2f}", score=0.65)
    return say("between the two") if model.name == "random-forest" else say("close to GOK-Privacy")


_RANGES = {"GOK-Privacy": (0.90, 0.95), "Mondrian": (0.55, 0.75)}


def _table(
    figure: int, found: Sequence[Cells], original: Asked, trial: ModelTrial, data_set: GokData
) -> Reproduced:
    score = FIGURES[figure][2]
    majority = np.full_like(original.truth, np.bincount(original.truth).argmax())
    alone = score(original.truth, original.answers.labels)
    rows: list[tuple[Cell, ...]] = [
        ("-", say("majority class"), None, None, None, None, score(original.truth, majority), None),
        ("-", say("original data"), None, None, None, None, alone, None),
    ]
    rows += [_row(one, figure, data_set) for one in found]
    return Reproduced(COLUMNS, tuple(rows), _note(found, trial), AS_IN_PAPER)


def _row(one: Cells, figure: int, data_set: GokData) -> tuple[Cell, ...]:
    published = said_of(one.method, figure)
    if data_set.name != "icu":
        published = say("{said} (ICU)", said=published)
    return (str(one.k), one.method, published, *one.steps, one.honest, one.raw)


def _note(found: Sequence[Cells], trial: ModelTrial) -> Sentence:
    data = encode(trial.table)
    column = max(data.columns, key=lambda part: part.size).name
    left_raw = top_down(data, KS[0], seeded(0)).raw_columns
    return say(
        "{why} The published words (section 4.2) are about the ICU data, simulated traffic (4.1.1); the paper says that its "
        "repository has it (4), but it was not found there. {records:,} records, one split with {tests:,} test rows.",
        why=why(found, trial.table.rows, column, left_raw),
        records=trial.table.rows,
        tests=trial.test.size,
    )


def _one(data: Path, progress: Progress, data_set: GokData, figure: int, quick: bool) -> Reproduced:
    return figures(data, progress, data_set, quick, (figure,))[figure]


def _all(data: Path, progress: Progress, quick: bool, data_set: GokData) -> Mapping[str, Reproduced]:
    made = figures(data, progress, data_set, quick, tuple(FIGURES))
    return {f"gok-figure-{figure}-{data_set.name}": one for figure, one in made.items()}


def _reproductions(data_set: GokData) -> list[Reproduction]:
    return [
        Reproduction(
            f"gok-figure-{figure}-{data_set.name}",
            SOURCE,
            say(
                "Figure {figure}: {model}, {measure} by k ({data})",
                figure=figure,
                model=model.title,
                measure=measure,
                data=data_set.title,
            ),
            data_set.needs,
            partial(_one, data_set=data_set, figure=figure, quick=False),
            partial(_one, data_set=data_set, figure=figure, quick=True),
            partial(_all, data_set=data_set),
            drawn=Drawn(across=0, panels=(1,), lines=(2, 3, 4, 5, 6)),
            settings=(KS, SETS, ITERATIONS, repr(model), *STEPS.values()),
        )
        for figure, (model, measure, _) in FIGURES.items()
    ]


REPRODUCTIONS = tuple(one for data_set in DATA_SETS for one in _reproductions(data_set))
