"""A hierarchy (country > state > city) counted level by level and made to agree: the children of a node add up to it.

GROUP BY ROLLUP (keys) asks for every node of a tree: all rows, then the levels of the first key's taxonomy from its top to the
declared values, then below each of these the next key's. Each level is drawn as a table of its own with its share of the spend,
every row in one node of it. At the draws y with variances s^2 the best linear unbiased estimate x under "children sum to the parent" is
found in one pass up and one down (Hay et al. 2010, here with a variance for each level):

    z_v = (y_v / s^2 + sum z_c / S) / (1 / s^2 + 1 / S),   1 / V_v = 1 / s^2 + 1 / S,   S = sum of V_c over the children c,
    x_c = z_c + V_c / S (x_v - sum z_c),                    var x_c = V_c - V_c^2 / S + (V_c / S)^2 var x_v.

Its variances are closed forms of the tree, so the spend is shared, and an accuracy priced, before a row is seen. No node is less exact
than drawn alone with its level's share. What follows the draws costs nothing and tells nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.encode import taxonomy_of
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import QueryRefused
from velado.query.accuracy import check_total, rounded_up
from velado.query.budget import MOST_TOTAL, Measure
from velado.query.consistency import consistent_with, rounded
from velado.query.needs import Counts, GroupKey, Keys, cells_of
from velado.query.noise import Mechanism, calibrate, mixed_factor, standard_deviation

Floats = NDArray[np.float64]
LEVEL = "level"
"""The column of the answer that tells how far below all rows a line stands."""
_PARTS = 1000


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes level by level, all rows first, the cells of the keys last.

    *parents[d]* holds for each node of level d + 1 its parent's place at level d; *labels[d]* for each key what its nodes are called
    there, and *above[d]* what the next wider node of that key is called.

    >>> schema = Schema({"sex": Column("sex", values=("F", "M"))})
    >>> tree = Tree.of((GroupKey("sex", ("F", "M")),), schema)
    >>> tree.sizes, [one.tolist() for one in tree.summed(np.array([3, 4, 1]))]
    ((1, 3), [[8], [3, 4, 1]])
    """

    keys: Keys
    sizes: tuple[int, ...]
    parents: tuple[Counts, ...]
    labels: tuple[tuple[tuple[str | None, ...], ...], ...]
    above: tuple[tuple[tuple[str | None, ...], ...], ...]

    @classmethod
    def of(cls, keys: Keys, schema: Schema) -> Tree:
        """The tree of the declared domains and taxonomies; levels that tell nothing apart from the next are left out."""
        cells = np.arange(cells_of(keys))
        rest = cells_of(keys)
        before = np.zeros_like(cells)
        codes = [np.zeros_like(cells)]
        names: list[list[tuple[int, list[str | None], list[str | None]]]] = [[]]
        settled: list[tuple[int, list[str | None], list[str | None]]] = []
        own = []
        for key in keys:
            rest //= key.size
            own.append(cells // rest % key.size)
            for code, label, wider in _steps(key, schema):
                codes.append(before * key.size + code[own[-1]])
                names.append([*settled, (len(own) - 1, label, wider)])
            settled = [*settled, (len(own) - 1, label, wider)]
            before = before * key.size + own[-1]
        firsts, places = [], []
        for code in codes:
            _, first, place = np.unique(code, return_index=True, return_inverse=True)
            firsts.append(first)
            places.append(place.reshape(-1))
        kept = [d for d in range(len(codes)) if d + 1 == len(codes) or len(firsts[d]) < len(firsts[d + 1])]
        labels, above = [], []
        for d in kept:
            told = {at: (label, wider) for at, label, wider in names[d]}
            labels.append(tuple(_named(at, told, own, firsts[d], 0) for at in range(len(keys))))
            above.append(tuple(_named(at, told, own, firsts[d], 1) for at in range(len(keys))))
        return cls(
            keys,
            tuple(len(firsts[d]) for d in kept),
            tuple(places[upper][firsts[lower]] for upper, lower in pairwise(kept)),
            tuple(labels),
            tuple(above),
        )

    def summed(self, tally: Counts) -> list[Counts]:
        """The counts of every level from those of the cells; exact."""
        out = [tally]
        for parent, size in zip(reversed(self.parents), reversed(self.sizes[:-1]), strict=True):
            total = np.zeros(size, dtype=np.int64)
            np.add.at(total, parent, out[0])
            out.insert(0, total)
        return out

    def shares(self, mechanism: Mechanism) -> tuple[Fraction, ...]:
        """The part of the spend of each level, with which the least exact node is as exact as was found; public things alone."""
        return _shares(self, 2 if mechanism == "laplace" else 1)

    def variances(self, drawn: Sequence[float]) -> list[Floats]:
        """The variance of each node's estimate where the levels are drawn with these variances. O(nodes)."""
        up, sums = self._upward(drawn)
        out = [up[0]]
        for d, parent in enumerate(self.parents):
            part = up[d + 1] / sums[d][parent]
            out.append(up[d + 1] - up[d + 1] * part + part**2 * out[d][parent])
        return out

    def estimates(self, drawn: Sequence[Counts], variances: Sequence[float]) -> list[Floats]:
        """The least-squares numbers of every level: children sum to their parent. O(nodes)."""
        up, sums = self._upward(variances)
        found: list[Floats] = [np.empty(0)] * len(self.sizes)
        below: list[Floats] = []
        found[-1] = drawn[-1].astype(np.float64)
        for d in range(len(self.parents) - 1, -1, -1):
            total: Floats = np.bincount(self.parents[d], found[d + 1], minlength=self.sizes[d]).astype(
                np.float64
            )
            own, theirs = 1 / variances[d], 1 / sums[d]
            found[d] = (own * drawn[d] + theirs * total) / (own + theirs)
            below.insert(0, total)
        for d, parent in enumerate(self.parents):
            found[d + 1] = found[d + 1] + up[d + 1] / sums[d][parent] * (found[d] - below[d])[parent]
        return found

    def possible(self, found: Sequence[Floats], widths: Sequence[Floats]) -> list[Counts]:
        """Whole numbers of at least 0 near the estimates, of which children sum to their parent exactly.

        From the top: what is lifted to 0 is taken from its neighbours, from those below twice their width first (`consistency`).
        """
        out = [np.maximum(np.rint(found[0]), 0).astype(np.int64)]
        for d, parent in enumerate(self.parents):
            out.append(_shared(found[d + 1], widths[d + 1], parent, out[d]))
        return out

    def _upward(self, drawn: Sequence[float]) -> tuple[list[Floats], list[Floats]]:
        """The variance of each node from what is drawn at it and below, and the sums of its children's."""
        up: list[Floats] = [np.full(self.sizes[-1], drawn[-1])]
        sums: list[Floats] = []
        for d in range(len(self.parents) - 1, -1, -1):
            total: Floats = np.bincount(self.parents[d], up[0], minlength=self.sizes[d]).astype(np.float64)
            sums.insert(0, total)
            up.insert(0, 1 / (1 / drawn[d] + 1 / total))
        return up, sums

    def lines(self) -> list[tuple[int, int]]:
        """Level and place of each node that is shown, each parent before its children.

        A node whose only child has its name, as where a branch is shorter than others, is shown once, as the child.
        """
        wide = len(self.sizes)
        ancestors = [[np.arange(size)] for size in self.sizes]
        for d, parent in enumerate(self.parents):
            ancestors[d + 1] = [one[parent] for one in ancestors[d]] + ancestors[d + 1]
        paths, levels, places = [], [], []
        for d, size in enumerate(self.sizes):
            path = np.full((size, wide), -1, dtype=np.int64)
            for at, one in enumerate(ancestors[d]):
                path[:, at] = one
            paths.append(path)
            levels.append(np.full(size, d))
            places.append(np.arange(size))
        whole, level, place = np.concatenate(paths), np.concatenate(levels), np.concatenate(places)
        order = np.lexsort(whole.T[::-1])
        hidden = self._repeated()
        return [
            (d, i)
            for d, i in zip(level[order].tolist(), place[order].tolist(), strict=True)
            if i not in hidden[d]
        ]

    def _repeated(self) -> list[set[int]]:
        out: list[set[int]] = [set() for _ in self.sizes]
        for d, parent in enumerate(self.parents):
            number = np.bincount(parent, minlength=self.sizes[d])
            for child, one in enumerate(parent.tolist()):
                if number[one] == 1 and all(
                    wide[one] == narrow[child]
                    for wide, narrow in zip(self.labels[d], self.labels[d + 1], strict=True)
                ):
                    out[d].add(one)
        return out

    def frame(self) -> dict[str, pl.Series]:
        """The columns that name each shown line: its level, and for each key its name there and, in a taxonomy, what it lies in."""
        shown = self.lines()
        taken = {key.column for key in self.keys}
        level = LEVEL
        while level in taken:
            level += "_"
        out = {level: pl.Series([d for d, _ in shown], dtype=pl.Int64)}
        for at, key in enumerate(self.keys):
            out[key.column] = pl.Series([self.labels[d][at][i] for d, i in shown], dtype=pl.String)
            wider = [self.above[d][at][i] for d, i in shown]
            if {*wider} - {None, ROOT_LABEL}:
                out[f"{key.column}_in"] = pl.Series(wider, dtype=pl.String)
        return out


def _named(
    at: int,
    told: dict[int, tuple[list[str | None], list[str | None]]],
    own: list[Counts],
    first: Counts,
    which: int,
) -> tuple[str | None, ...]:
    if at not in told:
        return ((ROOT_LABEL, None)[which],) * len(first)
    names = told[at][which]
    return tuple(names[code] for code in own[at][first].tolist())


def _steps(key: GroupKey, schema: Schema) -> list[tuple[Counts, list[str | None], list[str | None]]]:
    """The levels of one key below all of it, the widest first: a code, a name and a wider name for each of its cells."""
    rest, size = len(key.domain), key.size
    leaf: tuple[Counts, list[str | None]] = (np.arange(size), [*key.domain, None])
    found = [leaf]
    column = schema.columns[key.column]
    if column.taxonomy is not None:
        found = [*_wider(key, column, schema), leaf]
    out = []
    for number, (code, label) in enumerate(found):
        wider: list[str | None] = [ROOT_LABEL] * size
        for _, name in found[:number]:
            wider = [
                broad if broad != own else before
                for broad, own, before in zip(name, label, wider, strict=True)
            ]
        wider[rest] = ROOT_LABEL
        out.append((code, label, wider))
    return out


def _wider(key: GroupKey, column: Column, schema: Schema) -> list[tuple[Counts, list[str | None]]]:
    # The declared domain stands in for the rows, so nothing of the rows is in the tree.
    own = Schema({column.name: column}, decimal=schema.decimal)
    listed = Table.of(pl.DataFrame({column.name: list(key.domain)}), own, "the declared domain")
    taxonomy = taxonomy_of(listed, column, list(key.domain))
    codes = [taxonomy.code_of.get(text, -1) for text in key.domain]
    out = []
    for height in range(taxonomy.height - 1, 0, -1):
        nodes = [int(taxonomy.levels[code, height]) if code >= 0 else -1 for code in codes]
        # What the taxonomy does not name lies directly below all, each value for itself, as the missing do.
        code = [node if node >= 0 else len(taxonomy.labels) + at for at, node in enumerate([*nodes, -1])]
        names = [
            taxonomy.labels[node] if node >= 0 else text for node, text in zip(nodes, key.domain, strict=True)
        ]
        found, place = np.unique(np.array(code), return_inverse=True)
        assert len(found) <= key.size
        out.append((place.reshape(-1).astype(np.int64), [*names, None]))
    return out


def _shared(found: Floats, width: Floats, parent: Counts, totals: Counts) -> Counts:
    """Whole numbers of at least 0 near *found* whose sums by *parent* are *totals*."""
    number = np.bincount(parent, minlength=len(totals))
    moved = found + ((totals - np.bincount(parent, found, minlength=len(totals))) / number)[parent]
    least = np.full(len(totals), np.inf)
    np.minimum.at(least, parent, moved)
    if (least < 0).any():
        order = np.argsort(parent, kind="stable")
        ends = np.concatenate([[0], np.cumsum(number)])
        for at in np.flatnonzero(least < 0).tolist():
            those = order[ends[at] : ends[at + 1]]
            moved[those] = consistent_with(found[those], width[those], int(totals[at]))
    return rounded(moved, parent, totals)


@lru_cache(maxsize=64)
def _shares(tree: Tree, power: int) -> tuple[Fraction, ...]:
    def worst(shares: Floats) -> float:
        return max(float(one.max()) for one in tree.variances((shares ** -float(power)).tolist()))

    best = np.full(len(tree.sizes), 1 / len(tree.sizes))
    least = worst(best)
    # A pattern search over the levels' weights; where a tree is large, a rough one.
    steps = (0.5, 0.2, 0.08) if sum(tree.sizes) > 20_000 else (0.5, 0.3, 0.15, 0.08, 0.04, 0.02)
    for step in steps:
        better = True
        while better:
            better = False
            for level in range(len(best)):
                for factor in (1 + step, 1 / (1 + step)):
                    tried = best.copy()
                    tried[level] *= factor
                    tried /= tried.sum()
                    found = worst(tried)
                    if found < least * (1 - 1e-6):
                        best, least, better = tried, found, True
    # Few digits, so that every machine finds the same; never more than the whole.
    parts = [max(1, int(share * _PARTS)) for share in best]
    return tuple(Fraction(part, max(_PARTS, sum(parts))) for part in parts)


def half_widths(
    tree: Tree, mechanism: Mechanism, scales: Sequence[float], confidence: Fraction
) -> list[Floats]:
    """By how much each node is off at most, with that chance: a bound for every weighted sum of the drawn noises."""
    factor = mixed_factor(mechanism, min(scales), sum(tree.sizes), confidence)
    drawn = [standard_deviation(mechanism, scale) ** 2 for scale in scales]
    return [np.sqrt(one) * factor for one in tree.variances(drawn)]


def least_spend_within(
    tree: Tree, measure: Measure, most: Sequence[int], width: Fraction, confidence: Fraction
) -> Fraction:
    """The least spend, to one part in a thousand, at which every node is within *width*; *most* is what one unit moves each level by."""
    mechanism: Mechanism = "laplace" if measure == "epsilon" else "gaussian"
    shares = tree.shares(mechanism)

    def keeps(spend: Fraction) -> bool:
        try:
            scales = [
                calibrate(mechanism, measure, one, spend * share)[0]
                for one, share in zip(most, shares, strict=True)
            ]
        except QueryRefused:
            return False
        return max(float(one.max()) for one in half_widths(tree, mechanism, scales, confidence)) <= width

    low, high = Fraction(0), Fraction(1, 1024)
    while not keeps(high):
        low, high = high, high * 2
        if high > 2 * MOST_TOTAL:
            check_total(high, measure)
    while high - low > high / 1000:
        middle = rounded_up((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
