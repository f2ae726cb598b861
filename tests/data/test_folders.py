"""A folder is written whole or not at all, and --force replaces a release and nothing else."""

import ctypes
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from velado.data.staging import write_file, write_folder
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


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system whose C library cannot exchange two names in one step."""

    def none(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", none)


def test_nothing_is_left_behind_when_the_replacement_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "out")
    rename = Path.rename

    def fail_into_place(self: Path, target: Path) -> Path:
        if Path(target) == folder and self.name == "new":
            raise OSError(28, os.strerror(28))
        return rename(self, target)

    without_exchange(monkeypatch)
    monkeypatch.setattr(Path, "rename", fail_into_place)
    with pytest.raises(OutputError, match="cannot be written"):
        write_folder(folder, {**FILES, "table.csv": b"a\n2\n"}, force=True)
    assert (folder / "table.csv").read_bytes() == FILES["table.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_old_release_that_cannot_be_put_back_is_put_back_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path / "out")
    rename = Path.rename

    def fail_onto_the_name(self: Path, target: Path) -> Path:
        if Path(target) == folder:
            raise OSError(5, os.strerror(5))
        return rename(self, target)

    with monkeypatch.context() as broken:
        without_exchange(broken)
        broken.setattr(Path, "rename", fail_onto_the_name)
        with pytest.raises(OutputError):
            write_folder(folder, FILES, force=True)
    assert not folder.exists()
    with pytest.raises(OutputError, match="exists already"):
        write_folder(folder, {"manifest.json": b"{}"})
    assert (folder / "table.csv").read_bytes() == FILES["table.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_release_is_replaced_where_names_cannot_be_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_exchange(monkeypatch)
    folder = made(tmp_path / "out")
    write_folder(folder, {**FILES, "table.csv": b"a\n2\n"}, force=True)
    assert (folder / "table.csv").read_bytes() == b"a\n2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


NESTED = {
    "release/table.csv": b"a\n1\n",
    "release/manifest.json": b'{"manifest_version": 1}',
    "private/report.html": b"secret",
    "private/owner.key": b"secret",
}


@pytest.fixture(params=[0, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of Unix")
def test_what_stays_is_private_whatever_the_umask_and_what_leaves_is_not_writable_by_others(
    tmp_path: Path, umask: int
) -> None:
    folder = write_folder(tmp_path / "out", NESTED)
    write_file(tmp_path / "key", b"secret", private=True)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes.pop(folder / "private") == 0o700
    assert modes.pop(folder / "private" / "report.html") == 0o600
    assert modes.pop(folder / "private" / "owner.key") == 0o600
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    for path, mode in modes.items():
        assert mode == (0o755 if path.is_dir() else 0o644) & ~umask


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/x",
        "../x",
        "release/../x",
        "release/..",
        "a/b/c",
        "release/",
        "./x",
        "a\\b",
        "a\0b",
        ".",
        "..",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="no name for a file"):
        write_folder(tmp_path / "out", {**NESTED, name: b""})
    assert list(tmp_path.iterdir()) == []


def test_a_release_of_either_layout_is_replaced_by_one_of_the_other(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for files in (NESTED, FILES, NESTED, NESTED):
        write_folder(folder, files, force=True)
        found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        assert found == set(files)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_joined_tables_of_a_nested_release_belong_to_it(tmp_path: Path) -> None:
    tables = {"visits": {"output": {"file": "visits.csv"}}}
    document = json.dumps({"manifest_version": 1, "tables": tables}).encode()
    folder = tmp_path / "out"
    write_folder(folder, {"release/visits.csv": b"a\n", "release/manifest.json": document})
    write_folder(folder, NESTED, force=True)
    assert not (folder / "release" / "visits.csv").exists()


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "table.csv",
        "manifest.json",
        "release/patients.csv",
        "release/recipe.toml",
        "private/notes.txt",
        "private/table.csv",
        "release/deep/table.csv",
        "other/table.csv",
    ],
)
def test_a_nested_release_with_a_file_of_the_user_is_not_replaced(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "out", NESTED)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"mine")
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, NESTED, force=True)
    assert (folder / name).read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["private", "release", "private/report.html", "release/manifest.json"])
def test_a_nested_release_with_a_link_in_it_is_not_replaced(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "out", NESTED)
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, NESTED, force=True)
    assert (tmp_path / "elsewhere").exists()


def test_private_files_without_a_manifest_are_not_replaced(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", {"private/owner.key": b"secret"})
    with pytest.raises(OutputError, match="other files"):
        write_folder(folder, NESTED, force=True)


def test_a_nested_release_that_holds_a_file_the_run_reads_is_not_replaced(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", NESTED)
    with pytest.raises(OutputError, match=r"'owner\.key'"):
        write_folder(folder, NESTED, force=True, reads=iter([folder / "private" / "owner.key"]))


def test_what_only_looks_like_staging_is_not_swept(tmp_path: Path) -> None:
    kept = [".out.velado-abcdefgh", ".out.velado-abc", ".out.velado-ABCDEFGH", ".output.velado-abcdefgh"]
    for name in kept:
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_bytes(b"mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "new").write_bytes(b"mine")
    (tmp_path / ".out.velado-linklink").symlink_to(tmp_path / "elsewhere")
    write_folder(tmp_path / "out", NESTED)
    assert all((tmp_path / name / "thesis.tex").exists() for name in kept)
    assert (tmp_path / ".out.velado-linklink" / "new").exists()


def test_without_force_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    class Meanwhile(dict[str, bytes]):
        def items(self) -> Any:
            if not folder.exists():
                folder.mkdir()
                (folder / "manifest.json").write_bytes(b'{"manifest_version": 1}')
            return super().items()

    with pytest.raises(OutputError, match="exists already"):
        write_folder(folder, Meanwhile(NESTED))
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_written_whole_with_its_mode(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.toml", b"x" * 100_000)
    write_file(path, b"y", force=True)
    assert path.read_bytes() == b"y" and stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [p.name for p in tmp_path.iterdir()] == ["a.toml"]
