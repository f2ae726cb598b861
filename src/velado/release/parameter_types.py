"""Parameters that must be numbers are numbers, before anything compares them with their limits."""

from __future__ import annotations

import numbers
from dataclasses import fields
from typing import Any

from velado.errors import ParameterError


def check_types(part: Any) -> None:
    """Every field of the dataclass *part* that declares `min` or `max` holds a number, or an error names it.

    A field annotated as int holds a whole number; one that may be None or a text may be that too.
    """
    name = str(getattr(part, "name", type(part).__name__))
    for field in fields(part):
        if "min" not in field.metadata and "max" not in field.metadata:
            continue
        value, kind = getattr(part, field.name), str(field.type)
        if (value is None and "None" in kind) or (isinstance(value, str) and "str" in kind):
            continue
        whole = "int" in kind and "float" not in kind
        good = isinstance(value, numbers.Integral if whole else numbers.Real)
        if not good or isinstance(value, bool) or value != value:
            raise ParameterError(
                f"'{field.name}' of {name} is not a {'whole ' if whole else ''}number.",
                "It cannot be compared with its limits.",
                "Give a number, without quotes.",
            )
