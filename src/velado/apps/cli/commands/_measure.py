"""`velado measure`: what a release cost, and what it bought, beside its original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import linkage_in, number, percent, say
from velado.report.phrases import phrase
from velado.text import Language, told

TABLES = ("table.csv", "table.parquet")


def measure(
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", show_default=False)],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", show_default=False)],
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False)
    ],
    k: Annotated[
        int | None, typer.Option("-k", help="k for the average group size.", show_default=False)
    ] = None,
    variant: Annotated[
        str,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="NCP: leaves-1, leaves/total, sets, thesis, thesis-distinct, gok, das-eq1.",
        ),
    ] = "leaves-1",
    divisor_columns: Annotated[
        int | None,
        typer.Option(
            "--divisor-columns",
            min=1,
            help="NCP: divide by so many columns instead of the quasi-identifiers, as some published figures do.",
            show_default=False,
        ),
    ] = None,
    direction: Annotated[
        str,
        typer.Option(
            "--direction", metavar="NAME", help="Linkage: released-to-original or original-to-released."
        ),
    ] = "released-to-original",
    ties: Annotated[
        str, typer.Option("--ties", metavar="NAME", help="Linkage, equally near rows: expected, first, any.")
    ] = "expected",
    linkage: Annotated[
        bool | None,
        typer.Option(
            "--linkage/--no-linkage",
            help="Run the linkage attack; by default up to 200,000 rows.",
            show_default=False,
        ),
    ] = None,
    special_uniques: Annotated[
        bool,
        typer.Option(
            "--special-uniques", help="Look for the smallest sets of columns that single a row out."
        ),
    ] = False,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(
            "--sampling-fraction",
            help="Share of the population in the original table: estimates population uniqueness.",
            show_default=False,
        ),
    ] = None,
    row_risk: Annotated[
        Path | None,
        typer.Option(
            "--row-risk",
            metavar="FILE",
            help="Write each original row's risk before and after to a private CSV (never publish it).",
            show_default=False,
        ),
    ] = None,
    undeclared: flags.Undeclared = "refuse",
    encoding: flags.Encoding = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Measure the loss and the risk of a release.

    Both files are needed: the original, and what was published of it.
    """
    tongue = flags.language(lang)
    how: Any = flags.one_of(undeclared, flags.UNDECLARED, "--undeclared")
    with waiting(tongue, quiet or as_json):
        from velado.data.io import read_schema, read_table
        from velado.data.staging import write_file
        from velado.measures.measured import Settings, measure_files
        from velado.measures.risk.record_linkage import Direction, Ties
        from velado.measures.utility.ncp import VARIANTS
        from velado.release.population import read_plain

        manifest = manifest_of(release)
        order = order_of(release, manifest)
        settings: dict[str, Any] = {
            "variant": flags.one_of(variant, VARIANTS, "--variant"),
            "divisor_columns": divisor_columns,
            "direction": flags.one_of(direction, get_args(Direction), "--direction"),
            "ties": flags.one_of(ties, get_args(Ties), "--ties"),
            "linkage": linkage,
            "substitutions": substitutions_of(manifest),
            "special_uniques": special_uniques,
            "sampling_fraction": sampling_fraction,
        }
        table = read_table(original, read_schema(schema), how, encoding)
        published = read_plain(table_of(release), table.schema, "utf-8")
        scores = measure_files(table, published.frame, k=k, settings=Settings(**settings), **order).to_dict()
        if row_risk is not None:
            write_file(row_risk, row_risks(table, published.frame, order), private=True)
    if as_json:
        show.as_json(scores)
    elif not quiet:
        show.table(
            say(tongue, "measure_title"),
            [say(tongue, key) for key in ("measure_metric", "before", "after")],
            [*_utility(scores, tongue), *_risk(scores, tongue)],
        )
        for name, reason in scores["not_measured"].items():
            show.line(f"{say(tongue, 'not_measured')}: {name}. {reason}")
        for text in scores["notes"]:
            show.line(text)


def manifest_of(release: Path) -> dict[str, Any]:
    """The manifest beside a published table, or of a folder; nothing where there is none that can be read."""
    import json

    from velado.data.staging import PUBLIC

    folder = release if release.is_dir() else release.parent
    for path in (folder / PUBLIC / "manifest.json", folder / "manifest.json"):
        if path.is_file():
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, OSError):
                return {}
            return document if isinstance(document, dict) else {}
    return {}


def substitutions_of(manifest: dict[str, Any]) -> str:
    """How the texts of a release were chosen, from its manifest: "class", "value", or "auto" where nobody says."""
    try:
        method = manifest["how"]["method"]
        name, profile, recoder = (method.get(key) for key in ("name", "profile", "recoder"))
    except (KeyError, TypeError, AttributeError):
        return "auto"
    if name in ("das", "fixed-interval"):
        return "value"
    recoder = recoder or ("centroid" if profile == "paper" else "cover")
    return "auto" if recoder == "cover" else "class"


