"""verify(): check someone else's release, trusting nothing but the file and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from velado.anonymize.check import Checked, check_published
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.side_doors import SideDoor, find_side_doors
from velado.data.encode import text_codes
from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import SchemaError


@dataclass(frozen=True, repr=False)
class Verification:
    """What a released file was found to keep.

    *exposed* are columns that must not be in a release (identifiers, columns the schema keeps back); each one
    breaks the promise whatever the groups look like. *cautions* say what this file alone cannot show.
    """

    checked: Checked
    exposed: tuple[str, ...]
    side_doors: tuple[SideDoor, ...]
    cautions: tuple[str, ...]
    rows: int

    @property
    def holds(self) -> bool:
        """Whether every guarantee holds and nothing is exposed."""
        copies = any(door.kind == "copy" and not door.accepted for door in self.side_doors)
        return self.checked.holds and not self.exposed and not copies

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without any cell."""
        return {
            "holds": self.holds,
            "rows": self.rows,
            "groups": self.checked.partition.count,
            "verdicts": [verdict.to_dict() for verdict in self.checked.verdicts],
            "readings_of_blanks": [reading.to_dict() for reading in self.checked.readings],
            "exposed_columns": list(self.exposed),
            "side_doors": [door.to_dict() for door in self.side_doors],
            "cautions": list(self.cautions),
        }


def verify(source: Any, schema: Schema, guarantees: Sequence[Guarantee]) -> Verification:
    """The verdict on a released file: regroup its visible values, count, and read the guarantees.

    Columns of the schema that a release leaves out (identifiers, unpublished ones) may be absent; published
    quasi-identifiers and sensitive columns may not. Columns the schema does not name are refused.
    """
    raw = read_table(source)
    names = raw.frame.columns
    lacking = [c.name for c in schema.columns.values() if c.published and c.role in ("quasi", "sensitive") and c.name not in names]
    if lacking:
        raise SchemaError(
            f"The released file lacks {len(lacking)} quasi-identifying or sensitive column(s) of the schema: {', '.join(lacking)}.",
            "What is not in the file cannot be checked.",
            "Verify with the schema the release was made with.",
        )
    present = schema.with_columns(c for c in schema.columns.values() if c.name in names)
    table = Table.of(raw.frame, present, raw.source, raw.fingerprint, separator=raw.separator)
    exposed = tuple(c.name for c in present.columns.values() if not c.published)
    cautions = []
    people = None
    person = schema.person
    if person is not None and person.name in names:
        people = text_codes(table.text(person.name))[0]
    elif person is not None or any(getattr(g, "unit", "row") == "person" for g in guarantees):
        cautions.append("k per person cannot be checked from this file: it has no person column; rows were counted.")
    sensitive = {c.name: text_codes(table.text(c.name)) for c in present.sensitive}
    quasi = [c.name for c in present.quasi]
    checked = check_published(table.frame, quasi, guarantees, people, sensitive)
    return Verification(checked, exposed, find_side_doors(table), tuple(cautions), table.rows)
