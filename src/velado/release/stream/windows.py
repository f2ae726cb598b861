"""advance(): (state, records, clock) -> (windows, state). No file, no clock of its own: a crash is a state read again.

What becomes of records that are late, doubled, too many or too few is declared in [window] and [record], and every record that arrives
ends in exactly one count of `Counts`: the sum is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.keys import Key
from velado.data.schema import Column, Schema
from velado.release.stream.manifest import FIRST, digest, manifest_bytes
from velado.release.stream.records import AT, KEY, Batch, RecordReader, new_records
from velado.release.stream.stream_settings import PeopleSettings, StreamSettings, WindowSettings
from velado.release.stream.units import PERSON, with_people
from velado.release.stream.window_release import SINCE, Epoch, Outcome, WindowPublisher, table_bytes

_WARM = 40
INDEX = "_index"
"""Which window by time a record belongs to: whole sizes since 1970."""


@dataclass(frozen=True)
class Counts:
    """Where every record that arrived went, and windows; the *open* and the *waiting* ones are in the state.

    >>> Counts(lines=3, published=2, refused={"late": 1}).settled
    3
    """

    lines: int = 0
    refused: Mapping[str, int] | None = None
    published: int = 0
    given_up: int = 0
    expired: int = 0
    withheld: int = 0
    windows: int = 0
    windows_published: int = 0
    windows_withheld: int = 0
    windows_few: int = 0
    bursts: int = 0
    people_shown: int = 0
    people_given_up: int = 0

    @property
    def settled(self) -> int:
        """The records whose end is known."""
        return (
            sum((self.refused or {}).values()) + self.published + self.given_up + self.expired + self.withheld
        )

    def plus(self, **more: int) -> Counts:
        """The same with some counts raised."""
        return replace(self, **{name: getattr(self, name) + by for name, by in more.items()})

    def refusing(self, reasons: Mapping[str, int]) -> Counts:
        """The same with records refused for *reasons*."""
        both = dict(self.refused or {})
        for reason, count in reasons.items():
            if count:
                both[reason] = both.get(reason, 0) + count
        return replace(self, refused=both)


@dataclass(frozen=True, repr=False)
class StreamState:
    """All that a stream remembers between two calls.

    *window* is the number of the last window, *head* the digest of its manifest. *open* are the records of windows that have not
    ended, with PERSON and INDEX; *waiting* those of newcomers, with PERSON and SINCE. *through* is the last window by time that has
    ended; *latest* the latest time of a record; *keys* those of the records of the last windows.
    """

    window: int
    head: str
    epoch: Epoch
    open: tuple[pl.DataFrame, ...]
    waiting: pl.DataFrame
    through: int
    latest: float
    keys: tuple[npt.NDArray[np.uint64], ...]
    counts: Counts

    @property
    def open_records(self) -> int:
        """How many records are in windows that have not ended."""
        return sum(part.height for part in self.open)


@dataclass(frozen=True, repr=False)
class ClosedWindow:
    """One window that ended: the bytes of its table, if one may leave, its manifest, and what is for the owner alone.

    *end* is when the window was full, by the records' clock; *loss* the mean normalized certainty penalty.
    """

    number: int
    table: bytes | None
    manifest: bytes
    outcome: Outcome
    begin: float
    end: float
    loss: float | None
    burst: bool

    def facts(self) -> dict[str, object]:
        """For the owner's log: counts, loss, and why nothing was published; no cell."""
        made = self.outcome
        return {
            "window": self.number,
            "begin": self.begin,
            "end": self.end,
            "epoch": made.epoch.number,
            "people": made.people_shown,
            "smallest_group": None if made.release is None else int(made.release.verdicts[0].achieved),
            "records": made.published,
            "loss": self.loss,
            "people_waiting": made.people_waiting,
            "people_given_up": made.people_given_up,
            "people_expired": made.people_expired,
            "records_expired": made.expired,
            "records_withheld": made.withheld,
            "burst": self.burst,
            "below_k_across_epochs": made.below_across,
            "refusal": list(made.refusal),
        }


