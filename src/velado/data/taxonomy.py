"""Taxonomy: value -> broader value -> ... -> everything, as arrays.

Leaves are numbered in depth-first order, so the leaves under any node are a run of consecutive codes and
the lowest common ancestor of a *set* of leaves is that of its smallest and its largest code. That makes a
taxonomy column behave like a number: the cover of a group is a minimum and a maximum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from velado.errors import TaxonomyError
from velado.text import say, say_n

ROOT_LABEL = "*"
"""What the root of every taxonomy, and every suppressed cell, is published as."""


@dataclass(frozen=True)
class Taxonomy:
    """A tree over values. Nodes 0..leaves-1 are the leaves in depth-first order; the last node is the root.

    *labels* holds one published label per node; *parent* the broader node (the root is its own parent);
    *first* and *last* the run of leaf codes below each node.

    >>> cities = from_paths([("Viçosa", "MG"), ("Ubá", "MG"), ("Santos", "SP")])
    >>> cities.labels, cities.common_ancestor(np.array([0]), np.array([1]))
    (('Viçosa', 'Ubá', 'Santos', 'MG', 'SP', '*'), array([3], dtype=int32))
    """

    labels: tuple[str, ...]
    parent: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    leaves: int

    def __repr__(self) -> str:
        return f"Taxonomy(leaves={self.leaves}, nodes={len(self.labels)}, height={self.height})"

    @property
    def root(self) -> int:
        """The node that covers everything."""
        return len(self.labels) - 1

    @cached_property
    def depth(self) -> npt.NDArray[np.int32]:
        """Steps from the root to each node."""
        depth = np.zeros(len(self.labels), dtype=np.int32)
        for node in range(self.root - 1, -1, -1):  # a parent always has a larger number than its child
            depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def height(self) -> int:
        """Steps from the root to the deepest leaf."""
        return int(self.depth[: self.leaves].max()) if self.leaves else 0

    @cached_property
    def node_height(self) -> npt.NDArray[np.int32]:
        """Height of the tree below each node: 0 for leaves, `height` for the root."""
        height = np.zeros(len(self.labels), dtype=np.int32)
        for node in range(self.root):
            parent = self.parent[node]
            height[parent] = max(height[parent], height[node] + 1)
        return height

    @cached_property
    def leaf_count(self) -> npt.NDArray[np.int32]:
        """How many leaves lie under each node."""
        return (self.last - self.first + 1).astype(np.int32)

    @cached_property
    def levels(self) -> npt.NDArray[np.int32]:
        """Level matrix, leaf x level: column 0 is the leaf itself, the last column the root.

        Where a branch is shorter than the tallest one its leaf is repeated at the lowest levels.
        """
        out = np.empty((self.leaves, self.height + 1), dtype=np.int32)
        out[:, self.height] = self.root
        for leaf in range(self.leaves):
            path = [leaf]
            while path[-1] != self.root:
                path.append(int(self.parent[path[-1]]))
            out[leaf, self.height + 1 - len(path) :] = path
            out[leaf, : self.height + 1 - len(path)] = leaf
        return out

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The narrower nodes of each node, in leaf order."""
        below: list[list[int]] = [[] for _ in self.labels]
        for node in sorted(range(self.root), key=lambda node: int(self.first[node])):
            below[self.parent[node]].append(node)
        return tuple(tuple(nodes) for nodes in below)

    @cached_property
    def code_of(self) -> Mapping[str, int]:
        """Leaf label -> leaf code."""
        return {label: code for code, label in enumerate(self.labels[: self.leaves])}

    @cached_property
    def widest_node(self) -> Mapping[str, int]:
        """Label -> the widest node published under it.

        Two nodes may share a label (a leaf `Other` below a group `Other`); whoever reads the published
        table cannot tell them apart, so the wider meaning is the true one.
        """
        out: dict[str, int] = {}
        for node, label in enumerate(self.labels):
            if label not in out or self.leaf_count[node] >= self.leaf_count[out[label]]:
                out[label] = node
        return out

    @cached_property
    def shown_leaves(self) -> npt.NDArray[np.int32]:
        """How many leaves each node's label covers for whoever reads it: those of the widest node of that label."""
        widest = [self.widest_node[label] for label in self.labels]
        return np.asarray(self.leaf_count[widest], dtype=np.int32)

    def common_ancestor(
        self, low: npt.NDArray[np.integer[Any]], high: npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.int32]:
        """The narrowest node whose leaves include all codes from *low* to *high*, elementwise."""
        low = np.asarray(low)
        high = np.asarray(high)
        node = low.astype(np.int32).copy()
        for _ in range(self.height):
            narrow = self.last[node] < high
            if not narrow.any():
                break
            node[narrow] = self.parent[node[narrow]]
        return node

    def loss(self, node: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """(leaves under node - 1) / (leaves in the tree - 1): the certainty lost by publishing *node*.

        A value named like the group above it is charged as the group: the text shown is the same, so nobody who
        reads it knows more, whether the loss is told by whoever made the release or measured on its file.
        """
        if self.leaves <= 1:
            return np.zeros(np.asarray(node).shape, dtype=np.float64)
        return np.asarray((self.shown_leaves[node] - 1) / (self.leaves - 1), dtype=np.float64)


def from_paths(paths: Sequence[Sequence[str]], column: str = "") -> Taxonomy:
    """A taxonomy from one path per leaf: leaf, broader, broader still, ... (the root `*` may be left out).

    Consecutive repetitions in a path are one node, except a value below a group of its own name. A label for
    two nodes is two meanings of one word and is refused, as is a leaf that is listed twice with different paths.

    >>> from_paths([("Viçosa", "MG"), ("Santos", "SP")])
    Taxonomy(leaves=2, nodes=5, height=2)
    """
    name = say(" of column '{column}'", column=column) if column else ""
    seen: dict[str, tuple[str, ...]] = {}
    for line, raw in enumerate(paths, start=1):
        path = tuple(raw)
        while path and path[-1] == ROOT_LABEL:
            path = path[:-1]
        if raw and ROOT_LABEL in (path or (ROOT_LABEL,)):
            raise TaxonomyError(
                say(
                    "Line {line} of the taxonomy{name} uses '{root_label}' for something narrower than "
                    "everything.",
                    line=line,
                    name=name,
                    root_label=ROOT_LABEL,
                ),
                say("'{root_label}' is reserved for suppressed cells.", root_label=ROOT_LABEL),
                "Give the value another name.",
            )
        if not path or any(label == "" for label in path):
            raise TaxonomyError(
                say("Line {line} of the taxonomy{name} has an empty label.", line=line, name=name),
                "Every value needs a name at each level it takes part in.",
                "Fill the empty field, or repeat the narrower label where a level does not apply.",
            )
        if path[0] in seen and seen[path[0]] != path:
            raise TaxonomyError(
                say(
                    "Line {line} of the taxonomy{name} lists a value that an earlier line lists with "
                    "another path.",
                    line=line,
                    name=name,
                ),
                "A value with two broader values has no single generalization.",
                "Keep one of the two lines.",
            )
        seen.setdefault(path[0], path)
    if not seen:
        raise TaxonomyError(
            say("The taxonomy{name} has no values.", name=name),
            "Without leaves nothing can be generalized.",
            "List one value per line, narrowest first.",
        )
    return _build(list(seen.values()), name)


def _build(paths: list[tuple[str, ...]], name: str) -> Taxonomy:
    # A node is identified by its path from the root down, with repeated labels collapsed, so equal labels
    # on different branches are different nodes unless they stand at the same level (refused below).
    parent_at: dict[tuple[int, str], tuple[str, ...]] = {}
    collapsed: list[tuple[str, ...]] = []
    for line, path in enumerate(paths, start=1):
        for level in range(1, len(path)):
            above = tuple(path[level:])
            if parent_at.setdefault((level, path[level]), above) != above:
                raise TaxonomyError(
                    say(
                        "The taxonomy{name} gives one label two different broader labels (seen at value "
                        "{line}, level {level}).",
                        name=name,
                        line=line,
                        level=level + 1,
                    ),
                    "A tree needs exactly one broader label for each.",
                    "Rename one of the two labels.",
                )
        short = [label for at, label in enumerate(path) if at == 0 or label != path[at - 1]]
        collapsed.append(tuple(reversed(short)))
    # Depth-first order that keeps the order of first appearance at every level.
    rank: dict[tuple[str, ...], int] = {}
    for top_down in collapsed:
        for depth in range(1, len(top_down) + 1):
            rank.setdefault(top_down[:depth], len(rank))
    collapsed.sort(key=lambda p: [rank[p[:depth]] for depth in range(1, len(p) + 1)])
    inner: dict[tuple[str, ...], None] = {}
    for top_down in collapsed:
        for depth in range(len(top_down) - 1, 0, -1):
            inner.setdefault(top_down[:depth], None)
    # A value named like the group right above it stays a leaf of its own below that group.
    collapsed = [(*path, path[-1]) if path in inner else path for path in collapsed]
    leaf_paths = {path: code for code, path in enumerate(collapsed)}
    _refuse_two_meanings(collapsed, list(inner), name)
    ordered_inner = sorted(inner, key=lambda p: -len(p))  # deepest first: parents get larger numbers
    number = dict(leaf_paths)
    for path in ordered_inner:
        number[path] = len(number)
    root = len(number)
    total = root + 1
    labels = [path[-1] for path in collapsed] + [path[-1] for path in ordered_inner] + [ROOT_LABEL]
    parent = np.full(total, root, dtype=np.int32)
    for path, node in number.items():
        if len(path) > 1:
            parent[node] = number[path[:-1]]
    first = np.full(total, len(collapsed), dtype=np.int32)
    last = np.full(total, -1, dtype=np.int32)
    first[: len(collapsed)] = last[: len(collapsed)] = np.arange(len(collapsed))
    for node in range(total - 1):  # children come before parents
        above = parent[node]
        first[above] = min(first[above], first[node])
        last[above] = max(last[above], last[node])
    return Taxonomy(tuple(labels), parent, first, last, len(collapsed))


def _refuse_two_meanings(leaves: list[tuple[str, ...]], inner: list[tuple[str, ...]], name: str) -> None:
    # Whoever reads a published label must know what it covers: one label is one node, but for a leaf and the
    # group right above it, where the wider reading is true of both.
    owners: dict[str, tuple[str, ...]] = {path[-1]: path for path in inner}
    twice = len(inner) - len(owners)
    for path in leaves:
        owner = owners.get(path[-1])
        twice += owner is not None and owner != path[:-1]
    if twice:
        raise TaxonomyError(
            say_n(
                "The taxonomy{name} uses {n} label with two meanings: for a group, and for a value or group outside it or above it.",
                "The taxonomy{name} uses {n} labels with two meanings: for a group, and for a value or group outside it or above it.",
                twice,
                name=name,
            ),
            "Whoever reads the published label could not tell which is meant, and one of the two would be false.",
            "Rename one of the two labels.",
        )


# Ways to make a Taxonomy: level rows, nested trees, intervals, prefixes, dates, flat, automatic.
#
# All are pure: files are read by `velado.data.io`. Each takes the distinct values of the column (as the
# text that stands in the file) so that the tree has exactly the leaves it needs; a level file and a nested
# tree bring their own leaves.

DateLevel = Literal["day", "month", "year", "decade"]
DATE_LEVELS: tuple[DateLevel, ...] = get_args(DateLevel)


def from_tree(tree: Mapping[str, object], column: str = "") -> Taxonomy:
    """From nested tables: ``{Asia = ["Japan", "India"], Europe = {North = ["Norway"], ...}}``.

    >>> from_tree({"South": ["PR", "SC"], "North": ["PA"]}).code_of
    {'PR': 0, 'SC': 1, 'PA': 2}
    """
    paths: list[list[str]] = []

    def walk(node: Any, above: list[str]) -> None:
        if isinstance(node, Mapping):
            for label, below in node.items():
                walk(below, [str(label), *above])
        elif isinstance(node, Sequence) and not isinstance(node, str):
            for leaf in node:
                paths.append([str(leaf), *above])
        else:
            paths.append([str(node), *above])

    walk(tree, [])
    return from_paths(paths, column)


def flat(values: Sequence[str], column: str = "") -> Taxonomy:
    """Every value directly below the root: published as it is, or not at all.

    >>> flat(["F", "M"]).labels
    ('F', 'M', '*')
    """
    return from_paths([[value] for value in values], column)


def prefix(values: Sequence[str], keep: Sequence[int], mask: str = "*", column: str = "") -> Taxonomy:
    """Codes by ever shorter prefixes: with ``keep=[4, 3]``, `36570-000` -> `3657*` -> `365*` -> `*`.

    >>> prefix(["36570", "36571"], [3]).labels
    ('36570', '36571', '365*', '*')
    """
    paths = [[value, *(value[:length] + mask for length in keep if length < len(value))] for value in values]
    return from_paths(_aligned(paths), column)


def intervals(
    values: Sequence[str],
    numbers: Sequence[float],
    widths: Sequence[float],
    origin: float = 0.0,
    column: str = "",
    decimal: str = ".",
) -> Taxonomy:
    """Numbers by ever wider intervals: with ``widths=[5, 10]``, 23 -> `[20..24]` -> `[20..29]` -> `*`.

    Intervals start at *origin* + a multiple of the width. Where every value and width is whole they are
    closed (`[20..24]`), else half open (`[20..25)`). Every width must divide the next one, else the
    intervals would not nest. Ends are written with *decimal*.

    >>> intervals(["23", "27"], [23, 27], [5, 10]).labels
    ('23', '27', '[20..24]', '[25..29]', '[20..29]', '*')
    """
    steps, _ = _in_units(widths)
    whole = all(float(n).is_integer() for n in [*numbers, *widths, origin])
    order = sorted(range(len(values)), key=lambda i: (numbers[i], values[i]))
    above = interval_paths(
        [numbers[i] for i in order], widths[0], [step // steps[0] for step in steps], origin, whole, decimal
    )
    return from_paths([[values[i], *path] for i, path in zip(order, above, strict=True)], column)


def interval_paths(
    numbers: Sequence[float],
    width: float,
    factors: Sequence[int],
    origin: float = 0.0,
    whole: bool = False,
    decimal: str = ".",
) -> list[tuple[str, ...]]:
    """For each number the labels of the intervals of *width* x each factor that hold it: start <= number < end.

    Computed in whole multiples of the last decimal place in use, because 0.3 / 0.1 in doubles is below 3. Numbers
    are taken as they are written, not as the double nearest to them. Whole intervals leave out their end.

    >>> interval_paths([23], 5, [1, 2], whole=True)
    [('[20..24]', '[20..29]')]
    """
    (step, start, *units), places = _in_units([width, origin, *numbers])
    last = 10**places if whole else 0
    close = "]" if whole else ")"
    known: dict[tuple[int, int], str] = {}
    out = []
    for unit in units:
        path = []
        for factor in factors:
            at = (unit - start) // (step * factor)
            if (factor, at) not in known:
                low = start + at * step * factor
                high = low + step * factor - last
                known[factor, at] = (
                    f"[{_unit_text(low, places, decimal)}..{_unit_text(high, places, decimal)}{close}"
                )
            path.append(known[factor, at])
        out.append(tuple(path))
    return out


def widths_nest(widths: Sequence[float]) -> bool:
    """Whether intervals of these widths nest: they rise from above 0, and each divides the next.

    >>> widths_nest([5, 10, 20]), widths_nest([0.1, 0.3]), widths_nest([5, 7])
    (True, True, False)
    """
    steps, _ = _in_units(widths)
    rising = all(wide > narrow and not wide % narrow for narrow, wide in pairwise(steps))
    return bool(steps) and steps[0] > 0 and rising


def _in_units(numbers: Sequence[float]) -> tuple[list[int], int]:
    # Each number as a whole multiple of 10^-places; a double is written with 17 digits at most, so it is exact.
    written = [Decimal(repr(float(number))) for number in numbers]
    places = max((-int(d.as_tuple().exponent) for d in written), default=0)
    places = max(places, 0)
    return [int(d.scaleb(places)) for d in written], places


def _unit_text(units: int, places: int, decimal: str) -> str:
    if not places:
        return str(units)
    digits = str(abs(units)).zfill(places + 1)
    fraction = digits[-places:].rstrip("0")
    return ("-" if units < 0 else "") + digits[:-places] + (decimal + fraction if fraction else "")


def dates(
    values: Sequence[str], levels: Sequence[str] = DATE_LEVELS[1:], form: str = "%Y-%m-%d", column: str = ""
) -> Taxonomy:
    """Days by month, year, decade: `2024-03-07` -> `2024-03` -> `2024` -> `2020s` -> `*`.

    >>> dates(["2024-03-07"], ["year"]).labels
    ('2024-03-07', '2024', '*')
    """
    wanted = [level for level in DATE_LEVELS if level in levels]
    parsed = parse_dates(values, form, column)
    order = sorted(range(len(values)), key=lambda i: (parsed[i], values[i]))
    paths = [[values[i], *(_date_label(parsed[i], level) for level in wanted)] for i in order]
    return from_paths(paths, column)


def parse_dates(values: Sequence[str], form: str, column: str) -> list[date]:
    """Each text as a date, or one error that counts those that are none."""
    out: list[date] = []
    bad = 0
    for value in values:
        try:
            out.append(datetime.strptime(value, form).date())
        except ValueError:
            bad += 1
    if bad:
        raise TaxonomyError(
            say_n(
                "Column '{column}' has {n:,} value that is no date of the form {form}.",
                "Column '{column}' has {n:,} distinct values that are no dates of the form {form}.",
                bad,
                column=column,
                form=form,
            ),
            "A value without a place in the calendar cannot be generalized.",
            'Set the column\'s `format`, for example format = "%d/%m/%Y", or correct the values.',
        )
    return out


def is_day(text: str, form: str) -> bool:
    """The text is a day written in this form.

    >>> is_day("07/03/2024", "%d/%m/%Y"), is_day("soon", "%d/%m/%Y")
    (True, False)
    """
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _date_label(day: date, level: str) -> str:
    if level == "day":
        return day.isoformat()
    if level == "month":
        return f"{day.year:04d}-{day.month:02d}"
    if level == "year":
        return f"{day.year:04d}"
    return f"{day.year // 10 * 10:04d}s"


def automatic(values: Sequence[str], column: str = "") -> Taxonomy:
    """A tree for a column without one: prefixes if the values are codes of one shape, else flat.

    Codes have at least three letters or digits, all of one length, and digits in every value (postal codes,
    ICD-10, municipality numbers); their tree drops one character at a time. Names and words have no meaning
    a program could guess, so they stay flat.

    >>> automatic(["J18", "J21", "K35"]).labels
    ('J18', 'J21', 'K35', 'J1*', 'J2*', 'K3*', 'J*', 'K*', '*')
    """
    plain = [value for value in values if value]
    lengths = {len(value) for value in plain}
    coded = (
        len(lengths) == 1
        and len(plain) > 2
        and all(re.fullmatch(r"(?=.*\d)[A-Za-z0-9.\-/]{3,}", v) for v in plain)
    )
    if coded:
        length = lengths.pop()
        return prefix(values, list(range(length - 1, 0, -1)), column=column)
    return flat(values, column)


def _aligned(paths: list[list[str]]) -> list[list[str]]:
    # Short codes skip the long prefixes; padding at the leaf keeps equal prefixes on equal levels.
    height = max((len(path) for path in paths), default=0)
    return [[path[0]] * (height - len(path)) + path for path in paths]
