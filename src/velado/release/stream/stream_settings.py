"""What stream.toml says: the windows, the epoch, the records, and where they come from and go to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from velado.errors import ParameterError, SchemaError
from velado.release.guarantees.k_anonymity import CROWD
from velado.settings import Setting, named, read_toml, settings
from velado.text import say

Aggregate = Literal["last", "first", "mean", "min", "max", "sum", "count", "list"]
Text = Annotated[str, Setting(items=1)]


def _methods() -> Iterable[type[Any]]:
    from velado.release.methods import METHODS  # which import the goal, and that reads settings

    return METHODS


def _sources() -> Iterable[type[Any]]:
    from velado.release.stream.connectors.kinds import SOURCES  # which import these settings

    return SOURCES


def _sinks() -> Iterable[type[Any]]:
    from velado.release.stream.connectors.kinds import SINKS

    return SINKS


@settings(section="window")
class WindowSettings:
    """[window]: when a window ends, and what becomes of records that come too late or too many.

    >>> WindowSettings(by="people", size=200).most
    100000
    """

    by: Annotated[
        Literal["time", "count", "people"], Setting("what a window is full of: seconds, records or people")
    ] = "time"
    size: Annotated[float, Setting("seconds, records or people of one window", gt=0, le=1e9)] = 60.0
    lateness: Annotated[
        float, Setting("seconds a window by time stays open for records that come late", ge=0, le=86_400)
    ] = 0.0
    late: Annotated[
        Literal["drop", "next"], Setting("records whose window has ended: left out, or put into the next one")
    ] = "drop"
    ahead: Annotated[
        float, Setting("seconds a record's time may lie ahead of the clock; beyond it is refused", ge=0)
    ] = 60.0
    clock: Annotated[
        Literal["arrival", "record"],
        Setting("what ends windows by time: the clock of this machine, or the latest time of a record"),
    ] = "arrival"
    most: Annotated[
        int, Setting("records of one window; a burst beyond ends it early", ge=1, le=10_000_000)
    ] = 100_000
    rest: Annotated[
        Literal["keep", "close"],
        Setting("the open window when the stream is stopped: kept for the next start, or ended"),
    ] = "keep"


@settings(section="people")
class PeopleSettings:
    """[people]: the classes people are shown in, and how long newcomers wait for one.

    >>> PeopleSettings(k=3).least
    6
    """

    k: Annotated[int, CROWD, Setting("people in every published group")] = 5
    start: Annotated[
        int | None, Setting("people a class starts with; without it twice k", ge=2, le=1_000_000)
    ] = None
    epoch: Annotated[int, Setting("windows for which classes are held", ge=1, le=10_000_000)] = 480
    wait: Annotated[
        int, Setting("windows a newcomer's records wait for a class before they are left out", ge=0, le=1000)
    ] = 10

    @property
    def least(self) -> int:
        """How many people a class starts with."""
        return 2 * self.k if self.start is None else self.start

    def __post_init__(self) -> None:
        if self.start is not None and self.start < self.k:
            raise ParameterError(
                say("'start' in [people] is {start}, and k is {k}.", start=self.start, k=self.k),
                "A class that starts below k can never be shown.",
                "Ask for a start of at least k; twice k leaves room for people who leave.",
            )


@settings(section="record")
class RecordSettings:
    """[record]: how one record is read.

    >>> RecordSettings(time="at").format
    'json'
    """

    format: Annotated[
        Literal["json", "csv"], Setting("a JSON object on each line, or the lines of a CSV file")
    ] = "json"
    time: Annotated[
        str, Setting("the field with a record's time: Unix seconds, or ISO 8601; without it its arrival")
    ] = ""
    id: Annotated[
        str,
        Setting(
            "the field that tells a person's records apart; without it records equal in every byte are one, if they have a time"
        ),
    ] = ""
    undeclared: Annotated[
        Literal["refuse", "drop"],
        Setting("a record with a field the schema does not name: refused, or read without the field"),
    ] = "refuse"
    most_bytes: Annotated[int, Setting("the longest record", ge=16, le=1 << 24)] = 65_536
    remember: Annotated[
        int, Setting("windows in which a record that comes again is recognized", ge=0, le=1000)
    ] = 10


Granted = Annotated[
    Fraction, Setting("what all windows together may cost the protected unit", gt=0, le=1000, example="1")
]


@settings(section="totals")
class TotalsSettings:
    """[totals]: noisy totals of each window in the place of its rows, paid once from a ledger.

    >>> TotalsSettings(ask="SELECT COUNT(*) FROM records", epsilon="1", protect="window:12", expect=100).reach
    12
    """

    ask: Annotated[
        str, Setting("what is told of each window: SQL over `records`; without it rows are published")
    ] = ""
    protect: Annotated[
        str,
        Setting(
            "whose presence the noise hides: one record (event), a person's records of N windows in a row (window:N), or all of a person's (person)"
        ),
    ] = "person"
    of: Annotated[
        Literal["window", "start"], Setting("what a total is of: its window, or all windows so far")
    ] = "window"
    epsilon: Annotated[Granted | None, Setting("pure differential privacy with this epsilon in all")] = None
    rho: Annotated[Granted | None, Setting("zero-concentrated differential privacy with this rho in all")] = (
        None
    )
    windows: Annotated[
        int,
        Setting("how many windows are told; 0: no end, unless a person is protected", ge=0, le=10_000_000),
    ] = 0
    rows: Annotated[int, Setting("a person's records that count in a window", ge=1, le=1_000_000)] = 1
    expect: Annotated[
        int,
        Setting(
            "records of a usual window, as you guess and not as you counted: noise is compared with it", ge=0
        ),
    ] = 0
    begin: Annotated[
        float,
        Setting(
            "when the first window begins, in Unix seconds, where the times of records end windows", ge=0
        ),
    ] = 0.0
    ledger: Annotated[Text, Setting("the ledger of this stream alone")] = "totals.ledger"
    noise: Annotated[
        Literal["refuse", "accept"],
        Setting("totals that are mostly noise: refused before they are paid, or accepted"),
    ] = "refuse"

    @property
    def reach(self) -> int:
        """In how many windows the protected unit has records at most; 0: in all of them."""
        kind, _, number = self.protect.partition(":")
        return {"event": 1, "person": self.windows}.get(kind, 0) if not number else int(number)

    def __post_init__(self) -> None:
        if not self.ask:
            return
        if self.protect not in ("event", "person") and not re.fullmatch(
            r"window:[1-9][0-9]{0,6}", self.protect
        ):
            raise ParameterError(
                "'protect' in [totals] is none of event, window:N and person.",
                "Noise is drawn for what it is to hide.",
                'Write for example protect = "window:12".',
            )
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError(
                "[totals] names both epsilon and rho, or neither.",
                "How much may be learnt in all is yours to decide, under one measure.",
                "Write for example epsilon = 1.",
            )
        if not self.windows and (self.protect == "person" or self.of == "start"):
            raise ParameterError(
                "[totals] does not say how many windows there will be.",
                "Noise that hides a person in all of them, and a total of all so far, is made for a declared number.",
                "Write for example windows = 480.",
            )
        if not self.expect:
            raise ParameterError(
                "[totals] does not say how many records a usual window has.",
                "Whether the noise is larger than what is asked is told before anything is paid.",
                "Write for example expect = 2000: a guess, not a count of these records.",
            )


@settings(kw_only=True)
class StreamSettings:
    """stream.toml as a whole; paths in it are relative to the file.

    >>> StreamSettings(schema="schema.toml").people.k
    5
    """

    name: Annotated[str, Setting("the stream's public name", items=1)] = "stream"
    schema: Annotated[Text, Setting("the schema's file")]
    state: Annotated[Text, Setting("the private folder of state and journal")] = "private"
    key: Annotated[str, Setting("the owner's key file; without it the key of this user")] = ""
    metrics: Annotated[str, Setting("a file that counts are written to, as Prometheus reads them")] = ""
    metrics_port: Annotated[
        int,
        Setting(
            "the port of this machine, for itself alone, at which Prometheus reads counts; 0: none",
            ge=0,
            le=65_535,
        ),
    ] = 0
    method: Annotated[Any, Setting("how classes are made", parts=_methods, kind="method")] = "mondrian"
    window: WindowSettings = WindowSettings()
    people: PeopleSettings = PeopleSettings()
    record: RecordSettings = RecordSettings()
    readings: Annotated[
        Mapping[str, tuple[Aggregate, ...]],
        Setting(
            "what a person's records of a window become, for each column; without it the last value",
            example='readings = { pulse = ["mean", "max"] }',
        ),
    ] = field(default_factory=dict)
    totals: TotalsSettings = TotalsSettings()
    source: Annotated[
        Any,
        Setting("where records come from", parts=_sources, kind="source", named_by="kind", otherwise="stdin"),
    ] = field(default_factory=lambda: named(_sources(), "stdin", "source")())
    sink: Annotated[
        Any, Setting("where windows go to", parts=_sinks, kind="sink", named_by="kind", otherwise="folder")
    ] = field(default_factory=lambda: named(_sinks(), "folder", "sink")())

    def __post_init__(self) -> None:
        _check_totals(self)
        if self.window.clock == "record" and not self.record.time:
            raise ParameterError(
                "Windows are to end by the times of records, and [record] names no field 'time'.",
                "There would be no clock at all.",
                "Name the field, or leave clock out of [window].",
            )
        if self.source.again and not (self.record.time or self.record.id):
            raise ParameterError(
                say(
                    "Records come over {kind}, and [record] names neither 'time' nor 'id'.",
                    kind=self.source.name,
                ),
                "A broker may deliver a message again, and nothing would tell it from a second, equal reading.",
                "Name the field with a record's time, or the one that tells records apart.",
            )
        self.sink.check(self.source)


def _check_totals(asked: StreamSettings) -> None:
    """Which windows there are, and when they end, must be nothing that a record decides."""
    totals, window = asked.totals, asked.window
    if not totals.ask:
        return
    if window.by != "time" or window.rest != "keep":
        raise ParameterError(
            "Totals are told of windows that are full by records or people, or that end when the stream is stopped.",
            "One record more would move all others into other windows, and no noise hides that.",
            'Set by = "time" in [window], and leave rest out.',
        )
    if window.clock == "record" and not (asked.source.whole and totals.begin and totals.windows):
        raise ParameterError(
            "Windows of totals are to end by the times of records, and the stream has no declared beginning and end.",
            "One record with a late time would end the windows of all others.",
            "For a file that is whole declare begin and windows in [totals]; for a live stream leave clock out of [window].",
        )


def read_stream(path: str | Path) -> StreamSettings:
    """The settings of a stream.toml, or an error that names the place of the mistake.

    >>> read_stream("missing.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'missing.toml'...
    """
    try:
        return read_toml(Path(path), StreamSettings, say("the stream file"))
    except ParameterError as wrong:  # in a file it is the file that must be corrected
        raise SchemaError(wrong.what, wrong.why, wrong.fix) from None
