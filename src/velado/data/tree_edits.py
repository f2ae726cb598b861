"""Tree edits: what a person does to a taxonomy by hand, each a pure function from one valid tree to the next.

A node is named by its label (of a value and the group right above it that share a label, the group is meant), or by
its number in the tree at hand. Every result goes through `from_paths`: one root, each value on one path, one meaning
for each label. No edit loses or doubles a value; a group left without values vanishes. O(nodes) for each edit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise

from velado.data.normal import normal_texts
from velado.data.taxonomy import ROOT_LABEL, Taxonomy, from_paths, parse_dates
from velado.errors import TaxonomyError
from velado.settings import nearest
from velado.text import say, say_n

Place = str | int


def group(tree: Taxonomy, nodes: Sequence[Place], label: str) -> Taxonomy:
    """A new group *label* around *nodes*, which keep what is below them; it stands below what covers all of them.

    >>> from velado.data.taxonomy import flat
    >>> group(flat(["PR", "SC", "PA"]), ["PR", "SC"], "South").labels
    ('PR', 'SC', 'PA', 'South', '*')
    """
    draft = _Draft(tree)
    chosen = draft.several(nodes)
    above = draft.above(chosen)
    draft.hang(chosen, draft.new(label, above, draft.place_of(chosen[0], above)))
    return draft.finished()


def merge(tree: Taxonomy, nodes: Sequence[Place], label: str) -> Taxonomy:
    """One group *label* instead of *nodes*: values among them become its values, groups dissolve into it.

    >>> from velado.data.taxonomy import from_tree
    >>> merge(from_tree({"PR": ["Curitiba"], "SC": ["Lages"], "PA": ["Belém"]}), ["PR", "SC"], "South").labels
    ('Curitiba', 'Lages', 'Belém', 'South', 'PA', '*')
    """
    draft = _Draft(tree)
    chosen = draft.several(nodes)
    above = draft.above(chosen)
    new = draft.new(label, above, draft.place_of(chosen[0], above))
    for node in chosen:
        draft.hang(draft.below[node] if draft.is_group(node) else [node], new)
    return draft.finished()


def dissolve(tree: Taxonomy, node: Place) -> Taxonomy:
    """The group *node* is gone; what was right below it stands right below the group above.

    >>> from velado.data.taxonomy import from_tree
    >>> dissolve(from_tree({"South": ["PR", "SC"]}), "South").labels
    ('PR', 'SC', '*')
    """
    draft = _Draft(tree)
    gone = draft.group_at(node)
    above = draft.parent[gone]
    at = draft.below[above].index(gone)
    for step, child in enumerate(list(draft.below[gone])):
        draft.hang([child], above, at + step)
    return draft.finished()


def move(tree: Taxonomy, nodes: Sequence[Place], under: Place) -> Taxonomy:
    """The *nodes* with all below them stand below the group *under*; `*` is the root.

    >>> from velado.data.taxonomy import from_tree
    >>> move(from_tree({"South": ["PR"], "North": ["PA", "SC"]}), ["SC"], "South").labels
    ('PR', 'SC', 'PA', 'South', 'North', '*')
    """
    draft = _Draft(tree)
    chosen, target = draft.several(nodes), draft.group_at(under, root=True)
    if any(draft.is_under(target, node) for node in chosen):
        raise TaxonomyError(
            "A group was to be moved below itself.",
            "It would hang on nothing, and its values would be lost.",
            "Choose a group outside it.",
        )
    draft.hang(chosen, target)
    return draft.finished()


def rename(tree: Taxonomy, node: Place, label: str) -> Taxonomy:
    """The same tree with another label on *node*. A value's label is how the table has it: rename it with care.

    >>> from velado.data.taxonomy import from_tree
    >>> rename(from_tree({"South": ["PR", "SC"]}), "South", "Sul").labels
    ('PR', 'SC', 'Sul', '*')
    """
    draft = _Draft(tree)
    draft.labels[draft.one(node)] = label
    return draft.finished()


def split(tree: Taxonomy, node: Place, parts: Mapping[str, Sequence[Place]]) -> Taxonomy:
    """The children of the group *node* in several groups beside it: label -> children. Those not named stay in *node*.

    >>> from velado.data.taxonomy import from_tree
    >>> split(from_tree({"Brazil": ["PR", "SC", "PA"]}), "Brazil", {"South": ["PR", "SC"], "North": ["PA"]}).labels
    ('PR', 'SC', 'PA', 'South', 'North', '*')
    """
    draft = _Draft(tree)
    old = draft.group_at(node)
    above = draft.parent[old]
    at = draft.below[above].index(old)
    taken: list[int] = []
    for step, (label, children) in enumerate(parts.items()):
        chosen = draft.several(children)
        if any(draft.parent[child] != old for child in chosen) or set(chosen) & set(taken):
            raise TaxonomyError(
                say("The part '{label}' names something that is not right below the group.", label=label),
                "A group is split into parts of its own, each in one part alone.",
                "Name children of the group, each once.",
            )
        taken += chosen
        draft.hang(chosen, draft.new(label, above, at + step))
    return draft.finished()


def place_values(tree: Taxonomy, places: Mapping[str, Place]) -> Taxonomy:
    """The tree with new values, each right below the group that *places* names for it (`*`: the root).

    >>> from velado.data.taxonomy import from_tree
    >>> place_values(from_tree({"South": ["PR"]}), {"SC": "South", "PA": "*"}).labels
    ('PR', 'SC', 'PA', 'South', '*')
    """
    draft = _Draft(tree)
    for value, under in places.items():
        draft.values.append(draft.new(value, draft.group_at(under, root=True)))
    return draft.finished()


def uncovered(tree: Taxonomy, values: Iterable[str], case: str = "same") -> tuple[str, ...]:
    """The *values* without a place in the tree, each once. Blanks around them and, with *case* "same", capitals do not matter.

    >>> from velado.data.taxonomy import flat
    >>> uncovered(flat(["PR", "SC"]), ["pr", "PA", "SC "])
    ('PA',)
    """
    distinct = list(dict.fromkeys(values))
    known = set(_normal(tree.labels[: tree.leaves], case))
    return tuple(
        v for v, normal in zip(distinct, _normal(distinct, case), strict=True) if normal not in known
    )


def number_bands(
    values: Sequence[str],
    numbers: Sequence[float],
    edges: Sequence[float] | Sequence[Sequence[float]],
    column: str = "",
    decimal: str = ".",
) -> Taxonomy:
    """Numbers in bands that begin at *edges*: `[18, 65]` makes `<18`, `[18..65)` and `>=65`; of whole numbers `[18..64]`.

    *edges* may be several lists, the narrowest first; each list's edges are among those of the one before, so that
    bands nest. What lies below the first edge or from the last one on is a band of its own.

    >>> number_bands(["3", "30", "70"], [3, 30, 70], [18, 65]).labels
    ('3', '30', '70', '<18', '[18..64]', '>=65', '*')
    """
    levels = _edge_lists(edges)
    whole = all(float(n).is_integer() for n in [*numbers, *(edge for level in levels for edge in level)])

    def label(level: Sequence[float], number: float) -> str:
        at = bisect_right(level, number)
        if at == 0:
            return f"<{_written(level[0], decimal)}"
        if at == len(level):
            return f">={_written(level[-1], decimal)}"
        if whole and level[at] - level[at - 1] == 1:
            return f"[{_written(level[at - 1], decimal)}]"
        end = f"{_written(level[at] - 1, decimal)}]" if whole else f"{_written(level[at], decimal)})"
        return f"[{_written(level[at - 1], decimal)}..{end}"

    order = sorted(range(len(values)), key=lambda i: (numbers[i], values[i]))
    return from_paths([[values[i], *(label(level, numbers[i]) for level in levels)] for i in order], column)


def date_bands(
    values: Sequence[str], edges: Sequence[str], form: str = "%Y-%m-%d", column: str = ""
) -> Taxonomy:
    """Days in bands that begin at *edges*, which are days written 2024-03-07; *form* is that of the values.

    >>> date_bands(["2019-05-01", "2021-01-09"], ["2020-03-01"]).labels
    ('2019-05-01', '2021-01-09', '<2020-03-01', '>=2020-03-01', '*')
    """
    try:
        begins = [date.fromisoformat(edge) for edge in edges]
    except ValueError:
        begins = []
    if not begins or any(late <= early for early, late in pairwise(begins)):
        raise _wrong_edges()
    days = parse_dates(values, form, column)

    def label(day: date) -> str:
        at = bisect_right(begins, day)
        if at == 0:
            return f"<{begins[0]}"
        return f">={begins[-1]}" if at == len(begins) else f"[{begins[at - 1]}..{begins[at]})"

    order = sorted(range(len(values)), key=lambda i: (days[i], values[i]))
    return from_paths([[values[i], label(days[i])] for i in order], column)


def _edge_lists(edges: Sequence[float] | Sequence[Sequence[float]]) -> list[list[float]]:
    nested = [list(one) if isinstance(one, Sequence) else None for one in edges]
    levels = [one for one in nested if one is not None]
    if not levels:
        levels = [[float(one) for one in edges if not isinstance(one, Sequence)]]
    rising = all(level and all(b > a for a, b in pairwise(level)) for level in levels)
    finite = all(
        abs(edge) < float("inf") for level in levels for edge in level
    )  # false for what is no number
    nests = all(set(wide) <= set(narrow) for narrow, wide in pairwise(levels))
    if not (rising and finite and nests) or (None in nested and any(one is not None for one in nested)):
        raise _wrong_edges()
    return levels


def _wrong_edges() -> TaxonomyError:
    return TaxonomyError(
        "The edges of the bands do not rise, or those of a broader level are not among the narrower ones.",
        "Bands would overlap or straddle one another.",
        "Give rising edges, such as 18, 65; of several levels each list is a part of the one before.",
    )


def _written(number: float, decimal: str) -> str:
    text = str(int(number)) if float(number).is_integer() else repr(float(number))
    return text.replace(".", decimal)


def _normal(texts: Sequence[str], case: str) -> list[str]:
    import polars as pl

    return normal_texts(pl.Series(values=list(texts), dtype=pl.String), case=case).to_list()


class _Draft:
    """A tree being changed: parents and children as lists. It lives inside one edit alone."""

    def __init__(self, tree: Taxonomy) -> None:
        self.tree = tree
        self.labels = list(tree.labels)
        self.parent: list[int] = tree.parent.tolist()
        self.below = [list(nodes) for nodes in tree.children]
        self.values = list(range(tree.leaves))
        self.root = tree.root

    def one(self, node: Place, root: bool = False) -> int:
        if isinstance(node, str):
            found = self.tree.widest_node.get(node)
        else:
            found = node if 0 <= node <= self.root else None
        if found is None:
            raise TaxonomyError(
                "The tree has no node of that name or number.",
                "Nothing was changed.",
                nearest(str(node), [label for label in self.tree.labels[self.tree.leaves :]])
                or say("Name a value or a group of the tree."),
            )
        if found == self.root and not root:
            raise TaxonomyError(
                "The root of the tree was to be changed.",
                say("'{root_label}' is reserved for suppressed cells.", root_label=ROOT_LABEL),
                "Choose a node below it.",
            )
        return found

    def several(self, nodes: Sequence[Place]) -> list[int]:
        chosen = [self.one(node) for node in nodes]
        inside = set(chosen)
        nested = any(self._higher(node) & inside for node in chosen)
        if not chosen or isinstance(nodes, str) or len(inside) < len(chosen) or nested:
            raise TaxonomyError(
                "The nodes to change are none, or one of them lies below another.",
                "What belongs where would not be clear.",
                "Name nodes side by side, each once.",
            )
        return chosen

    def group_at(self, node: Place, root: bool = False) -> int:
        found = self.one(node, root)
        if not self.is_group(found):
            raise TaxonomyError(
                "A value was named where a group is needed.",
                "Nothing can stand below a value: it is what the table holds.",
                "Name a group, or make one around the value first.",
            )
        return found

    def is_group(self, node: int) -> bool:
        return node >= self.tree.leaves and node not in self.values[self.tree.leaves :]

    def _higher(self, node: int) -> set[int]:
        out = set()
        while node != self.root:
            node = self.parent[node]
            out.add(node)
        return out

    def is_under(self, node: int, above: int) -> bool:
        return node == above or above in self._higher(node)

    def above(self, nodes: Sequence[int]) -> int:
        """The narrowest group above all of them."""
        shared = set.intersection(*(self._higher(node) for node in nodes))
        at = self.parent[nodes[0]]
        while at not in shared:
            at = self.parent[at]
        return at

    def place_of(self, node: int, above: int) -> int:
        """Where the branch of *node* stands among the children of *above*."""
        while self.parent[node] != above:
            node = self.parent[node]
        return self.below[above].index(node)

    def new(self, label: str, above: int, at: int | None = None) -> int:
        number = len(self.labels)
        self.labels.append(label)
        self.parent.append(above)
        self.below.append([])
        self.below[above].insert(len(self.below[above]) if at is None else at, number)
        return number

    def hang(self, nodes: Sequence[int], under: int, at: int | None = None) -> None:
        gone: dict[int, set[int]] = {}
        for node in nodes:
            gone.setdefault(self.parent[node], set()).add(node)
            self.parent[node] = under
        for old, left in gone.items():
            self.below[old] = [node for node in self.below[old] if node not in left]
        place = len(self.below[under]) if at is None else at
        self.below[under][place:place] = nodes

    def finished(self) -> Taxonomy:
        if any(label == ROOT_LABEL for node, label in enumerate(self.labels) if node != self.root):
            raise TaxonomyError(
                say("A node was to be named '{root_label}'.", root_label=ROOT_LABEL),
                say("'{root_label}' is reserved for suppressed cells.", root_label=ROOT_LABEL),
                "Give it another name.",
            )
        names = Counter(self.labels[value] for value in self.values)
        if doubled := sum(count - 1 for count in names.values()):
            raise TaxonomyError(
                say_n(
                    "{n:,} value would stand in the tree twice.",
                    "{n:,} values would stand in the tree twice.",
                    doubled,
                ),
                "A value with two places has no single generalization.",
                "Give it another name, or leave it where it is.",
            )
        paths: list[list[str]] = []
        values = set(self.values)
        waiting: list[tuple[int, list[str]]] = [(node, []) for node in reversed(self.below[self.root])]
        while waiting:
            node, higher = waiting.pop()
            path = [self.labels[node], *higher]
            if node in values:
                paths.append(path)
            waiting += [(child, path) for child in reversed(self.below[node])]
        return from_paths(paths)
