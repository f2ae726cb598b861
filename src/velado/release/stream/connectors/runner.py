"""The loop: read, advance, write the state with what goes out, publish, confirm. In this order a kill anywhere does no harm.

Windows stand in the state's file before they are published, with the position up to which the source was read. Killed before that:
the records are read again and nobody has seen a window of them. Killed after it: the same bytes are published again, under the same number.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from velado.data.io import read_schema
from velado.data.keys import Key, owner_key
from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.release.stream.connectors.connector import Place, Sink, Source
from velado.release.stream.connectors.metrics import StreamMetrics
from velado.release.stream.connectors.state_file import Parcel, StateFile
from velado.release.stream.manifest import digest
from velado.release.stream.stream_settings import StreamSettings, read_stream
from velado.release.stream.windows import Stream, StreamState

_POLL = 0.2
"""Seconds that are waited for records: how far beyond its end a window may be noticed."""


@dataclass(frozen=True, repr=False)
class StreamRun:
    """How a run ended: the state, and the windows that it published."""

    state: StreamState
    windows: int


class Shown(Protocol):
    """A window that ended, whatever road it took."""

    @property
    def number(self) -> int:
        """Its number, from 1."""
        ...

    @property
    def table(self) -> bytes | None:
        """Its table, if one may leave."""
        ...

    @property
    def manifest(self) -> bytes:
        """Its manifest."""
        ...

    @property
    def end(self) -> float:
        """When it was full."""
        ...

    def facts(self) -> Mapping[str, object]:
        """What is for the owner alone."""
        ...


Tell = Callable[[Any, float], None]
"""Hears of each window that was published, and how long after it could be: its end by this machine's clock, or the reading of the record that filled it."""
Road = Callable[[Schema, StreamSettings, Key], tuple[Stream, Callable[[], None]]]
"""Makes the stream of a schema, and what is to be called when it ends."""


def run_stream(
    config: str | Path,
    *,
    stop: Callable[[], bool] = lambda: False,
    tell: Tell = lambda window, delay: None,
) -> StreamRun:
    """The stream of *config* until its source ends or *stop* says so; *tell* hears of each window that was published."""
    path = Path(config)
    asked = read_stream(path)
    if asked.totals.ask:
        raise ParameterError(
            "The stream file asks for totals.",
            "They are paid from a ledger, which this function has not.",
            "Use velado.study.stream_totals.run_totals, or the command line.",
        )
    return run_road(path.parent, asked, _rows, stop=stop, tell=tell)


def _rows(schema: Schema, asked: StreamSettings, key: Key) -> tuple[Stream, Callable[[], None]]:
    return Stream(schema, asked, key), lambda: None


def run_road(
    folder: Path, asked: StreamSettings, road: Road, *, stop: Callable[[], bool], tell: Tell
) -> StreamRun:
    """The stream that *road* makes, whose paths are those of *folder*, until its source ends or *stop* says so."""
    schema = read_schema(folder / asked.schema)
    key = owner_key(folder / asked.key if asked.key else None)
    kept = StateFile(folder / asked.state, _begun_with(asked, schema, key))
    try:
        stream, leave = road(schema, asked, key)
        try:
            loaded = kept.load()
            state, position, outbox = (stream.begin(), None, []) if loaded is None else loaded
            place = Place(folder, asked, schema.separator or ",")
            sink: Sink = asked.sink.open(place)
            try:
                sink.deliver(outbox, position)
                source: Source = asked.source.open(place, position)
                try:
                    with closing(_Loop(stream, kept, source, sink, folder)) as loop:
                        return loop.run(state, position, stop, tell)
                finally:
                    source.close()
            finally:
                sink.close()
        finally:
            leave()
    finally:
        kept.close()


def _begun_with(asked: StreamSettings, schema: Schema, key: Key) -> dict[str, str]:
    """What the promise of an epoch rests on, and what the records that wait were read by: digests, by the names of the settings."""
    told = {
        "key": key.fingerprint,
        "schema": schema.to_dict(),
        "name": asked.name,
        "readings": {name: list(one) for name, one in asked.readings.items()},
        "window.by": asked.window.by,
        "window.size": float(asked.window.size),
        "people.k": asked.people.k,
        "people.epoch": asked.people.epoch,
    }
    return {
        name: digest(json.dumps(one, sort_keys=True, default=str).encode())[:16] for name, one in told.items()
    }


class _Loop:
    """One run from its first poll to its last save."""

    def __init__(self, stream: Stream, kept: StateFile, source: Source, sink: Sink, folder: Path) -> None:
        self._stream, self._kept, self._source, self._sink = stream, kept, source, sink
        self._asked, self._folder = stream.asked, folder
        self._windows = 0
        asked = stream.asked
        self._metrics: StreamMetrics | None = None
        if asked.metrics or asked.metrics_port:
            file = folder / asked.metrics if asked.metrics else None
            self._metrics = StreamMetrics(asked.name, file, asked.metrics_port)

    def close(self) -> None:
        """Nobody is served any more."""
        if self._metrics is not None:
            self._metrics.close()

    def run(self, state: StreamState, position: Any, stop: Callable[[], bool], tell: Tell) -> StreamRun:
        """Until the source ends or it is to stop; the last save holds what is then open."""
        if not self._asked.source.whole:  # somebody waits for the first window as for the others
            self._stream.warm()
        if self._stream.pending(state):  # a killed run had cut windows and not told them
            state = self._out([], state, position, tell, time.time())
        while not (stop() or self._source.ended or self._stream.ended(state)):
            arrived = self._source.poll(_POLL)
            position, read_at = arrived.position, time.time()
            batch = self._stream.reader.read(arrived.payloads, arrived.times).and_lost(arrived.lost)
            closed, state = self._stream.advance(state, batch, time.time())
            if closed or self._stream.pending(state):
                state = self._out(closed, state, position, tell, read_at)
        # Of a source that has ended nothing more can come; a stream that is stopped goes on at its next start.
        final = self._source.ended or self._asked.window.rest == "close"
        read_at = time.time()
        closed, state = self._stream.advance(state, self._stream.reader.read([], []), read_at, final)
        state = self._out(closed, state, position, tell, read_at)
        return StreamRun(state, self._windows)

    def _out(
        self, closed: Sequence[Shown], state: StreamState, position: Any, tell: Tell, read_at: float
    ) -> StreamState:
        """The windows are published; the state after it. *read_at* is when the last records were read."""
        if self._stream.pending(state):
            # What noise is drawn for stands on the disk first: a run that is killed now finds the same windows.
            self._kept.save(state, position, [])
            told, state = self._stream.finish(state)
            closed = [*closed, *told]
        parcels = [Parcel(one.number, one.table, one.manifest) for one in closed]
        self._kept.save(state, position, parcels)
        self._sink.deliver(parcels, position)
        self._source.settled(position)
        delay = None
        for window in closed:
            delay = time.time() - self._due(window, read_at)
            self._log({**window.facts(), "delay": delay})
            self._windows += 1
            tell(window, delay)
        if self._metrics is not None:
            self._metrics.told(state, delay)
        return state

    def _due(self, window: Shown, read_at: float) -> float:
        """When the window could leave. Recorded times are of another clock, and a burst or a stop ends a window before its time."""
        ours = self._asked.window
        by_our_clock = ours.by == "time" and ours.clock == "arrival"
        return min(window.end, read_at) if by_our_clock else read_at

    def _log(self, facts: dict[str, object]) -> None:
        handle = os.open(
            self._folder / self._asked.state / "windows.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        with os.fdopen(handle, "ab") as file:
            file.write(json.dumps(facts).encode() + b"\n")
