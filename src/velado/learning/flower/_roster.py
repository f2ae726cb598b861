"""Roster: which Flower node is which client, who is there, and who sits out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from flwr.app import Message
from flwr.serverapp import Grid

from velado.learning.flower._masking import KEY_BYTES
from velado.learning.flower._packets import read_reply, to_content
from velado.learning.flower._parties import claim, signed_by
from velado.learning.flower._server import greeting_fault, log, share, whole
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import ClientRecord, Packet, client_record
from velado.text import join, say

POLL = 0.5
SILENT = say("greeted, no answer yet")


@dataclass(repr=False)
class Roster:
    """Clients by their number, from 1. A node is greeted before it is asked anything; its answer names it.

    A greeting has a patience of its own, *hello* seconds, because its answer takes starting the app and anonymizing the
    table. Greetings are not waited for one by one: a node that hangs holds up the first round at most, and is greeted
    on. So is, every *again* seconds, one that was refused or sits out: a repaired client comes back under the same node.

    *most_rows* is the agreed limit where sums are secret, so that a client's weight can be limited here alone.

    A machine that was started again may be another node with the same number: it takes the place of the old one when
    that is gone. While both are there the second is turned away.

    >>> Roster(Federation(patience=200.0)).hello  # seconds
    2000.0
    """

    federation: Federation
    hello: float = 0.0
    again: float = 30.0
    nodes: dict[int, int] = field(default_factory=dict)
    records: dict[int, ClientRecord] = field(default_factory=dict)
    sitting_out: dict[int, str] = field(default_factory=dict)
    doubles: dict[int, int] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)
    signatures: dict[int, bytes] = field(default_factory=dict)
    digest: str = ""
    signers: tuple[str, ...] = ()
    most_rows: int | None = None
    _online: set[int] = field(default_factory=set)
    _changed: set[int] = field(default_factory=set)
    _warned: dict[int, str] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)
    _pending: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        patience = self.federation.patience
        self.hello = self.hello or max(600.0, min(10 * patience, 3600.0), patience)

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
        start, pause, first = time.monotonic(), 0.01, not self.nodes
        while True:
            self._online = set(grid.get_node_ids())
            self._greet(grid, greeting)
            self._hear(grid)
            here = [one for one in self.able_at_most() if self.nodes.get(one) in self._online]
            able = len(self.able_at_most())
            wanted = able if first else min(self.federation.needed, able)
            late = time.monotonic() - start >= self.federation.patience
            if len(here) >= wanted or (late and not self._preparing()):
                return here
            time.sleep(pause)
            pause = min(POLL, 2 * pause)

    def absent(self) -> dict[int, str]:
        """Clients that could take part and were not there when last looked for, each with what is known of why."""
        gone = [one for one in self.able_at_most() if self.nodes.get(one) not in self._online]
        silent = len(self._online - set(self.nodes.values()) - set(self.doubles))
        if not silent:
            return dict.fromkeys(gone, say("not there"))
        # A node that has not answered has not said whose it is either.
        return dict.fromkeys(
            gone, SILENT if silent >= len(gone) else say("not there, or greeted, no answer yet")
        )

    def remarks(self) -> str:
        """What the records of a round say beside who is missing: machines with a number that another has."""
        twice = sorted({number for node, number in self.doubles.items() if node in self._online})
        return join(_double(number) for number in twice)

    def note(self, client: int, packet: Packet) -> None:
        """A client that says it sits out is not asked again until it says otherwise."""
        if packet.text("sits_out"):
            self.sitting_out[client] = packet.text("sits_out")

    def doubt(self, client: int) -> None:
        """The client's rows are others than it said: it is greeted again before what it says counts."""
        self._changed.add(self.nodes[client])

    def client_records(self) -> tuple[ClientRecord, ...]:
        """One record for every client, also those that never came."""
        out, absent = [], self.absent()
        for one in range(1, self.federation.clients + 1):
            why = absent.get(one, say("not there"))
            gap = say("client {number} never answered ({why}).", number=one, why=why)
            record = self.records.get(one) or client_record(one, gap=gap)
            if one in self.doubles.values():
                record = replace(record, gap=both_gaps(record.gap, _double(one)))
            out.append(record)
        return tuple(out)

    def _preparing(self) -> bool:
        """Whether a node that is there has its first greeting, and time left to answer it."""
        now = time.monotonic()
        return any(now - self._since[node] < self.hello for node in set(self._pending.values()))

    def _due(self, node: int, now: float) -> bool:
        if node not in self._last or node in self._changed:
            return node not in self._pending.values()
        client = self.client_of(node)
        if client is not None and client not in self.sitting_out:
            return False
        silent = node in self._pending.values()
        # A greeting may have been lost with the machine it reached; another one does no harm.
        every = min(self.hello, max(self.federation.patience, 60.0)) if silent else self.again
        return now - self._last[node] >= every

    def _greet(self, grid: Grid, greeting: Packet) -> None:
        for node in set(self._last) - self._online:
            # It may come back under the same name as another process, with other rows: it is greeted anew.
            del self._last[node], self._since[node]
        self._pending = {name: node for name, node in self._pending.items() if node in self._online}
        now = time.monotonic()
        for node in sorted(self._online):
            if not self._due(node, now):
                continue
            self._last[node] = now
            self._since.setdefault(node, now)
            message = Message(to_content(greeting), node, "query", group_id="0", ttl=self.hello)
            # One by one: a carrier leaves out of its list what it could not send.
            self._pending |= {name: node for name in grid.push_messages([message]) if name}

    def _hear(self, grid: Grid) -> None:
        if not self._pending:
            return
        for message in grid.pull_messages(list(self._pending)):
            node = self._pending.pop(message.metadata.reply_to_message_id, None)
            if node is None:
                continue
            packet = read_reply(message)
            if message.has_error():
                self._warn(node, f"A node did not answer its greeting: {packet.text('error')}.")
                continue
            self._pending = {name: other for name, other in self._pending.items() if other != node}
            self._introduce(node, packet)

    def _introduce(self, node: int, packet: Packet) -> None:
        number = whole(packet, "client", 1, self.federation.clients)
        if number is None:
            why = packet.text("error") or "it has no number of a client."
            self._warn(node, f"A node was turned away: {why}")
            return
        private = self.federation.noise is not None
        error = (
            packet.text("error")
            or ("" if private else greeting_fault(packet))
            or self._too_many(packet)
            or self._unsigned(number, packet)
        )
        able = not error and not packet.text("sits_out")
        other = self.nodes.get(number, node)
        if other != node and other in self._online and not (able and number in self.sitting_out):
            self.doubles[node] = number
            self._warn(node, _double(number))
            return
        self.doubles.pop(node, None)
        self._changed.discard(node)
        self.nodes = {one: known for one, known in self.nodes.items() if known != node} | {number: node}
        self.sitting_out.pop(number, None)
        if error:
            # Other terms, or a table that cannot be read: it is counted and named, and never asked.
            why = say("client {number} was refused: {why}", number=number, why=error)
            self.sitting_out[number] = why
            self.records[number] = client_record(number, gap=why)
            self._warn(node, self.sitting_out[number])
            return
        self.note(number, packet)
        self.records[number] = _record(number, packet)
        if key := public_key_in(packet):
            self.keys[number], self.signatures[number] = key, signature_in(packet)
        self._warned.pop(node, None)
        if able:
            log.info("Client %d is there.", number)

    def _too_many(self, packet: Packet) -> str:
        """Where nothing of a client can be limited later: that it announces more rows than were agreed on."""
        if self.most_rows is None or packet.number("rows") <= self.most_rows:
            return ""
        return say("it announces more rows than 'most_rows' of the agreement allows")

    def _unsigned(self, number: int, packet: Packet) -> str:
        """Why a node is not the client it says it is, or nothing; one that cannot take part has nothing to sign."""
        if not self.signers or packet.text("sits_out"):
            return ""
        said = claim(self.digest, number, public_key_in(packet) or b"")
        if signed_by(self.signers[number - 1], signature_in(packet), said):
            return ""
        return say("its greeting is not signed by the hospital that the agreement names")

    def _warn(self, node: int, text: str) -> None:
        if self._warned.get(node) != text:
            log.warning("%s", text)
        self._warned[node] = text


