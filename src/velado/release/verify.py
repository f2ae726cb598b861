"""verify(): check someone else's release, trusting nothing but the file and the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.encode import encode, sensitive_values
from velado.data.frames import is_spark_frame
from velado.data.identifiers import Identifying
from velado.data.io import schema_from
from velado.data.normal import value_codes
from velado.data.partition import Partition
from velado.data.published_column import read_texts
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError, SideDoorOpen, TableError
from velado.release.gate import Signed, broken_when_linked, identifier_open, open_identifiers, rows_linked
from velado.release.goal import Checked, Matching, check_published
from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.release.population import population_table, read_plain
from velado.release.run_settings import Guarantees, run_settings
from velado.release.side_doors import SideDoor, find_side_doors, smallest_with_doors
from velado.release.side_doors.compatible import find_compatible, find_originals, unread
from velado.release.side_doors.door import quoted, telling_columns, unique_columns
from velado.release.side_doors.row_order import find_row_order
from velado.text import say, say_n


@dataclass(frozen=True, repr=False)
class Verification:
    """What a released file was found to keep.

    *exposed* are columns that must not be in a release (identifiers, columns the schema keeps back); each one
    breaks the promise whatever the groups look like. *people_unseen* is True when the schema knows people but the
    file does not show who is who, so that only rows could be counted. *smallest_behind* is the smallest group
    for an attacker who also reads *read_behind*, the columns that settle or narrow a quasi-identifier; None where
    there are none. *open_doors* are those of them that nobody accepted and with which a promise no longer holds;
    each one breaks it. *unchecked* are sensitive columns a promise speaks of but the file does not hold. *identifying*
    are columns that identify people although the schema calls them something else and nobody signed for them;
    *linked* is the promise that fails for who reads all rows of a person together, where the file shows whose they are.
    *unread* are numeric quasi-identifiers whose texts are no numbers or intervals, so that what other columns give away
    of them was not fully checked. Where *table* is a sample of a table that an engine counted, *counted* is how many rows that
    has, and *judged* says what was judged on the sample.

    >>> import polars as pl
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> verify(pl.DataFrame({"age": ["20", "20", "30"]}), table(age=[20, 30]).schema, [KAnonymity(2)])
    Verification(3 rows, broken)
    """

    table: Table
    checked: Checked
    exposed: tuple[str, ...]
    side_doors: tuple[SideDoor, ...]
    people_unseen: bool
    smallest_behind: int | None
    open_doors: tuple[SideDoor, ...] = ()
    unchecked: tuple[str, ...] = ()
    read_behind: tuple[str, ...] = ()
    identifying: tuple[Identifying, ...] = ()
    signed: tuple[Signed, ...] = ()
    linked: Verdict | None = None
    unread: tuple[str, ...] = ()
    counted: int | None = None
    judged: str = ""

    def __repr__(self) -> str:
        return f"Verification({self.rows} rows, {'holds' if self.holds else 'broken'})"

    @property
    def rows(self) -> int:
        """How many rows the released table has."""
        return self.table.rows if self.counted is None else self.counted

    @property
    def holds(self) -> bool:
        """Whether every guarantee holds, nothing is exposed and no side door undoes it."""
        whole = self.checked.holds and self.linked is None
        return whole and not (self.exposed or self.open_doors or self.identifying)

    @property
    def smallest(self) -> int:
        """The smallest group of the published values alone, in rows."""
        sizes = self.checked.partition.sizes
        return int(sizes.min()) if sizes.size else 0

    @property
    def broken(self) -> GuaranteeNotMet | None:
        """The first broken promise as an error to raise; None where all hold."""
        for name in self.exposed:
            identifier = self.table.schema.columns[name].role == "identifier"
            return GuaranteeNotMet(
                say("The file holds the column '{name}', an identifier.", name=name)
                if identifier
                else say(
                    "The file holds the column '{name}', which the schema keeps back (publish = false).",
                    name=name,
                ),
                "Whoever reads it knows whose row it is, so no crowd hides anybody."
                if identifier
                else "What the steward decided not to publish stands in the file.",
                "Do not publish this file; make the release again without the column.",
            )
        if self.identifying:
            return identifier_open(self.identifying, self.table.schema)
        person = self.table.schema.person
        if self.linked is not None and self.checked.holds and person is not None:
            return rows_linked(person.name, self.linked)
        for verdict in self.checked.verdicts:
            if not verdict.holds:
                return GuaranteeNotMet(
                    verdict.failure(),
                    "What is sensitive about the people in them could be guessed from this file."
                    if verdict.of_values
                    else "People in them could be picked out of this file.",
                    "Do not publish it; make the release again, or ask for less.",
                )
        for door in self.open_doors:
            free = [n for n in door.columns if self.table.schema.columns[n].role != "quasi"] or door.columns
            return SideDoorOpen(
                say_n(
                    "Column {columns} gives the quasi-identifier '{reveals}' away: read with it, the smallest group "
                    "has {smallest}.",
                    "Columns {columns} give the quasi-identifier '{reveals}' away: read with them, the smallest "
                    "group has {smallest}.",
                    len(door.columns),
                    columns=quoted(door.columns),
                    reveals=door.reveals,
                    smallest=self.smallest_behind,
                ),
                door.undoing(),
                say(
                    "Do not publish this file; leave '{free}' out, or accept the risk with side_door = \"accept\" in "
                    "the schema.",
                    free=free[0],
                )
                if free[0] in unique_columns(self.side_doors)
                else say(
                    "Do not publish this file; leave '{free}' out, make it a quasi-identifier, or accept the risk "
                    'with side_door = "accept" in the schema.',
                    free=free[0],
                ),
            )
        return None

    def facts(self) -> dict[str, object]:
        """As plain values, without any cell."""
        return {
            "holds": self.holds,
            "rows": self.rows,
            "sha256": self.table.fingerprint,
            "quasi_identifiers": [column.name for column in self.table.schema.quasi],
            "groups": self.checked.partition.count,
            "verdicts": [asdict(verdict) for verdict in self.checked.verdicts],
            "readings_of_blanks": [asdict(reading) for reading in self.checked.readings],
            "exposed_columns": list(self.exposed),
            "identifying_columns": [one.column for one in self.identifying],
            "signed_columns": [asdict(one) for one in self.signed],
            "broken_when_rows_are_linked": None if self.linked is None else asdict(self.linked),
            "side_doors": [asdict(door) for door in self.side_doors],
            "smallest_class": self.smallest,
            "smallest_class_with_side_doors": self.smallest_behind,
            "columns_behind": list(self.read_behind),
            "open_side_doors": list(dict.fromkeys(door.column for door in self.open_doors)),
            "unchecked_columns": list(self.unchecked),
            "unread_columns": list(self.unread),
            "people_unseen": self.people_unseen,
            **({"judged": self.judged} if self.judged else {}),
        }


def verify(
    source: Any,
    schema: Schema | str | Path,
    guarantees: Guarantees,
    *,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    encoding: str | None = None,
) -> Verification:
    """The verdict on a released file: regroup its visible values, count, and let the guarantees read.

    Columns a release leaves out (identifiers, unpublished ones) may be absent; quasi-identifiers may not, nor
    may sensitive columns when a guarantee reads them. k is counted per person where the file shows people.
    *schema* is a Schema or the path of a schema file; a guarantee given by its name or class has its defaults.
    *population* is a table of everyone the released people were drawn from, for k-map and delta-presence. A Spark data frame
    is counted on its workers, by `verify_source`.

    >>> import polars as pl
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> found = verify(pl.DataFrame({"age": ["[20..29]"] * 3}), table(age=[20, 30]).schema, [KAnonymity(2)])
    >>> found.holds, found.smallest
    (True, 3)
    """
    if is_spark_frame(source) and population is None:
        from velado.release.sources.source_verify import verify_source  # the engines' libraries are large

        return verify_source(source, schema, guarantees, undeclared=undeclared)
    asked = run_settings(guarantees=guarantees, undeclared=undeclared)
    schema = schema_from(schema)
    raw = _read(source, schema, encoding)
    known = known_columns(schema, raw.frame.columns, asked.guarantees)
    table = Table.of(raw.frame, known, raw.source, raw.fingerprint, asked.undeclared, raw.separator).blanked()
    person = known.person
    people = None if person is None else value_codes(table, person)[0]
    sensitive, shapes = sensitive_values(table)
    quasi = [column.name for column in known.quasi]
    matching = None if population is None else _matching(table, population_table(population, known))

    def check(columns: Sequence[str], promises: Sequence[Guarantee]) -> Checked:
        return check_published(
            frame=table.frame,
            quasi=[*quasi, *columns],
            guarantees=promises,
            people=people,
            sensitive=sensitive,
            shapes=shapes,
            matching=None if columns else matching,
        )

    def linked(promises: Sequence[Guarantee], groups: Partition) -> Verdict | None:
        assert people is not None
        return broken_when_linked(promises, groups, people, sensitive, shapes)

    def smallest(doors: Sequence[SideDoor]) -> int | None:
        return smallest_with_doors(table.frame, quasi, doors)

    return concluded(table, schema, asked.guarantees, PublishedCounts(check, linked, smallest))


@dataclass(frozen=True, repr=False)
class PublishedCounts:
    """How a released table is counted, wherever its rows lie.

    *check* regroups it by its quasi-identifiers and further columns and lets guarantees read; *linked* names the promise that
    fails for who links all rows of a person; *smallest* is the smallest group for who also reads what side doors tell.

    >>> PublishedCounts(print, print, len).smallest([])
    0
    """

    check: Callable[[Sequence[str], Sequence[Guarantee]], Checked]
    linked: Callable[[Sequence[Guarantee], Partition], Verdict | None]
    smallest: Callable[[Sequence[SideDoor]], int | None]


def known_columns(schema: Schema, present: Sequence[str], guarantees: Sequence[Guarantee]) -> Schema:
    """The schema of the columns that a released table holds, or an error: what a promise needs is not there.

    >>> from velado.testing.examples import table
    >>> list(known_columns(table(age=[20], note=["x"]).schema, ["age"], ()).columns)
    ['age']
    """
    _all_there(schema, present, guarantees)
    return schema.with_columns(column for column in schema.columns.values() if column.name in present)


def concluded(
    table: Table,
    schema: Schema,
    guarantees: Sequence[Guarantee],
    counts: PublishedCounts,
    *,
    rows: int | None = None,
    judged: str = "",
    ordered: bool = True,
) -> Verification:
    """The verdict on a released table: its groups counted by *counts*, its columns judged on *table*.

    *table* holds the columns that are there, all rows of them or, if *judged* says so, a sample of the *rows* there are;
    *ordered* is whether it has them in the order in which they were published.

    >>> from velado.testing.examples import table
    >>> ages, seen = table(age=[20, 20]), check_published(table(age=[20, 20]).frame, ["age"], ())
    >>> concluded(ages, ages.schema, (), PublishedCounts(lambda *_: seen, lambda *_: None, lambda _: None))
    Verification(2 rows, holds)
    """
    known = schema.with_columns(c for c in schema.columns.values() if c.name in table.frame.columns)
    person = known.person
    counted = tuple(guarantee.counted_by("row" if person is None else "person") for guarantee in guarantees)
    checked = counts.check((), counted)
    doors = _doors(table, ordered)
    kept = tuple(
        guarantee
        for guarantee, verdict in zip(counted, checked.verdicts, strict=True)
        if verdict.holds and guarantee.reads != "population"  # which lies outside the file
    )
    identifying, signed = open_identifiers(table)
    linked = None
    if person is not None and person.published:
        linked = counts.linked(counted, checked.partition)
    quasi = [column.name for column in known.quasi]
    return Verification(
        table=table,
        checked=checked,
        exposed=tuple(column.name for column in known.columns.values() if not column.published),
        side_doors=doors,
        people_unseen=schema.person is not None and person is None,
        smallest_behind=counts.smallest(doors),
        open_doors=_open_doors(doors, table.schema, lambda columns: not counts.check(columns, kept).holds),
        unchecked=_unchecked(schema, table.frame.columns, guarantees),
        read_behind=tuple(telling_columns(doors, quasi)),
        identifying=identifying,
        signed=signed,
        linked=linked,
        unread=unread(table),
        counted=rows,
        judged=judged,
    )


def _doors(table: Table, ordered: bool) -> tuple[SideDoor, ...]:
    """What the file alone shows: originals left in, columns in step with what is published, and the rows' order."""
    found = find_side_doors(table, published=True)
    copies = {(door.column, door.reveals) for door in found if door.kind == "copy"}
    originals = [d for d in find_originals(table) if (d.column, d.reveals) not in copies]
    in_step = find_compatible(table, copies | {(door.column, door.reveals) for door in originals})
    finer = {(frozenset(door.columns), door.reveals) for door in (*originals, *in_step)}
    rest = (door for door in found if (frozenset(door.columns), door.reveals) not in finer)
    return (*originals, *in_step, *rest, *(find_row_order(table) if ordered else ()))


