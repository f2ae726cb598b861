"""The data sets of a service, opened: each a session over its rows, its durable ledger and what was asked.

The ledger is made at the first start with the declared budget. Afterwards the ledger is what counts: a budget
in the file that differs from it stops the start, because silently taking either one would surprise somebody.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar

from velado.apps.service.question_history import History
from velado.apps.service.service_settings import DatasetSettings, ServiceSettings, added_dataset
from velado.apps.service.tokens import one_writer
from velado.data.io import read_schema
from velado.data.schema import Schema
from velado.data.staging import put_file
from velado.errors import InputError, LedgerError, ParameterError, QueryRefused
from velado.query.budget import Budget, Delta, Spend, short
from velado.query.domains import key_of
from velado.query.engines import engine_for_file, engine_for_postgres
from velado.query.needs import Engine
from velado.query.session import Session
from velado.query.sql import queryable
from velado.query.store import (
    ChainedLedger,
    address_of,
    agree_version,
    claim,
    create_ledger,
    ledger_exists,
    open_soon,
    refuse_lost,
    settle,
)
from velado.query.unit import Unit
from velado.settings import Setting, settings
from velado.text import say

MOST_VALUES_SHOWN = 500


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
    >>> facts = PublicFacts("people", "People", (sex,), {"epsilon": None}, "1/10", "1/10000", "bound", "strict")
    >>> facts.to_dict()["columns"], facts.to_dict()["guarantee"]
    (({'name': 'sex', 'kind': 'text', 'group_by': False},), {'epsilon': None})
    """

    name: str
    title: str
    columns: tuple[PublicColumn, ...]
    guarantee: Mapping[str, object]
    each: str
    least: str
    extremes: str
    mode: str
    rows: int | None = None

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


@settings
class NewDataset:
    """A table that may be asked from now on, with its schema and its budget; the name alone puts one back.

    >>> NewDataset("people", "people.csv", "schema.toml", epsilon=1).entry()["budget"]
    {'epsilon': '1'}
    """

    name: ClassVar[str] = say("the request")

    dataset: Annotated[str, Setting("the name after FROM")]
    file: Annotated[str | None, Setting("the table, a file in the service's folder")] = None
    schema: Annotated[str | None, Setting("its schema, a file in the service's folder")] = None
    epsilon: Annotated[Spend | None, Setting("the budget in all, for everybody, for ever")] = None
    rho: Annotated[Spend | None, Setting("the same as zero-concentrated differential privacy")] = None
    delta: Annotated[Delta | None, Setting("with either: the chance that the promise may fail")] = None
    each: Annotated[Spend | None, Setting("what a question may cost when it does not say")] = None
    title: Annotated[str, Setting("what people read as its name")] = ""
    version: Annotated[str, Setting("the public name of this content")] = "1"

    def entry(self) -> dict[str, object]:
        """As [datasets.NAME] of a service file has it; amounts by their exact text."""
        budget = {name: getattr(self, name) for name in ("epsilon", "rho", "delta")}
        out: dict[str, object] = {
            "file": self.file,
            "schema": self.schema,
            "budget": {name: str(value) for name, value in budget.items() if value is not None},
            "each": None if self.each is None else str(self.each),
            "title": self.title,
            "version": self.version,
        }
        return {key: value for key, value in out.items() if value is not None}


