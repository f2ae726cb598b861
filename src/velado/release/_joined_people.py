"""The people of several tables: who is who, in which tables they are, and the groups a method makes of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn, EncodedTable, encode, text_codes
from velado.data.normal import person_texts
from velado.data.partition import GroupCounts, Partition, ValueCounts, ValueShape
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import GuaranteeNotMet, SuppressionLimitExceeded, TableError
from velado.randomness import seeded
from velado.release.goal import Goal, Progress, silent
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods._method import Method, repair
from velado.release.side_doors import SideDoor, find_side_doors
from velado.text import say, say_n

Codes = tuple[npt.NDArray[np.int32], int]


@dataclass(frozen=True, repr=False)
class Member:
    """One of the tables: its rows, encoded, and whose each row is (*person*, a code 0.. shared by all tables).

    *sensitive*, *totals* and *shapes* are as in EncodedTable, but under names that no other table uses.
    """

    name: str
    table: Table
    data: EncodedTable
    person: npt.NDArray[np.int64]
    sensitive: Mapping[str, Codes]
    totals: Mapping[str, npt.NDArray[np.int64]]
    shapes: Mapping[str, ValueShape]

    @property
    def quasi(self) -> list[str]:
        """The names of the quasi-identifiers, in column order."""
        return [column.name for column in self.data.columns]

    def applicable(self, goal: Goal) -> Goal:
        """The guarantees that can be read in this table: k always, the others where it has what they read."""
        return replace(goal, guarantees=_readable(goal, self.sensitive))


def _readable(goal: Goal, sensitive: Collection[str]) -> tuple[Guarantee, ...]:
    def reads(guarantee: Guarantee) -> bool:
        asked = getattr(guarantee, "column", None)
        return guarantee.reads == "crowd" or bool(sensitive if asked is None else asked in sensitive)

    return tuple(guarantee for guarantee in goal.guarantees if reads(guarantee))


@dataclass(frozen=True, repr=False)
class _Held:
    """A sensitive column: whose each row is, its value (one of *size* codes), and how the whole table's values lie."""

    person: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]
    size: int
    totals: npt.NDArray[np.int64]
    shape: ValueShape | None


@dataclass(frozen=True, repr=False)
class _PeopleView(EncodedTable):
    """One row per person; sensitive values, *held* by column, are counted over all rows of the people."""

    held: Mapping[str, _Held] = field(default_factory=dict)

    def group_counts(self, partition: Partition) -> GroupCounts:
        """People per group, and the sensitive values of all their rows."""
        return GroupCounts(
            partition.sizes,
            None,
            {
                name: ValueCounts.of(
                    partition.labels[one.person], partition.count, one.codes, one.size, one.totals, one.shape
                )
                for name, one in self.held.items()
            },
        )


def gather(tables: Mapping[str, Table]) -> tuple[tuple[Member, ...], int, int]:
    """The tables with their people coded alike, how many people there are, and how many left for a blank.

    People with a blank where a schema says `missing = "suppress"` leave all tables.
    """
    texts = person_texts(list(tables.values()))
    for name, column in zip(tables, texts, strict=True):
        if column.null_count():
            raise TableError(
                say_n(
                    "The person column of '{name}' is blank in {n:,} row.",
                    "The person column of '{name}' is blank in {n:,} rows.",
                    column.null_count(),
                    name=name,
                ),
                "Whose rows they are is not known, so their people could not be counted.",
                "Fill the column, or take these rows out.",
            )
    codes, size = text_codes(pl.concat(texts, rechunk=True))
    people = np.split(codes - 1, np.cumsum([len(column) for column in texts])[:-1])
    blank = np.zeros(size - 1, dtype=bool)
    for table, person in zip(tables.values(), people, strict=True):
        for quasi in table.schema.quasi:
            if table.schema.missing_policy(quasi) == "suppress":
                blank[person[table.is_missing(quasi.name).to_numpy()]] = True
    renumbered = np.cumsum(~blank) - 1
    shared = [c.name for table in tables.values() for c in table.schema.sensitive]
    members = []
    for (name, table), person in zip(tables.items(), people, strict=True):
        stays = ~blank[person]
        if not stays.any():
            raise GuaranteeNotMet(
                say("Every person of '{name}' has a blank that the schema suppresses.", name=name),
                "There is nothing to publish of it.",
                'Leave the table out, or set missing = "value".',
            )
        used = table if bool(stays.all()) else table.with_frame(table.frame.filter(pl.Series(stays)))
        data = encode(used)
        called = {c: c if shared.count(c) == 1 else f"{name}.{c}" for c in data.row_values}
        members.append(
            Member(
                name,
                used,
                data,
                renumbered[person[stays]].astype(np.int64),
                {called[c]: coded for c, coded in data.row_values.items()},
                {called[c]: totals for c, totals in data.totals.items()},
                {called[c]: shape for c, shape in (data.shapes or {}).items()},
            )
        )
    return tuple(members), int((~blank).sum()), int(blank.sum())


