"""SafeHarbor: what HIPAA's Safe Harbor rule lists is removed or made coarse (45 CFR 164.514(b)(2))."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import polars as pl

from velado.data.identifiers import IdentifierKind, header_says_day, header_words, identifying_columns
from velado.data.identifiers.eighteen import (
    AGES,
    BIRTHS,
    PLACES,
    TITLES,
    ZIPS,
    letters_of,
    said_by,
)
from velado.data.normal import distinct_texts
from velado.data.schema import Column
from velado.data.table import Table
from velado.release.operations._operation import Operation
from velado.release.operations.extreme_codes import TopCode
from velado.release.operations.year import Year
from velado.release.operations.zip_prefix import ZipPrefix
from velado.settings import Setting, settings
from velado.study.presets._preset import Decision, PresetPlan
from velado.text import say

_OLD = 90
_SHORT_FOR_BIRTH = frozenset({"bd", "dn"})
"""Short for a day of birth, and for what a laboratory measures (direct bilirubin)."""
_LEAST_YEAR = 1000
_FREE_TEXT = say("free text may hold any of the eighteen")


@settings(kw_only=True)
class SafeHarbor:
    """The 18 kinds of identifiers are held back; days become years, ages from 90 on are one, ZIP codes three digits.

    Years of birth that tell an age of 90 or more are one too. Columns are recognised by the one judgement of
    identifiers, by their kind and by their header; what is in doubt is held back. The rule promises no crowd, so the
    plan has no k: publishing with one protects more.

    >>> from velado.testing.examples import small_table
    >>> ages = small_table(age=("quasi", "numeric", "31 95"), city=("quasi", "categorical", "a b"))
    >>> [(one.column, one.action, one.rule) for one in SafeHarbor().applied(ages).decisions]
    [('age', 'changed', 'C'), ('city', 'held back', 'B')]
    """

    name: ClassVar[str] = "safe-harbor"
    title: ClassVar[str] = say("HIPAA Safe Harbor: what the rule lists is removed")
    recipient: ClassVar[str] = say("recipients without a contract")
    purpose: ClassVar[str] = say("secondary use without identifiers")
    year: Annotated[
        int | None,
        Setting(
            "the year in which ages are told; without it the latest of the table's days", ge=1900, le=2200
        ),
    ] = None

    def applied(self, table: Table) -> PresetPlan:
        """The schema, the operations and a decision for each column."""
        kinds = {found.column: found.kind for found in identifying_columns(table)}
        now = self.year or _latest_year(table)
        decisions: list[Decision] = []
        operations: list[Operation] = []
        columns: list[Column] = []
        for name, column in table.schema.columns.items():
            day = header_says_day(name) and not _is_measured(table, column)
            decision, operation = _decide(column, kinds.get(name), now, day)
            decisions.append(decision)
            operations += [] if operation is None else [operation]
            held = decision.action == "held back" and column.role != "identifier"
            columns.append(replace(column, publish=False) if held else _plain(column, operation))
        return PresetPlan(
            schema=table.schema.with_columns(columns),
            operations=tuple(operations),
            decisions=tuple(decisions),
            said=(
                say(
                    "Safe Harbor removes what the rule lists, as far as columns were recognised: read the list. Its second "
                    "condition, that you have no actual knowledge that what is left identifies somebody, is yours."
                ),
            ),
        )


def _plain(column: Column, operation: Operation | None) -> Column:
    # A taxonomy, bounds or list of the finer values would not fit what the operation leaves.
    if operation is None or isinstance(operation, TopCode):
        return column if operation is None else replace(column, taxonomy=None)
    return replace(column, taxonomy=None, values=None, round=None)


def _decide(
    column: Column, kind: IdentifierKind | None, now: int | None, day: bool
) -> tuple[Decision, Operation | None]:
    name = column.name
    said = said_by(name)
    if column.person or column.role == "identifier" or (kind is not None and not said & ZIPS):
        letter = next(iter(letters_of(name, column.kind, column.role, kind or "")), "R")
        why = _FREE_TEXT if kind == "free text" else TITLES[letter]
        return Decision(name, "held back", why, letter), None
    if said & ZIPS:
        return Decision(name, "changed", say("three digits, areas of few people as 000"), "B"), ZipPrefix(
            name
        )
    if said & PLACES:
        return Decision(name, "held back", TITLES["B"], "B"), None
    if column.kind == "date":
        if not said & BIRTHS:
            return Decision(name, "changed", say("the year alone"), "C"), Year(name)
        if now is not None:
            why = say("the year alone; years of birth that tell an age of 90 or more are one")
            return Decision(name, "changed", why, "C"), Year(name, oldest=now - _OLD)
    if column.kind == "date" or said & BIRTHS or day:
        return Decision(name, "held back", TITLES["C"], "C"), None
    if said & AGES:
        if column.kind != "numeric":
            return Decision(
                name, "held back", say("ages that are no plain numbers cannot be checked"), "C"
            ), None
        within = column.bounds is None or column.bounds[0] <= _OLD <= column.bounds[1]
        if within:
            return Decision(name, "changed", say("90 stands for 90 and more"), "C"), TopCode(name, _OLD)
    if column.kind == "text":
        return Decision(name, "held back", _FREE_TEXT, "R"), None
    why = say("nothing that the rule lists was recognised in it")
    return Decision(name, "as the schema says", why), None


def _is_measured(table: Table, column: Column) -> bool:
    """Whether a header that may be short for a day of birth stands over quantities: with fractions, too small for any day."""
    if column.kind != "numeric" or not header_words(column.name) <= _SHORT_FOR_BIRTH:
        return False
    texts = distinct_texts(table, column.name).get_column("text").str.strip_chars()
    numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    if not numbers.len() or numbers.null_count():
        return False
    return bool((numbers != numbers.round()).any()) and bool((numbers.abs() < _LEAST_YEAR).all())


def _latest_year(table: Table) -> int | None:
    """The latest year of a table's days but those of birth, which do not tell when people were looked at."""
    years = []
    for column in table.schema.columns.values():
        if column.kind == "date" and not header_words(column.name) & BIRTHS:
            texts = distinct_texts(table, column.name).get_column("text").str.strip_chars()
            form = "%Y-%m-%d" if table.frame.schema[column.name].is_temporal() else column.format
            latest = texts.str.to_date(form, strict=False).dt.year().max()
            years += [int(latest)] if isinstance(latest, int) else []
    return max(years, default=None)
