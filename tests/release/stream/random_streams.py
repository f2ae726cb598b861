"""Random streams, drawn by their number, and whether any window of one shows fewer than k people in a group."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import polars as pl

from velado.release.stream.window_release import WindowPublisher

from .stream_trials import KEY, SCHEMA, least_candidates, line, rows_of, stream_of

_FITS: dict[str, dict[str, bool]] = {one: {} for one in SCHEMA.columns}


@dataclass(frozen=True)
class Judged:
    """*below*: groups with fewer than k people, counted from who sent the rows; and people whom an epoch's windows single out."""

    windows: int
    rows: int
    below: int


class NoDoor(WindowPublisher):
    """Records, windows, waiting, classes and epochs are the product's. Newcomers are grouped by their order, boxes drawn around classes, and
    nothing stands between them and the reader: no door recounts and refuses. So what is wrong in a class is seen, at a tenth of the cost."""

    def _grouped(self, units: pl.DataFrame) -> np.ndarray:
        start = self._asked.people.least
        order = units.select(pl.struct("sex", "age").rank("ordinal")).to_series().to_numpy() - 1
        return np.minimum(order // start, max(units.height // start - 1, 0)).astype(np.int64)

    def _released(self, units: pl.DataFrame, classes: np.ndarray) -> SimpleNamespace:
        age, sex = units["age"].to_numpy(), units["sex"].to_list()
        rows, sizes = [], Counter()
        for at, tag in enumerate(units["tag"].to_list()):
            mine = np.flatnonzero(classes == classes[at])
            box = f"{age[mine].min()}..{age[mine].max()}", "".join(sorted({sex[one] for one in mine}))
            sizes[box] += 1
            rows.append({"age": box[0], "sex": box[1], "tag": tag})
        table = SimpleNamespace(rows=lambda named: rows)
        least = SimpleNamespace(achieved=min(sizes.values()))
        return SimpleNamespace(
            frame=table, verdicts=[least], public_losses={"age": 0.0}, to_csv=lambda formulas: b"age\n"
        )


def judged(number: int, door: bool = True) -> Judged:
    """The stream of that number; without a *door* nothing refuses what should not leave."""
    drawn = random.Random(number)
    k, by = drawn.randint(2, 4), drawn.choice(["count", "time", "people"])
    start = drawn.choice([None, k, k + 2])
    asked = (
        {"late": drawn.choice(["drop", "next"]), "lateness": drawn.choice([0.0, 3.0])} if by == "time" else {}
    )
    if drawn.random() < 0.3:
        asked["most"] = drawn.randint(8, 30)
    size = drawn.randint(8, 25) if by != "time" else 10.0
    stream = stream_of(
        k=k,
        start=start,
        by=by,
        size=size,
        epoch=drawn.randint(1, 5),
        wait=drawn.randint(0, 3),
        time="at",
        **asked,
    )
    if not door:
        stream.publisher = NoDoor(SCHEMA, stream.asked, KEY)
        stream.reader._fits = _FITS  # all have one schema
    crowd = [(f"p{one}", drawn.randint(0, 120), drawn.choice("FM")) for one in range(drawn.randint(1, 24))]
    lines, person_of, at = [], {}, 1000.0
    for tag in range(drawn.randint(10, 90)):
        who, age, sex = drawn.choice(crowd[tag // 12 :] or crowd)  # some leave for good
        at += drawn.choice([0, 0.2, 0.5, 1, 6])
        said = line(who, age, sex, tag, at=at + drawn.choice([0, 0, 0, -15, 4]))
        person_of[tag] = who
        lines += [said] * drawn.choice([1, 1, 1, 2])
    state, windows = stream.begin(), []
    step = 9 if door else drawn.choice([9, 30, 90])
    for begin in range(0, len(lines), step):
        part = lines[begin : begin + step]
        closed, state = stream.advance(state, stream.reader.read(part, [at] * len(part)), 1000.0 + begin / 2)
        windows += closed
    windows += stream.advance(state, stream.reader.read([], []), at + 100, True)[0]
    below, rows = 0, 0
    for window in windows:
        groups = defaultdict(set)
        for row in rows_of(window):
            groups[row["age"], row["sex"]].add(person_of[round(row["tag"])])
            rows += 1
        below += sum(len(people) < k for people in groups.values())
        twice = Counter(person_of[round(row["tag"])] for row in rows_of(window))
        below += sum(count > 1 for count in twice.values())  # a person's records are one row
    below += sum(one < k for one in least_candidates(windows, person_of))
    return Judged(len(windows), rows, below)
