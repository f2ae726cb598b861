"""What a preset is, and what it says of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from velado.data.schema import Schema
from velado.data.table import Table
from velado.release.guarantees._guarantee import Guarantee
from velado.release.operations._operation import Operation

Action = Literal["held back", "changed", "as the schema says"]


@dataclass(frozen=True)
class Decision:
    """What a preset does with one column and why; *rule* is the letter of the rule's list, where there is one.

    >>> Decision("cpf", "held back", "it names a person", "R").action
    'held back'
    """

    column: str
    action: Action
    why: str
    rule: str = ""


@dataclass(frozen=True, kw_only=True)
class PresetPlan:
    """A preset for one table: the schema and operations to publish it with, what is promised, and a decision a column.

    *said* are sentences for whoever answers for the release. k is None where the preset promises no crowd.

    >>> PresetPlan(schema=Schema({}), k=5).suppression
    0.0
    """

    schema: Schema
    k: int | None = None
    guarantees: tuple[Guarantee, ...] = ()
    suppression: float = 0.0
    operations: tuple[Operation, ...] = ()
    decisions: tuple[Decision, ...] = ()
    said: tuple[str, ...] = ()


class Preset(Protocol):
    """A settings class with a name, a title, for whom and for what such a table is, and one verb.

    *recipient* and *purpose* are what a signature proposes once somebody chose the preset.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    recipient: ClassVar[str]
    purpose: ClassVar[str]

    def applied(self, table: Table) -> PresetPlan:
        """What the preset makes of a table with the roles of its schema."""
        ...
