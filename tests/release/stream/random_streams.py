"""Random streams, drawn by their number, and whether any window of one shows fewer than k people in a group."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass

from .stream_trials import least_candidates, line, rows_of, stream_of


@dataclass(frozen=True)
class Judged:
    """*below*: groups with fewer than k people, counted from who sent the rows; and people whom an epoch's windows single out."""

    windows: int
    rows: int
    below: int


def judged(number: int) -> Judged:
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
    crowd = [(f"p{one}", drawn.randint(0, 120), drawn.choice("FM")) for one in range(drawn.randint(1, 24))]
    lines, person_of, at = [], {}, 1000.0
    for tag in range(drawn.randint(10, 90)):
        who, age, sex = drawn.choice(crowd[tag // 12 :] or crowd)  # some leave for good
        at += drawn.choice([0, 0.2, 0.5, 1, 6])
        said = line(who, age, sex, tag, at=at + drawn.choice([0, 0, 0, -15, 4]))
        person_of[tag] = who
        lines += [said] * drawn.choice([1, 1, 1, 2])
    state, windows = stream.begin(), []
    for begin in range(0, len(lines), 9):
        part = lines[begin : begin + 9]
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
