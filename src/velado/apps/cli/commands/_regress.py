"""`velado regress`: a regression over several parties' rows with all parties in one process, to see it work before it is real."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OfSetting, command, one_of, option
from velado.errors import ParameterError
from velado.text import Sentence, language, say, told, written

if TYPE_CHECKING:
    import numpy.typing as npt

    from velado.learning.regression.fit import Fit
    from velado.learning.regression.job import Job
    from velado.report.blocks import Table

_JOB = "velado.learning.regression.job.Job"
UNSAFE = say("this protocol is not private. It repeats a published method; never use it with people's data.")
_SIMULATED = say("All parties ran in one process, which saw all rows: the promise is that of real parties.")


@command("regress")
def regress(
    file: flags.File,
    *,
    target: Annotated[str, option("--target COLUMN", help="The column to explain.")],
    output: flags.NewFolder = Path("regression"),
    simulate: Annotated[
        int | None, option("--simulate CLIENTS", help="Deal the rows out to so many clients.")
    ] = None,
    features: Annotated[
        str | None, option("--features LIST", help="Columns to explain it by; default: all others.")
    ] = None,
    schema: Annotated[
        Path | None, option("--schema -s FILE", help="Schema: how the file is read, and bounds.")
    ] = None,
    bounds: Annotated[
        list[str] | None, option("--bounds NAME=LOW:HIGH", help="Public bounds of a column; may be repeated.")
    ] = None,
    bounds_from_data: Annotated[
        bool, option("--bounds-from-data", help="Read bounds off the rows: in a simulation only.")
    ] = False,
    protocol: Annotated[
        str,
        option("--protocol masked|delegated|secure-sum|paper-masked", help="How the parties work together."),
    ] = "masked",
    ridge: Annotated[
        Fraction,
        option(
            "--lambda L", click_type=OfSetting(f"{_JOB}.ridge", "L"), help="Ridge penalty; 0: least squares."
        ),
    ] = Fraction(0),
    bits: Annotated[int, option("--bits", help="Fractional bits of the fixed point.")] = 20,
    key_bits: Annotated[int, option("--key-bits", help="Size of the Paillier key.")] = 3072,
    intercept: Annotated[bool, option("--intercept/--no-intercept", help="Fit a constant too.")] = True,
    minimum_rows: Annotated[int, option("--minimum-rows", help="Fewest rows of a client.")] = 10,
    standard_errors: Annotated[
        bool, option("--standard-errors", help="Ask for them, where the protocol allows.")
    ] = False,
    epsilon: Annotated[
        Fraction | None,
        option(
            "--epsilon E",
            click_type=OfSetting(f"{_JOB}.epsilon", "E"),
            help="Noise on the pooled sums: delegated, secure-sum.",
        ),
    ] = None,
    reading: flags.ReadingFlags,
) -> None:
    """Fit a linear model over several parties' rows without pooling them, all parties simulated here.

    Real parties run `velado party`. The folder gets fit.json (for `velado predict`), learned.json (what each party saw and
    can infer) and report.md.
    """
    if simulate is not None and simulate < 1:
        raise ParameterError(
            say("--simulate cannot be {clients}.", clients=simulate),
            "It is how many clients the rows are dealt out to: a whole number, at least 1.",
            "Write for example --simulate 10.",
        )
    if simulate is None:
        raise ParameterError(
            "--simulate CLIENTS was not given.",
            "This command runs all parties in one process, which sees all rows.",
            "Write for example --simulate 10; for real parties see `velado party --help`.",
        )
    flags.needs_crypto()
    from velado.apps.cli import regression_rows as rows
    from velado.data.io import read_schema
    from velado.data.staging import write_folder
    from velado.learning.regression.job import Job, Party
    from velado.papers.regression.paper_masked import WITH_PAPER

    chosen = WITH_PAPER[one_of(protocol, tuple(WITH_PAPER), "--protocol")]
    if standard_errors and chosen.pooled is None:
        raise ParameterError(
            say("The protocol {protocol} gives no standard errors.", protocol=protocol),
            "They follow from the pooled sums, and this protocol does not give them out.",
            "Leave --standard-errors out, or use --protocol delegated or secure-sum.",
        )
    if epsilon is not None and bounds_from_data:
        raise ParameterError(
            "--epsilon and --bounds-from-data do not go together.",
            "Noise follows the bounds, and bounds that follow the rows tell their least and largest values without noise.",
            "Declare the bounds with --bounds or --schema.",
        )
    flags.refuse_existing(output)
    named = rows.feature_names(features or "", target)
    declared = None if schema is None else read_schema(schema)
    table = rows.read_rows(file, reading, declared)
    columns = rows.number_columns(
        table, [*named, target] if named or target not in table.frame.columns else None
    )
    limits = rows.bounds_for(columns, bounds or (), declared, bounds_from_data)
    parties = [Party("evaluator", "evaluator")]
    if chosen.provider is not None:
        parties.append(Party("provider", "provider"))
    parties += [Party(f"client-{place + 1}", "client") for place in range(simulate)]
    job = Job(
        file.stem,
        chosen,
        tuple(bounded for column, bounded in limits.items() if column != target),
        limits[target],
        tuple(parties),
        ridge=ridge,
        epsilon=epsilon,
        bits=bits,
        key_bits=key_bits,
        intercept=intercept,
        minimum_rows=minimum_rows,
        moments=standard_errors,
        most_rows=rows.public_most(len(columns[target]), simulate * minimum_rows, noise=epsilon is not None),
    )
    with show.waiting():
        fit = _run(job, rows.shared_out(columns, simulate))
    write_folder(output, _files(job, fit))
    show.result({"fit": fit.to_dict(), "folder": str(output)}, _view(job, fit, output, bounds_from_data))


def _run(job: Job, tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Fit:
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


def _files(job: Job, fit: Fit) -> dict[str, bytes]:
    from velado.learning.net.outputs import Ending, report
    from velado.learning.protocols.role import Outcome

    promise = "\n".join(f"- {told(line)}" for line in fit.promise.lines())
    text = report(job, "evaluator", Ending(outcome=Outcome(fit=fit), cost=fit.cost), language())
    text += f"\n## {told(say('Promise'))}\n\n{promise}\n\n{told(_SIMULATED)}\n"
    documents = {"fit.json": fit.to_dict(), "learned.json": fit.learned.to_dict(language())}
    files = {name: json.dumps(part, ensure_ascii=False, indent=2) + "\n" for name, part in documents.items()}
    return {name: body.encode() for name, body in {**files, "report.md": text}.items()}


def _view(job: Job, fit: Fit, output: Path, from_data: bool) -> Iterator[str | show.Note | Table]:
    from velado.learning.net.outputs import ROLES
    from velado.learning.protocols.who_learns_what import short_key

    if from_data:
        yield show.warning(
            say(
                "the bounds were read off the rows. Real parties must declare them: bounds that follow the rows tell "
                "their least and largest values."
            )
        )
    if fit.promise.unsafe:
        yield show.warning(UNSAFE)
    if short_key(job):
        yield show.warning(short_key(job))
    yield coefficients(
        say(
            "Regression of '{target}' over the rows of {clients} clients, protocol {protocol}",
            target=fit.target,
            clients=len(job.of("client")),
            protocol=job.protocol.name,
        ),
        fit,
    )
    yield say("Promise:")
    yield from (say("- {line}", line=line) for line in fit.promise.lines())
    yield ""
    facts = fit.learned
    yield show.table(
        say("What each party saw and can infer"),
        [say("party"), say("saw"), say("can infer")],
        [[ROLES.get(role, role), seen.saw, seen.infers] for role, seen in facts.parties.items()],
    )
    yield from (*facts.coalitions, facts.always, "")
    yield say(
        "Cost: {seconds:,} s ({processor_seconds:,} s of processor time), all parties together; {messages_sent:,} "
        "messages, {bytes_sent:,} bytes.",
        **{key: fit.cost[key] for key in ("seconds", "processor_seconds", "messages_sent", "bytes_sent")},
    )
    yield say("Written: fit.json, learned.json and report.md in {path}", path=output)


def coefficients(title: Sentence, fit: Fit) -> Table:
    """The coefficients of a fit, with their standard errors where it has any."""
    from velado.learning.regression.job import INTERCEPT

    head = [say("column"), say("coefficient")]
    rows: list[list[str]] = [
        [say("(intercept)") if name == INTERCEPT else name, written(value, ".10g")]
        for name, value in zip(fit.names, fit.coefficients, strict=True)
    ]
    if fit.standard_errors is not None:
        head.append(say("standard error"))
        rows = [[*row, written(error, ".4g")] for row, error in zip(rows, fit.standard_errors, strict=True)]
    return show.table(title, head, rows)
