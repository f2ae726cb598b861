"""What is summed in each round of a secure sum, and what follows from the pooled figures: the same for every family.

exact, linear       a census (`census`), then X'X, X'y, y'y; of every part that is held out, where there are such (`held_out`)
exact, others       a census, then gradient and curvature at one point after another (`newton`)
noise, linear       the noisy Z'Z alone (`private_sums`): noise needs no thresholds
noise, others       rows and mean, then gradient and curvature at so many points, all with noise (`private_newton`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from velado.errors import InputError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.regression.census import (
    census_in,
    plan_of,
    points_of,
    refuse_small_weights,
    weights_census,
    weighty,
)
from velado.learning.regression.design_matrix import (
    encoded_columns,
    flat_bounds,
    flatten,
    moments_in,
    total,
    unflatten,
)
from velado.learning.regression.exact_solution import solve_exact
from velado.learning.regression.fit import Moments, Solved
from velado.learning.regression.held_out import choose_held_out, cut, parts_of, refuse_small_parts
from velado.learning.regression.job import Job
from velado.learning.regression.newton import (
    MOST_POINTS,
    Newton,
    NewtonRows,
    figure_bound,
    figures_in,
    point_bytes,
    point_in,
)
from velado.learning.regression.private_newton import STEPS, PrivateNewton, PrivateRows, private_bounds
from velado.learning.regression.private_sums import noisy_bounds, noisy_sums, solve_noisy
from velado.randomness import Tape


def most_rounds(job: Job) -> int:
    """The most sums one run may need.

    >>> from velado.learning.regression.simulate import small_job
    >>> most_rounds(small_job())
    2
    """
    if job.noise is not None:
        return 1 + STEPS if job.iterated else 1
    return 1 + (MOST_POINTS if job.iterated else 1)


def round_bounds(job: Job, number: int) -> list[int]:
    """The most each figure of one client can be in size, in the round of that number.

    >>> from velado.learning.regression.simulate import small_job
    >>> set(round_bounds(small_job(most_rows=30), 0))
    {30}
    """
    if job.noise is not None:
        return private_bounds(job, number) if job.iterated else noisy_bounds(job)
    parts = max(1, job.folds)
    if number == 0:
        return [job.most_rows] * (plan_of(job).size * parts + _weight_counts(job))
    return [figure_bound(job)] * figures_in(job) if job.iterated else flat_bounds(job) * parts


def _names(job: Job) -> set[str]:
    """The columns of a table that a job reads, the weight apart."""
    return {one.column or one.name for one in (*job.features, job.target)}


def _weight_counts(job: Job) -> int:
    return 0 if job.weight is None else len(points_of(job.weight))


class ClientRounds:
    """One client's figures, round by round.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> ClientRounds(small_rows(), small_job(), Tape(bytes(32))).figures(0, b"")[0]
    10
    """

    def __init__(self, columns: Columns, job: Job, tape: Tape) -> None:
        self._job = job
        self._tape = tape
        self._noisy: list[int] = []
        self._private: PrivateRows | None = None
        if job.noise is not None and job.iterated:
            self._private = PrivateRows(columns, job)
            return
        if job.noise is not None:
            self._noisy = noisy_sums(columns, job, tape)
            return
        encoded, given = (
            encoded_columns(columns, job),
            {name: columns[name] for name in _names(job) if name in columns},
        )
        parts = parts_of(encoded, given, job)
        self._newton = NewtonRows(columns, job) if job.iterated else None
        weights = None if self._newton is None else self._newton.weights
        counted = [weighty(encoded, weights, job)] if weights is not None else parts
        self._census = [count for part in counted for count in census_in(part, job)]
        self._census += weights_census(weights, job)
        self._moments = [
            figure for part in parts for figure in flatten(moments_in(part, job)) if not job.iterated
        ]

    def figures(self, number: int, point: bytes) -> list[int] | None:
        """The figures of a round; None where the point is none of this job."""
        if self._private is not None:
            return self._private_figures(self._private, number, point)
        if self._job.noise is not None:
            return self._noisy
        if number == 0:
            return self._census
        if self._newton is None:
            return self._moments
        beta = point_in(point, self._job)
        return None if beta is None else self._newton.at(beta)

    def _private_figures(self, rows: PrivateRows, number: int, point: bytes) -> list[int] | None:
        """Noisy figures: the noise is the round's and the point's own, so that no two points ever share it."""
        if number == 0:
            return rows.counts(self._tape.fork("count"))
        beta = point_in(point, self._job)
        tape = self._tape.fork(f"round {number} {point.hex()}")
        return None if beta is None else rows.at(beta, number, tape)


class PooledRounds:
    """What whoever adds the figures makes of them: the next point, or the solution.

    >>> from velado.learning.regression.simulate import small_job
    >>> PooledRounds(small_job()).take(0, [30] * 38, 3)
    b'[]'
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._newton = Newton(job)
        self._private = PrivateNewton(job)
        self.solved: Solved | None = None

    def take(self, number: int, figures: Sequence[int], clients: int) -> bytes | None:
        """The pooled figures of a round: the next round's point, or None once there is a solution."""
        job = self._job
        if job.noise is not None and job.iterated:
            self._private.take(number, figures, clients)
            self.solved = self._private.solved
            return None if self.solved is not None else point_bytes(self._private.point)
        if job.noise is not None:
            self.solved = solve_noisy(figures, job, clients)
        elif number == 0:
            split = len(figures) - _weight_counts(job)
            counts = cut(figures[:split], job)
            check_pooled_rows(sum(part[0] for part in counts), job, clients)
            refuse_small_parts(counts, job)
            refuse_small_weights(figures[split:], job)
            return point_bytes(self._newton.point if job.iterated else ())
        elif job.iterated:
            self._newton.take(figures)
            self.solved = self._newton.solved
            return None if self.solved is not None else point_bytes(self._newton.point)
        else:
            parts = [unflatten(part, job) for part in cut(figures, job)]
            solved = solve_pooled(total(parts), job, clients)
            if job.folds and solved.path is not None:
                solved = replace(solved, path=choose_held_out(solved.path, parts, job))
            self.solved = solved
        return None


def check_pooled_rows(rows: int, job: Job, clients: int) -> None:
    """Nothing, where so many clients have as many rows together as the job allows.

    >>> from velado.learning.regression.simulate import small_job
    >>> check_pooled_rows(30, small_job(), 3)
    """
    if not clients * job.minimum_rows <= rows <= job.most_rows:
        raise InputError(
            "The pooled rows are fewer or more than the job allows.",
            "The sums of few rows tell much about each of them.",
            "Agree on other limits at all parties.",
        )


def solve_pooled(moments: Moments, job: Job, clients: int) -> Solved:
    """The solution of exact pooled moments.

    >>> from velado.learning.regression.design_matrix import moments_of, total
    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> job = small_job()
    >>> solve_pooled(total([moments_of(small_rows(), job)] * 3), job, 3).rows
    30
    """
    check_pooled_rows(moments.rows, job, clients)
    return solve_exact(moments, job)[1]
