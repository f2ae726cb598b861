"""Streams for tests: a schema, random records, and what a reader of all windows of an epoch is left with."""

import json
from collections import defaultdict

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.stream.stream_settings import (
    PeopleSettings,
    RecordSettings,
    StreamSettings,
    WindowSettings,
)
from velado.release.stream.windows import Stream, unsettled

KEY = Key(bytes(range(40)))
COLUMNS = {
    "who": {"role": "identifier", "person": True},
    "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]},
    "sex": {"role": "quasi", "kind": "categorical", "values": ["F", "M"]},
    "tag": {"role": "sensitive", "kind": "numeric"},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def stream_of(k=3, start=None, by="count", size=30, epoch=480, wait=10, **record) -> Stream:
    window = {one: record.pop(one) for one in ("lateness", "late", "clock", "most") if one in record}
    asked = StreamSettings(
        schema="schema.toml",
        window=WindowSettings(by=by, size=size, **window),
        people=PeopleSettings(k=k, start=start, epoch=epoch, wait=wait),
        record=RecordSettings(**record),
    )
    return Stream(SCHEMA, asked, KEY)


def line(who, age=40, sex="F", tag=0, **more) -> bytes:
    return json.dumps({"who": who, "age": age, "sex": sex, "tag": tag, **more}).encode()


def fed(stream, lines, step=17, clock=0.0, final=True):
    """All windows of the lines, fed a few at a time, and the last state; every record is accounted for at each step."""
    state, windows = stream.begin(), []
    for at in range(0, len(lines), step):
        part = lines[at : at + step]
        closed, state = stream.advance(state, stream.reader.read(part, [clock] * len(part)), clock)
        windows += closed
        assert state.counts.lines == state.counts.settled + unsettled(state)
    closed, state = stream.advance(state, stream.reader.read([], []), clock, final)
    assert state.counts.lines == state.counts.settled + unsettled(state)
    return windows + closed, state


def rows_of(window):
    return [] if window.outcome.release is None else window.outcome.release.frame.rows(named=True)


def least_candidates(windows, person_of_tag):
    """For each epoch and person shown in it: how many people share the person's visible group in every window of the person.

    *person_of_tag* maps a row's tag (unique a person) to the person: what only the test knows.
    """
    shown = defaultdict(dict)  # (epoch, person) -> window -> box
    for window in windows:
        for row in rows_of(window):
            person = person_of_tag[round(row["tag"])]
            shown[window.outcome.epoch.number, person][window.number] = (row["age"], row["sex"])
    out = []
    for (epoch, _), mine in shown.items():
        others = [boxes for (theirs, _), boxes in shown.items() if theirs == epoch]
        out.append(sum(all(other.get(at) == box for at, box in mine.items()) for other in others))
    return out
