"""The pictures in the docs are those of the screens there are, and the script that takes them runs."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from velado.apps.desk.screens import SCREENS
from velado.apps.desk.screens._screen import STEPS
from velado.text import told
from velado.text.languages import PLACES, read

from ..service.browser import chromium

SINGLE = {"hierarchies": "hierarchy"}
DOCS = Path(__file__).resolve().parents[3] / "docs"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_screen_has_its_picture_in_both_languages() -> None:
    made = {path.name for path in (DOCS / "pictures").glob("desk-*.png")}
    assert made == {f"desk-{name}-{tongue}.png" for name in script().SCREENS for tongue in ("en", "pt")}
    assert [one.__name__.rpartition(".")[2] for one in SCREENS] == [
        f"{SINGLE.get(name, name)}_screen" for name in script().SCREENS
    ]


def test_the_portuguese_page_names_screens_and_buttons_as_they_are() -> None:
    page = (DOCS / "tutorial" / "primeira-publicacao.md").read_text("utf-8")
    said = set(read(PLACES["pt"].read_text("utf-8")).single.values())
    named = set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", page))
    assert len(named) > 15 and named <= said
    assert [told(label, "pt") for name, label in STEPS if name != "streams"] == re.findall(
        r"^\| \*([^*]+)\* \|", page, re.M
    )


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")
def test_the_script_takes_a_picture_of_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    pictures = script()
    pictures.main(["--only", "open", "--lang", "pt", "--out", str(tmp_path / "shots")])
    (picture,) = (tmp_path / "shots").iterdir()
    content = picture.read_bytes()
    assert picture.name == "desk-open-pt.png" and content.startswith(b"\x89PNG")
    size = tuple(int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert size == (pictures.WIDTH, pictures.HEIGHT)
    # A blank page of that size takes a few kilobytes.
    assert len(content) > (DOCS / "pictures" / picture.name).stat().st_size / 4
