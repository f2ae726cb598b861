"""A package that is also the verb it is named after: `velado.anonymize(...)` beside `velado.anonymize.methods`.

Python binds a sub-package to its parent's attribute as soon as any module in it is imported. The verb of the
same name would vanish the moment somebody writes `from velado.anonymize.methods import Mondrian`; so the
package itself answers the call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_VERBS: dict[str, tuple[str, str]] = {}


class Room(ModuleType):
    """A package that passes a call on to its verb."""

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the verb, for `inspect.signature` and the help of a notebook."""
        return inspect.signature(_verb_of(self.__name__))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """What the verb of this room returns."""
        return _verb_of(self.__name__)(*arguments, **options)


def _verb_of(package: str) -> Callable[..., Any]:
    module, verb = _VERBS[package]
    found: Callable[..., Any] = getattr(import_module(module), verb)
    return found


def answers_with(package: str, module: str, verb: str) -> None:
    """Calling *package* calls *verb* of *module*; the module is imported at the first call."""
    _VERBS[package] = (module, verb)
    sys.modules[package].__class__ = Room
