"""Packets as Flower's records and back. Everything else of this room knows Flower only through here and the apps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict

from velado.errors import VeladoError
from velado.learning.flower._boosting import Trees, groups_of, grow, matrix_of
from velado.learning.flower._local_rows import LocalRows, trains
from velado.learning.flower._logistic import improved, scaled_probabilities
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import Fact, Packet, Probabilities, softmax
from velado.measures.models.quality import curve_area, log_loss
from velado.text import say

# What a client does with a packet, whoever carries it: packet and state in, packet and state out.
#
# A client answers with new weights or new trees, with counts (rows, held-out rows, right answers) and with sums over its
# held-out rows. It never answers with a row, and an error leaves as one of our own sentences or as its kind alone.

Kind = Literal["greet", "train", "evaluate"]


@dataclass(frozen=True, repr=False)
class ClientState:
    """What a client keeps from round to round, at its own place: how many trees it has, and its rows' margins."""

    have: int = 0
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class TrainingClient:
    """A client that is ready: what was agreed and prepared rows. What is derived from them is made once."""

    agreed: Agreed
    prepared: LocalRows

    @cached_property
    def scaled(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Training and held-out features on the scale of the logistic regression."""
        scaling = self.agreed.scaling
        return scaling(self.prepared.features), scaling(self.prepared.test_features)

    @cached_property
    def matrix(self) -> Any:
        """The training rows as XGBoost wants them."""
        return matrix_of(self.prepared.features, self.prepared.labels)


def answer(
    make: Callable[[], TrainingClient], packet: Packet, state: ClientState, kind: Kind
) -> tuple[Packet, ClientState]:
    """The answer to *packet* and the state afterwards; an error becomes an answer that says so, the state is then kept."""
    try:
        return _answer(make(), packet, state, kind)
    except VeladoError as error:
        return Packet({"error": f"{error.what} {error.why} {error.fix}"}), state
    except Exception as error:  # its text may quote a cell, so only its kind leaves
        return Packet({"error": f"An unexpected {type(error).__name__} stopped it."}), state


def _answer(
    client: TrainingClient, packet: Packet, state: ClientState, kind: Kind
) -> tuple[Packet, ClientState]:
    agreed, prepared = client.agreed, client.prepared
    theirs = packet.text("digest")
    if theirs != agreed.digest:
        return Packet(
            {
                "error": f"This client has other terms ({agreed.digest[:12]}) than the server ({theirs[:12]}): schema, "
                "method or settings differ. Give both the same schema and settings."
            }
        ), state
    facts: dict[str, Fact] = _said_of(prepared)
    if not trains(prepared):
        return Packet({**facts, "sits_out": prepared.record.gap or "It has no rows."}), state
    if kind == "greet":
        return Packet(facts), state
    train = kind == "train"
    if agreed.federation.model == "logistic":
        return _logistic(client, packet, facts, train), state
    return _boosted(client, packet, facts, state, train)


def _logistic(client: TrainingClient, packet: Packet, facts: dict[str, Fact], train: bool) -> Packet:
    agreed, prepared = client.agreed, client.prepared
    weights = np.asarray(packet.arrays["weights"], dtype=np.float64)
    scaled, tested = client.scaled
    arrays: dict[str, npt.NDArray[Any]] = {}
    if packet.number("evaluate"):
        facts, arrays = _scored(facts, scaled_probabilities(weights, tested), prepared)
    if train:
        settings = agreed.federation
        arrays["weights"] = improved(weights, scaled, prepared.labels, settings.epochs, settings.penalty)
    return Packet(facts, arrays)


def _boosted(
    client: TrainingClient, packet: Packet, facts: dict[str, Fact], state: ClientState, train: bool
) -> tuple[Packet, ClientState]:
    agreed, prepared = client.agreed, client.prepared
    groups = groups_of(agreed.classes)
    first = int(packet.number("first"))
    kept = state.arrays.get("margins")
    if first > state.have or (state.have and (kept is None or len(kept) != prepared.labels.size)):
        # The server believes this client has trees that it lost, or its rows are others now: it asks for all of them.
        return Packet({**facts, "lost": 1, "have": 0}), ClientState()
    trees = Trees.unpacked(packet.arrays, prepared.features.shape[1], groups)
    fresh = trees.after(min(state.have - first, trees.count))
    margins = _grown(state, "margins", prepared.features, fresh, groups)
    tested = _grown(state, "test_margins", prepared.test_features, fresh, groups)
    state = ClientState(state.have + fresh.count, {"margins": margins, "test_margins": tested})
    arrays: dict[str, npt.NDArray[Any]] = {}
    if packet.number("evaluate"):
        facts, arrays = _scored(facts, softmax(tested), prepared)
    if train:
        arrays |= grow(client.matrix, margins, agreed.classes, agreed.federation).packed()
    return Packet({**facts, "have": state.have}, arrays), state


def _grown(
    state: ClientState, name: str, features: Any, fresh: Trees, groups: int
) -> npt.NDArray[np.float64]:
    before = state.arrays.get(name)
    if before is None:
        before = np.zeros((features.shape[0], groups))
    return np.asarray(before + fresh.margins(features, groups), dtype=np.float64)


def _said_of(prepared: LocalRows) -> dict[str, Fact]:
    record = prepared.record
    facts: dict[str, Fact] = {
        "name": record.name,
        "rows": record.rows,
        "test_rows": record.test_rows,
        "classes": record.classes,
        "promised": record.promised,
        "gap": record.gap or "",
    }
    if record.ncp is not None:
        facts["ncp"] = record.ncp
    if record.linkage is not None:
        facts["linkage"] = record.linkage
    return facts


def _scored(
    facts: dict[str, Fact], chances: Probabilities, prepared: LocalRows
) -> tuple[dict[str, Fact], dict[str, npt.NDArray[Any]]]:
    """Counts and sums over the client's own true held-out rows."""
    truth = prepared.test_labels
    counts = np.bincount(truth, minlength=chances.shape[1]).astype(np.int64)
    scored: dict[str, Fact] = {**facts, "scored": int(truth.size)}
    if truth.size:
        scored["right"] = int((np.argmax(chances, axis=1) == truth).sum())
        scored["loss_sum"] = log_loss(truth, chances) * truth.size
        area = curve_area(truth, chances)
        if area is not None:
            scored["auc"] = area
    return scored, {"test_classes": counts}


UNREADABLE = say("its answer cannot be read")
FACTS, ARRAYS, STATE = "velado.facts", "velado.arrays", "velado.state"


def to_content(packet: Packet) -> RecordDict:
    """What a message carries."""
    arrays = {name: Array(np.ascontiguousarray(array)) for name, array in packet.arrays.items()}
    return RecordDict({FACTS: ConfigRecord(dict(packet.facts)), ARRAYS: ArrayRecord(arrays)})


def from_message(message: Message) -> Packet:
    """What a message carried; one that Flower marks as failed is an answer that says so, without the failure's text."""
    if message.has_error():
        # The text may come from a library that quotes values; the code says enough.
        return Packet({"error": f"its app or machine failed (Flower's code {message.error.code})"})
    facts: Any = message.content.config_records.get(FACTS, {})
    arrays: Any = message.content.array_records.get(ARRAYS, {})
    return Packet(dict(facts), {name: array.numpy() for name, array in arrays.items()})


def read_reply(message: Message) -> Packet:
    """What a reply carried; one that cannot be read is an answer that says so, and never an error of the server."""
    try:
        packet = from_message(message)
        facts: list[Any] = list(packet.facts.values())
        odd = any(not isinstance(value, int | float | str) for value in facts)
        if odd or any(array.dtype.kind not in "iuf" for array in packet.arrays.values()):
            return Packet({"error": UNREADABLE})
        _ = packet.size
    except Exception:  # a stranger's bytes can fail anywhere in the library that reads them
        return Packet({"error": UNREADABLE})
    return packet


def state_in(context: Context) -> ClientState:
    """What the client kept from earlier rounds, at its own place."""
    if f"{STATE}.facts" not in context.state:
        return ClientState()
    facts: Any = context.state[f"{STATE}.facts"]
    arrays: Any = context.state[f"{STATE}.arrays"]
    return ClientState(int(facts["have"]), {name: array.numpy() for name, array in arrays.items()})


def keep_state(context: Context, state: ClientState) -> None:
    """*state* is what the client finds in the next round."""
    context.state[f"{STATE}.facts"] = ConfigRecord({"have": state.have})
    context.state[f"{STATE}.arrays"] = ArrayRecord({name: Array(a) for name, a in state.arrays.items()})
