"""`velado regress`: a regression over several parties' rows with all parties in one process, to see it work before it is real."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import MissingExtra, ParameterError
from velado.text import say as say_sentence

if TYPE_CHECKING:
    from velado.learning.protocols.protocol import RegressionProtocol
    from velado.learning.regression.fit import Fit
    from velado.learning.regression.job import Job


def regress(
    file: flags.File,
    target: Annotated[
        str, typer.Option("--target", metavar="COLUMN", help="The column to explain.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of the results; it must not exist."),
    ] = Path("regression"),
    simulate: Annotated[
        int,
        typer.Option(
            "--simulate", metavar="CLIENTS", help="Deal the rows out to so many clients.", show_default=False
        ),
    ] = 0,
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="LIST",
            help="Columns to explain it by; default: all others.",
            show_default=False,
        ),
    ] = "",
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", "-s", metavar="FILE", help="Schema whose bounds are used.", show_default=False
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds",
            metavar="NAME=LOW:HIGH",
            help="Public bounds of a column; may be repeated.",
            show_default=False,
        ),
    ] = None,
    bounds_from_data: Annotated[
        bool, typer.Option("--bounds-from-data", help="Read bounds off the rows: in a simulation only.")
    ] = False,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="masked|delegated|secure-sum|paper-masked",
            help="How the parties work together.",
        ),
    ] = "masked",
    ridge: Annotated[
        str, typer.Option("--lambda", metavar="L", help="Ridge penalty; 0: least squares.")
    ] = "0",
    bits: Annotated[int, typer.Option("--bits", help="Fractional bits of the fixed point.")] = 20,
    key_bits: Annotated[int, typer.Option("--key-bits", help="Size of the Paillier key.")] = 3072,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit a constant too.")] = True,
    minimum_rows: Annotated[int, typer.Option("--minimum-rows", help="Fewest rows of a client.")] = 10,
    standard_errors: Annotated[
        bool, typer.Option("--standard-errors", help="Ask for them, where the protocol allows.")
    ] = False,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="Noise on the pooled sums: delegated, secure-sum.",
            show_default=False,
        ),
    ] = None,
    encoding: flags.Encoding = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Fit a linear model over several parties' rows without pooling them, all parties simulated here.

    Real parties run `velado party`. The folder gets fit.json (for `velado predict`), learned.json (what each party saw and
    can infer) and report.md.
    """
    tongue = flags.language(lang)
    if simulate < 1:
        raise ParameterError(
            "--simulate CLIENTS was not given.",
            "This command runs all parties in one process, which sees all rows.",
            "Write for example --simulate 10; for real parties see `velado party --help`.",
        )
    need_libraries()
    from velado.apps.cli import regression_rows as rows
    from velado.data.staging import refuse_folder, write_folder
    from velado.papers.regression.paper_masked import WITH_PAPER

    flags.one_of(protocol, tuple(WITH_PAPER), "--protocol")
    chosen = WITH_PAPER[protocol]
    if standard_errors and chosen.pooled is None:
        raise ParameterError(
            say_sentence("The protocol {protocol} gives no standard errors.", protocol=protocol),
            "They follow from the pooled sums, and this protocol does not give them out.",
            "Leave --standard-errors out, or use --protocol delegated or secure-sum.",
        )
    if epsilon is not None and bounds_from_data:
        raise ParameterError(
            "--epsilon and --bounds-from-data do not go together.",
            "Noise follows the bounds, and bounds that follow the rows tell their least and largest values without noise.",
            "Declare the bounds with --bounds or --schema.",
        )
    refuse_folder(output)
    named = rows.feature_names(features, target)
    columns = rows.number_columns(file, [*named, target] if named else None, encoding)
    if target not in columns:
        rows.number_columns(file, [target], encoding)
    settings: dict[str, Any] = {
        "ridge": rows.exact_number(ridge, "--lambda"),
        "epsilon": None if epsilon is None else rows.exact_number(epsilon, "--epsilon"),
        "bits": bits,
        "key_bits": key_bits,
        "intercept": intercept,
        "minimum_rows": minimum_rows,
        "moments": standard_errors,
    }
    limits = rows.bounds_for(columns, bounds or (), schema, bounds_from_data)
    settings["most_rows"] = rows.public_most(
        len(columns[target]), simulate * minimum_rows, noise=epsilon is not None
    )
    job = _job(file.stem, chosen, target, limits, simulate, settings)
    with waiting(tongue, quiet or as_json):
        fit = _run(job, rows.shared_out(columns, simulate))
    language: Any = "pt" if tongue == "pt" else "en"
    write_folder(output, _files(job, fit, language))
    if as_json:
        show.as_json({"fit": fit.to_dict(), "folder": str(output)})
    elif not quiet:
        _show(job, fit, output, language, bounds_from_data)


