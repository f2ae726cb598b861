"""Skips where the desk's libraries are not installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

MISSING = [name for name in ("fastapi", "uvicorn", "cryptography") if find_spec(name) is None]


@pytest.fixture(scope="module", autouse=True)
def needs_the_extras() -> None:
    if MISSING:
        pytest.skip(f"velado[web,evidence] is not installed: {', '.join(MISSING)}")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's key of a test is no user's."""
    place = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("VELADO_STATE", str(place))
    return place
