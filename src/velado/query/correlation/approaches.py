"""The source's four ways to say which records move together, as frozen values, and its own settings per data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from velado.errors import ParameterError
from velado.query.correlation.bic import choose_components
from velado.query.correlation.dbscan import Clustered
from velado.query.correlation.density import clusters
from velado.query.correlation.mixture import RankedMemberships, memberships
from velado.query.correlation.ranks import ranks_within
from velado.query.correlation.records import Records
from velado.query.correlation.rfe import chosen_columns
from velado.query.correlation.spearman import Correlation, Spearman


def _check_threshold(threshold: float) -> None:
    if not 0.0 <= threshold < 1.0:
        raise ParameterError(
            "The threshold must be at least 0 and below 1.",
            "It is compared with the absolute value of a correlation, and a record is fully correlated with itself.",
            "Leave it at 0, as the source's approaches do.",
        )


def _check_components(components: int | None) -> None:
    if components is not None and components < 1:
        raise ParameterError(
            "A mixture has at least one component.",
            "Every record stems from one of them.",
            "Leave it out to let BIC choose, or take the source's 60.",
        )


@dataclass(frozen=True)
class Baseline:
    """Every pair of records, by Spearman's rho (Zhu et al. 2015, as the source runs it)."""

    name: ClassVar[str] = "baseline"
    threshold: float = field(
        default=0.0, metadata={"help": "rho at or below it counts as 0", "min": 0.0, "max": 1.0}
    )

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Ranks within every record."""
        return Spearman(ranks_within(records.values), self.threshold)


@dataclass(frozen=True)
class Dbscan:
    """Approach 1: pairs within a cluster of DBSCAN, by Spearman's rho (algorithm 3)."""

    name: ClassVar[str] = "dbscan"
    eps: float = field(default=0.4, metadata={"help": "how near neighbours are", "min": 0.0})
    min_points: int = field(
        default=2, metadata={"help": "neighbours that make a core point, itself included", "min": 1}
    )
    threshold: float = field(
        default=0.0, metadata={"help": "rho at or below it counts as 0", "min": 0.0, "max": 1.0}
    )

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)
        if not self.eps > 0 or self.min_points < 1:
            raise ParameterError(
                "DBSCAN's eps must be above 0 and its points at least 1.",
                "They say what a neighbour is and how many make a cluster.",
                "The source takes eps 0.4 and 2 points for Adult.",
            )

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Clusters, and ranks within every record."""
        labels = clusters(records.values, self.eps, self.min_points)
        return Clustered.of(ranks_within(records.values), labels, self.threshold)


@dataclass(frozen=True)
class Gmm:
    """Approach 2: the chance of a common Gaussian times Spearman's rho (algorithm 4). No components: BIC chooses."""

    name: ClassVar[str] = "gmm"
    components: int | None = field(default=None, metadata={"help": "Gaussians; none: BIC chooses", "min": 1})

    def __post_init__(self) -> None:
        _check_components(self.components)

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """A mixture, and ranks within every record."""
        size = self.components or choose_components(records.values).components
        return RankedMemberships(memberships(records.values, size, rng), ranks_within(records.values))


@dataclass(frozen=True)
class GmmRfe:
    """Approach 3: the chance of a common Gaussian over the columns a random forest kept (algorithm 5)."""

    name: ClassVar[str] = "gmm-rfe"
    components: int | None = field(default=None, metadata={"help": "Gaussians; none: BIC chooses", "min": 1})
    keep: int = field(default=8, metadata={"help": "columns that are kept", "min": 1})

    def __post_init__(self) -> None:
        _check_components(self.components)

    def fit(self, records: Records, rng: np.random.Generator) -> Correlation:
        """Columns chosen, then a mixture over them."""
        columns = chosen_columns(records, self.keep, rng)
        values = np.ascontiguousarray(records.values[:, columns])
        size = self.components or choose_components(values).components
        return memberships(values, size, rng)


Approach = Baseline | Dbscan | Gmm | GmmRfe
APPROACHES: tuple[type[Approach], ...] = (Baseline, Dbscan, Gmm, GmmRfe)

# The source's settings: section 4.3.1 (eps), tables 10 (components), 11 (columns kept) and 12 (components after RFE).
PRESETS: dict[str, tuple[Baseline, Dbscan, Gmm, GmmRfe]] = {
    "adult": (Baseline(), Dbscan(eps=0.4), Gmm(60), GmmRfe(12, 8)),
    "ccc": (Baseline(), Dbscan(eps=0.5), Gmm(32), GmmRfe(9, 10)),
    "hapt": (Baseline(), Dbscan(eps=5.0), Gmm(79), GmmRfe(76, 60)),
}


def approach_named(name: str) -> type[Approach]:
    """The approach of this name."""
    for approach in APPROACHES:
        if approach.name == name:
            return approach
    raise ParameterError(
        f"There is no approach '{name}'.",
        f"The source's are {', '.join(approach.name for approach in APPROACHES)}.",
        "Choose one of them.",
    )
