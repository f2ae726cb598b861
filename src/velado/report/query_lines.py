"""An answer, the price of a question and the state of a ledger, as the terminal shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from velado.data.schema import Schema
from velado.query.answer import Answer, Cost
from velado.query.budget import (
    Budget,
    LedgerState,
    epsilon_of,
    exact,
    how_many,
    measure_word,
    rounded,
    tiny,
)
from velado.query.draws import DrawFacts
from velado.query.plan import PlanFacts, ValueReading
from velado.query.running.running_total import RunningRelease
from velado.query.store import QUESTION, Entry
from velado.query.unit import Promise
from velado.query.workload.workload import WorkloadAnswer
from velado.report.blocks import Table
from velado.text import Sentence, moment, number, say, say_n, written

# Between two columns of a table as the terminal draws it.
GAP = 3
_KINDS = {
    str(kind): kind
    for kind in (say("open"), say("reserve"), say("answer"), say("cap"), say("raise"), say("unit"))
}


def entry_kind(kind: str) -> str:
    """The kind of an entry as a person reads it.

    >>> entry_kind("cap")
    'cap'
    """
    return _KINDS.get(kind, kind)


def amount(cost: str | Fraction | float) -> str:
    """An exact cost in at most six decimals, without an exponent; a remainder too small for them is called so.

    >>> amount(Fraction(1, 3)), amount(Fraction(1, 10**9))
    ('0.333333', 'less than 0.000001')
    """

    if tiny(cost):
        return say("less than {least}", least=written(0.000001, ".6f"))
    text = rounded(cost)
    return text.replace(".", written(0.0, ".1f")[1])


@dataclass(frozen=True, kw_only=True)
class ShownEntry:
    """An entry without its question and its answer; the one about the unit is nobody's question.

    >>> shown = ShownEntry(number=2, kind="answer", at="2026-01-01", analyst="ana", cost="1/10", receipt="9f")
    >>> entry_kind(shown.kind), amount(shown.cost)
    ('answer', '0.1')
    """

    number: int
    kind: str
    at: str
    analyst: str
    cost: str
    receipt: str

    @classmethod
    def of(cls, entry: Entry) -> ShownEntry:
        """What may be shown of an entry."""

        said = entry.fields()
        unit = said.get("question") == QUESTION
        return cls(
            number=entry.number,
            kind="unit" if unit else entry.kind,
            at=said.get("at", ""),
            analyst="" if unit else said.get("analyst", ""),
            cost="" if unit else said.get("cost") or said.get("cap") or said.get("total") or "",
            receipt=entry.hash,
        )


def keep_apart(seal: Path) -> str:
    """Where the seal is, and how it is to be kept.

    >>> keep_apart(Path("a.seal"))
    'Seal: a.seal. Keep it apart from the ledger and do not restore one without the other.'
    """
    return say(
        "Seal: {path}. Keep it apart from the ledger and do not restore one without the other.", path=seal
    )


def ledger_lines(state: LedgerState, seal: Path, newest: Sequence[ShownEntry]) -> Iterator[str | Table]:
    """What the ledger holds: budget, spent and left, by analyst, its seal and its newest entries.

    >>> state = LedgerState(dataset="stays", budget=Budget.epsilon(1), spent=Fraction(1, 4), by_analyst={},
    ...     caps={}, entries=2, answers=1, head="9c01")
    >>> [list(map(str, row)) for row in next(ledger_lines(state, Path("stays.seal"), [])).rows]
    [['budget (epsilon)', '1'], ['spent', '0.25'], ['left', '0.75']]
    """
    budget = state.budget
    yield Table(
        say(
            "Ledger of '{dataset}': {entries} entries, {answers} answers",
            dataset=state.dataset,
            entries=state.entries,
            answers=state.answers,
        ),
        [say("what"), say("about")],
        [
            [say("budget ({measure})", measure=measure_word(budget.measure)), amount(budget.total)],
            [say("spent"), amount(state.spent)],
            [say("left"), amount(state.left)],
        ],
    )
    if (promise := promise_line(budget)) is not None:
        yield promise
    names = sorted({*state.by_analyst, *state.caps})
    if names:
        caps = {name: amount(limit) for name, limit in state.caps.items()}
        yield Table(
            say("By analyst"),
            [say("analyst"), say("spent"), say("cap")],
            [[name, amount(state.by_analyst.get(name, Fraction(0))), caps.get(name, "")] for name in names],
        )
    yield say("Newest hash: {head}", head=state.head)
    yield keep_apart(seal)
    if newest:
        yield Table(
            say("The newest entries"),
            [
                say("entry"),
                say("kind"),
                say("when (UTC)"),
                say("analyst"),
                say("cost or amount"),
                say("hash"),
            ],
            [
                [
                    str(one.number),
                    entry_kind(one.kind),
                    _moment(one.at),
                    one.analyst,
                    amount(one.cost) if one.cost else "",
                    one.receipt,
                ]
                for one in newest
            ],
        )


def _moment(at: str) -> str:
    """A time of the ledger, which is UTC, as the language spoken writes it."""
    return moment(datetime.fromisoformat(at).replace(tzinfo=None))


def answer_lines(answer: Answer, delta: Fraction | None, width: int) -> Iterator[str | Table]:
    """The numbers and how they are to be read, then promise and cost; *width* is the room a table has.

    >>> from velado.query.session import Session
    >>> from velado.testing.examples import small_table
    >>> stays = small_table(home=("other", "text", "a a b"))
    >>> with Session(stays, budget=1, name="stays") as session:
    ...     answer = session.answer("SELECT COUNT(*) FROM stays")
    >>> list(answer_lines(answer, None, width=80))[-1]
    'Cost: epsilon 0.1. Left: 0.9 of 1.'
    """
    yield _numbers(answer, width)
    yield from _readings(answer)
    yield from answer.notes()
    yield from _paid(answer.guarantee, answer.cost, answer.stored, delta)


def workload_lines(
    answer: WorkloadAnswer, delta: Fraction | None, confidence: float
) -> Iterator[str | Table]:
    """One table for each question, by its number, how exact they are, then promise and cost.

    >>> from velado.query.session import Session
    >>> from velado.testing.examples import small_table
    >>> stays = small_table(home=("other", "text", "a a b"))
    >>> with Session(stays, budget=1, name="stays") as session:
    ...     answer = session.workload(["SELECT COUNT(*) FROM stays", "SELECT COUNT(home) FROM stays"], spend="0.5")
    >>> list(workload_lines(answer, None, 0.95))[-1]
    'Cost: epsilon 0.5. Left: 0.5 of 1.'
    """
    for at, frame in enumerate(answer.frames, 1):
        rows = [[_cell(cell) for cell in row] for row in frame.iter_rows()]
        yield Table(say("Question {number}", number=at), frame.columns, rows)
    yield _intervals(answer.guarantee, confidence)
    yield from answer.notes
    yield from _paid(answer.guarantee, answer.cost, answer.stored, delta)


def running_lines(release: RunningRelease, delta: Fraction | None) -> Iterator[str]:
    """What a running total says below its numbers: how exact it is, the promise over all deliveries, and the cost."""
    yield from release.notes
    if any(None in row for row in release.frame.iter_rows()):
        yield say("A key shown as - stands for rows whose value is missing or not declared.")
    yield from _paid(release.guarantee, release.cost, release.stored, delta)


def _paid(promise: Promise, cost: Cost, stored: bool, delta: Fraction | None) -> Iterator[str]:
    """The promise of an answer and what it cost."""
    measure = cost.measure
    parts = {
        "type": say("guaranteed")
        if promise.type == "guaranteed"
        else say("guaranteed if the declared dependence holds"),
        "cost": amount((promise.rho if measure == "rho" else promise.epsilon) or Fraction(0)),
        "unit": _unit_text(promise),
    }
    if measure == "rho":
        yield say(
            "Promise ({type}): zero-concentrated differential privacy with rho {cost} for {unit}.", **parts
        )
        yield from _implied(promise, delta)
    else:
        yield say("Promise ({type}): differential privacy with epsilon {cost} for {unit}.", **parts)
    left = {"left": amount(cost.left), "budget": amount(cost.budget)}
    if stored:
        yield say(
            "Cost: nothing; asked before, these are the same numbers. Left: {left} of {budget}.", **left
        )
    else:
        spent = amount(cost.spent)
        word = measure_word(measure)
        yield say("Cost: {measure} {cost}. Left: {left} of {budget}.", measure=word, cost=spent, **left)


def _numbers(answer: Answer, width: int) -> Table:
    """One column for each value and its ends or, where that is wider than the terminal, one line for each value."""
    frame, values = answer.frame, answer.how.values
    # A quantile has no interval: two columns of nothing would only ask what they mean.
    ends = [f"{name}_{end}" for name in values for end in ("low", "high")]
    frame = frame.drop([name for name in ends if frame[name].null_count() == frame.height])
    head: list[str] = frame.columns
    rows = [
        [_value(cell) if name in values else _cell(cell) for name, cell in row.items()]
        for row in frame.iter_rows(named=True)
    ]
    wide = sum(max(len(line[at]) for line in (head, *rows)) + GAP for at in range(len(head)))
    if wide > width:
        keys = [name for name in head if name not in (*values, *ends)]
        rows = [
            [_cell(row[key]) for key in keys]
            + [value, _value(row[value]), *(_cell(row.get(f"{value}{end}")) for end in ("_low", "_high"))]
            for row in frame.iter_rows(named=True)
            for value in values
        ]
        head = [*keys, say("name"), say("value"), say("from"), say("to")]
    return Table(say("Answer"), head, rows)


def _value(value: object) -> str:
    """A number that was asked for, or that it is unknown at this spend."""
    return say("unknown") if value is None else _cell(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _readings(answer: Answer) -> Iterator[str]:
    """What each value is; an interval is explained where there is one, a rank where there is none."""
    values, promise = answer.how.plan["values"], answer.guarantee
    for value in values:
        if value["answered_as"] == "bound":
            yield _bound(value)
        elif value["answered_as"] == "quantile":
            yield say("{reading} {rank}", reading=_quantile(value), rank=_rank(value))
    # Of keys above a threshold the notes say it, since which of them are shown depends on the noise.
    if any(value["answered_as"] == "number" and "least" not in value for value in values):
        yield _intervals(promise, answer.how.confidence)
    if answer.how.keys:
        yield say("A key shown as - stands for rows whose value is missing or not declared.")


def _intervals(promise: Promise, confidence: float) -> Sentence:
    return say(
        "Each interval holds the exact value over {rows}, with numbers moved to their declared bounds and steps, "
        "with a chance of at least {confidence}; it is about the noise alone.",
        rows=say("every row")
        if promise.mode == "strict"
        else say(
            "the rows that count (at most {rows} with one value of '{column}')",
            rows=promise.most_rows,
            column=promise.column,
        ),
        confidence=_level(confidence),
    )


def _bound(value: ValueReading) -> str:
    return say(
        "{name} is the declared bound of '{column}'; no rows were looked at.",
        name=value["name"],
        column=value["column"],
    )


def _quantile(value: ValueReading) -> str:
    level = _level(value["level"])
    if value["asked"] not in ("min", "max"):
        return say("{name}: the {level} quantile.", name=value["name"], level=level)
    return say(
        "{name}: {asked} is answered as the {level} quantile.",
        name=value["name"],
        asked=value["asked"].upper(),
        level=level,
    )


def _rank(value: ValueReading) -> str:
    off = value["rank_error"]
    parts = {"rows": math.ceil(off["rows"]), "confidence": _level(off["confidence"])}
    if off["beyond"] == "the asked rank":
        return say(
            "It may miss the asked rank by {rows:,} rows, by no more with a chance of at least {confidence}.",
            **parts,
        )
    return say(
        "It may miss the asked rank by {rows:,} rows more than the best of {candidates:,} candidates does, by no more "
        "with a chance of at least {confidence}.",
        candidates=value["candidates"],
        **parts,
    )


def _level(level: str | float) -> str:
    """A level or a confidence in percent, with the digits it has: 99.99% is not 100%."""
    return written(float(100 * Fraction(str(level))), ".6g") + "%"


def _implied(promise: Promise, delta: Fraction | None) -> Iterator[str]:
    """What rho means as an epsilon, at the delta of the question or else of the ledger."""
    at = exact(promise.implies["delta"]) if delta is None and promise.implies is not None else delta
    if at is None or promise.rho is None or promise.budget is None:
        return
    one, whole = (epsilon_of(rho, at) for rho in (promise.rho, Fraction(promise.budget["total"])))
    yield say(
        "At delta {delta} this answer alone implies an epsilon of {epsilon}, the whole budget one of {total}.",
        delta=f"{float(at):g}",
        epsilon=amount(one),
        total=amount(whole),
    )


def _unit_text(promise: Promise) -> Sentence:
    if promise.mode == "strict":
        return say("one record, if rows tell nothing of one another")
    if promise.dependence is not None:
        return say(
            "one record with its group by '{column}', up to the declared dependence {dependence}",
            column=promise.column,
            dependence=str(promise.dependence),
        )
    return say(
        "all rows with one value of '{column}' (at most {rows} count), however they depend on each other",
        column=promise.column,
        rows=promise.most_rows,
    )


def price_lines(told: PlanFacts, asked: Budget) -> Iterator[str | Table]:
    """Every draw with its noise and cost, and their sum beside what was asked for.

    >>> from velado.query.plan import plan
    >>> from velado.query.unit import Unit
    >>> from velado.query.values import Aggregate, Query
    >>> made = plan(Query("stays", (Aggregate("count"),)), Schema({}), Unit(), "epsilon", Fraction(1, 2))
    >>> list(price_lines(made.to_dict(), Budget.epsilon("0.5")))[-1]
    'In all: epsilon 0.5.'
    """
    yield from (_bound(value) for value in told["values"] if value["answered_as"] == "bound")
    draws = told["draws"]
    if not draws:
        yield say("Nothing is drawn: the answer is made of declared bounds and costs nothing.")
        return
    ranks = [draw["rank_error"] for draw in draws if "rank_error" in draw]
    yield Table(
        say("What it would cost, without asking"),
        [
            say("drawn"),
            say("noise"),
            say("one unit moves it by"),
            say("scale"),
            *([say("may miss the rank by")] if ranks else []),
            say("cost"),
        ],
        [_price_row(draw, bool(ranks)) for draw in draws],
    )
    if ranks:
        yield say(
            "Ranks are missed by no more than that with a chance of at least {confidence}.",
            confidence=_level(ranks[0]["confidence"]),
        )
    yield charge_line(told["charge"], asked)


def charge_line(charge: Fraction | str, asked: Budget) -> Sentence:
    """What is charged in all, beside what was asked for where that is more.

    >>> charge_line(Fraction(1, 4), Budget.epsilon("0.5")), charge_line(Fraction(1, 4), Budget.epsilon("0.25"))
    ('In all: epsilon 0.25 of the 0.5 asked for.', 'In all: epsilon 0.25.')
    """
    if amount(charge) == amount(asked.total):
        return say("In all: {measure} {cost}.", measure=measure_word(asked.measure), cost=amount(charge))
    return say(
        "In all: {measure} {cost} of the {asked} asked for.",
        measure=measure_word(asked.measure),
        cost=amount(charge),
        asked=amount(asked.total),
    )


def promise_line(budget: Budget) -> Sentence | None:
    """What a rho with a delta promises, in the words of an owner who declared both; None of another budget.

    >>> promise_line(Budget.approximate(2, "1e-9"))
    'With delta 1e-09 the budget stands for an epsilon of 2.000000.'
    """
    if budget.delta is None:
        return None
    return say(
        "With delta {delta} the budget stands for an epsilon of {epsilon}.",
        epsilon=number(epsilon_of(budget.total, budget.delta), 6),
        delta=f"{float(budget.delta):g}",
    )


def room_lines(
    charge: Fraction, account: Budget | None, left: Fraction, *, together: bool = False
) -> Iterator[Sentence]:
    """How many questions of that cost what is left of the account pays, and what a rho stands for; nothing without an account.

    *together* where several are asked for one charge.

    >>> for line in room_lines(Fraction(1, 3), Budget.epsilon(2), Fraction(1)): print(line)
    Of the budget epsilon 1 is left: enough for 3 such questions.
    """
    if account is None or not charge:
        return
    n, parts = how_many(left, charge), {"measure": measure_word(account.measure), "left": amount(left)}
    if together:
        yield say_n(
            "Of the budget {measure} {left} is left: enough for {n:,} such workload.",
            "Of the budget {measure} {left} is left: enough for {n:,} such workloads.",
            n,
            **parts,
        )
    else:
        yield say_n(
            "Of the budget {measure} {left} is left: enough for {n:,} such question.",
            "Of the budget {measure} {left} is left: enough for {n:,} such questions.",
            n,
            **parts,
        )
    if (promise := promise_line(account)) is not None:
        yield promise


def _price_row(draw: DrawFacts, with_rank: bool) -> list[str]:
    """A quantile's scores have a scale too, but what it means to a person is the rank it may miss by."""
    size, off = draw.get("in_values", draw), draw.get("rank_error")
    noise = ["-", "-"] if off else [number(size["sensitivity"]), number(size["scale"])]
    rank = say("{rows:,} rows", rows=math.ceil(off["rows"])) if off else "-"
    return [_drawn(draw), draw["mechanism"], *noise, *([rank] if with_rank else []), amount(draw["charge"])]


