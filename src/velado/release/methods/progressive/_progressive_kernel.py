"""The compiled engine of progressive generalization: find the boxes of a cost band, make groups of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.release.methods.progressive._cover_lattice import Space

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Scratch = tuple[Longs, Longs, Ints, Ints]


def scratch_for(nodes: int) -> Scratch:
    """Working space for columns of at most *nodes* nodes a level."""
    return (
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes, dtype=np.int32),
    )


@njit(cache=True)
def spread(
    codes: Ints,
    weight: Longs,
    node: Ints,
    cost: Floats,
    must: npt.NDArray[np.bool_],
    here: int,
    below: int,
    members: Ints,
    out: Ints,
    start: int,
    end: int,
    least: int,
    paid: float,
    after: float,
    low: float,
    high: float,
    scratch: Scratch,
) -> int:
    """members[start:end] sorted by their node of the level at *here* into *out*; returns where they end.

    Nodes with fewer than *least* rows are left out, and so are nodes all of whose members share one node of
    the level *below* (-1: there is none): the narrower box holds the same members at less cost. Nodes are left out
    too where with what is *paid* already a box costs *high* or more, or with what comes *after* less than *low*, and with
    *must* not empty those whose first member is not marked there.
    The rows and places of *scratch* are zero before and after.
    """
    rows, place, child, touched = scratch
    seen = 0
    for i in range(start, end):
        tuple_ = members[i]
        code = codes[tuple_]
        at = node[here + code]
        if place[at] < 0:
            continue
        if place[at] == 0:
            touched[seen] = at
            seen += 1
            price = paid + cost[here + code]
            if price >= high or price + after < low or (must.size and not must[tuple_]):
                place[at] = -1
                continue
            if below >= 0:
                child[at] = node[below + code]
        elif below >= 0 and child[at] != node[below + code]:
            child[at] = -1
        place[at] += 1
        rows[at] += weight[tuple_]
    total = start
    for j in range(seen):
        at = touched[j]
        if place[at] > 0 and rows[at] >= least and (below < 0 or child[at] < 0):
            number = place[at]
            place[at] = total
            total += number
        else:
            place[at] = -1
    if total > start:
        for i in range(start, end):
            tuple_ = members[i]
            at = node[here + codes[tuple_]]
            if place[at] >= 0:
                out[place[at]] = tuple_
                place[at] += 1
    for j in range(seen):
        rows[touched[j]] = 0
        place[touched[j]] = 0
    return total


@njit(cache=True)
def boxes_in_band(
    space: Space,
    codes: Ints,
    weight: Longs,
    active: Ints,
    must: npt.NDArray[np.bool_],
    least: int,
    low: float,
    high: float,
    most_work: int,
    buffer: Ints,
    box_cost: Floats,
    box_start: Longs,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """All boxes with cost in low..high (high left out) that hold *least* rows among the *active* tuples.

    *codes* and *weight* are those of *space*, or of a part of its tuples numbered for itself.
    Depth first over the columns; a node of the search is a box whose later columns are not yet chosen, and
    holds its members, so that whatever has too few rows or costs too much is left with all that is inside.
    With *must* not empty only boxes that hold a tuple marked there are wanted; those come first in *active*,
    and the sorting keeps their order, so a look at the first member of a group decides. Of the unmarked
    members of such a box only the first are listed, up to *least* rows.
    Fills *buffer* with the members of box after box, *box_start* with where they start (and the end), and
    *box_cost*; *scratch* is what `scratch_for` gives. Returns (boxes, tuples looked at, 1 if a buffer or the
    allowed work ran out, else 0).
    """
    columns = codes.shape[0]
    count = active.size
    base, levels, node, cost, dearest = space.base, space.levels, space.node, space.cost, space.dearest
    level_least, level_most = space.level_least, space.level_most
    member = np.empty((columns + 1, count), dtype=np.int32)
    member[0] = active
    start = np.zeros(columns + 1, dtype=np.int64)
    end = np.zeros(columns + 1, dtype=np.int64)
    level = np.full(columns + 1, -1, dtype=np.int64)
    at = np.zeros(columns + 1, dtype=np.int64)
    stop = np.zeros(columns + 1, dtype=np.int64)
    paid = np.zeros(columns + 1)
    end[0] = count
    found = 0
    filled = 0
    work = 0
    box_start[0] = 0
    depth = 0
    while depth >= 0:
        if at[depth] >= stop[depth]:
            level[depth] += 1
            if level[depth] >= levels[depth]:
                depth -= 1
                continue
            here = base[depth, level[depth]]
            if paid[depth] + level_least[depth, level[depth]] >= high:
                continue
            if paid[depth] + level_most[depth, level[depth]] + dearest[depth + 1] < low:
                continue
            below = base[depth, level[depth] - 1] if level[depth] > 0 and space.nested[depth] else -1
            work += end[depth] - start[depth]
            if work > most_work:
                return found, work, 1
            at[depth] = start[depth]
            stop[depth] = spread(
                codes=codes[depth],
                weight=weight,
                node=node,
                cost=cost,
                must=must,
                here=here,
                below=below,
                members=member[depth],
                out=member[depth + 1],
                start=start[depth],
                end=end[depth],
                least=least,
                paid=paid[depth],
                after=dearest[depth + 1],
                low=low,
                high=high,
                scratch=scratch,
            )
            continue
        here = base[depth, level[depth]]
        first = at[depth]
        group = member[depth + 1]
        code = codes[depth, group[first]]
        name = node[here + code]
        last = first + 1
        while last < stop[depth] and node[here + codes[depth, group[last]]] == name:
            last += 1
        at[depth] = last
        price = paid[depth] + cost[here + code]
        if depth < columns - 1:
            depth += 1
            start[depth] = first
            end[depth] = last
            at[depth] = 0
            stop[depth] = 0
            level[depth] = -1
            paid[depth] = price
            continue
        if filled + last - first > buffer.size or found >= box_cost.size:
            return found, work, 1
        box_cost[found] = price
        others = 0
        for i in range(first, last):
            if must.size and not must[group[i]]:
                if others >= least:
                    break
                others += weight[group[i]]
            buffer[filled] = group[i]
            filled += 1
        found += 1
        box_start[found] = filled
    return found, work, 0


@njit(cache=True)
def take(
    buffer: Ints, box_start: Longs, order: Longs, weight: Longs, label: Ints, groups: int, least: int
) -> int:
    """Boxes in the given order become groups while they hold *least* rows not yet in one.

    Writes the group of each tuple to *label* (-1: none yet) and returns the new number of groups.
    """
    for box in order:
        rows = 0
        for i in range(box_start[box], box_start[box + 1]):
            if label[buffer[i]] < 0:
                rows += weight[buffer[i]]
        if rows >= least:
            for i in range(box_start[box], box_start[box + 1]):
                if label[buffer[i]] < 0:
                    label[buffer[i]] = groups
            groups += 1
    return groups


# Covers in compiled code: what a group costs, what a tuple adds to it, and where leftovers cost least.


@njit(cache=True)
def climb(space: Space, column: int, low: int, high: int) -> float:
    """What publishing the cover of *low*..*high* costs in a column without a table of pairs."""
    if space.line_at[column] >= 0:
        # A missing value lies one domain beyond the largest, so whatever joins it costs all.
        line = space.line_at[column]
        return float(min(space.line[line + high] - space.line[line + low], 1.0))
    for level in range(1, space.tree_levels[column]):
        here = space.tree_base[column, level]
        if space.node[here + low] == space.node[here + high]:
            return float(space.cost[here + low])
    return 1.0


@njit(cache=True)
def cover_cost(space: Space, low: Ints, high: Ints, g: int) -> float:
    """The cost of cover *g*, summed over its columns."""
    pair, pair_at, size = space.pair, space.pair_at, space.size
    total = 0.0
    for c in range(low.shape[1]):
        if low[g, c] == high[g, c]:
            continue
        if pair_at[c] >= 0:
            total += pair[pair_at[c] + low[g, c] * size[c] + high[g, c]]
        else:
            total += climb(space, c, low[g, c], high[g, c])
    return total


@njit(cache=True)
def cheapest(
    space: Space,
    low: Ints,
    high: Ints,
    rows: Longs,
    price: Floats,
    groups: int,
    codes: Ints,
    at: int,
    weight: int,
) -> tuple[int, float]:
    """The group that *weight* rows of tuple *at* widen least, and by how much rows x cost rises."""
    # Plain local arrays: reading a field of a named tuple inside the loop counts references each time.
    pair, pair_at, size = space.pair, space.pair_at, space.size
    columns = low.shape[1]
    least = np.inf
    target = 0
    for g in range(groups):
        bound = (least + price[g] * rows[g]) / (rows[g] + weight)
        joint = 0.0
        for c in range(columns):
            code = codes[c, at]
            a = min(low[g, c], code)
            b = max(high[g, c], code)
            if a != b:
                if pair_at[c] >= 0:
                    joint += pair[pair_at[c] + a * size[c] + b]
                else:
                    joint += climb(space, c, a, b)
                if joint >= bound:
                    break
        if joint < bound:
            least = joint * (rows[g] + weight) - price[g] * rows[g]
            target = g
    return target, least


@njit(cache=True)
def covers(space: Space, label: Ints, groups: int) -> tuple[Ints, Ints, Longs, Floats]:
    """Lowest and highest codes, rows and cost of each group of tuples (label -1: in none)."""
    columns, tuples = space.codes.shape
    low = np.full((groups, columns), 2147483647, dtype=np.int32)
    high = np.full((groups, columns), -1, dtype=np.int32)
    rows = np.zeros(groups, dtype=np.int64)
    for t in range(tuples):
        g = label[t]
        if g < 0:
            continue
        rows[g] += space.weight[t]
        for c in range(columns):
            low[g, c] = min(low[g, c], space.codes[c, t])
            high[g, c] = max(high[g, c], space.codes[c, t])
    price = np.empty(groups)
    for g in range(groups):
        price[g] = cover_cost(space, low, high, g)
    return low, high, rows, price


@njit(cache=True)
def join_leftovers(space: Space, label: Ints, groups: int, droppable: int, most_each: float) -> int:
    """Every tuple without a group joins the one it widens least; returns how many rows were dropped instead.

    The price of joining is the rise of rows x cost over the group and the tuple. Where it is above
    *most_each* per row, and no more than *droppable* rows are dropped in all, the tuple gets label -2.
    O(leftovers x groups).
    """
    low, high, rows, price = covers(space, label, groups)
    dropped = 0
    for t in range(label.size):
        if label[t] != -1:
            continue
        weight = space.weight[t]
        target, rise = cheapest(
            space=space,
            low=low,
            high=high,
            rows=rows,
            price=price,
            groups=groups,
            codes=space.codes,
            at=t,
            weight=weight,
        )
        if rise > most_each * weight and dropped + weight <= droppable:
            label[t] = -2
            dropped += weight
            continue
        label[t] = target
        rows[target] += weight
        for c in range(low.shape[1]):
            low[target, c] = min(low[target, c], space.codes[c, t])
            high[target, c] = max(high[target, c], space.codes[c, t])
        price[target] = cover_cost(space, low, high, target)
    return dropped
