"""The reruns beside a release: the right settings, the right rule, and no failure passed over."""

from dataclasses import replace

import pytest

from velado.data.io import read_schema, read_table
from velado.release.anonymize import anonymize
from velado.release.guarantees import LDiversity
from velado.release.methods import DAS, Mondrian
from velado.report.facts import WhatIfs
from velado.study import run as running
from velado.study.run import what_ifs


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