def _drawn(draw: DrawFacts) -> str:
    what, column = draw["what"], draw["column"]
    if "depth" in draw:
        return say("rows at level {depth}", depth=draw["depth"])
    if what == "rows with":
        return say("rows with '{column}'", column=column)
    if what == "sum of":
        return say("sum of '{column}'", column=column)
    if what == "centred sum of":
        return say("centred sum of '{column}'", column=column)
    if what == "histogram of":
        return say("histogram of '{column}'", column=column)
    if what == "quantile of":
        return say("{level} quantile of '{column}'", level=_level(draw["level"]), column=column)
    return say("rows")


def uncovered(answer: Answer | WorkloadAnswer, schema: Schema) -> str | None:
    """The warning that the promise is about another unit than the one by which the schema groups rows.

    >>> from velado.query.session import Session
    >>> from velado.testing.examples import small_table
    >>> stays = small_table(home=("other", "text", "a a b"))
    >>> with Session(stays, budget=1, name="stays") as session:
    ...     answer = session.answer("SELECT COUNT(*) FROM stays")
    >>> uncovered(answer, stays.schema) is None
    True
    """
    declared = schema.group or schema.person
    if not answer.guarantee.warnings or declared is None:
        return None
    return say(
        "The schema groups rows by '{column}', but the promise is about another unit: all rows of one '{column}' "
        "together are not covered.",
        column=declared.name,
    )