@dataclass(frozen=True)
class AddedDatasets:
    """What the owner added to the service file's data sets, and which of all are taken out.

    >>> AddedDatasets.read(None)
    AddedDatasets(added={}, taken_out=())
    """

    added: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    taken_out: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path | None) -> AddedDatasets:
        """What the file holds; nothing where there is none yet."""
        try:
            document = {} if path is None or not path.exists() else json.loads(path.read_bytes())
            added, gone = document.get("added", {}), document.get("taken_out", [])
            if not all(isinstance(entry, dict) for entry in added.values()):
                raise ValueError
            return cls(added, tuple(map(str, gone)))
        except (OSError, ValueError, AttributeError, TypeError):
            raise InputError(
                "The file of added data sets cannot be read, or is not one that velado wrote.",
                "Which tables may be asked must not be guessed.",
                "Restore it, or move it away and add the data sets anew.",
            ) from None

    def write(self, path: Path) -> None:
        """The file holds this, for its owner alone."""
        document = {"version": 1, "added": dict(self.added), "taken_out": list(self.taken_out)}
        put_file(path, (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode(), private=True)


class HostedDatasets:
    """Every data set of the settings, and what the owner added since, open until `close`.

    >>> HostedDatasets(ServiceSettings({}, Path("tokens.json"), Path("audit.jsonl"))).datasets
    {}
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.datasets: dict[str, HostedDataset] = {}
        self.taken_out: tuple[str, ...] = ()
        self._settings = settings
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        # Questions that run when theirs is taken out come to their end; so it is closed with the service.
        self._retired: list[HostedDataset] = []
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def changed(self) -> bool:
        """Whether another process has added or taken out something since."""
        return self._state() != self._seen

    def refresh(self) -> None:
        """The data sets are those of the settings and of the file, but for those taken out."""
        with self._lock:
            seen = self._state()
            held = AddedDatasets.read(self._settings.added)
            wanted = {**self._settings.datasets, **{n: self._of(n, e) for n, e in held.added.items()}}
            self._settle({name: one for name, one in wanted.items() if name not in held.taken_out})
            self.taken_out, self._seen = tuple(n for n in held.taken_out if n in wanted), seen

    def add(self, new: NewDataset) -> None:
        """The data set can be asked, here and after a restart; it is refused if anything about it does not fit."""
        with self._changing() as held:
            back = new.file is None and new.schema is None and new.dataset in self.taken_out
            if new.dataset in self.datasets or (not back and new.dataset in self._settings.datasets):
                raise ParameterError(
                    say("There is a data set '{name}' already.", name=new.dataset),
                    "Its name stands after FROM, so it means one table.",
                    "Choose another name, or put the one that was taken out back by its name alone.",
                )
            added = dict(held.added) if back else {**held.added, new.dataset: new.entry()}
            if new.dataset in added:
                wanted = self._of(new.dataset, added[new.dataset])
            else:
                wanted = self._settings.datasets[new.dataset]
            opened = _open(wanted, self._settings.limits.query_seconds)
            try:
                self._keep(AddedDatasets(added, tuple(n for n in held.taken_out if n != new.dataset)))
            except BaseException:
                _close(opened)
                raise
            self.datasets = {**self.datasets, new.dataset: opened}

    def remove(self, name: str) -> None:
        """Nobody can ask the data set any more, here and after a restart. Its table and ledger stay."""
        with self._changing() as held:
            self._keep(AddedDatasets(held.added, (*(n for n in held.taken_out if n != name), name)))
            if name in self.datasets:
                self._retired.append(self.datasets[name])
            self.datasets = {other: one for other, one in self.datasets.items() if other != name}

    def raised(self, name: str, budget: Budget) -> bool:
        """Whether the data set is one the owner added; then its larger budget is kept, so that the next start agrees with the ledger."""
        if self._settings.added is None or name in self._settings.datasets:
            return False
        with self._changing() as held:
            told: dict[str, str] = {budget.measure: str(budget.total)}
            told |= {} if budget.delta is None else {"delta": str(budget.delta)}
            entry = {**held.added[name], "budget": told}
            self._keep(AddedDatasets({**held.added, name: entry}, held.taken_out))
        return True

    @contextmanager
    def _changing(self) -> Iterator[AddedDatasets]:
        """What the file holds, while no other thread or process changes it."""
        with self._lock, one_writer(self._place):
            yield AddedDatasets.read(self._place)

    def _keep(self, held: AddedDatasets) -> None:
        held.write(self._place)
        # What others changed meanwhile is taken up by the next `refresh`: the file is only known as far as it was read.
        self.taken_out = held.taken_out

    @property
    def _place(self) -> Path:
        if self._settings.added is None:
            raise ParameterError(
                "This service was not started from a service file.",
                "What is added or taken out is kept beside it.",
                "Start it with `velado serve SERVICE`.",
            )
        return self._settings.added

    def _of(self, name: str, entry: Mapping[str, object]) -> DatasetSettings:
        return added_dataset(name, entry, self._settings)

    def _settle(self, wanted: Mapping[str, DatasetSettings]) -> None:
        kept = {n: one for n, one in self.datasets.items() if n in wanted and one.settings == wanted[n]}
        self._retired += [one for name, one in self.datasets.items() if name not in kept]
        self.datasets = kept
        for name, dataset in wanted.items():
            if name not in kept:
                self.datasets = {**self.datasets, name: _open(dataset, self._settings.limits.query_seconds)}

    def _state(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._settings.added or "")
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def close_ledgers(self) -> None:
        """Every ledger is closed."""
        for hosted in (*self.datasets.values(), *self._retired):
            hosted.ledger.close()

    def close(self) -> None:
        """Sessions, engines and ledgers are given back."""
        for hosted in (*self.datasets.values(), *self._retired):
            _close(hosted)
        self.datasets, self._retired = {}, []


def _close(hosted: HostedDataset) -> None:
    hosted.session.close()
    hosted.engine.close()
    hosted.ledger.close()


MOST_FILES = 1000


def files_in(folder: Path) -> dict[str, list[str]]:
    """The names of tables and schemas in *folder* and below, at most a thousand of each; hidden ones are left out.

    >>> files_in(Path("nowhere"))
    {'tables': [], 'schemas': []}
    """
    found = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    endings = {"tables": (".csv", ".parquet", ".pq"), "schemas": (".toml",)}
    return {
        kind: [name for name in found if name.lower().endswith(ends)][:MOST_FILES]
        for kind, ends in endings.items()
    }


def _open(dataset: DatasetSettings, seconds: float) -> HostedDataset:
    schema = read_schema(dataset.schema)
    unit = Unit.declared(schema) if dataset.unit is None else dataset.unit
    if dataset.file is not None:
        engine = engine_for_file(dataset.file, schema, unit)
    else:
        engine = engine_for_postgres(dataset.url or "", dataset.relation or "", schema, unit)
    ledger = None
    try:
        ledger = _ledger(dataset, engine)
        agree_version(address_of(dataset.ledger), dataset.version, engine.version)
        session = Session(
            engine,
            unit,
            ledger,
            schema=schema,
            name=dataset.name,
            each=dataset.each,
            least=dataset.least,
            extremes=dataset.extremes,
            seconds=seconds,
            version=dataset.version,
        )
        return HostedDataset(
            dataset, session, ledger, engine, History(ledger), _public(dataset, schema, session)
        )
    except BaseException:
        engine.close()
        if ledger is not None:
            ledger.close()
        raise


def _ledger(dataset: DatasetSettings, engine: Engine) -> ChainedLedger:
    """The data set's ledger, made if there is none; its caps too. A budget or cap that differs is refused."""
    claim(engine.identity, address_of(dataset.ledger))
    refuse_lost(engine.identity, dataset.ledger, dataset.seal)
    if _is_file(dataset.ledger):
        Path(dataset.ledger).parent.mkdir(parents=True, exist_ok=True)
    made = None
    if not ledger_exists(dataset.ledger, dataset.seal):
        # Of two services that start at once one makes the ledger; the other is refused here and opens it.
        with suppress(LedgerError):
            made = create_ledger(dataset.ledger, dataset.name, dataset.budget, dataset.seal)
    ledger = open_soon(dataset.ledger, dataset.seal) if made is None else made
    try:
        settle(engine.identity, ledger)
        state = ledger.state()
        same_measure = state.budget.measure == dataset.budget.measure
        if not (same_measure and dataset.budget.total in (state.budget.total, _first_total(ledger))):
            _agree(dataset, state.dataset, same_measure, state.budget.total)
        elif state.dataset != dataset.name:
            _agree(dataset, state.dataset, same_measure, dataset.budget.total)
        for analyst, cap in dataset.caps.items():
            held = state.caps.get(analyst, cap)
            if cap != held and cap != _first_cap(ledger, analyst):
                _agree_cap(dataset, analyst, cap, held)
        for analyst, cap in dataset.caps.items():
            if analyst not in state.caps:
                ledger.set_cap(analyst, cap)
    except BaseException:
        ledger.close()
        raise
    return ledger


# A file that says what the ledger began with was not edited since: what the owner set afterwards, on the page or by a
# command, is an entry of the ledger with a reason, and holds. Any other figure in the file is refused.


def _first_total(ledger: ChainedLedger) -> Fraction | None:
    """The total the ledger was opened with."""
    begun = next((entry for entry in ledger.entries() if entry.kind == "open"), None)
    return None if begun is None else Fraction(begun.fields()["budget"]["total"])


def _first_cap(ledger: ChainedLedger, analyst: str) -> Fraction | None:
    """The first cap that an analyst had."""
    caps = (entry.fields() for entry in ledger.entries() if entry.kind == "cap")
    return next((Fraction(said["cap"]) for said in caps if said["analyst"] == analyst), None)


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
        least=str(session.least),
        extremes=dataset.extremes,
        mode=session.unit.mode,
        rows=schema.dataset.rows,
    )
