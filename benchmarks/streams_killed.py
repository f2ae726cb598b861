"""Is a record published twice or lost when a stream is killed (SIGKILL) at 200 points, half at a touch of the world, half at a moment?

    python benchmarks/streams_killed.py [points in all] [a way alone, as mqtt-kafka]

The points are shared out among ways from every kind of source to every kind of sink. Kafka is the mock cluster of librdkafka, which
answers transactions and does not undo them; MQTT a real Mosquitto. Standard input cannot be read again: what is lost there is told.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.release.stream.kill_trials import WAYS, points, trial

if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    ways = [way for way in WAYS if not sys.argv[2:] or "-".join(way) == sys.argv[2]]
    kills, runs = 0, 0
    for at, way in enumerate(ways):
        count = asked // len(ways) + (at < asked % len(ways))
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            done = trial(way, Path(folder), 100, points(count, seed=7))
        kills, runs = kills + done.kills, runs + count
        print(f"{' to '.join(way)}: {done} in {time.time() - began:.0f} s", flush=True)
        assert not done.twice, "a record was published twice"
        assert way[0] == "stdin" or done.published + done.reported == done.records, "a record is lost"
    print(f"killed {kills} times in {runs} runs")
