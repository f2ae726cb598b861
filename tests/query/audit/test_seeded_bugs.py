"""Bugs put in on purpose: each must turn the suite red, or the suite would not have told us of a real one.

The package and its tests are copied once, one text is changed for as long as the tests that guard it run in a process of
their own. A change whose text is no longer found fails too: the bug must then be seeded anew where the code went.
"""

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AUDIT = "tests/query/audit/test_epsilon_audit.py"


@dataclass(frozen=True)
class Bug:
    """Each of *changes* names a file, a text in it and what it becomes; *guards* are the tests that must notice."""

    name: str
    changes: tuple[tuple[str, str, str], ...]
    guards: tuple[str, ...]


CLAIM = f"{AUDIT}::test_one_group_is_hidden_as_well_as_the_answer_claims[count]"
NOISE, SESSION = "query/noise.py", "query/session.py"
DRAW = "noisy = measurement(mechanism, measure, scale)(bounded.ravel().tolist())"
RECORD = "        return drawn, self._ledger.record(reservation, "

BUGS = (
    Bug("half the scale", ((NOISE, DRAW, DRAW.replace("scale)", "scale / 2)")),), (CLAIM,)),
    Bug(
        "the most rows are left out of the sensitivity",
        (("query/unit.py", "return reach * self.rows", "return reach"),),
        (CLAIM,),
    ),
    Bug(
        "groups are not cut to their most rows",
        (("query/engines/_duckdb_rows.py", "WHERE n > {layout.unit.rows}", "WHERE n > {layout.unit.rows + 1000000}"),),
        (f"{AUDIT}::test_a_group_larger_than_the_most_is_hidden_too",),
    ),
    Bug(
        "debit after the answer",
        (
            (SESSION, "        reservation = self._ledger.reserve(Charge(analyst", "        charge = (Charge(analyst"),
            (SESSION, RECORD, "        reservation = self._ledger.reserve(charge)\n" + RECORD),
        ),
        ("tests/query/test_session.py::test_the_debit_stands_before_a_row_is_looked_at",),
    ),
    Bug(
        "no lock around a question",
        ((SESSION, "        with lock:\n            yield", "        yield"),),
        ("tests/query/test_session_replay.py::test_threads_that_ask_the_same_at_once_pay_once_and_see_one_answer",),
    ),
    Bug(
        "no lock around the ledger",
        (
            ("query/store/_ledger.py", "            with keeper.held():\n                with shelf", "            if True:\n                with shelf"),
            ("query/store/_entries.py", 'execute("BEGIN IMMEDIATE")', 'execute("BEGIN")'),
        ),
        ("tests/query/store/test_processes.py::test_nobody_writes_while_another_one_writes",),
    ),
    Bug(
        "numpy's noise",
        ((NOISE, DRAW, "noisy = bounded.ravel() + np.rint(np.random.default_rng().laplace(0, scale, bounded.size))"),),
        ("tests/test_layers.py", "tests/query/test_noise.py::test_nothing_safe_can_reach_numpys_random_numbers"),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, its tests and their settings, in a folder of their own."""
    folder = tmp_path_factory.mktemp("copied")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    # Compiled once for all runs. By its hash a changed file is known whatever the clock says.
    checked = py_compile.PycInvalidationMode.CHECKED_HASH
    assert compileall.compile_dir(folder / "src", quiet=1, invalidation_mode=checked)
    return folder


@contextmanager
def with_bug(folder: Path, bug: Bug) -> Iterator[None]:
    """The bug is in the copy, and out of it again."""
    before: dict[Path, str] = {}
    try:
        for file, old, new in bug.changes:
            path = folder / "src" / "velado" / file
            source = path.read_text("utf-8")
            before.setdefault(path, source)
            assert source.count(old) == 1, f"the text to change is not in {file} exactly once"
            path.write_text(source.replace(old, new), "utf-8")
        yield
    finally:
        for path, source in before.items():
            path.write_text(source, "utf-8")


def suite(folder: Path, guards: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:anyio",
        "-p",
        "no:xdist",
        *guards,
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_seeded_bug_turns_the_suite_red(bug: Bug, copied: Path) -> None:
    with with_bug(copied, bug):
        for guard in bug.guards:
            done = suite(copied, (guard,))
            # 1 is "tests were run and some failed"; anything else is no verdict.
            assert done.returncode == 1, f"{guard} did not notice\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
            assert " failed" in done.stdout and " error" not in done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_without_a_bug_the_same_tests_are_green(copied: Path) -> None:
    guards = tuple(dict.fromkeys(guard for bug in BUGS for guard in bug.guards))
    done = suite(copied, guards)
    assert done.returncode == 0, done.stdout[-3000:]
