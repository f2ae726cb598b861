"""`velado query`: one question about a file that is not handed out, answered with noise and accounted for."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OneOf, argument, command, option
from velado.apps.cli.commands._ledger import amount
from velado.errors import ParameterError, QueryRefused
from velado.text import Sentence, number, say, written

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.query.answer import Answer
    from velado.query.budget import Budget
    from velado.query.store import FileLedger
    from velado.query.unit import Unit
    from velado.report.blocks import Table

RECORD = "record"
ENDINGS = (".csv", ".parquet", ".json")
SCANNED = (".csv", ".parquet", ".pq")
# Between two columns of a table as `show` draws it.
GAP = 3


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a question may cost, and of which account."""

    epsilon: flags.Epsilon = None
    rho: flags.Rho = None
    delta: flags.Delta = None
    budget: Annotated[
        str | None,
        option(
            "--budget E",
            help="Total for all questions about this file, when its ledger is made; default: this question alone.",
        ),
    ] = None
    ledger: Annotated[str | None, option("--ledger PATH|URL", help="The ledger; default: FILE.ledger.")] = (
        None
    )
    seal: flags.SealFile = None
    analyst: Annotated[str, option("--analyst NAME", help="Who asks.")] = "owner"
    price: Annotated[bool, option("--price", help="Say what it would cost, and ask nothing.")] = False

    def asked(self) -> Budget:
        """What this question may cost."""
        from velado.query.budget import Budget

        if (self.epsilon is None) == (self.rho is None) or (self.delta is not None and self.rho is None):
            raise ParameterError(
                "A question is asked with either --epsilon, or --rho (and, if you like, --delta).",
                "It is the most this question may cost.",
                "Write for example --epsilon 0.5.",
            )
        return Budget.epsilon(str(self.epsilon)) if self.rho is None else Budget.rho(self.rho, self.delta)

    def total(self, asked: Budget) -> Budget | None:
        """What all questions together may cost, if that was said."""
        from velado.query.budget import Budget, exact

        if self.budget is None:
            return None
        total = Budget(asked.measure, exact(self.budget), asked.delta)
        if total.total < asked.total:
            raise ParameterError(
                "--budget is less than what this question may cost.",
                "The ledger would be made and the question refused.",
                "Lower --epsilon or --rho, or raise --budget.",
            )
        return total


@dataclass(frozen=True, kw_only=True)
class Protected:
    """Who is protected."""

    unit: Annotated[
        str | None,
        option(
            "--unit COLUMN|record",
            help="Who is protected: all rows of one value of a column, or one record; default: as the schema declares.",
        ),
    ] = None
    rows: Annotated[
        int | None, option("--rows", min=1, help="With --unit: the most rows of a group that count.")
    ] = None
    dependence: Annotated[
        str | None,
        option(
            "--dependence D",
            help=(
                "With a group: the most by which a related row's contribution to any answer asked moves, as a fraction "
                "of all it could; a bound on its values alone does not do for COUNT with WHERE. Default: fully."
            ),
        ),
    ] = None

    def in_(self, schema: Schema) -> Unit:
        """The unit of protection: as asked, else as the schema declares."""
        from velado.query.budget import exact
        from velado.query.unit import Unit

        share = None if self.dependence is None else exact(self.dependence)
        if self.unit is None and self.rows is None:
            found = Unit.declared(schema)
            return found if share is None else Unit(found.column, found.rows, share)
        if self.unit is None or (self.unit == RECORD) != (self.rows is None):
            raise ParameterError(
                "--unit and --rows do not fit together.",
                "A group needs its column and the most rows that count; one record needs neither.",
                "Write for example --unit household --rows 10, or --unit record.",
            )
        return Unit(None, 1, share) if self.unit == RECORD else Unit(self.unit, int(self.rows or 1), share)


