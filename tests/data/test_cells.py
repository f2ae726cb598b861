"""Stored cells: whole or not there, found by id, one process at a time, nobody's files touched."""

import hashlib
from pathlib import Path

import polars as pl
import pytest

from velado.data.cells import CELLS, SUFFIX, CellStore
from velado.data.table_bytes import parquet_bytes
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
    (folder / f"{ONE}{SUFFIX}").write_bytes(b"half")
    data = parquet_bytes(pl.DataFrame({"cell": [ONE]}))
    (folder / f"{TWO}{SUFFIX}").write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    assert store.read([ONE, TWO]).height == 0
    assert store.look([ONE, TWO, "c" * 24]).damaged == 2
    store.put({"cell": ONE, "again": False, "value": 2.0})
    assert store.read([ONE]).item(0, "value") == 2.0


def test_what_a_killed_process_left_half_written_is_cleared_away(store: CellStore) -> None:
    left = store.folder / CELLS / f".{ONE}.parquet.xyz"
    left.write_bytes(b"half")
    with store.alone():
        assert not left.exists()


def test_what_another_process_is_writing_is_left_alone(store: CellStore) -> None:
    pytest.importorskip("fcntl", reason="folders are locked on Unix only")
    with store.alone():
        theirs = store.folder / CELLS / f".{ONE}{SUFFIX}.xyz"
        theirs.write_bytes(b"half")
        store.begin()
        with pytest.raises(OutputError, match="Another process"), store.alone():
            pass
        assert theirs.exists()


def test_every_byte_that_changed_on_the_disk_is_noticed(store: CellStore) -> None:
    store.put({"cell": ONE, "again": False, "value": 0.5})
    path = store.folder / CELLS / f"{ONE}{SUFFIX}"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = store.look([ONE])
        assert (found.frame.height, found.damaged) == (0, 1), at
    path.write_bytes(whole[:-1])
    assert store.look([ONE]).damaged == 1
    path.write_bytes(whole)
    assert store.read([ONE]).item(0, "value") == 0.5


def test_a_folder_is_checked_without_being_made(tmp_path: Path) -> None:
    CellStore(tmp_path / "new" / "study", COLUMNS).check()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "study"):
        with pytest.raises(OutputError, match="cannot be used"):
            CellStore(path, COLUMNS).check()


def test_the_folder_one_stands_in_is_called_by_its_name(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=f"folder '{tmp_path.name}'"):
        CellStore(Path(), COLUMNS).begin()


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
