"""`velado measure`: what a release cost, and what it bought, beside its original."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, one_of, option

if TYPE_CHECKING:
    from velado.measures.recoded_columns import PublishedTable


@command("measure")
def measure(
    original: Annotated[Path, argument("ORIGINAL", help="The table as it was.")],
    release: Annotated[
        Path, argument("RELEASE", help="The published file, or the folder that `anonymize` made.")
    ],
    *,
    schema: flags.SchemaFile,
    k: Annotated[int | None, option("-k", help="k for the average group size.")] = None,
    variant: Annotated[
        str,
        option(
            "--variant NAME", help="NCP: leaves-1, leaves/total, sets, thesis, thesis-distinct, gok, das-eq1."
        ),
    ] = "leaves-1",
    divisor_columns: Annotated[
        int | None,
        option(
            "--divisor-columns",
            min=1,
            help="NCP: divide by so many columns instead of the quasi-identifiers, as some published figures do.",
        ),
    ] = None,
    direction: Annotated[
        str, option("--direction NAME", help="Linkage: released-to-original or original-to-released.")
    ] = "released-to-original",
    ties: Annotated[
        str, option("--ties NAME", help="Linkage, equally near rows: expected, first, any.")
    ] = "expected",
    linkage: Annotated[
        bool | None,
        option("--linkage/--no-linkage", help="Run the linkage attack; by default up to 200,000 rows."),
    ] = None,
    special_uniques: Annotated[
        bool, option("--special-uniques", help="Look for the smallest sets of columns that single a row out.")
    ] = False,
    sampling_fraction: Annotated[
        float | None,
        option(
            "--sampling-fraction",
            help="Share of the population in the original table: estimates population uniqueness.",
        ),
    ] = None,
    row_risk: Annotated[
        Path | None,
        option(
            "--row-risk FILE",
            help="Write each original row's risk before and after to a private CSV (never publish it).",
        ),
    ] = None,
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
) -> None:
    """Measure the loss and the risk of a release.

    Both files are needed: the original, and what was published of it.
    """
    from velado.report.score_lines import score_lines

    with show.waiting():
        from velado.data.io import read_schema
        from velado.data.release_folder import read_folder
        from velado.data.staging import write_file
        from velado.measures.measured import MeasureSettings, measure_files
        from velado.measures.recoded_columns import read_published
        from velado.measures.risk.record_linkage import Direction, Ties
        from velado.measures.utility.ncp import VARIANTS
        from velado.release.population import read_plain

        folder = read_folder(release)
        settings = MeasureSettings(
            variant=one_of(variant, VARIANTS, "--variant"),
            divisor_columns=divisor_columns,
            direction=one_of(direction, get_args(Direction), "--direction"),
            ties=one_of(ties, get_args(Ties), "--ties"),
            linkage=linkage,
            substitutions=folder.substitutions,
            special_uniques=special_uniques,
            sampling_fraction=sampling_fraction,
        )
        drawn = folder.drawn and folder.rows is None
        table = reading.table(original, read_schema(schema), undeclared)
        published = read_plain(folder.table, table.schema, "utf-8")
        scores = measure_files(table, published.frame, rows=folder.rows, drawn=drawn, k=k, settings=settings)
        if row_risk is not None:
            paired = read_published(table, published.frame, rows=folder.rows, drawn=drawn)
            write_file(row_risk, _row_risks(paired), private=True)
    show.result(scores.to_dict(), score_lines(scores))


def _row_risks(published: PublishedTable) -> bytes:
    """A CSV of each original row's number and its risk of being found, before and after; blank if suppressed."""
    import numpy as np
    import polars as pl

    from velado.data.staging import csv_bytes
    from velado.errors import ParameterError
    from velado.measures.risk.household_risk import household_risk
    from velado.measures.risk.individual_risk import individual_risk

    data = published.data
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    design = published.sample
    before = individual_risk(data, None if design is None else design.weights).risk
    after = np.full(data.rows, np.nan)
    after[published.true_rows] = 1 / published.classes.sizes[published.classes.labels]
    columns: dict[str, object] = {
        "row": np.arange(1, data.rows + 1),
        "risk_before": before,
        "risk_after": pl.Series(after).fill_nan(None),
    }
    if design is not None and design.households is not None:
        columns["household_risk_before"] = household_risk(before, design.households)
    return csv_bytes(pl.DataFrame(columns))
