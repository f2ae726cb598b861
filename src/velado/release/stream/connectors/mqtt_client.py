"""The client of an MQTT broker: paho's, which reads what has arrived in one piece and confirms messages in one piece.

paho reads each message in three calls of the system and waits for the next one in a fourth, and sends each confirmation by itself: at one
record a message that is most of what a record costs. Here its socket is read 64 KiB at a time and paho is handed what it asks for from
memory. Should paho name its parts otherwise one day, all works as before, and slower.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from velado.errors import InputError, MissingExtra
from velado.release.stream.connectors.connector import Login
from velado.text import say

_PIECE = 1 << 16
_PUBACK = 0x40
_MOST_AT_ONCE = 4096
"""Messages read before the client may write again."""


class ReadAhead:
    """A socket whose bytes are fetched in large pieces and handed on in small ones; all else is the socket's.

    >>> import socket
    >>> here, there = socket.socketpair()
    >>> with here, there:
    ...     there.sendall(b"abc")
    ...     ahead = ReadAhead(here)
    ...     ahead.recv(1), ahead.pending(), ahead.recv(5)
    (b'a', 2, b'bc')
    """

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._data, self._at = b"", 0

    def recv(self, size: int) -> bytes:
        """At most *size* bytes: those that were fetched, or else of a new piece."""
        if self._at == len(self._data):
            self._data, self._at = self._socket.recv(max(_PIECE, size)), 0
        out = self._data[self._at : self._at + size]
        self._at += len(out)
        return out

    def pending(self) -> int:
        """The bytes that were fetched and not handed on: no `select` tells of these."""
        below = getattr(self._socket, "pending", None)
        return len(self._data) - self._at + (below() if below else 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


def mqtt_client(login: Login, folder: Path, name: str) -> Any:
    """A client of a broker, not yet connected; its session outlives it."""
    try:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion
    except ImportError:
        raise MissingExtra(
            "MQTT needs the library paho-mqtt, which is not installed.",
            "Messages of a broker cannot be read without it.",
            'Install it with: pip install "velado[stream]"',
        ) from None

    class Client(mqtt.Client):
        _ahead: ReadAhead | None = None

        def _create_socket(self) -> Any:
            self._ahead = ReadAhead(super()._create_socket())
            return self._ahead

        def loop_read(self, max_packets: int = 1) -> Any:
            for _ in range(_MOST_AT_ONCE):
                code = super().loop_read(max_packets)
                if code or self._ahead is None or not self._ahead.pending():
                    break
            return code

    client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, manual_ack=True)
    if login.ca_file:
        client.tls_set(str(folder / login.ca_file))
    if login.username:
        client.username_pw_set(login.username, login.password(folder))
    return client


def connect(client: Any, host: str, port: int, section: str) -> None:
    """Connected, and read in a thread of the client's own; or an error that names the section the address stands in."""
    try:
        client.connect(host, port)
    except OSError:
        raise InputError(
            say("The broker at {host}:{port} does not answer.", host=host, port=port),
            "No record can be read or published.",
            say("Check host and port in [{section}], and that the broker runs.", section=section),
        ) from None
    client.loop_start()


def confirm(client: Any, messages: Sequence[Any]) -> None:
    """The broker hears that *messages* stand on the disk: their confirmations, which have four bytes each, as one piece."""
    confirmed = [message.mid for message in messages if message.qos == 1]
    if confirmed and hasattr(client, "_packet_queue"):
        pieces = b"".join(struct.pack("!BBH", _PUBACK, 2, mid) for mid in confirmed)
        client._packet_queue(_PUBACK, pieces, 0, 1)
    else:
        for mid in confirmed:
            client.ack(mid, 1)
