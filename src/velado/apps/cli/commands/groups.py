"""`velado groups`: a suggestion, from public or other data, of which rows might move together. It binds nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.waiting import waiting
from velado.apps.cli.words import number, say


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
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write row number and group (CSV).", show_default=False
        ),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Suggest which rows might move together, for an owner to review.

    Clusters say that rows look alike, not that they depend on each other. Nothing is protected by this until the
    owner writes the column into the table and declares it in the schema.
    """
    tongue = flags.language(lang)
    with waiting(tongue, quiet or as_json):
        import polars as pl

        from velado.data.folders import csv_bytes, write_file
        from velado.data.io import read_schema, read_table
        from velado.query.suggest import Clustering, Made, suggest_groups

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
        if output is not None:
            rows = pl.DataFrame({"row": pl.int_range(1, len(found.labels) + 1, eager=True)})
            write_file(output, csv_bytes(rows.with_columns(found.series())))
    told = found.to_dict()
    if as_json:
        show.as_json(told)
    elif not quiet:
        sizes = [
            [number(size, tongue), number(count, tongue)] for size, count in told["groups_by_size"].items()
        ]
        heads = [say(tongue, key) for key in ("groups_size", "groups_count")]
        show.table(say(tongue, "groups_title"), heads, sizes)
        show.line(say(tongue, "groups_unsigned", column=column))
        if output is not None:
            show.line(say(tongue, "query_written", path=output))
