"""A table as the source's algorithms see it: one row of numbers in [0, 1] per record.

The source does not say how it turned categories into numbers. Here they are ordinal codes in the order of their names,
and every column is scaled to [0, 1] by its least and greatest value (a constant column becomes 0).

Below are the source's three data sets, and random COUNT queries over them. HAPT (10,929 x 561) does not come with velado's
other data: put `hapt/hapt.csv` below the data folder, made of the archive's Train and Test files one below the other, with
a header line, the 561 features and a last column called `activity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from velado.data.io import read_table
from velado.data.numbers import parse_numbers
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import SchemaError, TableError
from velado.text import say, say_n

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Records:
    """*values* (rows x columns) scaled to [0, 1], the names of the columns, and the codes of a target for RFE.

    *features* are the positions of the columns RFE may choose from: all but the target.

    >>> Records(np.zeros((4, 2)), ("age", "pay"))
    Records(4 rows x 2 columns)
    """

    values: Floats
    columns: tuple[str, ...]
    target: Integers | None = None
    features: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Records({self.rows} rows x {len(self.columns)} columns)"

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.values.shape[0])


def records_of(table: Table, columns: Sequence[str] | None = None, target: str | None = None) -> Records:
    """The table's *columns* (default: all but identifiers and the target) as scaled numbers. O(n d log n).

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", kind="numeric"), "sex": Column("sex")})
    >>> records_of(Table.of(pl.DataFrame({"age": ["20", "60"], "sex": ["M", "F"]}), schema, "t")).values
    array([[0., 1.],
           [1., 0.]])
    """
    if columns is None:
        columns = [
            name
            for name, column in table.schema.columns.items()
            if column.role != "identifier" and name != target
        ]
    if target is not None:
        _refuse_unknown(table, target)
    if len(columns) < 2:
        raise TableError(
            "Fewer than two columns are left to compare records by.",
            "Ranks within a record need at least two.",
            "Name more columns.",
        )
    values = np.empty((table.rows, len(columns)))
    for at, name in enumerate(columns):
        values[:, at] = scaled(column_numbers(table, name))
    codes = None if target is None else _codes(table, target)
    features = tuple(at for at, name in enumerate(columns) if name != target)
    return Records(values, tuple(columns), codes, features)


def column_numbers(table: Table, name: str) -> Floats:
    """A numeric column as it stands, any other as ordinal codes in the order of the names.

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> column_numbers(Table.of(pl.DataFrame({"sex": ["M", "F"]}), Schema({"sex": Column("sex")}), "t"), "sex")
    array([1., 0.])
    """
    _refuse_unknown(table, name)
    blank = table.is_missing(name).to_numpy()
    if blank.any():
        raise TableError(
            say_n(
                "Column '{name}' has {n} missing cell.",
                "Column '{name}' has {n} missing cells.",
                int(blank.sum()),
                name=name,
            ),
            "The source removes records with missing cells before it compares them.",
            "Drop those rows first, or fill the blanks with --impute COLUMN.",
        )
    column = table.schema.columns[name]
    if column.kind == "numeric":
        return parse_numbers(table, column, blank)[0]
    return _codes(table, name).astype(np.float64)


def scaled(values: Floats) -> Floats:
    """Min-max scaling to [0, 1]; a constant column becomes 0.

    >>> scaled(np.array([10.0, 20.0, 30.0]))
    array([0. , 0.5, 1. ])
    """
    low, high = float(values.min()), float(values.max())
    if high == low:
        return np.zeros_like(values)
    return np.asarray((values - low) / (high - low))


def _codes(table: Table, name: str) -> Integers:
    codes = table.text(name).rank("dense").to_numpy()
    return np.asarray(codes, dtype=np.int64) - 1


def _refuse_unknown(table: Table, name: str) -> None:
    if name not in table.schema.columns:
        raise SchemaError(
            say("There is no column '{name}'.", name=name),
            "A record is compared by columns the schema names.",
            "Check the spelling.",
        )


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
) -> npt.NDArray[np.bool_]:
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
) -> npt.NDArray[np.bool_]:
    mask = np.ones(records.rows, dtype=np.bool_)
    for column in chosen:
        values = records.values[:, column]
        one, other = sorted(values[rng.integers(records.rows, size=2)])
        mask &= values == one if categories[column] else (values >= one) & (values <= other)
    return mask
