"""Where ledgers are kept in tests: a folder of their own, and the tests' PostgreSQL server."""

import itertools
from pathlib import Path

import pytest

COUNTER = itertools.count()


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
