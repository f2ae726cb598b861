"""release(): recode, regroup, check or raise. Nothing that breaks its promise can leave."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.anonymize.check import Checked, check_published
from velado.anonymize.goal import Goal, Progress, Promise, silent
from velado.anonymize.guarantees.base import Guarantee, Verdict
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.methods.base import Method
from velado.anonymize.methods.parameters import check_parameters
from velado.anonymize.operations.base import Operation, apply_operations
from velado.anonymize.population import match_published, population_table
from velado.anonymize.recoded import Recoded, refuse_unrounded
from velado.anonymize.side_doors import SideDoor, find_side_doors, refuse_copies
from velado.data.encode import EncodedTable, encode
from velado.data.io import read_table
from velado.data.partition import BoolArray, Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError, SuppressionLimitExceeded, TableError
from velado.randomness import seeded


@dataclass(frozen=True, repr=False)
class Release:
    """The published table, its promise, what it cost, and how it was made.

    *frame* is what may leave. *table*, *data* and *recoded* belong to the owner: they are needed to measure
    and to explain, and hold the original values. *table* is what the method saw; *original* is the table as it
    was read, before any column operation.
    """

    frame: pl.DataFrame
    promise: Promise
    checked: Checked
    method: Method
    goal: Goal
    seed: int
    table: Table
    data: EncodedTable
    recoded: Recoded
    kept: BoolArray
    side_doors: tuple[SideDoor, ...] = ()
    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    original: Table | None = None

    def __repr__(self) -> str:
        state = "; ".join(verdict.sentence() for verdict in self.verdicts) or "no guarantee, measured only"
        return f"Release({self.frame.height} rows by {self.method.name}; {state})"

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per guarantee, found on the published values."""
        return self.checked.verdicts

    @property
    def suppressed(self) -> int:
        """How many rows of the input are not in the release."""
        return int((~self.kept).sum())

    @property
    def losses(self) -> dict[str, float]:
        """Mean normalized certainty penalty of each quasi-identifier, against the table the method saw.

        Suppressed rows count 1. What column operations cost before is not in it; `measure` charges them too.
        """
        out: dict[str, float] = {}
        for column, published in zip(self.data.columns, self.recoded.columns, strict=True):
            losses = np.where(self.recoded.kept, published.losses(column), 1.0)
            outside = self.kept.size - losses.size  # rows that left before the method saw them
            out[column.name] = float((losses.sum() + outside) / self.kept.size)
        return out

    @property
    def loss(self) -> float:
        """Mean normalized certainty penalty over rows and quasi-identifiers."""
        return float(np.mean(list(self.losses.values())))

    def to_dict(self) -> dict[str, Any]:
        """Result, promise, cost and how it was made, without any cell value."""
        return {
            "result": {
                "rows": self.frame.height,
                "columns": self.frame.columns,
                "suppressed_rows": self.suppressed,
            },
            "promise": {
                "type": self.promise,
                "verdicts": [verdict.to_dict() for verdict in self.verdicts],
                "readings_of_blanks": [reading.to_dict() for reading in self.checked.readings],
                "side_doors": [door.to_dict() for door in self.side_doors],
                "warnings": list(self.warnings),
            },
            "cost": {"ncp": self.loss, "ncp_by_column": self.losses},
            "how": {
                "method": describe(self.method),
                "guarantees": [describe(guarantee) for guarantee in self.goal.guarantees],
                "suppression_limit": self.goal.suppression,
                "seed": self.seed,
                "operations": [describe(operation) for operation in self.operations],
                "notes": dict(self.notes),
            },
        }

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{html.escape(verdict.sentence())}</li>" for verdict in self.verdicts)
        return (
            f"<p><b>{html.escape(self.method.title)}</b>: {self.frame.height} rows published, "
            f"{self.suppressed} suppressed, information loss {self.loss:.1%}.</p><ul>{rows}</ul>"
        )


def describe(part: Any) -> dict[str, Any]:
    """A registered dataclass as its name and its parameters."""
    assert is_dataclass(part) and not isinstance(part, type)
    return {"name": part.name, **asdict(part)}  # type: ignore[attr-defined]


