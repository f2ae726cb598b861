"""Both ends of the connection, in one process: who is let in, who is believed, and how long anything may take."""

import datetime
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import KeyRefused, OutputError
from velado.learning.net._https import Letter, Outbox, Post, Server, Undelivered
from velado.learning.net._journal import MOST_REFUSALS, PartyLog
from velado.learning.net._mutual_tls import Pins, client_context
from velado.learning.net.identity import Identity, make_identity, open_identity
from velado.learning.regression.job import Job, Party

from .parties import LOG2_N, PASSPHRASE, Consortium

LARGEST = 10_000
HEAD_SECONDS = 1.5


class Listening:
    """The hub's server, what it let in, and what it wrote down."""

    def __init__(self, job: Job, identity: Identity, folder: Path) -> None:
        self.job, self.pins = job, Pins(job)
        self.taken: list[tuple[str, bytes]] = []
        self.noted: list[str] = []
        self.path = folder / "audit.log"
        self.audit = PartyLog(self.path)
        address = self.pins.addresses[identity.name]
        try:
            self.server = Server(
                identity,
                self.pins,
                address,
                self._accept,
                LARGEST,
                self.audit,
                self.noted.append,
                HEAD_SECONDS,
            )
        except BaseException:
            self.audit.close()
            raise

    def _accept(self, peer: str, data: bytes) -> tuple[int, str]:
        self.taken.append((peer, data))
        return 200, "kept"

    @property
    def written(self) -> str:
        return self.path.read_text("utf-8")


@contextmanager
def listening(job: Job, identity: Identity, folder: Path) -> Iterator[Listening]:
    found = Listening(job, identity, folder)
    try:
        yield found
    finally:
        found.server.close()
        found.audit.close()


