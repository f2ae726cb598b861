"""ReleaseFacts: everything that is known of a release, without language; every view is made from these.

The report shows distributions and row numbers of the original table: it is for the data's steward. What may leave
(manifest, public page) is made from the same facts, and shows only what the published table tells anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.data.partition import IntArray
from velado.data.taxonomy import ROOT_LABEL
from velado.measures.measured import Exposure, Scores
from velado.measures.risk.reidentification import Reidentification
from velado.measures.risk.rows_together import ToldTogether, owners_of, steady_warning, told_together
from velado.measures.utility.ncp import CertaintyPenalty
from velado.release.guarantees._guarantee import Verdict
from velado.release.operations import Perturb, RoundNumbers, columns_of
from velado.release.release import Release
from velado.release.side_doors import DoorDecision, promise_with_side_doors, smallest_with_doors
from velado.release.side_doors.door import telling_columns

SHOWN_ROWS = 20
SAME = 1e-9
"""Losses this near to one another are equal but for rounding."""
ABOVE_BEST = "above_best_possible_at_most"
"""The note of a run on how far its loss lies above the best possible, as a part of it."""
_AT_ONCE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """The table that was read: its name, its fingerprint under the owner's key, its size.

    >>> SourceFacts(name="stays.csv", keyed_sha256="ab", key="01", rows=40, columns=("age", "sex")).rows
    40
    """

    name: str
    keyed_sha256: str
    key: str
    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OutputFacts:
    """The file that may leave, and how many of its cells begin like a formula.

    *escaped_names* are columns whose name was escaped in the file.

    >>> OutputFacts(file="table.csv", sha256="cd").formulas
    0
    """

    file: str
    sha256: str
    formulas: int = 0
    escaped_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One run of the method with k or the suppression limit changed: what it gave, or the sentence why it failed.

    >>> WhatIf(k=10, suppression=0.0, changed="k", failed="No group holds.").loss is None
    True
    """

    k: int | None
    suppression: float
    changed: Literal["", "k", "suppression"] = ""
    loss: float | None = None
    suppressed: int | None = None
    groups: int | None = None
    smallest: int | None = None
    failed: str = ""

    @classmethod
    def of(
        cls,
        release: Release,
        k: int | None,
        suppression: float,
        changed: Literal["", "k", "suppression"] = "",
    ) -> WhatIf:
        """What a run gave."""
        sizes = release.checked.partition.sizes
        return cls(
            k=k,
            suppression=suppression,
            changed=changed,
            loss=release.loss,
            suppressed=release.suppressed,
            groups=int(sizes.size),
            smallest=int(sizes.min()),
        )


@dataclass(frozen=True, kw_only=True)
class WhatIfs:
    """All reruns, or why there are none: the table is "large", the method promises "no-k", or people are held "together".

    >>> WhatIfs(skipped="large").runs
    ()
    """

    runs: tuple[WhatIf, ...] = ()
    skipped: Literal["", "large", "no-k", "together"] = ""


Fate = Literal["published", "generalized", "altered", "held back", "dropped"]


@dataclass(frozen=True)
class ColumnFate:
    """A column of the source, its role, what became of it, and its loss if it is a quasi-identifier.

    >>> ColumnFate("cpf", "identifier", "held back").loss is None
    True
    """

    name: str
    role: str
    fate: Fate
    loss: float | None = None


