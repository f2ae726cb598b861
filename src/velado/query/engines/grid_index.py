"""The grid index of a double, exactly, in SQL and in Python: floor(x/step + 1/2) clamped to [low, high].

x is the rational number the double stands for (0.15 is a little less than 15/100, so on a step of 0.1 it counts with
1), and the quotient is never rounded. In SQL the quotient q of two doubles is off by at most |q| 2^-52; where its
fraction is farther than that from 1/2 the rounded answer is the true one, and only the few numbers that lie on a tie,
or within that hair of one, are compared exactly: (2k + 1) step <= 2x in whole numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from velado.query.grid import Grid


def index_of(x: float, grid: Grid) -> int:
    """The index of one number, which is not NaN: what every engine must say."""
    if math.isinf(x):
        return grid.high if x > 0 else grid.low
    return min(max(math.floor(Fraction(x) / grid.step + Fraction(1, 2)), grid.low), grid.high)


def indices_of(values: list[float], grid: Grid) -> list[int]:
    """The indices of several numbers, each computed in rationals: about 3 microseconds a number."""
    return [index_of(x, grid) for x in values]


def index_sql(x: str, grid: Grid, exact: str) -> str:
    """The index of the column *x* as SQL; *exact* is the SQL for numbers on or near a tie (see `exact_sql`).

    No branch can overflow, underflow or divide by zero, whatever x holds, because an engine that reports an error
    for one row would tell of that row.
    """
    if grid.low == grid.high:
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {_whole(grid.low)} END"
    step = _double(float(grid.step))
    quotient = f"({x} / {step})"
    floor = f"floor({quotient})"
    fraction = f"({quotient} - {floor})"
    # Outside these the index is a bound; x / step is then at most 2^40 and needs no care.
    first, last = _at_least(grid, grid.low), _at_least(grid, grid.high - 1)
    inside = f"CAST({floor} + CASE WHEN {fraction} >= 0.5::FLOAT8 THEN 1 ELSE 0 END AS INT8)"
    near = ""
    if not _power_of_two(grid.step):
        hair = f"(abs({quotient}) * {_double(2.0**-51)} + {_double(2.0**-50)})"
        near = f"WHEN abs({fraction} - 0.5::FLOAT8) <= {hair} THEN {exact} "
    quarter = _double(math.nextafter(float(grid.step / 4), 0.0))
    zero = f"WHEN abs({x}) < {quarter} THEN {_whole(0)} " if grid.low <= 0 <= grid.high else ""
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} >= {_double(last)} THEN {_whole(grid.high)} "
        f"WHEN {x} < {_double(first)} THEN {_whole(grid.low)} {zero}{near}ELSE {inside} END"
    )


def exact_sql(x: str, grid: Grid) -> str:
    """PostgreSQL's exact comparison for a number near a tie: its bits as a whole number times a power of two.

    With x = m 2^e, q = floor(x / step) as doubles and step = p/d: the index is q + 1 if 2 d m 2^e >= (2q + 1) p, else q.
    """
    p, d = grid.step.numerator, grid.step.denominator
    bits = f"('x' || encode(float8send(abs({x})), 'hex'))::bit(64)::int8"
    # A biased exponent of 0 marks a number without the implicit leading bit.
    raised = f"(({bits}) >> 52)"
    mantissa = (
        f"(({bits}) & 4503599627370495) + CASE WHEN {raised} = 0 THEN 0::int8 ELSE 4503599627370496::int8 END"
    )
    exponent = f"(greatest({raised}, 1) - 1075)"
    sign = f"CASE WHEN {x} < 0 THEN -1 ELSE 1 END"
    floor = f"floor({x} / {_double(float(grid.step))})::int8"
    left = f"({mantissa})::numeric * ({sign}) * {2 * d}::numeric * power(2::numeric, greatest({exponent}, 0)::numeric)"
    right = (
        f"(2 * {floor} + 1)::numeric * {p}::numeric * power(2::numeric, greatest(-{exponent}, 0)::numeric)"
    )
    return f"({floor} + CASE WHEN {left} >= {right} THEN 1 ELSE 0 END)"


def _at_least(grid: Grid, index: int) -> float:
    # The smallest double whose index is above *index*: (index + 1/2) step, rounded up.
    edge = (index + Fraction(1, 2)) * grid.step
    near = float(edge)
    return near if Fraction(near) >= edge else math.nextafter(near, math.inf)


def _power_of_two(step: Fraction) -> bool:
    return all(part & (part - 1) == 0 for part in (step.numerator, step.denominator))


def _double(value: float) -> str:
    # Seventeen digits name a double; a quoted text keeps SQL from reading it as a decimal first.
    return f"'{value!r}'::FLOAT8"


def _whole(value: int) -> str:
    return f"'{value}'::INT8"
