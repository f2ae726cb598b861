"""Progressive generalization keeps its promise, reaches its known losses, and its lower bound is one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.io import read_table, schema_from
from velado.data.partition import Partition
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.taxonomy import from_paths
from velado.errors import GuaranteeNotMet
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.methods.progressive._cover_lattice import bound_lattice, lattice
from velado.release.methods.progressive.lower_bound import lower_bound
from velado.release.methods.progressive.progressive import Progressive, improved
from velado.testing import contracts
from velado.testing.examples import encoded
from velado.testing.strategies import tables


def loss_of(data: EncodedTable, labels: np.ndarray) -> float:
    """NCP of the tight covers, counted here and not by the method."""
    total = 0.0
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for column in data.columns:
        low = np.array([column.codes[rows].min() for rows in groups])
        high = np.array([column.codes[rows].max() for rows in groups])
        total += float((column.loss(low, high) * [rows.size for rows in groups]).sum())
    return total / (data.rows * len(data.columns))


def run(data: EncodedTable, k: int, effort: str = "default", seed: int = 0):
    goal = Goal((KAnonymity(k),))
    return Progressive(effort=effort).anonymize(data, goal, np.random.default_rng(seed), silent)


def adult(folder) -> EncodedTable:
    """Adult's nine quasi-identifiers, every one a tree of the reference hierarchies."""
    frame = pl.read_csv(folder / "adult" / "adult_arx.csv", separator=";", infer_schema=False)
    columns = []
    for name in frame.columns:
        file = folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
        tree = from_paths([line.split(";") for line in file.read_text().strip().splitlines()], name)
        codes = np.array([tree.code_of[value] for value in frame[name]], dtype=np.int32)
        columns.append(EncodedColumn(name, codes, tree.leaves, tree=tree))
    return EncodedTable(tuple(columns), frame.height)


def best_loss(data: EncodedTable, k: int) -> float:
    """The least NCP of any partition into groups of k or more, by trying all of them."""
    rows = data.rows
    cost = np.full(1 << rows, np.inf)
    for subset in range(1, 1 << rows):
        members = [r for r in range(rows) if subset >> r & 1]
        if len(members) >= k:
            cost[subset] = len(members) * sum(
                float(c.loss(c.codes[members].min(), c.codes[members].max())) for c in data.columns
            )
    best = np.full(1 << rows, np.inf)
    best[0] = 0.0
    for subset in range(1, 1 << rows):
        first = subset & -subset
        part = subset
        while part:
            if part & first and best[subset ^ part] + cost[part] < best[subset]:
                best[subset] = best[subset ^ part] + cost[part]
            part = (part - 1) & subset
    return float(best[-1]) / (rows * len(data.columns))


# High effort takes ten times as long, for a promise that does not depend on it.
@pytest.mark.parametrize("effort", ["fast", "default", pytest.param("high", marks=pytest.mark.slow)])
@settings(max_examples=10)
@given(table=tables(), k=st.integers(2, 6), order=st.randoms(use_true_random=False))
def test_every_release_keeps_its_promise_and_covers_the_true_values(effort, table, k, order):
    method = Progressive(effort=effort)
    try:
        release = anonymize(table, table.schema, method, k=k)
    except GuaranteeNotMet:
        person = table.schema.person
        crowd = table.rows if person is None else table.text(person.name).n_unique()
        assert crowd < k
        return
    contracts.check_promise(release)
    contracts.check_cover(release)
    contracts.check_shape(table, release)
    contracts.check_repeatable(method, release)
    rows = list(range(table.rows))
    order.shuffle(rows)
    contracts.check_row_order(table, method, release, rows)


@settings(max_examples=40)
@given(
    table=tables(min_rows=10),
    k=st.integers(2, 4),
    l=st.integers(2, 3),
    suppression=st.sampled_from([0.0, 0.2]),
)
def test_groups_are_diverse_when_asked(table, k, l, suppression):
    try:
        release = anonymize(
            table, table.schema, Progressive(), (LDiversity(l),), suppression=suppression, k=k
        )
    except GuaranteeNotMet:
        person = table.schema.person
        crowd = table.rows if person is None else table.text(person.name).n_unique()
        assert table.text("disease").drop_nulls().n_unique() < l or crowd < k
        return
    contracts.check_promise(release)
    contracts.check_cover(release)
    contracts.check_shape(table, release)


