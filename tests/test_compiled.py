"""Compiled code that is kept is taken again only while nothing that was compiled into it has changed."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "velado"
FILES = {
    "cached_numbers": "STEP = 2\n",
    "cached_inner": """
from typing import NamedTuple
from cached_numbers import STEP
from velado.compiled import njit

class Pair(NamedTuple):
    first: float
    second: float

@njit(cache=True)
def step(x):
    return x + STEP
""",
    "cached_outer": """
from cached_inner import Pair, step
from velado.compiled import njit

@njit(cache=True)
def twice(x):
    return step(step(x))

@njit(cache=True)
def first(pair):
    return pair.first
""",
    "cached_other": """
from velado.compiled import njit

@njit(cache=True)
def half(x):
    return x / 2
""",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, source in FILES.items():
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in FILES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def _again(folder: Path, file: str = "", old: str = "", new: str = "") -> tuple[object, object]:
    """The two modules as another process finds them, after a change of a file."""
    if file:
        path = folder / f"{file}.py"
        source = path.read_text("utf-8")
        assert source.count(old) == 1
        path.write_text(source.replace(old, new), "utf-8")
    _forget()
    return importlib.import_module("cached_outer"), importlib.import_module("cached_other")


def test_a_kernel_sees_a_change_of_what_was_compiled_into_it(modules: Path) -> None:
    outer, other = _again(modules)
    assert (outer.twice(1), other.half(4)) == (5, 2)
    outer, other = _again(modules)
    assert (outer.twice(1), other.half(4)) == (5, 2)
    assert (outer.twice.stats.cache_hits, other.half.stats.cache_hits) == ({(_int(),): 1}, {(_int(),): 1})
    outer, other = _again(modules, "cached_inner", "x + STEP", "x - STEP")
    assert (outer.twice(1), other.half(4)) == (-3, 2)
    assert not outer.twice.stats.cache_hits
    assert other.half.stats.cache_hits, "a kernel that takes nothing of it in was compiled anew"
    outer, _ = _again(modules, "cached_numbers", "2", "5")
    assert outer.twice(1) == -9


def test_a_kernel_sees_that_the_fields_of_a_record_changed_places(modules: Path) -> None:
    outer, _ = _again(modules)
    inner = sys.modules["cached_inner"]
    assert outer.first(inner.Pair(first=1.0, second=2.0)) == 1.0
    outer, _ = _again(modules, "cached_inner", "first: float\n    second", "second: float\n    first")
    inner = sys.modules["cached_inner"]
    assert outer.first(inner.Pair(first=1.0, second=2.0)) == 1.0


def _int() -> object:
    from numba import int64

    return int64


def test_every_kernel_of_the_package_is_kept_that_way() -> None:
    """The cache of Numba alone would give old results after a change in another file."""
    own = re.compile(r"^\s*(?:import|from) numba\b", re.MULTILINE)
    users = [
        path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if own.search(path.read_text("utf-8"))
    ]
    assert users == [Path("compiled.py")]
