"""What must be decided before a table is published: what identifies people, and who is a person.

Guarantees speak of the columns they were told of. A name in a column of role "other" is outside every guarantee, and
twelve rows of one person count as twelve people where nobody said that they are one. So the table is judged as
`inspect` judges it, whatever the schema says, and what the schema does not settle is refused: held back wrongly
costs one edit, published wrongly cannot be undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.identifiers import (
    Identifying,
    identifying_columns,
    linked_columns,
    people_may_be,
    rows_are_others,
)
from velado.data.identifiers.judgement import counts, nearly_unique
from velado.data.normal import value_codes
from velado.data.partition import GroupCounts, Partition, ValueShape
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import GuaranteeNotMet, IdentifierOpen, PersonUndecided
from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.text import join, say

_GENERALIZED = frozenset({"coordinates"})
"""What identifies as it is but may be a quasi-identifier of any kind: a place is made coarser, a name is not."""

_NEARLY_UNIQUE = 0.9
"""A number that has so many different values for each person is nobody else's."""


@dataclass(frozen=True)
class Signed:
    """A published column that looks like an identifier, and the reason why the schema lets it out all the same.

    >>> Signed("plate", "code", "each value occurs once", "cars of the house").reason
    'cars of the house'
    """

    column: str
    looks_like: str
    why: str
    reason: str


def open_identifiers(table: Table) -> tuple[tuple[Identifying, ...], tuple[Signed, ...]]:
    """Published columns that identify people: those nobody signed for, and those the schema signs.

    >>> from velado.testing.examples import table
    >>> found, signed = open_identifiers(table(age=[20, 30], note=["ana@x.br", "bia@x.br"]))
    >>> [one.column for one in found], signed
    (['note'], ())
    """
    published = [column.name for column in table.schema.columns.values() if column.published]
    found, signed = [], []
    judged = (*(by_itself := identifying_columns(table, published)), *_alone(table, published, by_itself))
    for one in (*judged, *_following(table, published, {one.column for one in judged})):
        column = table.schema.columns[one.column]
        if column.identifier == "accept":
            signed.append(Signed(one.column, one.kind, one.why, column.reason))
        elif not _made_coarser(table, column, one):
            found.append(one)
    return tuple(found), tuple(signed)


def _alone(table: Table, published: Sequence[str], named: Sequence[Identifying]) -> list[Identifying]:
    """Published words and codes of no other role that hardly two rows share, as `inspect` holds them back."""
    known, columns = {one.column for one in named}, table.schema.columns
    plain = [n for n in published if n not in known and columns[n].role == "other"]
    plain = [
        n for n in plain if columns[n].kind in ("categorical", "text") and columns[n].side_door != "accept"
    ]
    return [one for one in (nearly_unique(table, name) for name in plain) if one is not None]


def _following(table: Table, published: Sequence[str], named: Set[str]) -> tuple[Identifying, ...]:
    """Published columns that link the rows of a person; what is made coarser links no more than its group does."""
    columns, person = table.schema.columns, table.schema.person
    plain = [n for n in published if n not in named and columns[n].role != "quasi"]
    plain = [n for n in plain if not columns[n].person and columns[n].side_door != "accept"]
    quasi = [column.name for column in table.schema.quasi]
    return linked_columns(table, None if person is None else person.name, quasi, plain)


def _made_coarser(table: Table, column: Column, one: Identifying) -> bool:
    """Whether what leaves is a range: a quasi-identifier that is a place, or a number in doubt that many share.

    The ends of an interval are somebody's true values, so that a number that surely is a person's, or that hardly two
    people share, would leave with them.
    """
    if column.role != "quasi":
        return False
    if one.kind in _GENERALIZED:
        return True
    return column.kind == "numeric" and one.kind == "record" and not one.sure and _is_shared(table, column)


def _is_shared(table: Table, column: Column) -> bool:
    person = table.schema.person
    people = counts(table, (person or column).name)[1 if person else 0]
    return counts(table, column.name)[1] < _NEARLY_UNIQUE * people


def refuse_identifiers(table: Table, original: Table | None = None) -> tuple[Signed, ...]:
    """The signed columns, if nothing else that identifies people would be published; else an error names it.

    *original* is the table before column operations. It is judged too: half a name is no name to who recognizes
    names, and is one to who reads it. A column that an operation levelled tells nothing and is let go.

    >>> from velado.testing.examples import table
    >>> refuse_identifiers(table(age=[20, 30], note=["flu", "cold"]))
    ()
    """
    found, signed = open_identifiers(table)
    if found:
        raise identifier_open(found, table.schema)
    if original is None:
        return signed
    before, signed_before = open_identifiers(original)
    left = [one for one in before if table.frame.get_column(one.column).n_unique() > 1]
    if left:
        raise identifier_open(left, original.schema, operated=True)
    known = {one.column for one in signed}
    return (*signed, *(one for one in signed_before if one.column not in known))


def identifier_open(
    found: Sequence[Identifying], schema: Schema, *, operated: bool = False
) -> IdentifierOpen:
    """The error for published columns that identify people; *operated*: that did so before column operations.

    >>> from velado.testing.examples import table
    >>> mails = table(age=[20, 30], note=["ana@x.br", "bia@x.br"])
    >>> identifier_open(open_identifiers(mails)[0], mails.schema).what.split(" (")[0]
    "Column 'note' identifies people"
    """
    first, others = found[0], [one.column for one in found[1:]]
    parts = {"column": first.column, "why": first.why, "role": schema.columns[first.column].role}
    what = (
        say("Column '{column}' identifies people ({why}), and its role \"{role}\" would publish it.", **parts)
        if first.sure
        else say(
            "Column '{column}' may identify people ({why}), and its role \"{role}\" would publish it.",
            **parts,
        )
    )
    more = [say("So do {others}.", others=", ".join(repr(name) for name in others))] if others else []
    return IdentifierOpen(
        join((what, *more)),
        "An operation on its values may leave enough of them to know whose row it is, so no crowd hides anybody."
        if operated
        else "Whoever reads it knows whose row it is, so no crowd hides anybody.",
        say(
            'In [columns.{column}] set role = "identifier" or publish = false; if it names nobody, sign for '
            'it: identifier = "accept" and reason = "...".',
            column=first.column,
        ),
    )


