"""What a party lets in: its own job's messages, from whom they say they are, once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import OutputError, ProtocolError
from velado.learning.net._journal import RECEIVED, RELAYED, WINDOW, Inbox, PartyLog
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
        self.handed: list[Message] = []
        self.inbox = Inbox(
            group.job, "hub", Pins(group.job), self.keep, self.audit, lambda m, data: self.handed.append(m)
        )
        self.key = group.identity("clinic-0").signing

    def keep(self, *records: tuple[int, bytes]) -> None:
        self.kept += records

    def message(self, **changes: object) -> Message:
        return replace(
            Message(self.group.job.digest(), "clinic-0", "hub", 0, "sums", {"ciphertexts": b"secret"}),
            **changes,
        )

    def offer(self, message: Message, peer: str = "clinic-0") -> int:
        return self.inbox.accept([(peer, seal(message, self.key))])[0]


@pytest.fixture
def desk(group: Consortium, tmp_path: Path) -> Iterator[Desk]:
    found = Desk(group, tmp_path)
    yield found
    found.audit.close()


def test_a_message_is_kept_before_it_is_acknowledged_and_then_waits(desk: Desk) -> None:
    assert desk.offer(desk.message()) == 200
    assert desk.kept == [(RECEIVED, seal(desk.message(), desk.key))]
    assert desk.inbox.waiting.get_nowait() == desk.message()
    assert desk.inbox.heard == {"clinic-0"}


def test_a_repeated_message_is_acknowledged_again_and_taken_once(desk: Desk) -> None:
    assert [desk.offer(desk.message()) for _ in range(3)] == [200] * 3
    assert len(desk.kept) == desk.inbox.waiting.qsize() == 1


@pytest.mark.parametrize(
    ("changes", "peer", "status"),
    [
        ({"job": "ab" * 32}, "clinic-0", 409),
        ({"receiver": "nobody"}, "clinic-0", 400),
        ({"receiver": "clinic-0"}, "clinic-0", 400),
        ({"sender": "clinic-1"}, "clinic-0", 403),
        ({}, "clinic-1", 400),
        ({"number": WINDOW}, "clinic-0", 409),
        ({"fields": {"ciphertexts": bytes(4 << 20)}}, "clinic-0", 400),
    ],
    ids=["old job", "no receiver", "itself", "other sender", "forged signature", "far ahead", "too large"],
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


def test_what_is_for_another_is_kept_and_handed_on_as_it_was_signed(desk: Desk) -> None:
    other = desk.message(receiver="clinic-1")
    assert desk.offer(other) == 200 and desk.offer(other) == 200
    assert desk.kept == [(RELAYED, seal(other, desk.key))] and desk.handed == [other]
    assert desk.inbox.waiting.empty()
    # Numbers count for each receiver: the same number to the hub is another message.
    assert desk.offer(desk.message()) == 200 and len(desk.kept) == 2


def test_who_does_not_carry_messages_takes_none_for_others(group: Consortium, desk: Desk) -> None:
    inbox = Inbox(group.job, "clinic-2", Pins(group.job), desk.keep, desk.audit)
    data = seal(desk.message(receiver="clinic-1"), desk.key)
    assert inbox.accept([("clinic-0", data)]) == (400, "A message is addressed to somebody else.")
    assert inbox.accept([("nobody", data)])[0] == 403


def test_several_messages_are_kept_by_one_write_up_to_the_first_that_is_refused(desk: Desk) -> None:
    good = [seal(desk.message(number=n), desk.key) for n in range(3)]
    forged = good[1][:-1] + bytes([good[1][-1] ^ 1])
    beside = (3, b"x" * 16)
    answer = desk.inbox.accept([("clinic-0", one) for one in (good[0], forged, good[2])], [beside])
    assert answer[0] == 400 and desk.kept == [beside, (RECEIVED, good[0])]
    again = desk.inbox.accept([("clinic-0", good[2]), ("clinic-0", good[2])])
    assert again[0] == 200 and desk.kept[2:] == [(RECEIVED, good[2])]


def test_what_cannot_be_kept_is_not_acknowledged(desk: Desk) -> None:
    def full(*records: object) -> None:
        raise OutputError("The disk is full.", "-", "-")

    job = desk.group.job
    inbox = Inbox(job, "hub", Pins(job), full, desk.audit)
    assert inbox.accept([("clinic-0", seal(desk.message(), desk.key))]) == (503, "The disk is full.")
    assert inbox.waiting.empty()


def test_garbage_is_refused_and_the_log_holds_no_content(desk: Desk) -> None:
    assert desk.inbox.accept([("clinic-0", b"garbage")])[0] == 400
    desk.offer(desk.message())
    lines = [json.loads(line) for line in desk.path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["refused", "received"]
    assert lines[1] | {"time": ""} == {
        "time": "",
        "event": "received",
        "peer": "clinic-0",
        "kind": "sums",
        "number": 0,
        "bytes": len(desk.kept[0][1]),
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
