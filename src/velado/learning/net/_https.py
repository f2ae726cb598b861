"""Both ends of HTTPS between parties: the evaluator listens, with the least of HTTP, and everybody else calls.

One request exists, POST /v1/exchange, and it is answered over mutual TLS alone (`_mutual_tls`). A connection is kept for the
next one; an answer may wait until there is something to tell. There is a limit on everything a stranger can make the server
do: handshake, head and body each have a time by which they must be complete, however slowly bytes drip in; a connection above
the most at once, above what one address may hold without a whole request, or above what one party may hold, is closed unread.
"""

from __future__ import annotations

import contextlib
import http.client
import selectors
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable

from velado.data.staging import reason_of
from velado.errors import OutputError
from velado.learning.net._journal import PartyLog
from velado.learning.net._mutual_tls import Pins, check_server, client_context, server_context
from velado.learning.net.half_open import HalfOpen, network_of
from velado.learning.net.identity import Identity, fingerprint
from velado.learning.protocols.reasons import sentence_of
from velado.text import Sentence, say
from velado.text.languages import catalogue

PATH = "/v1/exchange"
LONGEST_HEAD = 4096
HEAD_SECONDS = 5.0
BODY_SECONDS = 60.0
IDLE_SECONDS = 90.0
FEWEST_HALF_OPEN = 8
MOST_OF_ONE = 4
_PHRASES = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
_PHRASES |= {408: "Request Timeout", 409: "Conflict", 411: "Length Required", 413: "Content Too Large"}
_PHRASES |= {503: "Service Unavailable"}

Exchange = Callable[[str, bytes], tuple[int, bytes]]


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Server:
    """Listens until it is closed; what a party posts goes to *exchange*, whose answer it is given."""

    def __init__(
        self,
        identity: Identity,
        pins: Pins,
        address: tuple[str, int],
        exchange: Exchange,
        largest_body: int,
        audit: PartyLog,
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        self._pins, self._exchange, self._audit = pins, exchange, audit
        self._largest, self._head_seconds = largest_body, head_seconds
        self._context = server_context(
            identity, (der for name, der in pins.certificates.items() if name != pins.evaluator)
        )
        self._places = threading.BoundedSemaphore(2 * len(pins.signing) + 32)
        # All parties may stand behind one address; whatever it holds, the others have the rest of the places.
        self._half_open = HalfOpen(max(FEWEST_HALF_OPEN, 2 * len(pins.signing)))
        self._closed = threading.Event()
        self._of_one: Counter[str] = Counter()
        self._open: set[socket.socket] = set()
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
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._idle.wait_for(lambda: not self._open, timeout=self._head_seconds)

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
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, network), daemon=True).start()

    def _serve(self, connection: socket.socket, network: str) -> None:
        # A whole request frees its place before it is answered, anything else when the connection ends.
        with contextlib.ExitStack() as place:
            place.callback(self._half_open.free, network)
            try:
                with connection:
                    connection.settimeout(self._head_seconds)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with self._context.wrap_socket(connection, server_side=True) as secured:
                        # The wrapped socket has the handle now.
                        with self._idle:
                            self._open.discard(connection)
                            self._open.add(secured)
                        try:
                            self._converse(secured, place.close)
                        finally:
                            with self._idle:
                                self._open.discard(secured)
            except ssl.SSLError as error:
                self._audit.write("refused", reason=f"handshake: {_sentence(error)}")
            except OSError:
                if not self._closed.is_set():
                    self._audit.write("refused", reason="the connection broke off or was too slow")
            finally:
                self._places.release()
                with self._idle:
                    self._open.discard(connection)
                    self._idle.notify_all()

    def _converse(self, connection: ssl.SSLSocket, whole: Callable[[], None]) -> None:
        """One request after the other, until one is refused, the caller leaves or nothing comes for too long."""
        peer = self._pins.by_certificate.get(fingerprint(connection.getpeercert(binary_form=True) or b""))
        if peer is None:  # the handshake takes the job's certificates alone
            return
        with self._idle:
            self._of_one[peer] += 1
            many = self._of_one[peer] > MOST_OF_ONE
        try:
            reader, first = _Reader(connection), True
            if many:
                # Whoever is answered and cut off while it still writes sees a broken connection instead of the reason.
                self._request(reader, first)
                raise _Refused(503, say("This party holds too many connections."))
            while not self._closed.is_set():
                try:
                    body = self._request(reader, first)
                except (_Refused, OSError):
                    if first or reader.held:
                        raise
                    return
                whole()
                first = False
                with self._idle:
                    self._busy += 1
                try:
                    status, answer = self._exchange(peer, body)
                    self._answer(connection, status, answer)
                finally:
                    with self._idle:
                        self._busy -= 1
                        self._idle.notify_all()
        except _Refused as refused:
            self._audit.write("refused", peer=peer, reason=refused.reason)
            self._answer(connection, refused.status, refused.reason.encode("ascii", "replace"), last=True)
        finally:
            with self._idle:
                self._of_one[peer] -= 1

    def _request(self, reader: _Reader, first: bool) -> bytes:
        """The body of the next request."""
        wait = self._head_seconds if first else IDLE_SECONDS
        head = reader.until(b"\r\n\r\n", LONGEST_HEAD, wait)
        method, path, size = _parse(head)
        if path != PATH:
            raise _Refused(404, say("There is nothing at this path."))
        if method != "POST":
            raise _Refused(405, say("Only POST is answered."))
        if size > self._largest:
            raise _Refused(413, say("The message is larger than the job allows."))
        return reader.exactly(size, BODY_SECONDS)

    def _answer(self, connection: ssl.SSLSocket, status: int, body: bytes, last: bool = False) -> None:
        head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: application/octet-stream\r\n"
        end = "Connection: close\r\n" if last else ""
        connection.settimeout(BODY_SECONDS)
        connection.sendall(f"{head}{end}Content-Length: {len(body)}\r\n\r\n".encode() + body)


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
                raise _Refused(400, say("The head of the request is too long."))
            self._more(end, 4096)
        head = bytes(self._held[:at])
        del self._held[: at + len(mark)]
        return head

    @property
    def held(self) -> bool:
        """Whether part of a request is here."""
        return bool(self._held)

    def exactly(self, count: int, seconds: float) -> bytes:
        """The next *count* bytes."""
        end = time.monotonic() + seconds
        while len(self._held) < count:
            self._more(end, min(1 << 16, count - len(self._held)))
        found = bytes(self._held[:count])
        del self._held[:count]
        return found

    def _more(self, end: float, most: int) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise _Refused(408, say("The request took too long."))
        self._connection.settimeout(left)
        try:
            data = self._connection.recv(most)
        except TimeoutError:
            raise _Refused(408, say("The request took too long.")) from None
        if not data:
            raise _Refused(400, say("The request broke off."))
        self._held += data


