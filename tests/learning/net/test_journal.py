"""The journal: what was written is read again, a torn end is cut off, and damage elsewhere is an error."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import OutputError, ProtocolError
from velado.learning.net._journal import (
    ACKNOWLEDGED,
    BEGIN,
    MAGIC,
    RECEIVED,
    Begin,
    Journal,
    mark_of,
    marks_in,
)

KEY = bytes(range(32))
SEED = b"seed of this party in this job!!"
RECORDS = [(RECEIVED, b"first"), (ACKNOWLEDGED, mark_of(b"a message")), (RECEIVED, b"x" * 300)]


def written(path: Path) -> bytes:
    journal = Journal(path)
    journal.append(RECORDS[0])
    journal.append(*RECORDS[1:])
    journal.close()
    return path.read_bytes()


def read(path: Path) -> list[tuple[int, bytes]]:
    journal = Journal(path)
    journal.close()
    return journal.records


def test_records_come_back_in_their_order_and_more_can_follow(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    assert read(path) == RECORDS
    journal = Journal(path)
    journal.append((RECEIVED, b"later"))
    journal.close()
    assert read(path) == [*RECORDS, (RECEIVED, b"later")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_journal_torn_at_any_byte_keeps_the_whole_records_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j"
    whole = written(path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        kept = read(path)
        assert kept == RECORDS[: len(kept)]
        journal = Journal(path)
        journal.append((RECEIVED, b"later"))
        journal.close()
        assert read(path) == [*kept, (RECEIVED, b"later")]


def test_zeros_after_the_end_are_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(written(path) + bytes(100))
    assert read(path) == RECORDS


def test_a_byte_changed_before_the_last_record_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "j"
    whole = written(path)
    last = len(whole) - (9 + 300 + 16)
    for at in range(last):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        path.write_bytes(changed)
        with pytest.raises(ProtocolError, match="journal"):
            read(path)
        assert path.read_bytes() == changed  # nothing is mended by losing it


def test_a_record_left_out_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "j"
    whole = written(path)
    first = 9 + 5 + 16
    path.write_bytes(MAGIC + whole[len(MAGIC) + first :])
    with pytest.raises(ProtocolError):
        read(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_journal_or_a_protocol_error(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    path.write_bytes(data)
    try:
        assert read(path) == [] or data.startswith(MAGIC)
    except ProtocolError:
        assert path.read_bytes() == data


def test_two_processes_cannot_share_a_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    with pytest.raises(OutputError, match="Another process"):
        Journal(tmp_path / "j")
    journal.close()
    Journal(tmp_path / "j").close()


def test_the_seed_opens_with_its_key_job_and_name_alone(tmp_path: Path) -> None:
    begin = Begin.make("ab" * 32, "clinic", 12.5, bytes(32), SEED, KEY)
    assert Begin.from_bytes(begin.to_bytes()) == begin
    assert begin.seed(KEY) == SEED and SEED not in begin.to_bytes()
    for other in (
        Begin("cd" * 32, "clinic", 12.5, bytes(32), begin.sealed_seed),
        Begin("ab" * 32, "other", 12.5, bytes(32), begin.sealed_seed),
    ):
        with pytest.raises(ProtocolError, match="another identity"):
            other.seed(KEY)
    with pytest.raises(ProtocolError):
        begin.seed(bytes(32))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_beginning_or_a_protocol_error(data) -> None:
    try:
        assert Begin.from_bytes(data).to_bytes() == data
    except ProtocolError as error:
        assert "message" in error.what


def test_marks_are_read_back_and_tell_messages_apart() -> None:
    one, other = mark_of(b"one"), mark_of(b"other")
    assert marks_in(one + other) == [one, other] and one != other and marks_in(b"") == []
    assert BEGIN != RECEIVED
