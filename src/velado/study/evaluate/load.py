"""Material: a study recipe together with its table, checked before anything is computed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import encode
from velado.data.io import read_schema, read_table
from velado.data.keys import owner_key
from velado.data.normal import value_codes
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError, TableError
from velado.measures.models._model import require
from velado.measures.models.encoder import check_target, feature_names, fit_encoder
from velado.measures.models.model_registry import Majority
from velado.measures.models.number_quality import target_numbers
from velado.report.manifest import input_digest
from velado.settings import parse_toml
from velado.study.evaluate.protocols import Split, stratified_split
from velado.study.evaluate.study_settings import StudyRecipe, require_federated
from velado.text import say


@dataclass(frozen=True, repr=False)
class Material:
    """The recipe, the rows that have a target, its classes, and what of it a model may use.

    *fingerprint* is that of the table as it came, under the owner's key that *key* names: it stands on pages that are
    shown and in the ids of cells, and a plain digest of a small table lets whoever reads it test guesses of its rows.
    *dropped* rows had no target; *width* is how many features a row becomes; *alone* classes have too few people: under
    no seed is a model asked about them.

    >>> Material(None, None, ("no", "yes"), ("age",), "ab", "01", width=1).classes
    ('no', 'yes')
    """

    recipe: StudyRecipe
    table: Table
    classes: tuple[str, ...]
    features: tuple[str, ...]
    fingerprint: str
    key: str
    width: int
    dropped: int = 0
    alone: int = 0

    def __repr__(self) -> str:
        return f"Material({self.table.rows} rows, {len(self.classes)} classes, {len(self.features)} features)"

    @property
    def number(self) -> bool:
        """Whether the target is a number, not a class."""
        return self.recipe.number

    @property
    def positive(self) -> int | None:
        """The number of the positive class, where the recipe names one."""
        positive = self.recipe.data.positive
        return None if positive is None else self.classes.index(positive)

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The class number of each row; of a number the tenth of the rows it lies in, so that splits hold all sizes of it."""
        if self.number:
            values = target_numbers(self.table, self.table.frame, self.recipe.data.target)
            edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)[1:-1]))
            return np.searchsorted(edges, values, side="right").astype(np.int64)
        numbers = self.table.text(self.recipe.data.target).replace_strict(
            list(self.classes), list(range(len(self.classes))), return_dtype=pl.Int64
        )
        return numbers.to_numpy().astype(np.int64)

    @cached_property
    def schema_digest(self) -> str:
        """The schema with what its taxonomy files said, as a digest."""
        said = {
            name: column.taxonomy.digest or repr((column.taxonomy.paths, column.taxonomy.tree))
            for name, column in self.table.schema.columns.items()
            if column.taxonomy is not None
        }
        text = json.dumps([self.table.schema.to_dict(), said], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def split(self, seed: int) -> Split:
        """The training and the test part of *seed*; rows of one person stay together."""
        person = self.table.schema.person
        people = None if person is None else value_codes(self.table, person)[0].astype(np.int64)
        return stratified_split(self.labels, self.recipe.analyses.test_share, seed, people)


def load(path: str | Path) -> Material:
    """The study of file *path* with its table, or one clear error. Files are looked for beside the recipe.

    >>> load("nowhere.toml")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'nowhere.toml'. Nothing was read. Check the path and the spelling.
    """
    path = Path(path).absolute()  # "." has no name that an error could show
    recipe = StudyRecipe.from_dict(parse_toml(path, say("The study file")))
    data = recipe.data
    return prepare(recipe, path.parent / data.table, read_schema(path.parent / data.schema))


def prepare(recipe: StudyRecipe, source: Any, schema: Schema) -> Material:
    """The recipe brought together with *source*: target, features and models checked before anything is run.

    >>> recipe = {"data": {"table": "t.csv", "schema": "s.toml", "target": "ill"}, "anonymization": {"methods": ["mdav"]}, "models": {"use": ["knn"]}}
    >>> from velado.testing.examples import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 35 31 40"), ill=("sensitive", "categorical", "a b a b"))
    >>> prepare(StudyRecipe.from_dict(recipe), table.frame, table.schema)
    Material(4 rows, 2 classes, 1 features)
    """
    for model in (*recipe.models.use, Majority()):
        require(model)
    if recipe.federated is not None:
        require_federated(recipe.federated)
    target, positive = recipe.data.target, recipe.data.positive
    table = read_table(source, schema, recipe.data.undeclared)
    check_target(table, target, number=recipe.number)
    key = owner_key()
    fingerprint = input_digest(table, key)
    known = ~(table.is_missing(target) | _not_a_number(table.frame.get_column(target)))
    dropped = int((~known).sum())
    if dropped:
        table = table.with_frame(table.frame.filter(known))
    classes = () if recipe.number else tuple(table.text(target).unique().sort().to_list())
    if positive is not None and recipe.number:
        raise ParameterError(
            "'positive' in [data] names a class, and the target is a number.",
            "Numbers have no positive class.",
            "Leave 'positive' out, or use models that tell classes apart.",
        )
    if positive is not None and positive not in classes:
        raise ParameterError(
            "'positive' in [data] is no class of the target.",
            say("The target '{target}' has {classes} other classes.", target=target, classes=len(classes)),
            "Write one of them exactly as the table has it, or leave 'positive' out.",
        )
    if recipe.anonymization.per == "person" and table.schema.person is None:
        raise ParameterError(
            'per = "person" was asked for, but the schema names no person column.',
            "Which rows belong to one person is not known.",
            "Mark the column with person = true, or leave 'per' out.",
        )
    _check_quasi(table)
    _check_guarantees(recipe, table)
    features = feature_names(table, target, recipe.data.features)
    encoder = fit_encoder(table, target, recipe.models, features, number=recipe.number)
    names = (classes, features, fingerprint, key.fingerprint)
    material = Material(recipe, table, *names, width=len(encoder.names), dropped=dropped)
    # A table that cannot be split is refused here. People with several classes are drawn anew with every seed.
    asked = [material.labels[material.split(seed).test] for seed in recipe.anonymization.seeds]
    if recipe.number:
        return material
    return replace(material, alone=len(classes) - np.unique(np.concatenate(asked)).size)


def _not_a_number(values: pl.Series) -> pl.Series:
    """Where a column of floats says that there is no number: no class either, whatever the schema calls missing."""
    if not values.dtype.is_float():
        return pl.repeat(False, values.len(), eager=True)
    return values.is_nan().fill_null(False)


def _check_quasi(table: Table) -> None:
    """There is something to generalize; what every method would refuse is refused once, before the grid."""
    if not table.schema.quasi:
        raise SchemaError(
            "The schema names no published quasi-identifier.",
            "There is nothing to generalize, so that methods could not be compared.",
            'Give role = "quasi" to columns an attacker may know: age, sex, place, dates.',
        )
    if table.schema.constant != "refuse":
        return
    for column in table.schema.quasi:
        if table.text(column.name).n_unique() == 1:
            raise TableError(
                say("Quasi-identifier '{column}' has the same value in every row.", column=column.name),
                "It tells nobody apart, and every method would refuse the table.",
                'Give it role = "other", or set constant = "allow" in [table] of the schema.',
            )


def _check_guarantees(recipe: StudyRecipe, table: Table) -> None:
    """Every promise can be checked on this table at all: it has the sensitive columns or the population it needs."""
    asked = {repr(one): one for promised in recipe.anonymization.guarantees for one in promised}
    if asked:
        together = encode(table).group_counts(Partition.of(np.zeros(table.rows, dtype=np.int64)))
        for guarantee in asked.values():
            # Whether it holds is for the grid to find out; that it can be asked at all is settled here.
            guarantee.holds_in(together)
