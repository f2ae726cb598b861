"""What a client does with a packet, whoever carries it: packet and state in, packet and state out.

A client answers with new weights or new trees, with counts (rows, held-out rows, right answers) and with sums over its
held-out rows. It never answers with a row, and an error leaves as one of our own sentences or as its kind alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError, VeladoError
from velado.learning.flower._boosting import Trees, groups_of, grow, matrix_of
from velado.learning.flower._census import census_figures
from velado.learning.flower._local_rows import LocalRows, trains
from velado.learning.flower._logistic import Weights, improved, scaled_probabilities
from velado.learning.flower._masking import (
    KEY_BYTES,
    Figures,
    keys_digest,
    masked,
    noise_tape,
    public_key,
)
from velado.learning.flower._parties import SIGNATURE_BYTES, OwnParty, refuse_unsigned
from velado.learning.flower._pooled_newton import figures_at, scores_of
from velado.learning.flower._private_steps import noisy, plan_for, score_figures, step_figures
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import Fact, Packet, Probabilities, softmax
from velado.measures.models.quality import curve_area, log_loss
from velado.randomness import Tape
from velado.text import say

OTHER_KEY = say("it was started again, and has another key")
NOT_COUNTED = say("it was asked for sums before all rows were counted, or to count where noise is agreed on")

Kind = Literal["greet", "train", "evaluate"]


@dataclass(frozen=True, repr=False)
class ClientState:
    """What a client keeps from round to round, at its own place: how many trees it has, and its rows' margins.

    With secure sums: the last message it answered, its secret, with whom it is summed, and at which points.
    """

    have: int = 0
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class TrainingClient:
    """A client that is ready: what was agreed and prepared rows. What is derived from them is made once.

    *debit* is called before the first figure with noise is drawn; it raises where the budget is spent. *heard* is told the digest of
    the keys that this client's masks are made with. *party* signs and keeps the register, where the agreement names parties.
    """

    agreed: Agreed
    prepared: LocalRows
    debit: Callable[[], None] | None = None
    heard: Callable[[str], None] | None = None
    party: OwnParty | None = None

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
    private = agreed.federation.noise is not None
    facts: dict[str, Fact] = {} if private else _said_of(prepared)
    if not trains(prepared):
        why = say("It cannot take part.") if private else prepared.record.gap or "It has no rows."
        return Packet({**facts, "sits_out": why}), state
    if agreed.hidden:
        return _summed(client, packet, facts, state, kind)
    if kind == "greet":
        return Packet(_signed(client, facts, b"")), state
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


def _summed(
    client: TrainingClient, packet: Packet, facts: dict[str, Fact], state: ClientState, kind: Kind
) -> tuple[Packet, ClientState]:
    """Figures under masks; this client's own are nobody's to see."""
    agreed = client.agreed
    if "secret" not in state.arrays:
        if client.debit is not None:
            client.debit()
        secret = Tape.fresh_seed()
        state = ClientState(0, {"secret": np.frombuffer(secret, dtype=np.uint8)})
    else:
        secret = np.asarray(state.arrays["secret"], dtype=np.uint8).tobytes()
    own = public_key(secret)
    facts = {**facts, "mask_key": own.hex()}
    if kind == "greet":
        return Packet(_signed(client, facts, own)), state
    members, keys = _members_of(packet, agreed)
    if agreed.signers:
        refuse_unsigned(agreed.digest, agreed.signers, members, keys, _signatures_in(packet, len(members)))
    if own not in keys:
        return Packet({"error": OTHER_KEY}), state
    counting, exact = bool(packet.number("census")), agreed.federation.noise is None
    number = 2 * int(packet.number("round")) + (kind == "evaluate") - counting
    if number > 2 * agreed.federation.rounds + 1:
        raise ParameterError(
            "The coordinator asks for more rounds than were agreed.",
            "Exact sums at many points tell more than a model does.",
            "Agree on more 'rounds', and start a new run.",
        )
    if (counting and not exact) or (exact and not counting and "counted" not in state.arrays):
        return Packet({"error": NOT_COUNTED}), state
    before = state.arrays.get("members")
    if number <= state.have or (before is not None and before.tolist() != members):
        raise ParameterError(
            "The coordinator asks again for sums that were given, or for sums over other clients.",
            "The difference of two such sums would be one client's own.",
            "Start a new run.",
        )
    if client.party is not None:
        client.party.let_out(members)
    if client.heard is not None:
        client.heard(keys_digest(members, keys))
    kept: dict[str, npt.NDArray[Any]] = {**state.arrays, "members": np.array(members, dtype=np.int64)}
    weights = np.asarray(packet.arrays["weights"], dtype=np.float64)
    if counting:
        rows = client.prepared
        figures = census_figures(rows.features, rows.labels, rows.test_labels.size, agreed)
        kept["counted"] = np.ones(1, dtype=np.int64)
    elif exact:
        figures = _exact_figures(client, packet, weights, kind)
    else:
        figures, kept = _noisy_figures(client, packet, weights, kept, kind)
    vector = masked(figures, secret, members, keys, agreed.digest, str(number))
    return Packet(facts, {"masked": vector}), ClientState(number, kept)


def _signed(client: TrainingClient, facts: dict[str, Fact], key: bytes) -> dict[str, Fact]:
    """The facts of a greeting with the party's signature, where the agreement names parties."""
    return facts if client.party is None else {**facts, "signature": client.party.sign(key).hex()}


