"""A stream's second road: noisy totals of each window, paid once from a ledger, in the place of rows.

Protected is what [totals] says, over all windows together and against whoever sees all of them:
    event:     one record, with all its repetitions. It is in one window, so every window's noise may use the whole spend.
    window:N:  all records of one person in any N windows in a row (Kellaris et al. 2014): each window uses spend / N, for ever.
    person:    all records of one person in the T declared windows: each uses spend / T.
For that no record may decide which window another one is in, when a window ends, or whether it is told. So windows are those of the clock alone,
empty ones are told like full ones, and a person's records beyond the most of a window are left out.

The order: the records of a window are cut off and stand in the state's file -> exact totals -> noise -> the ledger holds them -> the window
stands in the state's file -> it leaves. Killed anywhere, the next run finds the same cut, or the numbers that were drawn for it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes
from velado.errors import ParameterError, QueryRefused
from velado.query.accuracy import USUAL, accuracy, noise_warning
from velado.query.answer import frame
from velado.query.budget import Budget, Charge, Facts, Measure
from velado.query.engines import engine_for_table
from velado.query.kept_answers import read_draws, write_draws
from velado.query.needs import Tallies
from velado.query.plan import QueryPlan, carry_out, largest, name_of, plan
from velado.query.running.running_plan import Running, RunningPlan, plan_running
from velado.query.running.running_total import RunningTotal
from velado.query.sql import parse
from velado.query.store import ChainedLedger, UnitOfAccount, create_ledger, ledger_exists, open_soon
from velado.query.unit import Unit
from velado.release.stream.connectors.runner import StreamRun, Tell, run_road
from velado.release.stream.manifest import digest, manifest_bytes
from velado.release.stream.records import KEY, Batch
from velado.release.stream.stream_settings import StreamSettings, TotalsSettings
from velado.release.stream.window_release import SINCE
from velado.release.stream.windows import INDEX, Stream, StreamState
from velado.text import Sentence, say

TABLE = "records"
"""What the records of a window are called in SQL."""
_ANALYST = "stream"
_MOST_AT_ONCE = 10_000
"""Windows that may have ended since the last look; a clock that jumped over more is an error."""


@dataclass(frozen=True, eq=False)
class TotalsPlan:
    """What is drawn for each window, and what all windows cost; nothing was looked at or paid.

    *each* is the plan of one window. *running* is that of totals since the start, which takes its place.
    """

    asked: TotalsSettings
    schema: Schema
    unit: Unit
    measure: Measure
    spend: Fraction
    each: QueryPlan
    running: RunningPlan | None

    @property
    def charge(self) -> Fraction:
        """What all windows cost the protected unit together; booked once, before the first record is read."""
        return self.each.charge * self.asked.reach if self.running is None else self.running.charge

    def mostly_noise(self, confidence: Fraction = USUAL) -> list[str]:
        """The values whose interval is wider than all that they are expected to be."""
        if self.running is not None:
            aggregate, part = self.running.outline.query.aggregates[0], self.running.outline.parts[0]
            rows = Fraction(self.asked.expect * self.asked.windows)
            facts = accuracy(self.running.widest(confidence), largest(aggregate, part.grid, rows))
            return [name_of(aggregate)] if facts["mostly_noise"] else []
        return [one["name"] for one in self.each.to_dict(confidence)["values"] if one["mostly_noise"]]

    def protects(self) -> Sentence:
        """Whose presence the noise hides."""
        match self.asked.protect.partition(":")[0]:
            case "event":
                return say("one record")
            case "person":
                return say("all records of one person in all {windows:,} windows", windows=self.asked.windows)
            case _:
                return say(
                    "all records of one person in any {windows:,} windows in a row", windows=self.asked.reach
                )

    def sentences(self, confidence: Fraction = USUAL) -> list[Sentence]:
        """How exact each window's numbers are, who is protected and what it costs: what is said before anything is paid."""
        name = say("epsilon") if self.measure == "epsilon" else say("rho")
        out = [
            say(
                "Protected: {unit}, with {measure} {cost:.6g} for all windows together, paid once.",
                unit=self.protects(),
                measure=name,
                cost=float(self.charge),
            )
        ]
        if self.running is None:
            return [*out, *self.each.sentences(confidence)]
        out.append(
            say(
                "{name}: a total of all windows so far is off by up to ±{half:,.6g} (95%).",
                name=name_of(self.running.outline.query.aggregates[0]),
                half=self.running.widest(confidence),
            )
        )
        out.append(
            say("Windows are told one by one and added up.")
            if self.running.flat
            else say(
                "The totals are kept by a tree of blocks, whose error grows with the logarithm of the windows."
            )
        )
        warning = noise_warning(self.mostly_noise(confidence))
        return out if warning is None else [*out, warning]

    def promise(self) -> Facts:
        """The promise as each window's manifest has it."""
        return {
            "type": "guaranteed",
            "definition": "epsilon-differential privacy" if self.measure == "epsilon" else "rho-zCDP",
            self.measure: str(self.charge),
            "covers": "all windows together",
            "protects": self.asked.protect,
            "rows_of_a_person_in_a_window": self.asked.rows if self.unit.column else None,
        }

    def known_by(self) -> str:
        """All that decides what is drawn: a stream whose totals are declared otherwise is another one."""
        form = {
            "query": self.each.query.canonical(),
            "unit": [self.unit.column, self.unit.rows],
            "protect": self.asked.protect,
            "of": self.asked.of,
            "windows": self.asked.windows,
            "spend": [self.measure, str(self.spend)],
        }
        return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


