"""The three renderings say the same; the page is self-contained, escaped, and opens with the verdict."""

import json
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from velado.data.schema import Schema
from velado.release.guarantees import LDiversity
from velado.release.methods import DAS, GFKMC, FullDomain, Mondrian, Progressive
from velado.report.notes import note_rows
from velado.report.phrases import risk_change
from velado.report.render import render_html, render_markdown
from velado.report.report_words import Words
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
        method or Mondrian(),
        k=None if isinstance(method, DAS) else 4,
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
    read = json.loads((done.folder / "private/report.json").read_text("utf-8"))
    assert read == done.summary
    page = set(Page((done.folder / "private/report.html").read_text("utf-8")).texts)
    markdown = (done.folder / "private/report.md").read_text("utf-8").replace("\\", "")
    for section in read["report"]["sections"]:
        assert section["title"] in page and f"## {section['title']}" in markdown
        for block in section["blocks"]:
            shown = [block["text"]] if block["kind"] in ("text", "code") else list(block.get("items", []))
            if block["kind"] == "table":
                shown = [block["title"], *block["header"], *(cell for row in block["rows"] for cell in row)]
            if block["kind"] == "chart":
                shown = [block["title"], block["axis"]]
                assert block["description"] in page
            for text in shown:
                assert " ".join(text.split()) in page
                assert text in markdown or block.get("in_table")


@pytest.mark.parametrize("language", ["en", "pt"])
def test_markdown_says_everything_once(tmp_path, language) -> None:
    done = made(tmp_path, language)
    lines = (done.folder / "private/report.md").read_text("utf-8").replace("\\", "").splitlines()
    titles = [line for line in lines if line.startswith("**")]
    assert len(titles) == len(set(titles))
    told = [line for line in lines if len(line) > 40 and not line.startswith("|")]
    assert len(told) == len(set(told))
    attackers = [line for line in lines if line.startswith(("| prosecutor, worst", "| promotor, pior"))]
    assert len(attackers) == 1


def blocks_of(done, name):
    (found,) = [part for part in done.summary["report"]["sections"] if part["name"] == name]
    return found["blocks"]


def test_a_risk_that_does_not_fall_is_not_said_to_fall(tmp_path) -> None:
    frame = pl.DataFrame({"age": [str(n * n) for n in range(12)]})
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    for language, text in (("en", "stays at 100.0%"), ("pt", "continua em 100,0%")):
        out = tmp_path / language
        done = publish(frame, schema, DAS(bins=12), out=out, language=language)
        (chart,) = [block for block in blocks_of(done, "risk") if block["kind"] == "chart"]
        assert chart["description"].endswith(f"{text}.")
    say = Words("en")
    assert "falls from 100.0% to 20.0%" in risk_change(1.0, 0.2, say)
    assert "rises from 20.0% to 50.0%" in risk_change(0.2, 0.5, say)


@pytest.mark.parametrize("language", ["en", "pt"])
@pytest.mark.parametrize("method", [DAS(), Mondrian(), FullDomain(), Progressive(), GFKMC()])
def test_settings_and_notes_are_words_not_python_values(tmp_path, language, method) -> None:
    (settings,) = [b for b in blocks_of(made(tmp_path, language, method), "repeat") if b["kind"] == "table"]
    for name, value in settings["rows"]:
        assert not re.search(r"[{}\[\]]|None|True|False", value), (name, value)
        assert "_" not in name and not re.search(r"\d[.,]\d{5}|= ,", value), (name, value)
    names = [name for name, _ in settings["rows"]]
    assert len(names) == len(set(names))


def test_what_a_sensitive_value_and_a_few_columns_give_away_is_told(tmp_path) -> None:
    done = made(tmp_path)
    guesses = next(block for block in blocks_of(done, "guesses") if block["kind"] == "table")
    measured = done.scores.to_dict()["risk"]
    part = measured["attribute_disclosure"]["illness"]
    say = Words("en")
    assert guesses["rows"] == [
        [
            "illness",
            say.share(part["guessed"]["share"]),
            f"{say.share(part['guessed']['low'])} – {say.share(part['guessed']['high'])}",
            say.share(part["baseline"]["share"]),
            say.share(part["homogeneous"]["1"]),
        ]
    ]
    partial = next(block for block in blocks_of(done, "partial") if block["kind"] == "table")
    worst = measured["partial_knowledge"]["worst"]
    assert [row[0] for row in partial["rows"]] == [say.listed(entry["columns"]) for entry in worst]
    assert [int(row[1]) for row in partial["rows"]] == [entry["before"]["unique_rows"] for entry in worst]
    assert any(row[0] == "age and city" and int(row[1]) > 0 == int(row[2]) for row in partial["rows"])


def test_linkage_is_said_to_be_one_attack_and_other_methods_to_be_a_command_away(tmp_path) -> None:
    done = made(tmp_path)
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
    for name in ("report.html", "report.md", "report.json"):
        text = (done.private / name).read_text("utf-8")
        assert not [day for day in days if day in text]
        assert "1950s" in text and "by decade, not by day" in text


def test_the_two_languages_have_the_same_facts_and_other_words(tmp_path) -> None:
    english, portuguese = made(tmp_path, "en").summary, made(tmp_path, "pt").summary
    assert english["facts"] == portuguese["facts"]
    assert english["report"]["verdict"]["headline"] != portuguese["report"]["verdict"]["headline"]
    assert '<html lang="pt-BR">' in render_html(portuguese)
    names = [[s["name"] for s in summary["report"]["sections"]] for summary in (english, portuguese)]
    assert names[0] == names[1]


def test_notes_are_written_as_the_language_does() -> None:
    notes = {
        "bins": {"Peso (kg)": 14, "rate": 0.123456},
        "lower_bound": 0.25,
        "lower_bound_reason": "not computed for more than 200000 rows",
        "levels": {"age": "1 of 3"},
        "nothing": None,
        "not_known_here": [True, 12345.678],
    }
    assert [value for _, value in note_rows(notes, Words("pt"))] == [
        "Peso (kg): 14; rate: 0,1235",
        "25,0%",
        "não calculado para mais de 200.000 linhas",
        "age: 1 de 3",
        "sim, 12.345,7",
    ]
    assert [name for name, _ in note_rows(notes, Words("en"))][-1] == "not known here"
