"""Every registered method gives on counted tuples what it gives on their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.counted import MOST_EXPANDED, compressed
from velado.data.encode import encode
from velado.data.partition import Partition
from velado.errors import GuaranteeNotMet, ParameterError
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, silent
from velado.release.guarantees import EntropyLDiversity, KAnonymity, LDiversity, TCloseness
from velado.release.methods import MDAV, METHODS, FullDomain, Mondrian, Progressive
from velado.release.methods._method import on_entries
from velado.testing import contracts
from velado.testing.examples import encoded
from velado.testing.strategies import tables

from .test_contracts import VARIANTS

ON_TUPLES = [variant for variant in VARIANTS if variant.takes == "tuples"]
OTHERS = [method() for method in METHODS if method().takes != "tuples"]
GOALS = [
    (KAnonymity(3),),
    (KAnonymity(2, "person"),),
    (KAnonymity(2), LDiversity(2)),
    (EntropyLDiversity(1.5),),
    (TCloseness(0.5),),
]


def doubled(table, draw):
    """The rows of the table drawn with repetition, so that tuples repeat; half the columns count by another weight."""
    rows = [draw.randrange(table.rows) for _ in range(3 * table.rows)]
    data = encode(table.with_frame(table.frame[sorted(rows)]))
    return data.weighted({column.name: 0.5 for column in data.columns[::2]})


# A quick run tries every sixth of the choices, and every method as it comes.
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(v, marks=[pytest.mark.slow] * (at % 6 > 0 and v not in (Mondrian(), FullDomain())))
        for at, v in enumerate(ON_TUPLES)
    ],
    ids=repr,
)
@pytest.mark.parametrize("goal", GOALS, ids=repr)
@settings(max_examples=6)
@given(
    table=tables(person=True),
    draw=st.randoms(use_true_random=False),
    suppression=st.sampled_from([0.0, 0.1]),
)
def test_tuples_give_what_their_rows_give(method, goal, table, draw, suppression):
    contracts.check_counted(method, doubled(table, draw), Goal(goal, suppression))


@pytest.mark.parametrize("method", OTHERS, ids=lambda m: m.name)
@settings(max_examples=4)
@given(table=tables(person=False), draw=st.randoms(use_true_random=False))
def test_a_method_that_needs_rows_is_given_those_behind_the_tuples(method, table, draw):
    contracts.check_counted(method, doubled(table, draw), Goal((KAnonymity(3),)))


@settings(max_examples=10)
@given(table=tables(person=True), draw=st.randoms(use_true_random=False), goal=st.sampled_from(GOALS))
def test_progressive_groups_whole_tuples_where_equal_rows_are_counted_together(table, draw, goal):
    data = doubled(table, draw)
    tuples, entry_of_row = compressed(data)
    try:
        made = Progressive().anonymize(tuples, Goal(goal), seeded(0, "x"), silent)
    except GuaranteeNotMet:
        whole = Partition(np.zeros(data.rows, dtype=np.int32), 1)
        assert not bool(Goal(goal).holds_in_parts(data, whole)[0])
        return
    assert "search" in made.notes and made.partition is not None
    assert bool(Goal(goal).holds_in_parts(data, made.partition.of_rows(entry_of_row)).all())


def test_more_rows_than_are_taken_refuse_methods_that_need_them_and_name_others():
    tuples, _ = compressed(encoded(age=[20, 30, 20, 30, 40]))
    huge = replace(tuples, counts=np.array([MOST_EXPANDED, 3, 2]))
    goal = Goal((KAnonymity(2),))
    for method in OTHERS:
        if method.takes == "rows":
            with pytest.raises(ParameterError, match="needs every row by itself") as refused:
                on_entries(method, huge, goal, seeded(0, "x"), silent)
            assert "mondrian" in str(refused.value)
    made, entry = on_entries(Progressive(), huge, goal, seeded(0, "x"), silent)
    assert made.kept.size == entry.size == 3 and "search" in made.notes
    # Few rows are taken, and searched as they are.
    assert on_entries(Progressive(), tuples, goal, seeded(0, "x"), silent)[0].kept.size == 5
    assert on_entries(MDAV(), tuples, goal, seeded(0, "x"), silent)[0].kept.size == 5


@pytest.mark.parametrize("method", [m for m in OTHERS if m.takes == "rows"], ids=lambda m: m.name)
def test_a_method_that_needs_rows_never_takes_entries_for_rows(method):
    tuples, _ = compressed(encoded(age=[20, 30, 20, 30, 40]))
    with pytest.raises(ValueError, match="expand"):
        method.anonymize(tuples, Goal((KAnonymity(2),)), seeded(0, "x"), silent)


def test_relaxed_cuts_are_refused_where_equal_rows_are_counted_together():
    tuples, _ = compressed(encoded(age=[20, 30, 20, 30, 40]))
    with pytest.raises(ParameterError, match="Relaxed cuts cannot be made"):
        Mondrian(cut="relaxed").anonymize(tuples, Goal((KAnonymity(2),)), seeded(0, "x"), silent)


def test_a_large_table_of_few_tuples_is_published_as_from_its_rows(monkeypatch):
    import polars as pl

    from velado.data.keys import Key
    from velado.release import anonymize as room

    draw = np.random.default_rng(0)
    rows = 25_000
    frame = pl.DataFrame(
        {
            "age": draw.integers(20, 60, rows),
            "zone": draw.integers(0, 9, rows).astype(str),
            "ill": draw.integers(0, 5, rows).astype(str),
        }
    )
    schema = {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "zone": {"role": "quasi", "kind": "categorical"},
            "ill": {"role": "sensitive", "kind": "categorical"},
        }
    }
    from velado.data.schema import Schema

    def made(method, guarantees):
        return anonymize(frame, Schema.from_dict(schema), method, guarantees, k=60, key=Key(bytes(range(40))))

    for method, guarantees in ((Mondrian(), ()), (Mondrian(), (LDiversity(5),)), (FullDomain(), ())):
        on_tuples = made(method, guarantees)
        assert "tuples" in vars(on_tuples.prepared), "the tuples were not used"
        with monkeypatch.context() as few:
            few.setattr(room, "_FEW_ROWS", rows + 1)
            on_rows = made(method, guarantees)
        assert "tuples" not in vars(on_rows.prepared)
        assert on_tuples.frame.equals(on_rows.frame)
        assert on_tuples.facts() == on_rows.facts()