def plan_totals(schema: Schema, asked: TotalsSettings) -> TotalsPlan:
    """What the totals of every window would cost and how exact they would be.

    >>> from velado.data.schema import Column
    >>> wards = Schema({"who": Column("who", "identifier", person=True)})
    >>> asked = TotalsSettings(ask="SELECT COUNT(*) FROM records", protect="window:10", epsilon="1", expect=1000)
    >>> made = plan_totals(wards, asked)
    >>> round(float(made.charge), 9), round(made.each.draws[0].scale, 6), made.mostly_noise()
    (1.0, 10.0, [])
    """
    person = schema.person
    assert person is not None  # whoever reads records has asked for it
    declared = replace(schema, dataset=replace(schema.dataset, rows=asked.expect))
    unit = Unit() if asked.protect == "event" else Unit(person.name, asked.rows)
    measure: Measure = "epsilon" if asked.epsilon is not None else "rho"
    spend = asked.epsilon if asked.epsilon is not None else asked.rho
    assert spend is not None
    query = parse(asked.ask, declared, TABLE)
    each = plan(query, declared, unit, measure, spend / asked.reach)
    if not each.draws:
        raise QueryRefused(
            "Nothing in the question is counted from records.",
            "Every window would say the same.",
            "Ask for a count, a sum, an average or a quantile.",
        )
    running = None
    if asked.of == "start":
        shape = Running(asked.windows, min(asked.reach, asked.windows))
        running = plan_running(query, declared, unit, measure, spend, shape)
    return TotalsPlan(asked, declared, unit, measure, spend, each, running)


def exact_totals(made: TotalsPlan, records: pl.DataFrame) -> Tallies:
    """The exact numbers of a window's records, as private as they are."""
    with closing(engine_for_table(_table(made, records), made.unit)) as engine:
        return engine.tally(made.each.query.where, made.each.keys, made.each.needs)


def _table(made: TotalsPlan, records: pl.DataFrame) -> Table:
    known = [name for name in made.schema.columns if name in records.columns]
    schema = made.schema.with_columns([made.schema.columns[name] for name in known])
    # A window without a record is told like any other; as a file such a table would be a mistake.
    return (
        Table.of(records.select(known), schema, source=TABLE)
        if records.height
        else Table(records.select(known), schema, source=TABLE)
    )


