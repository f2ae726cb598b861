"""The cells of a small, plain CSV, cut without Polars, for who needs columns of numbers and no table. Pure: bytes in, texts out.

Polars is a third of what starting a process costs, which fifty parties on one machine pay fifty times. So a text without quotes, whose
shape `csv_reading` finds sound, is cut at its separators here. Everything else, and everything that is to be refused, is left to
`velado.data.io`, the one door, which says why. Both give the same cells.
"""

from __future__ import annotations

import re

from velado.data.csv_reading import check_header, header_of, ragged_rows
from velado.errors import TableError

LARGEST_PLAIN = 1 << 20
"""Bytes; beyond them Polars is the quicker and smaller way."""

# A letter first: no format of `velado.data.formats` begins so with two names of such letters behind.
_NAME = re.compile(r"[^\W\d_][\w .()-]*")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain_columns(data: bytes, name: str) -> dict[str, list[str | None]] | None:
    """Every column of a CSV without quotes, in UTF-8, every line as long as its header; None for any other. O(bytes).

    >>> plain_columns(b"a;b\\n1;\\n", "t.csv"), plain_columns(b'a,b\\n"1",2\\n', "t.csv")
    ({'a': ['1'], 'b': [None]}, None)
    """
    breaks = data.count(b"\r")
    if len(data) > LARGEST_PLAIN or b'"' in data or _CONTROL.search(data):
        return None
    if breaks and not breaks == data.count(b"\r\n") == data.count(b"\n"):
        return None
    data = data.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n"
    try:
        lines = data.decode("utf-8").split("\n")[:-1]
        header, separator = header_of(data, name, None)
        check_header(header, name)
        shape = ragged_rows(data, separator, len(header))
    except (UnicodeDecodeError, TableError):
        return None
    wrong = shape.short + shape.long + shape.blank
    if wrong or len(header) < 2 or len(lines) < 2 or not all(map(_NAME.fullmatch, header)):
        return None
    # One split of everything: lines are equally long, so that a column is every n-th cell.
    cells = separator.join(lines[1:]).split(separator)
    return {one: [cell or None for cell in cells[at :: len(header)]] for at, one in enumerate(header)}
