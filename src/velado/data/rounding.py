"""Interval ends moved outwards to multiples of a declared step, so that no end is somebody's true value by rule.

The ends of a tight cover are the least and the greatest value of a group: two members' own numbers. Rounded ends
depend on which cells of a public grid the group touches, and on nothing finer. Pure arrays and schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt

from velado.data.partition import FloatArray
from velado.data.schema import Schema
from velado.errors import ParameterError, SchemaError
from velado.text import say

_EXACT = 2.0**52
"""Whole numbers up to here, and one step beyond, are exact in double precision."""


@dataclass(frozen=True)
class Rounding:
    """Multiples of *step*, cut off at the public *bounds* where they are declared.

    A multiple is computed as a whole number over a power of ten, which double precision rounds once: it is the
    very number a reader gets from the published text (0.3, never 0.30000000000000004).

    >>> Rounding(5).outwards(np.array([21.0, 25.0]), np.array([23.0, 25.0]))
    (array([20., 25.]), array([25., 30.]))
    """

    step: float
    bounds: tuple[float, float] | None = None

    @cached_property
    def _ratio(self) -> tuple[int, int]:
        """The step as whole number / power of ten."""
        _, digits, exponent = Decimal(repr(self.step)).as_tuple()
        assert isinstance(exponent, int)
        whole = int("".join(map(str, digits)))
        return whole * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)

    def check(self, points: FloatArray, column: str) -> None:
        """Every number of the column can be placed on the grid exactly, or a SchemaError names the column."""
        whole, power = self._ratio
        largest = float(np.abs(points).max(initial=0.0))
        if (largest + self.step) * power >= _EXACT or whole >= _EXACT:
            raise SchemaError(
                say(
                    "'round' in [columns.{column}] is too fine for numbers as large as the column's.",
                    column=column,
                ),
                "Its multiples could not be told apart in double precision.",
                "Declare a coarser step.",
            )

    def outwards(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The narrowest lower..upper on the grid that covers *low*..*high* and is no single number, elementwise.

        A lone number that is a multiple itself gets the neighbouring cell above, or below where a bound makes
        that one narrower: publishing it bare would say that all members have it. An end beyond a public bound is
        moved onto the bound. A wider low..high never gets a narrower result.
        """
        first, last = self._floor(low), -self._floor(-np.asarray(high))
        lower, upper = self._clipped(first), self._clipped(last)
        alone = first == last
        if bool(alone.any()):
            above, below = self._clipped(last + 1), self._clipped(first - 1)
            # Widths of whole cells are compared as what they are, not by subtraction, which leaves dust.
            rise = np.where(above == self._multiple(last + 1), self.step, above - upper)
            fall = np.where(below == self._multiple(first - 1), self.step, lower - below)
            goes_up = (rise > 0) & ((rise <= fall) | (fall <= 0))
            upper = np.where(alone & goes_up, above, upper)
            lower = np.where(alone & ~goes_up, below, lower)
        return lower, upper

    def _floor(self, numbers: FloatArray) -> npt.NDArray[np.int64]:
        """How many steps the greatest multiple lies from 0 that is no more than each number."""
        numbers = np.asarray(numbers, dtype=np.float64)
        steps = np.floor(numbers / self.step).astype(np.int64)
        # The division may err by one on either side of a multiple.
        steps -= self._multiple(steps) > numbers
        steps += self._multiple(steps + 1) <= numbers
        return np.asarray(steps, dtype=np.int64)

    def _multiple(self, steps: npt.NDArray[np.int64]) -> FloatArray:
        whole, power = self._ratio
        return np.asarray((steps * whole) / power, dtype=np.float64)

    def _clipped(self, steps: npt.NDArray[np.int64]) -> FloatArray:
        numbers = self._multiple(steps)
        return numbers if self.bounds is None else np.clip(numbers, *self.bounds)


def with_rounding(schema: Schema, steps: Mapping[str, float]) -> Schema:
    """The same schema with ``round`` set on the columns of *steps*; each must be a plain numeric quasi-identifier.

    >>> from velado.data.schema import Column
    >>> with_rounding(Schema({"age": Column("age", "quasi", "numeric")}), {"age": 5}).columns["age"].round
    5.0
    """
    columns = dict(schema.columns)
    for name, step in steps.items():
        if name not in columns:
            raise ParameterError(
                say("There is no column '{name}' whose intervals could be rounded.", name=name),
                "The schema does not name it.",
                "Name a numeric quasi-identifier, for example --round-intervals age=5.",
            )
        columns[name] = replace(columns[name], round=step)
    return schema.with_columns(columns.values())
