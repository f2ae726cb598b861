"""Every kind of source and sink: a new one is a file beside this one and a line here."""

from __future__ import annotations

from velado.release.stream.connectors.connector import SinkKind, SourceKind
from velado.release.stream.connectors.files import Files
from velado.release.stream.connectors.folder import Folder
from velado.release.stream.connectors.kafka import FromKafka, ToKafka
from velado.release.stream.connectors.mqtt import FromMqtt, ToMqtt
from velado.release.stream.connectors.stdin import Stdin

SOURCES: tuple[type[SourceKind], ...] = (Stdin, Files, FromMqtt, FromKafka)
SINKS: tuple[type[SinkKind], ...] = (Folder, ToMqtt, ToKafka)
