"""Large neighbourhood search over groups of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.release.methods.progressive._cover_lattice import Space
from velado.release.methods.progressive._progressive_kernel import (
    Floats,
    Ints,
    Longs,
    Scratch,
    boxes_in_band,
    cheapest,
    climb,
    cover_cost,
)

# Large neighbourhood search: free a few groups that lie near each other, make groups of their rows anew.
#
# Compiled. The state is a set of groups over rows; a step frees a handful, lists every box that holds enough
# of their rows, makes groups of the boxes in several noisy orders of cost, and keeps the best if it is better.
# A box may take only as many rows as it needs, the neediest first, and leave the rest to others; this is how
# the spare rows of one group open a cheaper box for another. For goals that rows alone decide.

_NEAR = 16
_BOXES = 20_000
_MEMBERS = 400_000
"""Room for the boxes of one step, and for the tuples in them; what does not fit is not tried."""


class Groups(NamedTuple):
    """The state: each group's rows as a linked list from *head* over *following*, its cover and cost."""

    label: Ints
    head: Ints
    following: Ints
    size: Longs
    low: Ints
    high: Ints
    price: Floats


class Pool(NamedTuple):
    """The rows of the freed groups as weighted tuples with their own numbers; rows linked per tuple."""

    name: Ints
    weight: Longs
    codes: Ints
    head: Ints
    following: Ints
    row: Ints


class Trial(NamedTuple):
    """New groups over a pool: shares (tuple, group, rows), and cover, rows and cost of each group."""

    tuples: Ints
    groups: Ints
    rows: Longs
    low: Ints
    high: Ints
    size: Longs
    price: Floats


@njit(cache=True)
def start(space: Space, tuple_of_row: Ints, label: Ints, least: int) -> tuple[Groups, int]:
    """The state of a given grouping, with room for every grouping there can be, and the number of groups."""
    columns = space.codes.shape[0]
    most = label.size // least + 1
    state = Groups(
        label.copy(),
        np.full(most, -1, dtype=np.int32),
        np.full(label.size, -1, dtype=np.int32),
        np.zeros(most, dtype=np.int64),
        np.full((most, columns), 2147483647, dtype=np.int32),
        np.full((most, columns), -1, dtype=np.int32),
        np.zeros(most),
    )
    count = 0
    for r in range(label.size - 1, -1, -1):
        if label[r] >= 0:
            count = max(count, label[r] + 1)
            _add(space, state, label[r], r, tuple_of_row[r])
    for g in range(count):
        state.price[g] = cover_cost(space, state.low, state.high, g)
    return state, count


@njit(cache=True)
def _add(space: Space, state: Groups, g: int, row: int, tuple_: int) -> None:
    state.following[row] = state.head[g]
    state.head[g] = row
    state.label[row] = g
    state.size[g] += 1
    for c in range(space.codes.shape[0]):
        code = space.codes[c, tuple_]
        state.low[g, c] = min(state.low[g, c], code)
        state.high[g, c] = max(state.high[g, c], code)


@njit(cache=True)
def pooled(space: Space, state: Groups, freed: Longs, tuple_of_row: Ints, number: Ints) -> Pool:
    """The rows of the *freed* groups, counted per tuple. *number* is -1 everywhere before and after."""
    rows = 0
    for g in freed:
        rows += state.size[g]
    name = np.empty(rows, dtype=np.int32)
    weight = np.zeros(rows, dtype=np.int64)
    head = np.full(rows, -1, dtype=np.int32)
    following = np.empty(rows, dtype=np.int32)
    row = np.empty(rows, dtype=np.int32)
    tuples = 0
    entry = 0
    for g in freed:
        r = state.head[g]
        while r >= 0:
            t = tuple_of_row[r]
            if number[t] < 0:
                number[t] = tuples
                name[tuples] = t
                tuples += 1
            at = number[t]
            weight[at] += 1
            row[entry] = r
            following[entry] = head[at]
            head[at] = entry
            entry += 1
            r = state.following[r]
    codes = np.empty((space.codes.shape[0], tuples), dtype=np.int32)
    for j in range(tuples):
        number[name[j]] = -1
        for c in range(codes.shape[0]):
            codes[c, j] = space.codes[c, name[j]]
    return Pool(name[:tuples], weight[:tuples], codes, head, following, row)


@njit(cache=True)
def empty_trial(pool: Pool, least: int) -> Trial:
    # A tuple is shared between at most (its rows) groups, so there are never more shares than rows.
    rows = pool.row.size
    columns = pool.codes.shape[0]
    most = rows // least + 1
    return Trial(
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int64),
        np.empty((most, columns), dtype=np.int32),
        np.empty((most, columns), dtype=np.int32),
        np.empty(most, dtype=np.int64),
        np.empty(most),
    )


