"""Several tables about the same people, published so that the promise holds for whoever joins them.

Each table alone may hide a person among k others while the tables together point at one: the crowd of one
table and the crowd of the next may have a single person in common. So crowds are made once, of *people*:

1. one row per person, with the quasi-identifiers of all tables together (where a person has several rows in a
   table, the lowest and the highest value of each column);
2. the method groups those rows, separately for people who are in the same tables, because being in a table at
   all is visible too;
3. every row of a person is published with the cover of the whole group, over all its people's rows;
4. the published tables are joined by person, regrouped by their visible values, and counted; each table alone
   too. If a group has fewer than k people nothing leaves.

Rows are published in the order of their content: the order of the files would tie tables together. What is
not hidden is how many rows a person has, if a pseudonym to join by is kept: then the smallest crowd for an
attacker who knows these numbers is measured and, where it is below k, said in a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import visible_groups
from velado.data.keys import Key
from velado.data.normal import person_texts
from velado.data.partition import GroupCounts, Partition
from velado.data.table import Table, table_given
from velado.data.table_bytes import as_texts
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError
from velado.release._joined_people import Member, gather, groups_of, side_doors
from velado.release.gate import Signed, refuse_identifiers
from velado.release.goal import Checked, Goal, Progress, Promise, check_published, default_k, silent
from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.methods._method import Method
from velado.release.pseudonyms import DEFAULT_NAMESPACE, pseudonyms_of
from velado.release.recoded import Recoded
from velado.release.recoders.cover import Cover
from velado.release.release import published_frame
from velado.release.run_settings import Guarantees, run_settings
from velado.release.side_doors import SideDoor, refuse_copies, refuse_doors
from velado.settings import describe
from velado.text import say, say_n

# Publishing several tables with the groups of their people, and checking what whoever joins them sees.

_PSEUDONYM = "pseudonym"
_ROW = "\0row"


@dataclass(frozen=True, repr=False)
class _Draft:
    """A table ready to leave: its frame, which rows of the member they are, and the summed loss by column."""

    frame: pl.DataFrame
    rows: npt.NDArray[np.int64]
    losses: tuple[tuple[str, float], ...]


def publish(member: Member, labels: npt.NDArray[np.int32], names: pl.Series | None) -> _Draft:
    """Every row with the cover of its person's group, in the order of the content.

    >>> from velado.testing.examples import table
    >>> members, people, _ = gather({"one": table(person=["a", "b"], age=[20, 30])})
    >>> publish(members[0], np.zeros(people, dtype=np.int32), None).frame["age"].to_list()
    ['[20..30]', '[20..30]']
    """
    partition = Partition.of(labels[member.person])
    recoded = Recoded(Cover().publish(member.data, partition), partition.kept, partition)
    frame = as_texts(published_frame(member.table, recoded))
    if frame.height == 0:
        raise GuaranteeNotMet(
            say("Every row of '{member}' was suppressed.", member=member.name),
            "There is nothing to publish of it.",
            "Leave the table out, or lower k.",
        )
    rows = np.flatnonzero(partition.kept)
    if names is not None:
        frame = frame.insert_column(0, names.gather(member.person[rows]).alias(_PSEUDONYM))
    columns = frame.columns
    frame = frame.with_columns(pl.Series(_ROW, rows)).sort(columns, nulls_last=True, maintain_order=True)
    losses = tuple(
        (column.name, float(np.where(partition.kept, published.losses(column), 1.0).sum()))
        for column, published in zip(member.data.columns, recoded.columns, strict=True)
    )
    return _Draft(frame.select(columns), frame.get_column(_ROW).to_numpy(), losses)


def _names_of(members: Sequence[Member], people: int, key: Key | None, namespace: str) -> pl.Series | None:
    """The pseudonym of each person, by code; None without a key."""
    if key is None:
        return None
    texts: npt.NDArray[np.object_] = np.empty(people, dtype=object)
    # By the normal form, as pseudonymize does: however a table spells a person, the pseudonym is the same.
    spelled = person_texts([member.table for member in members])
    for member, own in zip(members, spelled, strict=True):
        texts[member.person] = own.to_numpy()
    return pl.Series(_PSEUDONYM, pseudonyms_of(texts.tolist(), key, namespace), dtype=pl.String)


def check_joined(
    members: Sequence[Member], drafts: Mapping[str, _Draft], people: int, goal: Goal
) -> tuple[Checked, npt.NDArray[np.int32]]:
    """What whoever joins the published tables sees, one row per person, counted; and each person's group.

    Whether a person is in a table stands beside the visible values: it is visible too.

    >>> from velado.testing.examples import table
    >>> members, people, _ = gather({"one": table(person=["a", "b"], age=[20, 30])})
    >>> drafts = {"one": publish(members[0], np.zeros(people, dtype=np.int32), None)}
    >>> check_joined(members, drafts, people, Goal((KAnonymity(2, "person"),)))[1].tolist()
    [0, 0]
    """
    present = np.zeros(people, dtype=bool)
    for member in members:
        present[member.person[drafts[member.name].rows]] = True
    codes = np.flatnonzero(present)
    view = pl.DataFrame({_ROW: codes})
    for at, member in enumerate(members):
        draft = drafts[member.name]
        # Numbers keep the columns of two tables apart whatever they are called.
        shown = draft.frame.select(
            pl.Series(_ROW, member.person[draft.rows]),
            pl.lit("yes").alias(f"{at}"),
            *(pl.col(name).cast(pl.String).alias(f"{at} {name}") for name in member.quasi),
        )
        view = view.join(shown.unique(), on=_ROW, how="left", maintain_order="left").with_columns(
            pl.col(f"{at}").fill_null("no")
        )
    if view.height != codes.size:
        raise GuaranteeNotMet(
            "Rows of one person show different values in one published table.",
            "Joined, they would tell more than the group does, so nothing was published.",
            "This is a fault of velado: please report it.",
        )
    names = [name for name in view.columns if name != _ROW]
    counted = [guarantee for guarantee in goal.guarantees if guarantee.reads == "crowd"]
    checked = check_published(view, names, counted, codes)
    for verdict in checked.verdicts:
        _raise_if_broken(verdict, say("the joined tables"))
    of_person = np.full(people, -1, dtype=np.int32)
    of_person[codes] = checked.partition.labels
    return checked, of_person


def _verdicts_on(
    member: Member, rows: npt.NDArray[np.int64], partition: Partition, goal: Goal
) -> tuple[Verdict, ...]:
    """One verdict for each guarantee that can be read in the table, on these groups of its published rows."""
    sensitive = {name: (codes[rows], size) for name, (codes, size) in member.sensitive.items()}
    counts = GroupCounts.of(partition, member.person[rows], sensitive, member.totals, member.shapes)
    return tuple(guarantee.check(counts) for guarantee in member.applicable(goal).guarantees)


def _raise_if_broken(verdict: Verdict, where: str) -> None:
    """Nothing, unless the promise fails *where*; then nothing may be published."""
    if not verdict.holds:
        raise GuaranteeNotMet(
            say("In {where}: {what}", where=where, what=verdict.failure()),
            "People in them could be picked out by whoever joins the tables, so nothing was published.",
            "Allow --suppression, lower the parameter, or use another method.",
        )


def _refuse_own_doors(member: Member, draft: _Draft, doors: Sequence[SideDoor], goal: Goal) -> None:
    """No column of a table settles a quasi-identifier of the same table so far that fewer than k people are left."""
    frame = draft.frame.rename({name: f"{member.name}.{name}" for name in draft.frame.columns})
    refuse_doors(
        [door for door in doors if door.columns and set(door.columns) <= set(frame.columns)],
        frame,
        [f"{member.name}.{name}" for name in member.quasi],
        least=goal.k or 2,
        sensitive=[f"{member.name}.{column.name}" for column in member.table.schema.sensitive],
        people=member.person[draft.rows].astype(np.int32),
    )


def _smallest_by_row_counts(
    members: Sequence[Member], drafts: Mapping[str, _Draft], of_person: npt.NDArray[np.int32]
) -> int:
    """The smallest crowd for an attacker who also knows how many rows a person has in each table."""
    codes = [of_person + 1]
    for member in members:
        codes.append(
            np.bincount(member.person[drafts[member.name].rows], minlength=of_person.size).astype(np.int32)
        )
    kept = of_person >= 0
    codes = [column[kept] for column in codes]
    return int(Partition.by_codes(codes, [int(column.max()) + 1 for column in codes]).sizes.min())


@dataclass(frozen=True, repr=False)
class JoinedTable:
    """One published table: its *frame*, what it keeps alone and within the joined groups, what it lost.

    *people* says whose each row is, for the owner alone.

    >>> JoinedTable(pl.DataFrame({"age": ["*"]}), ("age",), (), (), {"age": 1.0}, suppressed=0).facts()["rows"]
    1
    """

    frame: pl.DataFrame
    quasi: tuple[str, ...]
    alone: tuple[Verdict, ...]
    within: tuple[Verdict, ...]
    losses: Mapping[str, float]
    suppressed: int
    signed: tuple[Signed, ...] = ()
    people: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String))

    def facts(self) -> dict[str, object]:
        """As plain values, without any cell."""
        return {
            "rows": self.frame.height,
            "columns": self.frame.columns,
            "suppressed_rows": self.suppressed,
            "verdicts_alone": [asdict(verdict) for verdict in self.alone],
            "verdicts_within_joined_groups": [asdict(verdict) for verdict in self.within],
            "ncp_by_column": dict(self.losses),
            "signed_columns": [asdict(one) for one in self.signed],
        }


@dataclass(frozen=True, repr=False)
class JoinedRelease:
    """The published tables, the promise that holds when they are joined, what it cost, how it was made.

    *checked* is what was found on the joined published values, one row per person. *smallest_by_row_counts* is
    the smallest crowd for an attacker who also knows how many rows a person has in each table; None where no
    pseudonym is kept, because then the tables do not show it.

    >>> from velado.testing.examples import table
    >>> from velado.release.methods import Mondrian
    >>> ages = table(person=["a", "b"], age=[20, 30])
    >>> anonymize_joined({"one": ages, "two": ages}, Mondrian(), k=2).people
    2
    """

    tables: Mapping[str, JoinedTable]
    promise: Promise
    checked: Checked
    people: int
    suppressed_people: int
    method: Method
    goal: Goal
    seed: int
    side_doors: tuple[SideDoor, ...] = ()
    key_fingerprint: str | None = None
    smallest_by_row_counts: int | None = None
    notes: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        state = "; ".join(verdict.sentence() for verdict in self.verdicts)
        return f"JoinedRelease({len(self.tables)} tables, {self.people} people; joined: {state})"

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """What may leave, by the name of the table."""
        return {name: table.frame for name, table in self.tables.items()}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per guarantee that counts people, found on the joined published values."""
        return self.checked.verdicts

    @property
    def loss(self) -> float:
        """Mean normalized certainty penalty over the quasi-identifiers of all tables."""
        return float(np.mean([loss for table in self.tables.values() for loss in table.losses.values()]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before the tables leave."""
        out = [door.sentence() for door in self.side_doors]
        least = min(verdict.needed for verdict in self.verdicts)
        if self.smallest_by_row_counts is not None and self.smallest_by_row_counts < least:
            out.append(
                say(
                    "Whoever knows how many rows a person has in each table finds a crowd of only {smallest}: publish "
                    "without the pseudonym if that can be known.",
                    smallest=self.smallest_by_row_counts,
                )
            )
        return tuple(out)

    def facts(self) -> dict[str, dict[str, object]]:
        """Result, promise, cost and how it was made, without any cell value."""
        return {
            "result": {
                "people": self.people,
                "suppressed_people": self.suppressed_people,
                "joined_groups": self.checked.partition.count,
                "tables": {name: table.facts() for name, table in self.tables.items()},
            },
            "promise": {
                "type": self.promise,
                "verdicts": [asdict(verdict) for verdict in self.verdicts],
                "readings_of_blanks": [asdict(reading) for reading in self.checked.readings],
                "smallest_class_with_row_counts": self.smallest_by_row_counts,
                "side_doors": [asdict(door) for door in self.side_doors],
                "warnings": list(self.warnings),
            },
            "cost": {"ncp": self.loss},
            "how": {
                "method": describe(self.method),
                "guarantees": [describe(guarantee) for guarantee in self.goal.guarantees],
                "suppression_limit": self.goal.suppression,
                "seed": self.seed,
                "key_fingerprint": self.key_fingerprint,
                "notes": dict(self.notes),
            },
        }


def anonymize_joined(
    tables: Mapping[str, Table],
    method: Method | type[Method] | str,
    guarantees: Guarantees = (),
    *,
    k: int | None = None,
    suppression: float = 0.0,
    seed: int = 0,
    key: Key | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    progress: Progress = silent,
) -> JoinedRelease:
    """The *tables* published so that their join keeps k per person and every further guarantee, or an error.

    Every schema marks its person column (`person = true`, role "identifier"); people are matched by its text.
    *k* (or that of a KAnonymity among *guarantees*; 5 where none is given) always counts people. Guarantees about
    sensitive values hold for each table within the joined groups and alone; a sensitive column that two tables
    share is called "table.column". *suppression* is the share of people who may be left out. With a *key* every
    row also gets the person's pseudonym, so that the published tables can be joined row by row. The same
    input, settings and *seed* give the same release.

    >>> from velado.testing.examples import table
    >>> from velado.release.methods import Mondrian
    >>> one, two = table(person=["a", "b"], age=[20, 30]), table(person=["b", "a"], town=["x", "x"])
    >>> [frame.rows() for frame in anonymize_joined({"one": one, "two": two}, Mondrian(), k=2).frames.values()]
    [[('[20..30]',), ('[20..30]',)], [('x',), ('x',)]]
    """
    asked = run_settings(method=method, guarantees=guarantees, k=k, suppression=suppression, seed=seed)
    chosen: Method = asked.method
    goal = Goal(_counted_in_people(chosen, asked.k, asked.guarantees), asked.suppression)
    tables = {name: table_given(table) for name, table in tables.items()}
    _check_tables(tables, key)
    signed = {name: refuse_identifiers(table) for name, table in tables.items()}
    doors = side_doors(tables)
    refuse_copies(doors)
    members, people, gone = gather(tables)
    _check_readable(members, goal)
    labels, notes = groups_of(members, people, gone, chosen, goal, asked.seed, progress)
    names = _names_of(members, people, key, namespace)
    drafts = {member.name: publish(member, labels, names) for member in members}
    checked, of_person = check_joined(members, drafts, people, goal)
    out = {}
    whose = dict(zip(drafts, person_texts([member.table for member in members]), strict=True))
    for member in members:
        draft = drafts[member.name]
        within = _verdicts_on(member, draft.rows, Partition.of(of_person[member.person[draft.rows]]), goal)
        alone = _verdicts_on(member, draft.rows, visible_groups(draft.frame, member.quasi), goal)
        for verdict in (*within, *alone):
            _raise_if_broken(verdict, say("table '{name}'", name=member.name))
        _refuse_own_doors(member, draft, doors, goal)
        original = tables[member.name].rows
        losses = {name: (total + original - member.table.rows) / original for name, total in draft.losses}
        out[member.name] = JoinedTable(
            frame=draft.frame,
            quasi=tuple(member.quasi),
            alone=alone,
            within=within,
            losses=losses,
            suppressed=original - draft.frame.height,
            signed=signed[member.name],
            people=whose[member.name].fill_null("")[draft.rows],
        )
    return JoinedRelease(
        tables=out,
        promise="as in the paper" if chosen.promise == "as in the paper" else "guaranteed",
        checked=checked,
        people=people + gone,
        suppressed_people=people + gone - int((labels >= 0).sum()),
        method=chosen,
        goal=goal,
        seed=asked.seed,
        side_doors=doors,
        key_fingerprint=None if key is None else key.fingerprint,
        smallest_by_row_counts=None if key is None else _smallest_by_row_counts(members, drafts, of_person),
        notes=notes,
    )


def _counted_in_people(
    method: Method, k: int | None, guarantees: Sequence[Guarantee]
) -> tuple[Guarantee, ...]:
    for guarantee in guarantees:
        if guarantee.reads == "population":
            raise ParameterError(
                say("{guarantee} cannot be promised for several tables at once.", guarantee=guarantee.name),
                "It compares one table with one population.",
                "Publish the tables one by one for it, or ask for k-anonymity.",
            )
    k = default_k(method.promise, guarantees) if k is None else k
    k = max((one for one in (k, Goal(tuple(guarantees)).k) if one is not None), default=None)
    if k is None:
        raise ParameterError(
            "No k was given.",
            "Without it there is nothing the joined tables could be checked for.",
            "Use a method that promises a k, or give k=5.",
        )
    return (KAnonymity(k, "person"), *(one for one in guarantees if one.reads == "values"))


def _check_readable(members: Sequence[Member], goal: Goal) -> None:
    known = {name for member in members for name in member.sensitive}
    for guarantee in goal.guarantees:
        asked = getattr(guarantee, "column", None)
        if guarantee.reads == "values" and not (known if asked is None else asked in known):
            raise ParameterError(
                say(
                    "{guarantee} was asked for, but no table has the sensitive column it needs.",
                    guarantee=guarantee.name,
                ),
                "Without it the promise is empty.",
                'Give a column role = "sensitive" in its schema; one that two tables share is "table.column".',
            )


def _check_tables(tables: Mapping[str, Table], key: Key | None) -> None:
    if len(tables) < 2:
        raise ParameterError(
            say_n("{n} table was given.", "{n} tables were given.", len(tables)),
            "A joined release is made of at least two.",
            "Use `velado anonymize` for a single table.",
        )
    for name, table in tables.items():
        person = table.schema.person
        if person is None or person.published:
            raise SchemaError(
                say("The schema of '{name}' names no person column.", name=name)
                if person is None
                else say(
                    "The person column '{person}' of '{name}' would be published.",
                    person=person.name,
                    name=name,
                ),
                "Rows of the tables are matched by it, and it must not leave.",
                'Mark the column with person = true and role = "identifier".',
            )
        if key is not None and _PSEUDONYM in table.frame.columns:
            raise SchemaError(
                say("'{name}' already has a column named '{pseudonym}'.", name=name, pseudonym=_PSEUDONYM),
                "The pseudonym to join by is published under that name.",
                "Rename the column.",
            )
    if not any(table.schema.quasi for table in tables.values()):
        raise SchemaError(
            "No schema names a published quasi-identifier.",
            "There is nothing to generalize, so no promise could be made.",
            'Give role = "quasi" to columns an attacker may know: age, sex, place, dates.',
        )


__all__ = ["JoinedRelease", "JoinedTable", "anonymize_joined"]
