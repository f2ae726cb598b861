"""The order in which a method sees rows where it may learn nothing from it: by their quasi-identifiers, equal rows by lot.

A file is often sorted by what is sensitive, and a method that takes the first of several rows that are equally near makes groups
out of that order: of six people in a file sorted by diagnosis, who knows the method and the ages can be certain of all values,
however groups were made "from quasi-identifiers alone". Sorted by these, groups are a function of them; which of several equal
rows goes where is drawn, so that it is a function of nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.keys import content_of, owner_key
from velado.data.partition import IntArray, Partition
from velado.data.published_column import PublishedColumn
from velado.release.prepare import Prepared
from velado.release.recoded import Recoded


def by_quasi(data: EncodedTable, lots: npt.NDArray[np.integer[Any]]) -> IntArray:
    """The rows (or tuples) of *data* in the order of their codes, equal ones in that of their *lots*. O(n log n).

    >>> from velado.testing.examples import encoded
    >>> by_quasi(encoded(age=[30, 20, 30]), np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    order: IntArray = np.lexsort((lots, *(column.codes for column in reversed(data.columns))))
    return order


def lots_of(prepared: Prepared, rows: int) -> npt.NDArray[np.uint64]:
    """A number for each of *rows* rows, drawn under the owner's key from what the table holds.

    >>> from velado.testing.examples import small_release
    >>> lots_of(small_release().release.prepared, 8).size
    8
    """
    key = owner_key(prepared.key)
    return key.draws("order of equal rows", content_of(prepared.used.frame)).words(rows)


def put_back(recoded: Recoded, order: IntArray) -> Recoded:
    """What was made of rows in *order*, for the rows as they stand.

    >>> made = Recoded((), np.array([True, False, False]))
    >>> put_back(made, np.array([2, 0, 1])).kept.tolist()
    [False, False, True]
    """
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    publish, before = recoded.regrouped, recoded.before

    def regrouped(groups: Partition) -> tuple[PublishedColumn, ...]:
        assert publish is not None
        made = Recoded(publish(Partition.of(groups.labels[order])), groups.kept[order])
        return made.of_rows(places).columns

    return replace(
        recoded.of_rows(places),
        regrouped=None if publish is None else regrouped,
        before=None if before is None else put_back(before, order),
    )
