"""Researchers: a table for people who signed that they will not try to find anybody."""

from __future__ import annotations

from typing import Annotated, ClassVar

from velado.data.table import Table
from velado.settings import Setting, settings
from velado.study.presets._preset import PresetPlan
from velado.text import say


@settings(kw_only=True)
class Researchers:
    """Everybody hides among 5: the contract, not the table, keeps readers from guessing sensitive values.

    >>> from velado.testing.examples import table
    >>> Researchers().applied(table(age=[20, 30])).k
    5
    """

    name: ClassVar[str] = "researchers"
    title: ClassVar[str] = say("Researchers under contract: 5 alike")
    recipient: ClassVar[str] = say("researchers under contract")
    purpose: ClassVar[str] = say("research")
    k: Annotated[int, Setting("rows or people in each group", ge=2)] = 5
    suppression: Annotated[float, Setting("share of rows that may be dropped", ge=0, le=1)] = 0.02

    def applied(self, table: Table) -> PresetPlan:
        """The schema as it is, with this promise."""
        return PresetPlan(
            schema=table.schema,
            k=self.k,
            suppression=self.suppression,
            said=(
                say(
                    "The contract must forbid to look for people, to join the table with others about them, and to hand it on."
                ),
            ),
        )