@dataclass(frozen=True)
class CostlyRow:
    """A published row that lost much: its number in the input (the first is 1), and the columns that cost it most.

    >>> CostlyRow(3, 0.5, ("age",)).columns
    ('age',)
    """

    row: int
    loss: float
    columns: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class RowLosses:
    """The loss of every row of the input in every quasi-identifier; a suppressed row loses 1 in each.

    A published row loses ``of_value[j][codes[j]]`` in column j; *codes* are rows x quasi-identifiers column by column, in the order of
    the input. The losses themselves are never all held at once: of a large table they would take twice the room of its codes.

    >>> codes = np.array([0, 1]), np.array([0, 0])
    >>> found = RowLosses((np.array([0.0, 0.5]), np.array([0.25])), codes, ("age", "sex"), np.array([True, True]))
    >>> found.costliest(1), found.carried_by(0.5)
    ([CostlyRow(row=2, loss=0.375, columns=('age',))], 0.75)
    """

    of_value: tuple[npt.NDArray[np.float64], ...]
    codes: tuple[npt.NDArray[np.integer[Any]], ...]
    names: tuple[str, ...]
    kept: npt.NDArray[np.bool_]

    def of(self, rows: npt.NDArray[np.int64] | slice) -> npt.NDArray[np.float64]:
        """The losses of some rows: row x quasi-identifier."""
        kept = self.kept[rows]
        out = np.ones((kept.size, len(self.names)))
        for at, (losses, codes) in enumerate(zip(self.of_value, self.codes, strict=True)):
            out[kept, at] = losses[codes[rows][kept]]
        return out

    @cached_property
    def _sums(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        by_row, by_column = np.empty(self.kept.size), np.zeros(len(self.names))
        for begin in range(0, self.kept.size, _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            losses = self.of(some)
            by_row[some] = losses.mean(axis=1)
            by_column += losses.sum(axis=0)
        return by_row, by_column

    @property
    def by_row(self) -> npt.NDArray[np.float64]:
        """Mean loss of each row."""
        return self._sums[0]

    @cached_property
    def _falling(self) -> npt.NDArray[np.float64]:
        return np.asarray(np.sort(self.by_row)[::-1], dtype=np.float64)

    def column_shares(self) -> dict[str, float]:
        """The part of the whole loss that each column carries; all 0 when nothing was lost."""
        sums = self._sums[1]
        total = float(sums.sum())
        return {n: float(s / total) if total else 0.0 for n, s in zip(self.names, sums, strict=True)}

    def costliest(self, shown: int = SHOWN_ROWS) -> list[CostlyRow]:
        """The published rows that lose most, with all columns of a tie; ties of rows go to the earlier one."""
        rows = np.flatnonzero(self.kept)
        means = self.by_row[rows]
        if means.size > shown:  # only those that lose as much as the last one shown are put in order
            enough = np.partition(means, means.size - shown)[means.size - shown]
            rows, means = rows[means >= enough], means[means >= enough]
        order = np.lexsort((rows, -means))[:shown]
        out = []
        for row in rows[order[means[order] > 0]]:
            losses = self.of(np.array([row]))[0]
            dearest = losses >= losses.max() - SAME
            names = tuple(name for name, most in zip(self.names, dearest, strict=True) if most)
            out.append(CostlyRow(int(row) + 1, float(self.by_row[row]), names))
        return out

    def carried_by(self, share: float) -> float:
        """The part of the whole loss that the costliest *share* of all rows (at least one row) carries."""
        means = self._falling
        total = float(means.sum())
        count = max(1, int(np.ceil(share * means.size)))
        return float(means[:count].sum() / total) if total else 0.0


def row_losses(release: Release) -> RowLosses:
    """The losses of a release, row by row. O(rows x quasi-identifiers).

    >>> import polars, velado
    >>> schema = velado.Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> release = velado.anonymize(polars.DataFrame({"age": [1, 3, 7, 9]}), schema, "mondrian", k=2)
    >>> row_losses(release).by_row
    array([0.25, 0.25, 0.25, 0.25])
    """
    columns, published = release.data.columns, release.recoded.columns
    codes = [one.codes for one in published]
    if not bool(release.prepared.present.all()):
        # A row with a blank that the schema suppresses left before the method saw it: it has lost everything.
        place = np.maximum(np.cumsum(release.prepared.present) - 1, 0)
        codes = [one[place] for one in codes]
    losses = [column.loss(one.low, one.high) for column, one in zip(columns, published, strict=True)]
    return RowLosses(tuple(losses), tuple(codes), tuple(column.name for column in columns), release.kept)


@dataclass(frozen=True, kw_only=True, repr=False)
class ReleaseFacts:
    """A release, what was measured on it, what other settings would have given, and the files it came from and made.

    >>> from velado.testing.examples import small_release
    >>> facts = small_release().facts
    >>> facts.smallest, facts.true_ends, round(facts.risk(facts.scores.after).prosecutor.highest, 2)
    (2, ['age'], 0.5)
    """

    release: Release
    scores: Scores
    what_ifs: WhatIfs
    source: SourceFacts
    output: OutputFacts
    made_on: date | None = None
    version: str = ""
    decisions: tuple[DoorDecision, ...] = ()

    @property
    def quasi(self) -> list[str]:
        """The quasi-identifiers."""
        return [column.name for column in self.release.data.columns]

    @property
    def ncp(self) -> CertaintyPenalty:
        """What the release cost, charged against the table as it was read."""
        assert self.scores.ncp is not None  # always known in process
        return self.scores.ncp

    @property
    def smallest(self) -> int:
        """The smallest group of the published table."""
        return self.scores.after.class_sizes.smallest

    @property
    def counted_in(self) -> Literal["people", "rows"]:
        """What k-anonymity counts."""
        crowd = self._crowd
        return "people" if crowd is not None and crowd.unit == "people" else "rows"

    @property
    def crowd(self) -> int:
        """The smallest group in the unit that is counted."""
        crowd = self._crowd
        return int(crowd.achieved) if crowd is not None and self.counted_in == "people" else self.smallest

    @property
    def _crowd(self) -> Verdict | None:
        return next((found for found in self.release.verdicts if found.guarantee == "k-anonymity"), None)

    @property
    def inventory(self) -> list[ColumnFate]:
        """Every column of the source and what became of it."""
        release = self.release
        schema, published = release.original.schema.columns, set(release.listed.columns)
        altered = {name for one in release.operations for name in columns_of(one, release.original.schema)}
        out = []
        for name in self.source.columns:
            loss = self.ncp.by_column.get(name)
            fate: Fate = "held back"
            if name in published:
                fate = "altered" if name in altered else "generalized" if loss else "published"
            out.append(ColumnFate(name, schema[name].role if name in schema else "other", fate, loss))
        dropped = release.original.dropped
        return [
            *out,
            *(ColumnFate(n, "undeclared", "dropped") for n in (() if dropped is None else dropped.columns)),
        ]

    @property
    def warnings(self) -> list[str]:
        """What the steward should know before the table leaves."""
        steady = self.steady_columns
        return [*self.release.warnings, *self.scores.notes, *([steady_warning(steady)] if steady else ())]

    @cached_property
    def _owners(self) -> IntArray | None:
        """Whose each published row is, as codes, where the schema says who a person is."""
        return owners_of(self.release)

    @cached_property
    def together(self) -> ToldTogether:
        """Who is told apart by all published columns together."""
        return told_together(self.release.listed, self._owners, self.release.checked.seen)

    @property
    def steady_columns(self) -> tuple[str, ...]:
        """Published columns, no quasi-identifiers, by which the rows of one person may be joined."""
        return tuple(door.column for door in self.release.side_doors if door.kind == "joins")

    @property
    def gone(self) -> int:
        """People whose rows are shown though they left: they are in what was measured and not in the table that was read."""
        held = self.release.over_time
        found = 0 if held is None else held.further.get("rows_of_people_who_left", 0)
        return found if isinstance(found, int) else 0

    @property
    def by_person(self) -> bool:
        """Whether people are counted, rather than rows."""
        return self.scores.before.people is not None and self.scores.after.people is not None

    def risk(self, exposure: Exposure) -> Reidentification:
        """The risk of each person where people are known in both tables, else of each row."""
        return exposure.people if self.by_person and exposure.people is not None else exposure.rows

    @property
    def suppressed_rows(self) -> list[int]:
        """The first numbers of the rows that were left out; the first row of the input is 1."""
        return [int(row) + 1 for row in np.flatnonzero(~self.release.kept)[:SHOWN_ROWS]]

    @property
    def now(self) -> WhatIf:
        """This release, beside which the reruns stand."""
        return WhatIf.of(self.release, self.release.goal.k, self.release.goal.suppression)

    @cached_property
    def row_losses(self) -> RowLosses:
        """Which rows and columns carry the loss."""
        return row_losses(self.release)

    @property
    def above_best_percent(self) -> int | None:
        """By how many percent at most the loss lies above the best possible, rounded up; None when not known.

        The bound is on the table the method saw. Where column operations came first the loss is told against
        another table, and the two are not compared.
        """
        above = self.release.notes.get(ABOVE_BEST)
        if not isinstance(above, float) or self.lower_bound is None or self.release.operations:
            return None
        return math.ceil(100 * above - 1e-6)

    @property
    def lower_bound(self) -> float | None:
        """The least loss that any release of the table with the same k could have; None when not known."""
        bound = self.release.notes.get("lower_bound")
        return bound if isinstance(bound, float) else None

    @cached_property
    def true_ends(self) -> list[str]:
        """Number columns whose published ends are values read off the rows."""
        # Perturbed and rounded numbers are nobody's.
        blurred = [one for one in self.release.operations if isinstance(one, Perturb | RoundNumbers)]
        noisy = {operation.column for operation in blurred}
        return [name for name, step in self._ends.items() if step is None and name not in noisy]

    @property
    def rounded_ends(self) -> dict[str, float]:
        """Number columns whose published ends are multiples of a declared step, and the step."""
        return {name: step for name, step in self._ends.items() if step is not None}

    @cached_property
    def _ends(self) -> dict[str, float | None]:
        pairs = zip(self.release.data.columns, self.release.recoded.columns, strict=True)
        return {
            column.name: None if column.rounding is None else column.rounding.step
            for column, published in pairs
            if column.is_numeric
            and published.states_cover
            and any(value is not None and value != ROOT_LABEL for value in published.values)
        }

    def smallest_behind(self, *columns: str) -> int:
        """The smallest group for who also reads *columns*."""
        return promise_with_side_doors(self.release.listed, self.quasi, columns)

    @cached_property
    def behind_doors(self) -> tuple[list[str], int | None]:
        """The columns that tell a quasi-identifier, and the smallest group for who reads them all too."""
        doors = self.release.side_doors
        smallest = smallest_with_doors(self.release.listed, self.quasi, doors)
        return telling_columns(doors, self.quasi), smallest

    @cached_property
    def open_doors(self) -> tuple[list[str], int | None]:
        """The columns of doors nobody accepted, and the smallest group for who knows them all too; None without any."""
        doors = [door for door in self.release.side_doors if not door.accepted]
        names = list(dict.fromkeys(n for door in doors for n in door.columns if n not in self.quasi))
        return names, self.smallest_behind(*names) if names else None

    def facts(self) -> dict[str, object]:
        """All of it as plain values, for `report.json`: with labels of the original table, so not for publication."""
        behind, smallest = self.behind_doors
        return {
            "input": self.source,
            "output": self.output,
            **self.release.facts(),
            "method": {
                name: getattr(self.release.method, name) for name in ("name", "title", "cost", "source")
            },
            "public_losses": self.release.public_losses,
            "altered": self.release.prepared.altered,
            "interval_ends": {"true": self.true_ends, "rounded": self.rounded_ends},
            "sensitive_in_view": self.release.goal.reads_sensitive,
            "suppressed_row_numbers": self.suppressed_rows,
            "above_best_percent": self.above_best_percent,
            "why": {
                "share_by_column": self.row_losses.column_shares(),
                "costliest_rows": self.row_losses.costliest(),
                "carried_by_1": self.row_losses.carried_by(0.01),
                "carried_by_5": self.row_losses.carried_by(0.05),
                "now": self.now,
                "what_if": self.what_ifs,
            },
            "behind_side_doors": {"columns": behind, "smallest_group": smallest},
            "behind_open_doors": {"columns": self.open_doors[0], "smallest_group": self.open_doors[1]},
            "columns": self.inventory,
            "counted_in": self.counted_in,
            "told_apart_by_all_columns": asdict(self.together),
            "steady_within_people": self.steady_columns,
            "velado": self.version,
            "distributions": {part.name: part.to_dict() for part in self.scores.distributions},
            "measures": self.scores.to_dict(),
        }
