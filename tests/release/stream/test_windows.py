"""No window shows a group below k people, within an epoch nobody is left with fewer than k, and every record is accounted for."""

from collections import Counter

import numpy as np
import pytest

from velado.errors import ParameterError, TableError
from velado.release.stream.manifest import check_chain
from velado.release.stream.stream_settings import StreamSettings

from .random_streams import judged
from .stream_trials import fed, least_candidates, line, rows_of, stream_of


def random_stream(draw):
    """A stream of random settings and its lines: people come, go and come back, and write their own names in two ways."""
    people = int(draw.integers(2, 40))
    k = int(draw.integers(2, 5))
    by = ("count", "people")[int(draw.integers(2))]
    size = int(draw.integers(2, 30))
    ages, sexes = draw.integers(0, 100, people), draw.integers(0, 2, people)
    there = draw.random(people)
    lines = []
    for _ in range(int(draw.integers(1, 8))):
        for one in draw.permutation(people):
            for _ in range(int(draw.integers(1, 4)) if draw.random() < there[one] ** 0.3 else 0):
                name = f"p{one}" if draw.random() < 0.5 else f" P{one}"
                lines.append(line(name, int(ages[one]), "FM"[sexes[one]], int(one)))
    return (
        stream_of(k=k, by=by, size=size, epoch=int(draw.integers(1, 9)), wait=int(draw.integers(0, 4))),
        lines,
        k,
    )


@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_streams_show_no_group_below_k_in_a_window_or_within_an_epoch(block: int) -> None:
    shown = 0
    for seed in range((15, 100)[block]):
        stream, lines, k = random_stream(np.random.default_rng([block, seed]))
        windows, _ = fed(stream, lines)
        for window in windows:
            rows = rows_of(window)
            groups = Counter((row["age"], row["sex"]) for row in rows)
            assert not groups or min(groups.values()) >= k  # one row is one person:
            assert len({row["tag"] for row in rows}) == len(rows)
            shown += bool(rows)
        assert min(least_candidates(windows, {one: one for one in range(99)}), default=k) >= k
    print(f"{(15, 100)[block]} random streams, {shown} windows shown")
    assert shown > 10


def test_readings_of_one_person_are_no_crowd() -> None:
    windows, state = fed(stream_of(k=2, start=2, size=6), [line("ana"), line("ANA "), line(" ana")] * 2)
    assert [one.table for one in windows] == [None]
    assert state.waiting.height == 6


def test_newcomers_wait_and_are_left_out_after_the_limit() -> None:
    few = [line("a", 30, tag=1), line("b", 31, tag=2)]
    stream = stream_of(k=2, start=4, size=2, wait=3)
    windows, state = fed(stream, few * 6, step=2)
    assert all(one.table is None for one in windows)
    assert state.counts.expired == 6 and state.waiting.height == 6  # three windows wait, three were left out
    more, _ = fed(stream, [*few, line("c", 32, tag=3), line("d", 33, tag=4)])
    assert [len(rows_of(one)) for one in more] == [0, 4]


def test_a_class_that_lost_its_crowd_stays_out_until_the_epoch_ends() -> None:
    everyone = [line(f"p{one}", 30 + one, tag=one) for one in range(4)]
    two = [line("p0", 30, tag=0), line("p1", 31, tag=1)] * 2
    windows, state = fed(stream_of(k=3, start=3, size=4, epoch=3), everyone + two + everyone + everyone)
    assert [len(rows_of(one)) for one in windows] == [4, 0, 0, 4]
    assert state.counts.given_up == 8


def test_two_epochs_together_are_counted_by_who_was_there_in_every_window() -> None:
    """d was not in the second window, b and c are with one another in the third: a has no candidate but a."""
    stream = stream_of(k=2, start=2, by="time", size=10, time="at", epoch=2)
    first = [line(p, 20, at=1) for p in "abcd"] + [line(p, 20, at=11) for p in "abc"]
    then = [line(p, age, at=21) for p, age in zip("abcd", (20, 60, 60, 20), strict=True)]
    windows, _ = fed(stream, [*first, *then])
    assert [len(rows_of(one)) for one in windows] == [4, 3, 4]
    assert [one.facts()["below_k_across_epochs"] for one in windows] == [0, 0, 1]


def test_late_early_doubled_and_disordered_records_are_declared_and_counted() -> None:
    stream = stream_of(k=2, start=2, by="time", size=10, time="at", lateness=5)
    state = stream.begin()

    def at(clock, *lines):
        nonlocal state
        closed, state = stream.advance(state, stream.reader.read(list(lines), [clock] * len(lines)), clock)
        return closed

    first = line("a", 30, tag=1, at=1001.0)
    assert at(1001, first, line("b", 31, tag=2, at=1009.0), first) == []
    assert at(1012, line("c", 31, tag=3, at=1011.0), line("d", 32, tag=4, at=1004.0), first) == []
    closed = at(1016, line("e", 33, tag=5, at=5000.0))
    assert [len(rows_of(one)) for one in closed] == [3]  # d came after c, and in time
    assert at(1017, line("f", 33, tag=6, at=1008.0)) == []
    assert state.counts.refused == {"duplicate": 2, "ahead": 1, "late": 1}


def test_a_late_record_may_go_into_the_next_window() -> None:
    stream = stream_of(k=2, start=2, by="time", size=10, time="at", late="next", clock="record")
    lines = [line(one, 30, tag=at, at=1000 + at) for at, one in enumerate("abcdefghijkl")]
    windows, state = fed(stream, [*lines, line("m", 30, tag=20, at=1003.0), lines[3]], step=1)
    assert [len(rows_of(one)) for one in windows] == [10, 3]
    assert state.counts.refused == {"duplicate": 1}  # which came again after its window had ended


