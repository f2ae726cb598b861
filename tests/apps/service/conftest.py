"""Services that several tests ask; each is a process of its own and ends with its module."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from .running import Running, running, write_service

MISSING = [
    name
    for name in ("fastapi", "uvicorn", "prometheus_client", "duckdb", "opendp", "sqlglot")
    if find_spec(name) is None
]


@pytest.fixture(scope="module", autouse=True)
def needs_the_extras() -> None:
    """Skips where the service's libraries are not installed."""
    if MISSING:
        pytest.skip(f"velado[web,query] is not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def service(needs_the_extras: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a table, an owner and two analysts."""
    with running(write_service(tmp_path_factory.mktemp("service"))) as started:
        yield started
