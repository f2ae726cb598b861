"""Kafka: offsets are kept with the state of the stream, and go out in one transaction with the windows they led to.

The state's file is what the stream goes on from: it holds the next offset of every partition beside the windows on their way out, and
is replaced whole. A window's table and manifest and those offsets are one transaction of the broker. What a killed run may have left
behind is read back from the end of the topic before anything is sent: what stands there is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from velado.errors import InputError, MissingExtra, OutputError, ParameterError, VeladoError
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
    Topic,
    User,
)
from velado.release.stream.connectors.state_file import Parcel
from velado.settings import Setting, settings
from velado.text import say

_SECONDS = 30.0
"""How long a broker may take for one thing before the stream ends with an error."""
_TAIL = 10_000
"""Messages at the end of the topic that are read back at the start."""


def kafka_library() -> Any:
    """The module confluent_kafka, or an error that names the extra."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingExtra(
            "Kafka needs the library confluent-kafka, which is not installed.",
            "Messages of a broker cannot be read without it.",
            'Install it with: pip install "velado[stream]"',
        ) from None
    return confluent_kafka


@dataclass(frozen=True)
class Brokers:
    """Where brokers are and who we are to them."""

    servers: str
    login: Login

    def connection(self, folder: Path) -> dict[str, Any]:
        """As librdkafka wants it told; its own log stays silent: errors are raised."""
        told: dict[str, Any] = {"bootstrap.servers": self.servers, "log_level": 0}
        if self.login.ca_file:
            told["ssl.ca.location"] = str(folder / self.login.ca_file)
        if self.login.username:
            secret = self.login.password(folder) or ""
            told |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": self.login.username,
                "sasl.password": secret,
            }
        kinds = {(False, False): "plaintext", (True, False): "ssl", (False, True): "sasl_plaintext"}
        told["security.protocol"] = kinds.get(self.login.kind, "sasl_ssl")
        return told

    def silent(self) -> VeladoError:
        """The error for brokers that do not answer."""
        return InputError(
            say("The brokers at {servers} do not answer as they should.", servers=self.servers),
            "No record can be read or published.",
            say(
                "Check servers in [{section}], and that the brokers run and let this client in.",
                section=self.login.section,
            ),
        )


@settings(section="source")
class FromKafka(SourceKind):
    """Messages of all partitions of a topic.

    >>> FromKafka(servers="127.0.0.1:9092", topic="ward").client
    'velado'
    """

    name: ClassVar[str] = "kafka"
    again: ClassVar[bool] = True
    servers: Annotated[str, Setting("the brokers to begin with, as host:port, host:port", items=1)]
    topic: Topic
    client: Annotated[str, Setting("the consumer group", items=1)] = "velado"
    username: Annotated[User, Setting("the user; asked with SCRAM-SHA-512")] = ""
    password_file: PasswordFile = ""
    ca_file: CaFile = ""
    gaps: Annotated[
        Literal["refuse", "count"],
        Setting("messages the brokers removed before they were read: an error, or counted as lost"),
    ] = "refuse"
    queue: Queue = 20_000

    @property
    def whole(self) -> bool:
        """More may always come."""
        return False

    @property
    def brokers(self) -> Brokers:
        """Where it reads."""
        return Brokers(self.servers, Login(self.username, self.password_file, self.ca_file))

    def open(self, place: Place, position: Any) -> KafkaSource:
        """Every partition from its next offset on."""
        sink = place.asked.sink
        with_windows = isinstance(sink, ToKafka) and sink.commits_for(self)
        return KafkaSource(self, place.folder, position, commits=not with_windows)


