"""Finding side doors on the original values: columns that repeat, settle or narrow a quasi-identifier.

`velado.release._copies` says what a copy is, `narrowing` how a near-copy is told from mere correlation, and
`together` looks at two columns at once. Three columns that give a quasi-identifier away only together are not found;
`promise_with_side_doors` measures what is left of the promise for any set of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.table import Table
from velado.release._copies import Codes, count_pairs, folded, one_to_one, readings, repeats, same_values
from velado.release.side_doors._narrowing import (
    NARROWS,
    NEAR_COPY,
    Scale,
    as_guess,
    find_together,
    judged,
    narrowed,
    scale,
)
from velado.release.side_doors.door import ORDER, DoorKind, SideDoor

# Copies in part: a column that holds a quasi-identifier's own value in some rows, and anything in the others.
#
# Two columns that go together (the ages of a couple, the bills of two months) are equal more often than by chance, but
# then they differ by one about as often as not at all. A copy stands out: far more rows agree than lie one or two values
# apart. Columns of few values agree too often by chance and say too little, and are left out.

_LEAST_VALUES = 20
"""Columns of no more distinct values agree for many reasons."""
LEAST_ROWS = 10
LEAST_SHARE = 0.02
LEAST_DEVIATIONS = 6.0
_TIMES = 2.0
"""Rows that agree are more than so many times those expected."""
_STEPS = (-2, -1, 1, 2)


@dataclass(frozen=True)
class _InPart:
    """In how many rows, and in which share of those without the commonest value, two columns agree; and by chance."""

    rows: int
    share: float
    chance: float


def _copied_in_part(own: Scale, quasi: Scale) -> _InPart | None:
    """How far *own* is *quasi* itself in some rows, beyond chance and beyond what neighbouring values show; or None.

    The commonest value of either column counts for nothing: zeros meet zeros.
    """
    if not (own.ordered and quasi.ordered):
        return None
    both = ~(np.isnan(own.values) | np.isnan(quasi.values))
    x, q = own.values[both], quasi.values[both]
    least = max(LEAST_ROWS, LEAST_SHARE * x.size)
    if int((x == q).sum()) < least:
        return None
    line, codes = np.unique(np.r_[x, q], return_inverse=True)
    codes = codes.reshape(-1)
    a, b = codes[: x.size], codes[x.size :]
    of_a, of_b = (np.bincount(part, minlength=line.size).astype(np.float64) for part in (a, b))
    if min(int((of_a > 0).sum()), int((of_b > 0).sum())) <= _LEAST_VALUES:
        return None
    counted = np.ones(line.size, dtype=bool)
    # Where a quasi-identifier's commonest value is an age like others, leaving it out costs little.
    counted[[of_a.argmax(), of_b.argmax()]] = False
    hits = int(((a == b) & counted[a]).sum())
    chance = float((of_a * of_b)[counted].sum()) / x.size
    beside = max(float(((b - a == step) & counted[a]).sum()) for step in _STEPS)
    expected = max(chance, beside)
    if hits < least or hits < _TIMES * expected:
        return None
    if hits - expected < LEAST_DEVIATIONS * np.sqrt(max(expected, 1.0)):
        return None
    left = x.size - float(of_a.max())
    return _InPart(hits, hits / left, chance / left)


SAMPLE_ROWS = 200_000
LEAST_GAIN = 0.5
"""A column is a door if it removes at least half of the wrong guesses about a quasi-identifier ..."""
_LEAST_TO_GUESS = 8
_LEAST_PINNED = 0.10
"""... or if, on some of its values, it all but settles a tenth of what there is to learn about it."""
_PINNED_SHARE = 0.99
_PINNED_ROWS = 20
_PINNED_CHANCE = 1e-3
_LEAST_UNIQUE = 0.5
_LEAST_GAIN_OF_NEIGHBOURS = 0.9
_LEAST_ROWS_FOR_UNIQUE = 10


def find_side_doors(table: Table, *, published: bool = False) -> tuple[SideDoor, ...]:
    """Every side door of *table*, copies first, judged on its original values.

    Guesses are leave-one-out: a row's quasi-identifier is guessed as the commonest one among the *other*
    rows with the same value of the column, and as the commonest of all where no other row has that value, so
    that a column does not look telling merely because its values are rare. Above 200,000 rows the shares
    come from a fixed sample (evenly spaced rows; for a column of rare values all rows of evenly spaced
    values) and `rows_revealed` is scaled up from it; copies and uniqueness are confirmed on all rows. Case and
    outer spaces tell no values apart. Near-copies and pairs are judged on 20,000 rows. A sensitive column is what
    an attacker wants to learn, so that a near-copy in one is named as "narrows". *published* says that the table is a
    release, whose quasi-identifiers are generalized. O(n log n) per pair of columns.

    >>> from velado.testing.examples import table
    >>> towns = [f"town {at % 5}" for at in range(40)]
    >>> doors = find_side_doors(table(town=towns, note=[town.upper() for town in towns]))
    >>> [(door.column, door.kind) for door in doors]
    [('note', 'copy')]
    """
    quasi = [column.name for column in table.schema.quasi]
    others = [c for c in table.schema.columns.values() if c.published and c.role != "quasi"]
    if not quasi or not others:
        return ()
    sample = evenly_spaced(table.rows, SAMPLE_ROWS)
    views = {name: _View(table, name, sample) for name in quasi}
    coded = {name: text_codes(view.readings[0]) for name, view in views.items()}
    some = judged(table)
    scales = {c.name: scale(some, c) for c in (*table.schema.quasi, *others)}
    alone_tells: dict[tuple[str, str], float] = {}
    found: list[SideDoor] = []
    for column in others:
        accepted = column.side_door == "accept"
        view = _View(table, column.name, sample)
        own = view.text
        codes, size = text_codes(view.readings[0])
        seen = coded
        if _is_rare(codes, size):
            alone = int(own.drop_nulls().is_unique().sum())
            if table.rows >= _LEAST_ROWS_FOR_UNIQUE and alone >= _LEAST_UNIQUE * table.rows:
                share = alone / table.rows
                found.append(SideDoor(column.name, "", "near-unique", share, 0.0, alone, accepted))
            if sample is not None and alone < 0.9 * table.rows:
                rows = _rows_of_some_values(own)
                codes, size = text_codes(folded(own.gather(rows)))
                seen = {name: text_codes(folded(views[name].text.gather(rows))) for name in quasi}
        for name in quasi:
            door = _judge((codes, size), seen[name], view, views[name], accepted)
            share = alone_tells[column.name, name] = narrowed(scales[column.name], scales[name])
            door = _narrowed(
                door, share, scales[name], SideDoor(column.name, name, "narrows", share, 0.0, 0, accepted)
            )
            if door is None or not door.tells:
                part = _copied_in_part(scales[column.name], scales[name])
                if part is not None:
                    count = round(part.rows * table.rows / scales[name].values.size)
                    own_part = SideDoor(
                        column.name, name, "part-copy", part.share, part.chance, count, accepted
                    )
                    door = own_part if door is None or own_part.tells else door
            if door is not None and door.kind == "near-copy" and column.role == "sensitive":
                door = replace(door, kind="narrows")
            if door is not None:
                found.append(door)
    settled = {(d.column, d.reveals) for d in found if d.kind in ("copy", "near-copy", "functional")}
    found += find_together(table, scales, alone_tells, settled, published)
    return tuple(sorted(found, key=lambda door: ORDER.index(door.kind)))


def _narrowed(door: SideDoor | None, share: float, quasi: Scale, fresh: SideDoor) -> SideDoor | None:
    """The door found by guessing, or one by narrowing where that says more."""
    if share < NARROWS or (door is not None and door.kind in ("copy", "functional")):
        return door
    if not quasi.ordered:
        # Categories have no window: neighbours agree or not, so this is a guess that is often right.
        if door is not None or share < _LEAST_GAIN_OF_NEIGHBOURS:
            return door
        guess, baseline = as_guess(share, quasi)
        return replace(fresh, kind="near-functional", guess=guess, baseline=baseline)
    if share >= NEAR_COPY:
        return replace(fresh, kind="near-copy", rows_revealed=0 if door is None else door.rows_revealed)
    return fresh if door is None or not door.tells else door


@dataclass(frozen=True)
class _Dependence:
    """How far one column settles another, from their table of counts."""

    guess: float
    baseline: float
    rows_revealed: int
    pinned: float
    functional: bool
    one_to_one: bool

    @property
    def gain(self) -> float:
        """The share of the commonest guess's mistakes that the column removes."""
        return (self.guess - self.baseline) / (1.0 - self.baseline) if self.baseline < 1.0 else 0.0


