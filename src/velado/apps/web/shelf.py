"""The data sets of a service, opened: each a session over its rows with its durable ledger.

The ledger is made at the first start with the declared budget. Afterwards the ledger is what counts: a budget in the
file that differs from it stops the start, because silently taking either one would surprise somebody.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from velado.apps.web.history import History
from velado.apps.web.settings import Dataset, Settings
from velado.data.io import read_schema
from velado.data.schema import Schema
from velado.errors import LedgerError, ParameterError, QueryRefused
from velado.query.budget import short
from velado.query.domains import key_of
from velado.query.engines import engine_for_file, engine_for_postgres
from velado.query.needs import Engine
from velado.query.session import Session
from velado.query.sql import queryable
from velado.query.store import (
    ChainedLedger,
    TableIdentity,
    address_of,
    agree_version,
    claim,
    create_ledger,
    ledger_exists,
    open_ledger,
)
from velado.query.unit import Unit

MOST_VALUES_SHOWN = 500


@dataclass(frozen=True)
class Shelved:
    """One data set at work."""

    settings: Dataset
    session: Session
    ledger: ChainedLedger
    engine: Engine
    history: History
    public: dict[str, Any]


class Shelf:
    """Every data set of the settings, open until `close`."""

    def __init__(self, settings: Settings) -> None:
        self.datasets: dict[str, Shelved] = {}
        try:
            for name, dataset in settings.datasets.items():
                self.datasets[name] = _open(dataset, settings.limits.query_seconds)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Sessions, engines and ledgers are given back."""
        for shelved in self.datasets.values():
            shelved.session.close()
            shelved.engine.close()
            shelved.ledger.close()
        self.datasets = {}


def _open(dataset: Dataset, seconds: float) -> Shelved:
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
        return Shelved(dataset, session, ledger, engine, History(ledger), _public(dataset, schema, session))
    except BaseException:
        ledger.close()
        raise


def _ledger(dataset: Dataset) -> ChainedLedger:
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


def _agree(dataset: Dataset, name: str, same_measure: bool, total: Any) -> None:
    where = f"[datasets.{dataset.name}]"
    if name != dataset.name:
        raise ParameterError(
            f"The ledger of {where} belongs to another data set.",
            "One table's budget must not pay for another's.",
            "Correct the ledger's place in the service file.",
        )
    if same_measure and total == dataset.budget.total:
        return
    # What an (epsilon, delta) budget is held as has dozens of digits, which nobody can write.
    held = (
        str(total)
        if len(str(total)) <= 12
        else f"{short(total)} (`velado ledger show --json` has it exactly)"
    )
    if same_measure and total < dataset.budget.total:
        fix = f"Raise it with `velado ledger raise`, which writes the reason down, or write {held} again."
    else:
        fix = f"Write what the ledger has: total {held}. A ledger's budget is never lowered, nor its measure changed."
    raise ParameterError(
        f"The budget of {where} is not the one its ledger holds.",
        "The budget is a promise to the people in the table, and the ledger is where it was given.",
        fix,
    )


def _agree_cap(dataset: Dataset, analyst: str, said: Fraction, held: Fraction) -> None:
    if said != held:
        raise ParameterError(
            f"The cap of '{analyst}' in [datasets.{dataset.name}] is not the one its ledger holds.",
            "Caps are entries of the ledger; one that was changed in the file alone would not hold.",
            f"Set it with `velado ledger cap`, or write {held} again.",
        )


def _is_file(where: str) -> bool:
    return not where.startswith(("postgresql://", "postgres://"))


def _public(dataset: Dataset, schema: Schema, session: Session) -> dict[str, Any]:
    """What anybody with a token may know: declared by the owner, none of it read off the rows."""
    columns = []
    for name in queryable(schema):
        column = schema.columns[name]
        entry: dict[str, Any] = {"name": column.name, "kind": column.kind, "group_by": False}
        if column.bounds is not None:
            entry["bounds"] = list(column.bounds)
        if column.step is not None:
            entry["step"] = column.step
        try:
            domain = key_of(schema, column.name).domain
        except QueryRefused:
            domain = None
        if domain is not None:
            entry |= {
                "group_by": True,
                "values": list(domain[:MOST_VALUES_SHOWN]),
                "number_of_values": len(domain),
            }
        columns.append(entry)
    return {
        "name": dataset.name,
        "title": dataset.title or dataset.name,
        "columns": columns,
        "guarantee": session.guarantee().to_dict(),
        "each": str(session.each),
        "extremes": dataset.extremes,
        "mode": session.unit.mode,
    }
