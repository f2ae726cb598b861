"""Units: all records of one person in a window as one row, so that k counts people and no number of readings tells anybody apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from velado.data.normal import normal_of
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import SchemaError
from velado.release.stream.records import AT
from velado.release.stream.stream_settings import Aggregate
from velado.text import say

PERSON = "_person"
"""The normal form of a person in a frame of records: `p1` and `P1 ` are one."""
_NUMBERS = ("mean", "min", "max", "sum")


def unit_columns(
    schema: Schema, readings: Mapping[str, Sequence[Aggregate]]
) -> dict[str, tuple[Column, Aggregate]]:
    """The published columns of a window: under which name, from which column, by which aggregate.

    >>> pulse = Column("pulse", "sensitive", "numeric")
    >>> list(unit_columns(Schema({"pulse": pulse}), {"pulse": ("mean", "max")}))
    ['pulse_mean', 'pulse_max']
    """
    out: dict[str, tuple[Column, Aggregate]] = {}
    for name in readings:
        if name not in schema.columns or not schema.columns[name].published:
            raise SchemaError(
                say("[readings] names '{column}', which the schema does not publish.", column=name),
                "There is no such column in a window.",
                "Correct the name, or declare the column in the schema.",
            )
    for column in schema.columns.values():
        if not column.published:
            continue
        asked = tuple(readings.get(column.name, ("last",)))
        for aggregate in asked:
            _refuse_aggregate(column, aggregate)
            name = (
                column.name if asked == (aggregate,) and aggregate == "last" else f"{column.name}_{aggregate}"
            )
            if name in out or (name != column.name and name in schema.columns):
                raise SchemaError(
                    say("Two columns of a window would be called '{name}'.", name=name),
                    "A column stands under one name.",
                    "Rename one of the columns of the schema.",
                )
            out[name] = (column, aggregate)
    return out


def _refuse_aggregate(column: Column, aggregate: Aggregate) -> None:
    if column.role == "quasi" and aggregate not in ("last", "first"):
        raise SchemaError(
            say(
                "[readings] asks for the {aggregate} of the quasi-identifier '{column}'.",
                aggregate=aggregate,
                column=column.name,
            ),
            "An attacker knows its values, not what was worked out of them: the crowd would be one of other values.",
            "Leave it out of [readings]: the last value of the window is generalized.",
        )
    if aggregate in _NUMBERS and column.kind != "numeric":
        raise SchemaError(
            say(
                "[readings] asks for the {aggregate} of '{column}', which is not numeric.",
                aggregate=aggregate,
                column=column.name,
            ),
            "Only numbers can be added up and compared so.",
            'Ask for "last", "first", "count" or "list".',
        )


def unit_schema(schema: Schema, readings: Mapping[str, Sequence[Aggregate]]) -> Schema:
    """The schema of a window's table: one row a person, and the person's column, which does not leave.

    >>> person = Column("who", "identifier", person=True)
    >>> unit_schema(Schema({"who": person, "note": Column("note")}), {"note": ("count",)}).columns["note_count"].kind
    'numeric'
    """
    person = schema.person
    assert person is not None
    columns = [replace(person, role="identifier")]
    for name, (column, aggregate) in unit_columns(schema, readings).items():
        kind = "numeric" if aggregate == "count" else "text" if aggregate == "list" else column.kind
        plain = aggregate in ("last", "first", "list")
        columns.append(
            replace(
                column,
                name=name,
                kind=kind,
                person=False,
                values=column.values if plain and aggregate != "list" else None,
                taxonomy=column.taxonomy if plain and aggregate != "list" else None,
            )
        )
    # One window may well hold one value of a column; a wrong file is nothing that a stream has.
    return replace(schema.with_columns(columns), constant="allow")


def with_people(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The records with the normal form of each one's person beside them.

    >>> people = Schema({"who": Column("who", "identifier", person=True)})
    >>> with_people(pl.DataFrame({"who": ["p1", "P1 "]}), people)[PERSON].n_unique()
    1
    """
    person = schema.person
    assert person is not None
    texts = frame.get_column(person.name)
    distinct = texts.unique()
    table = Table(frame, schema)
    normal = normal_of(table, person, distinct)
    return frame.with_columns(texts.replace_strict(distinct, normal, return_dtype=pl.String).alias(PERSON))


def units_of(
    frame: pl.DataFrame, schema: Schema, readings: Mapping[str, Sequence[Aggregate]]
) -> pl.DataFrame:
    """One row for each person of *frame* (with PERSON), in no order that arrival has: by the person's normal form.

    "last" and "first" are those by a record's time that are no blank; a list is joined by spaces.

    >>> pulse = Schema({"who": Column("who", person=True), "pulse": Column("pulse", "sensitive", "numeric")})
    >>> rows = pl.DataFrame({"who": ["a", "a"], "pulse": [60.0, 80.0], AT: [1.0, 2.0], PERSON: ["A", "A"]})
    >>> units_of(rows, pulse, {"pulse": ("mean", "list")}).row(0)
    ('A', 'a', 70.0, '60 80')
    """
    person = schema.person
    assert person is not None
    made = [pl.col(person.name).first()]
    for name, (column, aggregate) in unit_columns(schema, readings).items():
        if name != person.name:
            made.append(_aggregated(column, aggregate).alias(name))
    return frame.sort(AT, maintain_order=True).group_by(PERSON).agg(made).sort(PERSON)


def _aggregated(column: Column, aggregate: Aggregate) -> pl.Expr:
    cells = pl.col(column.name).drop_nulls()
    if aggregate == "list":
        texts = cells.cast(pl.String).str.strip_suffix(".0") if column.kind == "numeric" else cells
        return texts.str.join(" ")
    if aggregate == "count":
        return cells.len().cast(pl.Int64)
    if aggregate == "mean":
        return cells.mean().round(6)
    made: pl.Expr = getattr(cells, aggregate)()
    # The sum of nothing is no zero: who had no reading has no total either.
    return pl.when(cells.len() > 0).then(made) if aggregate == "sum" else made
