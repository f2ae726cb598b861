"""damaged_part(): which of many files cannot be read, and where in it, as far as that can be known; never what stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from velado.engines.places import ARROW, PARQUET
from velado.errors import TableError
from velado.text import say

_LINE = re.compile(r"CSV Error on Line: (\d+)$", re.MULTILINE)
_BATCH = 65_536


def damaged_part(message: str, parts: Sequence[tuple[Path, str]]) -> TableError | None:
    """The error that names the damaged file among *parts* (each with what a person calls it); None where all are whole.

    *message* is the engine's own: of it only a path and the number of a line are taken, because it may quote cells. Where it names
    no file, each file of Parquet or Arrow is read once more, piece by piece, up to the first that cannot be.

    >>> text = "CSV Error on Line: 3\\nOriginal Line: Ana;31\\n  file = /lake/b.csv"
    >>> print(damaged_part(text, [(Path("/lake/a.csv"), "a.csv"), (Path("/lake/b.csv"), "b.csv")]))
    Line 3 of 'b.csv' cannot be read. It has too few or too many fields, or a quote is never closed. Correct the file, or set `separator` in [table] of the schema.
    """
    named = sorted((part for part in parts if str(part[0]) in message), key=lambda part: len(str(part[0])))
    for place, called in named[-1:] or parts:
        ending = place.suffix.lower()
        if ending in (*PARQUET, *ARROW):
            rows = _damaged_rows(_parquet_pieces if ending in PARQUET else _arrow_pieces, place)
            if rows is not None or named:
                return _damaged(called, rows)
        elif named and (line := _LINE.search(message)):
            return TableError(
                say("Line {line:,} of '{name}' cannot be read.", line=int(line[1]), name=called),
                "It has too few or too many fields, or a quote is never closed.",
                "Correct the file, or set `separator` in [table] of the schema.",
            )
    return None


def _damaged(name: str, rows: tuple[int, int] | None) -> TableError:
    return TableError(
        say("The rows of '{name}' cannot be read.", name=name)
        if rows is None or rows[1] < rows[0]
        else say(
            "Rows {first:,} to {last:,} of '{name}' cannot be read.", first=rows[0], last=rows[1], name=name
        ),
        "The file is damaged, or a text in it is not UTF-8.",
        "Copy or write the file again, or leave it out.",
    )


def _damaged_rows(pieces: Callable[[Path], Iterator[int]], place: Path) -> tuple[int, int] | None:
    """The first and the last row, from 1 on, of the first piece that cannot be read; 1 and 0 where not even the pieces are known."""
    begun = rows = 0
    try:
        for rows in pieces(place):
            begun += rows
    except (pa.ArrowException, OSError):
        return begun - rows + 1, begun
    return None


def _parquet_pieces(place: Path) -> Iterator[int]:
    """How many rows the next piece has; it is read when the one after it is asked for."""
    file = pq.ParquetFile(place)
    for at in range(file.num_row_groups):
        yield file.metadata.row_group(at).num_rows
        for batch in file.iter_batches(_BATCH, row_groups=[at]):
            batch.validate(full=True)


def _arrow_pieces(place: Path) -> Iterator[int]:
    with pa.memory_map(str(place)) as mapped:
        file = ipc.open_file(mapped)
        for at in range(file.num_record_batches):
            batch = file.get_batch(at)
            yield batch.num_rows
            batch.validate(full=True)
