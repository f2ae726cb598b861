"""Parquet and Arrow, by Arrow's own reader: it checks what it reads, where Polars' ends the process on damaged files."""

from __future__ import annotations

import polars as pl

from velado.data.csv_reading import duplicate_names
from velado.data.formats._format import FileBytes, FileFormat, Wanted
from velado.errors import TableError
from velado.text import say


def read_columns(format: FileFormat, data: bytes, name: str, wanted: Wanted) -> pl.DataFrame:
    """The frame in a Parquet or Arrow file; its names are all different, its dates within the calendar.

    >>> import io
    >>> pl.DataFrame({"age": [31]}).write_parquet(file := io.BytesIO())
    >>> read_columns(FORMATS[0], file.getvalue(), "t.parquet", Wanted()).rows()
    [(31,)]
    """
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    source = pa.BufferReader(data)
    if format.name == "parquet":
        table = pyarrow.parquet.ParquetFile(source).read()
    else:
        opened = pyarrow.ipc.open_file if format.name == "arrow" else pyarrow.ipc.open_stream
        table = opened(source, options=pyarrow.ipc.IpcReadOptions(use_threads=False)).read_all()
    table.validate(full=True)
    names = [field.name for field in table.schema]  # raises for names that are no UTF-8
    if len(set(names)) != len(names):
        raise duplicate_names(names)
    frame = pl.from_arrow(table.replace_schema_metadata(None))
    assert isinstance(frame, pl.DataFrame)
    return frame


# Days since 1970 of the first of January 1 and the last of December 9999.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


def refuse_far_dates(frame: pl.DataFrame, name: str) -> None:
    """Every date lies in the years 1 to 9999; one far outside is damage, and Polars ends the process writing it.

    >>> import datetime
    >>> refuse_far_dates(pl.DataFrame({"day": [datetime.date(2024, 2, 29)]}), "rows.parquet")
    """
    for series in frame.get_columns():
        if series.dtype == pl.Date:
            days = series.to_physical()
        elif isinstance(series.dtype, pl.Datetime):
            day = 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[series.dtype.time_unit]
            days = series.to_physical() // day
        else:
            continue
        if not bool(days.is_between(_FIRST_DAY, _LAST_DAY).all()):
            raise TableError(
                say(
                    "Column '{series}' of '{name}' has a date outside the years 1 to 9999.",
                    series=series.name,
                    name=name,
                ),
                "It is no date of a person, and may mean a damaged file.",
                "Correct the column, or export the file anew.",
            )


def _is_stream(file: FileBytes) -> bool:
    return 0 < int.from_bytes(file.data[4:8], "little") < 1 << 28


STREAM = FileFormat(
    name="arrow stream",
    call=say("an Arrow stream"),
    begins=(b"\xff" * 4,),
    looks=_is_stream,
    read=read_columns,
)
FORMATS = (
    FileFormat(
        name="parquet",
        call=say("a Parquet file"),
        begins=(b"PAR1",),
        wordy=True,
        endings=("parquet", "pq"),
        read=read_columns,
    ),
    FileFormat(
        name="arrow",
        call=say("an Arrow file"),
        begins=(b"ARROW1\x00\x00",),
        endings=("arrow", "ipc", "feather"),
        read=read_columns,
    ),
    STREAM,
)
