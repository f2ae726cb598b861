"""What a model is taught and what it is asked, protocol by protocol."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from velado.measures import measure_registry
from velado.measures.declared import Measure
from velado.measures.models.encoder import fit_encoder
from velado.study.evaluate import _work as work
from velado.study.evaluate._study_grid import ORIGINAL, plan
from velado.study.evaluate.load import load
from velado.study.evaluate.protocols import protocol_named
from velado.study.evaluate.study_run import evaluate

ALL = ("[models]", "[analyses]\nprotocols = ['split-first', 'paper-gfkmc', 'paper-gok']\nfolds = 4\n[models]")


@pytest.fixture
def ground(example):
    def of(scope: str, k: int = 40, taught_with: str = "ranges"):
        drawn = ("[models]\nuse", f"[models]\ntaught_with = '{taught_with}'\nuse")
        material = load(example.change(ALL, ("k = [3, 6]", f"k = [{k}]"), drawn))
        job = next(j for j in plan(material) if j.scope == scope and j.method is not None)
        return material, work._ground(job, material)

    return of


def test_by_default_models_learn_from_the_release_and_are_asked_about_true_rows(ground) -> None:
    material, made = ground("train")
    split = material.split(0)
    ((taught, labels, asked, truth),) = work._encoded(
        protocol_named("split-first"), material, made, work._encoder(material, made), 0
    )
    train, test = material.table.frame[split.train], material.table.frame[split.test]
    own = fit_encoder(material.table.with_frame(train), "ill", material.recipe.models, material.features)
    assert (asked == own.features(test, "whole")).all() and (truth == own.labels(test)).all()
    assert (taught == own.features(made.frame)).all() and labels.size == made.frame.height == train.height
    # At k = 40 hardly any city is published as it is, but every city that is asked about is.
    cities = [at for at, name in enumerate(own.names) if name.startswith("city")]
    assert asked[:, cities].max(axis=1).min() == 1 and taught[:, cities].max(axis=1).mean() < 1
    assert set(made.frame.get_column("dose")) <= set(train.get_column("dose"))


def test_models_can_be_taught_with_values_drawn_from_the_release(ground) -> None:
    material, made = ground("train", taught_with="drawn")
    encoder = work._encoder(material, made)
    lessons = [
        work._encoded(protocol_named("split-first"), material, made, encoder, seed)[0] for seed in (0, 0, 1)
    ]
    taught, again, other = (one[0] for one in lessons)
    assert (taught == again).all() and (taught != other).any()
    # Every city that is taught is now one city, as every city that is asked about is; the dose is published as it is.
    cities = [at for at, name in enumerate(encoder.names) if name.startswith("city")]
    assert (np.sort(taught[:, cities], axis=1)[:, -1] == 1).all() and (
        taught[:, cities].sum(axis=1) == 1
    ).all()
    assert (taught[:, -1] == encoder.features(made.frame)[:, -1]).all()
    # What the sources did is done as they did it.
    material, made = ground("whole", taught_with="drawn")
    ((taught, *_),) = work._encoded(
        protocol_named("paper-gfkmc"), material, made, work._encoder(material, made), 0
    )
    assert (taught == encoder.features(made.frame)[material.split(0).train]).all()


def test_the_thesis_tests_on_rows_of_the_release(ground) -> None:
    material, made = ground("whole")
    ((taught, _, asked, _),) = work._encoded(
        protocol_named("paper-gfkmc"), material, made, work._encoder(material, made), 0
    )
    whole = fit_encoder(material.table, "ill", material.recipe.models, material.features).features(made.frame)
    assert (asked == whole[material.split(0).test]).all() and taught.shape[0] + asked.shape[0] == 240


def test_unshuffled_folds_of_sorted_output_separate_the_classes(ground) -> None:
    material, made = ground("whole", 10)
    folds = work._encoded(protocol_named("paper-gok"), material, made, work._encoder(material, made), 0)
    assert [fold[2].shape[0] for fold in folds] == [60] * 4
    # All features but the dose, which is published as it is.
    classes = [set(map(bytes, np.ascontiguousarray(fold[2][:, :-1]))) for fold in folds]
    shared = sum(len(one & other) for at, one in enumerate(classes) for other in classes[:at])
    assert shared <= 3  # a class lies in one fold, but where a fold ends inside it


@pytest.mark.slow
def test_every_protocol_is_run_and_the_whole_table_is_anonymized_once_for_both_papers(
    example, tmp_path
) -> None:
    fewer = (("k = [3, 6]", "k = [3]"), ("seeds = [0, 1]", "seeds = [0]"))
    study = evaluate(example.change(ALL, *fewer), tmp_path / "out", jobs=1)
    assert study.gaps.height == 0
    releases = study.results.filter((pl.col("kind") == "release") & (pl.col("method") != ORIGINAL))
    assert releases.group_by("scope").len().sort("scope").get_column("len").to_list() == [2, 2]
    tested = {
        name: set(part.get_column("test_rows"))
        for (name,), part in study.results.filter(pl.col("kind") == "model").group_by(["protocol"])
    }
    assert tested == {"split-first": {60}, "paper-gfkmc": {60}, "paper-gok": {240}}
    assert {one.protocol for one in study.protocols} == set(tested)
    assert study.protocol == "split-first"


def test_a_measure_that_is_registered_is_a_column_of_the_results(example, monkeypatch) -> None:
    smallest = Measure(
        name="smallest_share",
        title="smallest group",
        of=lambda published, scores: scores.after.class_sizes.smallest / published.rows,
    )
    monkeypatch.setattr(measure_registry, "UTILITY", (*measure_registry.UTILITY, smallest))
    material = load(example.change(("k = [3, 6]", "k = [6]")))
    job = next(one for one in plan(material) if one.method is not None)
    job = replace(job, cells=tuple(cell for cell in job.cells if cell.model is None))
    (found,) = work.carry_out(job, material)
    row = pl.DataFrame([found.to_row()], schema=work.columns()).to_dicts()[0]
    assert row["status"] == "done" and row["smallest_share"] == row["smallest"] / row["rows"] > 0
