"""Methods: ways to choose groups or levels, each a frozen dataclass with one verb, listed in a plain tuple.

Adding one: a file with the dataclass, a line here, a known-answer test. Flags, recipe, docs table and
contract tests follow from the dataclass.
"""

from __future__ import annotations

import difflib

from velado.errors import ParameterError
from velado.release.methods._method import Method
from velado.release.methods.das import DAS
from velado.release.methods.fixed_interval import FixedInterval
from velado.release.methods.full_domain.full_domain import FullDomain
from velado.release.methods.gfkmc.gfkmc import GFKMC
from velado.release.methods.gok import GOK
from velado.release.methods.k_member import KMember, NearestNeighbours
from velado.release.methods.mdav import MDAV
from velado.release.methods.mondrian.mondrian import Mondrian
from velado.release.methods.progressive.progressive import Progressive
from velado.release.methods.top_down_greedy import TopDownGreedy

METHODS: tuple[type[Method], ...] = (
    DAS,
    FixedInterval,
    FullDomain,
    GFKMC,
    GOK,
    KMember,
    MDAV,
    Mondrian,
    NearestNeighbours,
    Progressive,
    TopDownGreedy,
)


def method_named(name: str) -> type[Method]:
    """The method registered under *name*, or an error that suggests the nearest."""
    for method in METHODS:
        if method.name == name:
            return method
    names = [method.name for method in METHODS]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Choose one of {', '.join(names)}."
    raise ParameterError(f"There is no method '{name}'.", "Only registered methods can be run.", hint)


__all__ = [
    "DAS",
    "GFKMC",
    "GOK",
    "MDAV",
    "METHODS",
    "FixedInterval",
    "FullDomain",
    "KMember",
    "Method",
    "Mondrian",
    "NearestNeighbours",
    "Progressive",
    "TopDownGreedy",
    "method_named",
]
