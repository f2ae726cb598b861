"""The screen of streams shows what a stream in the project's folder has published, and no cell."""

from pathlib import Path

from velado.release.stream.connectors.runner import run_stream

from ...release.stream.test_running import SCHEMA, STREAM, write_lines
from .desks import Desk


def test_windows_of_a_stream_are_shown_while_it_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "No stream has run in this folder yet." in desk.get("/streams").words
    assert "/streams" not in desk.get("/open").text
    ward = desk.project.folder / "ward"
    ward.mkdir()
    (ward / "schema.toml").write_text(SCHEMA)
    (ward / "owner.key").write_bytes(bytes(range(40)))
    (ward / "stream.toml").write_text(STREAM)
    write_lines(ward, 2)
    run_stream(ward / "stream.toml")
    with (ward / "private" / "windows.jsonl").open("ab") as log:
        log.write(b'{"window": 3, "be')  # a line that is being written
    page = desk.get("/streams")
    assert "ward/private: 2 windows" in page.words and "Smallest group" in page.words
    assert page.text.count('<th scope="row">') == 2 and 'href="/streams"' in desk.get("/open").text
    assert desk.get("/static/streams.js").status == 200
