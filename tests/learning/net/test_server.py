"""Both ends of the connection, in one process: who is let in, who is believed, and how long anything may take."""

import datetime
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import KeyRefused, OutputError
from velado.learning.net._https import MOST_OF_ONE, Caller, Server, Undelivered
from velado.learning.net._journal import MOST_REFUSALS, PartyLog
from velado.learning.net._line import Asked, answer_bytes, asked_bytes, read_asked
from velado.learning.net._mutual_tls import Pins, client_context
from velado.learning.net.identity import Identity, make_identity, open_identity
from velado.learning.regression.job import Job, Party

from .parties import LOG2_N, PASSPHRASE, Consortium, Visitor

LARGEST = 10_000
HEAD_SECONDS = 1.5


class Listening:
    """The hub's server, what it let in, and what it wrote down."""

    def __init__(self, job: Job, identity: Identity, folder: Path) -> None:
        self.job, self.pins = job, Pins(job)
        self.taken: list[tuple[str, bytes]] = []
        self.path = folder / "audit.log"
        self.audit = PartyLog(self.path)
        try:
            self.server = Server(
                identity, self.pins, self.pins.address, self._exchange, LARGEST, self.audit, HEAD_SECONDS
            )
        except BaseException:
            self.audit.close()
            raise

    def _exchange(self, peer: str, body: bytes) -> tuple[int, bytes]:
        self.taken += [(peer, data) for _, data in read_asked(body).letters]
        return 200, answer_bytes(())

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


def secured(hub: Listening, identity: Identity) -> ssl.SSLSocket:
    plain = socket.create_connection(("localhost", hub.server.port), timeout=10)
    return client_context(identity).wrap_socket(plain)


def ask(hub: Listening, request: bytes, identity: Identity) -> bytes:
    with secured(hub, identity) as connection:
        connection.sendall(request)
        answer = b""
        while data := connection.recv(4096):
            answer += data
    return answer


def test_a_pinned_party_is_believed_to_be_itself(group: Consortium, hub: Listening) -> None:
    for name in ("clinic-0", "vault"):
        visitor = Visitor(group.identity(name), group.job)
        visitor.say(b"one")
        visitor.say(b"two" * 3000)
    assert [(peer, len(data)) for peer, data in hub.taken] == [
        ("clinic-0", 3),
        ("clinic-0", 9000),
        ("vault", 3),
        ("vault", 9000),
    ]


def test_one_connection_serves_many_exchanges(group: Consortium, hub: Listening) -> None:
    caller = Caller(group.identity("clinic-0"), hub.pins, threading.Event())
    body = asked_bytes(Asked(0.0, (), (("clinic-0", b"x"),)))
    caller.exchange(body, 0, LARGEST)
    kept = caller._connection.sock
    for _ in range(5):
        caller.exchange(body, 0, LARGEST)
    assert caller._connection.sock is kept and len(hub.taken) == 6
    # A connection that was closed in between is made again, and nothing is lost.
    kept.shutdown(socket.SHUT_RDWR)
    caller.exchange(body, 0, LARGEST)
    caller.close()
    assert len(hub.taken) == 7


def test_a_party_holds_so_many_connections_and_no_more(group: Consortium, hub: Listening) -> None:
    identity = group.identity("clinic-0")
    body = asked_bytes(Asked(0.0, (), ()))
    callers = [Caller(identity, hub.pins, threading.Event()) for _ in range(MOST_OF_ONE)]
    for caller in callers:
        caller.exchange(body, 0, LARGEST)
    # The refusal is sent and the connection closed at once: a slow caller may find only the second.
    with pytest.raises(Undelivered, match=r"too many connections|connection failed|ended the handshake"):
        Visitor(identity, group.job).say()
    Visitor(group.identity("clinic-1"), group.job).say(b"x")
    for caller in callers:
        caller.close()
    assert hub.taken == [("clinic-1", b"x")]


