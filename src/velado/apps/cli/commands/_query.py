"""`velado query`: one question about a file that is not handed out, answered with noise and accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli import show as answers
from velado.apps.cli.commands._query_paper import answer_as_in_the_paper
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import OutputError, ParameterError

RECORD = "record"
ENDINGS = (".csv", ".parquet", ".json")
SCANNED = (".csv", ".parquet", ".pq")


def query(
    file: flags.File,
    sql: Annotated[str | None, typer.Argument(metavar="[SQL]", show_default=False)] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", "-e", metavar="E", help="The most this question may cost.", show_default=False
        ),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(
            "--rho", metavar="R", help="The same in zCDP's rho, instead of --epsilon.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta", metavar="D", help="With --rho: at which delta epsilon is told.", show_default=False
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="COLUMN|record",
            help="Who is protected: all rows of one value of a column, or one record; default: as the schema declares.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", min=1, help="With --unit: the most rows of a group that count.", show_default=False
        ),
    ] = None,
    dependence: Annotated[
        str | None,
        typer.Option(
            "--dependence",
            metavar="D",
            help=(
                "With a group: the most by which a related row's contribution to any answer asked moves, as a fraction "
                "of all it could; a bound on its values alone does not do for COUNT with WHERE. Default: fully."
            ),
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="E",
            help="Total for all questions about this file, when its ledger is made; default: this question alone.",
            show_default=False,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="PATH|URL", help="The ledger; default: FILE.ledger.", show_default=False
        ),
    ] = None,
    seal: Annotated[
        Path | None, typer.Option("--seal", metavar="PATH", help="The ledger's seal.", show_default=False)
    ] = None,
    analyst: Annotated[str, typer.Option("--analyst", metavar="NAME", help="Who asks.")] = "owner",
    extremes: Annotated[
        str,
        typer.Option(
            "--extremes",
            metavar="quantile|bound",
            help="MIN and MAX: the private 1% and 99% quantiles, or the declared bounds (no row is looked at).",
        ),
    ] = "quantile",
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence of the intervals.")] = 0.95,
    engine: Annotated[
        str, typer.Option("--engine", metavar="duckdb|URL", help="DuckDB, or a PostgreSQL address.")
    ] = "duckdb",
    relation: Annotated[
        str | None,
        typer.Option("--relation", metavar="NAME", help="The table's name in SQL.", show_default=False),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            "--paper",
            metavar="NAME",
            help="As in the source, without any promise: baseline, dbscan, gmm, gmm-rfe.",
            show_default=False,
        ),
    ] = None,
    scale_parameter: Annotated[
        float, typer.Option("--scale-parameter", help="With --paper: the epsilon of the source.")
    ] = 1.0,
    eps: Annotated[
        float | None, typer.Option("--eps", help="With --paper dbscan: how near.", show_default=False)
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            help="With --paper gmm or gmm-rfe: Gaussians; default: BIC chooses.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", help="With --paper gmm-rfe: columns kept.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="With --paper: the column records are not compared by, and gmm-rfe's target.",
            show_default=False,
        ),
    ] = None,
    show_unprotected: Annotated[
        bool, typer.Option("--show-unprotected", help="With --paper: show answers that get no noise.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="With --paper: makes the run repeatable.")] = 0,
    price: Annotated[bool, typer.Option("--price", help="Say what it would cost, and ask nothing.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the answer: .csv, .parquet or .json.",
            show_default=False,
        ),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Ask COUNT, SUM, AVG, MIN, MAX, quantiles or a histogram; get a private answer.

    The question is paid from the file's ledger before a row is looked at. Asked again with the same spend, it returns the
    same numbers for nothing.
    With a PostgreSQL address as --engine, give the SQL alone, and --relation and --ledger.
    """
    tongue = flags.language(lang)
    remote = engine != "duckdb"
    if remote and sql is None:
        sql, file = str(file), Path(relation or "")
    _refuse_settings(sql, schema, engine, relation, ledger, output)
    assert sql is not None and schema is not None
    if paper is not None:
        _refuse_promises(epsilon, rho, budget, price, remote or output is not None)
        settings = {"eps": eps, "components": components, "keep": keep}
        answer_as_in_the_paper(
            sql,
            file,
            schema,
            {"name": paper, **{name: value for name, value in settings.items() if value is not None}},
            scale_parameter=scale_parameter,
            target=target,
            seed=seed,
            show_unprotected=show_unprotected,
            accounted=ledger is not None,
            quiet=quiet,
            as_json=as_json,
            tongue=tongue,
        )
        return
    with waiting(tongue, quiet or as_json):
        from velado.data.io import read_schema
        from velado.query.plan import Extremes, plan
        from velado.query.session import analyst_name, check_unit_column, confidence_level, table_name
        from velado.query.sql import parse

        declared = read_schema(schema)
        how: Any = flags.one_of(extremes, get_args(Extremes), "--extremes")
        asked = _budget(epsilon, rho, delta)
        who = _unit(declared, unit, rows, dependence)
        name = relation or table_name(file.name)
        total = _total(budget, asked)
        # All of this is public metadata: what is wrong with it is said before a ledger is made or a row is read.
        check_unit_column(who, declared)
        sure = confidence_level(confidence)
        analyst_name(analyst)
        made = plan(parse(sql, declared, name), declared, who, asked.measure, asked.total, how)
        if not price:
            result, notes = _ask(
                sql, file, declared, who, asked, total, ledger, seal, engine, name,
                {"analyst": analyst, "extremes": how}, confidence, tongue,
            )  # fmt: skip
    if price:
        answers.show_price(made.to_dict(sure), asked, tongue, as_json)
        return
    if output is not None:
        _write(output, result)
    if as_json:
        show.as_json(result.to_dict())
    elif not quiet:
        answers.show_answer(result, notes, declared, tongue, asked.delta)
        if output is not None:
            show.line(say(tongue, "query_written", path=output))