def anonymize(
    source: Any,
    schema: Schema,
    method: Method,
    guarantees: Sequence[Guarantee] = (),
    *,
    suppression: float = 0.0,
    seed: int = 0,
    operations: Sequence[Operation] = (),
    per: str | None = None,
    population: Any = None,
    undeclared: Any = "refuse",
    progress: Progress = silent,
) -> Release:
    """A release of *source* that keeps the method's own k and every further guarantee, or an error.

    *per* says whether k counts "row"s or "person"s; by default people when the schema names a person column.
    *operations* are column operations done first. *population* is a table of everyone the source was drawn from,
    for k-map and delta-presence. The same input, settings and *seed* give the same release.
    """
    check_parameters(method)
    table = read_table(source, schema, undeclared)
    _check_roles(table.schema)
    goal = Goal((*_own_guarantees(method, table.schema, per), *guarantees), suppression)
    original = table
    if operations:
        table = apply_operations(table, tuple(operations), seed)
    doors = find_side_doors(table)
    refuse_copies(doors)
    used, present = _rows_used(table, goal)
    everyone = None if population is None else population_table(population, used.schema)
    data = encode(used, everyone)
    warnings = _check_columns(data, used.schema)
    if data.rows < goal.least_rows:
        raise ParameterError(
            f"A group of {goal.least_rows} cannot be made from {data.rows} row(s).",
            "The table is smaller than one group.",
            "Lower k (or l), or gather more rows.",
        )
    progress(0.0, method.title)
    # Rows that left for their blanks have used up part of the limit; the method may spend the rest.
    spare = goal.suppressible(table.rows) - (table.rows - data.rows)
    importance = {column.name: column.weight for column in used.schema.quasi}
    seen = data.weighted(importance)

    def published(suppression: float) -> Release:
        recoded = method.anonymize(
            seen, replace(goal, suppression=suppression), seeded(seed, method.name), progress
        )
        return release(
            table, used, data, recoded, goal, method, seed, present, doors, tuple(operations), warnings
        )

    try:
        made = published(spare / data.rows)
    except GuaranteeNotMet:
        # Promises about distributions compare with the published table, and dropping rows changes that table:
        # what held against all rows may not hold against those that are left. Without dropping any it does.
        if not spare:
            raise
        made = published(0.0)
    return replace(made, original=original)


