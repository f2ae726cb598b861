"""The progress bar: on a terminal, after two seconds, on standard error; otherwise nothing at all."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from velado.apps.cli.words import say

PATIENCE = 2.0


class Bar:
    """Progress that is told to it and shown once the work has lasted longer than two seconds.

    A timer starts the display, because a first compilation of kernels tells nothing while it lasts.
    """

    def __init__(self, lang: str, first: str) -> None:
        self._share = 0.0
        self._doing = first
        self._lang = lang
        self._lock = threading.Lock()
        self._shown: Any = None
        self._task: Any = None
        self._over = False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def start(self) -> None:
        """The two seconds begin."""
        self._timer.start()

    def __call__(self, share: float, doing: str = "") -> None:
        with self._lock:
            self._share, self._doing = share, doing or self._doing
            if self._shown is not None:
                self._shown.update(self._task, completed=share, description=self._doing)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            self._shown = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._shown.add_task(self._doing, total=1.0, completed=self._share)
            self._shown.start()

    def stop(self) -> None:
        """The bar is gone, and does not come back."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown.stop()


def nothing(share: float, doing: str = "") -> None:
    """Progress that is not shown."""


@contextmanager
def waiting(lang: str, quiet: bool) -> Iterator[Any]:
    """A callable that shows progress where somebody may be watching, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield nothing
        return
    bar = Bar(lang, say(lang, "compiling" if kernels_are_cold() else "working"))
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()


def kernels_are_cold() -> bool:
    """Whether no compiled kernel is found where Numba keeps them: the first run will compile."""
    import velado

    places = [Path(velado.__file__).parent]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    return not any(next(place.rglob("*.nbi"), None) for place in places)
