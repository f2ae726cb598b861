"""What does an engine add to the time DuckDB itself needs, on Adult and on ten million rows?"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from benchmarks.timing import Row, data_folder, print_rows
from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.query.engines import engine_for_file, engine_for_table
from velado.query.needs import Grid, GridCells, GridSum, GroupKey, Need, Rows
from velado.query.unit import Unit
from velado.query.values import And, Compare

SEXES = ("Female", "Male")


def wall_seconds(work: Callable[[], Any], repeat: int) -> float:
    """The least wall time of *repeat* runs, after one to warm."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def on_adult() -> list[Row]:
    """COUNT and AVG under two conditions on 30,162 rows, beside the same SQL by hand."""
    path = data_folder() / "adult" / "adult_clean.csv"
    with path.open() as file:
        header = file.readline().strip().split(",")
    numbers = {"age": (0, 120), "hours_per_week": (0, 99)}
    schema = Schema(
        {
            name: Column(name, kind="numeric", bounds=numbers[name], step=1)
            if name in numbers
            else Column(name)
            for name in header
        }
    )
    engine = engine_for_table(read_table(path, schema), Unit())
    hours = Grid.of(schema.columns["hours_per_week"])
    where = And((Compare("age", ">=", Fraction(30)), Compare("sex", "=", "Female")))
    bare = duckdb.connect()
    bare.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{path}')")
    condition = "FROM t WHERE age >= 30 AND sex = 'Female'"
    asked: list[tuple[str, tuple[GroupKey, ...], tuple[Need, ...], str]] = [
        ("COUNT", (), (Rows(),), f"SELECT count(*) {condition}"),
        (
            "AVG",
            (),
            (Rows("hours_per_week"), GridSum(hours, hours.centre)),
            f"SELECT count(hours_per_week), sum(hours_per_week) {condition}",
        ),
        (
            "AVG by sex",
            (GroupKey("sex", SEXES),),
            (Rows("hours_per_week"), GridSum(hours, hours.centre)),
            f"SELECT sex, count(hours_per_week), sum(hours_per_week) {condition} GROUP BY sex",
        ),
    ]
    rows = []
    for name, keys, needs, sql in asked:
        for seconds in (None, 30.0):
            ours = wall_seconds(lambda k=keys, n=needs, s=seconds: engine.tally(where, k, n, s), 300)
            peer = wall_seconds(lambda q=sql: bare.cursor().execute(q).fetchall(), 300)
            limit = "" if seconds is None else ", with a time limit"
            rows.append(Row(f"{name}{limit}", 1000 * ours, "ms", 2.0, 1000 * peer, "bare DuckDB"))
    return rows


def on_ten_million(count: int) -> list[Row]:
    """A Parquet file of synthetic rows in groups of at most four, beside the same SQL over the same file's rows."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "home": rng.integers(0, count // 3, count),
            "sex": pl.Series(rng.integers(0, 2, count)).replace_strict({0: "Female", 1: "Male"}),
            "age": np.clip(rng.gamma(6, 7, count), 0, 119).astype(np.int16),
            "income": np.round(rng.lognormal(10, 1, count), 2),
        }
    )
    schema = Schema(
        {
            "home": Column("home"),
            "sex": Column("sex"),
            "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
            "income": Column("income", kind="numeric", bounds=(0, 1_000_000)),
        }
    )
    income, age = (Grid.of(schema.columns[name]) for name in ("income", "age"))
    where = And((Compare("age", ">=", Fraction(30)), Compare("income", "<", Fraction(50_000))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.write_parquet(path)
        del frame
        start = time.perf_counter()
        engine = engine_for_file(path, schema, Unit("home", 4))
        loading = time.perf_counter() - start
        bare = duckdb.connect()
        bare.execute("SET threads = $1", [min(8, os.cpu_count() or 1)])
        bare.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{path}')")
    condition = "FROM t WHERE age >= 30 AND income < 50000"
    by_sex = (GroupKey("sex", SEXES),)
    edges = tuple(income.low + (income.high - income.low) * b // 1000 for b in range(1001))
    asked: list[tuple[str, tuple[GroupKey, ...], tuple[Need, ...], str]] = [
        ("COUNT", (), (Rows(),), f"SELECT count(*) {condition}"),
        (
            "AVG by sex",
            by_sex,
            (Rows("income"), GridSum(income, income.centre)),
            f"SELECT sex, count(income), sum(income) {condition} GROUP BY sex",
        ),
        (
            "histogram of age",
            (),
            (GridCells(age, tuple(range(0, 121, 10))),),
            f"SELECT age // 10, count(*) {condition} GROUP BY 1",
        ),
        (
            "1,000 uneven bins of income",
            (),
            (GridCells(income, edges),),
            f"SELECT floor(income / 1000), count(*) {condition} GROUP BY 1",
        ),
    ]
    rows = [Row(f"load {count:,} rows, cut to 4 a group", loading, "s", note="with SHA-256 of the file")]
    for name, keys, needs, sql in asked:
        ours = wall_seconds(lambda k=keys, n=needs: engine.tally(where, k, n), 5)
        peer = wall_seconds(lambda q=sql: bare.cursor().execute(q).fetchall(), 5)
        rows.append(
            Row(name, ours, "s", round(peer + 0.3, 3), peer, "bare DuckDB", f"{ours - peer:+.3f} s beyond it")
        )
    return rows


def main() -> None:
    """Print the tables."""
    print_rows("Engines on Adult (30,162 rows, least wall time)", on_adult())
    print_rows("Engines on 10,000,000 rows (least wall time)", on_ten_million(10_000_000))


if __name__ == "__main__":
    main()
