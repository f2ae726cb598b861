"""Where ledgers are kept in tests: a folder of their own, and a PostgreSQL server that the tests start and stop."""

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

COUNTER = itertools.count()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of this session's own, in a folder short enough for a socket's name; skipped where none can run."""
    with warnings.catch_warnings():
        # The library notes that it falls back to a temporary folder where there is no runtime folder.
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pgserver", reason="pgserver is not installed: no PostgreSQL to start."
        )
        pytest.importorskip("psycopg", reason="psycopg is not installed.")
        folder = Path(tempfile.mkdtemp(prefix="vl-"))
        try:
            server = pgserver.get_server(folder / "d", cleanup_mode="stop")
        except Exception as error:  # whatever keeps a server from starting here is a reason to skip
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"PostgreSQL cannot be started here: {type(error).__name__}.")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, apart from the ledgers."""
    folder = tmp_path / "state"
    monkeypatch.setenv("VELADO_STATE", str(folder))
    return folder


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path, state: Path) -> str:
    """An address where no ledger is yet, in a file and on a server."""
    if request.param == "sqlite":
        return str(tmp_path / "patients.ledger")
    url = request.getfixturevalue("postgres_url")
    return f"{url}{'&' if '?' in url else '?'}ledger=t{next(COUNTER)}"
