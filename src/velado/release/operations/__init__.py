"""Operations: the elementary techniques on one column, done before a method runs.

Each is a frozen dataclass with a `column` and `apply`. Operations change what is published but promise
nothing by themselves: the promise is checked afterwards, on the published values. A recipe lists them as
``[[operations]]`` tables, which `operation_from_dict` reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from velado.errors import ParameterError
from velado.release.operations._operation import Operation, apply_operations
from velado.release.operations.generalize import Generalize
from velado.release.operations.mask import Mask
from velado.release.operations.permute import Permute
from velado.release.operations.perturb import Perturb
from velado.release.operations.suppress import Suppress

AnyOperation = Generalize | Mask | Permute | Perturb | Suppress
OPERATIONS: tuple[type[AnyOperation], ...] = (Generalize, Mask, Permute, Perturb, Suppress)

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int,),
    "float | None": (int, float),
}


def operation_from_dict(entry: Mapping[str, Any]) -> AnyOperation:
    """The operation that a recipe's table describes: ``{name = "mask", column = "cep", keep = 5}``."""
    kinds = {kind.name: kind for kind in OPERATIONS}
    name = entry.get("name")
    if name not in kinds:
        raise ParameterError(
            "An operation has no known name.",
            "Only registered operations can be done.",
            _nearest(str(name), list(kinds)),
        )
    kind = kinds[name]
    known = {item.name: str(item.type) for item in fields(kind)}
    values = {key: value for key, value in entry.items() if key != "name" and value is not None}
    for key, value in values.items():
        if key not in known:
            raise ParameterError(
                f"The operation '{name}' has no setting '{key}'.",
                "A misspelt setting would be passed over.",
                _nearest(key, list(known)),
            )
        if not isinstance(value, _TYPES[known[key]]) or isinstance(value, bool):
            raise ParameterError(
                f"The setting '{key}' of the operation '{name}' has the wrong type.",
                "It would not mean what was meant.",
                f"Give it as {known[key].split(' ')[0]}.",
            )
    if "column" not in values:
        raise ParameterError(
            f"The operation '{name}' names no column.", "It works on one column.", 'Add column = "...".'
        )
    return kind(**values)


def _nearest(word: str, choices: list[str]) -> str:
    near = difflib.get_close_matches(word, choices, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Choose one of {', '.join(choices)}."


__all__ = [
    "OPERATIONS",
    "AnyOperation",
    "Generalize",
    "Mask",
    "Operation",
    "Permute",
    "Perturb",
    "Suppress",
    "apply_operations",
    "operation_from_dict",
]
