"""Kafka, on the mock cluster of librdkafka: what is read once is published once, with its offsets, whatever was killed."""

from pathlib import Path

import pytest

from velado.errors import InputError, OutputError
from velado.release.stream.connectors.runner import run_stream
from velado.release.stream.manifest import check_chain
from velado.release.stream.windows import unsettled

from .test_running import SCHEMA, STREAM, chain, reading

pytest.importorskip("confluent_kafka")
from .brokers import KafkaCluster, kafka_cluster


@pytest.fixture(scope="module")
def cluster():
    with kafka_cluster() as made:
        yield made


def kafka_folder(folder: Path, cluster: KafkaCluster, name: str, windows: int, sink: str = "") -> Path:
    """A stream and its records in one partition, which come as they were written, so that every window is of everybody once."""
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "owner.key").write_bytes(bytes(range(40)))
    source = f'kind = "kafka"\nservers = "{cluster.servers}"\ntopic = "in-{name}"\nclient = "{name}"'
    text = STREAM.replace('kind = "files"\npath = "records-*.jsonl"', source) + '[record]\nid = "n"\n' + sink
    text += '[readings]\ntag = ["list"]\n'
    (folder / "stream.toml").write_text(text)
    rows = [reading(window, one, n=window) for window in range(windows) for one in range(40)]
    (folder / "records.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    cluster.fill(f"in-{name}", folder / "records.jsonl", [0])
    return folder / "stream.toml"


def until(windows: int, config: Path):
    seen = []
    return run_stream(
        config, stop=lambda: len(seen) >= windows, tell=lambda window, delay: seen.append(window)
    )


def test_records_of_kafka_reach_windows_and_offsets_are_committed_with_them(cluster, tmp_path: Path) -> None:
    config = kafka_folder(tmp_path, cluster, "plain", 5)
    done = until(5, config)
    assert done.windows == 5 and chain(tmp_path) == 5 and done.state.counts.published == 200
    assert sum(cluster.committed("in-plain", "plain")) == 200
    assert done.state.counts.lines == done.state.counts.settled + unsettled(done.state) == 200
    cluster.fill("in-plain", tmp_path / "records.jsonl", [1])  # the same once more, at other offsets
    again = [b.replace(b'"n": ', b'"n": 9') for b in (tmp_path / "records.jsonl").read_bytes().splitlines()]
    (tmp_path / "more.jsonl").write_bytes(b"\n".join(again) + b"\n")
    cluster.fill("in-plain", tmp_path / "more.jsonl", [0])
    assert until(5, config).state.counts.refused == {"duplicate": 200}


def test_windows_in_a_topic_are_chained_and_stand_there_once(cluster, tmp_path: Path) -> None:
    config = kafka_folder(tmp_path, cluster, "topic", 4, '[sink]\nkind = "kafka"\ntopic = "out-topic"\n')
    until(4, config)
    assert published(cluster, "out-topic") == sorted(1000 * w + one for w in range(4) for one in range(40))
    config.write_text('state = "elsewhere"\n' + config.read_text().replace("size = 40", "size = 50"))
    with pytest.raises(OutputError, match="other content"):  # a former stream's windows are there
        until(1, config)


def test_records_of_a_partition_that_is_behind_are_published_or_counted_as_held_back(
    cluster, tmp_path: Path
) -> None:
    """People of one partition come in runs: a window lacks some of a class, which is then given up until the epoch ends."""
    config = kafka_folder(tmp_path, cluster, "behind", 0, '[sink]\nkind = "kafka"\ntopic = "out-behind"\n')
    state = None
    told = [[reading(w, one, n=w) for w in range(4) for one in range(half, 40, 2)] for half in (0, 1)]
    for partition, begin, end in ((0, 0, 50), (1, 0, 50), (0, 50, 80), (1, 50, 80)):
        (tmp_path / "part.jsonl").write_bytes(b"\n".join(told[partition][begin:end]) + b"\n")
        cluster.fill("in-behind", tmp_path / "part.jsonl", [partition])
        state = until(1, config).state
    assert state is not None
    counts, seen = state.counts, published(cluster, "out-behind")
    held_back = counts.given_up + counts.expired + counts.withheld + unsettled(state)
    assert counts.lines == 160 and counts.published == len(seen) == len(set(seen)) == 160 - held_back
    assert held_back > 0 and seen


def published(cluster: KafkaCluster, topic: str) -> list[int]:
    """The tags of all tables in the topic, whose chain is whole and in which nothing stands twice."""
    import polars as pl

    found = cluster.read(topic)
    names = [(int(heads["window"]), heads["part"]) for heads, _ in found]
    assert len(set(names)) == len(names)
    manifests = [data for heads, data in found if heads["part"] == "manifest"]
    tables = {int(heads["window"]): data for heads, data in found if heads["part"] == "table"}
    assert check_chain(manifests, tables) == len(manifests)
    lists = [cell for data in tables.values() for cell in pl.read_csv(data, infer_schema=False)["tag_list"]]
    return sorted(int(tag) for cell in lists for tag in cell.split())


def test_messages_that_were_removed_before_they_were_read_are_an_error_or_counted(
    cluster, tmp_path: Path
) -> None:
    config = kafka_folder(tmp_path, cluster, "gap", 2)
    until(2, config)
    (tmp_path / "large.jsonl").write_bytes((b" " * 900_000 + b"\n") * 16)  # beyond what a partition keeps
    cluster.fill("in-gap", tmp_path / "large.jsonl")
    with pytest.raises(InputError, match="removed up to"):
        until(1, config)
    config.write_text(config.read_text().replace('client = "gap"', 'client = "gap"\ngaps = "count"'))
    cluster.fill("in-gap", tmp_path / "large.jsonl")
    seen = []

    def stop() -> bool:
        seen.append(1)
        return len(seen) > 3

    counts = run_stream(config, stop=stop).state.counts
    assert (counts.refused or {}).get("lost", 0) > 0


def test_no_topic_and_no_broker_are_errors_in_three_sentences(cluster, tmp_path: Path) -> None:
    config = kafka_folder(tmp_path, cluster, "wrong", 1)
    config.write_text(config.read_text().replace('topic = "in-wrong"', 'topic = "in:wrong"'))
    with pytest.raises(InputError, match=r"no topic|do not answer"):
        until(1, config)
