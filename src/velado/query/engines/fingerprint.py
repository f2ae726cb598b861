"""Which content an answer was computed from: SHA-256 over cells or bytes, with the schema and unit they are read by."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl

from velado.data.schema import Schema
from velado.query.unit import Unit

_BLOCK = 1 << 16


def of_frame(frame: pl.DataFrame, schema: Schema, unit: Unit) -> str:
    """Equal for equal cells in equal order, however the frame is chunked or was made. O(bytes)."""
    digest = _start(schema, unit)
    for series in frame.get_columns():
        missing = series.is_null()
        digest.update(json.dumps([series.name, str(series.dtype), series.len()]).encode())
        digest.update(np.packbits(missing.to_numpy()).tobytes())
        if series.dtype.is_integer() or series.dtype.is_float():
            digest.update(np.ascontiguousarray(series.fill_null(0).to_numpy()).tobytes())
        else:
            texts = series.cast(pl.String).fill_null("")
            # Lengths keep ("ab", "c") apart from ("a", "bc").
            digest.update(texts.str.len_bytes().to_numpy().astype("<u8").tobytes())
            for start in range(0, texts.len(), _BLOCK):
                digest.update("".join(texts.slice(start, _BLOCK).to_list()).encode())
    return digest.hexdigest()


def of_file(path: Path, schema: Schema, unit: Unit) -> str:
    """Equal for equal bytes."""
    digest = _start(schema, unit)
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def of_text(text: str, schema: Schema, unit: Unit) -> str:
    """Equal for an equal text that stands for the content: a declared version, or an aggregate of it."""
    digest = _start(schema, unit)
    digest.update(text.encode())
    return digest.hexdigest()


def _start(schema: Schema, unit: Unit) -> hashlib._Hash:
    how = {"schema": schema.to_dict(), "unit": [unit.column, unit.rows, str(unit.dependence)]}
    return hashlib.sha256(json.dumps(how, sort_keys=True).encode() + b"\0")
