"""Which of many cases a quick run tries: some of each kind; `make test-slow` tries the others."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest


def one_in(
    number: int, cases: Iterable[Any], named: Callable[[Any], str] | None = None, apart: bool = False
) -> list[Any]:
    """The cases, of which the first and every *number*-th after it are quick and the others slow.

    *apart* says that each case is a tuple of several arguments.
    """
    return [
        _case(case if apart else (case,), at % number, None if named is None else named(case))
        for at, case in enumerate(cases)
    ]


def pairs_in(
    number: int, first: Iterable[Any], second: Iterable[Any], named: Callable[..., str]
) -> list[Any]:
    """All pairs, of which every *number*-th is quick: each member stands in a quick one, and the others are slow.

    That holds where *number* is no larger than either list is long.
    """
    numbered = product(enumerate(first), enumerate(second))
    return [_case((one, two), (i + j) % number, named(one, two)) for (i, one), (j, two) in numbered]


def _case(values: Iterable[Any], left: int, name: str | None) -> Any:
    return pytest.param(*values, marks=[pytest.mark.slow] * (left > 0), id=name)
