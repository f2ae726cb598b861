"""A person without a mouse: everything is reached by Tab and done by a key; each thing done is counted."""

import json
from pathlib import Path

from ..service.browser import Browser

MOST_TABS = 400
WIDTHS = {1280: 900, 390: 844}


class Hands:
    """Keys on a desk in a real browser."""

    def __init__(self, browser: Browser, width: int) -> None:
        self.browser = browser
        self.actions = 0
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=WIDTHS[width],
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def reach(self, selector: str) -> None:
        """The focus is on the first element that fits, brought there by Tab."""
        here = f"document.activeElement?.matches({json.dumps(selector)})"
        for _ in range(MOST_TABS):
            if self.browser.run(here):
                return
            self.browser.press("Tab")
        raise AssertionError(f"Not reached by Tab: {selector}")

    def push(self, selector: str, shows: str) -> None:
        """A button or link is pressed; then the page at *shows* is there."""
        self.reach(selector)
        self.browser.run("window.before = true")
        self.browser.press("Enter")
        self.actions += 1
        self.at(shows)

    def at(self, path: str) -> None:
        self.browser.until(
            f"document.readyState === 'complete' && location.pathname === {json.dumps(path)} && !window.before"
        )

    def tick(self, selector: str) -> None:
        self.reach(selector)
        self.browser.press(" ")
        self.actions += 1

    def write(self, selector: str, text: str) -> None:
        self.reach(selector)
        self.browser.run("document.activeElement.select?.()")
        self.browser.type(text)
        self.actions += 1

    def choose(self, selector: str, steps: int) -> None:
        """An option of a list, so many arrows down."""
        self.reach(selector)
        for _ in range(steps):
            self.browser.press("ArrowDown")
        self.actions += 1

    def rest(self) -> None:
        """The work of a job has ended, and the page shows it."""
        self.browser.until("document.readyState === 'complete' && !document.querySelector('[data-job]')")

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        # Not innerWidth: on a phone the window is zoomed out until all of a page that is too wide fits.
        return int(
            self.browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def hosts(self) -> set[str]:
        """Every host that was asked for anything."""
        self.browser.run("1")
        asked = [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return {url.split("/")[2] for url in asked if url.startswith(("http", "ws"))}


def axe_file() -> Path | None:
    """axe-core, where `make axe` put it."""
    place = Path(__file__).resolve().parents[3] / ".axe" / "node_modules" / "axe-core" / "axe.min.js"
    return place if place.exists() else None


def serious(browser: Browser) -> list[str]:
    """The serious and critical findings of axe-core on the page; none where it is not installed."""
    file = axe_file()
    if file is None:
        return []
    # Evaluated over the debugging pipe, which the page's policy does not reach.
    browser.run(file.read_text("utf-8") + "; 1")
    found = browser.run(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations"
        ".filter((v) => ['serious', 'critical'].includes(v.impact))"
        ".map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ')).slice(0, 4).join(', ')))"
    )
    return list(found)
