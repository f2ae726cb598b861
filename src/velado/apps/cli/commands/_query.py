"""`velado query`: one question about a file that is not handed out, answered with noise and accounted for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OfSetting, OneOf, argument, command, option
from velado.apps.cli.query_account import Ready
from velado.apps.cli.query_flags import PaperFlags, PriceFlags, ProtectedFlags, SourceFlags, flag_of
from velado.errors import InputError, ParameterError, QueryRefused
from velado.text import say, written

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.papers.correlated.approaches import Approach
    from velado.query.answer import Answer
    from velado.query.budget import Budget
    from velado.query.store import FileLedger
    from velado.query.unit import Unit
    from velado.query.workload.workload import WorkloadAnswer

ENDINGS = (".csv", ".parquet", ".json")
SCANNED = (".csv", ".parquet", ".pq")


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
    workload: Annotated[
        Path | None,
        option(
            "--workload FILE",
            help=(
                "Instead of SQL: a file of several COUNT and HISTOGRAM questions, each ended by a semicolon, asked together for "
                "one charge; the mean square of the noise of each is at most that of asking it alone with an equal share."
            ),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o PATH",
            help="Write the answer: .csv, .parquet or .json; of a workload: .json, or a folder with a CSV file for each question.",
        ),
    ] = None,
) -> None:
    """Ask COUNT, SUM, AVG, MIN, MAX, quantiles or a histogram; get a private answer.

    Say how exact the answer is to be (--within), or what it may cost. The question is paid from the file's ledger before a
    row is looked at. Asked again with the same accuracy or spend, it returns the same numbers for nothing.
    With a PostgreSQL address as --engine, give the SQL alone, and --relation and --ledger.
    """
    if workload is not None:
        if source.remote and source.relation is None:
            source = replace(source, relation=str(file))
        _refuse_workload(sql, schema, paper, extremes, output)
        assert schema is not None
        _answer_workload(
            file, workload, Ready.of(file, schema, price, protected, source, confidence), source, output
        )
        return
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
        from velado.query.plan import plan, plan_within
        from velado.query.session import Session
        from velado.query.sql import parse
        from velado.query.store import account_of

        ready = Ready.of(file, schema, price, protected, source, confidence)
        declared, ledger, unit, name = ready.declared, ready.ledger, ready.unit, ready.name
        sure = ready.sure
        question = parse(sql, declared, name)
        priced = ready.priced(
            lambda measure, spend: plan(question, declared, unit, measure, spend, extremes),
            lambda measure, wish, least: plan_within(
                question, declared, unit, measure, wish, sure, extremes, least=least
            ),
        )
        made, asked, total = priced.made, priced.asked, priced.total
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
    from velado.report.query_lines import answer_lines, price_lines, room_lines, uncovered

    if price.price:
        told = made.to_dict(sure)
        lines = [*price_lines(told, asked), *room_lines(made.charge, priced.account, priced.left)]
        show.result({**told, **priced.facts()}, [*made.sentences(sure), *lines])
        return
    if output is not None:
        _write(output, answer)
        notes.append(say("Written to {path}.", path=output))
    warning = uncovered(answer, declared)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else show.NARROW
    warnings = [] if warning is None else [show.warning(warning)]
    show.result(answer.to_dict, [*answer_lines(answer, asked.delta, width), *notes, *warnings])


def _answer_workload(
    file: Path, workload: Path, ready: Ready, source: SourceFlags, output: Path | None
) -> None:
    """Price the questions of a file or ask them, for one charge."""
    with show.waiting():
        from velado.query.session import Session
        from velado.query.store import account_of
        from velado.query.workload.questions import read_queries, workload_texts
        from velado.query.workload.workload import plan_workload, plan_workload_within

        price, declared, unit = ready.price, ready.declared, ready.unit
        texts = workload_texts(_text_of(workload))
        queries = read_queries(texts, declared, ready.name)
        priced = ready.priced(
            lambda measure, spend: plan_workload(queries, declared, unit, measure, spend),
            lambda measure, wish, least: plan_workload_within(
                queries, declared, unit, measure, wish, ready.sure, least=least
            ),
        )
        made, asked, total = priced.made, priced.asked, priced.total
        if not price.price:
            with closing(_engine(file, declared, unit, source, ready.name)) as engine:
                account = account_of(
                    file, asked, where=ready.ledger, seal=price.seal, budget=total, table=engine.identity
                )
                with closing(account.ledger):
                    held = _same_measure(account, asked)
                    session = Session(
                        engine,
                        unit,
                        account.ledger,
                        schema=declared,
                        name=ready.name,
                        analyst=price.analyst,
                    )
                    answer = session.workload(
                        texts,
                        spend=asked.total if price.within is None else None,
                        within=price.within,
                        confidence=ready.sure,
                    )
            notes = [*_account_notes(account, held, total), _receipt(account, answer)]
    from velado.report.query_lines import charge_line, room_lines, uncovered, workload_lines

    if price.price:
        room = room_lines(made.charge, priced.account, priced.left, together=True)
        view = [*made.sentences(ready.sure), charge_line(made.charge, asked), *room]
        show.result({**made.to_dict(ready.sure), **priced.facts()}, view)
        return
    if output is not None:
        _write_workload(output, answer)
        notes.append(say("Written to {path}.", path=output))
    warning = uncovered(answer, declared)
    warnings = [] if warning is None else [show.warning(warning)]
    lines = workload_lines(answer, asked.delta, float(ready.sure))
    show.result(answer.to_dict, [*lines, *notes, *warnings])


def _text_of(workload: Path) -> str:
    try:
        return workload.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            "The file of the workload cannot be read.",
            "It must be there, and a text in UTF-8.",
            "Check the name given with --workload.",
        ) from None


def _refuse_workload(
    sql: str | None, schema: Path | None, paper: PaperFlags, extremes: str, output: Path | None
) -> None:
    """What does not go with --workload is said before anything is paid for."""
    if sql is not None or paper.paper is not None or extremes != "quantile":
        raise ParameterError(
            "--workload goes with no SQL of its own, and with none of --paper and --extremes.",
            "The file holds the questions, and counts have no extremes.",
            "Write the questions into the file, each ended by a semicolon.",
        )
    paper.refuse_alone()
    if schema is None:
        raise _no_schema()
    if output is not None and output.suffix.lower() not in ("", ".json"):
        raise ParameterError(
            "The answers of a workload are written as one .json file, or into a folder.",
            "Each question has a table of its own.",
            "Choose a name that ends in .json, or one without an ending for a folder of CSV files.",
        )
    flags.refuse_file(
        output, say("It would be overwritten, and the questions would be paid before that is known.")
    )


def _no_schema() -> ParameterError:
    return ParameterError(
        "No schema was given.",
        "Bounds, domains and who is protected are declared there and never read off the rows.",
        "Pass --schema FILE; `velado inspect` writes a first version.",
    )


def _write_workload(path: Path, answer: WorkloadAnswer) -> None:
    """One JSON file, or a folder with question-1.csv, question-2.csv ... in the order of the questions."""
    from velado.data.staging import write_file, write_folder
    from velado.data.table_bytes import csv_bytes

    if path.suffix.lower() == ".json":
        write_file(path, (answer.to_json(indent=2) + "\n").encode())
        return
    write_folder(path, {f"question-{at}.csv": csv_bytes(one) for at, one in enumerate(answer.frames, 1)})


def _refuse_settings(sql: str | None, schema: Path | None, source: SourceFlags, output: Path | None) -> None:
    """Everything that can be wrong is said before anything is paid for."""
    if sql is None:
        raise ParameterError(
            "No question was given.",
            "A query is one SELECT in the accepted subset of SQL.",
            'Write for example velado query patients.csv --schema schema.toml --within 10 "SELECT COUNT(*) FROM patients".',
        )
    if schema is None:
        raise _no_schema()
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
    from velado.report.query_lines import amount, promise_line

    where = _without_password(account.where)
    if account.made:
        yield say(
            "A ledger was made at {path} with a budget of {measure} {budget} for all questions about this file.",
            path=where,
            measure=measure_word(held.measure),
            budget=amount(held.total),
        )
        if (promise := promise_line(held)) is not None:
            yield promise
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


def _receipt(account: FileLedger, answer: Answer | WorkloadAnswer) -> str:
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


def _refuse_settings_of_others(
    paper: str | None, given: Iterable[str], approaches: Mapping[str, type[Approach]]
) -> None:
    """A setting that another approach has is refused by its flag, with the approaches that have it."""
    chosen = approaches.get(paper or "")
    for name in given:
        having = [other for other, kind in approaches.items() if name in kind.__dataclass_fields__]
        if chosen is not None and chosen.name not in having:
            raise ParameterError(
                say("{flag} does not go with --paper {paper}.", flag=flag_of(name), paper=chosen.name),
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
