"""Table -> encoded arrays: parse, order and code every quasi-identifier; code people and sensitive values.

What was published is coded the same way, by what its reader sees, and regrouped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from velado.data import taxonomy as builders
from velado.data.encoded import EncodedColumn as EncodedColumn
from velado.data.encoded import EncodedTable as EncodedTable
from velado.data.encoded import Rounding, count_matches
from velado.data.hierarchies import HIERARCHIES, tree_of
from velado.data.normal import Spellings, normal_of, spellings, value_codes
from velado.data.numbers import parse_and_clamp, parse_numbers
from velado.data.partition import (
    BoolArray,
    FloatArray,
    Int32Array,
    Int64Array,
    IntArray,
    Partition,
    ValueShape,
)
from velado.data.schema import Column
from velado.data.table import Table, table_given
from velado.data.taxonomy import ROOT_LABEL, Taxonomy, from_paths
from velado.errors import TableError, TaxonomyError, VeladoError
from velado.text import say, say_n


def encode(table: Table, population: Table | None = None) -> EncodedTable:
    """The quasi-identifiers, people and sensitive values of *table* as arrays. O(n log n).

    With a *population* (everyone the table was drawn from, the table's own people included) both are coded
    alike, and domains and automatic taxonomies cover both.

    >>> from velado.testing.examples import small_table
    >>> encode(small_table(age=("quasi", "numeric", "31 35 31"))).columns[0].codes
    array([0, 1, 0], dtype=int32)
    """
    table_given(table)
    coded = table if population is None else _stacked(table, population)
    columns = tuple(encode_column(coded, column) for column in table.schema.quasi)
    people_codes = None
    if population is not None:
        people_codes = np.ascontiguousarray(np.stack([c.codes[table.rows :] for c in columns], axis=1))
        columns = tuple(column.rows(slice(table.rows)) for column in columns)
    person = table.schema.person
    people = None if person is None else value_codes(table, person)[0]
    sensitive, shapes = sensitive_values(table)
    return EncodedTable(columns, table.rows, people, sensitive, shapes, people_codes)


def sensitive_values(table: Table) -> tuple[dict[str, tuple[Int32Array, int]], dict[str, ValueShape]]:
    """The values of each sensitive column as codes, by their normal form, and how they lie to one another.

    A column has a shape where its kind or taxonomy says one.

    >>> from velado.testing.examples import small_table
    >>> sensitive_values(small_table(disease=("sensitive", "categorical", "flu Flu cold")))[0]["disease"]
    (array([1, 1, 2], dtype=int32), 3)
    """
    coded, shapes = {}, {}
    for column in table.schema.sensitive:
        found = spellings(table, column)
        coded[column.name] = (found.of_rows(table.text(column.name)), len(found.values) + 1)
        shape = _shape(table, column, found.values)
        if shape is not None:
            shapes[column.name] = shape
    return coded, shapes


def _stacked(table: Table, population: Table) -> Table:
    names = [column.name for column in table.schema.quasi]
    both = [[_written(t, t.frame.get_column(name)) for name in names] for t in (table, population)]
    return table.with_frame(pl.concat([pl.DataFrame(columns) for columns in both]))


def _written(table: Table, series: pl.Series) -> pl.Series:
    # As a file of the table's own kind would have it: numbers of a typed frame get its decimal mark.
    text = series.cast(pl.String)
    return text.str.replace(".", ",", literal=True) if _typed_comma(table, series.dtype) else text


def _typed_comma(table: Table, dtype: pl.DataType) -> bool:
    return table.schema.decimal == "," and dtype.is_numeric()


def _numbers(table: Table, column: Column, values: list[str]) -> FloatArray:
    # The distinct texts of a column as numbers; those of a typed column have a point whatever the file's mark is.
    frame = pl.DataFrame({column.name: pl.Series(values, dtype=pl.String)})
    if _typed_comma(table, table.frame.schema[column.name]):
        table = table.with_schema(replace(table.schema, decimal="."))
    return parse_numbers(table.with_frame(frame), column, np.zeros(len(values), dtype=bool))[0]


def _shape(table: Table, column: Column, values: pl.Series) -> ValueShape | None:
    """How the values of a sensitive column lie to one another: numbers by size, categories by their taxonomy."""
    if not len(values):
        return None
    if column.kind == "numeric" and column.taxonomy is None:
        numbers = _numbers(table, column, values.to_list())
        return ValueShape(order=np.concatenate(([0], np.argsort(np.argsort(numbers, kind="stable")))))
    if column.taxonomy is None:
        return None
    tree = taxonomy_of(table, column, values.to_list())
    codes = _leaf_codes(table, column, tree, values.to_list())
    if -1 in codes:
        raise _uncovered(column, values.to_list(), codes)
    levels = np.vstack((np.full((1, tree.height + 1), -1), tree.levels[codes]))
    return ValueShape(levels=levels)


def _leaf_codes(table: Table, column: Column, tree: Taxonomy, values: list[str]) -> list[int]:
    """The leaf of each text: the one it is written like, else the only one with its normal form; -1 where none."""
    codes = [tree.code_of.get(value, -1) for value in values]
    if -1 not in codes:
        return codes
    leaves = normal_of(table, column, tree.labels[: tree.leaves]).to_list()
    by_normal: dict[str, int] = {}
    for code, normal in enumerate(leaves):
        by_normal[normal] = -1 if normal in by_normal else code  # of two leaves nobody knows which is meant
    odd = [at for at, code in enumerate(codes) if code < 0]
    for at, normal in zip(odd, normal_of(table, column, [values[at] for at in odd]).to_list(), strict=True):
        codes[at] = by_normal.get(normal, -1)
    return codes


@dataclass(frozen=True, repr=False)
class CodedTexts:
    """Texts as *codes*: 0 is missing, code c the text ``texts[c - 1]``; *texts* are distinct and sorted.

    >>> CodedTexts.of(pl.Series(["b", "a", None, "b"])).codes
    array([2, 1, 0, 2], dtype=int32)
    """

    codes: Int32Array
    texts: pl.Series

    @classmethod
    def of(cls, series: pl.Series) -> CodedTexts:
        """The texts of *series*, coded."""
        if isinstance(series.dtype, pl.Enum):
            return cls._of_listed(series, series.dtype.categories)
        values = series.unique().drop_nulls().sort()
        if not len(values):
            return cls(np.zeros(len(series), dtype=np.int32), values)
        if len(values) * 32 <= len(series):  # listed texts are looked up twice as fast where they are few
            codes = series.cast(pl.Enum(values)).to_physical().cast(pl.Int32) + 1
        else:
            numbers = np.arange(1, len(values) + 1, dtype=np.int32)
            codes = series.replace_strict(values, numbers, default=0, return_dtype=pl.Int32)
        return cls(codes.fill_null(0).to_numpy(), values)

    @classmethod
    def _of_listed(cls, series: pl.Series, listed: pl.Series) -> CodedTexts:
        """The same where the texts are *listed*: the list is sorted, and no row is looked up."""
        places = series.to_physical().cast(pl.Int32).fill_null(len(listed)).to_numpy()
        there = np.flatnonzero(np.bincount(places, minlength=len(listed) + 1)[:-1])
        found = listed.gather(there)
        code_of = np.zeros(len(listed) + 1, dtype=np.int32)
        code_of[there[found.arg_sort().to_numpy()]] = np.arange(1, there.size + 1)
        return cls(code_of[places], found.sort())

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.texts) + 1

    @property
    def may_match(self) -> bool:
        """Whether a blank or `*` is among them, which may stand for any text."""
        return self.texts.index_of(ROOT_LABEL) is not None or bool((self.codes == 0).any())


def text_codes(series: pl.Series) -> tuple[Int32Array, int]:
    """Texts as codes 1..; 0 is missing. Equal texts get equal codes; the order has no meaning.

    >>> text_codes(pl.Series(["b", "a", None, "b"]))
    (array([2, 1, 0, 2], dtype=int32), 3)
    """
    coded = CodedTexts.of(series)
    return coded.codes, coded.size


def encode_column(table: Table, column: Column) -> EncodedColumn:
    """One quasi-identifier as ordered codes, with its domain or taxonomy.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(sex=("quasi", "categorical", "F M F"))
    >>> encode_column(table, table.schema.quasi[0]).value_texts
    ['F', 'M']
    """
    few = table.few_cells(column.name)
    if few is not None:
        with suppress(VeladoError):  # said below, with the rows it is true of
            return encode_column(few[0], column).rows(few[1])
    missing = table.is_missing(column.name)
    if bool(missing.all()):
        raise TableError(
            say("Quasi-identifier '{column}' has no value in any row.", column=column.name),
            "A column without values can neither identify nor be generalized.",
            'Set publish = false for it, give it role = "other", or check the file.',
        )
    blank = missing.to_numpy()
    if blank.any() and table.schema.missing_policy(column) == "refuse":
        raise TableError(
            say_n(
                "Quasi-identifier '{column}' is blank in {n:,} row.",
                "Quasi-identifier '{column}' is blank in {n:,} rows.",
                int(blank.sum()),
                column=column.name,
            ),
            "The schema says that blanks in it are refused.",
            'Fill them, or set missing = "value" or missing = "suppress".',
        )
    if column.kind == "numeric" and column.taxonomy is None:
        return _encode_numeric(table, column, blank)
    return _encode_tree(table, column, blank)


def _encode_numeric(table: Table, column: Column, blank: BoolArray) -> EncodedColumn:
    numbers, whole, moved = parse_and_clamp(table, column, blank)
    points, codes = _ranked(numbers[~blank], whole)
    rounding = None if column.round is None else Rounding(column.round, column.bounds)
    low, high = column.bounds or (float(points[0]), float(points[-1]))
    if rounding is not None:
        rounding.check(points, column.name)
        if column.bounds is None:
            # Whoever reads a loss and the published widths can work out the domain: its ends are ends too.
            low, high = (float(end[0]) for end in rounding.outwards(points[:1], points[-1:]))
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
        moved=moved,
        rounding=rounding,
    )


def _ranked(numbers: FloatArray, whole: bool) -> tuple[FloatArray, IntArray]:
    """The distinct numbers, rising, and the rank of each number among them."""
    first, last = float(numbers.min()), float(numbers.max())
    if not whole or last - first > max(1 << 12, 2 * numbers.size):
        return np.unique(numbers, return_inverse=True)
    # Whole numbers within a short range are looked up, not sorted.
    place = (numbers - first).astype(np.int64)
    seen = np.zeros(int(last - first) + 1, dtype=bool)
    seen[place] = True
    return np.flatnonzero(seen) + first, (np.cumsum(seen, dtype=np.int64) - 1)[place]


def _encode_tree(table: Table, column: Column, blank: BoolArray) -> EncodedColumn:
    texts = table.text(column.name)
    found = spellings(table, column, blanks=False)
    stars = int(texts.str.strip_chars().eq(ROOT_LABEL).sum()) if _has_star(found) else 0
    if stars:
        raise TableError(
            say_n(
                "Column '{column}' holds '{root_label}' in {n:,} row.",
                "Column '{column}' holds '{root_label}' in {n:,} rows.",
                stars,
                column=column.name,
                root_label=ROOT_LABEL,
            ),
            say(
                "'{root_label}' is reserved for suppressed cells, so nobody could tell it from one.",
                root_label=ROOT_LABEL,
            ),
            say(
                'Write another text, or list "{root_label}" in missing_values of [table] if it means no '
                "value.",
                root_label=ROOT_LABEL,
            ),
        )
    tree, codes = _placed(table, column, found)
    missing = -1
    if blank.any():
        tree, missing = _with_blank_leaf(tree)
    if len(found.texts):
        coded = texts.replace_strict(found.texts, codes, default=missing, return_dtype=pl.Int32)
        out = coded.fill_null(missing).to_numpy().astype(np.int32)
    else:
        out = np.full(table.rows, missing, dtype=np.int32)
    return EncodedColumn(
        column.name, out, tree.leaves, missing, decimal=table.schema.decimal, tree=tree, case=column.case
    )


def _has_star(found: Spellings) -> bool:
    return bool((found.texts.str.strip_chars() == ROOT_LABEL).any())


def _placed(table: Table, column: Column, found: Spellings) -> tuple[Taxonomy, Int32Array]:
    """The taxonomy of a column, and the leaf of each of its distinct texts.

    A taxonomy made from the values has one leaf for all spellings of a value, named like the most frequent one. One
    that was written by hand names its leaves itself: a text it lists is that leaf, any other spelling the same one.
    """
    spec = column.taxonomy
    by_hand = spec is not None and (spec.paths is not None or spec.tree is not None)
    values = (found.texts if by_hand else found.values).to_list()
    tree = taxonomy_of(table, column, values)
    codes = _leaf_codes(table, column, tree, values) if by_hand else [tree.code_of.get(v, -1) for v in values]
    if -1 in codes:
        raise _uncovered(column, values, codes)
    leaves = np.array(codes, dtype=np.int32)
    return tree, leaves if by_hand else leaves[found.codes - 1]


def refuse_unlisted(table: Table) -> None:
    """Every value of a column that declares `values` is one of them, in any spelling of it; else the rows are counted.

    A blank is no value, and columns that stay behind unread are not looked at.

    >>> from velado.testing.examples import small_table
    >>> refuse_unlisted(small_table(sex=("quasi", "categorical", "F M")))
    """
    for column in table.schema.columns.values():
        if column.values is None or not (column.published or column.role == "sensitive"):
            continue
        texts = table.text(column.name).alias("value").drop_nulls()
        sizes = texts.value_counts(name="rows")
        known = normal_of(table, column, column.values)
        outside = sizes.filter(~normal_of(table, column, sizes["value"]).is_in(known.to_list()))
        if outside.height:
            raise TableError(
                say_n(
                    "Column '{column}' has {n:,} row with a value that its declared values do not list.",
                    "Column '{column}' has {n:,} rows with a value that its declared values do not list.",
                    int(outside["rows"].sum()),
                    column=column.name,
                ),
                "The list is the public domain of the column: what it does not name is not meant to leave.",
                "Add the value to the list, correct the cells, or list texts that mean no value in missing_values.",
            )


def refuse_wrong_kinds(table: Table) -> None:
    """Every published column that leaves as it came holds what its kind says: numbers, days; else the rows are counted.

    Quasi-identifiers are read when they are encoded. Bounds are not asked of a column that is not recoded.

    >>> from velado.testing.examples import small_table
    >>> refuse_wrong_kinds(small_table(age=("quasi", "numeric", "31 35"), pay=("other", "numeric", "10 20.5")))
    """
    for column in table.schema.columns.values():
        if not column.published or column.role == "quasi":
            continue
        if column.kind == "numeric":
            parse_numbers(table, replace(column, bounds=None), table.is_missing(column.name).to_numpy())
        elif column.kind == "date" and not table.frame.schema[column.name].is_temporal():
            _refuse_no_days(table, column)


def _refuse_no_days(table: Table, column: Column) -> None:
    sizes = table.text(column.name).alias("value").drop_nulls().str.strip_chars().value_counts(name="rows")
    quick = sizes["value"].str.to_date(column.format, strict=False).is_null()
    bad = sum(
        rows for text, rows in sizes.filter(quick).iter_rows() if not builders.is_day(text, column.format)
    )
    if bad:
        raise TableError(
            say_n(
                "Column '{column}' is declared a date, but {n:,} row has no date of the form {form}.",
                "Column '{column}' is declared a date, but {n:,} rows have no date of the form {form}.",
                bad,
                column=column.name,
                form=column.format,
            ),
            "What stands there instead was not judged, and would be published as it is.",
            'Set the column\'s `format`, correct the cells, or set kind = "text" or "categorical" for it.',
        )


def spelling_notes(table: Table) -> tuple[str, ...]:
    """One sentence for each column some values of which differ from others only in how they are written.

    People, sensitive values and categories are counted by their normal form. Counts, never a cell.

    >>> from velado.testing.examples import small_table
    >>> spelling_notes(small_table(sex=("quasi", "categorical", "F f M")))[0][:27]
    "'sex': 1 value differs from"
    """
    out = []
    for column in table.schema.columns.values():
        category = column.role == "quasi" and column.publish and _is_category(column)
        if not (column.person or column.role == "sensitive" or category):
            continue
        found = spellings(table, column, blanks=not category)
        merged = found.merged
        if merged and category and column.taxonomy is not None:
            codes = _placed(table, column, found)[1]
            merged = len(found.texts) - int(np.unique(codes).size)
        if merged:
            out.append(
                say_n(
                    "'{column}': {n:,} value differs from another only in case, blanks or how a number is written; "
                    "they are counted as one.",
                    "'{column}': {n:,} values differ from another only in case, blanks or how a number is written; "
                    "they are counted as one.",
                    merged,
                    column=column.name,
                )
            )
    return tuple(out)


def _is_category(column: Column) -> bool:
    return column.kind != "numeric" or column.taxonomy is not None


def _uncovered(column: Column, values: list[str], codes: list[int]) -> TaxonomyError:
    return TaxonomyError(
        say(
            "The taxonomy of '{column}' does not cover {count} of the column's {codes} distinct values.",
            column=column.name,
            count=codes.count(-1),
            codes=len(codes),
        ),
        "A value without a place in the tree cannot be generalized.",
        "Add the missing values to the taxonomy, or correct them in the table (spelling, accents, spaces); "
        "--show-values FILE writes them to a private file.",
        hidden=[value for value, code in zip(values, codes, strict=True) if code == -1],
    )


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


def taxonomy_of(table: Table, column: Column, values: list[str]) -> Taxonomy:
    """The taxonomy of a column's *values* as the schema makes it; where it says nothing, by days or by how values look.

    >>> from velado.testing.examples import small_table
    >>> ages = small_table(age=("quasi", "categorical", "31 31 35"))
    >>> taxonomy_of(ages, ages.schema.quasi[0], ["31", "35"]).leaves
    2
    """
    spec, name = column.taxonomy, column.name
    typed = table.frame.schema.get(name) in (pl.Date, pl.Datetime)
    form = "%Y-%m-%d" if typed else column.format
    if spec is None:
        dated = column.kind == "date"
        return builders.dates(values, form=form, column=name) if dated else builders.automatic(values, name)
    if spec.paths is not None:
        return from_paths(spec.paths, name)
    if spec.tree is not None:
        return builders.from_tree(spec.tree, name)
    if spec.widths is not None:
        numbers = _numbers(table, column, values).tolist()
        return builders.intervals(
            values, numbers, spec.widths, spec.origin or 0.0, name, table.schema.decimal
        )
    if spec.keep is not None:
        return builders.prefix(values, spec.keep, "*" if spec.mask is None else spec.mask, name)
    if spec.builder == "dates":
        levels = builders.DATE_LEVELS[1:] if spec.levels is None else spec.levels
        return builders.dates(values, levels, form if typed else spec.format or form, name)
    if spec.builder == "flat":
        return builders.flat(values, name)
    if spec.builder == "auto":
        return builders.automatic(values, name)
    bundled = next((one for one in HIERARCHIES if one.name == spec.builder), None)
    if bundled is not None:
        return tree_of(bundled, values, name)
    raise TaxonomyError(
        say("The taxonomy file of '{column}' was not read.", column=column.name),
        "The schema names a file but was made without reading it.",
        "Read the schema with velado.read_schema so that its files are read too.",
    )


# Regrouping a published table by what its reader sees: the visible values, and both readings of blanks.


@dataclass(frozen=True, repr=False)
class VisibleTexts:
    """What a reader sees in some columns of a published table, coded once for all who group its rows.

    >>> seen = VisibleTexts.of(pl.DataFrame({"sex": ["F", "M", "*"]}), ["sex"])
    >>> seen.groups.sizes, seen.wildcard_sizes()
    (array([1, 1, 1]), array([2, 2, 3]))
    """

    rows: int
    columns: Mapping[str, CodedTexts]
    weights: Int64Array | None = None

    @classmethod
    def of(cls, frame: pl.DataFrame, names: Sequence[str], weights: Int64Array | None = None) -> VisibleTexts:
        """The columns *names* of *frame*, whose rows stand for *weights* rows each."""
        coded = {name: CodedTexts.of(_as_listed_or_text(frame.get_column(name))) for name in names}
        return cls(frame.height, coded, weights)

    @property
    def codes(self) -> list[Int32Array]:
        """Per column, equal visible texts as equal codes; code 0 is a blank."""
        return [column.codes for column in self.columns.values()]

    @property
    def sizes(self) -> list[int]:
        """Per column, how many codes there are."""
        return [column.size for column in self.columns.values()]

    @cached_property
    def groups(self) -> Partition:
        """Rows that show the same texts form a group; a blank is a value of its own."""
        if not self.columns:
            return Partition(np.zeros(self.rows, dtype=np.int32), 1 if self.rows else 0, weights=self.weights)
        return Partition.by_codes(self.codes, self.sizes, self.weights)

    def wildcard_sizes(self) -> Int64Array:
        """For each row, how many rows could be the same person when blanks and `*` match anything.

        Two rows agree when every column is equal or blank (or `*`) in at least one of them. Exact: distinct
        visible tuples are split by their pattern of blanks, and each pair of patterns is matched on the columns
        both show. O(P G) for P patterns and G distinct tuples, never n x n.
        """
        if not self.rows:
            return np.zeros(0, dtype=np.int64)
        if not any(column.may_match for column in self.columns.values()):
            return self.groups.sizes[self.groups.labels]
        order, starts = self.groups.members()
        example = order[starts]
        shown = []
        for column in self.columns.values():
            star = column.texts.index_of(ROOT_LABEL)
            codes = column.codes[example]
            shown.append(codes if star is None else np.where(codes == star + 1, 0, codes))
        # Texts that differ only in `*` and a blank are one tuple now.
        merged = Partition.by_codes(shown, self.sizes, self.groups.sizes)
        order, starts = merged.members()
        tuples = np.stack([codes[order[starts]] for codes in shown], axis=1).astype(np.int32)
        patterns, pattern_of = np.unique(tuples == 0, axis=0, return_inverse=True)
        if len(patterns) == 1 and not patterns.any():
            return self.groups.sizes[self.groups.labels]
        pattern_of = pattern_of.reshape(-1)
        by_pattern = np.argsort(pattern_of, kind="stable")
        begins = np.concatenate(([0], np.cumsum(np.bincount(pattern_of, minlength=len(patterns)))))
        out = np.empty(merged.count, dtype=np.int64)
        out[by_pattern] = count_matches(
            np.ascontiguousarray(tuples[by_pattern]),
            merged.sizes[by_pattern],
            patterns,
            begins.astype(np.int64),
        )
        return out[merged.labels][self.groups.labels]


def _as_listed_or_text(series: pl.Series) -> pl.Series:
    return series if isinstance(series.dtype, pl.Enum) else series.cast(pl.String)


def visible_groups(frame: pl.DataFrame, names: Sequence[str]) -> Partition:
    """Rows whose columns *names* show the same texts form a group; a blank is a value of its own.

    >>> visible_groups(pl.DataFrame({"sex": ["F", "M", "F"]}), ["sex"]).sizes
    array([2, 1])
    """
    return VisibleTexts.of(frame, names).groups


def wildcard_sizes(frame: pl.DataFrame, names: Sequence[str]) -> Int64Array:
    """For each row, how many rows could be the same person when blanks and `*` match anything.

    >>> wildcard_sizes(pl.DataFrame({"sex": ["F", "M", "*"]}), ["sex"])
    array([2, 2, 3])
    """
    return VisibleTexts.of(frame, names).wildcard_sizes()
