"""The screen of streams shows what a stream in the project's folder has published, and no cell."""

from pathlib import Path

from .desks import Desk, run_a_stream


def test_windows_of_a_stream_are_shown_while_it_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "No stream has run in this folder yet." in desk.get("/streams").words
    assert "/streams" not in desk.get("/open").text
    ward = run_a_stream(desk.project.folder, 2)
    with (ward / "private" / "windows.jsonl").open("ab") as log:
        log.write(b'{"window": 3, "be')  # a line that is being written
    page = desk.get("/streams")
    assert (
        "ward/private: 2 windows" in page.words
        and "Smallest group" in page.words
        and "Left out" in page.words
    )
    assert page.text.count('<th scope="row">') == 2 and 'href="/streams"' in desk.get("/open").text
    assert desk.get("/static/streams.js").status == 200
    assert "ward/private: 2 janelas" in desk.get("/streams?lang=pt").words


def test_a_stream_that_runs_elsewhere_is_not_shown_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run_a_stream(elsewhere, 1)
    desk = Desk(tmp_path / "project")
    (desk.project.folder / "ward").symlink_to(elsewhere / "ward")
    assert "No stream has run in this folder yet." in desk.get("/streams").words
