"""An engine run tells its steps, its rows and how far it is; shares never fall, and the time left follows from them."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from tests.engines.same_table import KEY
from tests.engines.test_lake import schema, stays

from velado.apps.cli.show import time_left
from velado.engines import duckdb_source
from velado.engines.duckdb_source import of_arrow
from velado.study.engine_run import publish_files

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")


def test_a_run_tells_every_step_with_its_rows_and_never_goes_back(tmp_path: Path) -> None:
    stays(900).write_parquet(tmp_path / "p.parquet")
    told: list[tuple[float, str]] = []
    publish_files(
        tmp_path / "p.parquet",
        schema(),
        "mondrian",
        k=5,
        out=tmp_path / "out",
        key=KEY,
        progress=lambda share, doing="": told.append((share, doing)),
    )
    shares, doings = [share for share, _ in told], [str(doing) for _, doing in told]
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 1.0
    begun = [share for share, doing in told if str(doing).startswith("step 3 of 5, 900 rows: writing")]
    assert begun and begun[0] == pytest.approx(0.45)
    assert {doing.split(",")[0] for doing in doings[:-1]} == {f"step {n} of 5" for n in range(1, 6)}


def test_a_long_question_is_watched_from_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_source, "_LOOKS", 0.005)
    source = of_arrow(pa.table({"n": [1]}))
    source.connection.execute("CREATE TEMP TABLE long AS SELECT hash(range) AS n FROM range(2000000)")
    seen: list[tuple[float, int]] = []
    with source.watched(lambda share: seen.append((share, threading.get_ident()))):
        source.connection.execute("CREATE TEMP TABLE sorted AS SELECT * FROM long ORDER BY n")
    assert all(0 <= share <= 1 and thread != threading.get_ident() for share, thread in seen)
    assert seen and not [t for t in threading.enumerate() if t.ident == seen[0][1]]


def test_the_time_left_follows_from_the_time_so_far() -> None:
    assert time_left(0.04, 100) == ""
    assert time_left(0.5, 40) == "about 40 s left"
    assert time_left(0.1, 60) == "about 9 min left"