@settings(max_examples=25)
@given(table=tables(min_rows=10, person=True), k=st.integers(2, 4))
def test_people_are_counted_not_rows_when_a_person_column_is_named(table, k):
    if table.text("patient").n_unique() < k:
        return
    release = anonymize(table, table.schema, Progressive(), k=k)
    contracts.check_promise(release)


@settings(max_examples=25)
@given(table=tables(person=False), k=st.integers(2, 5))
def test_the_lower_bound_is_never_above_what_is_reached(table, k):
    data = encode(table)
    if data.rows < k:
        return
    recoded = run(data, k, "high")
    assert recoded.partition is not None
    reached = loss_of(data, recoded.partition.labels)
    assert lower_bound(data, k) <= reached + 1e-9


@settings(max_examples=25)
@given(table=tables(min_rows=6, max_rows=8, person=False), k=st.integers(2, 3))
def test_the_best_possible_lies_between_the_bound_and_what_is_reached(table, k):
    data = encode(table)
    best = best_loss(data, k)
    assert lower_bound(data, k) <= best + 1e-9
    recoded = run(data, k, "high")
    assert recoded.partition is not None
    assert best <= loss_of(data, recoded.partition.labels) + 1e-9


def test_the_bound_is_exact_where_rows_pair_off():
    tree = from_paths([["a", "x"], ["b", "x"], ["c", "y"], ["d", "y"]])
    column = EncodedColumn("c", np.arange(4, dtype=np.int32), 4, tree=tree)
    data = EncodedTable((column,), 4)
    assert lower_bound(data, 2) == pytest.approx(1 / 3)
    assert loss_of(data, run(data, 2).partition.labels) == pytest.approx(1 / 3)


@settings(max_examples=25)
@given(
    values=st.lists(st.integers(0, 60), min_size=3, max_size=40),
    chosen=st.data(),
)
def test_no_set_of_numbers_costs_less_than_its_window(values, chosen):
    points, codes = np.unique(np.array(values, dtype=float), return_inverse=True)
    if points.size < 2:
        return
    column = EncodedColumn(
        "n", codes.astype(np.int32), points.size, points=points, span=points[-1] - points[0]
    )
    space = bound_lattice(EncodedTable((column,), len(values))).space
    low, high = sorted(chosen.draw(st.tuples(*[st.integers(0, points.size - 1)] * 2)))
    fitting = [
        float(space.cost[at + low])
        for at in space.base[0, : space.levels[0]].tolist()
        if space.node[at + low] == space.node[at + high]
    ]
    assert min(fitting) <= float(column.loss(low, high)) + 1e-12


def test_a_missing_number_shares_a_node_only_with_everything():
    points = np.array([1.0, 2.0, 3.0, 4.0, 9.0])
    column = EncodedColumn("n", np.arange(5, dtype=np.int32), 5, 4, points=points, span=3.0)
    space = lattice(EncodedTable((column,), 5)).space
    for level in range(int(space.levels[0]) - 1):
        nodes = space.node[space.base[0, level] : space.base[0, level] + 5]
        assert nodes[4] not in nodes[:4]


def test_rows_that_could_not_be_listed_in_time_are_still_grouped():
    # Twelve columns of noise: far more boxes than the least amount of work can list.
    codes = np.random.default_rng(0).integers(0, 30, (12, 3000)).astype(np.int32)
    columns = [EncodedColumn(f"n{c}", codes[c], 30, points=np.arange(30.0), span=29.0) for c in range(12)]
    data = EncodedTable(tuple(columns), 3000)
    recoded = Progressive(work=1).anonymize(data, Goal((KAnonymity(5),)), np.random.default_rng(0), silent)
    assert recoded.partition is not None and recoded.partition.sizes.min() >= 5
    # They are clustered: a third of the groups there could be would be Mondrian's cuts.
    assert recoded.partition.count > 500


