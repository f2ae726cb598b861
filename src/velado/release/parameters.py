"""Registered dataclasses (methods, guarantees) from and to the plain tables of a recipe file."""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from velado.errors import ParameterError, SchemaError
from velado.release.parameter_types import check_types

LARGEST = 2**53 - 1
"""The largest whole number a parameter takes: every file format and kernel holds it, and twice it, exactly."""


def check_number(value: Any, what: str) -> None:
    """*value*, where it is a number or holds some, is finite and no larger than any parameter can be."""
    if isinstance(value, list | tuple):
        for one in value:
            check_number(one, what)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(
            f"{what} is not a finite number.", "Nothing can be computed with it.", "Give a finite number."
        )
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise ParameterError(
            f"{what} is too large.", f"Whole numbers go up to {LARGEST}.", "Give a smaller number."
        )


def known_keys(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Every key of *entry* is one of *keys*, or the error names the nearest."""
    allowed = tuple(keys)
    for key in entry:
        if key in allowed:
            continue
        near = difflib.get_close_matches(str(key), allowed, n=1)
        known = f"Known keys: {', '.join(allowed)}." if allowed else "It takes no keys."
        raise SchemaError(
            f"Unknown key '{key}' in {where}.",
            "A misspelt key would be passed over.",
            f"Did you mean '{near[0]}'?" if near else known,
        )


def entry_of(part: Any) -> dict[str, Any]:
    """A registered dataclass as it stands in a recipe: its name and every parameter that is not "none".

    TOML has no word for "none", so a parameter may be none only where that is its default.
    """
    out: dict[str, Any] = {"name": part.name}
    for field in fields(part):
        value = getattr(part, field.name)
        if value is not None:
            out[field.name] = list(value) if isinstance(value, tuple) else value
        elif field.default is not None:
            raise ParameterError(
                f"Parameter '{field.name}' of '{part.name}' is none.",
                "A recipe file cannot say that, so the run could not be repeated.",
                "Give it a value.",
            )
    return out


def part_from(kind: type[Any], entry: Mapping[str, Any], where: str) -> Any:
    """*kind* built from the parameters in *entry*; unknown keys, wrong types and limits are refused."""
    values = {key: value for key, value in entry.items() if key != "name"}
    known = {field.name: field for field in fields(kind)}
    known_keys(values, known, where)
    hints = get_type_hints(kind)
    for name, field in known.items():
        if name in values:
            values[name] = _checked(values[name], field, hints[name], f"'{name}' in {where}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise SchemaError(f"{where} lacks '{name}'.", "It has no default.", f"Add {name} = ...")
    return kind(**values)


def _checked(value: Any, field: Field[Any], hint: Any, what: str) -> Any:
    choices = field.metadata.get("choices") or _literals(hint)
    if choices and value not in choices:
        raise SchemaError(
            f"{what} has a value that is not known.",
            f"It must be one of {', '.join(map(str, choices))}.",
            "Correct it.",
        )
    accepted = _plain_types(hint)
    check_number(value, what)
    if float in accepted and isinstance(value, int) and not isinstance(value, bool) and int not in accepted:
        value = float(value)
    wrong_bool = isinstance(value, bool) and bool not in accepted
    if accepted and (wrong_bool or not isinstance(value, accepted)):
        names = " or ".join(kind.__name__ for kind in accepted)
        raise SchemaError(f"{what} has the wrong type.", f"It must be {names}.", "Correct it.")
    if tuple in accepted and isinstance(value, list):
        value = tuple(value)
    low, high = field.metadata.get("min"), field.metadata.get("max")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if low is not None and value < low:
            raise ParameterError(f"{what} is {value:g}.", f"It must be at least {low:g}.", "Raise it.")
        if high is not None and value > high:
            raise ParameterError(f"{what} is {value:g}.", f"It must be at most {high:g}.", "Lower it.")
    return value


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _literals(hint: Any) -> tuple[Any, ...]:
    members = [member for member in _members(hint) if member is not type(None)]
    if members and all(get_origin(member) is Literal for member in members):
        return tuple(choice for member in members for choice in get_args(member))
    return ()


def _plain_types(hint: Any) -> tuple[type, ...]:
    out: list[type] = []
    for member in _members(hint):
        if get_origin(member) is Literal:
            out.extend(type(choice) for choice in get_args(member))
        elif get_origin(member) in (tuple, list):
            out.extend((tuple, list))
        elif isinstance(member, type) and member is not type(None):
            out.append(member)
    return tuple(dict.fromkeys(out))


# Parameters within the limits their fields declare, whoever built the method.


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
