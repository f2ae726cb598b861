"""`velado groups`: a suggestion, from public or other data, of which rows might move together; signed if an owner says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OneOf, command, option
from velado.errors import ParameterError
from velado.text import number, say

if TYPE_CHECKING:
    from velado.query.groups import Proposal
    from velado.report.blocks import Table

SIGNED = ".signed.json"
"""Follows the name of the groups' file: who answers for them, why, and how many rows of each count."""


@command("groups")
def groups(
    file: flags.File,
    *,
    schema: flags.SchemaFile,
    made_from: Annotated[
        Literal["public", "other"],
        option(
            "--made-from",
            click_type=OneOf("public", "other"),
            help="What the file is: public data, or other data than will be asked; never the private rows.",
        ),
    ],
    method: Annotated[
        Literal["dbscan", "gmm"], option("--method", click_type=OneOf("dbscan", "gmm"), help="Clustering.")
    ] = "dbscan",
    by: Annotated[str | None, option("--by COLUMNS", help="Columns to cluster by, comma-separated.")] = None,
    column: Annotated[str, option("--column NAME", help="Name of the new column.")] = "group",
    reach: Annotated[float, option("--reach", min=0.0, help="DBSCAN's eps, columns in [0, 1].")] = 0.4,
    neighbours: Annotated[int, option("--neighbours", min=1, help="DBSCAN's minPoints.")] = 2,
    components: Annotated[int, option("--components", min=1, help="Components of the mixture.")] = 10,
    seed: flags.Seed = 0,
    sign: Annotated[
        str | None, option("--sign NAME", help="Who reviewed the groups and answers for them.")
    ] = None,
    reason: Annotated[str | None, option("--reason TEXT", help="With --sign: why they hold.")] = None,
    rows: Annotated[
        int | None,
        option(
            "--rows",
            min=1,
            help="With --sign: the most rows of a group that count; default: the largest group found.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o FILE",
            help="Write row number and group (CSV); with --sign also FILE.signed.json, who signed and why.",
        ),
    ] = None,
) -> None:
    """Suggest which rows might move together, for an owner to review and sign.

    Clusters say that rows look alike, not that they depend on each other. Run it once to review, and again with --sign
    and --reason to answer for the groups. Nothing is protected by this until the owner writes the column into the table
    and declares it in the schema. A file whose questions a ledger accounts for is private, and is refused.
    """
    if (sign is None) != (reason is None) or (sign is None and rows is not None):
        raise ParameterError(
            "--sign and --reason go together, and --rows goes with them.",
            "Groups are a declaration that somebody answers for, with a reason.",
            "Write for example --sign 'data steward' --reason 'households of the public register'.",
        )
    signature = output.with_name(output.name + SIGNED) if output is not None and sign is not None else None
    flags.refuse_file(output)
    flags.refuse_file(signature)
    with show.waiting():
        import polars as pl

        from velado.data.io import read_schema, read_table
        from velado.data.staging import write_file
        from velado.data.table_bytes import csv_bytes
        from velado.query.groups import suggest_groups
        from velado.query.store import has_ledger

        declared = read_schema(schema)
        if has_ledger(file, declared.dataset.ledger_file, declared):
            raise ParameterError(
                say("Questions about '{file}' are accounted for in a ledger.", file=file.name),
                "So its rows are private, and groups computed from them would tell of them outside every budget.",
                "Suggest groups from public data, or from other data than will be asked.",
            )
        found = suggest_groups(
            read_table(file, declared),
            made_from,
            columns=None if by is None else flags.names_in(by),
            method=method,
            column=column,
            reach=reach,
            neighbours=neighbours,
            components=components,
            seed=seed,
        )
        if sign is not None:
            found = found.sign(sign, reason or "", rows)
        document = found.to_dict()
        if output is not None:
            places = pl.DataFrame({"row": pl.int_range(1, len(found.labels) + 1, eager=True)})
            write_file(output, csv_bytes(places.with_columns(found.series())))
        if signature is not None:
            write_file(signature, (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode())
    show.result(document, _view(found, document["groups_by_size"], column, output))


def _view(found: Proposal, sizes: dict[int, int], column: str, output: Path | None) -> Iterator[str | Table]:
    yield show.table(
        say("Groups suggested (not signed off)")
        if found.signed_by is None
        else say("Groups, signed by {name}", name=found.signed_by),
        [say("rows in a group"), say("groups")],
        [[number(int(size)), number(count)] for size, count in sizes.items()],
    )
    if found.signed_by is None:
        yield say(
            "This is a suggestion. If you answer for it, write the column '{column}' into your table and declare "
            "group = true and max_rows in the schema.",
            column=column,
        )
    else:
        yield say(
            "{name} answers for them: {reason}. Write the column '{column}' into your table and declare group = true "
            "and max_rows = {rows} for it in the schema; only then does it protect.",
            name=found.signed_by,
            reason=found.reason,
            column=column,
            rows=found.rows,
        )
    if output is not None:
        yield say("Written to {path}.", path=output)
