"""Keys are made once; a test that changes something makes its own."""

import pytest

from .parties import Consortium, consortium


@pytest.fixture(scope="session")
def group(tmp_path_factory: pytest.TempPathFactory) -> Consortium:
    """Five parties with keys and a job; nobody runs."""
    return consortium(tmp_path_factory.mktemp("group"))
