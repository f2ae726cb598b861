"""Both ends of HTTPS between parties: a server with the least of HTTP, and a sender that offers every message until it is taken.

Three requests exist: POST /v1/certificate, an introduction (see `_mutual_tls`), and, for those whose certificate the job pins,
POST /v1/messages and POST /v1/noted, by which a sender says that it knows its last message arrived. One request a connection.
There is a limit on everything a stranger can make the server do: handshake, head and body each have a time by which they
must be complete, however slowly bytes drip in; a connection above the most at once, or above what one address may hold
without a whole request, is closed unread.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from velado.data.staging import reason_of
from velado.errors import KeyRefused, OutputError
from velado.learning.net._journal import PartyLog
from velado.learning.net._mutual_tls import (
    LARGEST_CERTIFICATE,
    Pins,
    check_server,
    check_validity,
    client_context,
    server_context,
)
from velado.learning.net.half_open import HalfOpen, network_of
from velado.learning.net.identity import Identity, fingerprint
from velado.text import say

LONGEST_HEAD = 4096
HEAD_SECONDS = 5.0
BODY_SECONDS = 60.0
FEWEST_HALF_OPEN = 8
_PHRASES = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
_PHRASES |= {408: "Request Timeout", 409: "Conflict", 411: "Length Required", 413: "Content Too Large"}
_PHRASES |= {503: "Service Unavailable"}

Accept = Callable[[str, bytes], tuple[int, str]]


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Server:
    """Listens until it is closed; what an authenticated party posts goes to *accept*, whose answer it is given."""

    def __init__(
        self,
        identity: Identity,
        pins: Pins,
        address: tuple[str, int],
        accept: Accept,
        largest_body: int,
        audit: PartyLog,
        noted: Callable[[str], None],
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        self._identity, self._pins, self._accept, self._audit = identity, pins, accept, audit
        self._noted = noted
        self._largest, self._head_seconds = largest_body, head_seconds
        self._known: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._context = server_context(identity, self._known)
        self._places = threading.BoundedSemaphore(2 * len(pins.signing) + 32)
        # All parties may stand behind one address; whatever it holds, the others have the rest of the places.
        self._half_open = HalfOpen(max(FEWEST_HALF_OPEN, 2 * len(pins.signing)))
        self._closed = threading.Event()
        self._busy = 0
        self._idle = threading.Condition()
        try:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self._socket = socket.create_server(address, family=family, backlog=128)
        except OSError as error:
            raise OutputError(
                say(
                    "Nothing can listen at {address}:{address_2} ({strerror}).",
                    address=address[0],
                    address_2=address[1],
                    strerror=reason_of(error),
                ),
                "The other parties could not reach this one.",
                "Stop what uses the port, or give --listen with the address of this machine.",
            ) from None
        self._socket.settimeout(0.25)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._listen, name="server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The port is free, and who was being answered has the answer, unless it took more than a few seconds."""
        self._closed.set()
        self._thread.join(timeout=5)
        self._socket.close()
        with self._idle:
            self._idle.wait_for(lambda: self._busy == 0, timeout=self._head_seconds)

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                connection, (address, *_) = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                # Out of file handles, or the caller left before it was answered: the next one may do better.
                self._closed.wait(0.05)
                continue
            network = network_of(str(address))
            if not self._half_open.take(network):
                connection.close()
                self._audit.write("refused", reason="too many unfinished requests from one address")
                continue
            if not self._places.acquire(blocking=False):
                connection.close()
                self._half_open.free(network)
                self._audit.write("refused", reason="too many connections at once")
                continue
            with self._idle:
                self._busy += 1
            threading.Thread(target=self._serve, args=(connection, network), daemon=True).start()

    def _serve(self, connection: socket.socket, network: str) -> None:
        # A whole request frees its place before it is answered, anything else when the connection ends.
        with contextlib.ExitStack() as place:
            place.callback(self._half_open.free, network)
            self._secure(connection, place.close)

    def _secure(self, connection: socket.socket, whole: Callable[[], None]) -> None:
        try:
            with connection:
                connection.settimeout(self._head_seconds)
                with self._context.wrap_socket(connection, server_side=True) as secured:
                    self._answer(secured, whole)
        except ssl.SSLError as error:
            self._audit.write("refused", reason=f"handshake: {_sentence(error)}")
        except OSError:
            self._audit.write("refused", reason="the connection broke off or was too slow")
        finally:
            self._places.release()
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def _answer(self, connection: ssl.SSLSocket, whole: Callable[[], None]) -> None:
        der = connection.getpeercert(binary_form=True)
        peer = None if der is None else self._pins.by_certificate.get(fingerprint(der))
        try:
            if der is not None:
                if peer is None:
                    raise _Refused(403, "The certificate is not of a party of this job.")
                _valid(der, peer)
            status, reason = self._handle(connection, peer, whole)
        except _Refused as refused:
            status, reason = refused.status, refused.reason
            self._audit.write("refused", peer=peer, reason=reason)
        text = reason.encode("ascii", "replace")[:500]
        head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        connection.settimeout(self._head_seconds)
        connection.sendall(head.encode() + f"Content-Length: {len(text)}\r\n\r\n".encode() + text)

    def _handle(
        self, connection: ssl.SSLSocket, peer: str | None, whole: Callable[[], None]
    ) -> tuple[int, str]:
        reader = _Reader(connection)
        head = reader.until(b"\r\n\r\n", LONGEST_HEAD, self._head_seconds)
        method, path, size = _parse(head)
        if path not in ("/v1/messages", "/v1/certificate", "/v1/noted"):
            raise _Refused(404, "There is nothing at this path.")
        if method != "POST":
            raise _Refused(405, "Only POST is answered.")
        if path == "/v1/certificate":
            if size > LARGEST_CERTIFICATE:
                raise _Refused(413, "A certificate is not that large.")
            der = reader.exactly(size, self._head_seconds)
            whole()
            return self._introduce(der)
        if peer is None:
            raise _Refused(403, "No certificate was shown.")
        if path == "/v1/noted" and size == 0:
            whole()
            self._noted(peer)
            return 200, "noted"
        if size > self._largest or path == "/v1/noted":
            raise _Refused(413, "The message is larger than the job allows.")
        body = reader.exactly(size, BODY_SECONDS)
        whole()
        return self._accept(peer, body)

    def _introduce(self, der: bytes) -> tuple[int, str]:
        name = self._pins.by_certificate.get(fingerprint(der))
        if name is None:
            raise _Refused(403, "The certificate is not of a party of this job.")
        _valid(der, name)
        with self._lock:
            if name not in self._known:
                self._known[name] = der
                self._context = server_context(self._identity, self._known)
                self._audit.write("introduced", peer=name)
        return 200, "known"


