"""Services that several tests ask; each is a process of its own and ends with its module."""

from collections.abc import Iterator

import pytest

for needed in ("fastapi", "uvicorn", "duckdb", "opendp", "sqlglot"):
    pytest.importorskip(needed, reason="the service needs velado[web,query]")

from .running import Running, running, write_service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a table, an owner and two analysts."""
    with running(write_service(tmp_path_factory.mktemp("service"))) as started:
        yield started
