"""The rules every registered method keeps, as checks that raise AssertionError.

Run over the registry by our own tests; an author of a new method runs them on theirs.
"""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import numpy as np
import polars as pl

from velado.anonymize.goal import Promise
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.methods.base import Method
from velado.anonymize.release import Release, anonymize
from velado.data.table import Table
from velado.data.visible import visible_groups


def check_declaration(method: type[Method]) -> None:
    """A frozen dataclass that says what it is, with help on every parameter."""
    settings = getattr(method, "__dataclass_params__", None)
    assert settings is not None, f"{method.__name__} is no dataclass"
    assert settings.frozen, f"{method.__name__} is not frozen"
    assert method.promise in get_args(Promise)
    for text in (method.name, method.title, method.cost, method.source):
        assert text, f"{method.__name__} lacks a description"
    assert method.name == method.name.lower() and " " not in method.name
    assert method.__doc__ and len(method.__doc__) > 80, f"{method.__name__} has no docstring to speak of"
    for parameter in fields(method):  # type: ignore[arg-type]
        assert parameter.metadata.get("help"), f"{method.__name__}.{parameter.name} has no help"


def check_promise(release: Release) -> None:
    """The published frame itself keeps every guarantee, counted here from scratch and not by release()."""
    names = [column.name for column in release.recoded.columns]
    groups = visible_groups(release.frame, names)
    assert groups.rows == release.frame.height
    people = None if release.data.people is None else release.data.people[release.recoded.kept]
    for guarantee in release.goal.guarantees:
        for label in range(groups.count):
            rows = groups.labels == label
            if guarantee.name == "k-anonymity":
                counted = rows.sum()
                if getattr(guarantee, "unit", "row") == "person" and people is not None:
                    counted = len(set(people[rows].tolist()))
                assert counted >= guarantee.least_rows, (
                    f"a group of {counted} where {guarantee.least_rows} are needed"
                )
            if guarantee.name == "l-diversity":
                for name, (codes, _) in (release.data.sensitive or {}).items():
                    if getattr(guarantee, "column", None) in (None, name):
                        seen = set(codes[release.recoded.kept][rows].tolist()) - {0}
                        assert len(seen) >= guarantee.least_rows


def check_cover(release: Release) -> None:
    """Where a column says that its values state a cover, they cover the true value of every published row."""
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
    """Identifiers are gone; other columns, their order, types and cells are exactly as they were."""
    published = [c.name for c in table.schema.columns.values() if c.published]
    assert release.frame.columns == published
    kept = pl.Series(release.kept)
    quasi = {column.name for column in release.recoded.columns}
    for name in published:
        if name not in quasi:
            assert release.frame.get_column(name).equals(table.frame.get_column(name).filter(kept))
    assert release.frame.height == int(release.kept.sum())
    assert release.suppressed <= release.goal.suppressible(table.rows)


def check_repeatable(
    table: Table, method: Method, guarantees: tuple[Guarantee, ...], release: Release
) -> None:
    """The same seed gives the same frame."""
    again = anonymize(
        table, table.schema, method, guarantees, suppression=release.goal.suppression, seed=release.seed
    )
    assert again.frame.equals(release.frame)


def check_row_order(
    table: Table, method: Method, guarantees: tuple[Guarantee, ...], release: Release, order: list[int]
) -> None:
    """Rows in another order change no promise."""
    shuffled = table.with_frame(table.frame[order])
    other = anonymize(
        shuffled, table.schema, method, guarantees, suppression=release.goal.suppression, seed=release.seed
    )
    check_promise(other)
    check_cover(other)
    assert other.promise == release.promise
    assert np.all([verdict.holds for verdict in other.verdicts])
