"""Single values of a schema file: each is what it must be, or a SchemaError names its place and never its content."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from velado.errors import SchemaError


def refuse_unknown(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Every key is known, or the nearest known one is suggested."""
    keys = tuple(keys)
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known keys: {', '.join(keys)}."
            raise SchemaError(
                f"Unknown key '{key}' in {where}.", "A misspelt key would be passed over.", hint
            )


def refuse_non_table(entry: Any, where: str) -> None:
    """The entry is a table of keys."""
    if not isinstance(entry, Mapping):
        raise SchemaError(
            f"{where} is not a table.", "Its keys cannot be read.", f"Write it as {where} with keys below."
        )


def one_of(value: Any, choices: tuple[str, ...], what: str) -> Any:
    """The value is one of the choices."""
    if value not in choices:
        raise SchemaError(
            f"{what} has a value that is not known.",
            f"It must be one of {', '.join(choices)}.",
            "Correct it.",
        )
    return value


def of_type(value: Any, kind: type, what: str, example: str) -> Any:
    """The value has the type; true and false are no numbers."""
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise SchemaError(
            f"{what} has the wrong type.", f"A {kind.__name__} is expected.", f"Write for example {example}."
        )
    return value


def a_weight(value: Any, what: str) -> float:
    """A number above 0 and under a million."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e6:
        raise SchemaError(
            f"{what} must be a number above 0.",
            "It says how much a loss in this column counts.",
            "Write for example weight = 2.",
        )
    return float(value)


def a_row_limit(value: Any, what: str) -> int:
    """A whole number of rows, 1 to 1,000,000."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1_000_000:
        raise SchemaError(
            f"{what} must be a whole number from 1 to 1,000,000.",
            "It says with how many rows one person or group may count in an answer.",
            "Write for example max_rows = 4.",
        )
    return value


def a_value_list(value: Any, what: str) -> tuple[str, ...]:
    """A list of different texts, at least one."""
    texts = isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
    if not texts or len(set(value)) != len(value):
        raise SchemaError(
            f"{what} must be a list of different texts.",
            "It is the public list of the values the column may have.",
            'Write for example values = ["F", "M"].',
        )
    return tuple(value)


def a_step(value: Any, what: str) -> float:
    """A finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not value > 0:
        raise SchemaError(
            f"{what} must be a finite number above 0.",
            "It is the grid on which the column is summed.",
            "Write for example step = 1.",
        )
    return float(value)


def a_rounding_step(value: Any, what: str) -> float:
    """A number from 0.000001 to 10^12 with at most six decimals."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 1e-6 <= value <= 1e12 or float(value) != round(float(value), 6):
        raise SchemaError(
            f"{what} must be a number above 0 with at most six decimals.",
            "Published interval ends are its multiples.",
            "Write for example round = 5.",
        )
    return float(value)


def rising_bounds(value: Any, what: str) -> tuple[float, float]:
    """Two finite numbers, the first below the second."""
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    )
    if not good or not value[0] < value[1] or not all(math.isfinite(item) for item in value):
        raise SchemaError(
            f"{what} must be two rising finite numbers.",
            "They are the domain of the column.",
            "Write for example bounds = [0, 120].",
        )
    return float(value[0]), float(value[1])


def check_separator(value: Any, what: str) -> None:
    """A separator is one character that CSV can have between fields, or an error says so."""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise SchemaError(
            f"{what} is not a single plain character.",
            "A separator of fields is one ASCII character, and neither a quote nor a line break.",
            'Write for example separator = ";".',
        )