@settings(section="sink")
class ToKafka(SinkKind):
    """Tables and manifests in one topic. Its brokers are its own, or those of a source of Kafka where it names none.

    >>> ToKafka(topic="out").beside(FromKafka(servers="ward.example:9092", topic="in"))[0].servers
    'ward.example:9092'
    """

    name: ClassVar[str] = "kafka"
    topic: Annotated[str, Setting("the topic that tables and manifests go to, in order", items=1)]
    servers: Annotated[
        str,
        Setting("the brokers to begin with, as host:port, host:port; without it those of a source of kafka"),
    ] = ""
    client: Annotated[
        str,
        Setting(
            "the beginning of the transactional id; without it the consumer group of a source of kafka, or velado"
        ),
    ] = ""
    username: Annotated[User, Setting("the user; asked with SCRAM-SHA-512")] = ""
    password_file: PasswordFile = ""
    ca_file: CaFile = ""

    def check(self, source: SourceKind) -> None:
        """There are brokers."""
        if not self.servers and not isinstance(source, FromKafka):
            raise ParameterError(
                "[sink] is of kind kafka and names no 'servers', and [source] is of another kind.",
                "Where to write cannot be known.",
                "Add servers to [sink].",
            )

    def commits_for(self, source: SourceKind) -> bool:
        """Whether offsets of *source* can go out with the windows, in one transaction: they are the same brokers."""
        return isinstance(source, FromKafka) and self.servers in ("", source.servers)

    def beside(self, source: SourceKind) -> tuple[Brokers, str]:
        """Its brokers, and its name among them; of *source* is what may be: never its password for other brokers."""
        login = Login(self.username, self.password_file, self.ca_file, "sink")
        if not isinstance(source, FromKafka):
            return Brokers(self.servers, login), self.client or "velado"
        client = self.client or source.client
        if self.servers:
            return Brokers(self.servers, login), client
        login = Login(
            self.username or source.username,
            self.password_file if self.username else source.password_file,
            self.ca_file or source.ca_file,
        )
        return Brokers(source.servers, login), client

    def open(self, place: Place) -> KafkaSink:
        """What a killed run may have left is read back."""
        return KafkaSink(self, place.asked.source, place.folder, place.asked.name)


class KafkaSource:
    """Messages of all partitions of a topic; the position is the next offset of each. What is not asked for stays with the broker."""

    def __init__(self, asked: FromKafka, folder: Path, position: Any, *, commits: bool) -> None:
        self.ended = False
        self._kafka = kafka_library()
        self._topic, self._at = asked.topic, {int(one): at for one, at in (position or {}).items()}
        # With a sink on the same brokers offsets go with the windows, in their transaction.
        self._commits = commits
        self._consumer = self._kafka.Consumer(
            asked.brokers.connection(folder)
            | {
                "group.id": asked.client,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "queued.min.messages": asked.queue,
                "queued.max.messages.kbytes": 65_536,
            }
        )
        self._lost = self._assigned(asked)

    def _assigned(self, asked: FromKafka) -> int:
        """All partitions are read from where the state says; how many messages the brokers had removed by then."""
        kafka, lost = self._kafka, 0
        try:
            found = self._consumer.list_topics(self._topic, timeout=_SECONDS).topics[self._topic]
            if found.error is not None or not found.partitions:
                raise InputError(
                    say("The brokers have no topic '{topic}'.", topic=self._topic),
                    "There is nothing to read records from.",
                    "Correct topic in [source], or create it.",
                )
            for one in found.partitions:
                at = kafka.TopicPartition(self._topic, one)
                least, _ = self._consumer.get_watermark_offsets(at, timeout=_SECONDS)
                lost += max(0, least - self._at.get(one, least))
                self._at[one] = max(least, self._at.get(one, least))
        except kafka.KafkaException:
            raise asked.brokers.silent() from None
        if lost and asked.gaps == "refuse":
            raise InputError(
                say("The brokers removed up to {lost:,} messages before they were read.", lost=lost),
                "They would be missing from every window, and nobody would know.",
                'Let the brokers keep messages longer; to go on without these, counted as lost, set gaps = "count" in [source].',
            )
        self._consumer.assign([kafka.TopicPartition(self._topic, one, at) for one, at in self._at.items()])
        return lost

    def poll(self, seconds: float) -> Arrived:
        """What the brokers have, each message with the time it was written at."""
        payloads, times = [], []
        for message in self._consumer.consume(MOST, seconds):
            if message.error() is not None:
                raise InputError(
                    say("Kafka ended the reading of '{topic}'.", topic=self._topic),
                    "Messages may have been removed before they were read, or the brokers refuse this reader.",
                    "Start the stream again: it goes on from its last window and says if something is missing.",
                )
            payloads.append(message.value() or b"")
            times.append(message.timestamp()[1] / 1000)
            self._at[message.partition()] = message.offset() + 1
        lost, self._lost = self._lost, 0
        return Arrived(payloads, times, {str(one): at for one, at in self._at.items()}, lost)

    def settled(self, position: Any) -> None:
        """The brokers know the offsets, for whoever watches how far behind a reader is; the stream itself never asks for them."""
        if self._commits and position:
            parts = [self._kafka.TopicPartition(self._topic, int(one), at) for one, at in position.items()]
            try:
                self._consumer.commit(offsets=parts, asynchronous=False)
            except self._kafka.KafkaException:
                return  # the state has them: nothing is lost or read twice for it

    def close(self) -> None:
        """The consumer has left."""
        self._consumer.close()


