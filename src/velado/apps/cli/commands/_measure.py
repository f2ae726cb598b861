"""`velado measure`: what a release cost, and what it bought, beside its original."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, one_of, option
from velado.apps.cli.engine_flags import RowSourceFlags, in_memory, is_lake
from velado.engines.places import REMOTE, SERVERS

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.measures.measured import MeasureSettings, Scores
    from velado.measures.recoded_columns import PublishedTable


@command("measure")
def measure(
    original: Annotated[str, argument("ORIGINAL", help="The table as it was.")],
    release: Annotated[
        str, argument("RELEASE", help="The published file, or the folder that `anonymize` made.")
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
    same_order: Annotated[
        bool,
        option(
            "--same-order",
            help="The rows of RELEASE stand in the order of ORIGINAL; by default that is believed only if every cell fits.",
        ),
    ] = False,
    force: flags.Force = False,
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
    engine: RowSourceFlags,
    release_table: Annotated[
        str | None, option("--release-table NAME", help="The table of a postgresql:// RELEASE.")
    ] = None,
) -> None:
    """Measure the loss and the risk of a release.

    Both files are needed: the original, and what was published of it.
    """
    from velado.report.score_lines import score_lines

    with show.waiting():
        from velado.data.io import read_schema, read_table
        from velado.data.release_folder import ReleaseFolder, read_folder
        from velado.data.staging import write_file
        from velado.measures.measured import MeasureSettings, measure_files
        from velado.measures.recoded_columns import read_published
        from velado.measures.risk.record_linkage import Direction, Ties
        from velado.measures.utility.ncp import VARIANTS
        from velado.release.population import read_plain

        told = release.startswith((*SERVERS, *REMOTE)) or bool(set("*?[") & set(release))
        folder = ReleaseFolder(table=Path(release)) if told else read_folder(Path(release))
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
        sides = (
            (original, engine),
            (release if told else str(folder.table), replace(engine, table=release_table)),
        )
        stay = [flags_of.stays(place) for place, flags_of in sides]
        if any(stay):
            engine.refuse(
                [
                    ("--linkage", bool(linkage)),
                    ("--special-uniques", special_uniques),
                    ("--row-risk", row_risk is not None),
                    ("--same-order", same_order),
                    ("--sheet", reading.sheet is not None),
                ]
            )
            scores = _where_they_lie(sides, read_schema(schema), undeclared, reading, k, settings)
            show.result(scores.to_dict(), score_lines(scores))
            return
        drawn = False if folder.drawn is None and same_order else folder.drawn
        meaning = read_schema(schema)
        table = (
            read_table(in_memory(original, meaning), meaning, undeclared)
            if is_lake(original)
            else reading.table(Path(original), meaning, undeclared)
        )
        plain = in_memory(release, replace(meaning, encoding="utf-8")) if told else folder.table
        published = read_plain(plain, table.schema, None if told else "utf-8")
        scores = measure_files(table, published.frame, rows=folder.rows, drawn=drawn, k=k, settings=settings)
        if row_risk is not None:
            paired = read_published(table, published.frame, rows=folder.rows, drawn=drawn)
            write_file(row_risk, _row_risks(paired), force, private=True)
    show.result(scores.to_dict(), score_lines(scores))


def _where_they_lie(
    sides: tuple[tuple[str, RowSourceFlags], tuple[str, RowSourceFlags]],
    schema: Schema,
    undeclared: Literal["refuse", "drop", "keep"],
    reading: flags.ReadingFlags,
    k: int | None,
    settings: MeasureSettings,
) -> Scores:
    """The scores of two tables of which at least one stays where it is; the release is written in UTF-8."""
    from velado.measures.source_measured import measure_sources

    (original, engine), (release, its_engine) = sides
    meaning = schema if reading.encoding is None else replace(schema, encoding=reading.encoding)
    with (
        engine.opened(original, meaning) as before,
        its_engine.opened(release, replace(schema, encoding="utf-8")) as after,
    ):
        return measure_sources(before, after, schema, undeclared=undeclared, k=k, settings=settings)


def _row_risks(published: PublishedTable) -> bytes:
    """A CSV of each original row's risk of being found, before and after by the same measure; blank if suppressed."""
    import numpy as np
    import polars as pl

    from velado.data.partition import Partition
    from velado.data.table_bytes import csv_bytes
    from velado.measures.risk.household_risk import household_risk, row_risks
    from velado.measures.risk.reidentification import risk_among_people

    plain, found, design = row_risks(published, weighted=False), row_risks(published), published.sample
    rows = published.true_rows
    assert rows is not None  # or row_risks had refused
    sides = {"risk": (plain.before.risk, plain.after.risk)}
    if found.before.weighted:
        sides["weighted_risk"] = found.before.risk, found.after.risk
    data = published.data
    if data.row_people is not None:
        classes = Partition.by_codes([one.codes for one in data.columns], [one.size for one in data.columns])
        sides["person_risk"] = (
            risk_among_people(classes, data.row_people),
            risk_among_people(published.classes, data.row_people[rows]),
        )
    if design is not None and design.households is not None:
        sides["household_risk"] = (
            household_risk(found.before.risk, design.households),
            household_risk(found.after.risk, design.households[rows]),
        )
    columns: dict[str, object] = {"row": np.arange(1, data.rows + 1)}
    for name, (before, after) in sides.items():
        placed = np.full(data.rows, np.nan)
        placed[rows] = after
        columns[f"{name}_before"] = before
        columns[f"{name}_after"] = pl.Series(placed).fill_nan(None)
    return csv_bytes(pl.DataFrame(columns))
