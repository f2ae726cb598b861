"""From one client's rows to its sums: scaled fixed point, X^T X, X^T y, y^T y, exactly, before anything is encrypted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from velado.errors import InputError, SchemaError
from velado.learning.crypto.fixed_point import Bounded, Columns, FixedPoint
from velado.learning.crypto.modular import exact_gram
from velado.learning.regression.fit import ColumnScale, Moments, reaches, scaling_of
from velado.learning.regression.job import Job
from velado.text import say, say_n

T = TypeVar("T")


def design_columns(columns: Columns, job: Job) -> dict[str, ArrayLike]:
    """Every column of the job by its name: as it stands, 1 and 0 for one category, or a product of features.

    A category that the job does not name is refused, as is a missing one: it would silently count as the reference.

    >>> from dataclasses import replace
    >>> from fractions import Fraction
    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> from velado.learning.regression.simulate import small_job
    >>> sex = Bounded("sex=m", (Fraction(0), Fraction(1)), column="sex", value="m", among=("f", "m"))
    >>> job = replace(small_job(), features=(sex,))
    >>> design_columns({"sex": ["f", "m"], "y": [1, 2]}, job)["sex=m"].tolist()
    [0, 1]
    """
    weight = () if job.weight is None else (job.weight,)
    found = made_columns(columns, (*job.features, job.target, *weight))
    job.model.refuse_values(found[job.target.name], job.target.name)
    return found


def made_columns(columns: Columns, every: Sequence[Bounded]) -> dict[str, ArrayLike]:
    """Each of these columns by its name, made from those of a table as it says: see `design_columns`.

    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> made_columns({"age": [31, 35]}, [Bounded("age", (0, 120))])
    {'age': [31, 35]}
    """
    needed = [one.column or one.name for one in every if not one.factors]
    absent = [name for name in dict.fromkeys(needed) if name not in columns]
    if absent:
        raise SchemaError(
            say("The table lacks {absent}.", absent=", ".join(absent)),
            "The job's parties agreed to fit with these columns.",
            "Give the table the job is about, or correct the names in the job at all parties.",
        )
    found: dict[str, ArrayLike] = {}
    for one in every:
        if one.value:
            texts = np.char.strip(np.asarray(columns[one.column], dtype=str))
            unknown = ~np.isin(texts, np.asarray(one.among, dtype=str))
            if unknown.any():
                raise SchemaError(
                    say_n(
                        "Column '{name}' has {n:,} row of {rows:,} with a category that the job does not name: row {first:,}.",
                        "Column '{name}' has {n:,} rows of {rows:,} with a category that the job does not name, the first is row {first:,}.",
                        int(unknown.sum()),
                        name=one.column,
                        rows=unknown.size,
                        first=int(unknown.argmax()) + 1,
                    ),
                    "They would silently count as the reference category.",
                    "Correct the cells, or name the category in the job at all parties.",
                )
            found[one.name] = (texts == one.value).astype(np.int64)
        elif not one.factors:
            found[one.name] = columns[one.name]
    for one in every:
        if one.factors:
            lost = [name for name in one.factors if name not in found]
            if lost:
                raise SchemaError(
                    say(
                        "The interaction '{name}' names {lost}, no features.",
                        name=one.name,
                        lost=", ".join(lost),
                    ),
                    "It is the product of features of the job.",
                    "Name features of the job, each without factors of its own.",
                )
            found[one.name] = np.prod([_as_floats(found[name], name) for name in one.factors], axis=0)
    return found


def _as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values).astype(np.float64)
    except ValueError:
        raise SchemaError(
            say("Column '{name}' holds a cell that is no number.", name=name),
            "An interaction multiplies columns.",
            "Correct the cells.",
        ) from None


def encoded_columns(columns: Columns, job: Job) -> list[NDArray[Any]]:
    """The features and, last, the target as whole numbers, scaled and centred by the public bounds (`scaling`).

    A value that is missing or outside its public bounds raises OutOfBounds and names the column; too few rows raise
    InputError. Nothing leaves the client then.

    >>> from velado.learning.regression.simulate import small_job
    >>> [column.tolist()[:2] for column in encoded_columns({"x": [1, 2] * 5, "y": [3, 4] * 5}, small_job(bits=0))]
    [[2, 4], [6, 8]]
    """
    found = design_columns(columns, job)
    names = [column.name for column in (*job.features, job.target)]
    scaling = scaling_of(job)
    scales = (*scaling.features, scaling.target)
    encoding = FixedPoint((*job.features, job.target), job.bits, tuple(scale.bits for scale in scales))
    encoded = [
        _centred(encoding.encode(name, found[name]), scale, most)
        for name, scale, most in zip(names, scales, reaches(job)[-len(names) :], strict=True)
    ]
    rows = {len(array) for array in encoded}
    if len(rows) != 1:
        raise InputError(
            "The columns have different numbers of rows.", "A row needs one value of each.", "Give a table."
        )
    check_rows(rows.pop(), job)
    return encoded


def check_rows(count: int, job: Job) -> None:
    """Nothing, where a client's number of rows is one the job takes.

    >>> from velado.learning.regression.simulate import small_job
    >>> check_rows(10, small_job())
    """
    if count < job.minimum_rows:
        raise InputError(
            say(
                "This client has {count} rows and the job asks for at least {minimum_rows}.",
                count=count,
                minimum_rows=job.minimum_rows,
            ),
            "The sums of few rows tell much about each of them.",
            "Do not take part, or agree on a smaller minimum_rows with all parties.",
        )
    if count > job.most_rows:
        raise InputError(
            say(
                "This client has {count} rows and the job allows {most_rows} in all.",
                count=count,
                most_rows=job.most_rows,
            ),
            "The needed key size was worked out for that many.",
            "Agree on a larger most_rows with all parties.",
        )


def moments_of(columns: Columns, job: Job) -> Moments:
    """The exact sums of one client's rows, scaled and centred by the public bounds (`scaling`); the intercept is 2^q.

    >>> from velado.learning.regression.simulate import small_job
    >>> moments_of({"x": [1, 2] * 5, "y": [3, 4] * 5}, small_job(bits=0)).rows
    10
    """
    return moments_in(encoded_columns(columns, job), job)


def moments_in(encoded: Sequence[NDArray[Any]], job: Job) -> Moments:
    """The exact sums of rows that are encoded already, all of a client's or a part of them.

    >>> from velado.learning.regression.simulate import small_job
    >>> moments_in([np.array([2, 4]), np.array([6, 8])], small_job(bits=0)).vector
    (14, 44)
    """
    count = len(encoded[-1])
    ones = [np.full(count, 1 << job.bits, dtype=np.int64 if job.bits < 62 else object)]
    gram = exact_gram([*(ones if job.intercept else []), *encoded])
    width = job.width
    return Moments(
        matrix=tuple(tuple(int(x) for x in row[:width]) for row in gram[:width]),
        vector=tuple(int(row[width]) for row in gram[:width]),
        square=int(gram[width][width]) if job.moments else None,
        rows=count,
    )


def _centred(encoded: NDArray[Any], scale: ColumnScale, most: int) -> NDArray[Any]:
    """The encoded values less their centre, in int64 where what is left fits."""
    # Below 2^62 in size each, so the difference fits; a centre lies between two values that int64 holds.
    kept = encoded - scale.centre if scale.centre else encoded
    return kept.astype(np.int64) if kept.dtype == object and most < 1 << 62 else kept


def flatten(moments: Moments) -> list[int]:
    """Upper triangle by rows, then b, then the number of rows, then y^T y where there is one.

    >>> flatten(Moments(((4, 2), (2, 3)), (5, 6), None, 4))
    [4, 2, 3, 5, 6, 4]
    """
    width = len(moments.vector)
    upper = [moments.matrix[i][j] for i in range(width) for j in range(i, width)]
    return [*upper, *moments.vector, moments.rows, *(() if moments.square is None else (moments.square,))]


def unflatten(values: Sequence[int], job: Job) -> Moments:
    """The moments `flatten` wrote.

    >>> from velado.learning.regression.simulate import small_job
    >>> unflatten([4, 2, 3, 5, 6, 4], small_job()).matrix
    ((4, 2), (2, 3))
    """
    rest = map(int, values)
    matrix = symmetric(rest, job.width)
    vector = tuple(next(rest) for _ in range(job.width))
    rows = next(rest)
    return Moments(tuple(map(tuple, matrix)), vector, next(rest) if job.moments else None, rows)


def symmetric(upper: Iterator[T], width: int) -> list[list[T]]:
    """The symmetric matrix whose upper triangle comes next, by rows.

    >>> symmetric(iter([4, 2, 3, 5]), 2)
    [[4, 2], [2, 3]]
    """
    found = {(i, j): next(upper) for i in range(width) for j in range(i, width)}
    return [[found[min(i, j), max(i, j)] for j in range(width)] for i in range(width)]


def flat_bounds(job: Job) -> list[int]:
    """The most each flattened value can be in size, from public figures: rows * B_i * B_j.

    >>> from velado.learning.regression.simulate import small_job
    >>> len(flat_bounds(small_job()))
    6
    """
    return [job.most_rows * bound for bound in one_row_bounds(job)]


def one_row_bounds(job: Job) -> list[int]:
    """The most that adding or leaving out one row changes each flattened sum.

    >>> from velado.learning.regression.simulate import small_job
    >>> one_row_bounds(small_job(bits=0))
    [1, 16, 256, 16, 256, 1]
    """
    *columns, target = reaches(job)
    width = job.width
    upper = [columns[i] * columns[j] for i in range(width) for j in range(i, width)]
    return [*upper, *(column * target for column in columns), 1, *((target * target,) if job.moments else ())]


def total(parts: Sequence[Moments]) -> Moments:
    """The sum of several clients' moments.

    >>> one = Moments(((4,),), (5,), None, 4)
    >>> total([one, one])
    Moments(matrix=((8,),), vector=(10,), square=None, rows=8)
    """
    width = len(parts[0].vector)
    return Moments(
        matrix=tuple(
            tuple(sum(part.matrix[i][j] for part in parts) for j in range(width)) for i in range(width)
        ),
        vector=tuple(sum(part.vector[i] for part in parts) for i in range(width)),
        square=None
        if any(part.square is None for part in parts)
        else sum(part.square for part in parts if part.square is not None),
        rows=sum(part.rows for part in parts),
    )
