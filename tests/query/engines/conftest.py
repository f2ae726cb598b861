"""A real PostgreSQL server for the tests of engines, from the package pgserver, which needs no root."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a server of our own; it is stopped by its own handle at the end."""
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
            server = pgserver.get_server(folder, cleanup_mode="stop")
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"PostgreSQL could not be started here ({type(error).__name__}).")
    try:
        yield server.get_uri()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
