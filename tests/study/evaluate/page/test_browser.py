"""The page in a real browser: pointing, keys, filters, sorting, saving, printing, and a reader without scripts."""

import base64
import csv
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from velado.measures.models.quality import Interval
from velado.study.evaluate._matched import Rival
from velado.study.evaluate.analysis import ReleaseSetting
from velado.study.evaluate.page import to_html
from velado.study.evaluate.study_outcome import StudyFacts

from ....apps.service.browser import Browser, chromium
from .studies import EVIL, renamed, with_fits

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed.")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; every test loads its page anew."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture
def opened(browser: Browser, facts: StudyFacts, tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Opens the study's page, trainings across clients included, from a file."""

    def go(language: str = "en", change: Callable[[Any], Any] = lambda said: said) -> Browser:
        file = tmp_path / "study.html"
        file.write_text(to_html(change(with_fits(facts)), language), "utf-8")  # type: ignore[arg-type]
        browser.events.clear()
        browser.go(file.as_uri())
        return browser

    yield go
    assert browser.complaints() == []


def spot(browser: Browser, script: str) -> dict[str, float]:
    """The middle of an element on the screen, scrolled into sight."""
    found = browser.run(
        f"(() => {{ const e = {script}; e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
        " return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
    )
    return {"x": found["x"], "y": found["y"]}


def point_at(browser: Browser, script: str) -> str:
    """What is told when the pointer rests on an element."""
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", **spot(browser, script))
    return str(browser.run("document.querySelector('.tip:not([hidden])')?.textContent ?? ''"))


def click(browser: Browser, script: str) -> None:
    place = spot(browser, script)
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)


def press(browser: Browser, key: str) -> None:
    code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}[key]
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


def tip(browser: Browser) -> str:
    return str(browser.run("document.querySelector('.tip:not([hidden])')?.textContent ?? ''"))


SHOWN = "[...document.querySelectorAll('#lines tbody tr')].filter(r => r.offsetParent !== null)"
PLOT = "document.querySelector('#tradeoff .plot:not([hidden])')"
MARK = "[...{plot}.querySelectorAll('use[data-s]')].find(m => data.settings[m.dataset.s].head === {head})"


def mark_of(head: str, plot: str = PLOT) -> str:
    """The mark of a setting in the trade-off chart."""
    data = "const data = JSON.parse(document.getElementById('data').textContent)"
    found = MARK.format(plot=plot, head=json.dumps(head))
    return f"(() => {{ {data}; return {found}; }})()"


def test_pointing_at_a_mark_tells_its_figures(opened) -> None:
    browser = opened()
    said = point_at(browser, mark_of("mondrian, k = 6"))
    assert said.startswith("mondrian, k = 6\ninformation loss (NCP): ")
    for word in (
        "record linkage: ",
        "points of accuracy lost: ",
        "decision-tree: accuracy ",
        "logistic-regression",
    ):
        assert word in said
    assert re.search(r"decision-tree: accuracy [\d.]+% \([\d.]+…[\d.]+\)", said)
    box = browser.run(
        "(() => { const t = document.querySelector('.tip').getBoundingClientRect();"
        " return [t.left, t.right, innerWidth, t.width]; })()"
    )
    assert box[0] >= 0 and box[1] <= box[2] and box[3] > 100
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert tip(browser) == ""


def test_marks_that_lie_on_one_another_are_told_together(opened) -> None:
    def same(said: Any) -> Any:
        one = next(row for row in said.releases if row.setting == ReleaseSetting("mondrian", 3))
        moved = {name: one[name] for name in ("ncp", "record_linkage")}
        other = ReleaseSetting("progressive", 3)
        return replace(
            said,
            releases=tuple(
                replace(row, numbers={**row.numbers, **moved}) if row.setting == other else row
                for row in said.releases
            ),
        )

    said = point_at(opened(change=same), mark_of("mondrian, k = 3"))
    assert "mondrian, k = 3\n" in said and "progressive, k = 3\n" in said
    assert "k = 6" not in said


