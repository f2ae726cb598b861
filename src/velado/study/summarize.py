"""summarize(): the pieces of a run as one plain dict, the only thing that renderers see.

``facts`` are numbers and names without language; ``report`` is the same in words, ready to be shown. The dict
shows distributions of the original table, so it is for the data's steward and is not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.measures.measured import Exposure, Scores
from velado.release.operations import Perturb
from velado.release.release import Release
from velado.release.side_doors import promise_with_side_doors, smallest_with_doors
from velado.release.side_doors.door import telling_columns
from velado.report.notes import above_best_percent
from velado.report.phrases import promise_name
from velado.report.report_words import Words
from velado.report.sections import sections
from velado.study.recipe import Recipe
from velado.study.what_if import WhatIfs

# Why a release costs what it costs: which columns, and which rows, carry the loss.

SHOWN_ROWS = 20
SAME = 1e-9
"""Losses this near to one another are equal but for rounding."""


@dataclass(frozen=True, repr=False)
class RowLosses:
    """The loss of every row of the input in every quasi-identifier; a suppressed row loses 1 in each.

    *losses* is rows x quasi-identifiers, in the order of the input.
    """

    losses: npt.NDArray[np.float64]
    names: tuple[str, ...]
    kept: npt.NDArray[np.bool_]

    @property
    def by_row(self) -> npt.NDArray[np.float64]:
        """Mean loss of each row."""
        return np.asarray(self.losses.mean(axis=1), dtype=np.float64)

    def column_shares(self) -> dict[str, float]:
        """The part of the whole loss that each column carries; all 0 when nothing was lost."""
        total = float(self.losses.sum())
        sums = self.losses.sum(axis=0)
        return {n: float(s / total) if total else 0.0 for n, s in zip(self.names, sums, strict=True)}

    def costliest(self, shown: int = SHOWN_ROWS) -> list[dict[str, object]]:
        """The published rows that lose most: row number (the first row is 1), loss, dearest columns, all of a tie.

        Ties go to the earlier row, so that the list repeats.
        """
        rows = np.flatnonzero(self.kept)
        means = self.by_row[rows]
        order = np.lexsort((rows, -means))[:shown]
        chosen = rows[order[means[order] > 0]]
        return [
            {
                "row": int(row) + 1,
                "loss": float(self.by_row[row]),
                "columns": [
                    name
                    for name, loss in zip(self.names, self.losses[row].tolist(), strict=True)
                    if loss >= self.losses[row].max() - SAME
                ],
            }
            for row in chosen
        ]

    def carried_by(self, share: float) -> float:
        """The part of the whole loss that the costliest *share* of all rows (at least one row) carries."""
        means = np.sort(self.by_row)[::-1]
        total = float(means.sum())
        count = max(1, int(np.ceil(share * means.size)))
        return float(means[:count].sum() / total) if total else 0.0


def row_losses(release: Release) -> RowLosses:
    """The losses of a release, row by row. O(rows x quasi-identifiers)."""
    rows = release.kept.size
    columns = release.data.columns
    seen = _rows_seen(release)
    losses = np.ones((rows, len(columns)))
    for at, (column, published) in enumerate(zip(columns, release.recoded.columns, strict=True)):
        losses[seen, at] = np.where(release.recoded.kept, published.losses(column), 1.0)
    return RowLosses(losses, tuple(column.name for column in columns), release.kept)


def _rows_seen(release: Release) -> npt.NDArray[np.int64]:
    """Which rows of the input the method saw: those without a blank that the schema says to suppress."""
    seen = np.ones(release.kept.size, dtype=bool)
    if release.data.rows != seen.size:
        schema = release.table.schema
        for column in schema.quasi:
            if schema.missing_policy(column) == "suppress":
                seen &= ~release.table.is_missing(column.name).to_numpy()
    return np.flatnonzero(seen)


SHOWN_SUPPRESSED = 20


def summarize(
    release: Release,
    scores: Scores,
    others: WhatIfs,
    recipe: Recipe,
    source: Table,
    table_file: str,
    table_sha256: str,
    formulas: int = 0,
) -> dict[str, Any]:
    """Facts and report of one run. *source* is the input as read, *formulas* the formula-like cells kept."""
    found = facts(release, scores, others, recipe, source, table_file, table_sha256, formulas)
    say = Words(recipe.language)
    return {"language": recipe.language, "facts": found, "report": report(found, say)}


def facts(
    release: Release,
    scores: Scores,
    others: WhatIfs,
    recipe: Recipe,
    source: Table,
    table_file: str,
    table_sha256: str,
    formulas: int,
) -> dict[str, Any]:
    """Everything the report says, as numbers and names."""
    measured = scores.to_dict()
    described = release.to_dict()
    quasi = [column.name for column in release.data.columns]
    suppressed = np.flatnonzero(~release.kept)
    return {
        "input": {
            "name": recipe.input_name,
            "keyed_sha256": recipe.input_digest,
            "rows": source.rows,
            "columns": source.frame.width,
        },
        "output": {
            "file": table_file,
            "sha256": table_sha256,
            "rows": release.aligned.height,
            "columns": release.aligned.width,
            "suppressed_rows": release.suppressed,
            "suppressed_share": release.suppressed / source.rows,
            "suppressed_row_numbers": [int(row) + 1 for row in suppressed[:SHOWN_SUPPRESSED]],
        },
        "quasi": quasi,
        "sensitive": [column.name for column in release.table.schema.sensitive],
        "columns": [
            {"name": column.name, "role": column.role}
            for column in release.table.schema.columns.values()
            if column.published
        ],
        "signed_columns": [one.to_dict() for one in release.signed],
        "altered": list(release.prepared.altered),
        "public_losses": release.public_losses,
        "method": {
            "name": release.method.name,
            "title": release.method.title,
            "cost": release.method.cost,
            "source": release.method.source,
        },
        "promise": {"type": release.promise, "verdicts": [v.to_dict() for v in release.verdicts]},
        "interval_ends": interval_ends(release),
        "sensitive_in_view": release.goal.reads_sensitive,
        "risk": _risk(scores),
        "loss": _loss(release, scores),
        "why": _why(release, others),
        "class_sizes": measured["risk"]["after"]["class_sizes"],
        "distributions": {part.name: part.to_dict() for part in scores.distributions},
        "readings_of_blanks": [reading.to_dict() for reading in release.checked.readings],
        "side_doors": [
            {
                **door.to_dict(),
                "smallest_class_with_column": promise_with_side_doors(release.aligned, quasi, door.columns),
            }
            for door in release.side_doors
        ],
        "behind_side_doors": {
            "columns": telling_columns(release.side_doors, quasi),
            "smallest_class": smallest_with_doors(release.aligned, quasi, release.side_doors),
        },
        "warnings": [*release.warnings, *scores.notes],
        "formulas": formulas,
        "how": described["how"],
        "measures": measured,
    }


def interval_ends(release: Release) -> dict[str, Any]:
    """Number columns whose published ends are values read off the rows, and the step of those whose ends are rounded."""
    noisy = {operation.column for operation in release.operations if isinstance(operation, Perturb)}
    true, rounded = [], {}
    for column, published in zip(release.data.columns, release.recoded.columns, strict=True):
        says = any(value is not None and value != ROOT_LABEL for value in published.values)
        if not column.is_numeric or not published.states_cover or not says:
            continue
        if column.rounding is not None:
            rounded[column.name] = column.rounding.step
        elif column.name not in noisy:  # perturbed numbers are nobody's
            true.append(column.name)
    return {"true": true, "rounded": rounded}


def _risk(scores: Scores) -> dict[str, Any]:
    before, after = scores.before, scores.after
    by_person = before.people is not None and after.people is not None
    linkage = None if scores.linkage is None else scores.linkage.to_dict()
    reason = scores.not_measured.get("record linkage", "")
    return {
        "unit": "person" if by_person else "row",
        "before": _attackers(before, by_person),
        "after": _attackers(after, by_person),
        "population": after.rows.population,
        "people": before.uniqueness.people,
        "unique_rows_before": before.uniqueness.unique_rows,
        "unique_rows_share_before": before.uniqueness.unique_rows / max(before.uniqueness.rows, 1),
        "unique_rows_after": after.uniqueness.unique_rows,
        "unique_people_before": before.uniqueness.unique_people,
        "linkage": {"skipped": reason} if linkage is None else linkage,
    }


def _attackers(exposure: Exposure, by_person: bool) -> dict[str, Any]:
    risk = exposure.people if by_person and exposure.people is not None else exposure.rows
    return {
        "prosecutor_highest": risk.prosecutor.highest,
        "prosecutor_mean": risk.prosecutor.mean,
        "journalist_highest": risk.journalist.highest,
        "marketer": risk.marketer,
        "above": {f"{limit:g}": share for limit, share in risk.prosecutor.share_above.items()},
    }


def _loss(release: Release, scores: Scores) -> dict[str, Any]:
    assert scores.ncp is not None  # always known in process
    return {
        "variant": scores.ncp.variant,
        "charged_for": scores.ncp_charged_for,
        "overall": scores.ncp.overall,
        "by_column": dict(scores.ncp.by_column),
        # Not known when column operations came first and their texts cannot be read against the original.
        "false_cells": None if scores.false_cells is None else scores.false_cells.to_dict(),
        "above_best_percent": above_best_percent(release),
        "lower_bound": release.notes.get("lower_bound"),
    }


def _why(release: Release, others: WhatIfs) -> dict[str, Any]:
    losses = row_losses(release)
    sizes = release.checked.partition.sizes
    return {
        "share_by_column": losses.column_shares(),
        "costliest_rows": losses.costliest(),
        "carried_by_1": losses.carried_by(0.01),
        "carried_by_5": losses.carried_by(0.05),
        "now": {
            "k": release.goal.k,
            "suppression": release.goal.suppression,
            "loss": release.loss,
            "suppressed": release.suppressed,
            "groups": int(sizes.size),
            "smallest": int(sizes.min()),
        },
        "what_if": [run.to_dict() for run in others.runs],
        "what_if_skipped": others.skipped,
    }


def report(found: Mapping[str, Any], say: Words) -> dict[str, Any]:
    """The facts in words, opening with the verdict in one sentence."""
    loss, output = found["loss"]["overall"], found["output"]
    risk = found["risk"]
    return {
        "title": say("title"),
        "subtitle": say(
            "subtitle",
            name=found["input"]["name"],
            rows=found["input"]["rows"],
            columns=found["input"]["columns"],
            method=found["method"]["title"],
        ),
        "verdict": _verdict(found, say),
        "notice": {"title": say("notice_title"), "text": say("notice")},
        "key_figures": [
            {"name": say("key_smallest"), "value": say.count(found["class_sizes"]["smallest"])},
            {
                "name": say("key_risk"),
                "value": f"{say.share(risk['before']['prosecutor_highest'])} → "
                f"{say.share(risk['after']['prosecutor_highest'])}",
            },
            {"name": say("key_loss"), "value": say.share(loss)},
            {
                "name": say("key_suppressed"),
                "value": f"{say.count(output['suppressed_rows'])} ({say.share(output['suppressed_share'])})",
            },
        ],
        "contents": say("contents"),
        "sections": sections(found, say),
        "footer": say("footer", sha256=output["sha256"], file=output["file"]),
    }


def _verdict(found: Mapping[str, Any], say: Words) -> dict[str, Any]:
    promise = found["promise"]
    loss = say.share(found["loss"]["overall"])
    dropped = found["output"]["suppressed_rows"]
    open_doors = [door for door in found["side_doors"] if not door["accepted"]]
    crowd = next((v for v in promise["verdicts"] if v["guarantee"] == "k-anonymity"), None)
    details = [say("cost_sentence", loss=loss, rows=dropped)]
    if promise["type"] == "as in the paper":
        state, headline = "warning", say("headline_paper")
    elif found["altered"]:
        state, headline = "caution", say("headline_altered", columns=say.listed(found["altered"]))
    elif not promise["verdicts"]:
        state, headline = "caution", say("headline_measured", smallest=found["class_sizes"]["smallest"])
    else:
        state = "caution" if open_doors else "good"
        if crowd is None:
            headline = say("headline_holds")
        elif crowd["unit"] == "people":
            headline = say("headline_people", found=int(crowd["achieved"]))
        else:
            headline = say("headline_rows", found=int(crowd["achieved"]))
    behind = found["behind_side_doors"]
    if behind["smallest_class"] is not None:
        smallest = found["class_sizes"]["smallest"]
        columns = say.listed(behind["columns"])
        details.append(
            say("headline_behind", smallest=smallest, behind=behind["smallest_class"], columns=columns)
        )
    if any(door["column"] for door in open_doors):
        names = sorted({door["column"] for door in open_doors if door["column"]})
        details.append(say("headline_doors", columns=say.listed(names)))
    labels = {"good": say("label_good"), "caution": say("label_caution"), "warning": say("label_warning")}
    return {
        "state": state,
        "label": f"{labels[state]} · {promise_name(promise['type'], say)}",
        "headline": headline,
        "details": details,
    }
