"""What one run adds to a history: entered before the release leaves, confirmed after; figures from the written bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from velado.data.encode import VisibleTexts
from velado.data.history_file import HistoryEntry, HistoryFile
from velado.data.keys import Key
from velado.data.normal import spellings
from velado.data.partition import Partition
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes, written_cells
from velado.errors import GuaranteeNotMet, HistoryError, ParameterError, SchemaError, SuppressionLimitExceeded
from velado.release.goal import Goal
from velado.release.guarantees._guarantee import Verdict
from velado.release.history.classes import NOBODY, Classes, shown_together
from velado.release.history.record import HeldState, Record, ToldByReleases, entry_of, hashes_of, told_by
from velado.release.history.together import (
    OverTime,
    Together,
    cells_of,
    histogram_of,
    withheld_cells,
)
from velado.release.prepare import Prepared, prepare
from velado.release.recoded import Recoded
from velado.release.recoders import Cover
from velado.release.release import Release
from velado.study.recipe import Recipe
from velado.text import say

MOST_CHURN = 0.05
"""Above, classes for life cost so much detail that groups of values are the better way."""
_NO_COUNTS = pl.DataFrame(schema={"group": pl.Int64, "value": pl.String, "count": pl.Int64})


@dataclass(frozen=True, repr=False)
class Held:
    """What a run holds together: names of *people* who are known from now on, the home of each, and the state of all.

    *state* has those known before first, as the record has them, then *newcomers* in their order.
    """

    asked: Together
    newcomers: tuple[str, ...]
    state: HeldState
    column: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class HistoryDraft:
    """The entry of a release that has not left yet, and what it tells together with the releases before it."""

    file: HistoryFile
    said: Mapping[str, Any]
    body: bytes
    told: ToldByReleases
    again: bool
    over_time: OverTime | None = None
    values: bytes | None = None

    @classmethod
    def of(
        cls,
        file: HistoryFile,
        release: Release,
        content: bytes,
        separator: str,
        key: Key,
        held: Held | None = None,
    ) -> HistoryDraft:
        """The rows are regrouped as they stand in the file that will leave, not as the method meant them."""
        cells = written_cells(content, separator)
        columns = release.listed.columns
        quasi = [cells.columns[columns.index(column.name)] for column in release.recoded.columns]
        groups = np.asarray(VisibleTexts.of(cells, quasi).groups.labels, np.int32)
        person = release.original.schema.person
        assert person is not None
        people = release.original.text(person.name).fill_null("")[release.rows]
        sensitive = [one.name for one in release.table.schema.sensitive if one.name in columns]
        values = cells[cells.columns[columns.index(sensitive[0])]] if len(sensitive) == 1 else None
        # A run that was killed between its entry and its confirmation, and is done again, is one release.
        digest = hashlib.sha256(content).hexdigest()
        before = Record.of(file.entries)
        again = digest in before.tables
        if not again:
            _refuse_mixed(before, held)
        secret = key.seed_for("history people")
        unseen = () if held is None else held.newcomers
        said, body = entry_of(before, people, groups, values, secret, unseen)
        if held is not None:
            further, tail = _in_places(before, held, said, body, secret).packed(len(before.people))
            said, body = {**said, "held": further}, body + tail
        said["table"] = digest
        after = before if again else Record.of([*file.entries, HistoryEntry(said, body, "")])
        k = release.goal.k or 2
        pending = before.pending and not (again and digest == before.tables[-1])
        told = told_by(after, k, file.trouble, pending)
        over_time, public = None, None
        if held is not None and held.asked.what == "people":
            over_time = _people_kept(told, release, k)
        elif held is not None:
            public = _values_file(after, cells[held.column], separator)
            over_time = _values_kept(public, cells[held.column], held.asked, release, separator, file.trouble)
        return cls(file, said, body, told, again, over_time, public)

    def begin(self) -> None:
        """The entry is on the disk: from here on the release may leave."""
        if not self.again:
            self.file.append(self.said, self.body)

    def confirm(self) -> None:
        """The release has left."""
        self.file.append({"kind": "confirmed", "table": self.said["table"]})


def _in_places(before: Record, held: Held, said: Mapping[str, Any], body: bytes, secret: bytes) -> HeldState:
    """The state in the order in which the entry knows people."""
    known = len(before.people)
    fresh = np.frombuffer(body, "<u8", 2 * int(said["new"])).reshape(-1, 2)
    bare = Record(fresh, np.empty((0, len(fresh)), np.int32), (), (), ())
    places = bare.places(hashes_of(pl.Series(held.newcomers, dtype=pl.String), secret))
    home, standing = np.full(len(fresh), NOBODY, np.int32), np.zeros(len(fresh), bool)
    home[places], standing[places] = held.state.home[known:], held.state.standing[known:]
    return replace(
        held.state,
        home=np.concatenate([held.state.home[:known], home]),
        standing=np.concatenate([held.state.standing[:known], standing]),
    )


# ---- people: classes for life


def held_people(
    recipe: Recipe, prepared: Prepared, goal: Goal, file: HistoryFile, key: Key
) -> tuple[Held, Recoded]:
    """Who is shown with whom, as covers of classes for life; newcomers who wait and classes that were given up are left out."""
    k, asked = goal.k, recipe.together
    _refuse_for_people(recipe, goal)
    assert k is not None
    record = Record.of(file.entries)
    names = _people_of(prepared)
    if names.is_duplicated().any():
        raise ParameterError(
            "Somebody has several rows, and people were to be held together over time.",
            "How many rows a person has, and when they return, tells them apart in every crowd.",
            "Publish first visits only (one row for each person), or use --together values, or answer questions with noise.",
        )
    places = record.places(hashes_of(names, key.seed_for("history people")))
    known = len(record.people)
    new = places < 0
    numbers = np.where(new, known + np.cumsum(new) - 1, places)
    held = record.held
    before = (
        Classes.none()
        if held is None
        else Classes(np.arange(known), held.home.astype(np.int64), held.standing, held.over)
    )
    # Who was never put into a class is none of its members.
    inside = before.home >= 0
    before = Classes(before.people[inside], before.home[inside], before.standing[inside], before.over)
    shown = shown_together(
        before,
        numbers,
        k=k,
        start=asked.beginning(k),
        grouping=lambda at: cells_of(prepared.seen, at, asked.beginning(k), recipe.method, recipe.seed),
    )
    waiting, lost = int(shown.waiting.sum()), int(shown.given_up.sum())
    limit, rows = goal.suppressible(prepared.table.rows), prepared.table.rows
    if waiting + lost > limit:
        raise SuppressionLimitExceeded(
            say(
                "{waiting:,} newcomers wait for a class and {lost:,} people are in classes that were given up, of {rows:,} rows; the limit is {limit:,}.",
                waiting=waiting,
                lost=lost,
                rows=rows,
                limit=limit,
            ),
            "Shown in a smaller crowd they could be subtracted from earlier releases.",
            say(
                "Allow --suppression {share:g} (in a recipe: suppression), use --together values, or begin a new history with --start larger.",
                share=np.ceil(1000 * (waiting + lost) / rows) / 1000,
            ),
        )
    if not (shown.classes >= 0).any():
        raise GuaranteeNotMet(
            "No class can be shown.",
            "Everybody waits or was given up.",
            "Begin a new history, or wait for more people.",
        )
    labels = np.unique(shown.classes, return_inverse=True)[1] - int((shown.classes < 0).any())
    groups = Partition.of(labels.astype(np.int32))
    home, standing = np.full(known + int(new.sum()), NOBODY, np.int32), np.zeros(known + int(new.sum()), bool)
    home[shown.after.people], standing[shown.after.people] = shown.after.home, shown.after.standing
    placed = np.flatnonzero(new & (shown.classes >= 0))
    keep = np.concatenate([np.arange(known), numbers[placed]])
    state = HeldState("people", home[keep], standing[keep], shown.after.over, _NO_COUNTS)
    newcomers = tuple(names[placed].to_list())
    said = _churn(record, places)
    recoded = Recoded(Cover().publish(prepared.data, groups), groups.kept, None, warnings=said)
    return Held(asked, newcomers, state), recoded


def _people_of(prepared: Prepared) -> pl.Series:
    person = prepared.original.schema.person
    assert person is not None
    return prepared.original.text(person.name).fill_null("").filter(pl.Series(prepared.present))


def _churn(record: Record, places: np.ndarray[Any, Any]) -> tuple[str, ...]:
    if not record.releases:
        return ()
    last = np.flatnonzero(record.groups[-1] >= 0)
    gone = 1 - np.isin(last, places).mean() if last.size else 0.0
    if gone <= MOST_CHURN:
        return ()
    return (
        say(
            "{share:.1%} of the people of the release before are gone: with more than {most:.0%} classes for life lose much detail, and --together values is the better way.",
            share=gone,
            most=MOST_CHURN,
        ),
    )


def _people_kept(told: ToldByReleases, release: Release, k: int) -> OverTime:
    """The promise over time as the written bytes bear it out; where they do not, nothing leaves."""
    found = Verdict("people over time", told.inside.least >= k, k, told.inside.least, "people")
    if not found.holds and not told.trouble:
        raise GuaranteeNotMet(
            say(
                "Over all releases somebody has {found:,} candidates, and {k} were to be promised.",
                found=told.inside.least,
                k=k,
            ),
            "Who has all releases could pick them out.",
            "Use the k that the history began with, or begin a new one.",
        )
    sure = not told.trouble and release.promise == "guaranteed"
    parts = {"releases": told.releases, "found": told.inside.least}
    if sure:
        sentence = say(
            "Over all releases of the history ({releases:,}): everybody is one of at least {found:,} people for who links the rows of a person and knows the releases the person is in. Guaranteed.",
            **parts,
        )
        return OverTime("guaranteed", "people", "in", found, sentence)
    return OverTime("measured", "people", "in", found, _only_measured(told.trouble), str(told.trouble))


def _only_measured(trouble: str) -> str:
    if not trouble:
        return say("Nothing is promised over all releases: this one is itself measured only.")
    return say(
        "Nothing is promised over all releases, they were measured only: the history may not be the newest one ({trouble}).",
        trouble=trouble,
    )


# ---- values: groups for life


def held_values(recipe: Recipe, table: Table, file: HistoryFile, key: Key) -> tuple[Held, Table]:
    """Newcomers are put into groups for life, and a row shows its group's number in the place of the value.

    The groups are made before a value is looked at: what makes them gets a table without the column.
    """
    asked = recipe.together
    column = _one_sensitive(table)
    shown_as = f"{column.name}_group"
    hidden = table.with_schema(
        table.schema.with_columns(
            replace(one, role="other", publish=False, taxonomy=None) if one.name == column.name else one
            for one in table.schema.columns.values()
        )
    )
    prepared = prepare(hidden, per=recipe.per, key=key)
    names = _people_of(prepared)
    record = Record.of(file.entries)
    known = len(record.people)
    first = np.flatnonzero(names.is_first_distinct().to_numpy())
    places = record.places(hashes_of(names[first], key.seed_for("history people")))
    new = first[places < 0]
    number = 0 if record.held is None else len(record.held.over)
    cells = np.full(new.size, NOBODY, np.int64)
    if new.size >= asked.group:
        cells = cells_of(prepared.seen, new, asked.group, recipe.method, recipe.seed)
    made = int(cells.max(initial=-1)) + 1
    found = spellings(table, column)
    used = table.text(column.name).filter(pl.Series(prepared.present))
    codes = found.of_rows(used)
    texts = pl.Series(["", *found.values.to_list()], dtype=pl.String)
    withheld = withheld_cells(cells, codes[new].astype(np.int64), asked.share)
    given = np.where((cells >= 0) & ~withheld[np.maximum(cells, 0)], cells, NOBODY) if made else cells
    counts = histogram_of(given, texts[codes[new]], number)
    before = record.held
    old_home = np.full(known, NOBODY, np.int32) if before is None else before.home
    state = HeldState(
        "values",
        np.concatenate([old_home, np.where(given >= 0, given + number, NOBODY)]).astype(np.int32),
        np.ones(known + new.size, bool),
        np.concatenate([np.zeros(0, bool) if before is None else before.over, withheld[:made]]),
        counts,
    )
    own = np.where(places >= 0, places, 0)
    own[places < 0] = known + np.arange(new.size)
    home = pl.DataFrame({"name": names[first], "home": state.home[own]})
    of_row = pl.DataFrame({"name": table.text(recipe_person(table)).fill_null("")}).join(
        home, on="name", how="left", maintain_order="left"
    )["home"]
    label = pl.select(pl.when(of_row >= 0).then(pl.lit("g") + of_row.cast(pl.String))).to_series()
    if shown_as in table.frame.columns:
        raise SchemaError(
            say("The table has a column '{column}' already.", column=shown_as),
            "That name is needed for the groups of values.",
            "Rename the column.",
        )
    frame = table.frame.with_columns(label.alias(column.name)).rename({column.name: shown_as})
    meaning = Column(
        shown_as, "other", side_door="accept", reason="a group for life, made by quasi-identifiers alone"
    )
    columns = [meaning if one.name == column.name else one for one in table.schema.columns.values()]
    shown = replace(table.with_frame(table.frame), frame=frame, schema=table.schema.with_columns(columns))
    return Held(asked, tuple(names[new].to_list()), state, shown_as), shown


def recipe_person(table: Table) -> str:
    """The name of the column that says whose row each is."""
    person = table.schema.person
    assert person is not None
    return person.name


def _one_sensitive(table: Table) -> Column:
    published = [
        one for one in table.schema.columns.values() if one.published and one.name in table.frame.columns
    ]
    raw = [one.name for one in published if one.role == "other"]
    if raw:
        raise ParameterError(
            say("Column '{column}' would be published as it is beside groups of values.", column=raw[0]),
            "For who knows which row is whose it tells more than the counts of the group.",
            "Set publish = false for it, or make it a quasi-identifier.",
        )
    found = [one for one in published if one.role == "sensitive"]
    if len(found) != 1:
        raise ParameterError(
            say(
                "Groups of values need one sensitive column, and the schema publishes {found}.",
                found=len(found),
            ),
            "Counts of one column beside another would tell which of their values belong together.",
            "Set publish = false for all but one.",
        )
    return found[0]


def _values_file(after: Record, shown: pl.Series, separator: str) -> bytes:
    """`values.csv`: the counts of every group that a row of this release names."""
    assert after.held is not None
    named = shown.drop_nulls().filter(shown.drop_nulls() != "").str.slice(1).cast(pl.Int64).unique().sort()
    counts = after.held.counts.filter(pl.col("group").is_in(named.implode()))
    texts = counts.with_columns(pl.format("g{}", "group").alias("group"))
    return csv_bytes(texts, separator)


def _values_kept(
    public: bytes, shown: pl.Series, asked: Together, release: Release, separator: str, trouble: str
) -> OverTime:
    """The promise as the two written files bear it out: every group that a row names has its counts, and none breaks the bound."""
    counted = written_cells(public, separator).with_columns(pl.col("count").cast(pl.Int64))
    each = counted.group_by("group").agg(
        pl.col("count").max().alias("most"), pl.col("count").sum().alias("all")
    )
    named = shown.drop_nulls().filter(shown.drop_nulls() != "")
    share = asked.share
    missing = int((~named.unique().is_in(each["group"].implode())).sum())
    broken = each.filter(pl.col("most") * share.denominator > pl.col("all") * share.numerator)
    worst = float((each["most"] / each["all"]).max() or 0.0) if each.height else 0.0  # type: ignore[arg-type]
    found = Verdict(
        "values over time", not missing and not broken.height, float(share), worst, "share of a group"
    )
    if not found.holds:
        raise GuaranteeNotMet(
            say(
                "{groups:,} groups of values break the bound or have no counts.",
                groups=broken.height + missing,
            ),
            "A value could be guessed more often than was to be promised.",
            "Use the bound that the history began with, or begin a new one.",
        )
    withheld = 1 - len(named) / max(len(shown), 1)
    further = {
        "file": "values.csv",
        "sha256": hashlib.sha256(public).hexdigest(),
        "withheld_rows": len(shown) - len(named),
    }
    if trouble:
        return OverTime(
            "measured", "values", "all-rows", found, _only_measured(trouble), str(trouble), further
        )
    sentence = say(
        "Over all releases of the history: nobody's value of a group that got counts (values.csv) is known with more than {most}, even for who knows which row is whose. Values are those of each person's first release; {withheld:.1%} of the rows have none. Guaranteed.",
        most=str(share),
        withheld=withheld,
    )
    return OverTime("guaranteed", "values", "all-rows", found, sentence, "", further)


# ---- refusals


def refuse_for_values(recipe: Recipe) -> None:
    """Nothing, if boxes are made without a look at values; else an error."""
    if recipe.guarantees or recipe.operations or recipe.improve:
        raise ParameterError(
            "Groups of values were asked for beside further promises, operations or --improve.",
            "Boxes must be made by quasi-identifiers alone: what is promised of values over time counts on it.",
            "Promise k alone: the counts of a group bound what is known of a value.",
        )


def _refuse_for_people(recipe: Recipe, goal: Goal) -> None:
    if goal.k is None or recipe.guarantees or recipe.improve or recipe.method.promise != "guaranteed":
        raise ParameterError(
            "People were to be held together over time beside further promises, --improve or a method without a k.",
            "Classes for life are made once, for k alone, and are shown as they are.",
            "Promise k alone; to protect values over time use --together values.",
        )


def no_history() -> ParameterError:
    """Held together over time, and no history to hold by."""
    return ParameterError(
        "People or values are to be held together over all releases, and no history was given.",
        "Without it nobody knows who was shown with whom.",
        "Give the history of the first release with --history FILE, or make one with `velado history create FILE`.",
    )


def _refuse_mixed(before: Record, held: Held | None) -> None:
    now = None if held is None else held.asked.what
    then = None if before.held is None else before.held.what
    if before.releases and now != then:
        raise HistoryError(
            "The history holds releases that were made with another --together.",
            "What is promised of all of them counts on each being made in the same way.",
            "Use the same --together, or begin a new history.",
        )


def refuse_without_person(schema: Schema) -> None:
    """Nothing, if the schema says which rows are one person; else an error: nobody could be followed.

    >>> refuse_without_person(Schema.from_dict({"columns": {"id": {"role": "identifier", "person": True}}}))
    """
    if schema.person is None:
        raise SchemaError(
            "A history was given, and the schema names no person column.",
            "Without it nobody can be found again in an earlier release.",
            "Mark the column that has one value for each person with person = true.",
        )
