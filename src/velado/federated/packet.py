"""Packet: what travels between server and client, in either direction, whoever carries it: arrays and a few facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Fact = int | float | str


@dataclass(frozen=True, repr=False)
class Packet:
    """Named arrays (weights, trees, class counts) and named facts (digests, counts, sums). Never a row."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Packet({len(self.facts)} facts, {len(self.arrays)} arrays, {self.size} bytes)"

    @property
    def size(self) -> int:
        """Bytes of the arrays, and of the facts written as JSON; what carries them adds its own."""
        return sum(np.asarray(array).nbytes for array in self.arrays.values()) + len(
            json.dumps(dict(self.facts))
        )

    def number(self, name: str, default: float = 0.0) -> float:
        """A fact that is a finite number; anything else counts as *default*."""
        value = self.facts.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return default
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond what a float holds
            return default
        return number if np.isfinite(number) else default

    def text(self, name: str) -> str:
        """A fact that is a text, in one line of a length that a log can bear; anything else is empty."""
        value = self.facts.get(name, "")
        return " ".join(value[:500].split()) if isinstance(value, str) else ""
