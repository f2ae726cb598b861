"""A release of eight invented rows, for examples and tests that need one at hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.study.run import Published, publish


@cache
def small_release() -> Published:
    """Ages and illnesses of eight people by Mondrian with k = 2; the folder it was written to is gone again.

    >>> small_release().release
    Release(8 rows by mondrian; k-anonymity: needs 2 rows, the weakest group has 2; holds.)
    """
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51], "illness": [*"abcabcab"]})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "illness": {"role": "sensitive"}}
    schema = Schema.from_dict({"columns": columns})
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        return publish(frame, schema, "mondrian", k=2, out=out, key=Key(bytes(range(40))))