@dataclass(frozen=True, kw_only=True)
class AsInThePaper:
    """The approaches of the source on correlated records, which promise nothing."""

    paper: Annotated[
        str | None,
        option("--paper NAME", help="As in the source, without any promise: baseline, dbscan, gmm, gmm-rfe."),
    ] = None
    scale_parameter: Annotated[
        float, option("--scale-parameter", help="With --paper: the epsilon of the source.")
    ] = 1.0
    eps: Annotated[float | None, option("--eps", help="With --paper dbscan: how near.")] = None
    components: Annotated[
        int | None,
        option("--components", help="With --paper gmm or gmm-rfe: Gaussians; default: BIC chooses."),
    ] = None
    keep: Annotated[int | None, option("--keep", help="With --paper gmm-rfe: columns kept.")] = None
    target: Annotated[
        str | None,
        option(
            "--target COLUMN",
            help="With --paper: the column records are not compared by, and gmm-rfe's target.",
        ),
    ] = None
    show_unprotected: Annotated[
        bool, option("--show-unprotected", help="With --paper: show answers that get no noise.")
    ] = False
    seed: Annotated[int, option("--seed", help="With --paper: makes the run repeatable.")] = 0


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the rows are."""

    engine: Annotated[str, option("--engine duckdb|URL", help="DuckDB, or a PostgreSQL address.")] = "duckdb"
    relation: Annotated[str | None, option("--relation NAME", help="The table's name in SQL.")] = None

    @property
    def remote(self) -> bool:
        """Whether the rows are in a database."""
        return self.engine != "duckdb"


@command("query")
def query(
    file: flags.File,
    sql: Annotated[
        str | None, argument("[SQL]", help="The question: one SELECT in the accepted subset of SQL.")
    ] = None,
    *,
    schema: flags.MaybeSchema = None,
    price: Price,
    protected: Protected,
    extremes: Annotated[
        Literal["quantile", "bound"],
        option(
            "--extremes",
            click_type=OneOf("quantile", "bound"),
            help="MIN and MAX: the private 1% and 99% quantiles, or the declared bounds (no row is looked at).",
        ),
    ] = "quantile",
    confidence: Annotated[float, option("--confidence", help="Confidence of the intervals.")] = 0.95,
    source: Source,
    paper: AsInThePaper,
    output: Annotated[
        Path | None, option("--output -o FILE", help="Write the answer: .csv, .parquet or .json.")
    ] = None,
) -> None:
    """Ask COUNT, SUM, AVG, MIN, MAX, quantiles or a histogram; get a private answer.

    The question is paid from the file's ledger before a row is looked at. Asked again with the same spend, it returns the
    same numbers for nothing.
    With a PostgreSQL address as --engine, give the SQL alone, and --relation and --ledger.
    """
    if source.remote and sql is None:
        sql, file = str(file), Path(source.relation or "")
    _refuse_settings(sql, schema, source, price.ledger, output)
    assert sql is not None and schema is not None
    if paper.paper is not None:
        promised = (price.epsilon, price.rho, price.budget, output)
        if any(one is not None for one in promised) or price.price or source.remote:
            raise ParameterError(
                "--paper goes with none of --epsilon, --rho, --budget, --price, --engine and --output.",
                "The source's answers promise nothing, so nothing of the budget can be spent on them.",
                "Give --scale-parameter instead of --epsilon, and leave the others out.",
            )
        _answer_as_in_the_paper(sql, file, schema, paper, price.ledger)
        return
    with show.waiting():
        from velado.data.io import read_schema
        from velado.query.plan import plan
        from velado.query.session import (
            Session,
            analyst_name,
            check_unit_column,
            confidence_level,
            table_name,
        )
        from velado.query.sql import parse

        declared = read_schema(schema)
        asked = price.asked()
        unit = protected.in_(declared)
        name = source.relation or table_name(file.name)
        total = price.total(asked)
        # All of this is public metadata: what is wrong with it is said before a ledger is made or a row is read.
        check_unit_column(unit, declared)
        sure = confidence_level(confidence)
        analyst_name(price.analyst)
        made = plan(parse(sql, declared, name), declared, unit, asked.measure, asked.total, extremes)
        if not price.price:
            with closing(_engine(file, declared, unit, source, name)) as engine:
                account = _account(file, asked, total, price, source, name)
                with closing(account.ledger):
                    held = _same_measure(account, asked)
                    session = Session(
                        engine,
                        unit,
                        account.ledger,
                        schema=declared,
                        name=name,
                        analyst=price.analyst,
                        extremes=extremes,
                    )
                    answer = session.answer(sql, spend=asked.total, confidence=confidence)
            notes = [*_account_notes(account, held, total), _receipt(account, answer)]
    if price.price:
        told = made.to_dict(sure)
        show.result(told, _priced(told, asked))
        return
    if output is not None:
        _write(output, answer)
        notes.append(say("Written to {path}.", path=output))
    show.result(answer.to_dict, _answered(answer, notes, declared, asked.delta))


def _refuse_settings(
    sql: str | None, schema: Path | None, source: Source, ledger: str | None, output: Path | None
) -> None:
    """Everything that can be wrong is said before anything is paid for."""
    if sql is None:
        raise ParameterError(
            "No question was given.",
            "A query is one SELECT in the accepted subset of SQL.",
            'Write for example velado query patients.csv --schema schema.toml --epsilon 0.5 "SELECT COUNT(*) FROM patients".',
        )
    if schema is None:
        raise ParameterError(
            "No schema was given.",
            "Bounds, domains and who is protected are declared there and never read off the rows.",
            "Pass --schema FILE; `velado inspect` writes a first version.",
        )
    if source.remote and not source.engine.startswith(("postgresql://", "postgres://")):
        raise ParameterError(
            "--engine takes 'duckdb' or an address that begins with postgresql://.",
            "No other engine is known.",
            "Leave it out for files.",
        )
    if source.remote and (source.relation is None or ledger is None):
        raise ParameterError(
            "With a PostgreSQL engine --relation and --ledger are needed.",
            "There is no file to name the table or to keep the ledger beside.",
            "Name the table and a ledger, for example --relation admissions --ledger admissions.ledger.",
        )
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise ParameterError(
            "The answer is written as .csv, .parquet or .json.",
            "The ending of --output says which.",
            "Choose one of the three.",
        )
    flags.refuse_file(
        output, say("It would be overwritten, and the question would be paid before that is known.")
    )


def _engine(file: Path, schema: Schema, unit: Unit, source: Source, name: str) -> Any:
    from velado.data.io import read_table
    from velado.query.engines import engine_for_file, engine_for_postgres, engine_for_table

    if source.remote:
        return engine_for_postgres(source.engine, name, schema, unit)
    if file.suffix.lower() in SCANNED:
        return engine_for_file(file, schema, unit)
    return engine_for_table(read_table(file, schema), unit)


def _account(
    file: Path, asked: Budget, total: Budget | None, price: Price, source: Source, name: str
) -> FileLedger:
    from velado.query.store import TableIdentity, account_of

    table = TableIdentity.of_relation(source.engine, name) if source.remote else None
    return account_of(file, asked, where=price.ledger, seal=price.seal, budget=total, table=table)


def _same_measure(account: FileLedger, asked: Budget) -> Budget:
    """The ledger's budget, if it counts in what the question was priced in."""
    held = account.ledger.state().budget
    if held.measure != asked.measure:
        raise ParameterError(
            say(
                "The ledger counts in {held}, the question was priced in {asked}.",
                held=held.measure,
                asked=asked.measure,
            ),
            "The two measures cannot be added.",
            say("Ask with --{measure}.", measure=held.measure),
        )
    return held