class TotalsAccount:
    """The numbers of each window, drawn once, in a ledger that holds the whole charge before the first is drawn.

    >>> from velado.data.schema import Column
    >>> from velado.query.store import memory_ledger
    >>> wards = Schema({"who": Column("who", "identifier", person=True)})
    >>> made = plan_totals(wards, TotalsSettings(ask="SELECT COUNT(*) FROM records", protect="event", epsilon="50", expect=9))
    >>> account = TotalsAccount(made, memory_ledger("ward", Budget.epsilon(50)))
    >>> first = account.tell(1, pl.DataFrame({"who": ["a", "b"]}))
    >>> first["count"][0], account.tell(1, pl.DataFrame({"who": ["other"]})).equals(first)
    (2, True)
    """

    def __init__(self, made: TotalsPlan, ledger: ChainedLedger) -> None:
        self.plan, self._ledger = made, ledger
        self._series = made.known_by()
        self._running = None
        question = "totals of a stream"
        known = ledger.stored(question)
        if known is not None and known[0] != self._series:
            raise ParameterError(
                "The ledger of [totals] is that of totals that were declared otherwise.",
                "Who is protected and how much was paid stand in it; numbers of another kind have no sum with them.",
                "Put [totals] back as it was, or name another ledger: what it promises stands apart.",
            )
        UnitOfAccount(ledger, made.unit, _ANALYST).hold()
        if known is None:
            # A total since the start books itself; here it is only noted whose ledger this is.
            cost = made.charge if made.running is None else Fraction(0)
            text = json.dumps(
                {"query": json.loads(made.each.query.canonical()), "protect": made.asked.protect}
            )
            held = ledger.reserve(Charge(_ANALYST, question, text, cost))
            ledger.record(held, question, self._series)
        if made.running is not None:
            shape = made.running.running
            self._running = RunningTotal(
                made.asked.ask, made.schema, ledger, releases=shape.releases, deliveries=shape.deliveries,
                spend=made.spend, unit=made.unit, name=TABLE, analyst=_ANALYST, bounded=True,
            )  # fmt: skip

    def tell(self, number: int, records: pl.DataFrame) -> pl.DataFrame:
        """The noisy numbers of that window: of *records*, or those that were drawn for it before."""
        if self._running is not None:
            return self._running.add(_table(self.plan, records), known_as=f"window {number}").frame
        question = hashlib.sha256(f"window:{self._series}:{number}".encode()).hexdigest()
        found = self._ledger.stored(question)
        if found is not None:
            return frame(self.plan.each, read_draws(found[0], self.plan.each), USUAL)
        text = json.dumps({"window": number})
        held = self._ledger.reserve(Charge(_ANALYST, question, text, Fraction(0)))
        drawn = carry_out(self.plan.each, exact_totals(self.plan, records))
        self._ledger.record(held, question, write_draws(drawn, _ANALYST))
        return frame(self.plan.each, drawn, USUAL)


@dataclass(frozen=True, repr=False)
class ToldWindow:
    """One window's noisy numbers and manifest; *records*, how many it had, is for the owner alone."""

    number: int
    table: bytes
    manifest: bytes
    begin: float
    end: float
    records: int

    def facts(self) -> Mapping[str, object]:
        """For the owner's log."""
        return {"window": self.number, "begin": self.begin, "end": self.end, "records": self.records}


