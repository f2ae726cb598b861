"""What a federated run gives back: round by round, client by client, with its promise, its cost and how it was made."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from velado.errors import EngineError, SchemaError
from velado.text import LANGUAGES, say, told

# What a federated run has learned: something that gives probabilities, and arrays that can be kept in a file.

FloatMatrix = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]


class FederatedModel(Protocol):
    """A model at some point of the run.

    >>> class Coin:
    ...     def probabilities(self, features): return np.full((len(features), 2), 0.5)
    ...     def arrays(self): return {}
    >>> model: FederatedModel = Coin()
    >>> model.probabilities(np.zeros((1, 3))).tolist()
    [[0.5, 0.5]]
    """

    def probabilities(self, features: FloatMatrix) -> Probabilities:
        """Chance of every class for every row of encoded *features*."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model as named arrays, for a file without code in it."""
        ...


def softmax(margins: npt.NDArray[np.float64]) -> Probabilities:
    """exp(m_c) / sum_c exp(m_c) by rows; one column means the log odds of the second of two classes.

    >>> softmax(np.zeros((1, 1))).tolist()
    [[0.5, 0.5]]
    """
    if margins.shape[1] == 1:
        margins = np.concatenate([np.zeros_like(margins), margins], axis=1)
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)


# Packet: what travels between server and client, in either direction, whoever carries it: arrays and a few facts.

Fact = int | float | str


@dataclass(frozen=True, repr=False)
class Packet:
    """Named arrays (weights, trees, class counts) and named facts (digests, counts, sums). Never a row.

    >>> Packet({"rows": 40, "digest": "ab"}).number("rows")
    40.0
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Packet({len(self.facts)} facts, {len(self.arrays)} arrays, {self.size} bytes)"

    @property
    def size(self) -> int:
        """Bytes of the arrays, and of the facts written as JSON; what carries them adds its own."""
        return sum(np.asarray(array).nbytes for array in self.arrays.values()) + len(
            json.dumps(dict(self.facts))
        )

    def number(self, name: str, default: float = 0.0) -> float:
        """A fact that is a finite number; anything else counts as *default*."""
        value = self.facts.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return default
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond what a float holds
            return default
        return number if np.isfinite(number) else default

    def text(self, name: str) -> str:
        """A fact that is a text, in one line of a length that a log can bear; anything else is empty."""
        value = self.facts.get(name, "")
        return " ".join(value[:500].split()) if isinstance(value, str) else ""


FORMAT = 1
_PLAIN = (
    "model",
    "split",
    "alpha",
    "method",
    "k",
    "seed",
    "clients_asked",
    "participation",
    "majority",
    "evaluation",
)


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """One round: how good the model is after it, on true held-out rows, who answered, and what it cost.

    A round that too few clients answered is not *applied*: the model stays as it was, and *gap* says why. *missing*
    names the clients that could take part and did not: those that were asked and did not answer well, and those that
    were not there to be asked. *test_rows* is how many held-out rows the scores are of: rounds with another number are
    not scored on the same rows. Bytes are those of the parameters, trees and counts.

    >>> RoundRecord(number=1, asked=3, replied=2, applied=True).to_dict()["round"]
    1
    """

    number: int
    asked: int
    replied: int
    applied: bool
    accuracy: float | None = None
    auc: float | None = None
    loss: float | None = None
    gap: str | None = None
    missing: tuple[str, ...] = ()
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0
    test_rows: int | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain values; the round's number is called "round"."""
        values = asdict(self)
        return {"round": values.pop("number"), **values, "missing": list(self.missing)}


@dataclass(frozen=True, kw_only=True)
class ClientRecord:
    """One client: its training and held-out rows, how many classes it has, what anonymizing cost it and leaves open.

    *ncp* and *linkage* are of the client's own release, None with the reason in *gap* where they were not computed.

    >>> ClientRecord(name="client 1", rows=40).to_dict()["rows"]
    40
    """

    name: str
    rows: int = 0
    test_rows: int = 0
    classes: int = 0
    ncp: float | None = None
    linkage: float | None = None
    promised: str = ""
    gap: str | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def client_record(number: int, **known: Any) -> ClientRecord:
    """The record of client *number*, from 1.

    >>> client_record(2, rows=40).name
    'client 2'
    """
    return ClientRecord(name=say("client {number}", number=number), **known)


@dataclass(frozen=True, kw_only=True)
class FederatedPromise:
    """What is guaranteed, measured and not promised of a run, in sentences; *type* is the strongest of them.

    >>> said = FederatedPromise(
    ...     type="measured", clients_checked=0, guaranteed=(), measured=("Loss.",), not_promised=(), what_leaves=()
    ... )
    >>> FederatedPromise.from_dict(said.to_dict()).measured
    ('Loss.',)
    """

    type: str
    clients_checked: int
    guaranteed: tuple[str, ...]
    measured: tuple[str, ...]
    not_promised: tuple[str, ...]
    what_leaves: tuple[str, ...]
    # What a file said, in every language: a sentence read back no longer knows its parts.
    read: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The sentences by what they say."""
        return {
            name: getattr(self, name) for name in ("guaranteed", "measured", "not_promised", "what_leaves")
        }

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON, the sentences in every language."""
        if self.read:
            return dict(self.read)
        said: dict[str, object] = {
            language: {name: [told(text, language) for text in texts] for name, texts in self.parts.items()}
            for language in LANGUAGES
        }
        return {"type": self.type, "clients_checked": self.clients_checked, **said}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FederatedPromise:
        """The promise that `to_dict` wrote, in English."""
        said = {name: tuple(texts) for name, texts in document["en"].items()}
        return cls(type=document["type"], clients_checked=document["clients_checked"], read=document, **said)


