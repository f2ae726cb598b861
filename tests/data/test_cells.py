"""Stored cells: whole or not there, found by id, one process at a time, nobody's files touched."""

from pathlib import Path

import polars as pl
import pytest

from velado.data.cells import CELLS, CellStore
from velado.errors import OutputError

COLUMNS = {"cell": pl.String, "again": pl.Boolean, "value": pl.Float64}
ONE, TWO = "a" * 24, "b" * 24


@pytest.fixture
def store(tmp_path: Path) -> CellStore:
    made = CellStore(tmp_path / "study", COLUMNS)
    made.begin()
    return made


def test_a_cell_is_read_back_in_the_order_asked(store: CellStore) -> None:
    store.put({"cell": ONE, "again": False, "value": 1.0})
    store.put({"cell": TWO, "again": True, "value": None})
    assert store.read([TWO, "c" * 24, ONE]).get_column("cell").to_list() == [TWO, ONE]
    assert store.settled([ONE, TWO]) == {ONE}
    assert store.read([]).schema == pl.Schema(COLUMNS)


def test_a_broken_or_foreign_file_counts_as_not_there(store: CellStore) -> None:
    folder = store.folder / CELLS
    (folder / f"{ONE}.parquet").write_bytes(b"half")
    pl.DataFrame({"cell": [ONE]}).write_parquet(folder / f"{TWO}.parquet")
    assert store.read([ONE, TWO]).height == 0
    store.put({"cell": ONE, "again": False, "value": 2.0})
    assert store.read([ONE]).item(0, "value") == 2.0


def test_what_a_killed_process_left_half_written_is_cleared_away(store: CellStore) -> None:
    left = store.folder / CELLS / f".{ONE}.parquet.xyz"
    left.write_bytes(b"half")
    store.begin()
    assert not left.exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(OutputError, match="not of a study"):
        CellStore(tmp_path, COLUMNS).begin()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("x")
    with pytest.raises(OutputError, match="cannot be used"):
        CellStore(tmp_path / "study", COLUMNS).begin()


def test_only_one_works_in_a_folder_at_a_time(store: CellStore) -> None:
    pytest.importorskip("fcntl", reason="folders are locked on Unix only")
    with store.alone(), pytest.raises(OutputError, match="Another process"), store.alone():
        pass
    with store.alone():
        pass
