"""PublicDownload: a table that everybody may take, and nobody can be held to anything."""

from __future__ import annotations

from typing import Annotated, ClassVar

from velado.data.table import Table
from velado.release.guarantees.l_diversity import LDiversity
from velado.settings import Setting, settings
from velado.study.presets._preset import PresetPlan
from velado.text import say


@settings(kw_only=True)
class PublicDownload:
    """Everybody hides among 11 (a risk of at most 0.09), and sensitive values differ within each group.

    0.09 is the largest risk that the European Medicines Agency (Policy 0070) and Health Canada accept for documents
    that are made public.

    >>> from velado.testing.examples import table
    >>> PublicDownload().applied(table(age=[20, 30])).k
    11
    """

    name: ClassVar[str] = "public-download"
    title: ClassVar[str] = say("Anybody may download it: 11 alike, sensitive values differ")
    recipient: ClassVar[str] = say("anyone")
    purpose: ClassVar[str] = say("open data")
    k: Annotated[int, Setting("rows or people in each group", ge=2)] = 11
    l: Annotated[int, Setting("different sensitive values in each group", ge=2)] = 2
    suppression: Annotated[float, Setting("share of rows that may be dropped", ge=0, le=1)] = 0.05

    def applied(self, table: Table) -> PresetPlan:
        """The schema as it is, with this promise."""
        return PresetPlan(
            schema=table.schema,
            k=self.k,
            guarantees=(LDiversity(self.l),) if table.schema.sensitive else (),
            suppression=self.suppression,
            said=(
                say(
                    "Whoever downloads it may know anything about their neighbours: declare every column that outsiders may know as quasi."
                ),
            ),
        )
