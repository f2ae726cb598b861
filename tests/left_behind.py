"""What a test or an example must not leave behind: a changed registry, environment, folder or language.

A worker runs many files in one process, in an order of its own: what one of them changes, another meets.
"""

import os
import sys
from dataclasses import dataclass
from typing import Any

from velado.text import language

# What velado and its tables are told by; libraries keep notes of their own there.
WATCHED = ("VELADO_", "LANG", "LC_", "TZ", "PATH", "PYTHONPATH", "HOME", "COLUMNS", "NO_COLOR")


@dataclass(frozen=True)
class Surroundings:
    """Every collection that a module of velado holds by name, beside a copy of it, and what the process is told."""

    modules: frozenset[str]
    held: dict[str, tuple[Any, Any]]
    environment: dict[str, str]
    place: str
    spoken: str

    @classmethod
    def now(cls) -> "Surroundings":
        modules = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "velado"}
        held = {
            f"{name}.{own}": (value, value.copy())
            for name, module in modules.items()
            for own, value in vars(module).items()
            if type(value) in (dict, list, set) and not own.startswith("__")
        }
        environment = {name: value for name, value in os.environ.items() if name.startswith(WATCHED)}
        return cls(frozenset(modules), held, environment, os.getcwd(), language())

    def changed(self) -> list[str]:
        """What is otherwise now. A module that was imported since may have added itself to a registry."""
        now = Surroundings.now()
        grown = now.modules > self.modules
        found = [name for name, (value, before) in self.held.items() if not _same(value, before, grown)]
        told = self.environment.items() ^ now.environment.items()
        found += sorted({f"the environment's {name}" for name, _ in told})
        return found + [
            word
            for word, same in (
                ("the folder", self.place == now.place),
                ("the language", self.spoken == now.spoken),
            )
            if not same
        ]


def _same(value: Any, before: Any, grown: bool) -> bool:
    """Whether the same objects are held; where *grown*, more may have come."""
    if not grown and len(value) != len(before):
        return False
    if isinstance(value, dict):
        return all(name in value and value[name] is kept for name, kept in before.items())
    if isinstance(value, set):
        return before <= value
    return all(one is kept for one, kept in zip(value, before, strict=False)) and len(value) >= len(before)