def decide_person(table: Table, per: str | None) -> None:
    """Nothing, if it is settled what one person is: by the schema, by *per*, or because no row repeats anybody.

    Columns that the schema leaves out are looked at too: who is a person does not depend on what is published.

    >>> from velado.testing.examples import table
    >>> decide_person(table(age=[20, 30], person=["a", "b"]), None)
    """
    if per is not None:
        return
    declared = table.schema.person
    whole = table
    if table.dropped is not None:
        frame = table.frame.hstack(table.dropped)
        whole = Table.of(frame, table.schema, table.source, undeclared="keep")
    quasi = [column.name for column in whole.schema.quasi]
    if declared is not None and _repeats(whole, declared.name):
        candidates = rows_are_others(whole, declared.name, quasi)
    else:
        candidates = people_may_be(whole, quasi)
    repeated = [name for name in candidates if declared is None or name != declared.name]
    if not repeated:
        return
    people = value_codes(whole, whole.schema.columns[repeated[0]])[1] - 1
    if declared is not None:
        raise PersonUndecided(
            say(
                "The person column '{declared}' has another value in (nearly) every row, but {rows} rows hold {people} "
                "different values of '{repeated}'.",
                declared=declared.name,
                rows=whole.rows,
                people=people,
                repeated=repeated[0],
            ),
            "If that column tells who is who, several rows are one person and k would count one person as many.",
            say(
                "Set person = true on '{repeated}' instead, or say that each row is a person with --per row.",
                repeated=repeated[0],
            ),
        )
    raise PersonUndecided(
        say(
            "{rows} rows hold {people} different values of '{repeated}', and the schema does not say what one person is.",
            rows=whole.rows,
            people=people,
            repeated=repeated[0],
        ),
        "Several rows of one person would be counted as several people, and a group of k rows could be a single one.",
        say(
            "Set person = true in [columns.{repeated}], or say that each row is a person with --per row.",
            repeated=repeated[0],
        ),
    )


def _repeats(table: Table, name: str) -> bool:
    codes, size = value_codes(table, table.schema.columns[name])
    return size - 1 < int((codes > 0).sum())


def _linked_groups(groups: Partition, people: npt.NDArray[np.int32]) -> Partition:
    """The groups of somebody who can link all rows of a person, because the table shows whose they are.

    Such a reader finds a person by the visible values of all their rows together. People are alike who show the
    same groups equally often; a row's group is then its visible group among the rows of people who are alike. O(n log n).
    """
    frame = pl.DataFrame({"person": people, "group": groups.labels})
    shown = (
        frame.sort("person", "group")
        .group_by("person", maintain_order=True)
        .agg(pl.col("group").cast(pl.String).str.join(" ").alias("all"))
    )
    alike = shown.with_columns(pl.col("all").rank("dense").cast(pl.Int32) - 1)
    of_row = frame.join(alike, on="person", how="left", maintain_order="left").get_column("all").to_numpy()
    return Partition.by_codes(
        [of_row.astype(np.int32), groups.labels.astype(np.int32)], [int(of_row.max()) + 1, groups.count]
    )


def broken_when_linked(
    guarantees: Sequence[Guarantee],
    groups: Partition,
    people: npt.NDArray[np.int32],
    sensitive: Mapping[str, tuple[npt.NDArray[np.int32], int]],
    shapes: Mapping[str, ValueShape] | None,
) -> Verdict | None:
    """The first promise that does not hold for who links all rows of a person; None where all do.

    k counts people there, whatever it counts elsewhere: rows that are linked are one person's.

    >>> from velado.release.guarantees import KAnonymity
    >>> groups, people = Partition.of(np.array([0, 0, 1, 1])), np.array([0, 1, 0, 2], dtype=np.int32)
    >>> broken_when_linked([KAnonymity(2)], groups, people, {}, None).achieved
    1
    """
    # People of a population are outside the table, which does not link their rows.
    asked = [guarantee for guarantee in guarantees if guarantee.reads != "population"]
    if not asked:
        return None
    counts = GroupCounts.of(_linked_groups(groups, people), people, sensitive, None, shapes)
    for guarantee in asked:
        verdict = guarantee.counted_by("person").check(counts)
        if not verdict.holds:
            return verdict
    return None


def rows_linked(person: str, verdict: Verdict) -> GuaranteeNotMet:
    """The error for a published person column that undoes a promise.

    >>> rows_linked("cpf", Verdict("k-anonymity", False, 5, 1, "people")).what.split(":")[0]
    "The person column 'cpf' is published and links the rows of a person"
    """
    return GuaranteeNotMet(
        say(
            "The person column '{person}' is published and links the rows of a person: read together, the "
            "weakest group has {achieved:g} {unit}, and {guarantee} needs {needed:g}.",
            person=person,
            achieved=verdict.achieved,
            unit=verdict.unit,
            guarantee=verdict.guarantee,
            needed=verdict.needed,
        ),
        "Whoever knows several rows of somebody finds all the others.",
        say(
            "Set publish = false in [columns.{person}], or publish the table with `velado joined`, whose "
            "groups are of people.",
            person=person,
        ),
    )
