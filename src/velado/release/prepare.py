"""prepare(): a table read, judged and encoded once, ready for one method or for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from velado.data.counted import compressed
from velado.data.encode import EncodedTable, encode, refuse_unlisted, refuse_wrong_kinds, spelling_notes
from velado.data.keys import Key, owner_key
from velado.data.partition import BoolArray, Int32Array
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError, TableError
from velado.release.gate import Signed, decide_person, refuse_identifiers
from velado.release.operations._operation import Operation, apply_operations, columns_of
from velado.release.operations.impute import Impute, imputation_effect
from velado.release.operations.local_suppression import LocalSuppression
from velado.release.population import population_table
from velado.release.run_settings import run_settings
from velado.release.side_doors import SideDoor, find_side_doors, refuse_copies
from velado.release.side_doors.row_order import sorted_by
from velado.text import say, say_n


@dataclass(frozen=True, repr=False)
class Prepared:
    """A table that may be published once its quasi-identifiers are recoded, and what is known of it.

    *original* is the table as read, *table* the one after column operations, *used* the rows a method sees (*present*
    marks them within *table*), *data* those rows encoded. *key* is the owner's, or where it lies; *per* is what k counts
    where somebody said so. *own_warnings* are for the owner alone: they speak of cells that do not leave.

    >>> from velado.testing.examples import table
    >>> prepare(table(age=[20, 30])).present.tolist()
    [True, True]
    """

    original: Table
    table: Table
    used: Table
    data: EncodedTable
    present: BoolArray
    side_doors: tuple[SideDoor, ...] = ()
    signed: tuple[Signed, ...] = ()
    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()
    own_warnings: tuple[str, ...] = ()
    key: Key | str | Path | None = None
    keep_order: bool = False
    per: str | None = None

    @cached_property
    def tuples(self) -> tuple[EncodedTable, Int32Array]:
        """The distinct tuples of quasi-identifiers with the rows behind each, and the tuple of each row."""
        return compressed(self.data, values=False)

    def packed(self) -> Prepared:
        """The same, each table held in its `packed_frame`: the texts as they were read may be forgotten."""
        tables = (self.original, self.table, self.used)
        made: dict[int, pl.DataFrame] = {}
        for table in tables:
            if id(table.frame) not in made:
                made[id(table.frame)] = table.packed_frame()
        original, table, used = (one.held_in(made[id(one.frame)]) for one in tables)
        return replace(self, original=original, table=table, used=used)

    @property
    def seen(self) -> EncodedTable:
        """The rows as a method sees them: every column counts by the weight its schema gives."""
        return self.as_seen(self.data)

    def as_seen(self, data: EncodedTable) -> EncodedTable:
        """The columns of *data*, rows or tuples, weighted as the schema says."""
        return data.weighted({column.name: column.weight for column in self.used.schema.quasi})

    @property
    def altered(self) -> tuple[str, ...]:
        """The published quasi-identifiers whose values a random operation made untrue."""
        quasi = {column.name for column in self.table.schema.quasi}
        drawn = [one for one in self.operations if one.falsifies]
        return tuple(name for one in drawn for name in columns_of(one, self.table.schema) if name in quasi)


def prepare(
    table: Table,
    *,
    operations: Sequence[Operation] = (),
    per: str | None = None,
    population: Any = None,
    key: Key | str | Path | None = None,
    keep_order: bool = False,
    promised: bool = True,
) -> Prepared:
    """The table judged and encoded, or an error: nothing that identifies would be published, people are settled.

    *population* is a table of everyone it was drawn from. With *keep_order* the rows will be published in the order of
    the input, which is refused where that order tells something of a quasi-identifier. Where nothing is *promised*, a
    column may tell a quasi-identifier that leaves as it came.

    >>> from velado.testing.examples import table
    >>> made = prepare(table(age=[20, 30], note=["20", "31"]))
    >>> made.data.rows, made.side_doors
    (2, ())
    """
    asked = run_settings(per=per, keep_order=keep_order)
    per, keep_order = asked.per, asked.keep_order
    check_roles(table.schema)
    refuse_unlisted(table)
    refuse_wrong_kinds(table)
    decide_person(table, per)
    original = table
    if operations:
        _refuse_counting_rows(table, operations, per)
        key = owner_key(key)
        table = apply_operations(table, tuple(operations), key)
    signed = refuse_identifiers(table, original if operations else None)
    changed = [name for operation in operations for name in columns_of(operation, original.schema)]
    doors = _doors(original, table, changed)
    if not promised:
        doors = tuple(door for door in doors if door.reveals in changed)
    refuse_copies(doors)
    used, present = _rows_used(table)
    population = table.schema.dataset.population_file if population is None else population
    everyone = None if population is None else population_table(population, used.schema)
    _refuse_emptied(used, changed)
    data = encode(used, everyone)
    warnings = check_columns(data, used.schema, changed)
    if keep_order:
        warnings = (*warnings, _order_kept(data))
    return Prepared(
        original=original,
        table=table,
        used=used,
        data=data,
        present=present,
        side_doors=doors,
        signed=signed,
        operations=tuple(operations),
        warnings=warnings,
        own_warnings=(
            *_found_encoding(table),
            *_index_left_out(table),
            *spelling_notes(table),
            *_imputed(original, operations),
        ),
        key=key,
        keep_order=keep_order,
        per=per,
    )


def _imputed(original: Table, operations: Sequence[Operation]) -> tuple[str, ...]:
    """What each filling of blanks did to its column as it was read."""
    found = [imputation_effect(one, original) for one in operations if isinstance(one, Impute)]
    return tuple(one.sentence() for one in found if one.filled)


def _found_encoding(table: Table) -> tuple[str, ...]:
    if table.encoding.lower().replace("_", "-") in ("utf-8", "utf-8-sig", table.schema.encoding.lower()):
        return ()
    # True also where the schema says UTF-8, which is its default: nobody may have meant it.
    return (
        say(
            "The file is no UTF-8 text and was read as {encoding}: if accented letters look odd, name its encoding.",
            encoding=table.encoding,
        ),
    )


def _index_left_out(table: Table) -> tuple[str, ...]:
    if not table.came.unnamed:
        return ()
    return (
        say_n(
            "The frame's index '{levels}' is not in the schema and was left out: an index names rows.",
            "The levels {levels} of the frame's index are not in the schema and were left out: an index names rows.",
            len(table.came.unnamed),
            levels=", ".join(table.came.unnamed),
        ),
    )


def _doors(original: Table, table: Table, changed: Sequence[str]) -> tuple[SideDoor, ...]:
    """The side doors of what is published, and those that an operation on the quasi-identifier would hide.

    Noise on an age does not make a column less telling that holds the age: it gives the true one away, not the
    published one. A column that was itself operated on is judged as it leaves.
    """
    found = find_side_doors(table)
    if not changed:
        return found
    known = {(door.column, door.reveals) for door in found}
    quasi = {column.name for column in table.schema.quasi}
    true = [
        door
        for door in find_side_doors(original)
        if door.reveals in quasi
        and (door.column, door.reveals) not in known
        and not set(door.columns) & set(changed)
    ]
    return (*found, *true)


def _order_kept(data: EncodedTable) -> str:
    column = sorted_by(data)
    if column is not None:
        raise ParameterError(
            say(
                "The rows cannot keep their order: it tells something of the quasi-identifier '{column}'.",
                column=column,
            ),
            "In a sorted file a row's place gives its value away, however broad the published one is.",
            "Leave --keep-order out, so that the order is drawn, or shuffle the file first.",
        )
    return say(
        "Rows stand in the order of the input: whoever has another file in that order, or knows how it came about, "
        "can match rows by their place."
    )


def check_roles(schema: Schema) -> None:
    """Nothing, if there is a quasi-identifier to publish; else the error says what one is.

    >>> from velado.testing.examples import table
    >>> check_roles(table(age=[20, 30]).schema)
    """
    if not schema.quasi:
        raise SchemaError(
            "The schema names no published quasi-identifier.",
            "There is nothing to generalize, so no promise could be made.",
            'Give role = "quasi" to columns an attacker may know: age, sex, place, dates.',
        )


def _rows_used(table: Table) -> tuple[Table, BoolArray]:
    """The rows the method will see: those without blanks where the schema says that blanks are suppressed."""
    present = np.ones(table.rows, dtype=bool)
    for column in table.schema.quasi:
        if table.schema.missing_policy(column) == "suppress":
            present &= ~table.is_missing(column.name).to_numpy()
    if bool(present.all()):
        return table, present
    if not present.any():
        raise TableError(
            "Every row is blank in a quasi-identifier that the schema suppresses.",
            "There is nothing to publish.",
            'Set missing = "value", or check the file.',
        )
    return table.with_frame(table.frame.filter(pl.Series(present))), present


def _refuse_counting_rows(table: Table, operations: Sequence[Operation], per: str | None) -> None:
    """Local suppression counts rows, which are not people where somebody has several."""
    person = table.schema.person
    by_row = [one.name for one in operations if isinstance(one, LocalSuppression)]
    if not by_row or per == "row" or person is None:
        return
    if table.text(person.name).drop_nulls().is_duplicated().any():
        raise ParameterError(
            say(
                "The operation '{operation}' counts rows, and people of '{person}' have several.",
                operation=by_row[0],
                person=person.name,
            ),
            "All rows of a crowd could be one person's.",
            "Count rows with --per row, or use velado anonymize, whose k counts people.",
        )


def _refuse_emptied(used: Table, changed: Sequence[str]) -> None:
    for column in used.schema.quasi:
        if column.name in changed and bool(used.is_missing(column.name).all()):
            raise ParameterError(
                say("The operations left no value of '{column}' in any row.", column=column.name),
                "A quasi-identifier without values can neither identify nor be generalized.",
                say(
                    "Suppress the whole of '{column}' with --suppress {column}, set publish = false for it, or ask for less.",
                    column=column.name,
                ),
            )


def check_columns(data: EncodedTable, schema: Schema, changed: Sequence[str] = ()) -> tuple[str, ...]:
    """What is to be said of quasi-identifiers that are constant or were moved onto a bound; or an error.

    >>> from velado.testing.examples import encoded, table
    >>> check_columns(encoded(age=[20, 30]), table(age=[20, 30]).schema)
    ()
    """
    warnings: list[str] = []
    for column in data.columns:
        if bool((column.codes == column.codes[0]).all()):
            if column.name in changed:
                warnings.append(
                    say("The operations left one single value in '{column}'.", column=column.name)
                )
                continue
            if schema.constant == "refuse":
                raise TableError(
                    say("Quasi-identifier '{column}' has the same value in every row.", column=column.name),
                    "It tells nobody apart, and an unexpected constant often means a wrong file or filter.",
                    'Give it role = "other", or set constant = "allow" in [table] of the schema.',
                )
            warnings.append(say("Quasi-identifier '{column}' is constant.", column=column.name))
        if column.moved is not None:
            warnings.append(
                say_n(
                    "{n:,} value of '{column}' lay outside its bounds and was moved onto the nearest bound: what is "
                    "published for it is false.",
                    "{n:,} values of '{column}' lay outside its bounds and were moved onto the nearest bound: what is "
                    "published for them is false.",
                    int(column.moved.sum()),
                    column=column.name,
                )
            )
    return tuple(warnings)
