"""Terms: what all clients share before they train - one schema, one encoder, one list of classes - and their digest.

The encoder is made from what the schema declares (bounds, values, taxonomies) and never from a client's rows: every
client gets the same columns in the same order, and nobody learns a value from an encoder. The trees that quasi-identifiers
are generalized along are fixed too, so that a label which one client publishes means the same at every other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn, encode_column
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import Taxonomy, from_tree
from velado.errors import ParameterError, SchemaError
from velado.learning.flower._logistic import FeatureScaling, scaling_of
from velado.learning.flower.aggregations import AGGREGATIONS
from velado.learning.flower.federation import AUTO, Federation
from velado.learning.regression.job import Party
from velado.measures.models.encoder import Encoder, EncoderSettings
from velado.release.methods import METHODS
from velado.text import listed, say

# The curvature has about half the square of this many figures, four megabytes of each client in every round.
_WIDEST = 1000


@dataclass(frozen=True, kw_only=True)
class FeatureLayout:
    """Which column of the table each feature stands for, what its public bounds are, and which columns clients train on as they are.

    A *flag* is 0 or 1 in a row that is not generalized: a leaf of a taxonomy, or a blank. A column is not *raw* where every client's release hides
    its values in groups of k.
    """

    target: str = ""
    columns: tuple[str, ...] = ()
    raw: tuple[bool, ...] = ()
    source: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    flag: tuple[bool, ...] = ()

    @classmethod
    def of(cls, encoder: Encoder, raw: Sequence[bool]) -> FeatureLayout:
        """The layout of the encoder's features; *raw* says it of each column."""
        names = [column.name for column in encoder.columns]
        if not names:
            return cls(target=encoder.target)
        ranges, source, flag = encoder.ranges, [], []
        for feature in encoder.names:
            column, _, part = feature.rpartition(":")
            if part not in ("low", "high", "middle", "blank"):
                column, part = feature.rpartition("#")[0], "leaf"
            source.append(names.index(column))
            flag.append(part in ("leaf", "blank"))
        low = tuple(ranges.low.tolist())
        high = tuple((ranges.low + ranges.reach).tolist())
        return cls(
            target=encoder.target,
            columns=tuple(names),
            raw=tuple(raw),
            source=tuple(source),
            low=low,
            high=high,
            flag=tuple(flag),
        )

    @property
    def blocks(self) -> list[npt.NDArray[np.int64]]:
        """The features of each column."""
        of = np.array(self.source, dtype=np.int64)
        return [np.flatnonzero(of == column) for column in range(len(self.columns))]


@dataclass(frozen=True, repr=False)
class Agreed:
    """What training itself needs of the terms: their digest, the settings, how many classes and features there are."""

    digest: str
    federation: Federation
    classes: int
    scaling: FeatureScaling
    columns: int = 1
    signers: tuple[str, ...] = ()
    """The public keys that the clients sign with, in the order of their numbers; none in a simulation."""
    layout: FeatureLayout = FeatureLayout()

    @property
    def features(self) -> int:
        """How many features a row has."""
        return int(self.scaling.shift.size)

    @property
    def hidden(self) -> bool:
        """Whether the coordinator sees sums over all clients alone."""
        return AGGREGATIONS[self.aggregation].hidden

    @property
    def aggregation(self) -> str:
        """How answers are put together; "auto" is secure-sum wherever the model, the clients and their number allow it."""
        one = self.federation
        if one.aggregation != AUTO:
            return one.aggregation
        if one.noise is not None:
            return "secure-sum"
        able = one.model == "logistic" and one.clients > 1 and one.fraction == 1 and one.dropout == 0
        wide = (self.features + 1) * (1 if self.classes == 2 else self.classes) > _WIDEST
        return "secure-sum" if able and not wide else "mean"


