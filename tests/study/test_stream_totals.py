"""Noisy totals of a stream's windows: one unit moves them by no more than was paid for, and no kill pays or draws twice."""

import dataclasses
import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import ParameterError, QueryRefused
from velado.query.budget import Budget
from velado.query.running.tree_counter import Exact
from velado.query.store import memory_ledger, open_ledger
from velado.release.stream.manifest import check_chain
from velado.release.stream.stream_settings import (
    RecordSettings,
    StreamSettings,
    TotalsSettings,
    WindowSettings,
    read_stream,
)
from velado.release.stream.window_release import SINCE
from velado.release.stream.windows import unsettled
from velado.study.stream_totals import (
    TotalsAccount,
    TotalsStream,
    exact_totals,
    plan_totals,
    run_totals,
)

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "who": {"role": "identifier", "person": True},
            "ward": {"role": "quasi", "values": ["a", "b"]},
            "pulse": {"role": "sensitive", "kind": "numeric", "bounds": [0, 200], "step": 1},
        }
    }
)
ASK = "SELECT ward, COUNT(*) AS n, SUM(pulse) AS total FROM records GROUP BY ward"
SIZE, BEGIN = 10, 1_700_000_000


def stream_of(
    protect: str, ask: str = ASK, windows: int = 6, spend: str = "3", **more: object
) -> TotalsStream:
    totals = TotalsSettings(
        ask=ask, protect=protect, epsilon=spend, windows=windows, expect=10**6, begin=BEGIN, **more
    )
    asked = StreamSettings(
        schema="s.toml",
        window=WindowSettings(size=SIZE, lateness=3),
        record=RecordSettings(time="at", id="n"),
        totals=totals,
    )
    made = plan_totals(SCHEMA, totals)
    account = TotalsAccount(made, memory_ledger("ward", Budget.epsilon(spend)))
    return TotalsStream(SCHEMA, asked, Key(bytes(range(40))), account)


def record(who: int, at: float, number: int, ward: str = "a", pulse: int = 60) -> bytes:
    return json.dumps({"who": f"p{who}", "ward": ward, "pulse": pulse, "at": at, "n": number}).encode()


def cut(stream: TotalsStream, arrivals: list[tuple[float, bytes]]) -> dict[int, pl.DataFrame]:
    """The records of each window, as the stream cuts them when records arrive at those clock times; every window, empty or not."""
    state, out = stream.begin(), {}
    first = BEGIN // SIZE

    def look(clock: float, lines: list[bytes]) -> None:
        nonlocal state
        before = state.through if state.epoch.number >= 0 else first - 1
        _, state = stream.advance(state, stream.reader.read(lines, [clock] * len(lines)), clock)
        for index in range(before + 1, state.through + 1):
            out[index] = state.waiting.filter(pl.col(SINCE) == index)
        assert state.counts.lines == state.counts.settled + unsettled(state)

    for at in range(8 * SIZE):
        look(BEGIN + at, [line for clock, line in arrivals if at <= clock - BEGIN < at + 1])
    return out


def random_arrivals(drawn: random.Random) -> list[tuple[float, bytes]]:
    """Late, early, doubled and too many records of a few people."""
    out = []
    for number in range(drawn.randint(20, 60)):
        at = BEGIN + drawn.random() * 6 * SIZE
        line = record(drawn.randint(0, 3), at, number % 45, drawn.choice("ab"), drawn.choice([0, 60, 200]))
        for _ in range(drawn.choice([1, 1, 1, 2])):
            out.append((at + drawn.choice([0, 0, 1, 8, 30]), line))
    return sorted(out)


def without(arrivals: list[tuple[float, bytes]], gone: object) -> list[tuple[float, bytes]]:
    return [one for one in arrivals if not gone(json.loads(one[1]))]


