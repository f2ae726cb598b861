"""Questions take turns on a few threads. One whose client left or whose time is up never begins, so it is never paid.

The threads are daemons: Python does not wait for them at its end, because a thread that draws noise cannot be stopped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from velado.apps.web import failures

Result = TypeVar("Result")


class Turns:
    """At most *threads* jobs run at once and *waiting* more wait, in the order they came."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._most = threads + waiting
        # One lock, two reasons to wait: were they one, each job that ends would wake every idle thread for nothing.
        lock = threading.Lock()
        self._offered, self._freed = threading.Condition(lock), threading.Condition(lock)
        self._queue: deque[tuple[Future[Any], Callable[[], Any], float]] = deque()
        self._held = 0
        self._closed = False
        for number in range(threads):
            threading.Thread(target=self._work, name=f"velado-query-{number}", daemon=True).start()

    def take(self, job: Callable[[], Result], until: float) -> Future[Result]:
        """The job's future; cancelled before its turn, or not begun at *until* (monotonic), the job is never called."""
        future: Future[Result] = Future()
        with self._offered:
            if self._closed or self._held >= self._most:
                raise failures.too_busy()
            self._held += 1
            self._queue.append((future, job, until))
            self._offered.notify()
        future.add_done_callback(self._release)
        return future

    def close(self, until: float) -> bool:
        """Nothing more begins; whether what ran has ended by *until* (monotonic)."""
        with self._offered:
            self._closed = True
            dropped = [future for future, _, _ in self._queue]
            self._offered.notify_all()
        for future in dropped:
            future.cancel()
        with self._freed:
            return self._freed.wait_for(lambda: self._held == 0, max(0.0, until - time.monotonic()))

    def _release(self, future: Future[Any]) -> None:
        """A job that ended, or that was cancelled while it waited, makes room for another."""
        with self._freed:
            self._held -= 1
            if future.cancelled():
                # Its request body is let go at once, not when a thread comes by.
                self._queue = deque(item for item in self._queue if item[0] is not future)
            self._freed.notify_all()

    def _work(self) -> None:
        while True:
            with self._offered:
                self._offered.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                future, job, until = self._queue.popleft()
            if future.set_running_or_notify_cancel():
                _carry_out(future, job, until)
            # What the last job held is not kept until the next one comes.
            del future, job


def _carry_out(future: Future[Any], job: Callable[[], Any], until: float) -> None:
    if time.monotonic() >= until:
        future.set_exception(failures.waited_too_long())
        return
    try:
        result = job()
    except BaseException as error:  # The thread serves others too; whoever asked gets the error.
        future.set_exception(error)
    else:
        future.set_result(result)
