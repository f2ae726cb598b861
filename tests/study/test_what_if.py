"""The reruns beside a release: the right settings, the right rule, and no failure passed over."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.io import read_schema, read_table
from velado.data.partition import Partition
from velado.release.anonymize import anonymize, carry_out
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.methods import DAS, Mondrian, Progressive
from velado.release.methods.progressive._annealing import records_of, world_for
from velado.release.methods.progressive._polish import at_another_goal, without_dear_rows
from velado.release.methods.progressive._starts import AROUND_SEEDS, AT_MEDIANS
from velado.report.facts import WhatIfs
from velado.study import run as running
from velado.study.run import what_ifs
from velado.testing.strategies import tables

from ..tables import table


def released(example, method, guarantees=(), **settings):
    table = read_table(example.table, read_schema(example.schema))
    return anonymize(table, table.schema, method, guarantees, **settings), table


def test_half_and_double_k_and_two_suppression_limits_are_tried(example) -> None:
    release, _ = released(example, Mondrian(), k=4)
    runs = what_ifs(release).runs
    assert [(r.k, r.suppression) for r in runs] == [(2, 0.0), (8, 0.0), (4, 0.01), (4, 0.05)]
    for run in runs[:2]:
        alone, _ = released(example, Mondrian(), k=run.k)
        assert run.loss == pytest.approx(alone.loss)
        assert run.smallest == alone.checked.partition.sizes.min() >= run.k


def test_suppression_is_not_varied_where_some_is_allowed_already(example) -> None:
    release, _ = released(example, Mondrian(), suppression=0.1, k=4)
    assert {(r.k, r.suppression) for r in what_ifs(release).runs} == {(2, 0.1), (8, 0.1)}


def test_a_k_that_is_too_small_or_too_large_is_not_tried(example) -> None:
    small, _ = released(example, Mondrian(), k=2)
    assert [r.k for r in what_ifs(small).runs if r.changed == "k"] == [4]
    large, _ = released(example, Mondrian(), k=30)
    assert [r.k for r in what_ifs(large).runs if r.changed == "k"] == [15]


def test_a_rerun_that_fails_is_a_sentence(example) -> None:
    release, _ = released(example, Mondrian(), k=4)
    impossible = replace(release.goal, guarantees=(*release.goal.guarantees, LDiversity(9)))
    runs = what_ifs(replace(release, goal=impossible)).runs
    assert runs
    assert all(run.failed and run.loss is None for run in runs)
    assert not any(secret in run.failed for run in runs for secret in example.secrets)


def test_a_method_without_k_and_a_large_table_are_said_so(example, monkeypatch) -> None:
    release, _ = released(example, DAS())
    assert what_ifs(release) == WhatIfs(skipped="no-k")
    release, _ = released(example, Mondrian(), k=4)
    monkeypatch.setattr(running, "LARGEST_RERUN", 79)
    assert what_ifs(release).skipped == "large"
    monkeypatch.setattr(running, "LARGEST_RERUN", 80)
    assert what_ifs(release).skipped == ""


def cost(data, groups):
    total = float((~groups.kept).sum() * len(data.columns))
    for column in data.columns:
        total += float((column.loss(*groups.least_and_greatest(column.codes)) * groups.sizes).sum())
    return total


@given(
    drawn=tables(min_rows=8, max_rows=30),
    parts=st.integers(1, 3),
    least=st.integers(1, 4),
    most=st.integers(0, 4),
)
def test_rows_are_dropped_only_where_that_loses_less_and_each_group_stays_large_enough(
    drawn, parts, least, most
):
    data = encode(drawn)
    groups = Partition.of(np.arange(data.rows) % parts)
    found = without_dear_rows(data, groups, least, most)
    gone = ~found.kept
    assert gone.sum() <= most and cost(data, found) <= cost(data, groups) + 1e-9
    assert found.count == groups.count
    assert np.all(found.sizes[gone_from(groups, found)] >= least)
    if not gone.any() and most:  # then no single row would have been worth it
        for row in range(data.rows):
            if groups.sizes[groups.labels[row]] > max(least, 1):
                other = np.where(np.arange(data.rows) == row, -1, groups.labels)
                assert cost(data, Partition.of(other)) >= cost(data, groups) - 1e-6


def gone_from(groups, found):
    return np.unique(groups.labels[~found.kept])


def many_categories():
    draw = np.random.default_rng(4)
    rows, names = 12_000, ("a", "b", "c", "d", "e", "f")
    cells = {n: [f"{n}{v}" for v in np.minimum(draw.geometric(0.25, rows), 9)] for n in names}
    return table(dict.fromkeys(names, "quasi categorical"), cells)


def test_the_default_reuses_its_groups_and_boxes_and_says_no_worse_than_whole_runs() -> None:
    made = many_categories()
    release = anonymize(made, made.schema, Progressive("fast"), k=4)
    assert running._known_groups(release, release.goal.at(8)) is not None
    for run in what_ifs(release).runs:
        goal = replace(release.goal.at(run.k), suppression=run.suppression)
        whole = carry_out(release.prepared, Progressive("fast"), goal, seed=release.seed)
        assert run.loss <= min(1.01 * whole.loss, release.loss if run.k <= 4 else 1.0) + 1e-12
        assert run.smallest >= run.k and run.suppressed <= run.suppression * made.rows


def test_reruns_have_the_records_and_neighbours_of_the_release_and_its_kind_of_start() -> None:
    draw = np.random.default_rng(5)
    cells = {n: [str(v) for v in draw.integers(0, 900, 3_000)] for n in ("a", "b", "c")}
    made = table(dict.fromkeys(cells, "quasi numeric"), cells)
    release = anonymize(made, made.schema, Progressive("fast"), k=4)
    data = release.prepared.seen
    world = world_for(data, records_of(data))
    assert release.notes["start"] == "groups around seeds"
    runs = [run for run in what_ifs(release).runs if run.changed == "k"]
    assert [run.k for run in runs] == [2, 8] and all(run.smallest >= run.k for run in runs)
    assert world_for(data, records_of(data)) is world
    goal, method = release.goal.at(8), Progressive("fast")
    for kind in (AROUND_SEEDS, AT_MEDIANS):
        assert method.start(data, records_of(data), goal, 0, silent, only=kind).name == kind
    for run in runs:
        whole = carry_out(release.prepared, Progressive("fast"), release.goal.at(run.k), seed=release.seed)
        assert run.loss <= 1.02 * whole.loss


def test_a_start_that_cannot_be_made_at_another_goal_is_replaced() -> None:
    draw = np.random.default_rng(6)
    cells = {n: [str(v) for v in draw.random(2_500)] for n in ("a", "b")}
    data = encode(table(dict.fromkeys(cells, "quasi numeric"), cells))
    goal = Goal((KAnonymity(3),))
    # Boxes are not made of numbers that hardly two rows share.
    found = at_another_goal(data, goal, "boxes, cheapest first", 0)
    assert found.sizes.min() >= 3 and found.count > 500
