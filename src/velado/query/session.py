"""Session: questions in, noisy answers out, every one paid for before a row is looked at.

The order of an answer is fixed: parse and plan (public metadata alone) -> is it stored? -> reserve (durable) ->
tally -> draw -> record (durable) -> reply. So a crash or an error after the reservation loses budget, never privacy, and
no answer can leave that the ledger does not hold. Protects the declared unit against an analyst who chooses questions freely;
the curator, who runs this code and holds the rows, is trusted.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, TypeVar, get_args
from weakref import WeakValueDictionary

from velado.data.formats import FORMATS
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError, ParameterError
from velado.query.accuracy import Wish, check_least, check_most, least_spend, suggested_spend
from velado.query.answer import Answer, Cost, Making, frame
from velado.query.budget import Budget, Charge, LedgerState, exact, how_many, implied, spend_of
from velado.query.engines import engine_for_table
from velado.query.groups import Proposal
from velado.query.kept_answers import entry_text, fingerprints, read_draws, write_draws
from velado.query.needs import Engine, Tallies
from velado.query.plan import Extremes, QueryPlan, carry_out, name_of, plan, plan_within
from velado.query.sql import checked, parse
from velado.query.store import ChainedLedger, UnitOfAccount, memory_ledger, refuse_second, settle
from velado.query.unit import Promise, Unit
from velado.query.values import Query
from velado.query.workload.questions import read_queries
from velado.query.workload.workload import (
    WorkloadAnswer,
    WorkloadPlan,
    draw_workload,
    frames,
    plan_workload,
    plan_workload_within,
    written,
)
from velado.query.workload.workload import read as read_workload
from velado.settings import Setting, Where, checked_argument
from velado.text import say

Drawn = TypeVar("Drawn")

# What a session is given, checked before it is made: names, units, budgets and levels of confidence.

Confidence = Annotated[
    float,
    Setting(
        "confidence of the intervals",
        gt=0,
        lt=1,
        test=lambda level: level <= 1 - 1e-12,
        takes=say("a number above 0, and at least one in 10^12 below 1"),
        why=say("It is the chance with which an interval holds the exact value."),
    ),
]
"""What every door takes as a confidence; nearer to 1 the tails of the noise are not told apart."""
_TEXT_ENDINGS = frozenset({"csv", "tsv", "txt"})
"""What files of text are called; text is what no registered format recognises."""


def table_name(source: str) -> str:
    """The name a file's table has in SQL: the file's own name without its ending, packed or not.

    >>> table_name("data/stays.csv"), table_name("stays.xlsx"), table_name("stays.csv.gz")
    ('stays', 'stays', 'stays')
    """
    endings = {ending for known in FORMATS.values() for ending in known.endings}
    packed = {ending for known in FORMATS.values() if known.unpack for ending in known.endings}
    name = PurePath(source).name
    for known in (packed, endings | _TEXT_ENDINGS):
        stem, dot, ending = name.rpartition(".")
        name = stem if dot and ending.lower() in known else name
    return name or "table"


_ASKED = Where("python", say("the question"))


def _schema_of(table: Table | Engine, schema: Schema | None) -> Schema:
    """The schema of a table, or the one given with an engine."""
    if isinstance(table, Table):
        return table.schema if schema is None else schema
    if schema is None:
        raise ParameterError(
            "A session over an engine needs the schema.",
            "Bounds, domains and the unit are declared there and never read off the rows.",
            "Pass schema=read_schema('schema.toml').",
        )
    return schema


def check_unit_column(unit: Unit, schema: Schema) -> None:
    """The column that tells units apart is declared.

    >>> check_unit_column(Unit("household", 4), Schema({}))
    Traceback (most recent call last):
    velado.errors.ParameterError: The unit's column 'household' is not in the schema. Rows that move together are found by it. Name a column of the table.
    """
    if unit.column is not None and unit.column not in schema.columns:
        raise ParameterError(
            say("The unit's column '{column}' is not in the schema.", column=unit.column),
            "Rows that move together are found by it.",
            "Name a column of the table.",
        )


def _check_unit(unit: Unit, schema: Schema, engine: Table | Engine) -> None:
    """The unit's column is declared, and an engine leaves out rows for this very unit."""
    check_unit_column(unit, schema)
    if not isinstance(engine, Table) and engine.unit != unit:
        raise ParameterError(
            "The engine was made for another unit than the session's.",
            "It leaves out rows beyond another most, so the noise would not fit what one unit can move.",
            "Make the engine with the session's unit.",
        )


