"""The three data sets of the correlated-privacy source, and random COUNT queries over them.

HAPT (10,929 x 561) does not come with velado's other data: put `hapt/hapt.csv` below the data folder, made of the archive's
Train and Test files one below the other, with a header line, the 561 features and a last column called `activity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.papers.correlated.correlated_records import Integers, Records, records_of
from velado.papers.correlated.rank_correlation import Mask
from velado.text import say

LEAST_ROWS = 100
_MOST_COLUMNS = 3
_ADULT_TEXT = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
    "income",
)


@dataclass(frozen=True)
class CorrelatedData:
    """A data set of the source: its file, the columns that are categories, the identifier and the target.

    *with_target* says whether the target is among the attributes records are compared by: the source counts 14
    attributes of Adult, which leaves income out, and 24 of the credit-card clients, which takes the default in.

    >>> ADULT.file, CCC.with_target
    ('adult/adult_clean.csv', True)
    """

    name: str
    title: str
    file: str
    target: str
    with_target: bool = False
    categories: tuple[str, ...] = ()
    identifier: str | None = None

    def read(self, data: Path) -> tuple[Records, tuple[bool, ...]]:
        """The records without missing cells, as the source takes them, and which of their columns are categories."""
        plain = read_table(data / self.file)
        columns = {name: self._column(name) for name in plain.frame.columns}
        table = read_table(plain, Schema(columns, missing_values=("", "nan")))
        whole = ~np.any([table.is_missing(name).to_numpy() for name in columns], axis=0)
        table = table.with_frame(table.frame.filter(whole))
        compared = [
            name for name in columns if name != self.identifier and (self.with_target or name != self.target)
        ]
        records = records_of(table, compared, self.target)
        return records, tuple(name in self.categories for name in records.columns)

    def _column(self, name: str) -> Column:
        if name == self.identifier:
            return Column(name, "identifier", "text")
        return Column(name, "other", "categorical" if name in self.categories else "numeric")


ADULT = CorrelatedData("adult", "Adult", "adult/adult_clean.csv", "income", categories=_ADULT_TEXT)
CCC = CorrelatedData(
    "ccc",
    say("credit-card clients"),
    "uci/credit_card_clients.csv",
    "default.payment.next.month",
    with_target=True,
    categories=("SEX", "EDUCATION", "MARRIAGE", "default.payment.next.month"),
    identifier="ID",
)
HAPT = CorrelatedData("hapt", "HAPT", "hapt/hapt.csv", "activity", categories=("activity",))
DATA_SETS = (ADULT, CCC, HAPT)


def count_queries(
    records: Records,
    categories: tuple[bool, ...],
    number: int,
    rng: np.random.Generator,
    least: int = LEAST_ROWS,
) -> Mask:
    """*number* random COUNT queries as masks (rows x queries). The source says only that they are random.

    A query has one to three columns (each number equally likely), different and drawn evenly. A category must equal
    that of a row drawn at random; a number must lie between those of two such rows. A query that fewer than *least*
    rows match is drawn again, so that one row more or less cannot decide the mean of relative errors.

    >>> records = Records(np.array([[0.0], [0.5], [1.0]]), ("age",))
    >>> count_queries(records, (False,), 2, np.random.default_rng(0), least=1).shape
    (3, 2)
    """
    rows, width = records.values.shape
    out = np.empty((rows, number), dtype=np.bool_)
    for q in range(number):
        while True:
            chosen = rng.choice(
                width, size=int(rng.integers(1, min(_MOST_COLUMNS, width) + 1)), replace=False
            )
            mask = _conjunction(records, categories, chosen, rng)
            if np.count_nonzero(mask) >= least:
                break
        out[:, q] = mask
    return out


def _conjunction(
    records: Records, categories: tuple[bool, ...], chosen: Integers, rng: np.random.Generator
) -> Mask:
    mask = np.ones(records.rows, dtype=np.bool_)
    for column in chosen:
        values = records.values[:, column]
        one, other = sorted(values[rng.integers(records.rows, size=2)])
        mask &= values == one if categories[column] else (values >= one) & (values <= other)
    return mask
