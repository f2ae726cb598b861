"""Entries of a study file read one by one: each is what it must be, or an error names its place and the nearest word."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from velado.anonymize.methods import method_named
from velado.anonymize.methods.parameters import check_parameters
from velado.anonymize.parameters import LARGEST, check_number, entry_of, part_from
from velado.errors import ParameterError, SchemaError

LARGEST_SEED = 2**32 - 1
"""scikit-learn takes no larger one."""

_LISTS: Mapping[type, str] = {int: " of whole numbers", str: " of texts", float: " of numbers"}


def with_name(entry: Any, where: str) -> dict[str, Any]:
    """*entry* as a table with a name; a text alone is the name."""
    values = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise SchemaError(
            f"An entry of {where} has no name.",
            "What to run is not known.",
            'Write "NAME", or { name = "NAME", ... }.',
        )
    return dict(values)


def list_of(value: Any, what: str, kind: type | None = None) -> list[Any]:
    """*value* as a list that holds something, every entry of *kind*."""
    fits = isinstance(value, list) and bool(value)
    if fits and kind is not None:
        accepted = (int, float) if kind is float else (kind,)
        fits = all(isinstance(one, accepted) and not isinstance(one, bool) for one in value)
        if fits and kind is float:
            check_number(value, what)
    if not fits:
        of = "" if kind is None else _LISTS[kind]
        raise SchemaError(
            f"{what} is not a list{of}, or empty.", "It is an axis of the grid.", "Write [a, b]."
        )
    return list(value)


def numbers_of(entry: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    """The axis *name* ("k" or "seeds"): different whole numbers within its limits."""
    least, most = (2, LARGEST) if name == "k" else (0, LARGEST_SEED)
    numbers = list_of(entry[name], f"'{name}' in {where}", int)
    if any(number < least for number in numbers) or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"'{name}' in {where} has a number below {least}, or one twice.",
            "Below 2 a crowd hides nobody." if name == "k" else "Each seed is one repetition.",
            f"Write different whole numbers of at least {least}.",
        )
    if max(numbers) > most:
        why = "No table has that many rows." if name == "k" else "Models take no larger seed."
        raise ParameterError(f"'{name}' in {where} has a number above {most}.", why, "Lower it.")
    return tuple(numbers)


def methods_of(entry: Mapping[str, Any], where: str) -> tuple[dict[str, Any], ...]:
    """The methods listed in *entry*, each once, their settings checked."""
    listed = tuple(_method(one, where) for one in list_of(entry["methods"], f"'methods' in {where}"))
    # Two spellings of one method (a default left out, or written) are one method.
    whole = [entry_of(part_from(method_named(one["name"]), one, where)) for one in listed]
    if any(one in whole[:at] for at, one in enumerate(whole)):
        raise SchemaError(
            "A method is listed twice.", "Its cells would be the same.", "Remove one of the two."
        )
    return listed


def _method(entry: Any, where: str) -> dict[str, Any]:
    values = with_name(entry, f"'methods' in {where}")
    kind = method_named(values["name"])
    if "k" in values:
        raise SchemaError(
            f"The method '{kind.name}' is given a k of its own.",
            "k is an axis of the grid, the same for all methods.",
            f"Remove it there and list it in k = [...] of {where}.",
        )
    check_parameters(part_from(kind, values, f"method '{kind.name}'"))
    return values


def text_of(entry: Mapping[str, Any], name: str, where: str) -> str:
    """The text under *name*, which must be there."""
    if name in entry and not isinstance(entry[name], str):
        raise SchemaError(
            f"'{name}' in {where} is no text.",
            "Names and classes are compared as texts, numbers among them.",
            f'Put it in quotes: {name} = "...".',
        )
    if not entry.get(name):
        raise SchemaError(
            f"{where} has no '{name}', or an empty one.",
            "The study cannot be run without it.",
            f'Add {name} = "...".',
        )
    return str(entry[name])


def whole_of(value: Any, what: str) -> int:
    """*value* as one whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SchemaError(
            f"{what} is not a whole number.", "It is a count.", "Write digits alone, without point or quotes."
        )
    check_number(value, what)
    return value


def share_of(value: Any, what: str) -> float:
    """*value* as a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ParameterError(f"{what} is not a share.", "It is a number from 0 to 1.", "Correct it.")
    return float(value)


def one_of(value: Any, choices: Sequence[str], what: str) -> Any:
    """*value*, which is one of *choices*."""
    if value not in choices:
        raise unknown(what, str(value), choices)
    return value


def unknown(what: str, name: str, choices: Sequence[str]) -> ParameterError:
    """The error that names the nearest of *choices*."""
    # The beginning of one word alone is that word, whatever else looks like it: "acc" is no "auc".
    begun = [choice for choice in choices if name and choice.startswith(name)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(name, choices, n=1, cutoff=0.4)
    return ParameterError(
        f"'{name}' is not known ({what}).",
        f"It is one of {', '.join(choices)}.",
        f"Did you mean '{near[0]}'?" if near else "Choose one of them.",
    )