def _parse(head: bytes) -> tuple[str, str, int]:
    """Method, path and length of a request; everything unusual is refused rather than interpreted."""
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, path, version = first.split(" ")
    except (UnicodeDecodeError, ValueError):
        raise _Refused(400, say("This is not a request.")) from None
    headers = [
        (name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
    ]
    lengths = [value for name, value in headers if name == "content-length"]
    if version != "HTTP/1.1" or any(name == "transfer-encoding" for name, _ in headers):
        raise _Refused(400, say("Only plain HTTP/1.1 with a length is read."))
    if method == "POST" and (len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 12):
        raise _Refused(411, say("The request does not say how long it is."))
    return method, path, int(lengths[0]) if method == "POST" else 0


def _sentence(error: ssl.SSLError) -> str:
    """OpenSSL's short reason, which holds nothing of what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_message:
        return str(error.verify_message)
    return str(error.reason or "failed").replace("_", " ").lower()


# The calling end: one connection to the evaluator, kept.

SECONDS = 30.0
BEAT = 0.5


class Undelivered(Exception):
    """Why an attempt to deliver failed, in words that hold no content and are ours: nothing of an answer is repeated."""

    def __init__(self, reason: Sentence) -> None:
        super().__init__(reason)
        self.reason = reason


def refusal_in(status: int, body: bytes) -> Sentence:
    """Why the evaluator did not take a call: its own sentence where it is one of velado's, else the status alone.

    >>> refusal_in(404, b"There is nothing at this path."), refusal_in(418, b"Send us your key.")
    ('it refused: There is nothing at this path.', 'it refused with status 418')
    """
    text = body[:500].decode("ascii", "replace")
    if text in catalogue("pt").single and "{" not in text:
        return say("it refused: {reason}", reason=sentence_of(text))
    return say("it refused with status {status}", status=status)


class Caller:
    """Calls the evaluator; its certificate is compared before anything is sent. Used by one thread."""

    def __init__(self, identity: Identity, pins: Pins, stop: threading.Event) -> None:
        self._pins, self._stop = pins, stop
        self._context = client_context(identity)
        self._connection: http.client.HTTPSConnection | None = None

    def exchange(self, body: bytes, wait: float, most: int) -> bytes:
        """What the evaluator answers, at most *most* bytes, within *wait* seconds and some; else Undelivered or KeyRefused."""
        kept = self._connection is not None
        try:
            return self._exchange(body, wait, most)
        except Undelivered:
            # An idle connection may have been closed in between; a second try on a new one tells.
            if not kept or self._stop.is_set():
                raise
        return self._exchange(body, wait, most)

    def close(self) -> None:
        """No connection is left."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, body: bytes, wait: float, most: int) -> bytes:
        try:
            connection = self._connected()
            connection.request("POST", PATH, body=body, headers={"Content-Type": "application/octet-stream"})
            self._wait(connection.sock, wait + SECONDS)
            answer = connection.getresponse()
            told = answer.read(most + 1)
        except ConnectionRefusedError:
            self.close()
            raise Undelivered(say("nobody answers at its address")) from None
        except ssl.SSLError:
            self.close()
            raise Undelivered(say("it ended the handshake")) from None
        except TimeoutError:
            self.close()
            raise Undelivered(say("it did not answer in time")) from None
        except (OSError, http.client.HTTPException, UnicodeError):
            self.close()
            raise Undelivered(say("the connection failed")) from None
        except BaseException:
            self.close()
            raise
        if answer.will_close or len(told) > most:
            self.close()
        if len(told) > most:
            raise Undelivered(say("its answer is larger than the job allows"))
        if answer.status != 200:
            raise Undelivered(refusal_in(answer.status, told))
        return told

    def _connected(self) -> http.client.HTTPSConnection:
        if self._connection is None:
            host, port = self._pins.address
            made = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=self._context)
            self._connection = made
            made.connect()
            made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            check_server(made.sock.getpeercert(binary_form=True), self._pins)
        return self._connection

    def _wait(self, connection: ssl.SSLSocket, seconds: float) -> None:
        """The answer begins to come; a party that is told to stop does not wait for it."""
        end = time.monotonic() + seconds
        # Not `select`, which knows no descriptor above 1,023: a process may hold more.
        with selectors.DefaultSelector() as watch:
            watch.register(connection, selectors.EVENT_READ)
            while not connection.pending() and not watch.select(BEAT):
                if self._stop.is_set():
                    raise Undelivered(say("this party was told to stop"))
                if time.monotonic() > end:
                    raise TimeoutError
