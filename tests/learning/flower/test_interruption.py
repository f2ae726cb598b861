"""A run that somebody ends: it stops within seconds, keeps its rounds, and leaves no row behind; a killed one is swept."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from velado.learning.flower.simulation import scratch_folder, sweep

from .conftest import People, make_people

pytestmark = pytest.mark.slow  # it starts processes

# A test run in the background of a shell may have SIGINT ignored, and every process below it as well.
RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from velado.apps.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
ENGINE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from velado.data.io import read_schema
from velado.learning.flower import Federation, simulate
from velado.learning.flower.deployment import FederationInterrupted
try:
    simulate(Path(sys.argv[1]), read_schema(Path(sys.argv[2])), None, Federation(clients=4, rounds=100_000, aggregation="mean"), target="outcome",
             on_round=lambda record: print("round", flush=True))
except FederationInterrupted as ended:
    print("kept", len(ended.fit.rounds), ended.exit_code)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for temporary files whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="v-") as name:
        yield Path(name)


def recipe(folder: Path, rounds: int) -> Path:
    people = make_people(folder / "people", 200)
    path = people.folder / f"{rounds}.toml"
    text = '[data]\ntable = "people.csv"\nschema = "schema.toml"\ntarget = "outcome"\n'
    text += f'[federation]\naggregation = "mean"\nclients = 4\nrounds = {rounds}\n'  # sums would end by themselves
    path.write_text(text, "utf-8")
    return path


@contextmanager
def started(place: Path, code: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def training(place: Path) -> Path:
    """The folder of the run, once it trains."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        for folder in place.glob("vf-*"):
            if (folder / "rows" / "4.json").exists():
                time.sleep(2)  # some rounds of a loop
                return folder
        time.sleep(0.1)
    raise AssertionError("the run did not begin")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_run_ended_by_a_signal_keeps_its_rounds_and_says_so_in_one_sentence(
    tmp_path: Path, place: Path, name: str, code: int
) -> None:
    out = tmp_path / "out"
    with started(place, RUN, "federate", recipe(tmp_path, 100_000), "-o", out, "--engine", "loop") as process:
        training(place)
        process.send_signal(getattr(signal, name))
        said, _ = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert said.count("\n") == 1 and "of 100000 rounds, as you asked" in said
    fit = json.loads((out / "fit.json").read_text("utf-8"))
    assert 1 <= len(fit["rounds"]) < 100_000 and "ended from outside" in fit["how"]["stopped"]
    assert (out / "model.npz").exists() and not list(place.iterdir())


@pytest.mark.slow
def test_true_rows_of_a_killed_run_are_removed_by_the_next(tmp_path: Path, place: Path) -> None:
    with started(
        place, RUN, "federate", recipe(tmp_path, 100_000), "-o", tmp_path / "a", "--engine", "loop"
    ) as process:
        left = training(place)
        process.kill()
        process.wait(timeout=30)
    assert list((left / "rows").glob("*.npz"))
    words = ("federate", recipe(tmp_path, 1), "-o", tmp_path / "b", "--engine", "loop")
    with started(place, RUN, *words) as process:
        said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert not list(place.iterdir())


def test_the_folder_of_a_run_that_lives_and_other_peoples_folders_are_left_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    (place / "vf-photos").mkdir()
    with scratch_folder() as one:
        assert one.stat().st_mode & 0o777 == 0o700
        assert sweep(place) == 0 and one.exists()
        with scratch_folder() as other:
            assert one.exists() and other != one
    assert [path.name for path in place.iterdir()] == ["vf-photos"]


def alive(group: int) -> list[str]:
    """Processes of a group that still run."""
    lines = subprocess.run(["ps", "-eo", "pgid,stat"], capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if line.split()[0] == str(group) and "Z" not in line.split()[1]]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_flowers_engine_ends_within_seconds_and_ray_with_it(
    people: People, place: Path, name: str, code: int
) -> None:
    pytest.importorskip("ray", reason="Flower's simulation runs on Ray")
    with started(place, ENGINE, people.csv, people.schema_file) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["round\n"] * 3
        start = time.monotonic()
        # A terminal sends Ctrl-C to every process of the group.
        (os.killpg if name == "SIGINT" else os.kill)(process.pid, getattr(signal, name))
        said, _ = process.communicate(timeout=120)
        took = time.monotonic() - start
    kept = said.splitlines()[-1].split()
    assert kept[0] == "kept" and int(kept[1]) >= 3 and int(kept[2]) == code, said
    assert took < 60 and not list(place.iterdir())
    end = time.monotonic() + 90
    while alive(process.pid) and time.monotonic() < end:
        time.sleep(0.3)  # Ray's workers end when they see that it is gone
    assert not alive(process.pid)
