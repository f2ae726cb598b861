"""What the server does with answers, whoever carries them: the model as it stands, and one round after the other.

The server holds the model, counts who answered, and applies a round only if enough did. It sees weights, trees, counts
and sums; in a simulation also the pooled held-out rows it is asked to score on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.learning.flower._boosting import BoostedModel, Trees, groups_of, joined
from velado.learning.flower._logistic import LogisticModel, first_weights, scaled_probabilities
from velado.learning.flower._robust import centre, counted_rows, far_out, shortened
from velado.learning.flower._summed import PooledScores, Summed
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


def round_fault(packet: Packet, greeted: ClientRecord | None, classes: int, private: bool = False) -> str:
    """Why an answer to a round does not count, or nothing. One that says itself what is wrong is left as it is.

    In a *private* run a client says nothing of itself.
    """
    if packet.text("error") or packet.text("sits_out") or private:
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

    @property
    def needed(self) -> int:
        """How many answers a round needs."""
        ...

    @property
    def finished(self) -> bool:
        """Whether further rounds are of no use."""
        ...

    @property
    def uncounted(self) -> bool:
        """Whether those that were enlisted must count their rows before the round."""
        ...

    def take_census(self, answers: Mapping[int, Packet]) -> str:
        """Why the counts are no census yet, or nothing; InputError where they break a threshold."""
        ...

    def enlist(
        self, able: Sequence[int], keys: Mapping[int, bytes], signatures: Mapping[int, bytes] | None = None
    ) -> list[int]:
        """Whom of those that are there may be asked."""
        ...

    def fault(self, answers: Mapping[int, Packet]) -> str:
        """Why answers that fit one by one cannot be taken together, or nothing."""
        ...

    def scored(self, answers: Mapping[int, Packet], last: bool) -> PooledScores | None:
        """What the clients counted on their own held-out rows, all together; None where nobody did."""
        ...

    def notes(self) -> list[str]:
        """What a reader of the fit must know of single clients."""
        ...

    @property
    def keys(self) -> str:
        """The digest of the keys that masks were made with; empty where nothing was masked."""
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


class _Visible:
    """What the server knows of clients whose answers it sees one by one, and how far it lets one of them go."""

    finished = False
    uncounted = False
    keys = ""

    def __init__(self, agreed: Agreed) -> None:
        self._agreed = agreed
        self._rounds_taken = 0
        self._capped: dict[int, int] = {}
        self._far: Counter[int] = Counter()

    def take_census(self, answers: Mapping[int, Packet]) -> str:
        """Nothing: what is seen client by client is not counted."""
        return ""

    @property
    def needed(self) -> int:
        """As many as were agreed."""
        return self._agreed.federation.needed

    def enlist(
        self, able: Sequence[int], keys: Mapping[int, bytes], signatures: Mapping[int, bytes] | None = None
    ) -> list[int]:
        """All who are there."""
        return list(able)

    def fault(self, answers: Mapping[int, Packet]) -> str:
        """Nothing: what fits one by one can be taken together."""
        return ""

    def scored(self, answers: Mapping[int, Packet], last: bool) -> PooledScores | None:
        """Counts and losses added up, and the clients' AUC as a mean weighted by rows."""
        scored = [packet for packet in answers.values() if packet.number("scored") > 0]
        if not scored:
            return None
        areas = [(one.number("auc"), one.number("scored")) for one in scored if "auc" in one.facts]
        weight = sum(rows for _, rows in areas)
        return PooledScores(
            sum(one.number("scored") for one in scored),
            sum(one.number("right") for one in scored),
            sum(one.number("loss_sum") for one in scored),
            sum(area * rows for area, rows in areas) / weight if weight else None,
            pooled_classes(answers, self._agreed.classes),
        )

    def notes(self) -> list[str]:
        """Clients whose rows were capped, and clients whose updates lay far from the others' in half of the rounds."""
        said: list[str] = []
        for one, counted in sorted(self._capped.items()):
            said.append(
                say(
                    "client {number} says that it has more rows than are believed; it counted with {rows} of them.",
                    number=one,
                    rows=counted,
                )
            )
        for one, rounds in sorted(self._far.items()):
            if 2 * rounds >= self._rounds_taken >= 2:
                said.append(
                    say(
                        "client {number} lay far from the others in {rounds} of {all} rounds: its rows are unlike "
                        "theirs, or it does not train on them.",
                        number=one,
                        rounds=rounds,
                        all=self._rounds_taken,
                    )
                )
        return said

    def _counted(self, answers: Mapping[int, Packet]) -> npt.NDArray[np.float64]:
        """With how many rows each client counts, in the order of their numbers."""
        said = [int(answers[one].number("rows")) for one in sorted(answers)]
        counted = counted_rows(said, self._agreed.federation)
        for one, rows, limit in zip(sorted(answers), said, counted.tolist(), strict=True):
            if rows > limit:
                self._capped[one] = int(limit)
        return counted

    def _note_far(self, numbers: Sequence[int], updates: npt.NDArray[np.float64]) -> None:
        self._rounds_taken += 1
        self._far.update(one for one, far in zip(numbers, far_out(updates), strict=True) if far)


