"""Texts that a spreadsheet program would run: found, counted and escaped by one rule, in cells and in headers.

A text is one where `=`, `+`, `-` or `@` (full-width and small forms too) opens it, or opens a piece of it after a
separator or a line break: Excel splits a file at the separator of the reader's country, whatever the file was written
with, so `a;=1+1` in a file of commas is a formula in Brazil. Blanks, control and invisible characters before the sign do
not help. Numbers, lists and intervals of numbers, and dashes that stand for nothing are no formulas.

The source of the list is OWASP's page on CSV injection; invisible characters are added because programs drop them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import polars as pl

from velado.data.normal import UNSEEN_MEMBERS
from velado.errors import OutputError
from velado.text import say_n

Formulas = Literal["keep", "escape", "refuse"]

_SIGN = r"[=+\-@\x{2212}\x{FE62}\x{FE63}\x{FE66}\x{FE6B}\x{FF0B}\x{FF0D}\x{FF1D}\x{FF20}]"
# White space, control and braille blanks, and what nobody sees.
_UNSEEN = rf"\s\p{{Cc}}\x{{2800}}{UNSEEN_MEMBERS}"
# A leading tab, return or line feed is itself dropped by some programs, and what follows it is read afresh.
_OPENS = rf"^(?:[\t\r\n]|[{_UNSEEN}]*{_SIGN})"
# A quote does not protect here: to a reader with another separator it stands in the middle of a cell.
_INSIDE = rf'([,;\t\r\n][{_UNSEEN}"]*)({_SIGN})'

_NUMBER = r"[+\-\x{2212}]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][+\-]?\d+)?%?"
_HARMLESS = rf"^[\s\[({{]*{_NUMBER}(?:(?:[\s,;]+|\.\.){_NUMBER})*[\s\])}}]*$|^[\s+\-\x{{2212}}]*$"


def count_formulas(frame: pl.DataFrame) -> int:
    """How many headers and text cells a spreadsheet program would run as a formula.

    >>> count_formulas(pl.DataFrame({"note": ["=1+1", "-5", "a;@x"]}))
    2
    """
    texts = _text_columns(frame)
    cells = sum(_risky_cells(frame.get_column(name)) for name in texts)
    return int(cells) + len(escaped_names(frame.columns))


def formula_cells(texts: pl.Series) -> pl.Series:
    """For each text whether a spreadsheet program would run it as a formula.

    >>> formula_cells(pl.Series(["=1+1", "-5", None])).to_list()
    [True, False, False]
    """
    return texts.alias("t").to_frame().select(_risky(pl.col("t")).fill_null(False)).to_series()


def refuse_formulas(frame: pl.DataFrame) -> None:
    """Nothing, if no header and no text cell begins like a formula; else an error with their number.

    >>> refuse_formulas(pl.DataFrame({"note": ["plain", "-5"]}))
    """
    count = count_formulas(frame)
    if count:
        raise OutputError(
            say_n(
                "{n:,} cell or column name begins like a spreadsheet formula.",
                "{n:,} cells or column names begin like a spreadsheet formula.",
                count,
            ),
            "A spreadsheet program would run them when the file is opened.",
            "Use --formulas escape to put an apostrophe before them, or --formulas keep.",
        )


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with an apostrophe before every sign that would open a formula; all else is as it was.

    The apostrophe stands at the start of the cell, and before the sign of a piece inside it. A second escape
    changes nothing. Categories that are touched become text.

    >>> escape_formulas(pl.DataFrame({"note": ["=1+1", "-5"]})).rows()
    [("'=1+1",), ('-5',)]
    """
    texts = _text_columns(frame)
    risky = [name for name in texts if _risky_cells(frame.get_column(name))]
    safe = frame.with_columns(_escaped(pl.col(name).cast(pl.String)).alias(name) for name in risky)
    return safe.rename(escaped_names(frame.columns))


def escaped_names(names: Sequence[str]) -> dict[str, str]:
    """What each column name that opens like a formula is called in the file; other names are not in it.

    >>> escaped_names(["=age", "sex"])
    {'=age': "'=age"}
    """
    frame = pl.DataFrame({"name": pl.Series(names, dtype=pl.String)})
    changed = frame.filter(_risky(pl.col("name"))).with_columns(_escaped(pl.col("name")).alias("escaped"))
    taken, out = set(names), {}
    for name, escaped in changed.iter_rows():
        while escaped in taken:  # two columns of one name cannot be told apart
            escaped = "'" + escaped
        taken.add(escaped)
        out[name] = escaped
    return out


def bare_names(headers: Iterable[str], declared: Sequence[str]) -> dict[str, str]:
    """Which *headers* of a file are *declared* names that were escaped: from the header to the name.

    A header that is itself declared stands for itself.

    >>> bare_names(["'=age", "sex"], ["=age", "sex"])
    {"'=age": '=age'}
    """
    found = {escaped: name for name, escaped in escaped_names(declared).items()}
    headers = list(headers)
    return {header: found[header] for header in headers if header in found and found[header] not in headers}


def _text_columns(frame: pl.DataFrame) -> list[str]:
    kinds = (pl.String, pl.Categorical, pl.Enum)
    return [name for name, dtype in frame.schema.items() if isinstance(dtype, kinds)]


def _risky(text: pl.Expr) -> pl.Expr:
    """The one rule: true where the text would run."""
    return (text.str.contains(_OPENS) | text.str.contains(_INSIDE)) & ~text.str.contains(_HARMLESS)


def _risky_cells(texts: pl.Series) -> int:
    """How many of the texts would run; each distinct one is looked at once."""
    distinct = texts.unique().drop_nulls().cast(pl.String)
    risky = distinct.filter(distinct.to_frame("text").select(_risky(pl.col("text"))).to_series())
    return int(texts.cast(pl.String).is_in(risky.implode()).sum()) if risky.len() else 0


def _escaped(text: pl.Expr) -> pl.Expr:
    inside = text.str.replace_all(_INSIDE, "${1}'${2}")
    whole = pl.when(text.str.contains(_OPENS)).then("'" + inside).otherwise(inside)
    return pl.when(_risky(text)).then(whole).otherwise(text)
