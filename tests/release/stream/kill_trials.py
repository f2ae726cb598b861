"""Streams that are killed again and again and then run to their end: what was published, and what was lost or doubled."""

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from velado.release.stream.manifest import check_chain

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


def trial(kind: str, folder: Path, windows: int, orders: list[str]) -> Killed:
    """A stream from *kind* to the same (files: to a folder), killed at each of *orders*, then let run to its end."""
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
    if kind == "files":
        config.write_text(STREAM + '[source]\nkind = "files"\npath = "records.jsonl"\n')
        kills = _orders(config, orders)
        parts = {path.name: path.read_bytes() for path in (folder / "windows").iterdir()}
        manifests = [data for name, data in sorted(parts.items()) if name.endswith("json")]
        tables = {int(name[:6]): data for name, data in parts.items() if name.endswith("csv")}
        return _judged(folder, said, manifests, tables, kills)
    if kind == "kafka":
        with kafka_cluster() as cluster:
            return _on_kafka(cluster, config, said, orders)
    with mosquitto(folder) as port:
        return _on_mqtt(port, config, said, orders)


def _orders(config: Path, orders: list[str]) -> int:
    """How many of the runs were killed; the last one must end by itself."""
    run = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(config)],
        input="\n".join([*orders, "end"]).encode(),
        stdout=subprocess.PIPE,
        timeout=580,
        check=True,
    )
    ends = run.stdout.decode().split("\n")[:-1]
    assert ends[-1] == "ended", ends
    return ends.count("killed")


def _on_kafka(cluster: KafkaCluster, config: Path, said: list[bytes], orders: list[str]) -> Killed:
    cluster.fill("in", config.parent / "records.jsonl")
    source = f'[source]\nkind = "kafka"\nservers = "{cluster.servers}"\ntopic = "in"\n'
    config.write_text(STREAM + source + '[sink]\nkind = "kafka"\ntopic = "out"\n')
    kills = _orders(config, orders)
    found = cluster.read("out")
    assert len({(heads["window"], heads["part"]) for heads, _ in found}) == len(found), (
        "a window stands twice"
    )
    manifests = [data for heads, data in found if heads["part"] == "manifest"]
    return _judged(
        config.parent,
        said,
        manifests,
        {int(h["window"]): data for h, data in found if h["part"] == "table"},
        kills,
    )


def _on_mqtt(port: int, config: Path, said: list[bytes], orders: list[str]) -> Killed:
    """The broker holds every record before the first kill, and delivers again what was not confirmed."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    source = f'[source]\nkind = "mqtt"\nport = {port}\ntopic = "ward/#"\n'
    config.write_text(STREAM + source)
    _orders(config, [])  # the session begins with the first subscription
    device = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="device")
    device.max_inflight_messages_set(1000)
    device.connect("127.0.0.1", port)
    device.loop_start()
    last = None
    for record in said:
        last = device.publish("ward/1", record, qos=1)
    assert last is not None
    last.wait_for_publish(60)
    time.sleep(0.3)
    device.disconnect()
    device.loop_stop()
    kills = _orders(config, orders)
    parts = {path.name: path.read_bytes() for path in (config.parent / "windows").iterdir()}
    manifests = [data for name, data in sorted(parts.items()) if name.endswith("json")]
    return _judged(
        config.parent,
        said,
        manifests,
        {int(n[:6]): data for n, data in parts.items() if n.endswith("csv")},
        kills,
    )


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
