"""Which content an answer is of, and from an engine's rows to the arrays a need asks for.

Absent cells are zeros, and sums saturate at +-2^62.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from velado.data.schema import Schema
from velado.errors import EngineError, QueryRefused
from velado.query.engines._compile import DUCKDB, Dialect, Layout, Statement, cells, strip_of, sums
from velado.query.needs import AnyKey, Counts, GridCells, GridSum, Needs, Rows, Tallies, cells_of
from velado.query.unit import Unit
from velado.query.values import Predicate
from velado.text import say

# Which content an answer was computed from: SHA-256 over cells or bytes, with the schema and unit they are read by.

_BLOCK = 1 << 16


def of_frame(frame: pl.DataFrame, schema: Schema, unit: Unit) -> str:
    """Equal for equal cells in equal order, however the frame is chunked or was made. O(bytes)."""
    digest = _start(schema, unit)
    for series in frame.get_columns():
        missing = series.is_null()
        digest.update(json.dumps([series.name, str(series.dtype), series.len()]).encode())
        digest.update(np.packbits(missing.to_numpy()).tobytes())
        if series.dtype.is_integer() or series.dtype.is_float():
            digest.update(np.ascontiguousarray(series.fill_null(0).to_numpy()).tobytes())
        else:
            texts = series.cast(pl.String).fill_null("")
            # Lengths keep ("ab", "c") apart from ("a", "bc").
            digest.update(texts.str.len_bytes().to_numpy().astype("<u8").tobytes())
            for start in range(0, texts.len(), _BLOCK):
                digest.update("".join(texts.slice(start, _BLOCK).to_list()).encode())
    return digest.hexdigest()


def of_file(path: Path, schema: Schema, unit: Unit) -> str:
    """Equal for equal bytes."""
    digest = _start(schema, unit)
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def of_text(text: str, schema: Schema, unit: Unit) -> str:
    """Equal for an equal text that stands for the content: a declared version, or an aggregate of it."""
    digest = _start(schema, unit)
    digest.update(text.encode())
    return digest.hexdigest()


def _start(schema: Schema, unit: Unit) -> hashlib._Hash:
    how = {"schema": schema.to_dict(), "unit": [unit.column, unit.rows, str(unit.dependence)]}
    return hashlib.sha256(json.dumps(how, sort_keys=True).encode() + b"\0")


MOST = 1 << 62
# Half a gigabyte of counters: more cells than this is a mistake in the keys, whatever the rows hold.
MOST_CELLS = 1 << 26
# PostgreSQL numbers a statement's values by 16 bits.
MOST_VALUES = 60_000

Run = Callable[[Statement, str], Iterable[Sequence[Any]]]
RunArrays = Callable[[Statement, str], tuple[Counts, Counts, Counts]]


def tally(
    layout: Layout,
    dialect: Dialect,
    where: Predicate | None,
    keys: Sequence[AnyKey],
    needs: Needs,
    run: Run,
    run_arrays: RunArrays,
) -> Tallies:
    """One array per need, in order: one statement for all counts and sums together, one for each set of bins.

    Every statement is compiled before the first is run, so a query that is refused has touched no row.
    """
    scalar, plain, plain_sql, binned = _compiled(layout, dialect, where, keys, needs)
    size = cells_of(keys)
    totals = iter(_totals(run(plain, plain_sql), size, scalar) if scalar else ())
    bins = iter([_bins(run_arrays(statement, sql), size, need) for need, statement, sql in binned])
    return tuple(next(bins) if isinstance(need, GridCells) else next(totals) for need in needs)


def check(layout: Layout, where: Predicate | None, keys: Sequence[AnyKey], needs: Needs) -> None:
    """Nothing, where an engine with this layout would not refuse; else its QueryRefused, before anything is paid.

    What is refused depends on the layout and the question alone and is the same for every engine.
    """
    _compiled(layout, DUCKDB, where, keys, needs)


def _compiled(
    layout: Layout, dialect: Dialect, where: Predicate | None, keys: Sequence[AnyKey], needs: Needs
) -> tuple[list[Rows | GridSum], Statement, str, list[tuple[GridCells, Statement, str]]]:
    """Counts and sums with their one statement, and every set of bins with its own."""
    size = cells_of(keys)
    widest = max([len(need.edges) - 1 for need in needs if isinstance(need, GridCells)], default=1)
    if size * max(widest, 1) > MOST_CELLS:
        raise QueryRefused(
            "The keys and bins make too many cells together.",
            say("At most {most_cells:,} counters are kept for one answer.", most_cells=MOST_CELLS),
            "Group by fewer columns, or use fewer bins.",
        )
    scalar = [need for need in needs if not isinstance(need, GridCells)]
    plain = Statement(layout, dialect)
    plain_sql = sums(plain, where, keys, scalar) if scalar else ""
    binned = []
    for need in needs:
        if isinstance(need, GridCells):
            statement = Statement(layout, dialect)
            binned.append((need, statement, cells(statement, where, keys, need)))
    if any(
        len(statement.parameters) > MOST_VALUES for statement in (plain, *(made for _, made, _ in binned))
    ):
        raise QueryRefused(
            "The query compares with too many values.",
            say("At most {most_values:,} travel to an engine beside one statement.", most_values=MOST_VALUES),
            "Use fewer tests in WHERE, or shorter lists.",
        )
    return scalar, plain, plain_sql, binned


def saturated(value: int) -> int:
    """The value, or the nearest of +-2^62: a one-Lipschitz map, so a bound on its change still holds."""
    return max(-MOST, min(MOST, value))


def _totals(rows: Iterable[Sequence[Any]], size: int, needs: Sequence[Rows | GridSum]) -> list[Counts]:
    out = [np.zeros(size, dtype=np.int64) for _ in needs]
    for row in rows:
        cell = int(row[0])
        for number, need in enumerate(needs):
            first, second = int(row[1 + 2 * number]), int(row[2 + 2 * number])
            out[number][cell] = first if isinstance(need, Rows) else saturated(first - need.offset * second)
    return out


def _bins(found: tuple[Counts, Counts, Counts], size: int, need: GridCells) -> Counts:
    cell, strip, count = found
    out = np.zeros((size, len(need.edges) - 1), dtype=np.int64)
    edges = np.asarray(need.edges, dtype=np.int64)
    bin_of = np.searchsorted(edges, edges[0] + strip * strip_of(need), side="right") - 1
    np.add.at(out, (cell, bin_of), count)
    return out


def too_slow(seconds: float | None) -> EngineError:
    """The error for an answer that took too long; the limit is public, how far the engine came is not told."""
    limit = (
        say("the time allowed")
        if seconds is None
        else say("the {seconds:g} seconds allowed", seconds=seconds)
    )
    return EngineError(
        say("The query took longer than {limit}.", limit=limit),
        "It was stopped, and what it computed was thrown away.",
        "Ask for fewer keys or bins, or let the owner allow more time.",
    )