def test_the_arrow_keys_walk_from_mark_to_mark(opened) -> None:
    browser = opened()
    browser.run("document.querySelector('#risk').focus()")
    browser.press("Tab")
    assert browser.run(f"document.activeElement === {PLOT}")
    first = tip(browser)
    assert first.startswith("original\n")
    press(browser, "ArrowDown")
    second = tip(browser)
    press(browser, "ArrowRight")
    third = tip(browser)
    heads = [text.split("\n")[0] for text in (second, third)]
    assert [head.split(" = ")[1] for head in heads] == ["3", "6"]
    assert heads[0].split(",")[0] == heads[1].split(",")[0] in ("mondrian", "progressive")
    press(browser, "Escape")
    assert tip(browser) == ""


def test_panels_and_curves_tell_their_figures_too(opened) -> None:
    browser = opened("pt")
    panel = "document.querySelector('#quality .plot:not([hidden])')"
    said = point_at(browser, f"{panel}.querySelector('use[data-r]:not([data-gap])')")
    assert re.search(r"acurácia: [\d,]+% \([\d,]+\W…\W[\d,]+\)", said), said
    gap = point_at(browser, f"{panel}.querySelector('use[data-gap]')")
    assert "faltam 3 de 3 sementes" in gap
    curve = "document.querySelector('#federated .plot:not([hidden])')"
    told = point_at(browser, f"{curve}.querySelector('g.s use:not([data-gap])')")
    assert re.search(
        r"^original\nlogistic, linhas distribuídas por igual\nrodada 30\nacurácia: 8\d,\d%$", told
    ), told
    crossed = point_at(browser, f"{curve}.querySelector('use[data-gap]')")
    assert "rodada 7: 6/10: 6 of 10 clients replied" in crossed


