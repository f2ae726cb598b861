"""Rounds: Flower's strategy loop with our rules - who is asked, how many must answer, what is recorded.

It builds on Flower's `Strategy` (FedAvg and FedXgbBagging are subclasses of it as well) rather than on FedXgbBagging
itself, whose server sends the whole model to everybody in every round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from velado.federated.packet import Fact, Packet
from velado.federated.records import FederationStopped, RoundRecord
from velado.federated.replies import OTHER_CLIENT, OTHER_ROWS, round_fault
from velado.federated.roster import Roster
from velado.federated.server import Holder, log, pooled_classes, take_round
from velado.federated.terms import Agreed
from velado.federated.wire import read_reply, to_content
from velado.measure.models.quality import curve_area, log_loss
from velado.randomness import seeded

OnRound = Callable[[RoundRecord], None]
_NO_AREA = "No AUC: the held-out rows hold a single class."
_NO_AREA_ANYWHERE = "No AUC: no client that scored holds out rows of two classes."


class Rounds(Strategy):
    """One run at the server. *truth* are the pooled held-out labels in a simulation; without them clients score."""

    def __init__(
        self,
        agreed: Agreed,
        holder: Holder,
        roster: Roster,
        seed: int,
        truth: npt.NDArray[np.int64] | None,
        on_round: OnRound | None = None,
    ) -> None:
        self.agreed, self.holder, self.roster, self.truth = agreed, holder, roster, truth
        self.records: list[RoundRecord] = []
        self.majority: float | None = None
        self._seed, self._on_round = seed, on_round
        self._asked: list[int] = []
        self._absent: dict[int, str] = {}
        self._grid: Grid | None = None
        self._start = 0.0
        self._down = self._up = 0
        self._unmet = 0
        if truth is not None:
            self.majority = float(np.bincount(truth).max() / truth.size)

    def summary(self) -> None:
        """Nothing: the fit says how the run was set up."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """One message for each client that is asked, with what is new to it."""
        self._start, self._grid = time.monotonic(), grid
        self._down = self._up = 0
        federation = self.agreed.federation
        able = self.roster.present(grid, self.greeting())
        self._absent = self.roster.absent()
        if len(self.roster.able_at_most()) < federation.needed:
            self._stop(f"{len(self.roster.able_at_most())} of {federation.clients} clients can take part")
        random = seeded(self._seed, "federated", "asked", str(server_round))
        count = min(federation.asked, len(able))
        self._asked = sorted(int(one) for one in random.permutation(able)[:count])
        return self._messages(self._asked, "train", server_round)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The round is applied or recorded as a gap; clients that lost their state are sent everything first."""
        answers = self._read(replies)
        lost = [one for one, packet in answers.items() if packet.number("lost")]
        if lost and self._grid is not None:
            log.info(
                "Round %d: %d client(s) lost their state and are sent the whole model.",
                server_round,
                len(lost),
            )
            again = self._messages(lost, "train", server_round, everything=True)
            timeout = self.agreed.federation.patience
            answers |= self._read(self._grid.send_and_receive(again, timeout=timeout))
        for one, packet in answers.items():
            if packet.text("error") in (OTHER_ROWS, OTHER_CLIENT):
                self.roster.doubt(one)
            self.roster.note(one, packet)
            if "have" in packet.facts:
                self.holder.acknowledged(one, packet)
        if self.truth is None and self.records:
            self._complete(answers)
        found = take_round(
            self.holder, self.agreed.federation, server_round, self._asked, answers, self._absent
        )
        record = RoundRecord(
            server_round,
            None,
            None,
            None,
            len(self._asked),
            len(found.answered),
            found.applied,
            _both(found.gap, self.roster.remarks()),
            found.missing,
            self._up,
            self._down,
            time.monotonic() - self._start,
        )
        self.records.append(record)
        if self.truth is not None:
            self._score()
        self._unmet = 0 if found.applied else self._unmet + 1
        if self._unmet >= self.agreed.federation.unmet:
            self._stop(f"{self._unmet} rounds in a row were not applied ({found.gap})")
        return None, None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Clients score the model at the beginning of the next round; after the last one they are asked once more."""
        if self.truth is not None or server_round < self.agreed.federation.rounds:
            return []
        return self._messages(self.roster.present(grid, self.greeting()), "evaluate", server_round)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The last round's record is completed."""
        if self.truth is None and server_round == self.agreed.federation.rounds:
            self._complete(self._read(replies))
        return None

    def greeting(self) -> Packet:
        """What a client is asked first: whether its terms are ours."""
        return Packet({"digest": self.agreed.digest})

    def _messages(
        self, clients: list[int], kind: str, number: int, everything: bool = False
    ) -> list[Message]:
        out = []
        for one in clients:
            packet = self.holder.packet_for(one, everything)
            facts: dict[str, Fact] = {
                "digest": self.agreed.digest,
                "round": number,
                "evaluate": int(self.truth is None),
            }
            packet = replace(packet, facts={**packet.facts, **facts})
            self._down += packet.size
            patience = self.agreed.federation.patience
            out.append(
                Message(
                    to_content(packet), self.roster.node_of(one), kind, group_id=str(number), ttl=patience
                )
            )
        return out

    def _read(self, replies: Iterable[Message]) -> dict[int, Packet]:
        """Every reply by its client. One that cannot be read or true counts as missing, and only for that client."""
        out = {}
        for message in replies:
            packet = read_reply(message)
            self._up += packet.size
            client = self.roster.client_of(message.metadata.src_node_id)
            if client is None:
                continue
            fault = round_fault(packet, self.roster.records.get(client), self.agreed.classes)
            if packet.number("client", client) != client:
                fault = OTHER_CLIENT
            out[client] = Packet({"error": fault}) if fault else packet
        return out

    def _score(self) -> None:
        """The newest record gets the pooled scores."""
        chances, truth = self.holder.scores(), self.truth
        assert chances is not None and truth is not None
        right = float((np.argmax(chances, axis=1) == truth).mean())
        area, loss = curve_area(truth, chances), log_loss(truth, chances)
        gap = self.records[-1].gap if area is not None else _both(self.records[-1].gap, _NO_AREA)
        self._finish(accuracy=right, auc=area, loss=loss, test_rows=int(truth.size), gap=gap)

    def _complete(self, answers: dict[int, Packet]) -> None:
        """The newest record gets what the clients counted on their own held-out rows."""
        scored = [packet for packet in answers.values() if packet.number("scored") > 0]
        total = sum(packet.number("scored") for packet in scored)
        if not total:
            self._finish(gap=_both(self.records[-1].gap, "No client scored the model after this round."))
            return
        if self.majority is None:
            counts = pooled_classes(answers, self.agreed.classes)
            self.majority = float(counts.max() / counts.sum()) if counts.sum() else None
        areas = [(p.number("auc"), p.number("scored")) for p in scored if "auc" in p.facts]
        weight = sum(rows for _, rows in areas)
        self._finish(
            accuracy=sum(packet.number("right") for packet in scored) / total,
            loss=sum(packet.number("loss_sum") for packet in scored) / total,
            auc=sum(area * rows for area, rows in areas) / weight if weight else None,
            test_rows=int(total),
            gap=self.records[-1].gap if weight else _both(self.records[-1].gap, _NO_AREA_ANYWHERE),
        )

    def _finish(self, **values: Any) -> None:
        self.records[-1] = replace(self.records[-1], **values)
        if self._on_round is not None:
            self._on_round(self.records[-1])

    def _stop(self, what: str) -> None:
        federation = self.agreed.federation
        raise FederationStopped(
            f"The federation stopped in round {len(self.records)}: {what}.",
            f"A round needs {federation.needed} of {federation.clients} clients.",
            "Bring the clients back, lower 'participation', or give clients more rows.",
        )


def _both(gap: str | None, more: str) -> str | None:
    """Two sentences about what is missing, or the one there is."""
    return " ".join(part for part in (gap, more) if part) or None
