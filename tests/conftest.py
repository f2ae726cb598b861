"""What every test shares: where reference data is, how Hypothesis searches, and what a quick run leaves out.

Numba's on-disk cache is left as users have it, so the kernels that are tested are the kernels that run.
"""

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# A first call may compile a kernel for seconds, so no profile has a deadline.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# Of a property's examples, a quick run tries the first few; `make test-slow` says VELADO_EXAMPLES=all.
FEWER, FEWEST = 10, 3
QUICK = os.environ.get("VELADO_EXAMPLES") != "all"

# On small tables threads wait for each other longer than they work: Polars has one here, and several where it is tried
# that no answer depends on their order (test_threads.py). The full run keeps those of the models, since it must be
# seen somewhere for them too. Set before anything imports polars.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
if QUICK:
    for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(pool, "1")

# Modules and tests live until the end: looking through them for garbage again and again finds none.
gc.disable()

# Files that take a minute and more come first: one of them begun last would keep one worker busy and the other idle.
LONG = (
    "tests/test_docs.py",
    "tests/attacks/test_spellings.py",
    "tests/learning/flower/test_deployment.py",
    "tests/learning/flower/test_how_to.py",
    "tests/learning/flower/test_interruption.py",
    "tests/learning/net/test_kill.py",
    "tests/learning/net/test_parties.py",
    "tests/papers/test_gfkmc_federated.py",
    "tests/query/audit/test_epsilon_audit.py",
    "tests/query/store/test_processes.py",
    "tests/release/test_contracts.py",
    "tests/release/methods/test_lowest_loss.py",
    "tests/release/methods/test_progressive.py",
    "tests/study/evaluate/test_federated.py",
    "tests/study/evaluate/test_run.py",
    "tests/test_notebooks.py",
)

# Fixtures that start a server, a browser or five parties.
STARTED = {"postgres_url", "browser", "finished"}


# No test reads or makes the key and the notes of whoever runs it; processes that tests start inherit this.
os.environ["VELADO_STATE"] = tempfile.mkdtemp(prefix="velado-state-")
# Reports bear the day: it must not turn within a test that compares folders.
os.environ["SOURCE_DATE_EPOCH"] = "1767312000"  # 2026-01-02


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a server or a browser is slow, properties try fewer examples in a quick run, long files come first."""
    for item in items:
        if STARTED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    try_fewer_examples(items)
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONG)


def pytest_collection_finish() -> None:
    """What was imported and collected is never looked through again; what tests leave behind is."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Python may take everything down again, in the order it likes."""
    gc.unfreeze()


def try_fewer_examples(items: list[pytest.Item]) -> None:
    """Properties try a tenth of the examples they ask for, and no fewer than three, unless all are wanted.

    Each test asks for the number that its property needs, whichever run it is part of: this is the one place
    that knows about quick runs.
    """
    if not QUICK:
        return
    for test in {item.function for item in items if isinstance(item, pytest.Function)}:
        asked = getattr(test, "_hypothesis_internal_use_settings", None)  # what Hypothesis' own plugin reads
        if asked is not None:
            few = max(asked.max_examples // FEWER, min(asked.max_examples, FEWEST))
            test._hypothesis_internal_use_settings = settings(asked, max_examples=few)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of reference tables named by VELADO_DATA; the test is skipped where there is none."""
    named = os.environ.get("VELADO_DATA")
    if not named:
        pytest.skip("VELADO_DATA is not set: this test needs the folder of reference tables.")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip("VELADO_DATA does not name a folder: this test needs the folder of reference tables.")
    return folder
