"""The two attacks on Method 1 of the source succeed against it and fail against the default; `test_lattice` has the one that does not."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from velado.learning.protocols.masked_regression import draw_mask
from velado.learning.regression.design_matrix import moments_of, total
from velado.learning.regression.fit import scaling_of, solve, solve_modulo
from velado.learning.regression.simulate import deliver
from velado.papers.regression.mask_attacks import (
    correlations_about_the_mean,
    equations_of_paper_run,
    equations_of_sound_run,
    provider_numbers,
    row_masks_by_gcd,
    second_moments,
    squared_correlations,
    unidentified,
)
from velado.papers.regression.paper_arithmetic import draw_masks, paper_moments
from velado.randomness import Tape

WIDTH = 3  # features; with the intercept D = 4


def truth(matrix) -> np.ndarray:
    size = len(matrix)
    return np.array(
        [[matrix[i][j] ** 2 / (matrix[i][i] * matrix[j][j]) for j in range(size)] for i in range(size)]
    )


@pytest.fixture(scope="module")
def paper_runs(make_job, make_tables, make_roles):
    """D - 1 runs of Method 1 over the same rows, with the transcript of each."""
    job = make_job("paper-masked", WIDTH, bits=20, low=0)
    tables = make_tables(job, rows=20)
    matrix = total([paper_moments(columns, job) for columns in tables.values()]).matrix
    runs = []
    for k in range(job.width - 1):
        roles = make_roles(job, tables, seed=bytes([k]) * 32)
        runs.append((roles, deliver(roles)))
    return job, tables, matrix, runs


@pytest.fixture(scope="module")
def sound_run(make_job, make_tables, make_roles):
    job = make_job("masked", WIDTH, bits=20, low=0)
    tables = make_tables(job, rows=20)
    roles = make_roles(job, tables)
    return job, tables, roles, deliver(roles)


@pytest.mark.slow
def test_the_provider_of_the_paper_reads_every_correlation_off_one_run(paper_runs, job_key) -> None:
    job, tables, matrix, runs = paper_runs
    _, transcript = runs[0]
    found = squared_correlations(provider_numbers(transcript.messages, job_key, job.width))
    np.testing.assert_allclose(found, truth(matrix), rtol=1e-9)
    rows = [np.concatenate([columns[f"x{i}"] for columns in tables.values()]) for i in range(WIDTH)]
    np.testing.assert_allclose(correlations_about_the_mean(found), np.corrcoef(rows), atol=1e-5)


def test_the_evaluator_of_the_paper_gets_all_second_moments_from_runs_one_fewer_than_unknowns(
    paper_runs,
) -> None:
    job, _, matrix, runs = paper_runs
    equations = []
    left_open = []
    for roles, _ in runs:
        evaluator = roles["eva"]
        equations += equations_of_paper_run(evaluator.masks, evaluator.solutions)
        left_open.append(unidentified(equations))
    assert left_open[-1] == 1, left_open
    assert left_open[0] > 1
    found = second_moments(equations, Fraction(matrix[0][0]))
    for i in range(job.width):
        for j in range(job.width):
            assert float(found[i][j] / matrix[i][j]) == pytest.approx(1, rel=1e-9)


def test_without_the_floor_the_row_masks_are_common_divisors() -> None:
    masks = draw_masks(20, 4, Tape(bytes(32), "gcd"))
    rng = np.random.default_rng(3)
    matrix = rng.integers(1, 10**9, (4, 4)).tolist()
    products = [
        [u * v * a for v, a in zip(masks.v, row, strict=True)] for u, row in zip(masks.u, matrix, strict=True)
    ]
    for found, u in zip(row_masks_by_gcd(products), masks.u, strict=True):
        assert found % u == 0
        assert found // u < 10**4


@pytest.mark.slow
def test_the_same_attack_finds_no_correlation_in_what_the_sound_provider_sees(sound_run, job_key) -> None:
    job, tables, _, transcript = sound_run
    matrix = total([moments_of(columns, job) for columns in tables.values()]).matrix
    seen = provider_numbers(transcript.messages, job_key, job.width)
    found = squared_correlations(seen)
    pairs = np.triu_indices(job.width, 1)
    assert not np.any(np.isclose(found[pairs], truth(matrix)[pairs], rtol=0.01))
    # Nothing of A's size shows either: entries have the length of the modulus, not of the sums.
    longest = max(abs(a).bit_length() for row in matrix for a in row)
    assert longest < 64
    assert min(abs(a).bit_length() for row in seen for a in row) > 2048 - 64


def test_linear_equations_over_the_reals_tell_the_sound_evaluator_nothing_of_the_second_moments(
    sound_run,
) -> None:
    job, tables, roles, _ = sound_run
    beta = roles["eva"].exact
    assert beta == solve(total([moments_of(columns, job) for columns in tables.values()]), job)
    unknowns = job.width * (job.width + 1) // 2
    # The same rows again and again give the same beta: what is open stays open.
    assert unidentified(equations_of_sound_run(beta) * (job.width - 1)) == unknowns
    with pytest.raises(ZeroDivisionError):
        second_moments(equations_of_sound_run(beta) * 3, Fraction(1))


def test_the_provider_s_answer_can_be_made_up_from_the_coefficients_and_the_evaluator_s_own_mask(
    sound_run, job_key
) -> None:
    job, _, roles, transcript = sound_run
    n = int(job_key.public.n)
    full, r = roles["eva"]._mask
    (message,) = [m for m in transcript.messages if m.kind == "solution"]
    size = len(message.fields["solution"]) // job.width
    w = [
        int.from_bytes(message.fields["solution"][k * size : (k + 1) * size], "big") for k in range(job.width)
    ]
    beta = [
        b.numerator * pow(b.denominator, -1, n) % n for b in scaling_of(job).to_encoded(roles["eva"].exact)
    ]
    shifted = [(b + s) % n for b, s in zip(beta, r, strict=True)]
    assert list(solve_modulo(full, shifted, n)) == w


def multiplied(matrix, other, n):
    return tuple(
        tuple(sum(a * b for a, b in zip(row, column, strict=True)) % n for column in zip(*other, strict=True))
        for row in matrix
    )


@pytest.mark.parametrize("n", [5, 6])
def test_for_a_tiny_modulus_what_the_provider_sees_is_exactly_uniform_whatever_the_table(n) -> None:
    def determinant(m):
        return (m[0][0] * m[1][1] - m[0][1] * m[1][0]) % n

    every = [((a, b), (c, d)) for a, b, c, d in itertools.product(range(n), repeat=4)]
    invertible = [m for m in every if math.gcd(determinant(m), n) == 1]
    vectors = list(itertools.product(range(n), repeat=2))
    views = []
    for a, b in ((((1, 0), (0, 1)), (0, 0)), (((1, 2), (2, 3)), (3, 1))):
        assert math.gcd(determinant(a), n) == 1
        seen = Counter()
        for full in invertible:
            product = multiplied(a, full, n)
            for r in vectors:
                shifted = tuple((b[i] + sum(a[i][k] * r[k] for k in range(2))) % n for i in range(2))
                seen[product, shifted] += 1
        views.append(seen)
    assert views[0] == views[1]
    assert set(views[0].values()) == {1}
    assert len(views[0]) == len(invertible) * len(vectors)


@pytest.mark.parametrize("n", [5, 6])
def test_masks_are_drawn_evenly_from_all_invertible_matrices_and_all_vectors(n) -> None:
    tape = Tape(bytes(32), f"masks {n}")
    draws = 12_000
    matrices, vectors = Counter(), Counter()
    for _ in range(draws):
        full, shift = draw_mask(n, 2, tape)
        matrices[tuple(map(tuple, full))] += 1
        vectors[tuple(shift)] += 1
    count = {5: 480, 6: 288}[n]
    assert len(matrices) == count
    for seen, size in ((matrices, count), (vectors, n * n)):
        statistic = sum((seen[k] - draws / size) ** 2 / (draws / size) for k in seen)
        # Mean size - 1, deviation sqrt(2 (size - 1)): five deviations away has odds of about one in a million.
        assert abs(statistic - (size - 1)) < 5 * math.sqrt(2 * (size - 1))


@pytest.mark.slow
def test_two_very_different_tables_look_alike_to_the_sound_provider_in_their_low_bits(job_key) -> None:
    n = int(job_key.public.n)
    tables = (
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 0, 0]),
        ([[10**9, 7, 12**8], [7, 11**7, 5], [12**8, 5, 10**12]], [10**10, -3, 4]),
    )
    histograms = []
    for which, (a, b) in enumerate(tables):
        tape = Tape(bytes(32), f"table {which}")
        counts = np.zeros(16)
        for _ in range(150):
            full, r = draw_mask(n, 3, tape)
            c = multiplied(a, full, n)
            d = [(b[i] + sum(a[i][k] * r[k] for k in range(3))) % n for i in range(3)]
            for value in (*itertools.chain(*c), *d):
                counts[value % 16] += 1
        histograms.append(counts)
    both = histograms[0] + histograms[1]
    statistic = sum(float(((h - both / 2) ** 2 / (both / 2)).sum()) for h in histograms)
    assert statistic < 15 + 5 * math.sqrt(30)
