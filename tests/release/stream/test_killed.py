"""A stream that is killed anywhere publishes no record twice and loses none, from every kind of source and to every kind of sink."""

from pathlib import Path

import pytest

from velado.release.stream.connectors.kinds import SINKS, SOURCES

from .brokers import BROKER
from .kill_trials import WAYS, points, trial

LIBRARIES = {"mqtt": "paho.mqtt.client", "kafka": "confluent_kafka"}


def test_every_registered_kind_is_killed_and_says_whether_a_record_may_come_twice() -> None:
    assert {one.name for one in SOURCES} == {source for source, _ in WAYS}
    assert {one.name for one in SINKS} == {sink for _, sink in WAYS}
    assert all("again" in vars(one) and "whole" in vars(one) for one in SOURCES)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_killed_anywhere_no_record_is_published_twice_and_none_is_lost(
    way: tuple[str, str], tmp_path: Path
) -> None:
    """A seeded sample; `benchmarks/streams_killed.py` tries two hundred points."""
    for one in way:
        if one in LIBRARIES:
            pytest.importorskip(LIBRARIES[one])
    if "mqtt" in way and not Path(BROKER).exists():
        pytest.skip("there is no mosquitto on this machine")
    done = trial(way, tmp_path, 60, points(14, seed=5))
    print(way, done)
    assert done.kills >= 7 and done.twice == 0 and done.published > 0
    if (
        way[0] == "stdin"
    ):  # which cannot be read again: what a killed run had read since its last window is lost
        assert done.lost <= 400 * done.kills
        return
    assert done.windows == 60 and done.lost == 0
    assert done.published + done.reported == done.records
    # Partitions are read in no order: of a window that misses half of a class, the class is given up, and that is said.
    assert done.reported == 0 or way[0] == "kafka"
