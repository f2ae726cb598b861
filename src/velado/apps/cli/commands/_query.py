"""`velado query`: one question about a file that is not handed out, answered with noise and accounted for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OfSetting, OneOf, argument, command, option
from velado.errors import ParameterError, QueryRefused
from velado.text import say, written

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.papers.correlated.approaches import Approach
    from velado.query.answer import Answer
    from velado.query.budget import Budget, Measure
    from velado.query.store import FileLedger
    from velado.query.unit import Unit

RECORD = "record"
ENDINGS = (".csv", ".parquet", ".json")
SCANNED = (".csv", ".parquet", ".pq")


@dataclass(frozen=True, kw_only=True)
class PriceFlags:
    """How exact an answer is to be or what it may cost, and of which account."""

    within: Annotated[
        str | None,
        option(
            "--within N|N%",
            help=(
                "How exact: the least spend is found with which each value is off by no more (95%, or --confidence). A "
                "number in the value's own unit, or a percentage of all it can be."
            ),
        ),
    ] = None
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
    ledger: Annotated[
        str | None,
        option(
            "--ledger PATH|URL",
            help="The ledger; default: as [dataset] of the schema says, else FILE.ledger.",
        ),
    ] = None
    seal: flags.SealFile = None
    analyst: Annotated[str, option("--analyst NAME", help="Who asks.")] = "owner"
    price: Annotated[bool, option("--price", help="Say what it would cost, and ask nothing.")] = False

    def allowed(self, usual: Callable[[Measure], Fraction] | None) -> Budget | None:
        """What this question may cost, or as much as the table's size suggests; None where its accuracy alone decides."""
        from velado.query.budget import Budget, spend_of
        from velado.settings import Where

        both = self.epsilon is not None and self.rho is not None
        none = self.epsilon is None and self.rho is None
        if both or (self.delta is not None and self.rho is None):
            raise ParameterError(
                "A question is asked with either --epsilon, or --rho (and, if you like, --delta).",
                "It is the most this question may cost.",
                "Write for example --epsilon 0.5.",
            )
        if none and self.within is not None:
            return None
        if none and usual is not None:
            return Budget.epsilon(usual("epsilon"))
        if none:
            raise ParameterError(
                "It was not said how exact the answer is to be, nor what it may cost.",
                "Both are yours to decide: the more exact, the more of the budget it takes.",
                "Write for example --within 10, --within 5% (with rows = N in [dataset] of the schema), or --epsilon 0.5.",
            )
        if self.rho is None:
            return Budget.epsilon(spend_of(self.epsilon, "epsilon", Where("flag")))
        return Budget.rho(spend_of(self.rho, "rho", Where("flag")), self.delta)

    def total(self, asked: Budget) -> Budget | None:
        """What all questions together may cost, if that was said."""
        from velado.query.budget import Budget, spend_of
        from velado.settings import Where

        if self.budget is None:
            return None
        total = Budget(asked.measure, spend_of(self.budget, "budget", Where("flag")), asked.delta)
        if total.total < asked.total:
            raise ParameterError(
                "--budget is less than what this question may cost.",
                "The ledger would be made and the question refused.",
                "Lower --epsilon or --rho, or raise --budget.",
            )
        return total


