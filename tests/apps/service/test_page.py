"""The page, used by keyboard in a real browser: log in, see the price, ask, see the answer and the budget."""

import json
import re
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from velado.apps.service.web_app import page_words

from .browser import Browser, chromium
from .running import Running, running, with_folder, write_service

needs_browser = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed.")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose schema declares how many rows there are."""
    file = write_service(tmp_path_factory.mktemp("sized"))
    schema = file.parent / "schema.toml"
    schema.write_text("[dataset]\nrows = 200\n" + schema.read_text("utf-8"), "utf-8")
    with running(file) as started:
        yield started


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


def choose(browser: Browser, element: str, value: str) -> None:
    """As if chosen or typed: the element has the value and says that it changed."""
    browser.run(
        f"(() => {{ const e = document.getElementById('{element}'); e.value = {json.dumps(value)}; "
        "e.dispatchEvent(new Event('change')); })()"
    )


def press_ask(browser: Browser) -> None:
    """Ctrl+Enter in the query, and its answer is there."""
    browser.run("document.getElementById('sql').focus()")
    browser.press("Enter", modifiers=2)
    browser.until("!document.getElementById('answer').hidden")


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
    assert "0.5" in browser.text("#priced") and "laplace" not in browser.text("#priced")
    assert re.search(r"avg_age: off by up to ±[\d.,]+ \(95%\)", browser.text("#priced"))
    browser.run("document.querySelector('#priced summary').focus()")
    browser.press("Enter")
    assert "laplace" in browser.text("#priced")
    before = browser.run("document.querySelector('#budget meter').value")
    browser.run("document.getElementById('sql').focus()")
    browser.press("Enter", modifiers=2)  # Ctrl
    browser.until("!document.getElementById('answer').hidden")
    answer = browser.text("#answer")
    assert all(name in answer for name in ("avg_age", "count", "Belém", "95% interval"))
    # Every value has its interval drawn, and its bar unless noise left it unknown.
    assert browser.run("document.querySelectorAll('#answer svg .whisker').length") == 8
    assert browser.run("document.querySelectorAll('#answer svg :is(.bar, .unknown)').length") == 8
    assert "Recife" in browser.run("document.querySelector('#answer svg').getAttribute('aria-label')")
    browser.until(f"document.querySelector('#budget meter').value > {before} + 0.4")
    assert "AVG" in browser.text("#history")
    browser.press("Tab")
    assert browser.run("document.activeElement !== document.body")
    assert browser.complaints() == []


@needs_browser
def test_the_query_builder_the_errors_and_logging_out_work(service: Running, browser: Browser) -> None:
    log_in(browser, service, "bia")
    for element, value in (("what", "AVG"), ("of", "age"), ("by", "sex")):
        choose(browser, element, value)
    assert (
        browser.run("document.getElementById('sql').value") == "SELECT sex, AVG(age) FROM people GROUP BY sex"
    )
    press_ask(browser)
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
    choose(browser, "what", what)
    shown = [
        name for name in ("level", "bins") if browser.run(f"!document.getElementById('{name}-part').hidden")
    ]
    assert shown == ([] if part is None else [part[0]])
    if part is not None:
        choose(browser, *part)
    assert browser.run("document.getElementById('sql').value") == sql
    press_ask(browser)
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


def phone(browser: Browser) -> None:
    """A window of 390 pixels."""
    browser.send(
        "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True
    )