def _signatures_in(packet: Packet, count: int) -> list[bytes]:
    """As many signatures as members; ones that did not come are empty, and sign nothing."""
    found = np.asarray(packet.arrays.get("signatures", np.zeros((0, SIGNATURE_BYTES), np.uint8)))
    if found.dtype != np.uint8 or found.shape != (count, SIGNATURE_BYTES):
        return [b""] * count
    return [row.tobytes() for row in found]


def _members_of(packet: Packet, agreed: Agreed) -> tuple[list[int], list[bytes]]:
    """With whom this client is to be summed, and their public keys."""
    members = np.asarray(packet.arrays.get("members", np.zeros(0, np.int64)))
    keys = np.asarray(packet.arrays.get("keys", np.zeros((0, KEY_BYTES), np.uint8)))
    numbers = [int(one) for one in members.ravel()]
    federation = agreed.federation
    sound = keys.dtype == np.uint8 and keys.shape == (len(numbers), KEY_BYTES)
    rising = numbers == sorted(set(numbers)) and all(1 <= one <= federation.clients for one in numbers)
    if not sound or not rising or len(numbers) < max(2, federation.needed):
        raise ParameterError(
            "The list of clients to be summed is not sound, or too short.",
            "A sum over too few clients tells about each of them.",
            "Ask the coordinator.",
        )
    return numbers, [row.tobytes() for row in keys]


def _exact_figures(client: TrainingClient, packet: Packet, weights: Weights, kind: Kind) -> Figures:
    agreed, prepared = client.agreed, client.prepared
    scaled, tested = client.scaled
    parts = []
    if kind == "train":
        parts.append(figures_at(weights, scaled, prepared.labels, agreed))
    if packet.number("evaluate"):
        parts.append(scores_of(scaled_probabilities(weights, tested), prepared.test_labels, agreed))
    return np.concatenate(parts)


def _noisy_figures(
    client: TrainingClient,
    packet: Packet,
    weights: Weights,
    kept: dict[str, npt.NDArray[Any]],
    kind: Kind,
) -> tuple[Figures, dict[str, npt.NDArray[Any]]]:
    """The figures of a step with noise, and the state with its point: a step is answered at one point, ever.

    The same step at the same point draws the same noise again, so that a round that was lost costs nothing when it is
    asked again.
    """
    agreed, prepared = client.agreed, client.prepared
    plan = plan_for(agreed, len(kept["members"]))
    step = int(packet.number("step", -1))
    points = kept.get("points", np.zeros((plan.steps + 2, weights.size)))
    known = kept.get("known", np.zeros(plan.steps + 2, dtype=np.int64))
    last = step == plan.steps + 1
    if not 0 <= step < known.size or last != (kind == "evaluate") or not np.isfinite(weights).all():
        raise ParameterError(
            "The coordinator asks for a step that the run does not have.",
            "More steps than were paid for would tell more than was agreed.",
            "Start a new run.",
        )
    if known[step] and not np.array_equal(points[step], weights.ravel()):
        raise ParameterError(
            "The coordinator asks for the same step at another point.",
            "Two answers would cost twice what was paid.",
            "Start a new run.",
        )
    points, known = points.copy(), known.copy()
    points[step], known[step] = weights.ravel(), 1
    tape = noise_tape(np.asarray(kept["secret"], dtype=np.uint8).tobytes(), step)
    scaled, tested = client.scaled
    if last:
        chances = scaled_probabilities(weights, tested)
        figures = noisy(score_figures(chances, prepared.test_labels, agreed), plan.score, tape)
    else:
        figures = step_figures(step, weights, scaled, prepared.labels, agreed)
        width = agreed.features + 1 if step == 0 else None
        figures = noisy(figures, plan.gram if step == 0 else plan.slope, tape, width)
    return figures, {**kept, "points": points, "known": known}


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
