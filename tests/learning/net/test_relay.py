"""Whoever carries messages between clients cannot change, swap, replay, invent or withhold one without being noticed.

The client is the real one, over real TLS; the evaluator has its true keys and lies.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import ProtocolError
from velado.learning.net._https import Server
from velado.learning.net._journal import RECEIVED, RELAYED, Inbox, Journal, PartyLog, mark_of
from velado.learning.net._line import Boxes, Letter, answer_bytes, asked_bytes, read_answer, read_asked
from velado.learning.net._mutual_tls import Pins
from velado.learning.net._wire import open_envelope, seal
from velado.learning.net.outputs import Ending
from velado.learning.net.runner import Runner
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import make_role
from velado.learning.protocols.secure_sum import names_to_bytes

from .parties import Asked, Consortium, Visitor, consortium, rows

Story = Callable[[Sequence[Message]], list[tuple[str, bytes]]]


@pytest.fixture
def few(tmp_path: Path) -> Consortium:
    """Three clients of a secure sum, of whom clinic-0 is real."""
    return consortium(tmp_path, protocol="secure-sum", minutes=1)


def hello(group: Consortium, sender: str, receiver: str, seed: int = 1, **changes: str) -> bytes:
    """What a client says first to another, signed by it."""
    role = make_role(group.job, sender, bytes([seed]) * 32, rows(1))
    said = next(message for message in role.start() if message.receiver == receiver)
    return seal(replace(said, **changes), group.identity(sender).signing)


def roster(group: Consortium, *members: str) -> bytes:
    names = names_to_bytes(members, group.job)
    word = Message(group.job.digest(), "hub", "clinic-0", 0, "roster", {"members": names})
    return seal(word, group.identity("hub").signing)


@contextmanager
def lying(group: Consortium, stories: Sequence[list[tuple[str, bytes]]]) -> Iterator[list[Message]]:
    """A hub that answers clinic-0's calls with these letters, one list after the other; yields what clinic-0 said."""
    pins, left, said = Pins(group.job), list(stories), []
    audit = PartyLog(group.folder / "lying.log")

    def exchange(peer: str, body: bytes) -> tuple[int, bytes]:
        for _, data in read_asked(body).letters:
            said.append(open_envelope(data, pins.signing[peer], len(data)))
        told = left.pop(0) if left else []
        if not told:
            time.sleep(0.05)
        return 200, answer_bytes([Letter(sender, peer, 0, "", data) for sender, data in told])

    server = Server(group.identity("hub"), pins, pins.address, exchange, 1 << 22, audit)
    try:
        yield said
    finally:
        server.close()
        audit.close()


def run_client(group: Consortium, until: Callable[[], bool] | None = None) -> Ending:
    """clinic-0 runs to its end, or is told to stop when something has happened."""
    runner = Runner(
        job=group.job,
        identity=group.identity("clinic-0"),
        role="client",
        folder=group.folder / "out-clinic-0",
        columns=rows(0),
        linger=0.5,
    )
    if until is None:
        return runner.run()
    over = threading.Event()

    def watch(happened: Callable[[], bool]) -> None:
        while not over.wait(0.02) and not happened():
            pass
        runner.stop.set()

    watching = threading.Thread(target=watch, args=(until,))
    watching.start()
    try:
        return runner.run()
    finally:
        over.set()
        watching.join()


def flipped(data: bytes, at: int = 150) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


