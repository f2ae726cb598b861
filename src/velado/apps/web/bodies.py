"""What a request may say and a reply looks like, as the OpenAPI document tells it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import Strict

from velado.apps.web import failures

# An exponent or a thousand digits would take a long time to become a fraction.
_AMOUNT = re.compile(r"[0-9]{1,12}([./][0-9]{1,18})?\Z")
_STRICT = {"extra": "forbid"}
# Otherwise true would be read as 1.
Number = Annotated[float, Strict()]


@dataclass
class Question:
    """One query. *spend* is the most it may cost: a number, or a text such as "1/3". Another spend is another question."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    dataset: str
    sql: str
    spend: Number | str | None = None
    confidence: Number = 0.95


@dataclass
class Cap:
    """The most one analyst may spend of a data set's budget, in all."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    dataset: str
    analyst: str
    cap: Number | str


@dataclass
class Raise:
    """A larger total for a data set, with the owner's reason, which the ledger keeps."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    dataset: str
    total: Number | str
    reason: str


@dataclass
class ProblemBody:
    """Every error: what happened, why, what to do, and a code for programs."""

    what: str
    why: str
    fix: str
    code: str


def amount(value: float | str | None) -> Fraction | None:
    """A cost as the fraction its decimals name, or the Problem that it is none."""
    if value is None:
        return None
    if isinstance(value, str):
        readable = _AMOUNT.match(value) is not None
    else:
        readable = value == 0 or 1e-12 <= value < 1e12
    try:
        return Fraction(str(value)) if readable else _no_amount()
    except ZeroDivisionError:
        return _no_amount()


def _no_amount() -> Fraction:
    raise failures.Problem(
        422,
        "parameter",
        "An amount in the request is not a number, or out of range.",
        "It is added up exactly.",
        'Send for example 0.1, or "1/3".',
    )


_ERRORS = {
    400: "The body is not JSON.",
    401: "No token that is in force.",
    404: "No such data set for this token.",
    413: "Body or query too long.",
    422: "The query is refused, or a value does not fit.",
    429: "Asked too often.",
    503: "Busy, or the ledger or the engine does not answer.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody, "description": text} for status, text in _ERRORS.items()
}
PAYING: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    402: {"model": ProblemBody, "description": "The answer would cost more than what is left."},
    504: {"model": ProblemBody, "description": "Not answered in time; it may have been paid."},
}
OWNERS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    403: {"model": ProblemBody, "description": "For owners alone."},
}
