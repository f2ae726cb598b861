"""Header timeout, half-open limit and TLS of one connection: what holds before any route sees a request.

Mixed into Uvicorn's HTTP protocol, because its own options do none of it (docs/decisions/0014): a silent
connection stays open for ever, httptools reads headers without end, and one address may take all places.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from velado.learning.net.half_open import HalfOpen, network_of

HEADER_BYTES = 16_384
"""The most that request line and headers may take."""
FRAMING_BYTES = 1 << 20
"""The most that may stand around a body: the lengths of its chunks and what follows the last one."""
GRACE_SECONDS = 0.05
"""Many honest clients may connect in one moment, and their requests are read in the next. So a connection
above the limit has this long, and of such there may be as many again as the limit; any more end at once.
"""


class HeaderTimeout(asyncio.Protocol):
    """Ends a connection whose request line and headers do not arrive within *seconds*.

    A connection holds a place of its address from its beginning, and from the first piece of each later
    request, until the request is whole with its body. Without a place left for its address it ends too.

    >>> HeaderTimeout in guarded_protocol(10, 32, refused=lambda: None).__mro__
    True
    """

    seconds: ClassVar[float]
    half_open: ClassVar[HalfOpen]
    brief: ClassVar[HalfOpen]
    refused: ClassVar[staticmethod[[], None]]
    cycle: Any
    loop: Any
    transport: Any
    _timer: asyncio.TimerHandle | None = None
    _last_chance: asyncio.TimerHandle | None = None
    _network = ""
    _place: HalfOpen | None = None
    _ended = False

    def connection_made(self, transport: Any) -> None:
        """The time begins, and a place is taken."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._network = network_of(str(peer[0])) if isinstance(peer, tuple) and peer else ""
        self._wait()
        self._take()

    def data_received(self, data: bytes) -> None:
        """The time ends with a request's headers, and begins again with the first piece of the next."""
        super().data_received(data)
        # There is no cycle before the first request.
        answering = not getattr(self.cycle, "response_complete", True)
        if answering:
            self._stop()
        elif self._timer is None:
            self._wait()
        if answering and not self.cycle.more_body:
            self._free()
        else:
            self._take()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        self._ended = True
        self._stop()
        self._free()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take(self, last: bool = False) -> None:
        """A place; else, unless this is the *last* chance, a moment to become whole; else the end."""
        if self._place is not None or self._ended:
            return
        if self.half_open.take(self._network):
            self._place = self.half_open
        elif not last and self.brief.take(self._network):
            self._place = self.brief
            self._last_chance = self.loop.call_later(GRACE_SECONDS, self._take_or_end)
        else:
            self._ended = True
            self.refused()
            self.transport.abort()

    def _take_or_end(self) -> None:
        self._free()
        self._take(last=True)

    def _free(self) -> None:
        if self._last_chance is not None:
            self._last_chance.cancel()
            self._last_chance = None
        if self._place is not None:
            self._place.free(self._network)
            self._place = None


class HeaderLimit(HeaderTimeout):
    """Refuses a request whose headers, or what is around its body, grow beyond their limits as they arrive.

    h11 limits by itself what it holds of an event that is not whole; llhttp inside httptools calls back with
    every piece, so here those pieces are counted.

    >>> HeaderLimit()._most == HEADER_BYTES
    True
    """

    send_400_response: Any
    _beside = 0
    _most = HEADER_BYTES

    def data_received(self, data: bytes) -> None:
        """One more piece, of which what is no body is counted."""
        self._beside += len(data)
        super().data_received(data)
        if self._beside > self._most and not self.transport.is_closing():
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """A new request. What came in one piece with its beginning is one read, which the gate measures."""
        self._beside, self._most = 0, HEADER_BYTES
        super().on_message_begin()  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        """From here on a body may come."""
        self._beside, self._most = 0, FRAMING_BYTES
        super().on_headers_complete()  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        """A piece of the body, which the gate limits."""
        self._beside -= len(body)
        super().on_body(body)  # type: ignore[misc]


class SecuredTransport:
    """A transport whose other end speaks TLS: `write` encrypts, `received` gives what came as plain bytes.

    Left to the event loop, a connection reaches the protocol only after its handshake, and an address could
    hold any number before it (docs/decisions/0011). The cryptography is OpenSSL's; here bytes are carried.

    >>> class Outer:
    ...     def write(self, data): print("sent", len(data))
    ...     def is_closing(self): return False
    ...     def close(self): print("closed")
    >>> secured = SecuredTransport(Outer(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    >>> secured.write(b"nothing leaves before the handshake")
    >>> list(secured.received(b"GET / HTTP/1.1"))
    closed
    []
    """

    def __init__(self, outer: Any, context: ssl.SSLContext) -> None:
        self._outer, self._context = outer, context
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken = False

    def __getattr__(self, name: str) -> Any:
        """Everything that has nothing to do with bytes is the outer transport's."""
        return getattr(self._outer, name)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the outer transport knows, and that this one is secured."""
        return self._context if name == "sslcontext" else self._outer.get_extra_info(name, default)

    def received(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes that *data* completes; a peer that does not speak TLS, or no more, is let go."""
        self._incoming.write(data)
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            while not self._outer.is_closing() and (plain := self._tls.read(1 << 16)):
                yield plain
            self.close()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:
            # OpenSSL may have left an alert that says why.
            self._flush()
            self._outer.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypted and sent; nothing before the handshake, since nobody was asked anything."""
        if self._shaken and data and not self._outer.is_closing():
            self._tls.write(data)
            self._flush()

    def writelines(self, parts: Iterable[bytes]) -> None:
        """All parts, one after another."""
        self.write(b"".join(parts))

    def close(self) -> None:
        """The peer is told that nothing follows, and the connection ends once that is sent."""
        if self._shaken and not self._outer.is_closing():
            # It asks for the peer's own farewell, which nobody waits for.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._outer.close()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._outer.is_closing():
            self._outer.write(self._outgoing.read())


class OverTls(asyncio.Protocol):
    """Mixed in before an HTTP protocol, which then sees plain bytes; without *tls* it does nothing.

    >>> OverTls.tls is None
    True
    """

    tls: ClassVar[ssl.SSLContext | None] = None
    transport: Any

    def connection_made(self, transport: Any) -> None:
        """The handshake is the peer's to begin."""
        outer: Any = transport if self.tls is None else SecuredTransport(transport, self.tls)
        super().connection_made(outer)

    def data_received(self, data: bytes) -> None:
        """Decrypted, where there is TLS."""
        for plain in [data] if self.tls is None else self.transport.received(data):
            super().data_received(plain)


def guarded_protocol(seconds: float, half_open: int, refused: Callable[[], None]) -> type[OverTls]:
    """The fastest of Uvicorn's HTTP protocols that is installed, with these limits.

    Its *tls* may be set before it is used; *refused* is called for each connection beyond *half_open*.

    >>> guarded_protocol(10, 32, refused=lambda: None).__name__
    'Guarded'
    """
    bases: tuple[type, ...]
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        bases = (OverTls, HeaderLimit, HttpToolsProtocol)
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        bases = (OverTls, HeaderTimeout, H11Protocol)
    limits = {
        "seconds": seconds,
        "half_open": HalfOpen(half_open),
        "brief": HalfOpen(half_open),
        "refused": staticmethod(refused),
    }
    return type("Guarded", bases, limits)
