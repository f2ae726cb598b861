"""Classes of people for life: who is shown with whom, rows of people who left, and what the written bytes bear out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.history_file import HistoryFile
from velado.data.keys import Key
from velado.data.normal import normal_texts, person_texts
from velado.data.partition import Partition
from velado.data.table import Table
from velado.data.table_bytes import parquet_bytes, parquet_frame
from velado.errors import (
    GuaranteeNotMet,
    HistoryError,
    ParameterError,
    SchemaError,
    SuppressionLimitExceeded,
)
from velado.release.goal import Goal
from velado.release.guarantees._guarantee import Verdict
from velado.release.history.classes import NOBODY, Classes, shown_together
from velado.release.history.record import HeldState, Record, ToldByReleases, hashes_of
from velado.release.history.together import Held, OverTime, cells_of, only_measured
from velado.release.prepare import Prepared
from velado.release.recoded import Recoded
from velado.release.recoders import Cover
from velado.release.release import Release
from velado.study.recipe import Recipe
from velado.text import join, say

Ints = npt.NDArray[np.int64]

MOST_CHURN = 0.05
"""Above, classes for life cost so much detail that groups of values are the better way."""
_NO_COUNTS = pl.DataFrame(schema={"group": pl.Int64, "value": pl.String, "count": pl.Int64})


def with_rows_of_leavers(recipe: Recipe, table: Table, file: HistoryFile, key: Key) -> tuple[Table, int]:
    """The table with the rows of people who left and are shown on, after its own, and how many these are.

    A column that is published as it is and changed for somebody who stayed is an error: a row that never changes would tell who left.
    """
    content, record = file.rows(), Record.of(file.entries)
    if content is None or record.held is None:
        return table, 0
    kept = parquet_frame(content)
    person = table.schema.person
    assert person is not None
    missing = [name for name in table.frame.columns if name not in kept.columns]
    if missing:
        raise SchemaError(
            say("Rows of people who left have no column '{column}'.", column=missing[0]),
            "A row without it would show that its person is gone.",
            "Leave the column out, or begin a new history.",
        )
    secret = key.seed_for("history people")
    names = whose_rows(table)
    refuse_nobody(names)
    _refuse_twice(names)
    before = _classes_before(record)
    # Who stays does not depend on newcomers: none of them is put into a class here.
    found = shown_together(
        before,
        _numbers(record.places(hashes_of(names, secret)), len(record.people))[0],
        k=_k_of(recipe, record),
        start=recipe.together.beginning(_k_of(recipe, record)),
        grouping=lambda at: np.full(at.size, NOBODY),
        leavers="keep",
    )
    earlier = _like(kept, table)
    _refuse_changed(table, earlier)
    theirs = record.places(hashes_of(whose_rows(earlier), secret))
    order = np.argsort(theirs, kind="stable")
    at = np.minimum(np.searchsorted(theirs[order], found.stale), theirs.size - 1)
    if found.stale.size and not (theirs[order][at] == found.stale).all():
        raise HistoryError(
            "Rows of people who left are missing beside the history.",
            "Without them it would show who is gone.",
            "Put the newest copies of the history and of its rows back.",
        )
    frame = pl.concat([table.frame, earlier.frame[order[at]]]) if found.stale.size else table.frame
    return table.with_frame(frame), int(found.stale.size)


def _k_of(recipe: Recipe, record: Record) -> int:
    """The k as far as it matters for who leaves: without one the goal is refused later."""
    return recipe.k or (record.held.k if record.held is not None and record.held.k else 2)


def _like(kept: pl.DataFrame, table: Table) -> Table:
    try:
        frame = kept.select(pl.col(name).cast(dtype) for name, dtype in table.frame.schema.items())
    except pl.exceptions.PolarsError:
        raise SchemaError(
            "Rows of people who left hold another kind of values than this table.",
            "They would be told apart from the rows of those who are here.",
            "Give the table in the form of the releases before, or begin a new history.",
        ) from None
    return table.with_frame(frame)


def _refuse_changed(table: Table, earlier: Table) -> None:
    raw = [one.name for one in table.schema.columns.values() if one.published and one.role != "quasi"]
    now, then = (
        pl.DataFrame({"who": whose_rows(one), **{name: one.text(name) for name in raw}})
        for one in (table, earlier)
    )
    both = now.join(then, on="who", suffix=" then")
    for name in raw:
        if bool((both[name].ne_missing(both[f"{name} then"])).any()):
            raise ParameterError(
                say(
                    "Column '{column}' changed for somebody since the release before, and rows of people who left are kept.",
                    column=name,
                ),
                "A kept row never changes: who knows that the others do could tell who left.",
                "Set publish = false for it, use --leavers drop, or use --together values.",
            )


def rows_shown(release: Release) -> bytes:
    """The rows of a release as they were read, to be shown on when their people leave."""
    return parquet_bytes(release.original.frame[release.rows])


def _classes_before(record: Record) -> Classes:
    held, known = record.held, len(record.people)
    if held is None:
        return Classes.none()
    before = Classes(np.arange(known), held.home.astype(np.int64), held.standing, held.over)
    # Who was never put into a class is none of its members.
    inside = before.home >= 0
    return Classes(before.people[inside], before.home[inside], before.standing[inside], before.over)


def _numbers(places: Ints, known: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """A number for each person, those not known before after the known ones; and who is new."""
    new = places < 0
    return np.where(new, known + np.cumsum(new) - 1, places), new


def held_people(
    recipe: Recipe, prepared: Prepared, goal: Goal, file: HistoryFile, key: Key, gone: int = 0
) -> tuple[Held, Recoded]:
    """Who is shown with whom, as covers of classes for life; newcomers who wait and classes that were given up are left out.

    The last *gone* rows are those of people who left and are shown on.
    """
    k, asked = goal.k, recipe.together
    _refuse_for_people(recipe, goal, prepared)
    assert k is not None
    record = Record.of(file.entries)
    _refuse_lower(record, k)
    everybody = people_of(prepared)
    names = everybody[: everybody.len() - gone]
    refuse_nobody(names)
    _refuse_twice(names)
    hashes = hashes_of(names, key.seed_for("history people"))
    places = record.places(hashes)
    known = len(record.people)
    numbers, new = _numbers(places, known)
    shown = shown_together(
        _classes_before(record),
        numbers,
        k=k,
        start=asked.beginning(k),
        grouping=lambda at: cells_of(
            prepared.seen, at, asked.beginning(k), recipe.method, recipe.seed, hashes[at, 0]
        ),
        leavers=asked.leaving,
    )
    _refuse_many(int(shown.waiting.sum()), int(shown.given_up.sum()), prepared.table.rows - gone, goal)
    classes = np.concatenate([shown.classes, shown.stale_classes[:gone]])
    if not (classes >= 0).any():
        raise GuaranteeNotMet(
            "No class can be shown.",
            "Everybody waits or was given up.",
            "Begin a new history, or wait for more people.",
        )
    labels = np.unique(classes, return_inverse=True)[1] - int((classes < 0).any())
    groups = Partition.of(labels.astype(np.int32))
    home, standing = np.full(known + int(new.sum()), NOBODY, np.int32), np.zeros(known + int(new.sum()), bool)
    home[shown.after.people], standing[shown.after.people] = shown.after.home, shown.after.standing
    placed = np.flatnonzero(new & (shown.classes >= 0))
    keep = np.concatenate([np.arange(known), numbers[placed]])
    state = HeldState("people", home[keep], standing[keep], shown.after.over, _NO_COUNTS, asked.leaving, k)
    said = _churn(record, places, gone)
    recoded = Recoded(Cover().publish(prepared.data, groups), groups.kept, None, warnings=said)
    return Held(asked, tuple(names[placed].to_list()), state, gone=gone), recoded


def people_of(prepared: Prepared) -> pl.Series:
    """Whose each row is that a method sees."""
    return whose_rows(prepared.original).filter(pl.Series(prepared.present))


def whose_rows(table: Table) -> pl.Series:
    """Whose each row is, in the normal form in which a release counts people; "" is nobody in particular.

    So `7` and `7.0`, `P1` and `p1 ` are one person in every release, as they are in each one.

    >>> from velado.testing.examples import small_table
    >>> whose_rows(small_table(who=("identifier", "text", "p1 P1 07 _"))).to_list()
    ['P1', 'P1', '7', '']
    """
    return person_texts([table])[0].fill_null("")


def spelled(table: Table) -> dict[str, str]:
    """What an entry holds of how people are spelled, for a command that has no schema at hand."""
    person = table.schema.person
    assert person is not None
    return {"case": person.case, "decimal": table.schema.decimal}


def _as_entered(file: HistoryFile, names: pl.Series) -> pl.Series:
    said: dict[str, str] = next(
        (one.said["spelled"] for one in reversed(file.entries) if "spelled" in one.said), {}
    )
    typed = names.dtype.is_numeric()
    decimal = "." if typed else said.get("decimal", ".")
    return normal_texts(
        names.cast(pl.String).fill_null(""),
        case=said.get("case", "same"),
        decimal=decimal,
        exponents=names.dtype.is_float(),
    )


def _churn(record: Record, places: Ints, gone: int) -> tuple[str, ...]:
    if not record.releases:
        return ()
    last = np.flatnonzero(record.groups[-1] >= 0)
    missing = 1 - np.isin(last, places).mean() if last.size else 0.0
    if missing <= MOST_CHURN:
        return ()
    if gone:
        return (
            say(
                "{share:.1%} of the people shown in the release before are gone, lately or for long: with more than {most:.0%} classes for life lose much detail or show many rows of people who left, and --together values is the better way.",
                share=missing,
                most=MOST_CHURN,
            ),
        )
    return (
        say(
            "{share:.1%} of the people of the release before are gone: with more than {most:.0%} classes for life lose much detail, and --together values is the better way.",
            share=missing,
            most=MOST_CHURN,
        ),
    )


def people_kept(told: ToldByReleases, release: Release, k: int, held: Held) -> OverTime:
    """The promise over time as the written bytes bear it out; where they do not, nothing leaves."""
    exactly = held.asked.readers == "exactly"
    crowd = told.exactly if exactly else told.inside
    found = Verdict("people over time", crowd.least >= k, k, crowd.least, "people")
    if not found.holds and not told.trouble:
        raise GuaranteeNotMet(
            say(
                "Over all releases somebody has {found:,} candidates, and {k} were to be promised.",
                found=crowd.least,
                k=k,
            ),
            "Who has all releases could pick them out.",
            "Use the k that the history began with, or begin a new one.",
        )
    further = {"rows_of_people_who_left": held.gone} if held.asked.leaving == "keep" else {}
    reader = held.asked.readers
    if told.trouble or release.promise != "guaranteed":
        said = only_measured(told.trouble)
        return OverTime("measured", "people", reader, found, said, str(told.trouble), further)
    parts = {"releases": told.releases, "found": crowd.least}
    sentence = (
        say(
            "Over all releases of the history ({releases:,}): everybody is one of at least {found:,} people for who links the rows of a person and knows exactly who was in which release. Guaranteed.",
            **parts,
        )
        if exactly
        else say(
            "Over all releases of the history ({releases:,}): everybody is one of at least {found:,} people for who links the rows of a person and knows releases the person is in, and of nobody when they are missing. Guaranteed.",
            **parts,
        )
    )
    if further:
        rows = release.listed.height
        stale = say(
            "{gone:,} of the {rows:,} rows ({share:.1%}) are of people who left: they are shown on until enough have left to be taken out together.",
            gone=held.gone,
            rows=rows,
            share=held.gone / max(rows, 1),
        )
        sentence = join((sentence, stale), " ")
    return OverTime("guaranteed", "people", reader, found, sentence, "", further)


def forget(file: HistoryFile, person: str, key: Key) -> None:
    """The class of *person* is not shown again, and rows of it are kept no longer; who is not known is an error."""
    secret = key.seed_for("history people")
    record = Record.of(file.entries)
    place = int(record.places(hashes_of(_as_entered(file, pl.Series([person])), secret))[0])
    if place < 0:
        raise HistoryError(
            "The history knows nobody of that name.",
            "Nothing was to be forgotten.",
            "Write the name as the person column has it, and check --key.",
        )
    said: dict[str, object] = {"kind": "forgotten", "place": place}
    content = file.rows()
    if content is not None and record.held is not None:
        kept = parquet_frame(content)
        home = record.held.home
        # The person's column is the one whose names the history knows; it is read off an entry, for no schema is at hand.
        column = next(str(one.said["person"]) for one in reversed(file.entries) if "person" in one.said)
        theirs = record.places(hashes_of(_as_entered(file, kept[column]), secret))
        stays = (theirs >= 0) & (home[theirs] != home[place])
        said["rows"] = file.put_rows(parquet_bytes(kept.filter(pl.Series(stays))))
    file.append(said)
    file.sweep()


# ---- refusals


def refuse_nobody(names: pl.Series) -> None:
    """Nothing, if every row says whose it is; else an error: two blanks are not known to be one person, or two."""
    if bool((names == "").any()):
        raise ParameterError(
            "A row does not say whose it is, and people or values were to be held together over time.",
            "Whether it is of somebody who was there before cannot be known.",
            "Fill the person column, or leave such rows out.",
        )


def _refuse_twice(names: pl.Series) -> None:
    if names.is_duplicated().any():
        raise ParameterError(
            "Somebody has several rows, and people were to be held together over time.",
            "How many rows a person has, and when they return, tells them apart in every crowd.",
            "Publish first visits only (one row for each person), or use --together values, or answer questions with noise.",
        )


def _refuse_many(waiting: int, lost: int, rows: int, goal: Goal) -> None:
    limit = goal.suppressible(rows)
    if waiting + lost <= limit:
        return
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
            "Allow --suppression {share} (in a recipe: suppression), use --together values, or begin a new history with --start larger.",
            share=f"{float(np.ceil(1000 * (waiting + lost) / rows) / 1000):g}",  # as it is typed
        ),
    )


def _refuse_lower(record: Record, k: int) -> None:
    if record.held is not None and k < record.held.k:
        raise ParameterError(
            say(
                "k is {k}, and earlier releases of the history promised {before}.", k=k, before=record.held.k
            ),
            "With smaller crowds now, people of those releases would have fewer candidates than they were promised.",
            "Use the k that the history began with, or begin a new one.",
        )


def _refuse_for_people(recipe: Recipe, goal: Goal, prepared: Prepared) -> None:
    if goal.k is None or recipe.guarantees or recipe.improve or recipe.method.promise != "guaranteed":
        raise ParameterError(
            "People were to be held together over time beside further promises, --improve or a method without a k.",
            "Classes for life are made once, for k alone, and are shown as they are.",
            "Promise k alone; to protect values over time use --together values.",
        )
    if recipe.together.leaving == "keep" and (recipe.operations or not prepared.present.all()):
        raise ParameterError(
            "Rows of people who left are to be kept beside operations on columns, or blanks that are suppressed.",
            "A row must be shown in every release in the same way, or it would tell who left.",
            'Leave the operations out, and give blanks of their own: missing = "value" in the schema.',
        )