@njit(cache=True)
def commit(
    space: Space, state: Groups, count: int, freed: Longs, pool: Pool, trial: Trial, new: int, shares: int
) -> int:
    """The freed groups give way to the trial's; returns the number of groups, numbered without holes."""
    names = np.empty(max(new, freed.size), dtype=np.int64)
    names[: freed.size] = np.sort(freed)
    for j in range(freed.size, new):
        names[j] = count
        count += 1
    for j in range(new):
        g = names[j]
        state.head[g] = -1
        state.size[g] = 0
        state.low[g] = 2147483647
        state.high[g] = -1
    for s in range(shares):
        j = trial.tuples[s]
        for _ in range(trial.rows[s]):
            entry = pool.head[j]
            pool.head[j] = pool.following[entry]
            _add(space, state, names[trial.groups[s]], pool.row[entry], pool.name[j])
    for j in range(new):
        g = names[j]
        state.price[g] = cover_cost(space, state.low, state.high, g)
    for j in range(freed.size - 1, new - 1, -1):  # the last group moves into each hole
        count -= 1
        g = names[j]
        if g == count:
            continue
        state.head[g] = state.head[count]
        state.size[g] = state.size[count]
        state.low[g] = state.low[count]
        state.high[g] = state.high[count]
        state.price[g] = state.price[count]
        r = state.head[g]
        while r >= 0:
            state.label[r] = g
            r = state.following[r]
    return count


@njit(cache=True)
def _nearest(
    space: Space, state: Groups, count: int, seed: int, low: Ints, high: Ints, random: np.random.Generator
) -> Longs:
    """*seed* and the groups whose joint cover with low..high is cheapest, distances blurred a little."""
    pair, pair_at, size = space.pair, space.pair_at, space.size
    all_low, all_high = state.low, state.high
    columns = low.size
    near = np.empty(_NEAR, dtype=np.int64)
    far = np.empty(_NEAR)
    near[0] = seed
    held = 1
    blur = random.random() * 0.6
    noise = random.random(64)
    for g in range(count):
        if g == seed:
            continue
        factor = 1.0 + blur * noise[g & 63]
        bound = far[held - 1] / factor if held == _NEAR else np.inf
        distance = 0.0
        for c in range(columns):
            a = min(all_low[g, c], low[c])
            b = max(all_high[g, c], high[c])
            if a != b:
                if pair_at[c] >= 0:
                    distance += pair[pair_at[c] + a * size[c] + b]
                else:
                    distance += climb(space, c, a, b)
                if distance >= bound:
                    break
        if distance >= bound:
            continue
        distance *= factor
        j = held if held < _NEAR else held - 1
        while j > 1 and far[j - 1] > distance:
            near[j] = near[j - 1]
            far[j] = far[j - 1]
            j -= 1
        near[j] = g
        far[j] = distance
        if held < _NEAR:
            held += 1
    return near[:held]


@njit(cache=True)
def _greedy(
    space: Space,
    pool: Pool,
    order: Longs,
    members: Ints,
    starts: Longs,
    least: int,
    sparing: float,
    trial: Trial,
    random: np.random.Generator,
) -> tuple[int, int, float]:
    """The boxes, in order, become groups; with chance *sparing* one takes only *least* rows.

    What is left joins the group it widens least. Returns (groups, shares, rows x cost); 0 groups when no
    box could be taken.
    """
    left = pool.weight.copy()
    columns, tuples = pool.codes.shape
    remaining = pool.row.size
    groups = 0
    shares = 0
    for b in order:
        if remaining < least:
            break
        rows = 0
        for i in range(starts[b], starts[b + 1]):
            rows += left[members[i]]
        if rows < least:
            continue
        if rows > least and random.random() < sparing:
            rows = least
        trial.low[groups] = 2147483647
        trial.high[groups] = -1
        trial.size[groups] = rows
        remaining -= rows
        for i in range(starts[b], starts[b + 1]):
            j = members[i]
            part = min(left[j], rows)
            if part == 0:
                continue
            left[j] -= part
            rows -= part
            trial.tuples[shares] = j
            trial.groups[shares] = groups
            trial.rows[shares] = part
            shares += 1
            for c in range(columns):
                trial.low[groups, c] = min(trial.low[groups, c], pool.codes[c, j])
                trial.high[groups, c] = max(trial.high[groups, c], pool.codes[c, j])
        trial.price[groups] = cover_cost(space, trial.low, trial.high, groups)
        groups += 1
    if groups == 0:
        return 0, 0, np.inf
    for j in range(tuples):
        if left[j] == 0:
            continue
        target, _rise = cheapest(
            space=space,
            low=trial.low,
            high=trial.high,
            rows=trial.size,
            price=trial.price,
            groups=groups,
            codes=pool.codes,
            at=j,
            weight=left[j],
        )
        trial.size[target] += left[j]
        for c in range(columns):
            trial.low[target, c] = min(trial.low[target, c], pool.codes[c, j])
            trial.high[target, c] = max(trial.high[target, c], pool.codes[c, j])
        trial.price[target] = cover_cost(space, trial.low, trial.high, target)
        trial.tuples[shares] = j
        trial.groups[shares] = target
        trial.rows[shares] = left[j]
        shares += 1
    total = 0.0
    for g in range(groups):
        total += trial.price[g] * trial.size[g]
    return groups, shares, total


