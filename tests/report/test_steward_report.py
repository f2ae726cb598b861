"""The report a steward decides by: every column, both figures, its own reruns, no more words than needed."""

import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser

import polars as pl
import pytest

from velado import __version__
from velado.data.keys import Key
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.release.methods import DAS
from velado.report._cost_sections import suppression_advice
from velado.report.facts import WhatIf
from velado.study.run import Published, publish

from ..apps.service.browser import Browser, chromium

KEY = Key(bytes(range(40)))
MOST_WORDS, MOST_PIXELS = 1026, 5245
"""Half of what the report on the sample table had (2,052 words, 10,491 pixels at 1280) when it said less."""


class Shown(HTMLParser):
    """The words that a reader sees before unfolding anything."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        folded = "details" in self.open and "summary" not in self.open
        if not folded and not {"style", "title", "svg"} & set(self.open):
            self.texts.append(data)

    @property
    def words(self) -> list[str]:
        return [word for word in " ".join(self.texts).split() if re.search(r"\w", word)]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Published:
    out = tmp_path_factory.mktemp("sample") / "out"
    return publish(
        hospital_csv(), hospital_schema(), "mondrian", k=5, out=out, key=KEY, made_on=date(2026, 3, 1)
    )


@pytest.fixture(scope="module")
def source(sample: Published) -> str:
    return (sample.private / "report.html").read_text("utf-8")


def rows_of(done: Published, name: str) -> list[list[str]]:
    (part,) = [one for one in done.page.sections if one.name == name]
    return [
        [str(cell) for cell in row] for block in part.blocks if block.kind == "table" for row in block.rows
    ]


def test_every_column_stands_in_the_inventory_with_what_became_of_it(sample) -> None:
    fates = {row[0]: row[2] for row in rows_of(sample, "columns")}
    assert list(fates) == list(sample.facts.source.columns)
    assert fates["cpf"] == fates["cep"] == "held back"
    assert fates["idade"] == "generalized" and fates["cid10"] == "published as it was"


def test_the_head_bears_day_version_people_and_both_figures(sample, source) -> None:
    head = source[: source.index("<nav")]
    assert f"Made 2026-03-01 with velado {__version__}." in head and "2,000 rows of 1,700 people" in head
    figures = {str(one.name): one.value for one in sample.page.key_figures}
    assert figures["Smallest group (people)"] == str(int(sample.release.verdicts[0].achieved))
    assert sample.release.verdicts[0].unit == "people"
    columns, behind = sample.facts.open_doors
    assert behind == 1 and figures["Both through side doors"] == "1, 100.0%"
    assert all(name in head for name in columns) and "as few as 1 row:" in head


def test_a_few_rows_stand_before_and_after_in_the_private_report_alone(sample, source) -> None:
    rows = rows_of(sample, "sample")
    assert len(rows) == 4 and any(" → " in cell for row in rows for cell in row)
    original = sample.release.original.frame
    for row in rows:
        at = int(row[0].replace(",", "")) - 1
        assert row[2].split(" → ")[0] == str(original["idade"][at])
        for held in ("cpf", "nome", "prontuario", "observacao"):
            assert original[held][at] is None or str(original[held][at]) not in source
    assert " → " not in (sample.public / "about.html").read_text("utf-8")
    assert " → " not in (sample.public / "manifest.json").read_text("utf-8")


def test_every_warning_and_door_is_told_before_all_else(sample, source) -> None:
    first = sample.page.sections[0]
    assert first.name == "warnings"
    told = " ".join(str(block) for block in first.blocks)
    for warning in sample.facts.warnings:
        assert str(warning) in told
    for door in sample.release.side_doors:
        assert door.sentence() in told


NOW = WhatIf(k=5, suppression=0.0, loss=0.2, suppressed=0)


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        ((0.2, 0.2), "would not pay"),
        ((0.21, 0.25), "would not pay"),
        ((0.199, 0.195), "hardly pay"),
        ((0.15, 0.149), "Allowing 1.0% suppression would pay"),
        ((0.2, 0.1), "Allowing 5.0% suppression would pay"),
    ],
)
def test_advice_follows_from_the_reruns_it_stands_above(losses, says) -> None:
    runs = [
        WhatIf(k=5, suppression=limit, changed="suppression", loss=loss, suppressed=9)
        for limit, loss in zip((0.01, 0.05), losses, strict=True)
    ]
    assert says in suppression_advice(NOW, runs)
    assert suppression_advice(NOW, []) == ""
    failed = WhatIf(k=5, suppression=0.01, changed="suppression", failed="no")
    assert suppression_advice(NOW, [failed]) == ""


def test_rows_that_lose_alike_stand_in_one_line(tmp_path) -> None:
    frame = pl.DataFrame({"age": [str(n) for n in range(60)], "city": [f"c{n % 2}" for n in range(60)]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "city": {"role": "quasi"}}
    done = publish(
        frame, Schema.from_dict({"columns": columns}), "mondrian", k=30, out=tmp_path / "o", key=KEY
    )
    (why,) = [part for part in done.page.sections if part.name == "why"]
    (costly,) = [
        inner
        for block in why.blocks
        if block.kind == "folded"
        for inner in block.blocks
        if inner.kind == "table"
    ]
    told = [tuple(row[1:]) for row in costly.rows]
    assert len(told) == len(set(told)) and len(costly.rows[0][0].split(", ")) > 1


@pytest.mark.slow
def test_das_shows_its_bins_and_the_elbow_they_were_read_off(tmp_path) -> None:
    done = publish(hospital_csv(), hospital_schema(), "das", out=tmp_path / "o", key=KEY)
    rows = rows_of(done, "bins")
    assert [row[0] for row in rows] == ["idade"] and int(rows[0][1]) > 2
    page = (done.private / "report.html").read_text("utf-8")
    assert page.count("<circle") == 1 and f"idade: {rows[0][1]} bins" in page
    given = publish(hospital_csv(), hospital_schema(), DAS(bins=4), out=tmp_path / "p", key=KEY)
    assert "<circle" not in (given.private / "report.html").read_text("utf-8")


def test_the_report_shows_half_the_words_it_had(source) -> None:
    assert len(Shown(source).words) <= MOST_WORDS


def test_the_private_part_alone_bears_the_day(tmp_path) -> None:
    frame = pl.DataFrame({"age": [20, 21, 30, 31]})
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    days = (date(2026, 1, 2), date(2026, 5, 6))
    one, two = (
        publish(frame, schema, "mondrian", k=2, out=tmp_path / f"{d}", key=KEY, made_on=d) for d in days
    )
    for path in one.public.iterdir():
        assert path.read_bytes() == (two.public / path.name).read_bytes()
    differing = [
        p.name for p in one.private.iterdir() if p.read_bytes() != (two.private / p.name).read_bytes()
    ]
    assert differing == ["report.html"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="Chromium is not installed.")
def test_the_report_is_half_as_high_and_fits_a_phone(sample, browser) -> None:
    browser.go((sample.private / "report.html").as_uri())
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight, innerWidth]"
    for width, most in ((1280, MOST_PIXELS), (390, 4 * MOST_PIXELS)):
        browser.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        across, down, inner = browser.run(size)
        assert inner == width and across <= width and down <= most, (width, across, down)
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.run(size)[0] <= width  # unfolded too
        browser.run("document.querySelectorAll('details').forEach(one => one.open = false)")
    browser.send("Emulation.clearDeviceMetricsOverride")
