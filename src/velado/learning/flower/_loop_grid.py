"""A grid without a network: each message is handed to the client app at once, in this process.

The same apps, messages and records as over Flower's simulation or several machines, without starting Ray or waiting for
its polling; for tests and for studies of many runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity


class LoopGrid(Grid):
    """Nodes 1..clients, each with a context of its own that lasts as long as the grid."""

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
