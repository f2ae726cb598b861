"""Bagging of boosted trees: clients grow trees on what the common model still gets wrong, the server collects them.

With the model's margins F_t(x) = sum over trees so far of w_s T_s(x), client i grows in round t+1

    T_i = one step of XGBoost on its own rows, started at the margins F_t(x_j)

and F_{t+1} = F_t + sum_i w_i T_i over those that answered, w_i = n_i/n ("mean") or 1 ("sum", as Flower's FedXgbBagging:
ten clients then step ten times as far). Because a tree is added once and for all, a client only ever needs the trees
that are new to it: it keeps F_t of its own rows. A round costs what its new trees cost, whatever the round's number.
Trees travel as arrays, a node in 20 bytes, not as the library's files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from velado.errors import MissingExtra, ParameterError
from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import FloatMatrix, Probabilities, softmax

IntVector = npt.NDArray[np.int64]
Margins = npt.NDArray[np.float64]
LARGEST = 1e6  # of a leaf


@dataclass(frozen=True, repr=False)
class Trees:
    """Trees one after the other. Tree t has the nodes first[t]..first[t+1]-1, adds weight[t] x value to margin group[t].

    A row goes left where its *feature* is below *threshold*. Children are numbered within their tree; a leaf has
    feature -1 and its *value*.
    """

    first: npt.NDArray[np.int32]
    group: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]

    def __repr__(self) -> str:
        return f"Trees({self.count} trees, {self.feature.size} nodes)"

    @property
    def count(self) -> int:
        """How many trees."""
        return int(self.group.size)

    @classmethod
    def none(cls) -> Trees:
        """No tree."""
        ints, floats = np.zeros(0, np.int32), np.zeros(0, np.float32)
        first, weight = np.zeros(1, np.int32), np.zeros(0)
        return cls(first, ints, weight, feature=ints, threshold=floats, left=ints, right=ints, value=floats)

    def after(self, count: int) -> Trees:
        """The trees but the first *count*."""
        start = int(self.first[count])
        nodes = {name: getattr(self, name)[start:] for name in _NODES}
        return Trees(
            (self.first[count:] - start).astype(np.int32), self.group[count:], self.weight[count:], **nodes
        )

    def weighing(self, weight: float) -> Trees:
        """The same trees, each counting *weight*."""
        return replace(self, weight=np.full(self.count, weight))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As named arrays."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def packed(self) -> dict[str, npt.NDArray[Any]]:
        """As the three arrays that travel: per tree its size, group and weight; per node links and numbers."""
        return {
            "trees": np.stack([np.diff(self.first), self.group, self.weight], axis=1).astype(np.float64),
            "links": np.stack([self.feature, self.left, self.right]).astype(np.int32),
            "numbers": np.stack([self.threshold, self.value]).astype(np.float32),
        }

    @classmethod
    def unpacked(cls, arrays: Mapping[str, npt.NDArray[Any]], features: int, groups: int) -> Trees:
        """Trees that came over the wire: checked, so that following them ends and stays within the arrays."""
        try:
            about, links, numbers = (np.asarray(arrays[name]) for name in ("trees", "links", "numbers"))
            sound = about.dtype.kind == numbers.dtype.kind == "f" and links.dtype.kind in "iu"
            sound = sound and about.ndim == 2 and about.shape[1] == 3 and links.ndim == 2
            sound = sound and _plain(about, numbers, links.shape[1], groups)
            sizes = about[:, 0].astype(np.int64) if sound else np.zeros(0, dtype=np.int64)
            nodes = int(sizes.sum())
            sound = sound and links.shape == (3, nodes) and numbers.shape == (2, nodes)
            sound = sound and _sound(links, sizes, features)
            links, numbers = links.astype(np.int32), numbers.astype(np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            sound = False
        if not sound:
            raise ParameterError(
                "Trees arrived that are not sound.",
                "A node points outside its tree, or arrays do not fit together.",
                "Check that every party runs the same version.",
            )
        first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        group, weight = about[:, 1].astype(np.int32), about[:, 2]
        feature, left, right = links
        threshold, value = numbers
        return cls(
            first, group, weight, feature=feature, threshold=threshold, left=left, right=right, value=value
        )

    def margins(self, features: FloatMatrix, groups: int) -> Margins:
        """What the trees add to each row's margins, rows x groups. O(rows x trees x depth), no loop over rows."""
        out = np.zeros((features.shape[0], groups))
        rows = np.arange(features.shape[0])
        for tree in range(self.count):
            part = slice(self.first[tree], self.first[tree + 1])
            feature, threshold = self.feature[part], self.threshold[part]
            left, right = self.left[part], self.right[part]
            at = np.zeros(rows.size, dtype=np.int32)
            while True:
                asked = feature[at]
                inner = asked >= 0
                if not inner.any():
                    break
                below = features[rows, np.maximum(asked, 0)] < threshold[at]
                at = np.where(inner, np.where(below, left[at], right[at]), at)
            out[:, self.group[tree]] += self.weight[tree] * self.value[part][at]
        return out