class TotalsStream(Stream):
    """Cuts windows by the clock alone, and lets an account tell them.

    Of the state, *waiting* holds the records of windows that were cut and not yet told, with their index in SINCE, *through* is the last
    window that was cut, *window* the number of the last one told, and the epoch's number the index of the first window.
    """

    def __init__(self, schema: Schema, asked: StreamSettings, key: Key, account: TotalsAccount) -> None:
        super().__init__(schema, asked, key)
        self._account = account

    def advance(
        self, state: StreamState, batch: Batch, clock: float, final: bool = False
    ) -> tuple[list[Any], StreamState]:
        """The state with the records of *batch*; those of windows that have ended are cut off, to be told by `finish`."""
        size, totals = self.asked.window.size, self.asked.totals
        if state.epoch.number < 0:
            first = math.floor((totals.begin or clock) / size)
            state = replace(state, epoch=replace(state.epoch, number=first), through=first - 1)
        state = self._taken(state, batch, clock)
        last = self._ended(state, clock, final)
        if last <= state.through:
            return [], state
        if last - state.through > _MOST_AT_ONCE and self.asked.window.clock == "arrival":
            raise ParameterError(
                "The clock of this machine is further than 10,000 windows from the last one.",
                "Each of them would be told, empty as it is.",
                "Set the clock right. If the stream has rested so long, begin another one.",
            )
        return [], self._cut(state, last)

    def _ended(self, state: StreamState, clock: float, final: bool) -> int:
        """The index of the last window that has ended, by the clock and by what was declared."""
        window, totals = self.asked.window, self.asked.totals
        if window.clock == "record":
            ended = state.through if not final else state.epoch.number + totals.windows - 1
        elif final:
            ended = max(math.floor(clock / window.size), state.through)
        else:
            ended = math.floor((clock - window.lateness) / window.size) - 1
        return min(ended, state.epoch.number + totals.windows - 1) if totals.windows else ended

    def _cut(self, state: StreamState, last: int) -> StreamState:
        opened = pl.concat(state.open) if state.open else None
        left: tuple[pl.DataFrame, ...] = ()
        waiting, keys = state.waiting, state.keys
        if opened is not None:
            ripe = opened.get_column(INDEX) <= last
            mine, rest = opened.filter(ripe), opened.filter(~ripe)
            waiting = pl.concat([waiting, mine.rename({INDEX: SINCE}).select(waiting.columns)])
            left = (rest,) if rest.height else ()
            keys = (np.sort(mine.get_column(KEY).to_numpy()), *keys)
        # What comes again after its window has ended is late, where its time says so.
        keys = () if self._late_out else keys[: self.asked.record.remember]
        return replace(state, open=left, waiting=waiting, through=last, keys=keys)

    def warm(self) -> int:
        """No window: what tells totals is compiled with the ledger's first charge."""
        return 0

    def pending(self, state: StreamState) -> bool:
        """Whether windows were cut that are not told yet."""
        return state.epoch.number >= 0 and state.epoch.number + state.window <= state.through

    def ended(self, state: StreamState) -> bool:
        """Whether all declared windows were told."""
        return bool(self.asked.totals.windows) and state.window >= self.asked.totals.windows

    def finish(self, state: StreamState) -> tuple[list[ToldWindow], StreamState]:
        """The windows that were cut, told; the state that has them stands on the disk."""
        told = []
        while self.pending(state):
            window, state = self._told(state)
            told.append(window)
        return told, state

    def _told(self, state: StreamState) -> tuple[ToldWindow, StreamState]:
        number, index = state.window + 1, state.epoch.number + state.window
        mine = state.waiting.get_column(SINCE) == index
        records = state.waiting.filter(mine)
        size = self.asked.window.size
        table = csv_bytes(self._account.tell(number, records), formulas="escape")
        facts = {
            "stream": self.asked.name,
            "window": number,
            "begin": index * size,
            "seconds": size,
            "promise": self._account.plan.promise(),
            "of": self.asked.totals.of,
            "method": "noise",
        }
        manifest = manifest_bytes(facts, table, state.head)
        after = replace(
            state,
            window=number,
            head=digest(manifest),
            waiting=state.waiting.filter(~mine),
            counts=state.counts.plus(published=records.height, windows=1, windows_published=1),
        )
        return ToldWindow(number, table, manifest, index * size, (index + 1) * size, records.height), after


def run_totals(
    config: str | Path,
    asked: StreamSettings,
    *,
    stop: Any = lambda: False,
    tell: Tell = lambda window, delay: None,
    say_first: Any = lambda plan: None,
) -> StreamRun:
    """The stream of totals of *config* until its source ends, all declared windows are told, or *stop* says so.

    *say_first* hears what it will cost and how exact it will be, before a ledger is made or a record read.
    """
    folder = Path(config).parent

    def road(schema: Schema, settings: StreamSettings, key: Key) -> tuple[TotalsStream, Any]:
        made = plan_totals(schema, settings.totals)
        say_first(made)
        refuse_noise(made)
        place = folder / settings.totals.ledger
        budget = Budget(made.measure, made.spend)
        ledger = open_soon(place) if ledger_exists(place) else create_ledger(place, settings.name, budget)
        try:
            return TotalsStream(schema, settings, key, TotalsAccount(made, ledger)), ledger.close
        except BaseException:
            ledger.close()
            raise

    return run_road(folder, asked, road, stop=stop, tell=tell)


def refuse_noise(made: TotalsPlan) -> None:
    """Nothing, or an error where a total would be mostly noise and nobody has accepted that."""
    noisy = made.mostly_noise()
    if noisy and made.asked.noise == "refuse":
        raise QueryRefused(
            say(
                "Mostly noise: {names}. The interval would be wider than all that the value can be.",
                names=", ".join(noisy),
            ),
            "It would be paid for, and say nothing.",
            'Protect fewer windows, use larger ones or a larger spend; or set noise = "accept" in [totals].',
        )
