"""Anonymizer: training rows are published through `release()`, new rows are placed in the groups that were learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from velado.data.decoding import HIGH, LOW, Intervals, decoded
from velado.data.frames import CameAs, from_native, to_native
from velado.data.io import schema_from
from velado.data.schema import Column, Kind, Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError
from velado.release import DEFAULT_METHOD
from velado.release.anonymize import anonymize
from velado.release.goal import Promise
from velado.release.guarantees._guarantee import Verdict
from velado.release.learned_covers import LearnedCovers, Placed
from velado.release.methods._method import Method
from velado.release.release import Release
from velado.release.run_settings import Guarantees, Unit, run_settings
from velado.text import say

Array = npt.NDArray[Any]
Names = Sequence[str | int]


@dataclass(frozen=True)
class LearnedPromise:
    """What is promised: of the *training* rows what `release()` checked, of *new_rows* nothing but what is measured.

    >>> LearnedPromise("guaranteed", ()).new_rows
    'measured'
    """

    training: Promise
    verdicts: tuple[Verdict, ...]
    new_rows: Promise = "measured"


@dataclass(frozen=True)
class NewRows:
    """What `measure` found of rows placed in learned groups.

    *uncovered* rows fit no group and are shown as the nearest, which is false of them; *below_k* rows share what they
    are shown as with fewer than k of the new rows; *smallest* is the least number of new rows that are shown alike.

    >>> NewRows(rows=10, uncovered=1, below_k=4, smallest=2).below_k
    4
    """

    rows: int
    uncovered: int
    below_k: int
    smallest: int


class Anonymizer(TransformerMixin, BaseEstimator):
    """A transformer that publishes the rows it is fitted on, and shows new rows as members of the same groups.

    *schema* is a Schema or the path of a schema file; columns of it that the data do not have, such as the target, are
    passed over. Without one, *quasi* names the quasi-identifiers (or counts them from 0); without either every column is
    one, and each row is a person. *method*, *guarantees*, *k*, *seed* and *per* are those of `velado.anonymize`;
    *intervals* is how numbers come out: "middle" for models, "ends" as two columns, "text" as they are published.

    `fit_transform` gives the training rows as `release()` published them, in their own order, beside their y: for the model
    that is trained, not to be handed out. No row is suppressed: what cannot be published in full is an error. `transform`
    shows a new row as the narrowest published tuple that is true of it, or, where none is, as the nearest; `promise_` says
    that this is measured, and `measure` does it. The fitted estimator holds published tuples and no row.

    >>> import pandas as pd
    >>> ages = pd.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51]})
    >>> learned = Anonymizer(method="mondrian", k=2).fit(ages)
    >>> learned.transform(pd.DataFrame({"age": [20, 35]}))["age"].to_list(), learned.promise_.training
    ([20.5, 30.5], 'guaranteed')
    """

    covers_: LearnedCovers
    promise_: LearnedPromise
    loss_: float
    k_: int | None

    def __init__(
        self,
        schema: Schema | str | Path | None = None,
        *,
        quasi: Names | None = None,
        method: Method | type[Method] | str = DEFAULT_METHOD,
        guarantees: Guarantees = (),
        k: int | None = 5,
        seed: int = 0,
        per: Unit | None = None,
        intervals: Intervals = "middle",
    ) -> None:
        self.schema = schema
        self.quasi = quasi
        self.method = method
        self.guarantees = guarantees
        self.k = k
        self.seed = seed
        self.per = per
        self.intervals = intervals

    def fit(self, X: Any, y: Any = None) -> Anonymizer:
        """Learn the groups of the rows of *X*; *y* is not looked at.

        >>> Anonymizer(k=2, method="mondrian").fit([[20.0], [21.0], [30.0], [31.0]]).covers_
        LearnedCovers(2 tuples of 1 column)
        """
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the groups of the rows of *X*, and give those rows as they were published.

        >>> Anonymizer(k=2, method="mondrian").fit_transform([[20.0], [21.0], [30.0], [31.0]]).ravel().tolist()
        [20.5, 20.5, 30.5, 30.5]
        """
        release, container = self._learn(X)
        return self._given(release.aligned, container)

    def transform(self, X: Any) -> Any:
        """The rows of *X* as members of the learned groups; measured, not guaranteed.

        >>> Anonymizer(k=2, method="mondrian").fit([[20.0], [21.0], [30.0], [31.0]]).transform([[29.0]]).tolist()
        [[30.5]]
        """
        table, container = self._new(X)
        return self._given(self.covers_.shown(table, self.covers_.place(table)), container)

    def measure(self, X: Any) -> NewRows:
        """How the rows of *X* fare in the learned groups: how many fit none, how many stand out among themselves.

        >>> Anonymizer(k=2, method="mondrian").fit([[20.0], [21.0], [30.0], [31.0]]).measure([[21.0], [20.5], [50.0]])
        NewRows(rows=3, uncovered=1, below_k=1, smallest=1)
        """
        table, _ = self._new(X)
        placed: Placed = self.covers_.place(table)
        uncovered = int((~placed.fits).sum())
        return NewRows(table.rows, uncovered, placed.below(self.k_ or 2), placed.smallest)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns that come out: identifiers are gone, an interval may be two columns.

        >>> Anonymizer(k=2, intervals="ends").fit([[20.0], [21.0]]).get_feature_names_out().tolist()
        ['x0_low', 'x0_high']
        """
        names = _check_feature_names_in(self, input_features)
        given = dict(zip(self._columns_in, names, strict=True))
        return np.asarray([given[name] + suffix for name, suffix in self._columns_out], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "covers_")

    def _learn(self, X: Any) -> tuple[Release, _Container]:
        asked = run_settings(
            method=self.method, guarantees=self.guarantees, k=self.k, seed=self.seed, per=self.per
        )
        frame, container = self._frame(X, reset=True)
        table = Table.of(frame, self._schema_of(frame)).blanked()
        release = anonymize(
            table,
            None,
            asked.method,
            asked.guarantees,
            k=asked.k,
            seed=asked.seed,
            per=asked.per or ("row" if self.schema is None else None),
        )
        if release.suppressed:
            raise ParameterError(
                say("{count} training rows would be suppressed.", count=release.suppressed),
                "A transformer gives back as many rows as it gets, and their targets stand beside them.",
                'Set missing = "value" in the schema, or drop those rows before.',
            )
        shown = decoded(release.aligned, table.schema, self.intervals).columns
        self.covers_ = LearnedCovers.of(release)
        self.promise_ = LearnedPromise(release.promise, release.verdicts)
        self.loss_ = release.loss
        self.k_ = release.goal.k
        self._columns_in = frame.columns
        self._columns_out = [_parted(name, frame.columns) for name in shown]
        return release, container

    def _new(self, X: Any) -> tuple[Table, _Container]:
        check_is_fitted(self)
        frame, container = self._frame(X, reset=False)
        frame.columns = self._columns_in  # an array has no names of its own
        return Table.of(frame, self.covers_.schema).blanked(), container

    def _given(self, frame: pl.DataFrame, container: _Container) -> Any:
        return container.given(decoded(frame, self.covers_.schema, self.intervals))

    def _schema_of(self, frame: pl.DataFrame) -> Schema:
        if self.schema is not None:
            if self.quasi is not None:
                raise ParameterError(
                    "schema= and quasi= are both given.",
                    "The schema says already which columns are quasi-identifiers.",
                    "Leave one of them out.",
                )
            whole = schema_from(self.schema)
            odd = [name for name in frame.columns if name not in whole.columns]
            if odd:
                raise SchemaError(
                    say("X has the column '{column}', which the schema does not name.", column=odd[0]),
                    "A column nobody thought about could identify people.",
                    "Add it to the schema, or leave it out of X.",
                )
            known = [column for name, column in whole.columns.items() if name in frame.columns]
            return whole.with_columns(known)
        quasi = frame.columns if self.quasi is None else [self._named(one, frame) for one in self.quasi]
        return Schema(
            {
                name: Column(name, "quasi" if name in quasi else "other", _kind_of(dtype))
                for name, dtype in frame.schema.items()
            }
        )

    def _named(self, one: str | int, frame: pl.DataFrame) -> str:
        if isinstance(one, str) and one in frame.columns:
            return one
        if isinstance(one, int) and 0 <= one < frame.width:
            return frame.columns[one]
        raise ParameterError(
            say("quasi= names '{name}', which the data do not have.", name=one),
            "A promise about a column that is not there cannot be kept.",
            "Name columns of the data, or count them from 0.",
        )

    def _frame(self, X: Any, reset: bool) -> tuple[pl.DataFrame, _Container]:
        """The data as Polars, and what came: as many columns as were fitted, of the same names."""
        import narwhals as nw

        if nw.dependencies.is_into_dataframe(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            arrived = from_native(X)
            return arrived.frame.clone(), _Container(
                arrived.came, dict(arrived.frame.schema), getattr(X, "index", None)
            )
        least = 2 if reset else 1
        cells = validate_data(self, X, reset=reset, dtype="numeric", ensure_min_samples=least)
        cells = cells.astype(np.float64) if cells.dtype.kind == "f" else cells
        return pl.DataFrame({f"x{at}": cells[:, at] for at in range(cells.shape[1])}), _Container()


@dataclass(frozen=True, repr=False)
class _Container:
    """What the data came in: an array, or a kind of frame, a pandas one with an index that says which row is which."""

    came: CameAs | None = None
    types: Mapping[str, pl.DataType] = field(default_factory=dict)
    index: Any = None

    def given(self, shown: pl.DataFrame) -> Any:
        """The same rows in what they came in."""
        if self.came is None:
            return shown.to_numpy()
        out = to_native(shown, self.came, [n for n, t in self.types.items() if shown.schema.get(n) == t])
        return out.set_axis(self.index) if self.came.kind == "pandas" else out


def _parted(name: str, known: Sequence[str]) -> tuple[str, str]:
    """A column that comes out as the one that went in, and what its name has beyond that."""
    end = next((end for end in (LOW, HIGH) if name not in known and name.endswith(end)), "")
    return name.removesuffix(end), end


def _kind_of(dtype: pl.DataType) -> Kind:
    if dtype.is_numeric():
        return "numeric"
    return "date" if dtype.is_temporal() else "categorical"
