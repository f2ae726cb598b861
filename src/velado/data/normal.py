"""One normal form: texts that a reader takes for one value are one value, in every room.

Two texts are one when they are equal after these steps:

1. characters that nobody sees (zero-width and other format characters, soft hyphens, variation selectors) are left out;
2. Unicode's compatibility form NFKC: accents coded either way, full-width letters, non-breaking and other blanks;
3. blanks around a text do not count, and several in a row are one;
4. numbers are numbers: `7`, `07`, `7.0`, `+7` are one, and `7,0` too where the schema says decimal comma. Digits are
   compared as digits and never become a double, so card numbers of any length stay apart. `1e3` is a word, because
   codes are written so, unless the column is declared numeric or holds floats;
5. the case of letters does not count, unless the schema says ``case = "distinct"`` for the column.

For people and sensitive values to take two texts for one is the safe mistake: fewer people and fewer values are counted.
Categories of quasi-identifiers are *published* as one text, the most frequent spelling, because a group is what a reader
sees. All of it is computed on distinct texts: O(distinct) beside the one pass that finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from velado.data.numbers import THOUSANDS
from velado.data.schema import Column
from velado.data.table import Table

if TYPE_CHECKING:
    from velado.data.partition import Int32Array

UNSEEN_POINTS = (
    "AD 34F 600-605 61C 6DD 70F 890-891 8E2 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 "
    "FE00-FE0F FEFF FFA0 FFF0-FFFB 110BD 110CD 13430-1343F 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)
"""What nobody sees, by code points: Unicode's format characters, and what it has programs not show."""
UNSEEN_MEMBERS = "".join("-".join(rf"\x{{{end}}}" for end in run.split("-")) for run in UNSEEN_POINTS.split())
"""The same as the inside of a bracket in a regular expression of Polars."""
UNSEEN = f"[{UNSEEN_MEMBERS}]"
_BLANKS = r"[\s\p{Z}\p{Cc}\x{2800}]+"
_PLAIN = r"[^!-~]"
_WIDE = r"[^\x00-\x7F]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_SHORTEST = r"^(?:0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])$"
_COMMA = r"^[+-]?(?:[0-9]+,?[0-9]*|,[0-9]+)$"
_EXPONENT = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}$"


def tidy_texts(texts: pl.Series) -> pl.Series:
    """Steps 1 to 3: NFKC without unseen characters, outer blanks gone, inner ones single.

    >>> tidy_texts(pl.Series([" São  Paulo\\u200b "])).to_list()
    ['São Paulo']
    """
    return _replaced(texts, _PLAIN, _tidy(pl.col("t")))


def normal_texts(
    texts: pl.Series, *, case: str = "same", decimal: str = ".", exponents: bool = False
) -> pl.Series:
    """The normal form of each text; nulls stay. Hand in distinct texts: the cost is O(texts).

    >>> normal_texts(pl.Series(["07", "7.0", "Rua  A", "rua a"])).to_list()
    ['7', '7', 'RUA A', 'RUA A']
    """
    out = tidy_texts(texts)
    if case != "distinct":
        # First to small letters, because a capital sharp s has no capital of its own; then NFKC again, for letters
        # whose capital is another sign with an accent.
        out = out.str.to_lowercase().str.to_uppercase()
        out = _replaced(out, _WIDE, pl.col("t").str.normalize("NFKC"))
    if decimal == ",":
        out = _replaced(out, THOUSANDS, pl.col("t").str.replace_all(".", "", literal=True))
        out = _replaced(out, _COMMA, pl.col("t").str.replace(",", ".", literal=True))
    if exponents:
        out = _replaced(out, _EXPONENT, pl.col("t").map_batches(_written_out, return_dtype=pl.String))
    return _replaced(out, _NUMBER, _shortest(pl.col("t")), unless=_SHORTEST)


def _replaced(texts: pl.Series, pattern: str, change: pl.Expr, unless: str | None = None) -> pl.Series:
    """The texts that match *pattern* changed, as one expression over them alone: most columns have few or none.

    Those that match *unless* too would stay as they are.
    """
    found = texts.str.contains(pattern)
    if not found.any():
        return texts
    if unless is not None:
        found = found & ~texts.str.contains(unless)
        if not found.any():
            return texts
    found = found.fill_null(False)
    changed = texts.filter(found).alias("t").to_frame().select(change).to_series()
    return texts.clone().scatter(found.arg_true(), changed)  # scatter works in place


def _tidy(text: pl.Expr) -> pl.Expr:
    # Leaving a character out may bring a letter and its accent together, and NFKC may turn one into an unseen one.
    for _ in range(2):
        text = text.str.replace_all(UNSEEN, "").str.normalize("NFKC")
    text = text.str.replace_all(UNSEEN, "").str.replace_all(_BLANKS, " ").str.strip_chars(" ")
    return text.str.replace(r"^\x{2212}", "-")  # the minus of typesetters


