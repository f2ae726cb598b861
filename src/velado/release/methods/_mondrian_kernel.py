"""The compiled engine of Mondrian, for goals that group sizes alone decide.

It works depth first on a copy of the code matrix whose entries are moved with their group, so every pass reads memory in
order. The level-by-level engine gives the same groups with the same numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from velado.compiled import njit

Codes = npt.NDArray[np.int32]
IntVector = npt.NDArray[np.int64]


@njit(cache=True)
def _ancestor_depth(path: Codes, base: int, stride: int, low: int, high: int) -> int:
    """The depth of the lowest common ancestor of the leaves *low* < *high*; 0 is the root.

    *path* holds, from *base* on, *stride* entries per leaf: its ancestors from the root down.
    """
    depth = 0
    while path[base + low * stride + depth + 1] == path[base + high * stride + depth + 1]:
        depth += 1
    return depth


@njit(cache=True)
def _count_codes(
    work: Codes, weight: IntVector, start: int, end: int, column: int, low: int, scratch: IntVector
) -> None:
    """``scratch[i]`` becomes how many rows of a group have the code *low* + i."""
    scratch[:] = 0
    for r in range(start, end):
        scratch[work[r, column] - low] += weight[r]


@njit(cache=True)
def _ordered_cut(
    work: Codes,
    weight: IntVector,
    rows: int,
    start: int,
    end: int,
    column: int,
    low: int,
    high: int,
    relaxed: bool,
    scratch: IntVector,
) -> tuple[int, int, int]:
    """Where an ordered column is cut: (last code of the left part, its ties that go left, rows on the left).

    Strict: the boundary next to the median that balances better, the upper one when both do alike; all ties
    go left (-1 stands for all). Relaxed: the left part has exactly half the rows, rounded down.
    """
    at = rows // 2 - 1 if relaxed else (rows - 1) // 2
    if high - low < 2 * (end - start):
        _count_codes(work, weight, start, end, column, low, scratch[: high - low + 1])
        median = 0
        below = 0
        while below + scratch[median] <= at:
            below += scratch[median]
            median += 1
        equal = scratch[median]
        before = median - 1
        while before >= 0 and scratch[before] == 0:
            before -= 1
        previous = before + low
        median += low
    else:
        values = work[start:end, column].copy()
        if rows == values.size:
            median = np.partition(values, at)[at]
        else:
            rank = np.argsort(values)
            place = 0
            reached = weight[start + rank[0]]
            while reached <= at:
                place += 1
                reached += weight[start + rank[place]]
            median = values[rank[place]]
        below = 0
        equal = 0
        previous = low - 1
        for i in range(values.size):
            if values[i] < median:
                below += weight[start + i]
                previous = max(previous, values[i])
            elif values[i] == median:
                equal += weight[start + i]
    if relaxed:
        return median, rows // 2 - below, rows // 2
    through = below + equal
    if through == rows or (below > 0 and rows - 2 * below < abs(2 * through - rows)):
        return previous, -1, below
    return median, -1, through


@njit(cache=True)
def _branch_cut(
    work: Codes,
    weight: IntVector,
    start: int,
    end: int,
    column: int,
    low: int,
    high: int,
    path: Codes,
    base: int,
    stride: int,
    least: int,
    scratch: IntVector,
    firsts: IntVector,
    sizes: IntVector,
) -> int:
    """How many children of the common ancestor hold rows, or 0 when one of them holds fewer than *least*.

    Fills *firsts* with the smallest code present under each child and *sizes* with its rows. Because leaves
    are numbered depth first, the children are runs of consecutive codes.
    """
    entries = end - start
    level = _ancestor_depth(path, base, stride, low, high) + 1
    count = 0
    child = -1
    dense = high - low < 4 * entries
    if dense:  # one step for each code there is, rather than a sort of the entries
        _count_codes(work, weight, start, end, column, low, scratch[: high - low + 1])
        rank = np.arange(high - low + 1)
    else:
        rank = np.argsort(work[start:end, column])
    for at in rank:
        code = low + at if dense else work[start + at, column]
        here = scratch[at] if dense else weight[start + at]
        if here == 0:
            continue
        node = path[base + code * stride + level]
        if node != child:
            if count > 0 and sizes[count - 1] < least:
                return 0
            child = node
            firsts[count] = code
            sizes[count] = 0
            count += 1
        sizes[count - 1] += here
    return count if sizes[count - 1] >= least else 0


@njit(cache=True)
def partition_rows(
    codes: Codes,
    weight: IntVector,
    parts_begin: IntVector,
    least: int,
    relaxed: bool,
    places: npt.NDArray[np.float64],
    place_base: IntVector,
    path: Codes,
    path_base: IntVector,
    stride: IntVector,
    node_loss: npt.NDArray[np.float64],
    node_base: IntVector,
    widest: int,
) -> tuple[Codes, int]:
    """Group labels of all entries and the number of groups, every group with at least *least* rows.

    An entry stands for *weight* rows; relaxed cuts need one each. The table may lie in parts already, which are cut one by
    one: *parts_begin* is the first entry of each.
    *stride* is 0 for columns without a tree; *widest* is the largest number of codes of any column.
    O(n d log(n / least)).
    """
    rows, columns = codes.shape
    work = codes.copy()
    weight = weight.copy()
    order = np.arange(rows)
    spare = np.empty((rows, columns), dtype=np.int32)
    spare_weight = np.empty(rows, dtype=np.int64)
    spare_order = np.empty(rows, dtype=np.int64)
    side = np.empty(rows, dtype=np.int32)
    labels = np.empty(rows, dtype=np.int32)
    scratch = np.empty(min(widest, 4 * rows) + 1, dtype=np.int64)
    firsts = np.empty(min(widest, rows) + 1, dtype=np.int64)
    sizes = np.empty(min(widest, rows) + 1, dtype=np.int64)  # in rows; the entries of a part are *among*
    among = np.empty(min(widest, rows) + 1, dtype=np.int64)
    low = np.empty(columns, dtype=np.int64)
    high = np.empty(columns, dtype=np.int64)
    width = np.empty(columns, dtype=np.float64)
    # Groups that wait: parts are pushed from right to left, so groups are finished from left to right.
    begins = np.empty(rows + 2, dtype=np.int64)
    ends = np.empty(rows + 2, dtype=np.int64)
    holds = np.empty(rows + 2, dtype=np.int64)
    waiting = 0
    into = rows
    for part in range(parts_begin.size - 1, -1, -1):
        begins[waiting], ends[waiting] = parts_begin[part], into
        holds[waiting] = weight[parts_begin[part] : into].sum()
        into = parts_begin[part]
        waiting += 1
    groups = 0
    while waiting > 0:
        waiting -= 1
        start, end, size = begins[waiting], ends[waiting], holds[waiting]
        parts = 0
        if size >= 2 * least:
            low[:] = work[start]
            high[:] = work[start]
            for r in range(start + 1, end):
                for c in range(columns):
                    code = work[r, c]
                    if code < low[c]:
                        low[c] = code
                    elif code > high[c]:
                        high[c] = code
            for c in range(columns):
                if low[c] == high[c]:
                    width[c] = 0.0
                elif stride[c] > 0:
                    depth = _ancestor_depth(path, path_base[c], stride[c], low[c], high[c])
                    width[c] = node_loss[node_base[c] + path[path_base[c] + low[c] * stride[c] + depth]]
                else:
                    width[c] = places[place_base[c] + high[c]] - places[place_base[c] + low[c]]
            for _ in range(columns):
                c = 0
                for other in range(1, columns):
                    if width[other] > width[c]:
                        c = other
                if width[c] <= 0.0:
                    break
                width[c] = 0.0
                if stride[c] > 0:
                    parts = _branch_cut(
                        work=work, weight=weight, start=start, end=end, column=c, low=low[c], high=high[c], path=path, base=path_base[c], stride=stride[c], least=least,
                        scratch=scratch, firsts=firsts, sizes=sizes,
                    )  # fmt: skip
                    if parts == 0:
                        continue
                    for r in range(start, end):
                        side[r] = np.searchsorted(firsts[:parts], work[r, c], side="right") - 1
                else:
                    cut, shared, left = _ordered_cut(
                        work=work, weight=weight, rows=size, start=start, end=end, column=c, low=low[c], high=high[c],
                        relaxed=relaxed, scratch=scratch,
                    )  # fmt: skip
                    if left < least or size - left < least:
                        continue
                    parts = 2
                    sizes[0], sizes[1] = left, size - left
                    for r in range(start, end):
                        code = work[r, c]
                        goes_left = code < cut or (code == cut and shared != 0)
                        if code == cut and shared > 0:
                            shared -= 1
                        side[r] = 0 if goes_left else 1
                break
        if parts == 0:
            for r in range(start, end):
                labels[order[r]] = groups
            groups += 1
            continue
        among[:parts] = 0
        for r in range(start, end):
            among[side[r]] += 1
        into = start
        for part in range(parts):
            firsts[part] = into
            into += among[part]
        for part in range(parts - 1, -1, -1):
            begins[waiting] = firsts[part]
            ends[waiting] = firsts[part] + among[part]
            holds[waiting] = sizes[part]
            waiting += 1
        for r in range(start, end):  # stable: rows of a group keep their order in the table
            to = firsts[side[r]]
            firsts[side[r]] += 1
            for c in range(columns):
                spare[to, c] = work[r, c]
            spare_order[to] = order[r]
            spare_weight[to] = weight[r]
        work[start:end] = spare[start:end]
        weight[start:end] = spare_weight[start:end]
        order[start:end] = spare_order[start:end]
    return labels, groups