def order_of(release: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Which original row each published row is, from the private part of a release; or that nobody can say."""
    from velado.data.io import read_table
    from velado.data.staging import PRIVATE

    output = manifest.get("output")
    if not isinstance(output, dict) or output.get("row_order") != "drawn":
        return {}
    folder = release if release.is_dir() else release.parent
    for path in (folder / PRIVATE / "rows.csv", folder.parent / PRIVATE / "rows.csv"):
        if path.is_file():
            numbers = read_table(path).frame.get_column("row").cast(int)
            return {"rows": numbers.to_numpy() - 1}
    return {"drawn": True}


def row_risks(table: Any, frame: Any, order: dict[str, Any]) -> bytes:
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


def table_of(release: Path) -> Path:
    """The published table: the file itself, or the table inside the folder of a release."""
    from velado.data.staging import PUBLIC

    places = [folder / name for folder in (release / PUBLIC, release) for name in TABLES]
    return next((place for place in places if place.is_file()), release)


def _utility(scores: dict[str, Any], lang: Language) -> list[list[str]]:
    utility, rows = scores["utility"], scores["rows"]
    out = [
        [told(phrase("rows"), lang), number(rows["original"], lang), number(rows["published"], lang)],
    ]
    ncp = utility["ncp"]
    if ncp is not None:
        out.append([f"NCP ({ncp['variant']})", "", percent(ncp["overall"], lang)])
        out += [[f"  {name}", "", percent(share, lang)] for name, share in ncp["by_column"].items()]
    if utility["false_cells"] is not None:
        out.append([say(lang, "false_cells"), "", percent(utility["false_cells"]["share"], lang)])
    size, cost = utility["average_group_size"], utility["discernibility"]
    out.append([say(lang, "mean"), "", number(size["mean"], lang, 2)])
    if size["c_avg"] is not None:
        out.append([f"C_avg (k = {size['k']})", "", number(size["c_avg"], lang, 3)])
    out.append([say(lang, "discernibility"), "", number(cost["value"], lang)])
    return out


def _risk(scores: dict[str, Any], lang: Language) -> list[list[str]]:
    before, after = scores["risk"]["before"], scores["risk"]["after"]
    out = []
    for side, unit in (("by_row", "rows"), ("by_person", "people")):
        old, new = before[side], after[side]
        if old is None:
            continue
        name = told(phrase(unit), lang)
        for key, part, inner in (
            ("prosecutor_highest", "prosecutor", "highest"),
            ("prosecutor_mean", "prosecutor", "mean"),
            ("journalist_highest", "journalist", "highest"),
            ("marketer", "marketer", "expected_share"),
        ):
            shown = "" if new is None else percent(new[part][inner], lang)
            out.append([f"{say(lang, key)} ({name})", percent(old[part][inner], lang), shown])
        unique = f"unique_{unit}"
        shown = "" if new is None else number(after["uniqueness"][unique], lang)
        out.append([f"{say(lang, 'unique')} ({name})", number(before["uniqueness"][unique], lang), shown])
    return out + _linkage(scores["risk"]["record_linkage"], lang) + _disclosure(scores["risk"], lang)


def _disclosure(risk: dict[str, Any], lang: Language) -> list[list[str]]:
    """Guessing of sensitive values and partial knowledge, and what was measured on request."""
    out = []
    for name, found in (risk.get("attribute_disclosure") or {}).items():
        shares = [percent(found[side]["share"], lang) for side in ("baseline", "guessed")]
        out.append([say(lang, "guessed", column=name), *shares])
    partial = risk.get("partial_knowledge")
    if partial is not None:
        sides = [number(partial[f"subsets_with_unique_rows_{side}"], lang) for side in ("before", "after")]
        out.append([say(lang, "partial", subsets=partial["subsets"]), *sides])
    special = risk.get("special_uniques")
    if special is not None:
        rows = [
            _told(special.get(side), lambda f: number(f["special_rows"], lang))
            for side in ("before", "after")
        ]
        out.append([say(lang, "special_uniques"), *rows])
    population = risk.get("population_uniqueness")
    if population is not None:
        rows = [_told(population.get(side), lambda f: _population(f, lang)) for side in ("before", "after")]
        out.append([say(lang, "population_uniques"), *rows])
    return out


def _told(found: Any, tell: Callable[[Any], str]) -> str:
    return "" if not isinstance(found, dict) else tell(found)


def _population(found: dict[str, Any], lang: Language) -> str:
    chosen = found.get("chosen")
    if not chosen:
        return "-"
    return f"{number(round(found['estimates'][chosen]['population_uniques']), lang)} ({chosen})"


def _linkage(found: dict[str, Any] | None, lang: Language) -> list[list[str]]:
    if found is None:
        return []
    rules = ", ".join(linkage_in(lang, found[name]) for name in ("direction", "ties", "scaling", "metric"))
    return [[f"{say(lang, 'linkage')} ({rules})", "", percent(found["share"], lang)]]
