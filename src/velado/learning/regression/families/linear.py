"""Least squares: the mean is the score itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from velado.learning.regression.families._family import AtPoint, Family, Floats
from velado.text import say


class Linear(Family):
    """y = x beta + noise of one variance.

    >>> Linear().at(np.array([3.0]), np.array([1.0])).deviance.tolist()
    [4.0]
    """

    name: ClassVar[str] = "linear"
    about: ClassVar[str] = say("a linear model")
    sums: ClassVar[bool] = True
    dispersed: ClassVar[bool] = True

    def mean(self, scores: Floats) -> Floats:
        """The scores."""
        return scores

    def at(self, target: Floats, eta: Floats) -> AtPoint:
        """Residuals, and every row's curvature 1."""
        return AtPoint(pull=target - eta, spread=np.ones_like(eta), deviance=(target - eta) ** 2)
