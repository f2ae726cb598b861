"""What a method is, and what partitioners share: settings, repairing groups that break the goal, publishing them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from velado.data.counted import MOST_EXPANDED, expanded
from velado.data.encode import EncodedTable
from velado.data.partition import Int64Array, Partition
from velado.errors import GuaranteeNotMet
from velado.release.goal import Goal, Progress, Promise
from velado.release.recoded import GROUPS, Recoded
from velado.release.recoders import RECODERS, recoder_named
from velado.release.recoders._recoder import View
from velado.settings import Setting
from velado.text import Sentence, say

Takes = Literal["tuples", "rows", "either"]
"""What a method works on. tuples: it never parts equal rows, so that their tuples with counts are all it needs. rows: it may
part equal rows. either: it does better with rows, up to MOST_SEARCHED_ROWS of them, and makes do with tuples beyond."""

MOST_SEARCHED_ROWS = 200_000
"""A method that takes either is given tuples of a table of more rows, wherever the table lies: the same groups everywhere."""


@runtime_checkable
class Method(Protocol):
    """A settings class with one verb. Its fields (type, default, limits, help) make flags, recipe and docs."""

    name: ClassVar[str]
    title: ClassVar[str]
    promise: ClassVar[Promise]
    cost: ClassVar[str]
    source: ClassVar[str]

    @property
    def takes(self) -> Takes:
        """What it works on: a table of counted tuples, or rows."""
        ...

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table recoded so that the goal should hold; release() checks whether it does."""
        ...


def on_entries(
    method: Method, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
) -> tuple[Recoded, Int64Array]:
    """What *method* makes of a table of counted entries, and the entry of each row of the recoding.

    A method that needs rows gets one for each that is counted, as many as `expanded` makes; one that takes either gets
    them up to that many and the tuples beyond.
    """
    if method.takes != "tuples" and (method.takes == "rows" or data.total <= MOST_EXPANDED):
        data, entry_of_row = expanded(data)
    else:
        entry_of_row = np.arange(data.rows)
    return method.anonymize(data, goal, random, progress), entry_of_row


RecoderName = Annotated[
    str, Setting("how a group is published", choices=tuple(recoder.name for recoder in RECODERS))
]
BlockRows = Annotated[int, Setting("split larger tables into blocks of about so many rows", ge=100)]
"""In such a block a quadratic method runs alone: see `in_blocks`."""

_NO_NOTES: Mapping[str, object] = MappingProxyType({})


def published(
    data: EncodedTable,
    partition: Partition,
    goal: Goal,
    recoder: str,
    progress: Progress,
    notes: Mapping[str, object] = _NO_NOTES,
) -> Recoded:
    """The groups of *partition*, repaired until the goal holds, as the recoder of that name publishes them."""
    return in_groups(data, repair(data, data.weighed(partition), goal, progress), recoder, notes)


def in_groups(
    data: EncodedTable,
    partition: Partition,
    recoder: str,
    notes: Mapping[str, object] = _NO_NOTES,
    view: View | None = None,
) -> Recoded:
    """The groups of *partition* as the recoder of that name publishes them, from *view* where the method has one.

    >>> from velado.testing.examples import encoded
    >>> in_groups(encoded(age=[20, 30]), Partition.of(np.array([0, 0])), "cover").columns[0].values
    ('[20..30]',)
    """
    publish = partial(recoder_named(recoder).publish, data, view=view)
    return Recoded(
        publish(partition),
        partition.kept,
        partition,
        {GROUPS: partition.count, **notes},
        regrouped=publish,
    )


def repair(data: EncodedTable, partition: Partition, goal: Goal, progress: Progress) -> Partition:
    """Every group keeps the goal: each failing group is merged with the group it widens least.

    The cost of joining two groups is the increase of their rows' loss, sum over columns of
    rows x (loss of the joint cover) - loss before. Failing groups are served smallest first. Once only one
    group is left and it still fails, no partition can hold and GuaranteeNotMet is raised. O(F G d) for F
    failing of G groups.
    """
    good = goal.holds_in_parts(data, partition)
    if bool(good.all()):
        return partition
    labels = partition.labels.copy()
    low = np.stack([partition.least_and_greatest(c.codes)[0] for c in data.columns], axis=1)
    high = np.stack([partition.least_and_greatest(c.codes)[1] for c in data.columns], axis=1)
    partition = data.weighed(partition)
    rows = partition.sizes.copy()
    alive = np.ones(partition.count, dtype=bool)
    into = np.arange(partition.count)
    loss = _cover_loss(data, low, high)
    failing = [int(g) for g in np.argsort(rows, kind="stable") if not good[g]]
    total = len(failing)
    while failing:
        group = failing.pop(0)
        if not alive[group]:
            continue
        others = np.flatnonzero(alive)
        others = others[others != group]
        if others.size == 0:
            verdicts = [
                g.check(
                    data.group_counts(Partition.of(np.where(labels >= 0, into[np.maximum(labels, 0)], -1)))
                )
                for g in goal.guarantees
            ]
            broken = next(v for v in verdicts if not v.holds)
            raise GuaranteeNotMet(
                say(
                    "Even all rows in one group do not keep {guarantee} (needed {needed:g} {unit}, found "
                    "{achieved:g}).",
                    guarantee=Sentence(broken.guarantee),
                    needed=broken.needed,
                    unit=broken.unit,
                    achieved=broken.achieved,
                ),
                "No grouping of this table can keep the promise."
                if data.population is None
                else "The cover of all rows does not reach the whole population.",
                "Lower the parameter, or add rows with other values."
                if data.population is None
                else "Lower the parameter, or use --method full-domain, whose top level covers everybody.",
            )
        joint_low = np.minimum(low[others], low[group])
        joint_high = np.maximum(high[others], high[group])
        joint = _cover_loss(data, joint_low, joint_high)
        increase = (
            joint * (rows[others] + rows[group]) - loss[others] * rows[others] - loss[group] * rows[group]
        )
        best = int(np.argmin(increase))
        target = int(others[best])
        low[target], high[target], loss[target] = joint_low[best], joint_high[best], joint[best]
        rows[target] += rows[group]
        alive[group] = False
        into[into == group] = target
        mine = (into[np.maximum(labels, 0)] == target) & (labels >= 0)
        holds = bool(goal.holds_in_parts(data, Partition.of(np.where(mine, 0, -1)))[0])
        if holds and target in failing:
            failing.remove(target)
        elif not holds and target not in failing:
            failing.append(target)
        progress(1 - len(failing) / total, "merging groups that are too small")
    merged = np.where(labels >= 0, into[np.maximum(labels, 0)], -1)
    return Partition.of(merged, partition.centres, data.counts)


def _cover_loss(
    data: EncodedTable, low: npt.NDArray[np.int32], high: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    out = np.zeros(low.shape[0])
    for at, column in enumerate(data.columns):
        out += column.loss(low[:, at], high[:, at])
    return out
