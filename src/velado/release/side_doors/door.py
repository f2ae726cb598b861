"""A side door, said and refused: what one is, which ones break a promise, and what is left of it behind them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import visible_groups
from velado.errors import SideDoorOpen
from velado.text import join, say, say_n

DoorKind = Literal[
    "copy",
    "original",
    "near-copy",
    "order",
    "functional",
    "part-copy",
    "narrows",
    "near-functional",
    "near-unique",
    "joins",
    "row-order",
    "unseen",
]
ORDER: tuple[DoorKind, ...] = get_args(DoorKind)
"""Doors are named in this order."""
_UNDOING: tuple[DoorKind, ...] = ("copy", "near-copy")
"""Kinds that undo a generalization whatever its groups are; refused before any work is done."""
_TELLING: tuple[DoorKind, ...] = ("copy", "original", "near-copy", "order", "functional", "narrows")
"""Kinds that settle or narrow a published value rather than hint at it."""
_LEAST_GAIN_TO_TELL = 0.9
"""A column that removes nine tenths of the wrong guesses all but determines a quasi-identifier."""

_LEAST_SHARE_TO_TELL = 0.2
"""A copy in part tells if it is right in a fifth of the rows: less is no better than to draw from a crowd of five."""


@dataclass(frozen=True)
class SideDoor:
    """One published *column*, or two *together*, that give away the quasi-identifier *reveals*.

    *kind* is "copy" (the same values, or one to one, in all but a few rows), "near-copy" (so close that the value
    is all but known: a year more or less, another unit), "functional" (each value goes with one value of the
    quasi-identifier), "part-copy" (the same value in far more rows than by chance), "narrows" (a band: it leaves a small part of the people), "near-functional" (often right), or
    "near-unique": most rows hold a value nobody else has, so that the column can be matched against another file; it
    then reveals no column by name (""). On a published table "original" says that the column lies within the
    quasi-identifier's published values, "order" that some rising or falling rule puts it there, and "row-order" that
    the rows stand in an order that follows the quasi-identifier (no column is named then). "unseen" says that
    *rows_revealed* pairs of columns were not looked at together. "joins" says that rows of one person can be put together by the
    column: *rows_revealed* counts those people, *guess* is their share of all who have several rows.

    *guess* is the share of rows whose quasi-identifier is guessed right, *baseline* the share guessed right without
    the column. For "near-copy" and "narrows" *guess* is the share of other values that are ruled out, against none.
    For "part-copy" both speak of the rows that do not hold the column's commonest value (a zero for all others).
    *rows_revealed* counts rows whose value of the column, shared by at least two rows, goes with a single value of
    the quasi-identifier; for "part-copy" those that agree; for "near-unique", rows with a value of their own. *accepted* says that the schema signs it
    off with ``side_door = "accept"``, for two columns at either of them that is no quasi-identifier.

    >>> door = SideDoor("birth", "age", "functional", guess=1.0, baseline=0.1, rows_revealed=90)
    >>> door.tells, door.gain
    (True, 1.0)
    """

    column: str
    reveals: str
    kind: DoorKind
    guess: float
    baseline: float
    rows_revealed: int
    accepted: bool = False
    together: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read: one, two for a pair, none for the order of the rows."""
        return self.together or ((self.column,) if self.column else ())

    @property
    def gain(self) -> float:
        """The share of the mistakes without the column that reading it removes."""
        return (self.guess - self.baseline) / (1.0 - self.baseline) if self.baseline < 1.0 else 0.0

    @property
    def tells(self) -> bool:
        """Whether the quasi-identifier is settled or narrowed rather than hinted at."""
        if self.kind == "part-copy":
            return self.guess >= _LEAST_SHARE_TO_TELL
        return self.kind in _TELLING or (self.kind == "near-functional" and self.gain >= _LEAST_GAIN_TO_TELL)

    def within(self, table: str) -> SideDoor:
        """The same door with the names of its columns as "table.column"."""
        together = tuple(f"{table}.{name}" for name in self.together)
        column = paired(together) if together else f"{table}.{self.column}" if self.column else ""
        reveals = f"{table}.{self.reveals}" if self.reveals else ""
        return replace(self, column=column, reveals=reveals, together=together)

    def sentence(self) -> str:
        """The finding in one sentence."""
        parts = {
            "who": quoted(self.columns),
            "reveals": self.reveals,
            "guess": self.guess,
            "baseline": self.baseline,
            "rows": self.rows_revealed,
        }
        if self.kind == "near-unique":
            return say(
                "{who} holds a value nobody else has in {rows:,} rows: it can be matched against another file.",
                **parts,
            )
        if self.kind == "joins":
            return say_n(
                "{who} joins the rows of {n:,} person ({guess:.1%} of those with several rows): among all rows of the groups the person is in, "
                "the one most like each is their own.",
                "{who} joins the rows of {n:,} people ({guess:.1%} of those with several rows): among all rows of the groups a person is in, "
                "the one most like each is their own.",
                self.rows_revealed,
                who=parts["who"],
                guess=self.guess,
            )
        if self.kind == "unseen":
            return say(
                "{rows:,} pairs of published columns were not looked at together: there are too many.",
                **parts,
            )
        if self.kind == "row-order":
            return say(
                "The order of the rows follows quasi-identifier '{reveals}': neighbouring rows show the same "
                "value in {guess:.1%} of the cases, by chance in {baseline:.1%}.",
                **parts,
            )
        columns = max(len(self.columns), 1)
        if self.kind == "original":
            return say_n(
                "{who} lies within the published value of quasi-identifier '{reveals}' in {guess:.1%} of the rows, "
                "by chance in {baseline:.1%}: it seems to be its original.",
                "{who} together lie within the published value of quasi-identifier '{reveals}' in {guess:.1%} of "
                "the rows, by chance in {baseline:.1%}: they seem to give its original.",
                columns,
                **parts,
            )
        if self.kind == "order":
            return say_n(
                "{who} lies, by a rule that only rises or falls, within the published value of quasi-identifier "
                "'{reveals}' in {guess:.1%} of the rows, by chance in {baseline:.1%}: it seems to be its original.",
                "{who} together lie, by a rule that only rises or falls, within the published value of "
                "quasi-identifier '{reveals}' in {guess:.1%} of the rows, by chance in {baseline:.1%}: they seem to "
                "give its original.",
                columns,
                **parts,
            )
        if self.kind == "part-copy":
            return say_n(
                "{who} holds the value of quasi-identifier '{reveals}' itself in {guess:.1%} of the rows without its "
                "commonest value, by chance in {baseline:.1%}.",
                "{who} together hold the value of quasi-identifier '{reveals}' itself in {guess:.1%} of the rows "
                "without its commonest value, by chance in {baseline:.1%}.",
                columns,
                **parts,
            )
        if self.kind in ("near-copy", "narrows"):
            verb = {
                "near-copy": say_n("all but repeats", "all but repeat", columns),
                "narrows": say_n("narrows", "narrow", columns),
            }[self.kind]
            return say_n(
                "{who} {verb} quasi-identifier '{reveals}': reading it rules out about {guess:.1%} of the other "
                "values.",
                "{who} together {verb} quasi-identifier '{reveals}': reading them rules out about {guess:.1%} of the "
                "other values.",
                columns,
                verb=verb,
                **parts,
            )
        known = {
            "copy": say_n("repeats", "repeat", columns),
            "functional": say_n("determines", "determine", columns),
            "near-functional": say_n("often gives away", "often give away", columns),
        }
        return say_n(
            "{who} {verb} quasi-identifier '{reveals}': it is guessed right in {guess:.1%} of the rows, without the "
            "column in {baseline:.1%}.",
            "{who} together {verb} quasi-identifier '{reveals}': it is guessed right in {guess:.1%} of the rows, "
            "without the columns in {baseline:.1%}.",
            columns,
            verb=known.get(self.kind, say_n("tells", "tell", columns)),
            **parts,
        )

    def undoing(self) -> str:
        """Why it may not stay open."""
        return say_n(
            "Whoever reads it undoes the generalization, and the promise does not hold against him.",
            "Whoever reads them undoes the generalization, and the promise does not hold against him.",
            len(self.columns),
        )


