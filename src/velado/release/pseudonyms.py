"""Pseudonyms: the same identifier gets the same meaningless name in every file, and only the key links them.

A pseudonym is HMAC-SHA-256 of the identifier under a key of its own for each *namespace* (project), cut to 80
bits and written as 16 letters and digits (base32). Without the key nobody can compute it, so nobody can try
all 10^9 valid CPF numbers, as they could with a plain hash. With n different identifiers two of them share a
pseudonym with probability below n^2 / 2^81 (10^7 people: 4 x 10^-11); it is looked for, and refused.

Pseudonyms are not anonymity: rows stay linked, and quasi-identifiers still tell who is who.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from velado.data.keys import Key
from velado.data.normal import normal_of
from velado.data.schema import Schema
from velado.data.table import Table, table_given
from velado.errors import ParameterError, SchemaError, TableError
from velado.settings import checked_argument
from velado.text import say

Normalize = Literal["normal", "trim", "digits", "cpf", "exact"]

_LENGTH = 16
DEFAULT_NAMESPACE = "default"
_CPF_DIGITS = 11
_EXACT_FLOATS = 2.0**53
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", dtype=np.uint8)


def pseudonyms_of(texts: Sequence[str], key: Key, namespace: str = DEFAULT_NAMESPACE) -> list[str]:
    """One pseudonym for each of the distinct *texts*, in order; no two are the same. O(number of texts).

    >>> names = pseudonyms_of(["123", "124"], Key(bytes(range(40))))
    >>> [len(name) for name in names], names[0] == names[1]
    ([16, 16], False)
    """
    if not texts:
        return []
    own = key.within(namespace)
    # The one loop in Python: hashing is per value, and callers hand in distinct values, not rows.
    digests = b"".join(hmac.digest(own, text.encode(), "sha256")[:10] for text in texts)
    bits = np.unpackbits(np.frombuffer(digests, dtype=np.uint8)).reshape(-1, 5)
    symbols = _ALPHABET[bits @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)]
    names: list[str] = symbols.view(f"S{_LENGTH}").astype(f"U{_LENGTH}").tolist()
    if len(set(names)) != len(names):
        raise TableError(
            "Two identifiers got the same pseudonym.",
            "Two people would be taken for one.",
            "Use another namespace or another key.",
        )
    return names


def pseudonymize(
    table: Table,
    columns: Sequence[str],
    key: Key,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    normalize: Normalize | Mapping[str, Normalize] = "normal",
) -> tuple[Table, pl.DataFrame]:
    """The table with every value of *columns* replaced by its pseudonym, and the mapping that undoes it.

    *normalize* says when two spellings are one value: "normal" (the normal form by which velado counts people:
    `P1`, ` p1 ` are one, `7`, `07`, `7.0` too), "trim" (white space around it and the way accents are coded do not
    count), "digits" (only digits count), "cpf" (digits, padded with zeros to eleven), "exact"; for
    all columns or by name. Blanks stay as they are. Roles stay as the schema has them: an identifier is still
    one, and a release drops it until you decide otherwise.

    The mapping has the columns `column`, `original` (as spelled in the table) and `pseudonym`. It names
    everybody: keep it apart, or do not keep it at all.

    >>> from velado.testing.examples import table
    >>> after, mapping = pseudonymize(table(person=["p1", " P1 ", "p2"]), ["person"], Key(bytes(range(40))))
    >>> after.frame["person"].n_unique(), mapping["original"].to_list()
    (2, [' P1 ', 'p1', 'p2'])
    """
    table_given(table)
    ways = _ways(columns, normalize)
    _check_columns(table.schema, columns)
    frame = table.frame
    mappings = []
    for name in columns:
        texts = _texts(table, name)
        values = texts.drop_nulls().unique().sort()
        normal = (
            _as_counted(table, name, values)
            if ways[name] == "normal"
            else _normalized(values, name, ways[name])
        )
        kept = normal.is_not_null()
        values, normal = values.filter(kept), normal.filter(kept)
        distinct = normal.unique().sort()
        names = pl.Series(pseudonyms_of(distinct.to_list(), key, namespace), dtype=pl.String)
        mapping = pl.DataFrame(
            {
                "column": pl.repeat(name, len(values), eager=True, dtype=pl.String),
                "original": values,
                "pseudonym": normal.replace_strict(distinct, names, return_dtype=pl.String),
            }
        )
        mappings.append(mapping)
        # A cell the schema calls missing keeps its text, so that the file is read as before.
        blank = table.is_missing(name)
        cells = frame.get_column(name).cast(pl.String)
        known = texts.replace_strict(
            mapping["original"], mapping["pseudonym"], default=None, return_dtype=pl.String
        )
        frame = frame.with_columns(known.zip_with(~blank, cells).alias(name))
    schema = table.schema.with_columns(
        replace(c, kind="text", taxonomy=None, bounds=None, clamp=False) if c.name in ways else c
        for c in table.schema.columns.values()
    )
    return table.with_frame(frame).with_schema(schema), pl.concat(mappings)


def _ways(columns: Sequence[str], normalize: Normalize | Mapping[str, Normalize]) -> dict[str, str]:
    ways: dict[str, str] = dict.fromkeys(columns, "normal")
    if isinstance(normalize, str):
        ways = dict.fromkeys(columns, normalize)
    else:
        ways.update(normalize)
    foreign = [name for name in ways if name not in columns]
    if not columns or len(set(columns)) != len(columns) or foreign:
        raise ParameterError(
            say("The columns to pseudonymize are none, named twice, or lack '{foreign}'.", foreign=foreign[0])
            if foreign
            else "The columns to pseudonymize are none, or one is named twice.",
            "What is to be replaced must be said once and clearly.",
            "Name each column once, for example --columns cpf,prontuario.",
        )
    for way in ways.values():
        checked_argument("normalize", way, Normalize)
    return ways


def _check_columns(schema: Schema, columns: Sequence[str]) -> None:
    for name in columns:
        if name not in schema.columns:
            raise SchemaError(
                say("There is no column '{name}'.", name=name),
                "What is not there cannot be replaced.",
                "Check the spelling in the header of the table.",
            )
        if schema.columns[name].role in ("quasi", "sensitive"):
            raise SchemaError(
                say(
                    "Column '{name}' is no identifier: its role is \"{role}\".",
                    name=name,
                    role=schema.columns[name].role,
                ),
                "A pseudonym of a value that many share is found out by how often it occurs.",
                'Protect it with `velado anonymize`, or give it role = "identifier".',
            )


def _texts(table: Table, name: str) -> pl.Series:
    """The column as text; whole numbers that came as floats lose the point they never had."""
    series = table.frame.get_column(name)
    if series.dtype.is_float():
        present = series.drop_nulls().drop_nans()
        if not bool(((present == present.floor()) & (present.abs() < _EXACT_FLOATS)).all()):
            raise TableError(
                say("Column '{name}' holds numbers with a fraction, or too large to be exact.", name=name),
                "As identifiers they may have lost digits, and two people would be taken for one.",
                "Read the column as text.",
            )
        series = series.fill_nan(None).cast(pl.Int64).cast(pl.String)
        return series.set(table.is_missing(name), None)
    return table.text(name)


def _as_counted(table: Table, name: str, values: pl.Series) -> pl.Series:
    """The normal form by which people are counted; null where nothing is left of a text."""
    normal = normal_of(table, table.schema.columns[name], values)
    return normal.set(normal == "", None)


def _normalized(values: pl.Series, name: str, way: str) -> pl.Series:
    """Each distinct text as it is hashed; null where nothing but white space is left."""
    if way == "exact":
        return values
    trimmed = values.str.normalize("NFC").str.strip_chars()
    trimmed = trimmed.set(trimmed == "", None)
    if way == "trim":
        return trimmed
    digits = trimmed.str.replace_all(r"[^0-9]", "")
    bad = int(
        ((digits == "") | (digits.str.len_bytes() > _CPF_DIGITS if way == "cpf" else digits == "")).sum()
    )
    if bad:
        raise TableError(
            say("{bad} distinct value(s) of '{name}' do not hold one to eleven digits.", bad=bad, name=name)
            if way == "cpf"
            else say("{bad} distinct value(s) of '{name}' do not hold a digit.", bad=bad, name=name),
            "They would lose what tells them apart, and strangers would share a pseudonym.",
            say(
                "Correct them, list them in missing_values of the schema, or use --normalize {name}=trim.",
                name=name,
            ),
        )
    return digits.str.zfill(_CPF_DIGITS) if way == "cpf" else digits
