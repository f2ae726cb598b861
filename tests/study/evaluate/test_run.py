"""A study is computed once: on several processes, through interruptions, with every hole visible."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from velado.data.cells import CELLS, SUFFIX
from velado.data.keys import owner_key
from velado.errors import OutputError, ParameterError
from velado.measures.models.model_registry import DecisionTree
from velado.study.evaluate._study_grid import ORIGINAL, cells_of, plan
from velado.study.evaluate._work import columns
from velado.study.evaluate.load import load
from velado.study.evaluate.study_outcome import Study
from velado.study.evaluate.study_run import compute_all, evaluate, files_of, make_plan

from .conftest import written

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = ["ncp", "record_linkage", "accuracy", "auc", "log_loss"]


def cell_times(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / CELLS).glob(f"*{SUFFIX}")}


def in_a_process(study: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    code = "import sys; from velado.study.evaluate.study_run import evaluate; evaluate(sys.argv[1], sys.argv[2], jobs=int(sys.argv[3]))"
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(study), str(out), str(jobs)],
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )


@dataclass(frozen=True)
class Computed:
    """The study as it is written, computed in a folder of its own, and what was told meanwhile."""

    out: Path
    study: Study
    told: list[tuple[float, str]]

    def copied(self, out: Path) -> Path:
        """The same folder elsewhere, for whoever goes on from it."""
        return Path(shutil.copytree(self.out, out))


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    folder, told = tmp_path_factory.mktemp("computed"), []
    study = evaluate(
        written(folder / "in").study,
        folder / "out",
        jobs=1,
        progress=lambda share, doing="": told.append((share, doing)),
    )
    return Computed(folder / "out", study, told)


def test_all_cells_are_computed_and_summed_up(computed) -> None:
    out, study, told = computed.out, computed.study, computed.told
    assert (study.planned, study.results.height, study.gaps.height) == (32, 32, 0)
    assert told[0][0] == 0 and told[-1][0] == 1 and "10 of 10 releases" in told[-2][1]
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    models = study.results.filter(pl.col("kind") == "model")
    assert models.get_column("accuracy").is_between(0.4, 1).all()
    releases = study.results.filter((pl.col("kind") == "release") & (pl.col("method") != ORIGINAL))
    assert (releases.get_column("smallest") >= releases.get_column("k")).all()
    assert pl.read_parquet(out / "results.parquet").equals(study.results)
    assert json.loads((out / "study.json").read_text("utf-8"))["cells"] == {
        "planned": 32,
        "done": 32,
        "gaps": 0,
    }
    text = (out / "study.md").read_text("utf-8")
    assert "## What was not tested" in text
    assert not any(f"Person-{n:03d}" in text for n in range(240)) and "Cantaro" not in text


def test_no_digest_of_the_table_is_shown_that_others_could_test_guesses_with(
    example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    material = load(example.study)
    plain = hashlib.sha256((example.study.parent / material.recipe.data.table).read_bytes())
    key = owner_key()
    study = Study(material, pl.DataFrame(schema=columns()), 0)
    files = files_of(study, "en")
    shown = json.loads(files["study.json"])["table"]
    assert (shown["keyed_sha256"], shown["key"]) == (key.digest(plain.digest()), key.fingerprint)
    assert shown["keyed_sha256"] in files["study.html"].decode() and b"owner's key" in files["study.md"]
    assert not any(plain.hexdigest()[:16].encode() in data for data in files.values())
    # The ids of cells stand in results.parquet and name files: under another key they are others.
    ids = {cell.id for _, cell in cells_of(plan(material))}
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "another owner"))
    assert ids.isdisjoint(cell.id for _, cell in cells_of(plan(load(example.study))))


@pytest.mark.slow
def test_a_finished_study_is_not_computed_again_and_a_larger_one_only_where_it_grew(
    example, computed, tmp_path: Path
) -> None:
    out, first = computed.copied(tmp_path / "out"), computed.study
    before = cell_times(out)
    again = evaluate(example.study, out, jobs=1)
    assert cell_times(out) == before and again.results.equals(first.results)
    larger = evaluate(example.change(("k = [3, 6]", "k = [3, 6, 9]")), out, jobs=1)
    after = cell_times(out)
    assert {name: after[name] for name in before} == before
    assert len(after) - len(before) == 2 * 2 * 3 == larger.planned - first.planned


@pytest.mark.slow
def test_another_target_with_blanks_gives_the_numbers_of_a_folder_of_its_own(example, tmp_path: Path) -> None:
    path = example.folder / "people.csv"
    table = pl.read_csv(path)
    half = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.col("ill"))
    table.with_columns(half.alias("cured")).write_csv(path)
    with (example.folder / "schema.toml").open("a", encoding="utf-8") as file:
        file.write('[columns.cured]\nrole = "other"\nkind = "categorical"\n')
    protocols = ("[models]", "[analyses]\nprotocols = ['paper-gfkmc']\n[models]")
    fewer = (('"mondrian", ', ""), ("seeds = [0, 1]", "seeds = [0]"), protocols)
    evaluate(example.change(*fewer), tmp_path / "used", jobs=1)
    study = example.change(*fewer, ('target = "ill"', 'target = "cured"'))
    used = evaluate(study, tmp_path / "used", jobs=1).results
    fresh = evaluate(study, tmp_path / "fresh", jobs=1).results
    numbers = ["cell", "kind", "rows", "groups", *NUMBERS]
    assert used.select(numbers).equals(fresh.select(numbers))
    assert set(fresh.filter(pl.col("kind") == "release").get_column("rows")) == {120}


def test_a_damaged_cell_is_computed_again_and_counted(example, computed, tmp_path: Path) -> None:
    out, first = computed.copied(tmp_path / "out"), computed.study
    files = sorted((out / CELLS).glob(f"*{SUFFIX}"))
    for path in files[:3]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    before = cell_times(out)
    made = make_plan(load(example.study), out, 1)
    assert (made.damaged, made.missing, made.facts()["damaged"]) == (3, 3, 3)
    told = []
    again = evaluate(example.study, out, jobs=1, planned=told.append)
    assert [plan.damaged for plan in told] == [3]
    assert again.results.select("cell", *NUMBERS).equals(first.results.select("cell", *NUMBERS))
    after = cell_times(out)
    assert {name for name in before if after[name] != before[name]} == {path.name for path in files[:3]}


def test_the_original_is_trained_once_for_each_model_and_seed(computed) -> None:
    study = computed.study
    own = study.results.filter((pl.col("method") == ORIGINAL) & (pl.col("kind") == "model"))
    assert own.height == 2 * 3 == own.select("model", "seed").unique().height


@pytest.mark.slow
def test_several_processes_give_the_numbers_of_one(example, computed, tmp_path: Path) -> None:
    two = evaluate(example.study, tmp_path / "two", jobs=2).results
    assert computed.study.results.select("cell", *NUMBERS).equals(two.select("cell", *NUMBERS))


@pytest.mark.slow
def test_killed_half_way_it_finishes_the_rest_only(example, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study = example.change(("seeds = [0, 1]", "seeds = [0, 1, 2, 3]"))
    process = in_a_process(study, out, 2)
    deadline = time.monotonic() + 240
    while len(cell_times(out)) < 12:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    while time.monotonic() < deadline:  # its workers notice and end themselves
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("workers outlived the process that started them")
    before = cell_times(out)
    planned = make_plan(load(study), out, 1)
    assert 0 < planned.missing == planned.cells - len(before) < planned.cells
    found = evaluate(study, out, jobs=1)
    after = cell_times(out)
    assert {name: after[name] for name in before} == before
    assert len(after) == found.planned == found.done.height == planned.cells


DEAF = """
import os, signal, sys, time
from pathlib import Path
from velado.study.evaluate.study_run import _pool