def test_too_few_rows_are_refused_and_not_published():
    column = EncodedColumn("n", np.arange(3, dtype=np.int32), 3, points=np.arange(3.0), span=2.0)
    with pytest.raises(GuaranteeNotMet):
        run(EncodedTable((column,), 3), 5)


def test_rows_far_from_all_others_may_be_dropped_instead_of_widening_a_group():
    codes = np.array([0] * 10 + [1], dtype=np.int32)
    column = EncodedColumn("n", codes, 2, points=np.array([0.0, 1.0]), span=1.0)
    data = EncodedTable((column,), 11)
    goal = Goal((KAnonymity(5),), suppression=0.1)
    recoded = Progressive().anonymize(data, goal, np.random.default_rng(0), silent)
    assert recoded.kept.tolist() == [True] * 10 + [False]


def test_adult_loses_no_more_than_is_known_to_suffice(data_folder):
    data = adult(data_folder)
    recoded = run(data, 10)
    assert recoded.partition is not None and recoded.partition.sizes.min() >= 10
    reached = loss_of(data, recoded.partition.labels)
    assert reached <= 0.0749
    assert 0.058 <= lower_bound(data, 10, 100_000_000) <= reached


def test_the_losses_in_the_notes_are_shares_where_columns_have_weights():
    data = encoded(age=[20, 21, 30, 40, 50, 90], sum=[1, 9, 5, 3, 7, 2]).weighted({"age": 5.0, "sum": 0.5})
    recoded = run(data, 2)
    assert recoded.partition is not None
    # `loss_of` sums losses that carry their weights, over 2 columns.
    share = loss_of(data, recoded.partition.labels) * 2 / 5.5
    assert recoded.notes["searched_loss"] == pytest.approx(share) and share < 1


def test_clusters_of_more_than_k_rows_are_found_whole():
    """Groups of k rows leave rests that no other cluster wants: they must all find the way back to one group."""
    draw = np.random.default_rng(4)
    centres = draw.uniform(0, 100, (12, 4))
    planted = np.repeat(np.arange(12), 8)
    places = np.round(centres[planted] + draw.normal(0, 0.4, (96, 4)), 2)
    order = draw.permutation(96)
    data = encoded(**{f"x{at}": places[order, at].tolist() for at in range(4)})
    recoded = run(data, 5)
    assert recoded.partition is not None
    assert loss_of(data, recoded.partition.labels) <= loss_of(data, planted[order]) + 1e-12


def test_rows_without_near_ones_do_not_stay_together_for_want_of_others():
    """Any start puts what is far from everything into groups of its own; only to give these up comes below .1196."""
    data = encode(read_table(hospital_csv(), schema_from(hospital_schema())))
    recoded = run(data, 5)
    assert recoded.partition is not None and recoded.partition.sizes.min() >= 5
    assert loss_of(data, recoded.partition.labels) <= 0.1196


@pytest.mark.slow
def test_adult_in_another_row_order_loses_the_same(data_folder):
    data = adult(data_folder)
    order = np.random.default_rng(1).permutation(data.rows)
    one = run(data, 20, "fast").partition
    other = run(data.subset(order), 20, "fast").partition
    assert one is not None and other is not None
    assert Partition.of(one.labels[order]).count == other.count
    assert loss_of(data, one.labels) == pytest.approx(loss_of(data.subset(order), other.labels))


@pytest.mark.slow
def test_high_effort_on_adult_comes_nearer_to_the_bound(data_folder):
    data = adult(data_folder)
    recoded = run(data, 5, "high")
    assert recoded.partition is not None and recoded.partition.sizes.min() >= 5
    assert loss_of(data, recoded.partition.labels) <= 0.0500


def test_boxes_are_listed_anew_where_rows_of_one_tuple_are_in_several_groups():
    # The last row of each tuple is in the last group: the other groups have no tuple of their own.
    data = encoded(job=["a", "b", "c", "d"] * 6, town=["x", "y"] * 12)
    labels = np.repeat(np.arange(6, dtype=np.int32), 4)
    space = lattice(data)
    better = improved(space, labels, 4, 0.1, np.random.default_rng(0), silent)
    assert np.bincount(better).min() >= 4
    assert loss_of(data, better) == 0.0 < loss_of(data, labels)
