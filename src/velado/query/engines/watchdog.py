"""Time limits for calls that only another thread can stop: one thread watches all of them, however many run at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# An interrupt that falls between two statements is lost, so it is repeated until the call ends.
REPEAT = 0.01


class Watch:
    """One call that must end by *deadline* (monotonic); *late* is true from the first interrupt on."""

    def __init__(self, deadline: float, interrupt: Callable[[], None]) -> None:
        self.deadline = deadline
        self.interrupt = interrupt
        self.late = False


class Watchdog:
    """Interrupts each watched call from its deadline on, and never after it has ended.

    The thread is a daemon that sleeps until the earliest deadline it knows of, so a call that ends in time costs two looks at a
    set and wakes nobody. It ends when it wakes and nothing is watched, and the next call starts it again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: set[Watch] = set()
        self._wakes: float | None = None

    def watch(self, seconds: float, interrupt: Callable[[], None]) -> Watch:
        """From here on *interrupt* is called once *seconds* have passed, and again until `end`."""
        watch = Watch(time.monotonic() + seconds, interrupt)
        with self._changed:
            self._watched.add(watch)
            if self._wakes is None:
                self._wakes = watch.deadline
                threading.Thread(target=self._work, name="velado-watchdog", daemon=True).start()
            elif watch.deadline < self._wakes:
                self._wakes = watch.deadline
                self._changed.notify()
        return watch

    def end(self, watch: Watch) -> None:
        """From here on the call is not interrupted."""
        with self._changed:
            self._watched.discard(watch)

    def _work(self) -> None:
        with self._changed:
            try:
                while self._watched:
                    self._wakes = self._interrupt_late()
                    self._changed.wait(max(0.0, self._wakes - time.monotonic()))
            finally:
                # Whatever ended this thread, the next call must find that there is none.
                self._wakes = None

    def _interrupt_late(self) -> float:
        """When to look again. A function of its own, so that a sleeping thread holds on to no call that has ended."""
        now = time.monotonic()
        for watch in self._watched:
            if watch.deadline <= now:
                watch.late = True
                watch.interrupt()
        return min(max(watch.deadline, now + REPEAT) for watch in self._watched)
