"""`velado stream`: windows of records that arrive without end, each published with its promise."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import show
from velado.apps.cli.app import argument, command
from velado.text import say

if TYPE_CHECKING:
    from velado.release.stream.windows import ClosedWindow


@command("stream")
def stream(
    config: Annotated[Path, argument("CONFIG", help="The stream file (TOML).")],
) -> None:
    """Publish a stream of records in windows, each with k people in every group.

    Ends when its input ends, or on Ctrl+C or SIGTERM; started again it goes on where it was.
    """
    from velado.release.stream.connectors.runner import run_stream
    from velado.release.stream.records import REASONS
    from velado.release.stream.windows import unsettled

    asked: list[int] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, frame: asked.append(number))

    def tell(window: ClosedWindow, delay: float) -> None:
        if show.manner().as_json or show.manner().quiet:
            return
        if window.table is None:
            why = window.outcome.refusal[0] if window.outcome.refusal else say("too few people")
            show.line(say("Window {number}: nothing published ({why}).", number=window.number, why=why))
            return
        show.line(
            say(
                "Window {number}: {people:,} people, information loss {loss:.1%}, {waiting:,} waiting.",
                number=window.number,
                people=window.outcome.people_shown,
                loss=window.loss,
                waiting=window.outcome.people_waiting,
            )
        )

    done = run_stream(config, stop=lambda: bool(asked), tell=tell)
    counts = done.state.counts
    refused = {reason: count for reason, count in (counts.refused or {}).items() if count}
    document = {
        "windows": done.windows,
        "records": counts.lines,
        "published": counts.published,
        "refused": refused,
        "given_up": counts.given_up,
        "expired": counts.expired,
        "withheld": counts.withheld,
        "unsettled": unsettled(done.state),
    }
    lines = [
        say("Windows in this run: {windows:,}.", windows=done.windows),
        say(
            "Records since the stream began: {lines:,}, published {published:,}, open or waiting {unsettled:,}.",
            lines=counts.lines,
            published=counts.published,
            unsettled=unsettled(done.state),
        ),
        say(
            "Not published: {given_up:,} of people whose class was given up, {expired:,} that waited too long, {withheld:,} in "
            "windows that were withheld.",
            given_up=counts.given_up,
            expired=counts.expired,
            withheld=counts.withheld,
        ),
        *(
            say("Refused, {reason}: {count:,}.", reason=REASONS[one], count=count)
            for one, count in refused.items()
        ),
        say(
            "Each window keeps its promise, and all windows of an epoch together do. Across epochs nothing is promised."
        ),
    ]
    show.result(document, lines)
