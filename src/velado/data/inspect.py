"""inspect(): which columns identify, what kind each is, how exposed people are now, and a first schema.

Everything it says is a proposal for a person to review. It names columns, counts and shares, never a cell; domains to confirm
hold rounded numbers and what many people have (`schema_domains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from velado.data.identifiers import (
    LINKING,
    IdentifierKind,
    Identifying,
    header_says,
    header_words,
    identifying_columns,
    linked_columns,
    linking_columns,
    people_may_be,
    person_columns,
    rows_are_others,
)
from velado.data.identifiers.judgement import SHAPE_SAMPLE, nearly_unique
from velado.data.identifiers.people import rank
from velado.data.io import read_table
from velado.data.kinds import (
    LOOKS_LIKE_DATES,
    Inferred,
    MissingCode,
    find_missing_codes,
    infer_kind,
    missing_tokens,
)
from velado.data.normal import distinct_normal, distinct_texts, normal_of, value_codes
from velado.data.schema import Column, Kind, Role, Schema
from velado.data.schema_domains import as_toml, domain_to_confirm
from velado.data.separation import (
    Codes,
    ColumnSet,
    PresentExposure,
    best_sets,
    exposure,
    repeats,
    separation,
    visible_codes,
)
from velado.data.table import Table
from velado.text import say

HELD_BACK = say("in doubt, so held back: read it, then sign for it or leave it out")
_YEARS = frozenset({"year", "years", "yr", "ano", "anio", "yyyy"})
_HOUSEHOLDS = frozenset({"home", "house", "household", "hh", "hhid", "family", "familia", "domicilio", "lar"})
_WEIGHTS = frozenset({"weight", "weights", "wt", "wgt", "peso", "pesos", "ponderacao", "expansao"})
_MASSES = frozenset({"kg", "g", "lb", "lbs", "kilos", "quilos", "gramas", "grams"})
"""A weight in these is that of a body, not how many people a row stands for."""
_SAMPLE_ROWS = 100_000
_CONSTANT = say("every row has the same value, so it tells nobody apart")


@dataclass(frozen=True)
class ColumnFinding:
    """What was found about one column and what is proposed for it.

    *identifier* is the direct identifier it is, *suspected* the one it may be (then it is held back); *valid* the share of sampled values whose check digits
    are right. *distinction* is different values / rows, *separation* the share of pairs of rows told
    apart; a blank counts as a value in both. *why* gives the reasons as phrases. *may_be_person*: rows that share a
    value agree in what people keep for life, whatever the header says.

    >>> from velado.testing.examples import small_table
    >>> inspect(small_table(idade=("other", "text", "31 35 31 40"))).columns[0].role
    'quasi'
    """

    name: str
    role: Role
    kind: Kind
    why: tuple[str, ...]
    identifier: IdentifierKind | None
    valid: float | None
    missing: int
    distinct: int
    distinction: float
    separation: float
    person: bool = False
    publish: bool = True
    format: str = "%Y-%m-%d"
    suspected: IdentifierKind | None = None
    may_be_person: bool = False


@dataclass(frozen=True)
class Inspection:
    """What was found in a table: its columns, the sets that tell most, who is unique now, a proposed schema.

    *ranking* lists the columns that are neither identifiers nor held back by separation, most telling first. *sets* are
    the best one, two and three of them. *exposure* is None when no quasi-identifier is proposed. *missing_codes*
    are values that probably mean "no value"; numbers among them are only suggested. *people* counts the different people
    by the normal form of their column (`P1` and `P1 ` are one). *judged* says what a sample was looked at for, where one was.
    *domains* are lines of a schema to confirm: rounded bounds, and values that many people have; no other cell is in what is found.

    >>> from velado.testing.examples import small_table
    >>> inspect(small_table(idade=("other", "text", "31 35 31 40"))).exposure.unique_rows
    2
    """

    source: str
    rows: int
    columns: tuple[ColumnFinding, ...]
    schema: Schema
    person: str | None
    ranking: tuple[str, ...]
    sets: tuple[ColumnSet, ...]
    exposure: PresentExposure | None
    missing_codes: tuple[MissingCode, ...] = ()
    people: int | None = None
    judged: str = ""
    domains: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def rows_per_person(self) -> float | None:
        """The mean number of rows that share a person's value; None without a person column."""
        found = next((column for column in self.columns if column.person), None)
        if found is None:
            return None
        return (self.rows - found.missing) / max(found.distinct if self.people is None else self.people, 1)

    def to_dict(self) -> dict[str, object]:
        """The inspection as plain values, without any cell."""
        found = asdict(replace(self, schema=Schema({}), domains={}))
        del found["people"], found["domains"]
        if not self.judged:
            del found["judged"]
        return found | {"rows_per_person": self.rows_per_person, "schema": self.schema.to_dict()}