def _people_view(members: Sequence[Member], people: int, chosen: npt.NDArray[np.int64]) -> _PeopleView:
    """One row for each of the *chosen* people, all of whom are in all *members*.

    A column in which somebody has several values becomes two, the lowest and the highest of each person.
    """
    place = np.full(people, -1, dtype=np.int32)
    place[chosen] = np.arange(chosen.size, dtype=np.int32)
    columns: list[EncodedColumn] = []
    held: dict[str, _Held] = {}
    for member in members:
        mine = place[member.person]
        rows = Partition(mine, int(chosen.size))
        for column in member.data.columns:
            low, high = rows.least_and_greatest(column.codes)
            name = f"{member.name}.{column.name}"
            if bool((low == high).all()):
                columns.append(replace(column, name=name, codes=low))
            else:
                columns.append(replace(column, name=f"{name} (lowest)", codes=low))
                columns.append(replace(column, name=f"{name} (highest)", codes=high))
        kept = mine >= 0
        for sensitive, (codes, size) in member.sensitive.items():
            shape = member.shapes.get(sensitive)
            held[sensitive] = _Held(mine[kept], codes[kept], size, member.totals[sensitive], shape)
    return _PeopleView(tuple(columns), int(chosen.size), held=held)


def groups_of(
    members: Sequence[Member],
    people: int,
    gone: int,
    method: Method,
    goal: Goal,
    seed: int,
    progress: Progress,
) -> tuple[npt.NDArray[np.int32], dict[str, object]]:
    """The group of each person (-1 suppressed) and facts about the run; groups never mix people of other tables.

    *gone* people have left already and count against the limit. People whose combination of tables cannot keep
    the promise even as one group are suppressed as long as the limit allows.
    """
    presence = np.zeros((people, len(members)), dtype=np.int32)
    for at, member in enumerate(members):
        presence[member.person, at] = 1
    patterns = Partition.by_codes(list(presence.T), [2] * len(members))
    order, starts = patterns.members()
    limit = goal.suppressible(people + gone)
    possible: list[tuple[list[Member], npt.NDArray[np.int64], _PeopleView]] = []
    rare = 0
    for chosen in np.split(order, starts[1:]):
        inside = [member for at, member in enumerate(members) if presence[chosen[0], at]]
        view = _people_view(inside, people, chosen)
        whole = Partition(np.zeros(chosen.size, dtype=np.int32), 1)
        if _readable_goal(goal, view).holds_in(view.group_counts(whole))[0]:
            possible.append((inside, chosen, view))
        else:
            rare += chosen.size
    if gone + rare > limit or not possible:
        _raise_rare(gone, rare, people + gone, goal, bool(possible))
    labels = np.full(people, -1, dtype=np.int32)
    count, spare = 0, limit - gone - rare
    combinations: dict[str, object] = {}
    for inside, chosen, view in possible:
        named = " + ".join(member.name for member in inside)
        groups, found = _groups(view, method, goal, spare, seed, named, progress)
        spare -= int((~groups.kept).sum())
        labels[chosen] = np.where(groups.kept, groups.labels + count, -1)
        count += groups.count
        combinations[named] = {"people": int(chosen.size), "groups": groups.count, "method": found}
    return labels, {"people_in_rare_combinations": rare, "combinations_of_tables": combinations}


