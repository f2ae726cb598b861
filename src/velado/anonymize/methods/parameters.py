"""Parameters within the limits their fields declare, whoever built the method."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from velado.anonymize.parameter_types import check_types
from velado.anonymize.parameters import check_number
from velado.errors import ParameterError


def check_parameters(method: Any) -> None:
    """Every field of *method* lies within its metadata's `min`, `max` and `choices` and is finite, or an error names it."""
    if not is_dataclass(method):  # a method made elsewhere may state its limits otherwise
        return
    check_types(method)
    name = str(getattr(method, "name", "the method"))
    for field in fields(method):
        value = getattr(method, field.name)
        limits = field.metadata
        if value is None:
            continue
        check_number(value, f"'{field.name}' of {name}")
        choices = limits.get("choices")
        if choices and value not in choices:
            raise ParameterError(
                f"'{field.name}' of {name} has a value that is not known.",
                f"It must be one of {', '.join(map(str, choices))}.",
                "Choose one of them.",
            )
        low, high = limits.get("min"), limits.get("max")
        if (low is not None and value < low) or (high is not None and value > high):
            span = " ".join(
                [f"from {low}" if low is not None else "", f"to {high}" if high is not None else ""]
            )
            hint = " Below 2 it hides nobody." if field.name == "k" else ""
            raise ParameterError(
                f"'{field.name}' = {value} of {name} is outside its limits.{hint}",
                f"It must be a number {span.strip()}.",
                "Choose another value.",
            )
