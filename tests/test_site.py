"""The documentation builds as a site without a warning, finds its words without a network, and loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}
FROM_ELSEWHERE = re.compile(r"^(https?:)?//")
IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)")
IN_SCRIPTS = re.compile(r"(?:importScripts|fetch|import|\.src\s*=)\s*\(?\s*['\"`]((?:https?:)?//[^'\"`]+)")


class Loaded(HTMLParser):
    """What a page loads by itself; links that a reader may follow are none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") == "canonical":
            return
        self.found.append(given.get(LOADS.get(tag, "")) or "")


def loaded_from_elsewhere(name: str, text: str) -> list[str]:
    """The addresses of other hosts that a file of the site loads something from."""
    if name.endswith(".html"):
        page = Loaded()
        page.feed(text)
        return [address for address in page.found if FROM_ELSEWHERE.match(address)] + IN_STYLES.findall(text)
    return (IN_STYLES if name.endswith(".css") else IN_SCRIPTS).findall(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/x.css">'),
        ("a.html", "<style>@import 'https://fonts.example/x.css';</style>"),
        ("a.css", "body { background: url(http://example.org/x.png) }"),
        ("a.js", 'importScripts("https://cdn.example/lunr.js")'),
    ],
)
def test_what_is_loaded_from_elsewhere_is_recognised(name, text):
    assert loaded_from_elsewhere(name, text)


def test_a_link_that_a_reader_may_follow_loads_nothing():
    assert loaded_from_elsewhere("a.html", '<a href="https://example.org">x</a><img src="x.svg">') == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow  # half a minute for a hundred pages
def test_no_page_of_the_site_loads_anything_from_elsewhere(site):
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert len(files) > 50
    found = {
        path.relative_to(site).as_posix(): loaded_from_elsewhere(path.name, path.read_text("utf-8"))
        for path in files
    }
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


@pytest.mark.slow
def test_every_page_is_in_the_site_and_its_search_and_nothing_else_is(site):
    pages = [path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))]
    places = {page.with_name("index.md" if page.name == "README.md" else page.name) for page in pages}
    assert [str(page) for page in places if not (site / page.with_suffix(".html")).is_file()] == []
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    searched = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {page.with_suffix(".html").as_posix() for page in places} <= searched | {""}
    assert not list(site.rglob("*.py"))


def test_the_list_of_pages_has_every_shelf_and_every_page_once():
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = []
    for entry in module.shelves(ROOT / "docs"):
        (pages,) = entry.values()
        listed += [pages] if isinstance(pages, str) else pages
    there = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(there)
