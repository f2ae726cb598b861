"""Session: questions in, noisy answers out, every one paid for before a row is looked at.

The order of an answer is fixed: parse and plan (public metadata alone) -> is it stored? -> reserve (durable) ->
tally -> draw -> record (durable) -> reply. So a crash or an error after the reservation loses budget, never privacy, and
no answer can leave that the ledger does not hold. Protects the declared unit against an analyst who chooses questions freely;
the curator, who runs this code and holds the rows, is trusted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError
from velado.query.answer import Answer
from velado.query.budget import Budget, epsilon_of, exact
from velado.query.by_hand import checked
from velado.query.engines import engine_for_table
from velado.query.estimates import frame
from velado.query.ledger import Charge, Ledger, State
from velado.query.needs import Counts, Engine
from velado.query.noise import carry_out
from velado.query.plan import Extremes, Plan, name_of, plan
from velado.query.question import entry_text, fingerprints, read_draws, write_draws
from velado.query.session_settings import (
    analyst_name,
    budget_of,
    check_unit,
    confidence_level,
    extremes_of,
    schema_of,
    table_name,
)
from velado.query.sql import parse
from velado.query.store import memory_ledger
from velado.query.suggest import Proposal
from velado.query.unit import Unit
from velado.query.unit_of_account import UnitOfAccount
from velado.query.values import Query

KEPT_PLANS = 256
SHARE = 10
"""Without a spend of its own, a question takes one tenth of the whole budget."""

IN_MEMORY = "this session only; its account is kept in memory and forgotten when it ends"
IN_PROCESS = (
    "the sessions of this process that share the account; it is kept in memory and forgotten when they end"
)
IN_LEDGER = "every answer recorded in this ledger, by any analyst, before and after restarts"


class Session:
    """Answers aggregate questions about one table within one budget.

    *table* is a Table, or an Engine (then *schema* is needed). *unit* is who is protected; by default what the schema
    declares: its group, else its person, else one record. *budget* is a number (a total epsilon), a Budget, or an
    open Ledger; only a durable ledger makes the promise outlast this object. *name* is the table's name in SQL. *each* is what
    a question may spend when it does not say (default: a tenth of the budget). *seconds* limits the engine. *version* is the
    declared name of the table's content; without one it is taken from the rows, and then whoever is told that an answer
    was free learns that no row has changed since.

    One session may be used from many threads. Two that ask the same at once pay once.
    """

    def __init__(
        self,
        table: Table | Engine,
        unit: Unit | Proposal | None = None,
        budget: Budget | Ledger | Fraction | float | str | None = None,
        *,
        schema: Schema | None = None,
        name: str | None = None,
        analyst: str = "owner",
        each: Fraction | float | str | None = None,
        extremes: Extremes = "quantile",
        seconds: float | None = None,
        version: str | None = None,
    ) -> None:
        self.schema = schema_of(table, schema)
        # A proposal that nobody signed has no unit to give, and says so.
        unit = unit.unit() if isinstance(unit, Proposal) else unit
        self.unit = Unit.declared(self.schema) if unit is None else unit
        check_unit(self.unit, self.schema, table)
        self.name = name or (table_name(table.source) if isinstance(table, Table) else "table")
        self.analyst = analyst_name(analyst)
        self.extremes: Extremes = extremes_of(extremes)
        self.seconds = seconds
        own = budget_of(budget)
        self._own_ledger, self._own_engine = own is not None, isinstance(table, Table)
        self._ledger: Ledger = budget if own is None else memory_ledger(self.name, own)  # type: ignore[assignment]
        account = self._ledger.state()
        self.budget = account.budget
        self.each = account.budget.total / SHARE if each is None else exact(each)
        self._engine: Engine = (
            engine_for_table(table.with_schema(self.schema), self.unit) if isinstance(table, Table) else table
        )
        self.version = self._engine.version if version is None else f"declared:{version}"
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._guard = threading.Lock()
        self._planned = lru_cache(KEPT_PLANS)(self._plan)
        self._account = UnitOfAccount(self._ledger, self.unit, self.analyst)
        self._account.check()

    def price(self, query: str | Query, spend: Fraction | float | str | None = None) -> Plan:
        """What the question would cost and how noisy its answer would be. Nothing is asked, spent or looked at."""
        return self._planned(self._read(query), self.each if spend is None else exact(spend))[0]

    def answer(
        self,
        query: str | Query,
        *,
        spend: Fraction | float | str | None = None,
        analyst: str | None = None,
        confidence: float | Fraction = 0.95,
    ) -> Answer:
        """The answer with its promise and cost, or an error that depends on the question, the schema and the ledger alone.

        At most *spend* is charged. A question that was answered before, to whomever, on the same content of the table and
        with the same spend, gets the same numbers again at no cost; averaging repeated answers therefore gains nothing.
        """
        limit = self.each if spend is None else exact(spend)
        level = confidence_level(confidence)
        who = self.analyst if analyst is None else analyst_name(analyst)
        made, question, public = self._planned(self._read(query), limit)
        if not made.draws:
            # Declared bounds are public: no row is looked at, so there is nothing to pay and nothing to record.
            return self._reply(made, (), level, limit, (question, public), False, self._ledger.state().head)
        with self._alone_with(question):
            found = self._ledger.stored(question)
            if found is None:
                drawn, receipt = self._ask(made, question, who, limit)
            else:
                drawn, receipt = read_draws(found[0], made), found[1]
        return self._reply(made, drawn, level, limit, (question, public), found is not None, receipt)

    def state(self) -> State:
        """The account as it stands."""
        return self._ledger.state()

    def close(self) -> None:
        """Give back the engine and the ledger this session made itself."""
        if self._own_engine:
            self._engine.close()
        if self._own_ledger:
            self._ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {self.unit.mode}, {self.budget.measure} {float(self.budget.total):g})"

    def _read(self, query: str | Query) -> str | Query:
        """A text as it is, to be parsed where its plan is not kept; a question by hand held to what the text may ask.

        The second is done each time, since 0.5 equals one half and would find the plan of a question that is well formed.
        """
        return query if isinstance(query, str) else checked(query, self.schema, self.name)

    def _plan(self, query: str | Query, spend: Fraction) -> tuple[Plan, str, str]:
        """The plan of a question and its fingerprints with and without the table's version; nothing else enters them."""
        if isinstance(query, str):
            query = parse(query, self.schema, self.name)
        made = plan(query, self.schema, self.unit, self.budget.measure, spend, self.extremes)
        # The second goes to the analyst: a fingerprint of the exact rows would let a guess of them be tested.
        question, public = fingerprints(made, (self.version, ""), spend, self.extremes)
        return made, question, public

    def _ask(
        self, made: Plan, question: str, analyst: str, limit: Fraction
    ) -> tuple[tuple[Counts, ...], str]:
        """Pay, then look, then draw, then record: never in another order."""
        self._account.hold()
        reservation = self._ledger.reserve(Charge(analyst, question, entry_text(made, limit), made.charge))
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        try:
            tallies = self._engine.tally(made.query.where, made.keys, made.needs, self.seconds)
            drawn = carry_out(made, tallies, deadline)
        except EngineError as error:
            raise EngineError(
                error.what,
                f"{error.why} The question was paid before the engine was asked, and stays paid.",
                error.fix,
            ) from None
        return drawn, self._ledger.record(reservation, question, write_draws(drawn, analyst))

    def _reply(
        self,
        made: Plan,
        drawn: tuple[Counts, ...],
        confidence: Fraction,
        asked: Fraction,
        known_as: tuple[str, str],
        stored: bool,
        receipt: str,
    ) -> Answer:
        # Every way here has just read or written the ledger.
        account = self._ledger.last_state()
        spent = Fraction(0) if stored else made.charge
        cost = {
            "measure": self.budget.measure,
            "spent": str(spent),
            "asked": str(asked),
            "left": str(account.left),
            "budget": str(account.budget.total),
            "about": {
                "spent": float(spent),
                "left": float(account.left),
                "budget": float(account.budget.total),
            },
        }
        how = {
            "query": made.query.canonical(),
            "values": [name_of(aggregate) for aggregate in made.query.aggregates],
            "keys": list(made.query.keys),
            "plan": made.to_dict(confidence),
            "extremes": self.extremes,
            "confidence": float(confidence),
            "table": {"name": self.name},
            "ledger": {"dataset": account.dataset, "durable": self._lasting},
        }
        return Answer(
            frame(made, drawn, confidence),
            self.guarantee(made.charge, account),
            cost,
            how,
            known_as[1],
            stored,
            receipt,
            known_as[0],
        )

    @property
    def _lasting(self) -> bool:
        return not self._own_ledger and self._ledger.lasting

    def guarantee(self, charge: Fraction | None = None, account: State | None = None) -> dict[str, Any]:
        """The promise of the whole account and, where a *charge* is named, of an answer of this cost."""
        budget = self.budget if account is None else account.budget
        out = self.unit.guarantee()
        pure = budget.measure == "epsilon"
        out["definition"] = "epsilon-differential privacy" if pure else "rho-zCDP"
        if charge is not None:
            out[budget.measure] = str(charge)
            if budget.delta is not None:
                out["implies"] = {"epsilon": epsilon_of(charge, budget.delta), "delta": float(budget.delta)}
        out["budget"] = budget.to_dict()
        out["covers"] = IN_LEDGER if self._lasting else IN_MEMORY if self._own_ledger else IN_PROCESS
        declared = self.schema.group or self.schema.person
        if declared is not None and self.unit.column != declared.name:
            kind = "group" if declared.group else "person"
            out["warnings"] = [
                f"The schema names '{declared.name}' as the {kind} column, but this promise is about {out['unit']}: "
                f"all rows of one {kind} together are not covered."
            ]
        return out

    @contextmanager
    def _alone_with(self, question: str) -> Iterator[None]:
        """One thread at a time asks a question, so that the second finds the first one's answer stored."""
        with self._guard:
            lock, waiting = self._locks.get(question, (threading.Lock(), 0))
            self._locks[question] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, waiting = self._locks.pop(question)
                if waiting > 1:
                    self._locks[question] = (lock, waiting - 1)
