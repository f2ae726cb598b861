"""What was handed over is saved and read in the browser: these few files of a release, and nothing else of the machine."""

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest

from velado.apps.desk.handed_over import OFFERED
from velado.apps.desk.signing import Signature

from .desks import Desk

NAME = "2026-01-01-1"
PAGES = {"about", "evidence", "annex", "report"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    release(found)
    return found


def release(desk: Desk, name: str = NAME) -> Path:
    """A release as a signature leaves it; every file says what it is."""
    place = desk.project.releases / name
    (place / "release").mkdir(parents=True)
    (place / "private").mkdir()
    (place / "release" / "table.csv").write_text("the table")
    (place / "release" / "about.html").write_text("the about")
    (place / "release" / "manifest.json").write_text("the manifest")
    (place / "private" / "report.html").write_text("the report<script>alert(1)</script>")
    (place / "private" / "owner.key").write_text("the key")
    with zipfile.ZipFile(place / "evidence-lgpd.zip", "w") as files:
        files.writestr("evidence.html", "the evidence")
        files.writestr("annex.html", "the annex")
    said = {"name": "Ana", "recipient": "all", "purpose": "study", "legal_basis": "research"}
    signature = Signature(run="r", sha256="", recipe="", at="2026-01-01T10:00:00Z", release=name, **said)
    (place / "signature.json").write_text(json.dumps(asdict(signature)))
    return place


@pytest.mark.parametrize("offered", OFFERED, ids=lambda one: one.name)
def test_each_file_that_the_page_offers_is_served(desk: Desk, offered: object) -> None:
    what = offered.name  # type: ignore[attr-defined]
    assert f'href="/releases/{NAME}/{what}"' in desk.get("/sign").text
    reply = desk.get(f"/releases/{NAME}/{what}")
    assert reply.status == 200
    if what == "pack":
        assert reply.body == (desk.project.releases / NAME / "evidence-lgpd.zip").read_bytes()
    else:
        assert reply.text.startswith(f"the {what}")
    if what in PAGES:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src" not in policy and policy.endswith("sandbox")
    else:
        assert reply.headers["content-disposition"].startswith(f'attachment; filename="{NAME}-')
    assert reply.headers["cache-control"] == "no-store" and reply.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    [
        f"/releases/{NAME}/key",
        f"/releases/{NAME}/owner.key",
        f"/releases/{NAME}/../signature.json",
        f"/releases/{NAME}/%2e%2e",
        "/releases/../table",
        "/releases/%2e%2e/table",
        "/releases/./table",
        "/releases/2026-01-01-2/table",
        "/releases/" + "x" * 9000 + "/table",
        "/releases//table",
    ],
)
def test_nothing_else_is_served(desk: Desk, path: str) -> None:
    reply = desk.get(path)
    assert reply.status in (404, 409) and "the " + "key" not in reply.text


def test_nobody_else_reads_them(desk: Desk) -> None:
    for what in (one.name for one in OFFERED):
        assert desk.call("GET", f"/releases/{NAME}/{what}", cookie="x=y").status == 401
        assert desk.get(f"/releases/{NAME}/{what}", sec_fetch_site="same-site").status == 403


def test_no_link_leads_out_of_the_project(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("of somebody else")
    place = release(desk, "2026-01-01-2")
    for inside in ("release/table.csv", "release/about.html", "private/report.html", "evidence-lgpd.zip"):
        (place / inside).unlink()
        (place / inside).symlink_to(secret)
    for what in (one.name for one in OFFERED if one.name != "manifest"):
        reply = desk.get(f"/releases/2026-01-01-2/{what}")
        assert reply.status == 409 and "somebody else" not in reply.text, what


def test_a_signature_that_names_another_folder_is_no_way_there(desk: Desk) -> None:
    for told in ("..", "../.desk", ".", NAME + "/private"):
        place = desk.project.releases / NAME / "signature.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), "release": told}))
        for name in (told.replace("/", "%2f"), told, NAME):
            assert desk.get(f"/releases/{name}/table").status in (404, 409)


def test_a_pack_that_is_none_or_holds_no_page_is_told(desk: Desk) -> None:
    pack = desk.project.releases / NAME / "evidence-lgpd.zip"
    with zipfile.ZipFile(pack, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("evidence.html", b"0" * (17 << 20))
    assert desk.get(f"/releases/{NAME}/evidence").status == 409  # larger than any of ours
    assert desk.get(f"/releases/{NAME}/annex").status == 409
    pack.write_bytes(b"no zip")
    assert "no such file" in desk.get(f"/releases/{NAME}/evidence").words


def test_what_was_just_handed_over_stands_first(desk: Desk) -> None:
    text = desk.get("/sign?done").text
    assert text.index('id="handed-over"') < text.index('role="note"')  # what is still open of the next one
    assert text.count(f'href="/releases/{NAME}/table"') == 1
    assert str(desk.project.releases.resolve() / NAME) in text


def test_the_report_of_no_run_is_none(desk: Desk) -> None:
    assert desk.get("/look/report").headers["location"] == "/look"