def inspect(
    table: Any,
    *,
    missing_values: Sequence[str] | None = None,
    missing_in: Mapping[str, Sequence[str]] | None = None,
) -> Inspection:
    """What a table seems to hold and a schema for it; the roles it already has are not looked at.

    *missing_values* are the texts that mean no value, where somebody said so; without them those that usually do.
    *missing_in* are those of single columns beside them.
    *table* is a Table, a data frame or the path of a file. Shapes are judged on 5,000 values of each column, sets on
    100,000 evenly spaced rows; numbers, dates, counts and uniqueness on all rows. O(n log n) for each column.

    >>> from velado.testing.examples import small_table
    >>> found = inspect(small_table(cpf=("other", "text", "a b c"), sexo=("other", "text", "F M F")))
    >>> [(column.name, column.role, column.kind) for column in found.columns]
    [('cpf', 'identifier', 'text'), ('sexo', 'quasi', 'categorical')]
    """
    table = read_table(table)
    if missing_values is None:
        tokens = table.once(("tokens",), lambda: missing_tokens(table.frame))
    else:
        tokens = tuple(dict.fromkeys(missing_values))
    own = {name: tuple(dict.fromkeys([*tokens, *more])) for name, more in (missing_in or {}).items()}
    settings = replace(table.schema, missing_values=tokens)
    settings = settings.with_columns(
        replace(column, missing_values=own.get(name)) for name, column in settings.columns.items()
    )
    table = table.with_schema(settings)
    _count_texts(table)
    judged = {identifying.column: identifying for identifying in identifying_columns(table)}
    seen = {name: seen_column(table, name) for name in table.frame.columns}
    # Numbers are compared as the release will read them, and one decimal mark is that of the whole file.
    decimal = "," if any(one.inferred.decimal_comma for one in seen.values()) else settings.decimal
    counted = table.with_schema(replace(settings, decimal=decimal))
    found = [_finding(counted, name, one, judged.get(name)) for name, one in seen.items()]
    codes = [code for f in found if f.identifier is None for code in _codes(table, seen[f.name], f.name)]
    rows = table.once(("rows",), lambda: table.rows)
    found = _without_followers(_with_person(found, table, list(judged.values()), rows), table)
    open_columns = [
        f for f in found if f.identifier is None and f.publish and f.distinct > 1 and f.kind != "text"
    ]
    ranked = sorted(open_columns, key=lambda finding: -finding.separation)
    coded = _sample_codes(counted, open_columns)
    sets = best_sets(coded)
    if sets and not any(finding.role == "quasi" for finding in found):
        why = say(
            "no header names a quasi-identifier; this one is among the columns that tell rows apart best"
        )
        found = [
            replace(f, role="quasi", why=(*f.why[:-1], why)) if f.name in sets[-1].columns else f
            for f in found
        ]
    found = _without_copies(found, coded)
    schema = replace(
        settings.with_columns(replace(_proposed(one), missing_values=own.get(one.name)) for one in found),
        decimal=decimal,
        separator=None if table.separator == "," else table.separator,
    )
    person = schema.person.name if schema.person else None
    if person is not None and table.behind is None and rows == table.rows:  # a sample knows no bound
        most = replace(schema.columns[person], max_rows=_most_rows(table.with_schema(schema), person))
        schema = schema.with_columns(most if one.name == person else one for one in schema.columns.values())
    quasi = [column.name for column in schema.quasi]
    proposed = table.with_schema(schema)
    return Inspection(
        source=table.source,
        rows=rows,
        columns=tuple(found),
        schema=schema,
        person=person,
        ranking=tuple(finding.name for finding in ranked),
        sets=sets,
        exposure=proposed.once(("exposure", person, *quasi), lambda: exposure(proposed, quasi, person))
        if quasi
        else None,
        missing_codes=tuple(codes),
        people=None if person is None else people_in(proposed, person),
        domains=_domains(schema, found, seen),
    )


