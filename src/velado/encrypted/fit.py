"""Fit: the coefficients, what the run promises, what it cost and how it was made; and predictions on rows in the clear."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError, SchemaError

FORMAT = 1
INTERCEPT = "(intercept)"


@dataclass(frozen=True)
class Fit:
    """One linear model y = sum_j beta_j x_j over all parties' rows.

    *promise* says what holds and under which assumptions, *learned* what each party saw and can infer, *cost* what was
    spent (seconds, bytes, powers), *how* the job and the protocol. *standard_errors* stand only where the protocol reveals
    the pooled moments to someone anyway.
    """

    target: str
    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    promise: Mapping[str, Any]
    learned: Mapping[str, Any]
    standard_errors: tuple[float, ...] | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, columns: Mapping[str, Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
        """The model's value for every row; each feature is looked up by its name."""
        features = [name for name in self.names if name != INTERCEPT]
        absent = [name for name in features if name not in columns]
        if absent:
            raise SchemaError(
                f"The rows lack {', '.join(absent)}.",
                "The model was fitted with these features.",
                "Give every feature of the model.",
            )
        arrays = {name: np.asarray(columns[name], dtype=np.float64) for name in features}
        sizes = {array.shape for array in arrays.values()}
        if len(sizes) > 1:
            raise InputError(
                "The features have different numbers of rows.",
                "A prediction needs one value of each.",
                "Give columns of equal length.",
            )
        shape = sizes.pop() if sizes else (1,)
        total = np.zeros(shape)
        for name, beta in zip(self.names, self.coefficients, strict=True):
            total += beta if name == INTERCEPT else beta * arrays[name]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; coefficients as floats."""
        return {
            "format": FORMAT,
            "target": self.target,
            "coefficients": dict(zip(self.names, self.coefficients, strict=True)),
            "standard_errors": None
            if self.standard_errors is None
            else dict(zip(self.names, self.standard_errors, strict=True)),
            "promise": dict(self.promise),
            "learned": dict(self.learned),
            "cost": dict(self.cost),
            "how": dict(self.how),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Fit:
        """The fit a model file holds, or SchemaError where it is not one of this format."""
        try:
            if document["format"] != FORMAT:
                raise KeyError("format")
            names = tuple(str(name) for name in document["coefficients"])
            coefficients = tuple(_number(value) for value in document["coefficients"].values())
            errors = document.get("standard_errors")
            if not names:
                raise ValueError
            return cls(
                target=str(document["target"]),
                names=names,
                coefficients=coefficients,
                promise=dict(document["promise"]),
                learned=dict(document["learned"]),
                standard_errors=None if errors is None else tuple(_number(errors[name]) for name in names),
                cost=dict(document.get("cost", {})),
                how=dict(document.get("how", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise SchemaError(
                "The file is not a model that this version reads.",
                f"A model has format {FORMAT}, a target and finite coefficients.",
                "Give the fit.json that a regression wrote.",
            ) from None

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{beta:.6g}</td></tr>"
            for name, beta in zip(self.names, self.coefficients, strict=True)
        )
        promise = html.escape(str(self.promise.get("type", "")))
        return f"<table><caption>{html.escape(self.target)} ({promise})</caption>{rows}</table>"


def _number(value: Any) -> float:
    """A JSON number as a float; text, true, false and what is not finite are no numbers of a model."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number
