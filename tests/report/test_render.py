"""The three renderings say the same; the page is self-contained, escaped, and opens with the verdict."""

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files

import polars as pl
import pytest

from velado.data.schema import Schema
from velado.release.guarantees import LDiversity
from velado.release.methods import DAS, GFKMC, FullDomain, Mondrian, Progressive
from velado.release.recoded import NoteName
from velado.report._measured_sections import risk_change
from velado.report.phrases import note_rows
from velado.report.render import render_html, render_markdown, to_json
from velado.study.run import publish
from velado.text import listed, say, share, speaking, told

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release with all three reports; the same settings give the same one, made once."""

    @cache
    def release(language="en", method=None, names=("age", "city", "illness"), guarantees=()):
        age, city, illness = names
        frame = pl.DataFrame(
            {
                age: [str(20 + (7 * n) % 37) for n in range(40)],
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
            method or Mondrian(),
            guarantees,
            k=None if isinstance(method, DAS) else 4,
            out=tmp_path_factory.mktemp("report") / "out",
            language=language,
            reports=("html", "md", "json"),
        )

    return release


def report(done, kind="html") -> str:
    return (done.private / f"report.{kind}").read_text("utf-8")


def content(done) -> dict:
    return json.loads(report(done, "json"))["report"]


@pytest.mark.parametrize("language", ["en", "pt"])
def test_the_page_refers_to_nothing_outside_itself(made, language) -> None:
    source = report(made(language))
    page = Page(source)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", source)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not {"src", "srcset", "onload", "onclick"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links and all((link or "")[1:] in ids for link in links)


def test_every_chart_can_be_read_aloud(made) -> None:
    source = report(made())
    charts = re.findall(r"<svg.*?</svg>", source, flags=re.S)
    assert len(charts) == 5  # risk, loss, group sizes, two distributions
    for chart in charts:
        assert 'role="img"' in chart
        assert re.search(r"<title>[^<]+</title><desc>[^<]+</desc>", chart)
        assert "percent" in chart or "number of rows" in chart


def test_the_page_opens_with_the_verdict_in_one_sentence(made) -> None:
    done = made(guarantees=(LDiversity(2),))
    shown = content(done)
    verdict = shown["verdict"]
    smallest = int(done.release.checked.partition.sizes.min())
    assert f"at least {smallest} rows" in verdict["headline"]
    texts = Page(report(done)).texts
    assert texts.index(verdict["headline"]) < texts.index(shown["sections"][0]["title"])
    notice = shown["notice"]["text"]
    assert texts.index(notice) < texts.index(shown["sections"][0]["title"])


def test_a_measured_method_is_not_reported_as_a_promise_kept(made) -> None:
    verdict = content(made(method=DAS()))["verdict"]
    assert verdict["state"] == "caution"
    assert "promises no group size" in verdict["headline"]


@pytest.mark.parametrize("language", ["en", "pt"])
def test_hostile_column_names_and_values_stay_text(made, language) -> None:
    done = made(language, names=(HOSTILE, "a|b`c_*[x](y)\n", "</desc><b>"))
    source = report(done)
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "b" not in {tag for tag, _ in page.tags}
    assert any(HOSTILE in text for text in page.texts)
    markdown = report(done, "md")
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    assert "](y)" not in markdown.replace("\\](y)", "")
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert rows and all(row.endswith(" |") for row in rows)


def test_a_column_named_like_a_placeholder_is_only_a_name(made) -> None:
    done = made(names=("{loss}", "{0}", "{{ 7*7 }}"))
    source = report(done)
    assert "{loss}" in source
    assert "49" not in [text for text in Page(source).texts if len(text) == 2]


@pytest.mark.parametrize("language", ["en", "pt"])
def test_page_markdown_and_json_have_the_same_content(made, language) -> None:
    done = made(language)
    read = json.loads(report(done, "json"))
    page = set(Page((done.folder / "private/report.html").read_text("utf-8")).texts)
    markdown = (done.folder / "private/report.md").read_text("utf-8").replace("\\", "")
    for section in read["report"]["sections"]:
        assert section["title"] in page and f"## {section['title']}" in markdown
        for block in unfolded(section["blocks"]):
            shown = [block["text"]] if block["kind"] in ("text", "code") else list(block.get("items", []))
            if block["kind"] == "table":
                shown = [block["title"], *block["header"], *(cell for row in block["rows"] for cell in row)]
            if block["kind"] == "chart":
                shown = [block["title"], block["axis"]]
                assert block["description"] in page
            for text in filter(None, shown):
                assert " ".join(text.split()) in page
                assert text in markdown or block.get("in_table")


@pytest.mark.parametrize("language", ["en", "pt"])
def test_markdown_says_everything_once(made, language) -> None:
    done = made(language)
    lines = (done.folder / "private/report.md").read_text("utf-8").replace("\\", "").splitlines()
    titles = [line for line in lines if line.startswith("**")]
    assert len(titles) == len(set(titles))
    told = [line for line in lines if len(line) > 40 and not line.startswith("|")]
    assert len(told) == len(set(told))
    attackers = [line for line in lines if line.startswith(("| prosecutor, worst", "| promotor, pior"))]
    assert len(attackers) == 1


def blocks_of(done, name):
    (found,) = [part for part in content(done)["sections"] if part["name"] == name]
    return unfolded(found["blocks"])


def unfolded(blocks):
    """Every block, those that a reader unfolds too."""
    return [
        inner
        for block in blocks
        for inner in (unfolded(block["blocks"]) if block["kind"] == "folded" else [block])
    ]


def test_a_risk_that_does_not_fall_is_not_said_to_fall(tmp_path) -> None:
    frame = pl.DataFrame({"age": [str(n * n) for n in range(12)]})
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    for language, text in (("en", "stays at 100.0%"), ("pt", "continua em 100,0%")):
        out = tmp_path / language
        done = publish(frame, schema, DAS(bins=12), out=out, language=language, reports=("json",))
        (chart,) = [block for block in blocks_of(done, "risk") if block["kind"] == "chart"]
        assert chart["description"].endswith(f"{text}.")
    assert "falls from 100.0% to 20.0%" in risk_change(1.0, 0.2)
    assert "rises from 20.0% to 50.0%" in risk_change(0.2, 0.5)


@pytest.mark.parametrize("language", ["en", "pt"])
@pytest.mark.parametrize("method", [DAS(), Mondrian(), FullDomain(), Progressive(), GFKMC()])
def test_settings_and_notes_are_words_not_python_values(made, language, method) -> None:
    (settings,) = [b for b in blocks_of(made(language, method), "repeat") if b["kind"] == "table"]
    for name, value in settings["rows"]:
        assert not re.search(r"[{}\[\]]|None|True|False", value), (name, value)
        assert "_" not in name and not re.search(r"\d[.,]\d{5}|= ,", value), (name, value)
    names = [name for name, _ in settings["rows"]]
    assert len(names) == len(set(names))


def test_what_a_sensitive_value_and_a_few_columns_give_away_is_told(made) -> None:
    done = made()
    guesses = next(block for block in blocks_of(done, "guesses") if block["kind"] == "table")
    measured = done.scores.to_dict()["risk"]
    part = measured["attribute_disclosure"]["illness"]
    assert guesses["rows"] == [
        [
            "illness",
            share(part["guessed"]["share"]),
            f"{share(part['guessed']['low'])} – {share(part['guessed']['high'])}",
            share(part["baseline"]["share"]),
            share(part["homogeneous"]["1"]),
        ]
    ]
    partial = next(block for block in blocks_of(done, "risk") if "sets of columns" in block.get("title", ""))
    worst = measured["partial_knowledge"]["worst"]
    assert [row[0] for row in partial["rows"]] == [listed(entry["columns"]) for entry in worst]
    assert [int(row[1]) for row in partial["rows"]] == [entry["before"]["unique_rows"] for entry in worst]
    assert any(row[0] == "age and city" and int(row[1]) > 0 == int(row[2]) for row in partial["rows"])


def test_linkage_is_said_to_be_one_attack_and_other_methods_to_be_a_command_away(made) -> None:
    done = made()
    assert any("one attack" in block.get("text", "") for block in blocks_of(done, "risk"))
    assert any(
        block["kind"] == "code" and block["text"].startswith("velado compare ")
        for block in blocks_of(done, "why")
    )


def test_no_exact_day_reaches_the_report(tmp_path) -> None:
    days = [f"19{50 + n % 40}-0{1 + n % 9}-{10 + n % 18}" for n in range(80)]
    frame = pl.DataFrame({"born": days, "age": [str(n % 7) for n in range(80)]})
    columns = {"born": {"role": "quasi", "kind": "date"}, "age": {"role": "quasi", "kind": "numeric"}}
    done = publish(
        frame,
        Schema.from_dict({"columns": columns}),
        Mondrian(),
        out=tmp_path / "out",
        reports=("html", "md", "json"),
        k=4,
    )
    # But for the few rows that are shown to the steward as they were.
    page = replace(done.page, sections=tuple(part for part in done.page.sections if part.name != "sample"))
    for text in (render_html(page), render_markdown(page), to_json(page)):
        assert not [day for day in days if day in text]
        assert "1950s" in text and "by decade, not by day" in text


def test_the_two_languages_have_the_same_facts_and_other_words(made) -> None:
    both = [made(language) for language in ("en", "pt")]
    english, portuguese = (json.loads(report(done, "json")) for done in both)
    assert english["facts"] == portuguese["facts"]
    assert english["report"]["verdict"]["headline"] != portuguese["report"]["verdict"]["headline"]
    assert '<html lang="pt-BR">' in report(both[1])
    names = [[s["name"] for s in summary["report"]["sections"]] for summary in (english, portuguese)]
    assert names[0] == names[1]


@pytest.mark.parametrize("name", ["report.html.j2", "kit.html.j2"])
def test_a_template_holds_no_text_of_its_own(name) -> None:
    page = (files("velado.report") / "templates" / name).read_text("utf-8")
    code = re.sub(r"{#.*?#}|{[{%].*?[%}]}", "", page, flags=re.S)
    assert re.sub(r"<[^>]*>", "", code).replace('data-=""', "").split() == []


def test_notes_are_written_as_the_language_does() -> None:
    notes = {
        "bins": {"Peso (kg)": 14, "rate": 0.123456},
        NoteName("lower_bound", say("proven lower bound of the loss"), share=True): 0.25,
        "reason": say(
            "from a part of the boxes and pairs alone: with more than {rows:,} rows it is weak", rows=200_000
        ),
        "nothing": None,
        "not_known_here": [True, 12345.678],
    }
    with speaking("pt"):
        rows = [told(value) for _, value in note_rows(notes)]
    assert rows == [
        "Peso (kg): 14; rate: 0,1235",
        "25,0%",
        "calculado só com uma parte das caixas e dos pares: com mais de 200.000 linhas ele é fraco",
        "sim, 12.345,7",
    ]
    assert [name for name, _ in note_rows(notes)][-1] == "not known here"
