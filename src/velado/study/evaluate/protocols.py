"""How rows are split and what is tested: the honest default, and the two ways of the sources.

The thesis anonymizes everything and splits afterwards, so that models are tested on recoded rows that were chosen with the
training rows in sight. The published code of GOK sorts its output by cluster and takes unshuffled folds of it, so that
training and test part hold different people by construction. A study may run several and shows what each makes of
the same methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError, TableError
from velado.learning.flower._local_rows import hold_out
from velado.randomness import seeded
from velado.settings import nearest
from velado.text import say, say_n

IntVector = npt.NDArray[np.int64]
Scope = Literal["train", "whole"]
DEFAULT_PROTOCOL = "split-first"


@dataclass(frozen=True)
class EvaluationProtocol:
    """A named way to evaluate. *scope*: what is anonymized, the training part or the whole table.

    *true_test*: models are asked about true rows, else about rows of the release. *sorted_folds*: unshuffled folds
    of the release in the order of its groups, else one shuffled stratified split.

    >>> PROTOCOLS[0].true_test
    True
    """

    name: str
    scope: Scope
    true_test: bool
    sorted_folds: bool
    source: str


PROTOCOLS: tuple[EvaluationProtocol, ...] = (
    EvaluationProtocol(
        DEFAULT_PROTOCOL, "train", True, False, "split, anonymize the training part, test on true rows"
    ),
    EvaluationProtocol(
        "paper-gfkmc", "whole", False, False, "GFKMC thesis: anonymize all rows, then split the release"
    ),
    EvaluationProtocol(
        "paper-gok", "whole", False, True, "GOK's published code: unshuffled folds of the sorted release"
    ),
)


def protocol_named(name: str) -> EvaluationProtocol:
    """The protocol of this name, or an error that suggests the nearest.

    >>> protocol_named("paper-gok").scope
    'whole'
    """
    known = {protocol.name: protocol for protocol in PROTOCOLS}
    if name not in known:
        raise ParameterError(
            say("There is no protocol '{name}'.", name=name),
            say("It is one of {names}.", names=", ".join(known)),
            nearest(name, known) or "Choose one of them.",
        )
    return known[name]


@dataclass(frozen=True, repr=False)
class Split:
    """Row numbers to learn from and to be tested on; *alone* classes are taught and never asked.

    >>> Split(np.array([0, 2, 3]), np.array([1]))
    Split(train=3, test=1)
    """

    train: IntVector
    test: IntVector
    alone: int = 0

    def __repr__(self) -> str:
        return f"Split(train={self.train.size}, test={self.test.size})"


def stratified_split(
    labels: IntVector, test_share: float, seed: int, people: IntVector | None = None
) -> Split:
    """A shuffled split with the same share of every class on both sides; all rows of a person on one side.

    A class that a single person has goes to the training part whole, and no class is asked about that was not taught:
    see `hold_out`. The same *seed* gives the same split. O(n log n + n c) for c classes.

    >>> stratified_split(np.array([0, 0, 0, 0, 1, 1, 1, 1]), 0.25, seed=1)
    Split(train=6, test=2)
    """
    train, test = hold_out(labels, test_share, seeded(seed, "split"), people)
    if not train.size or not test.size:
        raise TableError(
            say_n(
                "{n} row cannot be split into a training and a test part.",
                "{n} rows cannot be split into a training and a test part.",
                labels.size,
            ),
            "No class has two members.",
            "Use more rows, or another target.",
        )
    alone = np.setdiff1d(labels, labels[test]).size
    return Split(train, test, alone)


def unshuffled_folds(order: IntVector, folds: int) -> list[Split]:
    """Consecutive parts of *order*, each the test part once, as a cross-validation without shuffling makes them.

    >>> unshuffled_folds(np.arange(6), 3)[1].test.tolist()
    [2, 3]
    """
    if order.size < folds:
        raise TableError(
            say_n(
                "{n} row cannot be put into {folds} folds.",
                "{n} rows cannot be put into {folds} folds.",
                order.size,
                folds=folds,
            ),
            "A fold would be empty.",
            "Use fewer folds.",
        )
    parts = np.array_split(order, folds)
    return [
        Split(np.concatenate([part for other, part in enumerate(parts) if other != at]), parts[at])
        for at in range(folds)
    ]
