"""Level files: one value a line with its broader values (`value;level1;...;*`), the layout ARX reads and writes.

Both directions are pure; the bytes are read by `velado.data.io`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from velado.data.taxonomy import Taxonomy
from velado.errors import TaxonomyError
from velado.text import say

SEPARATORS = (";", ",", "\t", "|")


def paths_from_levels(
    text: str, column: str = "", separator: str | None = None
) -> tuple[tuple[str, ...], ...]:
    """One path per value, narrowest label first. Without *separator* the one that cuts the first line most is taken.

    Every line has the same number of labels: which level a shorter line leaves out nobody can know.

    >>> paths_from_levels("Viçosa;MG;*\\nSantos;SP;*\\n")
    (('Viçosa', 'MG', '*'), ('Santos', 'SP', '*'))
    """
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        if separator is None and lines:
            separator = max(SEPARATORS, key=lambda s: len(next(csv.reader([lines[0]], delimiter=s))))
        rows = list(csv.reader(lines, delimiter=separator or ";"))
    except csv.Error:
        raise TaxonomyError(
            say("The taxonomy file of column '{column}' is not a regular CSV file.", column=column),
            "A label in it is too long or a quote is never closed.",
            "Correct the file: one value per line, narrowest label first.",
        ) from None
    width = len(rows[0]) if rows else 0
    ragged = next((at for at, row in enumerate(rows, start=1) if len(row) != width), None)
    if ragged is not None:
        raise TaxonomyError(
            say(
                "Line {line} of the taxonomy file of column '{column}' has {count} labels; the first line has {width}.",
                line=ragged,
                column=column,
                count=len(rows[ragged - 1]),
                width=width,
            ),
            "Which level the shorter line leaves out cannot be known.",
            "Give every line the same number of labels; where a level does not apply repeat the narrower label.",
        )
    return tuple(tuple(cell.strip() for cell in row) for row in rows)


def levels_text(tree: Taxonomy | Sequence[Sequence[str]], separator: str = ";") -> str:
    """The text of a level file: a tree with every level up to `*`, a short branch repeating its value; paths as they are.

    >>> from velado.data.taxonomy import from_paths
    >>> levels_text(from_paths([("Viçosa", "MG"), ("Santos", "SP")]))
    'Viçosa;MG;*\\nSantos;SP;*\\n'
    """
    rows: Sequence[Sequence[str]]
    if isinstance(tree, Taxonomy):
        rows = [[tree.labels[node] for node in nodes] for nodes in tree.levels.tolist()]
    else:
        rows = tree
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue()
