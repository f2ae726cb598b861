"""Measure: what one number about a release is called, how it is written, and how it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from velado.measures.measured import Scores
    from velado.measures.recoded_columns import PublishedTable


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number about a release, a loss or a risk: the smaller the better.

    *name* is its key in JSON and its column in a study, *title* what a person calls it. *of* finds it from the
    published table and from what was measured before it. None is "not known"; a `ParameterError` also says why, as
    `published.unpaired` does where nobody knows which row is which. Without *decimals* it is a share of a whole,
    written in percent. *signed*: it may lie below zero, and a share above one. *detailed*: it is read off a larger
    result, which has lines and keys of its own, so that `measure` does not tell it once more.

    >>> kept = Measure(name="kept", title="rows kept", of=lambda published, scores: published.rows, decimals=0)
    >>> from velado.testing.examples import four_published
    >>> kept.of(four_published(), None), kept.is_share
    (4, False)
    """

    name: str
    title: str
    of: Callable[[PublishedTable, Scores], float | None]
    decimals: int | None = None
    signed: bool = False
    detailed: bool = False

    @property
    def is_share(self) -> bool:
        """Whether it is a part of a whole, written in percent."""
        return self.decimals is None
