"""What means no value in a column, and the one place where such cells become blank: whatever reads rows asks here.

A schema lists texts that mean no value, for the whole table or for one column. In a column of texts a cell is compared as it
stands; in one of numbers or days with the number or the day that a text writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from velado.data.numbers import with_point
from velado.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


def is_text(type_: pa.DataType) -> bool:
    """Whether cells of an Arrow type are texts, however the column holds them.

    >>> import pyarrow as pa
    >>> is_text(pa.large_string()), is_text(pa.dictionary(pa.int8(), pa.string())), is_text(pa.int64())
    (True, True, False)
    """
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return is_text(type_.value_type)
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    )


@dataclass(frozen=True)
class NoValue:
    """What means no value in one column: *texts* as they stand, and the *numbers* and *days* some of them write.

    *nan* says that "not a number" is no value either.

    >>> NoValue.of(("", "ND", "-999", "9999-12-31"))
    NoValue(texts=('ND', '-999', '9999-12-31'), numbers=(-999.0,), days=(datetime.date(9999, 12, 31),), nan=False)
    """

    texts: tuple[str, ...]
    numbers: tuple[float, ...]
    days: tuple[date, ...]
    nan: bool

    @classmethod
    def of(cls, texts: Sequence[str], decimal: str = ".") -> NoValue:
        """What the listed *texts* mean; the empty one is blank as it stands."""
        days = []
        for text in texts:
            try:
                days.append(date.fromisoformat(text))
            except ValueError:
                continue
        return cls(
            tuple(text for text in texts if text),
            missing_numbers(texts, decimal),
            tuple(days),
            any(text.lower() == "nan" for text in texts),
        )

    @property
    def whole(self) -> tuple[int, ...]:
        """The numbers that a column of whole numbers can hold."""
        return tuple(int(value) for value in self.numbers if abs(value) < 2**63 and value == int(value))

    def of_type(self, type_: pa.DataType) -> list[str] | list[int] | list[float] | list[date]:
        """The values that a column of an Arrow type can hold and that mean none; NaN is the engine's own to find.

        >>> import pyarrow as pa
        >>> NoValue.of(("ND", "-999")).of_type(pa.int64())
        [-999]
        """
        import pyarrow as pa

        if is_text(type_):
            return list(self.texts)
        if pa.types.is_integer(type_):
            return list(self.whole)
        if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
            return [value for value in self.numbers if math.isfinite(value)]
        return list(self.days) if pa.types.is_date(type_) else []

    def marks(self, series: pl.Series) -> pl.Series:
        """True where a cell of *series* means no value, as it is stored; null cells may be null."""
        dtype = series.dtype
        if dtype == pl.String:
            return series.is_in(list(self.texts))
        if dtype in (pl.Categorical, pl.Enum):
            return series.cast(pl.String).is_in(list(self.texts))
        if dtype.is_integer():
            # A number beyond 64 bits with a sign (a hash) is a value: null here would be read as none.
            found = series.cast(pl.Int64, strict=False).is_in(list(self.whole))
            return found.fill_null(False)
        if dtype.is_numeric():
            numbers = series.cast(pl.Float64)
            # A cell of 32 bits holds the nearest number that such a cell can hold, not the one that was written.
            codes = pl.Series(self.numbers, dtype=pl.Float64)
            if dtype == pl.Float32:
                codes = codes.cast(pl.Float32).cast(pl.Float64)
            found = numbers.is_in(codes.to_list())
            return found | numbers.is_nan() if self.nan else found
        if dtype == pl.Date:
            return series.is_in(list(self.days))
        return pl.repeat(False, series.len(), dtype=pl.Boolean, eager=True)


def missing_numbers(texts: Sequence[str], decimal: str = ".") -> tuple[float, ...]:
    """The numbers among texts that mean no value.

    >>> missing_numbers(("", "NA", "99", "-9,5"), ",")
    (-9.5, 99.0)
    """
    found = set()
    for text in texts:
        try:
            found.add(float(with_point(text.strip(), decimal)) + 0.0)
        except ValueError:
            continue
    return tuple(sorted(value for value in found if value == value))


def no_values(schema: Schema, names: Sequence[str]) -> Mapping[str, NoValue]:
    """What means no value in each of the columns *names* where anything but an empty text does.

    >>> list(no_values(Schema({}, missing_values=("", "NA")), ["age"])), dict(no_values(Schema({}), ["age"]))
    (['age'], {})
    """
    found = {name: NoValue.of(schema.missing_texts(name), schema.decimal) for name in names}
    return {name: one for name, one in found.items() if one.texts}


def blanked(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with nothing in the cells that mean no value.

    >>> blanked(pl.DataFrame({"age": ["31", "NA"]}), Schema({}, missing_values=("", "NA")))["age"].to_list()
    ['31', None]
    """
    changed = []
    for name, none in no_values(schema, frame.columns).items():
        series = frame.get_column(name)
        marks = none.marks(series).fill_null(False)
        if marks.any():
            changed.append(
                series.to_frame().select(pl.when(~marks).then(pl.col(name))).to_series().alias(name)
            )
    return frame.with_columns(changed) if changed else frame