def _readable_goal(goal: Goal, view: _PeopleView) -> Goal:
    return replace(goal, guarantees=_readable(goal, view.held))


def _groups(
    view: _PeopleView, method: Method, goal: Goal, spare: int, seed: int, named: str, progress: Progress
) -> tuple[Partition, dict[str, object]]:
    """Groups of people that keep the goal: the method's for k, then merged where sensitive values ask for more."""
    if not view.columns:
        return Partition(np.zeros(view.rows, dtype=np.int32), 1), {}
    progress(0.0, method.title)
    # To the method each row is a person, so rows are what it counts.
    counted = tuple(one.counted_by("row") for one in goal.guarantees if one.reads == "crowd")
    crowd = Goal(counted, min(1.0, spare / view.rows))
    plain = EncodedTable(view.columns, view.rows)
    recoded = method.anonymize(plain, crowd, seeded(seed, method.name, named), progress)
    if recoded.partition is not None:
        labels = np.where(recoded.kept, recoded.partition.labels, -1)
    else:
        shown = Partition.by_codes(
            [c.codes for c in recoded.columns], [len(c.values) for c in recoded.columns]
        )
        labels = np.where(recoded.kept, shown.labels, -1)
    if int((labels < 0).sum()) > spare or not (labels >= 0).any():
        # More people left than may: bring all back as one group more, and let the repair place them.
        labels = np.where(labels < 0, labels.max() + 1, labels)
    return repair(view, Partition.of(labels), _readable_goal(goal, view), silent), dict(recoded.notes)


def _raise_rare(gone: int, rare: int, people: int, goal: Goal, any_left: bool) -> None:
    kind = SuppressionLimitExceeded if goal.suppression else GuaranteeNotMet
    raise kind(
        say(
            "Of {people:,} people {rare:,} are in a combination of tables in which the promise cannot be kept, and "
            "{gone:,} have a blank that is suppressed.",
            people=people,
            rare=rare,
            gone=gone,
        ),
        "Which tables a person is in is visible to whoever joins them, so each combination needs its own crowd.",
        say(
            "Allow --suppression {share} to leave them out, drop the table few people are in, or lower k.",
            share=f"{float(np.ceil(1000 * (gone + rare) / people) / 1000):g}",  # as it is typed
        )
        if any_left
        else "Lower k (or l), or gather more people.",
    )


def side_doors(tables: Mapping[str, Table]) -> tuple[SideDoor, ...]:
    """Columns that give a quasi-identifier away, in their own table or, joined by person, in another one.

    Names are "table.column". Across tables the quasi-identifier of a person with several rows is the first.
    """
    found: list[SideDoor] = []
    for name, table in tables.items():
        for door in find_side_doors(table):
            found.append(door.within(name))
        for other_name, other in tables.items():
            joined = None if other_name == name else _side_by_side(name, table, other_name, other)
            if joined is not None:
                found += [door for door in find_side_doors(joined) if door.kind != "near-unique"]
    return tuple(found)


def _side_by_side(name: str, table: Table, other_name: str, other: Table) -> Table | None:
    """The published columns of *table* that are no quasi-identifiers beside those of *other* that are."""
    telling = [c for c in table.schema.columns.values() if c.published and c.role != "quasi"]
    told = list(other.schema.quasi)
    if not telling or not told:
        return None
    mine, theirs = person_texts([table, other])
    left = pl.DataFrame([mine.alias("\0")] + [table.text(c.name).alias(f"{name}.{c.name}") for c in telling])
    right = pl.DataFrame(
        [theirs.alias("\0")] + [other.text(c.name).alias(f"{other_name}.{c.name}") for c in told]
    ).unique(subset="\0", keep="first", maintain_order=True)
    frame = left.join(right, on="\0", how="inner", maintain_order="left").drop("\0")
    if frame.height == 0:
        return None
    columns = [replace(c, name=f"{name}.{c.name}", person=False) for c in telling]
    columns += [replace(c, name=f"{other_name}.{c.name}", person=False) for c in told]
    return Table(frame, Schema({c.name: c for c in columns}))
