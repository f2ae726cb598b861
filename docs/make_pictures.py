"""Takes a picture of every screen of the desk in both languages into docs/pictures, from the sample table. Needs Chromium."""

from __future__ import annotations

import argparse
import base64
import importlib
import os
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "pictures"
SCREENS = (
    "open",
    "people",
    "roles",
    "hierarchies",
    "promise",
    "compare",
    "look",
    "sign",
    "history",
    "streams",
)
TONGUES = ("en", "pt")
WIDTH, HEIGHT = 1000, 760


def main(arguments: Sequence[str] | None = None) -> None:
    """The pictures stand in docs/pictures, or those asked for in another folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SCREENS, action="append", help="this screen; may be repeated")
    parser.add_argument("--lang", choices=TONGUES, action="append", help="this language; may be repeated")
    parser.add_argument("--out", type=Path, default=PLACE, help="folder to write to")
    asked = parser.parse_args(arguments)
    # The tests' browser and the way they start a desk; tests are no package.
    tests = types.ModuleType("tests")
    tests.__path__ = [str(ROOT / "tests")]
    sys.modules["tests"] = tests
    browsers = importlib.import_module("tests.apps.service.browser")
    desks = importlib.import_module("tests.apps.desk.desks")
    hands_of = importlib.import_module("tests.apps.desk.hands")
    asked.out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        os.environ["VELADO_STATE"] = f"{place}/state"
        project = Path(place) / "study"
        desks.copy_sample(project, 400)
        browser = browsers.Browser(Path(place), 180)
        try:
            with desks.running(project) as desk:
                browser.go(desk.address)
                hands = hands_of.Hands(browser, 1280)
                if set(asked.only or SCREENS) - {"open", "streams"}:  # those are there without a walk
                    _walk(browser, hands, desk.origin)
                browser.send(
                    "Emulation.setDeviceMetricsOverride",
                    width=WIDTH,
                    height=HEIGHT,
                    deviceScaleFactor=1,
                    mobile=False,
                )
                for screen in asked.only or SCREENS:
                    if screen == "streams":  # last: from then on every screen lists this one
                        desks.run_a_stream(project, 8)
                    for tongue in asked.lang or TONGUES:
                        path = "hierarchies/6" if screen == "hierarchies" else screen
                        browser.go(f"{desk.origin}/{path}?lang={tongue}")
                        if screen == "promise":
                            browser.until("document.getElementById('preview').dataset.shown")
                        if screen == "hierarchies":
                            browser.until("document.getElementById('tree-editor').dataset.ready")
                        shot = browser.send("Page.captureScreenshot", format="png", optimizeForSpeed=False)
                        (asked.out / f"desk-{screen}-{tongue}.png").write_bytes(
                            base64.b64decode(shot["data"])
                        )
        finally:
            browser.close()


def _walk(browser, hands, origin: str) -> None:  # type: ignore[no-untyped-def]
    hands.push("button[name='file']", "/open")
    hands.rest()
    hands.push("#right", "/people")
    hands.push("button[name='column']", "/roles")
    hands.push("#settle", "/promise")
    browser.go(f"{origin}/compare")
    browser.run(
        "document.querySelectorAll('input[name=method]').forEach((b) => { b.checked = ['mondrian', 'mdav'].includes(b.value); })"
    )
    hands.push("#compare", "/compare")
    hands.rest()
    browser.go(f"{origin}/promise")
    hands.push("#run", "/look")
    hands.rest()
    names = browser.run(
        "[...document.querySelectorAll('fieldset.door input[value=hold]')].map((one) => one.name)"
    )
    for name in names:
        hands.tick(f"input[name='{name}']")
    if names:
        hands.push("#doors button", "/look")
        hands.rest()


if __name__ == "__main__":
    main()
