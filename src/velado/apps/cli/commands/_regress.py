"""`velado regress`: a regression over several parties' rows with all parties in one process, to see it work before it is real."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OfRegistry, OfSetting, command, one_of, option
from velado.apps.cli.regression_account import AccountFlags, debit
from velado.errors import ParameterError
from velado.text import Sentence, language, say, told

if TYPE_CHECKING:
    import numpy.typing as npt

    from velado.learning.regression.fit import Fit
    from velado.learning.regression.job import Job
    from velado.report.blocks import Table

_JOB = "velado.learning.regression.job.Job"
UNSAFE = say("this protocol is not private. It repeats a published method; never use it with people's data.")
_SIMULATED = say("All parties ran in one process, which saw all rows: the promise is that of real parties.")


@dataclass(frozen=True, kw_only=True)
class NoiseFlags:
    """How much one row may show in the result."""

    epsilon: Annotated[
        Fraction | None,
        option(
            "--epsilon E",
            click_type=OfSetting(f"{_JOB}.epsilon", "E"),
            help="Noise by the clients inside the sums: secure-sum, and delegated for linear models.",
        ),
    ] = None
    delta: Annotated[
        Fraction,
        option(
            "--delta D", click_type=OfSetting(f"{_JOB}.delta", "D"), help="The chance that epsilon may fail."
        ),
    ] = Fraction(1, 1_000_000)
    rho: Annotated[
        Fraction | None,
        option("--rho R", click_type=OfSetting(f"{_JOB}.rho", "R"), help="The same noise as rho of zCDP."),
    ] = None
    tolerated: Annotated[
        int, option("--tolerated", help="With noise: clients that may be missing or work with the evaluator.")
    ] = 1


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
        bool | None,
        option(
            "--bounds-from-data/--declared-bounds",
            help="Read bounds and categories that nobody declared off the rows, or refuse; read off by default, not with noise.",
        ),
    ] = None,
    family: Annotated[
        str,
        option(
            "--family",
            click_type=OfRegistry("velado.learning.regression.families:FAMILIES"),
            help="What the target is: a number, 0 or 1, a count.",
        ),
    ] = "linear",
    weight: Annotated[str | None, option("--weight COLUMN", help="How much each row counts.")] = None,
    interactions: Annotated[
        str | None, option("--interactions LIST", help="Products of features, e.g. age:dose,age:sex=m.")
    ] = None,
    protocol: Annotated[
        str,
        option(
            "--protocol",
            click_type=OfRegistry("velado.papers.regression.paper_masked:WITH_PAPER"),
            help="How the parties work together.",
        ),
    ] = "secure-sum",
    ridge: Annotated[
        Fraction,
        option(
            "--lambda L", click_type=OfSetting(f"{_JOB}.ridge", "L"), help="Ridge penalty; 0: least squares."
        ),
    ] = Fraction(0),
    path: Annotated[
        str,
        option(
            "--path none|ridge|lasso|elastic-net",
            help="Coefficients for a row of penalties too, from the same sums; BIC chooses.",
        ),
    ] = "none",
    folds: Annotated[
        int,
        option(
            "--folds N",
            click_type=OfSetting(f"{_JOB}.folds", "N"),
            help="With --path: choose the penalty on rows held out in turn, in N parts; 0: BIC chooses.",
        ),
    ] = 0,
    bits: Annotated[int, option("--bits", help="Fractional bits of the fixed point.")] = 20,
    key_bits: Annotated[int, option("--key-bits", help="Size of the Paillier key.")] = 3072,
    intercept: Annotated[bool, option("--intercept/--no-intercept", help="Fit a constant too.")] = True,
    minimum_rows: Annotated[int, option("--minimum-rows", help="Fewest rows of a client.")] = 10,
    least_cell: Annotated[
        int, option("--least-cell", help="Fewest rows by which a column may differ from a constant.")
    ] = 10,
    standard_errors: Annotated[
        bool | None,
        option(
            "--standard-errors/--no-standard-errors",
            help="With R2, t, p and intervals; by default where protocol and lambda allow.",
        ),
    ] = None,
    noise: NoiseFlags,
    account: AccountFlags,
    reading: flags.ReadingFlags,
) -> None:
    """Fit a linear, logistic or Poisson model over several parties' rows without pooling them, all simulated here.

    Real parties run `velado party`. The folder gets fit.json (for `velado predict`), learned.json (what each party saw and
    can infer) and report.md; with --path chosen.json (the model at the chosen penalty) and path.svg.
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
    import polars as pl

    from velado.apps.cli import regression_rows as rows
    from velado.data.io import read_schema
    from velado.data.staging import write_folder
    from velado.learning.crypto.fixed_point import FixedPoint
    from velado.learning.regression.families import FAMILIES
    from velado.learning.regression.job import Job, Party
    from velado.learning.regression.penalty_path import PathKind
    from velado.learning.regression.table_columns import category_columns, number_columns
    from velado.papers.regression.paper_masked import WITH_PAPER
    from velado.randomness import Tape

    chosen_family = one_of(family, tuple(FAMILIES), "--family")
    chosen = WITH_PAPER[one_of(protocol, tuple(WITH_PAPER), "--protocol")]
    if standard_errors and chosen.pooled is None:
        raise ParameterError(
            say("The protocol {protocol} gives no standard errors.", protocol=protocol),
            "They follow from the pooled sums, and this protocol does not give them out.",
            "Leave --standard-errors out, or use --protocol delegated or secure-sum.",
        )
    noisy = noise.epsilon is not None or noise.rho is not None
    if noisy and bounds_from_data:
        raise ParameterError(
            "--epsilon and --bounds-from-data do not go together.",
            "Noise follows the bounds, and bounds that follow the rows tell their least and largest values without noise.",
            "Declare the bounds with --bounds or --schema.",
        )
    flags.refuse_existing(output)
    named = rows.feature_names(features or "", target, weight)
    declared = None if schema is None else read_schema(schema)
    table = rows.read_rows(file, reading, declared)
    asked = [*named, target] if named or target not in table.frame.columns else list(table.frame.columns)
    if weight is not None and weight not in asked:
        asked.append(weight)
    from_data = not noisy if bounds_from_data is None else bounds_from_data
    texts, listed = category_columns(table, asked, declared, from_data)
    if weight in texts:
        raise ParameterError(
            say("--weight '{weight}' is a column of categories.", weight=weight),
            "A weight says how much a row counts: a number, 0 or more.",
            "Choose a column of numbers, or leave --weight out.",
        )
    decimal = None if declared is None else declared.decimal
    numbers = number_columns(table, [name for name in asked if name not in texts], decimal)
    given = list(bounds or ())
    model = FAMILIES[chosen_family]
    if model.own_bounds and target in numbers and not any(one.startswith(f"{target}=") for one in given):
        given.append(f"{target}={model.own_bounds}")  # such a target has no others
    limits, read_off = rows.bounds_for(numbers, given, declared, from_data)
    read_off += [name for name in texts if declared is not None and declared.columns[name].values is None]
    hot = {name: rows.one_hot(name, values) for name, values in listed.items()}
    if target in hot and len(hot[target]) != 1:
        raise ParameterError(
            say("The target '{target}' is a column of categories.", target=target),
            "A model explains a number, or whether one of two values is there.",
            "Choose a target with two values and --family logistic, or a number.",
        )
    parts = [
        feature
        for name in asked
        if name not in (target, weight)
        for feature in (hot[name] if name in hot else [limits[name]])
    ]
    parts += rows.interactions_in(interactions or "", parts)
    height = table.frame.height
    if height // simulate < minimum_rows:
        raise ParameterError(
            say(
                "--simulate {clients} deals {rows:,} rows out in parts of {part:,}; every client needs {least:,}.",
                clients=simulate,
                rows=height,
                part=height // simulate,
                least=minimum_rows,
            ),
            "The sums of few rows tell much about each of them.",
            say(
                "Simulate at most {most:,} clients, or give a smaller --minimum-rows.",
                most=height // minimum_rows,
            )
            if height >= minimum_rows
            else say("Give more rows, or a smaller --minimum-rows."),
        )
    if target in numbers:
        model.refuse_values(numbers[target].cast(pl.Float64).to_numpy(), target)
    if not noisy:  # noise clips
        encoding = FixedPoint(tuple(limits.values()), 0)
        # Before rows are dealt out, so that they are counted and numbered as in the file.
        for name, column in numbers.items():
            encoding.encode(name, rows.cells_of(column))
    parties = [Party("evaluator", "evaluator")]
    if chosen.provider is not None:
        parties.append(Party("provider", "provider"))
    parties += [Party(f"client-{place + 1}", "client") for place in range(simulate)]
    job = Job(
        file.stem,
        chosen,
        tuple(parts),
        hot[target][0] if target in hot else limits[target],
        tuple(parties),
        ridge=ridge,
        key_holder="client-1" if chosen.client_holds_key else None,
        epsilon=noise.epsilon,
        delta=noise.delta,
        rho=noise.rho,
        tolerated=noise.tolerated,
        bits=bits,
        key_bits=key_bits,
        intercept=intercept,
        minimum_rows=minimum_rows,
        family=chosen_family,
        weight=None if weight is None else limits[weight],
        path=one_of(path, get_args(PathKind), "--path"),
        folds=folds,
        least_cell=least_cell,
        moments=_moments(standard_errors, ridge, noisy, chosen.pooled is not None),
        most_rows=rows.public_most(height, simulate * minimum_rows, noise=noisy),
    )
    paid = debit(file, job, account, Tape.fresh_seed().hex())
    with show.waiting():
        fit, looked_at = _run(job, rows.shared_out({**numbers, **texts}, simulate))
    write_folder(output, _files(job, fit))
    view = _view(job, fit, output, read_off, looked_at)
    show.result({"fit": fit.to_dict(), "folder": str(output)}, [*view, *([paid] if paid else [])])