def deaf(path):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as a library does that takes the signal for itself
    Path(path).write_text(str(os.getpid()))
    time.sleep(300)

if __name__ == "__main__":
    with _pool(1) as pool:
        pool.submit(deaf, sys.argv[1]).result()
"""


@pytest.mark.slow
def test_a_worker_that_hears_no_signal_ends_all_the_same_when_its_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(DEAF, "utf-8")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    note = tmp_path / "worker"
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "deaf.py"), str(note)], env={**os.environ, "PYTHONPATH": paths}
    )
    deadline = time.monotonic() + 120
    while not (note.exists() and note.read_text()):
        assert parent.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    worker = int(note.read_text())
    parent.kill()
    parent.wait()
    while time.monotonic() < deadline:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived the process that started it")


def test_two_studies_in_one_folder_at_a_time_are_refused(example, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="folders are locked on Unix only")
    from velado.data.cells import CellStore
    from velado.study.evaluate._work import columns

    store = CellStore(tmp_path / "out", columns())
    store.begin()
    with store.alone(), pytest.raises(OutputError, match="Another process"):
        evaluate(example.study, tmp_path / "out", jobs=1)


@pytest.mark.slow
def test_what_cannot_be_made_is_a_visible_gap_with_its_reason(example, tmp_path: Path) -> None:
    study = evaluate(example.change(("k = [3, 6]", "k = [3, 200]")), tmp_path / "out", jobs=1)
    assert study.gaps.height == 2 * 2 * 3
    assert set(study.gaps.get_column("k")) == {200}
    assert all("200 cannot be made from 180" in reason for reason in study.gaps.get_column("reason"))
    text = (tmp_path / "out" / "study.md").read_text("utf-8")
    assert "A group of 200 cannot be made" in text and "12 of 32 cells could not be computed" in text
    assert make_plan(load(example.study), tmp_path / "out").missing == 0
    # A gap is not tried again, and not taken for a number.
    before = cell_times(tmp_path / "out")
    found = evaluate(example.study, tmp_path / "out", jobs=1)
    assert cell_times(tmp_path / "out") == before
    assert 200 not in {row.setting.k for row in found.quality}


@pytest.mark.slow
def test_a_class_with_one_member_is_trained_on_and_does_not_stop_the_study(example, tmp_path: Path) -> None:
    path = example.folder / "people.csv"
    lines = path.read_text("utf-8").splitlines()
    lines[1] = lines[1].rsplit(",", 1)[0] + ",unsure"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    study = evaluate(example.change(('positive = "yes"\n', "")), tmp_path / "out", jobs=1)
    assert study.gaps.height == 0
    found = study.facts().to_dict()
    assert (found["table"]["classes"], found["table"]["classes_never_tested"]) == (3, 1)
    assert "1 class has too few people" in (tmp_path / "out" / "study.md").read_text("utf-8")


@pytest.mark.slow
def test_several_classes_are_averaged_and_the_page_says_how(example, tmp_path: Path) -> None:
    table = pl.read_csv(example.folder / "people.csv").with_columns(
        ill=pl.concat_str("ill", pl.col("dose") > 4)
    )
    table.write_csv(example.folder / "people.csv")
    study = evaluate(example.change(('positive = "yes"\n', "")), tmp_path / "out", jobs=1)
    models = study.results.filter(pl.col("kind") == "model")
    assert study.gaps.height == 0 and models.get_column("auc").null_count() == 0
    assert "means over the classes, each counted once (macro)" in (tmp_path / "out" / "study.md").read_text(
        "utf-8"
    )


def test_two_seeds_show_no_interval_and_cannot_decide(computed) -> None:
    study = computed.study
    for row in (*study.quality, *study.releases, *study.tradeoff):
        assert all(found.low is None and found.high is None for found in row.numbers.values())
    page = (computed.out / "study.md").read_text("utf-8")
    assert "Two seeds: no interval can be given." in page and "This table cannot decide yet." in page
    assert study.facts().recommendation.more_seeds == 8


@pytest.mark.slow
def test_an_unexpected_error_is_a_gap_without_its_message_and_is_tried_again(
    example, tmp_path: Path, monkeypatch
) -> None:
    def break_down(self, seed: int, columns: int | None = None):
        raise ValueError("a cell of the table: 4711")

    with monkeypatch.context() as patched:
        patched.setattr(DecisionTree, "estimator", break_down)
        study = evaluate(example.study, tmp_path / "out", jobs=1)
    assert study.gaps.height == 10
    assert set(study.gaps.get_column("reason")) == {"An unexpected ValueError stopped it."}
    assert evaluate(example.study, tmp_path / "out", jobs=1).gaps.height == 0


@pytest.mark.slow
def test_a_process_that_dies_takes_its_own_cells_with_it_and_nothing_else(
    example, tmp_path: Path, monkeypatch
) -> None:
    from velado.data.cells import CellStore
    from velado.study.evaluate import study_run as workers
    from velado.study.evaluate._study_grid import plan
    from velado.study.evaluate._work import columns

    monkeypatch.setattr(workers, "compute", die_at_k_six)
    material = load(example.change(("seeds = [0, 1]", "seeds = [0]"), ('"mondrian", ', "")))
    store = CellStore(tmp_path / "out", columns())
    store.begin()
    jobs = plan(material)
    finished = list(compute_all(jobs, material, store, 2))
    assert len(finished) == len(jobs)
    found = store.read([cell.id for job in jobs for cell in job.cells])
    assert found.height == 10
    gaps = found.filter(pl.col("status") == "gap")
    assert set(gaps.get_column("k")) == {6} and gaps.height == 3 and gaps.get_column("again").all()


def die_at_k_six(job, material, store) -> int:
    """As `compute`, but its process is killed at k = 6, as the system does when memory runs out."""
    from velado.study.evaluate._work import carry_out

    if job.k == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    for row in carry_out(job, material):
        store.put(row.to_row())
    return 0


def test_no_processes_are_refused(example, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="jobs= cannot be 0"):
        evaluate(example.study, tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


def test_a_plan_refuses_the_folders_that_a_run_refuses(example, tmp_path: Path) -> None:
    material = load(example.study)
    (tmp_path / "file").write_text("mine")
    for out, words in ((tmp_path / "file", "cannot be used"), (example.folder, "not of a study")):
        with pytest.raises(OutputError, match=words):
            make_plan(material, out, 1)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(example, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    told: list[float] = []
    with pytest.raises(OutputError, match="cannot be used"):
        evaluate(
            example.study,
            tmp_path / "file" / "out",
            jobs=1,
            progress=lambda share, doing="": told.append(share),
        )
    assert told == []


FULL_DISK = """
import resource, signal, sys
from velado.errors import OutputError
from velado.study.evaluate.study_run import evaluate

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
told = []

def progress(share, doing=""):
    told.append(share)
    if len(told) == 4:  # from here on no file may grow beyond 100 bytes
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

try:
    evaluate(sys.argv[1], sys.argv[2], jobs=int(sys.argv[3]), progress=progress)
except OutputError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.slow
def test_a_full_disk_stops_the_study_with_one_error_and_what_was_stored_is_kept(
    example, tmp_path: Path
) -> None:
    pytest.importorskip("resource", reason="file sizes are limited on Unix only")
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(example.study), str(out), "1"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 7, done.stderr
    assert "cannot be written" in done.stdout and "space left" in done.stdout
    before = cell_times(out)
    assert len(before) >= 9 and not [path for path in (out / CELLS).iterdir() if path.name.startswith(".")]
    found = evaluate(example.study, out, jobs=1)
    assert found.gaps.height == 0
    assert {name: cell_times(out)[name] for name in before} == before
