"""A population beside the table: whom each published group could be, for k-map and delta-presence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.formulas import bare_names
from velado.data.io import read_table
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError
from velado.release.recoded import Recoded
from velado.text import say_n


def match_published(
    data: EncodedTable, recoded: Recoded, groups: Partition
) -> tuple[npt.NDArray[np.int64], int]:
    """The people of the population each visible group could be: those its published covers include.

    >>> from velado.data.encode import encode
    >>> from velado.release.recoders import Cover
    >>> from velado.testing.examples import table
    >>> data, groups = encode(table(age=[20, 30]), table(age=[20, 25, 30, 60])), Partition.of(np.array([0, 0]))
    >>> match_published(data, Recoded(Cover().publish(data, groups), groups.kept), groups)
    (array([3]), 1)
    """
    if not all(column.states_cover for column in recoded.columns):
        raise ParameterError(
            "A population can only be matched with published values that state what they cover.",
            "A mean or a most common value does not say whom it could be.",
            "Use the recoder cover.",
        )
    kept = recoded.kept
    low = [groups.least_and_greatest(c.low[c.codes][kept])[0] for c in recoded.columns]
    high = [groups.least_and_greatest(c.high[c.codes][kept])[1] for c in recoded.columns]
    return data.matching(low, high)


def read_plain(source: Any, schema: Schema, encoding: str | None = None) -> Table:
    """A further file of the same study: written as *schema* says files are, its columns without a meaning.

    A name that a release escaped because a spreadsheet would run it is read as the schema has it.

    >>> import polars as pl
    >>> read_plain(pl.DataFrame({"age": ["[20..30]"]}), Schema({})).frame["age"].to_list()
    ['[20..30]']
    """
    known = tuple(schema.columns)
    table = read_table(source, replace(schema, columns={}), "keep", encoding, known=known)
    escaped = bare_names(table.frame.columns, known)
    if not escaped:
        return table
    columns = {escaped.get(name, name): column for name, column in table.schema.columns.items()}
    return replace(
        table,
        frame=table.frame.rename(escaped),
        schema=replace(table.schema, columns={n: replace(c, name=n) for n, c in columns.items()}),
    )


def population_table(source: Any, schema: Schema) -> Table:
    """The quasi-identifiers of a population, read with the meaning *schema* gives them.

    >>> import polars as pl
    >>> from velado.testing.examples import table
    >>> everyone = pl.DataFrame({"age": [20, 25], "job": ["a", "b"]})
    >>> population_table(everyone, table(age=[20, 25]).schema).frame.columns
    ['age']
    """
    raw = read_plain(source, schema)
    quasi = [column for column in schema.quasi if column.name in raw.frame.columns]
    frame = raw.frame.select([column.name for column in quasi])
    if len(quasi) < len(schema.quasi):
        absent = [column.name for column in schema.quasi if column.name not in frame.columns]
        raise SchemaError(
            say_n(
                "The population lacks the quasi-identifier {absent}.",
                "The population lacks the quasi-identifiers {absent}.",
                len(absent),
                absent=", ".join(absent[:5]),
            ),
            "Its people are compared with the table in every one of them.",
            "Give a population table with the same columns.",
        )
    own = schema.with_columns(quasi)
    return Table.of(frame, own, raw.source, raw.fingerprint, separator=raw.separator).blanked()
