"""Impute: the blanks of a column filled with values made from what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from velado.data.encode import text_codes
from velado.data.numbers import parse_numbers
from velado.data.table import Table
from velado.errors import MissingExtra, ParameterError
from velado.randomness import Draws
from velado.release.operations._numbers_of import FloatVector, NumbersOf, number_cells, numbers_of
from velado.release.operations._operation import ColumnName, changeable, with_cells
from velado.settings import Setting, settings
from velado.text import Sentence, number, percent, say, say_n

Way = Literal["median", "mean", "most-frequent", "neighbours"]


@settings
class Impute:
    """Each blank holds the column's median, mean or most frequent value, or the mean of the nearest rows.

    scikit-learn's `SimpleImputer` and `KNNImputer`; the latter finds neighbours by the other numeric columns that
    are no identifiers (nor sensitive, where a quasi-identifier is filled: its published interval would show them), each in units of its standard deviation, and takes the mean of *neighbours* rows that have the
    value. Without *by*: the median of numbers, the most frequent of other values. Numbers get the decimals the column had
    and stay within its bounds. A filled cell is **nobody's measurement**: means shrink towards the middle, spreads
    and correlations too (`imputation_effect` tells how far), and a crowd may hold people who are not truly in it, so that a
    promise on such a quasi-identifier is measured, not guaranteed. O(n), neighbours O(blanks x n).

    >>> from velado.testing.examples import changed
    >>> changed(Impute("x"), ["20", "", "40", "90"], "numeric"), changed(Impute("x"), ["flu", "", "flu", "gout"])
    (['20', '40', '40', '90'], ['flu', 'flu', 'flu', 'gout'])
    """

    name: ClassVar[str] = "impute"
    title: ClassVar[str] = say(
        "Fill blanks: median, mean, most-frequent, neighbours; default: median, of words the most frequent."
    )
    typed: ClassVar[str] = "COLUMN[:WAY]"
    falsifies: ClassVar[bool] = True
    main: ClassVar[tuple[str, str]] = ("by", "by")
    column: ColumnName
    by: Annotated[Way | None, Setting("what a blank is filled with")] = None
    neighbours: Annotated[int, Setting("rows whose mean is taken by neighbours", ge=1)] = 5

    def apply(self, table: Table, random: Draws | None) -> Table:
        """The table without blanks in the column; *random* is not used."""
        column = changeable(table, self.name, self.column)
        blank = table.is_missing(self.column)
        if not blank.any():
            return table
        if blank.all():
            raise ParameterError(
                say("Column '{column}' is blank throughout.", column=self.column),
                "There is nothing to fill its blanks with.",
                "Leave the column out, or fill it where it comes from.",
            )
        _scikit_learn()
        original = table.frame.get_column(self.column).cast(pl.String)
        if column.kind == "numeric" and self.by != "most-frequent":
            found = numbers_of(table, self.name, self.column)
            filled = number_cells(self._numbers(table, found), found.decimals, table.schema.decimal)
        elif self.by in (None, "most-frequent"):
            filled = _most_frequent(table, self.column, original)
        else:
            raise ParameterError(
                say("Column '{column}' is not numeric and has no {by}.", column=self.column, by=self.by),
                "Medians, means and means of neighbours are of numbers.",
                "Use by = most-frequent, or leave it out.",
            )
        return with_cells(table, column, filled.zip_with(blank, original))

    def _numbers(self, table: Table, found: NumbersOf) -> FloatVector:
        from sklearn.impute import KNNImputer, SimpleImputer

        own = np.where(found.blank, np.nan, found.numbers)
        if self.by == "neighbours":
            spread = float(np.nanstd(own)) or 1.0
            # Boxes that are drawn around a quasi-identifier would show what it was filled from.
            others = _other_numbers(table, self.column, sensitive=found.column.role != "quasi")
            if not others:
                raise ParameterError(
                    say("No numeric column stands beside '{column}'.", column=self.column),
                    "Neighbours are found by the other numbers of a row.",
                    "Use by = median, or declare the kind of other columns.",
                )
            filled = KNNImputer(n_neighbors=self.neighbours).fit_transform(
                np.column_stack([own / spread, *others])
            )
            numbers = filled[:, 0] * spread
        else:
            numbers = SimpleImputer(strategy=self.by or "median").fit_transform(own[:, None])[:, 0]
        rounded = np.round(numbers, found.decimals)
        return np.asarray(rounded if found.column.bounds is None else np.clip(rounded, *found.column.bounds))


def _other_numbers(table: Table, name: str, sensitive: bool) -> list[FloatVector]:
    """Every other numeric column that identifies nobody, in units of its deviation; NaN where it is blank."""
    out = []
    for column in table.schema.columns.values():
        if column.kind != "numeric" or column.role == "identifier" or column.name == name or column.person:
            continue
        if column.role == "sensitive" and not sensitive:
            continue
        blank = table.is_missing(column.name).to_numpy()
        numbers = np.where(blank, np.nan, parse_numbers(table, column, blank)[0])
        if not blank.all() and float(np.nanstd(numbers)) > 0:
            out.append(np.asarray(numbers / float(np.nanstd(numbers))))
    return out


def _most_frequent(table: Table, name: str, original: pl.Series) -> pl.Series:
    from sklearn.impute import SimpleImputer

    codes, _ = text_codes(table.text(name))
    rows = np.where(codes == 0, np.nan, codes.astype(np.float64))
    chosen = SimpleImputer(strategy="most_frequent").fit(rows[:, None]).statistics_[0]
    value = original[int(np.flatnonzero(codes == chosen)[0])]
    return pl.select(pl.repeat(value, table.rows, dtype=pl.String)).to_series()


def _scikit_learn() -> None:
    from importlib.util import find_spec

    if find_spec("sklearn") is None:
        raise MissingExtra(
            "scikit-learn is not installed.", "Blanks are filled by its imputers.", "Install velado[ml]."
        )


@dataclass(frozen=True, kw_only=True)
class ImputationEffect:
    """How many cells were filled, and what became of mean and standard deviation (None for words).

    >>> ImputationEffect(column="age", filled=2, rows=8).share
    0.25
    """

    column: str
    filled: int
    rows: int
    means: tuple[float, float] | None = None
    deviations: tuple[float, float] | None = None

    @property
    def share(self) -> float:
        """The filled part of all cells of the column."""
        return self.filled / self.rows if self.rows else 0.0

    def sentence(self) -> Sentence:
        """For the owner: it tells of the column as it was."""
        parts = {"column": self.column, "share": percent(self.share)}
        if self.means is None or self.deviations is None:
            return say_n(
                "{n:,} blank of '{column}' ({share}) was filled with its most frequent value, which nobody has told.",
                "{n:,} blanks of '{column}' ({share}) were filled with its most frequent value, which nobody has told.",
                self.filled,
                **parts,
            )
        parts |= {"old_mean": number(self.means[0], 3), "new_mean": number(self.means[1], 3)}
        parts |= {"old_sd": number(self.deviations[0], 3), "new_sd": number(self.deviations[1], 3)}
        return say_n(
            "{n:,} blank of '{column}' ({share}) was filled: its mean goes from {old_mean} to {new_mean}, its standard "
            "deviation from {old_sd} to {new_sd}; what was filled in nobody has measured.",
            "{n:,} blanks of '{column}' ({share}) were filled: its mean goes from {old_mean} to {new_mean}, its standard "
            "deviation from {old_sd} to {new_sd}; what was filled in nobody has measured.",
            self.filled,
            **parts,
        )


def imputation_effect(operation: Impute, table: Table) -> ImputationEffect:
    """What filling the blanks of *table* does to the column: the share of filled cells, mean and deviation.

    >>> from velado.testing.examples import small_table
    >>> found = imputation_effect(Impute("age", by="mean"), small_table(age=("quasi", "numeric", "20 40 _ _")))
    >>> found.share, found.means, found.deviations
    (0.5, (30.0, 30.0), (10.0, 7.0710678118654755))
    """
    blank = table.is_missing(operation.column).to_numpy()
    column = table.schema.columns[operation.column]
    filled, rows = int(blank.sum()), table.rows
    if column.kind != "numeric" or not filled:
        return ImputationEffect(column=column.name, filled=filled, rows=rows)
    after, _ = parse_numbers(operation.apply(table, None), column, np.zeros(rows, dtype=bool))
    before = parse_numbers(table, column, blank)[0][~blank]
    return ImputationEffect(
        column=column.name,
        filled=filled,
        rows=rows,
        means=(float(before.mean()), float(after.mean())),
        deviations=(float(before.std()), float(after.std())),
    )
