"""How far one column, or two together, narrow another: by any rule, rising, falling or neither, told from chance.

Chatterjee's coefficient (S. Chatterjee, "A new coefficient of correlation", JASA 116, 2021, equation 1.1 with ties)
orders the rows by one column and asks how far neighbours are apart in the ranks of the other. It is about 0 where the
two are independent (standard deviation sqrt(2/5n)) and 1 where the first settles the second by whatever function. One
less it is the part of the people that is left for a reader of the first: a five-year band of ages 0 to 99 gives 0.95.
Mere correlation stays far below: in the public tables we tried the largest of a harmless pair is 0.74 (a credit card's
bills of two months).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.schema import Column
from velado.data.table import Table
from velado.release._copies import days_in, folded, in_small_letters, nearly_all_read, numbers_in, plain
from velado.release.side_doors.door import DoorKind, SideDoor, paired

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

ROWS = 20_000
"""As many evenly spaced rows (people, where the schema knows them) say how far a column narrows another."""
PROBE = 2_000
_PROMISING = 0.6
_FEW_CODES = 100
NARROWS = 0.85
NEAR_COPY = 0.95
LEAST_TO_LEARN = 20.0
"""Fewer neighbours that would differ by chance than these say nothing, however alike they are."""

_MONTH = r"^(?P<y>\d{4})[-/.](?P<m>\d{1,2})$|^(?P<m2>\d{1,2})[-/.](?P<y2>\d{4})$"


@dataclass(frozen=True, repr=False)
class Scale:
    """A column as numbers, NaN where blank; *ordered* False where only equality has a meaning (then codes).

    *coded* says that the numbers stand within texts (`34 y`, `c34`), so that their order may or may not mean anything.
    """

    name: str
    values: Floats
    ordered: bool
    coded: bool = False

    def __repr__(self) -> str:
        return f"Scale({self.name!r}, {self.values.size} rows)"

    def take(self, rows: Rows) -> Scale:
        """The same column in some rows."""
        return Scale(self.name, self.values[rows], self.ordered, self.coded)


def judged(table: Table, most: int = ROWS) -> Table:
    """Evenly spaced rows of *table*, one per person: a person's repeated rows would agree with themselves."""
    rows = np.arange(table.rows, dtype=np.int64)
    person = table.schema.person
    if person is not None:
        codes = text_codes(folded(table.text(person.name)))[0]
        rows = np.sort(np.unique(codes, return_index=True)[1]).astype(np.int64)
    if rows.size > most:
        rows = rows[(np.arange(most) * rows.size) // most]
    return table if rows.size == table.rows else table.with_frame(table.frame[rows])


def scale(table: Table, column: Column) -> Scale:
    """A column read as numbers, days or months where nearly all of its texts are such, else as codes of its texts."""
    series = table.frame.get_column(column.name)
    if series.dtype.is_numeric():
        missing = table.is_missing(column.name)
        return Scale(column.name, _floats(series.cast(pl.Float64).set(missing, None)), True)
    text = plain(table.text(column.name))
    read = _on_a_line(text, column.format if column.kind == "date" else None)
    if read is not None:
        return Scale(column.name, read, True)
    if column.role != "quasi" or column.kind == "numeric":
        within = numbers_in(text)
        if within:
            return Scale(column.name, _floats(within[0]), True, True)
    codes = text_codes(folded(table.text(column.name)))[0].astype(np.float64)
    return Scale(column.name, np.where(codes == 0, np.nan, codes), False)


def _on_a_line(text: pl.Series, date_format: str | None = None) -> Floats | None:
    """Plain texts as numbers, as days, or as months; None where they are neither."""
    if date_format is not None:
        days = text.str.to_date(in_small_letters(date_format), strict=False)
        if nearly_all_read(text, days):
            return _floats(days.to_physical().cast(pl.Float64))
    numbers = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    if nearly_all_read(text, numbers):
        return _floats(numbers)
    for days in days_in(text)[:1]:
        return _floats(days.to_physical().cast(pl.Float64))
    probe = text.drop_nulls().head(200)
    if len(probe) and 2 * int(probe.str.contains(_MONTH).sum()) > len(probe):
        parts = text.str.extract_groups(_MONTH).struct.unnest()
        year = parts["y"].fill_null(parts["y2"]).cast(pl.Float64, strict=False)
        months = year * 12 + parts["m"].fill_null(parts["m2"]).cast(pl.Float64, strict=False)
        if nearly_all_read(text, months):
            return _floats(months)
    return None


def _floats(series: pl.Series) -> Floats:
    out = series.fill_null(np.nan).to_numpy().astype(np.float64)
    return np.where(np.isfinite(out), out, np.nan)


def _scattered(rows: int) -> npt.NDArray[np.uint64]:
    """A fixed order of the rows that follows no other: it parts equal values, so that a sorted file says nothing."""
    return (np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0x5DEECE66D1234567)


class Target:
    """A quasi-identifier ready to be held against orders of the rows: its ranks, or its codes where it has none."""

    def __init__(self, of: Scale) -> None:
        self.name = of.name
        self.ordered = of.ordered
        values = of.values
        n = values.size
        if of.ordered:
            line = np.sort(values)
            self.ranks = np.searchsorted(line, values, "right").astype(np.float64)
            above = (n - np.searchsorted(line, values, "left")).astype(np.float64)
            # Mean distance of two rows drawn at random; ties make it smaller than a third of the rows.
            self.apart = 2.0 * float((above * (n - above)).sum()) / n**2 if n else 0.0
        counts = np.unique(values, return_counts=True)[1] if n else np.zeros(1)
        self.differing = 1.0 - float(((counts / max(n, 1)) ** 2).sum())
        if not of.ordered:
            self.ranks = values
            self.apart = self.differing

    def settled(self, order: Rows, beside: npt.NDArray[np.bool_] | None = None) -> float:
        """How far neighbours in *order* agree beyond chance: 0 by chance, 1 fully. *beside* picks neighbours."""
        gaps = self.gaps(order)
        if beside is not None:
            gaps = gaps[beside]
        if self.apart <= 0.0 or gaps.size * self.differing < LEAST_TO_LEARN:
            return 0.0
        return 1.0 - float(gaps.mean()) / self.apart

    def gaps(self, order: Rows) -> Floats:
        """How far each row is from the next one in *order*."""
        sorted_ = self.ranks[order]
        steps = np.diff(sorted_)
        gaps = np.abs(steps) if self.ordered else steps != 0
        return np.asarray(gaps, dtype=np.float64)


def narrowed(own: Scale, quasi: Scale) -> float:
    """How far *own* settles *quasi* in the rows where both have a value: about 0 by chance, at most 1.

    Most pairs have nothing to do with one another, and a few thousand rows show it: only what they leave open is
    looked at in all rows.
    """
    dense = own.ordered or not own.values.size or np.nanmax(own.values, initial=0.0) <= _FEW_CODES
    if dense and own.values.size > 2 * PROBE:
        few = (np.arange(PROBE) * own.values.size) // PROBE
        share = _narrowed(own.take(few), quasi.take(few))
        if share < _PROMISING:
            return share
    return _narrowed(own, quasi)


def _narrowed(own: Scale, quasi: Scale) -> float:
    both = np.flatnonzero(~(np.isnan(own.values) | np.isnan(quasi.values)))
    if both.size < LEAST_TO_LEARN:
        return 0.0
    values = own.values[both]
    order = np.lexsort((_scattered(both.size), values))
    target = Target(quasi.take(both))
    if own.coded or not own.ordered or not quasi.ordered:
        # The order of codes has no meaning: only neighbours of one value tell, if such are most.
        same = np.diff(values[order]) == 0
        if 2 * int(same.sum()) >= same.size:
            alike = target.settled(order, same)
            return max(alike, target.settled(order)) if own.coded else alike
    return target.settled(order)


def as_guess(share: float, quasi: Scale) -> tuple[float, float]:
    """A settled share of a column of categories as the chance of a right guess, and that without any reading.

    Both guess the category of another row: one with the same value, one drawn at random.
    """
    seen = quasi.values[~np.isnan(quasi.values)]
    alike = 1.0 - Target(Scale(quasi.name, seen, False)).differing
    return alike + share * (1.0 - alike), alike


# Two columns that give a quasi-identifier away only together: `visit_year` and `birth_year`, `unit` and `weight`.
#
# Two searches. *Weighted sums*: for every pair of number or date columns the share of the quasi-identifier's variance
# that a x + b y explains follows from their correlations alone, so that thousands of pairs cost one matrix; the same on
# logarithms finds products and ratios (weight / height^2). *Joint values*: rows sorted by x and within x by y, and
# neighbours compared, which finds whatever function of both. A few thousand rows choose the candidates; each is then
# judged on all judged rows by the coefficient above, and must say far more than either column alone.
#
# One of the two may be a quasi-identifier itself: its published value is coarser, but what is left of it counts. Two
# quasi-identifiers are generalized together, and sensitive columns are not where an attacker starts.

LEAST_TOGETHER = 30
LEAST_FIT = 0.8
"""A weighted sum is a candidate if it explains this share of the probe's variance ..."""
LEFT = 0.5
"""... and leaves at most half of what the better column alone leaves; the judgement on all rows asks that again."""
_LEAST_JOINT = 0.7
MOST_JUDGED = 64
MOST_ORDERS = 20_000
_ROWS_PER_VALUE = 8
"""Sorting by x and then by y says nothing of y unless a value of x has about as many rows."""
_LEAST_ABOVE = 0.25
"""Products are looked for where this share of the rows is above zero."""
_LEAST_COLLISIONS = 20
_ROWS_PER_MET_VALUE = 4
_MOST_COLLISIONS = 4.0
"""Rows that meet in both values so many times more often than by chance are repeated rows, and agree with themselves."""
LEAST_DEVIATIONS = 6.0
_FAR = 5.0
"""Values this many quartile distances from the median (codes such as 99 or 9999) take no part in a sum."""

Alone = Mapping[tuple[str, str], float]
Settled = Collection[tuple[str, str]]


@dataclass(frozen=True)
class _Pair:
    """Two columns that may give a quasi-identifier away, and how far they seem to."""

    first: str
    second: str
    quasi: str
    promising: float


def find_together(
    table: Table, scales: Mapping[str, Scale], alone: Alone, settled: Settled, published: bool = False
) -> list[SideDoor]:
    """Pairs of published columns that settle or narrow a quasi-identifier; *settled* (column, quasi) are known.

    *alone* says how far each single column narrows each quasi-identifier. Where there are more pairs or candidates
    than the work allows, the last door says how many were left. In a *published* table a quasi-identifier is no
    partner: what it says together with a column about another is published beside it.
    """
    schema = table.schema
    free = [c.name for c in schema.columns.values() if c.published and c.role == "other"]
    quasi = [c.name for c in schema.quasi]
    size = next(iter(scales.values())).values.size
    if not free or size < LEAST_TOGETHER or len(free) + len(quasi) < 3:
        return []
    probe = np.arange(size) if size <= PROBE else (np.arange(PROBE) * size) // PROBE
    near = {name: scales[name].take(probe) for name in (*free, *quasi)}
    partners = [] if published else quasi
    sums = promising_sums(near, free, quasi)
    sums = [pair for pair in sums if not published or {pair.first, pair.second} <= set(free)]
    joint, unseen = _joint(near, free, partners, quasi, alone)
    found: dict[tuple[str, str, str], SideDoor] = {}
    for candidates, judge in ((sums, _judge_sum), (joint, _judge_joint)):
        open_ = [p for p in candidates if not ({(p.first, p.quasi), (p.second, p.quasi)} & set(settled))]
        unseen += max(0, len(open_) - MOST_JUDGED)
        for pair in open_[:MOST_JUDGED]:
            key = (min(pair.first, pair.second), max(pair.first, pair.second), pair.quasi)
            if key in found:
                continue
            share = judge(scales[pair.first], scales[pair.second], scales[pair.quasi])
            best = max(
                _alone(alone, scales, pair.first, pair.quasi), _alone(alone, scales, pair.second, pair.quasi)
            )
            if share < NARROWS or 1.0 - share > LEFT * (1.0 - best):
                continue
            names = (pair.first, pair.second)
            signed = any(schema.columns[n].side_door == "accept" for n in names if n not in quasi)
            kind = _kind(share, scales[pair.quasi].ordered, all(name in free for name in names))
            ordered = scales[pair.quasi].ordered
            guess, baseline = (share, 0.0) if ordered else as_guess(share, scales[pair.quasi])
            found[key] = SideDoor(
                column=paired(names),
                reveals=pair.quasi,
                kind=kind,
                guess=guess,
                baseline=baseline,
                rows_revealed=0,
                accepted=signed,
                together=names,
            )
    out = list(found.values())
    if unseen:
        out.append(SideDoor("", "", "unseen", 0.0, 0.0, unseen))
    return out


def _kind(share: float, ordered: bool, both_in_clear: bool) -> DoorKind:
    if not ordered:
        return "functional" if share >= NEAR_COPY else "near-functional"
    # A quasi-identifier is published coarser than it was judged here: what is left of the pair, its groups show.
    return "near-copy" if share >= NEAR_COPY and both_in_clear else "narrows"


def _alone(alone: Alone, scales: Mapping[str, Scale], column: str, quasi: str) -> float:
    known = alone.get((column, quasi))
    return narrowed(scales[column], scales[quasi]) if known is None else known


def promising_sums(
    near: Mapping[str, Scale], free: list[str], quasi: list[str], least: float = LEAST_FIT, left: float = LEFT
) -> list[_Pair]:
    """Pairs whose weighted sum, or product of powers, explains a quasi-identifier in the probe; best first.

    It explains at least the share *least* of its variance, and leaves at most *left* of what one column leaves.
    """
    best: dict[tuple[str, str, str], float] = {}
    for logs in (False, True):
        names, values = [], []
        for name in (*free, *quasi):
            made = _tamed(near[name].values, logs) if near[name].ordered else None
            if made is not None:
                names.append(name)
                values.append(made)
        told = [name for name in quasi if name in names]
        if len(names) < 3 or not told:
            continue
        r = _correlations(np.stack(values), logs)
        is_free = np.array([name in free for name in names])
        # At least one of the two is no quasi-identifier, and a pair counts once.
        allowed = np.triu(is_free[:, None] | is_free[None, :], 1)
        room = np.maximum(1.0 - r**2, 1e-9)
        for name in told:
            at = names.index(name)
            mine = r[at]
            explained = (mine[:, None] ** 2 + mine[None, :] ** 2 - 2 * np.outer(mine, mine) * r) / room
            better = np.maximum(mine[:, None] ** 2, mine[None, :] ** 2)
            ok = allowed & (room > 1e-6) & (explained >= least) & (1 - explained <= left * (1 - better))
            ok[at, :] = ok[:, at] = False
            for i, j in zip(*np.nonzero(ok), strict=True):
                key = (names[i], names[j], name)
                best[key] = max(best.get(key, 0.0), float(explained[i, j]))
    pairs = [_Pair(*key, share) for key, share in best.items()]
    return sorted(pairs, key=lambda pair: -pair.promising)


def _correlations(values: Floats, pairwise: bool) -> Floats:
    """Correlations of the rows of centred *values*; blanks are means, or *pairwise* each two are held together where both are there."""
    z = np.nan_to_num(values)
    z /= np.sqrt((z**2).mean(axis=1, keepdims=True))
    if not pairwise or not np.isnan(values).any():
        return np.asarray(np.clip(z @ z.T / z.shape[1], -1.0, 1.0), dtype=np.float64)
    there = (~np.isnan(values)).astype(np.float64)
    shared = np.maximum(there @ there.T, 1.0)
    means = z @ there.T / shared
    spread = np.sqrt(np.maximum((z**2) @ there.T / shared - means**2, 1e-12))
    r = (z @ z.T / shared - means * means.T) / (spread * spread.T)
    return np.asarray(np.clip(np.where(shared < LEAST_TOGETHER, 0.0, r), -1.0, 1.0), dtype=np.float64)


def _tamed(values: Floats, logs: bool) -> Floats | None:
    """Centred values without far ones; None where there is nothing to add up."""
    seen = values[~np.isnan(values)]
    if logs:
        # What is not above zero has no logarithm: the age of the newborn, the bill of who paid nothing.
        seen = seen[seen > 0]
    if seen.size < max(LEAST_TOGETHER, _LEAST_ABOVE * values.size if logs else 0.0):
        return None
    out = np.log(np.where(values > 0, values, np.nan)) if logs else values
    low, middle, high = np.nanquantile(out, (0.25, 0.5, 0.75))
    if high > low:
        out = np.where(np.abs(out - middle) > _FAR * (high - low), np.nan, out)
    out = out - np.nanmean(out)
    return out if float(np.nan_to_num(out).std()) > 0 else None


def _judge_sum(first: Scale, second: Scale, quasi: Scale) -> float:
    """How far the best weighted sum, or product of powers, of two columns settles the quasi-identifier."""
    shares = [0.0]
    for logs in (False, True):
        made = [_tamed(scale.values, logs) for scale in (first, second, quasi)]
        x, y, q = made
        if x is None or y is None or q is None:
            continue
        both = np.flatnonzero(~(np.isnan(x) | np.isnan(y) | np.isnan(q)))
        # A sum of the rows that are not blank or coded is one of the column only if these are most.
        if both.size < max(LEAST_TOGETHER, (_LEAST_ABOVE if logs else 0.5) * quasi.values.size):
            continue
        parts = np.stack((np.ones(both.size), x[both], y[both]), axis=1)
        weights = np.linalg.lstsq(parts, q[both], rcond=None)[0]
        fitted = Scale("", np.round(parts @ weights, 9), True)
        shares.append(narrowed(fitted, Scale(quasi.name, q[both], True)))
    return max(shares)


def _joint(
    near: Mapping[str, Scale], free: list[str], partners: list[str], quasi: list[str], alone: Alone
) -> tuple[list[_Pair], int]:
    """Pairs whose joint value settles a quasi-identifier in the probe, best first, and how many were not tried."""
    codes = {name: _dense(scale.values) for name, scale in near.items()}
    sizes = {name: int(code.max()) + 1 for name, code in codes.items()}
    rows = next(iter(codes.values())).size
    majors = [n for n in (*free, *partners) if 2 <= sizes[n] <= rows / _ROWS_PER_VALUE]
    orders = [
        (x, y)
        for x in majors
        for y in (*free, *partners)
        if x != y and sizes[y] >= 2 and (x in free or y in free) and not (y in majors and _later(x, y, near))
    ]
    unseen = max(0, len(orders) - MOST_ORDERS)
    targets = {name: Target(near[name]) for name in quasi if not np.isnan(near[name].values).any()}
    blanks = {name: near[name] for name in quasi if name not in targets}
    # A blank of a probe's quasi-identifier counts as a category or as the highest value: it only chooses candidates.
    targets |= {
        name: Target(Scale(name, _dense(s.values).astype(float), s.ordered)) for name, s in blanks.items()
    }
    mixed = np.argsort(_scattered(rows))
    best: dict[tuple[str, str, str], float] = {}
    for x, y in orders[:MOST_ORDERS]:
        key = codes[x][mixed] * sizes[y] + codes[y][mixed]
        order = mixed[np.argsort(key, kind="stable")]
        same, met = _same_cell(codes[x], codes[y], order)
        if same is None and met is None and not near[y].ordered:
            continue
        for name, target in targets.items():
            if name in (x, y):
                continue
            share = _settled(target, order, (codes[x], codes[y]), same, met, near[y].ordered)
            lesser = max(_probe_alone(alone, x, name), _probe_alone(alone, y, name))
            if share >= _LEAST_JOINT and 1.0 - share <= LEFT * (1.0 - lesser):
                pair = (min(x, y), max(x, y), name)
                best[pair] = max(best.get(pair, 0.0), share)
    pairs = [_Pair(*key, share) for key, share in best.items()]
    return sorted(pairs, key=lambda pair: -pair.promising), unseen


def _later(x: str, y: str, near: Mapping[str, Scale]) -> bool:
    # Two columns of few unordered values make the same cells in either order.
    return not near[x].ordered and not near[y].ordered and x > y


def _probe_alone(alone: Alone, column: str, quasi: str) -> float:
    return alone.get((column, quasi), 0.0)


Beside = npt.NDArray[np.bool_]


def _same_cell(x: Rows, y: Rows, order: Rows) -> tuple[Beside | None, Beside | None]:
    """Which neighbours share both values, where these are most; else, second, where they are few but not too few.

    Both None where the order itself must tell.
    """
    alike = (np.diff(x[order]) == 0) & (np.diff(y[order]) == 0)
    met = int(alike.sum())
    if 2 * met >= alike.size:
        return alike, None
    # Values that hardly repeat meet where rows or people repeat.
    if met < _LEAST_COLLISIONS or max(int(x.max()), int(y.max())) >= x.size / _ROWS_PER_MET_VALUE:
        return None, None
    by_chance = x.size / 2 * float(np.prod([((np.bincount(part) / part.size) ** 2).sum() for part in (x, y)]))
    return None, alike if met <= _MOST_COLLISIONS * by_chance * x.size else None


def _settled(
    target: Target,
    order: Rows,
    cells: tuple[Rows, Rows],
    same: Beside | None,
    met: Beside | None,
    ordered: bool,
) -> float:
    """How far neighbours agree: those of one cell, all of them, or the few that meet (a sum modulo 100, an xor)."""
    if same is not None:
        return target.settled(order, same)
    share = target.settled(order) if ordered else 0.0
    if met is None:
        return share
    agreeing = float((target.gaps(order)[met] == 0).sum())
    pairs, alike = int(met.sum()), 1.0 - target.differing
    deviation = np.sqrt(pairs * alike * (1.0 - alike))
    if deviation <= 0 or agreeing - pairs * alike < LEAST_DEVIATIONS * deviation:
        return share
    meeting = target.settled(order, met)
    # Rows that meet in one of the two values alone must not agree nearly as well.
    alone = max(_meeting_alone(target, part) for part in cells)
    return max(share, meeting) if 1.0 - meeting <= LEFT * (1.0 - alone) else share


def _meeting_alone(target: Target, values: Rows) -> float:
    order = np.lexsort((_scattered(values.size), values))
    return target.settled(order, np.diff(values[order]) == 0)


def _dense(values: Floats) -> Rows:
    """Ranks of the distinct values as whole numbers; blanks come last."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _judge_joint(first: Scale, second: Scale, quasi: Scale) -> float:
    """How far the joint value of two columns settles the quasi-identifier, in either order of sorting."""
    both = np.flatnonzero(~(np.isnan(first.values) | np.isnan(second.values) | np.isnan(quasi.values)))
    if both.size < max(LEAST_TOGETHER, LEAST_TO_LEARN, quasi.values.size / 2):
        return 0.0
    target = Target(quasi.take(both))
    mixed = _scattered(both.size)
    shares = [0.0]
    for x, y in ((first, second), (second, first)):
        a, b = _dense(x.values[both]), _dense(y.values[both])
        if int(a.max()) + 1 > both.size / _ROWS_PER_VALUE:
            continue
        order = np.lexsort((mixed, b, a))
        same, met = _same_cell(a, b, order)
        shares.append(_settled(target, order, (a, b), same, met, y.ordered))
    return max(shares)