class _Reader:
    """Reads from a connection with a time limit for the whole, not for each byte."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection = connection
        self._held = bytearray()

    def until(self, mark: bytes, most: int, seconds: float) -> bytes:
        """What comes before *mark*."""
        end = time.monotonic() + seconds
        while (at := self._held.find(mark)) < 0:
            if len(self._held) > most:
                raise _Refused(400, "The head of the request is too long.")
            self._more(end, 4096)
        head = bytes(self._held[:at])
        del self._held[: at + len(mark)]
        return head

    def exactly(self, count: int, seconds: float) -> bytes:
        """The next *count* bytes."""
        end = time.monotonic() + seconds
        while len(self._held) < count:
            self._more(end, min(1 << 16, count - len(self._held)))
        return bytes(self._held[:count])

    def _more(self, end: float, most: int) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise _Refused(408, "The request took too long.")
        self._connection.settimeout(left)
        try:
            data = self._connection.recv(most)
        except TimeoutError:
            raise _Refused(408, "The request took too long.") from None
        if not data:
            raise _Refused(400, "The request broke off.")
        self._held += data


def _parse(head: bytes) -> tuple[str, str, int]:
    """Method, path and length of a request; everything unusual is refused rather than interpreted."""
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, path, version = first.split(" ")
    except (UnicodeDecodeError, ValueError):
        raise _Refused(400, "This is not a request.") from None
    headers = [
        (name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
    ]
    lengths = [value for name, value in headers if name == "content-length"]
    if version != "HTTP/1.1" or any(name == "transfer-encoding" for name, _ in headers):
        raise _Refused(400, "Only plain HTTP/1.1 with a length is read.")
    if method == "POST" and (len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 12):
        raise _Refused(411, "The request does not say how long it is.")
    return method, path, int(lengths[0]) if method == "POST" else 0


def _valid(der: bytes, name: str) -> None:
    try:
        check_validity(der, name)
    except KeyRefused as error:
        raise _Refused(403, error.what) from None


def _sentence(error: ssl.SSLError) -> str:
    """OpenSSL's short reason, which holds nothing of what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_message:
        return str(error.verify_message)
    return str(error.reason or "failed").replace("_", " ").lower()


# The calling end: every message is offered to its receiver, in order, until it is acknowledged.

SECONDS = 30.0
ABORT = "abort"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Undelivered(Exception):
    """Why an attempt to deliver failed, in words that hold no content."""


