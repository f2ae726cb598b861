"""Takes a picture of every screen of the desk in both languages into docs/pictures, from the sample table. Needs Chromium."""

from __future__ import annotations

import base64
import importlib
import os
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "pictures"
SCREENS = ("open", "people", "roles", "hierarchies", "promise", "compare", "look", "sign", "history")
WIDTH, HEIGHT = 1000, 760


def main() -> None:
    """The pictures stand in docs/pictures."""
    # The tests' browser and the way they start a desk; tests are no package.
    tests = types.ModuleType("tests")
    tests.__path__ = [str(ROOT / "tests")]
    sys.modules["tests"] = tests
    browsers = importlib.import_module("tests.apps.service.browser")
    desks = importlib.import_module("tests.apps.desk.desks")
    hands_of = importlib.import_module("tests.apps.desk.hands")
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        os.environ["VELADO_STATE"] = f"{place}/state"
        project = Path(place) / "study"
        desks.copy_sample(project, 400)
        browser = browsers.Browser(Path(place), 180)
        try:
            with desks.running(project) as desk:
                browser.go(desk.address)
                hands = hands_of.Hands(browser, 1280)
                _walk(browser, hands, desk.origin)
                browser.send(
                    "Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False
                )
                for tongue in ("en", "pt"):
                    for screen in SCREENS:
                        path = "hierarchies/6" if screen == "hierarchies" else screen
                        browser.go(f"{desk.origin}/{path}?lang={tongue}")
                        if screen == "promise":
                            browser.until("document.getElementById('preview').dataset.shown")
                        if screen == "hierarchies":
                            browser.until("document.getElementById('tree-editor').dataset.ready")
                        shot = browser.send("Page.captureScreenshot", format="png", optimizeForSpeed=False)
                        (PLACE / f"desk-{screen}-{tongue}.png").write_bytes(base64.b64decode(shot["data"]))
        finally:
            browser.close()


def _walk(browser, hands, origin: str) -> None:  # type: ignore[no-untyped-def]
    hands.push("button[name='file']", "/open")
    hands.rest()
    hands.push("#right", "/people")
    hands.push("button[name='column']", "/roles")
    hands.push("#settle", "/promise")
    browser.go(f"{origin}/compare")
    browser.run("document.querySelectorAll('input[name=method]').forEach((b) => { b.checked = ['mondrian', 'mdav'].includes(b.value); })")
    hands.push("#compare", "/compare")
    hands.rest()
    browser.go(f"{origin}/promise")
    hands.push("#run", "/look")
    hands.rest()
    names = browser.run("[...document.querySelectorAll('fieldset.door input[value=hold]')].map((one) => one.name)")
    for name in names:
        hands.tick(f"input[name='{name}']")
    if names:
        hands.push("#doors button", "/look")
        hands.rest()


if __name__ == "__main__":
    main()
