"""A thousand tiny series of releases, every possible world tried: nobody below k, and no posterior above the bound.

The code under test makes the groups and decides what is withheld; who has how many candidates and what a reader believes is
counted here by the definitions, in whole numbers and fractions.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.history.classes import Classes, Leavers, shown_together
from velado.release.history.together import cells_of, histogram_of, merged_cells, withheld_cells
from velado.release.methods import Mondrian
from velado.release.recoders import Cover
from velado.testing.examples import encoded

TABLES = 1000
Ints = npt.NDArray[np.int64]


def series(random: np.random.Generator, most: int = 8) -> tuple[EncodedTable, list[Ints]]:
    """The quasi-identifiers of at most *most* people, and who is there in each of three releases."""
    people = int(random.integers(2, most + 1))
    data = encoded(age=random.integers(20, 26, people).tolist(), place=random.integers(0, 4, people).tolist())
    return data, [np.flatnonzero(random.random(people) < 0.8) for _ in range(3)]


def boxes(data: EncodedTable, rows: Ints, classes: Ints) -> dict[int, tuple[object, ...]]:
    """What is seen of each person who is shown."""
    kept = classes >= 0
    if not kept.any():
        return {}
    labels = np.unique(classes[kept], return_inverse=True)[1].astype(np.int32)
    columns = Cover().publish(data.subset(rows[kept]), Partition.of(labels))
    return {int(p): tuple(one.values[one.codes[at]] for one in columns) for at, p in enumerate(rows[kept])}


def least_candidates(shown: list[dict[int, tuple[object, ...]]]) -> int:
    """The definition: who shares the box of v in every release v is in."""
    least = 99
    for v in {p for one in shown for p in one}:
        mine = [one for one in shown if v in one]
        least = min(least, sum(all(one.get(u) == one[v] for one in mine) for u in mine[0]))
    return least


def held(
    data: EncodedTable, present: list[Ints], k: int, start: int, leavers: Leavers = "drop"
) -> list[dict[int, tuple[object, ...]]]:
    state, out = Classes.none(), []
    for here in present:
        grouping = lambda at, here=here: cells_of(data, here[at], start, Mondrian(), 0)  # noqa: E731
        found = shown_together(state, here, k=k, start=start, grouping=grouping, leavers=leavers)
        state = found.after
        shown, classes = np.append(here, found.stale), np.append(found.classes, found.stale_classes)
        out.append(boxes(data, shown, classes))
    return out


def largest_share_of_worlds(shown: list[dict[int, tuple[object, ...]]], people: int) -> Fraction:
    """The most that reader *exactly* can believe of any track being anybody's: every way of giving tracks to people is tried.

    The reader knows everybody's quasi-identifiers and presence, and so what is shown of whom; linked rows are a track, told apart
    from every other one. A world is a way of giving the tracks to the people; it remains if each release would look the same.
    """
    seen = [tuple(one.get(p) for one in shown) for p in range(people)]
    number = {track: n for n, track in enumerate(dict.fromkeys(seen))}
    track = np.array([number[one] for one in seen])
    worlds = np.array(list(permutations(range(people))), np.int8)
    left = worlds[(track[worlds] == track).all(axis=1)]
    largest = Fraction(0)
    for p in range(people):
        if any(seen[p]):
            largest = max(largest, Fraction(int(np.bincount(left[:, p]).max()), len(left)))
    return largest


@pytest.mark.parametrize(
    ("leavers", "tables"),
    [("keep", 60), ("drop", 60), pytest.param("keep", TABLES, marks=pytest.mark.slow)],
)
def test_who_knows_everybodys_presence_finds_nobody_with_more_than_one_in_k(
    leavers: Leavers, tables: int
) -> None:
    """Rows that are kept hold the promise in every world; dropped ones do not hold it for this reader."""
    random, shown, met, broken = np.random.default_rng(4), 0, 0, 0
    for _ in range(tables):
        data, present = series(random)
        k = int(random.integers(2, 4))
        found = held(data, present, k, k + int(random.integers(0, 2)), leavers)
        shown += sum(map(len, found))
        belief = largest_share_of_worlds(found, data.rows)
        met += belief == Fraction(1, k)
        broken += belief > Fraction(1, k)
    assert shown > 5 * tables and met > tables // 20
    assert broken == 0 if leavers == "keep" else broken > 3


def test_nobody_who_is_held_together_has_fewer_than_k_candidates() -> None:
    random, shown = np.random.default_rng(1), 0
    for _ in range(TABLES):
        data, present = series(random)
        k = int(random.integers(2, 4))
        found = held(data, present, k, k + int(random.integers(0, 2)))
        shown += sum(map(len, found))
        assert least_candidates(found) >= k
    assert shown > 5 * TABLES  # not because nothing was shown


def test_grouped_anew_each_time_some_do() -> None:
    random, below = np.random.default_rng(1), 0
    for _ in range(100):
        data, present = series(random)
        found = [
            boxes(data, here, cells_of(data, here, 2, Mondrian(), 0)) for here in present if here.size >= 2
        ]
        below += least_candidates(found) < 2
    assert below > 30


Told = tuple[tuple[tuple[int, str, int], ...], ...]


def told(cells: list[tuple[Ints, Ints]], world: tuple[str, ...], most: Fraction) -> Told:
    """All that a series says of values in a *world*: the counts of each group that got any."""
    out = []
    for people, groups in cells:
        values = np.array([world[p] for p in people])
        codes = np.unique(values, return_inverse=True)[1] if values.size else np.empty(0, np.int64)
        bad = withheld_cells(groups, codes, most)
        counted = Counter((int(g), v) for g, v in zip(groups, values, strict=True) if g >= 0 and not bad[g])
        out.append(tuple(sorted((g, str(v), n) for (g, v), n in counted.items())))
    return tuple(out)


def cells_for_life(data: EncodedTable, present: list[Ints], size: int) -> list[tuple[Ints, Ints]]:
    """Who came new in each release, and the group of each."""
    known, out = set[int](), []
    for here in present:
        new = np.array([p for p in here if int(p) not in known], np.int64)
        known |= {int(p) for p in here}
        cells = np.full(new.size, -1) if new.size < size else cells_of(data, new, size, Mondrian(), 0)
        out.append((new, cells))
    return out


def largest_belief(
    cells_of_world: dict[tuple[str, ...], list[tuple[Ints, Ints]]], true: tuple[str, ...], most: Fraction
) -> Fraction:
    """The most that who knows everything but values believes of a value of somebody whose group got counts."""
    seen = told(cells_of_world[true], true, most)
    where = [{int(p): int(g) for p, g in zip(*one, strict=True)} for one in cells_of_world[true]]
    worlds = [w for w, cells in cells_of_world.items() if told(cells, w, most) == seen]
    largest = Fraction(0)
    for told_in, homes in zip(seen, where, strict=True):
        given = {g for g, _, _ in told_in}
        for person, group in homes.items():
            if group in given:
                counts = Counter(world[person] for world in worlds)
                largest = max(largest, Fraction(max(counts.values()), len(worlds)))
    return largest


def beliefs_in_all_worlds(
    cells: list[tuple[Ints, Ints]], true: Ints, values: int, most: Fraction
) -> tuple[Fraction, int]:
    """The same as `largest_belief` for groups that no value had a part in, all worlds in one array; and how many worlds are left."""
    people = len(true)
    worlds = np.array(list(product(range(values), repeat=people)), np.int64)
    number = int((worlds == true).all(axis=1).argmax())
    left, given = np.ones(len(worlds), bool), set[int]()
    for who, groups in cells:
        for group in range(int(groups.max(initial=-1)) + 1):
            members = who[groups == group]
            # Every world is a cell of its own for the code under test.
            each = np.repeat(np.arange(len(worlds)), len(members))
            bad = withheld_cells(each, worlds[:, members].ravel(), most)
            counts = np.stack([(worlds[:, members] == v).sum(axis=1) for v in range(values)], axis=1)
            counts[bad] = -1
            left &= (counts == counts[number]).all(axis=1)
            given |= set() if bad[number] else set(members.tolist())
    shares = [int(np.bincount(worlds[left, p]).max()) for p in given]
    return Fraction(max(shares, default=0), int(left.sum())), int(left.sum())


@pytest.mark.parametrize("tables", [50, pytest.param(TABLES, marks=pytest.mark.slow)])
def test_no_belief_exceeds_the_bound_in_any_world(tables: int) -> None:
    random, met = np.random.default_rng(2), 0
    for number in range(tables):
        data, present = series(random)
        values = 3 if number % 4 == 0 or data.rows < 6 else 2
        most = Fraction(1, 2) if random.random() < 0.7 else Fraction(2, 3)
        cells = cells_for_life(data, present, int(random.integers(2, 4)))
        true = random.integers(0, values, data.rows)
        belief, worlds = beliefs_in_all_worlds(cells, true, values, most)
        assert belief <= most
        met += belief == most
        if number < 5 and data.rows < 6:  # both ways of counting agree
            text = tuple("abc"[v] for v in true)
            all_worlds = dict.fromkeys(product("abc"[:values], repeat=data.rows), cells)
            assert largest_belief(all_worlds, text, most) == belief and worlds
    assert met > tables // 20  # the bound is met: the attack can see something


def test_of_eight_people_every_order_of_their_values_is_as_likely() -> None:
    data = encoded(age=[20, 20, 21, 21, 24, 24, 25, 25], place=[0] * 8)
    (_, groups), *_ = cells_for_life(data, [np.arange(8)], 4)
    true = ("a", "b", "a", "b", "a", "a", "b", "c")
    cells = [(np.arange(8), groups)]
    worlds = dict.fromkeys(set(permutations(true)), cells)
    assert largest_belief(worlds, true, Fraction(1, 2)) == Fraction(1, 2)


def test_groups_made_with_values_in_view_break_the_bound() -> None:
    """Blindness left out: a pair that breaks the bound is merged with the other, and who knows that knows the pair."""

    def with_values_in_view(world: tuple[str, ...]) -> list[tuple[Ints, Ints]]:
        near, merged = np.array([0, 0, 1, 1]), np.zeros(4, np.int64)
        return [(np.arange(4), near if world[2] != world[3] else merged)]

    true = ("b", "c", "a", "a")
    worlds = {world: with_values_in_view(world) for world in product("abc", repeat=4)}
    assert told(worlds[true], true, Fraction(1, 2)) == (((0, "a", 2), (0, "b", 1), (0, "c", 1)),)
    assert largest_belief(worlds, true, Fraction(1, 2)) == 1


def test_groups_that_are_merged_when_they_break_the_bound_tell_why() -> None:
    """Of three pairs the second lies nearest to the first: merged with the third, it can only be that the third broke the bound."""
    data, near = encoded(age=[20, 20, 30, 30, 60, 60]), np.array([0, 0, 1, 1, 2, 2])

    def merged(world: tuple[str, ...]) -> list[tuple[Ints, Ints]]:
        codes = np.array(["abc".index(v) for v in world])
        return [(np.arange(6), merged_cells(data, np.arange(6), near, codes, Fraction(1, 2)))]

    true = ("b", "c", "b", "c", "a", "a")
    worlds = {world: merged(world) for world in product("abc", repeat=6)}
    assert told(worlds[true], true, Fraction(1, 2)) == (
        ((0, "b", 1), (0, "c", 1), (1, "a", 2), (1, "b", 1), (1, "c", 1)),
    )
    assert largest_belief(worlds, true, Fraction(1, 2)) == 1
    kept = {world: [(np.arange(6), near)] for world in worlds}
    assert largest_belief(kept, true, Fraction(1, 2)) == Fraction(
        1, 2
    )  # strict: the third pair gets no counts


def test_counts_are_those_of_the_members() -> None:
    counts = histogram_of(np.array([0, 0, 1, -1]), pl.Series(["b", "a", "", "c"]), 3)
    assert counts.rows() == [(3, "a", 1), (3, "b", 1), (4, "", 1)]
