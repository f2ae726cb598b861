"""What a federated run has learned: something that gives probabilities, and arrays that can be kept in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatMatrix = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]


class Learned(Protocol):
    """A model at some point of the run."""

    def probabilities(self, features: FloatMatrix) -> Probabilities:
        """Chance of every class for every row of encoded *features*."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model as named arrays, for a file without code in it."""
        ...


def softmax(margins: npt.NDArray[np.float64]) -> Probabilities:
    """exp(m_c) / sum_c exp(m_c) by rows; one column means the log odds of the second of two classes."""
    if margins.shape[1] == 1:
        margins = np.concatenate([np.zeros_like(margins), margins], axis=1)
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)
