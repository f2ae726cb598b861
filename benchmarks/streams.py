"""How many records a second does a stream publish on one core, and what do held classes cost beside windows alone?

    python benchmarks/streams.py [records] [method]

The pure core with reading and releasing, without a broker: CPU seconds, one reading a person a window.
"""

import json
import sys
import time

import numpy as np

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.stream.stream_settings import PeopleSettings, StreamSettings, WindowSettings
from velado.release.stream.windows import Stream

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "who": {"role": "identifier", "person": True},
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]},
            "sex": {"role": "quasi", "values": ["F", "M"]},
            "ward": {"role": "quasi"},
            "pulse": {"role": "sensitive", "kind": "numeric"},
        }
    }
)


def lines(records: int, people: int) -> list[bytes]:
    """Records in which each person speaks once a round."""
    drawn = np.random.default_rng(0)
    ages, wards = drawn.integers(18, 90, people), drawn.integers(0, 8, people)
    out = []
    for at in range(records):
        one = at % people
        cells = {
            "who": f"p{one}",
            "age": int(ages[one]),
            "sex": "FM"[one % 2],
            "ward": "ABCDEFGH"[wards[one]],
        }
        out.append(json.dumps(cells | {"pulse": int(drawn.integers(50, 120))}).encode())
    return out


def run(told: list[bytes], people: int, method: str, epoch: int) -> tuple[float, float]:
    """Records a CPU second, and the mean loss of the windows."""
    asked = StreamSettings(
        schema="s.toml",
        method=method,
        window=WindowSettings(by="count", size=people),
        people=PeopleSettings(k=5, start=5, epoch=epoch),
    )
    stream = Stream(SCHEMA, asked, Key(bytes(range(40))))
    state, losses = stream.begin(), []
    began = time.process_time()
    for at in range(0, len(told), 5000):
        part = told[at : at + 5000]
        closed, state = stream.advance(state, stream.reader.read(part, [0.0] * len(part)), 0.0)
        losses += [one.loss for one in closed if one.loss is not None]
    assert state.counts.published == len(told) // people * people
    return len(told) / (time.process_time() - began), float(np.mean(losses))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chosen = sys.argv[2] if len(sys.argv) > 2 else "mondrian"
    told = lines(count, 5000)
    run(told[:10_000], 5000, chosen, 480)  # compiled kernels are loaded
    held, held_loss = run(told, 5000, chosen, 480)
    alone, alone_loss = run(told, 5000, chosen, 1)
    print(
        f"{chosen}: classes held {held:,.0f} records/s, NCP {held_loss:.4f}; windows alone {alone:,.0f} records/s, NCP {alone_loss:.4f}"
    )
    print(f"NCP of held classes beside windows alone: {held_loss / alone_loss:.3f}")
