"""A Spark data frame in, a Spark data frame out: recoded on the workers, kept, and counted anew before anybody has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from velado.data.io import schema_from
from velado.data.keys import Key, owner_key
from velado.data.schema import Schema
from velado.engines.row_source import as_read
from velado.engines.spark_source import held, of_spark
from velado.errors import ParameterError, SchemaError
from velado.release.asked_goal import goal_of
from velado.release.goal import Progress, silent, within
from velado.release.run_settings import RunSettings
from velado.release.sources.source_release import counts_people, plan_release, prepare_source
from velado.release.sources.source_written import SourceRelease, check_written
from velado.text import say


@dataclass(frozen=True, repr=False)
class SparkRelease(SourceRelease):
    """A release whose table is a Spark data frame: *frame*, the very rows that were counted.

    >>> issubclass(SparkRelease, SourceRelease)
    True
    """

    frame: Any = None

    def to_native(self) -> Any:
        """What may leave, as the kind of frame that came: one of Spark's.

        >>> SparkRelease.to_native.__name__
        'to_native'
        """
        return self.frame


def anonymize_spark(
    source: Any,
    schema: Schema | str | Path | None,
    asked: RunSettings,
    *,
    population: Any = None,
    key: Key | str | Path | None = None,
    memory: str | None = None,
    progress: Progress = silent,
) -> SparkRelease:
    """The release of a Spark data frame, or an error; `velado.anonymize` comes here with one.

    >>> from velado.release.run_settings import run_settings
    >>> anonymize_spark(None, None, run_settings())
    Traceback (most recent call last):
    velado.errors.SchemaError: A Spark data frame needs a schema. Roles are inferred from all rows, and those stay on Spark's workers. Write one: velado.inspect(frame.limit(10000).toPandas()).schema is a proposal to read and correct.
    """
    _refuse_not_on_spark(schema, asked, population)
    assert schema is not None
    owner = owner_key(key)
    meaning = schema_from(schema)
    rows = as_read(replace(of_spark(source), memory=memory), meaning)
    rows.room()
    goal = goal_of(meaning, asked.per, asked.method, asked.k, asked.guarantees, asked.suppression)
    prepared = prepare_source(
        rows,
        meaning,
        per=asked.per,
        undeclared=asked.undeclared,
        values=goal.reads_sensitive,
        people=counts_people(goal),
        method=asked.method,
        plan=asked.plan,
        progress=within(progress, 0.0, 0.4),
    )
    try:
        plan = plan_release(
            prepared,
            asked.method,
            k=asked.k,
            guarantees=asked.guarantees,
            suppression=asked.suppression,
            seed=asked.seed,
            progress=within(progress, 0.4, 0.6),
        )
        progress(0.6, say("writing the recoded rows"))
        # The frame that leaves is the one that was counted: kept first, and never computed again.
        published = held(rows.recoded(plan.recoding(owner, rows.fingerprint())))
    finally:
        rows.let_go()
    progress(0.8, say("counting what was written"))
    made = check_written(plan, of_spark(published))
    progress(1.0, say("done"))
    return SparkRelease(**vars(made), frame=published)


def _refuse_not_on_spark(schema: object, asked: RunSettings, population: object) -> None:
    if schema is None:
        raise SchemaError(
            "A Spark data frame needs a schema.",
            "Roles are inferred from all rows, and those stay on Spark's workers.",
            "Write one: velado.inspect(frame.limit(10000).toPandas()).schema is a proposal to read and correct.",
        )
    for word in ("improve", "blind"):
        if getattr(asked, word):
            raise ParameterError(
                say("{word}= cannot be asked for of a Spark data frame yet.", word=word),
                "An engine counts rows with the same values together, and this works on single rows.",
                "Leave it out, or hand over a pandas frame.",
            )
    if asked.operations:
        raise ParameterError(
            "Column operations cannot be done on a Spark data frame yet.",
            "They would have to run on its workers.",
            "Change the columns with Spark first, or hand over a pandas frame.",
        )
    if population is not None:
        raise ParameterError(
            "A population cannot be matched with a Spark data frame yet.",
            "k-map and delta-presence count people outside the table.",
            "Hand over a pandas frame, or leave the population out.",
        )
    if asked.keep_order:
        raise ParameterError(
            "The rows of a Spark data frame have no order of their own that could be kept.",
            "They are published in an order drawn under your key.",
            "Leave keep_order out.",
        )
