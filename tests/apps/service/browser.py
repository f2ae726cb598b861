"""A headless Chromium driven over its debugging pipe: NUL-separated JSON on two file descriptors, no package needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--window-size=1280,1000",
)

# Chromium reads commands on descriptor 3 and writes replies on 4.
HAND_OVER = """
import os, sys
commands, replies = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))
os.dup2(commands, 3)
os.dup2(replies, 4)
os.set_inheritable(3, True)  # dup2 of a descriptor onto itself leaves it closed to the browser
os.set_inheritable(4, True)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """Where the browser is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab. Every wait is bounded."""

    def __init__(self, folder: Path, seconds: float = 40.0) -> None:
        self._seconds = seconds
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        browser = [chromium() or "chromium", *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", HAND_OVER, str(to_read), str(to_write), *browser],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = next(one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{part}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self._seconds
        while True:
            reply = self._next(end)
            if reply.get("id") == self._number:
                assert "error" not in reply, reply["error"]
                result: dict[str, Any] = reply["result"]
                return result
            self.events.append(reply)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            assert left > 0, "The browser did not answer in time."
            if select.select([self._read], [], [], left)[0]:
                part = os.read(self._read, 1 << 16)
                assert part, "The browser ended."
                self._rest += part
        line, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def go(self, address: str) -> None:
        """The page at *address* is loaded."""
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, script: str) -> None:
        """Wait for an expression to be true."""
        end = time.monotonic() + self._seconds
        while not self.run(script):
            assert time.monotonic() < end, f"This did not become true: {script}\n{self.text('body')[:2000]}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """What a person reads in an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def type(self, text: str) -> None:
        """Text goes to whatever has the focus."""
        self.send("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        """One key, down and up."""
        code = {"Tab": 9, "Enter": 13, " ": 32, "Delete": 46, "F2": 113, "m": 77}
        code |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        told = {
            "key": key,
            "code": key if key != " " else "Space",
            "windowsVirtualKeyCode": code[key],
            "modifiers": modifiers,
        }
        text = {"Enter": "\r", " ": " ", "m": "m"}.get(key)
        self.send("Input.dispatchKeyEvent", type="keyDown", **told, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.send(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Errors and policy violations the page caused."""
        self.run("1")
        return [
            json.dumps(event["params"])[:500]
            for event in self.events
            if event.get("method") == "Runtime.exceptionThrown"
            or (event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
        ]

    def close(self) -> None:
        """The browser has ended."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