def _moments(asked: bool | None, ridge: Fraction, noisy: bool, pooled: bool) -> bool:
    """Whether the sums for standard errors are asked for: as said, else wherever they can be."""
    return ridge == 0 and not noisy and pooled if asked is None else asked


def _run(job: Job, tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> tuple[Fit, Fit]:
    """The fit, and the same with what only somebody who holds all rows can be careful about."""
    from velado.learning.regression.design_matrix import moments_of, total
    from velado.learning.regression.exact_solution import solve_exact
    from velado.learning.regression.simulate import simulate

    seen = None
    if job.noise is None and not job.iterated:
        # Nobody in a masked run could name collinear columns; here all rows are at hand, so they are named beforehand.
        _, seen = solve_exact(total([moments_of(table, job) for table in tables.values()]), job)
    began, worked = time.perf_counter(), time.process_time()
    fit, transcript = simulate(job, tables)
    cost = {
        "seconds": round(time.perf_counter() - began, 3),
        "processor_seconds": round(time.process_time() - worked, 3),
        "messages_sent": len(transcript.messages),
        "bytes_sent": sum(len(data) for message in transcript.messages for data in message.fields.values()),
    }
    fit = replace(fit, cost={**fit.cost, **cost})
    if seen is None or fit.inflation is not None:
        return fit, fit
    return fit, replace(fit, inflation=seen.inflation, facts={**fit.facts, **seen.facts})


def _files(job: Job, fit: Fit) -> dict[str, bytes]:
    from velado.learning.net.outputs import Ending, report
    from velado.learning.protocols.role import Outcome

    promise = "\n".join(f"- {told(line)}" for line in fit.promise.lines())
    text = report(job, "evaluator", Ending(outcome=Outcome(fit=fit), cost=fit.cost), language())
    text += f"\n## {told(say('Promise'))}\n\n{promise}\n\n{told(_SIMULATED)}\n"
    documents = {"fit.json": fit.to_dict(), "learned.json": fit.learned.to_dict(language())}
    drawn = {}
    if fit.path is not None:
        from velado.report.penalty_chart import path_chart

        documents["chosen.json"] = fit.at_choice().to_dict()
        drawn["path.svg"] = path_chart(fit.path, fit.names)
        text += f"\n![{told(say('Coefficients along the path of penalties'))}](path.svg)\n"
    files = {name: json.dumps(part, ensure_ascii=False, indent=2) + "\n" for name, part in documents.items()}
    return {name: body.encode() for name, body in {**files, **drawn, "report.md": text}.items()}


def _view(
    job: Job, fit: Fit, output: Path, read_off: list[str], looked_at: Fit
) -> Iterator[str | show.Note | Table]:
    from velado.learning.protocols.protocol import ROLES
    from velado.learning.protocols.who_learns_what import short_key
    from velado.learning.regression.coefficient_table import cautions, facts_of, path_facts, path_rows

    if read_off:
        yield show.warning(
            say(
                "the bounds or categories of {columns} were read off the rows. Real parties must declare them: what follows the "
                "rows tells their least and largest values, or which there are.",
                columns=", ".join(read_off),
            )
        )
    yield from map(show.warning, cautions(looked_at))
    if fit.promise.unsafe:
        yield show.warning(UNSAFE)
    if short_key(job):
        yield show.warning(short_key(job))
    yield from coefficients(
        say(
            "Regression of '{target}' over the rows of {clients} clients, protocol {protocol}",
            target=fit.target,
            clients=len(job.of("client")),
            protocol=job.protocol.name,
        ),
        fit,
    )
    yield from facts_of(fit)
    if fit.path is not None:
        yield show.table(say("Path of penalties"), *path_rows(fit))
        yield from path_facts(fit)
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
    if fit.path is None:
        yield say("Written: fit.json, learned.json and report.md in {path}", path=output)
    else:
        yield say(
            "Written: fit.json, chosen.json, learned.json, path.svg and report.md in {path}", path=output
        )


def coefficients(title: Sentence, fit: Fit) -> Iterator[Table]:
    """The coefficients of a fit, with what goes with them where it has it: errors, t, p, intervals, VIF; and odds or rate ratios."""
    from velado.learning.regression.coefficient_table import coefficient_rows, ratio_rows

    yield show.table(title, *coefficient_rows(fit))
    head, rows = ratio_rows(fit)
    if rows:
        yield show.table("", head, rows)
