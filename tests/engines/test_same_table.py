"""The same table in memory and by DuckDB, from Parquet, CSV and Arrow: equal as multisets, with every verdict."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.engines.same_table import Case, in_memory, on_engine, random_case, seeds

from velado.engines.duckdb_source import DuckDBSource, of_arrow, open_files
from velado.engines.row_source import FileSink, Recoding, as_read

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")


def by_duckdb(
    case: Case,
    source: DuckDBSource,
    folder: Path,
    format: str,
    judge: bool = True,
    written: list[DuckDBSource] | None = None,
) -> tuple[object, ...]:
    """What DuckDB publishes of *source*, written as *format* and read again; *written* gets the table as it is read."""
    source = as_read(source, case.schema)

    def write(recoding: Recoding) -> DuckDBSource:
        sink = FileSink(folder / f"out.{format}", format)
        source.write(recoding, sink)
        opened = open_files(sink.path, case.schema, folder)
        if written is not None:
            written.append(opened)
        return opened

    return on_engine(case, source, write, judge)


def parquet(case: Case, folder: Path, parts: int) -> DuckDBSource:
    step = -(-case.frame.height // parts)
    for at in range(parts):
        case.frame[at * step : (at + 1) * step].write_parquet(folder / f"part-{at}.parquet")
    return open_files(f"{folder}/part-*.parquet", case.schema, folder)


def csv(case: Case, folder: Path, parts: int) -> DuckDBSource:
    step = -(-case.frame.height // parts)
    for at in range(parts):
        case.frame[at * step : (at + 1) * step].write_csv(folder / f"part-{at}.csv")
    return open_files(f"{folder}/part-*.csv", case.schema, folder)


def arrow(case: Case, folder: Path, parts: int) -> DuckDBSource:
    return of_arrow(case.frame.to_arrow())


PARTS = (1, 2, 3, 4, 17, 64)
MADE = {"parquet": parquet, "csv": csv, "arrow": arrow}


def compare(seeds: range, kind: str, folder: Path) -> dict[str, int]:
    """How often each outcome was seen, all of them equal in memory and by DuckDB."""
    make: Callable[[Case, Path, int], DuckDBSource] = MADE[kind]
    seen: dict[str, int] = {}
    for seed in seeds:
        case = random_case(seed, typed=kind != "csv")
        place = folder / str(seed)
        place.mkdir()
        expected = in_memory(case)
        found = by_duckdb(
            case, make(case, place, PARTS[seed % len(PARTS)]), place, "csv" if kind == "csv" else "parquet"
        )
        assert found == expected, f"seed {seed} {case.method}"
        seen[str(expected[0])] = seen.get(str(expected[0]), 0) + 1
    return seen


@pytest.mark.parametrize("kind", MADE)
def test_memory_and_duckdb_publish_the_same_table(kind: str, tmp_path: Path) -> None:
    seen = compare(range(12), kind, tmp_path)
    assert seen["held"] >= 6  # most tables can be published: the test is not one of refusals


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])  # two hundred Arrow tables: in test_postgres_source.py
def test_memory_and_duckdb_publish_the_same_of_many_files(kind: str, tmp_path: Path) -> None:
    assert compare(seeds(1000, 60), kind, tmp_path)["held"] >= 30


def test_the_table_does_not_depend_on_how_the_rows_lie_in_files(tmp_path: Path) -> None:
    case = random_case(3)
    tables = []
    for parts in (1, 3, 64):
        place = tmp_path / str(parts)
        place.mkdir()
        shuffled = Case(**{**vars(case), "frame": case.frame.sample(fraction=1.0, shuffle=True, seed=parts)})
        source = parquet(shuffled, place, parts)
        assert by_duckdb(shuffled, source, place, "parquet")[0] == "held"
        tables.append(pl.read_parquet(place / "out.parquet"))
    # Not only as multisets: the order is drawn from what is published, under the key.
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