def _budget_of(budget: Budget | ChainedLedger | Fraction | float | str | None) -> Budget | None:
    """The budget of a session's own account, a number being a total epsilon; None where a ledger was handed in."""
    if budget is None:
        raise ParameterError(
            "A session needs a budget.",
            "How much may be learnt in all is the owner's decision, so it has no default.",
            "Pass for example budget=1.0 (a total epsilon), a Budget, or an open ledger.",
        )
    if isinstance(budget, Fraction | float | int | str):
        return Budget.epsilon(budget)
    return budget if isinstance(budget, Budget) else None


def _extremes_of(extremes: Extremes) -> Extremes:
    """How MIN and MAX are answered, if it is one of the ways there are."""
    if extremes not in get_args(Extremes):
        raise ParameterError(
            "MIN and MAX are answered by 'quantile' or by 'bound'.",
            "The exact extreme is one person's value.",
            "Choose one of the two.",
        )
    return extremes


def analyst_name(name: str) -> str:
    """The name, if a ledger can hold it.

    >>> analyst_name("ana")
    'ana'
    """
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise ParameterError(
            "An analyst's name must be 1 to 200 printable characters.",
            "The ledger writes down who asked.",
            "Give a short name.",
        )
    return name


def confidence_level(confidence: float | Fraction) -> Fraction:
    """The level as an exact fraction above 0 and at most 1 - 1e-12, beyond which tails are not told apart.

    >>> confidence_level(0.95)
    Fraction(19, 20)
    """
    chance = float(confidence) if isinstance(confidence, Fraction) else confidence
    checked_argument("confidence", chance, Confidence)
    return exact(confidence)


KEPT_PLANS = 256
SHARE = 10
"""Without a spend of its own, a question takes at most one tenth of the whole budget."""

IN_MEMORY = say("this session only; its account is kept in memory and forgotten when it ends")
IN_PROCESS = say(
    "the sessions of this process that share the account; it is kept in memory and forgotten when they end"
)
IN_LEDGER = say("every answer recorded in this ledger, by any analyst, before and after restarts")


