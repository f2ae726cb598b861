"""Who is there: nodes are greeted, a machine started again keeps its number, one that hangs holds nobody up."""

import copy
import time

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from velado.learning.flower import Federation
from velado.learning.flower._packets import to_content
from velado.learning.flower._roster import Roster
from velado.learning.flower.client_app import LoopGrid
from velado.learning.flower.flower_records import Packet


class Grid(LoopGrid):
    """A loop whose nodes can be taken away, added, or made to hang or to answer late; greetings are counted."""

    def __init__(self, clients: int) -> None:
        self.hanging: set[int] = set()
        self.late: dict[int, float] = {}
        self.numbers = {node: node for node in range(1, clients + 1)}
        self.greeted: list[int] = []
        self.lives: list[float] = []
        self.errors: dict[int, str] = {}
        self.facts: dict[int, dict] = {}
        app = ClientApp()

        @app.query()
        def greet(message: Message, context: Context) -> Message:
            node = context.node_id
            facts = {
                "client": self.numbers[node],
                "rows": 10,
                "test_rows": 2,
                "error": self.errors.get(node, ""),
            }
            return Message(to_content(Packet({**facts, **self.facts.get(node, {})})), reply_to=message)

        super().__init__(app, clients)

    def push_messages(self, messages):
        messages = list(messages)
        self.greeted += [one.metadata.dst_node_id for one in messages]
        self.lives += [one.metadata.ttl for one in messages]
        hung = [one for one in messages if one.metadata.dst_node_id in self.hanging]
        names = super().push_messages(one for one in messages if one not in hung)
        return [*names, *(f"hung-{len(self.greeted)}" for _ in hung)]

    def pull_messages(self, message_ids):
        now = time.monotonic()
        return super().pull_messages(
            name for name in message_ids if now >= self.late.get(int(name.rpartition("-")[2]), 0)
        )

    def start_again(self, old: int, new: int, number: int) -> None:
        """Node *old* goes on as node *new* of client *number*."""
        self.contexts[new] = self.contexts.pop(old)
        self.contexts[new].node_id, self.numbers[new] = new, number

    def add(self, node: int, number: int) -> None:
        """Another node, which says that it is client *number*."""
        self.contexts[node] = copy.copy(self.contexts[1])
        self.contexts[node].node_id, self.numbers[node] = node, number


def test_a_node_is_greeted_once_and_its_answer_names_it() -> None:
    grid, roster = Grid(3), Roster(Federation(clients=3))
    assert roster.present(grid, Packet()) == roster.present(grid, Packet()) == [1, 2, 3]
    assert sorted(grid.greeted) == [1, 2, 3]
    assert [one.rows for one in roster.client_records()] == [10, 10, 10]


def test_a_machine_started_again_is_the_same_client_at_another_node() -> None:
    grid, roster = Grid(3), Roster(Federation(clients=3, patience=0.2))
    roster.present(grid, Packet())
    grid.start_again(2, 99, 2)
    assert roster.present(grid, Packet()) == [1, 2, 3]
    assert roster.node_of(2) == 99 and roster.client_of(2) is None


def test_a_node_that_hangs_is_waited_for_once_and_then_holds_nobody_up() -> None:
    grid = Grid(3)
    roster = Roster(Federation(clients=3, participation=0.6, patience=0.1), hello=0.5)
    grid.hanging = {3}
    start = time.monotonic()
    assert roster.present(grid, Packet()) == [1, 2]
    assert time.monotonic() - start >= 0.5
    took = []
    for _ in range(3):
        start = time.monotonic()
        assert roster.present(grid, Packet()) == [1, 2]
        took.append(time.monotonic() - start)
    # If it were waited for again, each would take as long; a busy machine holds up one of them.
    assert min(took) < 0.4
    assert roster.absent() == {3: "greeted, no answer yet"}
    assert "client 3 never answered (greeted, no answer yet)" in roster.client_records()[2].gap
    grid.contexts.pop(3)
    roster.present(grid, Packet())
    assert roster.absent() == {3: "not there"}