def _plain(about: npt.NDArray[Any], numbers: npt.NDArray[Any], nodes: int, groups: int) -> bool:
    """Sizes and groups are whole and in range, before any is turned into an integer; numbers are finite and not huge."""
    size, group, weight = about.T
    counted = ((size >= 1) & (size <= nodes) & (size == np.floor(size))).all()
    placed = ((group >= 0) & (group < groups) & (group == np.floor(group))).all()
    small = numbers.ndim == 2 and numbers.shape[0] == 2 and (np.abs(numbers[1:]) <= LARGEST).all()
    return bool(counted and placed and small and np.isfinite(weight).all() and np.isfinite(numbers).all())


def _sound(links: npt.NDArray[Any], sizes: IntVector, features: int) -> bool:
    """Features exist, and a child stands behind its parent within the same tree, so that every path down ends."""
    feature, left, right = links
    own = np.repeat(sizes, sizes)
    place = np.arange(feature.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    inner = feature >= 0
    within = [((side > place) & (side < own))[inner].all() for side in (left, right)]
    return bool(all(within) and (feature < features).all() and (feature >= -1).all())


_NODES = ("feature", "threshold", "left", "right", "value")


def joined(parts: Sequence[Trees]) -> Trees:
    """All trees, in order."""
    parts = [part for part in parts if part.count] or [Trees.none()]
    sizes = np.concatenate([np.diff(part.first) for part in parts])
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    rest = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("group", "weight", *_NODES)
    }
    return Trees(first, **rest)


@dataclass(frozen=True, repr=False)
class BoostedModel:
    """All trees of the run."""

    trees: Trees
    groups: int

    def probabilities(self, features: FloatMatrix) -> Probabilities:
        """softmax of the summed margins."""
        return softmax(self.trees.margins(features, self.groups))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The trees."""
        return self.trees.arrays()


def groups_of(classes: int) -> int:
    """Margins of a row: one for two classes, else one per class."""
    return 1 if classes == 2 else classes


def matrix_of(features: FloatMatrix, labels: IntVector) -> Any:
    """The rows as XGBoost wants them, binned once and used in every round."""
    return _xgboost().QuantileDMatrix(features, label=labels, nthread=1)


def grow(matrix: Any, margins: Margins, classes: int, federation: Federation) -> Trees:
    """One boosting step on the client's rows from *margins* on: a tree, or one for each of several classes."""
    settings: dict[str, object] = {
        "tree_method": "hist",
        "max_depth": federation.depth,
        "eta": federation.rate,
        "min_child_weight": federation.weight,
        "nthread": 1,
        "verbosity": 0,
        "seed": 0,  # nothing is drawn: all rows and columns take part
        "objective": "binary:logistic" if classes == 2 else "multi:softprob",
    }
    if classes > 2:
        settings["num_class"] = classes
    matrix.set_base_margin(margins.astype(np.float32).ravel() if classes == 2 else margins.astype(np.float32))
    booster = _xgboost().train(settings, matrix, num_boost_round=1)
    learned = json.loads(booster.save_raw(raw_format="json"))["learner"]
    return _trees_in(learned["gradient_booster"]["model"])


class _Tree(TypedDict):
    """A tree as XGBoost writes it: a node has its number in every list."""

    left_children: list[int]
    right_children: list[int]
    split_indices: list[int]
    split_conditions: list[float]


class _Grown(TypedDict):
    """Trees as XGBoost writes them, and to which margin each adds."""

    trees: list[_Tree]
    tree_info: list[int]


def _trees_in(model: _Grown) -> Trees:
    parts = []
    for tree, group in zip(model["trees"], model["tree_info"], strict=True):
        left = np.array(tree["left_children"], dtype=np.int32)
        leaf = left < 0
        conditions = np.array(tree["split_conditions"], dtype=np.float32)  # a leaf's entry is its value
        parts.append(
            Trees(
                first=np.array([0, left.size], dtype=np.int32),
                group=np.array([group], dtype=np.int32),
                weight=np.ones(1),
                feature=np.where(leaf, -1, np.array(tree["split_indices"], dtype=np.int32)).astype(np.int32),
                threshold=np.where(leaf, 0, conditions).astype(np.float32),
                left=np.where(leaf, 0, left).astype(np.int32),
                right=np.where(leaf, 0, np.array(tree["right_children"], dtype=np.int32)).astype(np.int32),
                value=np.where(leaf, conditions, 0).astype(np.float32),
            )
        )
    return joined(parts)


def _xgboost() -> Any:
    if find_spec("xgboost") is None:
        raise MissingExtra(
            "XGBoost is not installed.",
            "The federation's trees are grown by it.",
            'Install it with pip install "velado[federated]".',
        )
    return import_module("xgboost")
