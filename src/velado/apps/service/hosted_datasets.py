"""The data sets of a service, opened: each a session over its rows, its durable ledger and what was asked.

The ledger is made at the first start with the declared budget. Afterwards the ledger is what counts: a budget
in the file that differs from it stops the start, because silently taking either one would surprise somebody.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from velado.apps.service.service_settings import DatasetSettings, ServiceSettings
from velado.data.io import read_schema
from velado.data.schema import Schema
from velado.errors import LedgerError, ParameterError, QueryRefused
from velado.query.budget import short
from velado.query.domains import decimal_text, key_of
from velado.query.engines import engine_for_file, engine_for_postgres
from velado.query.needs import Engine
from velado.query.session import Session
from velado.query.sql import queryable
from velado.query.store import (
    ChainedLedger,
    Entry,
    TableIdentity,
    address_of,
    agree_version,
    claim,
    create_ledger,
    ledger_exists,
    open_ledger,
)
from velado.query.unit import Unit
from velado.text import say

MOST_VALUES_SHOWN = 500
KEPT = 1000
"""Questions remembered for each analyst, the newest."""


@dataclass(frozen=True)
class PublicColumn:
    """What anybody with a token may know of a column: declared by the owner, none of it read off the rows.

    >>> PublicColumn("age", "numeric", bounds=(0, 100)).group_by
    False
    """

    name: str
    kind: str
    group_by: bool = False
    bounds: tuple[float, float] | None = None
    step: float | None = None
    values: tuple[str, ...] | None = None
    number_of_values: int | None = None


@dataclass(frozen=True)
class PublicFacts:
    """What anybody with a token may know of a data set.

    >>> sex = PublicColumn("sex", "text")
    >>> facts = PublicFacts("people", "People", (sex,), {"epsilon": None}, "1/10", "bound", "strict")
    >>> facts.to_dict()["columns"], facts.to_dict()["guarantee"]
    (({'name': 'sex', 'kind': 'text', 'group_by': False},), {'epsilon': None})
    """

    name: str
    title: str
    columns: tuple[PublicColumn, ...]
    guarantee: Mapping[str, object]
    each: str
    extremes: str
    mode: str

    def to_dict(self) -> dict[str, object]:
        """As JSON has it; what a column does not declare is left out."""
        return asdict(
            self, dict_factory=lambda items: {key: value for key, value in items if value is not None}
        )


@dataclass(frozen=True)
class HostedDataset:
    """One data set at work.

    >>> [name for name in HostedDataset.__annotations__ if name != "settings"]
    ['session', 'ledger', 'engine', 'history', 'public']
    """

    settings: DatasetSettings
    session: Session
    ledger: ChainedLedger
    engine: Engine
    history: History
    public: PublicFacts


class HostedDatasets:
    """Every data set of the settings, open until `close`.

    >>> HostedDatasets(ServiceSettings({}, Path("tokens.json"), Path("audit.jsonl"))).datasets
    {}
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.datasets: dict[str, HostedDataset] = {}
        try:
            for name, dataset in settings.datasets.items():
                self.datasets[name] = _open(dataset, settings.limits.query_seconds)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Sessions, engines and ledgers are given back."""
        for hosted in self.datasets.values():
            hosted.session.close()
            hosted.engine.close()
            hosted.ledger.close()
        self.datasets = {}


def _open(dataset: DatasetSettings, seconds: float) -> HostedDataset:
    schema = read_schema(dataset.schema)
    unit = Unit.declared(schema) if dataset.unit is None else dataset.unit
    ledger = _ledger(dataset)
    try:
        if dataset.file is not None:
            engine = engine_for_file(dataset.file, schema, unit)
        else:
            engine = engine_for_postgres(dataset.url or "", dataset.relation or "", schema, unit)
        agree_version(address_of(dataset.ledger), dataset.version, engine.version)
        session = Session(
            engine,
            unit,
            ledger,
            schema=schema,
            name=dataset.name,
            each=dataset.each,
            extremes=dataset.extremes,
            seconds=seconds,
            version=dataset.version,
        )
        return HostedDataset(
            dataset, session, ledger, engine, History(ledger), _public(dataset, schema, session)
        )
    except BaseException:
        ledger.close()
        raise


def _ledger(dataset: DatasetSettings) -> ChainedLedger:
    """The data set's ledger, made if there is none; its caps too. A budget or cap that differs is refused."""
    table = (
        TableIdentity.of_file(Path(dataset.file))
        if dataset.file is not None
        else TableIdentity.of_relation(str(dataset.url), str(dataset.relation))
    )
    claim(table, address_of(dataset.ledger))
    if _is_file(dataset.ledger):
        Path(dataset.ledger).parent.mkdir(parents=True, exist_ok=True)
    made = None
    if not ledger_exists(dataset.ledger, dataset.seal):
        # Of two services that start at once one makes the ledger; the other is refused here and opens it.
        with suppress(LedgerError):
            made = create_ledger(dataset.ledger, dataset.name, dataset.budget, dataset.seal)
    ledger = open_ledger(dataset.ledger, dataset.seal) if made is None else made
    try:
        state = ledger.state()
        _agree(dataset, state.dataset, state.budget.measure == dataset.budget.measure, state.budget.total)
        for analyst, cap in dataset.caps.items():
            _agree_cap(dataset, analyst, cap, state.caps.get(analyst, cap))
        for analyst, cap in dataset.caps.items():
            if analyst not in state.caps:
                ledger.set_cap(analyst, cap)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _agree(dataset: DatasetSettings, name: str, same_measure: bool, total: Fraction) -> None:
    where = f"[datasets.{dataset.name}]"
    if name != dataset.name:
        raise ParameterError(
            say("The ledger of {where} belongs to another data set.", where=where),
            "One table's budget must not pay for another's.",
            "Correct the ledger's place in the service file.",
        )
    if same_measure and total == dataset.budget.total:
        return
    # What an (epsilon, delta) budget is held as has dozens of digits, which nobody can write.
    held = (
        str(total)
        if len(str(total)) <= 12
        else say("{about} (`velado ledger show --json` has it exactly)", about=short(total))
    )
    if same_measure and total < dataset.budget.total:
        fix = say(
            "Raise it with `velado ledger raise`, which writes the reason down, or write {held} again.",
            held=held,
        )
    else:
        fix = say(
            "Write what the ledger has: total {held}. A ledger's budget is never lowered, nor its measure changed.",
            held=held,
        )
    raise ParameterError(
        say("The budget of {where} is not the one its ledger holds.", where=where),
        "The budget is a promise to the people in the table, and the ledger is where it was given.",
        fix,
    )


