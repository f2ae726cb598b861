"""What the server does with answers, whoever carries them: the model as it stands, and one round after the other.

The server holds the model, counts who answered, and applies a round only if enough did. It sees weights, trees, counts
and sums; in a simulation also the pooled held-out rows it is asked to score on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.learning.flower._boosting import BoostedModel, Trees, groups_of, joined
from velado.learning.flower._logistic import LogisticModel, average, first_weights, scaled_probabilities
from velado.learning.flower._terms import Agreed
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import (
    ClientRecord,
    FederatedModel,
    FloatMatrix,
    Packet,
    Probabilities,
    softmax,
)
from velado.text import Sentence, join, say

# What a reply must be to count: readable, and with counts and scores that can be true. Whoever sends another is missing.
#
# A client's numbers cannot be recomputed at the server. What can be known is that rows are whole and as many as were said
# when the client was greeted, and that scores lie where scores can lie; nothing else may enter a sum or a mean.

OTHER_ROWS = say("it has other rows than when it was greeted")
OTHER_CLIENT = say("it says that it is another client")
_MOST_ROWS = 10**12
# -ln of the least probability that a score is computed with is below 35.
_WORST_LOSS = 100.0


def whole(packet: Packet, name: str, least: int, most: int = _MOST_ROWS) -> int | None:
    """A fact that is a whole number from *least* to *most*; None for anything else, also where it is not there."""
    value = packet.facts.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return int(value) if fits and value is not None else None


def greeting_fault(packet: Packet) -> str:
    """Why what a client says of itself cannot be true, or nothing."""
    least = 0 if packet.text("sits_out") else 1
    if whole(packet, "rows", least) is None or whole(packet, "test_rows", 0) is None:
        return say("its rows are not whole numbers, or none")
    if "classes" in packet.facts and whole(packet, "classes", 0) is None:
        return say("its number of classes is not a whole number")
    return ""


def round_fault(packet: Packet, greeted: ClientRecord | None, classes: int) -> str:
    """Why an answer to a round does not count, or nothing. One that says itself what is wrong is left as it is."""
    if packet.text("error") or packet.text("sits_out"):
        return ""
    if fault := greeting_fault(packet):
        return fault
    if greeted is not None and packet.facts["rows"] != greeted.rows:
        return OTHER_ROWS
    return _score_fault(packet, greeted, classes) if "scored" in packet.facts else ""


def _score_fault(packet: Packet, greeted: ClientRecord | None, classes: int) -> str:
    scored = whole(packet, "scored", 0)
    if scored is None or (greeted is not None and scored != greeted.test_rows):
        return say("it scored other rows than it holds out")
    if not counts_fit(packet.arrays.get("test_classes"), classes, scored):
        return say("its class counts do not add up")
    if scored == 0:
        return ""
    loss, area = _finite(packet, "loss_sum"), _finite(packet, "auc")
    if whole(packet, "right", 0, scored) is None or loss is None or not 0 <= loss <= _WORST_LOSS * scored:
        return say("its scores are out of range")
    if "auc" in packet.facts and (area is None or not 0 <= area <= 1):
        return say("its scores are out of range")
    return ""


def counts_fit(counts: npt.NDArray[Any] | None, classes: int, total: int) -> bool:
    """Whether *counts* are whole, none below 0, one for each class, and *total* together."""
    if counts is None or counts.shape != (classes,) or counts.dtype.kind not in "iu":
        return False
    # Each is held against the total before they are summed: a sum of huge ones would wrap around.
    return bool((counts >= 0).all() and (counts <= total).all() and int(counts.sum()) == total)


def share(packet: Packet, name: str) -> float | None:
    """A fact that is a share from 0 to 1; None for anything else."""
    value = _finite(packet, name)
    return value if value is not None and 0 <= value <= 1 else None


def _finite(packet: Packet, name: str) -> float | None:
    value = packet.number(name, np.inf)
    return value if np.isfinite(value) else None


log = logging.getLogger("velado.learning.flower")
LARGEST = 1e6  # of a weight


class Holder(Protocol):
    """The model at the server."""

    def packet_for(self, client: int, everything: bool = False) -> Packet:
        """What client number *client* must be sent."""
        ...

    def acknowledged(self, client: int, packet: Packet) -> None:
        """What a client says it has."""
        ...

    def fits(self, packet: Packet) -> bool:
        """Whether an answer brings a model of this kind and shape; one that does not must not spoil the others'."""
        ...

    def apply(self, answers: Mapping[int, Packet]) -> None:
        """The answers of one round, all of which fit, are taken into the model."""
        ...

    def scores(self) -> Probabilities | None:
        """Probabilities for the pooled held-out rows, where the server has them."""
        ...

    def learned(self) -> FederatedModel:
        """The model."""
        ...


