"""A run that somebody ends: the signal is noted, the round is cut, and what was learned until then is kept.

Python runs a signal's handler in the main thread only, and Flower's simulation would keep that thread waiting until all
rounds are over. So the engine runs in a thread beside it, the main thread only waits, and whatever asks a grid or a
client looks at `Interruption` first.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from velado.federated.records import FederatedFit, FederationStopped

GRACE = 15.0
"""Seconds an engine that was told to stop has, before Ray is ended under it."""


class FederationInterrupted(KeyboardInterrupt):
    """Somebody ended the run with the signal *number*; *fit* keeps the history up to there.

    It is a KeyboardInterrupt, so that a loop over many runs which goes on after a failed one ends as well.
    """

    def __init__(self, number: int, fit: FederatedFit | None = None) -> None:
        super().__init__(f"The run was ended by {signal.Signals(number).name}.")
        self.number = number
        self.fit = fit

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, as shells count."""
        return 128 + self.number


class Cut(FederationStopped):
    """How an interruption leaves the rounds: like any other reason to stop, with the records kept."""


class Interruption:
    """While it is entered, SIGINT and SIGTERM are noted in *number* instead of ending the process.

    Only in the main thread, and only where Python's own handlers are in place: a program with handlers of its own, or
    a process that was started with a signal ignored, keeps them.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number, usual in (
                (signal.SIGINT, signal.default_int_handler),
                (signal.SIGTERM, signal.SIG_DFL),
            ):
                if signal.getsignal(number) is usual:
                    self._before[number] = usual
            self.arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, usual in self._before.items():
            signal.signal(number, usual)

    def arm(self) -> None:
        """The handlers are in place, also after Ray's library has put its own, which abort, over them."""
        for number in self._before:
            signal.signal(number, self._note)

    def ask(self, number: int = signal.SIGINT) -> None:
        """The run ends at its next look."""
        self.number = self.number or number

    def check(self) -> None:
        """Nothing, or Cut once the run was told to end."""
        if self.number is not None:
            raise Cut(
                "The run was ended from outside.",
                "The rounds that were over by then are kept.",
                "Start it again for the rest.",
            )

    def guarded(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """*work*, which looks first whether the run was told to end."""

        def looked(*arguments: Any, **named: Any) -> Any:
            self.check()
            return work(*arguments, **named)

        return looked

    def guard(self, grid: Any) -> Any:
        """*grid*, at which whoever waits for nodes or answers looks as well."""
        for name in ("get_node_ids", "pull_messages"):
            setattr(grid, name, self.guarded(getattr(grid, name)))
        return grid

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.ask(number)


def beside(work: Callable[[], None], stop: Interruption, end: Callable[[], None]) -> None:
    """*work* is done in a thread of its own while this one stays free for signals; its error is raised here.

    Once *stop* was told to, the work has GRACE seconds; then *end* takes away what it waits for.
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # raised again below, in the thread of whoever called
            failed.append(error)

    thread = threading.Thread(target=run, name="velado simulation", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and stop.number is None:
            thread.join(0.2)
            stop.arm()
    except BaseException:
        stop.ask()  # a handler of the program's own raised: the engine must not outlive it
        raise
    finally:
        if thread.is_alive():
            thread.join(GRACE)
        if thread.is_alive():
            end()
            thread.join(GRACE)
    if failed and stop.number is None:
        raise failed[0]
