"""Large neighbourhood search: free a few classes that lie near each other, make classes of their rows anew.

Compiled. The state is a set of classes over rows; a step frees a handful, lists every box that holds enough
of their rows, makes classes of the boxes in several noisy orders of cost, and keeps the best if it is better.
A box may take only as many rows as it needs, the neediest first, and leave the rest to others; this is how
the spare rows of one class open a cheaper box for another. For goals that rows alone decide.
"""

from __future__ import annotations

import numba
import numpy as np

from velado.anonymize.methods.progressive_cover import cheapest, climb, cover_cost
from velado.anonymize.methods.progressive_kernel import Floats, Ints, Longs, Scratch, boxes_in_band
from velado.anonymize.methods.progressive_lattice import Space
from velado.anonymize.methods.progressive_pool import Classes, Pool, Trial, commit, empty_trial, pooled

_NEAR = 16
_BOXES = 20_000
_MEMBERS = 400_000


@numba.njit(cache=True)
def _nearest(
    space: Space, state: Classes, count: int, seed: int, low: Ints, high: Ints, random: np.random.Generator
) -> Longs:
    """*seed* and the classes whose joint cover with low..high is cheapest, distances blurred a little."""
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


@numba.njit(cache=True)
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
    """The boxes, in order, become classes; with chance *sparing* one takes only *least* rows.

    What is left joins the class it widens least. Returns (classes, shares, rows x cost); 0 classes when no
    box could be taken.
    """
    left = pool.weight.copy()
    columns, tuples = pool.codes.shape
    remaining = pool.row.size
    classes = 0
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
        trial.low[classes] = 2147483647
        trial.high[classes] = -1
        trial.size[classes] = rows
        remaining -= rows
        for i in range(starts[b], starts[b + 1]):
            j = members[i]
            part = min(left[j], rows)
            if part == 0:
                continue
            left[j] -= part
            rows -= part
            trial.tuples[shares] = j
            trial.classes[shares] = classes
            trial.rows[shares] = part
            shares += 1
            for c in range(columns):
                trial.low[classes, c] = min(trial.low[classes, c], pool.codes[c, j])
                trial.high[classes, c] = max(trial.high[classes, c], pool.codes[c, j])
        trial.price[classes] = cover_cost(space, trial.low, trial.high, classes)
        classes += 1
    if classes == 0:
        return 0, 0, np.inf
    for j in range(tuples):
        if left[j] == 0:
            continue
        target, _rise = cheapest(
            space, trial.low, trial.high, trial.size, trial.price, classes, pool.codes, j, left[j]
        )
        trial.size[target] += left[j]
        for c in range(columns):
            trial.low[target, c] = min(trial.low[target, c], pool.codes[c, j])
            trial.high[target, c] = max(trial.high[target, c], pool.codes[c, j])
        trial.price[target] = cover_cost(space, trial.low, trial.high, target)
        trial.tuples[shares] = j
        trial.classes[shares] = target
        trial.rows[shares] = left[j]
        shares += 1
    total = 0.0
    for g in range(classes):
        total += trial.price[g] * trial.size[g]
    return classes, shares, total


@numba.njit(cache=True)
def search(
    space: Space,
    tuple_of_row: Ints,
    need: Floats,
    state: Classes,
    count: int,
    least: int,
    most_work: int,
    heat: float,
    random: np.random.Generator,
    scratch: Scratch,
) -> tuple[int, int]:
    """The state improved in place until *most_work* is done; returns the number of classes and the steps.

    A step that makes things worse by x is kept with chance exp(-x / heat); at *heat* 0 none is. *need* is the cost of the cheapest box each tuple could be in: a needy tuple is served first. Work counts
    classes compared, tuples looked at and members visited, so that the same input takes the same steps.
    """
    columns, tuples = space.codes.shape
    number = np.full(tuples, -1, dtype=np.int32)
    members = np.empty(_MEMBERS, dtype=np.int32)
    costs = np.empty(_BOXES)
    starts = np.empty(_BOXES + 1, dtype=np.int64)
    everything = np.zeros(0, dtype=np.bool_)
    low = np.empty(columns, dtype=np.int32)
    high = np.empty(columns, dtype=np.int32)
    # Large classes make large pools with more boxes than can be tried: fewer of them are freed at a time.
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
                space,
                pool.codes,
                pool.weight,
                np.argsort(urge).astype(np.int32),
                everything,
                least,
                0.0,
                dearest + 1e-9,
                1_000_000,
                members,
                costs,
                starts,
                scratch,
            )
            work += looked + 8 * urge.size
            if found == 0:
                continue
            new, shares, after, trial = _best_of(
                space, pool, need, found, members, costs, starts, least, random
            )
            work += 6 * starts[found]
            if new > 0 and after <= before + 1e-9 - heat * np.log(1.0 - random.random()):
                count = commit(space, state, count, freed, pool, trial, new, shares)
                break
    return count, steps


@numba.njit(cache=True)
def _choose(near: Longs, spread: int, random: np.random.Generator) -> int:
    """A few of the classes moved to the front, nearer ones likelier, the first always; returns how many."""
    wanted = min(2 + random.integers(0, spread), near.size)
    kept = 1
    for j in range(1, near.size):
        if kept < wanted and (random.random() < 0.6 or near.size - j <= wanted - kept):
            near[kept], near[j] = near[j], near[kept]
            kept += 1
    return kept


@numba.njit(cache=True)
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
            space, pool, np.argsort(score), members, starts, least, sparing, trial, random
        )
        if total < best_total:
            best_new, best_shares, best_total = new, shares, total
            trial, best = best, trial
    return best_new, best_shares, best_total, best
