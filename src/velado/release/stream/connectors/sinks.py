"""Sinks: where windows go. Each takes a window again without harm: after a crash the last ones are handed over once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from velado.data.staging import write_file
from velado.errors import OutputError
from velado.release.stream.connectors.mqtt_client import connect, mqtt_client
from velado.release.stream.connectors.state_file import Parcel
from velado.release.stream.stream_settings import StreamSettings
from velado.text import say


class Sink(Protocol):
    """What the loop publishes to."""

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The windows are published, or an error was raised; a second time changes nothing. *position*: how far the source was read."""
        ...

    def close(self) -> None:
        """Nothing more is published."""
        ...


class FolderSink:
    """`000001.csv` and `000001.json` for each window, written whole; the manifest last, so that it never lacks its table."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The files of the windows stand in the folder; one that stands there with other content is an error."""
        for parcel in parcels:
            self._written(parcel)

    def _written(self, parcel: Parcel) -> None:
        parts = [(".csv", parcel.table), (".json", parcel.manifest)]
        for ending, data in parts:
            path = self._folder / f"{parcel.number:06d}{ending}"
            if data is None:
                continue
            if not path.exists():
                write_file(path, data)
            elif path.read_bytes() != data:
                raise OutputError(
                    say("'{file}' stands in the folder of windows with other content.", file=path.name),
                    "It is of another stream, or was changed after it was published.",
                    "If these windows left, put back the state that knows of them; a new stream takes a folder of its own, and begins after the epoch.",
                )

    def close(self) -> None:
        """Nothing to close."""


class MqttSink:
    """Tables to TOPIC/table, manifests to TOPIC/manifest, with QoS 1: a reader may get the same bytes twice, and keeps one."""

    def __init__(self, asked: StreamSettings, folder: Path) -> None:
        self._topic = asked.sink.topic
        self._client = mqtt_client(asked, folder, f"{asked.source.client}-out")
        connect(self._client, asked)

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
