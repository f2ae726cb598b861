"""Regrouping by what a reader of the published table sees: the visible values, and both readings of blanks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.encoded import count_matches
from velado.data.partition import Partition
from velado.data.taxonomy import ROOT_LABEL


def visible_codes(frame: pl.DataFrame, names: Sequence[str]) -> tuple[list[npt.NDArray[np.int32]], list[int]]:
    """Per column, equal visible texts as equal codes; code 0 is a blank.

    >>> visible_codes(pl.DataFrame({"sex": ["F", None, "M"]}), ["sex"])
    ([array([1, 0, 2], dtype=int32)], [3])
    """
    coded = [text_codes(frame.get_column(name).cast(pl.String)) for name in names]
    return [codes for codes, _ in coded], [size for _, size in coded]


def visible_groups(frame: pl.DataFrame, names: Sequence[str]) -> Partition:
    """Rows whose columns *names* show the same texts form a group; a blank is a value of its own.

    >>> visible_groups(pl.DataFrame({"sex": ["F", "M", "F"]}), ["sex"]).sizes
    array([2, 1])
    """
    if not names:
        return Partition(np.zeros(frame.height, dtype=np.int32), 1 if frame.height else 0)
    codes, sizes = visible_codes(frame, names)
    return Partition.by_codes(codes, sizes)


def wildcard_sizes(frame: pl.DataFrame, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """For each row, how many rows could be the same person when blanks and `*` match anything.

    Two rows agree when every column is equal or blank (or `*`) in at least one of them. Exact: distinct
    visible tuples are split by their pattern of blanks, and each pair of patterns is matched on the columns
    both show. O(P G) for P patterns and G distinct tuples, never n x n.

    >>> wildcard_sizes(pl.DataFrame({"sex": ["F", "M", "*"]}), ["sex"])
    array([2, 2, 3])
    """
    if frame.height == 0:
        return np.zeros(0, dtype=np.int64)
    columns = [
        pl.when(pl.col(name).cast(pl.String) == ROOT_LABEL)
        .then(None)
        .otherwise(pl.col(name).cast(pl.String))
        .alias(name)
        for name in names
    ]
    codes, sizes = visible_codes(frame.select(columns), names)
    groups = Partition.by_codes(codes, sizes)
    order, starts = groups.members()
    example = order[starts]
    tuples = np.stack([column[example] for column in codes], axis=1)
    patterns, pattern_of = np.unique(tuples == 0, axis=0, return_inverse=True)
    if len(patterns) == 1 and not patterns.any():
        return groups.sizes[groups.labels]
    pattern_of = pattern_of.reshape(-1)
    by_pattern = np.argsort(pattern_of, kind="stable")
    begins = np.concatenate(([0], np.cumsum(np.bincount(pattern_of, minlength=len(patterns))))).astype(
        np.int64
    )
    out = np.empty(groups.count, dtype=np.int64)
    out[by_pattern] = count_matches(
        np.ascontiguousarray(tuples[by_pattern]), groups.sizes[by_pattern], patterns, begins
    )
    return out[groups.labels]
