"""Tables made of the same rows in several ways, and what each keeps: what a trial found, to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from velado.measures.risk.membership import Membership
from velado.measures.utility.two_way import TwoWay
from velado.text import Sentence


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One table made of the rows to learn from: what it keeps of pairs, what models learn from it, and who is found in it.

    *areas* are the areas under the curve on true rows held out, by model. *promise* says in words what the table keeps.

    >>> Tried(name="original", title=Sentence("true rows"), promise=Sentence("none"), fidelity=None, areas={}, attack=None).failed
    ''
    """

    name: str
    title: Sentence
    promise: Sentence
    fidelity: TwoWay | None
    areas: dict[str, float | None]
    attack: Membership | None
    failed: str = ""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The tables beside one another, and why models were not tried, where they were not.

    >>> Trial(tables=(), target=None, rows=70, held_out=30, no_models="").equal_loss is None
    True
    """

    tables: tuple[Tried, ...]
    target: str | None
    rows: int
    held_out: int
    no_models: str

    @property
    def equal_loss(self) -> str | None:
        """The name of the first k-anonymous table that is as far from the true pairs as the synthetic one, or further."""
        found = {one.name: one for one in self.tables}
        own = found.get("synthetic")
        if own is None or own.fidelity is None:
            return None
        crowds = [one for one in self.tables if one.name.startswith("k=") and one.fidelity is not None]
        return next(
            (one.name for one in crowds if one.fidelity and one.fidelity.mean >= own.fidelity.mean), None
        )
