"""Small tables with everything that an engine could read otherwise, and how one becomes a Spark data frame."""

import datetime as dt
import decimal

import numpy as np
import polars as pl
import pyarrow as pa

# Composed and decomposed letters, blanks of every kind, case, an invisible sign, quotes, a line break, a number as text.
NASTY = [
    "F",
    "f",
    "M ",
    " M",
    "é",
    "e\u0301",
    "a\u00a0b",
    "a b",
    "x\u200b",
    "İ",
    'say "no"',
    "two\nlines",
    "07",
    "",
    "NA",
    None,
]
PLAIN = ["F", "M", None]


def drawn_table(seed: int, rows: int) -> pl.DataFrame:
    """Numbers, nasty texts, dates, moments, decimals and people, with nulls; half of the rows may share one tuple."""
    rng = np.random.default_rng(seed)
    base = dt.date(1950, 1, 1)
    skew = rng.random(rows) < (0.5 if seed % 2 else 0.0)

    def cells(values: list[object]) -> list[object]:
        return [
            values[0] if same else values[at]
            for same, at in zip(skew, rng.integers(0, len(values), rows), strict=True)
        ]

    return pl.DataFrame(
        {
            "age": pl.Series(cells([*range(20, 60), None]), dtype=pl.Int32),
            "sex": pl.Series(cells(NASTY if seed % 3 else PLAIN), dtype=pl.String),
            "born": pl.Series(cells([base + dt.timedelta(days=90 * at) for at in range(20)]), dtype=pl.Date),
            "dose": pl.Series(cells([decimal.Decimal(at) / 4 for at in range(12)]), dtype=pl.Decimal(8, 2)),
            "height": pl.Series(cells([1.5, 1.625, -0.0, 0.0, 1.75, None]), dtype=pl.Float64),
            "illness": pl.Series(cells(["flu", "cold", "Cold", "measles"]), dtype=pl.String),
            "seen": pl.Series(
                cells([dt.datetime(2020, 1, at, 3, 4, 5, 600) for at in range(1, 9)]), dtype=pl.Datetime("us")
            ),
            "patient": pl.Series([f"p{at}" for at in rng.integers(0, rows * 2 // 3, rows)], dtype=pl.String),
        }
    )


def declared(**more: dict[str, object]) -> dict[str, dict[str, dict[str, object]]]:
    """The schema of a drawn table."""
    columns: dict[str, dict[str, object]] = {
        "age": {"role": "quasi", "kind": "numeric"},
        "sex": {"role": "quasi"},
        "born": {"role": "quasi", "kind": "date"},
        "dose": {"role": "quasi", "kind": "numeric"},
        "height": {"role": "quasi", "kind": "numeric"},
        "illness": {"role": "sensitive"},
        "seen": {"role": "other", "kind": "date", "side_door": "accept"},
        "patient": {"role": "identifier", "person": True},
    }
    return {"columns": {name: column | more.get(name, {}) for name, column in columns.items()}}


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """The frame as Arrow with plain texts, as every engine reads them."""
    table = frame.to_arrow()
    plain = [
        pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type) for f in table.schema
    ]
    return table.cast(pa.schema(plain))


def as_spark(session, frame: pl.DataFrame, parts: int = 2):
    """The frame in Spark, in so many parts."""
    from pyspark.sql import types as T

    table = as_arrow(frame)
    kinds = {
        pa.int32(): T.IntegerType(),
        pa.int64(): T.LongType(),
        pa.string(): T.StringType(),
        pa.date32(): T.DateType(),
        pa.float64(): T.DoubleType(),
        pa.timestamp("us"): T.TimestampNTZType(),
        pa.decimal128(8, 2): T.DecimalType(8, 2),
    }
    schema = T.StructType([T.StructField(f.name, kinds[f.type]) for f in table.schema])
    return session.createDataFrame(table, schema).repartition(parts)


def multiset(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    """The rows of a published table as texts, in no order of their own."""
    return sorted(frame.cast(pl.String).rows(), key=repr)