class KafkaSink:
    """Tables and manifests as messages of one topic, in order, each window whole or not at all for who reads what is committed."""

    def __init__(self, asked: ToKafka, source: SourceKind, folder: Path, name: str) -> None:
        self._kafka = kafka_library()
        self._topic, self._name = asked.topic, name
        self._brokers, client = asked.beside(source)
        # The offsets of the source that go out with the windows.
        self._offsets_of = source if isinstance(source, FromKafka) and asked.commits_for(source) else None
        told = self._brokers.connection(folder)
        self._reader = self._kafka.Consumer(
            told
            | {
                "group.id": client if self._offsets_of is None else self._offsets_of.client,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        self._producer = self._kafka.Producer(
            told | {"transactional.id": f"{client}-{name}", "message.max.bytes": 1 << 29}
        )
        try:
            self._producer.init_transactions(_SECONDS)  # ends what a killed run had begun
            self._there = self._read_back()
        except self._kafka.KafkaException:
            raise self._brokers.silent() from None

    def _read_back(self) -> dict[tuple[int, str], bytes]:
        """What stands at the end of the topic, by window and part."""
        part = self._kafka.TopicPartition(self._topic, 0)
        there: dict[tuple[int, str], bytes] = {}
        # Asking for the topic makes it where brokers make topics; without it there is nothing to read back.
        if not self._reader.list_topics(self._topic, timeout=_SECONDS).topics[self._topic].partitions:
            return {}
        least, end = self._reader.get_watermark_offsets(part, timeout=_SECONDS)
        if end <= least:
            return {}
        self._reader.assign([self._kafka.TopicPartition(self._topic, 0, max(least, end - _TAIL))])
        while True:
            message = self._reader.poll(_SECONDS)
            if message is None or message.error() is not None:
                ended = (
                    message is not None and message.error().code() == self._kafka.KafkaError._PARTITION_EOF
                )
                if not ended:
                    raise self._brokers.silent()
                self._reader.unassign()
                return there
            heads = dict(message.headers() or [])
            if heads.get("stream") == self._name.encode():
                there[int(heads["window"]), heads["part"].decode()] = message.value() or b""

    def deliver(self, parcels: Sequence[Parcel], position: Any) -> None:
        """The windows are in the topic, with the offsets of the records they were made of."""
        waiting = [(one.number, part, data) for one in parcels for part, data in _parts(one)]
        for number, part, data in waiting:
            if self._there.get((number, part), data) != data:
                raise OutputError(
                    say(
                        "Window {number} stands in '{topic}' with other content.",
                        number=number,
                        topic=self._topic,
                    ),
                    "It is of another stream, or of a former one whose state is gone.",
                    "Give this stream a name or a topic of its own.",
                )
        new = [one for one in waiting if one[:2] not in self._there]
        if not new and not parcels:
            return
        try:
            self._transaction(new, position)
        except (self._kafka.KafkaException, BufferError):
            raise OutputError(
                say("The brokers did not take window {number}.", number=parcels[-1].number),
                "It was not published; it is handed over again at the next start.",
                "Check the brokers, that they take messages as large as a window, and that no other run uses this client's name.",
            ) from None
        self._there = {}  # this process knows from here on what it has sent

    def _transaction(self, new: Sequence[tuple[int, str, bytes]], position: Any) -> None:
        producer, source = self._producer, self._offsets_of
        producer.begin_transaction()
        try:
            for number, part, data in new:
                heads = {"stream": self._name, "window": str(number), "part": part}
                producer.produce(self._topic, data, key=str(number), partition=0, headers=heads)
            if source is not None and position:
                offsets = [
                    self._kafka.TopicPartition(source.topic, int(one), at) for one, at in position.items()
                ]
                group = self._reader.consumer_group_metadata()
                producer.send_offsets_to_transaction(offsets, group, _SECONDS)
            producer.commit_transaction(_SECONDS)
        except self._kafka.KafkaException as wrong:
            if not wrong.args[0].fatal():
                producer.abort_transaction(_SECONDS)
            raise

    def close(self) -> None:
        """Producer and reader have left."""
        self._reader.close()


def _parts(parcel: Parcel) -> list[tuple[str, bytes]]:
    parts = [("table", parcel.table), ("manifest", parcel.manifest)]
    return [(part, data) for part, data in parts if data is not None]