def _refuse_settings(
    sql: str | None,
    schema: Path | None,
    engine: str,
    relation: str | None,
    ledger: str | None,
    output: Path | None,
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
    if engine != "duckdb" and not engine.startswith(("postgresql://", "postgres://")):
        raise ParameterError(
            "--engine takes 'duckdb' or an address that begins with postgresql://.",
            "No other engine is known.",
            "Leave it out for files.",
        )
    if engine != "duckdb" and (relation is None or ledger is None):
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
    if output is not None and output.exists():
        raise OutputError(
            f"'{output.name}' exists already.",
            "It would be overwritten, and the question would be paid before that is known.",
            "Choose another name.",
        )


def _budget(epsilon: str | None, rho: str | None, delta: str | None) -> Any:
    from velado.query.budget import Budget

    if (epsilon is None) == (rho is None) or (delta is not None and rho is None):
        raise ParameterError(
            "A question is asked with either --epsilon, or --rho (and, if you like, --delta).",
            "It is the most this question may cost.",
            "Write for example --epsilon 0.5.",
        )
    return Budget.rho(rho, delta) if rho is not None else Budget.epsilon(str(epsilon))


def _total(budget: str | None, asked: Any) -> Any:
    from velado.query.budget import Budget, exact

    if budget is None:
        return None
    total = Budget(asked.measure, exact(budget), asked.delta)
    if total.total < asked.total:
        raise ParameterError(
            "--budget is less than what this question may cost.",
            "The ledger would be made and the question refused.",
            "Lower --epsilon or --rho, or raise --budget.",
        )
    return total


def _refuse_promises(
    epsilon: str | None, rho: str | None, budget: str | None, price: bool, more: bool
) -> None:
    if epsilon is not None or rho is not None or budget is not None or price or more:
        raise ParameterError(
            "--paper goes with none of --epsilon, --rho, --budget, --price, --engine and --output.",
            "The source's answers promise nothing, so nothing of the budget can be spent on them.",
            "Give --scale-parameter instead of --epsilon, and leave the others out.",
        )


def _unit(schema: Any, column: str | None, rows: int | None, dependence: str | None = None) -> Any:
    from velado.query.budget import exact
    from velado.query.unit import Unit

    share = None if dependence is None else exact(dependence)
    if column is None and rows is None:
        found = Unit.declared(schema)
        return found if share is None else Unit(found.column, found.rows, share)
    if column is None or (column == RECORD) != (rows is None):
        raise ParameterError(
            "--unit and --rows do not fit together.",
            "A group needs its column and the most rows that count; one record needs neither.",
            "Write for example --unit household --rows 10, or --unit record.",
        )
    return Unit(None, 1, share) if column == RECORD else Unit(column, int(rows or 1), share)


def _ask(
    sql: str,
    file: Path,
    schema: Any,
    unit: Any,
    asked: Any,
    total: Any,
    where: str | None,
    seal: Path | None,
    address: str,
    name: str,
    settings: Mapping[str, Any],
    confidence: float,
    tongue: str,
) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    """The answer, and what is to be said about its ledger."""
    from velado.data.io import read_table
    from velado.query.engines import engine_for_file, engine_for_postgres, engine_for_table
    from velado.query.session import Session
    from velado.query.store import TableIdentity, account_of

    if address != "duckdb":
        engine = engine_for_postgres(address, name, schema, unit)
    elif file.suffix.lower() in SCANNED:
        engine = engine_for_file(file, schema, unit)
    else:
        engine = engine_for_table(read_table(file, schema), unit)
    table = TableIdentity.of_relation(address, name) if address != "duckdb" else None
    account = account_of(file, asked, where=where, seal=seal, budget=total, table=table)
    try:
        held = account.ledger.state().budget
        if held.measure != asked.measure:
            raise ParameterError(
                f"The ledger counts in {held.measure}, the question was priced in {asked.measure}.",
                "The two measures cannot be added.",
                f"Ask with --{held.measure}.",
            )
        session = Session(engine, unit, account.ledger, schema=schema, name=name, **settings)
        answer = session.answer(sql, spend=asked.total, confidence=confidence)
    finally:
        account.ledger.close()
        engine.close()
    where = _without_password(account.where)
    notes: list[tuple[str, dict[str, Any]]] = []
    if account.made:
        told = {"path": where, "measure": held.measure, "budget": answers.amount(held.total, tongue)}
        notes.append(("query_ledger_made", told))
        if account.only_this:
            notes.append(("query_ledger_used_up", {"path": where}))
    elif total is not None and total.total != held.total:
        notes.append(("query_budget_ignored", {}))
    notes.append(("query_receipt", {"path": where, "receipt": answer.receipt}))
    return answer, notes


def _without_password(where: str) -> str:
    return where.split("://", 1)[0] + "://..." if "://" in where else where


def _write(path: Path, answer: Any) -> None:
    from velado.data.staging import csv_bytes, parquet_bytes, write_file

    ending = path.suffix.lower()
    if ending == ".json":
        write_file(path, (answer.to_json(indent=2) + "\n").encode())
    else:
        write_file(path, csv_bytes(answer.frame) if ending == ".csv" else parquet_bytes(answer.frame))
