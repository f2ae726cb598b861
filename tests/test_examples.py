"""Every `>>>` example in the package shows what is true.

Modules are found by their text, so that a worker imports only those whose examples it runs.
"""

import doctest
import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from velado.apps.cli.app import ARGUMENTS

from .left_behind import Surroundings

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
    before = Surroundings.now()
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
    assert before.changed() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda patch: patch.setitem(ARGUMENTS, "NEW", "It is new."), "velado.apps.cli.app.ARGUMENTS"),
        (lambda patch: patch.setitem(ARGUMENTS, min(ARGUMENTS), "x"), "velado.apps.cli.app.ARGUMENTS"),
        (lambda patch: patch.setenv("VELADO_LANG", "pt"), "the environment's VELADO_LANG"),
        (lambda patch: patch.chdir("/"), "the folder"),
    ],
    ids=["an entry more", "another entry", "the environment", "the folder"],
)
def test_what_is_left_behind_is_told(change, told: str) -> None:
    before = Surroundings.now()
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        assert before.changed() == [told]
    assert before.changed() == []


def test_a_registry_may_grow_while_modules_are_imported_and_lose_nothing() -> None:
    before = Surroundings.now()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "velado.imported", ModuleType("velado.imported"))
        patch.setitem(ARGUMENTS, "NEW", "It is new.")
        assert before.changed() == []
        patch.delitem(ARGUMENTS, min(ARGUMENTS))
        assert before.changed() == ["velado.apps.cli.app.ARGUMENTS"]
