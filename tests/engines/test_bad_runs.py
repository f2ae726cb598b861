"""Runs that go wrong: one clear error, nothing published, and nothing left beside the target after the next run.

| what is wrong | shown here, and in |
|---|---|
| schemas that differ between parts | `test_texts_whose_columns_differ`, `test_lake` (Parquet), `test_lake_columns` (capitals, folders), `test_spark` (bad files) |
| a column that one part lacks | the same |
| a part that changes or goes during the run | `test_a_part_that_changes_or_goes`, `test_lake`, `test_spark` |
| empty parts, a table of none but empty parts | `test_empty_parts_of_text`, `test_lake` (Parquet), `test_spark` (64 parts, most of them empty) |
| one tuple with half of all rows | `test_one_tuple_with_half_of_all_rows`, `test_cut_first`, `test_spark` (skew) |
| a part that cannot be read, or is damaged | `test_a_part_that_cannot_be_read`, `test_lake` (damaged), `test_spark` (bad files) |
| a lost connection | `test_a_lost_connection`, `test_postgres_source` |
| a full disk | `test_a_full_disk`, `test_no_room_to_spill_to`, `test_lake` |
| a killed process | `test_a_run_killed_at_fifty_points`, `test_rows_that_a_killed_check_set_aside` |
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.killed_run import MEANING, publish_lake
from tests.engines.same_table import KEY
from tests.engines.test_lake import lake as lake
from tests.engines.test_lake import nothing_published, release, schema, stays

from velado.data.staging import file_digest, scratch_folder
from velado.engines.postgres_connection import connected
from velado.errors import EngineError, OutputError, ParameterError, TableError, VeladoError
from velado.release.anonymize import anonymize
from velado.study.engine_run import publish_files, publish_table

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
ROOT = Path(__file__).parents[2]


def at_step(step: int, act: Callable[[], object]) -> Callable[[float, str], None]:
    """A progress that does something once, when a step of a run begins."""
    done = []

    def told(share: float, doing: str = "") -> None:
        if not done and str(doing).startswith(f"step {step} of"):
            done.append(act())

    return told


# A disk without room: the system refuses to write more than so many bytes into one file.
FULL = """
import resource, sys
from tests.engines.killed_run import MEANING, KEY
from velado.errors import VeladoError
from velado.study.engine_run import publish_files
lake, out, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    publish_files(lake, MEANING, "mondrian", k=5, out=out, key=KEY)
except VeladoError as error:
    print(type(error).__name__, error.what, error.why)
"""


@pytest.mark.slow
@pytest.mark.parametrize("most", [500, 6_000])  # the table itself, or the report behind it
def test_a_full_disk_is_one_error_and_leaves_nothing(most: int, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    for at in range(2):
        stays(1_000, at).write_parquet(tmp_path / "lake" / f"{at}.parquet")
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "lake"), str(tmp_path / "out"), str(most)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0 and run.stdout.startswith("OutputError"), run.stdout + run.stderr
    assert len(run.stdout.splitlines()) == 1 and "Traceback" not in run.stderr
    assert nothing_published(tmp_path)


SPILLED = """
import resource, sys
from pathlib import Path
from velado.data.schema import Schema
from velado.engines.duckdb_source import open_files
from velado.errors import EngineError
folder = Path(sys.argv[1])
rows = open_files(folder / "p.parquet", Schema({}), folder, memory="60MB")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    print(rows.lone("n"))
except EngineError as error:
    print(error.what)