def _account_notes(account: FileLedger, held: Budget, total: Budget | None) -> Iterator[str]:
    """What is to be said about the ledger of an answer."""
    where = _without_password(account.where)
    if account.made:
        yield say(
            "A ledger was made at {path} with a budget of {measure} {budget} for all questions about this file.",
            path=where,
            measure=held.measure,
            budget=amount(held.total),
        )
        if account.only_this:
            yield say(
                "No --budget was given, so it holds this one question and is used up. To allow more: velado ledger "
                "raise {path} --help",
                path=where,
            )
    elif total is not None and total.total != held.total:
        yield say(
            "--budget was not applied: the ledger exists already. Change its total with velado ledger raise."
        )


def _receipt(account: FileLedger, answer: Answer) -> str:
    where = _without_password(account.where)
    return say("Ledger: {path}; receipt {receipt}", path=where, receipt=answer.receipt)


def _without_password(where: str) -> str:
    return where.split("://", 1)[0] + "://..." if "://" in where else where


def _write(path: Path, answer: Answer) -> None:
    from velado.data.staging import csv_bytes, parquet_bytes, write_file

    ending = path.suffix.lower()
    if ending == ".json":
        write_file(path, (answer.to_json(indent=2) + "\n").encode())
    else:
        write_file(path, csv_bytes(answer.frame) if ending == ".csv" else parquet_bytes(answer.frame))


# An answer, and the price of a question, as the command line shows them.


