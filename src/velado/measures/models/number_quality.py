"""How good a model's numbers are: explained variance (R2), root mean square error, mean absolute error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from velado.data.numbers import parse_numbers
from velado.data.partition import FloatArray
from velado.data.table import Table
from velado.errors import ParameterError
from velado.measures.models._model import Model, require
from velado.measures.models.encoder import FloatMatrix, Ranges
from velado.text import say

NUMBER_QUALITIES = ("r2", "rmse", "mae")
"""The measures of `NumberQuality`, by name; r2 is better when larger, the others when smaller."""


@dataclass(frozen=True, kw_only=True)
class NumberQuality:
    """The scores of one model on one test part; the errors are in the unit of the target.

    *r2* = 1 - sum (y - f)^2 / sum (y - mean y)^2 over the test rows: 1 is perfect, 0 is what always saying their mean would
    reach, and below 0 the model is worse than that. None where all test rows have one value.

    >>> number_quality(np.array([1.0, 3.0]), np.array([1.0, 2.0])).r2
    0.5
    """

    rows: int
    r2: float | None
    rmse: float
    mae: float
    reasons: Mapping[str, str] = field(default_factory=dict)


def number_quality(truth: FloatArray, answers: FloatArray) -> NumberQuality:
    """*answers* scored against *truth*. O(rows).

    >>> number_quality(np.array([2.0, 2.0]), np.array([1.0, 3.0])).r2 is None
    True
    """
    apart = truth - answers
    spread = float(((truth - truth.mean()) ** 2).sum())
    known = spread > 0
    return NumberQuality(
        rows=int(truth.size),
        r2=float(1 - (apart**2).sum() / spread) if known else None,
        rmse=float(np.sqrt((apart**2).mean())),
        mae=float(np.abs(apart).mean()),
        reasons={} if known else {"r2": say("All test rows have the same value.")},
    )


def target_numbers(table: Table, frame: pl.DataFrame, target: str) -> FloatArray:
    """The numbers that *frame* has for the target of *table*, or the error that says which texts are none.

    >>> from velado.testing.examples import four_people
    >>> target_numbers(four_people(), four_people().frame, "age").size
    4
    """
    rows = table.with_frame(frame.select(target))
    return parse_numbers(rows, table.schema.columns[target], np.zeros(frame.height, dtype=bool))[0]


@dataclass(frozen=True, repr=False)
class Estimates:
    """What a model answered: a number for each row.

    >>> Estimates(np.array([1.0, 2.0]), 0.0)
    Estimates(rows=2)
    """

    values: FloatArray
    seconds: float

    def __repr__(self) -> str:
        return f"Estimates(rows={self.values.size})"


def fit_and_estimate(
    model: Model,
    features: FloatMatrix,
    values: FloatArray,
    asked: FloatMatrix,
    seed: int,
    ranges: Ranges | None = None,
) -> Estimates:
    """*model* taught with *features* and *values*, and its numbers for the rows of *asked*. One thread, repeatable.

    >>> from velado.measures.models.linear_regression import LinearRegression
    >>> rows = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    >>> fit_and_estimate(LinearRegression(penalty=0), rows, np.array([0.0, 2.0, 4.0]), rows, 0).values.round(3).tolist()
    [0.0, 2.0, 4.0]
    """
    require(model)
    start = time.process_time()
    if np.unique(values).size < 2:
        raise ParameterError(
            "All training rows have the same value of the target.",
            "A model cannot learn from what numbers depend on if there is only one.",
            "Use more rows, a larger training part, or another target.",
        )
    if ranges is not None and model.scaled:
        features, asked = ranges.unit(features), ranges.unit(asked)
    estimator = model.estimator(seed) if ranges is None else model.estimator(seed, ranges.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(features, values)
        found = np.asarray(estimator.predict(asked), dtype=np.float64)
    return Estimates(found, time.process_time() - start)
