"""Is a record published twice or lost when a stream is killed (SIGKILL) at 200 points, half at a touch of the world, half at a moment?

    python benchmarks/streams_killed.py [points for files, mqtt, kafka]

Kafka is the mock cluster of librdkafka, which answers transactions and does not undo them; MQTT a real Mosquitto.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.release.stream.kill_trials import points, trial

if __name__ == "__main__":
    counts = [int(one) for one in sys.argv[1:4]] or [100, 50, 50]
    kills = 0
    for kind, count in zip(("files", "mqtt", "kafka"), counts, strict=True):
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            done = trial(kind, Path(folder), 400, points(count, seed=7))
        kills += done.kills
        assert done.published + done.reported == done.records and not done.twice, "a record is lost, or twice"
        print(f"{kind}: {done} in {time.time() - began:.0f} s", flush=True)
    print(f"killed {kills} times in {sum(counts)} runs")
