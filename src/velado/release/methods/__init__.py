"""Methods: ways to choose groups or levels, each a settings class with one verb, listed in a plain tuple.

Adding one: a file with the class, a line here, a known-answer test. Flags, recipe, docs table and
contract tests follow from the class.
"""

from __future__ import annotations

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
from velado.settings import named

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
    """The method registered under *name*, or an error that suggests the nearest.

    >>> method_named("mondrian")()
    Mondrian(cut='strict', categories='taxonomy', recoder='cover')
    """
    return named(METHODS, name, "method")


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
