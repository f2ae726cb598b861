"""The same table in memory and by DuckDB, from Parquet, CSV and Arrow: equal as multisets, with every verdict."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, on_engine, random_case, seeds

from velado.engines.duckdb_source import DuckDBSource, of_arrow, open_files
from velado.engines.row_source import FileSink, Recoding, as_read
from velado.errors import ParameterError
from velado.release.methods import MDAV, KMember, Mondrian, TopDownGreedy
from velado.release.sources import source_release
from velado.study.engine_run import publish_files

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


ROWS = (
    MDAV(),
    KMember(),
    TopDownGreedy(recoder="centroid"),
    Mondrian(cut="relaxed"),
    Mondrian(recoder="centroid"),
)


@pytest.mark.parametrize("method", ROWS, ids=lambda method: f"{method.name} {getattr(method, 'cut', '')}")
def test_methods_that_part_equal_rows_are_given_rows(method: object, tmp_path: Path) -> None:
    """Numbered where they lie, so that which of the rows with the same values is in which group is the same too."""
    held = 0
    for seed in range(400, 404):
        case = replace(random_case(seed), method=method)
        expected = in_memory(case)
        found = by_duckdb(case, of_arrow(case.frame.to_arrow()), tmp_path, "parquet", judge=False)
        assert found == expected, seed
        held += expected[0] == "held"
    assert held >= 3


def test_so_many_rows_are_given_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(401)
    case.frame.write_parquet(tmp_path / "rows.parquet")
    given = (tmp_path / "rows.parquet", case.schema, "mdav")
    asked = {"k": 2, "per": "row", "out": tmp_path / "out", "key": KEY, "reports": ()}
    monkeypatch.setattr(source_release, "MOST_EXPANDED", case.frame.height - 1)
    with pytest.raises(ParameterError, match=f"there are {case.frame.height}") as refused:
        publish_files(*given, **asked)
    assert refused.value.what == "'mdav' parts rows with the same values."
    assert not (tmp_path / "out").exists()


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