@njit(cache=True)
def search(
    space: Space,
    tuple_of_row: Ints,
    need: Floats,
    state: Groups,
    count: int,
    least: int,
    most_work: int,
    heat: float,
    random: np.random.Generator,
    scratch: Scratch,
) -> tuple[int, int]:
    """The state improved in place until *most_work* is done; returns the number of groups and the steps.

    A step that makes things worse by x is kept with chance exp(-x / heat); at *heat* 0 none is. *need* is the cost of the cheapest box each tuple could be in: a needy tuple is served first. Work counts
    groups compared, tuples looked at and members visited, so that the same input takes the same steps.
    """
    columns, tuples = space.codes.shape
    number = np.full(tuples, -1, dtype=np.int32)
    members = np.empty(_MEMBERS, dtype=np.int32)
    costs = np.empty(_BOXES)
    starts = np.empty(_BOXES + 1, dtype=np.int64)
    everything = np.zeros(0, dtype=np.bool_)
    low = np.empty(columns, dtype=np.int32)
    high = np.empty(columns, dtype=np.int32)
    # Large groups make large pools with more boxes than can be tried: fewer of them are freed at a time.
    spread = 7 if least < 50 else 5
    work = 0
    steps = 0
    while work < most_work and count > 1:
        seed = random.integers(0, count)
        low[:] = state.low[seed]
        high[:] = state.high[seed]
        if random.random() < 0.5:
            row = state.head[seed]
            for _ in range(random.integers(0, state.size[seed])):
                row = state.following[row]
            for c in range(columns):
                low[c] = space.codes[c, tuple_of_row[row]]
                high[c] = low[c]
        near = _nearest(space, state, count, seed, low, high, random)
        work += 4 * count
        for _ in range(4):
            steps += 1
            freed = near[: _choose(near, spread, random)].copy()
            before = 0.0
            dearest = 0.0
            for g in freed:
                before += state.size[g] * state.price[g]
                dearest = max(dearest, state.price[g])
            pool = pooled(space, state, freed, tuple_of_row, number)
            urge = np.empty(pool.name.size)
            for j in range(urge.size):
                urge[j] = -need[pool.name[j]] * (0.7 + 0.6 * random.random())
            found, looked, _full = boxes_in_band(
                space=space,
                codes=pool.codes,
                weight=pool.weight,
                active=np.argsort(urge).astype(np.int32),
                must=everything,
                least=least,
                low=0.0,
                high=dearest + 1e-9,
                most_work=1_000_000,
                buffer=members,
                box_cost=costs,
                box_start=starts,
                scratch=scratch,
            )
            work += looked + 8 * urge.size
            if found == 0:
                continue
            new, shares, after, trial = _best_of(
                space=space,
                pool=pool,
                need=need,
                found=found,
                members=members,
                costs=costs,
                starts=starts,
                least=least,
                random=random,
            )
            work += 6 * starts[found]
            if new > 0 and after <= before + 1e-9 - heat * np.log(1.0 - random.random()):
                count = commit(
                    space=space,
                    state=state,
                    count=count,
                    freed=freed,
                    pool=pool,
                    trial=trial,
                    new=new,
                    shares=shares,
                )
                break
    return count, steps


@njit(cache=True)
def _choose(near: Longs, spread: int, random: np.random.Generator) -> int:
    """A few of the groups moved to the front, nearer ones likelier, the first always; returns how many."""
    wanted = min(2 + random.integers(0, spread), near.size)
    kept = 1
    for j in range(1, near.size):
        if kept < wanted and (random.random() < 0.6 or near.size - j <= wanted - kept):
            near[kept], near[j] = near[j], near[kept]
            kept += 1
    return kept


@njit(cache=True)
def _best_of(
    space: Space,
    pool: Pool,
    need: Floats,
    found: int,
    members: Ints,
    costs: Floats,
    starts: Longs,
    least: int,
    random: np.random.Generator,
) -> tuple[int, int, float, Trial]:
    """The best of several greedy runs over the boxes, each with its own noise and readiness to spare rows."""
    trial = empty_trial(pool, least)
    best = empty_trial(pool, least)
    best_new, best_shares, best_total = 0, 0, np.inf
    mean = np.zeros(found)
    for b in range(found):
        rows = 0
        for i in range(starts[b], starts[b + 1]):
            mean[b] += need[pool.name[members[i]]] * pool.weight[members[i]]
            rows += pool.weight[members[i]]
        mean[b] /= rows
    score = np.empty(found)
    for _ in range(6):
        noise = random.random()
        sparing = random.random() * 1.5 - 0.5
        pull = random.random() * 0.8
        for b in range(found):
            score[b] = costs[b] * (1.0 + noise * (random.random() - 0.5)) - pull * mean[b]
        new, shares, total = _greedy(
            space=space,
            pool=pool,
            order=np.argsort(score),
            members=members,
            starts=starts,
            least=least,
            sparing=sparing,
            trial=trial,
            random=random,
        )
        if total < best_total:
            best_new, best_shares, best_total = new, shares, total
            trial, best = best, trial
    return best_new, best_shares, best_total, best
