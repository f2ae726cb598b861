"""What was written of a planned release, counted anew where it stands: the verdicts, and what stands behind each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa

from velado.data.blanks import is_text
from velado.data.partition import ValueEntries
from velado.engines.row_source import ROWS, RowSource
from velado.errors import EngineError, GuaranteeNotMet, SideDoorOpen
from velado.release.goal import Checked
from velado.release.guarantees._guarantee import Verdict
from velado.release.side_doors.door import SideDoor, quoted, refuse_small_door, telling_columns
from velado.release.sources.source_check import check_source, counted_values, published_groups, smallest_group
from velado.release.sources.source_release import PlannedRelease, counts_people
from velado.settings import describe
from velado.text import say


@dataclass(frozen=True, repr=False)
class SourceRelease:
    """A table written from a plan, and what was found by counting the written rows.

    *written* is the published table where it stands now; *checked* was counted there. *behind* is the smallest group for who also
    reads the columns that tell a quasi-identifier, None where there are none. *behind_each* is the same of each side door by its
    columns, *people* and the sensitive *values* that are published are those of each visible group, as far as they were counted.

    >>> SourceRelease.__name__
    'SourceRelease'
    """

    plan: PlannedRelease
    checked: Checked
    columns: tuple[str, ...]
    behind: int | None = None
    behind_each: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    people: ValueEntries | None = None
    values: Mapping[str, ValueEntries] = field(default_factory=dict)

    def __repr__(self) -> str:
        state = "; ".join(verdict.sentence() for verdict in self.verdicts) or "no guarantee, measured only"
        return f"{type(self).__name__}({self.plan.rows:,} rows by {self.plan.method.name}; {state})"

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per guarantee, found on the written rows."""
        return self.checked.verdicts

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should know before the table leaves."""
        return (*self.public_warnings, *self.plan.prepared.codes.own_warnings)

    @property
    def public_warnings(self) -> tuple[str, ...]:
        """What everybody who has the table may know of it."""
        return (*self.plan.prepared.warnings, *self.plan.recoded.warnings)

    def facts(self) -> dict[str, dict[str, object]]:
        """Result, promise, cost and how it was made, without any cell value."""
        plan, judged = self.plan, self.plan.prepared.judged
        return {
            "result": {
                "rows": plan.rows,
                "columns": list(self.columns),
                "row_order": "drawn",
                "suppressed_rows": plan.suppressed,
            },
            "promise": {
                "type": plan.promise,
                "verdicts": [asdict(verdict) for verdict in self.verdicts],
                "readings_of_blanks": [asdict(reading) for reading in self.checked.readings],
                "side_doors": [asdict(door) for door in judged.side_doors],
                "signed_columns": [asdict(one) for one in judged.signed],
                "warnings": list(self.warnings),
                "judged": judged.said,
            },
            "cost": {"ncp": plan.loss, "ncp_by_column": plan.losses},
            "how": {
                "engine": plan.prepared.source.engine,
                "plan": plan.prepared.chosen.name,
                "plan_because": plan.prepared.chosen.why,
                "tuples": plan.prepared.tuples.distinct,
                "rounds": plan.prepared.tuples.rounds,
                "parts": plan.prepared.tuples.parts,
                "method": describe(plan.method),
                "guarantees": [describe(guarantee) for guarantee in plan.goal.guarantees],
                "suppression_limit": plan.goal.suppression,
                "seed": plan.seed,
                "operations": [],
                "notes": dict(plan.recoded.notes),
            },
        }


def check_written(plan: PlannedRelease, written: RowSource, *, values: bool = False) -> SourceRelease:
    """The release, if the rows that were written are those that were planned and keep every promise; else an error.

    *written* is counted from its bytes. People, and sensitive values that are not published, are not in it: they are those
    of the second count of the source, and the groups they stand behind must be there with the very same rows. With *values* the
    published sensitive values of each group, and the groups behind each side door, are counted whatever was promised.

    >>> check_written.__name__
    'check_written'
    """
    quasi = [column.name for column in plan.recoded.columns]
    if tuple(written.types.names) != plan.columns:
        raise EngineError(
            "The table that was written has other columns than were planned.",
            "One that was to stay here could leave, so nothing was published.",
            "Please report it.",
        )
    groups = published_groups(written, quasi)
    behind = np.bincount(plan.group, plan.counts[plan.recoded.kept], minlength=plan.shown.height)
    expected = (
        plan.shown.with_columns(pl.Series("rows of it", behind.astype(np.int64)))
        .group_by(quasi)
        .agg(pl.col("rows of it").sum())
        .sort(quasi)
    )
    same = expected.equals(groups.frame.with_columns(pl.Series("rows of it", groups.rows)).sort(quasi))
    left_out = [column.name for column in plan.prepared.schema.quasi if column.missing == "suppress"]
    if not same or any(groups.frame.get_column(name).has_nulls() for name in left_out):
        plan.prepared.source.unchanged()
        raise EngineError(
            "The table that was written is not the one that was planned.",
            "Its groups, counted anew, differ, so no promise can be made of it and nothing was published.",
            "Run it again when nobody writes to the source; if it stays so, please report it.",
        )
    _refuse_other_cells(plan, written, quasi)
    people = plan.people_of(groups.frame)
    asked = values or any(guarantee.reads == "values" for guarantee in plan.goal.guarantees)
    counted, shapes = counted_values(groups, plan.prepared.schema) if asked else ({}, {})
    checked = check_source(
        groups, plan.prepared.schema, plan.goal.guarantees, people=people, counted=(counted, shapes)
    )
    hidden = [c.name for c in plan.prepared.schema.sensitive if c.name not in written.types.names]
    if hidden:
        checked = _with_planned(plan, checked, hidden)
    for verdict in checked.verdicts:
        if not verdict.holds:
            raise GuaranteeNotMet(
                verdict.failure(),
                "People in them could be picked out of the published table, so nothing was published.",
                "Run it again; if it stays so, please report it.",
            )
    smallest, each = _behind_doors(plan, written, quasi, every=values)
    return SourceRelease(plan, checked, plan.columns, smallest, each, people, counted)


_FEW_VALUES = 10_000
"""A column that leaves as it came is compared with its source where the sample holds no more different cells, and each of them ten times.

