"""Columns compatible with what is published: their values lie inside it, or rise and fall in step with it.

Neither needs the original table to be found.

A birth year falls as the published ages `[20..29]`, `[30..39]` rise. No value of it stands inside an interval, yet a
reader needs no more than the order to turn it back into an age. So a rising and a falling rule is fitted that puts
every row's value as near as can be to the interval published in that row (projections in turn onto the intervals and
onto the rules that rise, which meet where there is such a rule: Bauschke and Borwein, SIAM Review 38, 1996). What lies
inside nearly everywhere, and would not by chance, is named. Two columns are first added up with the weights that fit
best in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import encode_column
from velado.data.numbers import with_point
from velado.data.published_column import read_texts, stated_number
from velado.data.schema import Column
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL, from_tree
from velado.errors import InputError
from velado.release._copies import GAIN, LEAST_ROWS, days_in, folded, numbers_in, plain
from velado.release.side_doors._narrowing import (
    LEAST_TOGETHER,
    MOST_JUDGED,
    PROBE,
    Floats,
    Scale,
    judged,
    promising_sums,
    scale,
)
from velado.release.side_doors.door import SideDoor, paired
from velado.release.side_doors.find import SAMPLE_ROWS, evenly_spaced

# Originals left in: columns of a release whose values lie inside what a quasi-identifier publishes.
#
# A method may cut the ages of each town elsewhere, so that the age 27 stands in `[20..29]` here and in `[25..34]`
# there. An original age column in the file then determines no published age, and still undoes every interval.
# Here the column is read as if it were the quasi-identifier, and its values are held against the intervals and
# labels published in the same rows.

_PROBE_ROWS = 2_000
MOST_ALTERED = 0.05
"""A column of originals stays one if as many of its cells are altered, or cannot be read."""


def find_originals(table: Table) -> tuple[SideDoor, ...]:
    """Every column of role "other" that lies within a published quasi-identifier far more often than by chance.

    Chance is what pairing the column's values with the published texts at random would give, summed exactly over
    the distinct texts. Above 200,000 rows evenly spaced ones are judged. O(n log n) per pair of columns.

    >>> from velado.testing.examples import small_table
    >>> ages = " ".join(str(20 + n) for n in range(40))
    >>> bands = " ".join(f"[{20 + n // 10 * 10}..{29 + n // 10 * 10}]" for n in range(40))
    >>> table = small_table(age=("quasi", "numeric", bands), note=("other", "numeric", ages))
    >>> [(door.column, door.reveals, door.kind) for door in find_originals(table)]
    [('note', 'age', 'original')]
    """
    found = []
    rows = table.rows
    table = _spaced(table, SAMPLE_ROWS)
    # Most pairs of columns have nothing to do with one another, and a few rows show it.
    probe = _spaced(table, _PROBE_ROWS)
    for column in table.schema.columns.values():
        if column.role != "other" or not column.published:
            continue
        for quasi in table.schema.quasi:
            if not any(_judge(probe, column, quasi, s) for s in _readings_as(probe, column.name, quasi)):
                continue
            for series in _readings_as(table, column.name, quasi):
                door = _judge(table, column, quasi, series)
                if door is not None:
                    inside = round(door.rows_revealed * rows / table.rows)
                    found.append(replace(door, rows_revealed=inside))
                    break
    return tuple(found)


def _spaced(table: Table, most: int) -> Table:
    rows = evenly_spaced(table.rows, most)
    return table if rows is None else table.with_frame(table.frame[rows])


def _readings_as(table: Table, name: str, quasi: Column) -> Sequence[pl.Series]:
    """The column's texts as the quasi-identifier would write them; unreadable cells become blank."""
    texts = table.text(name)
    if quasi.kind == "date":
        return [d.dt.strftime(quasi.format) for d in days_in(plain(texts), quasi.format, MOST_ALTERED)]
    if quasi.kind == "numeric":
        numeric = numbers_in(plain(texts), MOST_ALTERED)
        return [numbers.set(~numbers.is_finite().fill_null(False), None) for numbers in numeric]
    found: list[pl.Series] = []
    for read in (texts.str.strip_chars(), *_spelt_as(texts, table.text(quasi.name), quasi)):
        # Numbers and codes are spelt one way only, and need to be judged once.
        if not any(read.equals(known) for known in found):
            found.append(read)
    return found


