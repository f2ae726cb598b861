"""Large neighbourhood search: free a few classes that lie near each other, make classes of their rows anew.

Compiled. The state is a set of classes over rows; a step frees a handful, lists every box that holds enough
of their rows, makes classes of the boxes in several noisy orders of cost, and keeps the best if it is better.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from velado.anonymize.methods.progressive_kernel import Floats, Ints, Longs, boxes_in_band


@numba.njit(cache=True)
def joint_loss(
    column: int, low: int, high: int, base: Longs, levels: Longs, node: Ints, cost: Floats, line: Floats
) -> float:
    """What publishing the cover of the codes *low*..*high* costs in one column.

    A tree column climbs its levels to the first node both share; a numeric column (levels negated) is the
    distance on its *line*, where a missing value lies so far out that the cost is cut to 1.
    """
    if low == high:
        return 0.0
    if levels[column] < 0:
        return min(line[base[column, 0] + high] - line[base[column, 0] + low], 1.0)
    for level in range(1, levels[column]):
        here = base[column, level]
        if node[here + low] == node[here + high]:
            return cost[here + low]
    return 1.0


@numba.njit(cache=True)
def _cover_cost(low: Ints, high: Ints, bounds: float, base: Longs, levels: Longs, node: Ints, cost: Floats, line: Floats) -> float:
    total = 0.0
    for c in range(low.size):
        total += joint_loss(c, low[c], high[c], base, levels, node, cost, line)
        if total >= bounds:
            return total
    return total


@numba.njit(cache=True)
def search(
    codes: Ints,
    need: Floats,
    base: Longs,
    levels: Longs,
    node: Ints,
    cost: Floats,
    loss_levels: Longs,
    line: Floats,
    dearest: Floats,
    tuple_of_row: Ints,
    label: Ints,
    classes: int,
    least: int,
    steps: int,
    most_work: int,
    numbers: Floats,
    scratch: tuple[Longs, Longs, Ints, Ints],
    heat: float,
) -> tuple[int, float, int]:
    columns, tuples = codes.shape
    rows = label.size
    most = rows // least + 1
    head = np.full(most, -1, dtype=np.int32)
    following = np.full(rows, -1, dtype=np.int32)
    size = np.zeros(most, dtype=np.int64)
    low = np.empty((most, columns), dtype=np.int32)
    high = np.empty((most, columns), dtype=np.int32)
    price = np.zeros(most)
    for r in range(rows - 1, -1, -1):
        g = label[r]
        t = tuple_of_row[r]
        if head[g] < 0:
            for c in range(columns):
                low[g, c] = codes[c, t]
                high[g, c] = codes[c, t]
        else:
            for c in range(columns):
                low[g, c] = min(low[g, c], codes[c, t])
                high[g, c] = max(high[g, c], codes[c, t])
        following[r] = head[g]
        head[g] = r
        size[g] += 1
    gained = 0.0
    for g in range(classes):
        price[g] = _cover_cost(low[g], high[g], np.inf, base, loss_levels, node, cost, line)
    place = np.full(tuples, -1, dtype=np.int32)
    near = np.empty(16, dtype=np.int64)
    near_at = np.empty(16)
    buffer = np.empty(400_000, dtype=np.int32)
    box_cost = np.empty(40_000)
    box_start = np.empty(40_001, dtype=np.int64)
    work = 0
    draw = 0
    joint_low = np.empty(columns, dtype=np.int32)
    joint_high = np.empty(columns, dtype=np.int32)
    done = 0
    for step in range(steps):
        if work > most_work:
            break
        done += 1
        # Which classes: a random one, and those whose joint cover with it (or with one of its rows) is cheapest.
        seed = int(numbers[draw % numbers.size] * classes)
        draw += 1
        wanted = 2 + int(numbers[draw % numbers.size] * 7)
        draw += 1
        by_row = numbers[draw % numbers.size] < 0.5
        draw += 1
        jitter = numbers[draw % numbers.size] * 0.6
        draw += 1
        for c in range(columns):
            joint_low[c] = low[seed, c]
            joint_high[c] = high[seed, c]
        if by_row:
            pick = int(numbers[draw % numbers.size] * size[seed])
            draw += 1
            r = head[seed]
            for _ in range(pick):
                r = following[r]
            for c in range(columns):
                joint_low[c] = codes[c, tuple_of_row[r]]
                joint_high[c] = joint_low[c]
        near[0] = seed
        count = 1
        shift = int(numbers[draw % numbers.size] * numbers.size)
        draw += 1
        for g in range(classes):
            if g == seed:
                continue
            factor = 1.0 + jitter * numbers[(g + shift) % numbers.size]
            bound = np.inf if count < wanted else near_at[count - 1] / factor
            total = 0.0
            for c in range(columns):
                total += joint_loss(c, min(low[g, c], joint_low[c]), max(high[g, c], joint_high[c]), base, loss_levels, node, cost, line)
                if total >= bound:
                    break
            if total >= bound:
                continue
            total *= factor
            j = count if count < wanted else count - 1
            while j > 1 and near_at[j - 1] > total:
                near[j] = near[j - 1]
                near_at[j] = near_at[j - 1]
                j -= 1
            near[j] = g
            near_at[j] = total
            if count < wanted:
                count += 1
        work += classes * 3
        # Their rows, as weighted tuples, the neediest first.
        pool = 0
        members = 0
        before = 0.0
        cap = 0.0
        for j in range(count):
            g = near[j]
            members += size[g]
            before += size[g] * price[g]
            cap = max(cap, price[g])
        pool_tuple = np.empty(members, dtype=np.int32)
        pool_weight = np.zeros(members, dtype=np.int64)
        pool_head = np.full(members, -1, dtype=np.int32)
        pool_next = np.empty(members, dtype=np.int32)
        pool_row = np.empty(members, dtype=np.int32)
        m = 0
        for j in range(count):
            r = head[near[j]]
            while r >= 0:
                t = tuple_of_row[r]
                if place[t] < 0:
                    place[t] = pool
                    pool_tuple[pool] = t
                    pool += 1
                at = place[t]
                pool_weight[at] += 1
                pool_row[m] = r
                pool_next[m] = pool_head[at]
                pool_head[at] = m
                m += 1
                r = following[r]
        local = np.empty((columns, pool), dtype=np.int32)
        urge = np.empty(pool)
        for j in range(pool):
            t = pool_tuple[j]
            place[t] = -1
            urge[j] = -need[t] * (0.7 + 0.6 * numbers[(draw + j) % numbers.size])
            for c in range(columns):
                local[c, j] = codes[c, t]
        draw += pool
        active = np.argsort(urge).astype(np.int32)
        found, looked, full = boxes_in_band(
            local, pool_weight, base, levels, node, cost, dearest, active, least, 0.0, cap * 1.2 + 0.05,
            2_000_000, buffer, box_cost, box_start, scratch,
        )
        work += looked
        if found == 0:
            continue
        # Several noisy greedy orders; the best set of classes is kept.
        best = np.inf
        shares = members
        best_pool = np.empty(pool + members, dtype=np.int32)
        best_class = np.empty(pool + members, dtype=np.int32)
        best_count = np.empty(pool + members, dtype=np.int64)
        best_shares = 0
        best_new = 0
        try_pool = np.empty(pool + members, dtype=np.int32)
        try_class = np.empty(pool + members, dtype=np.int32)
        try_count = np.empty(pool + members, dtype=np.int64)
        new_most = members // least + 1
        new_low = np.empty((new_most, columns), dtype=np.int32)
        new_high = np.empty((new_most, columns), dtype=np.int32)
        new_size = np.empty(new_most, dtype=np.int64)
        new_price = np.empty(new_most)
        score = np.empty(found)
        for trial in range(6):
            noise = numbers[draw % numbers.size] * 0.6
            draw += 1
            trimmed = numbers[draw % numbers.size] * 1.5 - 0.5
            draw += 1
            pull = numbers[draw % numbers.size] * 0.8
            draw += 1
            for b in range(found):
                mean = 0.0
                total_w = 0
                for i in range(box_start[b], box_start[b + 1]):
                    mean += need[pool_tuple[buffer[i]]] * pool_weight[buffer[i]]
                    total_w += pool_weight[buffer[i]]
                score[b] = box_cost[b] * (1.0 + noise * (numbers[(draw + b) % numbers.size] - 0.5)) - pull * mean / total_w
            draw += found
            order = np.argsort(score)
            left = pool_weight[:pool].copy()
            remaining = members
            new = 0
            shares = 0
            for b in order:
                if remaining < least:
                    break
                total_w = 0
                for i in range(box_start[b], box_start[b + 1]):
                    total_w += left[buffer[i]]
                if total_w < least:
                    continue
                work += box_start[b + 1] - box_start[b]
                take_w = total_w
                if total_w > least:
                    if numbers[draw % numbers.size] < trimmed:
                        take_w = least
                    draw += 1
                for c in range(columns):
                    new_low[new, c] = 2147483647
                    new_high[new, c] = -1
                new_size[new] = take_w
                remaining -= take_w
                for i in range(box_start[b], box_start[b + 1]):
                    j = buffer[i]
                    if left[j] == 0:
                        continue
                    part = min(left[j], take_w)
                    left[j] -= part
                    take_w -= part
                    try_pool[shares] = j
                    try_class[shares] = new
                    try_count[shares] = part
                    shares += 1
                    for c in range(columns):
                        new_low[new, c] = min(new_low[new, c], local[c, j])
                        new_high[new, c] = max(new_high[new, c], local[c, j])
                    if take_w == 0:
                        break
                new_price[new] = _cover_cost(new_low[new], new_high[new], np.inf, base, loss_levels, node, cost, line)
                new += 1
            if new == 0:
                continue
            for j in range(pool):
                if left[j] == 0:
                    continue
                cheapest = np.inf
                target = 0
                target_price = 0.0
                for g in range(new):
                    total = 0.0
                    for c in range(columns):
                        total += joint_loss(c, min(new_low[g, c], local[c, j]), max(new_high[g, c], local[c, j]), base, loss_levels, node, cost, line)
                    rise = total * (new_size[g] + left[j]) - new_price[g] * new_size[g]
                    if rise < cheapest:
                        cheapest = rise
                        target = g
                        target_price = total
                new_size[target] += left[j]
                new_price[target] = target_price
                for c in range(columns):
                    new_low[target, c] = min(new_low[target, c], local[c, j])
                    new_high[target, c] = max(new_high[target, c], local[c, j])
                try_pool[shares] = j
                try_class[shares] = target
                try_count[shares] = left[j]
                shares += 1
            after = 0.0
            for g in range(new):
                after += new_price[g] * new_size[g]
            work += shares * 2
            if after < best:
                best = after
                best_shares = shares
                best_new = new
                best_pool[:shares] = try_pool[:shares]
                best_class[:shares] = try_class[:shares]
                best_count[:shares] = try_count[:shares]
        worse = best - before
        allowed = 1e-9
        if heat > 0.0:
            allowed -= heat * (1.0 - step / steps) * np.log(max(numbers[draw % numbers.size], 1e-12))
            draw += 1
        if not worse <= allowed:
            continue
        gained -= worse
        # Commit: the first new classes take the freed numbers, the others are appended; holes are filled from the end.
        number = np.empty(max(best_new, count), dtype=np.int64)
        freed = np.sort(near[:count])
        for j in range(best_new):
            if j < count:
                number[j] = freed[j]
            else:
                number[j] = classes
                classes += 1
        for j in range(best_new):
            g = number[j]
            head[g] = -1
            size[g] = 0
        for s in range(best_shares):
            g = number[best_class[s]]
            j = best_pool[s]
            t = pool_tuple[j]
            if head[g] < 0:
                for c in range(columns):
                    low[g, c] = codes[c, t]
                    high[g, c] = codes[c, t]
            else:
                for c in range(columns):
                    low[g, c] = min(low[g, c], codes[c, t])
                    high[g, c] = max(high[g, c], codes[c, t])
            for _ in range(best_count[s]):
                m = pool_head[j]
                pool_head[j] = pool_next[m]
                r = pool_row[m]
                following[r] = head[g]
                head[g] = r
                label[r] = g
                size[g] += 1
        for j in range(best_new):
            g = number[j]
            price[g] = _cover_cost(low[g], high[g], np.inf, base, loss_levels, node, cost, line)
        for j in range(count - 1, best_new - 1, -1):
            g = freed[j]
            classes -= 1
            if g != classes:
                head[g] = head[classes]
                size[g] = size[classes]
                price[g] = price[classes]
                low[g] = low[classes]
                high[g] = high[classes]
                r = head[g]
                while r >= 0:
                    label[r] = g
                    r = following[r]
    return classes, gained, done
