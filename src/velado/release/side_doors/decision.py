"""A decision about a side door, bound to the figures it was taken on: what is worse than what was accepted is open again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from velado.release.side_doors.door import ORDER, DoorKind, SideDoor
from velado.settings import Setting, settings

_ROUNDING = 5e-4
"""Figures that differ by less are the same to a reader."""


@settings(kw_only=True)
class DoorDecision:
    """Somebody accepted a side door for a *reason*, when it gave away as much as *guess* and *rows* say.

    A recipe carries it under [[doors]]. Without *columns* the door belongs to the whole table.

    >>> door = SideDoor("birth", "age", "functional", guess=0.5, baseline=0.1, rows_revealed=90)
    >>> taken = DoorDecision.of(door, reason="coarse already", by="ana", at="2026-05-01")
    >>> taken.covers(door), taken.covers(replace(door, guess=0.6))
    (True, False)
    """

    kind: Annotated[DoorKind, Setting("the kind of door")]
    columns: Annotated[tuple[str, ...], Setting("the columns that are read")] = ()
    reveals: Annotated[str, Setting("the quasi-identifier it gives away")] = ""
    guess: Annotated[float, Setting("how often it was right when it was accepted", ge=0, le=1)] = 0.0
    rows: Annotated[int, Setting("how many rows, people or pairs it was about", ge=0)] = 0
    reason: Annotated[str, Setting("why it may be published all the same", items=1)] = ""
    by: Annotated[str, Setting("who accepted it")] = ""
    at: Annotated[str, Setting("when it was accepted")] = ""

    @classmethod
    def of(cls, door: SideDoor, *, reason: str, by: str, at: str) -> DoorDecision:
        """The door as it is, accepted now."""
        return cls(
            kind=door.kind,
            columns=door.columns,
            reveals=door.reveals,
            guess=round(door.guess, 6),
            rows=door.rows_revealed,
            reason=reason,
            by=by,
            at=at,
        )

    def is_about(self, door: SideDoor) -> bool:
        """Whether it is the same columns that give the same away."""
        return self.columns == door.columns and self.reveals == door.reveals

    def covers(self, door: SideDoor) -> bool:
        """Whether the door is no worse than the one that was accepted, for a reason."""
        graver = ORDER.index(door.kind) < ORDER.index(self.kind)
        more = door.guess > self.guess + _ROUNDING or (
            door.kind == "unseen" and door.rows_revealed > self.rows
        )
        return self.is_about(door) and bool(self.reason.strip()) and not graver and not more


def decided_doors(doors: Sequence[SideDoor], decisions: Sequence[DoorDecision]) -> tuple[SideDoor, ...]:
    """The doors, accepted as far as the decisions about them go; one that nobody decided about stays as the schema says.

    >>> door = SideDoor("", "", "unseen", 0.0, 0.0, 9)
    >>> taken = DoorDecision.of(door, reason="few rows", by="ana", at="2026-05-01")
    >>> [one.accepted for one in decided_doors([door, replace(door, rows_revealed=10)], [taken])]
    [True, False]
    """
    out = []
    for door in doors:
        own = [one for one in decisions if one.is_about(door)]
        if own:
            covered = any(one.covers(door) for one in own)
            door = replace(door, accepted=covered and (door.accepted or not door.columns))
        out.append(door)
    return tuple(out)