def _domains(
    schema: Schema, found: Sequence[ColumnFinding], seen: Mapping[str, SeenColumn]
) -> dict[str, str]:
    """What may be declared of each column that is published, for somebody to confirm."""
    most = max((column.max_rows or 1 for column in schema.columns.values()), default=1)
    told = {
        one.name: domain_to_confirm(schema.columns[one.name], seen[one.name].sizes, schema.decimal, most)
        for one in found
        if one.role in ("quasi", "sensitive", "other") and one.publish and seen[one.name].distinct is None
    }
    return {name: line for name, line in told.items() if line is not None}


def _count_texts(table: Table) -> None:
    """The texts of every column are counted, normal and coded, several columns at a time; what follows finds them so.

    A column of texts is sorted by one thread, so that a large table would leave the other processors idle.
    """
    if table.rows < _SAMPLE_ROWS or table.behind is not None:
        return

    def look(name: str) -> None:
        column = table.schema.columns[name]
        distinct_normal(table, column)
        value_codes(table, column)

    with ThreadPoolExecutor(max_workers=4) as threads:
        list(threads.map(look, table.frame.columns))


@dataclass(frozen=True, repr=False)
class SeenColumn:
    """A column as it is written: its distinct texts with their *rows* (no value is null), and what it looks like.

    *written* is the same with what the schema calls missing as it stands; None where too many texts differ to be listed:
    then *distinct* says how many they are, and *sizes* are those of a sample.

    >>> from velado.testing.examples import small_table
    >>> seen_column(small_table(sexo=("other", "text", "F M F")), "sexo").inferred.kind
    'categorical'
    """

    sizes: pl.DataFrame
    missing: int
    inferred: Inferred
    written: pl.DataFrame | None = None
    distinct: int | None = None


def seen_column(table: Table, name: str) -> SeenColumn:
    """How a column of *table* is written; whoever holds more rows than the table may answer for it.

    >>> from velado.testing.examples import small_table
    >>> seen_column(small_table(age=("other", "text", "31 _ 31")), "age").missing
    1
    """
    return table.once(("seen", name), lambda: _seen(table, name))


def people_in(table: Table, person: str) -> int:
    """How many different people the column *person* names, by the normal form of its values.

    >>> from velado.testing.examples import small_table
    >>> people_in(small_table(who=("identifier", "text", "P1 p1 P2")), "who")
    2
    """
    return table.once(("people", person), lambda: value_codes(table, table.schema.columns[person])[1] - 1)


def _most_rows(table: Table, person: str) -> int:
    """The least of 1, 2, 5, 10, 20, 50 ... that no person's rows exceed: a proposal that tells nobody's own number."""
    rows = int(np.bincount(value_codes(table, table.schema.columns[person])[0], minlength=2)[1:].max())
    steps: list[int] = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    return next(step for step in steps if step >= min(rows, 10**6))