class Session:
    """Answers aggregate questions about one table within one budget.

    *table* is a Table, or an Engine (then *schema* is needed). *unit* is who is protected; by default what the schema
    declares: its group, else its person, else one record. *budget* is a number (a total epsilon), a Budget, or an
    open Ledger; only a durable ledger makes the promise outlast this object. *name* is the table's name in SQL. *each* is what
    a question may spend when it does not say (default: a tenth of the budget, or less where the declared size of the table needs
    less, see `suggested_spend`), and *least* what each spends at least (default: one 10,000th of the budget). *seconds* limits the engine. *version* is the
    declared name of the table's content; without one it is taken from the rows, and then whoever is told that an answer
    was free learns that no row has changed since. A table has one budget: on a durable ledger it is noted which one, and a
    second is refused, as on the command line.

    One session may be used from many threads. Two that ask the same at once pay once.

    >>> import polars as pl
    >>> from velado.data.schema import Column
    >>> schema = Schema({"age": Column("age", kind="numeric", bounds=(0, 120))})
    >>> stays = Table.of(pl.DataFrame({"age": ["41", "67", "70"]}), schema, "stays")
    >>> with Session(stays, budget=100) as session:
    ...     answer = session.answer("SELECT COUNT(*) FROM stays WHERE age > 60")
    >>> abs(answer.value - 2) < 10, str(answer.guarantee.unit)
    (True, 'one record')
    """

    def __init__(
        self,
        table: Table | Engine,
        unit: Unit | Proposal | None = None,
        budget: Budget | ChainedLedger | Fraction | float | str | None = None,
        *,
        schema: Schema | None = None,
        name: str | None = None,
        analyst: str = "owner",
        each: Fraction | float | str | None = None,
        least: Fraction | float | str | None = None,
        extremes: Extremes = "quantile",
        seconds: float | None = None,
        version: str | None = None,
    ) -> None:
        self.schema = _schema_of(table, schema)
        # A proposal that nobody signed has no unit to give, and says so.
        unit = unit.unit() if isinstance(unit, Proposal) else unit
        self.unit = Unit.declared(self.schema) if unit is None else unit
        _check_unit(self.unit, self.schema, table)
        self.name = name or (table_name(table.source) if isinstance(table, Table) else "table")
        self.analyst = analyst_name(analyst)
        self.extremes: Extremes = _extremes_of(extremes)
        self.seconds = seconds
        own = _budget_of(budget)
        self._own_ledger, self._own_engine = own is not None, isinstance(table, Table)
        self._ledger: ChainedLedger = budget if own is None else memory_ledger(self.name, own)  # type: ignore[assignment]
        account = self._ledger.state()
        self.budget = account.budget
        self.least = least_spend(self.budget.total) if least is None else spend_of(least, "least", _ASKED)
        self.each = self._usual_spend() if each is None else spend_of(each, "each", _ASKED)
        self._engine: Engine = (
            engine_for_table(table.with_schema(self.schema), self.unit) if isinstance(table, Table) else table
        )
        self._claim()
        self.version = self._engine.version if version is None else f"declared:{version}"
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()
        self._planned = lru_cache(KEPT_PLANS)(self._plan)
        self._account = UnitOfAccount(self._ledger, self.unit, self.analyst)
        self._account.check()

    def price(
        self,
        query: str | Query,
        spend: Fraction | float | str | None = None,
        *,
        within: Fraction | float | str | None = None,
        confidence: float | Fraction = 0.95,
    ) -> QueryPlan:
        """What the question would cost and how exact its answer would be. Nothing is asked, spent or looked at.

        With *within* (a half-width such as 10, or "5%") it is the least cost at which the noise of every value is no more, with
        the chance *confidence*; *spend* is then the most that may be. `sentences()` of what is returned says it in words, and by how much
        more a value may be off where several are made possible together.
        """
        made, _, _, limit = self._priced(query, spend, within, confidence_level(confidence))
        self._check_least(made, limit, within)
        return made

    def answer(
        self,
        query: str | Query,
        *,
        spend: Fraction | float | str | None = None,
        within: Fraction | float | str | None = None,
        analyst: str | None = None,
        confidence: float | Fraction = 0.95,
    ) -> Answer:
        """The answer with its promise and cost, or an error that depends on the question, the schema and the ledger alone.

        At most *spend* is charged, or as little as keeps every value *within* that half-width, see `price`. A question that was
        answered before, to whomever, on the same content of the table and with the same spend or accuracy, gets the same
        numbers again at no cost; averaging repeated answers therefore gains nothing.
        """
        level = confidence_level(confidence)
        who = self.analyst if analyst is None else analyst_name(analyst)
        made, question, public, limit = self._priced(query, spend, within, level)
        if not made.draws:
            # Declared bounds are public: no row is looked at, so there is nothing to pay and nothing to record.
            return self._reply(made, (), level, limit, (question, public), False, self._ledger.state().head)
        with self._alone_with(question):
            found = self._ledger.stored(question)
            if found is None:
                self._check_least(made, limit, within)
                drawn, receipt = self._ask(made, question, who, limit)
            else:
                drawn, receipt = read_draws(found[0], made), found[1]
        return self._reply(made, drawn, level, limit, (question, public), found is not None, receipt)

    def price_workload(
        self,
        queries: str | Sequence[str | Query],
        spend: Fraction | float | str | None = None,
        *,
        within: Fraction | float | str | None = None,
        confidence: float | Fraction = 0.95,
    ) -> WorkloadPlan:
        """What several counts would cost together and how exact each would be, see `price`. Nothing is asked, spent or looked at."""
        level = confidence_level(confidence)
        most = None if spend is None else spend_of(spend, "spend", _ASKED)
        read = read_queries(queries, self.schema, self.name)
        measure = self.budget.measure
        if within is None:
            limit = self.each if most is None else most
            check_least(limit, self.least, measure)
            return plan_workload(read, self.schema, self.unit, measure, limit)
        wish = Wish.of(within, "within", _ASKED)
        made = plan_workload_within(read, self.schema, self.unit, measure, wish, level, least=self.least)
        check_most(made.charge, most, measure)
        return made

    def workload(
        self,
        queries: str | Sequence[str | Query],
        *,
        spend: Fraction | float | str | None = None,
        within: Fraction | float | str | None = None,
        analyst: str | None = None,
        confidence: float | Fraction = 0.95,
    ) -> WorkloadAnswer:
        """Several COUNT and HISTOGRAM questions for one charge; the noise of each has at most the mean square of that when asked alone with an equal share, see `answer`."""
        level = confidence_level(confidence)
        who = self.analyst if analyst is None else analyst_name(analyst)
        made = self.price_workload(queries, spend, within=within, confidence=level)
        form = json.dumps({**made.known_by(), "version": self.version}, ensure_ascii=False, sort_keys=True)
        question = hashlib.sha256(form.encode()).hexdigest()
        with self._alone_with(question):
            found = self._ledger.stored(question)
            if found is None:
                self._account.hold()
                text = json.dumps(
                    {"workload": [json.loads(one.query.canonical()) for one in made.plans]},
                    ensure_ascii=False,
                )
                reservation = self._ledger.reserve(Charge(who, question, text, made.charge))
                drawn = self._looked(lambda: draw_workload(made, self._engine, self.seconds))
                receipt = self._ledger.record(reservation, question, written(drawn, who))
            else:
                drawn, receipt = read_workload(found[0]), found[1]
        account = self._ledger.last_state()
        return WorkloadAnswer(
            frames=tuple(frames(made, drawn, level)),
            guarantee=self.guarantee(made.charge, account),
            cost=Cost(
                measure=self.budget.measure,
                spent=Fraction(0) if found is not None else made.charge,
                asked=made.charge,
                left=account.left,
                budget=account.budget.total,
            ),
            plan=made.to_dict(level),
            notes=tuple(made.sentences(level)),
            stored=found is not None,
            receipt=receipt,
            entry=question,
        )

    def how_many(self, price: QueryPlan | WorkloadPlan) -> int | None:
        """How many questions of that price the analyst can still pay from what is left; None of one that costs nothing."""
        return how_many(self.state().left_for(self.analyst), price.charge) if price.charge else None

    def state(self) -> LedgerState:
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

    def _priced(
        self,
        query: str | Query,
        spend: Fraction | float | str | None,
        within: Fraction | float | str | None,
        level: Fraction,
    ) -> tuple[QueryPlan, str, str, Fraction]:
        """The plan of a question by its spend or its accuracy, its fingerprints, and what it is allowed to cost."""
        most = None if spend is None else spend_of(spend, "spend", _ASKED)
        if within is None:
            limit = self.each if most is None else most
            return *self._planned(self._read(query), limit), limit
        wish = Wish.of(within, "within", _ASKED)
        found = self._planned(self._read(query), (wish, level))
        check_most(found[0].charge, most, self.budget.measure)
        return *found, found[0].charge

    def _plan(
        self, query: str | Query, spend: Fraction | tuple[Wish, Fraction]
    ) -> tuple[QueryPlan, str, str]:
        """The plan of a question and its fingerprints with and without the table's version; nothing else enters them."""
        if isinstance(query, str):
            query = parse(query, self.schema, self.name)
        if isinstance(spend, Fraction):
            made = plan(query, self.schema, self.unit, self.budget.measure, spend, self.extremes)
        else:
            made = plan_within(
                query, self.schema, self.unit, self.budget.measure, *spend, self.extremes, least=self.least
            )
            spend = made.charge
        # The second goes to the analyst: a fingerprint of the exact rows would let a guess of them be tested.
        question, public = fingerprints(made, (self.version, ""), spend, self.extremes)
        return made, question, public

    def _claim(self) -> None:
        """The table has one budget: it belongs to the ledger it is asked on, and none in memory beside one that lasts."""
        try:
            if self._ledger.lasting:
                settle(self._engine.identity, self._ledger)
            else:
                refuse_second(self._engine.identity)
        except BaseException:
            self.close()
            raise

    def _usual_spend(self) -> Fraction:
        """What a question may spend where nobody says."""
        share, rows = self.budget.total / SHARE, self.schema.dataset.rows
        usual = share if rows is None else min(share, suggested_spend(self.unit, rows, self.budget.measure))
        return max(usual, self.least)

    def _check_least(self, made: QueryPlan, limit: Fraction, within: object) -> None:
        # What an accuracy costs was raised to the least already, but for the last bits of its scale.
        if made.draws and within is None:
            check_least(limit, self.least, self.budget.measure)

    def _ask(self, made: QueryPlan, question: str, analyst: str, limit: Fraction) -> tuple[Tallies, str]:
        """Pay, then look, then draw, then record: never in another order."""
        self._account.hold()
        reservation = self._ledger.reserve(Charge(analyst, question, entry_text(made, limit), made.charge))
        deadline = None if self.seconds is None else time.monotonic() + self.seconds

        def look() -> Tallies:
            return carry_out(
                made, self._engine.tally(made.query.where, made.keys, made.needs, self.seconds), deadline
            )

        drawn = self._looked(look)
        return drawn, self._ledger.record(reservation, question, write_draws(drawn, analyst))

    def _looked(self, look: Callable[[], Drawn]) -> Drawn:
        """What was drawn; where the engine fails, the error says that it stays paid."""
        try:
            return look()
        except EngineError as error:
            raise EngineError(
                error.what,
                say(
                    "{why} The question was paid before the engine was asked, and stays paid.", why=error.why
                ),
                error.fix,
            ) from None

    def _reply(
        self,
        made: QueryPlan,
        drawn: Tallies,
        confidence: Fraction,
        asked: Fraction,
        known_as: tuple[str, str],
        stored: bool,
        receipt: str,
    ) -> Answer:
        # Every way here has just read or written the ledger.
        account = self._ledger.last_state()
        question, public = known_as
        return Answer(
            frame=frame(made, drawn, confidence),
            guarantee=self.guarantee(made.charge, account),
            cost=Cost(
                measure=self.budget.measure,
                spent=Fraction(0) if stored else made.charge,
                asked=asked,
                left=account.left,
                budget=account.budget.total,
            ),
            how=Making(
                query=made.query.canonical(),
                values=tuple(name_of(aggregate) for aggregate in made.query.aggregates),
                keys=made.query.keys,
                plan=made.to_dict(confidence),
                extremes=self.extremes,
                confidence=float(confidence),
                table={"name": self.name},
                ledger={"dataset": account.dataset, "durable": self._lasting},
            ),
            question=public,
            stored=stored,
            receipt=receipt,
            entry=question,
        )

    @property
    def _lasting(self) -> bool:
        return not self._own_ledger and self._ledger.lasting

    def guarantee(self, charge: Fraction | None = None, account: LedgerState | None = None) -> Promise:
        """The promise of the whole account and, where a *charge* is named, of an answer of this cost."""
        budget = self.budget if account is None else account.budget
        promise = self.unit.guarantee()
        pure = budget.measure == "epsilon"
        declared = self.schema.group or self.schema.person
        warnings = None
        if declared is not None and self.unit.column != declared.name:
            kind = say("group") if declared.group else say("person")
            warnings = (
                say(
                    "The schema names '{column}' as the {kind} column, but this promise is about {unit}: all rows of one "
                    "{kind} together are not covered.",
                    column=declared.name,
                    kind=kind,
                    unit=promise.unit,
                ),
            )
        return replace(
            promise,
            definition=say("epsilon-differential privacy") if pure else say("rho-zCDP"),
            epsilon=charge if pure else None,
            rho=None if pure else charge,
            implies=None if charge is None or budget.delta is None else implied(charge, budget.delta),
            budget=budget.to_dict(),
            covers=IN_LEDGER if self._lasting else IN_MEMORY if self._own_ledger else IN_PROCESS,
            warnings=warnings,
        )

    @contextmanager
    def _alone_with(self, question: str) -> Iterator[None]:
        """One thread at a time asks a question, so that the second finds the first one's answer stored."""
        with self._guard:
            # Held by those who wait and by whoever has it; gone with the last of them.
            lock = self._locks.setdefault(question, threading.Lock())
        with lock:
            yield