def test_a_node_that_did_not_answer_is_greeted_on_for_the_whole_run() -> None:
    grid = Grid(2)
    roster = Roster(Federation(clients=2, participation=0.5, patience=0.1), hello=0.1)
    grid.hanging = {2}
    for _ in range(6):
        assert roster.present(grid, Packet()) == [1]
        time.sleep(0.1)
    assert grid.greeted.count(2) > 4 and grid.greeted.count(1) == 1
    grid.hanging = set()
    assert roster.present(grid, Packet()) == [1, 2] and roster.absent() == {}


def test_a_greeting_is_waited_for_longer_than_a_round() -> None:
    """Anonymizing a table may take longer than any round after it."""
    grid = Grid(2)
    roster = Roster(Federation(clients=2, patience=0.2))
    grid.late = {2: time.monotonic() + 1.0}
    assert roster.present(grid, Packet()) == [1, 2]
    assert min(grid.lives) >= 600
    assert Roster(Federation(patience=200.0)).hello == 2000
    assert Roster(Federation(patience=7200.0)).hello == 7200


def test_a_refused_client_that_was_repaired_takes_part_under_the_same_node() -> None:
    grid = Grid(2)
    grid.errors = {2: "The table is not there."}
    roster = Roster(Federation(clients=2, participation=0.5, patience=0.2), again=0.0)
    assert roster.present(grid, Packet()) == [1]
    assert roster.sitting_out[2] == "client 2 was refused: The table is not there."
    grid.errors, grid.facts = {}, {2: {"sits_out": "client 2 has 3 training row(s)."}}
    assert roster.present(grid, Packet()) == [1]
    assert roster.sitting_out[2] == "client 2 has 3 training row(s)."
    grid.facts = {2: {"rows": 44}}
    assert roster.present(grid, Packet()) == [1, 2]
    assert roster.sitting_out == {} and roster.client_records()[1].rows == 44
    greeted = len(grid.greeted)
    roster.present(grid, Packet())
    assert len(grid.greeted) == greeted


def test_of_two_machines_with_one_number_the_second_is_turned_away_until_the_first_is_gone(caplog) -> None:
    grid = Grid(2)
    roster = Roster(Federation(clients=2, patience=0.2), again=0.0)
    roster.present(grid, Packet())
    grid.add(77, 2)
    assert roster.present(grid, Packet()) == roster.present(grid, Packet()) == [1, 2]
    assert roster.node_of(2) == 2 and roster.client_of(77) is None
    assert roster.remarks() == "A second machine says that it is client 2. It was turned away."
    assert roster.remarks() in roster.client_records()[1].gap and roster.absent() == {}
    assert caplog.text.count("A second machine says that it is client 2.") == 1
    grid.contexts.pop(2)
    assert roster.present(grid, Packet()) == [1, 2]
    assert roster.node_of(2) == 77 and roster.remarks() == "" and roster.client_records()[1].gap is None


@pytest.mark.parametrize(
    "facts", [{"rows": 0.5}, {"rows": -5}, {"rows": 0}, {"rows": 10**15}, {"test_rows": -1}]
)
def test_a_client_whose_rows_cannot_be_true_is_refused(facts: dict) -> None:
    grid = Grid(2)
    grid.facts = {2: facts}
    roster = Roster(Federation(clients=2, participation=0.5, patience=0.2))
    assert roster.present(grid, Packet()) == [1]
    assert "client 2 was refused: its rows are not whole numbers" in roster.client_records()[1].gap


def test_a_node_without_a_number_is_turned_away_and_one_with_other_terms_sits_out(caplog) -> None:
    grid = Grid(3)
    grid.numbers[3] = 7
    roster = Roster(Federation(clients=3, participation=0.6, patience=0.2))
    assert roster.present(grid, Packet()) == [1, 2]
    assert "turned away" in caplog.text
    grid = Grid(2)
    grid.errors = dict.fromkeys((1, 2), "This client has other terms.")
    roster = Roster(Federation(clients=2, patience=0.2))
    assert roster.present(grid, Packet()) == []
    assert roster.able_at_most() == []
    assert "client 1 was refused: This client has other terms." in roster.client_records()[0].gap
