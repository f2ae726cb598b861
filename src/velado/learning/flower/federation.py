"""Federation: everything two parties must agree on before they train together, but the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from velado.errors import ParameterError
from velado.learning.flower.aggregations import AGGREGATIONS
from velado.query.budget import Budget, Delta, Spend
from velado.settings import Setting, read, settings
from velado.text import say

AUTO = "auto"
AggregationName = Annotated[
    str,
    Setting(
        "secure-sum hides each client's part and finds the pooled model; mean (FedAvg), median and trimmed-mean show "
        "it to the coordinator, who can then limit a hostile client; auto: secure-sum where it can be, else mean",
        choices=lambda: (AUTO, *AGGREGATIONS),
    ),
]
Share = Annotated[float, Setting(gt=0, le=1)]


@settings(section="federation")
class Federation:
    """The settings of a federated run; checked when made.

    A round is applied when at least `needed` = ceil(participation x clients) clients answered it. A logistic regression is
    fitted by secure sums, which hide each client's part (`_pooled_newton`), or averaged (FedAvg, McMahan et al. 2017); XGBoost
    trees are collected (bagging, as Flower's FedXgbBagging).

    >>> Federation(clients=5, participation=0.5).needed
    3
    """

    name: ClassVar[str] = "the federation"

    model: Annotated[Literal["logistic", "xgboost"], Setting("logistic regression, or xgboost (bagging)")] = (
        "logistic"
    )
    aggregation: AggregationName = "auto"
    clients: Annotated[int, Setting("clients", ge=1, le=1000)] = 10
    rounds: Annotated[int, Setting("rounds", ge=1, le=100_000)] = 100
    split: Annotated[Literal["iid", "dirichlet"], Setting("how a simulation deals out the rows")] = "iid"
    alpha: Annotated[
        float, Setting("Dirichlet concentration over the classes; small: unlike clients", ge=1e-3)
    ] = 0.5
    participation: Annotated[Share, Setting("share of all clients a round needs answers of")] = 0.8
    fraction: Annotated[Share, Setting("share of all clients asked in a round")] = 1.0
    test_share: Annotated[float, Setting("true rows held out before anything is anonymized", gt=0, lt=1)] = (
        0.2
    )
    epochs: Annotated[int, Setting("logistic, not secure-sum: L-BFGS steps of a client in a round", ge=1)] = 5
    penalty: Annotated[float, Setting("logistic: weight of the squared coefficients", ge=0)] = 1e-4
    rate: Annotated[float, Setting("xgboost: learning rate", ge=1e-4, le=1)] = 0.3
    depth: Annotated[int, Setting("xgboost: depth of a tree", ge=1, le=16)] = 4
    weight: Annotated[float, Setting("xgboost: least weight of a leaf", ge=0)] = 5.0
    bagging: Annotated[
        Literal["mean", "sum"],
        Setting("xgboost: trees of a round count with their client's share of rows, or whole (as Flower's)"),
    ] = "mean"
    unmet: Annotated[int, Setting("rounds in a row that may fail before the run stops", ge=1)] = 3
    patience: Annotated[float, Setting("seconds a round waits for answers", ge=0.1, le=86_400)] = 600.0
    dropout: Annotated[float, Setting("simulation: chance that a client misses a round", ge=0, le=1)] = 0.0
    most_rows: Annotated[int, Setting("the most rows a client may have, or count with", ge=1, le=10**12)] = (
        10_000_000
    )
    row_cap: Annotated[
        float,
        Setting(
            "a client counts with at most so many times the clients' median of rows, and is named where it says more (secure-sum: named alone); 0: no cap",
            ge=0,
        ),
    ] = 3.0
    clip: Annotated[
        float,
        Setting(
            "not secure-sum: an update is shortened to so many times the median length; 0: not at all", ge=0
        ),
    ] = 2.0
    trim: Annotated[
        float, Setting("trimmed-mean: share of clients left out at each end, at least one", gt=0, lt=0.5)
    ] = 0.2
    minimum_clients: Annotated[
        int,
        Setting(
            "secure-sum: a run whose clients differ by fewer from an earlier exact one over the same rows is refused",
            ge=1,
            why="The difference of two sums is what so few clients said.",
        ),
    ] = 3
    least_cell: Annotated[
        int,
        Setting(
            "exact secure-sum: fewest rows, of all clients, that may make up a sum; a leaf of a tree over original rows has as many",
            ge=1,
            why="A column that one person alone moves shows that person's values in the sums.",
        ),
    ] = 10
    epsilon: Annotated[
        Spend | None, Setting("logistic: noise by the clients inside the sums: (epsilon, delta) for one row")
    ] = None
    delta: Annotated[Delta, Setting("with epsilon: the chance that the promise may fail")] = Fraction(
        1, 10**6
    )
    tolerated: Annotated[
        int,
        Setting(
            "with epsilon: how many clients may work together with the coordinator",
            ge=1,
            why="Every client knows its own part of the noise.",
        ),
    ] = 1

    def __post_init__(self) -> None:
        _refuse_misfits(self)
        if self.fraction < self.participation:
            raise ParameterError(
                say(
                    "'fraction' is {fraction:g}, below 'participation' {participation:g}.",
                    fraction=self.fraction,
                    participation=self.participation,
                ),
                "Fewer clients would be asked than must answer, so that no round could be applied.",
                "Raise 'fraction', or lower 'participation'.",
            )

    @property
    def needed(self) -> int:
        """How many clients must answer for a round to be applied."""
        return max(1, math.ceil(self.participation * self.clients - 1e-9))

    @property
    def asked(self) -> int:
        """How many clients are asked in a round."""
        return max(self.needed, math.ceil(self.fraction * self.clients - 1e-9))

    @property
    def noise(self) -> Budget | None:
        """What a run may cost each row, as rho of zCDP; None where nothing is added."""
        return None if self.epsilon is None else Budget.approximate(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, object]:
        """Every setting by its name, as TOML and JSON have it: exact numbers as texts, and none left out."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        return {key: str(value) if isinstance(value, Fraction) else value for key, value in found.items()}

    @classmethod
    def from_dict(cls, entry: Mapping[str, object]) -> Federation:
        """From parsed TOML or JSON; an unknown setting is answered with the nearest."""
        return read(cls, entry, "[federation]")


def _refuse_misfits(one: Federation) -> None:
    """Nothing, where the way to put answers together fits the model and the noise; else why not."""
    way = AGGREGATIONS.get(one.aggregation)
    if one.model == "xgboost" and way is not None and not way.trees:
        raise ParameterError(
            say("Trees cannot be put together by '{way}'.", way=one.aggregation),
            "Trees of different clients have no common parameters that could be summed or ordered.",
            "Leave 'aggregation' out, or choose the logistic model.",
        )
    if way is not None and way.hidden and (one.fraction < 1 or one.clients < 2):
        raise ParameterError(
            "Secure sums need two clients or more, and the same ones in every round.",
            "The difference of two sums over different clients is one client's own.",
            "Leave 'fraction' at 1, or set aggregation = \"mean\".",
        )
    if way is not None and one.needed < way.fewest:
        raise ParameterError(
            say("The ends of {needed} answers cannot be left out.", needed=one.needed),
            "Between two answers there is no middle, so that one hostile client would move the mean as it likes.",
            "Raise 'clients' or 'participation' so that three must answer, or choose another aggregation.",
        )
    if one.epsilon is None:
        return
    if one.model == "xgboost":
        raise ParameterError(
            "Boosted trees cannot be trained with noise here.",
            "Split points repeat values of single rows, and no amount of noise on the leaves would hide them.",
            "Choose the logistic model, or leave epsilon out.",
        )
    if (way is not None and not way.hidden) or one.fraction < 1 or one.dropout > 0:
        raise ParameterError(
            "Noise needs secure sums over the same clients in every round.",
            "Each client adds a part of the noise, which hides nobody before it is summed.",
            "Leave 'aggregation', 'fraction' and 'dropout' out.",
        )
    if one.needed < one.tolerated + 2:
        raise ParameterError(
            say("{needed} clients cannot tolerate {tolerated}.", needed=one.needed, tolerated=one.tolerated),
            "The noise of at least two others must remain.",
            "Raise 'clients' or 'participation', or lower 'tolerated'.",
        )
    if one.rounds < 3:
        raise ParameterError(
            "A run with noise needs three rounds or more.",
            "The first one sums the features, the others the slopes.",
            "Raise 'rounds'.",
        )
