"""Streams that are killed again and again and then run to their end: what was published, and what was lost or doubled."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from velado.release.stream.manifest import check_chain, digest

from .brokers import KafkaCluster, kafka_cluster, mosquitto
from .stream_trials import line

HERE = Path(__file__).parent
PEOPLE = 40
SCHEMA = """
[columns.who]
role = "identifier"
person = true
[columns.age]
role = "quasi"
kind = "numeric"
bounds = [0, 120]
[columns.sex]
role = "quasi"
[columns.tag]
role = "sensitive"
kind = "numeric"
identifier = "accept"
side_door = "accept"
reason = "the test tells records apart by it"
"""
STREAM = """
schema = "schema.toml"
key = "owner.key"
metrics = "metrics.prom"
[window]
by = "count"
size = 40
[people]
k = 3
[record]
id = "n"
[readings]
tag = ["list"]
"""


@dataclass(frozen=True)
class Killed:
    """How often a stream was killed, and of its records: how many are published, how many of those twice, how many are reported as
    held back (their class was given up, they waited too long), and how many are neither: lost."""

    kills: int
    records: int
    published: int
    twice: int
    reported: int
    lost: int
    windows: int


def points(count: int, seed: int) -> list[str]:
    """Orders for `killing.py`: half at a touch of the world, half at a moment."""
    drawn = random.Random(seed)
    return [
        f"events {drawn.randint(1, 45)}"
        if drawn.random() < 0.5
        else f"seconds {drawn.uniform(0.02, 1.5):.3f}"
        for _ in range(count)
    ]


WAYS = (
    ("files", "folder"),
    ("mqtt", "folder"),
    ("kafka", "kafka"),
    ("stdin", "folder"),
    ("files", "mqtt"),
    ("mqtt", "kafka"),
)
"""From which source to which sink; each kind that is registered is in one of them at least. The last has two brokers."""


def trial(way: tuple[str, str], folder: Path, windows: int, orders: list[str]) -> Killed:
    """A stream of that way, killed at each of *orders*, then let run to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "owner.key").write_bytes(bytes(range(40)))
    said = [
        line(f"p{one}", 20 + one, "FM"[one % 2], 1000 * window + one, n=window)
        for window in range(windows)
        for one in range(PEOPLE)
    ]
    (folder / "records.jsonl").write_bytes(b"\n".join(said) + b"\n")
    config = folder / "stream.toml"
    with ExitStack() as brokers:
        source, feed = _SOURCES[way[0]](brokers, folder)
        sink, read = _SINKS[way[1]](brokers, folder)
        config.write_text(f"{STREAM}[source]\n{source}[sink]\n{sink}")
        feed(config, said)
        kills = _orders(config, orders, "records.jsonl" if way[0] == "stdin" else "")
        manifests, tables = read()
    return _judged(folder, said, manifests, tables, kills)


def _orders(config: Path, orders: list[str], stdin: str = "") -> int:
    """How many of the runs were killed; the last one must end by itself."""
    run = subprocess.run(
        [
            sys.executable,
            str(HERE / "killing.py"),
            str(config),
            *([str(config.parent / stdin)] if stdin else []),
        ],
        input="\n".join([*orders, "end"]).encode(),
        stdout=subprocess.PIPE,
        timeout=580,
        check=True,
    )
    ends = run.stdout.decode().split("\n")[:-1]
    assert ends[-1] == "ended", ends
    return ends.count("killed")


Feed = Callable[[Path, list[bytes]], None]
Found = tuple[list[bytes], dict[int, bytes]]
"""Manifests in their order, and tables by the number of their window."""


def _nothing(config: Path, said: list[bytes]) -> None:
    """The records lie there already."""


def _from_mqtt(brokers: ExitStack, folder: Path) -> tuple[str, Feed]:
    """The broker holds every record before the first kill, and delivers again what was not confirmed."""
    port = _mosquitto(brokers, folder)

    def feed(config: Path, said: list[bytes]) -> None:
        _orders(config, [])  # the session begins with the first subscription
        device = _client(port, "device")
        last = None
        for record in said:
            last = device.publish("ward/1", record, qos=1)
        assert last is not None
        last.wait_for_publish(60)
        time.sleep(0.3)
        device.disconnect()
        device.loop_stop()

    return f'kind = "mqtt"\nport = {port}\ntopic = "ward/#"\n', feed


def _from_kafka(brokers: ExitStack, folder: Path) -> tuple[str, Feed]:
    cluster = _cluster(brokers)
    return (
        f'kind = "kafka"\nservers = "{cluster.servers}"\ntopic = "in"\n',
        lambda config, said: cluster.fill("in", config.parent / "records.jsonl"),
    )


