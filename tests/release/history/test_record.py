"""Counts of a release are read from its entry a piece at a time, and are those that stand there."""

import numpy as np
import pytest

from velado.data.history_file import HistoryEntry
from velado.release.history import record
from velado.release.history.candidates import Histogram
from velado.release.history.record import StoredCounts


@pytest.mark.parametrize("sorted_by_group", [True, False])
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_counts_that_are_read_in_pieces_are_those_of_the_whole(
    sorted_by_group: bool, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_PIECE", piece)
    drawn = np.random.default_rng(0)
    for size in (0, 1, 20):
        group = drawn.integers(0, 9, size).astype(np.int32)
        group = np.sort(group) if sorted_by_group else group
        value, count = (
            drawn.integers(0, 4, size).astype(np.int32),
            drawn.integers(1, 70_000, size).astype(np.int32),
        )
        body = b"head" + np.stack([group, value, count]).astype("<i4").tobytes()
        numbers = np.array([2, 0, 3, 1], np.int32)
        stored = StoredCounts(HistoryEntry({}, body, ""), 4, size, numbers)
        for one, other in zip(
            stored.by_group(12), Histogram(group, numbers[value], count).by_group(12), strict=True
        ):
            assert one.tolist() == other.tolist() and one.dtype == other.dtype