def public_key_in(packet: Packet) -> bytes | None:
    """The public key a client says it has, where it is one.

    >>> public_key_in(Packet({"mask_key": "00" * 32})) == bytes(32), public_key_in(Packet({"mask_key": "0"}))
    (True, None)
    """
    try:
        key = bytes.fromhex(packet.text("mask_key"))
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None


def signature_in(packet: Packet) -> bytes:
    """The signature a greeting has; empty where it has none.

    >>> signature_in(Packet({"signature": "6f6b"})), signature_in(Packet())
    (b'ok', b'')
    """
    try:
        return bytes.fromhex(packet.text("signature"))
    except ValueError:
        return b""


def _double(number: int) -> str:
    return say("A second machine says that it is client {number}. It was turned away.", number=number)


def _record(number: int, packet: Packet) -> ClientRecord:
    return client_record(
        number,
        rows=whole(packet, "rows", 0) or 0,
        test_rows=whole(packet, "test_rows", 0) or 0,
        classes=whole(packet, "classes", 0) or 0,
        ncp=share(packet, "ncp"),
        linkage=share(packet, "linkage"),
        promised=packet.text("promised"),
        gap=packet.text("gap") or None,
    )


def both_gaps(gap: str | None, more: str) -> str | None:
    """Two sentences about what is missing, or the one there is."""
    return join(part for part in (gap, more) if part) or None
