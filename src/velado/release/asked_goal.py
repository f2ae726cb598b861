"""What is asked of a run, as a goal; and what is refused before any method is tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from velado.data.schema import Schema
from velado.errors import ParameterError, SuppressionLimitExceeded
from velado.release.goal import Goal, default_k
from velado.release.guarantees._guarantee import Guarantee
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.methods._method import Method
from velado.text import say, say_n


def goal_of(
    schema: Schema,
    per: str | None,
    method: Method,
    k: int | None = None,
    guarantees: Sequence[Guarantee] = (),
    suppression: float = 0.0,
    blind: bool = False,
) -> Goal:
    """What is promised of a table with that schema: *k*, or its default, counted in rows or people, and *guarantees*.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import table
    >>> goal_of(table(age=[20, 21]).schema, None, Mondrian(), k=2).k
    2
    """
    k = default_k(method.promise, guarantees) if k is None else k
    if blind and not any(one.reads == "values" for one in guarantees):
        raise ParameterError(
            "--blind was asked for, but no promise speaks of sensitive values.",
            "There is nothing that the groups could have been chosen by.",
            "Leave --blind out, or promise l-diversity, t-closeness or likeness too.",
        )
    unit = per or ("row" if schema.person is None else "person")
    if k is None:
        return Goal(tuple(guarantees), suppression, blind)
    if unit == "person" and schema.person is None:
        raise ParameterError(
            "k per person was asked for, but the schema names no person column.",
            "Which rows belong to one person is not known.",
            "Mark the column with person = true, or count rows with --per row.",
        )
    crowd = KAnonymity(k, "person" if unit == "person" else "row")
    return Goal((crowd, *guarantees), suppression, blind)


def refuse_few(rows: int, goal: Goal) -> None:
    """Nothing, if *rows* rows may make one group; else an error.

    >>> refuse_few(2, Goal((KAnonymity(2),)))
    """
    if rows < goal.least_rows:
        raise ParameterError(
            say_n(
                "A group of {least_rows:,} cannot be made from {n:,} row.",
                "A group of {least_rows:,} cannot be made from {n:,} rows.",
                rows,
                least_rows=goal.least_rows,
            ),
            "The table is smaller than one group.",
            "Lower k (or l), or gather more rows.",
        )


def refuse_blanks(dropped: int, rows: int, goal: Goal) -> None:
    """Nothing, if so many of *rows* rows may leave for their blanks; else an error.

    >>> refuse_blanks(0, 10, Goal((KAnonymity(2),)))
    """
    limit = goal.suppressible(rows)
    if dropped > limit:
        raise SuppressionLimitExceeded(
            say(
                "{dropped} of {rows} rows are blank in a quasi-identifier and would be suppressed; the "
                "limit is {limit}.",
                dropped=dropped,
                rows=rows,
                limit=limit,
            ),
            'The schema says missing = "suppress".',
            say(
                'Allow --suppression {share:g}, or set missing = "value".',
                share=np.ceil(1000 * dropped / rows) / 1000,
            ),
        )