class Averaged(_Visible):
    """The weights, and the middle of those that came back: FedAvg's mean weighted by rows, or one that outliers move less."""

    def __init__(self, agreed: Agreed, tested: FloatMatrix | None) -> None:
        super().__init__(agreed)
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
        """The weights move by the middle of the clients' updates, none of which is longer than agreed."""
        numbers, federation = sorted(answers), self._agreed.federation
        sent = [np.asarray(answers[one].arrays["weights"], dtype=np.float64).ravel() for one in numbers]
        updates = np.stack(sent) - self._weights.ravel()
        rows = self._counted(answers)
        self._note_far(numbers, updates)
        moved = centre(shortened(updates, federation.clip), rows, federation)
        self._weights = self._weights + moved.reshape(self._weights.shape)

    def scores(self) -> Probabilities | None:
        """softmax(x w + b) of the pooled held-out rows."""
        return None if self._tested is None else scaled_probabilities(self._weights, self._tested)

    def learned(self) -> FederatedModel:
        """The weights with their scaling."""
        return LogisticModel(self._weights, self._agreed.scaling)


class Bagged(_Visible):
    """Bagging: all trees so far; each client is sent those that are new to it. Scoring keeps its margins too."""

    def __init__(self, agreed: Agreed, tested: FloatMatrix | None) -> None:
        super().__init__(agreed)
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
        numbers, federation = sorted(answers), self._agreed.federation
        grown = [Trees.unpacked(answers[one].arrays, self._agreed.features, self._groups) for one in numbers]
        rows = self._counted(answers)
        steps = np.array([[float(np.abs(trees.value).max(initial=0.0))] for trees in grown])
        self._note_far(numbers, steps)
        if federation.clip > 0:
            most = np.float32(federation.clip * np.median(steps))
            grown = [replace(trees, value=np.clip(trees.value, -most, most)) for trees in grown]
        mean = federation.bagging == "mean"
        weights = rows / rows.sum() if mean else np.ones(rows.size)
        fresh = joined([trees.weighing(float(one)) for trees, one in zip(grown, weights, strict=True)])
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
    if agreed.hidden:
        return Summed(agreed, tested)
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
        if one in asked and usable(packet, federation.noise is not None) and holder.fits(packet)
    }
    whys = dict(absent or {})
    for one in asked:
        if one not in good:
            packet = answers.get(one, Packet({"error": say("no answer")}))
            whys[one] = packet.text("error") or packet.text("sits_out") or say("its model does not fit")
    reasons = [say("client {number} ({why})", number=one, why=_sentence(whys[one])) for one in sorted(whys)]
    needed = max(holder.needed, federation.needed)
    applied, gap = len(good) >= needed, None
    fault = holder.fault(good) if applied else ""
    if fault:
        applied = False
        gap = say("The round was not applied: {fault}. Which client it was cannot be seen.", fault=fault)
        log.warning("Round %d: %s", number, gap)
    elif applied:
        holder.apply(good)
        if reasons:
            gap = say("Without {missing}.", missing=join(reasons, "; "))
            log.info("Round %d: applied. %s", number, gap)
    else:
        gap = say(
            "{replied} of {clients} replied, {needed} are needed; the round was not applied. Missing: {missing}.",
            replied=len(good),
            clients=federation.clients,
            needed=needed,
            missing=join(reasons, "; ") or say("clients that sit out"),
        )
        log.warning("Round %d: %s", number, gap)
    missing = tuple(say("client {number}", number=one) for one in sorted(whys))
    return RoundVerdict(good, missing, applied, gap)


def _sentence(text: str) -> Sentence:
    """What a client said of itself is looked up as it stands; what we say of it keeps its parts."""
    return text if isinstance(text, Sentence) else say(text)


def usable(packet: Packet, private: bool = False) -> bool:
    """Whether an answer brings something to learn from; in a *private* run it does not say how many rows it is of."""
    plain = not (packet.text("error") or packet.text("sits_out") or packet.number("lost"))
    return plain and (private or whole(packet, "rows", 1) is not None) and len(packet.arrays) > 0


def pooled_classes(answers: Mapping[int, Packet], classes: int) -> npt.NDArray[np.int64]:
    """Held-out rows of each class, over all clients that scored."""
    total = np.zeros(classes, dtype=np.int64)
    for packet in answers.values():
        counts: npt.NDArray[Any] | None = packet.arrays.get("test_classes")
        scored = whole(packet, "scored", 1)
        if counts is not None and scored is not None and counts_fit(counts, classes, scored):
            total += counts.astype(np.int64)
    return total