def _written_out(numbers: pl.Series) -> pl.Series:
    return pl.Series([format(Decimal(text), "f") for text in numbers.to_list()], dtype=pl.String)


def _shortest(number: pl.Expr) -> pl.Expr:
    body = number.str.strip_chars_start("+-").str.strip_chars_start("0")
    pointed = body.str.contains(".", literal=True)
    body = pl.when(pointed).then(body.str.strip_chars_end("0").str.strip_chars_end(".")).otherwise(body)
    body = pl.when(body.str.starts_with(".") | (body == "")).then("0" + body).otherwise(body)
    return pl.when(number.str.starts_with("-") & (body != "0")).then("-" + body).otherwise(body)


@dataclass(frozen=True, repr=False)
class Spellings:
    """The distinct *texts* of a column, sorted, and the number 1.. of the value each one is; 0 is no value.

    *values* has one text for each number, in order: the most frequent spelling, of equally frequent ones the
    smallest. Without a second spelling anywhere they are the texts themselves.

    >>> Spellings(pl.Series(["F", "f"]), np.array([1, 1], np.int32), pl.Series(["F"])).merged
    1
    """

    texts: pl.Series
    codes: Int32Array
    values: pl.Series

    def __repr__(self) -> str:
        return f"Spellings(texts={len(self.texts)}, values={len(self.values)})"

    @property
    def merged(self) -> int:
        """How many texts are another spelling of a value."""
        return int(np.count_nonzero(self.codes)) - len(self.values)

    def of_rows(self, rows: pl.Series) -> Int32Array:
        """The number of the value in each row; 0 is missing."""
        if not len(self.texts):
            return np.zeros(len(rows), dtype=np.int32)
        coded = rows.replace_strict(self.texts, self.codes, default=0, return_dtype=pl.Int32)
        return coded.fill_null(0).to_numpy().astype(np.int32)


def normal_of(table: Table, column: Column, texts: Sequence[str] | pl.Series) -> pl.Series:
    """The normal form of *texts* of one column, as its declaration and the type of its cells say.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(who=("identifier", "text", "P1 p1"))
    >>> normal_of(table, table.schema.person, ["P1 ", "p1"]).to_list()
    ['P1', 'P1']
    """
    return _normal(table, column, pl.Series(values=texts, dtype=pl.String), column.case)


def _normal(table: Table, column: Column, texts: pl.Series, case: str) -> pl.Series:
    decimal, exponents = _numbers_in(table, column)
    return normal_texts(texts, case=case, decimal=decimal, exponents=exponents)


def _numbers_in(table: Table, column: Column) -> tuple[str, bool]:
    # Numbers of a typed column have a point, whatever the decimal mark of the file is.
    dtype = table.frame.schema.get(column.name, pl.String())
    decimal = "." if dtype.is_numeric() else table.schema.decimal
    return decimal, column.kind == "numeric" or dtype.is_float()


def _no_values(table: Table, column: Column, case: str) -> list[str]:
    """The normal forms that mean no value: of the texts the schema calls missing, and of nothing at all."""
    return list(_missing_forms(table.schema.missing_texts(column.name), case, *_numbers_in(table, column)))


@lru_cache(maxsize=256)
def _missing_forms(missing: tuple[str, ...], case: str, decimal: str, exponents: bool) -> tuple[str, ...]:
    texts = pl.Series([*missing, ""], dtype=pl.String)
    return tuple(normal_texts(texts, case=case, decimal=decimal, exponents=exponents).unique().to_list())


def spellings(table: Table, column: Column, *, blanks: bool = True) -> Spellings:
    """Which texts of a column are one value.

    With *blanks* a text of which nothing is left, or that is another spelling of a missing value, is no value.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(sex=("quasi", "categorical", "F f M F"))
    >>> spellings(table, table.schema.quasi[0]).values.to_list()
    ['F', 'M']
    """
    asked = ("spellings", column.name, column.kind, column.case, blanks)
    return table.once(asked, lambda: _spellings(table, column, blanks))


def _spellings(table: Table, column: Column, blanks: bool) -> Spellings:
    often = distinct_texts(table, column.name)
    texts = often.get_column("text")
    plain = Spellings(texts, np.arange(1, len(texts) + 1, dtype=np.int32), texts)
    if not len(texts) or table.frame.schema[column.name].is_integer():
        return plain  # whole numbers of a typed column have one spelling each
    normal, different = distinct_normal(table, column)
    none = pl.repeat(False, len(texts), eager=True)
    if blanks:
        none = normal.is_in(_no_values(table, column, column.case))
    if different and not none.any():
        return plain
    chosen = (
        often.with_columns(normal.alias("normal"), none.alias("none"))
        .filter(~pl.col("none"))
        .sort(["n", "text"], descending=[True, False])
        .unique("normal", keep="first", maintain_order=True)
        .sort("text")
    )
    codes = np.zeros(len(texts), dtype=np.int32)
    if chosen.height:
        numbers = np.arange(1, chosen.height + 1, dtype=np.int32)
        found = normal.replace_strict(chosen["normal"], numbers, default=0, return_dtype=pl.Int32)
        codes = np.where(none.to_numpy(), 0, found.to_numpy()).astype(np.int32)
    return Spellings(texts, codes, chosen["text"])


