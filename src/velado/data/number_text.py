"""Numbers as short as they can be written without changing them."""

from __future__ import annotations


def number_text(value: float, whole: bool, decimal: str = ".") -> str:
    """A number as short as it can be written without changing it, whole numbers without a point."""
    if whole or value == int(value):
        return str(int(value))
    text = repr(value)
    return text.replace(".", decimal) if decimal != "." else text
