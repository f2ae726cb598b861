"""TLS between a connection's bytes and the HTTP protocol, so that a handshake which stops half-way is seen and counted.

Left to the event loop, a connection reaches the protocol only after its handshake, and an address could hold any number before it.
The cryptography is OpenSSL's, through `ssl.MemoryBIO`; here bytes are carried from one side to the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

_MOST_AT_ONCE = 1 << 16


class SecuredTransport:
    """A transport whose other end speaks TLS: what is written is encrypted, and `received` gives what came as plain bytes."""

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
            while not self._outer.is_closing() and (plain := self._tls.read(_MOST_AT_ONCE)):
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
    """Mixed in before an HTTP protocol, which then sees plain bytes and a transport that encrypts; without *tls*, nothing."""

    tls: ClassVar[ssl.SSLContext | None] = None
    transport: Any

    def connection_made(self, transport: Any) -> None:
        """The handshake is the peer's to begin."""
        outer: Any = transport if self.tls is None else SecuredTransport(transport, self.tls)
        super().connection_made(outer)

    def data_received(self, data: bytes) -> None:
        """Decrypted, where there is TLS."""
        if self.tls is None:
            super().data_received(data)
            return
        for plain in self.transport.received(data):
            super().data_received(plain)
