"""The page, used by keyboard in a real browser: log in, see the price, ask, see the answer and the budget."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from velado.apps.service.web_app import page_words

from .browser import Browser, chromium
from .running import Running

needs_browser = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed.")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path)
    yield opened
    opened.close()


def log_in(browser: Browser, service: Running, who: str = "ana", lang: str = "en") -> None:
    browser.go(f"{service.address}/?lang={lang}")
    browser.run("document.getElementById('token').focus()")
    browser.type(service.tokens[who])
    browser.press("Enter")
    browser.until(
        "!document.getElementById('work').hidden && document.querySelector('#budget meter') !== null"
    )


def fill(browser: Browser, element: str, text: str) -> None:
    browser.run(f"(() => {{ const e = document.getElementById('{element}'); e.focus(); e.select(); }})()")
    browser.type(text)


@needs_browser
def test_a_person_asks_by_keyboard_and_sees_answer_interval_and_budget(
    service: Running, browser: Browser
) -> None:
    log_in(browser, service)
    assert browser.run("document.activeElement.id") == "question"
    fill(browser, "sql", "SELECT AVG(age), COUNT(*) FROM people WHERE sex = 'F' GROUP BY city")
    fill(browser, "spend", "0.5")
    browser.run("document.getElementById('price').focus()")
    browser.press(" ")
    browser.until("!document.getElementById('priced').hidden")
    assert "laplace" in browser.text("#priced") and "0.5" in browser.text("#priced")
    before = browser.run("document.querySelector('#budget meter').value")
    browser.run("document.getElementById('sql').focus()")
    browser.press("Enter", modifiers=2)  # Ctrl
    browser.until("!document.getElementById('answer').hidden")
    answer = browser.text("#answer")
    assert all(name in answer for name in ("avg_age", "count", "Belém", "95% interval"))
    assert browser.run("document.querySelectorAll('#answer svg .bar').length") == 8
    assert browser.run("document.querySelectorAll('#answer svg .whisker').length") == 8
    assert "Recife" in browser.run("document.querySelector('#answer svg').getAttribute('aria-label')")
    browser.until(f"document.querySelector('#budget meter').value > {before} + 0.4")
    assert "AVG" in browser.text("#history")
    browser.press("Tab")
    assert browser.run("document.activeElement !== document.body")
    assert browser.complaints() == []


@needs_browser
def test_the_query_builder_the_errors_and_logging_out_work(service: Running, browser: Browser) -> None:
    log_in(browser, service, "bia")
    browser.run("document.getElementById('what').value = 'AVG'; document.getElementById('of').value = 'age';")
    browser.run("document.getElementById('by').value = 'sex'; document.getElementById('put').click()")
    assert (
        browser.run("document.getElementById('sql').value") == "SELECT sex, AVG(age) FROM people GROUP BY sex"
    )
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('answer').hidden")
    fill(browser, "sql", "SELECT note FROM people")
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('error').hidden")
    assert "note" in browser.text("#error") and browser.run("document.activeElement.id") == "error"
    # The error stands beside the button, and no former answer beneath a question it does not belong to.
    assert browser.run("document.getElementById('ask').contains(document.getElementById('error'))")
    assert browser.run("document.getElementById('answer').hidden") and browser.text("#answer") == ""
    browser.run("document.getElementById('leave').click()")
    assert browser.run("sessionStorage.length") == 0
    assert browser.run("document.getElementById('work').hidden")


@needs_browser
@pytest.mark.parametrize(
    ("what", "part", "sql"),
    [
        ("MEDIAN", None, "SELECT MEDIAN(age) FROM people"),
        ("QUANTILE", ("level", "0.25"), "SELECT QUANTILE(age, 0.25) FROM people"),
        ("HISTOGRAM", ("bins", "4"), "SELECT HISTOGRAM(age, 4) FROM people"),
    ],
)
def test_the_builder_makes_quantiles_and_histograms(
    service: Running, browser: Browser, what: str, part: tuple[str, str] | None, sql: str
) -> None:
    log_in(browser, service)
    browser.run(
        f"(() => {{ const e = document.getElementById('what'); e.value = '{what}'; e.dispatchEvent(new Event('change')); }})()"
    )
    shown = [
        name for name in ("level", "bins") if browser.run(f"!document.getElementById('{name}-part').hidden")
    ]
    assert shown == ([] if part is None else [part[0]])
    if part is not None:
        fill(browser, *part)
    browser.run("document.getElementById('put').click()")
    assert browser.run("document.getElementById('sql').value") == sql
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('answer').hidden")
    if what == "HISTOGRAM":
        assert browser.run("document.querySelectorAll('#answer tbody tr').length") == 4
        assert "Each interval holds" in browser.text("#answer")
    else:
        assert "may miss the asked rank by" in browser.text("#answer")
        assert "interval" not in browser.text("#answer")
    assert browser.complaints() == []


@needs_browser
def test_each_quantile_has_its_own_rank_error_and_an_interval_its_own_words(
    service: Running, browser: Browser
) -> None:
    log_in(browser, service)
    fill(browser, "sql", "SELECT MIN(age), MEDIAN(age), COUNT(*) FROM people")
    browser.run("document.getElementById('price').click()")
    browser.until("!document.getElementById('priced').hidden")
    priced = browser.text("#priced")
    assert "1% quantile of 'age'" in priced and "May miss the rank by" in priced and "Grid" not in priced
    browser.run("document.getElementById('sql').focus()")
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('answer').hidden")
    answer = browser.text("#answer")
    assert "min_age: MIN is answered as the 1% quantile." in answer
    assert "median_age: the 50% quantile." in answer
    ranks = re.findall(r"may miss the asked rank by ([\d,]+) rows", answer)
    assert len(set(ranks)) == 2
    assert "over the rows that count (at most 2 with one value of household)" in answer
    assert "whatever is in the table" not in answer


@needs_browser
def test_showing_a_former_question_again_is_free(service: Running, browser: Browser) -> None:
    first = service.ask("SELECT SUM(age) FROM people WHERE city = 'Belém'", "bia", spend="1/9").json
    log_in(browser, service, "bia")
    spent = browser.run("document.querySelector('#budget meter').value")
    browser.run("document.querySelector('#history button').click()")
    browser.until("!document.getElementById('priced').hidden")
    assert "You asked this before with this spend" in browser.text("#priced")
    assert browser.run("document.getElementById('spend').value") == "1/9"
    browser.run("document.getElementById('go').click()")
    browser.until("!document.getElementById('answer').hidden")
    assert "at no cost" in browser.text("#answer")
    assert f"{first['rows'][0][0]:,.6g}"[:3] in browser.text("#answer .value")
    assert browser.run("document.querySelector('#budget meter').value") == spent


@needs_browser
def test_a_wrong_token_is_told_and_nothing_is_shown(service: Running, browser: Browser) -> None:
    browser.go(service.address + "/?lang=pt")
    browser.run("document.getElementById('token').focus()")
    browser.type("velado-wrong")
    browser.press("Enter")
    browser.until("!document.getElementById('error').hidden")
    # In the language of the page, whatever the browser's is.
    assert "O pedido não traz código de acesso em vigor." in browser.text("#error")
    assert browser.run("document.getElementById('work').hidden")


@needs_browser
def test_the_owner_reads_the_page_in_portuguese(service: Running, browser: Browser) -> None:
    service.ask("SELECT COUNT(*) FROM people WHERE age > 3", "bia")
    log_in(browser, service, "root", "pt")
    shown = browser.text("body")
    assert "Orçamento de privacidade" in shown and "Você é root (responsável)." in shown
    assert "bia" in browser.text("#budget")
    fill(browser, "sql", "SELECT COUNT(*) FROM people WHERE age > 3")
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('answer').hidden")
    assert "Já perguntado" in browser.text("#answer")
    assert browser.complaints() == []


@needs_browser
def test_the_page_loads_nothing_from_elsewhere(service: Running, browser: Browser) -> None:
    log_in(browser, service)
    asked = [
        e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"
    ]
    assert len(asked) >= 5 and all(address.startswith(service.address) for address in asked)


def test_the_page_has_every_text_of_the_catalogue_with_its_places() -> None:
    english, portuguese = page_words("en"), page_words("pt")
    assert (english["title"], portuguese["title"]) == ("Ask without seeing", "Perguntar sem ver")
    for key, text in english.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", portuguese[key])), key
    # What the script and the templates ask for is there.
    folder = files("velado.apps.service")
    script = folder.joinpath("static", "page.js").read_text("utf-8")
    asked = set(re.findall(r"words\.(\w+)", script)) | set(re.findall(r'say\("(\w+)"', script))
    for page in ("page.html", "docs.html"):
        asked |= set(re.findall(r"w\.(\w+)", folder.joinpath("templates", page).read_text("utf-8")))
    # The script completes "need_" by what is drawn.
    assert asked - english.keys() == {"need_"}


@pytest.mark.slow  # a process
def test_pages_are_served_in_the_language_of_the_browser(service: Running) -> None:
    page = service.call("GET", "/", who=None, Accept_Language="pt-BR")
    assert '<html lang="pt">' in page.text and "Perguntar sem ver" in page.text
    docs = service.call("GET", "/docs?lang=pt", who=None)
    assert "A API deste serviço" in docs.text and "POST /v1/answers" in docs.text


@pytest.mark.slow  # a process
def test_pages_hold_no_inline_script_and_a_strict_policy(service: Running) -> None:
    for path in ("/", "/docs"):
        page = service.call("GET", path, who=None)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert " onclick" not in page.text and " style=" not in page.text and "://" not in page.text
        assert page.headers["x-frame-options"] == "DENY" and page.headers["referrer-policy"] == "no-referrer"
