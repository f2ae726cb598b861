"""Numbers as short as they can be written without changing them."""

from __future__ import annotations

import re

THOUSANDS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"
"""A number with points as thousands marks, as tables with decimal commas write it."""


def number_text(value: float, whole: bool, decimal: str = ".") -> str:
    """A number as short as it can be written without changing it, whole numbers without a point."""
    if whole or value == int(value):
        return str(int(value))
    text = repr(value)
    return text.replace(".", decimal) if decimal != "." else text


def with_point(text: str, decimal: str = ".") -> str:
    """A number's text as Python reads it: thousands marks left out, the decimal comma a point."""
    if decimal == ".":
        return text
    return (text.replace(".", "") if re.match(THOUSANDS, text) else text).replace(",", ".")
