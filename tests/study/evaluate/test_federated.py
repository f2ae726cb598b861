"""The [federated] section: one more part of the grid, computed once, with every hole visible, in both languages."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from velado.data.cells import CELLS
from velado.errors import MissingExtra, ParameterError, SchemaError
from velado.study.evaluate import study_settings as federated
from velado.study.evaluate._study_grid import ORIGINAL, cells_of, estimate, plan
from velado.study.evaluate.load import load
from velado.study.evaluate.page import to_markdown
from velado.study.evaluate.study_outcome import Study
from velado.study.evaluate.study_run import START_UP, evaluate, make_plan, takes_all_cores
from velado.study.evaluate.study_settings import StudyRecipe

from .conftest import written

SECTION = "[federated]\nclients = 4\nrounds = 3\nk = [3]\nmethods = ['mondrian']\n"
# The rest of the grid, where only the runs across clients are looked at.
SMALL = (
    (', "progressive"', ""),
    ("seeds = [0, 1]", "seeds = [0]"),
    ("k = [3, 6]", "k = [3]"),
    (', "logistic-regression"', ""),
)


def across(example, section: str = SECTION, *changes: tuple[str, str]) -> Path:
    return example.change(("[models]", f"{section}[models]"), *changes)


def federated_ids(path: Path) -> list[str]:
    return [cell.id for job, cell in cells_of(plan(load(path))) if job.federation is not None]


def test_what_the_section_leaves_out_is_taken_from_the_other_phases(example) -> None:
    path = across(example, "[federated]\n[analyses]\ntest_share = 0.3\n")
    recipe = load(path).recipe
    assert recipe.federated.k == (3, 6) and recipe.federated.seeds == (0, 1)
    assert [method.name for method in recipe.federated.methods] == ["mondrian", "progressive"]
    (only,) = recipe.federated.federations
    assert (only.model, only.split, only.clients, only.rounds) == ("logistic", "iid", 10, 100)
    assert only.test_share == 0.3
    document = recipe.to_dict()
    assert document["federated"]["participation"] == 0.8
    assert StudyRecipe.from_dict(document) == recipe


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("round = 3", "Did you mean 'rounds'"),
        ("model = 'logistic'", "Did you mean 'models'"),
        ("models = ['logistc']", "Did you mean 'logistic'"),
        ("splits = ['idd']", "Did you mean 'iid'"),
        ("engine = 'lop'", "Did you mean 'loop'"),
        ("methods = ['mondrain']", "Did you mean 'mondrian'"),
        ("methods = [{ name = 'mondrian', k = 3 }]", "k is an axis"),
        ("k = [1]", "at least 2"),
        ("seeds = [0, 0]", "different whole numbers"),
        ("alpha = [0]\nsplits = ['dirichlet']", "0.001 or more"),
        ("participation = 1.5", "at most 1"),
        ("participation = 0.9\nfraction = 0.5", "below 'participation'"),
        ("rounds = 0", r"'rounds' in \[federated\] of .* from 1 to"),
        ("clients = 'many'", "takes a whole number"),
    ],
)
def test_a_mistake_in_the_section_is_named_before_anything_runs(example, line: str, words: str) -> None:
    with pytest.raises((SchemaError, ParameterError), match=words):
        load(across(example, f"[federated]\n{line}\n"))


def test_without_flower_the_extra_is_named_before_anything_runs(example, monkeypatch) -> None:
    monkeypatch.setattr(federated, "find_spec", lambda name: None if name == "flwr" else True)
    with pytest.raises(MissingExtra, match=r"velado\[federated\]"):
        load(across(example))


def test_every_combination_is_there_once_and_alpha_is_an_axis_of_dirichlet_alone(example) -> None:
    lines = "models = ['logistic', 'xgboost']\nsplits = ['iid', 'dirichlet']\nalpha = [0.1, 1]\n"
    found = federated_ids(across(example, SECTION + lines))
    # Two seeds, two models, three ways to deal out rows; the original and one method at one k.
    assert len(found) == len(set(found)) == 2 * 2 * 3 * 2


def test_the_section_adds_cells_and_changes_none(example) -> None:
    before = {cell.id for _, cell in cells_of(plan(load(example.study)))}
    with_section = {cell.id for _, cell in cells_of(plan(load(across(example))))}
    assert before < with_section
    own = set(federated_ids(across(example)))
    assert own == set(federated_ids(across(example, SECTION + "engine = 'flower'\n")))
    assert not own & set(federated_ids(across(example, SECTION + "participation = 0.5\n")))


def test_the_cost_of_runs_that_take_all_cores_is_not_divided_among_them(example) -> None:
    for engine, alone in (("loop", False), ("flower", True)):
        material = load(across(example, SECTION + f"engine = '{engine}'\n"))
        jobs = plan(material)
        runs = [job for job in jobs if job.federation is not None]
        assert all(takes_all_cores(job, material) == alone for job in runs)
        assert not any(takes_all_cores(job, material) for job in jobs if job.federation is None)
        planned = make_plan(material, example.folder / "out", 2)
        cost = sum(estimate(job, material) for job in runs)
        rest = sum(estimate(job, material) for job in jobs) - cost
        assert planned.seconds == pytest.approx(START_UP + rest / 2 + (cost if alone else cost / 2))
        said = planned.facts()
        assert (said["federated_runs"], said["releases"]) == (4, 10)


@pytest.fixture
def study(example, tmp_path: Path):
    pytest.importorskip("flwr", reason="runs across clients need velado[federated]")

    def run(section: str = SECTION, *changes: tuple[str, str]):
        return evaluate(across(example, section, *changes), tmp_path / "out", jobs=1)

    return run


@dataclass(frozen=True)
class Whole:
    """The study with its section, computed once, and its folder."""

    study: Study
    out: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    pytest.importorskip("flwr", reason="runs across clients need velado[federated]")
    folder = tmp_path_factory.mktemp("whole")
    return Whole(evaluate(across(written(folder / "in")), folder / "out", jobs=1), folder / "out")


@pytest.mark.slow
def test_runs_are_stored_cell_by_cell_and_never_computed_twice(study, whole, tmp_path: Path) -> None:
    found = whole.study
    out = Path(shutil.copytree(whole.out, tmp_path / "out"))
    assert found.gaps.height == 0 and found.planned == found.results.height == 32 + 4
    before = {path.name: path.stat().st_mtime_ns for path in (out / CELLS).iterdir()}
    again = study()
    assert {path.name: path.stat().st_mtime_ns for path in (out / CELLS).iterdir()} == before
    assert again.results.equals(found.results)
    cells = pl.read_parquet(out / "results.parquet").filter(pl.col("kind") == "federated")
    assert cells.select("method", "k", "seed", "model", "split").rows() == [
        (ORIGINAL, None, 0, "logistic", "iid"),
        ("mondrian", 3, 0, "logistic", "iid"),
        (ORIGINAL, None, 1, "logistic", "iid"),
        ("mondrian", 3, 1, "logistic", "iid"),
    ]
    assert cells.get_column("accuracy").is_between(0.5, 1).all()
    (more,) = {path.name for path in _larger(study, out)} - set(before)
    assert re.fullmatch(r"[0-9a-f]{24}\.cell", more)


def _larger(study, out: Path):
    study(SECTION.replace("k = [3]", "k = [3, 4]\nseeds = [0]"))
    return (out / CELLS).iterdir()


@pytest.mark.slow
def test_every_run_is_told_round_by_round_and_client_by_client(whole) -> None:
    document = json.loads(json.dumps(whole.study.facts().to_dict()))
    fits = document["federated"]
    assert [(fit["method"], fit["k"], fit["seed"]) for fit in fits] == [
        (ORIGINAL, None, 0),
        ("mondrian", 3, 0),
        (ORIGINAL, None, 1),
        ("mondrian", 3, 1),
    ]
    for fit in fits:
        assert fit["gap"] is None and [one["round"] for one in fit["rounds"]] == [1, 2, 3]
        assert {"accuracy", "auc", "loss", "asked", "replied", "applied", "gap"} <= set(fit["rounds"][0])
        assert [one["name"] for one in fit["clients"]] == [f"client {n}" for n in (1, 2, 3, 4)]
        assert sum(one["rows"] + one["test_rows"] for one in fit["clients"]) == 240
    rows = {row["method"]: row for row in document["federated_summary"]}
    own = [fit["rounds"][-1]["accuracy"] for fit in fits if fit["method"] == "mondrian"]
    base = [fit["rounds"][-1]["accuracy"] for fit in fits if fit["method"] == ORIGINAL]
    row = rows["mondrian"]
    assert row["accuracy"] == pytest.approx(sum(own) / 2) and row["seeds"] == 2
    assert row["drop_accuracy"] == pytest.approx((sum(base) - sum(own)) / 2)
    losses = [one["ncp"] for fit in fits if fit["method"] == "mondrian" for one in fit["clients"]]
    assert (row["ncp_least"], row["ncp_most"]) == (min(losses), max(losses))
    assert rows[ORIGINAL]["drop_accuracy"] == 0 and (row["rounds"], row["applied"]) == (6, 6)


@pytest.mark.slow
def test_both_languages_have_the_section(whole) -> None:
    found = whole.study
    page = to_markdown(found.facts())
    part = page.partition("## Training across clients")[2].partition("\n## ")[0]
    # Two seeds tell no interval.
    assert re.search(r"\| logistic, rows dealt out evenly \| mondrian, k = 3 \| \d+\.\d% \|", part)
    assert re.search(r"\| mondrian, k = 3 \| 6 \| 6 \| 4 / 4 \| 0 \|", part)
    assert re.search(r"\| mondrian, k = 3 \| \d+\.\d% \(\d+\.\d…\d+\.\d\) \| .* \| 0 / 4 \|", part)
    assert "training across sites is not part" not in page
    assert "## Treino entre clientes" in to_markdown(found.facts(), "pt")


@pytest.mark.slow
def test_a_client_with_too_few_rows_sits_out_and_is_seen_to(study, tmp_path: Path) -> None:
    lines = "splits = ['dirichlet']\nalpha = 0.2\nparticipation = 0.25\nseeds = [0]\n"
    found = study(SECTION.replace("k = [3]", "k = [30]") + lines, *SMALL)
    (one,) = [one for one in found.across_clients if one.row.setting.method == "mondrian"]
    assert 0 < one.sat_out < one.clients == 4
    page = (tmp_path / "out" / "study.md").read_text("utf-8")
    assert re.search(r"- logistic, dirichlet\(0\.2\), mondrian, k = 30: client \d.*fewer than k = 30", page)


def test_too_few_clients_for_a_round_are_a_gap_with_its_reason(study, tmp_path: Path) -> None:
    found = study(SECTION.replace("k = [3]", "k = [60]") + "seeds = [0]\n", *SMALL)
    (gap,) = [gap for gap in found.facts().to_dict()["gaps"] if gap["kind"] == "federated"]
    assert (gap["method"], gap["k"], gap["model"], gap["split"]) == ("mondrian", 60, "logistic", "iid")
    assert "0 of 4 clients can take part" in gap["reason"]
    page = (tmp_path / "out" / "study.md").read_text("utf-8")
    assert re.search(r"\| mondrian \| 60 \| – \| logistic, iid \| 1 \| 0 of 4 clients", page)


@pytest.mark.slow
def test_a_run_that_had_to_be_given_up_keeps_its_history(study) -> None:
    lines = "dropout = 0.7\nunmet = 2\nseeds = [0]\n"
    found = study(SECTION.replace("rounds = 3", "rounds = 30") + lines, *SMALL)
    fits = found.facts().to_dict()["federated"]
    assert len(fits) == 2 and all(fit["gap"] for fit in fits)
    assert all(not one["applied"] and one["gap"] for fit in fits for one in fit["rounds"][-2:])
    assert found.gaps.height == 2 and found.across_clients == ()


@pytest.mark.slow
def test_answers_that_did_not_come_are_counted(study) -> None:
    found = study(SECTION + "dropout = 0.2\nunmet = 30\nparticipation = 0.5\nseeds = [0]\n", *SMALL)
    missed = sum(one.asked - one.replied for training in found.federated for one in training.fit.rounds)
    assert sum(one.missed for one in found.across_clients) == missed > 0


@pytest.mark.slow
def test_flowers_engine_in_a_process_of_its_own_gives_the_numbers_of_the_loop(
    example, study, tmp_path: Path
) -> None:
    loop = study(SECTION + "seeds = [0]\n", *SMALL)
    path = across(example, SECTION + "seeds = [0]\nengine = 'flower'\n", *SMALL)
    flower = evaluate(path, tmp_path / "flower", jobs=2)
    columns = ["method", "accuracy", "auc", "ncp", "record_linkage"]
    one, two = (
        found.results.filter(pl.col("kind") == "federated").select(columns) for found in (loop, flower)
    )
    assert one.equals(two) and two.height == 2
