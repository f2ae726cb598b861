"""The page that shows how to keep a running total: its schema, commands and Python run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from velado.apps.cli import run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "keep-a-running-total.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.S | re.M)
    toml, commands, python = (body for _, body in found)
    Path("schema.toml").write_text(toml, "utf-8")
    for week in (1, 2):
        rows = "".join(f"p{at * week},{('north', 'south')[at % 2]}\n" for at in range(300))
        Path(f"week-0{week}.csv").write_text("patient,ward\n" + rows, "utf-8")
    for line in commands.splitlines():
        assert run(shlex.split(line)[1:]) == 0, line
    names: dict[str, object] = {}
    exec(python, names)
    assert names["release"].number == 2 and names["release"].stored
