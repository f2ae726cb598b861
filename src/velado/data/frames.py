"""Data frames of other libraries: in as Polars, and out again as they came.

A pandas index names rows, so it is an identifier until somebody says otherwise: a level that the schema declares is a
column like any other, every other one is left out. Types come back with the cells they belong to; a list of categories
comes back with those that are in the table alone, for the others are of people who are not.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeGuard

import polars as pl

from velado.data.csv_reading import duplicate_names
from velado.errors import MissingExtra, TableError
from velado.text import say

FrameKind = Literal["polars", "pandas", "arrow"]


@dataclass(frozen=True, repr=False)
class CameAs:
    """The kind of frame a table came as, the types its columns had there, and what became of its index.

    *labels* are pandas' own names of columns where they are no texts, *index* the levels of its index that the schema
    declares, in their order, *unnamed* those that it does not. Types may list categories, so that nothing is shown.

    >>> CameAs("pandas", index=("ward",))
    CameAs('pandas')
    """

    kind: FrameKind = "polars"
    types: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Hashable] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"CameAs({self.kind!r})"


@dataclass(frozen=True, repr=False)
class Arrived:
    """A frame as Polars, how it came, and the levels of its index that nobody declared, if it had any.

    >>> from_native(pl.DataFrame({"age": [31]})).came
    CameAs('polars')
    """

    frame: pl.DataFrame
    came: CameAs
    left_out: pl.DataFrame | None = None


def from_native(native: Any, declared: Collection[str] = ()) -> Arrived:
    """Any eager or lazy data frame (pandas, Polars, Arrow, DuckDB, Modin, ...) as Polars, through narwhals.

    *declared* are the names a schema has: a level of a pandas index that is one of them becomes a column.

    >>> import pandas as pd
    >>> wards = pd.DataFrame({"age": [31, 40]}, index=pd.Index(["a", "b"], name="ward"))
    >>> from_native(wards, ["age", "ward"]).frame.columns, from_native(wards).left_out.columns
    (['ward', 'age'], ['ward'])
    """
    if isinstance(native, pl.DataFrame):
        return Arrived(native, CameAs(types=dict(native.schema)))
    import narwhals as nw

    came, left_out = CameAs(), None
    if nw.dependencies.is_pandas_dataframe(native):
        native, came, left_out = _without_index(native, declared)
    try:
        frame = nw.from_native(native)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="polars")
        names = list(frame.columns)
    except TypeError:
        raise TableError(
            say("An object of type {kind} is neither a path nor a data frame.", kind=type(native).__name__),
            "velado cannot read a table from it.",
            "Pass a file name, or a pandas, Polars, Arrow or DuckDB frame.",
        ) from None
    except nw.exceptions.DuplicateError:
        raise duplicate_names(list(map(str, native.columns))) from None
    if len(set(names)) != len(names):
        raise duplicate_names(names)
    if nw.dependencies.is_pyarrow_table(native):
        came = CameAs("arrow", {each.name: each.type for each in native.schema})
    polars = _polars(frame, native)
    if came.kind == "polars":
        came = CameAs(types=dict(polars.schema))
    return Arrived(polars, came, None if left_out is None else _polars(nw.from_native(left_out), native))


def _polars(frame: Any, native: Any) -> pl.DataFrame:
    try:
        polars: pl.DataFrame = frame.to_polars()
    except Exception as error:  # the libraries below raise a dozen types, and their messages hold cells
        raise TableError(
            say(
                "The {library} frame cannot be converted ({kind}).",
                library=type(native).__module__.split(".")[0],
                kind=type(error).__name__,
            ),
            "A column of it seems to mix values of several types.",
            "Give every column one type, for example text.",
        ) from None
    return polars


def _without_index(native: Any, declared: Collection[str]) -> tuple[Any, CameAs, Any]:
    """A pandas frame whose declared levels are columns, how it came, and its undeclared levels as a frame.

    A plain count of rows, and whole numbers without a name, which filtering or joining frames leaves behind, are no index.
    """
    import pandas as pd

    columns, index = set(map(str, native.columns)), native.index
    counted = index.nlevels == 1 and index.name is None and pd.api.types.is_integer_dtype(index.dtype)
    levels = [] if counted else [str(name) if name is not None else "index" for name in index.names]
    taken = [at for at, name in enumerate(levels) if name in declared and name not in columns]
    kept = tuple(levels[at] for at in taken)
    others = [at for at in range(len(levels)) if at not in taken]
    left_out = None
    if others:
        names = [_free(levels[at], columns | set(kept)) for at in others]
        left_out = pd.DataFrame(
            {name: index.get_level_values(at) for name, at in zip(names, others, strict=True)}
        )
    whole = native.reset_index(drop=True)
    for place, at in enumerate(taken):
        whole.insert(place, levels[at], index.get_level_values(at))
    came = CameAs(
        "pandas",
        {str(name): dtype for name, dtype in zip(whole.columns, whole.dtypes, strict=True)},
        {str(name): name for name in whole.columns if not isinstance(name, str)},
        kept,
        tuple(levels[at] for at in others),
    )
    return whole, came, left_out


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or one beside it that no column has."""
    while name in taken:
        name += "_"
    return name


