"""SafeHarbor: what HIPAA's Safe Harbor rule lists is removed or made coarse (45 CFR 164.514(b)(2))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import polars as pl

from velado.data.identifiers import IdentifierKind, header_says_day, header_words, identifying_columns
from velado.data.identifiers.headers import header_tokens
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

RULE: Mapping[str, str] = {
    "A": say("names"),
    "B": say("places smaller than a state"),
    "C": say("days, and ages above 89"),
    "D": say("telephone numbers"),
    "E": say("fax numbers"),
    "F": say("e-mail addresses"),
    "G": say("social security numbers"),
    "H": say("numbers of medical records"),
    "I": say("numbers of health plans"),
    "J": say("numbers of accounts"),
    "K": say("numbers of certificates and licences"),
    "L": say("vehicles and their plates"),
    "M": say("devices and their serial numbers"),
    "N": say("web addresses"),
    "O": say("IP addresses"),
    "P": say("biometrics"),
    "Q": say("photographs of faces"),
    "R": say("any other number or code of one person"),
}
"""The eighteen kinds of identifiers of the rule, in words of our own."""
_LETTER: Mapping[IdentifierKind, str] = {
    "name": "A", "address": "B", "coordinates": "B", "phone": "D", "email": "F", "ssn": "G", "record": "H",
    "member": "I", "cns": "I", "account": "J", "card": "J", "document": "K", "rg": "K", "plate": "L", "device": "M",
    "mac": "M", "url": "N", "ip": "O", "biometric": "P", "photo": "Q",
}  # fmt: skip
_PLACES = frozenset(
    [
        "city",
        "town",
        "county",
        "district",
        "precinct",
        "parish",
        "village",
        "street",
        "address",
        "neighborhood",
        "neighbourhood",
        "municipality",
        "municipio",
        "munic",
        "cidade",
        "bairro",
        "distrito",
        "cep",
        "lat",
        "lon",
        "lng",
        "latitude",
        "longitude",
        "tract",
        "block",
        "geocode",
    ]
)
_ZIPS = frozenset({"zip", "zipcode", "zip5", "zip4", "postal", "postcode"})
_AGES = frozenset({"age", "ages", "idade", "edad"})
_BIRTHS = frozenset({"birth", "born", "dob", "birthdate", "birthday", "nascimento", "nasc"})
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
            decision, operation = _decide(column, kinds.get(name), now, _is_measured(table, column))
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
    column: Column, kind: IdentifierKind | None, now: int | None, measured: bool
) -> tuple[Decision, Operation | None]:
    name = column.name
    said = header_words(name) | frozenset(header_tokens(name))
    if column.person or column.role == "identifier" or (kind is not None and not said & _ZIPS):
        letter = "R" if kind is None else _LETTER.get(kind, "R")
        letter = "E" if letter == "D" and "fax" in said else letter
        why = _FREE_TEXT if kind == "free text" else RULE[letter]
        return Decision(name, "held back", why, letter), None
    if said & _ZIPS:
        return Decision(name, "changed", say("three digits, areas of few people as 000"), "B"), ZipPrefix(
            name
        )
    if said & _PLACES:
        return Decision(name, "held back", RULE["B"], "B"), None
    if column.kind == "date":
        if not said & _BIRTHS:
            return Decision(name, "changed", say("the year alone"), "C"), Year(name)
        if now is not None:
            why = say("the year alone; years of birth that tell an age of 90 or more are one")
            return Decision(name, "changed", why, "C"), Year(name, oldest=now - _OLD)
    if column.kind == "date" or said & _BIRTHS or (header_says_day(name) and not measured):
        return Decision(name, "held back", RULE["C"], "C"), None
    if said & _AGES:
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
        if column.kind == "date" and not header_words(column.name) & _BIRTHS:
            texts = distinct_texts(table, column.name).get_column("text").str.strip_chars()
            form = "%Y-%m-%d" if table.frame.schema[column.name].is_temporal() else column.format
            latest = texts.str.to_date(form, strict=False).dt.year().max()
            years += [int(latest)] if isinstance(latest, int) else []
    return max(years, default=None)