def _seen(table: Table, name: str) -> SeenColumn:
    texts = table.text(name)
    sizes = _sizes(table, name)
    missing = texts.null_count()
    filled = texts.drop_nulls()
    sample = filled.gather_every(max(1, -(-filled.len() // SHAPE_SAMPLE)))
    inferred = infer_kind(name, filled, table.frame.schema[name], sizes.height - (missing > 0), sample)
    # Blanks of the schema are counted too, so the column is read as it stands.
    series = table.frame.get_column(name).cast(pl.String).alias("value")
    if isinstance(table.frame.schema[name], pl.Datetime) or table.behind is not None:
        return SeenColumn(
            sizes, missing, inferred, series.drop_nulls().value_counts(parallel=True, name="rows")
        )
    blank = series.filter(table.is_missing(name)).drop_nulls().value_counts(name="rows")
    return SeenColumn(sizes, missing, inferred, pl.concat([sizes.drop_nulls(), blank]))


def _sizes(table: Table, name: str) -> pl.DataFrame:
    """The different texts of a column with their rows, and those of the blanks in the end."""

    def made() -> pl.DataFrame:
        texts = table.text(name)
        if table.behind is not None:
            return texts.alias("value").value_counts(parallel=True, name="rows")
        sizes = distinct_texts(table, name).rename({"text": "value", "n": "rows"})
        blanks = texts.null_count()
        if not blanks:
            return sizes
        return pl.concat([sizes, pl.DataFrame({"value": [None], "rows": [blanks]}, schema=sizes.schema)])

    return table.of_cells(("sizes", name, table.schema.columns[name].kind == "date"), made)


def _finding(table: Table, name: str, seen: SeenColumn, identifying: Identifying | None) -> ColumnFinding:
    inferred = seen.inferred
    sure = identifying is not None and identifying.sure
    sizes = seen.sizes
    if not sure:
        # Counted as the release counts: spellings of one value are one value, and a blank is one too.
        value, different = _normal_values(table, Column(name, "other", inferred.kind), sizes)
        if not different:
            sizes = sizes.with_columns(value.alias("value")).group_by("value").agg(pl.col("rows").sum())
    counts = sizes["rows"].to_numpy().astype(np.int64)
    rows = table.once(("rows",), lambda: table.rows)
    distinct = counts.size - (seen.missing > 0) if seen.distinct is None else seen.distinct
    role, why, publish = _role(name, inferred, identifying)
    if role == "quasi" and distinct < 2:
        role, why = "other", (*why[:1], _CONSTANT)
    if role == "other" and publish and inferred.kind == "categorical":
        identifying = identifying or nearly_unique(table, name)
        if identifying is not None:
            why, publish = (*why[:1], identifying.why), False
    asked = _of_a_sample(name, inferred.kind, distinct, rows) if role in ("other", "identifier") else None
    if asked is not None:
        held = role == "other" and publish and inferred.kind != "numeric"
        why, publish = (*why[:1], asked, HELD_BACK) if held else (*why, asked), publish and not held
    sure = identifying is not None and identifying.sure
    kind = None if identifying is None else identifying.kind
    return ColumnFinding(
        name=name,
        role=role,
        kind="text" if sure else inferred.kind,
        why=why,
        identifier=kind if sure else None,
        valid=None if identifying is None else identifying.valid,
        missing=seen.missing,
        distinct=distinct,
        distinction=(distinct + (seen.missing > 0)) / rows,
        separation=separation(counts),
        publish=publish,
        format=inferred.format,
        suspected=None if sure or kind == "free text" else kind,
    )


def _normal_values(table: Table, column: Column, sizes: pl.DataFrame) -> tuple[pl.Series, bool]:
    """The normal form of the values of *sizes*, and whether no two are alike; known already if they are the table's."""
    if table.behind is not None or sizes is not _sizes(table, column.name):
        value = normal_of(table, column, sizes["value"])
        return value, value.n_unique() == sizes.height
    value, different = distinct_normal(table, column)
    return value.extend_constant(None, sizes.height - value.len()), different


def _codes(table: Table, seen: SeenColumn, name: str) -> tuple[MissingCode, ...]:
    sizes = seen.sizes.drop_nulls() if seen.written is None else seen.written
    counts = sizes.get_column("rows").to_numpy().astype(np.int64)
    return find_missing_codes(
        name, sizes.get_column("value"), counts, frozenset(table.schema.missing_texts(name))
    )


def _role(
    name: str, inferred: Inferred, identifying: Identifying | None
) -> tuple[Role, tuple[str, ...], bool]:
    if identifying is not None and identifying.sure:
        return "identifier", (identifying.why,), True
    role, why = _open_role(name, inferred)
    if inferred.kind == "text" and inferred.why.startswith("free text"):
        hidden = say("names and places hide in free text: read it before it is published")
        return role, (inferred.why, hidden), False
    if identifying is not None:
        return role, (identifying.why, HELD_BACK), False
    return role, why, True


def _open_role(name: str, inferred: Inferred) -> tuple[Role, tuple[str, ...]]:
    if inferred.kind == "text":
        return "other", (inferred.why,)
    if inferred.kind == "date" or inferred.why == LOOKS_LIKE_DATES:
        return "quasi", (inferred.why, say("outsiders often know the day of an event in somebody's life"))
    if _is_year(name, inferred):
        return "quasi", (inferred.why, say("outsiders often know the year of an event in somebody's life"))
    if header_says(name, "sensitive"):
        return "sensitive", (inferred.why, say("the header names something private"))
    if header_says(name, "quasi"):
        return "quasi", (inferred.why, say("the header names something outsiders may know"))
    return "other", (inferred.why, say('if outsiders may know it, set role = "quasi"'))


def _of_a_sample(name: str, kind: Kind, distinct: int, rows: int) -> str | None:
    """What to ask of a column whose header names a household or a weight."""
    said = header_words(name)
    if said & _HOUSEHOLDS and distinct >= max(20, rows / 50):  # fewer are kinds of homes, not homes
        return say('if rows that share it are one household, set role = "identifier" and group = true')
    if kind == "numeric" and said & _WEIGHTS and not said & _MASSES:
        return say(
            "if it says how many people a row stands for, set sampling_weight = true and publish = false"
        )
    return None


def _is_year(name: str, inferred: Inferred) -> bool:
    return inferred.kind == "numeric" and not _YEARS.isdisjoint(header_words(name))


def _with_person(
    found: list[ColumnFinding], table: Table, judged: Sequence[Identifying], rows: int
) -> list[ColumnFinding]:
    # Repeats show that a column follows people over rows; without any, each row is a person all the same. A column
    # that repeats a little without being followed (two people share a name) would make one person of two.
    by_name = {finding.name: finding for finding in found}
    repeated = [name for name in person_columns(table) if by_name[name].identifier is not None]
    own = [by_name[i.column] for i in judged if i.person and i.sure]
    once = [f for f in own if f.distinct == rows - f.missing]
    ranks = {i.column: rank(i, by_name[i.column].missing, rows) for i in judged}
    once.sort(key=lambda finding: ranks[finding.name])
    chosen = next(iter(repeated), None)
    if chosen is not None and rows_are_others(table, chosen, _quasi(found)):
        chosen = None
    elif chosen is None and once and not people_may_be(table, _quasi(found)):
        chosen = once[0].name  # nothing that repeats says that several rows are one person
    if chosen is None:
        return found
    why = say("rows that share it are taken for one person")
    return [replace(f, person=True, why=(*f.why, why)) if f.name == chosen else f for f in found]


def _without_followers(found: list[ColumnFinding], table: Table) -> list[ColumnFinding]:
    person = next((finding.name for finding in found if finding.person), None)
    names = [f.name for f in found if f.publish and f.identifier is None and f.role != "quasi"]
    held = {one.column: one for one in linked_columns(table, person, _quasi(found), names)}
    telling = linking_columns(table, _quasi(found)) if person is None else ()
    out = []
    for f in found:
        if f.name in held:
            why = (*f.why[:1], held[f.name].why, HELD_BACK)
            f = replace(f, publish=False, why=why, suspected=held[f.name].kind)
        elif f.name in telling:  # its header spoke of a house or an event; its values speak of people
            last = f.why[-1:] if f.why[-1:] == (HELD_BACK,) else ()
            f = replace(f, why=(*f.why[: len(f.why) - len(last)], LINKING, *last))
        out.append(replace(f, may_be_person=f.name in telling))
    return out


def _quasi(found: Sequence[ColumnFinding]) -> list[str]:
    return [finding.name for finding in found if finding.role == "quasi" and finding.publish]


def _without_copies(found: list[ColumnFinding], coded: Mapping[str, Codes]) -> list[ColumnFinding]:
    out: list[ColumnFinding] = []
    quasi = [f for f in found if f.role == "quasi"]
    kept: list[ColumnFinding] = []
    for finding in found:
        rivals = kept if finding.role == "quasi" else quasi
        twin = next((other for other in rivals if _are_copies(finding, other, coded)), None)
        if twin is not None:
            why = say(
                "it repeats {twin} one to one, so it would undo its generalization", twin=as_toml(twin.name)
            )
            finding = replace(finding, publish=False, why=(*finding.why, why))
        elif finding.role == "quasi":
            kept.append(finding)
        out.append(finding)
    return out


def _are_copies(one: ColumnFinding, other: ColumnFinding, coded: Mapping[str, Codes]) -> bool:
    if one.distinct != other.distinct or one.name not in coded or other.name not in coded:
        return False
    return repeats(coded[one.name], coded[other.name])


def _proposed(finding: ColumnFinding) -> Column:
    return Column(
        finding.name,
        finding.role,
        finding.kind,
        person=finding.person,
        publish=finding.publish,
        format=finding.format,
    )


def _sample_codes(table: Table, found: Sequence[ColumnFinding]) -> Mapping[str, Codes]:
    """Codes of the columns *found* in at most 100,000 evenly spaced rows."""
    rows = min(table.rows, _SAMPLE_ROWS)
    at = np.arange(rows, dtype=np.int64) * table.rows // rows
    part = table if rows == table.rows else table.with_frame(table.frame[at])
    return {finding.name: visible_codes(part, _proposed(finding)) for finding in found}