def _spelt_as(texts: pl.Series, published: pl.Series, quasi: Column) -> Sequence[pl.Series]:
    """The column's texts in the spelling of the quasi-identifier, where only case and spaces differ."""
    spec = quasi.taxonomy
    normal, small = folded(texts), plain(texts)
    if spec is not None and spec.paths is not None:
        leaves = pl.Series([path[0] for path in spec.paths], dtype=pl.String)
    elif spec is not None and spec.tree is not None:
        tree = from_tree(spec.tree, quasi.name)
        leaves = pl.Series(tree.labels[: tree.leaves], dtype=pl.String)
    else:
        # Values that are their own leaves: those still published are spelt so, and codes are written in capitals.
        seen = published.drop_nulls().unique().sort()
        return [_respelt(normal, seen, small), small.str.to_uppercase()]
    return [_respelt(normal, leaves, None)]


def _respelt(normal: pl.Series, spelt: pl.Series, otherwise: pl.Series | None) -> pl.Series:
    known = pl.DataFrame({"normal": folded(spelt), "spelt": spelt}).unique("normal", keep="first")
    return normal.replace_strict(dict(known.iter_rows()), default=otherwise, return_dtype=pl.String)


def _judge(table: Table, column: Column, quasi: Column, series: pl.Series) -> SideDoor | None:
    meaning = replace(quasi, bounds=None, clamp=False, missing="value")
    schema = table.schema.with_columns([meaning])
    try:
        encoded = encode_column(Table(pl.DataFrame({quasi.name: series}), schema), meaning)
        published = table.frame.get_column(quasi.name)
        read = read_texts(
            encoded, published, schema.missing_texts(quasi.name), strict=quasi.kind != "numeric"
        )
    except InputError:
        return None  # not values of that quasi-identifier
    codes, texts = encoded.codes, read.codes
    both = (texts > 0) & ((codes != encoded.missing) if encoded.missing >= 0 else True)
    rows = int(both.sum())
    if rows < LEAST_ROWS:
        return None
    codes, texts = codes[both], texts[both]
    inside = int(((codes >= read.low[texts]) & (codes <= read.high[texts])).sum())
    below = np.r_[0, np.cumsum(np.bincount(codes, minlength=encoded.size))]
    by_chance = (below[read.high + 1] - below[np.maximum(read.low, 0)]) / rows
    chance = float(by_chance[texts].mean())
    slips, rest = rows - inside, rows * (1.0 - chance)
    if slips > max(1, MOST_ALTERED * rows) or rest < LEAST_ROWS or slips > (1 - GAIN) * rest:
        return None
    accepted = column.side_door == "accept"
    return SideDoor(column.name, quasi.name, "original", inside / rows, chance, inside, accepted)


_LEAST_OUTSIDE = 20.0
"""Rows that would lie outside by chance; where these are fewer, lying inside says nothing."""
LEAST_TREND = 0.4
_LEAST_FIT = 0.5
_TURNS = 15
_SLACK = 0.005
"""A fitted value may miss an interval by this part of the whole range: projections only come near in finite turns."""

_INTERVAL = re.compile(r"\[\s*([^\s\]]+?)\s*\.\.\s*([^\s\]]+?)\s*[\])]")
_PERIODS = ((r"(\d{4})-(\d{2})", 1), (r"(\d{4})", 12), (r"(\d{3})0s", 120))


def stated(table: Table, column: Column) -> tuple[Floats, Floats] | None:
    """The least and greatest number (or day) each row's published text allows, NaN where it says nothing.

    None where fewer than half of the texts can be read so: a column of categories has no order to be in step with.

    >>> import polars as pl
    >>> from velado.testing.examples import table
    >>> ages = table(age=[20, 30]).with_frame(pl.DataFrame({"age": ["[20..29]", "30"]}))
    >>> [ends.tolist() for ends in stated(ages, ages.schema.quasi[0])]
    [[20.0, 30.0], [29.0, 30.0]]
    """
    texts = table.text(column.name)
    distinct = texts.drop_nulls().unique().sort()
    ends = np.array([_ends(text, column, table.schema.decimal) for text in distinct], dtype=np.float64)
    known = {} if not len(distinct) else dict(zip(distinct.to_list(), ends, strict=True))
    if not known or np.isnan(ends[:, 0]).mean() > 0.5:
        return None
    # Where an end is missing (`90+`), the ends of the others say how far it may go.
    finite = ends[np.isfinite(ends)]
    ends = np.clip(ends, finite.min(), finite.max()) if finite.size else ends
    codes = texts.replace_strict(distinct, np.arange(len(distinct)), default=-1, return_dtype=pl.Int64)
    at = codes.fill_null(-1).to_numpy()
    blank = at < 0
    low, high = ends[at, 0].copy(), ends[at, 1].copy()
    low[blank] = high[blank] = np.nan
    return low, high


