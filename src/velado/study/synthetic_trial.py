"""What a synthetic table is worth beside k-anonymous ones of the same rows: pairs of columns, models, and who can be found in it.

Rows are split first. Everything is made anew from the part to learn from, at the same spend, and compared with true rows of the part
held out. All of it reads true rows without noise: it is for the owner alone, never differentially private, and never paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.encode import encode
from velado.data.published_column import read_texts
from velado.data.table import Table
from velado.errors import MissingExtra, VeladoError
from velado.measures.models.encoder import Encoder, EncoderSettings, fit_encoder
from velado.measures.models.model_registry import model_named
from velado.measures.models.quality import fit_and_predict, quality
from velado.measures.risk.membership import membership
from velado.measures.utility.two_way import two_way
from velado.query.budget import Budget
from velado.query.synthetic.axes import Axis, axes_of
from velado.query.synthetic.synthesize import Method, Wanted, unpaid
from velado.query.unit import Unit
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.report.synthetic_tried import Trial, Tried
from velado.text import Sentence, say

HELD_OUT = 0.3
CROWDS = (5, 25, 100, 400)
MODELS = ("logistic-regression", "decision-tree")
ANONYMIZER = "mondrian"
Codes = NDArray[np.int32]


def try_synthetic(
    table: Table, asked: Budget, unit: Unit, wanted: Wanted, target: str | None = None, seed: int = 0
) -> Trial:
    """The synthetic table, the microaggregated one and k-anonymous ones beside the true rows; *table* is not altered.

    *target* is what models are to tell; by default the only sensitive column that has declared values. All rows of a unit
    are on one side of the split.
    """
    axes = axes_of(table.schema, unit, wanted.columns, wanted.bins)
    random = seeded(seed, "synthetic trial")
    out = _held_out(table, unit, random)
    lesson, exam = table.with_frame(table.frame.filter(~out)), table.frame.filter(out)
    target = target or _target(table, axes)
    features = [axis.column for axis in axes if axis.column != target]
    encoder, reason = _encoder(lesson, target, features)
    true, others = _codes(lesson.frame, axes, table), _codes(exam, axes, table)
    sizes = [axis.declared + 1 for axis in axes]
    ground = _Ground(true, others, sizes, None if encoder is None else (encoder, exam, seed))
    tables = [ground.judged("original", say("the true rows"), say("none"), lesson.frame, true)]
    own: Method = "auto" if wanted.method == "microaggregate" else wanted.method
    promise = say(
        "differential privacy, {measure} {spend}", measure=asked.measure, spend=f"{float(asked.total):g}"
    )
    for name, method, title in (
        ("synthetic", own, say("synthetic")),
        ("microaggregate", "microaggregate", say("microaggregated with noise")),
    ):
        how = replace(wanted, method=method, seed=seed)
        try:
            # Not on the table's account: what is tried stays with the owner, and the ledger pays for what leaves.
            frame = unpaid(lesson, axes, how, asked, unit)
        except VeladoError as error:
            tables.append(_failed(name, title, promise, error))
            continue
        tables.append(ground.judged(name, title, promise, frame, _codes(frame, axes, table)))
    tables += [_crowd(k, lesson, axes, ground, random) for k in CROWDS if k * 2 <= lesson.rows]
    return Trial(
        tables=tuple(tables),
        target=None if encoder is None else target,
        rows=lesson.rows,
        held_out=exam.height,
        no_models=reason,
    )


def _held_out(table: Table, unit: Unit, random: np.random.Generator) -> pl.Series:
    """Which rows are held out: about three in ten units, whole."""
    if unit.column is None:
        return pl.Series(random.random(table.rows) < HELD_OUT)
    owners = (
        table.frame.get_column(unit.column)
        .cast(pl.String)
        .rank("dense")
        .fill_null(0)
        .to_numpy()
        .astype(np.int64)
    )
    chosen = random.random(int(owners.max(initial=0)) + 1) < HELD_OUT
    return pl.Series(chosen[owners])


def _target(table: Table, axes: Sequence[Axis]) -> str | None:
    known = {axis.column for axis in axes if axis.grid is None and axis.declared > 1}
    found = [column.name for column in table.schema.sensitive if column.name in known]
    return found[0] if len(found) == 1 else None


def _encoder(lesson: Table, target: str | None, features: Sequence[str]) -> tuple[Encoder | None, str]:
    if target is None:
        return None, say(
            "No target was named, and the schema does not have exactly one sensitive column with declared values."
        )
    if not features:
        return None, say("There is no other column to learn from.")
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return None, say("scikit-learn is not installed (velado[ml]).")
    try:
        return fit_encoder(lesson, target, EncoderSettings(), features), ""
    except VeladoError as error:
        return None, error.what


def _codes(frame: pl.DataFrame, axes: Sequence[Axis], table: Table) -> list[Codes]:
    return [axis.codes(frame.get_column(axis.column), table.schema.missing_values) for axis in axes]


@dataclass(frozen=True, repr=False)
class _Ground:
    """What every table is held against: cells of the rows that taught and of those held out, and what models are asked."""

    true: list[Codes]
    others: list[Codes]
    sizes: list[int]
    lessons: tuple[Encoder, pl.DataFrame, int] | None

    def judged(
        self, name: str, title: Sentence, promise: Sentence, frame: pl.DataFrame, shown: list[Codes]
    ) -> Tried:
        """What a table is worth; *shown* are its cells."""
        # True rows are compared with those held out: so far apart are two samples of the same people.
        against = self.others if name == "original" else shown
        return Tried(
            name=name,
            title=title,
            promise=promise,
            fidelity=two_way(self.true, against, self.sizes),
            areas={} if self.lessons is None else _areas(frame, *self.lessons),
            attack=membership(self.true, self.others, shown, seeded(0, "membership", name)),
        )


def _areas(frame: pl.DataFrame, encoder: Encoder, exam: pl.DataFrame, seed: int) -> dict[str, float | None]:
    """The area under the curve of each model, taught with *frame* and asked about true rows."""
    known = list(encoder.classes)
    taught = frame.filter(pl.col(encoder.target).cast(pl.String).is_in(known))
    asked = exam.filter(pl.col(encoder.target).cast(pl.String).is_in(known))
    out: dict[str, float | None] = {}
    try:
        features = encoder.lessons(taught, seeded(seed, "study", "lessons"))
        labels, truth = encoder.labels(taught), encoder.labels(asked)
        tested = encoder.features(asked, "whole")
    except VeladoError:
        return dict.fromkeys(MODELS, None)
    for name in MODELS:
        try:
            answers = fit_and_predict(
                model_named(name)(), features, labels, tested, len(encoder.classes), seed, encoder.ranges
            )
            out[name] = quality(truth, answers).auc
        except (VeladoError, MissingExtra):
            out[name] = None
    return out


def _failed(name: str, title: Sentence, promise: Sentence, error: VeladoError) -> Tried:
    return Tried(
        name=name, title=title, promise=promise, fidelity=None, areas={}, attack=None, failed=error.what
    )


def _crowd(
    k: int,
    lesson: Table,
    axes: Sequence[Axis],
    ground: _Ground,
    random: np.random.Generator,
) -> Tried:
    """A k-anonymous table of the same rows; for its pairs and its attack every published range becomes one of its values, by lot."""
    name, title = f"k={k}", say("k-anonymous, k = {k}", k=k)
    promise = say("groups of at least {k}", k=k)
    try:
        lesson = _declared(lesson, axes)
        release = anonymize(lesson, lesson.schema, ANONYMIZER, k=k)
        drawn = _one_value_each(release.aligned, lesson, axes, random)
    except VeladoError as error:
        return _failed(name, title, promise, error)
    shown = _codes(drawn, axes, lesson)
    return ground.judged(name, title, promise, release.aligned, shown)


def _declared(lesson: Table, axes: Sequence[Axis]) -> Table:
    """The rows as every synthetic table sees them: what a column does not declare is a blank, or its row is left out; numbers stop at their bounds."""
    frame, kept = lesson.frame, np.ones(lesson.rows, dtype=bool)
    for axis, codes in zip(axes, _codes(frame, axes, lesson), strict=True):
        undeclared = codes == axis.declared
        column = frame.get_column(axis.column)
        if axis.grid is not None and column.dtype == pl.String:
            column = axis.moved(column, lesson.schema.missing_values)
        frame = frame.with_columns(column.set(pl.Series(undeclared), None))
        if not axis.blanks:
            kept &= ~undeclared
    return lesson.with_frame(frame.filter(pl.Series(kept)))


def _one_value_each(
    frame: pl.DataFrame, lesson: Table, axes: Sequence[Axis], random: np.random.Generator
) -> pl.DataFrame:
    """Each generalized cell as one of the values that it stands for, all alike."""
    encoded = {column.name: column for column in encode(lesson).columns}
    out = []
    for axis in axes:
        series, column = frame.get_column(axis.column), encoded.get(axis.column)
        if column is None:
            out.append(series.cast(pl.String))
            continue
        read = read_texts(column, series, lesson.schema.missing_values)
        at = random.random(read.codes.size)
        if axis.grid is not None and column.points is not None:
            lower, upper = read.lower[read.codes], read.upper[read.codes]
            step = float(axis.grid.step)
            value = np.floor((lower + at * (upper - lower + step)) / step) * step
            out.append(pl.Series(axis.column, np.minimum(value, upper)))
            continue
        low, high = read.low[read.codes], read.high[read.codes]
        leaf = (low + np.floor(at * (high - low + 1))).astype(np.int64)
        every = np.arange(column.size)
        texts = pl.Series(axis.column, column.label(every, every), dtype=pl.String)
        out.append(texts.gather(pl.Series(leaf).cast(pl.UInt32)))
    return pl.DataFrame(out)
