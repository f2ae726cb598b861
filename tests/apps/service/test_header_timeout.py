"""Requests that arrive slowly or without end are let go, whichever library reads them."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from velado.apps.service.connection_guard import FRAMING_BYTES, HEADER_BYTES

from .running import Running, raw, running, write_service

pytestmark = pytest.mark.slow  # each reader is a service in a process of its own

READERS = [
    pytest.param(
        "", id="httptools", marks=pytest.mark.skipif(find_spec("httptools") is None, reason="not installed")
    ),
    pytest.param("httptools", id="h11"),
]


@pytest.fixture(scope="module", params=READERS)
def either(
    request: pytest.FixtureRequest, needs_the_extras: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A service that reads with httptools, and one that does not find it and reads with h11."""
    file = write_service(tmp_path_factory.mktemp("service"), limits="body_seconds = 3")
    with running(file, without=request.param) as started:
        yield started


def sent_until_it_ends(service: Running, begin: bytes, piece: bytes, most: int) -> tuple[int, bytes]:
    """How many bytes of *piece* after *piece* were taken before the connection was ended, and what came back."""
    total, got = 0, b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=0.05) as connection:
        connection.sendall(begin)
        while total < most:
            with contextlib.suppress(TimeoutError):
                try:
                    connection.sendall(piece)
                    total += len(piece)
                    part = connection.recv(65_536)
                except OSError as error:
                    if isinstance(error, TimeoutError):
                        raise
                    return total, got
                if not part:
                    return total, got
                got += part
        return total, got


def test_headers_in_one_piece_beyond_the_limit_are_refused(either: Running) -> None:
    sent = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n"
    assert raw(either, sent, 3).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


@pytest.mark.parametrize("piece", [b"X: " + b"a" * 4000 + b"\r\n", b"a" * 4000])
def test_headers_that_go_on_and_on_are_ended_at_the_limit(either: Running, piece: bytes) -> None:
    begin = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    taken, got = sent_until_it_ends(either, begin, piece, 40 * HEADER_BYTES)
    assert taken < 4 * HEADER_BYTES and got.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


def test_an_address_that_goes_on_and_on_is_ended_at_the_limit(either: Running) -> None:
    taken, got = sent_until_it_ends(either, b"GET /", b"a" * 4000, 40 * HEADER_BYTES)
    assert taken < 4 * HEADER_BYTES and got.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


@pytest.mark.parametrize("around", [b"0\r\n", b"5;"])
def test_what_goes_on_and_on_around_a_body_is_ended(either: Running, around: bytes) -> None:
    """The lines after the last chunk, and the words beside a chunk's length, are no body that the gate could measure."""
    token = either.tokens["ana"]
    begin = f"POST /v1/answers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"X: " + b"a" * 60_000 + b"\r\n" if around == b"0\r\n" else b"a" * 60_000
    taken, _ = sent_until_it_ends(either, begin.encode() + around, piece, 8 * FRAMING_BYTES)
    assert taken <= 2 * FRAMING_BYTES


def test_a_body_in_tiny_chunks_is_a_body_all_the_same(either: Running) -> None:
    body = json.dumps({"dataset": "people", "sql": "SELECT COUNT(*) FROM people"}).encode()
    head = (
        f"POST /v1/answers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {either.tokens['ana']}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body) + b"0\r\n\r\n"
    assert raw(either, head.encode() + chunks).startswith(b"HTTP/1.1 200")


def test_several_requests_on_one_connection_are_measured_one_by_one(either: Running) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (HEADER_BYTES // 2) + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", either.port), timeout=10) as connection:
        for _ in range(6):
            for half in (one[:5000], one[5000:]):
                connection.sendall(half)
                time.sleep(0.02)
            got = b""
            while not got.endswith(b"\r\n\r\nok\n"):
                got += (part := connection.recv(65_536))
                assert part
            assert got.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "without",
    [
        pytest.param("", id="as-installed"),
        # The same wait of real time once more.
        pytest.param("httptools", id="h11", marks=pytest.mark.slow),
    ],
)
def test_clients_that_send_nothing_or_slowly_are_let_go(tmp_path: Path, without: str) -> None:
    with running(write_service(tmp_path, limits="body_seconds = 0.5"), without=without) as service:
        started = time.monotonic()
        slow = f"POST /v1/answers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.tokens['ana']}\r\n"
        got = raw(service, slow.encode() + b"Content-Length: 50\r\n\r\n{", 60)
        assert got.startswith(b"HTTP/1.1 408") and time.monotonic() - started < 40
        started = time.monotonic()
        assert raw(service, b"GET /healthz HTTP/1.1\r\nHost:", 60) == b""
        assert time.monotonic() - started < 40
        assert service.call("GET", "/healthz", who=None).status == 200
