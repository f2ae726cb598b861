"""Rows <-> counted entries: the distinct tuples of quasi-identifiers with the number of rows behind each, and back.

What methods need of rows is these tuples: a method that never parts equal rows gives on the tuples the very groups that it
gives on the rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from velado.data.encoded import EncodedTable
from velado.data.partition import CodedValues, Int32Array, Int64Array, IntArray, ValueEntries
from velado.errors import ParameterError
from velado.text import say

MOST_EXPANDED = 2_000_000
"""So many rows at most are made from counted entries for a method that needs rows."""


def compressed(data: EncodedTable, values: bool = True) -> tuple[EncodedTable, Int32Array]:
    """The distinct tuples of *data* with counts, in order of their codes, and the entry of each row. O(n log n).

    The entries of *data* may be counted already; those with the same codes become one. Without *values* people and
    sensitive values are left out.

    >>> from velado.testing.examples import encoded
    >>> tuples, entry_of_row = compressed(encoded(age=[31, 35, 31]))
    >>> tuples.counts, entry_of_row
    (array([2, 1]), array([0, 1, 0], dtype=int32))
    """
    entry_of_row, count = data.classes.labels, data.classes.count
    example = np.zeros(count, dtype=np.int64)
    example[entry_of_row[::-1]] = np.arange(entry_of_row.size - 1, -1, -1)
    people, sensitive = listed(data, entry_of_row) if values else (None, None)
    made = EncodedTable(
        # Which rows' numbers were moved onto a bound is a matter of rows, and of measures alone.
        columns=tuple(replace(c, codes=c.codes[example], moved=None) for c in data.columns),
        rows=count,
        people=people,
        sensitive=None if data.sensitive is None else sensitive,
        shapes=data.shapes,
        population=data.population,
        counts=data.classes.sizes,
    )
    return made, entry_of_row


def listed(
    data: EncodedTable, label_of_entry: IntArray
) -> tuple[ValueEntries | None, dict[str, ValueEntries]]:
    """The people and the sensitive values of *data*, listed for the new entries ``label_of_entry``.

    >>> from velado.testing.examples import four_encoded
    >>> listed(four_encoded(), np.array([0, 1, 0, 1]))[1]["ill"].counts
    array([2, 2])
    """
    people = data.people
    if people is not None:
        coded = people if isinstance(people, ValueEntries) else (people, int(people.max(initial=0)) + 1)
        people = ValueEntries.regrouped(coded, label_of_entry, data.counts)
    return people, {
        name: ValueEntries.regrouped(values, label_of_entry, data.counts)
        for name, values in (data.sensitive or {}).items()
    }


def refuse_counted(data: EncodedTable) -> None:
    """Nothing, where the entries of *data* are rows; else a ValueError: whoever runs the method has to expand them.

    >>> from velado.testing.examples import encoded
    >>> refuse_counted(encoded(age=[31, 35, 31]))
    """
    if data.counts is not None:
        raise ValueError(
            "this method needs rows, and the entries of the table stand for several: expand them"
        )


def expanded(data: EncodedTable, most: int = MOST_EXPANDED) -> tuple[EncodedTable, Int64Array]:
    """A row for each row behind the entries of *data*, entry after entry, and the entry of each; or a ParameterError.

    What one entry's rows hold is known column by column, not together: values and people are dealt out in the order of
    their codes. Counts of groups of whole entries do not depend on it.

    >>> from velado.testing.examples import encoded
    >>> expanded(compressed(encoded(age=[31, 35, 31]))[0])[0].columns[0].codes
    array([0, 0, 1], dtype=int32)
    """
    if data.counts is None:
        return data, np.arange(data.rows)
    if data.total > most:
        raise ParameterError(
            say(
                "The method needs every row by itself, and the table has {rows:,} rows; up to {most:,} are taken.",
                rows=data.total,
                most=most,
            ),
            "It tells rows with the same values apart, so counting them does not do.",
            "Use a method that works on counted rows: mondrian (with strict cuts), top-down-greedy, full-domain or das.",
        )
    entry_of_row = np.repeat(np.arange(data.rows), data.counts)

    def dealt(values: CodedValues | ValueEntries) -> CodedValues:
        if isinstance(values, ValueEntries):
            return np.repeat(values.codes, values.counts), values.size
        return values[0][entry_of_row], values[1]

    people = data.people
    made = replace(
        data,
        columns=tuple(column.rows(entry_of_row) for column in data.columns),
        rows=data.total,
        people=None
        if people is None
        else dealt((people, 0) if not isinstance(people, ValueEntries) else people)[0],
        sensitive=None
        if data.sensitive is None
        else {name: dealt(values) for name, values in data.sensitive.items()},
        counts=None,
    )
    return made, entry_of_row