@pytest.mark.slow
@pytest.mark.parametrize("protect", ["event", "window:3", "person"])
def test_one_unit_moves_all_windows_by_no_more_than_was_paid_for(protect: str) -> None:
    """The worst privacy loss over neighbours, from exact numbers and the scales that are drawn with: at most the spend, and near it."""
    drawn, worst = random.Random(4), 0.0
    rows = 1 if protect == "event" else 2
    stream = stream_of(protect, rows=rows)
    made = stream._account.plan
    assert made.charge <= 3
    for trial in range(2):
        if trial:
            arrivals = random_arrivals(drawn)
        else:  # the worst that one person can be: twice in every window, with the highest pulse
            arrivals = [
                (BEGIN + t * SIZE + one, record(0, BEGIN + t * SIZE + one, 2 * t + one, pulse=200))
                for t in range(6)
                for one in (0, 1)
            ]
        whole = cut(stream, arrivals)
        who, begin = f"p{drawn.randint(0, 3) if trial else 0}", drawn.randint(0, 3)
        event = json.loads(drawn.choice(arrivals)[1])
        gone = {
            "event": lambda r, event=event: (r["who"], r["n"]) == (event["who"], event["n"]),
            "person": lambda r, who=who: r["who"] == who,
            "window:3": lambda r, who=who, begin=begin: (
                r["who"] == who and begin <= (r["at"] - BEGIN) // SIZE < begin + 3
            ),
        }[protect]
        other = cut(stream, without(arrivals, gone))
        # Which windows there are is the clock's alone.
        assert list(whole) == list(other) == list(range(BEGIN // SIZE, BEGIN // SIZE + 6))
        loss = 0.0
        for index in whole:
            if whole[index].equals(other[index]):
                continue
            one, two = exact_totals(made, whole[index]), exact_totals(made, other[index])
            for draw in made.each.draws:
                place = made.each.needs.index(draw.need)
                loss += float(np.abs(one[place] - two[place]).sum()) / draw.scale
        assert loss <= 3 * (1 + 1e-9)
        worst = max(worst, loss)
    assert worst > 2.9  # nothing is paid that does not hide anything


@pytest.mark.parametrize("protect", ["event", "window:3", "person"])
def test_one_unit_moves_the_blocks_of_totals_so_far_by_no_more_than_was_paid_for(protect: str) -> None:
    ask = "SELECT COUNT(*) AS n FROM records"
    made = plan_totals(
        SCHEMA,
        TotalsSettings(ask=ask, protect=protect, of="start", epsilon="3", windows=2000, rows=2, expect=1),
    )
    running = made.running
    assert running is not None and not running.flat and running.charge <= 3
    reach = {"event": 1, "window:3": 3, "person": 2000}[protect]
    rows = 1 if protect == "event" else 2
    state, loss = Exact.empty(2000, 1, len(running.levels)), 0.0
    for t in range(2000):
        state, whole = state.after(np.array([rows if t < reach else 0]))
        loss += sum(float(sums[0]) / running.levels[level].scale for level, sums in whole.items())
    assert loss <= 3 * (1 + 1e-9)


def test_a_tree_is_taken_where_it_pays_and_where_that_is_is_worked_out() -> None:
    def flat(windows: int) -> bool:
        totals = TotalsSettings(
            ask="SELECT COUNT(*) FROM records",
            protect="event",
            of="start",
            epsilon="1",
            windows=windows,
            expect=9,
        )
        running = plan_totals(SCHEMA, totals).running
        assert running is not None
        return running.flat

    assert flat(16) and flat(40) and not flat(300) and not flat(4096)


def test_windows_are_told_once_and_paid_once_and_their_numbers_are_right() -> None:
    stream = stream_of("event", spend="900")
    state = stream.begin()
    lines = [record(one, BEGIN + one, one, "ab"[one % 2], 50) for one in range(20)]
    _, state = stream.advance(state, stream.reader.read(lines, [BEGIN] * 20), BEGIN + 12.5)
    assert not stream.pending(state)
    _, state = stream.advance(state, stream.reader.read([], []), BEGIN + 43)
    assert stream.pending(state)
    told, after = stream.finish(state)
    again, _ = stream.finish(state)  # as after a kill: the ledger has the numbers
    assert [one.table for one in told] == [one.table for one in again] and len(told) == 4
    frames = [pl.read_csv(one.table) for one in told]
    assert [one["n"].sum() for one in frames] == [10, 10, 0, 0]
    assert [one["total"].sum() for one in frames] == pytest.approx([500, 500, 0, 0], abs=20)
    assert check_chain([one.manifest for one in told], {one.number: one.table for one in told}) == 4
    assert after.counts.published == 20 and unsettled(after) == 0
    ledger = stream._account._ledger
    assert ledger.state().left <= Fraction(1, 10**6)
    with pytest.raises(ParameterError, match="declared otherwise"):
        other = dataclasses.replace(stream.asked.totals, protect="window:2")
        TotalsAccount(plan_totals(SCHEMA, other), ledger)


def test_quantiles_and_totals_so_far_are_told() -> None:
    for of, ask in (
        ("window", "SELECT MEDIAN(pulse) AS m FROM records"),
        ("start", "SELECT COUNT(*) AS m FROM records"),
    ):
        stream = stream_of("person", ask=ask, spend="900", windows=4, of=of)
        lines = [record(one, BEGIN + 10 * (one % 4), one, "a", 90) for one in range(40)]
        state = stream.advance(stream.begin(), stream.reader.read(lines, [BEGIN + 40.0] * 40), BEGIN + 60)[1]
        frames = [pl.read_csv(one.table)["m"][0] for one in stream.finish(state)[0]]
        assert frames == ([90, 90, 90, 90] if of == "window" else [10, 20, 30, 40])
        assert stream.ended(stream.finish(state)[1])


def test_a_median_of_nothing_is_unknown_where_the_count_beside_it_says_so() -> None:
    ask = "SELECT ward, COUNT(*) AS n, MEDIAN(pulse) AS m FROM records GROUP BY ward"
    stream = stream_of("person", ask=ask, spend="900", windows=4)
    lines = [record(one, BEGIN + 1, one, "a", 90) for one in range(40)]
    state = stream.advance(stream.begin(), stream.reader.read(lines, [BEGIN + 40.0] * 40), BEGIN + 60)[1]
    table = pl.read_csv(stream.finish(state)[0][0].table)
    some = table["n_low"] > 0
    assert table.filter(some)["ward"].to_list() == ["a"] and table.height > 1
    assert (
        table.filter(some)["m"].null_count() == 0
        and table.filter(~some)["m"].null_count() == table.height - 1
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"protect": "windows"},
        {"protect": "person", "windows": 0},
        {"epsilon": None},
        {"rho": "1"},
        {"expect": 0},
    ],
)
def test_what_is_not_declared_is_refused(wrong: dict[str, object]) -> None:
    given = {"ask": ASK, "protect": "event", "epsilon": "1", "windows": 3, "expect": 5}
    with pytest.raises(ParameterError):
        TotalsSettings(**given | wrong)