class Post:
    """Posts one envelope to one party; its certificate is compared before anything is sent."""

    def __init__(self, identity: Identity, pins: Pins) -> None:
        self._identity, self._pins = identity, pins
        self._own, self._anonymous = client_context(identity), client_context(None)
        self._introduced: set[str] = set()

    def deliver(self, peer: str, data: bytes) -> None:
        """The party has the envelope on its disk; Undelivered or KeyRefused where not."""
        if peer not in self._introduced:
            self._request(peer, self._anonymous, "/v1/certificate", self._identity.certificate)
            self._introduced.add(peer)
        try:
            self._request(peer, self._own, "/v1/messages", data)
        except Undelivered:
            # It may have been started anew and not know us any more.
            self._introduced.discard(peer)
            raise

    def note(self, peer: str) -> None:
        """The party knows that we know that our last message arrived, if it can be told."""
        self._request(peer, self._own, "/v1/noted", b"")

    def _request(self, peer: str, context: ssl.SSLContext, path: str, data: bytes) -> None:
        host, port = self._pins.addresses[peer]
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
        try:
            connection.connect()
            check_server(connection.sock.getpeercert(binary_form=True), self._pins, peer)
            connection.request("POST", path, body=data, headers={"Content-Type": "application/octet-stream"})
            answer = connection.getresponse()
            reason = answer.read(500).decode("ascii", "replace")
            status = answer.status
        except ConnectionRefusedError:
            raise Undelivered("nobody answers at its address") from None
        except ssl.SSLError:
            raise Undelivered("it ended the handshake") from None
        except TimeoutError:
            raise Undelivered("it did not answer in time") from None
        except (OSError, http.client.HTTPException, UnicodeError):
            raise Undelivered("the connection failed") from None
        finally:
            connection.close()
        if status != 200:
            clean = "".join(c if c.isprintable() else "?" for c in reason)
            raise Undelivered(f"it refused: {clean}")


@dataclass(frozen=True)
class Letter:
    """An envelope on its way; *last* marks what a role said in the step in which it had its result."""

    number: int
    kind: str
    data: bytes
    last: bool


class Outbox:
    """Letters to each party, in order; one thread a party offers the first of them until it is taken."""

    def __init__(self, post: Post, kept: Callable[[str, int], None], audit: PartyLog) -> None:
        self._post, self._kept, self._audit = post, kept, audit
        self._letters: dict[str, deque[Letter]] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self.reasons: dict[str, str] = {}
        self.reached: set[str] = set()

    def put(self, peer: str, letter: Letter) -> None:
        """The letter is on its way."""
        with self._changed:
            if peer not in self._letters:
                self._letters[peer] = deque()
                threading.Thread(target=self._offer, args=(peer,), name=f"to {peer}", daemon=True).start()
            self._letters[peer].append(letter)
            self._changed.notify_all()

    def owed(self, only_last: bool) -> list[str]:
        """Parties that letters wait for; with *only_last* those that a result waits for.

        A party that has its result needs no answer to what it said before: the result could not be there otherwise.
        """
        with self._changed:
            return sorted(
                peer
                for peer, letters in self._letters.items()
                if (any(letter.last for letter in letters) if only_last else letters)
            )

    def wait(self, seconds: float) -> None:
        """Returns when a letter was taken, or after so many seconds."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Nothing more is offered."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()

    def _offer(self, peer: str) -> None:
        pause = FIRST_PAUSE
        while (letter := self._next(peer)) is not None:
            try:
                self._post.deliver(peer, letter.data)
                self._kept(peer, letter.number)
            except (Undelivered, KeyRefused, OutputError) as error:
                reason = error.what if isinstance(error, KeyRefused | OutputError) else str(error)
                if self.reasons.get(peer) != reason:
                    self._audit.write("waiting", peer=peer, reason=reason)
                self.reasons[peer] = reason
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self.reasons.pop(peer, None)
            self._audit.write(
                "sent", peer=peer, kind=letter.kind, number=letter.number, bytes=len(letter.data)
            )
            if letter.last and letter.kind != ABORT:
                # If it cannot be told, it waits a few seconds in vain before it leaves: nothing is lost.
                with contextlib.suppress(Undelivered, KeyRefused):
                    self._post.note(peer)
            with self._changed:
                self.reached.add(peer)
                self._letters[peer].popleft()
                self._changed.notify_all()

    def _next(self, peer: str) -> Letter | None:
        with self._changed:
            while not self._letters[peer] and not self._closed.is_set():
                self._changed.wait()
            return None if self._closed.is_set() else self._letters[peer][0]