class Stream:
    """One stream as its settings say; `advance` is its only verb, and it keeps no state.

    >>> from velado.testing.examples import stream_of_ages
    >>> stream, lines = stream_of_ages(people=20, windows=2)
    >>> closed, state = stream.advance(stream.begin(), stream.reader.read(lines, [0.0] * len(lines)), 0.0)
    >>> [window.number for window in closed], state.counts.published, state.open_records
    ([1, 2], 40, 0)
    """

    def __init__(self, schema: Schema, asked: StreamSettings, key: Key) -> None:
        self.asked = asked
        self.reader = RecordReader(schema, asked)
        self.publisher = WindowPublisher(schema, asked, key)
        self._schema, self._key = schema, key
        self._late_out = asked.window.by == "time" and bool(asked.record.time) and asked.window.late == "drop"
        self._tells_apart = bool(asked.record.time or asked.record.id)

    def begin(self) -> StreamState:
        """The state before the first record."""
        waiting = self._placed(self.reader.empty()).drop(INDEX).with_columns(pl.lit(0, pl.Int64).alias(SINCE))
        return StreamState(
            window=0,
            head=FIRST,
            epoch=Epoch.first(),
            open=(),
            waiting=waiting.clear(),
            through=-1,
            latest=-math.inf,
            keys=(),
            counts=Counts(),
        )

    def advance(
        self, state: StreamState, batch: Batch, clock: float, final: bool = False
    ) -> tuple[list[ClosedWindow], StreamState]:
        """The windows that end with *batch* at the time *clock*, and the state after it; *final* ends the open ones too."""
        state = self._taken(state, batch, clock)
        now = state.latest if self.asked.window.clock == "record" else clock
        closed: list[ClosedWindow] = []
        while True:
            cut = self._due(state, now, final)
            if cut is None:
                return closed, state
            window, state = self._close(state, *cut)
            closed.append(window)

    def warm(self) -> int:
        """How many windows of made-up people were made, which nobody sees: what a first window loads and compiles is there then.

        >>> from velado.testing.examples import stream_of_ages
        >>> stream_of_ages(people=2, windows=1)[0].warm()
        2
        """
        schema = Schema(
            {
                "who": Column("who", "identifier", person=True),
                "number": Column("number", "quasi", "numeric", bounds=(0, 100)),
                "text": Column("text", "quasi"),
                "reading": Column("reading", "sensitive", "numeric"),
            }
        )
        asked = StreamSettings(
            schema="-",
            method=self.asked.method,
            window=WindowSettings(by="count", size=_WARM),
            people=PeopleSettings(k=2),
        )
        stream = Stream(schema, asked, self._key)
        told = [
            b'{"who": "p%d", "number": %d, "text": "%s", "reading": %d}'
            % (one, 7 * one % 90, (b"A", b"B")[one % 2], one % 9)
            for _ in range(2)
            for one in range(_WARM)
        ]
        closed, _ = stream.advance(stream.begin(), stream.reader.read(told, [0.0] * len(told)), 0.0)
        return sum(one.table is not None for one in closed)

    def pending(self, state: StreamState) -> bool:
        """Whether windows were cut off that `finish` has still to tell: never, where `advance` makes their tables itself."""
        return False

    def ended(self, state: StreamState) -> bool:
        """Whether there will be no further window, whatever comes."""
        return False

    def finish(self, state: StreamState) -> tuple[list[Any], StreamState]:
        """The windows that are pending, and the state after them."""
        return [], state

    def _taken(self, state: StreamState, batch: Batch, clock: float) -> StreamState:
        """The state with the new records of *batch* in their windows; the others are counted."""
        window = self.asked.window
        frame, reasons = batch.frame, dict(batch.refused)
        if frame.height and self._tells_apart:
            known = [np.sort(part.get_column(KEY).to_numpy()) for part in (*state.open, state.waiting)]
            fresh = new_records(frame.get_column(KEY).to_numpy(), [*known, *state.keys])
            reasons["duplicate"] = int((~fresh).sum())
            frame = frame.filter(pl.Series(fresh))
        if frame.height and window.clock == "arrival":
            ahead = frame.get_column(AT) > clock + window.ahead
            reasons["ahead"] = int(ahead.sum())
            frame = frame.filter(~ahead)
        frame = self._placed(frame)
        if window.by == "time" and frame.height:
            late = frame.get_column(INDEX) <= state.through
            if window.late == "drop":
                reasons["late"] = int(late.sum())
                frame = frame.filter(~late)
            else:
                frame = frame.with_columns(pl.col(INDEX).clip(lower_bound=state.through + 1))
        newest = frame.get_column(AT).to_numpy().max() if frame.height else -math.inf
        latest = max(state.latest, float(newest))
        counts = state.counts.plus(lines=batch.lines).refusing(reasons)
        opened = (*state.open, frame) if frame.height else state.open
        if len(opened) > 64:  # each part is looked at for doubles
            opened = (pl.concat(opened),)
        return replace(state, open=opened, latest=latest, counts=counts)

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        size = self.asked.window.size if self.asked.window.by == "time" else math.inf
        return with_people(frame, self._schema).with_columns(
            (pl.col(AT) / size).floor().cast(pl.Int64).alias(INDEX)
        )

    def _due(
        self, state: StreamState, now: float, final: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame, int, bool] | None:
        """The records of the next window that has ended, those that stay open, its index, and whether it is a burst."""
        if not state.open:
            return None
        window = self.asked.window
        if window.by == "count":
            return self._by_count(state, final)
        if window.by == "people":
            return self._by_people(state, final)
        whole = pl.concat(state.open) if len(state.open) > 1 else state.open[0]
        first = int(whole.get_column(INDEX).min())  # type: ignore[arg-type]
        over = now >= (first + 1) * window.size + window.lateness
        mine = whole.get_column(INDEX) == first
        burst = not over and int(mine.sum()) > window.most
        if not (over or burst or final):
            return None
        return whole.filter(mine), whole.filter(~mine), first, burst

    def _by_count(
        self, state: StreamState, final: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame, int, bool] | None:
        size = int(min(self.asked.window.size, self.asked.window.most))
        if state.open_records < size and not final:
            return None
        whole = pl.concat(state.open)
        return whole[:size], whole[size:], state.window, False

    def _by_people(
        self, state: StreamState, final: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame, int, bool] | None:
        whole = pl.concat(state.open)
        new = whole.get_column(PERSON).is_first_distinct().cum_sum().to_numpy()
        most = self.asked.window.most
        at = int(np.searchsorted(new, self.asked.window.size)) + 1
        if at > whole.height and whole.height <= most and not final:
            return None
        cut = min(at, most, whole.height)
        return whole[:cut], whole[cut:], state.window, cut < min(at, whole.height)

    def _close(
        self, state: StreamState, records: pl.DataFrame, left: pl.DataFrame, index: int, burst: bool
    ) -> tuple[ClosedWindow, StreamState]:
        asked, number = self.asked, state.window + 1
        # After a burst an older window may end: an epoch that came back would make its classes anew, beside those that were shown.
        epoch = state.epoch.at(max(index // asked.people.epoch, state.epoch.number))
        made = self.publisher.publish(records.drop(INDEX), state.waiting, epoch, number)
        table = None if made.release is None else table_bytes(made.release)
        by_time = asked.window.by == "time"
        begin = index * asked.window.size if by_time else float(records.get_column(AT).min())  # type: ignore[arg-type]
        end = (index + 1) * asked.window.size if by_time else float(records.get_column(AT).max())  # type: ignore[arg-type]
        loss = None if made.release is None else float(np.mean(list(made.release.public_losses.values())))
        manifest = manifest_bytes(
            self._facts(number, made, index if by_time else None, loss), table, state.head
        )
        few = made.release is None and not made.refusal
        counts = state.counts.plus(
            published=made.published,
            given_up=made.given_up,
            expired=made.expired,
            withheld=made.withheld,
            windows=1,
            windows_published=int(table is not None),
            windows_withheld=int(bool(made.refusal)),
            windows_few=int(few),
            bursts=int(burst),
            people_shown=made.people_shown,
            people_given_up=made.people_given_up,
        )
        keys = (np.sort(records.get_column(KEY).to_numpy()), *state.keys)
        # What comes again after its window has ended is late; of a window that a burst cut, all must be remembered until it ends.
        keys = (keys if burst else ()) if self._late_out else keys[: asked.record.remember]
        after = replace(
            state,
            window=number,
            head=digest(manifest),
            epoch=made.epoch,
            open=(left,) if left.height else (),
            waiting=made.waiting,
            through=max(state.through, index) if by_time and not burst else state.through,
            keys=keys,
            counts=counts,
        )
        return ClosedWindow(number, table, manifest, made, begin, end, loss, burst), after

    def _facts(self, number: int, made: Outcome, index: int | None, loss: float | None) -> dict[str, object]:
        """What everybody may know of the window."""
        people = self.asked.people
        verdict = None if made.release is None else made.release.verdicts[0]
        when = (
            {}
            if index is None
            else {"begin": index * self.asked.window.size, "seconds": self.asked.window.size}
        )
        return {
            "stream": self.asked.name,
            "window": number,
            "epoch": made.epoch.number,
            **when,
            "promise": {
                "window": "guaranteed",
                "epoch, for readers who know windows somebody is in, and of nobody when they are missing": "guaranteed",
                "across epochs": "not promised",
                "k": people.k,
                "unit": "person",
            },
            "rows": made.people_shown,
            "least_group": None if verdict is None else int(verdict.achieved),
            "ncp": loss,
            "people_held_back": made.people_waiting + made.people_left_out,
            "withheld": bool(made.refusal),
            "method": self.publisher.method.name,
        }


def unsettled(state: StreamState) -> int:
    """The records that are neither published nor counted as anything else: in open windows, or waiting.

    >>> from velado.testing.examples import stream_of_ages
    >>> unsettled(stream_of_ages(people=2, windows=1)[0].begin())
    0
    """
    return state.open_records + state.waiting.height


COUNTED = tuple(one.name for one in fields(Counts) if one.name != "refused")
"""The names of the counts, for metrics."""