@dataclass(frozen=True, repr=False)
class FederationTerms:
    """The schema clients work with, the encoder, and the settings; *read_off* names columns a simulation completed."""

    schema: Schema
    encoder: Encoder
    federation: Federation
    locally: Mapping[str, object]
    read_off: tuple[str, ...] = ()
    parties: tuple[Party, ...] = ()

    def __repr__(self) -> str:
        return f"Terms({self.encoder!r}, {self.digest[:12]})"

    @cached_property
    def digest(self) -> str:
        """SHA-256 over schema, encoder, classes, settings and method: parties with another must not train together.

        The whole schema is in it, since a role or a policy for blanks decides how a client anonymizes even where every
        party's encoder is the same. How long to wait, how many rounds may fail, how many clients are asked in a round
        and how rows are dealt out are the server's business. Who takes part, and with which key, is in it. No row is.
        """
        columns = [
            [
                column.name,
                column.size,
                column.missing,
                column.span,
                None if column.points is None else column.points.tolist(),
                None if column.tree is None else [list(column.tree.labels), column.tree.parent.tolist()],
            ]
            for column in self.encoder.columns
        ]
        own = {"split", "alpha", "fraction", "unmet", "patience", "dropout"}
        settings = {key: value for key, value in asdict(self.federation).items() if key not in own}
        said = [columns, asdict(self.encoder.settings), self.encoder.target, self.encoder.classes, settings]
        parties = [[one.name, one.role, one.signing_key] for one in self.parties]
        whole = [*said, _canonical(self.schema), self.locally, *([parties] if parties else [])]
        text = json.dumps(whole, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def agreed(self) -> Agreed:
        """What training needs of them; the logistic regression is scaled by public bounds."""
        encoder = self.encoder
        return Agreed(
            self.digest,
            self.federation,
            len(encoder.classes),
            scaling_of(encoder),
            len(encoder.columns),
            tuple(one.signing_key for one in self.clients),
            FeatureLayout.of(encoder, [not self._hidden(column.name) for column in encoder.columns]),
        )

    def _hidden(self, column: str) -> bool:
        """Whether a client's release publishes the column in groups of k alone, checked at that client before it trains."""
        method, k = self.locally.get("method"), self.locally.get("k")
        if not isinstance(method, Mapping) or not isinstance(k, int) or k < 2:
            return False
        promises = {one.name: one.promise for one in METHODS}
        return promises[method["name"]] != "as in the paper" and self.schema.columns[column].role == "quasi"

    @property
    def clients(self) -> tuple[Party, ...]:
        """The parties with rows, in the order of their numbers."""
        return tuple(one for one in self.parties if one.role == "client")


def make_terms(
    schema: Schema,
    target: str,
    federation: Federation,
    locally: Mapping[str, object],
    *,
    encoding: EncoderSettings | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    read_off: Sequence[str] = (),
    parties: tuple[Party, ...] = (),
) -> FederationTerms:
    """The terms that follow from *schema* alone. A feature whose domain it does not declare is an error that names it."""
    if federation.noise is not None and locally.get("method") is not None:
        raise ParameterError(
            "epsilon and a method that anonymizes were both given.",
            "One row more changes the groups of others, so that noise for one row would hide less than it says.",
            'Set method = "original" and leave k out, or leave epsilon out.',
        )
    if federation.noise is not None and encoding is not None and encoding.taught_with == "drawn":
        raise ParameterError(
            'epsilon and taught_with = "drawn" were both given.',
            "One row more changes what is drawn for the rows after it, so that noise for one row would hide less than it says.",
            "Leave taught_with out, or leave epsilon out.",
        )
    chosen = _features(schema, target, features)
    if classes is None:
        classes = schema.columns[target].values
    if classes is None or len(set(classes)) < 2:
        raise SchemaError(
            say("The classes of the target '{target}' are not declared, or fewer than two.", target=target),
            "Every client must number them alike before it has seen another's rows.",
            say("Add values = [...] to [columns.{target}] of the schema.", target=target),
        )
    silent = [column.name for column in chosen if not _declared(column)]
    if silent:
        raise SchemaError(
            say("The schema does not say which values {silent} may have.", silent=_list(silent)),
            "All clients encode alike only by what is declared; no client's rows may decide.",
            "Add bounds to a number, values or a level file to a category, or leave the column out of 'features'.",
        )
    columns = tuple(_encoded(schema, column) for column in chosen)
    trees = {column.name: column.tree for column in columns}
    fixed = [_fixed(column, trees.get(column.name)) for column in schema.columns.values()]
    # A part of the rows may well be constant in a column that the whole is not.
    shared = replace(schema.with_columns(fixed), constant="allow")
    missing = {column.name: schema.missing_texts(column.name) for column in columns}
    encoder = Encoder(columns, target, tuple(classes), encoding or EncoderSettings(), missing)
    terms = FederationTerms(shared, encoder, federation, locally, tuple(read_off), parties)
    _refuse_small_leaves(terms.agreed)
    return terms


def _refuse_small_leaves(agreed: Agreed) -> None:
    """Nothing, or ParameterError: a tree's leaf tells of its rows what a sum over them would, so it has as many as a sum must have.

    A row weighs at most 1/4 in a leaf, 1/2 where there are more than two classes.
    """
    federation, most = agreed.federation, 4 if agreed.classes == 2 else 2
    if (
        federation.model == "xgboost"
        and any(agreed.layout.raw)
        and most * federation.weight < federation.least_cell
    ):
        raise ParameterError(
            say(
                "Leaves of weight {weight:g} may have fewer than {least} rows.",
                weight=federation.weight,
                least=federation.least_cell,
            ),
            "A leaf's value shows the classes of the rows in it, and some columns are trained on as they are.",
            say(
                "Set 'weight' to {needed:g} or more, or anonymize all columns as quasi-identifiers.",
                needed=federation.least_cell / most,
            ),
        )


def complete(
    schema: Schema, table: Table, target: str, features: Sequence[str] | None
) -> tuple[Schema, tuple[str, ...]]:
    """(*schema* with every feature's domain declared, the columns read off *table*): for simulations only.

    Who simulates has all rows; a real federation must declare what is taken from them here, and the fit says so.
    """
    columns = dict(schema.columns)
    found = []
    for column in _features(schema, target, features):
        if _declared(column):
            continue
        found.append(column.name)
        if column.kind == "numeric" and column.taxonomy is None:
            encoded = encode_column(table, column)
            assert encoded.points is not None
            real = encoded.points[: encoded.missing] if encoded.missing >= 0 else encoded.points
            low, high = float(real[0]), float(real[-1])
            columns[column.name] = replace(column, bounds=(low, high if high > low else low + 1))
        else:
            values = table.text(column.name).drop_nulls().unique().sort().to_list()
            columns[column.name] = replace(column, values=tuple(values))
    return replace(schema, columns=columns), tuple(found)


def _canonical(schema: Schema) -> list[Any]:
    """Everything the schema says, in the order of its columns; of a taxonomy what it is, not the name of its file."""
    table = {part.name: getattr(schema, part.name) for part in fields(schema) if part.name != "columns"}
    columns = []
    for column in schema.columns.values():
        said = {part.name: getattr(column, part.name) for part in fields(column) if part.name != "taxonomy"}
        if column.bounds is not None:
            said["bounds"] = [float(bound) for bound in column.bounds]
        columns.append([said, None if column.taxonomy is None else _canonical_taxonomy(column.taxonomy)])
    return [table, columns]


def _canonical_taxonomy(spec: TaxonomySpec) -> list[Any]:
    if spec.paths is not None or spec.tree is not None:
        # The options left say how the file was read, such as its separator; what was read is here.
        return [spec.builder, spec.paths, spec.tree]
    return [spec.builder, spec.options, spec.file, spec.digest]


def _features(schema: Schema, target: str, wanted: Sequence[str] | None) -> list[Column]:
    usable = [
        column
        for column in schema.columns.values()
        if column.published and column.name != target and (column.kind != "text" or column.role == "quasi")
    ]
    if wanted is None:
        return usable
    names = {column.name for column in usable}
    odd = [name for name in wanted if name not in names]
    if odd:
        raise SchemaError(
            say("'{odd}' cannot be a feature.", odd=odd[0]),
            "It is the target, free text, not published, or not in the schema.",
            say("Choose among {names}.", names=", ".join(sorted(names))),
        )
    return [column for column in usable if column.name in set(wanted)]


def _declared(column: Column) -> bool:
    if column.kind == "numeric" and column.taxonomy is None:
        return column.bounds is not None
    spec = column.taxonomy
    listed = spec is not None and (spec.paths is not None or spec.tree is not None)
    return listed or column.values is not None


def _encoded(schema: Schema, column: Column) -> EncodedColumn:
    """The column's domain as the encoder needs it, made from a few rows that hold every declared value."""
    spec = column.taxonomy
    if column.kind == "numeric" and spec is None:
        assert column.bounds is not None
        mark = schema.decimal
        texts = [f"{bound:.17g}".replace(".", mark) for bound in column.bounds]
        column = replace(column, clamp=False)
    elif spec is not None and (spec.paths is not None or spec.tree is not None):
        texts = _leaves_of(column)
    else:
        texts = list(column.values or ())
    # A blank has its place everywhere: whether a client has blanks must not change the columns.
    refused = schema.missing_policy(column) == "refuse"
    blank = [] if refused and column.role == "quasi" else [None]
    if refused and blank:
        column = replace(column, missing="value")  # the policy is about quasi-identifiers
    frame = pl.DataFrame({column.name: pl.Series([*texts, *blank], dtype=pl.String)})
    return encode_column(Table(frame, schema.with_columns([column])), column)


def _leaves_of(column: Column) -> list[str]:
    spec = column.taxonomy
    assert spec is not None
    if spec.paths is not None:
        return list(dict.fromkeys(path[0] for path in spec.paths))
    assert spec.tree is not None
    tree = from_tree(spec.tree, column.name)
    return list(tree.labels[: tree.leaves])


def _fixed(column: Column, tree: Taxonomy | None) -> Column:
    """A quasi-identifier whose tree was built from values gets that very tree, written out."""
    spec = column.taxonomy
    if tree is None or column.role != "quasi" or (spec is not None and (spec.paths or spec.tree)):
        return column
    blank = "" in tree.labels[: tree.leaves]
    paths = []
    for leaf in range(tree.leaves - blank):
        path, node = [], leaf
        while node != tree.root:
            path.append(tree.labels[node])
            node = int(tree.parent[node])
        paths.append(tuple(path))
    return replace(column, taxonomy=TaxonomySpec("levels", paths=tuple(paths)))


def _list(names: Sequence[str]) -> str:
    return listed([*(f"'{name}'" for name in names[:8]), *([say("others")] if len(names) > 8 else [])])
