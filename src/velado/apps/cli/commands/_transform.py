"""`velado transform`: elementary techniques on single columns, and the risk that is left, measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import Command, command, option
from velado.errors import ParameterError
from velado.text import say

if TYPE_CHECKING:
    from velado.report.blocks import Table

_TYPED = "velado.operations"
_BINARY = (".parquet", ".pq")
_TEXTS = (".csv", ".tsv", ".txt", ".data")
Typed = list[str] | None


@dataclass(frozen=True, kw_only=True)
class OperationFlags:
    """A flag for each registered operation, which may be given several times.

    >>> [one.name for one in fields(OperationFlags)][:3]
    ['generalize', 'perturb', 'permute']
    """

    generalize: Annotated[
        Typed,
        option(
            "--generalize COLUMN:WIDTH",
            help="Broader values: intervals of a width, or levels of a taxonomy up.",
        ),
    ] = None
    perturb: Annotated[Typed, option("--perturb COLUMN:SCALE", help="Add noise of that size to numbers.")] = (
        None
    )
    permute: Annotated[Typed, option("--permute COLUMN", help="Deal the values out anew among the rows.")] = (
        None
    )
    suppress: Annotated[
        Typed, option("--suppress COLUMN[:ROWS]", help="Blot the column out, or only values with fewer rows.")
    ] = None
    mask: Annotated[
        Typed, option("--mask COLUMN:CHARACTERS", help="Cover all but the first characters of each value.")
    ] = None
    pram: Annotated[
        Typed,
        option(
            "--pram COLUMN:CHANCE",
            help="Keep each value with that chance, else draw one by its share (invariant PRAM).",
        ),
    ] = None
    rank_swap: Annotated[
        Typed,
        option("--rank-swap COLUMN:PERCENT", help="Swap numbers between rows whose ranks are that near."),
    ] = None
    round: Annotated[Typed, option("--round COLUMN:STEP", help="Round numbers to multiples of a step.")] = (
        None
    )
    top_code: Annotated[
        Typed, option("--top-code COLUMN:NUMBER", help="Publish larger numbers as that number.")
    ] = None
    bottom_code: Annotated[
        Typed, option("--bottom-code COLUMN:NUMBER", help="Publish smaller numbers as that number.")
    ] = None
    impute: Annotated[
        Typed,
        option(
            "--impute COLUMN[:WAY]",
            help="Fill blanks: median, mean, most-frequent, neighbours; default: median, of words the most frequent.",
        ),
    ] = None
    suppress_locally: Annotated[
        Typed,
        option("--suppress-locally K", help="Blank single cells until K rows share the quasi-identifiers."),
    ] = None


class CommandWithOperations(Command):
    """A command that remembers the operations in the order in which they were typed.

    >>> typed_operations(["--mask", "zip:3", "--permute=ill", "--mask", "cep:2"])
    [('mask', 'zip:3'), ('permute', 'ill'), ('mask', 'cep:2')]
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as usual; click itself keeps the order of one flag's values only."""
        ctx.meta[_TYPED] = typed_operations(args)
        return super().parse_args(ctx, args)


def typed_operations(args: list[str]) -> list[tuple[str, str]]:
    """Each operation among the words of a command line, and what was typed after it.

    >>> typed_operations(["people.csv", "--round", "age:5", "--", "--mask", "zip:3"])
    [('round', 'age:5')]
    """
    names = {f"--{one.name.replace('_', '-')}": one.name.replace("_", "-") for one in fields(OperationFlags)}
    found = []
    for at, word in enumerate(args):
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if name in names and (equals or at + 1 < len(args)):
            found.append((names[name], value if equals else args[at + 1]))
    return found


@command("transform", cls=CommandWithOperations)
def transform(
    ctx: typer.Context,
    file: flags.File,
    *,
    schema: flags.SchemaFile,
    operations: OperationFlags,
    output: Annotated[
        Path, option("--output -o FILE", help="The transformed table (CSV, or Parquet by its ending).")
    ],
    key: flags.OwnerKey = None,
    keep_order: flags.KeepOrder = False,
    per: flags.Per = None,
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
    formulas: flags.Formulas = "keep",
    force: flags.Force = False,
) -> None:
    """Transform single columns, and measure the risk.

    Operations are done in the order they are typed. A value after the column's name is the main setting; others are
    written key=value: --perturb "age: scale=2, noise=uniform". Identifiers are left out as in anonymize. Nothing is
    promised: the risk before and after is measured and shown.
    """
    flags.refuse_same_file(output, file, schema, key)
    _refuse_ending(output)
    if not force:
        flags.refuse_file(output, do=say("Choose another name, or pass --force."))
    with show.waiting() as progress:
        from velado.data.formulas import count_formulas
        from velado.data.io import read_schema
        from velado.data.staging import csv_bytes, parquet_bytes, write_file
        from velado.measures.measured import measure
        from velado.release.goal import within
        from velado.release.transform import transform as transformed

        meaning = read_schema(schema)
        asked = [flags.operation_from(name, text, meaning) for name, text in ctx.meta[_TYPED]]
        table = reading.table(file, meaning, undeclared)
        made = transformed(
            table,
            table.schema,
            asked,
            per=per,
            undeclared=undeclared,
            key=key,
            keep_order=keep_order,
            progress=within(progress, 0.0, 0.5),
        )
        progress(0.5, "measuring")
        scores = measure(made)
        binary = output.suffix.lower() in _BINARY
        data = parquet_bytes(made.frame) if binary else csv_bytes(made.frame, table.separator, formulas)
        write_file(output, data, force)

    def view() -> Iterator[str | show.Note | Table]:
        from velado.report.terminal import formula_warnings, own_warnings
        from velado.report.transform_lines import transform_lines

        kept = count_formulas(made.frame) if formulas == "keep" else 0
        yield from (show.warning(text) for text in (*own_warnings(made), *formula_warnings(kept)))
        yield from transform_lines(made, scores)
        yield say(
            "{path}: {rows:,} rows, {columns:,} columns.",
            path=output,
            rows=made.aligned.height,
            columns=made.aligned.width,
        )

    facts = made.facts()
    show.result(
        {
            "output": str(output),
            **facts["result"],
            "promise": made.promise,
            "side_doors": facts["promise"]["side_doors"],
            "warnings": facts["promise"]["warnings"],
            "operations": facts["how"]["operations"],
            "metrics": scores.to_dict(),
        },
        view(),
    )


def _refuse_ending(output: Path) -> None:
    """Text under the name of a workbook or an archive opens nowhere."""
    ending = output.suffix.lower()
    if ending and ending not in (*_BINARY, *_TEXTS):
        raise ParameterError(
            say("A table is not written as '{ending}'.", ending=ending),
            "The file would hold CSV text, and programs that go by its ending could not open it.",
            "Name a file that ends in .csv or .parquet.",
        )