def test_a_burst_ends_a_window_early_and_loses_nothing() -> None:
    stream = stream_of(k=2, start=2, by="time", size=10, time="at", most=5)
    lines = [line(f"p{one}", 30 + one, tag=one, at=1000.0 + one / 10) for one in range(20)]
    windows, state = fed(stream, lines, step=6, clock=1001.0)
    assert sum(len(rows_of(one)) for one in windows) == 20 and state.counts.bursts == 3


def test_a_record_that_comes_again_after_a_burst_is_recognized_until_its_window_ends() -> None:
    stream = stream_of(k=2, start=2, by="time", size=10, time="at", most=5)
    lines = [line(f"p{one}", 30 + one, tag=one, at=1000.0 + one / 10) for one in range(20)]
    windows, state = fed(stream, lines + lines, step=6, clock=1001.0)
    assert sum(one.outcome.published for one in windows) == 20
    assert state.counts.refused == {"duplicate": 20}


HOSTILE = {
    b"{": "broken",
    b"[1]": "broken",
    b"[" * 100_000: "large",
    b"\xff\xfe": "broken",
    b"[" * 20_000: "broken",
    line("a", mail="ana@x.br"): "undeclared",
    line("\ud800"): "broken",
    b'{"who": "\xed\xa0\x80", "age": 40, "sex": "F", "tag": 1}': "broken",
    line(None): "incomplete",
    line(True): "incomplete",
    line(["a"]): "incomplete",
    b'{"who": "a", "sex": "F", "tag": 1, "age": NaN}': "kind",
    line("a", age="old"): "kind",
    line("a", age=1e300): "kind",
    line("a", age=121): "kind",
    line("a", age=True): "kind",
    line("a", sex="X"): "kind",
    line("a", sex={"F": 1}): "kind",
    line("a", tag="12 ana@x.br"): "kind",
    b'{"who": "a", "sex": "F", "age": 3' + b"0" * 5000 + b"}": "broken",
}


@pytest.mark.parametrize("payload", HOSTILE, ids=lambda one: one[:24].decode("latin-1"))
def test_a_hostile_record_is_refused_alone(payload: bytes) -> None:
    crowd = [line(f"p{one}", 30 + one, tag=one) for one in range(6)]
    windows, state = fed(stream_of(k=3, start=3, size=6), [*crowd[:3], payload, *crowd[3:]])
    assert state.counts.refused == {HOSTILE[payload]: 1}
    assert [len(rows_of(one)) for one in windows] == [6]


def test_a_window_that_would_name_people_is_withheld_and_the_stream_goes_on() -> None:
    from velado.data.schema import Schema
    from velado.release.stream.windows import Stream

    from .stream_trials import COLUMNS, KEY

    schema = Schema.from_dict({"columns": {**COLUMNS, "note": {"role": "other", "kind": "text"}}})
    stream = Stream(schema, stream_of(k=3, start=3, size=6).asked, KEY)
    named = [line(f"p{one}", 30 + one, tag=one, note=f"ana{one}@clinic.br") for one in range(6)]
    plain = [line(f"p{one}", 30 + one, tag=one, note="ok") for one in range(6)]
    windows, state = fed(stream, named + plain)
    assert [one.table is None for one in windows] == [True, False]
    assert state.counts.withheld == 6 and "clinic" not in " ".join(windows[0].outcome.refusal)


def test_windows_are_chained_and_hold_no_name() -> None:
    lines = [line(f"person{one}", 30 + one, tag=one) for one in range(12)] * 3
    windows, _ = fed(stream_of(k=3, size=12), lines)
    manifests = [one.manifest for one in windows]
    tables = {one.number: one.table for one in windows if one.table is not None}
    assert check_chain(manifests, tables) == 3
    assert not any(b"person" in one for one in tables.values())
    for broken in ([manifests[0], manifests[2]], manifests[1:], [manifests[1], manifests[0]]):
        with pytest.raises(TableError):
            check_chain(broken, tables)
    with pytest.raises(TableError):
        check_chain(manifests, tables | {2: tables[2] + b"x"})


def test_the_order_of_rows_is_not_that_of_arrival() -> None:
    lines = [line(f"p{one:02}", 30, tag=one // 2) for one in range(40)]
    windows, _ = fed(stream_of(k=3, size=40), lines)
    tags = [row["tag"] for row in rows_of(windows[0])]
    assert sorted(tags) == [one // 2 for one in range(40)] and tags != sorted(tags)


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ParameterError, match="neither 'time' nor 'id'"):
        StreamSettings(schema="s.toml", source={"kind": "mqtt", "topic": "t"})
    with pytest.raises(ParameterError, match=r"'path' .* is missing"):
        StreamSettings(schema="s.toml", source={"kind": "files"})


def test_an_epoch_never_comes_back_after_a_burst() -> None:
    """Window 100 is cut by a burst, records of 99 come late and end next, then the rest of 100: its classes are not made a second time."""
    assert not judged(2727).below and not judged(2727, door=False).below


def test_no_window_of_a_random_stream_shows_fewer_than_k_people() -> None:
    """A few; `benchmarks/streams_random.py` draws a hundred thousand."""
    for door, count in ((True, 6), (False, 12)):
        made = [judged(number, door) for number in range(count)]
        assert not any(one.below for one in made) and sum(one.rows for one in made) > 20
