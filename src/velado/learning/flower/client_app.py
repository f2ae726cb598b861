"""The client's Flower app: one and the same in a simulation and on a SuperNode; only where its rows come from differs.

On a SuperNode, `app` takes the client's number and its table from --node-config; in a simulation, from the folder of
prepared rows that the simulation made. Nothing the server sends decides what is read.

`LoopGrid` is a grid without a network: each message is handed to the app at once, in this process. The same apps, messages
and records as over Flower's simulation or several machines, without starting Ray or waiting for its polling; for tests and
for studies of many runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from velado.learning.flower._client import Kind, TrainingClient, answer
from velado.learning.flower._packets import from_message, keep_state, state_in, to_content
from velado.learning.flower._rounds_kept import read_client, read_own
from velado.learning.flower.flower_records import Packet
from velado.randomness import seeded
from velado.text import say


class LoopGrid(Grid):
    """Nodes 1..clients, each with a context of its own that lasts as long as the grid.

    >>> sorted(LoopGrid(ClientApp(), 3).contexts)
    [1, 2, 3]
    """

    def __init__(self, app: ClientApp, clients: int) -> None:
        self._app = app
        self._run = Run.create_empty(run_id=1)
        self.contexts = {
            number: Context(
                run_id=1,
                node_id=number,
                node_config={"partition-id": number - 1, "num-partitions": clients},
                state=RecordDict(),
                run_config={},
            )
            for number in range(1, clients + 1)
        }
        self._replies: dict[str, Message] = {}
        # Flower stamps messages with who runs; outside its own processes nobody has said so yet.
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 0

    def set_run(self, run: Run) -> None:
        """The run, for those who ask."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message to a node."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Every message is answered before this returns."""
        names = []
        for message in messages:
            name = f"{len(self._replies)}-{message.metadata.dst_node_id}"
            message.metadata.__dict__["_message_id"] = name
            context = self.contexts[message.metadata.dst_node_id]
            self._replies[name] = self._app(message, context)
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The answers, each once."""
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """All answers, in the order of the messages."""
        return self.pull_messages(self.push_messages(messages))


Source = Callable[[Context], TrainingClient]


def make_client_app(source: Source, dropout: float = 0.0, seed: int = 0) -> ClientApp:
    """A client app whose rows *source* gives. *dropout* makes it miss rounds by chance, for simulations.

    >>> type(make_client_app(from_folder(Path("rows")))).__name__
    'ClientApp'
    """
    app = ClientApp()

    def reply(message: Message, context: Context, kind: Kind) -> Message:
        packet, number = from_message(message), number_of(context)
        if kind == "train" and dropout and _misses(number, packet, dropout, seed):
            out = Packet({"error": say("it dropped out of the round")})
        else:
            out, state = answer(lambda: source(context), packet, state_in(context), kind)
            if kind != "greet" or state.arrays:
                keep_state(context, state)
        return Message(to_content(replace(out, facts={**out.facts, "client": number})), reply_to=message)

    @app.query()
    def greet(message: Message, context: Context) -> Message:
        """Who this client is, and whether it can take part."""
        return reply(message, context, "greet")

    @app.train()
    def train(message: Message, context: Context) -> Message:
        """One round."""
        return reply(message, context, "train")

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        """The model scored on this client's own true held-out rows."""
        return reply(message, context, "evaluate")

    return app


def number_of(context: Context) -> int:
    """The client's number, from 1: a simulation's partition, or `client` of --node-config; 0 where it has none.

    >>> from flwr.app import RecordDict
    >>> number_of(Context(run_id=1, node_id=7, node_config={"client": 2}, state=RecordDict(), run_config={}))
    2
    """
    if "partition-id" in context.node_config:
        return int(context.node_config["partition-id"]) + 1
    named = context.node_config.get("client", 0)
    return named if isinstance(named, int) and not isinstance(named, bool) else 0


def _misses(number: int, packet: Packet, dropout: float, seed: int) -> bool:
    path = ("federated", "dropout", str(number), str(int(packet.number("round"))))
    return bool(seeded(seed, *path).random() < dropout)


def from_folder(folder: Path) -> Source:
    """Rows that a simulation prepared in *folder*; the partition's number says which client this is.

    >>> from flwr.app import RecordDict
    >>> from velado.learning.flower._rounds_kept import write_client
    >>> from velado.learning.flower.simulation import small_ready
    >>> ready = small_ready()
    >>> write_client(Path(), 1, ready.terms.agreed, ready.parts[0])
    >>> here = Context(run_id=1, node_id=7, node_config={"partition-id": 0}, state=RecordDict(), run_config={})
    >>> from_folder(Path())(here).prepared
    LocalRows(client 1: 24 rows, 6 held out)
    """

    def client(context: Context) -> TrainingClient:
        return _cached(str(folder), number_of(context))

    return client


@lru_cache(maxsize=128)
def _cached(folder: str, number: int) -> TrainingClient:
    # An actor serves many clients in turn; each is read and binned once per actor.
    return read_client(Path(folder), number)


def _own_table(context: Context) -> TrainingClient:
    """The rows of this SuperNode: its table, prepared at the first message and kept in a private folder."""
    return read_own(context.node_config, number_of(context))


app = make_client_app(_own_table)
