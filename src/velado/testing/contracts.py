"""The rules every registered method and guarantee keeps, as checks that raise AssertionError.

Run over the registries by our own tests; an author of a new one runs them on theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import polars as pl

from velado.data.counted import compressed, expanded
from velado.data.encode import EncodedTable
from velado.data.partition import IntArray, Partition
from velado.data.table import Table
from velado.errors import VeladoError
from velado.randomness import seeded
from velado.release.anonymize import anonymize, carry_out
from velado.release.goal import Goal, Promise, silent
from velado.release.guarantees import Guarantee
from velado.release.methods._method import Method, Takes, on_entries
from velado.release.recoded import Cell, NoteName, Recoded
from velado.release.release import Release
from velado.settings import specs
from velado.settings.declare import is_settings


def check_declaration(method: type[Method]) -> None:
    """A settings class that says what it is, with help on every parameter.

    >>> from velado.release.methods import Mondrian
    >>> check_declaration(Mondrian)
    """
    assert method.promise in get_args(Promise)
    assert method().takes in get_args(Takes)
    for text in (method.name, method.title, method.cost, method.source):
        assert text, f"{method.__name__} lacks a description"
    assert method.name == method.name.lower() and " " not in method.name
    assert method.__doc__ and len(method.__doc__) > 80, f"{method.__name__} has no docstring to speak of"
    assert is_settings(method), f"{method.__name__} is no settings class"
    for name, spec in specs(method).items():
        assert spec.setting.help, f"{method.__name__}.{name} has no help"


def check_promise(release: Release) -> None:
    """The published frame itself keeps every guarantee, counted here in plain Python and not by release().

    >>> from velado.testing.examples import small_release
    >>> check_promise(small_release().release)
    """
    quasi = [column.name for column in release.recoded.columns]
    kept = np.flatnonzero(release.recoded.kept)
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for at, shown in enumerate(release.aligned.select(pl.col(quasi).cast(pl.String)).iter_rows()):
        groups.setdefault(shown, []).append(int(kept[at]))
    assert sum(map(len, groups.values())) == release.aligned.height
    for guarantee in release.goal.guarantees:
        if guarantee.reads != "population":  # whom they match is counted by check_population
            for rows in groups.values():
                assert _holds(guarantee, release.data, rows, kept.tolist()), (
                    f"{guarantee} is broken in a group of {len(rows)}"
                )


def check_guarantee(guarantee: Guarantee, data: EncodedTable, partition: Partition) -> None:
    """What a guarantee finds in the counts of each group is what its definition says of the group's rows.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> check_guarantee(KAnonymity(2), encoded(age=[20, 30, 40]), Partition.of(np.array([0, 0, 1])))
    """
    found = guarantee.holds_in(data.group_counts(partition)).tolist()
    for group, holds in enumerate(found):
        rows = np.flatnonzero(partition.labels == group).tolist()
        assert holds == _holds(guarantee, data, rows, range(data.rows)), f"{guarantee} in rows {rows}"


def _holds(guarantee: Guarantee, data: EncodedTable, rows: Sequence[int], published: Sequence[int]) -> bool:
    """Whether a guarantee holds for one group of the *published* rows, from its definition alone."""
    if guarantee.reads == "crowd":
        people = np.arange(data.rows) if data.row_people is None else data.row_people
        return guarantee.holds_for(people[rows].tolist(), people[published].tolist())
    chosen = getattr(guarantee, "column", None)
    for name, (codes, _) in data.row_values.items():
        here, overall = ([value for value in codes[of].tolist() if value] for of in (rows, published))
        if chosen in (None, name) and not (here and guarantee.holds_for(here, overall)):
            return False
    return True


def check_population(release: Release, population: pl.DataFrame) -> None:
    """The guarantees that read a population, counted in plain Python: whom of the population each published row could be.

    Reads intervals and labels from the encoded columns' own covers; *population* must have the table's columns.

    >>> import velado
    >>> from velado.release.guarantees import KMap
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "20 21 30 31"))
    >>> check_population(
    ...     velado.anonymize(table, table.schema, "mondrian", [KMap(2)], population=table.frame), table.frame
    ... )
    """
    assert release.data.population is not None
    people = release.data.population.tolist()
    assert len(people) == population.height
    covers: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for row in np.flatnonzero(release.recoded.kept).tolist():
        key = tuple((int(c.low[c.codes[row]]), int(c.high[c.codes[row]])) for c in release.recoded.columns)
        covers.setdefault(key, []).append(row)
    for key, rows in covers.items():
        matches = [
            at
            for at, person in enumerate(people)
            if all(low <= code <= high for code, (low, high) in zip(person, key, strict=True))
        ]
        for guarantee in release.goal.guarantees:
            if guarantee.reads == "population":
                assert guarantee.holds_for(rows, matches), f"{guarantee} is broken in a group of {len(rows)}"


def check_cover(release: Release) -> None:
    """Where a column says that its values state a cover, they cover the true value of every published row.

    >>> from velado.testing.examples import small_release
    >>> check_cover(small_release().release)
    """
    for column, published in zip(release.data.columns, release.recoded.columns, strict=True):
        if published.states_cover:
            assert published.false_cells(column, release.recoded.kept) == 0, (
                f"'{column.name}' publishes a false cell"
            )
            low, high = published.low[published.codes], published.high[published.codes]
            labels = column.label(published.low, published.high)
            assert list(published.values) == labels, f"'{column.name}' publishes a text that is not its cover"
            assert bool((low <= high).all())


def check_shape(table: Table, release: Release) -> None:
    """Identifiers are gone; other columns, their order, types and cells are exactly as they were.

    >>> from velado.testing.examples import small_release
    >>> check_shape(small_release().release.original, small_release().release)
    """
    published = [c.name for c in table.schema.columns.values() if c.published]
    assert release.aligned.columns == published
    kept = pl.Series(release.kept)
    quasi = {column.name for column in release.recoded.columns}
    for name in published:
        if name not in quasi:
            assert release.aligned.get_column(name).equals(table.frame.get_column(name).filter(kept))
    assert release.aligned.height == int(release.kept.sum())
    assert release.suppressed <= release.goal.suppressible(table.rows)


def check_notes(release: Release) -> None:
    """Every note a method makes about its run has words, which reports show in the reader's language.

    >>> from velado.testing.examples import small_release
    >>> check_notes(small_release().release)
    """
    for name in release.notes:
        assert isinstance(name, NoteName), (
            f"the note '{name}' has no words: write NoteName('{name}', say(...))"
        )


def check_repeatable(method: Method, release: Release) -> None:
    """The same seed and key give the same frame.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import small_release
    >>> check_repeatable(Mondrian(), small_release().release)
    """
    again = carry_out(release.prepared, method, release.goal, seed=release.seed)
    assert again.frame.equals(release.frame)


def check_row_order(table: Table, method: Method, release: Release, order: list[int]) -> None:
    """Rows in another order change no promise.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import small_release
    >>> release = small_release().release
    >>> check_row_order(release.original, Mondrian(), release, [7, 6, 5, 4, 3, 2, 1, 0])
    """
    shuffled = table.with_frame(table.frame[order])
    goal = release.goal
    other = anonymize(
        shuffled, table.schema, method, goal.guarantees, suppression=goal.suppression, seed=release.seed
    )
    check_promise(other)
    check_cover(other)
    assert other.promise == release.promise
    assert np.all([verdict.holds for verdict in other.verdicts])


def check_counted(method: Method, data: EncodedTable, goal: Goal) -> None:
    """Counted tuples give what their rows give: the same cells for every row, and the same verdicts; or the same refusal.

    A method that needs rows is given the tuples' rows, whose order is another: there the same goal is kept.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import encoded
    >>> check_counted(Mondrian(), encoded(age=[20, 30, 20, 30, 40]), Goal((KAnonymity(2),)))
    """
    tuples, entry_of_row = compressed(data)
    found = _tried(method, tuples, goal)
    expected = _tried(method, data, goal)
    if isinstance(found, VeladoError) or isinstance(expected, VeladoError):
        assert type(found) is type(expected) and str(found) == str(expected), (found, expected)
        return
    (recoded, entry_of), (by_rows, _) = found, expected
    if method.takes == "tuples":
        recoded = recoded.of_rows(entry_of_row)
        assert _cells(recoded) == _cells(by_rows), "other cells than from rows"
        assert np.array_equal(recoded.kept, by_rows.kept), "other rows suppressed than from rows"
        assert recoded.notes == by_rows.notes and recoded.warnings == by_rows.warnings
        pairs = [(data, recoded), (data, by_rows)]
    else:
        rows, of_row = expanded(tuples)
        assert np.array_equal(of_row, entry_of) and recoded.kept.size == data.rows
        pairs = [(rows, recoded)]
        for column, shown in zip(rows.columns, recoded.columns, strict=True):
            if shown.states_cover:
                assert not shown.false_cells(replace(column, moved=None), recoded.kept)
    for table, made in pairs:
        seen = Partition.by_codes([c.codes for c in made.columns], [len(c.values) for c in made.columns])
        partition = Partition.of(np.where(made.kept, seen.labels, -1))
        if method.promise == "guaranteed" and partition.count:
            assert bool(goal.holds_in(table.group_counts(partition)).all()), "the goal is broken"


def _tried(method: Method, data: EncodedTable, goal: Goal) -> tuple[Recoded, IntArray] | VeladoError:
    try:
        return on_entries(method, data, goal, seeded(1, method.name), silent)
    except VeladoError as error:
        return error


def _cells(recoded: Recoded) -> list[list[Cell]]:
    return [
        [column.values[code] for code in column.codes[recoded.kept].tolist()] for column in recoded.columns
    ]
