"""Running totals: private over all releases together, told once, paid once, and right."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.apps.cli import run
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import BudgetExceeded, LedgerError, NoRows, ParameterError, QueryRefused, SchemaError
from velado.query import noise
from velado.query.budget import Budget
from velado.query.engines import engine_for_table
from velado.query.engines._row_marks import identity_of_table
from velado.query.identity import TableIdentity
from velado.query.running.running_plan import RunningPlan, _levels
from velado.query.running.running_total import RunningTotal, price_running
from velado.query.running.tree_counter import Exact, Told, levels_of, total_deviation
from velado.query.store import create_ledger, memory_ledger, open_ledger, settle
from velado.query.unit import Unit

SCHEMA = Schema(
    {
        "who": Column("who", "identifier", "text", person=True, max_rows=2),
        "ward": Column("ward", "quasi", "categorical", values=("a", "b")),
        "age": Column("age", "quasi", "numeric", bounds=(0.0, 10.0), step=1.0),
    }
)
PERSON, RECORD = Unit("who", 2), Unit()
COUNT = "SELECT ward, COUNT(*) AS n FROM deliveries GROUP BY ward"
SUM = "SELECT SUM(age) AS s FROM deliveries"
BINS = "SELECT HISTOGRAM(age, 2) AS h FROM deliveries"
MUCH = 900


def table(rows: list[tuple[str, str, str]]) -> Table:
    return Table.of(pl.DataFrame(rows, schema=dict.fromkeys(SCHEMA.columns, pl.String), orient="row"), SCHEMA)


def stream(deliveries: int, mark: str = "x") -> list[Table]:
    return [
        table([(f"{mark}{t}-{at}", "ab"[at % 2], str(t % 10)) for at in range(6 + t)])
        for t in range(deliveries)
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=40), st.integers(0, 9), st.integers(1, 6))
def test_blocks_without_noise_make_every_running_total(numbers: list[int], more: int, height: int) -> None:
    levels = min(height, levels_of(len(numbers) + more))
    exact, told = Exact.empty(len(numbers) + more, 1, levels), Told()
    for at, number in enumerate(numbers, 1):
        exact, whole = exact.after(np.array([number]))
        told = told.after(whole, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        assert told.total[0] == pytest.approx(sum(numbers[:at]), abs=1e-3)
        whole_ones = at >> (levels - 1)
        assert len(told.blocks) == (at - (whole_ones << (levels - 1))).bit_count() + (whole_ones > 0)


TALLIES: dict[str, np.ndarray] = {}


def tally(series: RunningTotal, kept: Table) -> np.ndarray:
    """The exact numbers of a delivery, each counted by the engine once."""
    outline = series.plan.outline
    known = f"{outline.query.canonical()} {series.unit} {kept.frame.rows()}"
    if known not in TALLIES:
        engine = engine_for_table(kept, series.unit)
        (found,) = engine.tally(outline.query.where, outline.keys, outline.needs)
        TALLIES[known] = found.ravel()
        engine.close()
    return TALLIES[known]


def blocks(series: RunningTotal, deliveries: list[Table]) -> dict[tuple[int, int], np.ndarray]:
    """The exact sums of every block that would ever be told, by (level, release)."""
    state, people, out = series._first().exact, {}, {}
    for number, one in enumerate(deliveries, 1):
        kept, people = series._let_count(one, people)
        state, whole = state.after(tally(series, kept))
        out |= {(level, number): sums for level, sums in whole.items()}
    return out


def loss(series: RunningTotal, one: list[Table], other: list[Table]) -> float:
    """What all outputs together tell the two streams apart by, at most: sum |d| / scale, or sum d^2 / 2 scale^2."""
    first, second = blocks(series, one), blocks(series, other)
    out = 0.0
    for (level, number), sums in first.items():
        moved, scale = np.abs(sums - second[level, number]).astype(float), series.plan.levels[level].scale
        out += (
            moved.sum() / scale if series.plan.mechanism == "laplace" else (moved**2).sum() / (2 * scale**2)
        )
    return out


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("sql", [COUNT, SUM, BINS])
@pytest.mark.parametrize(
    ("unit", "deliveries", "releases"), [(RECORD, 1, 5), (PERSON, 1, 4), (PERSON, 2, 5), (PERSON, 3, 4)]
)
def test_neighbouring_streams_are_hidden_in_all_outputs_together(
    measure, sql, unit, deliveries, releases
) -> None:
    budget = Budget.epsilon(2) if measure == "epsilon" else Budget.rho(2)
    series = RunningTotal(
        sql, SCHEMA, memory_ledger("s", budget), releases=releases, deliveries=deliveries, unit=unit
    )
    # The tree as high as was chosen, and with all of its levels.
    whole = _levels(series.plan.outline, series.plan.running, Fraction(2), levels_of(releases))
    for made in (series.plan, RunningPlan(series.plan.outline, series.plan.running, whole)):
        series.plan = made
        base, worst = stream(releases), 0.0
        # One unit more: a record in one delivery, or a person in up to all of them with more rows than count.
        most = 1 if unit is RECORD else releases
        for number in range(1, most + 1):
            for chosen in itertools.combinations(range(releases), number):
                more = list(base)
                for at in chosen:
                    rows = [("P 1" if at % 2 else "p 1", "a", "10")] * (1 if unit is RECORD else 5)
                    more[at] = table(rows + [tuple(row) for row in base[at].frame.rows()])
                worst = max(worst, loss(series, base, more))
        assert worst <= float(made.charge) * (1 + 1e-9) <= 2 * (1 + 1e-9)
        # And it could be no less noise: a half of it would not have passed.
        assert worst > 0.6 * float(made.charge)


def test_totals_are_right_and_people_count_in_their_first_deliveries_alone() -> None:
    series = RunningTotal(SUM, SCHEMA, MUCH, releases=6, deliveries=2)
    seen = []
    for at in range(6):
        rows = [("p1", "a", "10")] * 3 + [(f"q{at}", "b", "1"), ("", "a", "9")]
        seen.append(series.add(table([*rows, ("z", "b", str(at))])).frame["s"][0])
    # p1 counts twice with two rows, z twice (0 and 1); q is a new person each time.
    assert seen == pytest.approx([21, 43, 44, 45, 46, 47], abs=4)


@pytest.mark.slow
def test_a_delivery_of_nobody_is_a_delivery_like_every_other() -> None:
    """A refusal, or a total that is missing, would tell for sure that not even one person came."""
    nobody = table([("z", "a", "1")]).frame.clear()
    series = RunningTotal(COUNT, SCHEMA, MUCH, releases=6, unit=PERSON)
    numbers = [series.add(one).number for one in (stream(1)[0], None, None)]
    numbers.append(series.add(table([("new", "a", "1")])).number)
    # Everybody in it has counted as often as they may: nobody of it counts, and that is not told either.
    numbers.append(series.add(table([("new", "b", "1"), ("x0-1", "b", "1")])).number)
    assert numbers == [1, 2, 3, 4, 5]
    assert series.release(5).frame["n"].to_list()[:2] == [4, 3]
    with pytest.raises(NoRows):
        Table.of(nobody, SCHEMA)
    promise = series.release(5).guarantee
    assert promise.most_rows == 2
    assert (
        RunningTotal(COUNT, SCHEMA, MUCH, releases=6, deliveries=3, unit=PERSON).plan.promise().most_rows == 6
    )
    assert (
        RunningTotal(COUNT, SCHEMA, MUCH, releases=2, deliveries=3, unit=PERSON).plan.promise().most_rows == 4
    )


def test_equal_deliveries_with_names_are_told_apart_and_without_the_answer_says_what_that_tells(
    tmp_path: Path,
) -> None:
    """Two neighbours: in the second week C came, or the rows are those of the first week again."""
    week, other = (
        table([("A", "a", "1"), ("B", "b", "1")]),
        table([("A", "a", "1"), ("B", "b", "1"), ("C", "a", "1")]),
    )
    numbers = {}
    for named in (True, False):
        for second in (week, other):
            series = RunningTotal(COUNT, SCHEMA, MUCH, releases=4, deliveries=4, unit=PERSON)
            names = ("w1", "w2") if named else (None, None)
            found = [series.add(one, known_as=name) for one, name in zip((week, second), names, strict=True)]
            numbers[named, second is week] = found[1].number
            assert any("the very same rows" in str(note) for note in found[1].notes) == (not named)
    assert numbers == {(True, True): 2, (True, False): 2, (False, True): 1, (False, False): 2}
    # The table of a named delivery belongs to the ledger too, where whoever adds it says so.
    ledger = create_ledger(tmp_path / "a.ledger", "visits", Budget.epsilon(2))
    series = RunningTotal(COUNT, SCHEMA, ledger, releases=3, spend=1)
    assert series.add(week, known_as="w1", known=TableIdentity(())).number == 1
    with pytest.raises(LedgerError):
        settle(identity_of_table(week), create_ledger(tmp_path / "b.ledger", "more", Budget.epsilon(2)))


def test_a_file_with_its_header_alone_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('[columns.ward]\nrole = "quasi"\nvalues = ["a", "b"]\n', "utf-8")
    Path("one.csv").write_text("ward\na\n", "utf-8")
    Path("none.csv").write_text("ward\n", "utf-8")
    for number, name in enumerate(("one.csv", "none.csv", "none.csv"), 1):
        command = [
            "running",
            name,
            "--schema",
            "s.toml",
            "--releases",
            "3",
            "--epsilon",
            "900",
            "--ledger",
            "v.ledger",
        ]
        assert run([*command, "SELECT ward, COUNT(*) FROM deliveries GROUP BY ward"]) == 0
        assert f"Total after delivery {number} of 3" in capsys.readouterr().out


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_intervals_hold_the_exact_total_as_often_as_they_say(measure: str) -> None:
    held = []
    deliveries = stream(7)
    exact = np.cumsum([one.frame.filter(pl.col("ward") == "a").height for one in deliveries])
    for _ in range(15):
        budget = Budget.epsilon(1) if measure == "epsilon" else Budget.rho(1)
        series = RunningTotal(COUNT, SCHEMA, memory_ledger("s", budget), releases=7, unit=RECORD)
        for number, one in enumerate(deliveries):
            row = series.add(one).frame.row(0, named=True)
            assert row["n_low"] <= row["n"] <= row["n_high"]
            held.append(row["n_low"] <= exact[number] <= row["n_high"])
    assert np.mean(held) > 0.85


def test_the_error_grows_with_the_log_of_the_releases() -> None:
    # At most L blocks, each with L times the variance of a single release: L = floor(log2 T) + 1 times its width.
    widths = [price_running(COUNT, SCHEMA, "rho", releases=2**at, spend=1).widest() for at in range(13)]
    assert all(width <= (at + 1) * widths[0] for at, width in enumerate(widths))
    assert widths[12] > 4 * widths[0]
    made = price_running(COUNT, SCHEMA, "epsilon", releases=52, within=60, deliveries=2)
    assert 55 < made.widest() <= 60
    with pytest.raises(QueryRefused):
        price_running(COUNT, SCHEMA, "epsilon", releases=52, within="5%")


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("releases", [1, 4, 11, 16, 52])
def test_the_tree_is_as_high_as_is_best_for_its_releases(measure: str, releases: int) -> None:
    made = price_running(COUNT, SCHEMA, measure, releases=releases, spend=1)
    whole = _levels(made.outline, made.running, Fraction(1), levels_of(releases))
    assert made.charge <= 1 and made.widest() <= RunningPlan(made.outline, made.running, whole).widest()
    if measure == "epsilon" and releases == 52:
        # A noise of its own for each of 52 deliveries: a quarter less than by six levels, each with a sixth of the spend.
        assert len(made.levels) == 1 and made.widest() < 52


@pytest.mark.parametrize(("measure", "releases"), [("epsilon", 4), ("rho", 11), ("epsilon", 365)])
def test_the_error_of_every_total_is_the_one_of_the_theory(measure: str, releases: int) -> None:
    made = price_running(COUNT, SCHEMA, measure, releases=releases, spend=1)
    cells, told = 1500 if releases < 100 else 400, Told()
    exact = Exact.empty(releases, cells, len(made.levels))
    for number in range(1, min(releases, 90) + 1):
        exact, whole = exact.after(np.zeros(cells, dtype=np.int64))
        noisy = {
            at: noise.add(made.mechanism, measure, made.levels[at].scale, sums) for at, sums in whole.items()
        }
        told = told.after(noisy, made.deviations)
        found, theory = float(np.sqrt(np.mean(told.total**2))), total_deviation(number, made.deviations)
        # The mean square of so many totals is within seven of its own deviations; noise of twice the scale is far off.
        assert abs(found / theory - 1) < 7 * np.sqrt(5 / cells) / 2
        assert theory <= made.half_width(number)


def test_it_is_paid_once_and_a_delivery_is_counted_once(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "a.ledger", "visits", Budget.epsilon(2))
    series = RunningTotal(COUNT, SCHEMA, ledger, releases=3, spend=1)
    spent = ledger.state().spent
    assert spent == series.plan.charge and series.done == 0
    first, second, third, fourth = stream(4)
    one = series.add(first)
    again = RunningTotal(COUNT, SCHEMA, ledger, releases=3, spend=1)
    mixed = Table.of(first.frame.reverse(), SCHEMA)
    same = again.add(mixed)
    assert same.stored and same.number == 1 and same.frame.equals(one.frame) and same.cost.spent == 0
    assert again.add(second).number == 2 and series.add(third).number == 3
    assert series.release(1).frame.equals(one.frame)
    with pytest.raises(QueryRefused, match="declared"):
        series.add(fourth)
    assert ledger.verify().spent == spent
    with pytest.raises(BudgetExceeded):
        RunningTotal(COUNT, SCHEMA, ledger, releases=4, spend="1.5")
    with pytest.raises(ParameterError):
        RunningTotal(COUNT, SCHEMA, ledger, releases=3, spend="0.1", unit=RECORD, deliveries=2)
    ledger.close()


def test_what_a_delivery_holds_beyond_its_declarations_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    ledger = create_ledger(tmp_path / "a.ledger", "visits", Budget.epsilon(MUCH))
    series = RunningTotal(SUM, SCHEMA, ledger, releases=8)
    odd = [("p", "a", "1e308"), ("q", "b", "-99999999999999999999"), ("r", "a", "nan"), ("s", "zzz", "x")]
    assert series.add(table(odd)).frame["s"][0] == pytest.approx(10, abs=1)
    # A schema that changes between deliveries changes nothing: the grid is the one that was paid for.
    wider = Schema(
        {**SCHEMA.columns, "age": Column("age", "quasi", "numeric", bounds=(0.0, 1000.0), step=0.5)}
    )
    frame = pl.DataFrame({"who": ["t"], "ward": ["a"], "age": ["900"]})
    assert series.add(Table.of(frame, wider)).frame["s"][0] == pytest.approx(20, abs=1)
    # What a stranger laid in the state folder is passed over.
    (kept,) = (tmp_path / "state" / "running").glob("*/*.state")
    kept.with_name("notes-1.state").write_bytes(b"?")
    assert series.done == 2
    less = Schema({name: SCHEMA.columns[name] for name in ("who", "ward")})
    with pytest.raises(SchemaError):
        series.add(Table.of(frame.drop("age"), less))
    assert series.done == 2 and ledger.verify().spent == series.plan.charge
    ledger.close()


def test_an_older_or_edited_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    ledger = create_ledger(tmp_path / "a.ledger", "visits", Budget.epsilon(2))
    series = RunningTotal(COUNT, SCHEMA, ledger, releases=4)
    first, second, third, _ = stream(4)
    series.add(first)
    (kept,) = (tmp_path / "state" / "running").glob("*/*.state")
    assert kept.parent.stat().st_mode & 0o077 == 0 and kept.stat().st_mode & 0o077 == 0
    before = kept.read_bytes()
    series.add(second)
    (now,) = (tmp_path / "state" / "running").glob("*/*.state")
    text = now.read_bytes()
    now.unlink()
    kept.write_bytes(before)
    with pytest.raises(LedgerError, match="older"):
        series.add(third)
    now.write_bytes(text.replace(b'"done":2', b'"done":1'))
    with pytest.raises(LedgerError):
        series.add(third)
    now.write_bytes(text)
    assert series.add(third).number == 3
    assert "x1-1" not in text.decode()
    ledger.close()


CHILD = """
import os, signal, sys
from pathlib import Path
from velado.query.store import ChainedLedger, RunningShelf, open_ledger
from velado.query.running.running_total import RunningTotal
sys.path.insert(0, sys.argv[4])
from tests.query.running.test_running_total import COUNT, SCHEMA, stream
where, step, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
def dying(kind, name, before):
    honest = getattr(kind, name)
    def dies(*given):
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        honest(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(kind, name, dies)
series = RunningTotal(COUNT, SCHEMA, open_ledger(where), releases=8)
dying(*{"drawn": (RunningShelf, "put", True), "kept": (RunningShelf, "put", False), "reserved": (ChainedLedger, "reserve", False),
  "recorded": (ChainedLedger, "record", False)}[step])
series.add(stream(8)[at])
"""


@pytest.mark.slow
def test_a_series_killed_at_any_step_goes_on_and_nothing_is_told_twice(tmp_path: Path) -> None:
    where = tmp_path / "a.ledger"
    ledger = create_ledger(where, "visits", Budget.epsilon(MUCH))
    series = RunningTotal(COUNT, SCHEMA, ledger, releases=8)
    ledger.close()
    deliveries = stream(8)
    exact = np.cumsum([one.frame.filter(pl.col("ward") == "a").height for one in deliveries])
    root = str(Path(__file__).parents[3])
    for at, step in enumerate(
        ("drawn", "kept", "reserved", "recorded", "drawn", "kept", "reserved", "recorded")
    ):
        died = subprocess.run(
            [sys.executable, "-c", CHILD, str(where), step, str(at), root],
            capture_output=True,
            env=dict(os.environ),
            timeout=120,
        )
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        ledger = open_ledger(where)
        series = RunningTotal(COUNT, SCHEMA, ledger, releases=8)
        assert series.done == at + (step == "recorded")
        release = series.add(deliveries[at])
        assert release.number == at + 1 and release.stored == (step == "recorded")
        assert abs(release.frame["n"][0] - exact[at]) <= 2
        assert ledger.verify().spent == series.plan.charge
        ledger.close()


def test_the_command_goes_on_with_the_next_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('[columns.ward]\nrole = "quasi"\nvalues = ["a", "b"]\n', "utf-8")
    for at in (1, 2):
        Path(f"w{at}.csv").write_text("ward\n" + "a\n" * (100 * at), "utf-8")
    flags = [
        "--schema",
        "s.toml",
        "--releases",
        "4",
        "--epsilon",
        "50",
        "--ledger",
        "v.ledger",
        "--json",
        "SELECT COUNT(*) AS n FROM deliveries",
    ]
    told = []
    for at in (1, 2, 1):
        assert run(["running", f"w{at}.csv", *flags]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert [one["release"] for one in told] == [1, 2, 1] and [one["stored"] for one in told] == [
        False,
        False,
        True,
    ]
    assert abs(told[1]["answer"]["rows"][0][0] - 300) < 5 and told[0]["answer"] == told[2]["answer"]
    assert run(["running", "w1.csv", "--price", *flags]) == 0
    assert Fraction(json.loads(capsys.readouterr().out)["charge"]) <= 50
    assert run(["running", "w1.csv", *flags[:6], "SELECT COUNT(*) FROM deliveries"]) != 0
    assert levels_of(4) == 3
