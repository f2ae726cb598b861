"""Laplace noise as the source draws it: floating point, from an ordinary generator. It protects nobody.

Apart from the product's own noise on purpose: a double's bits alone can give the answer away, and the scale here comes
from the private records. Nothing that promises anything imports this file.
"""

from __future__ import annotations

import math

import numpy as np


def draw(scale: float, rng: np.random.Generator) -> float:
    """One draw of Laplace(0, *scale*) (definition 4); a scale of 0 gives no noise at all."""
    return float(rng.laplace(0.0, scale)) if scale > 0.0 else 0.0


def density(x: float, scale: float) -> float:
    """The density of Laplace(0, *scale*) at x: exp(-|x| / scale) / (2 scale)."""
    return math.exp(-abs(x) / scale) / (2.0 * scale)


def expected_relative_error(scale: float, answer: float) -> float:
    """The mean of |noise| / |answer| over the noise: scale / |answer| (definition 10's error, without its luck)."""
    return scale / abs(answer)
