"""Every `>>>` example in the package shows what is true.

Modules are found by their text, so that a worker imports only those whose examples it runs.
"""

import doctest
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCE / "velado").rglob("*.py"))
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), flags=re.M)
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes is not left in the repository
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "velado"))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (missing.name or "velado").startswith("velado"):
            raise
        pytest.skip(f"{missing.name} is not installed")
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
