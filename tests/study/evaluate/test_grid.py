"""The grid: every combination once, ids that follow from content, a cost without computing anything."""

from velado.study.evaluate._study_grid import cells_of, plan
from velado.study.evaluate.load import load
from velado.study.evaluate.study_run import START_UP, make_plan


def ids(example, *changes: tuple[str, str]) -> set[str]:
    return {cell.id for _, cell in cells_of(plan(load(example.change(*changes))))}


def test_every_combination_is_there_once(example) -> None:
    jobs = plan(load(example.study))
    # Per seed: the original, and two methods at two k.
    assert len(jobs) == 2 * (1 + 2 * 2)
    cells = [cell.id for _, cell in cells_of(jobs)]
    # One release and two models each, and the majority on the originals.
    assert len(cells) == len(set(cells)) == len(jobs) * 3 + 2


def test_a_method_without_k_and_further_promises_are_axes_too(example) -> None:
    changes = (
        ('"mondrian", "progressive"', '"mondrian", "das"'),
        ("seeds = [0, 1]", "seeds = [0]\nguarantees = [[], { name = 'l-diversity', l = 2 }]"),
    )
    jobs = plan(load(example.change(*changes)))
    labels = [(job.label, job.k, job.promised) for job in jobs]
    assert len(labels) == len(set(labels)) == 1 + 2 * 2 + 2
    assert ("das", None, "") in labels and ("mondrian", 3, "l-diversity") in labels


def test_a_setting_that_is_no_default_stands_in_the_label(example) -> None:
    jobs = plan(load(example.change(('"mondrian", ', '{ name = "mondrian", cut = "relaxed" }, '))))
    assert "mondrian(cut=relaxed)" in {job.label for job in jobs}


def test_ids_repeat_and_adding_to_the_grid_keeps_the_old_ones(example) -> None:
    before = ids(example)
    assert before == ids(example)
    assert before < ids(example, ("k = [3, 6]", "k = [3, 6, 9]"))
    assert before < ids(example, ('"mondrian", ', '"mondrian", "mdav", '))
    assert before < ids(
        example, ("[models]", "[analyses]\nprotocols = ['split-first', 'paper-gok']\n[models]")
    )


def test_whatever_a_number_depends_on_changes_its_id(example) -> None:
    before = ids(example)
    for change in [
        ("seeds = [0, 1]", "seeds = [2, 3]"),
        ("seeds = [0, 1]", "seeds = [0, 1]\nsuppression = 0.1"),
        ("[models]", "[analyses]\ntest_share = 0.5\n[models]"),
    ]:
        assert not before & ids(example, change)
    models = ids(example, ("[models]", "[models]\ninterval = 'bounds'"))
    assert len(before & models) == 10  # the releases: they do not depend on how models read them
    path = example.folder / "city.csv"
    path.write_text(path.read_text("utf-8").replace("Cantaro;South", "Cantaro;North"), "utf-8")
    assert not before & ids(example)
    path.write_text(path.read_text("utf-8").replace("Cantaro;North", "Cantaro;South"), "utf-8")
    table = example.folder / "people.csv"
    table.write_text(table.read_text("utf-8").replace("Person-000", "Person-999"), "utf-8")
    assert not before & ids(example)


def test_a_plan_counts_and_costs_and_writes_nothing(example) -> None:
    out = example.folder / "out"
    found = make_plan(load(example.study), out, 2).facts()
    assert (found["cells"], found["missing"], found["releases"]) == (32, 32, 10)
    assert found["estimated_seconds"] > START_UP and found["workers"] == 2
    assert found["methods"]["mondrian"] == {"releases": 4, "federated": 0, "cells": 12}
    assert not out.exists()