def test_windows_that_a_record_could_move_are_refused() -> None:
    totals = TotalsSettings(ask=ASK, protect="event", epsilon="1", windows=3, expect=5)
    for window in (WindowSettings(by="count"), WindowSettings(rest="close"), WindowSettings(clock="record")):
        with pytest.raises(ParameterError, match=r"Totals are told|no declared beginning"):
            StreamSettings(schema="s", window=window, record=RecordSettings(time="at"), totals=totals)


def written(folder: Path, **more: str) -> Path:
    (folder / "schema.toml").write_text(
        '[columns.who]\nrole = "identifier"\nperson = true\n[columns.pulse]\nrole = "sensitive"\nkind = "numeric"\nbounds = [0, 200]\nstep = 1\n'
    )
    (folder / "owner.key").write_bytes(bytes(range(40)))
    lines = [
        json.dumps({"who": f"p{one}", "pulse": 70, "at": BEGIN + 10 * window + one / 10}).encode()
        for window in range(4)
        for one in range(50)
    ]
    (folder / "records.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    asked = {
        "protect": '"person"',
        "epsilon": "900",
        "windows": "4",
        "expect": "50",
        "begin": f"{BEGIN}.0",
    } | more
    (folder / "stream.toml").write_text(
        'schema = "schema.toml"\nkey = "owner.key"\n[window]\nsize = 10\nclock = "record"\n[record]\ntime = "at"\n'
        '[source]\nkind = "files"\npath = "records.jsonl"\n'
        '[totals]\nask = "SELECT COUNT(*) AS n FROM records"\n'
        + "".join(f"{name} = {value}\n" for name, value in asked.items())
    )
    return folder / "stream.toml"


def test_mostly_noise_is_said_and_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "own"))
    config, heard = written(tmp_path, epsilon="0.1"), []
    with pytest.raises(QueryRefused, match="Mostly noise: n"):
        run_totals(config, read_stream(config), say_first=lambda made: heard.extend(made.sentences()))
    assert any("off by up to" in text for text in heard) and not (tmp_path / "totals.ledger").exists()
    config = written(tmp_path, epsilon="0.1", noise='"accept"')
    assert run_totals(config, read_stream(config)).windows == 4


@pytest.mark.slow
def test_killed_anywhere_totals_are_drawn_once_and_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess
    import sys

    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "own"))
    config, drawn = written(tmp_path), random.Random(2)
    orders = [f"events {drawn.randint(10, 90)}" for _ in range(6)]
    killing = Path(__file__).parents[1] / "release" / "stream" / "killing.py"
    done = subprocess.run(
        [sys.executable, str(killing), str(config)],
        input="\n".join([*orders, "end"]).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    ends = done.stdout.decode().split()
    assert ends[-1] == "ended" and ends.count("killed") >= 3, ends
    tables = {int(one.stem): one.read_bytes() for one in (tmp_path / "windows").glob("*.csv")}
    manifests = [one.read_bytes() for one in sorted((tmp_path / "windows").glob("*.json"))]
    assert check_chain(manifests, tables) == 4
    assert sum(pl.read_csv(one)["n"][0] for one in tables.values()) == 200
    ledger = open_ledger(tmp_path / "totals.ledger")
    spent = [entry.fields() for entry in ledger.entries()]
    assert ledger.verify().left <= Fraction(1, 10**6)
    assert (
        sum("window" in json.loads(one["text"]) for one in spent if one.get("text", "").startswith("{")) >= 4
    )
    ledger.close()
