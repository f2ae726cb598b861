"""Who is there: nodes are greeted once, a machine started again keeps its number, one that hangs holds nobody up."""

import time

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from velado.federated import Federation
from velado.federated.loop import LoopGrid
from velado.federated.packet import Packet
from velado.federated.roster import Roster
from velado.federated.wire import to_content


class Grid(LoopGrid):
    """A loop whose nodes can be taken away, added, or made to hang; greetings are counted."""

    def __init__(self, clients: int) -> None:
        self.hanging: set[int] = set()
        self.numbers = {node: node for node in range(1, clients + 1)}
        self.greeted: list[int] = []
        self.error = ""
        app = ClientApp()

        @app.query()
        def greet(message: Message, context: Context) -> Message:
            self.greeted.append(context.node_id)
            facts = {"client": self.numbers[context.node_id], "rows": 10, "test_rows": 2, "error": self.error}
            return Message(to_content(Packet(facts)), reply_to=message)

        super().__init__(app, clients)

    def send_and_receive(self, messages, *, timeout=None):
        messages = list(messages)
        kept = [one for one in messages if one.metadata.dst_node_id not in self.hanging]
        if len(kept) < len(messages):
            time.sleep(timeout)
        return super().send_and_receive(kept, timeout=timeout)


def test_a_node_is_greeted_once_and_its_answer_names_it() -> None:
    grid, roster = Grid(3), Roster(Federation(clients=3))
    assert roster.present(grid, Packet()) == roster.present(grid, Packet()) == [1, 2, 3]
    assert sorted(grid.greeted) == [1, 2, 3]
    assert [one.rows for one in roster.client_records()] == [10, 10, 10]


def test_a_machine_started_again_is_the_same_client_at_another_node() -> None:
    grid, roster = Grid(3), Roster(Federation(clients=3, patience=0.2))
    roster.present(grid, Packet())
    grid.contexts[99] = grid.contexts.pop(2)
    grid.contexts[99].node_id, grid.numbers[99] = 99, 2
    assert roster.present(grid, Packet()) == [1, 2, 3]
    assert roster.node_of(2) == 99 and roster.client_of(2) is None


def test_a_node_that_hangs_is_waited_for_twice_and_then_holds_nobody_up() -> None:
    grid = Grid(3)
    roster = Roster(Federation(clients=3, participation=0.6, patience=0.3))
    grid.hanging = {3}
    for _ in range(3):
        assert roster.present(grid, Packet()) == [1, 2]
    start = time.monotonic()
    assert roster.present(grid, Packet()) == [1, 2]
    assert time.monotonic() - start < 0.2
    assert "client 3 never answered" in roster.client_records()[2].gap


def test_a_node_without_a_number_is_turned_away_and_one_with_other_terms_sits_out(caplog) -> None:
    grid = Grid(3)
    grid.numbers[3] = 7
    roster = Roster(Federation(clients=3, participation=0.6, patience=0.2))
    assert roster.present(grid, Packet()) == [1, 2]
    assert "turned away" in caplog.text
    grid = Grid(2)
    grid.error = "This client has other terms."
    roster = Roster(Federation(clients=2, patience=0.2))
    assert roster.present(grid, Packet()) == []
    assert roster.able_at_most() == []
    assert "client 1 was refused: This client has other terms." in roster.client_records()[0].gap
