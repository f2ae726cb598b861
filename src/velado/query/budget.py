"""How much may be learnt in all, in exact rationals: epsilon of pure differential privacy, or rho of zCDP.

Costs add: k answers of cost c_i cost sum c_i, under either measure (Dwork et al. 2006; Bun and Steinke 2016). A budget
of (epsilon, delta) is held as the largest rho whose conversion rho + 2 sqrt(rho ln(1/delta)) stays within epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from velado.errors import ParameterError

Measure = Literal["epsilon", "rho"]


@dataclass(frozen=True)
class Budget:
    """A total under one measure. *delta* is only told with a rho, to say what (epsilon, delta) it implies."""

    measure: Measure
    total: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if not 0 < self.total <= 1000:
            raise ParameterError(
                f"A budget must be above 0 and at most 1000 ({self.measure}).",
                "Nothing can be answered for nothing, and beyond that nothing is protected.",
                "Choose for example a total epsilon of 1.",
            )
        if self.delta is not None and not 0 < self.delta < 1:
            raise ParameterError(
                "Delta must lie strictly between 0 and 1.",
                "It is the chance that the promise may fail.",
                "Choose it far below one over the number of people, for example 1e-9.",
            )

    @classmethod
    def epsilon(cls, total: Fraction | int | float | str) -> Budget:
        """Pure differential privacy with this epsilon in all."""
        return cls("epsilon", exact(total))

    @classmethod
    def rho(cls, total: Fraction | int | float | str, delta: Fraction | float | str | None = None) -> Budget:
        """Zero-concentrated differential privacy with this rho in all."""
        return cls("rho", exact(total), None if delta is None else exact(delta))

    @classmethod
    def approximate(cls, epsilon: Fraction | float | str, delta: Fraction | float | str) -> Budget:
        """The largest zCDP budget that implies (epsilon, delta): rho = (sqrt(ln(1/d) + e) - sqrt(ln(1/d)))^2, rounded down."""
        e, d = exact(epsilon), exact(delta)
        if not 0 < d < 1 or not e > 0:
            raise ParameterError(
                "Epsilon must be above 0 and delta strictly between 0 and 1.",
                "Together they are the promise the budget stands for.",
                "Choose for example epsilon 1 and delta 1e-9.",
            )
        logarithm = math.log(1 / d)
        rho = (math.sqrt(logarithm + float(e)) - math.sqrt(logarithm)) ** 2
        while epsilon_of(Fraction(rho), d) > float(e):
            rho = math.nextafter(rho, 0.0) * (1 - 2**-40)
        return cls("rho", Fraction(rho), d)

    def to_dict(self) -> dict[str, Any]:
        """The measure, the total as an exact fraction and as a float, and what it implies."""
        out: dict[str, Any] = {"measure": self.measure, "total": str(self.total), "about": float(self.total)}
        if self.delta is not None:
            out["implies"] = {"epsilon": epsilon_of(self.total, self.delta), "delta": float(self.delta)}
        return out


def exact(value: Fraction | int | float | str) -> Fraction:
    """A number as the fraction its decimal text names: 0.1 is one tenth, not the float beside it."""
    try:
        return value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            "A budget or cost is not a finite number.",
            "It is added up exactly, so it must be a decimal number or a fraction.",
            "Write for example 0.5 or 1/3.",
        ) from None


def epsilon_of(rho: Fraction, delta: Fraction) -> float:
    """The epsilon that rho-zCDP implies at delta: rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, prop. 1.3), rounded up."""
    value = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(delta)))
    return value * (1 + 2**-45)