def distinct_texts(table: Table, name: str) -> pl.DataFrame:
    """The different texts of a column, sorted, and the rows *n* that have each; blanks are left out.

    >>> from velado.testing.examples import small_table
    >>> distinct_texts(small_table(sex=("quasi", "categorical", "F M F _")), "sex").rows()
    [('F', 2), ('M', 1)]
    """
    return table.of_cells(("distinct", *_cells_of(table, name)), lambda: _distinct(table, name))


def _distinct(table: Table, name: str) -> pl.DataFrame:
    few = table.few_cells(name)
    if few is not None:  # a list is counted faster than texts are sorted
        table = few[0]
    rows = table.text(name).alias("text")
    if table.behind is None:  # texts sort faster than counted texts do
        return rows.drop_nulls().sort().rle().struct.unnest().select(text="value", n="len")
    often = pl.DataFrame({"text": rows, "n": table.behind}).drop_nulls("text").group_by("text").sum()
    return often.sort("text")


def _cells_of(table: Table, name: str) -> tuple[object, ...]:
    # A time is a day where the schema says so; else a text does not depend on the kind of its column.
    timed = isinstance(table.frame.schema[name], pl.Datetime)
    return name, timed and table.schema.columns[name].kind == "date"


def distinct_normal(table: Table, column: Column) -> tuple[pl.Series, bool]:
    """The normal form of each of the `distinct_texts` of a column, and whether no two of them are alike.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(sex=("quasi", "categorical", "F f M"))
    >>> distinct_normal(table, table.schema.quasi[0])[0].to_list()
    ['F', 'M', 'F']
    """
    texts = distinct_texts(table, column.name).get_column("text")
    decimal, exponents = _numbers_in(table, column)
    cells = _cells_of(table, column.name)
    powers = table.of_cells(("powers", *cells), lambda: bool(texts.str.contains("[0-9.,][eE]").any()))

    def made() -> tuple[pl.Series, bool]:
        normal = normal_texts(texts, case=column.case, decimal=decimal, exponents=exponents)
        return normal, normal.n_unique() == len(texts)

    # Only where a power of ten is written does it matter whether they are read.
    return table.of_cells(("normal", *cells, column.case, decimal, exponents and powers), made)


def row_codes(table: Table, column: Column, found: Spellings) -> Int32Array:
    """The number of the value in each row of *table*, whose spellings were *found*; 0 is missing.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(sex=("quasi", "categorical", "F f M _"))
    >>> row_codes(table, table.schema.quasi[0], spellings(table, table.schema.quasi[0]))
    array([1, 1, 2, 0], dtype=int32)
    """
    name = column.name

    def made() -> Int32Array:
        often = distinct_texts(table, name)
        numbers = often.select("text", code=pl.int_range(1, often.height + 1, dtype=pl.Int32))
        rows = table.text(name).alias("text").to_frame()
        codes = rows.join(numbers, on="text", how="left", maintain_order="left").get_column("code")
        return codes.fill_null(0).to_numpy().astype(np.int32, copy=False)

    numbers = table.of_cells(("row codes", *_cells_of(table, name)), made)
    if found.values is found.texts:
        return numbers
    return np.concatenate((np.zeros(1, dtype=np.int32), found.codes))[numbers]


def value_codes(table: Table, column: Column) -> tuple[Int32Array, int]:
    """People or sensitive values as codes 1.. per row, 0 is missing, and how many codes there are.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(who=("identifier", "text", "P1 p1 P2 _"))
    >>> value_codes(table, table.schema.person)
    (array([1, 1, 2, 0], dtype=int32), 3)
    """
    found = spellings(table, column)
    return row_codes(table, column, found), len(found.values) + 1


def person_texts(tables: Sequence[Table]) -> list[pl.Series]:
    """The normal form of the person of each row, table by table: equal texts are one person, null is nobody.

    The case of letters counts only where every table says that it does.

    >>> from velado.testing.examples import small_table
    >>> [texts.to_list() for texts in person_texts([small_table(who=("identifier", "text", "p1 P2"))])]
    [['P1', 'P2']]
    """
    columns = [table.schema.person for table in tables]
    cases = {column.case for column in columns if column is not None}
    case = "distinct" if cases == {"distinct"} else "same"
    out = []
    for table, column in zip(tables, columns, strict=True):
        assert column is not None
        rows = table.text(column.name)
        texts = rows.unique().drop_nulls()
        normal = _normal(table, column, texts, case)
        normal = normal.set(normal.is_in(_no_values(table, column, case)), None)
        out.append(rows.replace_strict(texts, normal, default=None, return_dtype=pl.String))
    return out