LIES = {
    "altered": lambda g: [("clinic-1", flipped(hello(g, "clinic-1", "clinic-0")))],
    "cut": lambda g: [("clinic-1", hello(g, "clinic-1", "clinic-0")[:-1])],
    "another's": lambda g: [("clinic-1", hello(g, "clinic-2", "clinic-0"))],
    "for another": lambda g: [("clinic-1", hello(g, "clinic-1", "clinic-2"))],
    "of another job": lambda g: [("clinic-1", hello(g, "clinic-1", "clinic-0", job="ab" * 32))],
    "of another run": lambda g: [
        ("clinic-1", hello(g, "clinic-1", "clinic-0", seed=1)),
        ("clinic-1", hello(g, "clinic-1", "clinic-0", seed=2)),
    ],
    "of a stranger": lambda g: [("mallory", hello(g, "clinic-1", "clinic-0"))],
    "signed by the relay": lambda g: [
        (
            "clinic-1",
            seal(
                open_envelope(
                    hello(g, "clinic-1", "clinic-0"), g.identity("clinic-1").signing.public_key(), 1 << 20
                ),
                g.identity("hub").signing,
            ),
        )
    ],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_hello_that_was_changed_swapped_or_replayed_ends_the_job(few: Consortium, lie: str) -> None:
    with lying(few, [LIES[lie](few)]) as said:
        ending = run_client(few)
    assert (
        ending.failure is not None
        and "handed over a message that no party of the job wrote so" in ending.failure
    )
    # Keys in the open is all that was said before, and that the job is over all that was said after it.
    assert {message.kind for message in said} == {"hello", "abort"}


def test_a_hello_that_is_withheld_is_missed_at_once(few: Consortium) -> None:
    told = [("clinic-1", hello(few, "clinic-1", "clinic-0")), ("hub", roster(few, *few.tables))]
    with lying(few, [told]) as said:
        ending = run_client(few)
    assert ending.failure == "hub counts on clinic-2, but did not hand on what they said."
    assert {message.kind for message in said} == {"hello", "abort"}


def test_a_hello_told_twice_changes_nothing(few: Consortium) -> None:
    one, two = (
        ("clinic-1", hello(few, "clinic-1", "clinic-0")),
        ("clinic-2", hello(few, "clinic-2", "clinic-0")),
    )
    with lying(few, [[one], [one, two], [one, ("hub", roster(few, *few.tables)), two]]) as said:
        ending = run_client(few, lambda: any(message.kind == "shares" for message in said))
    assert ending.stopped and ending.failure is None
    assert [message.kind for message in said].count("shares") == 1


def test_a_job_begun_before_is_not_begun_again(few: Consortium) -> None:
    with lying(few, []) as said:
        assert run_client(few, lambda: bool(said)).stopped
        (few.folder / "out-clinic-0" / "journal.bin").rename(few.folder / "journal.away")
        with pytest.raises(ProtocolError, match="begun before with this identity"):
            run_client(few)
        # With its journal it goes on.
        (few.folder / "journal.away").rename(few.folder / "out-clinic-0" / "journal.bin")
        assert run_client(few, lambda: True).stopped


def test_the_evaluator_s_time_begins_with_the_first_who_calls(few: Consortium) -> None:
    job = replace(few.job, minutes=0.02)
    group = replace(few, job=job)
    runner = Runner(
        job=job, identity=group.identity("hub"), role="evaluator", folder=few.folder / "out", linger=0.1
    )
    endings: list[Ending] = []
    thread = threading.Thread(target=lambda: endings.append(runner.run()))
    thread.start()
    thread.join(timeout=2.5)
    assert thread.is_alive()  # its 1.2 seconds have not begun
    Visitor(group.identity("clinic-1"), job).say(hello(group, "clinic-1", "hub"))
    thread.join(timeout=60)
    assert endings and endings[0].failure is not None
    assert "Missing: clinic-0, clinic-2" in endings[0].failure or "nothing came from" in endings[0].failure


@pytest.fixture
def boxes(few: Consortium, tmp_path: Path) -> Iterator[Boxes]:
    """The hub's boxes, without a socket, over a journal."""
    journal, audit = Journal(tmp_path / "j"), PartyLog(tmp_path / "log")
    inbox = Inbox(few.job, "hub", Pins(few.job), journal.append, audit, lambda m, data: made.relay(m, data))
    made = Boxes(list(few.tables), inbox, audit, ())
    yield made
    journal.close()
    audit.close()


def call(boxes: Boxes, peer: str, *said: bytes, marks: Sequence[bytes] = ()) -> tuple[int, list[bytes]]:
    asked = Asked(0.0, tuple(marks), tuple((peer, data) for data in said))
    status, answer = boxes.exchange(peer, asked_bytes(asked))
    return status, [data for _, data in read_answer(answer)] if status == 200 else []


def test_what_is_handed_on_waits_until_it_is_acknowledged(
    few: Consortium, boxes: Boxes, tmp_path: Path
) -> None:
    first, second = hello(few, "clinic-1", "clinic-0"), hello(few, "clinic-2", "clinic-0")
    assert call(boxes, "clinic-1", first, hello(few, "clinic-1", "hub")) == (200, [])
    assert call(boxes, "clinic-2", second) == (200, [])
    assert call(boxes, "clinic-0") == call(boxes, "clinic-0") == (200, [first, second])
    assert boxes.owed() == ["clinic-0"]
    assert call(boxes, "clinic-0", marks=[mark_of(first), b"unheard of......"]) == (200, [second])
    assert call(boxes, "clinic-0", marks=[mark_of(second)]) == (200, [])
    assert boxes.owed() == [] and len(boxes.get(0.01)) == 1
    # Nobody acknowledges for another, and nobody speaks for another.
    assert call(boxes, "clinic-1", second)[0] == 400
    assert call(boxes, "clinic-1", b"")[0] == 400
    assert boxes.exchange("clinic-1", b"nonsense")[0] == 400
    (tmp_path / "copy").write_bytes((tmp_path / "j").read_bytes())
    copied = Journal(tmp_path / "copy")
    copied.close()
    kinds = [kind for kind, _ in copied.records]
    assert kinds.count(RELAYED) == 2 and kinds.count(RECEIVED) == 1


def test_a_second_call_of_a_party_lets_its_first_one_go(few: Consortium, boxes: Boxes) -> None:
    waiting = threading.Thread(target=boxes.exchange, args=("clinic-0", asked_bytes(Asked(25.0, (), ()))))
    waiting.start()
    end = time.monotonic() + 20
    while waiting.is_alive() and time.monotonic() < end:
        assert call(boxes, "clinic-0") == (200, [])
        waiting.join(timeout=0.05)
    assert not waiting.is_alive()
