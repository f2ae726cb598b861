"""Mask: all but the first or last characters of each value covered."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import polars as pl

from velado.data.schema import Kind, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, keep_missing, with_cells
from velado.settings import Setting, settings
from velado.text import say


@settings
class Mask:
    """Each value keeps *keep* characters of its *side*; every other character is *fill*.

    With keep 5 on the left, `36570-000` becomes `36570****`: its length still shows. Of a value of at most
    *keep* characters one is covered all the same, so that none leaves whole; a lone `*`, which would mean a
    suppressed cell, is doubled. Blanks stay blank. Afterwards the column is no number or date any more; its
    taxonomy shortens what is left of the prefix one character at a time, and is flat for the right side. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(Mask("x", keep=2), ["36570", "36"])
    ['36***', '3*']
    """

    name: ClassVar[str] = "mask"
    title: ClassVar[str] = say("Cover all but the first characters of each value.")
    typed: ClassVar[str] = "COLUMN:CHARACTERS"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("keep", "keep")
    column: ColumnName
    keep: Annotated[
        int, Setting("characters that stay readable", ge=1, why=say("To keep nothing use suppress."))
    ] = 1
    side: Annotated[Literal["left", "right"], Setting("which end stays readable")] = "left"
    fill: Annotated[
        str,
        Setting(
            "the character that covers the others",
            test=lambda text: len(text) == 1,
            takes=say("one character"),
            example='"*"',
        ),
    ] = "*"

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the column masked; *random* is not used."""
        column = changeable(table, self.name, self.column)
        text, length = pl.col("text"), pl.col("text").str.len_chars().cast(pl.Int64)
        # No value leaves whole: of a short one at least one character is covered.
        kept = pl.min_horizontal(pl.lit(self.keep, pl.Int64), length - 1).clip(0)
        first = kept if self.side == "left" else length - kept
        parts = [text.str.slice(0, first), text.str.slice(first, length)]
        covered = 1 if self.side == "left" else 0
        parts[covered] = parts[covered].str.replace_all("(?s).", self.fill)
        cells = pl.DataFrame({"text": table.text(self.column)}).select(parts[0] + parts[1]).to_series()
        cells = cells.replace(ROOT_LABEL, 2 * ROOT_LABEL)
        shorter = list(range(self.keep - 1, 0, -1)) if self.side == "left" else []
        spec = TaxonomySpec("prefix", keep=tuple(shorter)) if shorter else TaxonomySpec("flat")
        kind: Kind = "text" if column.kind == "text" else "categorical"
        masked = replace(column, kind=kind, bounds=None, clamp=False, taxonomy=spec)
        cells = keep_missing(table, self.column, cells.cast(pl.String))
        return with_cells(table, masked, cells)