def release(
    table: Table,
    used: Table,
    data: EncodedTable,
    recoded: Recoded,
    goal: Goal,
    method: Method,
    seed: int,
    present: BoolArray,
    side_doors: tuple[SideDoor, ...] = (),
    operations: tuple[Operation, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Release:
    """Publish *recoded*: drop identifiers, regroup the published values, check, and raise if a promise fails.

    Groups that fail are suppressed as long as the limit allows; what then still fails raises. *used* are the
    rows the method saw, *present* marks them within *table*.
    """
    refuse_unrounded(data.columns, recoded)
    limit = goal.suppressible(table.rows)
    frame, checked = _check(used, data, recoded, goal)
    if not checked.holds:
        good = goal.holds_in(checked.counts)
        failing = ~good[checked.partition.labels]
        kept = recoded.kept.copy()
        kept[np.flatnonzero(recoded.kept)[failing]] = False
        needed = table.rows - int(kept.sum())
        if needed > limit or not kept.any():
            _raise_broken(checked, needed, goal.suppression, table.rows, bool(kept.any()))
        recoded = Recoded(recoded.columns, kept, recoded.partition, recoded.notes)
        frame, checked = _check(used, data, recoded, goal)
        if not checked.holds:
            _raise_broken(checked, needed, goal.suppression, table.rows, True)
    dropped = table.rows - int(recoded.kept.sum())
    if dropped > limit:
        raise SuppressionLimitExceeded(
            f"{dropped} of {table.rows} rows would have to be suppressed; the limit is {limit}.",
            "Dropping more rows than agreed would bias what is published.",
            f"Allow --suppression {np.ceil(1000 * dropped / table.rows) / 1000:g}, or lower k.",
        )
    if frame.height == 0:
        raise GuaranteeNotMet(
            "Every row was suppressed.", "There is nothing to publish.", "Lower k or widen a taxonomy."
        )
    kept_rows = present.copy()
    kept_rows[np.flatnonzero(present)] = recoded.kept
    promise: Promise = (
        method.promise if goal.guarantees == () or method.promise == "as in the paper" else "guaranteed"
    )
    return Release(
        frame,
        promise,
        checked,
        method,
        goal,
        seed,
        table,
        data,
        recoded,
        kept_rows,
        side_doors,
        operations,
        warnings,
        dict(recoded.notes),
    )


def _check(used: Table, data: EncodedTable, recoded: Recoded, goal: Goal) -> tuple[pl.DataFrame, Checked]:
    frame = published_frame(used, recoded)
    kept = recoded.kept
    people = None if data.people is None else data.people[kept]
    sensitive = {name: (codes[kept], size) for name, (codes, size) in (data.sensitive or {}).items()}
    names = [column.name for column in recoded.columns]
    matching = None
    if data.population is not None:

        def matching(groups: Partition) -> tuple[npt.NDArray[np.int64], int]:
            return match_published(data, recoded, groups)

    return frame, check_published(
        frame, names, goal.guarantees, people, sensitive, None, data.shapes, matching
    )


def published_frame(used: Table, recoded: Recoded) -> pl.DataFrame:
    """All columns but identifiers and those the schema keeps back, in their own order, recoded where quasi.

    A quasi-identifier whose every published text is its original one keeps its original cells and type.
    """
    columns = {column.name: column for column in recoded.columns}
    kept = recoded.kept
    base = used.frame if bool(kept.all()) else used.frame.filter(pl.Series(kept))
    out = []
    for name in used.frame.columns:
        if not used.schema.columns[name].published:
            continue
        if name not in columns:
            out.append(base.get_column(name))
            continue
        series = columns[name].series(kept)
        original = base.get_column(name)
        same = original.cast(pl.String).eq_missing(series.cast(pl.String)).all()
        out.append(original if same else series)
    return pl.DataFrame(out)


def _own_guarantees(method: Method, schema: Schema, per: str | None) -> tuple[Guarantee, ...]:
    k = getattr(method, "k", None)
    if method.promise == "measured" or k is None:
        return ()
    unit = per or ("person" if schema.person is not None else "row")
    if unit == "person" and schema.person is None:
        raise ParameterError(
            "k per person was asked for, but the schema names no person column.",
            "Which rows belong to one person is not known.",
            "Mark the column with person = true, or count rows with --per row.",
        )
    return (KAnonymity(k, "person" if unit == "person" else "row"),)


def _check_roles(schema: Schema) -> None:
    if not schema.quasi:
        raise SchemaError(
            "The schema names no published quasi-identifier.",
            "There is nothing to generalize, so no promise could be made.",
            'Give role = "quasi" to columns an attacker may know: age, sex, place, dates.',
        )


def _rows_used(table: Table, goal: Goal) -> tuple[Table, npt.NDArray[np.bool_]]:
    """The rows the method will see: those without blanks where the schema says that blanks are suppressed."""
    present = np.ones(table.rows, dtype=bool)
    for column in table.schema.quasi:
        if table.schema.missing_policy(column) == "suppress":
            present &= ~table.is_missing(column.name).to_numpy()
    if bool(present.all()):
        return table, present
    dropped, limit = int((~present).sum()), goal.suppressible(table.rows)
    if dropped > limit:
        raise SuppressionLimitExceeded(
            f"{dropped} of {table.rows} rows are blank in a quasi-identifier and would be suppressed; the limit is {limit}.",
            'The schema says missing = "suppress".',
            f'Allow --suppression {np.ceil(1000 * dropped / table.rows) / 1000:g}, or set missing = "value".',
        )
    return table.with_frame(table.frame.filter(pl.Series(present))), present


def _check_columns(data: EncodedTable, schema: Schema) -> tuple[str, ...]:
    warnings = []
    for column in data.columns:
        if bool((column.codes == column.codes[0]).all()):
            if schema.constant == "refuse":
                raise TableError(
                    f"Quasi-identifier '{column.name}' has the same value in every row.",
                    "It tells nobody apart, and an unexpected constant often means a wrong file or filter.",
                    'Give it role = "other", or set constant = "allow" in [table] of the schema.',
                )
            warnings.append(f"Quasi-identifier '{column.name}' is constant.")
        if column.moved is not None:
            warnings.append(
                f"{int(column.moved.sum())} value(s) of '{column.name}' lay outside its bounds and were moved onto "
                "the nearest bound: what is published for them is false."
            )
    return tuple(warnings)


def _raise_broken(checked: Checked, needed: int, suppression: float, rows: int, any_left: bool) -> None:
    broken = next(verdict for verdict in checked.verdicts if not verdict.holds)
    what = (
        f"{broken.failing_groups} group(s) with {broken.failing_rows} row(s) do not keep {broken.guarantee}: "
        f"needed {broken.needed:g} {broken.unit}, the weakest has {broken.achieved:g}."
    )
    if not any_left:
        raise GuaranteeNotMet(
            what,
            "Every row would have to be suppressed.",
            "Lower the parameter, or use a method that merges groups.",
        )
    kind = SuppressionLimitExceeded if suppression else GuaranteeNotMet
    share = float(np.ceil(1000 * needed / rows) / 1000)
    raise kind(
        what,
        "People in them could be picked out of the published table, so nothing was published.",
        f"Allow --suppression {share:g} ({needed} rows), lower the parameter, or use a method that merges groups.",
    )
