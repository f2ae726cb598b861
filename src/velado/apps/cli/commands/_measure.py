"""`velado measure`: what a release cost, and what it bought, beside its original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import argument, command, one_of, option
from velado.text import join, number, percent, say

if TYPE_CHECKING:
    from velado.data.table import Table
    from velado.report.blocks import Table as Grid

# How records were linked, as flags and results write it.
_LINKED_BY = {
    str(word): word
    for word in (
        say("released-to-original"),
        say("original-to-released"),
        say("expected"),
        say("first"),
        say("any"),
        say("range"),
        say("standard"),
        say("manhattan"),
        say("euclidean"),
    )
}
_RISKS = (
    (say("risk of being found, highest"), "prosecutor", "highest"),
    (say("risk of being found, mean"), "prosecutor", "mean"),
    (say("journalist's risk, highest"), "journalist", "highest"),
    (say("share a marketer finds"), "marketer", "expected_share"),
)
_SIDES = ("before", "after")


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
    reading: flags.Reading,
) -> None:
    """Measure the loss and the risk of a release.

    Both files are needed: the original, and what was published of it.
    """
    with show.waiting():
        from velado.data.io import read_schema
        from velado.data.release_folder import read_folder
        from velado.data.staging import write_file
        from velado.measures.measured import Settings, measure_files
        from velado.measures.risk.record_linkage import Direction, Ties
        from velado.measures.utility.ncp import VARIANTS
        from velado.release.population import read_plain

        folder = read_folder(release)
        settings: dict[str, Any] = {
            "variant": one_of(variant, VARIANTS, "--variant"),
            "divisor_columns": divisor_columns,
            "direction": one_of(direction, get_args(Direction), "--direction"),
            "ties": one_of(ties, get_args(Ties), "--ties"),
            "linkage": linkage,
            "substitutions": folder.substitutions,
            "special_uniques": special_uniques,
            "sampling_fraction": sampling_fraction,
        }
        order: dict[str, Any] = {"rows": folder.rows, "drawn": folder.drawn and folder.rows is None}
        table = reading.table(original, read_schema(schema), undeclared)
        published = read_plain(folder.table, table.schema, "utf-8")
        scores = measure_files(table, published.frame, k=k, settings=Settings(**settings), **order).to_dict()
        if row_risk is not None:
            write_file(row_risk, row_risks(table, published.frame, order), private=True)
    show.result(scores, _view(scores))


def row_risks(table: Table, frame: Any, order: Mapping[str, Any]) -> bytes:
    """A CSV of each original row's number and its risk of being found, before and after; blank if suppressed."""
    import numpy as np
    import polars as pl

    from velado.data.encode import encode
    from velado.data.staging import csv_bytes
    from velado.errors import ParameterError
    from velado.measures.recoded_columns import read_published
    from velado.measures.risk.individual_risk import individual_risk

    data = encode(table)
    published = read_published(table, frame, data=data, **order)
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    after = np.full(data.rows, np.nan)
    after[published.true_rows] = 1 / published.classes.sizes[published.classes.labels]
    return csv_bytes(
        pl.DataFrame(
            {
                "row": np.arange(1, data.rows + 1),
                "risk_before": individual_risk(data).risk,
                "risk_after": pl.Series(after).fill_nan(None),
            }
        )
    )


def _view(scores: Mapping[str, Any]) -> Iterator[str | Grid]:
    yield show.table(
        say("What the release cost and bought"),
        [say("measure"), say("original"), say("release")],
        [*_utility(scores), *_risk(scores["risk"])],
    )
    for name, reason in scores["not_measured"].items():
        yield say("Not measured: {name}. {reason}", name=name, reason=reason)
    yield from scores["notes"]


def _utility(scores: Mapping[str, Any]) -> Iterator[list[str]]:
    utility, rows = scores["utility"], scores["rows"]
    yield [say("rows"), number(rows["original"]), number(rows["published"])]
    ncp, size = utility["ncp"], utility["average_group_size"]
    if ncp is not None:
        yield [f"NCP ({ncp['variant']})", "", percent(ncp["overall"])]
        yield from ([f"  {name}", "", percent(share)] for name, share in ncp["by_column"].items())
    if utility["false_cells"] is not None:
        yield [say("false cells"), "", percent(utility["false_cells"]["share"])]
    yield [say("mean group"), "", number(size["mean"], 2)]
    if size["c_avg"] is not None:
        yield [f"C_avg (k = {size['k']})", "", number(size["c_avg"], 3)]
    yield [say("discernibility"), "", number(utility["discernibility"]["value"])]


def _risk(risk: Mapping[str, Any]) -> Iterator[list[str]]:
    before, after = (risk[side] for side in _SIDES)
    for side, unit in (("by_row", say("rows")), ("by_person", say("people"))):
        old, new = before[side], after[side]
        if old is None:
            continue
        for name, part, inner in _RISKS:
            shown = "" if new is None else percent(new[part][inner])
            yield [say("{name} ({unit})", name=name, unit=unit), percent(old[part][inner]), shown]
        unique = f"unique_{unit}"
        shown = "" if new is None else number(after["uniqueness"][unique])
        yield [
            say("{name} ({unit})", name=say("unique"), unit=unit),
            number(before["uniqueness"][unique]),
            shown,
        ]
    found = risk["record_linkage"]
    if found is not None:
        rules = [_rule(name, found[name]) for name in ("direction", "ties", "scaling", "metric")]
        yield [say("linkage ({rules})", rules=join(rules, ", ")), "", percent(found["share"])]
    yield from _disclosure(risk)


def _rule(name: str, value: str) -> str:
    return say("no scaling") if (name, value) == ("scaling", "none") else _LINKED_BY.get(value, value)


def _disclosure(risk: Mapping[str, Any]) -> Iterator[list[str]]:
    """Guessing of sensitive values and partial knowledge, and what was measured on request."""
    for name, found in (risk.get("attribute_disclosure") or {}).items():
        yield [
            say("'{column}' guessed right: from the whole table, from the release", column=name),
            *(percent(found[side]["share"]) for side in ("baseline", "guessed")),
        ]
    partial = risk.get("partial_knowledge")
    if partial is not None:
        yield [
            say(
                "sets of up to 3 columns that single somebody out (of {subsets})", subsets=partial["subsets"]
            ),
            *(number(partial[f"subsets_with_unique_rows_{side}"]) for side in _SIDES),
        ]
    special = risk.get("special_uniques")
    if special is not None:
        rows = [special.get(side) for side in _SIDES]
        shown = [number(one["special_rows"]) if isinstance(one, dict) else "" for one in rows]
        yield [say("rows with a special unique (SUDA)"), *shown]
    population = risk.get("population_uniqueness")
    if population is not None:
        yield [
            say("unique in the population (estimate)"),
            *(_estimate(population.get(side)) for side in _SIDES),
        ]


def _estimate(found: Any) -> str:
    if not isinstance(found, dict):
        return ""
    chosen = found.get("chosen")
    return f"{number(round(found['estimates'][chosen]['population_uniques']))} ({chosen})" if chosen else "-"