def test_a_stranger_gets_no_further_than_the_handshake(
    group: Consortium, hub: Listening, tmp_path: Path
) -> None:
    make_identity(tmp_path / "s", Party("clinic-0", "client"), PASSPHRASE, log2_n=LOG2_N)
    stranger = open_identity(tmp_path / "s", PASSPHRASE)
    with pytest.raises(Undelivered, match=r"handshake|connection failed"):
        Visitor(stranger, group.job).say(b"x")
    # Who shows no certificate at all fares the same.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("localhost", hub.server.port), timeout=10)
    with pytest.raises((ssl.SSLError, ConnectionError)), context.wrap_socket(plain) as connection:
        connection.sendall(b"POST /v1/exchange HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        assert connection.recv(100) == b""
        raise ConnectionError
    # The server's thread writes its line after the caller was turned away.
    deadline = time.monotonic() + 10
    while "handshake" not in hub.written and time.monotonic() < deadline:
        time.sleep(0.02)
    assert hub.taken == [] and "handshake" in hub.written


def test_an_expired_certificate_is_refused_on_both_sides(
    group: Consortium, expired: tuple[Job, Identity], tmp_path: Path
) -> None:
    job, identity = expired
    with listening(job, group.identity("hub"), tmp_path) as hub:
        with pytest.raises(Undelivered, match=r"handshake|connection failed"):
            Visitor(identity, job).say(b"x")
        assert hub.taken == []
    with pytest.raises(KeyRefused, match="expired"):
        Pins(job).check_own(identity, "client", job)


def test_an_expired_evaluator_is_refused_by_name(group: Consortium, tmp_path: Path) -> None:
    then = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    told = make_identity(tmp_path / "hub", group.job.party("hub"), PASSPHRASE, 1, log2_n=LOG2_N, now=then)
    parties = tuple(told if party.name == "hub" else party for party in group.job.parties)
    job = replace(group.job, parties=parties)
    with listening(job, open_identity(tmp_path / "hub", PASSPHRASE), tmp_path) as old:
        with pytest.raises(KeyRefused, match="hub expired on 2020-01-02"):
            Visitor(group.identity("clinic-0"), job).say(b"x")
        assert old.taken == []


def test_nothing_is_sent_to_a_server_with_another_certificate(group: Consortium, hub: Listening) -> None:
    pins = Pins(group.job)
    pins.certificates["hub"] = pins.certificates["vault"]
    caller = Caller(group.identity("clinic-0"), pins, threading.Event())
    with pytest.raises(KeyRefused, match="another certificate"):
        caller.exchange(asked_bytes(Asked(0.0, (), (("clinic-0", b"for the hub alone"),))), 0, LARGEST)
    assert hub.taken == []


def test_an_oversized_body_is_refused_unread(group: Consortium, hub: Listening) -> None:
    identity = group.identity("clinic-0")
    Visitor(identity, group.job).say(bytes(LARGEST - 100))
    for size in (LARGEST + 1, 10**11):
        head = f"POST /v1/exchange HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode()
        assert b" 413 " in ask(hub, head, identity)
    assert len(hub.taken) == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/exchange HTTP/1.1\r\n\r\n", 405),
        (b"POST /v1/other HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404),
        (b"POST /v1/exchange HTTP/1.1\r\n\r\n", 411),
        (b"POST /v1/exchange HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 411),
        (b"POST /v1/exchange HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 411),
        (b"POST /v1/exchange HTTP/1.1\r\nContent-Length: \xc2\xb2\r\n\r\n", 400),
        (b"POST /v1/exchange HTTP/1.1\r\nContent-Length: " + b"9" * 999 + b"\r\n\r\n", 411),
        (b"POST /v1/exchange HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST /v1/exchange HTTP/1.0\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST\r\n\r\n", 400),
        (b"\xff\xfe\r\n\r\n", 400),
        (b"POST /v1/exchange HTTP/1.1\r\nX: " + b"y" * 9000, 400),
    ],
)
def test_an_unusual_request_is_refused(
    group: Consortium, hub: Listening, request_: bytes, status: int
) -> None:
    identity = group.identity("clinic-0")
    Visitor(identity, group.job).say(b"x")
    assert f" {status} ".encode() in ask(hub, request_, identity)
    assert len(hub.taken) == 1


def dripping_head(connection: socket.socket) -> None:
    connection.sendall(b"P")


def dripping_garbage(connection: socket.socket) -> None:
    connection.sendall(b"\x16")


@pytest.mark.parametrize("drip", [dripping_head, dripping_garbage])
def test_bytes_that_drip_in_do_not_hold_a_connection(
    group: Consortium, hub: Listening, drip: Callable[[socket.socket], None]
) -> None:
    begun = time.monotonic()
    opened: socket.socket = (
        secured(hub, group.identity("clinic-0"))
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


def test_a_party_is_heard_while_strangers_hold_every_place(group: Consortium, hub: Listening) -> None:
    idle = [socket.create_connection(("localhost", hub.server.port), timeout=10) for _ in range(80)]
    visitor, end = Visitor(group.identity("clinic-0"), group.job), time.monotonic() + 30
    try:
        while not hub.taken and time.monotonic() < end:
            with suppress(Undelivered):
                visitor.say(b"x")
    finally:
        for one in idle:
            one.close()
    assert hub.taken == [("clinic-0", b"x")]


def test_garbage_on_the_port_changes_nothing(group: Consortium, hub: Listening) -> None:
    for garbage in (b"\0" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"A" * 5000, b""):
        with socket.create_connection(("localhost", hub.server.port), timeout=10) as connection:
            connection.sendall(garbage)
    Visitor(group.identity("clinic-0"), group.job).say(b"x")
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


def test_refusals_do_not_fill_the_disk(tmp_path: Path) -> None:
    audit = PartyLog(tmp_path / "audit.log")
    for _ in range(MOST_REFUSALS + 500):
        audit.write("refused", reason="x")
    audit.write("received", peer="hub")
    audit.close()
    lines = (tmp_path / "audit.log").read_text().splitlines()
    assert len(lines) == MOST_REFUSALS + 1 and "not listed" in lines[-2] and "received" in lines[-1]
