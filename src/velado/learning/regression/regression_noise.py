"""Noise on pooled moments before they are solved, so that the coefficients are differentially private.

Output perturbation of the coefficients would need a bound on how far one row can move them, and least squares has none
without a bound on A^-1. The sums have one: with public bounds B_i on |x_i| and B_y on |y| of encoded rows (scaled and
centred by the public bounds, which makes B and the noise smaller where a column lies far from 0), adding or leaving out one row
moves a_ij by at most B_i B_j, b_i by at most B_i B_y, y'y by at most B_y^2 and the number of rows by 1. So (Vu and
Slavkovic 2009; McSherry and Mironov 2009):

    every one of the m sums s with one-row bound D_s gets Z with P(Z = z) proportional to exp(-|z| epsilon / (m D_s)).

Proof: for one sum the ratio of the probabilities of any answer on two tables that differ by one row is at most
exp(D_s epsilon / (m D_s)) = exp(epsilon / m); the m noises are independent, so the ratio for all of them is at most
exp(epsilon). What is solved from them is post-processing. The upper triangle is noised once and mirrored; the intercept's
own entry is the noisy number of rows times 2^(2q), and is not noised again.

Whom it protects: every single row, from all who see the coefficients and nothing else. The key holder (delegated) or
the evaluator (secure sum) adds the noise, and sees the exact sums. That too few rows end the job is told as it is.

Not from OpenDP: a role that comes back after a crash must draw the same noise again, or two answers of one table would
be out and epsilon spent twice. Noise comes from the role's tape, by the exact sampler of Canonne, Kamath and Steinke (2020,
algorithms 1 and 2): whole numbers only, so no floating-point digit tells the exact sum. Its running time varies with
what it draws.
"""

from __future__ import annotations

from fractions import Fraction

from velado.learning.regression.design_matrix import flatten, one_row_bounds, unflatten
from velado.learning.regression.fit import Moments
from velado.learning.regression.job import Job
from velado.randomness import Tape


def noisy(moments: Moments, job: Job, tape: Tape) -> Moments:
    """The moments with noise of the job's epsilon, or as they are where the job has none.

    >>> from velado.learning.regression.simulate import small_job
    >>> moments = Moments(((4, 2), (2, 3)), (5, 6), None, 4)
    >>> noisy(moments, small_job(), Tape(bytes(32))) == moments  # the job has no epsilon
    True
    """
    if job.epsilon is None:
        return moments
    values, bounds = flatten(moments), one_row_bounds(job)
    rows = job.width * (job.width + 1) // 2 + job.width
    derived = {0} if job.intercept else set()
    share = job.epsilon / (len(values) - len(derived))
    for place, bound in enumerate(bounds):
        if place not in derived:
            values[place] += discrete_laplace(Fraction(bound) / share, tape)
    values[rows] = min(max(values[rows], 1), job.most_rows)
    if job.intercept:
        values[0] = values[rows] << (2 * job.bits)
    return unflatten(values, job)


def discrete_laplace(scale: Fraction, tape: Tape) -> int:
    """A whole number z with probability proportional to exp(-|z| / scale), exactly (Canonne et al., algorithm 2).

    >>> discrete_laplace(Fraction(1, 1000), Tape(bytes(32)))
    0
    """
    t, s = scale.numerator, scale.denominator
    while True:
        u = tape.below(t)
        if not _happens(Fraction(u, t), tape):
            continue
        v = 0
        while _happens(Fraction(1), tape):
            v += 1
        size = (u + t * v) // s
        negative = tape.below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _happens(gamma: Fraction, tape: Tape) -> bool:
    """True with probability exp(-gamma), 0 <= gamma <= 1 (algorithm 1)."""
    k = 1
    while tape.below(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1