def _answered(
    answer: Answer, notes: Sequence[str], schema: Schema, delta: Fraction | None
) -> Iterator[str | show.Note | Table]:
    """The numbers and how they are to be read, then promise, cost, what the ledger has to say, and any warning."""
    yield _numbers(answer)
    promise, cost = answer.guarantee.to_dict(), answer.cost.to_dict()
    yield from _readings(answer)
    measure = cost["measure"]
    parts = {
        "type": say("guaranteed")
        if promise["type"] == "guaranteed"
        else say("guaranteed if the declared dependence holds"),
        "cost": amount(promise[measure]),
        "unit": _unit_text(promise),
    }
    if measure == "rho":
        yield say(
            "Promise ({type}): zero-concentrated differential privacy with rho {cost} for {unit}.", **parts
        )
        yield from _implied(promise, delta)
    else:
        yield say("Promise ({type}): differential privacy with epsilon {cost} for {unit}.", **parts)
    left = {"left": amount(cost["left"]), "budget": amount(cost["budget"])}
    if answer.stored:
        yield say(
            "Cost: nothing; asked before, these are the same numbers. Left: {left} of {budget}.", **left
        )
    else:
        spent = amount(cost["spent"])
        yield say("Cost: {measure} {cost}. Left: {left} of {budget}.", measure=measure, cost=spent, **left)
    yield from notes
    declared = schema.group or schema.person
    if promise.get("warnings") and declared is not None:
        yield show.warning(
            say(
                "The schema groups rows by '{column}', but the promise is about another unit: all rows of one "
                "'{column}' together are not covered.",
                column=declared.name,
            )
        )


def _numbers(answer: Answer) -> Table:
    """One column for each value and its ends or, where that is wider than the terminal, one line for each value."""
    frame, values = answer.frame, answer.how.values
    # A quantile has no interval: two columns of nothing would only ask what they mean.
    ends = [f"{name}_{end}" for name in values for end in ("low", "high")]
    frame = frame.drop([name for name in ends if frame[name].null_count() == frame.height])
    head: list[str] = frame.columns
    rows = [[_cell(cell) for cell in row] for row in frame.iter_rows()]
    wide = sum(max(len(line[at]) for line in (head, *rows)) + GAP for at in range(len(head)))
    if wide > (shutil.get_terminal_size().columns if sys.stdout.isatty() else show.NARROW):
        keys = [name for name in head if name not in (*values, *ends)]
        rows = [
            [_cell(row[key]) for key in keys]
            + [value, *(_cell(row.get(f"{value}{end}")) for end in ("", "_low", "_high"))]
            for row in frame.iter_rows(named=True)
            for value in values
        ]
        head = [*keys, say("name"), say("value"), say("from"), say("to")]
    return show.table(say("Answer"), head, rows)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _readings(answer: Answer) -> Iterator[str]:
    """What each value is; an interval is explained where there is one, a rank where there is none."""
    values, promise = answer.how.plan["values"], answer.guarantee.to_dict()
    for value in values:
        if value["answered_as"] == "bound":
            yield _bound(value)
        elif value["answered_as"] == "quantile":
            yield say("{reading} {rank}", reading=_quantile(value), rank=_rank(value))
    if any(value["answered_as"] == "number" for value in values):
        yield say(
            "Each interval holds the exact value over {rows}, with numbers moved to their declared bounds and steps, "
            "with a chance of at least {confidence}; it is about the noise alone.",
            rows=say("every row")
            if promise["mode"] == "strict"
            else say(
                "the rows that count (at most {rows} with one value of '{column}')",
                rows=promise["most_rows"],
                column=promise["column"],
            ),
            confidence=_level(answer.how.confidence),
        )


def _bound(value: Mapping[str, Any]) -> str:
    return say(
        "{name} is the declared bound of '{column}'; no rows were looked at.",
        name=value["name"],
        column=value["column"],
    )


def _quantile(value: Mapping[str, Any]) -> str:
    level = _level(value["level"])
    if value["asked"] not in ("min", "max"):
        return say("{name}: the {level} quantile.", name=value["name"], level=level)
    return say(
        "{name}: {asked} is answered as the {level} quantile.",
        name=value["name"],
        asked=value["asked"].upper(),
        level=level,
    )


def _rank(value: Mapping[str, Any]) -> str:
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


