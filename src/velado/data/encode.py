"""Table -> encoded arrays: every quasi-identifier as ordered integer codes, and what a range of codes costs.

Numbers are coded by rank among their distinct values, categories by the depth-first number of their leaf.
Either way the *cover* of a group is the pair (smallest code, largest code), and two array look-ups turn a
cover into its published label and its loss. A missing value is the last code: alone it is published as a
blank, together with anything else only `*` covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data import taxonomy_builders as builders
from velado.data.numbers import number_text, parse_numbers
from velado.data.partition import GroupCounts, IntArray, Partition
from velado.data.schema import Column
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL, Taxonomy, from_paths
from velado.errors import TableError, TaxonomyError

CellValue = str | None


@dataclass(frozen=True, repr=False)
class EncodedColumn:
    """One quasi-identifier as ordered codes.

    *codes* has one entry per row, 0..size-1. A numeric column has *points*, the number of each code, and
    *span*, the width of its domain (declared bounds, else the observed range); a taxonomy column has *tree*.
    *missing* is the code of "no value", or -1 when there is none.
    """

    name: str
    codes: npt.NDArray[np.int32]
    size: int
    missing: int = -1
    points: npt.NDArray[np.float64] | None = None
    span: float = 0.0
    whole: bool = False
    decimal: str = "."
    tree: Taxonomy | None = None

    def __repr__(self) -> str:
        kind = "numeric" if self.tree is None else "taxonomy"
        return f"EncodedColumn({self.name!r}, {kind}, rows={self.codes.size}, size={self.size})"

    @property
    def is_numeric(self) -> bool:
        """True for a numeric column, False for one with a taxonomy."""
        return self.tree is None

    @cached_property
    def positions(self) -> npt.NDArray[np.float64]:
        """Where each code lies on a line of length 1 (its domain), for distances and widths.

        A missing number lies one domain width beyond the largest value: far from everything.
        """
        if self.points is None:
            return np.arange(self.size, dtype=np.float64) / max(self.size - 1, 1)
        scale = self.span if self.span > 0 else 1.0
        out = (self.points - self.points[0]) / scale
        if self.missing >= 0:
            out[self.missing] = (out[self.missing - 1] if self.missing > 0 else 0.0) + 1.0
        return np.asarray(out, dtype=np.float64)

    def loss(self, low: IntArray, high: IntArray) -> npt.NDArray[np.float64]:
        """Normalized certainty penalty of publishing the cover of codes *low*..*high*, elementwise.

        Numbers: (highest - lowest value) / domain width. Taxonomies: (leaves under the lowest common
        ancestor - 1) / (leaves - 1). A cover that joins a missing value with others loses everything.
        """
        low = np.asarray(low)
        high = np.asarray(high)
        if self.tree is not None:
            return self.tree.loss(self.tree.common_ancestor(low, high))
        assert self.points is not None
        width = (self.points[high] - self.points[low]) / (self.span if self.span > 0 else 1.0)
        if self.missing >= 0:
            width = np.where(high == self.missing, np.where(low == self.missing, 0.0, 1.0), width)
        return np.asarray(np.clip(width, 0.0, 1.0), dtype=np.float64)

    def label(self, low: IntArray, high: IntArray) -> list[CellValue]:
        """What the cover of codes *low*..*high* is published as: `[20..29]`, a taxonomy label, `*`, or None."""
        low = np.asarray(low)
        high = np.asarray(high)
        if self.tree is not None:
            nodes = self.tree.common_ancestor(low, high)
            out: list[CellValue] = [self.tree.labels[node] for node in nodes.tolist()]
            if self.missing >= 0:
                for at in np.flatnonzero(nodes == self.missing):
                    out[at] = None
            return out
        # Only the numbers that are shown are written out: a column may have a million distinct ones.
        assert self.points is not None
        shown, at = np.unique(np.concatenate((low, high)), return_inverse=True)
        texts = [self._text(code) for code in shown.tolist()]
        result: list[CellValue] = []
        for least, most in zip(at[: low.size].tolist(), at[low.size :].tolist(), strict=True):
            if least == most:
                result.append(texts[least])
            elif texts[most] is None:
                result.append(ROOT_LABEL)
            else:
                result.append(f"[{texts[least]}..{texts[most]}]")
        return result

    def _text(self, code: int) -> CellValue:
        if code == self.missing:
            return None
        assert self.points is not None
        return number_text(float(self.points[code]), self.whole, self.decimal)

    @cached_property
    def value_texts(self) -> list[CellValue]:
        """The published text of each single code; None for a missing value."""
        if self.tree is None:
            return [self._text(code) for code in range(self.size)]
        texts: list[CellValue] = list(self.tree.labels[: self.tree.leaves])
        if self.missing >= 0:
            texts[self.missing] = None
        return texts


@dataclass(frozen=True, repr=False)
class EncodedTable:
    """All that methods see of a table: encoded quasi-identifiers, person codes, sensitive codes.

    *sensitive* maps a column name to (codes per row, number of codes); code 0 of each is "no value".
    """

    columns: tuple[EncodedColumn, ...]
    rows: int
    people: npt.NDArray[np.int32] | None = None
    sensitive: Mapping[str, tuple[npt.NDArray[np.int32], int]] | None = None

    def __repr__(self) -> str:
        return f"EncodedTable(rows={self.rows}, columns={[c.name for c in self.columns]})"

    @cached_property
    def matrix(self) -> npt.NDArray[np.int32]:
        """Codes as one row-major matrix, rows x columns."""
        return np.ascontiguousarray(np.stack([column.codes for column in self.columns], axis=1))

    @cached_property
    def totals(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """How often each sensitive value occurs in the whole table."""
        return {
            name: np.bincount(codes, minlength=size).astype(np.int64)
            for name, (codes, size) in (self.sensitive or {}).items()
        }

    def counts(self, partition: Partition) -> GroupCounts:
        """What a guarantee may see of *partition*."""
        return GroupCounts.of(partition, self.people, self.sensitive, self.totals)

    def subset(self, rows: IntArray) -> EncodedTable:
        """The same columns for some rows only; codes, domains and trees stay those of the whole."""
        from dataclasses import replace

        columns = tuple(replace(column, codes=column.codes[rows]) for column in self.columns)
        sensitive = {name: (codes[rows], size) for name, (codes, size) in (self.sensitive or {}).items()}
        people = None if self.people is None else self.people[rows]
        return EncodedTable(columns, int(np.asarray(rows).size), people, sensitive)


def encode(table: Table) -> EncodedTable:
    """The quasi-identifiers, people and sensitive values of *table* as arrays. O(n log n)."""
    columns = tuple(encode_column(table, column) for column in table.schema.quasi)
    person = table.schema.person
    people = None if person is None else text_codes(table.text(person.name))[0]
    sensitive = {column.name: text_codes(table.text(column.name)) for column in table.schema.sensitive}
    return EncodedTable(columns, table.rows, people, sensitive)


def text_codes(series: pl.Series) -> tuple[npt.NDArray[np.int32], int]:
    """Texts as codes 1..; 0 is missing. Equal texts get equal codes; the order has no meaning."""
    values = series.unique().drop_nulls().sort()
    codes = (
        series.replace_strict(
            values, np.arange(1, len(values) + 1, dtype=np.int32), default=0, return_dtype=pl.Int32
        )
        if len(values)
        else None
    )
    array = (
        np.zeros(len(series), dtype=np.int32)
        if codes is None
        else codes.fill_null(0).to_numpy().astype(np.int32)
    )
    return array, len(values) + 1


def encode_column(table: Table, column: Column) -> EncodedColumn:
    """One quasi-identifier as ordered codes, with its domain or taxonomy."""
    missing = table.is_missing(column.name)
    if bool(missing.all()):
        raise TableError(
            f"Quasi-identifier '{column.name}' has no value in any row.",
            "A column without values can neither identify nor be generalized.",
            'Set publish = false for it, give it role = "other", or check the file.',
        )
    blank = missing.to_numpy()
    if blank.any() and table.schema.missing_policy(column) == "refuse":
        raise TableError(
            f"Quasi-identifier '{column.name}' is blank in {int(blank.sum())} row(s).",
            "The schema says that blanks in it are refused.",
            'Fill them, or set missing = "value" or missing = "suppress".',
        )
    if column.kind == "numeric" and column.taxonomy is None:
        return _encode_numeric(table, column, blank)
    return _encode_tree(table, column, blank)


def _encode_numeric(table: Table, column: Column, blank: npt.NDArray[np.bool_]) -> EncodedColumn:
    numbers, whole = parse_numbers(table, column, blank)
    points, codes = np.unique(numbers[~blank], return_inverse=True)
    low, high = column.bounds or (float(points[0]), float(points[-1]))
    out = np.empty(numbers.size, dtype=np.int32)
    out[~blank] = codes
    missing = -1
    if blank.any():
        missing = int(points.size)
        out[blank] = missing
        points = np.append(points, points[-1] + max(high - low, 1.0))
    return EncodedColumn(
        column.name,
        out,
        int(points.size),
        missing,
        points=points,
        span=high - low,
        whole=whole,
        decimal=table.schema.decimal,
    )


def _encode_tree(table: Table, column: Column, blank: npt.NDArray[np.bool_]) -> EncodedColumn:
    texts = table.text(column.name)
    distinct = texts.unique().drop_nulls().sort()
    tree = _taxonomy(table, column, distinct.to_list())
    lookup = tree.code_of
    codes = [lookup.get(value, -1) for value in distinct.to_list()]
    uncovered = codes.count(-1)
    if uncovered:
        raise TaxonomyError(
            f"The taxonomy of '{column.name}' does not cover {uncovered} of the column's {len(codes)} distinct values.",
            "A value without a place in the tree cannot be generalized.",
            "Add the missing values to the taxonomy, or correct them in the table (spelling, accents, spaces).",
        )
    missing = -1
    if blank.any():
        tree, missing = _with_blank_leaf(tree)
    if len(distinct):
        coded = texts.replace_strict(
            distinct, np.array(codes, dtype=np.int32), default=missing, return_dtype=pl.Int32
        )
        out = coded.fill_null(missing).to_numpy().astype(np.int32)
    else:
        out = np.full(table.rows, missing, dtype=np.int32)
    return EncodedColumn(column.name, out, tree.leaves, missing, tree=tree)


def _with_blank_leaf(tree: Taxonomy) -> tuple[Taxonomy, int]:
    # "No value" becomes one more leaf directly below the root, after all others, so that only the root
    # covers it together with a true value. Inner nodes shift by one.
    code = tree.leaves
    shifted = np.where(tree.parent >= code, tree.parent + 1, tree.parent).astype(np.int32)
    root = tree.root + 1
    parent = np.insert(shifted, code, root)
    first = np.insert(tree.first, code, code).astype(np.int32)
    last = np.insert(tree.last, code, code).astype(np.int32)
    last[root] = code
    labels = (*tree.labels[:code], "", *tree.labels[code:])
    return Taxonomy(labels, parent.astype(np.int32), first, last, tree.leaves + 1), code


def _taxonomy(table: Table, column: Column, values: list[str]) -> Taxonomy:
    spec = column.taxonomy
    if spec is None:
        if column.kind == "date":
            return builders.dates(values, form=column.format, column=column.name)
        return builders.automatic(values, column.name)
    options = dict(spec.options)
    if spec.paths is not None:
        return from_paths(spec.paths, column.name)
    if spec.tree is not None:
        return builders.from_tree(spec.tree, column.name)
    if spec.builder == "intervals":
        blank = np.zeros(len(values), dtype=bool)
        frame = pl.DataFrame({column.name: pl.Series(values, dtype=pl.String)})
        numbers, _ = parse_numbers(table.with_frame(frame), column, blank)
        return builders.intervals(
            values, numbers.tolist(), options["widths"], float(options.get("origin", 0)), column.name
        )
    if spec.builder == "prefix":
        return builders.prefix(values, options["keep"], str(options.get("mask", "*")), column.name)
    if spec.builder == "dates":
        levels = options.get("levels", list(builders.DATE_LEVELS[1:]))
        return builders.dates(values, levels, str(options.get("format", column.format)), column.name)
    if spec.builder == "flat":
        return builders.flat(values, column.name)
    if spec.builder == "auto":
        return builders.automatic(values, column.name)
    raise TaxonomyError(
        f"The taxonomy file of '{column.name}' was not read.",
        "The schema names a file but was made without reading it.",
        "Read the schema with velado.read_schema so that its files are read too.",
    )