def _ends(text: str, column: Column, decimal: str) -> tuple[float, float]:
    if column.kind == "date":
        return _days(text, column.format)
    if column.kind == "numeric":
        says = stated_number(text, decimal)
        return (np.nan, np.nan) if says is None else (says.lower, says.upper)
    found = _INTERVAL.fullmatch(text.strip())
    parts = (found[1], found[2]) if found else (text.strip(), text.strip())
    try:
        low, high = (float(with_point(part, decimal)) for part in parts)
    except ValueError:
        return np.nan, np.nan
    return (low, high) if np.isfinite(low) and np.isfinite(high) else (np.nan, np.nan)


def _days(text: str, form: str) -> tuple[float, float]:
    for pattern, months in _PERIODS:
        found = re.fullmatch(pattern, text.strip())
        if found is None:
            continue
        year = int(found[1]) * (10 if months == 120 else 1)
        month = int(found[2]) if months == 1 else 1
        if not (1 <= year < 9980 and 1 <= month <= 12):
            break
        end = year * 12 + month - 1 + months
        return float(_day(date(year, month, 1))), float(_day(date(end // 12, end % 12 + 1, 1)) - 1)
    day = pl.Series([text]).str.to_date(form, strict=False)[0]
    return (np.nan, np.nan) if day is None else (float(_day(day)), float(_day(day)))


def _day(of: date) -> int:
    return of.toordinal() - date(1970, 1, 1).toordinal()


def find_compatible(table: Table, known: Collection[tuple[str, str]]) -> list[SideDoor]:
    """Columns of role "other", and pairs of them, in step with a published quasi-identifier beyond chance.

    Pairs (column, quasi-identifier) that are *known* already are not looked at. Judged on at most 20,000 rows.

    >>> from velado.testing.examples import table
    >>> find_compatible(table(age=[20, 30], note=["x", "y"]), ())
    []
    """
    some = judged(table)
    few = judged(some, PROBE)
    others = [c for c in table.schema.columns.values() if c.published and c.role == "other"]
    near = {c.name: read for c in others if (read := scale(few, c)).ordered}
    full: dict[str, Scale] = {}
    found: list[SideDoor] = []
    for quasi in table.schema.quasi:
        ends = stated(few, quasi)
        if ends is None or not near:
            continue
        all_ends = stated(some, quasi)
        assert all_ends is not None
        middle = (ends[0] + ends[1]) / 2
        telling = {name for name, reveals in known if reveals == quasi.name}

        def inside(
            names: tuple[str, ...], ends: tuple[Floats, Floats] = ends, of: Mapping[str, Scale] = near
        ) -> tuple[float, float, int] | None:
            return _in_step([of[name].values for name in names], *ends)

        def judge(
            names: tuple[str, ...], quasi: Column = quasi, all_ends: tuple[Floats, Floats] = all_ends
        ) -> bool:
            if inside(names) is None:
                return False
            for name in names:
                full.setdefault(name, scale(some, table.schema.columns[name]))
            result = _in_step([full[name].values for name in names], *all_ends)
            if result is None:
                return False
            share, chance, count = result
            signed = any(table.schema.columns[name].side_door == "accept" for name in names)
            together = names if len(names) > 1 else ()
            revealed = round(count * table.rows / some.rows)
            found.append(
                SideDoor(
                    column=paired(names),
                    reveals=quasi.name,
                    kind="order",
                    guess=share,
                    baseline=chance,
                    rows_revealed=revealed,
                    accepted=signed,
                    together=together,
                )
            )
            return True

        for name, own in near.items():
            if name not in telling and _trend(own.values, middle) >= LEAST_TREND and judge((name,)):
                telling.add(name)
        free = [name for name in near if name not in telling]
        if len(free) < 2:
            continue
        sums = promising_sums(
            {**near, quasi.name: Scale(quasi.name, middle, True)}, free, [quasi.name], _LEAST_FIT, 1.0
        )
        for pair in sums[:MOST_JUDGED]:
            judge((pair.first, pair.second))
        if len(sums) > MOST_JUDGED:
            found.append(SideDoor("", "", "unseen", 0.0, 0.0, len(sums) - MOST_JUDGED))
    return found


def _trend(values: Floats, middle: Floats) -> float:
    """Spearman's rank correlation, without its sign."""
    both = ~(np.isnan(values) | np.isnan(middle))
    if int(both.sum()) < LEAST_TOGETHER:
        return 0.0
    a, b = (_mean_ranks(part[both]) for part in (values, middle))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return abs(float((a * b).sum())) / size if size else 0.0


def _mean_ranks(values: Floats) -> Floats:
    line = np.sort(values)
    return (np.searchsorted(line, values, "left") + np.searchsorted(line, values, "right")) / 2.0


def _in_step(columns: list[Floats], low: Floats, high: Floats) -> tuple[float, float, int] | None:
    """Share of rows a rising or falling rule puts inside, that by chance, and the rows inside; None if no rule does."""
    both = ~np.isnan(low) & ~np.isnan(high)
    for values in columns:
        both &= ~np.isnan(values)
    rows = int(both.sum())
    if rows < LEAST_TOGETHER:
        return None
    low, high = low[both], high[both]
    span = float(high.max() - low.min())
    if span <= 0:
        return None
    weight = 1.0 / (high - low + 0.01 * span) ** 2
    x = columns[0][both]
    if len(columns) > 1:
        x = _added_up([values[both] for values in columns], low, high, weight)
    best: tuple[float, float, int] | None = None
    for rising in (True, False):
        fitted = _fitted(x, low, high, weight, rising)
        slack = _SLACK * span
        inside = int(((fitted >= low - slack) & (fitted <= high + slack)).sum())
        line = np.sort(fitted)
        hits = np.searchsorted(line, high + slack, "right") - np.searchsorted(line, low - slack, "left")
        chance = float(hits.mean()) / rows
        slips, rest = rows - inside, rows * (1.0 - chance)
        if rest < _LEAST_OUTSIDE or slips > max(1, MOST_ALTERED * rows) or slips > (1 - GAIN) * rest:
            continue
        if best is None or inside > best[2]:
            best = (inside / rows, chance, inside)
    return best


def _added_up(columns: list[Floats], low: Floats, high: Floats, weight: Floats) -> Floats:
    """The weighted sum of the columns that lies nearest to the intervals."""
    parts = np.stack([np.ones(low.size), *((c - c.mean()) / (c.std() or 1.0) for c in columns)], axis=1)
    root = np.sqrt(weight)[:, None]
    weights = np.linalg.lstsq(parts * root, (low + high) / 2 * root[:, 0], rcond=None)[0]
    solve = np.linalg.pinv(parts)
    for _ in range(4 * _TURNS):
        weights = solve @ np.clip(parts @ weights, low, high)
    return np.asarray(np.round(parts @ weights, 9), dtype=np.float64)


def _fitted(x: Floats, low: Floats, high: Floats, weight: Floats, rising: bool) -> Floats:
    """What the best rising (or falling) rule makes of each row's x."""
    values, at = np.unique(x, return_inverse=True)
    at = at.reshape(-1)
    counts = np.bincount(at).astype(np.float64)
    mass = np.bincount(at, weights=weight).astype(np.float64)
    rule = _monotone(np.bincount(at, weights=weight * (low + high) / 2) / mass, mass, rising)
    for _ in range(_TURNS):
        moved = np.clip(rule[at], low, high)
        rule = _monotone(np.bincount(at, weights=moved, minlength=values.size) / counts, counts, rising)
    return rule[at]


def _monotone(means: Floats, weights: npt.NDArray[np.float64], rising: bool) -> Floats:
    from scipy.optimize import isotonic_regression  # takes longer to import than most runs need

    return np.asarray(isotonic_regression(means, weights=weights, increasing=rising).x, dtype=np.float64)


def unread(table: Table) -> tuple[str, ...]:
    """The numeric quasi-identifiers of a published table whose texts are no numbers and no intervals, in too many rows.

    >>> import polars as pl
    >>> from velado.testing.examples import table
    >>> ages = table(age=[20, 30])
    >>> unread(ages.with_frame(pl.DataFrame({"age": ["young", "old"]})))
    ('age',)
    """
    out = []
    for column in table.schema.quasi:
        texts = table.text(column.name).drop_nulls()
        if column.kind != "numeric" or column.taxonomy is not None or not len(texts):
            continue
        counts = texts.alias("text").value_counts(name="rows")
        known = [
            text.strip() == ROOT_LABEL or stated_number(text, table.schema.decimal) is not None
            for text in counts["text"]
        ]
        if float(counts["rows"].filter(pl.Series(known)).sum()) < (1 - MOST_ALTERED) * len(texts):
            out.append(column.name)
    return tuple(out)
