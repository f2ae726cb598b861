"""The whole walk in a real browser, by keyboard alone: from a CSV file to a signed release, in both languages and widths.

Two of the four pairs of language and width are walked; VELADO_WALKS=4 walks all. `make axe` installs axe-core, by which every
screen is checked then.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..service.browser import Browser, chromium
from .desks import copy_sample, leftovers, people_csv, run_a_stream, running
from .hands import Hands, axe_file, serious

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed."),
]
PAIRS = [("en", 1280), ("pt", 390), ("pt", 1280), ("en", 390)][: int(os.environ.get("VELADO_WALKS", "2"))]
RECIPIENT = {"en": "researchers under contract", "pt": "pesquisadores com contrato"}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path, seconds=90)
    yield opened
    opened.close()


@pytest.mark.parametrize(("tongue", "width"), PAIRS)
def test_from_a_file_to_a_signed_release_by_keyboard(
    tmp_path: Path, browser: Browser, tongue: str, width: int
) -> None:
    project = tmp_path / "project"
    copy_sample(project, None if (tongue, width) == PAIRS[0] else 200)
    hands = Hands(browser, width)
    found: dict[str, list[str]] = {}
    checked = (tongue, width) == PAIRS[0] or len(PAIRS) == 4  # axe-core takes seconds for each screen

    def check(screen: str) -> None:
        assert browser.run("document.documentElement.lang") == tongue
        assert hands.overflow() <= 0, screen
        found[screen] = serious(browser) if checked else []

    def right_edge(place: str) -> float:
        return float(
            browser.run(f"document.querySelector({json.dumps(place)}).getBoundingClientRect().right")
        )

    with running(project) as desk:
        browser.go(f"{desk.address}&lang={tongue}")
        hands.at("/open")
        check("open")
        hands.push("button[value='hospital.csv']", "/open")
        hands.rest()
        check("opened")
        hands.push("#right-person", "/roles")
        check("roles")
        hands.push("#settle", "/promise")
        browser.until("document.getElementById('preview').dataset.shown")
        check("promise")
        hands.push("button[value='researchers']", "/promise")
        hands.push("#run", "/look")
        hands.rest()
        check("look")
        assert right_edge("table.both thead tr + tr th + th") <= width  # the first column, before and after
        doors = browser.run(
            "[...document.querySelectorAll('fieldset.door input[value=hold]')].map((one) => one.name)"
        )
        for name in doors:
            hands.tick(f"input[name='{name}']")
        if doors:
            hands.push("#doors button", "/look")
            hands.rest()
        hands.push("#to-sign", "/sign")
        check("sign")
        assert browser.run("document.getElementById('recipient').value") == RECIPIENT[tongue]
        hands.choose("#legal_basis", 4)
        hands.write("#name", "Ana Lima")
        hands.push("#sign", "/sign")
        assert hands.actions <= 12
        (release,) = (project / "releases").iterdir()
        assert json.loads((release / "signature.json").read_bytes())["name"] == "Ana Lima"
        assert (release / "evidence-lgpd.zip").exists() and leftovers(project) == []
        assert release.name in browser.text("main")
        run_a_stream(project, 2)
        for screen in ("people", "compare", "hierarchies", "history", "streams"):
            browser.go(f"{desk.origin}/{screen}")
            check(screen)
            if screen == "people":
                assert right_edge("table button[name='column']") <= width
        number = browser.run(
            "fetch('/hierarchies').then((r) => r.text()).then((t) => t.match(/hierarchies\\/(\\d+)/)[1])"
        )
        browser.go(f"{desk.origin}/hierarchies/{number}")
        browser.until("document.getElementById('tree-editor').dataset.ready")
        check("tree")
        # Back and reload show pages and do nothing again.
        browser.send("Page.reload")
        browser.until("document.readyState === 'complete'")
        assert len(list((project / "releases").iterdir())) == 1
        assert hands.hosts() == {desk.origin.removeprefix("http://")}
    assert browser.complaints() == []
    if axe_file() is not None:
        assert {screen: texts for screen, texts in found.items() if texts} == {}


def walked(browser: Browser, origin: str, column: str = "button[name='column']") -> Hands:
    """To the screen of hierarchies, by keys."""
    hands = Hands(browser, 1280)
    hands.push("button[name='file']", "/open")
    hands.rest()
    hands.push("#right", "/people")
    hands.push(column, "/roles")
    hands.push("#settle", "/promise")
    return hands


def test_trees_and_bands_are_edited_by_keyboard_and_pointer(tmp_path: Path, browser: Browser) -> None:
    project = tmp_path / "project"
    project.mkdir()
    draw = [
        f"P{i:05d},{20 + (i * 13) % 60},{'FM'[i % 2]},T{i % 5000:04d},2020-03-{1 + i % 28:02d}"
        for i in range(10_000)
    ]
    (project / "people.csv").write_text("patient_id,age,sex,city,seen\n" + "\n".join(draw) + "\n")
    with running(project) as desk:
        browser.go(desk.address)
        hands = walked(browser, desk.origin)
        browser.go(f"{desk.origin}/hierarchies/3")
        browser.until("document.getElementById('tree-editor').dataset.ready")
        browser.run("window.before = true; document.getElementById('builder').value = 'flat'")
        browser.run("document.querySelector('form[action$=builder] button').click()")
        hands.at("/hierarchies/3")
        browser.until("document.getElementById('tree-editor').dataset.ready")
        shown = int(browser.run("document.querySelectorAll('[role=treeitem]').length"))
        assert 0 < shown <= 400  # of 5,000 values
        hands.reach("[role=treeitem]")
        browser.press(" ")
        browser.press("ArrowDown")
        browser.press(" ")
        assert browser.run("document.querySelectorAll('.picked').length") == 2
        browser.run("window.before = true; document.getElementById('label').focus()")
        browser.type("Coast")
        hands.reach("button[data-what='group']")
        browser.press("Enter")
        hands.at("/hierarchies/3")
        browser.until("document.querySelector('[data-label=Coast]') !== null")
        # The focus is where the edit was; F2 and Enter rename that line, and the focus stays with it.
        browser.until("document.getElementById('tree-editor')?.dataset.ready === 'yes'")
        assert browser.run("document.activeElement.dataset.label") == "Coast"
        browser.press("F2")
        assert browser.run("document.getElementById('label').value") == "Coast"
        browser.run("window.before = true")
        browser.type("Shore")
        browser.press("Enter")
        browser.until("!window.before && document.getElementById('tree-editor')?.dataset.ready === 'yes'")
        assert browser.run("document.activeElement.dataset.label") == "Shore"
        # Dragged into it: what a pointer does, as the events that a browser sends.
        browser.run("window.before = true")
        browser.run(
            "(() => { const into = document.querySelector('[data-label=Shore]');"
            "const from = [...document.querySelectorAll('[role=treeitem]')].find((one) => one.dataset.label.startsWith('T') && !one.hasAttribute('aria-expanded'))"
            " ?? [...document.querySelectorAll('[role=treeitem]')].find((one) => one !== into);"
            "const data = new DataTransfer();"
            "from.dispatchEvent(new DragEvent('dragstart', {bubbles: true, dataTransfer: data}));"
            "into.dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: data})); })()"
        )
        browser.until("!window.before && document.getElementById('tree-editor')?.dataset.ready === 'yes'")
        browser.until("parseInt(document.querySelector('[data-label=Shore] small').textContent) >= 3")
        browser.go(f"{desk.origin}/hierarchies/1")
        browser.run(
            "(() => { const f = document.getElementById('edges'); f.value = '30 50'; f.dispatchEvent(new Event('change')); })()"
        )
        hands.reach(".grip")
        browser.press("ArrowRight")
        assert browser.run("document.getElementById('edges').value") == "31 50"
        box = browser.run(
            "(() => { const g = document.querySelectorAll('.grip')[1].getBoundingClientRect(), s = document.querySelector('.bands').getBoundingClientRect();"
            "return [g.left + 6, g.top + 20, s.left + s.width * 0.75]; })()"
        )
        for kind, x in (("mousePressed", box[0]), ("mouseMoved", box[2]), ("mouseReleased", box[2])):
            browser.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=box[1], button="left", buttons=1, clickCount=1
            )
        assert browser.run("document.getElementById('edges').value") not in ("31 50", "")
        hands.push("#bands-editor form button", "/hierarchies/1")
        browser.until("document.getElementById('tree-editor').dataset.ready")
        assert "<31" in browser.text(".tree")
        recipe = (project / "recipe.toml").read_text()
        assert "Shore" in recipe and "[31" in recipe
        browser.run("window.before = true")
        browser.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'z', ctrlKey: true}))")
        hands.at("/hierarchies/1")
        recipe = (project / "recipe.toml").read_text()
        assert "Shore" in recipe and "[31" not in recipe
        browser.go(f"{desk.origin}/hierarchies/4")
        browser.run(
            "(() => { const f = document.getElementById('edges'); f.value = '2020-03-10'; f.dispatchEvent(new Event('change')); })()"
        )
        shown = "getComputedStyle(document.querySelector('.grip'), '::after').content"
        assert "2020-03-10" in browser.run(shown) or "aria-valuetext" in browser.run(shown)
        assert browser.text(".ends").split() == ["2020-03-01", "2020-03-28"]
        hands.reach(".grip")
        browser.press("ArrowRight")
        assert browser.run("document.getElementById('edges').value") == "2020-03-11"
        assert browser.run("document.querySelector('.grip').getAttribute('aria-valuetext')") == "2020-03-11"
        hands.push("#bands-editor form button", "/hierarchies/4")
        assert ">=2020-03-11" in (project / "recipe.toml").read_text()
    assert browser.complaints() == []


def test_a_file_is_dropped_and_roles_are_counted_live(tmp_path: Path, browser: Browser) -> None:
    project = tmp_path / "project"
    with running(project) as desk:
        browser.go(desk.address)
        browser.run(
            f"(() => {{ const data = new DataTransfer(); data.items.add(new File([{json.dumps(people_csv())}], 'dropped.csv'));"
            "window.before = true;"
            "document.getElementById('drop').dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: data})); })()"
        )
        hands = Hands(browser, 1280)
        hands.at("/open")
        hands.rest()
        assert "dropped.csv" in browser.text("main") and "80" in browser.text("main")
        hands.push("#right", "/people")
        hands.push("button[name='column']", "/roles")
        before = int(browser.text("#all"))
        hands.reach("input[name^='hold-']:not(:checked)")
        for _ in range(3):
            browser.press(" ")
            browser.until("document.getElementById('roles').dataset.counted")
            hands.browser.press("Tab")
            hands.reach("input[name^='hold-']:not(:checked)")
        browser.until(f"Number(document.getElementById('all').textContent) < {before}")
    assert browser.complaints() == []