def test_choosing_measures_changes_every_chart_it_concerns(opened) -> None:
    browser = opened()

    def choose(name: str, value: str) -> None:
        browser.run(
            f"(() => {{ const s = document.getElementById('{name}'); s.value = '{value}';"
            " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    choose("risk", "reidentification")
    choose("loss", "average_group_size")
    shown = "[...document.querySelectorAll('{}')].filter(p => p.offsetParent !== null)"
    assert browser.run(
        shown.format("#tradeoff .plot") + ".map(p => p.dataset.loss + ' ' + p.dataset.risk)"
    ) == ["average_group_size reidentification"]
    said = point_at(browser, mark_of("progressive, k = 3"))
    assert "mean group size: " in said and "mean re-identification: " in said and "NCP" not in said
    choose("metric", "log_loss")
    choose("protocol", "paper-gfkmc")
    panels = browser.run(shown.format("#quality .plot") + ".map(p => p.querySelector('title').textContent)")
    assert panels == ["decision-tree: log loss", "logistic-regression: log loss"]
    choose("measure", "loss")
    curves = browser.run(shown.format("#federated .plot") + ".map(p => p.dataset.measure)")
    assert curves == ["loss", "loss"]


def test_filters_leave_out_methods_and_models_everywhere(opened) -> None:
    browser = opened()
    before = browser.run(f"{SHOWN}.length")
    box = "[...document.querySelectorAll('#filters label')].find(l => l.textContent.trim() === '{}').querySelector('input')"
    click(browser, box.format("mondrian"))
    names = browser.run(f"[...new Set({SHOWN}.map(r => r.cells[2].textContent))]")
    assert sorted(names) == ["original", "progressive"]
    visible = "[...document.querySelectorAll('{} g.s')].filter(g => g.getClientRects().length).map(g => g.dataset.m ?? '')"
    assert len(set(browser.run(visible.format("#tradeoff .plot:not([hidden])")))) == 2
    assert len(set(browser.run(visible.format("#federated .plot:not([hidden])")))) == 2
    legends = browser.run(
        "[...document.querySelectorAll('.legend li')].filter(l => l.offsetParent).map(l => l.textContent.trim())"
    )
    assert "mondrian" not in legends and "progressive" in legends
    browser.run(f"{box.format('decision-tree')}.focus()")
    browser.press(" ")
    models = browser.run(f"{SHOWN}.map(r => r.cells[1].textContent)")
    assert set(models) == {"majority", "logistic-regression"}
    panels = "[...document.querySelectorAll('#quality .plot')].filter(p => p.offsetParent).length"
    assert browser.run(panels) == 1
    assert "decision-tree" not in point_at(browser, mark_of("progressive, k = 6"))
    shown = browser.run(f"{SHOWN}.length")
    assert browser.text("#shown") == f"{shown} of {before} lines"
    click(browser, "document.getElementById('everything')")
    assert browser.run(f"{SHOWN}.length") == before
    browser.run("document.getElementById('search').focus()")
    browser.type("paper progressive")
    assert set(browser.run(f"{SHOWN}.map(r => r.cells[0].textContent + r.cells[2].textContent)")) == {
        "paper-gfkmcprogressive"
    }


def test_the_table_sorts_by_click_and_by_key_and_says_so(opened) -> None:
    browser = opened()
    head = "[...document.querySelectorAll('#lines th')].find(h => h.dataset.key === 'accuracy')"
    values = f"{SHOWN}.map(r => r.cells[7].textContent)"
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "none"
    click(browser, f"{head}.querySelector('button')")

    def numbers() -> list[float]:
        texts = browser.run(values)
        known = [text for text in texts if text != "–"]
        assert texts[len(known) :] == ["–"] * (len(texts) - len(known)) and len(known) < len(texts)
        return [float(text.split("%")[0]) for text in known]

    assert numbers() == sorted(numbers())
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    browser.run(f"{head}.querySelector('button').focus()")
    browser.press("Enter")
    assert numbers() == sorted(numbers(), reverse=True)
    assert browser.run(
        "[...document.querySelectorAll('#lines th')].map(h => h.getAttribute('aria-sort')).sort()[0]"
    ) == ("descending")
    k = "[...document.querySelectorAll('#lines th')].find(h => h.dataset.key === 'k')"
    click(browser, f"{k}.querySelector('button')")
    ks = [text for text in browser.run(f"{SHOWN}.map(r => r.cells[3].textContent)") if text != "–"]
    assert ks == sorted(ks, key=int)


def test_the_table_can_be_saved_as_csv_and_json(opened, facts, tmp_path: Path) -> None:
    browser = opened("pt")
    folder = tmp_path / "saved"
    folder.mkdir()
    browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    for kind in ("csv", "json"):
        click(browser, f"document.getElementById('{kind}')")
        end = time.monotonic() + 20
        while not (folder / f"study.{kind}").exists():
            assert time.monotonic() < end, "Nothing was saved."
            time.sleep(0.05)
    with (folder / "study.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    rows = json.loads((folder / "study.json").read_text("utf-8"))
    assert len(lines) == len(rows) == browser.run("document.querySelectorAll('#lines tbody tr').length")
    truth = {(r.protocol, r.model, r.setting.method, r.setting.k): r["accuracy"].mean for r in facts.quality}
    for line, row in zip(lines, rows, strict=True):
        known = truth.get((row["protocol"], row["model"], row["method"], row["k"]))
        if known is None:
            assert row["accuracy"] is None and line["accuracy"] == "" and row["seeds"] == 0
        else:
            assert row["accuracy"] == pytest.approx(known, rel=1e-6)
            assert float(line["accuracy"]) == row["accuracy"]


def test_markup_in_names_does_nothing(opened) -> None:
    browser = opened(change=lambda said: renamed(said, "mondrian", EVIL))
    assert browser.run("document.images.length") == 0
    assert browser.run("typeof hacked") == "undefined"
    assert EVIL in browser.text("#lines")
    assert point_at(browser, mark_of(f"{EVIL}, k = 3")).startswith(EVIL)


def test_without_scripts_charts_and_table_are_there_and_no_dead_control_is(opened, browser: Browser) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened()
        assert (
            browser.run("[...document.querySelectorAll('.script')].filter(p => p.offsetParent).length") == 0
        )
        assert browser.run("[...document.querySelectorAll('.plot')].filter(p => p.offsetParent).length") == 5
        assert browser.run(f"{SHOWN}.length") > 10
        assert "Scripts are off" in browser.text("main")
        assert browser.run("document.querySelector('#tradeoff use[data-s] title').textContent.length") > 60
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("language", ["en", "pt"])
def test_nothing_reaches_beyond_the_screen_and_no_label_beyond_its_chart(
    opened, language: str, width: int
) -> None:
    browser = opened(language)
    browser.send(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    try:
        assert browser.run("document.documentElement.scrollWidth") <= width
        beyond = """[...document.querySelectorAll('svg[role]')].filter(s => s.getClientRects().length).flatMap(svg => {
            const whole = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();
              return b.left < whole.left - 1 || b.right > whole.right + 1 || b.top < whole.top - 1
                || b.bottom > whole.bottom + 1; }).map(t => t.textContent); })"""
        assert browser.run(beyond) == []
        covered = """[...document.querySelectorAll('svg[role]')].filter(s => s.getClientRects().length).flatMap(svg => {
            const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
            return texts.flatMap(([a, p], i) => texts.slice(i + 1).filter(([b, q]) =>
              p.left < q.right - 2 && q.left < p.right - 2 && p.top < q.bottom - 4 && q.top < p.bottom - 4)
              .map(([b]) => a + ' | ' + b)); })"""
        assert browser.run(covered) == []
    finally:
        browser.send("Emulation.clearDeviceMetricsOverride")


def test_the_printed_page_has_charts_legends_and_table_but_no_controls(opened) -> None:
    browser = opened()
    browser.send("Emulation.setEmulatedMedia", media="print")
    browser.send(
        "Emulation.setDeviceMetricsOverride", width=700, height=1000, deviceScaleFactor=1, mobile=False
    )
    try:
        seen = "[...document.querySelectorAll('{}')].filter(p => p.getClientRects().length).length"
        assert browser.run(seen.format("input, select, #csv, #json, #everything, nav")) == 0
        assert browser.run(seen.format(".plot")) == 5
        assert browser.run(seen.format(".legend li")) > 8
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run(
            "document.querySelector('.tall').scrollHeight <= document.querySelector('.tall').clientHeight + 1"
        )
        wide = "[...document.querySelectorAll('.plot svg')].filter(s => s.getBoundingClientRect().right > 701).length"
        assert browser.run(wide) == 0
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
        browser.send("Emulation.clearDeviceMetricsOverride")
    printed = base64.b64decode(browser.send("Page.printToPDF", preferCSSPageSize=True)["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert printed.startswith(b"%PDF") and 4 <= pages <= 12


def test_no_table_is_wider_than_the_printed_page(opened) -> None:
    names = ("greedy-clustering", "k-member", "mdav", "gfkmc", "top-down-greedy", "clustering-based")

    def crowded(said: Any) -> Any:
        where = {"k": 3, "k_other": None, "risk": 0.1, "same_risk": True, "gain": Interval(-0.0123)}
        beside = tuple(
            Rival(method=name, verdict=verdict, **where)
            for name in names
            for verdict in ("less", "even", "more", "apart")
        )
        return replace(
            said,
            same_risk=tuple(
                replace(one, beside=beside, setting=replace(one.setting, guarantees="l-diversity(l=3)"))
                for one in said.same_risk
            ),
        )

    for language in ("en", "pt"):
        browser = opened(language, crowded)
        browser.send("Emulation.setEmulatedMedia", media="print")
        browser.send(
            "Emulation.setDeviceMetricsOverride", width=703, height=1000, deviceScaleFactor=1, mobile=False
        )
        try:
            wide = """[...document.querySelectorAll('section:not(#table) .scroll table')]
                .filter(t => t.getClientRects().length && t.getBoundingClientRect().right > 704)
                .map(t => t.closest('section').id + ' ' + t.getBoundingClientRect().right)"""
            assert browser.run("document.querySelector('#same_risk table').rows.length") > 1
            assert browser.run(wide) == []
        finally:
            browser.send("Emulation.setEmulatedMedia", media="")
            browser.send("Emulation.clearDeviceMetricsOverride")


def test_the_page_can_be_read_aloud(opened) -> None:
    browser = opened("pt")
    assert browser.run("document.documentElement.lang") == "pt-BR"
    charts = "[...document.querySelectorAll('svg:not([aria-hidden])')]"
    assert browser.run(
        f"{charts}.every(s => s.getAttribute('role') === 'img' && s.querySelector('title') && s.querySelector('desc'))"
    )
    assert browser.run("[...document.querySelectorAll('select, input')].every(e => e.labels.length === 1)")
    assert browser.run("[...document.querySelectorAll('button')].every(b => b.textContent.trim())")
    assert browser.run("[...document.querySelectorAll('th')].every(h => h.scope === 'col')")
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later - before <= 1 for before, later in itertools.pairwise(levels))
