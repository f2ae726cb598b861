"""A stream that is killed anywhere publishes no record twice and loses none."""

from pathlib import Path

import pytest

from .brokers import BROKER
from .kill_trials import points, trial


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "mqtt", "kafka"])
def test_killed_anywhere_no_record_is_published_twice_and_none_is_lost(kind: str, tmp_path: Path) -> None:
    """A seeded sample; `benchmarks/streams_killed.py` tries two hundred points."""
    pytest.importorskip({"files": "polars", "mqtt": "paho.mqtt.client", "kafka": "confluent_kafka"}[kind])
    if kind == "mqtt" and not Path(BROKER).exists():
        pytest.skip("there is no mosquitto on this machine")
    done = trial(kind, tmp_path, 60, points(14, seed=5))
    print(kind, done)
    assert done.kills >= 7 and done.windows == 60
    assert (done.twice, done.lost) == (0, 0) and done.published > 0
    assert done.published + done.reported == done.records
    # Partitions are read in no order: of a window that misses half of a class, the class is given up, and that is said.
    assert done.reported == 0 or kind == "kafka"