def _implied(promise: Mapping[str, Any], delta: Fraction | None) -> Iterator[str]:
    """What rho means as an epsilon, at the delta of the question or else of the ledger."""
    from velado.query.budget import epsilon_of, exact

    if delta is None and "implies" not in promise:
        return
    at = exact(promise["implies"]["delta"]) if delta is None else delta
    one, whole = (epsilon_of(Fraction(rho), at) for rho in (promise["rho"], promise["budget"]["total"]))
    yield say(
        "At delta {delta} this answer alone implies an epsilon of {epsilon}, the whole budget one of {total}.",
        delta=f"{float(at):g}",
        epsilon=amount(one),
        total=amount(whole),
    )


def _unit_text(promise: Mapping[str, Any]) -> Sentence:
    if promise["mode"] == "strict":
        return say("one record, if rows tell nothing of one another")
    if "dependence" in promise:
        return say(
            "one record with its group by '{column}', up to the declared dependence {dependence}",
            column=promise["column"],
            dependence=promise["dependence"],
        )
    return say(
        "all rows with one value of '{column}' (at most {rows} count), however they depend on each other",
        column=promise["column"],
        rows=promise["most_rows"],
    )


def _priced(told: Mapping[str, Any], asked: Budget) -> Iterator[str | Table]:
    """Every draw with its noise and cost, and their sum beside what was asked for."""
    yield from (_bound(value) for value in told["values"] if value["answered_as"] == "bound")
    draws = told["draws"]
    if not draws:
        yield say("Nothing is drawn: the answer is made of declared bounds and costs nothing.")
        return
    ranks = [draw["rank_error"] for draw in draws if "rank_error" in draw]
    yield show.table(
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
    yield say(
        "In all: {measure} {cost} of the {asked} asked for.",
        measure=told["measure"],
        cost=amount(told["charge"]),
        asked=amount(asked.total),
    )


def _price_row(draw: Mapping[str, Any], with_rank: bool) -> list[str]:
    """A quantile's scores have a scale too, but what it means to a person is the rank it may miss by."""
    size, off = draw.get("in_values", draw), draw.get("rank_error")
    noise = ["-", "-"] if off else [number(size["sensitivity"]), number(size["scale"])]
    rank = say("{rows:,} rows", rows=math.ceil(off["rows"])) if off else "-"
    return [_drawn(draw), draw["mechanism"], *noise, *([rank] if with_rank else []), amount(draw["charge"])]


def _drawn(draw: Mapping[str, Any]) -> str:
    what, column = draw["what"], draw["column"]
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


def _answer_as_in_the_paper(
    sql: str, file: Path, schema: Path, asked: AsInThePaper, ledger: str | None
) -> None:
    """Fit the approach, answer, and print the value, its scale and the promise: none."""
    with show.waiting():
        from velado.data.io import read_schema, read_table
        from velado.papers.correlated.approaches import APPROACHES
        from velado.papers.correlated.correlated_answer import paper_answer
        from velado.query.session import table_name
        from velado.query.sql import parse
        from velado.query.store import has_ledger
        from velado.randomness import seeded
        from velado.settings import Where, part_of

        declared = read_schema(schema)
        own = {name: getattr(asked, name) for name in ("eps", "components", "keep")}
        given = {name: value for name, value in own.items() if value is not None}
        chosen = part_of(APPROACHES, {"name": asked.paper, **given}, Where("flag"), "approach")
        try:
            result = paper_answer(
                read_table(file, declared),
                parse(sql, declared, table_name(file.name)),
                chosen,
                asked.scale_parameter,
                seeded(asked.seed, "paper"),
                has_ledger=ledger is not None or has_ledger(file),
                target=asked.target,
                show_unprotected=asked.show_unprotected,
            )
        except QueryRefused as error:
            # The library names its argument; whoever is at the shell has a flag.
            fix = error.fix.replace("show_unprotected", "--show-unprotected")
            raise QueryRefused(error.what, error.why, fix) from None
    show.result(
        result.to_dict,
        [
            show.table(
                say("As in the source: {approach}", approach=asked.paper),
                [say("aggregate"), say("answer"), say("scale")],
                [
                    [name, f"{value:.6g}", f"{result.scales[name]:.6g}"]
                    for name, value in result.values.items()
                ],
            ),
            say(
                "Promise: none. The noise is scaled to a sensitivity computed from the private rows, so the answer and "
                "its scale tell of them. Reproduced for science; never for people's data."
            ),
        ],
    )
