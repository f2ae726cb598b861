"""Whose row is whose in PostgreSQL: the normal form of a unit's text, as far as the server can compute it.

From version 13 on, in a UTF-8 database, the server does all of it but for letters whose capital its locale does not
know (a C locale knows the ASCII ones only). What it cannot do is looked at once, when the table is opened: where two of
its units are one under velado's own normal form, the table is refused, for one person would count as two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from velado.data.normal import normal_texts
from velado.data.number_text import THOUSANDS
from velado.errors import EngineError
from velado.query.engines.layout import BLANKS

# Format and other unseen characters by their code points, as the server's regular expressions name them.
_UNSEEN = (
    r"[\u00AD\u034F\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u115F\u1160\u17B4\u17B5\u180B-\u180F"
    r"\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFFB\U000110BD\U000110CD"
    r"\U00013430-\U0001343F\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0000-\U000E0FFF]+"
)
_BLANK = r"[\u0001-\u0020\u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u2800\u3000]+"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_COMMA = r"^[+-]?([0-9]+,?[0-9]*|,[0-9]+)$"
_LONGEST = (
    1000  # digits that are read as one number; nobody has a longer one, and the server could not cast all
)
_CAPABLE = "SELECT current_setting('server_version_num')::int8 >= 130000 AND pg_catalog.getdatabaseencoding() = 'UTF8'"

Ask = Callable[[str, Sequence[Any]], Iterable[Sequence[Any]]]


@dataclass(frozen=True)
class Normal:
    """How a server writes the normal form: *capable* of NFKC, *fold* where case does not count, the *decimal* mark."""

    capable: bool
    fold: bool = True
    decimal: str = "."

    def python(self, texts: Sequence[str]) -> list[str]:
        """The same in velado itself, which the server's must agree with."""
        case = "same" if self.fold else "distinct"
        return normal_texts(pl.Series(texts, dtype=pl.String), case=case, decimal=self.decimal).to_list()

    def tidy(self, name: str) -> str:
        """An expression: the text of column *name* without unseen characters and without blanks around it."""
        # The server refuses regular expressions under a collation that calls different texts equal.
        text = f'({name}::text COLLATE "C")'
        if not self.capable:
            return f"btrim({text}, '{BLANKS}')"
        for _ in range(2):
            text = f"normalize(regexp_replace({text}, '{_UNSEEN}', '', 'g'), NFKC)"
        return (
            f"btrim(regexp_replace(regexp_replace({text}, '{_UNSEEN}', '', 'g'), '{_BLANK}', ' ', 'g'), ' ')"
        )

    def sql(self, name: str) -> str:
        """An expression: the normal form of the text of column *name*."""
        text = self.tidy(name)
        if self.fold:
            # ASCII first and without a locale: a Turkish one has another capital for the letter i.
            text = f'upper(lower(upper({text} COLLATE "C") COLLATE "default"))'
            text = f"normalize({text}, NFKC)" if self.capable else text
        if not self.capable:
            return text
        if self.decimal == ",":
            text = (
                f"(SELECT CASE WHEN t ~ '{THOUSANDS}' THEN replace(replace(t, '.', ''), ',', '.')"
                f" WHEN t ~ '{_COMMA}' THEN replace(t, ',', '.') ELSE t END FROM (SELECT {text} AS t OFFSET 0) AS c)"
            )
        return (
            f"(SELECT CASE WHEN t ~ '{_NUMBER}' AND length(t) <= {_LONGEST} THEN trim_scale(t::numeric)::text"
            f" ELSE t END FROM (SELECT {text} AS t OFFSET 0) AS n)"
        )


def is_capable(ask: Ask) -> bool:
    """Whether the server knows NFKC: version 13 or later, and a database in UTF-8."""
    return bool(next(iter(ask(_CAPABLE, [])))[0])


def refuse_split_units(
    ask: Ask, spelling: Normal, statement: str, parameters: list[Any], column: str
) -> None:
    """Nothing, or EngineError where units the server tells apart are one by velado's own normal form.

    *statement* has the column `unit`, the server's normal form of each row's unit. Only texts the server may have got
    wrong come here: those that are not plain ASCII, or all where it is not capable.
    """
    odd = "octet_length(unit) <> char_length(unit)" if spelling.capable else "unit IS NOT NULL"
    distinct = f"SELECT DISTINCT unit FROM ({statement}) AS units WHERE"
    found = [str(row[0]) for row in ask(f"{distinct} {odd}", parameters)]
    own = spelling.python(found)
    changed = [after for before, after in zip(found, own, strict=True) if before != after]
    split = len(set(own)) < len(found)
    if changed and not split:
        listed = f"unit = ANY(${len(parameters) + 1}::text[])"
        split = bool(list(ask(f"{distinct} {listed} LIMIT 1", [*parameters, changed])))
    if split:
        raise EngineError(
            f"Values of '{column}' that are spelled differently mean one unit, and this server cannot tell that they do.",
            "One person would count as two, and move an answer further than the noise hides.",
            "Write each unit one way, use a UTF-8 database of PostgreSQL 13 or later, or query the table from a file.",
        )
