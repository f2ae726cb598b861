"""A PostgreSQL server of the tests' own, one for all of them; what needs it is slow."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a server from the package pgserver, which needs no root; skipped where none can run."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: velado[postgres]")
    with warnings.catch_warnings():
        # Its choice of a folder for locks warns where no login session has made one.
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pgserver", reason="pgserver is not installed: no PostgreSQL to test with"
        )
        # The path of a socket has room for about a hundred characters, less than pytest's own folders take.
        folder = Path(tempfile.mkdtemp(prefix="pg"))
        try:
            server = pgserver.get_server(folder / "d", cleanup_mode="stop")
        except Exception as error:  # whatever keeps a server from starting here is a reason to skip
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"PostgreSQL could not be started here ({type(error).__name__}).")
    try:
        yield server.get_uri()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has notes of its own: tables of the same rows would otherwise share one budget, as they should."""
    monkeypatch.setenv("VELADO_STATE", str(tmp_path_factory.mktemp("state")))
