"""What the page shows of a finished run: figures as plain values, and rows before and after, kept beside the release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from velado.apps.desk.deciding import door_name
from velado.data.normal import distinct_texts
from velado.data.numbers import parse_numbers
from velado.data.staging import file_digest
from velado.data.table import Table
from velado.errors import VeladoError
from velado.measures.risk.reidentification import Reidentification
from velado.release.operations._operation import columns_of
from velado.release.release import Release
from velado.release.side_doors import SideDoor
from velado.release.why_suppressed import why_suppressed
from velado.study.run import Published
from velado.text import LANGUAGES, told

MOST_ROWS = 200_000
"""Rows that can be looked at one by one; of larger tables the first."""
BEFORE, AFTER = "before:", "after:"


def shown(done: Published, folder: Path) -> dict[str, Any]:
    """The figures of a run; its rows stand in `rows.parquet` of *folder*."""
    release = done.release
    rows_of(release).write_parquet(folder / "rows.parquet")
    facts = done.facts
    before, after = facts.risk(facts.scores.before), facts.risk(facts.scores.after)
    table = next(path for path in done.public.iterdir() if path.name.startswith("table."))
    behind, smallest = facts.behind_doors
    return {
        "table": table.name,
        "sha256": file_digest(table),
        "method": release.method.name,
        "k": release.goal.k,
        "rows": release.table.rows,
        "suppressed": release.suppressed,
        "groups": int(release.checked.partition.sizes.size),
        "smallest": int(release.checked.partition.sizes.min()),
        "loss": release.loss if facts.scores.ncp is None else facts.scores.ncp.overall,
        "losses": release.losses,
        "risk": {"before": _risk(before), "after": _risk(after)},
        "together": {**asdict(facts.together), "share": facts.together.share},
        "verdicts": [_both(verdict.sentence()) for verdict in release.verdicts],
        "warnings": [_both(text) for text in facts.warnings],
        "doors": [_door(door, release.original) for door in release.side_doors],
        "behind": {"columns": behind, "smallest": smallest},
        "cheaper": [
            {
                "changed": run.changed,
                "k": run.k,
                "suppression": run.suppression,
                "loss": run.loss,
                "suppressed": run.suppressed,
            }
            for run in facts.what_ifs.runs
            if not run.failed and run.loss is not None
        ],
        "columns": inventory(release),
        "why": {str(one.row + 1): _both(one.sentence) for one in why_suppressed(release)},
    }


def _door(door: SideDoor, original: Table) -> dict[str, Any]:
    return {
        "spread": {name: found for name in door.columns if (found := spread_of(original, name)) is not None},
        "name": door_name(door),
        "columns": list(door.columns),
        "reveals": door.reveals,
        "kind": door.kind,
        "tells": door.tells,
        "door": asdict(door),
        "accepted": door.accepted,
        "sentence": _both(door.sentence()),
    }


def spread_of(table: Table, name: str) -> dict[str, Any] | None:
    """Between what a column's numbers lie, but for the twentieth at each end, and whether all are whole; None without numbers, or
    where a step is levels of a hierarchy.

    >>> from velado.testing.examples import small_table
    >>> spread_of(small_table(age=("quasi", "numeric", "20 30 40")), "age")
    {'low': 20.0, 'high': 40.0, 'whole': True}
    """
    column = table.schema.columns.get(name)
    if column is None or column.kind != "numeric" or column.taxonomy is not None:
        return None
    often = distinct_texts(table, name)
    texts = pl.DataFrame({name: often.get_column("text")})
    try:
        numbers = parse_numbers(table.with_frame(texts), column, np.zeros(texts.height, dtype=bool))[0]
    except VeladoError:
        return None
    if not numbers.size:
        return None
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(often.get_column("n").to_numpy()[order])
    low, high = (
        float(numbers[order][np.searchsorted(reached, share * reached[-1])]) for share in (0.05, 0.95)
    )
    return {"low": low, "high": high, "whole": bool((numbers == np.floor(numbers)).all())}


def inventory(release: Release) -> list[dict[str, Any]]:
    """What became of every column, in the words of the evidence pack."""
    published = set(release.aligned.columns)
    losses, schema = release.losses, release.original.schema
    altered = {name for one in release.operations for name in columns_of(one, schema)}
    out = []
    for name, column in schema.columns.items():
        fate = "held back"
        if name in published:
            coarser = losses.get(name, 0) > 0
            fate = "altered" if name in altered else "generalized" if coarser else "published"
        out.append({"name": name, "role": column.role, "fate": fate, "loss": losses.get(name)})
    return out


def rows_of(release: Release) -> pl.DataFrame:
    """Rows before and after, in the order of the input, with the number of the group each is published in."""
    kept = release.kept
    rows = np.arange(kept.size)
    groups = np.full(kept.size, -1, dtype=np.int64)
    groups[kept] = release.checked.partition.labels
    parts = [pl.Series("row", rows + 1), pl.Series("group", groups)]
    original = release.original.frame
    parts += [original[name].cast(pl.String).alias(f"{BEFORE}{name}") for name in original.columns]
    place = pl.Series(np.where(kept, np.cumsum(kept) - 1, 0))
    for name in release.aligned.columns:
        texts = release.aligned[name].cast(pl.String)
        found = texts.gather(place) if texts.len() else pl.Series([None] * kept.size, dtype=pl.String)
        parts.append(found.set(pl.Series(~kept), None).alias(f"{AFTER}{name}"))
    return pl.DataFrame(parts).head(MOST_ROWS)


def _risk(found: Reidentification) -> dict[str, float]:
    return {"highest": found.prosecutor.highest, "mean": found.marketer}


def _both(sentence: str) -> dict[str, str]:
    return {tongue: told(sentence, tongue) for tongue in LANGUAGES}