def paired(names: Sequence[str]) -> str:
    """How two columns are named where one name is expected.

    >>> paired(["visit", "birth"])
    'visit + birth'
    """
    return " + ".join(names)


def quoted(names: Sequence[str], between: str = say(" and ")) -> str:
    """Names of columns within a sentence.

    >>> quoted(["visit", "birth"])
    "'visit' and 'birth'"
    """
    return join((f"'{name}'" for name in names), between)


def refuse_copies(doors: Sequence[SideDoor]) -> None:
    """Nothing, unless a copy or near-copy of a quasi-identifier would be published and nobody accepted it.

    Called before any work: such a column undoes every generalization. A copy is refused whatever its role. A
    near-copy in a sensitive column never comes here as one: `find_side_doors` names it as "narrows".

    >>> refuse_copies([SideDoor("birth", "age", "copy", 1.0, 0.1, 90, accepted=True)])
    """
    unique = unique_columns(doors)
    for door in doors:
        if door.kind in _UNDOING and not door.accepted:
            how = say("one to one") if door.kind == "copy" else say("but for a little")
            raise SideDoorOpen(
                say_n(
                    "Column {columns} repeats quasi-identifier '{reveals}' {how}.",
                    "Columns {columns} repeat quasi-identifier '{reveals}' {how}, read together.",
                    len(door.columns),
                    columns=quoted(door.columns),
                    reveals=door.reveals,
                    how=how,
                ),
                say_n(
                    "Published as it is, it would undo the generalization and void the promise.",
                    "Published as they are, they would undo the generalization and void the promise.",
                    len(door.columns),
                ),
                _way_out(door, unique=unique),
            )


