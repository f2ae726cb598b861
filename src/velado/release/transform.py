"""transform(): elementary techniques done on a table, and nothing promised of it; what is left of the risk is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.table import Undeclared
from velado.errors import ParameterError
from velado.release.anonymize import carry_out, table_from
from velado.release.goal import Goal, Progress, Promise, silent
from velado.release.methods._method import Takes
from velado.release.operations._operation import Operation
from velado.release.prepare import prepare
from velado.release.recoded import Recoded, as_it_is
from velado.release.release import Release
from velado.release.run_settings import run_settings
from velado.settings import settings
from velado.text import say


@settings
class OperationsAlone:
    """The method of a transformed table: none. Every value is published as its operations left it.

    >>> from velado.testing.examples import shown
    >>> shown(OperationsAlone(), [20, 21])
    ['20', '21']
    """

    name: ClassVar[str] = "operations-alone"
    title: ClassVar[str] = say("Column operations alone")
    promise: ClassVar[Promise] = "measured"
    takes: ClassVar[Takes] = "tuples"
    cost: ClassVar[str] = "O(n)"
    source: ClassVar[str] = say("elementary techniques")

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table as it is."""
        return Recoded(tuple(map(as_it_is, data.columns)), np.ones(data.rows, dtype=bool))


def transform(
    source: Any,
    schema: Schema | str | Path,
    operations: Sequence[Operation],
    *,
    per: Literal["row", "person"] | None = None,
    undeclared: Undeclared = "refuse",
    key: Key | str | Path | None = None,
    keep_order: bool = False,
    progress: Progress = silent,
) -> Release:
    """The table of *source* after *operations*, in their order, as a release of which nothing is promised.

    What holds for every release holds here: identifiers are left out, a column that looks like one and that nobody
    signed for stops the run, and so do copies of a quasi-identifier and people with many rows of whom
    nobody said who they are. There is no crowd of k, only what `velado.measure` finds. Random operations and the order
    of rows are drawn under the owner's *key*: the same table and key give the same release, and no reader of it can
    redo them, as who knows a seed could.

    >>> import polars as pl
    >>> from velado.release.operations import Generalize
    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> transform(pl.DataFrame({"age": [21, 34]}), schema, [Generalize("age", width=10)]).aligned["age"].to_list()
    ['[20..29]', '[30..39]']
    """
    asked = run_settings(operations=operations, per=per, undeclared=undeclared, keep_order=keep_order)
    if not asked.operations:
        raise ParameterError(
            "No operation was named.",
            "The table would be published as it is.",
            "Name at least one, for example --generalize age:10; `velado transform --help` lists them.",
        )
    prepared = prepare(
        table_from(source, schema, asked.undeclared),
        operations=asked.operations,
        per=asked.per,
        key=key,
        keep_order=asked.keep_order,
        promised=False,
    )
    # Rows with a blank that the schema suppresses leave, however many they are: nothing was promised of their number.
    return carry_out(prepared, OperationsAlone(), Goal((), suppression=1.0), progress=progress)
