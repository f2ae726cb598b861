"""A penalty chosen on rows held out in turn, over clients that show nobody a row: cross-validation by sums.

Every client deals its rows into F parts; the sums of each part are added over all clients, under masks like any others. With S_f the pooled
sums of part f and S those of all, the path fitted to S - S_f is scored on part f by its sums alone:

    error_f(l) = (1/n_f) sum_{j in f} (y_j - x_j b_f(l))^2 = var_f(y) - 2 b'c_f + b'C_f b + (mean_f(y) - b_0 - b'mean_f(x))^2

The penalty with the least mean over parts is chosen; its standard error is the parts' deviation over sqrt(F), an approximation, since paths of
two parts share most rows. The parts are summed by themselves, so each keeps the thresholds of an exact release by itself; unions of parts do then too.

A row's part follows from what its columns hold, as they stand in the table, and from how many rows before it hold the same, not from chance or
encoding: the same rows make the same parts in every job over the same columns, so that many jobs do not show the sums of ever other parts.
Under other columns, or with another number of parts, they are others.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.regression.census import refuse_small_cells
from velado.learning.regression.design_matrix import total
from velado.learning.regression.exact_solution import spread_of
from velado.learning.regression.fit import Moments
from velado.learning.regression.job import Job
from velado.learning.regression.penalty_path import PenaltyPath, Spread, penalty_path

Encoded = Sequence[NDArray[Any]]


def parts_of(encoded: Encoded, columns: Columns, job: Job) -> list[Encoded]:
    """A client's encoded rows in the job's parts, which follow from the *columns* they were encoded from; all of them in one where it has none.

    O(rows x columns).

    >>> from velado.learning.regression.simulate import small_job
    >>> rows = [np.arange(30), np.arange(30)]
    >>> parts = parts_of(rows, {"x": rows[0]}, small_job(moments=True, path="lasso", folds=3))
    >>> sorted(np.concatenate([part[0] for part in parts]).tolist()) == list(range(30))
    True
    """
    if not job.folds:
        return [encoded]
    seen: Counter[bytes] = Counter()
    places = []
    for row in zip(*(_spelt(columns[name]) for name in sorted(columns)), strict=True):
        mark = hashlib.blake2b(repr(row).encode(), digest_size=8).digest()
        places.append((int.from_bytes(mark, "big") + seen[mark]) % job.folds)
        seen[mark] += 1
    of_row = np.array(places)
    return [[column[of_row == part] for column in encoded] for part in range(job.folds)]


def _spelt(values: object) -> list[object]:
    """Cells as numbers where all are, else as texts: however a number is written, it is the same."""
    cells = np.asarray(values)
    try:
        found: list[object] = (cells.astype(np.float64) + 0.0).tolist()
    except ValueError:
        found = np.char.strip(cells.astype(str)).tolist()
    return found


def cut(figures: Sequence[int], job: Job) -> list[Sequence[int]]:
    """Pooled figures by parts, as clients said them one after the other.

    >>> from velado.learning.regression.simulate import small_job
    >>> cut([1, 2, 3, 4, 5, 6], small_job(moments=True, path="lasso", folds=3))
    [[1, 2], [3, 4], [5, 6]]
    """
    size = len(figures) // max(1, job.folds)
    return [figures[at : at + size] for at in range(0, len(figures), size)]


def refuse_small_parts(counts: Sequence[Sequence[int]], job: Job) -> None:
    """Nothing, where every part keeps the thresholds by itself; else InputError."""
    for part in counts:
        try:
            refuse_small_cells(part, job)
        except InputError as error:
            if not job.folds:
                raise
            raise InputError(
                error.what,
                "Each part that is held out is summed by itself, and its exact sums would show what few people have.",
                "Choose fewer parts, leave folds out so that BIC chooses, or leave the column out.",
            ) from None


def choose_held_out(path: PenaltyPath, parts: Sequence[Moments], job: Job) -> PenaltyPath:
    """The path with the errors of its penalties on parts held out in turn, and the one with the least chosen."""
    errors, weights = [], []
    for place, part in enumerate(parts):
        rest = spread_of(total([*parts[:place], *parts[place + 1 :]]), job)
        fitted = penalty_path(rest, path.kind, path.penalties)
        held = spread_of(part, job)
        errors.append([_error(held, beta) for beta in fitted.coefficients])
        weights.append(part.rows)
    table = np.array(errors)
    mean = np.average(table, axis=0, weights=weights)
    spread = np.std(table, axis=0, ddof=1) / math.sqrt(len(parts))
    return replace(
        path,
        chosen=int(np.argmin(mean)),
        held_out=tuple(mean.tolist()),
        held_out_errors=tuple(spread.tolist()),
    )


def _error(held: Spread, beta: Sequence[float]) -> float:
    """The mean squared error of coefficients on rows of which the spread is known."""
    slopes = np.array(beta[1:] if held.intercept else beta)
    first = beta[0] if held.intercept else 0.0
    off = held.target_mean - first - float(slopes @ held.means)
    within = held.target - 2 * float(held.cross @ slopes) + float(slopes @ held.features @ slopes)
    return max(0.0, within) + off**2
