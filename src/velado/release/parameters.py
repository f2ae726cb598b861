"""What the readers of a release's recipe and of a study still need until they are settings classes themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from velado.errors import ParameterError
from velado.settings import LARGEST, Where, entry_of, read, unknown_key
from velado.settings.refusal import shown
from velado.text import say


def known_keys(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Every key of *entry* is one of *keys*, or the error names the nearest."""
    allowed = tuple(keys)
    for key in entry:
        if key not in allowed:
            raise unknown_key(str(key), allowed, Where("file", where))


def part_from(kind: type[Any], entry: Mapping[str, Any], where: str) -> Any:
    """*kind* made from the settings in *entry*, all but its name."""
    return read(kind, {key: value for key, value in entry.items() if key != "name"}, where)


def check_number(value: object, what: str) -> None:
    """*value*, where it is a number, is finite and no larger than any setting can be."""
    if isinstance(value, float) and not math.isfinite(value):
        why, fix = say("Nothing can be computed with it."), say("Give a finite number.")
    elif isinstance(value, int) and abs(value) > LARGEST:
        why, fix = (
            say("Whole numbers go up to {largest}.", largest=str(LARGEST)),
            say("Give a smaller number."),
        )
    else:
        return
    raise ParameterError(say("{what} cannot be {value}.", what=what, value=shown(value)), why, fix)


__all__ = ["LARGEST", "check_number", "entry_of", "known_keys", "part_from"]