def _dependence(column: Codes, quasi: Codes) -> _Dependence:
    c, q, counts = count_pairs(column, quasi)
    n = int(counts.sum())
    starts = np.flatnonzero(np.r_[True, c[1:] != c[:-1]])
    group = np.cumsum(np.r_[False, c[1:] != c[:-1]])
    rows = np.add.reduceat(counts, starts)
    most = np.maximum.reduceat(counts, starts)
    is_most = counts == most[group]
    winners = np.add.reduceat(is_most.astype(np.int64), starts)
    second = np.maximum.reduceat(np.where(is_most, 0, counts), starts)
    rivals = np.add.reduceat((counts == second[group]).astype(np.int64), starts)
    # Taking a row out of its group costs its own value one count: the value stays the best guess if it led by
    # two, ties with the runners-up if it led by one (one chance among them), and loses otherwise.
    lead = most - second
    right = np.where(lead >= 2, most.astype(np.float64), most / (rivals + 1.0))
    right = np.where((winners == 1) & (rows >= 2), right, 0.0)
    totals = np.bincount(q, weights=counts, minlength=quasi[1])
    commonest = int(totals.argmax())
    alone = rows == 1
    lone_hits = float((alone & (q[starts] == commonest)).sum())
    kinds = np.diff(np.r_[starts, c.size])
    settled = (kinds == 1) & (rows >= 2)
    # What learning a value tells is 1 - its share in the whole table. A group of one value counts only if it
    # would hardly come about by chance: twenty rows of a value that nine tenths of the table have say nothing.
    news = 1.0 - totals / n
    to_learn = float((totals * news).sum())
    prior = (totals / n)[q]
    pins = is_most & (counts >= _PINNED_SHARE * rows[group]) & (rows[group] >= _PINNED_ROWS)
    pins &= np.power(prior, counts) <= _PINNED_CHANCE
    learnt = float((counts * news[q])[pins].sum())
    functional = bool((kinds == 1).all()) and int((totals > 0).sum()) >= 2
    # A one-to-one match of values that hardly repeat is what any two near-unique columns show: it means nothing.
    mostly_shared = 2 * int((~alone).sum()) > alone.size
    return _Dependence(
        guess=(float(right.sum()) + lone_hits) / n,
        baseline=float(totals[commonest]) / n,
        rows_revealed=int(rows[settled].sum()),
        pinned=learnt / to_learn if to_learn else 0.0,
        functional=functional,
        one_to_one=mostly_shared and one_to_one(c, q, counts),
    )