@needs_browser
@pytest.mark.parametrize(("width", "lang"), [(1280, "en"), (390, "pt")])
def test_exactness_comes_first_and_noise_wants_a_second_word(
    sized: Running, browser: Browser, width: int, lang: str
) -> None:
    if width == 390:
        phone(browser)
    log_in(browser, sized, "ana", lang)
    spent = "document.querySelector('#budget meter').value"
    before = browser.run(spent)
    # By keyboard from the query to how exact, and with Enter to the answer.
    fill(browser, "sql", "SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    browser.press("Tab")
    assert browser.run("document.activeElement.id") == "within"
    browser.type("12" if width == 1280 else "20%")
    browser.run("document.getElementById('price').focus()")
    browser.press(" ")
    browser.until("!document.getElementById('priced').hidden")
    off = "n: off by up to ±12 (95%)." if lang == "en" else "n: erra até ±13 (95%)."
    assert off in browser.text("#priced") and browser.run(spent) == before
    browser.run("document.getElementById('within').focus()")
    browser.press("Enter")
    browser.until("!document.getElementById('answer').hidden")
    browser.until(f"{spent} > {before}")
    # Letters of the chart are as large as elsewhere, and nothing is wider than the window.
    scale = browser.run(
        "(() => { const s = document.querySelector('#answer svg'); return s.getBoundingClientRect().width / s.viewBox.baseVal.width; })()"
    )
    assert 0.95 < scale < 1.05
    assert browser.run("document.documentElement.scrollWidth") <= width
    after = browser.run(spent)
    # An answer wider than the whole table is not sold without being said.
    fill(browser, "within", str(150 + width))
    browser.press("Enter")
    browser.until("document.getElementById('anyway') !== null")
    assert ("Mostly noise: n" if lang == "en" else "Quase só ruído: n") in browser.text("#priced .warning")
    assert browser.run("document.getElementById('answer').hidden") and browser.run(spent) == after
    assert browser.run("document.activeElement.id") == "priced"
    browser.press("Tab")
    browser.press("Tab")
    assert browser.run("document.activeElement.id") == "anyway"
    browser.press("Enter")
    browser.until("!document.getElementById('answer').hidden")
    browser.until(f"{spent} > {after}")
    # The newest question again: with its accuracy, and for nothing.
    paid = browser.run(spent)
    browser.until("document.querySelectorAll('#history li').length >= 2")
    browser.run("document.getElementById('within').value = ''")
    browser.run("document.querySelectorAll('#history button')[1].click()")
    browser.until("!document.getElementById('priced').hidden")
    assert browser.run("document.getElementById('within').value") == ("12" if width == 1280 else "20%")
    browser.run("document.getElementById('go').click()")
    browser.until("!document.getElementById('answer').hidden")
    assert ("at no cost" if lang == "en" else "sem custo") in browser.text("#answer")
    assert browser.run(spent) == paid and browser.complaints() == []


@needs_browser
def test_conditions_are_written_into_the_sql_and_read_from_it(service: Running, browser: Browser) -> None:
    log_in(browser, service)
    sql = "document.getElementById('sql').value"
    browser.run("document.getElementById('add-condition').focus()")
    browser.press("Enter")
    assert browser.run("document.activeElement.className") == "column"
    line = "document.querySelector('#conditions li')"
    for part, value in (("column", "city"), ("test", "<>"), ("value", "Belém")):
        browser.run(
            f"(() => {{ const e = {line}.querySelector('.{part}'); e.value = '{value}'; e.dispatchEvent(new Event('change')); }})()"
        )
    assert browser.run(sql) == "SELECT COUNT(*) FROM people WHERE city <> 'Belém'"
    # The other way: what is typed stands in the form when the query is left.
    fill(
        browser,
        "sql",
        "select sex, quantile(age, 0.25) from people where (age between 20 and 40.5 and note is not null) group by sex",
    )
    browser.press("Tab")
    browser.until("document.querySelectorAll('#conditions li').length === 3")
    shown = browser.run(
        "[...document.querySelectorAll('#conditions li')].map((l) => [...l.querySelectorAll('select, input')].map((e) => e.value))"
    )
    assert sorted(shown) == [["age", "<=", "40.5"], ["age", ">=", "20"], ["note", "present"]]
    assert browser.run("['what', 'of', 'level', 'by'].map((id) => document.getElementById(id).value)") == [
        "QUANTILE",
        "age",
        "0.25",
        "sex",
    ]
    assert browser.run("document.getElementById('built').textContent") == ""
    # Read and written again it means the same; more than the form has room for is said and left as it is.
    choose(browser, "any", "or")
    assert " OR " in browser.run(sql) and browser.run(sql).endswith("GROUP BY sex")
    fill(browser, "sql", "SELECT COUNT(*), SUM(age) FROM people")
    browser.press("Tab")
    browser.until("document.getElementById('built').textContent.includes('more than this form')")
    assert browser.run(sql) == "SELECT COUNT(*), SUM(age) FROM people"
    fill(browser, "sql", "SELECT COUNT(*) FROM people WHERE city IN ('Recife', 'Belém') OR age IS NULL")
    browser.press("Tab")
    browser.until("document.querySelectorAll('#conditions li').length === 2")
    assert browser.run("document.getElementById('any').value") == "or"
    assert browser.complaints() == []


@needs_browser
def test_an_unfinished_condition_is_not_left_out_of_what_is_paid(service: Running, browser: Browser) -> None:
    log_in(browser, service, lang="en")
    left = browser.text("#budget")
    browser.run("document.getElementById('add-condition').click()")
    line = "document.querySelector('#conditions li')"
    browser.run(
        f"(() => {{ const c = {line}.querySelector('.column'); c.value = 'note'; c.dispatchEvent(new Event('change')); }})()"
    )
    assert "no value yet" in browser.text("#built")
    for button in ("price", "go"):
        browser.run(f"document.getElementById('{button}').click()")
    time.sleep(0.5)
    assert browser.run("document.getElementById('priced').hidden && document.getElementById('answer').hidden")
    assert browser.text("#budget") == left
    browser.run(
        f"(() => {{ const v = {line}.querySelector('.value'); v.value = 'old'; v.dispatchEvent(new Event('change')); }})()"
    )
    # Another comparison keeps the value.
    browser.run(
        f"(() => {{ const t = {line}.querySelector('.test'); t.value = '<>'; t.dispatchEvent(new Event('change')); }})()"
    )
    assert browser.run("document.getElementById('sql').value").endswith("WHERE note <> 'old'")
    assert browser.text("#built") == ""
    # A long comparison fits a phone, in the language with the longer words too.
    phone(browser)
    log_in(browser, service, lang="pt")
    browser.run("document.getElementById('add-condition').click()")
    browser.run(
        f"(() => {{ const c = {line}.querySelector('.column'); c.value = 'note'; c.dispatchEvent(new Event('change'));"
        f"const t = {line}.querySelector('.test'); t.value = 'like'; t.dispatchEvent(new Event('change')); }})()"
    )
    assert browser.run("document.documentElement.scrollWidth") <= 390


@needs_browser
def test_an_answer_is_saved_as_csv_and_json(service: Running, browser: Browser, tmp_path: Path) -> None:
    log_in(browser, service)
    saved = tmp_path / "saved"
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(saved))
    fill(browser, "sql", "SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    press_ask(browser)
    for button, name in ((1, "people.csv"), (2, "people.json")):
        browser.run(f"document.querySelector('.saves button:nth-child({button})').click()")
        end = time.monotonic() + 40
        while not (saved / name).is_file() and time.monotonic() < end:
            time.sleep(0.05)
    lines = (saved / "people.csv").read_text("utf-8").splitlines()
    answer = json.loads((saved / "people.json").read_text("utf-8"))
    assert lines[0] == "city,n,n_low,n_high" and [line.split(",")[0] for line in lines[1:]] == [
        "Recife",
        "Belém",
        "Viçosa",
        "",
    ]
    assert [int(line.split(",")[1]) for line in lines[1:]] == [row[1] for row in answer["rows"]]


@needs_browser
@pytest.mark.parametrize(("width", "lang"), [(1280, "pt"), (390, "en")])
def test_the_owner_manages_data_sets_tokens_caps_and_budget(
    tmp_path: Path, browser: Browser, width: int, lang: str
) -> None:
    if width == 390:
        phone(browser)
    file = with_folder(tmp_path)
    with running(file) as service:
        log_in(browser, service, "ana", lang)
        assert browser.run("document.getElementById('manage').hidden")
        browser.run("document.getElementById('leave').click()")
        log_in(browser, service, "root", lang)
        browser.until(
            "!document.getElementById('manage-all').hidden && document.getElementById('new-file').options.length > 0"
        )
        assert browser.run("document.documentElement.scrollWidth") <= width
        # A token, shown once.
        fill(browser, "token-analyst", "eva")
        browser.press("Enter")
        browser.until("!document.getElementById('new-token').hidden")
        text = browser.run("document.querySelector('#new-token code').textContent")
        assert text not in (tmp_path / "tokens.json").read_text("utf-8")
        assert service.call("GET", "/v1/datasets", who=text).status == 200
        # A data set from the folder, which eva may ask at once.
        for element, value in (("new-name", "wards"), ("new-file", "more.csv"), ("new-schema", "more.toml")):
            browser.run(f"document.getElementById('{element}').value = '{value}'")
        fill(browser, "new-budget", "0,5")
        browser.press("Enter")
        browser.until("[...document.getElementById('dataset').options].some((o) => o.value === 'wards')")
        body = {"dataset": "wards", "sql": "SELECT COUNT(*) FROM wards", "spend": 0.1}
        assert service.call("POST", "/v1/answers", body, text).status == 200
        # A wrong budget is said in the page's language, beside the form.
        for element, value in (("new-name", "again"), ("new-file", "more.csv"), ("new-schema", "more.toml")):
            browser.run(f"document.getElementById('{element}').value = '{value}'")
        fill(browser, "new-budget", "x")
        browser.press("Enter")
        browser.until("!document.getElementById('error').hidden")
        assert browser.run(
            "document.getElementById('add-dataset').contains(document.getElementById('error'))"
        )
        assert ("O que fazer" if lang == "pt" else "What to do") in browser.text("#error")
        # A cap and a larger budget for the chosen one.
        choose(browser, "dataset", "wards")
        browser.until("document.querySelector('#budget meter').max === 0.5")
        fill(browser, "cap-analyst", "eva")
        fill(browser, "cap-amount", "0.2")
        browser.press("Enter")
        browser.until("document.getElementById('budget').innerText.includes('eva')")
        fill(browser, "raise-total", "0.75")
        fill(browser, "raise-reason", "second study")
        browser.press("Enter")
        browser.until("document.querySelector('#budget meter').max === 0.75")
        # Out with a second press, and back.
        out = "[...document.querySelectorAll('#hosted tr')].find((r) => r.innerText.includes('wards')).querySelector('button')"
        browser.run(f"{out}.click()")
        browser.run(f"{out}.click()")
        browser.until("![...document.getElementById('dataset').options].some((o) => o.value === 'wards')")
        assert service.call("POST", "/v1/answers", body, text).status == 404
        back = "Recolocar" if lang == "pt" else "Put back"
        browser.until(f"{out}.textContent === '{back}'")
        browser.run(f"{out}.click()")
        browser.until("[...document.getElementById('dataset').options].some((o) => o.value === 'wards')")
        browser.until(f"{out}.textContent !== '{back}'")
        # The token ends.
        end = "[...document.querySelectorAll('#tokens tr')].find((r) => r.innerText.includes('eva')).querySelector('button')"
        browser.until(f"{end} !== null")
        browser.run(f"{end}.click()")
        browser.run(f"{end}.click()")
        browser.until(f"{end} === null")
        assert service.call("GET", "/v1/datasets", who=text).status == 401
        # The browser itself notes the one request that was refused on purpose.
        assert [one for one in browser.complaints() if "422" not in one] == []


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
    scripts = ("page.js", "builder.js", "owner.js")
    script = "".join(folder.joinpath("static", name).read_text("utf-8") for name in scripts)
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