def to_frame(frame: pl.DataFrame, like: str = "polars") -> Any:
    """The frame as "polars", "pandas" or "arrow".

    >>> to_frame(pl.DataFrame({"age": [31]}), "arrow").num_rows
    1
    """
    if like == "polars":
        return frame
    if like == "pandas":
        return _to_pandas(frame, CameAs(), ())
    if like == "arrow":
        return frame.to_arrow()
    raise TableError(
        say("'{like}' is no known kind of frame.", like=like),
        "velado gives polars, pandas or arrow.",
        "Name one of them.",
    )


def to_native(frame: pl.DataFrame, came: CameAs, unchanged: Collection[str] = ()) -> Any:
    """The frame in the kind it came as; columns whose cells are *unchanged* have the types they came with.

    A pandas frame has the declared levels of its index, as far as they are among the columns, and else a plain count.

    >>> import pandas as pd
    >>> ages = from_native(pd.DataFrame({"age": pd.array([31, None], dtype="Int64")}))
    >>> to_native(ages.frame, ages.came, ["age"])["age"].dtype
    Int64Dtype()
    """
    if came.kind == "pandas":
        return _to_pandas(frame, came, unchanged)
    if came.kind == "arrow":
        return _to_arrow(frame, came, unchanged)
    cast = {n: _present(frame[n], t) for n, t in came.types.items() if n in unchanged and n in frame.columns}
    return frame.cast({name: dtype for name, dtype in cast.items() if dtype != frame.schema[name]})


def _present(series: pl.Series, dtype: Any) -> Any:
    """A Polars type, an Enum with the categories that are in the column alone."""
    if not isinstance(dtype, pl.Enum):
        return dtype
    found = set(series.cast(pl.String).drop_nulls())
    return pl.Enum([name for name in dtype.categories if name in found])


def _to_arrow(frame: pl.DataFrame, came: CameAs, unchanged: Collection[str]) -> Any:
    import pyarrow as pa

    table = frame.to_arrow()
    for at, name in enumerate(frame.columns):
        dtype = came.types.get(name) if name in unchanged else None
        if dtype is None or dtype == table.schema.field(name).type:
            continue
        if pa.types.is_dictionary(dtype):
            # Sorted, for categories in the order of their first row would tell something of the order of rows.
            words = pa.array(sorted(set(frame[name].cast(pl.String).drop_nulls())), dtype.value_type)
            places = pa.compute.index_in(table.column(at).cast(words.type), words).cast(dtype.index_type)
            chunks = [
                pa.DictionaryArray.from_arrays(part, words, ordered=dtype.ordered) for part in places.chunks
            ]
            column = pa.chunked_array(chunks, dtype)
        else:
            column = table.column(at).cast(dtype)
        table = table.set_column(at, pa.field(name, column.type), column)
    return table


def _to_pandas(frame: pl.DataFrame, came: CameAs, unchanged: Collection[str]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra(
            say("The library {library} is not installed.", library="pandas"),
            "A pandas frame was asked for.",
            "Install pandas, or take the table as Polars or Arrow.",
        ) from None
    columns = {
        name: _pandas_column(frame[name], came.types.get(name) if name in unchanged else None)
        for name in frame.columns
    }
    out = pd.DataFrame(columns, index=pd.RangeIndex(frame.height))
    levels = [name for name in came.index if name in frame.columns]
    if levels:
        out = out.set_index(levels)
    return out.rename(columns=dict(came.labels)) if came.labels else out


def _pandas_column(series: pl.Series, dtype: Any) -> Any:
    """One column with the pandas type *dtype*, or, without one, with the type that holds its values as they are."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        found = set(series.cast(pl.String).drop_nulls())
        listed = [word for word in dtype.categories if str(word) in found]
        # The order of categories that have none may be that of their first rows.
        listed = listed if dtype.ordered else sorted(listed)
        word_of = {str(word): word for word in listed}
        texts = series.cast(pl.String).to_list()
        cells = [None if text is None else word_of[text] for text in texts]
        return pd.Categorical(cells, categories=listed, ordered=dtype.ordered)
    if pd.api.types.is_object_dtype(dtype) and series.dtype != pl.String:
        return pd.Series(series.to_list(), dtype=object)
    blanks = series.null_count() > 0
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "__from_arrow__"):
        mapped = dtype
    elif blanks and series.dtype.is_integer():
        # NaN is a float: whole numbers beyond 2**53 would not come back as they were.
        mapped = pd.Int64Dtype() if series.dtype.is_signed_integer() else pd.UInt64Dtype()
    elif blanks and series.dtype == pl.Boolean:
        mapped = pd.BooleanDtype()
    else:
        natural = series.to_pandas()
        return natural if dtype is None or natural.dtype == dtype else natural.astype(dtype)
    return series.to_arrow().to_pandas(types_mapper=lambda _: mapped)


class SparkFrame(Protocol):
    """What tells a Spark data frame from every other frame.

    >>> SparkFrame.__name__
    'SparkFrame'
    """

    @property
    def sparkSession(self) -> Any:
        """The session that it belongs to."""
        ...


def is_spark_frame(source: object) -> TypeGuard[SparkFrame]:
    """Whether it is a Spark data frame; pyspark is not imported for the question.

    >>> is_spark_frame([1])
    False
    """
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
