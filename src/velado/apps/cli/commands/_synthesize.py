"""`velado synthesize`: a whole table of made-up rows, with differential privacy, paid from the ledger that queries have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OfSetting, command, option
from velado.apps.cli.query_flags import ProtectedFlags
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.study.synthetic_run import PublishedSynthetic

WANTED = "velado.query.synthetic.synthesize.Wanted"


@dataclass(frozen=True, kw_only=True)
class PaidFlags:
    """What the table may cost, and of which account."""

    epsilon: flags.Epsilon = None
    rho: flags.Rho = None
    delta: Annotated[
        str | None,
        option(
            "--delta D",
            help="With --epsilon: spend it as zCDP, which is more exact, with this chance to fail.",
        ),
    ] = None
    budget: Annotated[
        str | None,
        option(
            "--budget E",
            help="Total for this table and all questions about the file, when its ledger is made; default: this table alone.",
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
    analyst: Annotated[str, option("--analyst NAME", help="In whose name it is debited.")] = "owner"


@dataclass(frozen=True, kw_only=True)
class MadeFlags:
    """How the table is made."""

    method: Annotated[
        str | None,
        option(
            "--method -m",
            click_type=OfSetting(f"{WANTED}.method", "NAME"),
            help="auto, tree, adaptive (counts of pairs of columns), or microaggregate (noisy averages of groups).",
            show_default="auto",
        ),
    ] = None
    columns: Annotated[
        str | None, option("--columns A,B", help="Which columns; default: all but identifiers.")
    ] = None
    bins: Annotated[
        int | None,
        option(
            "--bins",
            click_type=OfSetting(f"{WANTED}.bins", "INTEGER"),
            help="The most cells a number is cut into.",
            show_default="32",
        ),
    ] = None
    draw: Annotated[
        int | None,
        option(
            "--draw",
            click_type=OfSetting(f"{WANTED}.rows", "INTEGER"),
            help="How many rows to draw; default: about as many as there are.",
        ),
    ] = None
    group_size: Annotated[
        int | None,
        option(
            "--group-size",
            click_type=OfSetting(f"{WANTED}.group_size", "INTEGER"),
            help="With microaggregate: rows of a group.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        option(
            "--seed",
            click_type=OfSetting(f"{WANTED}.seed", "INTEGER"),
            help="Of the rows drawn from the noisy counts; never of the noise.",
            show_default="0",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was said, by the names of the settings."""
        named = {
            "method": self.method,
            "columns": tuple(flags.names_in(self.columns)) or None,
            "bins": self.bins,
            "rows": self.draw,
            "group_size": self.group_size,
            "seed": self.seed,
        }
        return {name: value for name, value in named.items() if value is not None}


@command("synthesize")
def synthesize(
    file: flags.File,
    *,
    schema: flags.MaybeSchema = None,
    paid: PaidFlags,
    protected: ProtectedFlags,
    how: MadeFlags,
    target: Annotated[
        str | None,
        option(
            "--target COLUMN",
            help="What models of the report are to tell; default: the only sensitive column.",
        ),
    ] = None,
    report: Annotated[
        bool,
        option(
            "--report/--no-report", help="Compare with true rows and k-anonymous tables, for the owner alone."
        ),
    ] = True,
    output: Annotated[
        Path, option("--output -o DIR", help="Folder for the table and its private part; it must not exist.")
    ] = Path("out"),
    force: flags.Force = False,
) -> None:
    """Make a table of made-up rows with differential privacy.

    The table is paid from the file's ledger before a row is counted. Values and bounds come from the schema. DIR/release
    may leave: the table, a manifest, a page. DIR/private stays: a report that reads true rows. Asked again in the same way, the
    same table comes for nothing.
    """
    if schema is None:
        raise ParameterError(
            "No schema was given.",
            "Bounds, values and who is protected are declared there and never read off the rows.",
            "Pass --schema FILE; `velado inspect` writes a first version.",
        )
    if (paid.epsilon is None) == (paid.rho is None):
        raise ParameterError(
            "A synthetic table is made with either --epsilon (and, if you like, --delta), or --rho.",
            "It is what the table may tell of one person at most.",
            "Write for example --epsilon 1 --delta 1e-9.",
        )
    flags.refuse_existing(output, force, file, schema)
    with show.waiting():
        from velado.data.io import read_schema
        from velado.study.synthetic_run import publish_synthetic

        declared = read_schema(schema)
        found = publish_synthetic(
            file,
            declared,
            output,
            report=report,
            target=target,
            force=force,
            epsilon=paid.epsilon,
            rho=paid.rho,
            delta=paid.delta,
            budget=paid.budget,
            ledger=paid.ledger or declared.dataset.ledger_file,
            seal=paid.seal,
            analyst=paid.analyst,
            unit=protected.in_(declared),
            **how.given(),
        )
    show.result({"folder": str(found.folder), **found.manifest}, _view(found))


def _view(found: PublishedSynthetic) -> Iterator[str | show.Note]:
    from velado.query.budget import measure_word, short
    from velado.report.synthetic_page import WAYS, promise_sentence
    from velado.text import share

    made = found.synthetic
    yield from (show.warning(text) for text in made.guarantee.warnings or ())
    yield say("Promise (guaranteed): {sentence}", sentence=promise_sentence(made))
    yield say("Not promised: k-anonymity. No row is anybody's, and a row may be unique.")
    yield say(
        "{rows:,} rows of {columns:,} columns; counted: {way}.",
        rows=made.frame.height,
        columns=made.frame.width,
        way=WAYS.get(made.how.way, made.how.way),
    )
    if made.stored:
        yield say("This table was paid for before: it is the same again, at no cost.")
    else:
        yield say(
            "Debited: {measure} {cost}; {left} is left.",
            measure=measure_word(made.cost.measure),
            cost=short(made.cost.spent),
            left=short(made.cost.left),
        )
    own = next((one for one in found.trial.tables if one.name == "synthetic"), None) if found.trial else None
    if own is not None and own.fidelity is not None:
        yield say(
            "For you alone: in two-way tables {mean} of rows are in wrong cells, {worst} in the worst one. More in {path}",
            mean=share(own.fidelity.mean),
            worst=share(own.fidelity.worst),
            path=found.private / "report.html",
        )
    yield say("May leave: {path}", path=found.public)