class Averaged:
    """FedAvg: the weights, and the mean of those that came back, weighted by rows."""

    def __init__(self, agreed: Agreed, tested: FloatMatrix | None) -> None:
        self._agreed = agreed
        self._weights = first_weights(agreed.features, agreed.classes)
        self._tested = None if tested is None else agreed.scaling(tested)

    def packet_for(self, client: int, everything: bool = False) -> Packet:
        """The weights; every client gets the same."""
        return Packet({}, {"weights": self._weights})

    def acknowledged(self, client: int, packet: Packet) -> None:
        """Nothing: weights replace one another."""

    def fits(self, packet: Packet) -> bool:
        """Weights of the model's shape, finite and of a size that a model of scaled features can have."""
        weights = np.asarray(packet.arrays.get("weights", np.zeros(0)))
        shaped = weights.shape == self._weights.shape and weights.dtype.kind == "f"
        return bool(shaped and np.isfinite(weights).all() and (np.abs(weights) <= LARGEST).all())

    def apply(self, answers: Mapping[int, Packet]) -> None:
        """The weighted mean is the new model."""
        parts = [
            (
                np.asarray(answers[number].arrays["weights"], dtype=np.float64),
                int(answers[number].number("rows")),
            )
            for number in sorted(answers)
        ]
        self._weights = average(parts)

    def scores(self) -> Probabilities | None:
        """softmax(x w + b) of the pooled held-out rows."""
        return None if self._tested is None else scaled_probabilities(self._weights, self._tested)

    def learned(self) -> FederatedModel:
        """The weights with their scaling."""
        return LogisticModel(self._weights, self._agreed.scaling)


class Bagged:
    """Bagging: all trees so far; each client is sent those that are new to it. Scoring keeps its margins too."""

    def __init__(self, agreed: Agreed, tested: FloatMatrix | None) -> None:
        self._agreed = agreed
        self._groups = groups_of(agreed.classes)
        self._rounds: list[Trees] = []
        self._ends: list[int] = [0]
        self._have: dict[int, int] = {}
        self._tested = tested
        self._margins = None if tested is None else np.zeros((tested.shape[0], self._groups))

    def packet_for(self, client: int, everything: bool = False) -> Packet:
        """The trees since what *client* said it has: those of one round when it answered the last."""
        have = 0 if everything else self._have.get(client, 0)
        at = next(number for number, end in enumerate(self._ends) if end >= have)
        return Packet({"first": self._ends[at]}, joined(self._rounds[at:]).packed())

    def acknowledged(self, client: int, packet: Packet) -> None:
        """The client has that many trees; a number that is no round's end counts as none."""
        have = int(packet.number("have"))
        self._have[client] = have if have in self._ends else 0

    def fits(self, packet: Packet) -> bool:
        """Sound trees over the features there are, one for each margin and none deeper than agreed."""
        try:
            trees = Trees.unpacked(packet.arrays, self._agreed.features, self._groups)
        except ParameterError:
            return False
        # More trees than one boosting step grows would count more than their client's share.
        single = np.array_equal(np.sort(trees.group), np.arange(self._groups))
        return bool(single and (np.diff(trees.first) < 2 ** (self._agreed.federation.depth + 1)).all())

    def apply(self, answers: Mapping[int, Packet]) -> None:
        """The round's trees are added, client after client."""
        total = sum(int(packet.number("rows")) for packet in answers.values())
        parts = []
        for number in sorted(answers):
            packet = answers[number]
            trees = Trees.unpacked(packet.arrays, self._agreed.features, self._groups)
            mean = self._agreed.federation.bagging == "mean"
            parts.append(trees.weighing(packet.number("rows") / total if mean else 1.0))
        fresh = joined(parts)
        if self._margins is not None and self._tested is not None:
            self._margins = self._margins + fresh.margins(self._tested, self._groups)
        self._rounds.append(fresh)
        self._ends.append(self._ends[-1] + fresh.count)

    def scores(self) -> Probabilities | None:
        """softmax of the margins kept."""
        return None if self._margins is None else softmax(self._margins)

    def learned(self) -> FederatedModel:
        """All trees."""
        return BoostedModel(joined(self._rounds), self._groups)