def _to_folder(brokers: ExitStack, folder: Path) -> tuple[str, Callable[[], Found]]:
    def read() -> Found:
        parts = {path.name: path.read_bytes() for path in (folder / "windows").iterdir()}
        manifests = [data for name, data in sorted(parts.items()) if name.endswith("json")]
        return manifests, {int(name[:6]): data for name, data in parts.items() if name.endswith("csv")}

    return 'kind = "folder"\n', read


def _to_mqtt(brokers: ExitStack, folder: Path) -> tuple[str, Callable[[], Found]]:
    """A reader who keeps one of the messages that came twice, as the how-to says: the same bytes under the same number."""
    port = _mosquitto(brokers, folder)
    reader, tables, manifests = _client(port, "reader"), {}, {}

    def take(client: object, userdata: object, message: Any) -> None:
        data = bytes(message.payload)
        if message.topic.endswith("/table"):
            tables[digest(data)] = data
        else:
            number = json.loads(data)["window"]
            assert manifests.setdefault(number, data) == data, "a window came twice with other bytes"

    reader.on_message = take
    reader.subscribe("out/#", qos=1)

    def read() -> Found:
        until, seen = time.time() + 2, -1
        while time.time() < until:  # nothing more for two seconds
            if len(manifests) != seen:
                until, seen = time.time() + 2, len(manifests)
            time.sleep(0.1)
        reader.disconnect()
        reader.loop_stop()
        shown = {number: json.loads(data)["table_sha256"] for number, data in manifests.items()}
        return [manifests[one] for one in sorted(manifests)], {
            number: tables[one] for number, one in shown.items() if one is not None
        }

    return f'kind = "mqtt"\nport = {port}\ntopic = "out"\n', read


def _to_kafka(brokers: ExitStack, folder: Path) -> tuple[str, Callable[[], Found]]:
    cluster = _cluster(brokers)

    def read() -> Found:
        found = cluster.read("out")
        assert len({(heads["window"], heads["part"]) for heads, _ in found}) == len(found), (
            "a window stands twice"
        )
        tables = {int(heads["window"]): data for heads, data in found if heads["part"] == "table"}
        return [data for heads, data in found if heads["part"] == "manifest"], tables

    return f'kind = "kafka"\nservers = "{cluster.servers}"\ntopic = "out"\n', read


_SOURCES = {
    "files": lambda brokers, folder: ('kind = "files"\npath = "records.jsonl"\n', _nothing),
    "stdin": lambda brokers, folder: ('kind = "stdin"\nqueue = 40\n', _nothing),
    "mqtt": _from_mqtt,
    "kafka": _from_kafka,
}
_SINKS = {"folder": _to_folder, "mqtt": _to_mqtt, "kafka": _to_kafka}


def _mosquitto(brokers: ExitStack, folder: Path) -> int:
    return brokers.enter_context(mosquitto(folder))


def _cluster(brokers: ExitStack) -> KafkaCluster:
    """One cluster of a trial: where source and sink are both of Kafka, the offsets go with the windows."""
    if not hasattr(brokers, "kafka"):
        brokers.kafka = brokers.enter_context(kafka_cluster())
    return brokers.kafka


def _client(port: int, name: str) -> Any:
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=name == "device")
    client.max_inflight_messages_set(1000)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def _judged(
    folder: Path, said: list[bytes], manifests: list[bytes], tables: dict[int, bytes], kills: int
) -> Killed:
    """What stands in the tables, whose chain is whole, beside what the stream says of itself."""
    counts = {
        text.split("{")[0].removeprefix("velado_stream_"): int(float(text.split()[-1]))
        for text in (folder / "metrics.prom").read_text().splitlines()
        if not text.startswith("#") and "reason" not in text
    }
    reported = sum(counts[one] for one in ("given_up", "expired", "withheld", "unsettled"))
    windows = check_chain(manifests, tables)
    # What the stream says of itself is held to what was sent and to what stands in the tables.
    assert counts["published"] + reported == counts["lines"] - _refused(folder)
    cells = [cell for data in tables.values() for cell in pl.read_csv(data, infer_schema=False)["tag_list"]]
    seen = Counter(int(tag) for cell in cells for tag in cell.split())
    return Killed(
        kills=kills,
        records=len(said),
        published=len(seen),
        twice=sum(count > 1 for count in seen.values()),
        reported=reported,
        lost=len(said) - len(seen) - reported,
        windows=windows,
    )


def _refused(folder: Path) -> int:
    """The records that the stream counts as refused: what a broker delivered again."""
    lines = (folder / "metrics.prom").read_text().splitlines()
    return sum(int(float(text.split()[-1])) for text in lines if text.startswith("velado_stream_refused{"))
