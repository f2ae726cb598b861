"""How long and how large a request may be while it is still arriving, before any route or gate sees it, and how many may.

Uvicorn reads HTTP with httptools where that is installed and with h11 where it is not. h11 limits by itself what it holds of
an event that is not whole; llhttp inside httptools calls back with every piece, so here those pieces are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from velado.apps.web.gate import HEADER_BYTES
from velado.apps.web.tls import OverTls
from velado.learning.net.half_open import HalfOpen, network_of

FRAMING_BYTES = 1 << 20
"""The most that may stand around a body: the lengths of its chunks and what follows the last one."""


GRACE_SECONDS = 0.05
"""Many honest clients may connect in one moment, and their requests are read in the next. So a connection above the limit has
this long, and of such there may be as many again as the limit; any more end at once."""


class Patience(asyncio.Protocol):
    """Ends a connection whose request line and headers do not arrive within *seconds*; mixed into Uvicorn's protocol.

    A connection holds a place of its address from its beginning, and from the first piece of each later request, until
    the request is whole with its body. Where the address has no place left in *half_open*, it ends too.
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
        """The time ends with a request whose headers are whole, and begins again with the first piece of the next."""
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

    def _take(self) -> None:
        """A place; else a moment in which the request may still become whole; else the connection ends."""
        if self._place is not None or self._ended:
            return
        if self.half_open.take(self._network):
            self._place = self.half_open
        elif self.brief.take(self._network):
            self._place = self.brief
            self._last_chance = self.loop.call_later(GRACE_SECONDS, self._take_or_end)
        else:
            self._refuse()

    def _take_or_end(self) -> None:
        self._free()
        if self.half_open.take(self._network):
            self._place = self.half_open
        else:
            self._refuse()

    def _refuse(self) -> None:
        self._ended = True
        self.refused()
        self.transport.abort()

    def _free(self) -> None:
        if self._last_chance is not None:
            self._last_chance.cancel()
            self._last_chance = None
        if self._place is not None:
            self._place.free(self._network)
            self._place = None


class Measured(Patience):
    """Refuses a request whose headers, or whatever is around its body, grow beyond their limits while they arrive."""

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
        """A new request. What came in one piece with its beginning is one read at the most, and the gate measures it."""
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


def patient_protocol(patience: float, half_open: int, refused: Callable[[], None]) -> type[OverTls]:
    """The fastest of Uvicorn's HTTP protocols that is installed, with these limits; its *tls* may be set before it is used.

    *refused* is called for each connection that ends because its address holds too many without a whole request.
    """
    mixed: type[Patience]
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base

        mixed = Measured
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Base  # type: ignore[assignment]

        mixed = Patience
    limits = {
        "seconds": patience,
        "half_open": HalfOpen(half_open),
        "brief": HalfOpen(half_open),
        "refused": staticmethod(refused),
    }
    return type("PatientProtocol", (OverTls, mixed, Base), limits)
