"""`velado transform`: elementary techniques on single columns, and the risk that is left, measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import Command, command, option, told_words
from velado.errors import ParameterError
from velado.text import say, told

if TYPE_CHECKING:
    from velado.report.blocks import Table

_TYPED = "velado.operations"
_BINARY = (".parquet", ".pq")
_TEXTS = (".csv", ".tsv", ".txt", ".data")


class CommandWithOperations(Command):
    """A command with a flag for each registered operation, which remembers the order in which they were typed.

    >>> made = CommandWithOperations("try", callback=lambda **_: print(click.get_current_context().meta[_TYPED]))
    >>> made.main(["--mask", "zip:3", "--permute=ill", "--mask", "cep:2"], standalone_mode=False)
    [('mask', 'zip:3'), ('permute', 'ill'), ('mask', 'cep:2')]
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own, and those of the operations: found when they are asked for, so that help starts fast."""
        from velado.release.operations import OPERATIONS

        return [
            *(
                click.Option(
                    [f"--{one.name}"],
                    metavar=told_words(one.typed),
                    multiple=True,
                    expose_value=False,
                    help=told(one.title),
                )
                for one in OPERATIONS
            ),
            *super().get_params(ctx),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as usual; click itself keeps the order of one flag's values only."""
        from velado.release.operations import OPERATIONS

        names = {one.name.replace("-", "_"): one.name for one in OPERATIONS}
        values, _, order = self.make_parser(ctx).parse_args(list(args))
        typed = {name: iter(values[name]) for name in names if name in values}
        ctx.meta[_TYPED] = [
            (names[str(one.name)], next(typed[str(one.name)])) for one in order if one.name in names
        ]
        return super().parse_args(ctx, args)


@command("transform", cls=CommandWithOperations)
def transform(
    ctx: typer.Context,
    file: flags.File,
    *,
    schema: flags.SchemaFile,
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
        from velado.data.staging import write_file
        from velado.data.table_bytes import csv_bytes, parquet_bytes
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
