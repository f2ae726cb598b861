"""Roster: which Flower node is which client, who is there, and who sits out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from flwr.app import Message
from flwr.serverapp import Grid

from velado.federated.federation import Federation
from velado.federated.packet import Packet
from velado.federated.records import ClientRecord
from velado.federated.server import log
from velado.federated.wire import from_message, to_content

POLL = 0.5


@dataclass(repr=False)
class Roster:
    """Clients by their number, from 1. A node is greeted once, before it is asked anything; its answer names it.

    A machine that was started again is another node with the same number and takes the place of the old one.
    """

    federation: Federation
    nodes: dict[int, int] = field(default_factory=dict)
    records: dict[int, ClientRecord] = field(default_factory=dict)
    sitting_out: dict[int, str] = field(default_factory=dict)
    _greeted: set[int] = field(default_factory=set)
    _tries: dict[int, int] = field(default_factory=dict)

    def node_of(self, client: int) -> int:
        """The node of a client."""
        return self.nodes[client]

    def client_of(self, node: int) -> int | None:
        """The client of a node, None for one that has not said who it is."""
        return next((client for client, known in self.nodes.items() if known == node), None)

    def able_at_most(self) -> list[int]:
        """Clients that may still take part: all but those known to sit out."""
        return [one for one in range(1, self.federation.clients + 1) if one not in self.sitting_out]

    def present(self, grid: Grid, greeting: Packet) -> list[int]:
        """The clients that are there and can take part, once enough are, or when patience has ended.

        Before the first round all are waited for: whoever comes late would otherwise be missed for no reason.
        """
        end = time.monotonic() + self.federation.patience
        first = not self._greeted
        while True:
            online = set(grid.get_node_ids())
            # A node that hangs must not hold up every round: it is greeted twice, then left alone.
            strangers = [node for node in online - self._greeted if self._tries.get(node, 0) < 2]
            self._greet(grid, sorted(strangers), greeting, end)
            here = [one for one in self.able_at_most() if self.nodes.get(one) in online]
            wanted = (
                len(self.able_at_most()) if first else min(self.federation.needed, len(self.able_at_most()))
            )
            if len(here) >= wanted or time.monotonic() >= end:
                return here
            time.sleep(POLL)

    def note(self, client: int, packet: Packet) -> None:
        """What an answer says of its client is kept."""
        if packet.text("sits_out"):
            self.sitting_out[client] = packet.text("sits_out")
        if "test_rows" in packet.facts:
            self.records[client] = ClientRecord(
                f"client {client}",
                int(packet.number("rows")),
                int(packet.number("test_rows")),
                int(packet.number("classes")),
                packet.number("ncp") if "ncp" in packet.facts else None,
                packet.number("linkage") if "linkage" in packet.facts else None,
                packet.text("promised"),
                packet.text("gap") or None,
            )

    def client_records(self) -> tuple[ClientRecord, ...]:
        """One record for every client, also those that never came."""
        out = []
        for one in range(1, self.federation.clients + 1):
            absent = ClientRecord(f"client {one}", 0, 0, gap=f"client {one} never answered.")
            record = self.records.get(one, absent)
            out.append(record)
        return tuple(out)

    def _greet(self, grid: Grid, nodes: list[int], greeting: Packet, end: float) -> None:
        if not nodes:
            return
        for node in nodes:
            self._tries[node] = self._tries.get(node, 0) + 1
        left = max(end - time.monotonic(), 0.1)
        content = [Message(to_content(greeting), node, "query", group_id="0", ttl=left) for node in nodes]
        for message in grid.send_and_receive(content, timeout=left):
            node, packet = message.metadata.src_node_id, from_message(message)
            self._greeted.add(node)
            number = int(packet.number("client"))
            if not 1 <= number <= self.federation.clients:
                log.warning(
                    "A node was turned away: %s", packet.text("error") or "it has no number of a client."
                )
                continue
            self.nodes[number] = node
            self.sitting_out.pop(number, None)
            if packet.text("error"):
                # Other terms, or a table that cannot be read: it is counted and named, and never asked.
                self.sitting_out[number] = f"client {number} was refused: {packet.text('error')}"
                self.records[number] = ClientRecord(f"client {number}", 0, 0, gap=self.sitting_out[number])
                log.warning("%s", self.sitting_out[number])
                continue
            self.note(number, packet)
            log.info("Client %d is there.", number)
