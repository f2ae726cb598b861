"""Brokers for tests: a real Mosquitto, and the cluster of mock brokers that librdkafka has inside it.

The mock cluster keeps topics, offsets and groups, and answers every request of a transaction; it does not hide what a transaction
wrote and did not commit. Of a partition it keeps only the last few megabytes.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BROKER = shutil.which("mosquitto") or "/usr/sbin/mosquitto"

_CLUSTER = """
import json, sys
from confluent_kafka import Producer
cluster = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 2, "log_level": 0, "linger.ms": 5})
found = cluster.list_topics(timeout=10)
print(",".join(f"{one.host}:{one.port}" for one in found.brokers.values()), flush=True)
for line in sys.stdin:
    topic, path, partitions = json.loads(line)
    with open(path, "rb") as file:
        for number, record in enumerate(file):
            cluster.produce(topic, record.rstrip(b"\\n"), partition=partitions[number % len(partitions)])
            cluster.poll(0)
    print(cluster.flush(20), flush=True)
"""


class KafkaCluster:
    """Mock brokers in a process of their own: *servers*, and what writes a file's lines to a topic."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process
        self.servers = process.stdout.readline().decode().strip()

    def fill(self, topic: str, path: Path, partitions: Sequence[int] = (0, 1)) -> None:
        """The lines of a file go to the partitions in turn. One partition is read in its order, two in any order among them."""
        self._process.stdin.write(json.dumps([topic, str(path), list(partitions)]).encode() + b"\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"0\n"

    def read(self, topic: str, partition: int = 0) -> list[tuple[dict[str, str], bytes]]:
        """Headers and bytes of everything in the topic's partition."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        reader = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "test",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        try:
            reader.assign([TopicPartition(topic, partition, 0)])
            out = []
            while True:
                message = reader.poll(10)
                if message is None:
                    raise KafkaException("nothing came")
                if message.error() is not None:
                    return out
                out.append(({k: v.decode() for k, v in message.headers() or []}, message.value()))
        finally:
            reader.close()

    def committed(self, topic: str, group: str) -> list[int]:
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        try:
            found = reader.committed([TopicPartition(topic, at) for at in (0, 1)], 10)
            return [max(one.offset, 0) for one in found]
        finally:
            reader.close()


@contextmanager
def kafka_cluster() -> Iterator[KafkaCluster]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield KafkaCluster(process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def mosquitto(folder: Path) -> Iterator[int]:
    """The port of a Mosquitto that keeps all messages of its sessions."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number = taken.getsockname()[1]
    config = folder / "broker.conf"
    config.write_text(
        f"listener {number} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 1000\nmax_queued_messages 0\n"
    )
    broker = subprocess.Popen(
        [BROKER, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", number), 0.1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield number
    finally:
        broker.terminate()
        broker.wait()
