"""Does any window of a random stream show a group of fewer than k people, and does memory stay flat over many records?

    python benchmarks/streams_random.py streams [how many] [seconds at most] [number of the first]
    python benchmarks/streams_random.py core [how many] [seconds at most] [number of the first]
    python benchmarks/streams_random.py memory [records] [seconds at most]

Streams are drawn with windows by count, time or people, late, early and doubled records, bursts, newcomers and leavers, and epochs that end.
People are counted in the published tables, by who sent the row's tag, not by what the stream says of itself; within an epoch the people who
shared somebody's group in every window are counted too. `core` is the same at a tenth of the cost: records, windows, waiting, classes and epochs
are the product's, and the door that recounts a table and refuses it is taken away, so that nothing hides a class that is wrong. All stop where their seconds are over, and say how far they came.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.release.stream.random_streams import judged


def streams(count: int, seconds: float, first: int, door: bool) -> None:
    begun, done, windows, shown = time.time(), 0, 0, 0
    while done < count and time.time() - begun < seconds:
        made = judged(first + done, door)
        assert not made.below, f"stream {first + done} shows a group below k"
        done, windows, shown = done + 1, windows + made.windows, shown + made.rows
    print(
        f"{done:,} random streams{'' if door else ' without the last door'}, {windows:,} windows with {shown:,} rows published: 0 groups below k people; "
        f"{time.process_time():.0f} CPU s"
    )


def memory(count: int, seconds: float) -> None:
    from streams import SCHEMA, lines
    from velado.data.keys import Key
    from velado.release.stream.stream_settings import PeopleSettings, StreamSettings, WindowSettings
    from velado.release.stream.windows import Stream

    people = 5000
    asked = StreamSettings(
        schema="s.toml", window=WindowSettings(by="count", size=people), people=PeopleSettings(k=5, start=5)
    )
    stream = Stream(SCHEMA, asked, Key(bytes(range(40))))
    state, told, begun, done, at_tenth = stream.begin(), lines(100_000, people), time.time(), 0, 0
    while done < count and time.time() - begun < seconds:
        part = told[done % len(told) :][:people]
        _, state = stream.advance(state, stream.reader.read(part, [0.0] * people), 0.0)
        done += people
        if done >= count // 10 and not at_tenth:
            at_tenth = rss()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{done:,} records: {rss():.0f} MB resident at the end, {at_tenth:.0f} MB after a tenth of {count:,}, at most {most:.0f} MB; "
        f"{time.process_time():.0f} CPU s"
    )


def rss() -> float:
    """Resident memory now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else "streams"
    most = float(sys.argv[3]) if len(sys.argv) > 3 else np.inf
    if kind in ("streams", "core"):
        first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
        streams(int(sys.argv[2]) if len(sys.argv) > 2 else 100_000, most, first, kind == "streams")
    else:
        memory(int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000, most)