@dataclass(frozen=True, kw_only=True)
class ProtectedFlags:
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
class PaperFlags:
    """The approaches of the source on correlated records, which promise nothing."""

    paper: Annotated[
        str | None,
        option("--paper NAME", help="As in the source, without any promise: baseline, dbscan, gmm, gmm-rfe."),
    ] = None
    scale_parameter: Annotated[
        float, option("--scale-parameter", help="With --paper: the epsilon of the source.")
    ] = 1.0
    eps: Annotated[float | None, option("--eps", help="With --paper dbscan: how near.")] = None
    min_points: Annotated[
        int | None,
        option(
            "--min-points",
            help="With --paper dbscan: neighbours of a core point, itself included (minPoints).",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        option(
            "--threshold",
            help="With --paper baseline or dbscan: correlations at or below it count as 0 (delta_0 of the source).",
        ),
    ] = None
    coefficient: Annotated[
        str | None,
        option(
            "--coefficient NAME", help="With --paper baseline, dbscan or gmm: spearman (default) or pearson."
        ),
    ] = None
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
    impute: Annotated[
        list[str] | None,
        option(
            "--impute COLUMN[:WAY]",
            help="With --paper: fill the column's blanks first, by median, mean, most-frequent or neighbours.",
        ),
    ] = None
    show_unprotected: Annotated[
        bool, option("--show-unprotected", help="With --paper: show answers that get no noise.")
    ] = False
    seed: Annotated[int, option("--seed", help="With --paper: makes the run repeatable.")] = 0

    def refuse_alone(self) -> None:
        """Refuse a flag of the source's approaches where none of them was asked for."""
        for one in fields(self):
            if self.paper is None and getattr(self, one.name) != one.default:
                raise ParameterError(
                    say("{flag} needs --paper.", flag=_flag(one.name)),
                    "It is a setting of the source's approaches; a private answer does not have it.",
                    "Leave it out, or name the approach, for example --paper dbscan.",
                )


@dataclass(frozen=True, kw_only=True)
class SourceFlags:
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
    price: PriceFlags,
    protected: ProtectedFlags,
    extremes: Annotated[
        Literal["quantile", "bound"],
        option(
            "--extremes",
            click_type=OneOf("quantile", "bound"),
            help="MIN and MAX: the private 1% and 99% quantiles, or the declared bounds (no row is looked at).",
        ),
    ] = "quantile",
    confidence: Annotated[
        float,
        option(
            "--confidence",
            click_type=OfSetting("velado.query.session:Confidence", "NUMBER"),
            help="Confidence of the intervals.",
        ),
    ] = 0.95,
    source: SourceFlags,
    paper: PaperFlags,
    output: Annotated[
        Path | None, option("--output -o FILE", help="Write the answer: .csv, .parquet or .json.")
    ] = None,
) -> None:
    """Ask COUNT, SUM, AVG, MIN, MAX, quantiles or a histogram; get a private answer.

    Say how exact the answer is to be (--within), or what it may cost. The question is paid from the file's ledger before a
    row is looked at. Asked again with the same accuracy or spend, it returns the same numbers for nothing.
    With a PostgreSQL address as --engine, give the SQL alone, and --relation and --ledger.
    """
    if source.remote and sql is None:
        sql, file = str(file), Path(source.relation or "")
    _refuse_settings(sql, schema, source, output)
    assert sql is not None and schema is not None
    if paper.paper is None and paper.impute:
        raise ParameterError(
            "--impute goes with --paper alone.",
            "Values made from other rows would carry those rows into answers that are to protect them.",
            "Leave it out: blanks are not counted in a private answer.",
        )
    paper.refuse_alone()
    if paper.paper is not None:
        promised = (price.epsilon, price.rho, price.within, price.budget, output)
        if any(one is not None for one in promised) or price.price or source.remote:
            raise ParameterError(
                "--paper goes with none of --within, --epsilon, --rho, --budget, --price, --engine and --output.",
                "The source's answers promise nothing, so nothing of the budget can be spent on them.",
                "Give --scale-parameter instead of --epsilon, and leave the others out.",
            )
        _answer_as_in_the_paper(sql, file, schema, paper, price.ledger)
        return
    with show.waiting():
        from velado.data.io import read_schema
        from velado.query.accuracy import Wish, check_least, check_most, suggested_spend
        from velado.query.budget import LEAST, Budget
        from velado.query.plan import plan, plan_within
        from velado.query.session import (
            Session,
            analyst_name,
            check_unit_column,
            confidence_level,
            table_name,
        )
        from velado.query.sql import parse
        from velado.query.store import account_of
        from velado.settings import Where

        declared = read_schema(schema)
        ledger = price.ledger or declared.dataset.ledger_file
        if source.remote and (source.relation is None or ledger is None):
            raise ParameterError(
                "With a PostgreSQL engine --relation and --ledger are needed.",
                "There is no file to name the table or to keep the ledger beside.",
                "Name the table and a ledger, for example --relation admissions --ledger admissions.ledger.",
            )
        unit = protected.in_(declared)
        name = source.relation or table_name(file.name)
        # All of this is public metadata: what is wrong with it is said before a ledger is made or a row is read.
        check_unit_column(unit, declared)
        sure = confidence_level(confidence)
        analyst_name(price.analyst)
        rows = declared.dataset.rows
        usual = None if rows is None else partial(suggested_spend, unit, rows)
        allowed = price.allowed(usual)
        question = parse(sql, declared, name)
        if price.within is None:
            assert allowed is not None
            asked = allowed
            made = plan(question, declared, unit, asked.measure, asked.total, extremes)
            if made.draws:
                check_least(asked.total, _least(price, file, ledger), asked.measure)
        else:
            wish = Wish.of(price.within, "within", Where("flag"))
            measure = "epsilon" if allowed is None else allowed.measure
            made = plan_within(
                question, declared, unit, measure, wish, sure, extremes, least=_least(price, file, ledger)
            )
            check_most(made.charge, None if allowed is None else allowed.total, measure)
            # An answer made of declared bounds costs nothing, but an account of nothing cannot be opened.
            asked = Budget(measure, made.charge or LEAST, None if allowed is None else allowed.delta)
        total = price.total(asked)
        if not price.price:
            with closing(_engine(file, declared, unit, source, name)) as engine:
                account = account_of(
                    file, asked, where=ledger, seal=price.seal, budget=total, table=engine.identity
                )
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
                    answer = session.answer(
                        sql,
                        spend=asked.total if price.within is None else None,
                        within=price.within,
                        confidence=confidence,
                    )
            notes = [*_account_notes(account, held, total), _receipt(account, answer)]
    from velado.report.query_lines import answer_lines, price_lines, uncovered

    if price.price:
        told = made.to_dict(sure)
        lines = price_lines(told, asked)
        show.result(told, [*made.sentences(sure), *lines])
        return
    if output is not None:
        _write(output, answer)
        notes.append(say("Written to {path}.", path=output))
    warning = uncovered(answer, declared)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else show.NARROW
    warnings = [] if warning is None else [show.warning(warning)]
    show.result(answer.to_dict, [*answer_lines(answer, asked.delta, width), *notes, *warnings])


