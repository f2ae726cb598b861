"""One encoder for releases and true rows alike, so that a model trained on the one can be asked about the other.

What a cell states is read from its text alone: `[20..29]` is an interval, a taxonomy label the run of leaves below it,
`*` the whole domain, a blank no value (a value of its own where the fitted rows had blanks). Whatever stood in for a
person's true value (a centroid, a mean, a most common value) is read like any other text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn, encode_column
from velado.data.published_column import PublishedColumn, label_nodes, read_texts
from velado.data.schema import Column
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import ParameterError, SchemaError, TableError
from velado.settings import Setting, nearest, settings
from velado.text import say, say_n

FloatMatrix = npt.NDArray[np.float32]
Intervals = Literal["midpoint", "bounds"]
Nodes = Literal["shares", "multi-hot", "ordinal"]
Unknown = Literal["refuse", "whole"]
Taught = Literal["ranges", "drawn"]


@settings(section="models")
class EncoderSettings:
    """How published texts become numbers.

    *interval*: a number or interval is one feature, its "midpoint", or two, its "bounds". *taxonomy*: a label is a
    number per leaf of its tree, 1 below the label ("multi-hot") or 1 divided by the leaves below it ("shares": the
    expected one-hot vector of somebody of whom only the label is known), or the middle of its run of leaves
    ("ordinal"; its first and last leaf with "bounds"). A tree with more than *widest* leaves is always ordinal.

    *taught_with*: a model is taught with the "ranges" of a release as they are, or each range is first "drawn": one value
    from it at random stands in its place. True rows hold values, not ranges. Taught with wide ranges alone a model has
    seen nothing like them, and may be right less often than by always saying the commoner class; drawn rows look like true
    ones. Nothing but the release is used.

    >>> EncoderSettings(taxonomy="ordinal").widest
    256
    """

    interval: Annotated[
        Intervals, Setting("an interval as its midpoint or its bounds: `[20..30]` is 25, or 20 and 30")
    ] = "midpoint"
    taxonomy: Annotated[
        Nodes,
        Setting("a label as a share of each value below it, as each of them, or as its place in the tree"),
    ] = "shares"
    widest: Annotated[int, Setting("a taxonomy with more values than this is always ordinal", ge=2)] = 256
    taught_with: Annotated[
        Taught,
        Setting("models learn from the ranges of a release, or from one value drawn out of each"),
    ] = "ranges"


@dataclass(frozen=True, repr=False)
class Ranges:
    """What each feature can be at least, and how far it reaches from there: bounds and trees say so, no release does.

    A release hardly varies in a column it generalized. Scaled by that little spread, the plain value of a true row lies
    far outside everything a model has seen, and models that measure distances answer with the majority. Scaled by what
    is possible, a true row lies among the others. *columns* counts the columns that the features stand for.

    >>> Ranges(np.zeros(1), np.array([50.0]), 1).unit(np.array([[25.0]], dtype=np.float32))
    array([[0.5]], dtype=float32)
    """

    low: npt.NDArray[np.float64]
    reach: npt.NDArray[np.float64]
    columns: int

    def __repr__(self) -> str:
        return f"Ranges({self.low.size} features of {self.columns} columns)"

    def unit(self, features: FloatMatrix) -> FloatMatrix:
        """*features* with every one from 0 to 1 as far as its range was known. O(rows x features)."""
        return np.asarray((features - self.low) / self.reach, dtype=np.float32)


@dataclass(frozen=True, repr=False)
class Encoder:
    """Published columns -> features, and the target's texts -> class numbers. Fixed once made; shared by all.

    *columns* were fitted on the rows given to `fit_encoder` together with the schema's taxonomies and bounds;
    *classes* are the texts of the target in order, and belong to the owner like every value of the table.

    >>> from velado.testing.examples import four_people
    >>> fit_encoder(four_people(), "ill")
    Encoder(1 columns, 1 features, 2 classes)
    """

    columns: tuple[EncodedColumn, ...]
    target: str
    classes: tuple[str, ...]
    settings: EncoderSettings
    missing_values: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return (
            f"Encoder({len(self.columns)} columns, {len(self.names)} features, {len(self.classes)} classes)"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """One name per feature: column, and what of it. No cell value: leaves are numbered."""
        return tuple(name for column in self.columns for name in self._names(column))

    def features(self, frame: pl.DataFrame, unknown: Unknown = "refuse") -> FloatMatrix:
        """The rows of *frame* as a matrix, rows x features. O(rows x features), one parse per distinct text.

        A label that the encoder has never seen is an error, or with "whole" it says nothing about the row: true
        rows may hold a category that no training row has, a release may not.
        """
        self._check(frame)
        parts = [self._block(column, frame.get_column(column.name), unknown) for column in self.columns]
        return np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=np.float32)

    def lessons(self, frame: pl.DataFrame, random: np.random.Generator) -> FloatMatrix:
        """The rows of a release as a model is taught with them: their features, or those of values drawn from each range.

        Every value of a range is as likely as another, and each cell is drawn by itself. O(rows x features).
        """
        if self.settings.taught_with == "ranges":
            return self.features(frame)
        self._check(frame)
        parts = [self._drawn(column, frame.get_column(column.name), random) for column in self.columns]
        return np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=np.float32)

    def labels(self, frame: pl.DataFrame) -> npt.NDArray[np.int64]:
        """The class number of each row; a row without one, or with an unknown one, is an error."""
        texts = frame.get_column(self.target).cast(pl.String)
        numbers = texts.replace_strict(
            list(self.classes), list(range(len(self.classes))), default=None, return_dtype=pl.Int64
        )
        bad = numbers.null_count()
        if bad:
            raise TableError(
                say_n(
                    "{n} row has no class of the target '{target}', or one the encoder does not know.",
                    "{n} rows have no class of the target '{target}', or one the encoder does not know.",
                    bad,
                    target=self.target,
                ),
                "Such rows can neither teach nor test.",
                "Drop rows without a target, or fit the encoder on rows that hold every class.",
            )
        return numbers.to_numpy().astype(np.int64)

    @property
    def ranges(self) -> Ranges:
        """The range of every feature: 0 to 1 for leaves and flags, the domain for numbers and places in a tree."""
        spans = [span for column in self.columns for span in self._spans(column)]
        low, high = np.array(spans, dtype=np.float64).T
        return Ranges(low, np.where(high > low, high - low, 1.0), len(self.columns))

    def _check(self, frame: pl.DataFrame) -> None:
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            raise TableError(
                say("The rows lack columns the model was trained on: {names}.", names=", ".join(absent[:5])),
                "A feature that is missing cannot be guessed.",
                "Publish the column, or leave it out of the features of the study.",
            )

    def _spans(self, column: EncodedColumn) -> list[tuple[float, float]]:
        names = self._names(column)
        if self._style(column) in ("shares", "multi-hot"):
            return [(0.0, 1.0)] * len(names)
        if column.tree is not None:
            domain = (0.0, float(column.size - 1 - (column.missing >= 0)))
        else:
            assert column.points is not None
            real = column.numbers
            # Declared bounds reach around the values; where there are none the values are the domain.
            centre = float(real[0] + real[-1]) / 2
            half = max(float(column.span), float(real[-1] - real[0])) / 2
            domain = (centre - half, centre + half)
        return [(0.0, 1.0) if name.endswith(":blank") else domain for name in names]

    def _style(self, column: EncodedColumn) -> str:
        if column.tree is None:
            return self.settings.interval
        if self.settings.taxonomy == "ordinal" or column.tree.leaves > self.settings.widest:
            return "ordinal"
        return self.settings.taxonomy

    def _names(self, column: EncodedColumn) -> list[str]:
        style = self._style(column)
        if style in ("shares", "multi-hot"):
            return [f"{column.name}#{leaf}" for leaf in range(column.size)]
        ends = ["low", "high"] if self.settings.interval == "bounds" else ["middle"]
        blank = ["blank"] if column.missing >= 0 else []
        return [f"{column.name}:{part}" for part in (*ends, *blank)]

    def _block(self, column: EncodedColumn, series: pl.Series, unknown: Unknown) -> npt.NDArray[np.float64]:
        if column.tree is not None and unknown == "whole":
            texts = series.cast(pl.String)
            distinct = texts.unique().drop_nulls().to_list()
            nodes = zip(distinct, label_nodes(column, distinct), strict=True)
            strange = [
                text for text, node in nodes if node < 0 and text not in self.missing_values[column.name]
            ]
            series = texts.set(texts.is_in(strange).fill_null(False), ROOT_LABEL)
        read = read_texts(column, series, self.missing_values[column.name])
        return np.asarray(self._table(column, read)[read.codes], dtype=np.float64)

    def _drawn(
        self, column: EncodedColumn, series: pl.Series, random: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """As if every row had published one value out of what it states."""
        read = read_texts(column, series, self.missing_values[column.name])
        at = random.random(read.codes.size)
        low, high = read.low[read.codes], read.high[read.codes]
        leaf = (low + np.floor(at * (high - low + 1))).astype(np.int32)
        lower, upper = read.lower[read.codes], read.upper[read.codes]
        value = lower + at * (upper - lower)
        return self._table(column, replace(read, low=leaf, high=leaf, lower=value, upper=value))

    def _table(self, column: EncodedColumn, read: PublishedColumn) -> npt.NDArray[np.float64]:
        """The features of each thing that was read."""
        style = self._style(column)
        return (
            _leaves(column, read, style) if style in ("shares", "multi-hot") else self._places(column, read)
        )

    def _places(self, column: EncodedColumn, read: PublishedColumn) -> npt.NDArray[np.float64]:
        """Middle, or low and high, of what each text states; a blank stands in the middle of the domain."""
        if column.tree is not None:
            low, high = read.low.astype(np.float64), read.high.astype(np.float64)
            blank = (read.low == column.missing) & (read.high == column.missing)
            most = column.size - 1 - (column.missing >= 0)
            low, high = np.where(blank, 0.0, low), np.where(blank, most, np.minimum(high, most))
            middle = (low + high) / 2
        else:
            assert column.points is not None
            blank = np.isnan(read.middle)
            real = column.numbers
            centre = float(real[0] + real[-1]) / 2
            middle = np.where(blank, centre, read.middle)
            low = np.where(blank, centre - column.span / 2, read.lower)
            high = np.where(blank, centre + column.span / 2, read.upper)
        ends = [low, high] if self.settings.interval == "bounds" else [middle]
        return np.stack([*ends, *([blank.astype(np.float64)] if column.missing >= 0 else [])], axis=1)


def _leaves(column: EncodedColumn, read: PublishedColumn, style: str) -> npt.NDArray[np.float64]:
    leaves = np.arange(column.size)
    below = (leaves >= read.low[:, None]) & (leaves <= read.high[:, None])
    if style == "multi-hot":
        return below.astype(np.float64)
    return np.asarray(below / np.maximum(below.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def fit_encoder(
    table: Table,
    target: str,
    how: EncoderSettings | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    *,
    number: bool = False,
) -> Encoder:
    """The encoder for *table*'s published columns, made from its schema and these rows and from nothing else.

    Taxonomies, declared values and bounds are public and come from the schema; only where it is silent do the
    values of *table* (the training part) decide. *features* default to every published column but free text and
    the target; *classes* to the texts the target has here. Where the target is a *number*, there are none.

    >>> from velado.testing.examples import four_people
    >>> fit_encoder(four_people(), "ill").names
    ('age:middle',)
    """
    check_target(table, target, number=number)
    columns = [table.schema.columns[name] for name in feature_names(table, target, features)]
    if number:
        classes = ()
    elif classes is None:
        classes = table.text(target).drop_nulls().unique().sort().to_list()
    fitted = tuple(_fitted(table, column) for column in columns)
    missing = {column.name: table.schema.missing_texts(column.name) for column in fitted}
    return Encoder(fitted, target, tuple(classes), how or EncoderSettings(), missing)


def _fitted(table: Table, column: Column) -> EncodedColumn:
    if column.values is not None and column.taxonomy is None and column.kind == "categorical":
        # The declared list is public, so it stands for the rows: a value nobody in the training part has keeps its place.
        listed = pl.Series(column.name, list(column.values), dtype=pl.String)
        seen = table.text(column.name).drop_nulls().unique()
        both = pl.concat([listed, seen.rename(column.name)])
        blank = pl.Series(column.name, [None], dtype=pl.String)
        if bool(table.is_missing(column.name).any()):
            both = pl.concat([both, blank])
        return encode_column(table.with_frame(pl.DataFrame([both])), column)
    return encode_column(table, column)


def feature_names(table: Table, target: str, wanted: Sequence[str] | None = None) -> tuple[str, ...]:
    """The columns a model may use: published, no free text, not the target; those of *wanted*, where given.

    >>> from velado.testing.examples import four_people
    >>> feature_names(four_people(), "ill")
    ('age',)
    """
    usable = [
        column.name
        for column in table.schema.columns.values()
        if column.published and column.name != target and (column.kind != "text" or column.role == "quasi")
    ]
    usable = [name for name in usable if not bool(table.is_missing(name).all())]
    if wanted is None:
        chosen = usable
    else:
        odd = [name for name in wanted if name not in usable]
        if odd:
            raise SchemaError(
                say("'{odd}' cannot be a feature.", odd=odd[0]),
                "It is the target, free text, empty, not published, or not in the table.",
                say("Choose among {usable}.", usable=", ".join(usable)),
            )
        chosen = list(dict.fromkeys(wanted))
    if not chosen:
        raise SchemaError(
            "No column is left that a model could learn from.",
            "Every column but the target is free text, empty, or not published.",
            "Publish a column, or name another target.",
        )
    return tuple(chosen)


def check_target(table: Table, target: str, *, number: bool = False) -> None:
    """The target is there, is published as it is, and has at least two classes or is a *number*; or an error says what is wrong.

    >>> from velado.testing.examples import four_people
    >>> check_target(four_people(), "ill")
    """
    columns = table.schema.columns
    if target not in columns:
        raise SchemaError(
            say("The table has no target column '{target}'.", target=target),
            "Without it there is nothing to learn.",
            nearest(target, columns) or say("Name one of the table's columns."),
        )
    column = columns[target]
    if column.role == "quasi" or not column.published:
        raise SchemaError(
            say("The target '{target}' is a quasi-identifier.", target=target)
            if column.role == "quasi"
            else say("The target '{target}' is not published.", target=target),
            "A release blurs it or leaves it out, so that no model could be taught from the release.",
            'Give it role = "sensitive" or "other" and publish = true, or choose another target.',
        )
    counts = table.text(target).drop_nulls().n_unique()
    if number and column.kind != "numeric":
        raise SchemaError(
            say("The target '{target}' is not declared as a number.", target=target),
            "The models of the study answer with numbers.",
            'Set kind = "numeric" for it in the schema, or use models that tell classes apart.',
        )
    if counts < 2:
        raise TableError(
            say_n(
                "The target '{target}' has {n} class.",
                "The target '{target}' has {n} classes.",
                counts,
                target=target,
            ),
            "A model that always says the same is never wrong, so nothing can be compared.",
            "Choose another target, or check the file.",
        )
    if counts > MOST_CLASSES and not number:
        raise ParameterError(
            say(
                "The target '{target}' has {counts} distinct values; at most {most_classes} classes are "
                "compared.",
                target=target,
                counts=counts,
                most_classes=MOST_CLASSES,
            ),
            "It looks like a quantity or an identifier, and these models tell classes apart.",
            "For a quantity use models of numbers (linear-regression, regression-forest); else choose another target.",
        )


MOST_CLASSES = 50
"""More classes than this are taken for a quantity or an identifier."""
