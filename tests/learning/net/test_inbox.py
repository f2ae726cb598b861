"""What a party lets in: its own job's messages, from whom they say they are, once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import OutputError, ProtocolError
from velado.learning.net._journal import WINDOW, Inbox, PartyLog
from velado.learning.net._mutual_tls import Pins
from velado.learning.net._wire import largest_message, seal
from velado.learning.protocols.protocol import Message

from .parties import Consortium


class Desk:
    """The hub's inbox, with what it kept."""

    def __init__(self, group: Consortium, folder: Path) -> None:
        self.group, self.kept = group, []
        self.path = folder / "audit.log"
        self.audit = PartyLog(self.path)
        self.inbox = Inbox(group.job, "hub", Pins(group.job), self.kept.append, self.audit)
        self.key = group.identity("clinic-0").signing

    def message(self, **changes: object) -> Message:
        return replace(
            Message(self.group.job.digest(), "clinic-0", "hub", 0, "sums", {"ciphertexts": b"secret"}),
            **changes,
        )

    def offer(self, message: Message, peer: str = "clinic-0") -> int:
        return self.inbox.accept(peer, seal(message, self.key))[0]


@pytest.fixture
def desk(group: Consortium, tmp_path: Path) -> Iterator[Desk]:
    found = Desk(group, tmp_path)
    yield found
    found.audit.close()


def test_a_message_is_kept_before_it_is_acknowledged_and_then_waits(desk: Desk) -> None:
    assert desk.offer(desk.message()) == 200
    assert desk.kept == [seal(desk.message(), desk.key)]
    assert desk.inbox.waiting.get_nowait() == desk.message()
    assert desk.inbox.heard == {"clinic-0"}


def test_a_repeated_message_is_acknowledged_again_and_taken_once(desk: Desk) -> None:
    assert [desk.offer(desk.message()) for _ in range(3)] == [200] * 3
    assert len(desk.kept) == desk.inbox.waiting.qsize() == 1


@pytest.mark.parametrize(
    ("changes", "peer", "status"),
    [
        ({"job": "ab" * 32}, "clinic-0", 409),
        ({"receiver": "vault"}, "clinic-0", 400),
        ({"sender": "clinic-1"}, "clinic-0", 403),
        ({}, "clinic-1", 400),
        ({"number": WINDOW}, "clinic-0", 409),
        ({"fields": {"ciphertexts": bytes(4 << 20)}}, "clinic-0", 400),
    ],
    ids=["old job", "other receiver", "other sender", "forged signature", "far ahead", "too large"],
)
def test_what_is_not_for_this_desk_is_refused(desk: Desk, changes, peer: str, status: int) -> None:
    assert desk.offer(desk.message(**changes), peer) == status
    assert desk.kept == [] and desk.inbox.waiting.empty() and desk.inbox.heard == set()


def test_a_number_cannot_be_used_twice_for_different_things(desk: Desk) -> None:
    assert desk.offer(desk.message()) == 200
    assert desk.offer(desk.message(fields={"ciphertexts": b"other"})) == 409
    assert len(desk.kept) == 1


def test_messages_out_of_order_are_kept_for_the_role_to_sort(desk: Desk) -> None:
    assert [desk.offer(desk.message(number=n)) for n in (2, 0, 1)] == [200] * 3
    assert [desk.inbox.waiting.get_nowait().number for _ in range(3)] == [2, 0, 1]


def test_what_cannot_be_kept_is_not_acknowledged(desk: Desk) -> None:
    def full(data: bytes) -> None:
        raise OutputError("The disk is full.", "-", "-")

    job = desk.group.job
    inbox = Inbox(job, "hub", Pins(job), full, desk.audit)
    assert inbox.accept("clinic-0", seal(desk.message(), desk.key)) == (503, "The disk is full.")
    assert inbox.waiting.empty()


def test_garbage_is_refused_and_the_log_holds_no_content(desk: Desk) -> None:
    assert desk.inbox.accept("clinic-0", b"garbage")[0] == 400
    desk.offer(desk.message())
    lines = [json.loads(line) for line in desk.path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["refused", "received"]
    assert lines[1] | {"time": ""} == {
        "time": "",
        "event": "received",
        "peer": "clinic-0",
        "kind": "sums",
        "number": 0,
        "bytes": len(desk.kept[0]),
    }
    assert "secret" not in desk.path.read_text()


def test_the_journal_is_read_with_the_same_care(desk: Desk) -> None:
    data = seal(desk.message(), desk.key)
    assert desk.inbox.again(data) == desk.message()
    assert desk.offer(desk.message()) == 200 and desk.kept == []
    with pytest.raises(ProtocolError, match="no party of the job signed"):
        desk.inbox.again(data[:-1] + bytes([data[-1] ^ 1]))


def test_the_limit_leaves_room_for_every_kind(group: Consortium) -> None:
    from velado.learning.protocols.parts import most_bytes

    for width in (1, 13, 60):
        features = tuple(replace(group.job.target, name=f"x{i}") for i in range(width))
        for bits in (2048, 8192):
            job = replace(group.job, features=features, key_bits=bits)
            assert largest_message(job) > most_bytes(job, job.width * (job.width + 1)) + (1 << 20)
