"""What a bundled hierarchy is: a name, a title, and the broader values of each value it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from velado.data.taxonomy import Taxonomy, from_paths
from velado.errors import TaxonomyError
from velado.text import say_n

Broader = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Placed:
    """The values a hierarchy could place, each with its broader ones; *unknown* and *ambiguous* are the others.

    >>> Placed((("J18", "J09-J18"),), ("?",)).unknown
    ('?',)
    """

    paths: tuple[tuple[str, ...], ...]
    unknown: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Placed(paths={len(self.paths)}, unknown={len(self.unknown)}, ambiguous={len(self.ambiguous)})"
        )


@dataclass(frozen=True)
class Hierarchy:
    """A kind of values whose broader values are known. *broader* gives those of one value: none if it is unknown.

    A value that has two meanings (a name of two places) has the empty tuple. *meaning* says in words what a label
    stands for, where labels are codes; *advice* what helps an ambiguous value. It is *telling* where values that it knows
    are hardly anything else: a diagnosis or a place is, a short number may be anything.

    >>> from velado.data.hierarchies.cep import CEP
    >>> CEP.place(["36570-000", "x"]).unknown
    ('x',)
    """

    name: str
    title: str
    broader: Callable[[str], Broader | None]
    meaning: Callable[[str], str] | None = None
    advice: str = ""
    first: Callable[[str], float] | None = None
    telling: bool = False

    def place(self, values: Iterable[str]) -> Placed:
        """Each of *values* with its broader values, sorted so that neighbours in the hierarchy are neighbours."""
        paths: list[tuple[str, ...]] = []
        unknown: list[str] = []
        ambiguous: list[str] = []
        for value in dict.fromkeys(values):
            above = self.broader(value)
            if above:
                paths.append((value, *above))
            else:
                (unknown if above is None else ambiguous).append(value)
        paths.sort(key=lambda path: (self.first(path[0]) if self.first else 0.0, path[:0:-1], path[0]))
        return Placed(tuple(paths), tuple(unknown), tuple(ambiguous))


def tree_of(hierarchy: Hierarchy, values: Iterable[str], column: str = "") -> Taxonomy:
    """The taxonomy of *values*, or an error that counts those without one place.

    >>> from velado.data.hierarchies.icd10 import ICD10
    >>> tree_of(ICD10, ["J18.9", "J20"]).labels
    ('J18.9', 'J20', 'J18', 'J09-J18', 'J20-J22', 'J00-J99', '*')
    """
    placed = hierarchy.place(values)
    if placed.ambiguous:
        raise TaxonomyError(
            say_n(
                "{n:,} value of column '{column}' has two meanings in the hierarchy '{name}'.",
                "{n:,} values of column '{column}' have two meanings in the hierarchy '{name}'.",
                len(placed.ambiguous),
                column=column,
                name=hierarchy.name,
            ),
            "Which broader value is true of it cannot be known.",
            hierarchy.advice,
            hidden=list(placed.ambiguous),
        )
    if placed.unknown:
        raise TaxonomyError(
            say_n(
                "The hierarchy '{name}' does not know {n:,} value of column '{column}'.",
                "The hierarchy '{name}' does not know {n:,} values of column '{column}'.",
                len(placed.unknown),
                column=column,
                name=hierarchy.name,
            ),
            "A value without a place in the tree cannot be generalized.",
            "Correct the values, list those that mean nothing in missing_values, or write a level file and place them by hand.",
            hidden=list(placed.unknown),
        )
    return from_paths(placed.paths, column)