def refuse_doors(
    doors: Sequence[SideDoor],
    frame: pl.DataFrame,
    quasi: Sequence[str],
    *,
    least: int = 2,
    sensitive: Sequence[str] = (),
    people: npt.NDArray[np.int32] | None = None,
) -> None:
    """Nothing, unless a column that settles or narrows a quasi-identifier leaves a group below *least*.

    Called with the published *frame*, whose groups the columns *quasi* make. *least* is the k that is promised
    (2 where none is: nobody may stand alone). *people* are codes of the frame's rows, so that a group counts
    people; without them it counts rows. A door into a *sensitive* column is left to the promises about sensitive
    values: it holds what an attacker wants to learn, not what he starts from.

    >>> door = SideDoor("note", "age", "functional", 1.0, 0.5, 2)
    >>> refuse_doors([door], pl.DataFrame({"age": ["*"] * 4, "note": ["a", "a", "b", "b"]}), ["age"], least=2)
    """
    for door in doors:
        refuse_small_door(
            door,
            doors,
            partial(_smallest, frame, [*quasi, *_there(frame, door.columns)], people),
            quasi,
            least=least,
            sensitive=sensitive,
        )


def refuse_small_door(
    door: SideDoor,
    doors: Sequence[SideDoor],
    smallest_behind: Callable[[], int],
    quasi: Sequence[str],
    *,
    least: int = 2,
    sensitive: Sequence[str] = (),
) -> None:
    """Nothing, unless *door*, one of *doors*, leaves a group below *least*; what it leaves is counted only if that matters.

    >>> refuse_small_door(SideDoor("note", "age", "functional", 1.0, 0.5, 2), [], lambda: 2, ["age"], least=2)
    """
    if door.accepted or not door.tells or not _starts_outside(door, sensitive):
        return
    smallest = smallest_behind()
    if smallest < least:
        raise SideDoorOpen(
            say_n(
                "Column {columns} gives quasi-identifier '{reveals}' away: read with it, the smallest group has "
                "{smallest}, not {least}.",
                "Columns {columns} give quasi-identifier '{reveals}' away: read with them, the smallest group has "
                "{smallest}, not {least}.",
                len(door.columns),
                columns=quoted(door.columns),
                reveals=door.reveals,
                smallest=smallest,
                least=least,
            ),
            door.undoing(),
            _way_out(door, quasi, unique_columns(doors)),
        )


def smallest_with_doors(frame: pl.DataFrame, quasi: Sequence[str], doors: Sequence[SideDoor]) -> int | None:
    """The smallest group for who also reads every column that tells a quasi-identifier; None without such.

    >>> door = SideDoor("note", "age", "functional", 1.0, 0.5, 2)
    >>> smallest_with_doors(pl.DataFrame({"age": ["*"] * 3, "note": ["a", "a", "b"]}), ["age"], [door])
    1
    """
    columns = telling_columns(doors, quasi)
    return promise_with_side_doors(frame, quasi, _there(frame, columns)) if columns else None


def telling_columns(doors: Sequence[SideDoor], quasi: Sequence[str] = ()) -> list[str]:
    """The columns, other than *quasi*, that settle or narrow a quasi-identifier; signed ones among them.

    >>> telling_columns([SideDoor("note", "age", "functional", 1.0, 0.5, 2)])
    ['note']
    """
    names = dict.fromkeys(name for door in doors if door.tells for name in door.columns)
    return [name for name in names if name not in quasi]


def unique_columns(doors: Sequence[SideDoor]) -> set[str]:
    """The columns that hold mostly values of one row each: to generalize such a one leaves little of the others.

    >>> unique_columns([SideDoor("note", "", "near-unique", 1.0, 0.0, 9)])
    {'note'}
    """
    return {door.column for door in doors if door.kind == "near-unique"}


def promise_with_side_doors(frame: pl.DataFrame, quasi: Sequence[str], columns: Sequence[str]) -> int:
    """The smallest group of a published *frame* for an attacker who also reads *columns* (0 without rows).

    >>> promise_with_side_doors(pl.DataFrame({"age": ["*"] * 3, "note": ["a", "a", "b"]}), ["age"], ["note"])
    1
    """
    return _smallest(frame, [*quasi, *_there(frame, columns)], None)


def _smallest(frame: pl.DataFrame, names: Sequence[str], people: npt.NDArray[np.int32] | None) -> int:
    groups = visible_groups(frame, list(dict.fromkeys(names)))
    if not groups.count:
        return 0
    if people is None:
        return int(groups.sizes.min())
    size = int(people.max()) + 1
    pairs = np.unique(groups.labels.astype(np.int64) * size + people)
    return int(np.bincount(pairs // size, minlength=groups.count).min())


def _there(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in frame.columns]


def _starts_outside(door: SideDoor, sensitive: Sequence[str]) -> bool:
    return bool(door.columns) and not any(name in sensitive for name in door.columns)


def _way_out(door: SideDoor, quasi: Sequence[str] = (), unique: Collection[str] = ()) -> str:
    free = [name for name in door.columns if name not in quasi] or list(door.columns)
    names = quoted(free, say(" or "))
    if any(column in unique for column in free):
        return say(
            'For {names} set publish = false, or accept the risk with side_door = "accept".', names=names
        )
    return say(
        'For {names} set role = "quasi", or publish = false, or accept the risk with side_door = "accept".',
        names=names,
    )
