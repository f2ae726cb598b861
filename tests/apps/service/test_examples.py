"""Every public name of the service's room shows itself at work; tests/test_examples.py runs what is shown."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import velado.apps.service

MODULES = [
    f"velado.apps.service.{found.name}" for found in pkgutil.iter_modules(velado.apps.service.__path__)
]


def public(module: ModuleType) -> list[str]:
    """The classes and functions that the module defines."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", MODULES)
def test_no_public_name_lacks_an_example(name: str) -> None:
    module = importlib.import_module(name)
    assert [n for n in public(module) if ">>>" not in (getattr(module, n).__doc__ or "")] == []
