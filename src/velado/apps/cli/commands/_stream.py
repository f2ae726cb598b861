"""`velado stream`: windows of records that arrive without end, each published with its promise."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import show
from velado.apps.cli.app import argument, command, option
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.release.stream.stream_settings import StreamSettings
    from velado.release.stream.windows import ClosedWindow
    from velado.study.stream_totals import TotalsPlan


@command("stream")
def stream(
    config: Annotated[Path, argument("CONFIG", help="The stream file (TOML).")],
    *,
    protect: Annotated[
        str | None,
        option(
            "--protect WHOM",
            help="Of totals: whose presence the noise hides: event, window:N or person, in the place of what [totals] says.",
        ),
    ] = None,
    price: Annotated[
        bool, option("--price", help="Of totals: say how exact they will be and what they cost; pay nothing.")
    ] = False,
) -> None:
    """Publish a stream of records in windows, each with k people in every group, or noisy totals of each window.

    Ends when its input ends, or on Ctrl+C or SIGTERM; started again it goes on where it was.
    """
    # A window is hundreds of small steps. Handing each to a thread and waiting for it costs most of a window's time where other
    # programs want the processor too. Who sets the variable keeps it; Polars is not loaded yet.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    from velado.release.stream.stream_settings import read_stream

    settings = read_stream(config)
    if settings.totals.ask:
        if protect is not None:
            settings = replace(settings, totals=replace(settings.totals, protect=protect))
        _totals(config, settings, price)
        return
    if protect is not None or price:
        raise ParameterError(
            "--protect and --price are about totals, and the stream file asks for none.",
            "Windows of rows are not paid for: they keep k people in every group.",
            'Ask for totals: add [totals] with ask = "SELECT COUNT(*) FROM records".',
        )
    _rows(config)


def _stopping() -> Callable[[], bool]:
    """Whether somebody has asked this process to end, from here on."""
    asked: list[int] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, frame: asked.append(number))
    return lambda: bool(asked)


def _totals(config: Path, settings: StreamSettings, price: bool) -> None:
    """Noisy totals of each window; how exact they are is said before anything is paid."""
    from velado.data.io import read_schema
    from velado.release.stream.records import REASONS, RecordReader
    from velado.release.stream.windows import unsettled
    from velado.study.stream_totals import ToldWindow, plan_totals, run_totals

    said: list[TotalsPlan] = []

    def say_first(made: TotalsPlan) -> None:
        said.append(made)
        if not (show.manner().as_json or show.manner().quiet or price):
            for sentence in made.sentences():
                show.line(sentence)

    def tell(window: ToldWindow, delay: float) -> None:
        if not (show.manner().as_json or show.manner().quiet):
            show.line(say("Window {number} is told.", number=window.number))

    if price:
        schema = read_schema(config.parent / settings.schema)
        RecordReader(schema, settings)  # which refuses a schema without people
        made = plan_totals(schema, settings.totals)
        show.result(_promise(made), made.sentences())
        return
    done = run_totals(config, settings, stop=_stopping(), tell=tell, say_first=say_first)
    counts = done.state.counts
    refused = {reason: count for reason, count in (counts.refused or {}).items() if count}
    document = {
        **_promise(said[0]),
        "windows": done.windows,
        "records": counts.lines,
        "told": counts.published,
        "refused": refused,
        "unsettled": unsettled(done.state),
    }
    lines = [
        say("Windows in this run: {windows:,}.", windows=done.windows),
        say(
            "Records since the stream began: {lines:,}, in windows that were told {told:,}, in open ones {unsettled:,}.",
            lines=counts.lines,
            told=counts.published,
            unsettled=unsettled(done.state),
        ),
        *(
            say("Refused, {reason}: {count:,}.", reason=REASONS[one], count=count)
            for one, count in refused.items()
        ),
        say("These counts are exact, and for you alone: what left is in the windows."),
    ]
    show.result(document, lines)


def _promise(made: TotalsPlan) -> dict[str, object]:
    return {"promise": made.promise(), "plan": made.each.to_dict(), "mostly_noise": made.mostly_noise()}


def _rows(config: Path) -> None:
    """Windows of rows, with k people in every group."""
    from velado.release.stream.connectors.runner import run_stream
    from velado.release.stream.records import REASONS
    from velado.release.stream.windows import unsettled

    stop = _stopping()

    def tell(window: ClosedWindow, delay: float) -> None:
        if show.manner().as_json or show.manner().quiet:
            return
        if window.table is None:
            why = window.outcome.refusal[0] if window.outcome.refusal else say("too few people")
            show.line(say("Window {number}: nothing published ({why}).", number=window.number, why=why))
            return
        show.line(
            say(
                "Window {number}: {people:,} people with an information loss of {loss:.1%}, {out:,} left out, {waiting:,} waiting.",
                number=window.number,
                people=window.outcome.people_shown,
                out=window.outcome.people_left_out,
                loss=window.loss,
                waiting=window.outcome.people_waiting,
            )
        )

    done = run_stream(config, stop=stop, tell=tell)
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
        )
        if counts.windows_published
        else say(
            "Nothing was published so far; why a window was held back stands in windows.jsonl of the private folder."
        ),
    ]
    show.result(document, lines)
