"""anonymize(): a release of a table that keeps its promises, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from velado.data.counted import listed
from velado.data.encode import EncodedTable
from velado.data.frames import SparkFrame, is_spark_frame
from velado.data.inspect import inspect
from velado.data.io import read_table, schema_from
from velado.data.keys import Key
from velado.data.partition import IntArray
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.errors import GuaranteeNotMet, ParameterError
from velado.randomness import seeded
from velado.release import DEFAULT_METHOD
from velado.release.asked_goal import goal_of, refuse_blanks, refuse_few
from velado.release.goal import Goal, Progress, silent, within
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import _method
from velado.release.methods._method import Method
from velado.release.methods.improve import Effort, improved, refuse_unimprovable
from velado.release.operations._operation import Operation
from velado.release.prepare import Prepared, prepare
from velado.release.release import Release, release
from velado.release.rows_in_order import by_quasi, lots_of, put_back
from velado.release.run_settings import Guarantees, Plan, run_settings
from velado.text import say

if TYPE_CHECKING:
    from velado.release.sources.spark_release import SparkRelease

_INFERRED = say(
    "No schema was given: roles were inferred, and everything that looks like an identifier is left out. "
    "Review release.table.schema before the table leaves."
)


@overload
def anonymize(source: SparkFrame, *given: Any, **settings: Any) -> SparkRelease: ...


@overload
def anonymize(
    source: Any,
    schema: Schema | str | Path | None = None,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Guarantees = (),
    *,
    k: int | None = None,
    suppression: float = 0.0,
    seed: int = 0,
    operations: Sequence[Operation] = (),
    per: Literal["row", "person"] | None = None,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    key: Key | str | Path | None = None,
    keep_order: bool = False,
    improve: bool = False,
    blind: bool = False,
    plan: Plan = "auto",
    memory: str | None = None,
    progress: Progress = silent,
) -> Release: ...


def anonymize(
    source: Any,
    schema: Schema | str | Path | None = None,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Guarantees = (),
    *,
    k: int | None = None,
    suppression: float = 0.0,
    seed: int = 0,
    operations: Sequence[Operation] = (),
    per: Literal["row", "person"] | None = None,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    key: Key | str | Path | None = None,
    keep_order: bool = False,
    improve: bool = False,
    blind: bool = False,
    plan: Plan = "auto",
    memory: str | None = None,
    progress: Progress = silent,
) -> Release | SparkRelease:
    """A release of *source* that keeps k and every further guarantee, or an error.

    *source* is a data frame, a path or a Table; that of a Spark data frame is recoded on Spark's workers, and the `frame`
    of its release is a Spark data frame again. *schema* is a Schema or the path of a schema file, inferred where it is
    left out; *method* a method or its name, as *guarantees* may be given by theirs. *k* is that of k-anonymity: 5 where it is left out, unless the method
    is only measured or *guarantees* name another crowd (`[KMap(5)]` is k-map and nothing else). *per* says whether k
    counts "row"s or "person"s; by default people when the schema names a person column. *operations* are column
    operations done first. *population* is a table of everyone the source was drawn from, for k-map and
    delta-presence. *key* is the owner's key or its file, under which the order of rows and random operations are
    drawn; by default that of this user. With *improve* the groups that a partitioner made are searched for better ones
    that keep the same promise. With *blind* they are made without a look at sensitive values, and those in which a
    promise about these fails are suppressed whole. *plan* and *memory* are for a Spark data frame: how it is grouped, and about how much
    of it may be held on the driver (e.g. "3GB"). The same input, settings, *seed* and key give the same release.

    >>> import polars as pl
    >>> from velado.data.keys import Key
    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> anonymize(pl.DataFrame({"age": [20, 21, 30, 31]}), schema, "mondrian", k=2, key=Key(bytes(range(40))))
    Release(4 rows by mondrian; k-anonymity: needs 2 rows, the weakest group has 2; holds.)
    """
    asked = run_settings(
        method=method,
        guarantees=guarantees,
        operations=operations,
        seed=seed,
        k=k,
        suppression=suppression,
        per=per,
        undeclared=undeclared,
        keep_order=keep_order,
        improve=improve,
        blind=blind,
        plan=plan,
    )
    if is_spark_frame(source):
        from velado.release.sources.spark_release import anonymize_spark  # the engines' libraries are large

        return anonymize_spark(
            source, schema, asked, population=population, key=key, memory=memory, progress=progress
        )
    if plan != "auto" or memory is not None:
        raise ParameterError(
            "plan= and memory= were given, but the rows are worked on in memory.",
            "They say how an engine groups a table that stays where it lies.",
            "Leave them out, or use publish_files, publish_table, or a Spark data frame.",
        )
    prepared = prepare(
        table_from(source, schema, asked.undeclared),
        operations=asked.operations,
        per=asked.per,
        population=population,
        key=key,
        keep_order=asked.keep_order,
    )
    if schema is None and not isinstance(source, Table):
        prepared = replace(prepared, own_warnings=(*prepared.own_warnings, _INFERRED))
    goal = goal_for(prepared, asked.method, asked.k, asked.guarantees, asked.suppression, asked.blind)
    improving: Effort | None = "default" if asked.improve else None
    return carry_out(prepared, asked.method, goal, seed=asked.seed, improve=improving, progress=progress)


def goal_for(
    prepared: Prepared,
    method: Method,
    k: int | None = None,
    guarantees: Sequence[Guarantee] = (),
    suppression: float = 0.0,
    blind: bool = False,
) -> Goal:
    """What is promised of a prepared table: *k*, or its default, counted in rows or people, and *guarantees*.

    *blind* matters only where a guarantee reads sensitive values.

    >>> from velado.testing.examples import table
    >>> goal_for(prepare(table(age=[20, 21])), method_from("mondrian"), k=2)
    Goal(guarantees=(KAnonymity(k=2, unit='row'),), suppression=0.0)
    """
    return goal_of(prepared.table.schema, prepared.per, method, k, guarantees, suppression, blind)


def carry_out(
    prepared: Prepared,
    method: Method,
    goal: Goal,
    *,
    seed: int = 0,
    improve: Effort | None = None,
    lots: npt.NDArray[np.integer[Any]] | None = None,
    progress: Progress = silent,
) -> Release:
    """A release of a prepared table by *method*: nothing is read, judged or encoded again.

    *improve* says how long its groups are then searched for better ones; without it they are published as made. With
    *lots*, and always where the goal is blind, the order of the file, which may be that of sensitive values, has no part in the
    groups: equal rows are taken in the order of their lots.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> made = carry_out(prepare(table(age=[20, 21])), method_from("mondrian"), Goal((KAnonymity(2),)))
    >>> made.aligned["age"].to_list()
    ['[20..21]', '[20..21]']
    """
    seed = run_settings(seed=seed).seed
    table, data = prepared.table, prepared.data
    refuse_blanks(int((~prepared.present).sum()), table.rows, goal)
    refuse_few(data.total, goal)
    if improve is not None:
        refuse_unimprovable(method, goal)
    progress(0.0, method.title)
    # Rows that left for their blanks have used up part of the limit; the method may spend the rest.
    spare = goal.suppressible(table.rows) - (table.rows - data.rows)
    # A search for better groups parts rows with the same values: it needs the rows.
    tuples, entry_of_row = (prepared.data, None) if improve is not None else _tuples(prepared, method, goal)
    order: IntArray | None = None
    if lots is not None or goal.blind:
        if lots is None or entry_of_row is not None:  # no two tuples are equal
            lots = lots_of(prepared, tuples.rows) if entry_of_row is None else np.arange(tuples.rows)
        order = by_quasi(tuples, lots)
        tuples = tuples.subset(order)
    seen = prepared.as_seen(tuples)

    def published(share: float) -> Release:
        aim = goal.in_view if goal.blind else replace(goal, suppression=share)
        making = progress if improve is None else within(progress, 0.0, 0.5)
        recoded = method.anonymize(seen, aim, seeded(seed, method.name), making)
        if improve is not None:
            recoded = improved(seen, recoded, aim, seed, within(progress, 0.5, 1.0), improve)
        if order is not None:
            recoded = put_back(recoded, order)
        if entry_of_row is not None:
            recoded = recoded.of_rows(entry_of_row)
        return release(prepared, recoded, goal, method, seed)

    try:
        return published(spare / data.rows)
    except GuaranteeNotMet:
        # Promises about distributions compare with the published table, and dropping rows changes that table:
        # what held against all rows may not hold against those that are left. Without dropping any it does.
        # A second try would be a choice made with the values in view.
        if not spare or goal.blind:
            raise
        return published(0.0)


_FEW_ROWS = 20_000
"""Below, the tuples cost more to find than they spare."""
_SPARED = 0.5
"""More tuples than this share of the rows are not worth the way back."""


def _tuples(prepared: Prepared, method: Method, goal: Goal) -> tuple[EncodedTable, IntArray | None]:
    """The table as the method is given it: counted tuples, with the tuple of each row, where that is all it needs."""
    data = prepared.data
    if method.takes == "either":
        # Decided by the number of rows alone, so that an engine, which has tuples only, makes the same groups.
        if data.rows <= _method.MOST_SEARCHED_ROWS:
            return data, None
    elif method.takes == "rows" or data.rows < _FEW_ROWS or data.classes.count > _SPARED * data.rows:
        return data, None
    tuples, entry_of_row = prepared.tuples
    if not goal.rows_only:
        people, sensitive = listed(data, entry_of_row)
        tuples = replace(tuples, people=people, sensitive=sensitive)
    return tuples, entry_of_row


def table_from(source: Any, schema: Schema | str | Path | None, undeclared: Undeclared = "refuse") -> Table:
    """The table of *source* with the meaning of *schema*, of a schema file, or, without one, as `inspect` proposes.

    >>> import polars as pl
    >>> [column.name for column in table_from(pl.DataFrame({"age": [20, 30]}), None).schema.columns.values()]
    ['age']
    """
    schema = None if schema is None else schema_from(schema)
    if schema is None and isinstance(source, Table):
        return source
    table = read_table(source, schema, undeclared)
    return table if schema is not None else read_table(table, inspect(table).schema)


def method_from(method: Method | type[Method] | str) -> Method:
    """The method itself, by its class or by its name.

    >>> method_from("mdav").title
    'MDAV microaggregation'
    """
    chosen: Method = run_settings(method=method).method
    return chosen
