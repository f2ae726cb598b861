"""The server's Flower app: one and the same in a simulation and on a SuperLink.

On a SuperLink, `app` takes the agreement and the output folder from the run's configuration, has the clients score, and
writes fit.json, rounds.csv, model.npz and report.md. In a simulation the held-out rows are pooled and scored here.

The rounds are Flower's strategy loop with our rules: who is asked, how many must answer, what is recorded. They build on
Flower's `Strategy` (FedAvg and FedXgbBagging are subclasses of it as well) rather than on FedXgbBagging itself, whose
server sends the whole model to everybody in every round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Strategy

from velado.errors import SchemaError
from velado.learning.flower._local_rows import IntVector
from velado.learning.flower._packets import read_reply, to_content
from velado.learning.flower._rounds_kept import private_folder
from velado.learning.flower._server import (
    OTHER_CLIENT,
    OTHER_ROWS,
    Holder,
    greeting_fault,
    holder_of,
    log,
    pooled_classes,
    round_fault,
    share,
    take_round,
    whole,
)
from velado.learning.flower._terms import Agreed
from velado.learning.flower.agreement import Agreement, read_agreement
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import (
    ClientRecord,
    Fact,
    FederatedFit,
    FederationStopped,
    FloatMatrix,
    Packet,
    RoundRecord,
    client_record,
)
from velado.learning.flower.outcome import fit_files, make_fit, write_files
from velado.measures.models.quality import curve_area, log_loss
from velado.randomness import seeded
from velado.text import join, say

# Roster: which Flower node is which client, who is there, and who sits out.

POLL = 0.5
SILENT = say("greeted, no answer yet")


@dataclass(repr=False)
class Roster:
    """Clients by their number, from 1. A node is greeted before it is asked anything; its answer names it.

    A greeting has a patience of its own, *hello* seconds, because its answer takes starting the app and anonymizing the
    table. Greetings are not waited for one by one: a node that hangs holds up the first round at most, and is greeted
    on. So is, every *again* seconds, one that was refused or sits out: a repaired client comes back under the same node.

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
                record = replace(record, gap=_both(record.gap, _double(one)))
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
        error = packet.text("error") or greeting_fault(packet)
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
        self._warned.pop(node, None)
        if able:
            log.info("Client %d is there.", number)

    def _warn(self, node: int, text: str) -> None:
        if self._warned.get(node) != text:
            log.warning("%s", text)
        self._warned[node] = text


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


OnRound = Callable[[RoundRecord], None]
_NO_AREA = say("No AUC: the held-out rows hold a single class.")
_NO_AREA_ANYWHERE = say("No AUC: no client that scored holds out rows of two classes.")


class Rounds(Strategy):
    """One run at the server. *truth* are the pooled held-out labels in a simulation; without them clients score.

    >>> from velado.learning.flower.simulation import small_ready
    >>> agreed = small_ready().terms.agreed
    >>> Rounds(agreed, holder_of(agreed, None), Roster(agreed.federation), 0, np.array([0, 1, 1, 1])).majority
    0.75
    """

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
            able_at_most = len(self.roster.able_at_most())
            self._stop(
                say(
                    "{able} of {clients} clients can take part",
                    able=able_at_most,
                    clients=federation.clients,
                )
            )
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
            number=server_round,
            asked=len(self._asked),
            replied=len(found.answered),
            applied=found.applied,
            gap=_both(found.gap, self.roster.remarks()),
            missing=found.missing,
            bytes_up=self._up,
            bytes_down=self._down,
            seconds=time.monotonic() - self._start,
        )
        self.records.append(record)
        if self.truth is not None:
            self._score()
        self._unmet = 0 if found.applied else self._unmet + 1
        if self._unmet >= self.agreed.federation.unmet:
            self._stop(
                say("{rounds} rounds in a row were not applied ({gap})", rounds=self._unmet, gap=found.gap)
            )
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
            self._finish(gap=_both(self.records[-1].gap, say("No client scored the model after this round.")))
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
            say("The federation stopped in round {records}: {what}.", records=len(self.records), what=what),
            say(
                "A round needs {needed} of {clients} clients.",
                needed=federation.needed,
                clients=federation.clients,
            ),
            "Bring the clients back, lower 'participation', or give clients more rows.",
        )


def _both(gap: str | None, more: str) -> str | None:
    """Two sentences about what is missing, or the one there is."""
    return join(part for part in (gap, more) if part) or None


@dataclass(frozen=True, repr=False)
class Ended:
    """A run that has ended: its rounds, and the error that stopped it early, if one did.

    >>> Ended(rounds=None, stopped=None).stopped is None  # all rounds were run
    True
    """

    rounds: Rounds
    stopped: FederationStopped | None


def serve(
    grid: Grid,
    agreed: Agreed,
    seed: int,
    tested: tuple[FloatMatrix, IntVector] | None = None,
    on_round: OnRound | None = None,
) -> Ended:
    """All rounds are run over *grid*. *tested* are pooled held-out rows to score on; without them clients score.

    >>> from velado.learning.flower._client import TrainingClient
    >>> from velado.learning.flower.client_app import LoopGrid, make_client_app, number_of
    >>> from velado.learning.flower.simulation import small_ready
    >>> ready = small_ready()
    >>> agreed, parts = ready.terms.agreed, ready.parts
    >>> app = make_client_app(lambda context: TrainingClient(agreed, parts[number_of(context) - 1]))
    >>> serve(LoopGrid(app, 2), agreed, seed=0).rounds.records[0].replied
    2
    """
    federation = agreed.federation
    holder = holder_of(agreed, None if tested is None else tested[0])
    truth = None if tested is None else tested[1]
    rounds = Rounds(agreed, holder, Roster(federation), seed, truth, on_round)
    try:
        rounds.start(grid, ArrayRecord(), num_rounds=federation.rounds, timeout=federation.patience)
    except FederationStopped as stopped:
        return Ended(rounds, stopped)
    return Ended(rounds, None)


app = ServerApp()


@app.main()
def _main(grid: Grid, context: Context) -> None:
    """A run over several machines, from the agreement folder to the output folder."""
    folders = {}
    for key in ("agreement", "output"):
        named = context.run_config.get(key)
        if not isinstance(named, str) or not named:
            raise SchemaError(
                say("The run's configuration has no '{key}'.", key=key),
                "The server app does not know its folders.",
                'Start it with flwr run APP SUPERLINK --run-config \'agreement="..." output="..."\'.',
            )
        folders[key] = Path(named)
    agreement = read_agreement(folders["agreement"])
    ended = serve(grid, agreement.terms.agreed, agreement.locally.seed, on_round=_teller(folders["output"]))
    fit = _deployed_fit(agreement, ended)
    write_files(folders["output"], fit_files(fit))
    if ended.stopped is not None:
        raise ended.stopped


def _deployed_fit(agreement: Agreement, ended: Ended) -> FederatedFit:
    """The fit of a run over several machines: clients scored, and how rows are split is nobody's setting."""
    fit = make_fit(
        agreement.terms,
        agreement.locally,
        ended.rounds.records,
        ended.rounds.roster.client_records(),
        majority=ended.rounds.majority,
        learned=ended.rounds.holder.learned(),
        engine="flower, several machines",
        evaluation="clients",
        stopped=ended.stopped,
    )
    return replace(fit, split="as it is", alpha=None)


def _teller(folder: Path) -> OnRound:
    """Every round is appended to progress.jsonl, so that a run that is cut off leaves its history."""
    private_folder(folder)

    def tell(record: RoundRecord) -> None:
        with (folder / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_dict()) + "\n")

    return tell