def _job(
    name: str, protocol: RegressionProtocol, target: str, limits: Any, clients: int, settings: dict[str, Any]
) -> Job:
    from velado.learning.regression.job import Job, Party

    parties = [Party("evaluator", "evaluator")]
    if protocol.provider is not None:
        parties.append(Party("provider", "provider"))
    parties += [Party(f"client-{place + 1}", "client") for place in range(clients)]
    features = tuple(bounded for column, bounded in limits.items() if column != target)
    return Job(name, protocol, features, limits[target], tuple(parties), **settings)


def _run(job: Job, tables: dict[str, dict[str, Any]]) -> Fit:
    from velado.learning.regression.design_matrix import moments_of, total
    from velado.learning.regression.fit import solve
    from velado.learning.regression.simulate import simulate

    # Nobody in a masked run could name collinear columns; here all rows are at hand, so they are named beforehand.
    solve(total([moments_of(table, job) for table in tables.values()]), job)
    began, worked = time.perf_counter(), time.process_time()
    fit, transcript = simulate(job, tables)
    cost = {
        "seconds": round(time.perf_counter() - began, 3),
        "processor_seconds": round(time.process_time() - worked, 3),
        "messages_sent": len(transcript.messages),
        "bytes_sent": sum(len(data) for message in transcript.messages for data in message.fields.values()),
    }
    return replace(fit, cost={**fit.cost, **cost})


def _files(job: Job, fit: Fit, language: Any) -> dict[str, bytes]:
    from velado.learning.net.outputs import Ending, report
    from velado.learning.protocols.role import Outcome
    from velado.text import told

    ending = Ending(outcome=Outcome(fit=fit), cost=fit.cost)
    text = report(job, "evaluator", ending, language)
    promise = "\n".join(f"- {line}" for line in (told(line, language) for line in fit.promise.lines()))
    text += f"\n## {say(language, 'regress_promise')}\n\n{promise}\n\n{say(language, 'regress_simulated')}\n"
    files: dict[str, Any] = {"fit.json": fit.to_dict(), "learned.json": fit.learned.to_dict(language)}
    written = {name: json.dumps(value, ensure_ascii=False, indent=2) + "\n" for name, value in files.items()}
    return {name: body.encode() for name, body in {**written, "report.md": text}.items()}


def _show(job: Job, fit: Fit, output: Path, language: Any, from_data: bool) -> None:
    from velado.learning.protocols.who_learns_what import short_key
    from velado.text import told

    if from_data:
        show.note(f"{say(language, 'warning')}: {say(language, 'regress_bounds_read')}")
    if fit.promise.unsafe:
        show.note(f"{say(language, 'warning')}: {say(language, 'regress_unsafe')}")
    if short_key(job):
        show.note(f"{say(language, 'warning')}: {told(short_key(job), language)}")
    head = [say(language, "column"), say(language, "regress_coefficient")]
    errors = fit.standard_errors
    if errors is not None:
        head.append(say(language, "regress_error"))
    body = [
        [name, f"{value:.10g}", *(() if errors is None else (f"{errors[place]:.4g}",))]
        for place, (name, value) in enumerate(zip(fit.names, fit.coefficients, strict=True))
    ]
    title = say(
        language,
        "regress_title",
        target=fit.target,
        clients=len(job.of("client")),
        protocol=job.protocol.name,
    )
    show.table(title, head, body)
    show.line(f"{say(language, 'regress_promise')}:")
    for line in fit.promise.lines():
        show.line(f"- {told(line, language)}")
    show.line("")
    head = [say(language, f"regress_{key}") for key in ("party", "saw", "infers")]
    show.table(
        say(language, "regress_learned"),
        head,
        [
            [role, told(said.saw, language), told(said.infers, language)]
            for role, said in fit.learned.parties.items()
        ],
    )
    for text in (*fit.learned.coalitions, fit.learned.always):
        show.line(told(text, language))
    show.line("")
    cost = {key: fit.cost[key] for key in ("seconds", "processor_seconds", "messages_sent", "bytes_sent")}
    show.line(say(language, "regress_cost", **cost))
    show.line(say(language, "regress_written", path=output))


def need_libraries() -> None:
    """Nothing, if the libraries of encrypted regression are installed; else the error that names the extra."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("gmpy2", "flint", "cryptography")):
        raise MissingExtra(
            "gmpy2, python-flint or cryptography is not installed.",
            "Encrypted regression computes with them.",
            "Install velado[encrypted].",
        )
