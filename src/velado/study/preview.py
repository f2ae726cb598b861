"""preview(): what a promise would cost, on a sample that is drawn once and said to be one.

For a person who moves a slider and looks. The number that counts is that of the run on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from velado.data.normal import value_codes
from velado.data.schema import Schema
from velado.data.table import Table, table_given
from velado.errors import VeladoError
from velado.randomness import seeded
from velado.release.anonymize import goal_for
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.prepare import Prepared, prepare
from velado.release.run_settings import Guarantees, run_settings
from velado.study.compare import Compared, compared
from velado.text import Sentence, say

SAMPLE_ROWS = 5_000
"""So many rows are regrouped well within a second by most methods."""


@dataclass(frozen=True, repr=False)
class Sample:
    """Some rows of a table of *of* rows: whole people where the schema says who one is, drawn by *seed*.

    >>> from velado.testing.examples import table
    >>> draw_sample(table(age=[20, 21, 30, 31]), rows=2).table.rows
    2
    """

    table: Table
    of: int
    seed: int = 0
    operations: tuple[Operation, ...] = ()
    per: str | None = None

    def __repr__(self) -> str:
        return f"Sample({self.table.rows} of {self.of} rows)"

    @property
    def whole(self) -> bool:
        """Whether it is all rows."""
        return self.table.rows == self.of

    @property
    def stated(self) -> Sentence:
        """What was looked at, as whoever reads a number of it must know."""
        if self.whole:
            return say("All {rows:,} rows were looked at.", rows=self.of)
        return say(
            "On {rows:,} of {of:,} rows, drawn at random with seed {seed}. Among fewer people fewer are alike, so that all "
            "rows mostly lose less than this sample; a side door or a rare value may show on all rows alone.",
            rows=self.table.rows,
            of=self.of,
            seed=self.seed,
        )

    @cached_property
    def prepared(self) -> Prepared:
        """The rows judged and encoded; done once for all goals."""
        return prepare(self.table, operations=self.operations, per=self.per)

    def with_schema(self, schema: Schema) -> Sample:
        """The same rows under other roles."""
        return replace(self, table=self.table.with_schema(schema))


@dataclass(frozen=True)
class Previewed:
    """One method at one k on a sample: *result* as `compare` has it, *highest* and *mean* risk, and what was looked at.

    Risks are those of somebody who knows that a person is in the table and all quasi-identifiers: one in the size of the
    person's group.

    >>> Previewed(5, Compared(method="mdav", loss=0.2, groups=2, smallest=5, highest=0.2), 10, "All rows.").highest
    0.2
    """

    k: int
    result: Compared
    rows: int
    stated: str

    @property
    def highest(self) -> float | None:
        """The largest risk of anybody."""
        return self.result.highest

    @property
    def mean(self) -> float | None:
        """The mean risk of those who are published."""
        return self.result.mean


def draw_sample(
    table: Table,
    rows: int = SAMPLE_ROWS,
    seed: int = 0,
    *,
    operations: Sequence[Operation] = (),
    per: str | None = None,
) -> Sample:
    """About *rows* rows of *table*, the same for the same seed, in their own order; all rows if they are no more.

    Where the schema says who a person is, people are drawn and all their rows taken.

    >>> from velado.testing.examples import table
    >>> ages = table(age=list(range(100)))
    >>> draw_sample(ages, 10).table.frame.equals(draw_sample(ages, 10).table.frame)
    True
    """
    asked = run_settings(seed=seed, operations=tuple(operations), per=per)
    whole = Sample(table_given(table), table.rows, asked.seed, asked.operations, asked.per)
    if table.rows <= rows:
        return whole
    random = seeded(asked.seed, "preview")
    person = table.schema.person
    if person is None:
        chosen = np.sort(random.permutation(table.rows)[:rows])
    else:
        codes, size = value_codes(table, person)
        # Rows without a person are people of their own.
        nobody = codes == 0
        codes = np.where(nobody, size + np.cumsum(nobody), codes)
        order = random.permutation(int(codes.max()) + 1)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        drawn = place[codes]
        # People are taken in the order drawn as long as their rows fit.
        fit = np.cumsum(np.bincount(drawn, minlength=order.size)) <= rows
        chosen = np.flatnonzero(fit[drawn])
    return replace(whole, table=table.with_frame(table.frame[chosen]))


def preview(
    sample: Sample,
    k: int = 5,
    method: Method | type[Method] | str = "mondrian",
    guarantees: Guarantees = (),
    *,
    suppression: float = 0.0,
) -> Previewed:
    """Loss and risk of one goal on the sample. What is refused on all rows is refused here: `result.failed` says why.

    >>> from velado.testing.examples import table
    >>> preview(draw_sample(table(age=[20, 21, 30, 31])), k=2).result.groups
    2
    """
    return preview_many(sample, (k,), (method,), guarantees, suppression=suppression)[0]


def preview_many(
    sample: Sample,
    ks: Sequence[int] = (2, 3, 5, 10, 20),
    methods: Sequence[Method | type[Method] | str] = ("mondrian",),
    guarantees: Guarantees = (),
    *,
    suppression: float = 0.0,
) -> tuple[Previewed, ...]:
    """Each method at each k on the same sample, which is judged and encoded once.

    >>> from velado.testing.examples import table
    >>> [one.k for one in preview_many(draw_sample(table(age=[20, 21, 30, 31])), (2, 4))]
    [2, 4]
    """
    out = []
    for k in ks:
        asked = run_settings(k=k, methods=tuple(methods), guarantees=guarantees, suppression=suppression)
        assert asked.methods is not None and asked.k is not None
        for method in asked.methods:
            try:
                goal = goal_for(sample.prepared, method, asked.k, asked.guarantees, asked.suppression)
                result = compared(sample.prepared, method, goal, sample.seed)
            except VeladoError as error:
                result = Compared(method=method.name, failed=error.what)
            out.append(Previewed(asked.k, result, sample.table.rows, sample.stated))
    return tuple(out)
