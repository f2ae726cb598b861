"""The server's side of secure sums: it adds masked vectors, and what it learns is the sum over all members.

First it has the rows counted, and goes on only where the counts keep the thresholds (`_census`). It sees who answered, and each answer as uniform words. Of one client's figures it can check nothing but their number: clipping
and bounds are the client's own to keep. Of the sum it checks that rows could have given it (`PooledFigures.fault`); with noise not
even that, since noise may carry a sum beyond what rows give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.learning.flower._census import census_size, refuse_small_figures
from velado.learning.flower._logistic import LogisticModel, Weights, first_weights, scaled_probabilities
from velado.learning.flower._masking import Figures, keys_digest, summed
from velado.learning.flower._pooled_newton import (
    PooledFigures,
    PooledNewton,
    figure_count,
    real,
    score_count,
    summed_area,
)
from velado.learning.flower._private_steps import PrivateWalk, plan_for
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import FederatedModel, FloatMatrix, Packet, Probabilities
from velado.text import say


@dataclass(frozen=True)
class PooledScores:
    """What the clients' held-out rows say of a model, all together; the AUC is a mean over clients, where one could be told."""

    rows: float
    right: float
    loss: float | None
    auc: float | None
    classes: npt.NDArray[np.int64]


class Summed:
    """Secure sums: the members, the point that is asked about, and the model."""

    def __init__(self, agreed: Agreed, tested: FloatMatrix | None) -> None:
        self._agreed = agreed
        start = first_weights(agreed.features, agreed.classes)
        self._private = agreed.federation.noise is not None
        self._newton = PooledNewton(agreed, start)
        self._walk = PrivateWalk(agreed, start)
        self._tested = None if tested is None else agreed.scaling(tested)
        self._scoring = tested is None and not self._private
        self.members: tuple[int, ...] = ()
        self._keys: dict[int, bytes] = {}
        self._signatures: Mapping[int, bytes] = {}
        self._announced: dict[int, int] = {}
        self._counted = ""

    @property
    def needed(self) -> int:
        """All members must answer: two sums over different clients tell one client's own."""
        return len(self.members)

    @property
    def finished(self) -> bool:
        """Whether more rounds would change nothing, or were not paid for."""
        return self._walk.finished if self._private else self._newton.finished

    @property
    def keys(self) -> str:
        """What clients compare to be sure that nobody put keys of its own in between."""
        return keys_digest(self.members, [self._keys[one] for one in self.members]) if self._keys else ""

    def enlist(
        self, able: Sequence[int], keys: Mapping[int, bytes], signatures: Mapping[int, bytes] | None = None
    ) -> list[int]:
        """Whom to ask: the members, fixed as soon as enough clients are there, with the keys they have now, and who signed them."""
        self._signatures = signatures or {}
        there = [one for one in able if one in keys]
        if not self.members and len(there) >= max(2, self._agreed.federation.needed):
            self.members = tuple(there)
        self._keys = {one: keys[one] for one in self.members if one in keys}
        return [one for one in self.members if one in there]

    def packet_for(self, client: int, everything: bool = False) -> Packet:
        """The point, the members and their keys; every client gets the same."""
        keys = np.frombuffer(b"".join(self._keys[one] for one in self.members), dtype=np.uint8)
        weights = self._newton.weights
        if self._private:
            weights = self._walk.weights if self._walk.finished else self._walk.point
        arrays: dict[str, npt.NDArray[Any]] = {
            "weights": weights,
            "members": np.array(self.members, dtype=np.int64),
            "keys": keys.reshape(len(self.members), -1),
        }
        if self._agreed.signers:
            signed = b"".join(self._signatures.get(one, b"") for one in self.members)
            arrays["signatures"] = np.frombuffer(signed, dtype=np.uint8).reshape(len(self.members), -1)
        return Packet({"step": self._walk.step}, arrays)

    def acknowledged(self, client: int, packet: Packet) -> None:
        """Nothing: points replace one another."""

    @property
    def uncounted(self) -> bool:
        """Whether the members must be counted before any other sum: exact ones keep thresholds, and who was started again has counted nothing."""
        return not self._private and bool(self.members) and self._counted != self.keys

    def take_census(self, answers: Mapping[int, Packet]) -> str:
        """The counts of all members keep the thresholds, or InputError says what does not; why they are no census yet, or nothing."""
        size = census_size(self._agreed)
        good = {
            one: packet
            for one, packet in answers.items()
            if one in self.members and _words(packet) == (size,)
        }
        if sorted(good) != list(self.members):
            return say("not all rows were counted")
        counts = _total(good).tolist()
        announced = sum(int(packet.number("rows")) for packet in good.values())
        if counts[0] != announced or not all(0 <= count <= announced for count in counts[:-1]):
            return say("the sums are over other rows than the clients announced")
        refuse_small_figures(counts, self._agreed)
        self._counted = self.keys
        return ""

    def fits(self, packet: Packet) -> bool:
        """As many words as the figures of a round; what they say is hidden."""
        return _words(packet) == (self._training,)

    def fault(self, answers: Mapping[int, Packet]) -> str:
        """Why the sum cannot be one of rows, or nothing."""
        if self._private:
            return ""
        self._announced = {one: int(packet.number("rows")) for one, packet in answers.items()}
        return self._pooled(answers).fault(sum(self._announced.values()), 1.0)

    def apply(self, answers: Mapping[int, Packet]) -> None:
        """The sum is taken, and the model is the next one."""
        if self._private:
            self._walk.take(_total(answers), len(self.members))
        else:
            self._newton.take(self._pooled(answers))

    def scored(self, answers: Mapping[int, Packet], last: bool) -> PooledScores | None:
        """The pooled scores that came with the answers of all members; None where one is missing."""
        offset = 0 if last else self._training - self._score_size
        good = {
            one: packet for one, packet in answers.items() if _words(packet) == (offset + self._score_size,)
        }
        if not self.members or sorted(good) != list(self.members) or (self._private and not last):
            return None
        figures = _total(good)[offset:]
        if self._private:
            counts = np.maximum(figures[1:], 0)
            rows = float(max(counts.sum(), 1))
            return PooledScores(rows, float(np.clip(figures[0], 0, rows)), None, None, counts)
        values = real(figures, self._agreed)
        end = 3 + self._agreed.classes
        counts = np.rint(values[3:end]).astype(np.int64)
        sound = 0 <= values[1] <= values[0] and values[2] >= 0 and counts.sum() == round(values[0])
        if not sound or (counts < 0).any():
            return None
        area = summed_area(values[3:end], values[end:]) if self._agreed.classes == 2 else None
        return PooledScores(float(values[0]), float(values[1]), float(values[2]), area, counts)

    def scores(self) -> Probabilities | None:
        """softmax(x w + b) of the pooled held-out rows."""
        return None if self._tested is None else scaled_probabilities(self._weights, self._tested)

    def learned(self) -> FederatedModel:
        """The weights with their scaling."""
        return LogisticModel(self._weights, self._agreed.scaling)

    def notes(self) -> list[str]:
        """Clients that announced many more rows than the others: of single clients nothing else is known."""
        cap = self._agreed.federation.row_cap
        middle = float(np.median(list(self._announced.values()))) if self._announced else 0.0
        return [
            say(
                "client {number} announced {rows} rows, {times} times the median. In a secure sum nobody can limit what it counts: ask it, "
                "agree on a smaller 'most_rows', or take aggregation = \"mean\".",
                number=one,
                rows=rows,
                times=round(rows / middle, 1),
            )
            for one, rows in sorted(self._announced.items())
            if cap > 0 and rows > cap * middle
        ]

    @property
    def _weights(self) -> Weights:
        return self._walk.weights if self._private else self._newton.weights

    @property
    def _score_size(self) -> int:
        return 1 + self._agreed.classes if self._private else score_count(self._agreed)

    @property
    def _training(self) -> int:
        """How many words an answer to a round has."""
        if not self._private:
            return figure_count(self._agreed) + (self._score_size if self._scoring else 0)
        plan = plan_for(self._agreed, max(len(self.members), self._agreed.federation.needed))
        return plan.gram.figures if self._walk.step == 0 else plan.slope.figures

    def _pooled(self, answers: Mapping[int, Packet]) -> PooledFigures:
        return PooledFigures.of(_total(answers)[: figure_count(self._agreed)], self._agreed)


def _words(packet: Packet) -> tuple[int, ...]:
    """The shape of what a client masked; none where it is no words."""
    words = np.asarray(packet.arrays.get("masked", np.zeros(0)))
    return words.shape if words.dtype == np.uint64 else ()


def _total(answers: Mapping[int, Packet]) -> Figures:
    return summed(packet.arrays["masked"] for packet in answers.values())
