"""Federation: everything two parties must agree on before they train together, but the rows."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from velado.errors import ParameterError
from velado.release.parameters import check_parameters
from velado.text import say

MODELS = ("logistic", "xgboost")
SPLITS = ("iid", "dirichlet")


@dataclass(frozen=True)
class Federation:
    """The settings of a federated run; checked when made.

    A round is applied when at least `needed` = ceil(participation x clients) clients answered it. Logistic regression
    is averaged (FedAvg, McMahan et al. 2017); XGBoost trees are collected (bagging, as Flower's FedXgbBagging).
    """

    name: ClassVar[str] = "the federation"

    model: str = field(
        default="logistic", metadata={"help": "logistic (FedAvg) or xgboost (bagging)", "choices": MODELS}
    )
    clients: int = field(default=10, metadata={"help": "clients", "min": 1, "max": 1000})
    rounds: int = field(default=100, metadata={"help": "rounds", "min": 1, "max": 100_000})
    split: str = field(
        default="iid", metadata={"help": "how a simulation deals out the rows", "choices": SPLITS}
    )
    alpha: float = field(
        default=0.5,
        metadata={"help": "Dirichlet concentration over the classes; small: unlike clients", "min": 1e-3},
    )
    participation: float = field(
        default=0.8, metadata={"help": "share of all clients a round needs answers of", "min": 0, "max": 1}
    )
    fraction: float = field(
        default=1.0, metadata={"help": "share of all clients asked in a round", "min": 0, "max": 1}
    )
    test_share: float = field(
        default=0.2, metadata={"help": "true rows held out before anything is anonymized"}
    )
    epochs: int = field(
        default=5, metadata={"help": "logistic: L-BFGS steps of a client in a round", "min": 1}
    )
    penalty: float = field(
        default=1e-4, metadata={"help": "logistic: weight of the squared coefficients", "min": 0}
    )
    rate: float = field(default=0.3, metadata={"help": "xgboost: learning rate", "min": 1e-4, "max": 1})
    depth: int = field(default=4, metadata={"help": "xgboost: depth of a tree", "min": 1, "max": 16})
    weight: float = field(default=5.0, metadata={"help": "xgboost: least weight of a leaf", "min": 0})
    bagging: str = field(
        default="mean",
        metadata={
            "help": "xgboost: trees of a round count with their client's share of rows, or whole (as Flower's)",
            "choices": ("mean", "sum"),
        },
    )
    unmet: int = field(
        default=3, metadata={"help": "rounds in a row that may fail before the run stops", "min": 1}
    )
    patience: float = field(
        default=600.0, metadata={"help": "seconds a round waits for answers", "min": 0.1, "max": 86_400}
    )
    dropout: float = field(
        default=0.0, metadata={"help": "simulation: chance that a client misses a round", "min": 0, "max": 1}
    )

    def __post_init__(self) -> None:
        for part, choices in (("model", MODELS), ("split", SPLITS)):
            given = getattr(self, part)
            if isinstance(given, str) and given not in choices:
                near = difflib.get_close_matches(given, choices, n=1, cutoff=0.4)
                raise ParameterError(
                    say("There is no {part} '{given}' to federate.", part=part, given=given),
                    say("It is one of {choices}.", choices=", ".join(choices)),
                    say("Did you mean '{near}'?", near=near[0]) if near else "Choose one of them.",
                )
        check_parameters(self)
        for part in ("participation", "fraction", "test_share"):
            given = getattr(self, part)
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise ParameterError(
                    say("'{part}' of the federation is not a number.", part=part),
                    "It is a share above 0.",
                    "Give a number, without quotes.",
                )
            if not 0 < given <= 1 or (part == "test_share" and self.test_share >= 1):
                raise ParameterError(
                    say("'{part}' of the federation is {given:g}.", part=part, given=given),
                    "It is a share above 0, and rows to learn from must be left.",
                    "Choose a number between 0 and 1.",
                )
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

    def to_dict(self) -> dict[str, Any]:
        """Every setting by its name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Federation:
        """From parsed TOML or JSON; an unknown setting is answered with the nearest."""
        known = {part.name: part for part in fields(cls)}
        for key in entry:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                raise ParameterError(
                    say("Unknown key '{key}' in [federation].", key=key),
                    "A misspelt key would be passed over.",
                    say("Did you mean '{near}'?", near=near[0])
                    if near
                    else say("Known keys: {known}.", known=", ".join(known)),
                )
        values = dict(entry)
        for key, value in values.items():
            # TOML writes a share of one as 1.
            if (
                isinstance(known[key].default, float)
                and isinstance(value, int)
                and not isinstance(value, bool)
            ):
                values[key] = float(value)
        return cls(**values)