def holder_of(agreed: Agreed, tested: FloatMatrix | None) -> Holder:
    """The server's side of the federation's model."""
    return (Averaged if agreed.federation.model == "logistic" else Bagged)(agreed, tested)


@dataclass(frozen=True)
class RoundVerdict:
    """Whether a round counts: who answered, who did not, and the sentence about what is missing."""

    answered: Mapping[int, Packet]
    missing: tuple[str, ...]
    applied: bool
    gap: str | None


def take_round(
    holder: Holder,
    federation: Federation,
    number: int,
    asked: list[int],
    answers: Mapping[int, Packet],
    absent: Mapping[int, str] | None = None,
) -> RoundVerdict:
    """The round is applied if enough clients answered it well, and logged either way where something is missing.

    *absent* are clients that could take part and could not be asked, each with why: they are missing like those that
    were asked and did not answer.
    """
    good = {
        one: packet
        for one, packet in answers.items()
        if one in asked and usable(packet) and holder.fits(packet)
    }
    whys = dict(absent or {})
    for one in asked:
        if one not in good:
            packet = answers.get(one, Packet({"error": say("no answer")}))
            whys[one] = packet.text("error") or packet.text("sits_out") or say("its model does not fit")
    reasons = [say("client {number} ({why})", number=one, why=_sentence(whys[one])) for one in sorted(whys)]
    applied, gap = len(good) >= federation.needed, None
    if applied:
        holder.apply(good)
        if reasons:
            gap = say("Without {missing}.", missing=join(reasons, "; "))
            log.info("Round %d: applied. %s", number, gap)
    else:
        gap = say(
            "{replied} of {clients} replied, {needed} are needed; the round was not applied. Missing: {missing}.",
            replied=len(good),
            clients=federation.clients,
            needed=federation.needed,
            missing=join(reasons, "; ") or say("clients that sit out"),
        )
        log.warning("Round %d: %s", number, gap)
    missing = tuple(say("client {number}", number=one) for one in sorted(whys))
    return RoundVerdict(good, missing, applied, gap)


def _sentence(text: str) -> Sentence:
    """What a client said of itself is looked up as it stands; what we say of it keeps its parts."""
    return text if isinstance(text, Sentence) else say(text)


def usable(packet: Packet) -> bool:
    """Whether an answer brings something to learn from."""
    plain = not (packet.text("error") or packet.text("sits_out") or packet.number("lost"))
    return plain and whole(packet, "rows", 1) is not None and len(packet.arrays) > 0


def pooled_classes(answers: Mapping[int, Packet], classes: int) -> npt.NDArray[np.int64]:
    """Held-out rows of each class, over all clients that scored."""
    total = np.zeros(classes, dtype=np.int64)
    for packet in answers.values():
        counts: npt.NDArray[Any] | None = packet.arrays.get("test_classes")
        scored = whole(packet, "scored", 1)
        if counts is not None and scored is not None and counts_fit(counts, classes, scored):
            total += counts.astype(np.int64)
    return total