def _agree_cap(dataset: DatasetSettings, analyst: str, said: Fraction, held: Fraction) -> None:
    if said != held:
        raise ParameterError(
            say(
                "The cap of '{analyst}' in {where} is not the one its ledger holds.",
                analyst=analyst,
                where=f"[datasets.{dataset.name}]",
            ),
            "Caps are entries of the ledger; one that was changed in the file alone would not hold.",
            say("Set it with `velado ledger cap`, or write {held} again.", held=str(held)),
        )


def _is_file(where: str) -> bool:
    return not where.startswith(("postgresql://", "postgres://"))


def _public(dataset: DatasetSettings, schema: Schema, session: Session) -> PublicFacts:
    columns = []
    for name in queryable(schema):
        column = schema.columns[name]
        try:
            domain = key_of(schema, column.name).domain
        except QueryRefused:
            domain = None
        columns.append(
            PublicColumn(
                column.name,
                column.kind,
                group_by=domain is not None,
                bounds=column.bounds,
                step=column.step,
                values=None if domain is None else domain[:MOST_VALUES_SHOWN],
                number_of_values=None if domain is None else len(domain),
            )
        )
    return PublicFacts(
        name=dataset.name,
        title=dataset.title or dataset.name,
        columns=tuple(columns),
        guarantee=session.guarantee().to_dict(),
        each=str(session.each),
        extremes=dataset.extremes,
        mode=session.unit.mode,
    )