class _View:
    """A column as text, and its readings in the sampled rows."""

    def __init__(self, table: Table, name: str, sample: pl.Series | None) -> None:
        column = table.schema.columns[name]
        self.name = name
        self.text = table.text(name)
        self.sampled = sample is not None
        self.format = column.format if column.kind == "date" else None
        self.within = column.role != "quasi" or column.kind == "numeric"
        self.readings = readings(_take(self.text, sample), self.format, self.within)

    def all_readings(self) -> tuple[pl.Series, ...]:
        return readings(self.text, self.format, self.within) if self.sampled else self.readings


def _judge(codes: Codes, quasi_codes: Codes, own: _View, quasi: _View, accepted: bool) -> SideDoor | None:
    found = _dependence(codes, quasi_codes)
    copies = same_values(own.readings, quasi.readings) or found.one_to_one
    if copies and own.sampled:
        copies = repeats(own.all_readings(), quasi.all_readings())
    # Where nearly all rows hold one value, a few lucky guesses remove half of the mistakes.
    to_learn = (1.0 - found.baseline) * codes[0].size >= _LEAST_TO_GUESS
    kind: DoorKind | None = None
    if copies:
        kind = "copy"
    elif found.functional and found.gain >= LEAST_GAIN and to_learn:
        kind = "functional"
    elif (found.gain >= LEAST_GAIN and to_learn) or found.pinned >= _LEAST_PINNED:
        kind = "near-functional"
    if kind is None:
        return None
    revealed = round(found.rows_revealed * own.text.len() / codes[0].size)
    return SideDoor(own.name, quasi.name, kind, found.guess, found.baseline, revealed, accepted)


def evenly_spaced(rows: int, most: int) -> pl.Series | None:
    """Which rows are the fixed sample of a table with more than *most*; None where all rows are looked at.

    >>> evenly_spaced(10, 5).to_list(), evenly_spaced(5, 10)
    ([0, 2, 4, 6, 8], None)
    """
    return None if rows <= most else pl.Series((np.arange(most, dtype=np.int64) * rows) // most)


def _take(series: pl.Series, rows: pl.Series | None) -> pl.Series:
    return series if rows is None else series.gather(rows)


def _is_rare(codes: npt.NDArray[np.int32], size: int) -> bool:
    return 5 * size > codes.size


def _rows_of_some_values(series: pl.Series) -> pl.Series:
    # Evenly spaced rows would tear rare values apart and hide what their rows have in common.
    values = series.drop_nulls().unique().sort()
    step = -(-series.len() // SAMPLE_ROWS)
    return series.is_in(values.gather_every(step).to_list()).fill_null(False).arg_true()