def _read(source: Any, schema: Schema, encoding: str | None) -> Table:
    if encoding is not None or not isinstance(source, str | Path):
        return read_plain(source, schema, encoding)
    try:
        # velado writes UTF-8, whatever the encoding of the original; somebody else may have kept that one.
        return read_plain(source, schema, "utf-8")
    except TableError:
        return read_plain(source, schema)


def _open_doors(
    doors: Sequence[SideDoor], schema: Schema, undone: Callable[[Sequence[str]], bool]
) -> tuple[SideDoor, ...]:
    """The doors that break a promise: each that does so alone, or else all that do so together.

    A door counts if it settles or narrows a quasi-identifier (`SideDoor.tells`), as for `anonymize`. A sensitive
    column is what an attacker wants to learn, not what he starts from: it is named, and the promises about
    sensitive values speak of it. The order of the rows is named only: a file does not show what it was sorted by.
    """
    telling = [
        door
        for door in doors
        if door.tells
        and not door.accepted
        and all(schema.columns[name].role != "sensitive" for name in door.columns)
    ]
    names = list(dict.fromkeys(name for door in telling for name in door.columns))
    if not names or not undone(names):
        return ()
    alone = {door.columns for door in telling if undone(door.columns)}
    return tuple(door for door in telling if not alone or door.columns in alone)