@dataclass(frozen=True)
class AskedQuestion:
    """One question an analyst paid for, its canonical query written as SQL again.

    *spend* is what it was allowed to cost, as the ledger wrote it down (None where an older version of velado
    did not), so that asking again names the same spend and is free, after a restart too.

    >>> AskedQuestion(3, "2026-01-01", "9f", "SELECT COUNT(*) FROM t", "1/10", 0.1, "1/10").number
    3
    """

    number: int
    time: str
    question: str
    sql: str
    cost: str
    about: float
    spend: str | None


class History:
    """Each analyst's last questions, read from the ledger's entries as they come. Safe among threads.

    >>> class Empty:
    ...     def entries(self, after=0): return iter(())
    >>> History(Empty()).of("ana", 10)
    []
    """

    def __init__(self, ledger: ChainedLedger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._read = 0
        self._asked: defaultdict[str, deque[Entry]] = defaultdict(lambda: deque(maxlen=KEPT))

    def of(self, analyst: str, most: int) -> list[AskedQuestion]:
        """The analyst's last questions, the newest first."""
        with self._lock:
            for entry in self._ledger.entries(self._read):
                self._read = entry.number
                if entry.kind == "reserve":
                    said = entry.fields()
                    # An entry that is no query (the unit a ledger is about) is nobody's question.
                    if said["text"].startswith('{"table"'):
                        self._asked[said["analyst"]].append(entry)
            found = list(self._asked[analyst])[-most:] if analyst in self._asked else []
        return [_asked(entry) for entry in reversed(found)]


def _asked(entry: Entry) -> AskedQuestion:
    said = entry.fields()
    text, cost = said["text"], said["cost"]
    return AskedQuestion(
        number=entry.number,
        time=said["at"],
        question=said["question"],
        sql=sql_of(text),
        cost=cost,
        about=float(Fraction(cost)),
        spend=json.loads(text).get("spend"),
    )


def sql_of(canonical: str) -> str:
    """A canonical query, as the ledger has it, as SQL that means the same.

    >>> rows = '"aggregates": [["count", null, null, null]]'
    >>> sql_of('{"table": "t", "keys": [], "where": ["null", "age"], %s}' % rows)
    'SELECT COUNT(*) FROM "t" WHERE "age" IS NULL'
    """
    form = json.loads(canonical)
    parts = [_name(key) for key in form["keys"]] + [_aggregate(*item) for item in form["aggregates"]]
    out = f"SELECT {', '.join(parts)} FROM {_name(form['table'])}"
    if form["where"] is not None:
        out += f" WHERE {_predicate(form['where'])}"
    if form["keys"]:
        out += f" GROUP BY {', '.join(_name(key) for key in form['keys'])}"
    return out


def _aggregate(kind: str, column: str | None, at: str | None, bins: int | None) -> str:
    name = "*" if column is None else _name(column)
    if at is not None:
        return f"QUANTILE({name}, {decimal_text(Fraction(at))})"
    return f"{kind.upper()}({name}{'' if bins is None else f', {bins}'})"


def _predicate(form: list[Any]) -> str:
    match form:
        case ["and" | "or" as word, *parts]:
            return "(" + f" {word.upper()} ".join(_predicate(part) for part in parts) + ")"
        case ["not", part]:
            return f"NOT ({_predicate(part)})"
        case ["null", column]:
            return f"{_name(column)} IS NULL"
        case ["like", column, pattern]:
            return f"{_name(column)} LIKE {_quoted(pattern)}"
        case ["in", column, *values]:
            return f"{_name(column)} IN ({', '.join(_value(*value) for value in values)})"
        case [operator, column, value]:
            return f"{_name(column)} {operator} {_value(*value)}"
    raise ValueError("no predicate has this form")


def _value(kind: str, text: str) -> str:
    if kind == "number":
        return decimal_text(Fraction(text))
    return ("DATE " if kind == "date" else "") + _quoted(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
