"""Improving what any partitioner made: its groups are annealed, its promise and its recoder stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.errors import ParameterError
from velado.release.goal import Goal, Progress
from velado.release.methods._method import Method
from velado.release.methods.progressive._annealing import Stopped, records_of
from velado.release.methods.progressive._starts import Start, grouping_cost
from velado.release.methods.progressive.objectives.mixture import ObjectiveMixture
from velado.release.methods.progressive.progressive import Progressive
from velado.release.recoded import GROUPS, NoteName, Recoded
from velado.settings import specs
from velado.text import say

Effort = Literal["fast", "default", "high"]

_NOT_SEARCHED = NoteName("not_improved", say("why the groups were not improved"))


def refuse_unimprovable(method: Method, goal: Goal) -> None:
    """The method makes groups that may be changed, and a group size is promised; a ParameterError says where not.

    >>> from velado.release.guarantees.k_anonymity import KAnonymity
    >>> refuse_unimprovable(Progressive(), Goal((KAnonymity(2),)))
    """
    if "recoder" not in specs(type(method)):
        raise ParameterError(
            say("'{method}' makes no groups of rows that could be improved.", method=method.name),
            "It recodes whole columns: equal values are published alike in every row, and groups of other rows would "
            "break that.",
            "Leave --improve out, or use a method that makes groups (`velado methods` lists them).",
        )
    if isinstance(method, Progressive) and not ObjectiveMixture.of(method.objective).is_usual:
        raise ParameterError(
            "--improve makes the loss (ncp) of groups lower, and these were searched for another objective.",
            "Less of the one is often more of the other.",
            "Leave out --improve or --objective.",
        )
    if not goal.guarantees:
        raise ParameterError(
            "No group size is promised, so there is nothing to keep while the groups are improved.",
            "The least loss without a promise is the table as it is.",
            "Give k, or leave --improve out.",
        )


def improved(
    data: EncodedTable,
    recoded: Recoded,
    goal: Goal,
    seed: int,
    progress: Progress,
    effort: Effort = "default",
) -> Recoded:
    """The same rows in groups that lose no more, each of which keeps the goal, published by the method's recoder.

    Rows and groups are exchanged as `Progressive` does it, from the groups of *recoded* on; what it was stays in
    *before*. Suppressed rows stay suppressed. Where the goal reads sensitive values nothing is searched: groups that
    were searched for with them in view tell of them (`tests/attacks/test_minimality.py`), and a note says so. The
    same seed gives the same groups. Interrupted once from the keyboard, the best so far is kept.

    >>> import numpy as np
    >>> from velado.release.guarantees.k_anonymity import KAnonymity
    >>> from velado.release.methods._method import in_groups
    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 30, 21, 31])
    >>> made = in_groups(data, Partition.of(np.array([0, 0, 1, 1])), "cover")
    >>> sorted(improved(data, made, Goal((KAnonymity(2),)), 0, lambda share, doing="": None).columns[0].values)
    ['[20..21]', '[30..31]']
    """
    groups, publish = recoded.partition, recoded.regrouped
    assert groups is not None and publish is not None, "refuse_unimprovable() comes first"
    if goal.reads_sensitive:
        reason = say(
            "The promise reads sensitive values, and groups searched for with these in view would tell of them; "
            "--blind makes the groups without them."
        )
        return replace(recoded, notes={**recoded.notes, _NOT_SEARCHED: reason})
    rows = records_of(data)
    begun = Start(say("groups of the method"), groups.labels, grouping_cost(rows, groups.labels))
    kept_as_they_are = replace(goal, suppression=0.0)
    stopped, search = Stopped(), Progressive(effort).searched
    found = Partition.of(search(data, rows, kept_as_they_are, begun, seed, progress, stopped))
    other = replace(
        recoded,
        columns=publish(found),
        partition=found,
        notes={**recoded.notes, GROUPS: found.count},
        before=recoded,
        warnings=(*recoded.warnings, *stopped.warnings),
    )
    # What is searched and what is published may differ by a little: in long columns with rounded ends, or where a
    # substitute lies outside its group.
    # Where columns count by weights, the search is by these, and the loss that is shown must not rise for it.
    plain = replace(data, columns=tuple(replace(column, weight=1.0) for column in data.columns))
    better = _loss(data, other) < _loss(data, recoded) and _loss(plain, other) <= _loss(plain, recoded)
    return other if better else replace(recoded, before=recoded, warnings=other.warnings)


def _loss(data: EncodedTable, recoded: Recoded) -> float:
    return sum(
        float(published.losses(column)[recoded.kept].sum())
        for column, published in zip(data.columns, recoded.columns, strict=True)
    )
