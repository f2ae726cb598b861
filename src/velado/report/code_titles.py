"""What the codes in a published table stand for: a table for readers of a page, where a bundled hierarchy has words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from velado.data.encoded import EncodedColumn
from velado.data.hierarchies.titles import titles_for
from velado.report.blocks import Block, Folded, Table
from velado.text import say


def codes_told(columns: Sequence[EncodedColumn], shown: Mapping[str, pl.Series]) -> list[Block]:
    """Each code that is *shown* in the published table with its title, folded; nothing where no code has one.

    >>> from velado.testing.examples import small_release
    >>> codes_told(small_release().facts.release.data.columns, {})
    []
    """
    rows = []
    for column in columns:
        if column.tree is None:
            continue
        title = titles_for(column.tree.labels[: column.tree.leaves])
        values = shown.get(column.name)
        labels = [] if values is None else sorted(map(str, values.unique().drop_nulls().cast(pl.String)))
        rows += [(column.name, label, words) for label in labels if (words := title(label))]
    if not rows:
        return []
    heads = (say("column"), say("code"), say("what it stands for"))
    return [Folded(say("What codes in the table stand for"), (Table("", heads, rows, labels=3),))]