def _unchecked(schema: Schema, present: Sequence[str], guarantees: Sequence[Guarantee]) -> tuple[str, ...]:
    # Promises about sensitive values have a field `column`: one of them, or None for all.
    read = [guarantee.column for guarantee in guarantees if hasattr(guarantee, "column")]
    absent = [column.name for column in schema.sensitive if column.name not in present]
    return tuple(name for name in absent if None in read or name in read)


def _matching(table: Table, population: Table) -> Matching:
    """Counts the people of *population* that each group of published texts could be."""
    everyone = encode(population)
    read = [
        read_texts(column, table.frame.get_column(column.name), table.schema.missing_texts(column.name))
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
        raise SchemaError(
            say_n(
                "The file lacks the quasi-identifier {absent}.",
                "The file lacks the quasi-identifiers {absent}.",
                len(absent),
                absent=quoted(absent),
            ),
            "A promise about columns that are not there cannot be checked.",
            "Give the file that was published, or the schema it was published with.",
        )
    unread = [column.name for column in schema.sensitive if column.published and column.name not in present]
    if unread and any(hasattr(guarantee, "column") for guarantee in guarantees):
        raise ParameterError(
            say(
                "A promise about sensitive values was asked for, but the column '{unread}' is not in the "
                "file.",
                unread=unread[0],
            ),
            "What is not there cannot be counted.",
            "Ask for k-anonymity alone, or give the file that holds the column.",
        )
