"""Originals left in: columns of a release whose values lie inside what a quasi-identifier publishes.

A method may cut the ages of each town elsewhere, so that the age 27 stands in `[20..29]` here and in `[25..34]`
there. An original age column in the file then determines no published age, and still undoes every interval.
Here the column is read as if it were the quasi-identifier, and its values are held against the intervals and
labels published in the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from velado.data.encode import encode_column
from velado.data.published_column import read_texts
from velado.data.schema import Column
from velado.data.table import Table
from velado.data.taxonomy import from_tree
from velado.errors import InputError
from velado.release._copies import GAIN, LEAST_ROWS, folded
from velado.release._written import days_in, numbers_in, plain
from velado.release.side_doors.door import SideDoor
from velado.release.side_doors.find import SAMPLE_ROWS, evenly_spaced

_PROBE_ROWS = 2_000
MOST_ALTERED = 0.05
"""A column of originals stays one if as many of its cells are altered, or cannot be read."""


def find_originals(table: Table) -> tuple[SideDoor, ...]:
    """Every column of role "other" that lies within a published quasi-identifier far more often than by chance.

    Chance is what pairing the column's values with the published texts at random would give, summed exactly over
    the distinct texts. Above 200,000 rows evenly spaced ones are judged. O(n log n) per pair of columns.
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
        read = read_texts(encoded, published, table.schema.missing_values, strict=quasi.kind != "numeric")
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
