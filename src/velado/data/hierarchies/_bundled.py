"""The lists that come with the package, read from the files beside this one when they are first asked for."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def rows_of(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a list; lines that begin with `#` say where it comes from.

    >>> rows_of("municipalities.csv")[0]
    ('1100015', "Alta Floresta d'Oeste")
    """
    lines = (_HERE / name).read_text("utf-8").splitlines()
    return tuple(tuple(row) for row in csv.reader(line for line in lines if not line.startswith("#")))
