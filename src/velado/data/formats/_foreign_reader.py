"""A program of its own that turns a spreadsheet or a file of SPSS, Stata or SAS into an Arrow stream.

    python _foreign_reader.py FORMAT [SHEET] < file > answer

The libraries that read these formats end the whole process on some damaged files, or print cells while they fail.
So `velado.data.formats.foreign` runs them apart: with a limit on memory, without standard error, and with nothing of
velado's in reach. The answer is one line of JSON and, where there is a table, its columns `c0`, `c1`, ... as an
Arrow stream. The line has "header" (the columns' names), or "problem" (why there is no table) and perhaps "sheets".
"""

import io
import json
import sys
from typing import Any

import polars as pl

_READERS = {name: f"read_{name}" for name in ("sav", "por", "dta", "sas7bdat")} | {"xpt": "read_xport"}
_MEMORY, _PER_BYTE = 8 << 30, 200


def main() -> None:
    """The file on standard input is answered on standard output."""
    data = sys.stdin.buffer.read()
    _limit_memory(len(data))
    format, sheet = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else None)
    try:
        line, frame = _statistics(data, format) if format in _READERS else _spreadsheet(data, sheet)
        body = io.BytesIO()
        if frame is not None:
            # Equal names are the caller's to refuse; numbers in their place are never equal.
            frame.columns = [f"c{number}" for number in range(frame.width)]
            frame.write_ipc_stream(body, compat_level=pl.CompatLevel.oldest())
    except Exception:  # what the libraries say may hold cells
        line, body = {"problem": "damaged"}, io.BytesIO()
    out = sys.stdout.buffer
    out.write(json.dumps(line).encode() + b"\n")
    out.write(body.getbuffer())
    out.flush()


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    wanted = _MEMORY + _PER_BYTE * size
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or wanted < most:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def _statistics(data: bytes, format: str) -> tuple[dict[str, str | list[str]], Any]:
    import pyreadstat

    # Codes stay codes: their labels are in the file too, but two codes may share one.
    frame, _ = getattr(pyreadstat, _READERS[format])(io.BytesIO(data), output_format="polars")
    return {"header": frame.columns}, _whole_numbers(frame)


def _spreadsheet(data: bytes, sheet: str | None) -> tuple[dict[str, str | list[str]], Any]:
    import fastexcel

    book = fastexcel.read_excel(data)
    names = [str(one) for one in book.sheet_names]
    if sheet is not None and sheet not in names:
        return {"problem": "no such sheet", "sheets": names}, None
    filled = [sheet] if sheet is not None else names
    if len(filled) > 1:
        filled = [
            one for one in names if book.load_sheet(one, header_row=None, n_rows=2, dtypes="string").height
        ]
    if len(filled) > 1:
        return {"problem": "several sheets", "sheets": filled}, None
    # Every cell of the first row as text: the library would rename equal and blank names.
    first = (
        book.load_sheet(filled[0], header_row=None, n_rows=1, dtypes="string").to_polars() if filled else None
    )
    if first is None or not first.height:
        return {"problem": "no rows"}, None
    header = ["" if cell is None else str(cell) for cell in first.row(0)]
    while header and not header[-1].strip():
        header.pop()  # cells that were formatted but never written to
    # All rows decide a column's type: by default the first thousand do, and what differs later is made blank.
    frame = book.load_sheet(
        filled[0], header_row=0, schema_sample_rows=None, use_columns=list(range(len(header)))
    ).to_polars()
    # A row without any cell is nobody; spreadsheets keep such rows where something once stood.
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if not frame.height:
        return {"problem": "no rows"}, None
    return {"header": header}, _whole_numbers(_days(frame))


def _whole_numbers(frame: Any) -> Any:
    """Columns of numbers that are all whole become whole numbers: these formats know no others, and `7` is not `7.0`."""
    floats = [name for name, kind in frame.schema.items() if kind in (pl.Float32, pl.Float64)]
    out = frame.with_columns(pl.col(name).fill_nan(None) for name in floats) if floats else frame
    whole = [
        name
        for name in floats
        if bool(((out[name] == out[name].round(0)) & (out[name].abs() < 2**53)).all()) and out[name].count()
    ]
    return out.with_columns(out[name].cast(pl.Int64) for name in whole) if whole else out


def _days(frame: Any) -> Any:
    """Columns of times that are all midnight become dates: a spreadsheet knows no others."""
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    days = [
        name for name in times if bool((frame[name].dt.date().cast(frame.schema[name]) == frame[name]).all())
    ]
    return frame.with_columns(pl.col(name).dt.date() for name in days) if days else frame


if __name__ == "__main__":
    main()
