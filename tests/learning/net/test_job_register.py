"""What a hospital let out is remembered: privately, whole, and missed when it is gone."""

import json
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from velado.errors import InputError, KeyRefused
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.net.identity import JOBS, Identity, make_identity, open_identity, read_public
from velado.learning.net.job_register import column_marks, enter, read_register, row_sketch
from velado.learning.net.runner import Runner
from velado.learning.protocols.parts import EarlierJob, rows_apart
from velado.learning.protocols.protocol import RoleName
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.job import Job, Party
from velado.randomness import seeded

from .parties import free_ports

CLIENT: RoleName = "client"
EVALUATOR: RoleName = "evaluator"

ONE = EarlierJob(job="0a" * 32, roster=("clinic", "north", "west"), columns={"age": "77"})
OTHER = EarlierJob(job="0b" * 32, roster=("clinic", "north"), columns={"age": "78"}, exact=False)


@pytest.fixture
def clinic(tmp_path: Path) -> Identity:
    make_identity(tmp_path / "clinic", Party("clinic", "client"), "four words", log2_n=15)
    return open_identity(tmp_path / "clinic", "four words")


def test_what_is_entered_is_read_again_and_only_once(clinic: Identity) -> None:
    assert read_register(clinic) == ()
    for job in (ONE, OTHER, ONE):
        enter(clinic, job)
    assert read_register(clinic) == (ONE, OTHER)
    assert stat.S_IMODE((clinic.folder / JOBS).stat().st_mode) == 0o600
    assert not [path.name for path in clinic.folder.iterdir() if ".velado-" in path.name]


def test_a_lost_a_changed_and_a_foreign_register_are_missed(clinic: Identity, tmp_path: Path) -> None:
    path = clinic.folder / JOBS
    enter(clinic, ONE)
    whole = path.read_bytes()
    document = json.loads(whole)
    for changed in (
        b"",
        b"{}",
        whole[:-1],
        json.dumps({**document, "jobs": []}).encode(),
        json.dumps({**document, "jobs": [{**document["jobs"][0], "exact": False}]}).encode(),
    ):
        path.write_bytes(changed)
        with pytest.raises(KeyRefused, match="changed or damaged"):
            read_register(clinic)
        with pytest.raises(KeyRefused):
            enter(clinic, OTHER)
    make_identity(tmp_path / "north", Party("north", "client"), "four words", log2_n=15)
    path.write_bytes((tmp_path / "north" / JOBS).read_bytes())
    with pytest.raises(KeyRefused, match="changed or damaged"):
        read_register(clinic)
    path.unlink()
    with pytest.raises(KeyRefused, match="register of jobs is gone"):
        read_register(clinic)
    path.write_bytes(whole)
    path.chmod(0o644)
    with pytest.raises(KeyRefused, match="read by others"):
        read_register(clinic)


def test_entries_made_at_once_are_all_there(clinic: Identity) -> None:
    jobs = [EarlierJob(job=f"{k:064x}", roster=("clinic",), columns={}) for k in range(12)]
    threads = [threading.Thread(target=enter, args=(clinic, job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.job for one in read_register(clinic)) == [one.job for one in jobs]


def test_of_jobs_that_run_at_once_each_knows_those_entered_before(clinic: Identity) -> None:
    """Two jobs that were begun together must not both pass a register that was empty when they began."""
    passed: list[str] = []

    def first_only(job: EarlierJob) -> None:
        def check(earlier: Sequence[EarlierJob]) -> None:
            if earlier:
                raise InputError("Another job was entered.", "It was first.", "Nothing.")

        with suppress(InputError):
            enter(clinic, job, check)
            passed.append(job.job)

    jobs = [EarlierJob(job=f"{k:064x}", roster=("clinic",), columns={}) for k in range(12)]
    threads = [threading.Thread(target=first_only, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.job for one in read_register(clinic)] == passed and len(passed) == 1


def test_a_sketch_tells_how_many_rows_changed_and_nothing_of_them_without_the_key(
    clinic: Identity, tmp_path: Path
) -> None:
    draw = seeded(4, "sketch")
    table = {
        "age": draw.integers(20, 90, 400),
        "ward": draw.choice(["a", "b"], 400),
        "stay": draw.normal(size=400),
    }
    whole = row_sketch(table, clinic)
    assert len(whole) < 2100

    def apart(rows: Any, changed: Any = table) -> int:
        return rows_apart(whole, row_sketch({name: values[rows] for name, values in changed.items()}, clinic))

    assert apart(draw.permutation(400)) == 0
    assert [apart(np.arange(gone, 400)) for gone in (1, 2, 9)] == [1, 2, 9]
    assert 10 <= apart(np.arange(12, 400)) <= 14
    assert apart(np.arange(100, 400)) > 60 and apart(draw.integers(0, 400, 400)) > 60
    assert apart(np.append(np.arange(400), 7)) == 1  # a twin of somebody who is there already
    corrected = {**table, "stay": np.where(np.arange(400) < 3, 99.0, table["stay"])}
    assert apart(np.arange(400), corrected) == 3
    spelt = {"stay": table["stay"], "age": table["age"].astype(str), "ward": np.char.add(table["ward"], " ")}
    assert apart(np.arange(400), spelt) == 0
    # Columns that change places between themselves are other rows.
    assert apart(np.arange(400), {**table, "age": table["stay"], "stay": table["age"]}) > 60
    make_identity(tmp_path / "north", Party("north", "client"), "four words", log2_n=15)
    assert rows_apart(whole, row_sketch(table, open_identity(tmp_path / "north", "four words"))) > 60


def test_columns_are_known_by_their_cells_and_only_under_the_key(clinic: Identity, tmp_path: Path) -> None:
    make_identity(tmp_path / "north", Party("north", "client"), "four words", log2_n=15)
    north = open_identity(tmp_path / "north", "four words")
    table: dict[str, Any] = {"age": ["31", "40"], "stay": [1.5, 2.0]}
    own = column_marks(table, clinic)
    assert own == column_marks({**table, "age": [31, 40]}, clinic)
    assert own["age"] != column_marks({"age": ["31", "41"]}, clinic)["age"]
    # Other names, another order and other spellings of numbers are the same rows; a journal knows the order too.
    assert own["age"] == column_marks({"years": ["40.0", "31"]}, clinic)["years"]
    assert own["age"] != column_marks({"age": ["40", "31"]}, clinic, ordered=True)["age"]
    assert column_marks({"sex": ["f", "m "]}, clinic) == column_marks({"sex": ["m", "f"]}, clinic)
    assert own["age"] != column_marks(table, north)["age"]


def test_a_role_without_its_register_is_not_run(clinic: Identity, tmp_path: Path) -> None:
    """The runner reads it before the role is fed: no message of a client without a register leaves."""
    (port,) = free_ports(1)
    hub = Party("hub", EVALUATOR, f"localhost:{port}")
    others = [
        make_identity(tmp_path / one.name, one, "four words", log2_n=15)
        for one in (hub, Party("north", CLIENT), Party("west", CLIENT))
    ]
    mine = read_public(clinic.folder)
    features = (Bounded("x", (Fraction(-8), Fraction(8))),)
    job = Job("j", SECURE_SUM, features, Bounded("y", (Fraction(-8), Fraction(8))), (*others, mine))
    (clinic.folder / JOBS).unlink()
    rows = {"x": [float(k % 7) for k in range(20)], "y": [float(k % 5) for k in range(20)]}
    runner = Runner(job=job, identity=clinic, role="client", folder=tmp_path / "out", columns=rows)
    with pytest.raises(KeyRefused, match="register of jobs is gone"):
        runner.run()
