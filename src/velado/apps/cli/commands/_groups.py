"""`velado groups`: a suggestion, from public or other data, of which rows might move together; signed if an owner says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import number, say
from velado.errors import OutputError, ParameterError

SIGNED = ".signed.json"
"""Follows the name of the groups' file: who answers for them, why, and how many rows of each count."""


def groups(
    file: flags.File,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False)
    ],
    made_from: Annotated[
        str,
        typer.Option(
            "--made-from",
            metavar="public|other",
            help="What the file is: public data, or other data than will be asked; never the private rows.",
            show_default=False,
        ),
    ],
    method: Annotated[str, typer.Option("--method", metavar="dbscan|gmm", help="Clustering.")] = "dbscan",
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="COLUMNS", help="Columns to cluster by, comma-separated.", show_default=False
        ),
    ] = None,
    column: Annotated[
        str, typer.Option("--column", metavar="NAME", help="Name of the new column.")
    ] = "group",
    reach: Annotated[float, typer.Option("--reach", min=0.0, help="DBSCAN's eps, columns in [0, 1].")] = 0.4,
    neighbours: Annotated[int, typer.Option("--neighbours", min=1, help="DBSCAN's minPoints.")] = 2,
    components: Annotated[int, typer.Option("--components", min=1, help="Components of the mixture.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the mixture.")] = 0,
    sign: Annotated[
        str | None,
        typer.Option(
            "--sign", metavar="NAME", help="Who reviewed the groups and answers for them.", show_default=False
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="With --sign: why they hold.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            min=1,
            help="With --sign: the most rows of a group that count; default: the largest group found.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write row number and group (CSV); with --sign also FILE.signed.json, who signed and why.",
            show_default=False,
        ),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Suggest which rows might move together, for an owner to review and sign.

    Clusters say that rows look alike, not that they depend on each other. Run it once to review, and again with --sign
    and --reason to answer for the groups. Nothing is protected by this until the owner writes the column into the table
    and declares it in the schema. A file whose questions a ledger accounts for is private, and is refused.
    """
    tongue = flags.language(lang)
    with waiting(tongue, quiet or as_json):
        import polars as pl

        from velado.data.io import read_schema, read_table
        from velado.data.staging import csv_bytes, write_file
        from velado.query.groups import Clustering, Made, suggest_groups
        from velado.query.store import has_ledger

        _refuse_settings(sign, reason, rows, output)
        if has_ledger(file):
            raise ParameterError(
                f"Questions about '{file.name}' are accounted for in a ledger.",
                "So its rows are private, and groups computed from them would tell of them outside every budget.",
                "Suggest groups from public data, or from other data than will be asked.",
            )
        source: Any = flags.one_of(made_from, get_args(Made), "--made-from")
        how: Any = flags.one_of(method, get_args(Clustering), "--method")
        names = None if by is None else [name.strip() for name in by.split(",") if name.strip()]
        found = suggest_groups(
            read_table(file, read_schema(schema)),
            source,
            columns=names,
            method=how,
            column=column,
            reach=reach,
            neighbours=neighbours,
            components=components,
            seed=seed,
        )
        if sign is not None:
            found = found.sign(sign, reason or "", rows)
        told = found.to_dict()
        if output is not None:
            places = pl.DataFrame({"row": pl.int_range(1, len(found.labels) + 1, eager=True)})
            write_file(output, csv_bytes(places.with_columns(found.series())))
            if sign is not None:
                text = json.dumps(told, ensure_ascii=False, indent=2)
                write_file(output.with_name(output.name + SIGNED), (text + "\n").encode())
    if as_json:
        show.as_json(told)
    elif not quiet:
        sizes = [
            [number(size, tongue), number(count, tongue)] for size, count in told["groups_by_size"].items()
        ]
        heads = [say(tongue, key) for key in ("groups_size", "groups_count")]
        if sign is None:
            show.table(say(tongue, "groups_title"), heads, sizes)
            show.line(say(tongue, "groups_unsigned", column=column))
        else:
            show.table(say(tongue, "groups_signed_title", name=found.signed_by), heads, sizes)
            parts = {"name": found.signed_by, "reason": found.reason, "rows": found.rows}
            show.line(say(tongue, "groups_signed", column=column, **parts))
        if output is not None:
            show.line(say(tongue, "query_written", path=output))


def _refuse_settings(sign: str | None, reason: str | None, rows: int | None, output: Path | None) -> None:
    """What is wrong is said before anything is computed or written."""
    if (sign is None) != (reason is None) or (sign is None and rows is not None):
        raise ParameterError(
            "--sign and --reason go together, and --rows goes with them.",
            "Groups are a declaration that somebody answers for, with a reason.",
            "Write for example --sign 'data steward' --reason 'households of the public register'.",
        )
    for path in () if output is None else (output, output.with_name(output.name + SIGNED)):
        if path.exists() and (path == output or sign is not None):
            raise OutputError(
                f"'{path.name}' exists already.", "It would be overwritten.", "Choose another name."
            )
