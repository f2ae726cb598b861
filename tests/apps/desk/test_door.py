"""Only the desk's own page, in the browser that was let in, may speak to the desk."""

from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

import pytest
from fastapi.routing import APIRoute

from velado.apps.desk.screens import SCREENS

from .desks import Desk, leftovers, people_csv, running


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_printed_address_works_once(desk: Desk) -> None:
    desk.cookie = ""
    assert desk.get("/open").status == 401
    first = desk.get(f"/?ticket={desk.session.ticket}")
    assert first.status == 303 and "HttpOnly" in first.cookies[0] and "strict" in first.cookies[0].lower()
    assert desk.session.ticket not in first.headers["location"]
    assert desk.get(f"/?ticket={desk.session.ticket}").status == 401
    desk.cookie = first.cookies[0].split(";")[0]
    assert desk.get("/open").status == 200


@pytest.mark.slow
def test_the_language_asked_for_on_the_command_line_is_that_of_the_first_page(tmp_path: Path) -> None:
    with running(tmp_path, "--lang", "pt") as started:
        asked = Request(started.address, headers={"accept-language": "en-US,en"})
        with build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar())).open(
            asked, timeout=60
        ) as reply:
            assert b'<html lang="pt">' in reply.read()


def test_a_wrong_ticket_or_cookie_is_refused(desk: Desk) -> None:
    desk.cookie = f"{desk.session.name}=guess"
    assert desk.get("/open").status == 401
    assert desk.get("/?ticket=guess").status == 401
    assert desk.get("/?ticket=%C3%A9").status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nothing_is_answered_to_another_site_though_the_cookie_came_along(desk: Desk, site: str) -> None:
    for path in ("/open", "/history", "/jobs/x", "/"):
        assert desk.get(path, sec_fetch_site=site).status == 403, path
    for own in ("same-origin", "none", ""):
        assert desk.get("/open", sec_fetch_site=own).status == 200


@pytest.mark.parametrize("host", ["evil.example:8001", "127.0.0.1", "127.0.0.1:80", "[::1]:8001", ""])
def test_a_foreign_name_for_this_machine_is_refused(desk: Desk, host: str) -> None:
    assert desk.get("/open", host=host).status == 421
    assert desk.get("/static/desk.js", host=host).status == 421


def test_another_page_cannot_send_forms(desk: Desk) -> None:
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}):
        assert desk.call("POST", "/open/choose", b"csrf=x", **headers).status == 403


def changing_routes() -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for part in SCREENS
        for route in part.screen.routes
        if isinstance(route, APIRoute)
        for method in route.methods
        if method not in ("GET", "HEAD")
    ]


@pytest.mark.parametrize(("method", "path"), changing_routes())
def test_what_changes_something_needs_the_pages_token(desk: Desk, method: str, path: str) -> None:
    place = path.replace("{name}", "x.csv").replace("{number}", "0")
    before = desk.state()
    for body in (b"", b"csrf=guess&state=", b"csrf=%C3%A9", b"\xff\xfe=%zz"):
        reply = desk.call(method, place, body, accept="application/json")
        assert reply.status == 409 and "token" in reply.json["what"], path
    assert desk.state() == before and leftovers(desk.folder) == []


def test_there_are_routes_to_guard() -> None:
    assert len(changing_routes()) >= 20


def test_every_reply_forbids_other_hosts_and_frames(desk: Desk) -> None:
    for path in ("/open", "/nowhere", "/static/desk.css", "/history"):
        headers = desk.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "http:" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY" and headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/static/../door.py", "/static/%2e%2e/door.py", "/static/door.py", "/.desk/answers.json"]
)
def test_no_path_leads_out_of_the_static_files(desk: Desk, path: str) -> None:
    assert desk.get(path).status == 404


@pytest.mark.parametrize("name", ["../answers", "..", "a/b", "%2e%2e", "x" * 300, "run\u202e"])
def test_no_name_of_a_run_leads_elsewhere(desk: Desk, name: str) -> None:
    assert desk.get(f"/jobs/{name}").status in (404, 409)


def test_a_form_of_many_megabytes_is_refused(desk: Desk) -> None:
    assert "too large" in desk.call("POST", "/people", b"a=" + b"x" * (5 << 20), parts=8).words


def test_an_unexpected_error_shows_no_message(desk: Desk) -> None:
    desk.opened(people_csv()).read()
    recipe = desk.project.recipe_file
    recipe.write_text(recipe.read_text().replace("[schema.columns.age]", "[schema.columns.Zebedeu]"))
    (desk.project.desk / "profiles" / desk.project.answers().profile / "profile.json").write_text(
        '{"Zebedeu": 1}'
    )
    reply = desk.get("/people")
    assert reply.status == 500 and "Zebedeu" not in reply.text
