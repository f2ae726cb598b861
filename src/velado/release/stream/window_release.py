"""A window's records become a published table: units, classes held for the epoch, and the one door of every release.

Promised for each window: every visible group has at least k people, counted on the published values by `release()`. Promised within
an epoch, to a reader *in* (who knows somebody's quasi-identifiers and windows that person is in, not who is missing when, and links rows of one person from window to window): at
least k people shared that person's group in every window the person is in. It follows from the classes (`release.history.classes`,
rule *drop*), which are made from quasi-identifiers and presence alone, and from visible groups being unions of classes.
Across epochs nothing is promised; how many people two epochs together may single out is counted.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import encode
from velado.data.keys import Key
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, VeladoError
from velado.randomness import seeded
from velado.release.anonymize import method_from
from velado.release.goal import Goal, silent
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.history.classes import Classes, shown_together
from velado.release.methods._method import Method, in_groups
from velado.release.prepare import Prepared, prepare
from velado.release.release import Release, release
from velado.release.stream.stream_settings import StreamSettings
from velado.release.stream.units import PERSON, unit_schema, units_of
from velado.text import say

Ints = npt.NDArray[np.int64]
SINCE = "_since"
"""The number of the window in which a record that waits arrived."""


@dataclass(frozen=True, repr=False)
class Epoch:
    """The classes of one epoch, and those of the epoch before, to count what both tell together.

    >>> Epoch.first().number
    -1
    """

    number: int
    classes: Classes
    before: Classes

    @staticmethod
    def first() -> Epoch:
        """Before the first window."""
        return Epoch(-1, Classes.none(), Classes.none())

    def at(self, number: int) -> Epoch:
        """The epoch of that number: this one, or a new one without any class."""
        if number == self.number:
            return self
        return Epoch(number, Classes.none(), self.classes)


@dataclass(frozen=True, repr=False)
class Outcome:
    """What became of a window's records: a release or the sentences of why there is none, and who waits.

    Counts are of records, those of *people* of people. *below_across* are the people shown who may have fewer than
    k candidates in this epoch and the one before together, at most.
    """

    release: Release | None
    refusal: tuple[str, ...]
    epoch: Epoch
    waiting: pl.DataFrame
    published: int
    given_up: int
    expired: int
    withheld: int
    people_shown: int
    people_waiting: int
    people_given_up: int
    people_expired: int
    below_across: int

    @property
    def people_left_out(self) -> int:
        """People of this window who are not shown and do not wait: their class was given up, or they waited too long."""
        return self.people_given_up + self.people_expired


class WindowPublisher:
    """Publishes windows of one stream. It holds what never changes: schema, settings, key.

    >>> from velado.data.schema import Column
    >>> people = Schema({"who": Column("who", "identifier", person=True), "age": Column("age", "quasi", "numeric")})
    >>> made = WindowPublisher(people, StreamSettings(schema="s.toml"), Key(bytes(range(40))))
    >>> made.goal.k
    5
    """

    def __init__(self, schema: Schema, asked: StreamSettings, key: Key) -> None:
        self.schema, self._asked, self._key = schema, asked, key
        self.shown = unit_schema(schema, asked.readings)
        self.method: Method = method_from(asked.method)
        self.goal = Goal((KAnonymity(asked.people.k, "person"),))

    def publish(self, records: pl.DataFrame, waiting: pl.DataFrame, epoch: Epoch, window: int) -> Outcome:
        """The window *window* of *records*, with those *waiting* (both with PERSON), in its *epoch*."""
        records = pl.concat([waiting, records.with_columns(pl.lit(window, pl.Int64).alias(SINCE))])
        people = records.get_column(PERSON).unique().sort()
        here = self._numbers(people)
        units: pl.DataFrame | None = None

        def newcomers(positions: Ints) -> Ints:
            nonlocal units
            units = units_of(records, self.schema, self._asked.readings) if units is None else units
            return self._grouped(units[positions])

        made = None
        k, start = self._asked.people.k, self._asked.people.least
        try:
            shown = shown_together(epoch.classes, here, k=k, start=start, grouping=newcomers)
            classes = shown.classes
            if (classes >= 0).any():
                if units is None:
                    units = units_of(records, self.schema, self._asked.readings)
                made = self._released(units.filter(pl.Series(classes >= 0)), classes[classes >= 0])
        except VeladoError as error:
            # Nothing leaves of such a window, so that nobody was in it: the classes stand as they stood.
            return _withheld(records, epoch, (error.what, error.why, error.fix))
        stand = pl.DataFrame(
            {
                PERSON: people,
                "shown": classes >= 0,
                "waits": shown.waiting,
                "gone": shown.given_up,
            }
        )
        placed = records.join(stand, on=PERSON, how="left", maintain_order="left")
        waits = placed.filter(pl.col("waits"))
        kept = waits.filter(pl.col(SINCE) > window - self._asked.people.wait)
        return Outcome(
            release=made,
            refusal=(),
            epoch=replace(epoch, classes=shown.after),
            waiting=kept.select(records.columns),
            published=int(placed.get_column("shown").sum()),
            given_up=int(placed.get_column("gone").sum()),
            expired=waits.height - kept.height,
            withheld=0,
            people_shown=int((classes >= 0).sum()),
            people_waiting=kept.get_column(PERSON).n_unique(),
            people_given_up=int(shown.given_up.sum()),
            people_expired=waits.get_column(PERSON).n_unique() - kept.get_column(PERSON).n_unique(),
            below_across=_below(epoch.before, shown.after, here[classes >= 0], k),
        )

    def _numbers(self, people: pl.Series) -> Ints:
        """A number for each person that only the owner's key finds again, so that the state names nobody."""
        secret = self._key.seed_for("people of a stream")
        out = np.empty(len(people), np.int64)
        for at, text in enumerate(people):
            out[at] = int.from_bytes(hmac.digest(secret, text.encode(), "sha256")[:8], "little") >> 1
        return out

    def _table(self, units: pl.DataFrame) -> Prepared:
        table = Table.of(units.select(list(self.shown.columns)), self.shown, source=self._asked.name)
        return prepare(table, per="person", key=self._key)

    def _grouped(self, units: pl.DataFrame) -> Ints:
        """The group of each newcomer, by the method, from quasi-identifiers alone."""
        start = self._asked.people.least
        quasi = self.shown.with_columns(self.shown.quasi)
        data = encode(Table.of(units.select(list(quasi.columns)), quasi, source=self._asked.name))
        data = data.weighted({column.name: column.weight for column in quasi.quasi})
        goal = Goal((KAnonymity(start),))
        recoded = self.method.anonymize(data, goal, seeded(0, self.method.name), silent)
        if recoded.partition is None:
            raise ParameterError(
                say("The method '{method}' makes no groups.", method=self.method.name),
                "Classes of people are held for an epoch, and this method recodes columns instead.",
                "Use mondrian, progressive or another method that partitions.",
            )
        return recoded.partition.labels.astype(np.int64)

    def _released(self, units: pl.DataFrame, classes: Ints) -> Release:
        prepared = self._table(units)
        if not bool(prepared.present.all()):
            raise ParameterError(
                "Somebody of a class is blank in a quasi-identifier that the schema suppresses.",
                "The class would be published without that person, and the next window would tell who it was.",
                'Set missing = "value" for the column: a blank is then a value of its own.',
            )
        _, labels = np.unique(classes, return_inverse=True)
        recoded = in_groups(prepared.data, Partition.of(labels.astype(np.int32)), "cover")
        return release(prepared, recoded, self.goal, self.method, seed=0, readings=False)