@dataclass(frozen=True, kw_only=True)
class FederatedHow:
    """How a run was made, as fit.json has it; method and guarantees are written as recipes write them.

    >>> FederatedHow(engine="loop", classes=2).to_dict()["engine"]
    'loop'
    """

    federation: Mapping[str, object] = field(default_factory=dict)
    method: Mapping[str, object] | None = None
    guarantees: tuple[Mapping[str, object], ...] = ()
    suppression: float = 0.0
    target: str = ""
    classes: int = 0
    features: tuple[str, ...] = ()
    digest: str = ""
    engine: str = ""
    read_off_the_table: tuple[str, ...] = ()
    stopped: str | None = None
    notes: tuple[str, ...] = ()
    aggregation: str = ""
    keys: str = ""
    account: Mapping[str, object] = field(default_factory=dict)
    membership: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedFit:
    """The model of a federated run, its promise, what it cost and how it was made.

    *evaluation* is "pooled" (one set of all clients' true held-out rows, scored centrally: simulation) or "clients"
    (each client scored its own; accuracy and loss are those of all rows together, the AUC is the clients' mean weighted
    by rows). *learned* holds the parameters or trees, and is None in a fit read from a file.

    >>> from velado.learning.flower.simulation import run_ready, small_ready
    >>> fit = run_ready(small_ready(), "loop")
    >>> fit.last.replied, FederatedFit.from_dict(fit.to_dict()).how == fit.how
    (2, True)
    """

    model: str
    split: str
    alpha: float | None
    method: str
    k: int | None
    seed: int
    clients_asked: int
    participation: float
    majority: float | None
    rounds: tuple[RoundRecord, ...]
    clients: tuple[ClientRecord, ...]
    promise: FederatedPromise
    cost: Mapping[str, float] = field(default_factory=dict)
    how: FederatedHow = FederatedHow()
    evaluation: str = "pooled"
    learned: FederatedModel | None = None

    def __repr__(self) -> str:
        last = self.last
        said = (
            "no round applied" if last is None or last.accuracy is None else f"accuracy {last.accuracy:.4f}"
        )
        return f"FederatedFit({self.model} on {self.method}, {len(self.rounds)} rounds, {said})"

    @property
    def last(self) -> RoundRecord | None:
        """The last round."""
        return self.rounds[-1] if self.rounds else None

    @property
    def gaps(self) -> tuple[str, ...]:
        """Every sentence about something that is missing: clients that sit out, rounds that were not applied."""
        found = [one.gap for one in self.clients if one.gap]
        found += [
            say("Round {number}: {gap}", number=one.number, gap=one.gap) for one in self.rounds if one.gap
        ]
        return tuple(found)

    def to_dict(self) -> dict[str, object]:
        """Plain values without any cell of a table, and without the model itself."""
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in _PLAIN},
            "rounds": [one.to_dict() for one in self.rounds],
            "clients": [one.to_dict() for one in self.clients],
            "promise": self.promise.to_dict(),
            "cost": dict(self.cost),
            "how": self.how.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FederatedFit:
        """The fit a file holds, or SchemaError where it is not one of this format."""
        try:
            if document["format"] != FORMAT:
                raise KeyError("format")
            values = {key: value for key, value in document.items() if key != "format"}
            rounds = [dict(one) for one in values.pop("rounds")]
            clients = [dict(one) for one in values.pop("clients")]
            how = {key: _frozen(value) for key, value in values.pop("how").items()}
            return cls(
                rounds=tuple(
                    RoundRecord(number=one.pop("round"), **{**one, "missing": tuple(one["missing"])})
                    for one in rounds
                ),
                clients=tuple(ClientRecord(**one) for one in clients),
                promise=FederatedPromise.from_dict(values.pop("promise")),
                how=FederatedHow(**how),
                **values,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise SchemaError(
                "The file is not a federated fit that this version reads.",
                say("A fit has format {format}, rounds and clients.", format=FORMAT),
                "Give the fit.json that `velado federate` wrote.",
            ) from None

    def _repr_html_(self) -> str:
        last = self.last
        if last is None:
            return "<p>No round was run.</p>"
        numbers = [("accuracy", last.accuracy), ("AUC", last.auc), ("loss", last.loss)]
        cells = "".join(f"<td>{name} {value:.4f}</td>" for name, value in numbers if value is not None)
        gaps = "".join(f"<li>{html.escape(text)}</li>" for text in self.gaps[:10])
        title = html.escape(f"{self.model} on {self.method}, round {last.number}")
        return f"<table><caption>{title}</caption><tr>{cells}</tr></table><ul>{gaps}</ul>"


def _frozen(value: Any) -> Any:
    """JSON's lists are our tuples."""
    return tuple(value) if isinstance(value, list) else value


class FederationStopped(EngineError):
    """Too few clients answered for too long; *fit* keeps the history up to there.

    >>> FederationStopped("Two of three are gone.", "A round needs two.", "Bring them back.").fit is None
    True
    """

    def __init__(self, what: str, why: str, fix: str, fit: FederatedFit | None = None) -> None:
        super().__init__(what, why, fix)
        self.fit = fit
