"""verify(): check someone else's release, trusting nothing but the file and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.anonymize.check import Checked, Matching, check_published
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.population import population_table
from velado.anonymize.side_doors import SideDoor, find_side_doors, promise_with_side_doors
from velado.data.encode import encode, sensitive_shapes, text_codes
from velado.data.io import read_table
from velado.data.partition import Partition
from velado.data.published_text import read_texts
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError


@dataclass(frozen=True, repr=False)
class Verification:
    """What a released file was found to keep.

    *exposed* are columns that must not be in a release (identifiers, columns the schema keeps back); each one
    breaks the promise whatever the groups look like. *people_unseen* is True when the schema knows people but the
    file does not show who is who, so that only rows could be counted. *smallest_behind* is the smallest group
    for an attacker who also reads the columns that determine a quasi-identifier, None where there are none.
    """

    table: Table
    checked: Checked
    exposed: tuple[str, ...]
    side_doors: tuple[SideDoor, ...]
    people_unseen: bool
    smallest_behind: int | None

    def __repr__(self) -> str:
        return f"Verification({self.table.rows} rows, {'holds' if self.holds else 'broken'})"

    @property
    def holds(self) -> bool:
        """Whether every guarantee holds and nothing is exposed."""
        return self.checked.holds and not self.exposed

    @property
    def broken(self) -> GuaranteeNotMet | None:
        """The first broken promise as an error to raise; None where all hold."""
        for name in self.exposed:
            identifier = self.table.schema.columns[name].role == "identifier"
            kept_back = "which the schema keeps back (publish = false)"
            return GuaranteeNotMet(
                f"The file holds the column '{name}', {'an identifier' if identifier else kept_back}.",
                "Whoever reads it knows whose row it is, so no crowd hides anybody."
                if identifier
                else "What the steward decided not to publish stands in the file.",
                "Do not publish this file; make the release again without the column.",
            )
        for verdict in self.checked.verdicts:
            if not verdict.holds:
                return GuaranteeNotMet(
                    f"{verdict.failing_groups} group(s) with {verdict.failing_rows} row(s) do not keep "
                    f"{verdict.guarantee}: needed {verdict.needed:g} {verdict.unit}, "
                    f"the weakest has {verdict.achieved:g}.",
                    "People in them could be picked out of this file.",
                    "Do not publish it; make the release again, or ask for less.",
                )
        return None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without any cell."""
        return {
            "holds": self.holds,
            "rows": self.table.rows,
            "sha256": self.table.fingerprint,
            "quasi_identifiers": [column.name for column in self.table.schema.quasi],
            "groups": self.checked.partition.count,
            "verdicts": [verdict.to_dict() for verdict in self.checked.verdicts],
            "readings_of_blanks": [reading.to_dict() for reading in self.checked.readings],
            "exposed_columns": list(self.exposed),
            "side_doors": [door.to_dict() for door in self.side_doors],
            "smallest_class_with_side_doors": self.smallest_behind,
            "people_unseen": self.people_unseen,
        }


def verify(
    source: Any,
    schema: Schema,
    guarantees: Sequence[Guarantee],
    *,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    encoding: str | None = None,
) -> Verification:
    """The verdict on a released file: regroup its visible values, count, and let the guarantees read.

    Columns a release leaves out (identifiers, unpublished ones) may be absent; quasi-identifiers may not, nor
    may sensitive columns when a guarantee reads them. k is counted per person where the file shows people.
    *population* is a table of everyone the released people were drawn from, for k-map and delta-presence.
    """
    raw = read_table(source, encoding=encoding)
    present = raw.frame.columns
    _all_there(schema, present, guarantees)
    known = schema.with_columns(column for column in schema.columns.values() if column.name in present)
    table = Table.of(raw.frame, known, raw.source, raw.fingerprint, undeclared, raw.separator)
    person = known.person
    people = None if person is None else text_codes(table.text(person.name))[0]
    sensitive = {column.name: text_codes(table.text(column.name)) for column in known.sensitive}
    quasi = [column.name for column in known.quasi]
    counted = tuple(
        KAnonymity(g.k, "person" if people is not None else "row") if isinstance(g, KAnonymity) else g
        for g in guarantees
    )
    shapes = sensitive_shapes(table)
    matching = None if population is None else _matching(table, population_table(population, known))
    checked = check_published(table.frame, quasi, counted, people, sensitive, None, shapes, matching)
    doors = find_side_doors(table)
    telling = list(dict.fromkeys(door.column for door in doors if door.kind in ("copy", "functional")))
    return Verification(
        table,
        checked,
        tuple(column.name for column in known.columns.values() if not column.published),
        doors,
        schema.person is not None and person is None,
        promise_with_side_doors(table.frame, quasi, telling) if telling else None,
    )


def _matching(table: Table, population: Table) -> Matching:
    """Counts the people of *population* that each group of published texts could be."""
    everyone = encode(population)
    read = [
        read_texts(column, table.frame.get_column(column.name), table.schema.missing_values)
        for column in everyone.columns
    ]

    def matching(groups: Partition) -> tuple[npt.NDArray[np.int64], int]:
        low = [groups.least_and_greatest(r.low[r.codes])[0] for r in read]
        high = [groups.least_and_greatest(r.high[r.codes])[1] for r in read]
        return replace(everyone, population=everyone.matrix).matching(low, high)

    return matching


def _all_there(schema: Schema, present: Sequence[str], guarantees: Sequence[Guarantee]) -> None:
    if not schema.quasi:
        raise SchemaError(
            "The schema names no published quasi-identifier.",
            "There is nothing to group by, so no promise can be checked.",
            'Give role = "quasi" to the columns an attacker may know.',
        )
    absent = [column.name for column in schema.quasi if column.name not in present]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise SchemaError(
            f"The file lacks the quasi-identifier '{absent[0]}'{more}.",
            "A promise about columns that are not there cannot be checked.",
            "Give the file that was published, or the schema it was published with.",
        )
    unread = [column.name for column in schema.sensitive if column.published and column.name not in present]
    if unread and any(not isinstance(guarantee, KAnonymity) for guarantee in guarantees):
        raise ParameterError(
            f"A promise about sensitive values was asked for, but the column '{unread[0]}' is not in the file.",
            "What is not there cannot be counted.",
            "Ask for k-anonymity alone, or give the file that holds the column.",
        )