def _refuse_settings(sql: str | None, schema: Path | None, source: SourceFlags, output: Path | None) -> None:
    """Everything that can be wrong is said before anything is paid for."""
    if sql is None:
        raise ParameterError(
            "No question was given.",
            "A query is one SELECT in the accepted subset of SQL.",
            'Write for example velado query patients.csv --schema schema.toml --within 10 "SELECT COUNT(*) FROM patients".',
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
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise ParameterError(
            "The answer is written as .csv, .parquet or .json.",
            "The ending of --output says which.",
            "Choose one of the three.",
        )
    flags.refuse_file(
        output, say("It would be overwritten, and the question would be paid before that is known.")
    )


def _engine(file: Path, schema: Schema, unit: Unit, source: SourceFlags, name: str) -> Any:
    from velado.data.io import read_table
    from velado.query.engines import engine_for_file, engine_for_postgres, engine_for_table

    if source.remote:
        return engine_for_postgres(source.engine, name, schema, unit)
    if file.suffix.lower() in SCANNED:
        return engine_for_file(file, schema, unit)
    return engine_for_table(read_table(file, schema), unit)


def _least(price: PriceFlags, file: Path, ledger: str | Path | None) -> Fraction:
    """The least a question spends of the budget that is there or is asked for; nothing where it is this question's alone."""
    from velado.query.accuracy import least_spend
    from velado.query.budget import spend_of
    from velado.query.store import ledger_exists, ledger_path, open_ledger
    from velado.settings import Where

    place = ledger_path(file) if ledger is None else ledger
    if ledger_exists(place, price.seal):
        with closing(open_ledger(place, price.seal)) as account:
            return least_spend(account.state().budget.total)
    if price.budget is None:
        return Fraction(0)
    return least_spend(spend_of(price.budget, "budget", Where("flag")))


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
    from velado.query.budget import measure_word
    from velado.report.query_lines import amount

    where = _without_password(account.where)
    if account.made:
        yield say(
            "A ledger was made at {path} with a budget of {measure} {budget} for all questions about this file.",
            path=where,
            measure=measure_word(held.measure),
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
    from velado.data.staging import write_file
    from velado.data.table_bytes import csv_bytes, parquet_bytes

    ending = path.suffix.lower()
    if ending == ".json":
        write_file(path, (answer.to_json(indent=2) + "\n").encode())
    else:
        write_file(path, csv_bytes(answer.frame) if ending == ".csv" else parquet_bytes(answer.frame))


# An answer, and the price of a question, as the command line shows them.


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _refuse_settings_of_others(
    paper: str | None, given: Iterable[str], approaches: Mapping[str, type[Approach]]
) -> None:
    """A setting that another approach has is refused by its flag, with the approaches that have it."""
    chosen = approaches.get(paper or "")
    for name in given:
        having = [other for other, kind in approaches.items() if name in kind.__dataclass_fields__]
        if chosen is not None and chosen.name not in having:
            raise ParameterError(
                say("{flag} does not go with --paper {paper}.", flag=_flag(name), paper=chosen.name),
                "That approach of the source has no such setting.",
                say("Leave it out; it goes with --paper {approaches}.", approaches=", ".join(having)),
            )


def _answer_as_in_the_paper(
    sql: str, file: Path, schema: Path, asked: PaperFlags, ledger: str | None
) -> None:
    """Fit the approach, answer, and print the value, its scale and the promise: none."""
    with show.waiting():
        from velado.data.io import read_schema, read_table
        from velado.papers.correlated.approaches import APPROACHES
        from velado.papers.correlated.correlated_answer import bounded_by_its_rows, paper_answer
        from velado.query.session import table_name
        from velado.query.sql import parse
        from velado.query.store import has_ledger
        from velado.randomness import seeded
        from velado.release.operations import imputation_effect, refuse_unknown
        from velado.settings import Where, part_of

        declared = read_schema(schema)
        table = read_table(file, declared)
        filled = []
        for text in asked.impute or ():
            operation = flags.operation_from("impute", text, declared)
            refuse_unknown(table, operation)
            filled.append(imputation_effect(operation, table))
            table = operation.apply(table, None)
        own = {
            name: getattr(asked, name)
            for name in ("eps", "min_points", "threshold", "coefficient", "components", "keep")
        }
        given = {name: value for name, value in own.items() if value is not None}
        _refuse_settings_of_others(asked.paper, given, {one.name: one for one in APPROACHES})
        chosen = part_of(APPROACHES, {"name": asked.paper, **given}, Where("flag"), "approach")
        try:
            result = paper_answer(
                table,
                parse(sql, bounded_by_its_rows(table), table_name(file.name)),
                chosen,
                asked.scale_parameter,
                seeded(asked.seed, "paper"),
                has_ledger=ledger is not None or has_ledger(file, declared.dataset.ledger_file, declared),
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
            *(show.warning(effect.sentence()) for effect in filled if effect.filled),
            show.table(
                say("As in the source: {approach}", approach=asked.paper),
                [say("aggregate"), say("answer"), say("scale")],
                [
                    [name, written(value, ".6g"), written(result.scales[name], ".6g")]
                    for name, value in result.values.items()
                ],
            ),
            say(
                "Promise: none. The noise is scaled to a sensitivity computed from the private rows, so the answer and "
                "its scale tell of them. Reproduced for science; never for people's data."
            ),
        ],
    )