"""


@pytest.mark.slow
def test_no_room_to_spill_to_is_not_taken_for_a_damaged_file(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).permutation(3_000_000)
    pl.DataFrame({"n": rows}).write_parquet(tmp_path / "p.parquet")
    run = subprocess.run(
        [sys.executable, "-c", SPILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "ran out of memory, or of disk space to spill to" in run.stdout, run.stdout + run.stderr


def test_one_tuple_with_half_of_all_rows_is_published_as_in_memory(tmp_path: Path) -> None:
    one = pl.DataFrame({"age": [50] * 3_000, "sex": ["F"] * 3_000, "ill": ["flu", "cold", "asthma"] * 1_000})
    frame = pl.concat([one, stays(3_000)]).sample(fraction=1.0, shuffle=True, seed=1)
    (tmp_path / "lake").mkdir()
    for at in range(3):
        frame[at * 2_000 : (at + 1) * 2_000].write_parquet(tmp_path / "lake" / f"{at}.parquet")
    out = release(tmp_path / "lake", tmp_path)
    found = pl.read_parquet(out / "release" / "table.parquet")
    expected = anonymize(frame, schema(), "mondrian", k=5, key=KEY).frame
    names = found.columns
    assert found.cast(pl.String).sort(names).equals(expected.select(names).cast(pl.String).sort(names))


def test_a_part_that_cannot_be_read_is_refused_by_name(lake: Path, tmp_path: Path) -> None:
    (lake / "part-9.parquet").symlink_to(tmp_path / "gone.parquet")
    for place in (lake, f"{lake}/*.parquet"):
        with pytest.raises(TableError, match=r"There is no file .part-9\.parquet."):
            release(place, tmp_path)
    assert nothing_published(tmp_path)


def test_empty_parts_of_text_and_tables_of_none_but_empty_parts(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    stays(300).write_csv(lake / "a.csv")
    (lake / "b.csv").write_text("age,sex,ill\n")
    assert pl.read_csv(release(lake, tmp_path) / "release" / "table.csv").height == 300
    (lake / "c.csv").write_text("")
    with pytest.raises(TableError, match=r"'c\.csv' is empty"):
        release(lake, tmp_path, force=True)
    (lake / "c.csv").unlink()
    (lake / "a.csv").unlink()
    with pytest.raises(TableError, match="has no rows"):
        release(lake, tmp_path, force=True)


@pytest.mark.parametrize("row", [0, 60_000])
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_text_with_a_zero_byte_is_refused_wherever_it_stands(engine: str, row: int, tmp_path: Path) -> None:
    """Readers differ in what they make of one, and nobody could read the published table again."""
    cells = stays(70_000).with_row_index("at").with_columns(pl.col("ill").str.replace("^", " "))
    odd = cells.with_columns(
        pl.when(pl.col("at") == row).then(pl.lit("\0z")).otherwise("ill").alias("ill")
    ).drop("at")
    odd.write_csv(tmp_path / "odd.csv")
    with pytest.raises(TableError, match=r"'odd\.csv' holds zero bytes"):
        if engine == "memory":
            anonymize(tmp_path / "odd.csv", schema(), "mondrian", k=5)
        else:
            release(tmp_path / "odd.csv", tmp_path)
    assert nothing_published(tmp_path)


def test_texts_whose_columns_differ_are_refused_by_name(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    stays(50).write_csv(lake / "a.csv")
    stays(50).drop("ill").write_csv(lake / "b.csv")
    with pytest.raises(TableError, match=r"'b\.csv' lacks the column 'ill'"):
        release(lake, tmp_path)
    stays(50).select("sex", "age", "ill").write_csv(lake / "b.csv")
    with pytest.raises(TableError, match="another order"):
        release(lake, tmp_path)
    (lake / "b.csv").write_text("age,sex,ill\n31,F,flu\n31,F\n")
    with pytest.raises(TableError, match="cannot be read"):
        release(lake, tmp_path)
    assert nothing_published(tmp_path)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("change", ["written", "gone"])
def test_a_part_that_changes_or_goes_at_any_step_is_noticed(
    step: int, change: str, lake: Path, tmp_path: Path
) -> None:
    part = lake / "part-1.parquet"
    act = part.unlink if change == "gone" else lambda: stays(200, 9).write_parquet(part)
    with pytest.raises(TableError, match=r"'part-1\.parquet' changed while it was read"):
        release(lake, tmp_path, progress=at_step(step, act))
    assert nothing_published(tmp_path)
    if change == "written":
        release(lake, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_lost_connection_is_one_error_and_no_table(step: int, postgres_url: str, tmp_path: Path) -> None:
    with connected(postgres_url) as other:
        other.execute("DROP TABLE IF EXISTS lost, lost_k")
        other.execute(
            "CREATE TABLE lost AS SELECT 18 + n % 70 AS age, (ARRAY['F','M'])[1 + n % 2] AS sex, "
            "(ARRAY['flu','cold','asthma'])[1 + n % 3]::varchar AS ill FROM generate_series(1, 900) AS n"
        )
        other.commit()

        def cut() -> None:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            other.commit()

        def publish(**more: object) -> None:
            out = tmp_path / "out"
            publish_table(
                postgres_url, "lost", MEANING, "mondrian", k=5, to_table="lost_k", out=out, key=KEY, **more
            )

        with pytest.raises(EngineError) as lost:
            publish(progress=at_step(step, cut))
        assert "PostgreSQL server" in lost.value.what and "@" not in str(lost.value)
        assert nothing_published(tmp_path)
        there = "SELECT to_regclass('lost_k') IS NOT NULL"
        assert other.execute(there).fetchone() == (False,)
        other.commit()
        publish()
        assert other.execute(there).fetchone() == (True,)
        other.execute("DROP TABLE lost, lost_k")


@pytest.mark.slow
def test_a_table_is_never_published_onto_itself(postgres_url: str, tmp_path: Path) -> None:
    sign = "&" if "?" in postgres_url else "?"
    # Who would wait for the table to be free gives up, so that this test ends whatever happens.
    impatient = f"{postgres_url}{sign}options=-c%20lock_timeout%3D3000"
    with connected(postgres_url) as other:
        other.execute("DROP TABLE IF EXISTS own, own_k, ward.own CASCADE; DROP SCHEMA IF EXISTS ward")
        other.execute(
            "CREATE TABLE own AS SELECT 18 + n % 70 AS age, (ARRAY['F','M'])[1 + n % 2] AS sex, "
            "(ARRAY['flu','cold','asthma'])[1 + n % 3]::varchar AS ill FROM generate_series(1, 900) AS n; "
            "CREATE VIEW own_view AS SELECT * FROM own; CREATE SCHEMA ward; CREATE TABLE ward.own (age int); "
            "CREATE TABLE own_k (age int)"
        )
        other.commit()

        def publish(table: str, to_table: str, **more: object) -> None:
            given = {"k": 5, "out": tmp_path / "out", "key": KEY, "force": True, **more}
            publish_table(impatient, table, MEANING, "mondrian", to_table=to_table, **given)

        for table, to_table in (
            ("own", "own"),
            ("own", "public.own"),
            ("public.own", "own"),
            ("own_view", "own"),
        ):
            for to in (None, f"{impatient}&application_name=other"):
                with pytest.raises(OutputError, match=f"'{to_table}' is the one that the rows are read from"):
                    publish(table, to_table, to=to)
        assert nothing_published(tmp_path)
        with pytest.raises(ParameterError, match="longer than 63 bytes"):
            publish("own", "é" * 32)
        for to_table in ("own_k", "ward.own"):
            publish("own", to_table)
            assert other.execute(f"SELECT count(*) FROM {to_table}").fetchone() == (900,)
            other.commit()
        other.execute("DROP TABLE own, own_k, ward.own CASCADE; DROP SCHEMA ward")


LEFT = """
import os
from velado.data.staging import scratch_folder
with scratch_folder() as folder:
    (folder / "rows.duckdb").write_text("rows")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_rows_that_a_killed_check_set_aside_are_private_and_gone_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LEFT], env=environment, capture_output=True, timeout=120)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700 and list(left.rglob("rows.duckdb"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder() as own, scratch_folder() as other:
        assert not left.exists() and own.is_dir() and other.is_dir()  # who is alive keeps its own
    assert list(tmp_path.iterdir()) == []


POINTS = 50


@pytest.mark.slow
def test_a_run_killed_at_fifty_points_leaves_a_whole_release_or_none(tmp_path: Path) -> None:
    lake, out, begun = tmp_path / "lake", tmp_path / "out", tmp_path / "begun"
    lake.mkdir()
    for at in range(3):
        stays(400, at).write_parquet(lake / f"{at}.parquet")
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["tests.engines.killed_run"])

    def run(lasts: float | None) -> tuple[int | None, float]:
        begun.unlink(missing_ok=True)
        child = start.Process(target=publish_lake, args=(str(lake), str(out), str(begun)))
        child.start()
        while not begun.exists() and child.is_alive():
            time.sleep(0.002)
        first = time.monotonic()
        child.join(lasts)
        child.kill()
        child.join()
        return child.exitcode, time.monotonic() - first

    times = [run(None) for _ in range(2)]
    assert [code for code, _ in times] == [0, 0]
    lasts = min(time for _, time in times)
    seen = {"killed": 0, "none": 0, "whole": 0, "left": 0}
    for point in range(POINTS):
        if point % 2:
            _removed(out)
        code, _ = run(lasts * point / (POINTS - 1))
        seen["killed"] += code == -9
        seen["none" if not out.exists() else "whole"] += 1
        seen["left"] += any(".velado-" in entry.name for entry in tmp_path.iterdir())
        if out.exists():
            _whole(out)
    assert seen["killed"] >= POINTS * 0.6 and seen["none"] >= 10 and seen["left"] >= 10, seen
    assert run(None)[0] == 0
    _whole(out)
    assert [entry.name for entry in tmp_path.iterdir() if ".velado-" in entry.name] == []


def _whole(out: Path) -> None:
    """Every file of the release is there, its table is the one the manifest speaks of, and no group is under five."""
    table = out / "release" / "table.parquet"
    manifest = json.loads((out / "release" / "manifest.json").read_text("utf-8"))
    assert manifest["output"]["sha256"] == file_digest(table)
    rows = pl.read_parquet(table)
    assert rows.height == 1_200 and rows.group_by("age", "sex").len()["len"].min() >= 5
    kept = {"measured.json", "owner.key", "recipe.toml", "report.html"}
    assert {path.name for path in (out / "private").iterdir()} == kept


def _removed(out: Path) -> None:
    for path in sorted(out.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if out.exists():
        out.rmdir()


def test_every_error_of_a_run_is_one_of_ours(lake: Path, tmp_path: Path) -> None:
    """Whatever a progress of the caller's own raises passes through, and nothing is left of the run."""

    def stop() -> None:
        raise KeyboardInterrupt

    for step in (1, 3, 5):
        with pytest.raises(KeyboardInterrupt):
            publish_files(
                str(lake),
                schema(),
                "mondrian",
                k=5,
                out=tmp_path / "out",
                key=KEY,
                progress=at_step(step, stop),
            )
        assert nothing_published(tmp_path)
    with pytest.raises(VeladoError):
        publish_files(str(lake / "none*"), schema(), "mondrian", k=5, out=tmp_path / "out", key=KEY)
