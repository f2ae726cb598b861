"""The three renderings say the same; the page is self-contained, escaped, and opens with the verdict."""

import json
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from velado.anonymize.guarantees import LDiversity
from velado.anonymize.methods import DAS, Mondrian
from velado.data.schema import Schema
from velado.study.report.render_html import render_html
from velado.study.report.render_markdown import render_markdown
from velado.study.run import publish

VOID = {"meta", "br", "hr", "img", "link", "input"}
HOSTILE = '<script>alert("x")</script>'


class Page(HTMLParser):
    """Tags and texts of a page; fails on tags that are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style" and data.strip():
            self.texts.append(" ".join(data.split()))


def made(tmp_path, language="en", method=None, names=("age", "city", "illness"), **settings):
    age, city, illness = names
    frame = pl.DataFrame(
        {
            age: [str(20 + (7 * n) % 41) for n in range(40)],
            city: [f"place {(n * n + n // 3) % 4}" for n in range(40)],
            illness: [f"ill {(n // 2 + n * n) % 3}" for n in range(40)],
        }
    )
    columns = {
        age: {"role": "quasi", "kind": "numeric"},
        city: {"role": "quasi"},
        illness: {"role": "sensitive"},
    }
    return publish(
        frame,
        Schema.from_dict({"columns": columns}),
        method or Mondrian(k=4),
        out=tmp_path / f"out-{language}",
        language=language,
        reports=("html", "md", "json"),
        **settings,
    )


@pytest.mark.parametrize("language", ["en", "pt"])
def test_the_page_refers_to_nothing_outside_itself(tmp_path, language) -> None:
    source = render_html(made(tmp_path, language).summary)
    page = Page(source)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", source)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not {"src", "srcset", "onload", "onclick"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links and all((link or "")[1:] in ids for link in links)


def test_every_chart_can_be_read_aloud(tmp_path) -> None:
    source = render_html(made(tmp_path).summary)
    charts = re.findall(r"<svg.*?</svg>", source, flags=re.S)
    assert len(charts) == 5  # risk, loss, group sizes, two distributions
    for chart in charts:
        assert 'role="img"' in chart
        assert re.search(r"<title>[^<]+</title><desc>[^<]+</desc>", chart)
        assert "percent" in chart or "number of rows" in chart


def test_the_page_opens_with_the_verdict_in_one_sentence(tmp_path) -> None:
    done = made(tmp_path, guarantees=(LDiversity(2),))
    verdict = done.summary["report"]["verdict"]
    smallest = int(done.release.checked.partition.sizes.min())
    assert f"at least {smallest} rows" in verdict["headline"]
    texts = Page(render_html(done.summary)).texts
    assert texts.index(verdict["headline"]) < texts.index(done.summary["report"]["sections"][0]["title"])
    notice = done.summary["report"]["notice"]["text"]
    assert texts.index(notice) < texts.index(done.summary["report"]["sections"][0]["title"])


def test_a_measured_method_is_not_reported_as_a_promise_kept(tmp_path) -> None:
    verdict = made(tmp_path, method=DAS()).summary["report"]["verdict"]
    assert verdict["state"] == "caution"
    assert "promises no group size" in verdict["headline"]


@pytest.mark.parametrize("language", ["en", "pt"])
def test_hostile_column_names_and_values_stay_text(tmp_path, language) -> None:
    done = made(tmp_path, language, names=(HOSTILE, "a|b`c_*[x](y)\n", "</desc><b>"))
    source = render_html(done.summary)
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "b" not in {tag for tag, _ in page.tags}
    assert any(HOSTILE in text for text in page.texts)
    markdown = render_markdown(done.summary)
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    assert "](y)" not in markdown.replace("\\](y)", "")
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert rows and all(row.endswith(" |") for row in rows)


def test_a_column_named_like_a_placeholder_is_only_a_name(tmp_path) -> None:
    done = made(tmp_path, names=("{loss}", "{0}", "{{ 7*7 }}"))
    source = render_html(done.summary)
    assert "{loss}" in source
    assert "49" not in [text for text in Page(source).texts if len(text) == 2]


@pytest.mark.parametrize("language", ["en", "pt"])
def test_page_markdown_and_json_have_the_same_content(tmp_path, language) -> None:
    done = made(tmp_path, language)
    read = json.loads((done.folder / "report.json").read_text("utf-8"))
    assert read == done.summary
    page = set(Page((done.folder / "report.html").read_text("utf-8")).texts)
    markdown = (done.folder / "report.md").read_text("utf-8").replace("\\", "")
    for section in read["report"]["sections"]:
        assert section["title"] in page and f"## {section['title']}" in markdown
        for block in section["blocks"]:
            shown = [block["text"]] if block["kind"] in ("text", "code") else list(block.get("items", []))
            if block["kind"] == "table":
                shown = [block["title"], *block["header"], *(cell for row in block["rows"] for cell in row)]
            if block["kind"] == "chart":
                shown = [block["title"], block["description"], block["axis"]]
            for text in shown:
                assert " ".join(text.split()) in page
                assert text in markdown


def test_the_two_languages_have_the_same_facts_and_other_words(tmp_path) -> None:
    english, portuguese = made(tmp_path, "en").summary, made(tmp_path, "pt").summary
    assert english["facts"] == portuguese["facts"]
    assert english["report"]["verdict"]["headline"] != portuguese["report"]["verdict"]["headline"]
    assert '<html lang="pt-BR">' in render_html(portuguese)
    names = [[s["name"] for s in summary["report"]["sections"]] for summary in (english, portuguese)]
    assert names[0] == names[1]
