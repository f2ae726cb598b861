"""The counting kernels give what sorting gives."""

import numpy as np
import pytest

from velado.data.partition import Partition, group_by_codes
from velado.data.tallies import by_label, crowds_met, pair_counts, ranked_keys, squares_met


@pytest.mark.parametrize("space", [1, 3, 2048, 2049, 10**6, 1 << 40, 1 << 62])
def test_ranks_are_those_of_sorted_keys(space: int) -> None:
    keys = np.random.default_rng(0).integers(0, space, 5000)
    distinct, wanted = np.unique(keys, return_inverse=True)
    ranks, count = ranked_keys(keys, space)
    assert count == distinct.size
    assert np.array_equal(ranks, wanted)


def test_many_rows_are_grouped_as_few_are() -> None:
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 40_000).astype(np.int32) for size in (900, 800, 700, 1 << 20, 1 << 20)]
    labels, count = group_by_codes(codes, [900, 800, 700, 1 << 20, 1 << 20])
    distinct, wanted = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    assert count == len(distinct)
    assert np.array_equal(labels, wanted.ravel())


def test_rows_of_a_label_stay_in_their_order_and_suppressed_ones_are_left_out() -> None:
    labels = np.array([2, -1, 0, 2, 0], dtype=np.int32)
    assert by_label(labels, np.array([0, 2, 2, 4])).tolist() == [2, 4, 0, 3]
    order, starts = Partition.of(np.array([-1, -1])).members()
    assert order.size == 0
    assert starts.size == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chosen", [[], [2], [0, 2]])
def test_crowds_are_those_of_a_plain_count(chosen: list[int], weighted: bool) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 6, (3, 400)).astype(np.int32)
    lead = np.sort(rng.integers(0, 5, 400))
    blocks = np.searchsorted(lead, np.arange(6)).astype(np.int64)
    weights = rng.integers(1, 4, 400) if weighted else np.empty(0, dtype=np.int64)
    _, where = np.unique(np.vstack([lead, codes[chosen]]), axis=1, return_inverse=True)
    sizes = np.bincount(where.ravel(), weights if weighted else None)
    own = np.full(len(chosen), 6)
    found = crowds_met(blocks, codes, np.array(chosen, dtype=np.int64), own, weights)
    assert found == (sizes.size, int((sizes == 1).sum()), int(sizes.min()))


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_columns_are_counted_as_each_pair_alone_is(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    sizes = np.array([5, 3, 7])
    codes = np.stack([rng.integers(0, size, 300) for size in sizes]).astype(np.int32)
    weights = rng.integers(1, 4, 300) if weighted else np.empty(0, dtype=np.int64)
    first = np.concatenate(([0], np.cumsum(sizes)))
    found = pair_counts(codes, first, weights)
    for one in range(3):
        for other in range(one + 1, 3):
            alone = np.bincount(codes[one] * sizes[other] + codes[other], weights if weighted else None)
            block = found[first[one] : first[one + 1], first[other] : first[other + 1]]
            assert np.array_equal(block.ravel()[: alone.size], alone)
        own = np.diag(found)[first[one] : first[one + 1]]
        assert np.array_equal(own, np.bincount(codes[one], weights if weighted else None))


def test_squares_of_counts_in_groups_are_those_of_a_table_of_both() -> None:
    rng = np.random.default_rng(4)
    labels, values = rng.integers(-1, 9, 500).astype(np.int32), rng.integers(0, 6, 500).astype(np.int32)
    order, starts = Partition(labels, 9).members()
    table = np.zeros((9, 6), dtype=np.int64)
    np.add.at(table, (labels[labels >= 0], values[labels >= 0]), 1)
    assert np.array_equal(
        squares_met(values, order, np.append(starts, order.size), 6), (table**2).sum(axis=1)
    )
