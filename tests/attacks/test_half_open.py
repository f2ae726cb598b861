"""One address opens connections and says nothing, or half of something; the others go on being answered.

Real sockets on this machine: 127.0.0.2 attacks, and 127.0.0.1 is somebody else. Every wait is bounded.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from velado.learning.net.half_open import HalfOpen, network_of

from ..apps.service.conftest import MISSING
from ..apps.service.running import Running, running, write_service
from ..apps.service.test_running import certificate
from ..learning.net.parties import Visitor, consortium
from ..learning.net.test_server import listening

if sys.platform != "linux":
    pytest.skip(
        "other addresses of loopback are there without set-up on Linux alone", allow_module_level=True
    )

ATTACKER, OTHER = "127.0.0.2", "127.0.0.1"
MOST, ALL = 6, 24
FLOOD = 60
LIMITS = f"half_open_connections = {MOST}\nconnections = {ALL}"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
HALVES = {
    "nothing": b"",
    "half a line": b"GET /hea",
    "half its headers": b"GET /healthz HTTP/1.1\r\nHost:",
    "half a body": b"POST /v1/answers HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{",
    "half a chunk": b"POST /v1/answers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
}
READERS = [
    pytest.param("", marks=pytest.mark.skipif(find_spec("httptools") is None, reason="not installed")),
    "httptools",
]


def opened(port: int, source: str = ATTACKER, send: bytes = b"") -> socket.socket:
    connection = socket.create_connection((OTHER, port), timeout=5, source_address=(source, 0))
    with contextlib.suppress(OSError):
        connection.sendall(send)
    return connection


def is_open(connection: socket.socket) -> bool:
    """Whether the other end still waits; a reply that says nothing of the end counts as waiting."""
    connection.settimeout(0)
    try:
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def left_open(connections: list[socket.socket], most: int, seconds: float = 9.0) -> int:
    """How many are open once no more than *most* are, or when the time is up."""
    end = time.monotonic() + seconds
    while True:
        count = sum(map(is_open, connections))
        if count <= most or time.monotonic() > end:
            return count
        time.sleep(0.05)


def settle(connections: list[socket.socket]) -> None:
    """The service has had time to read them, and all of them are open."""
    time.sleep(0.4)
    assert all(map(is_open, connections))


def answered(connection: socket.socket) -> bytes:
    connection.settimeout(10)
    got = b""
    with contextlib.suppress(OSError):
        while not got.endswith(b"\r\n\r\nok\n") and (part := connection.recv(4096)):
            got += part
    return got


@contextlib.contextmanager
def flood(port: int, send: bytes, count: int = FLOOD) -> Iterator[list[socket.socket]]:
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connections.append(opened(port, ATTACKER, send))
        yield connections
    finally:
        for connection in connections:
            connection.close()


@pytest.fixture(scope="module", params=READERS, ids=["httptools", "h11"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if MISSING:
        pytest.skip(f"velado[web,query] is not installed: {', '.join(MISSING)}")
    with running(
        write_service(tmp_path_factory.mktemp("service"), limits=LIMITS), without=request.param
    ) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_an_address_holds_so_many_halves_and_others_are_answered(service: Running, half: str) -> None:
    with flood(service.port, HALVES[half]) as connections:
        assert service.call("GET", "/healthz", who=None).status == 200
        assert 0 < left_open(connections, MOST) <= MOST
        assert service.ask("SELECT COUNT(*) FROM people").status == 200
    assert "half-open" in service.call("GET", "/metrics", who="root").text


@pytest.mark.slow
def test_a_whole_request_frees_its_place_and_the_next_ones_half_takes_one_again(service: Running) -> None:
    half, rest = WHOLE[:20], WHOLE[20:]
    with flood(service.port, half, MOST) as connections:
        settle(connections)
        with opened(service.port, send=half) as more:
            assert left_open([more], 0) == 0
        for connection in connections:
            connection.settimeout(5)
            connection.sendall(rest)
            assert answered(connection).startswith(b"HTTP/1.1 200")
        # All of these stay open for a next request, and hold no place meanwhile.
        with flood(service.port, half, MOST) as others:
            settle(others)
            connections[0].sendall(half)
            assert left_open(connections[:1], 0) == 0
            settle(others)
    # Ended connections give their places back too.
    with flood(service.port, half, MOST) as again:
        settle(again)


@pytest.mark.slow
def test_honest_clients_that_connect_at_once_are_all_answered(service: Running) -> None:
    many = 2 * MOST
    with flood(service.port, WHOLE, many) as connections:
        assert all(answered(connection).startswith(b"HTTP/1.1 200") for connection in connections)


@pytest.mark.slow
def test_half_a_handshake_is_counted_and_a_whole_one_is_served(tmp_path: Path) -> None:
    if MISSING:
        pytest.skip(f"velado[web,query] is not installed: {', '.join(MISSING)}")
    cert, key = certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(cert))
    context.check_hostname = False
    file = write_service(tmp_path / "service", limits=LIMITS)
    with running(file, None, "--tls-cert", str(cert), "--tls-key", str(key), context=context) as service:
        for send in (b"", b"\x16\x03\x01\x02\x00\x01\x00"):
            with flood(service.port, send) as connections:
                assert 0 < left_open(connections, MOST) <= MOST
                assert service.ask("SELECT COUNT(*) FROM people").status == 200
        # Places of ended handshakes are free again, and what is no TLS at all is let go.
        with flood(service.port, b"GET / HTTP/1.1\r\n\r\n", MOST) as connections:
            assert left_open(connections, 0) == 0
        secured = []
        try:
            for _ in range(2 * MOST):
                secured.append(context.wrap_socket(opened(service.port), server_hostname="localhost"))
                # The request in the same breath as the handshake's end.
                secured[-1].sendall(WHOLE)
                assert answered(secured[-1]).startswith(b"HTTP/1.1 200")
        finally:
            for connection in secured:
                connection.close()
        # A long reply, and a request of several records.
        assert service.call("GET", "/openapi.json", who=None).json["openapi"]
        assert service.ask("SELECT COUNT(*) FROM people WHERE city = '" + "x" * 9_000 + "'").status == 200
        assert service.ask("x" * 60_000).status == 413
        code, log = service.stop()
    assert code == 0 and "Traceback" not in log and "Error" not in log


@pytest.mark.slow
def test_a_party_is_reached_while_an_address_floods_its_server(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    with listening(group.job, group.identity("hub"), tmp_path) as hub:
        most = max(8, 2 * len(group.job.parties))
        end = time.monotonic() + 2.5
        with contextlib.ExitStack() as held:
            visitor = Visitor(group.identity("clinic-0"), group.job)
            # The flood is kept up beyond the time a silent connection has.
            while time.monotonic() < end:
                connections = held.enter_context(flood(hub.server.port, b"\x16\x03\x01"))
                assert left_open(connections, most) <= most
                visitor.say(b"one")
        assert {peer for peer, _ in hub.taken} == {"clinic-0"}
        assert "too many unfinished requests from one address" in hub.written
        assert "too many connections at once" not in hub.written


def test_places_are_counted_by_network_and_forgotten_when_free() -> None:
    places = HalfOpen(2)
    assert places.take("a") and places.take("a") and not places.take("a") and places.take("b")
    places.free("a")
    assert places.take("a")
    for name in ("a", "a", "b"):
        places.free(name)
    assert json.dumps(places._held) == "{}"
    assert network_of("127.0.0.2") == network_of("::ffff:127.0.0.2") == "127.0.0.2"
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") != network_of("2001:db8:0:1::1")
    assert network_of("fe80::1%eth0") == network_of("fe80::2") and network_of("") == ""
