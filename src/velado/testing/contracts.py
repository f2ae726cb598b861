"""The rules every registered method keeps, as checks that raise AssertionError.

Run over the registry by our own tests; an author of a new method runs them on theirs.
"""

from __future__ import annotations

from collections import Counter
from math import exp, log
from typing import get_args

import numpy as np
import polars as pl

from velado.data.encode import EncodedTable
from velado.data.table import Table
from velado.release.anonymize import anonymize, carry_out
from velado.release.goal import Promise
from velado.release.guarantees import (
    BetaLikeness,
    DeltaPresence,
    EntropyLDiversity,
    Guarantee,
    KAnonymity,
    KMap,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from velado.release.methods._method import Method
from velado.release.release import Release
from velado.settings import specs
from velado.settings.declare import is_settings


def check_declaration(method: type[Method]) -> None:
    """A settings class that says what it is, with help on every parameter.

    >>> from velado.release.methods import Mondrian
    >>> check_declaration(Mondrian)
    """
    assert method.promise in get_args(Promise)
    for text in (method.name, method.title, method.cost, method.source):
        assert text, f"{method.__name__} lacks a description"
    assert method.name == method.name.lower() and " " not in method.name
    assert method.__doc__ and len(method.__doc__) > 80, f"{method.__name__} has no docstring to speak of"
    assert is_settings(method), f"{method.__name__} is no settings class"
    for name, spec in specs(method).items():
        assert spec.setting.help, f"{method.__name__}.{name} has no help"


def check_promise(release: Release) -> None:
    """The published frame itself keeps every guarantee, counted here in plain Python and not by release().

    >>> from velado.testing.small_release import small_release
    >>> check_promise(small_release().release)
    """
    quasi = [column.name for column in release.recoded.columns]
    kept = np.flatnonzero(release.recoded.kept)
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for at, shown in enumerate(release.aligned.select(pl.col(quasi).cast(pl.String)).iter_rows()):
        groups.setdefault(shown, []).append(int(kept[at]))
    assert sum(map(len, groups.values())) == release.aligned.height
    for guarantee in release.goal.guarantees:
        for rows in groups.values():
            assert _holds(guarantee, release.data, rows, kept.tolist()), (
                f"{guarantee} is broken in a group of {len(rows)}"
            )


def _holds(guarantee: Guarantee, data: EncodedTable, rows: list[int], published: list[int]) -> bool:
    """Whether a guarantee holds for one group of the *published* rows, from its definition alone."""
    if isinstance(guarantee, KAnonymity):
        by_person = guarantee.unit == "person" and data.people is not None
        return (
            len(set(data.people[rows].tolist()) if by_person and data.people is not None else rows)
            >= guarantee.k
        )
    if isinstance(guarantee, KMap | DeltaPresence):
        return True  # the contract for populations counts them itself: see check_population
    chosen = getattr(guarantee, "column", None)
    for name, (codes, _) in (data.sensitive or {}).items():
        if chosen not in (None, name):
            continue
        here = Counter(value for value in codes[rows].tolist() if value)
        overall = Counter(value for value in codes[published].tolist() if value)
        if not _holds_for(guarantee, here, overall):
            return False
    return True


def _holds_for(guarantee: Guarantee, here: Counter[int], overall: Counter[int]) -> bool:
    total, everyone = sum(here.values()), sum(overall.values())
    if not total:
        return False
    share = {value: count / total for value, count in here.items()}
    usual = {value: count / everyone for value, count in overall.items()}
    close = 1e-6
    if isinstance(guarantee, LDiversity):
        return len(here) >= guarantee.l
    if isinstance(guarantee, EntropyLDiversity):
        return exp(-sum(p * log(p) for p in share.values())) >= guarantee.l - close
    if isinstance(guarantee, RecursiveLDiversity):
        ranked = sorted(here.values(), reverse=True)
        return len(ranked) >= guarantee.l and ranked[0] < guarantee.c * sum(ranked[guarantee.l - 1 :])
    if isinstance(guarantee, TCloseness) and guarantee.distance == "equal":
        return sum(abs(share.get(v, 0.0) - p) for v, p in usual.items()) / 2 <= guarantee.t + close
    if isinstance(guarantee, BetaLikeness):
        allowed = {
            v: min(guarantee.beta, -log(p)) if guarantee.form == "enhanced" else guarantee.beta
            for v, p in usual.items()
        }
        return all((q - usual[v]) / usual[v] <= allowed[v] + close for v, q in share.items())
    raise AssertionError(f"there is no independent count for {guarantee}")


def check_population(release: Release, population: pl.DataFrame) -> None:
    """k-map and delta-presence, counted in plain Python: whom of the population each published row could be.

    Reads intervals and labels from the encoded columns' own covers; *population* must have the table's columns.

    >>> import velado
    >>> from velado.testing.factory import small_table
    >>> table = small_table(age=("quasi", "numeric", "20 21 30 31"))
    >>> check_population(
    ...     velado.anonymize(table, table.schema, "mondrian", [KMap(2)], population=table.frame), table.frame
    ... )
    """
    assert release.data.population is not None
    people = release.data.population.tolist()
    assert len(people) == population.height
    covers: dict[tuple[tuple[int, int], ...], int] = {}
    for row in np.flatnonzero(release.recoded.kept).tolist():
        key = tuple((int(c.low[c.codes[row]]), int(c.high[c.codes[row]])) for c in release.recoded.columns)
        covers[key] = covers.get(key, 0) + 1
    for key, rows in covers.items():
        matches = sum(
            all(low <= code <= high for code, (low, high) in zip(person, key, strict=True))
            for person in people
        )
        for guarantee in release.goal.guarantees:
            if isinstance(guarantee, KMap):
                assert matches >= guarantee.k
            if isinstance(guarantee, DeltaPresence):
                assert guarantee.least - 1e-6 <= rows / matches <= guarantee.most + 1e-6


def check_cover(release: Release) -> None:
    """Where a column says that its values state a cover, they cover the true value of every published row.

    >>> from velado.testing.small_release import small_release
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

    >>> from velado.testing.small_release import small_release
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


def check_repeatable(method: Method, release: Release) -> None:
    """The same seed and key give the same frame.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.small_release import small_release
    >>> check_repeatable(Mondrian(), small_release().release)
    """
    again = carry_out(release.prepared, method, release.goal, seed=release.seed)
    assert again.frame.equals(release.frame)


def check_row_order(table: Table, method: Method, release: Release, order: list[int]) -> None:
    """Rows in another order change no promise.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.small_release import small_release
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
