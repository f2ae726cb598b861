"""How long and how large a request may be while it is still arriving, before any route or gate sees it.

Uvicorn reads HTTP with httptools where that is installed and with h11 where it is not. h11 limits by itself what it holds of
an event that is not whole; llhttp inside httptools calls back with every piece, so here those pieces are counted.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from velado.apps.web.gate import HEADER_BYTES

FRAMING_BYTES = 1 << 20
"""The most that may stand around a body: the lengths of its chunks and what follows the last one."""


class Patience(asyncio.Protocol):
    """Ends a connection whose request line and headers do not arrive within *seconds*; mixed into Uvicorn's protocol."""

    seconds: ClassVar[float]
    cycle: Any
    loop: Any
    transport: Any
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """The time begins."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """The time ends with a request whose headers are whole, and begins again with the first piece of the next."""
        super().data_received(data)
        # There is no cycle before the first request.
        if not getattr(self.cycle, "response_complete", True):
            self._stop()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


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


def patient_protocol(patience: float) -> type[asyncio.Protocol]:
    """The fastest of Uvicorn's HTTP protocols that is installed, with these limits."""
    mixed: type[Patience]
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Base

        mixed = Measured
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Base  # type: ignore[assignment]

        mixed = Patience
    return type("PatientProtocol", (mixed, Base), {"seconds": patience})
