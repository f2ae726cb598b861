"""Groups of values for life: who is put into which group, what a row shows of it, and what the written counts bear out."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedTable, refuse_unlisted, refuse_wrong_kinds
from velado.data.formulas import Formulas, count_formulas
from velado.data.history_file import HistoryFile
from velado.data.identifiers import identifying_columns
from velado.data.keys import Key
from velado.data.normal import spellings
from velado.data.schema import Column
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes, written_cells
from velado.errors import GuaranteeNotMet, HistoryError, ParameterError, SchemaError
from velado.release.gate import identifier_open
from velado.release.guarantees._guarantee import Verdict
from velado.release.history.classes import NOBODY
from velado.release.history.record import HeldState, Record, hashes_of
from velado.release.history.together import (
    Held,
    OverTime,
    Together,
    cells_of,
    histogram_of,
    merged_cells,
    only_measured,
    withheld_cells,
)
from velado.release.prepare import prepare
from velado.release.release import Release
from velado.release.rows_in_order import by_quasi
from velado.study.held_people import people_of, refuse_nobody, whose_rows
from velado.study.recipe import Recipe
from velado.text import say

Ints = npt.NDArray[np.int64]


def held_values(recipe: Recipe, table: Table, file: HistoryFile, key: Key) -> tuple[Held, Table]:
    """Newcomers are put into groups for life, and a row shows its group's number in the place of the value.

    The groups are made before a value is looked at: what makes them gets a table without the column.
    """
    asked = recipe.together
    column = _one_sensitive(table)
    _refuse_as_published(table, column)
    shown_as = f"{column.name}_group"
    hidden = table.with_schema(
        table.schema.with_columns(
            replace(one, role="other", publish=False, taxonomy=None) if one.name == column.name else one
            for one in table.schema.columns.values()
        )
    )
    prepared = prepare(hidden, per=recipe.per, key=key)
    names = people_of(prepared)
    refuse_nobody(names)
    record = Record.of(file.entries)
    _refuse_another(record, column)
    known = len(record.people)
    first = np.flatnonzero(names.is_first_distinct().to_numpy())
    hashes = hashes_of(names[first], key.seed_for("history people"))
    places = record.places(hashes)
    new = first[places < 0]
    by, of_row = _rows_to_group_by(prepared.seen, names, first)
    by = by[places < 0]
    number = 0 if record.held is None else len(record.held.over)
    cells = np.full(new.size, NOBODY, np.int64)
    if new.size >= asked.group:
        cells = cells_of(prepared.seen, by, asked.group, recipe.method, recipe.seed, hashes[places < 0, 0])
    found = spellings(table, column)
    used = table.text(column.name).filter(pl.Series(prepared.present))
    codes = found.of_rows(used)
    texts = pl.Series(["", *found.values.to_list()], dtype=pl.String)
    own_codes = codes[new].astype(np.int64)
    if asked.merge:
        cells = merged_cells(prepared.seen, by, cells, own_codes, asked.share)
    made = int(cells.max(initial=-1)) + 1
    withheld = withheld_cells(cells, own_codes, asked.share)
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
        asked.kind[1],
        column=column.name,
    )
    own = np.where(places >= 0, places, 0)
    own[places < 0] = known + np.arange(new.size)
    home = pl.DataFrame({"name": names[first], "home": state.home[own]})
    home_of_row = pl.DataFrame({"name": whose_rows(table)}).join(
        home, on="name", how="left", maintain_order="left"
    )["home"]
    label = pl.select(pl.when(home_of_row >= 0).then(pl.lit("g") + home_of_row.cast(pl.String))).to_series()
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
    return Held(asked, tuple(names[new].to_list()), state, shown_as, lots=hashes[of_row, 0]), shown


def _rows_to_group_by(data: EncodedTable, names: pl.Series, first: Ints) -> tuple[Ints, Ints]:
    """Of each person's rows the one by which the person is grouped, and whose each row is, both as *first* counts people.

    It is the least by quasi-identifiers, not the first in the file, whose order may be that of values.
    """
    if first.size == names.len():
        return first, np.arange(first.size)
    who = names.rank("dense").to_numpy().astype(np.int64) - 1
    number = np.empty(first.size, np.int64)
    number[who[first]] = np.arange(first.size)
    of_row = number[who]
    order = by_quasi(data, np.arange(data.rows))[::-1]
    least = np.empty(first.size, np.int64)
    least[of_row[order]] = order  # what is written last stands: the least
    return least, of_row


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


def _refuse_as_published(table: Table, column: Column) -> None:
    """Values whose counts leave are judged as if they left in the rows: counts of names name people too."""
    refuse_unlisted(table)
    refuse_wrong_kinds(table)
    published = [one.name for one in table.schema.columns.values() if one.published]
    found = [one for one in identifying_columns(table, published) if one.column == column.name]
    if found and column.identifier != "accept":
        raise identifier_open(found, table.schema)


def _refuse_another(record: Record, column: Column) -> None:
    if record.held is not None and record.held.column not in ("", column.name):
        raise HistoryError(
            say(
                "The history counts the values of '{before}', and this table's sensitive column is '{column}'.",
                before=record.held.column,
                column=column.name,
            ),
            "Groups for life have the counts of one column: those of another one would be told under its name.",
            "Publish the same column as sensitive, under the same name, or begin a new history.",
        )


def values_file(
    after: Record, shown: pl.Series, separator: str, formulas: Formulas = "keep"
) -> tuple[bytes, int]:
    """`values.csv`: the counts of every group that a row of this release names; and how many of its cells look like formulas."""
    assert after.held is not None
    named = shown.drop_nulls().filter(shown.drop_nulls() != "").str.slice(1).cast(pl.Int64).unique().sort()
    counts = after.held.counts.filter(pl.col("group").is_in(named.implode()))
    texts = counts.with_columns(pl.format("g{}", "group").alias("group"))
    return csv_bytes(texts, separator, formulas), count_formulas(texts)


def values_kept(
    public: bytes,
    shown: pl.Series,
    asked: Together,
    release: Release,
    separator: str,
    trouble: str,
    earlier: pl.DataFrame,
) -> OverTime:
    """The promise as the two written files bear it out: every group that a row names has its counts, and none breaks the bound.

    Nor does any of the groups whose counts left *earlier* (group, value, count), in whatever release.
    """
    counted = written_cells(public, separator).with_columns(pl.col("count").cast(pl.Int64))
    each = _largest(counted)
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
    before = _largest(earlier)
    beyond = before.filter(pl.col("most") * share.denominator > pl.col("all") * share.numerator).height
    if beyond:
        raise ParameterError(
            say(
                "At most {most} was asked for, and {groups:,} groups of earlier releases have a value with more.",
                most=str(share),
                groups=beyond,
            ),
            "What is promised is promised of all releases of the history, and those have left.",
            "Use the --most that the history began with, or begin a new one.",
        )
    withheld = 1 - len(named) / max(len(shown), 1)
    further = {
        "file": "values.csv",
        "sha256": hashlib.sha256(public).hexdigest(),
        "withheld_rows": len(shown) - len(named),
    }
    if trouble:
        said = only_measured(trouble)
        return OverTime("measured", "values", "all-rows", found, said, str(trouble), further)
    if asked.merge:
        said = say(
            "Over all releases of the history: in every group that got counts (values.csv) no value has more than {most}. That bounds what who knows which row is whose believes only if they do not know how groups were made: groups that broke the bound were merged with values in view (minimality). Measured; without --merge it is guaranteed. {withheld:.1%} of the rows have no counts.",
            most=str(share),
            withheld=withheld,
        )
        why = say("groups that broke the bound were merged with values in view (minimality)")
        return OverTime("measured", "values", "all-rows", found, said, str(why), further)
    sentence = say(
        "Over all releases of the history: nobody's value of a group that got counts (values.csv) is known with more than {most}, even for who knows which row is whose. Values are those of each person's first release; {withheld:.1%} of the rows have none. Guaranteed.",
        most=str(share),
        withheld=withheld,
    )
    return OverTime("guaranteed", "values", "all-rows", found, sentence, "", further)


def _largest(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("group").agg(
        pl.col("count").max().alias("most"), pl.col("count").sum().alias("all")
    )


def refuse_for_values(recipe: Recipe) -> None:
    """Nothing, if boxes are made without a look at values; else an error."""
    if recipe.guarantees or recipe.operations or recipe.improve:
        raise ParameterError(
            "Groups of values were asked for beside further promises, operations or --improve.",
            "Boxes must be made by quasi-identifiers alone: what is promised of values over time counts on it.",
            "Promise k alone: the counts of a group bound what is known of a value.",
        )
