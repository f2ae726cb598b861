"""One split of a table, and two ways to ask what a model learns from a release of it.

All then split: the whole table is anonymized and then split, so that a model is taught and asked with published cells,
as in the sources. On true rows: the table is split, only the training part is anonymized, and the model is asked about
the test part as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.measures.models._model import Model
from velado.measures.models.encoder import Encoder, EncoderSettings, Taught, fit_encoder
from velado.measures.models.quality import IntVector, Predictions, fit_and_predict
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.release.methods import Method

TEST_SHARE = 0.2


@dataclass(frozen=True, repr=False)
class Asked:
    """What a model answered, beside the truth, both as class numbers, and the classes' texts in order.

    >>> guessed = Predictions(np.array([0, 1]), np.eye(2), True, 0.0)
    >>> Asked(np.array([0, 0]), guessed, ("no", "yes")).classes
    ('no', 'yes')
    """

    truth: IntVector
    answers: Predictions
    classes: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class ModelTrial:
    """A table and one split of it, the same for every method and k.

    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35 31 40"), ill=("sensitive", "categorical", "a b a b"))
    >>> ModelTrial(table, "ill", train=np.array([0, 1, 2]), test=np.array([3])).part(np.array([0, 3])).rows
    2
    """

    table: Table
    target: str
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]

    @classmethod
    def of(cls, data: Path, file: str, schema: Schema, target: str) -> ModelTrial:
        """The file below the data folder; a fifth of its rows, the same share of every class, are for the test."""
        # The sources' columns are taken as the sources took them: nothing of this is published.
        signed = schema.with_columns(
            replace(column, identifier="accept", side_door="accept", reason="as in the source")
            for column in schema.columns.values()
        )
        table = read_table(data / file, attach_taxonomies(signed, data), "drop")
        return cls(table, target, *stratified(table.frame.get_column(target), TEST_SHARE, seeded(0, "split")))

    def part(self, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of the table."""
        return self.table.with_frame(self.table.frame[rows])

    def published(self, method: Method, k: int) -> pl.DataFrame:
        """Every row as *method* publishes it, anonymized before any split."""
        return anonymize(self.table, self.table.schema, method, k=k, per="row").aligned

    def taught(self, method: Method, k: int) -> pl.DataFrame:
        """The training part as *method* publishes it, the test part never seen."""
        train = self.part(self.train)
        return anonymize(train, train.schema, method, k=k, per="row").aligned

    def all_then_split(self, published: pl.DataFrame, model: Model) -> Asked:
        """Taught with one part of the *published* rows and asked about the other."""
        return _ask(self._encoder(), published[self.train], published[self.test], model)

    def on_true_rows(
        self, taught: pl.DataFrame | None, model: Model, taught_with: Taught = "ranges"
    ) -> Asked:
        """Taught with a release of the training part, or with its true rows; asked about the true test part."""
        train = self.part(self.train).frame if taught is None else taught
        return _ask(self._encoder(taught_with), train, self.table.frame[self.test], model)

    def _encoder(self, taught_with: Taught = "ranges") -> Encoder:
        return fit_encoder(self.part(self.train), self.target, EncoderSettings(taught_with=taught_with))


def stratified(
    target: pl.Series, share: float, random: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row numbers of a training and a test part, *share* of each class in the test part, in table order.

    >>> train, test = stratified(pl.Series(["a"] * 8 + ["b"] * 2), 0.5, seeded(0))
    >>> train.size, test.size
    (5, 5)
    """
    order = random.permutation(len(target))
    classes = target.rank("dense").to_numpy()[order]
    by_class = order[np.argsort(classes, kind="stable")]
    place = np.concatenate([np.arange(count) / max(count, 1) for count in np.bincount(classes)])
    return np.sort(by_class[place >= share]), np.sort(by_class[place < share])


def _ask(encoder: Encoder, taught: pl.DataFrame, asked: pl.DataFrame, model: Model) -> Asked:
    answers = fit_and_predict(
        model,
        encoder.lessons(taught, seeded(0, "lessons")),
        encoder.labels(taught),
        encoder.features(asked, "whole"),
        len(encoder.classes),
        seed=0,
        # Scaled by what a release still varies in, a true row would lie outside all that was learned from.
        ranges=encoder.ranges,
    )
    return Asked(encoder.labels(asked), answers, encoder.classes)
