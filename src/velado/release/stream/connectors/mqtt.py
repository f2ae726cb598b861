"""MQTT as a source and as a sink, over paho.

A broker does not send a message again once it is confirmed, so each stands in the journal first; what a crash left unconfirmed comes twice.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from velado.errors import OutputError
from velado.release.stream.connectors.connector import (
    MOST,
    Arrived,
    CaFile,
    Login,
    PasswordFile,
    Place,
    Queue,
    SinkKind,
    SourceKind,
    User,
)
from velado.release.stream.connectors.journal import Journal, Replay
from velado.release.stream.connectors.mqtt_client import confirm, connect, mqtt_client
from velado.release.stream.connectors.state_file import Parcel
from velado.settings import Setting, settings
from velado.text import say

_GATHER, _PAUSE = 0.1, 0.005
"""Seconds in which messages are gathered and confirmed before they are handed on, and between two looks."""


@settings(section="source")
class FromMqtt(SourceKind):
    """Messages of a topic.

    >>> FromMqtt(topic="ward/#").port
    1883
    """

    name: ClassVar[str] = "mqtt"
    again: ClassVar[bool] = True
    topic: Annotated[str, Setting("the topic to read, which may have wildcards", items=1)]
    host: Annotated[str, Setting("the broker's host", items=1)] = "127.0.0.1"
    port: Annotated[int, Setting("the broker's port", ge=1, le=65_535)] = 1883
    client: Annotated[str, Setting("the name of the session", items=1)] = "velado"
    username: User = ""
    password_file: PasswordFile = ""
    ca_file: CaFile = ""
    queue: Queue = 20_000
    durable: Annotated[
        bool, Setting("write the journal through to the disk before a message is confirmed")
    ] = True

    @property
    def whole(self) -> bool:
        """More may always come."""
        return False

    @property
    def login(self) -> Login:
        """Who we are to the broker."""
        return Login(self.username, self.password_file, self.ca_file)

    def open(self, place: Place, position: Any) -> MqttSource:
        """The session goes on where it was, after what the journal holds."""
        journal = Journal(place.private / "journal", self.durable)
        return MqttSource(self, place.folder, journal, position)


@settings(section="sink")
class ToMqtt(SinkKind):
    """Messages of two topics. Its broker is its own, or that of a source of MQTT where it names none.

    >>> ToMqtt(topic="public/ward").beside(FromMqtt(topic="ward/#", host="ward.example", username="u"))[0]
    'ward.example'
    """

    name: ClassVar[str] = "mqtt"
    topic: Annotated[str, Setting("tables go to TOPIC/table, manifests to TOPIC/manifest", items=1)]
    host: Annotated[
        str, Setting("the broker's host; without host and port that of a source of mqtt, else this machine")
    ] = ""
    port: Annotated[int | None, Setting("the broker's port, 1883 where a host is named", ge=1, le=65_535)] = (
        None
    )
    client: Annotated[str, Setting("the name of the session; without it one made of the source's")] = ""
    username: User = ""
    password_file: PasswordFile = ""
    ca_file: CaFile = ""

    def beside(self, source: SourceKind) -> tuple[str, int, Login, str]:
        """Host, port, who we are and the session's name; of *source* is what may be: never its password for another broker."""
        login = Login(self.username, self.password_file, self.ca_file, "sink")
        client = self.client
        if not isinstance(source, FromMqtt):
            return self.host or "127.0.0.1", self.port or 1883, login, client or "velado-out"
        client = client or f"{source.client}-out"
        if self.host or self.port:
            return self.host or "127.0.0.1", self.port or 1883, login, client
        login = Login(
            self.username or source.username,
            self.password_file if self.username else source.password_file,
            self.ca_file or source.ca_file,
        )
        return source.host, source.port, login, client

    def open(self, place: Place) -> MqttSink:
        """Connected to the broker."""
        return MqttSink(self, place.asked.source, place.folder)


class MqttSource:
    """Messages of a topic with QoS 1, each confirmed when it stands in the journal; a full queue holds the broker back."""

    def __init__(self, asked: FromMqtt, folder: Path, journal: Journal, position: Any) -> None:
        self.ended = False
        self._journal, self._replay = journal, Replay(journal, position or 0)
        self._waiting, self._most = deque[Any](), asked.queue
        self._arrived, self._closed, self._polled = threading.Event(), False, threading.Event()
        self._topic = asked.topic
        self._client = mqtt_client(asked.login, folder, asked.client)
        self._client.on_connect = self._connected
        self._client.on_message = self._take
        connect(self._client, asked.host, asked.port, "source")

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        client.subscribe(self._topic, qos=1)

    def poll(self, seconds: float) -> Arrived:
        """What the journal still holds from before, then what arrives."""
        again = self._replay.some()
        if again is not None:
            return again
        self._polled.set()
        try:
            return self._gathered(seconds)
        finally:
            self._polled.clear()

    def _gathered(self, seconds: float) -> Arrived:
        payloads: list[bytes] = []
        times: list[float] = []
        until = time.monotonic() + _GATHER
        while messages := self._there(seconds if not payloads else 0):
            fresh = [bytes(message.payload) for message in messages]
            payloads += fresh
            times += [time.time()] * len(fresh)
            self._journal.append(fresh, times[-len(fresh) :])
            confirm(self._client, messages)
            if len(payloads) >= MOST or time.monotonic() > until:
                break
            time.sleep(_PAUSE)  # a batch costs the same however few are in it
        return Arrived(payloads, times, self._journal.end)

    def _take(self, client: Any, userdata: Any, message: Any) -> None:
        """In the client's thread, which reads no further while the queue is full, or while windows are made: it would only be in their way."""
        while not self._closed and not (len(self._waiting) < self._most and self._polled.wait(_PAUSE)):
            if len(self._waiting) >= self._most:
                time.sleep(_PAUSE)
        self._waiting.append(message)
        if not self._arrived.is_set():
            self._arrived.set()

    def _there(self, seconds: float) -> list[Any]:
        """The messages that wait, after so long for a first one; an event that is set too often only ends a wait early."""
        if not self._waiting:
            self._arrived.wait(seconds)
        self._arrived.clear()
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]

    def settled(self, position: Any) -> None:
        """Journal files that end before *position* are removed."""
        self._journal.trim(position or 0)

    def close(self) -> None:
        """The session stays with the broker, which keeps what comes."""
        self._closed = True
        self._client.disconnect()
        self._client.loop_stop()
        self._journal.close()


class MqttSink:
    """Tables to TOPIC/table, manifests to TOPIC/manifest, with QoS 1: a reader may get the same bytes twice, and keeps one."""

    def __init__(self, asked: ToMqtt, source: SourceKind, folder: Path) -> None:
        self._topic = asked.topic
        host, port, login, client = asked.beside(source)
        self._client = mqtt_client(login, folder, client)
        connect(self._client, host, port, login.section)

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The broker has confirmed tables and manifests."""
        for parcel in parcels:
            self._published(parcel)

    def _published(self, parcel: Parcel) -> None:
        parts: list[tuple[str, Any]] = [("table", parcel.table), ("manifest", parcel.manifest)]
        for name, data in parts:
            if data is None:
                continue
            told = self._client.publish(f"{self._topic}/{name}", data, qos=1)
            told.wait_for_publish(30)
            if not told.is_published():
                raise OutputError(
                    say("The broker did not confirm window {number}.", number=parcel.number),
                    "Whether it was published is not known; it is handed over again at the next start.",
                    "Check the broker, and start the stream again.",
                )

    def close(self) -> None:
        """The client has left."""
        self._client.disconnect()
        self._client.loop_stop()
