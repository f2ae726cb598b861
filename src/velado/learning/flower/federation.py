"""Federation: everything two parties must agree on before they train together, but the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, ClassVar, Literal

from velado.errors import ParameterError
from velado.settings import Setting, read, settings
from velado.text import say

Share = Annotated[float, Setting(gt=0, le=1)]


@settings(section="federation")
class Federation:
    """The settings of a federated run; checked when made.

    A round is applied when at least `needed` = ceil(participation x clients) clients answered it. Logistic regression
    is averaged (FedAvg, McMahan et al. 2017); XGBoost trees are collected (bagging, as Flower's FedXgbBagging).

    >>> Federation(clients=5, participation=0.5).needed
    3
    """

    name: ClassVar[str] = "the federation"

    model: Annotated[Literal["logistic", "xgboost"], Setting("logistic (FedAvg) or xgboost (bagging)")] = (
        "logistic"
    )
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
    epochs: Annotated[int, Setting("logistic: L-BFGS steps of a client in a round", ge=1)] = 5
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

    def __post_init__(self) -> None:
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

    def to_dict(self) -> dict[str, object]:
        """Every setting by its name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, object]) -> Federation:
        """From parsed TOML or JSON; an unknown setting is answered with the nearest."""
        return read(cls, entry, "[federation]")