def _withheld(records: pl.DataFrame, epoch: Epoch, why: tuple[str, ...]) -> Outcome:
    return Outcome(
        release=None,
        refusal=why,
        epoch=epoch,
        waiting=records.clear(),
        published=0,
        given_up=0,
        expired=0,
        withheld=records.height,
        people_shown=0,
        people_waiting=0,
        people_given_up=0,
        people_expired=0,
        below_across=0,
    )


def _below(before: Classes, now: Classes, people: Ints, k: int) -> int:
    """At most how many of *people* have fewer than k candidates in both epochs, for a reader *in* who links them.

    Who was in every window of both of somebody's classes shared each visible group of that person: a candidate. Others may be too.
    """
    at = before.places(now.people)
    both = at >= 0
    if not both.any():
        return 0
    home, then = now.home[both], before.home[at[both]]
    always = now.standing[both] & before.standing[at[both]]
    of = np.unique(np.stack([home, then], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    crowd = np.bincount(of[always], minlength=of.size)[of] + ~always
    return int((crowd[np.isin(now.people[both], people)] < k).sum())


def table_bytes(made: Release) -> bytes:
    """The window's table as it leaves: CSV, rows in the drawn order, what looks like a formula escaped.

    >>> from velado.testing.examples import small_release
    >>> table_bytes(small_release().release)[:3]
    b'age'
    """
    return made.to_csv(formulas="escape")
