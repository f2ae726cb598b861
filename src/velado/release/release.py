"""release(): recode, regroup, check or raise. Nothing that breaks its promise can leave."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.decoding import Intervals, decoded
from velado.data.encode import EncodedTable
from velado.data.formulas import Formulas
from velado.data.frames import CameAs, FrameKind, to_native
from velado.data.keys import content_of, owner_key
from velado.data.partition import BoolArray
from velado.data.table import Table
from velado.data.table_bytes import as_texts, escaped_pieces
from velado.errors import GuaranteeNotMet, SuppressionLimitExceeded
from velado.release.gate import Signed, broken_when_linked, rows_linked
from velado.release.goal import Checked, Goal, Promise, check_published
from velado.release.guarantees._guarantee import Verdict
from velado.release.history.together import OverTime
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.population import match_published
from velado.release.prepare import Prepared
from velado.release.recoded import Recoded, of_kept_rows, refuse_means_of_suppressed, refuse_unrounded
from velado.release.side_doors import SideDoor, refuse_doors
from velado.settings import describe
from velado.text import say, say_n


@dataclass(frozen=True, repr=False)
class Release:
    """The published table, its promise, what it cost, and how it was made.

    *frame* is what may leave, its rows in an order drawn under the owner's key. Everything else that holds rows
    belongs to the owner: *aligned*, the same rows in the order of the input, *rows*, and what is in *prepared*. *listed*
    is *aligned* with recoded texts as places in a list, which takes a quarter of the room: for those who only count.

    >>> from velado.testing.examples import small_release
    >>> small_release().release.frame.height, small_release().release.suppressed
    (8, 0)
    """

    listed: pl.DataFrame
    promise: Promise
    checked: Checked
    method: Method
    goal: Goal
    seed: int
    prepared: Prepared
    recoded: Recoded
    kept: BoolArray
    notes: Mapping[str, object] = field(default_factory=dict)
    over_time: OverTime | None = None

    @cached_property
    def aligned(self) -> pl.DataFrame:
        """What may leave, in the order of the input."""
        return as_texts(self.listed)

    @property
    def table(self) -> Table:
        """What the method saw, and the rows that left before it; after any column operation."""
        return self.prepared.table

    @property
    def original(self) -> Table:
        """The table as it was read, before any column operation."""
        return self.prepared.original

    @property
    def data(self) -> EncodedTable:
        """The rows the method saw, encoded."""
        return self.prepared.data

    @property
    def side_doors(self) -> tuple[SideDoor, ...]:
        """Published columns that give a quasi-identifier away."""
        return self.prepared.side_doors

    @property
    def signed(self) -> tuple[Signed, ...]:
        """Published columns that look like identifiers, with the reason the schema gives for each."""
        return self.prepared.signed

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The column operations done first."""
        return self.prepared.operations

    @property
    def public_warnings(self) -> tuple[str, ...]:
        """What everybody who has the table may know of it."""
        return (*self.prepared.warnings, *self.recoded.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should know before the table leaves."""
        return (*self.public_warnings, *self.prepared.own_warnings)

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        rows = self.listed.height
        if self.prepared.keep_order:
            return np.arange(rows)
        # Every order is equally likely for who does not have the key. The content is part of what is drawn from, so that
        # two releases share no order.
        return owner_key(self.prepared.key).draws("row order", content_of(self.listed)).permutation(rows)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """What may leave."""
        return self.aligned if self.prepared.keep_order else self.aligned[self._order]

    def to_csv(self, separator: str = ",", formulas: Formulas = "keep") -> bytes:
        """What may leave as the bytes of a CSV file; of a large table, without the room that *frame* takes.

        >>> from velado.testing.examples import small_release
        >>> small_release().release.to_csv().split()[0]
        b'age,illness'
        """
        return b"".join(self.csv_pieces(separator, formulas))

    def csv_pieces(self, separator: str = ",", formulas: Formulas = "keep") -> Iterator[bytes]:
        """As `to_csv`, piece by piece.

        >>> from velado.testing.examples import small_release
        >>> len(list(small_release().release.csv_pieces()))
        1
        """
        order = None if self.prepared.keep_order else self._order
        return escaped_pieces(self.listed, separator, formulas, order)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Which row of the input each row of *frame* is; for the owner alone."""
        return np.flatnonzero(self.kept)[self._order]

    def to_native(self, intervals: Intervals = "text") -> Any:
        """What may leave, in the kind of frame the table came as; Polars where it came from a file.

        A column whose cells are unchanged has the type it came with, listed categories those that are published alone. A
        pandas frame has a plain count as its index, or the published levels of the index it came with, if the schema
        declares them. With *intervals* "middle" a number is the middle of its interval, with "ends" two columns
        (`age_low`, `age_high`); what is suppressed or blank is missing then.

        >>> from velado.testing.examples import small_release
        >>> sorted(set(small_release().release.to_native("middle")["age"].to_list()))
        [20.5, 30.5, 40.5, 50.5]
        """
        return self._as(self.original.came, intervals)

    def to_pandas(self, intervals: Intervals = "text") -> Any:
        """What may leave as a pandas frame; *intervals* as in `to_native`.

        >>> from velado.testing.examples import small_release
        >>> small_release().release.to_pandas("ends").columns.to_list()
        ['age_low', 'age_high', 'illness']
        """
        return self._as(self._came_as("pandas"), intervals)

    def to_polars(self, intervals: Intervals = "text") -> Any:
        """What may leave as a Polars frame; *intervals* as in `to_native`.

        >>> from velado.testing.examples import small_release
        >>> small_release().release.to_polars().equals(small_release().release.frame)
        True
        """
        return self._as(self._came_as("polars"), intervals)

    def to_arrow(self, intervals: Intervals = "text") -> Any:
        """What may leave as an Arrow table; *intervals* as in `to_native`.

        >>> from velado.testing.examples import small_release
        >>> small_release().release.to_arrow().num_rows
        8
        """
        return self._as(self._came_as("arrow"), intervals)

    def _came_as(self, kind: FrameKind) -> CameAs:
        came = self.original.came
        return came if came.kind == kind else CameAs(kind)

    def _as(self, came: CameAs, intervals: Intervals) -> Any:
        frame = decoded(self.frame, self.table.schema, intervals)
        return to_native(frame, came, [name for name in frame.columns if self._is_unchanged(name, frame)])

    def _is_unchanged(self, name: str, frame: pl.DataFrame) -> bool:
        """Whether a column has the cells it came with, so that their type is true of them."""
        if name not in self.original.frame.columns:
            return False
        before, now = self.original.frame[name].filter(self.kept), frame[name]
        if isinstance(before.dtype, pl.Categorical | pl.Enum):
            return now.dtype == pl.String and bool(
                before.cast(pl.String).eq_missing(self.aligned[name].cast(pl.String)).all()
            )
        # Blanks of an operation have no place in a type without them.
        return before.dtype == now.dtype and (now.null_count() == 0 or before.null_count() > 0)

    def __repr__(self) -> str:
        state = "; ".join(verdict.sentence() for verdict in self.verdicts) or "no guarantee, measured only"
        return f"Release({self.listed.height} rows by {self.method.name}; {state})"

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per guarantee, found on the published values."""
        return self.checked.verdicts

    @property
    def suppressed(self) -> int:
        """How many rows of the input are not in the release."""
        return int((~self.kept).sum())

    @cached_property
    def losses(self) -> dict[str, float]:
        """Mean normalized certainty penalty of each quasi-identifier, against the table the method saw.

        Suppressed rows count 1. What column operations cost before is not in it; `measure` charges them too.
        """
        return self._losses_of(self.recoded)

    def _losses_of(self, recoded: Recoded) -> dict[str, float]:
        out: dict[str, float] = {}
        for column, published in zip(self.data.columns, recoded.columns, strict=True):
            losses = np.where(self.recoded.kept, published.losses(column), 1.0)
            outside = self.kept.size - losses.size  # rows that left before the method saw them
            out[column.name] = float((losses.sum() + outside) / self.kept.size)
        return out

    @property
    def loss(self) -> float:
        """Mean normalized certainty penalty over rows and quasi-identifiers."""
        return float(np.mean(list(self.losses.values())))

    @property
    def loss_before(self) -> float | None:
        """The loss of the method's own groups where they were improved afterwards; the same rows are left out."""
        before = self.recoded.before
        return None if before is None else float(np.mean(list(self._losses_of(before).values())))

    @cached_property
    def public_losses(self) -> dict[str, float]:
        """The loss of each quasi-identifier as far as the published table itself shows it, suppressed rows counting 1.

        Where no bounds are declared a number's domain is the range of the rows that left. With that of all rows, loss
        and widths would tell how far out the largest suppressed value lies.
        """
        return self._public_losses_of(self.recoded)

    @property
    def public_loss_before(self) -> float | None:
        """As `loss_before`, measured as `public_losses` are."""
        before = self.recoded.before
        return None if before is None else float(np.mean(list(self._public_losses_of(before).values())))

    def _public_losses_of(self, recoded: Recoded) -> dict[str, float]:
        out = {}
        for column, published in zip(self.data.columns, recoded.columns, strict=True):
            kept = self.recoded.kept
            losses = published.losses(column)[kept]
            declared = self.table.schema.columns[column.name].bounds is not None
            if column.points is not None and not declared:
                seen = column.points[column.codes[kept & (column.codes != column.missing)]]
                span = float(seen.max() - seen.min()) if seen.size else 0.0
                if span > 0:
                    losses = np.minimum(losses * column.span / span, 1.0)
            out[column.name] = float((losses.sum() + self.suppressed) / self.kept.size)
        return out

    def facts(self) -> dict[str, dict[str, object]]:
        """Result, promise, cost and how it was made, without any cell value."""
        return {
            "result": {
                "rows": self.listed.height,
                "columns": self.listed.columns,
                "row_order": "input" if self.prepared.keep_order else "drawn",
                "suppressed_rows": self.suppressed,
            },
            "promise": {
                "type": self.promise,
                "verdicts": [asdict(verdict) for verdict in self.verdicts],
                "readings_of_blanks": [asdict(reading) for reading in self.checked.readings],
                "side_doors": [asdict(door) for door in self.side_doors],
                "signed_columns": [asdict(one) for one in self.signed],
                "warnings": list(self.warnings),
                **({} if self.over_time is None else {"over_time": self.over_time.to_dict()}),
            },
            "cost": {"ncp": self.loss, "ncp_by_column": self.losses}
            | ({} if self.loss_before is None else {"ncp_before_improving": self.loss_before}),
            "how": {
                "method": describe(self.method),
                "guarantees": [describe(guarantee) for guarantee in self.goal.guarantees],
                "suppression_limit": self.goal.suppression,
                **({"blind": True} if self.goal.blind else {}),
                **({"improved": True} if self.recoded.before is not None else {}),
                "seed": self.seed,
                "operations": [describe(operation) for operation in self.operations],
                "notes": dict(self.notes),
            },
        }

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{html.escape(verdict.sentence())}</li>" for verdict in self.verdicts)
        return (
            f"<p><b>{html.escape(self.method.title)}</b>: {self.listed.height} rows published, "
            f"{self.suppressed} suppressed, information loss {self.loss:.1%}.</p><ul>{rows}</ul>"
        )


def release(
    prepared: Prepared, recoded: Recoded, goal: Goal, method: Method, seed: int, readings: bool = True
) -> Release:
    """Publish *recoded*: drop identifiers, regroup the published values, check, and raise if a promise fails.

    Groups that fail are suppressed as long as the limit allows; what then still fails raises. Without *readings* the
    other reading of blanks, which decides nothing, is left out.

    >>> from velado.testing.examples import small_release
    >>> made = small_release().release
    >>> release(made.prepared, made.recoded, made.goal, made.method, seed=0).verdicts == made.verdicts
    True
    """
    whole = prepared.data.population is None  # where it is known, ends may be anybody's of the population
    recoded, frame, checked = settled(
        prepared.data,
        recoded,
        goal,
        lambda tried: _check(prepared, tried, goal, readings),
        rows=prepared.table.rows,
        whole=whole,
    )
    _check_linked(prepared, recoded, goal, checked)
    _check_doors(prepared, recoded, goal, frame)
    kept_rows = prepared.present.copy()
    kept_rows[np.flatnonzero(prepared.present)] = recoded.kept
    promise: Promise = (
        method.promise if goal.guarantees == () or method.promise == "as in the paper" else "guaranteed"
    )
    if promise == "guaranteed" and prepared.altered:
        promise = (
            "measured"  # the crowd is one of altered values: whoever knows the true ones is not left with it
        )
    return Release(
        listed=frame,
        promise=promise,
        checked=checked,
        method=method,
        goal=goal,
        seed=seed,
        prepared=prepared,
        recoded=recoded,
        kept=kept_rows,
        notes=dict(recoded.notes),
    )


def settled(
    data: EncodedTable,
    recoded: Recoded,
    goal: Goal,
    check: Callable[[Recoded], tuple[pl.DataFrame, Checked]],
    *,
    rows: int,
    whole: bool = True,
) -> tuple[Recoded, pl.DataFrame, Checked]:
    """What is published, after *check* of it held: groups that fail are left out as far as the limit allows, or it raises.

    *rows* is the number of rows of the source, those included that the method never saw. *whole*: interval ends are drawn
    around the rows that are kept.

    >>> from velado.testing.examples import small_release
    >>> made = small_release().release
    >>> again = settled(made.data, made.recoded, made.goal, lambda r: (made.listed, made.checked), rows=8)
    >>> again[2].holds
    True
    """
    refuse_unrounded(data.columns, recoded)
    limit = goal.suppressible(rows)
    recoded = of_kept_rows(data.columns, recoded) if whole else recoded
    frame, checked = check(recoded)
    first, needed = True, 0
    while not checked.holds:
        good = goal.holds_in(checked.counts)
        failing = ~good[checked.partition.labels]
        kept = recoded.kept.copy()
        kept[np.flatnonzero(recoded.kept)[failing]] = False
        if not first and not (goal.blind and failing.any()):
            _raise_broken(checked, needed, goal.suppression, rows, True)
        needed = rows - _rows_of(data, kept)
        # Blind groups are left out until the rest holds, so that the error can say how many rows that takes: without
        # them the table that promises about distributions compare with is another one.
        if not kept.any() or (needed > limit and not goal.blind):
            _raise_broken(checked, needed, goal.suppression, rows, bool(kept.any()))
        refuse_means_of_suppressed(recoded, kept)
        recoded = replace(recoded, kept=kept)
        recoded = of_kept_rows(data.columns, recoded) if whole else recoded
        frame, checked = check(recoded)
        first = False
    dropped = rows - _rows_of(data, recoded.kept)
    if dropped > limit and goal.blind:
        raise SuppressionLimitExceeded(
            say(
                "The groups were made without a look at sensitive values, and {dropped:,} of {rows:,} rows are in groups "
                "that break a promise about these; the limit is {limit:,}.",
                dropped=dropped,
                rows=rows,
                limit=limit,
            ),
            "Such groups are left out whole, and dropping more rows than agreed would bias what is published.",
            say(
                "Allow --suppression {share:g}, ask for larger groups (a higher k), lower the parameter, or leave "
                "--blind out.",
                share=np.ceil(1000 * dropped / rows) / 1000,
            ),
        )
    if dropped > limit:
        raise SuppressionLimitExceeded(
            say(
                "{dropped} of {rows} rows would have to be suppressed; the limit is {limit}.",
                dropped=dropped,
                rows=rows,
                limit=limit,
            ),
            "Dropping more rows than agreed would bias what is published.",
            say(
                "Allow --suppression {dropped:g}, or lower k.",
                dropped=np.ceil(1000 * dropped / rows) / 1000,
            ),
        )
    if frame.height == 0:
        raise GuaranteeNotMet(
            "Every row was suppressed.", "There is nothing to publish.", "Lower k or widen a taxonomy."
        )
    return recoded, frame, checked


def _rows_of(data: EncodedTable, kept: BoolArray) -> int:
    return int(kept.sum()) if data.counts is None else int(data.counts[kept].sum())


def _check(prepared: Prepared, recoded: Recoded, goal: Goal, readings: bool) -> tuple[pl.DataFrame, Checked]:
    data, kept = prepared.data, recoded.kept
    frame = published_frame(prepared.used, recoded)
    people = None if data.row_people is None else data.row_people[kept]
    sensitive = {name: (codes[kept], size) for name, (codes, size) in data.row_values.items()}
    names = [column.name for column in recoded.columns]
    return frame, check_published(
        frame=frame,
        quasi=names,
        guarantees=goal.guarantees,
        people=people,
        sensitive=sensitive,
        shapes=data.shapes,
        matching=None if data.population is None else partial(match_published, data, recoded),
        wildcards=readings,
    )


def _check_linked(prepared: Prepared, recoded: Recoded, goal: Goal, checked: Checked) -> None:
    """Where the table shows whose row each is, every promise holds for who reads all rows of a person together."""
    person, data, kept = prepared.table.schema.person, prepared.data, recoded.kept
    people = data.row_people
    if person is None or not person.published or people is None:
        return
    sensitive = {name: (codes[kept], size) for name, (codes, size) in data.row_values.items()}
    broken = broken_when_linked(goal.guarantees, checked.partition, people[kept], sensitive, data.shapes)
    if broken is not None:
        raise rows_linked(person.name, broken)


def _check_doors(prepared: Prepared, recoded: Recoded, goal: Goal, frame: pl.DataFrame) -> None:
    """No published column settles a quasi-identifier so far that a group falls below the k that is promised."""
    by_person = any(one.reads == "crowd" and not one.rows_decide for one in goal.guarantees)
    people = prepared.data.row_people
    refuse_doors(
        prepared.side_doors,
        frame,
        [column.name for column in recoded.columns],
        least=goal.k or 2,
        sensitive=[column.name for column in prepared.table.schema.sensitive],
        people=people[recoded.kept] if by_person and people is not None else None,
    )


def published_frame(used: Table, recoded: Recoded) -> pl.DataFrame:
    """All columns but identifiers and those the schema keeps back, in their own order, recoded where quasi.

    A quasi-identifier whose every published text is its original one keeps its original cells and type; recoded texts are
    listed, and so may others be that came so: `as_texts` makes texts of them.

    >>> from velado.testing.examples import small_release
    >>> made = small_release().release
    >>> published_frame(made.prepared.used, made.recoded).equals(made.listed)
    True
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
        series = columns[name].listed(kept)
        original = base.get_column(name)
        first = _same_texts(original[:_LOOKED_AT], series[:_LOOKED_AT])
        out.append(original if first and _same_texts(original, series) else series)
    return pl.DataFrame(out)


_LOOKED_AT = 1_000
"""Rows that are compared first: where these differ already, no other is looked at."""


def _same_texts(one: pl.Series, other: pl.Series) -> bool:
    return bool(one.cast(pl.String).eq_missing(other.cast(pl.String)).all())


def _raise_broken(checked: Checked, needed: int, suppression: float, rows: int, any_left: bool) -> None:
    broken = next(verdict for verdict in checked.verdicts if not verdict.holds)
    if not any_left:
        raise GuaranteeNotMet(
            broken.failure(),
            "Every row would have to be suppressed.",
            "Lower the parameter, or use a method that merges groups.",
        )
    kind = SuppressionLimitExceeded if suppression else GuaranteeNotMet
    raise kind(
        broken.failure(),
        "What is sensitive about the people in them could be guessed, so nothing was published."
        if broken.of_values
        else "People in them could be picked out of the published table, so nothing was published.",
        say(
            "Allow --suppression {share} ({rows}), lower the parameter, or use a method that merges groups.",
            share=f"{float(np.ceil(1000 * needed / rows) / 1000):g}",  # as it is typed
            rows=say_n("{n:,} row", "{n:,} rows", needed),
        ),
    )
