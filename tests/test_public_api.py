"""Every public name can be imported, is documented, and nothing heavy is loaded before it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import velado


@pytest.mark.parametrize("name", velado.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(velado, name) is not None
    thing = getattr(velado, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert inspect.getdoc(thing), f"velado.{name} has no docstring"
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"velado.{name}.{member} has no docstring"


@pytest.mark.parametrize("registry", ["METHODS", "GUARANTEES"])
def test_every_registered_class_is_public_by_its_registry_alone(registry, monkeypatch):
    registered = getattr(velado, registry)
    assert {kind.__name__ for kind in registered} <= set(velado.__all__)
    assert all(getattr(velado, kind.__name__) is kind for kind in registered)

    class AnotherOne:
        pass

    monkeypatch.setattr(import_module(velado._HOME[registry]), registry, (*registered, AnotherOne))
    assert velado.AnotherOne is AnotherOne and "AnotherOne" in dir(velado)


def test_the_public_names_are_sorted_and_nothing_else_is_public():
    assert velado.__all__ == sorted(velado.__all__)
    assert dir(velado) == velado.__all__
    with pytest.raises(AttributeError):
        _ = velado.no_such_name


def test_a_room_named_like_a_verb_can_still_be_called():
    import velado.measures.measured
    import velado.release.methods

    assert velado.anonymize.__class__.__call__ and callable(velado.anonymize) and callable(velado.measure)
    with pytest.raises(TypeError, match="missing"):
        velado.anonymize()
    with pytest.raises(TypeError, match="missing"):
        velado.measure()


def test_importing_velado_loads_no_heavy_library():
    code = "import sys, velado; print([m for m in ('numpy','polars','numba','scipy','sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