Of a sample that is the whole table the second is not asked: no more cells than it holds come here.
"""


def _refuse_other_cells(plan: PlannedRelease, written: RowSource, quasi: Sequence[str]) -> None:
    """Nothing, if no cell of a column that leaves as it came stands in more rows than it did; else an error.

    As many rows were written as were planned, so that without suppressed rows the cells are the very same. Texts, whole numbers,
    days and yes/no are compared, where the file that was written keeps their type; a blank and an empty text are one.
    """
    source, sample = plan.prepared.source, plan.prepared.judged.sample.frame
    for name in plan.columns:
        own, its = source.types.field(name).type, written.types.field(name).type
        texts = is_text(own) and is_text(its)
        plain = pa.types.is_integer(own) or pa.types.is_boolean(own) or pa.types.is_date(own)
        if name in quasi or not (texts or (plain and own == its)):
            continue
        most = _FEW_VALUES if sample.height == source.rows else min(_FEW_VALUES, sample.height // 10)
        if sample.get_column(name).n_unique() > most:
            continue
        before, after = (_cells(one, name, texts) for one in (source, written))
        both = after.join(before, on="value", how="left", nulls_equal=True, suffix=" before")
        if bool((both.get_column(ROWS) > both.get_column(f"{ROWS} before").fill_null(0)).any()):
            source.unchanged()
            raise EngineError(
                "The table that was written is not the one that was planned.",
                say(
                    "Cells of column '{column}' are not those of the source, so nothing was published.",
                    column=name,
                ),
                "Run it again when nobody writes to the source; if it stays so, please report it.",
            )


def _cells(source: RowSource, name: str, texts: bool) -> pl.DataFrame:
    found = cast(pl.DataFrame, pl.from_arrow(source.domain(name)))
    if texts:
        found = found.with_columns(pl.col("value").cast(pl.String).fill_null(""))
    return found.group_by("value").agg(pl.col(ROWS).sum())


def _with_planned(plan: PlannedRelease, checked: Checked, hidden: Sequence[str]) -> Checked:
    """The verdicts with the values of columns that are not in the table, as the plan counted them."""
    asked = [
        planned if getattr(guarantee, "column", "") in (None, *hidden) else found
        for guarantee, found, planned in zip(
            plan.goal.guarantees, checked.verdicts, plan.planned.verdicts, strict=True
        )
    ]
    return replace(checked, verdicts=tuple(asked))


def _behind_doors(
    plan: PlannedRelease, written: RowSource, quasi: Sequence[str], *, every: bool
) -> tuple[int | None, dict[tuple[str, ...], int]]:
    """The smallest group behind all telling columns, and behind each door; one that leaves too few is refused, as in memory."""
    doors = plan.prepared.judged.side_doors
    sensitive = [column.name for column in plan.prepared.schema.sensitive]
    known: dict[tuple[str, ...], int] = {}

    def smallest(columns: tuple[str, ...]) -> int:
        if columns not in known:
            there = [name for name in columns if name in written.types.names]
            known[columns] = smallest_group(written, [*quasi, *there])
        return known[columns]

    for door in doors:
        if counts_people(plan.goal):
            refuse_small_door(door, doors, partial(_no_people_behind, door), quasi, sensitive=sensitive)
        refuse_small_door(
            door,
            doors,
            partial(smallest, tuple(door.columns)),
            quasi,
            least=plan.goal.k or 2,
            sensitive=sensitive,
        )
        if every and door.columns:
            smallest(tuple(door.columns))
    columns = tuple(name for name in telling_columns(doors, quasi) if name in written.types.names)
    return smallest(columns) if columns else None, known


def _no_people_behind(door: SideDoor) -> int:
    raise SideDoorOpen(
        say(
            "Column {columns} gives quasi-identifier '{reveals}' away, and an engine cannot count people behind it yet.",
            columns=quoted(door.columns),
            reveals=door.reveals,
        ),
        door.undoing(),
        'Set publish = false or side_door = "accept" for it, count rows with --per row, or use --engine memory.',
    )
