"""ZipPrefix: the first three digits of United States ZIP codes, those of few people as 000."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import polars as pl

from velado.data.normal import distinct_texts
from velado.data.schema import TaxonomySpec
from velado.data.table import Table
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, keep_missing, with_cells
from velado.settings import settings
from velado.text import say

FEW_PEOPLE = frozenset(
    [
        "036",
        "059",
        "063",
        "102",
        "203",
        "556",
        "692",
        "790",
        "821",
        "823",
        "830",
        "831",
        "878",
        "879",
        "884",
        "890",
        "893",
    ]
)
"""Prefixes with 20,000 people or fewer in the census of 2000, as the guidance on 45 CFR 164.514(b) lists them."""
HIDDEN = "000"


@settings
class ZipPrefix:
    """Each ZIP code is its first three digits, or 000 where these hold 20,000 people or fewer (census of 2000).

    What is no ZIP code of five or nine digits is 000 too. Blanks stay blank. Afterwards the column is categorical;
    its taxonomy drops a digit at a time, and 000 has no broader value. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(ZipPrefix("x"), ["90210", "03601", "02139-4307", "n/k"])
    ['902', '000', '021', '000']
    """

    name: ClassVar[str] = "zip-prefix"
    title: ClassVar[str] = say("Publish three digits of US ZIP codes, areas of few people as 000.")
    typed: ClassVar[str] = "COLUMN"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("", "")
    column: ColumnName

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with prefixes in the column; *random* is not used."""
        column = changeable(table, self.name, self.column)
        texts = distinct_texts(table, self.column).get_column("text")
        prefix = texts.str.strip_chars().str.extract(r"^(\d{3})(?:\d{2}(?:[- ]?\d{4})?)?$").fill_null(HIDDEN)
        shown = [HIDDEN if one in FEW_PEOPLE else one for one in prefix.to_list()]
        paths = tuple(
            (one,) if one == HIDDEN else (one, f"{one[:2]}*", f"{one[0]}**") for one in sorted({*shown})
        )
        if not paths:
            return table
        cells = table.text(self.column).replace_strict(texts, shown, default=None, return_dtype=pl.String)
        made = replace(
            column,
            kind="categorical",
            bounds=None,
            clamp=False,
            values=None,
            taxonomy=TaxonomySpec("levels", paths=paths),
        )
        return with_cells(table, made, keep_missing(table, self.column, cells))
