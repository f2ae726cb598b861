"""Side doors: published columns that are no quasi-identifiers but give one away, alone or two together.

A release generalizes quasi-identifiers only. If `education_num` repeats `education` one to one and is published as it
is, or `birth_year` and `visit_year` stand beside a generalized age, whoever reads them undoes the generalization, and
the promise is void. `find` looks on the original values, `door` says and refuses, `narrowing` measures how far a
column settles another, `together` looks at two columns at once.
"""

from velado.release.side_doors.decision import DoorDecision, decided_doors
from velado.release.side_doors.door import (
    DoorKind,
    SideDoor,
    promise_with_side_doors,
    refuse_copies,
    refuse_doors,
    smallest_with_doors,
)
from velado.release.side_doors.find import find_side_doors

__all__ = [
    "DoorDecision",
    "DoorKind",
    "SideDoor",
    "decided_doors",
    "find_side_doors",
    "promise_with_side_doors",
    "refuse_copies",
    "refuse_doors",
    "smallest_with_doors",
]
