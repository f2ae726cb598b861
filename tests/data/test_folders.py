"""A folder is written whole or not at all, and --force replaces a release and nothing else."""

import json
import os
from pathlib import Path

import pytest

from velado.data.folders import write_folder
from velado.errors import OutputError

FILES = {"table.csv": b"a\n1\n", "manifest.json": b'{"manifest_version": 1}'}


def made(folder: Path, **more: bytes) -> Path:
    """A release folder, with *more* files laid into it afterwards."""
    write_folder(folder, FILES)
    for name, data in more.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


def test_a_release_is_replaced_when_forced(tmp_path: Path) -> None:
    folder = made(tmp_path / "out", report__html=b"", schema__toml=b"", recipe__toml=b"")
    write_folder(folder, {**FILES, "table.csv": b"a\n2\n"}, force=True)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "table.csv"]
    assert (folder / "table.csv").read_bytes() == b"a\n2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["notes__txt", "patients__csv"])
def test_a_folder_that_holds_a_file_of_the_user_is_not_replaced(tmp_path: Path, name: str) -> None:
    folder = made(tmp_path / "out", **{name: b"mine"})
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, FILES, force=True)
    assert (folder / name.replace("__", ".")).read_bytes() == b"mine"


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"name": "my app", "version": 1}', "\udcff"])
def test_a_manifest_of_something_else_does_not_make_a_release(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, FILES, force=True)
    assert (folder / "manifest.json").exists()


def test_a_folder_inside_the_release_is_not_deleted(tmp_path: Path) -> None:
    folder = made(tmp_path / "out")
    (folder / "report.html").mkdir()
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, FILES, force=True)


def test_the_tables_a_manifest_lists_belong_to_the_release(tmp_path: Path) -> None:
    tables = {"visits": {"output": {"file": "visits.csv"}}}
    document = json.dumps({"manifest_version": 1, "tables": tables}).encode()
    folder = tmp_path / "out"
    write_folder(folder, {"visits.csv": b"a\n", "manifest.json": document})
    write_folder(folder, FILES, force=True)
    assert not (folder / "visits.csv").exists()


def test_a_folder_that_holds_a_file_the_run_reads_is_not_replaced(tmp_path: Path) -> None:
    folder = made(tmp_path / "out")
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    for read in (folder / "table.csv", link / "table.csv"):
        with pytest.raises(OutputError, match=r"'table\.csv'"):
            write_folder(folder, FILES, force=True, reads=[read])
    assert (folder / "table.csv").exists()


def test_a_link_stays_a_link_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    folder = made(tmp_path / "real")
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    written = write_folder(link, {**FILES, "table.csv": b"a\n2\n"}, force=True)
    assert link.is_symlink() and written == link
    assert (folder / "table.csv").read_bytes() == b"a\n2\n"


def test_the_folder_one_stands_in_is_named_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "here")
    monkeypatch.chdir(folder)
    for force in (False, True):
        with pytest.raises(OutputError, match="'here'"):
            write_folder(Path("."), FILES, force=force)
    assert (folder / "table.csv").exists()


def test_a_name_no_file_system_takes_is_an_error_in_three_sentences(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_folder(tmp_path / ("x" * 300), FILES)


def test_nothing_is_left_behind_when_the_replacement_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "out")
    rename = Path.rename

    def fail_into_place(self: Path, target: Path) -> Path:
        if Path(target) == folder and ".old." not in str(self):
            raise OSError(28, os.strerror(28))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_into_place)
    with pytest.raises(OutputError):
        write_folder(folder, FILES, force=True)
    assert (folder / "table.csv").read_bytes() == FILES["table.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