@pytest.fixture
def hub(group: Consortium, tmp_path: Path) -> Iterator[Listening]:
    with listening(group.job, group.identity("hub"), tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def expired(group: Consortium, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Identity]:
    """The job as if clinic-0's keys had been made for one day, years ago."""
    folder = tmp_path_factory.mktemp("expired") / "clinic-0"
    then = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    told = make_identity(folder, group.job.party("clinic-0"), PASSPHRASE, 1, log2_n=LOG2_N, now=then)
    parties = tuple(told if party.name == "clinic-0" else party for party in group.job.parties)
    return replace(group.job, parties=parties), open_identity(folder, PASSPHRASE)


def secured(hub: Listening, identity: Identity | None) -> ssl.SSLSocket:
    plain = socket.create_connection(("localhost", hub.server.port), timeout=10)
    return client_context(identity).wrap_socket(plain)


def ask(hub: Listening, request: bytes, identity: Identity | None = None) -> bytes:
    with secured(hub, identity) as connection:
        connection.sendall(request)
        answer = b""
        while data := connection.recv(4096):
            answer += data
    return answer


def test_a_pinned_party_is_believed_to_be_itself(group: Consortium, hub: Listening) -> None:
    for name in ("clinic-0", "vault"):
        post = Post(group.identity(name), hub.pins)
        post.deliver("hub", b"one")
        post.deliver("hub", b"two" * 3000)
    assert [(peer, len(data)) for peer, data in hub.taken] == [
        ("clinic-0", 3),
        ("clinic-0", 9000),
        ("vault", 3),
        ("vault", 9000),
    ]


def test_a_stranger_gets_no_further_than_its_certificate(hub: Listening, tmp_path: Path) -> None:
    make_identity(tmp_path / "s", Party("clinic-0", "client"), PASSPHRASE, log2_n=LOG2_N)
    stranger = open_identity(tmp_path / "s", PASSPHRASE)
    with pytest.raises(Undelivered, match="not of a party"):
        Post(stranger, hub.pins).deliver("hub", b"x")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(hub, b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", stranger)
    # The server's thread writes its line after the caller was turned away.
    deadline = time.monotonic() + 10
    while "handshake" not in hub.written and time.monotonic() < deadline:
        time.sleep(0.02)
    assert hub.taken == [] and "handshake" in hub.written


def test_who_shows_no_certificate_can_only_introduce_itself(group: Consortium, hub: Listening) -> None:
    assert b" 403 " in ask(hub, b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")
    assert b" 403 " in ask(hub, b"POST /v1/noted HTTP/1.1\r\nContent-Length: 0\r\n\r\n") and hub.noted == []
    der = group.identity("clinic-1").certificate
    head = f"POST /v1/certificate HTTP/1.1\r\nContent-Length: {len(der)}\r\n\r\n".encode()
    assert b" 200 " in ask(hub, head + der)
    assert b" 403 " in ask(hub, head + bytes([der[0]]) + bytes(len(der) - 1))
    assert hub.taken == []


def test_a_restarted_party_is_introduced_to_again(group: Consortium, tmp_path: Path) -> None:
    post = Post(group.identity("clinic-0"), Pins(group.job))
    for attempt in range(2):
        (tmp_path / str(attempt)).mkdir()
        with listening(group.job, group.identity("hub"), tmp_path / str(attempt)) as hub:
            try:
                post.deliver("hub", b"x")
            except Undelivered:
                assert attempt == 1
                post.deliver("hub", b"x")
            assert hub.taken == [("clinic-0", b"x")]


def test_an_expired_certificate_is_refused_by_name_on_both_sides(
    group: Consortium, expired: tuple[Job, Identity], tmp_path: Path
) -> None:
    job, identity = expired
    with listening(job, group.identity("hub"), tmp_path) as hub:
        with pytest.raises(Undelivered, match="certificate of clinic-0 expired on 2020-01-02"):
            Post(identity, hub.pins).deliver("hub", b"x")
        assert hub.taken == [] and "expired on 2020-01-02" in hub.written
    (tmp_path / "b").mkdir()
    with listening(job, identity, tmp_path / "b") as old:
        with pytest.raises(KeyRefused, match="clinic-0 expired on 2020-01-02"):
            Post(group.identity("hub"), old.pins).deliver("clinic-0", b"x")
        assert old.taken == []
    with pytest.raises(KeyRefused, match="expired"):
        Pins(job).check_own(identity, "client", job)


def test_nothing_is_sent_to_a_server_with_another_certificate(group: Consortium, hub: Listening) -> None:
    pins = Pins(group.job)
    pins.addresses["vault"] = pins.addresses["hub"]
    with pytest.raises(KeyRefused, match="another certificate"):
        Post(group.identity("clinic-0"), pins).deliver("vault", b"for the vault alone")
    assert hub.taken == [] and "introduced" not in hub.written


def test_an_oversized_body_is_refused_unread(group: Consortium, hub: Listening) -> None:
    identity = group.identity("clinic-0")
    Post(identity, hub.pins).deliver("hub", bytes(LARGEST))
    for size in (LARGEST + 1, 10**11):
        head = f"POST /v1/messages HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode()
        assert b" 413 " in ask(hub, head, identity)
    assert b" 413 " in ask(hub, b"POST /v1/certificate HTTP/1.1\r\nContent-Length: 9999\r\n\r\n")
    assert len(hub.taken) == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/messages HTTP/1.1\r\n\r\n", 405),
        (b"POST /v1/other HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404),
        (b"POST /v1/messages HTTP/1.1\r\n\r\n", 411),
        (b"POST /v1/noted HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 413),
        (b"POST /v1/messages HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 411),
        (b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 411),
        (b"POST /v1/messages HTTP/1.1\r\nContent-Length: \xc2\xb2\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nContent-Length: " + b"9" * 999 + b"\r\n\r\n", 411),
        (b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.0\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST\r\n\r\n", 400),
        (b"\xff\xfe\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nX: " + b"y" * 9000, 400),
    ],
)
def test_an_unusual_request_is_refused(
    group: Consortium, hub: Listening, request_: bytes, status: int
) -> None:
    identity = group.identity("clinic-0")
    Post(identity, hub.pins).deliver("hub", b"x")
    assert f" {status} ".encode() in ask(hub, request_, identity)
    assert len(hub.taken) == 1


def dripping_head(connection: socket.socket) -> None:
    connection.sendall(b"P")


def dripping_garbage(connection: socket.socket) -> None:
    connection.sendall(b"\x16")


@pytest.mark.parametrize("drip", [dripping_head, dripping_garbage])
def test_bytes_that_drip_in_do_not_hold_a_connection(
    hub: Listening, drip: Callable[[socket.socket], None]
) -> None:
    begun = time.monotonic()
    opened: socket.socket = (
        secured(hub, None)
        if drip is dripping_head
        else socket.create_connection(("localhost", hub.server.port), timeout=10)
    )
    with opened as connection, pytest.raises((OSError, AssertionError)):
        connection.settimeout(0.3)
        while time.monotonic() - begun < 20 * HEAD_SECONDS:
            drip(connection)
            try:
                # Either an answer (408), or the end: both mean that it was let go.
                assert not connection.recv(100), "answered"
                raise ConnectionResetError
            except TimeoutError:
                continue
    assert time.monotonic() - begun < 12 * HEAD_SECONDS


def test_a_party_is_heard_while_strangers_hold_every_place(
    group: Consortium, hub: Listening, tmp_path: Path
) -> None:
    idle = [socket.create_connection(("localhost", hub.server.port), timeout=10) for _ in range(80)]
    audit = PartyLog(tmp_path / "sender.log")
    kept: list[int] = []
    outbox = Outbox(
        Post(group.identity("clinic-0"), hub.pins), lambda peer, number: kept.append(number), audit
    )
    try:
        outbox.put("hub", Letter(0, "sums", b"x", False))
        end = time.monotonic() + 30
        while outbox.owed(only_last=False) and time.monotonic() < end:
            outbox.wait(0.2)
    finally:
        outbox.close()
        audit.close()
        for one in idle:
            one.close()
    assert kept == [0] and hub.taken == [("clinic-0", b"x")]


def test_garbage_on_the_port_changes_nothing(group: Consortium, hub: Listening) -> None:
    for garbage in (b"\0" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"A" * 5000, b""):
        with socket.create_connection(("localhost", hub.server.port), timeout=10) as connection:
            connection.sendall(garbage)
    Post(group.identity("clinic-0"), hub.pins).deliver("hub", b"x")
    assert hub.taken == [("clinic-0", b"x")]


def test_older_tls_is_not_spoken(hub: Listening) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    plain = socket.create_connection(("localhost", hub.server.port), timeout=10)
    with plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain)


def test_a_port_in_use_is_named(group: Consortium, hub: Listening, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    with pytest.raises(OutputError, match="Nothing can listen"):
        Listening(group.job, group.identity("hub"), tmp_path / "again")


def test_letters_go_out_in_order_and_a_result_is_owed_until_it_is_taken(
    group: Consortium, tmp_path: Path
) -> None:
    kept: list[int] = []
    audit = PartyLog(tmp_path / "sender.log")
    outbox = Outbox(
        Post(group.identity("clinic-0"), Pins(group.job)), lambda peer, number: kept.append(number), audit
    )
    try:
        outbox.put("hub", Letter(0, "sums", b"a", False))
        outbox.wait(0.3)
        assert (outbox.owed(only_last=False), outbox.owed(only_last=True)) == (["hub"], [])
        outbox.put("hub", Letter(1, "result", b"b", True))
        assert outbox.owed(only_last=True) == ["hub"]
        assert outbox.reasons == {"hub": "nobody answers at its address"}
        with listening(group.job, group.identity("hub"), tmp_path) as hub:
            end = time.monotonic() + 30
            while outbox.owed(only_last=False) and time.monotonic() < end:
                outbox.wait(0.2)
            assert hub.noted == ["clinic-0"]  # the result alone is noted
            assert (kept, hub.taken) == ([0, 1], [("clinic-0", b"a"), ("clinic-0", b"b")])
    finally:
        outbox.close()
        audit.close()


def test_refusals_do_not_fill_the_disk(tmp_path: Path) -> None:
    audit = PartyLog(tmp_path / "audit.log")
    for _ in range(MOST_REFUSALS + 500):
        audit.write("refused", reason="x")
    audit.write("received", peer="hub")
    audit.close()
    lines = (tmp_path / "audit.log").read_text().splitlines()
    assert len(lines) == MOST_REFUSALS + 1 and "not listed" in lines[-2] and "received" in lines[-1]
