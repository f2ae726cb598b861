"""Full-domain generalization: one level per column for the whole table, the best combination of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.full_domain_lattice import Lattice
from velado.anonymize.methods.full_domain_levels import NumericBins, column_levels
from velado.anonymize.methods.full_domain_losses import LOSSES, PENALTIES, Loss, LossName, Suppressed
from velado.anonymize.methods.full_domain_search import MOST_NODES, Found, Search
from velado.anonymize.parameter_types import check_types
from velado.anonymize.recoded import PublishedColumn, Recoded
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.errors import GuaranteeNotMet, ParameterError, SuppressionLimitExceeded


@dataclass(frozen=True)
class FullDomain:
    """Every value of a column is generalized to the same level; rows in groups that fail are suppressed.

    The global optimum of the chosen loss over all level combinations whose suppressed rows stay within the
    goal's limit: the problem of Samarati 2001, LeFevre et al. 2005 (Incognito), El Emam et al. 2009 (OLA) and
    Kohlmayer et al. 2012 (Flash). Equal values are published equally, which is what many analyses need, at a
    higher loss than methods that recode locally. Levels are those of a column's taxonomy; a numeric column's
    are nested quantile bins. Among equal losses fewer suppressed rows win, then lower levels.
    Cost: O(distinct tuples) per visited node; on Adult (nine columns, 12,960 nodes) some 500 are visited.
    Departure: those algorithms prune by monotone privacy models or losses; here the loss without
    suppression is a lower bound that prunes for every loss, and monotony is used only where it holds.
    """

    name: ClassVar[str] = "full-domain"
    title: ClassVar[str] = "Full-domain optimal generalization"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "distinct tuples x visited nodes"
    source: ClassVar[str] = "El Emam et al. 2009; Kohlmayer et al. 2012; losses as in ARX 3.9"

    k: int = field(default=5, metadata={"help": "rows or people in each group", "min": 2})
    loss: LossName = field(default="ncp", metadata={"help": "what is minimised", "choices": LOSSES})
    search: Literal["exact", "anytime"] = field(
        default="exact",
        metadata={
            "help": "exact proves the optimum; anytime stops after --max-visits and says whether it is proven",
            "choices": ("exact", "anytime"),
        },
    )
    max_visits: int = field(
        default=1000, metadata={"help": "level combinations an anytime search counts", "min": 1}
    )
    suppressed: Suppressed = field(
        default="charged",
        metadata={
            "help": "whether suppressed rows are charged by the loss, or taken as generalized like the rest",
            "choices": ("charged", "ignored"),
        },
    )
    balance: float = field(
        default=0.5,
        metadata={
            "help": "0.5 charges generalization and suppression in full, 0 only generalization, 1 only suppression",
            "min": 0.0,
            "max": 1.0,
        },
    )
    weights: str = field(
        default="", metadata={"help": "importance of columns, for example 'age=2,city=1'; others count 1"}
    )
    bins: NumericBins = field(
        default="halves",
        metadata={
            "help": "numeric levels: quantile bins halved in number, or the bins of DAS and their unions",
            "choices": ("halves", "separatrices"),
        },
    )

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.balance <= 1:
            raise ParameterError(
                f"A balance of {self.balance:g} is no share.",
                "It runs from 0 (only generalization counts) to 1 (only suppression).",
                "Use 0.5 to charge both in full.",
            )
        if self.balance != 0.5 and self.loss not in PENALTIES:
            raise ParameterError(
                f"The loss '{self.loss}' has no balance.",
                "It does not charge generalization and suppression apart.",
                f"Use one of {', '.join(PENALTIES)}, or leave the balance at 0.5.",
            )
        if self.weights and self.loss in ("discernibility", "class-size", "height"):
            raise ParameterError(
                f"The loss '{self.loss}' has no weights.",
                "It is not made of one term per column.",
                "Use ncp, geometric, rank, entropy or precision, or leave the weights out.",
            )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table at the best levels; deterministic, *random* is not drawn from."""
        lattice = Lattice(
            data,
            tuple(column_levels(column, self.bins) for column in data.columns),
            goal,
            data.population,
            dict(data.shapes or {}),
        )
        if self.search == "exact" and lattice.nodes > MOST_NODES:
            raise ParameterError(
                f"{lattice.nodes} level combinations are too many to search exactly.",
                f"An exact search lists them all; up to {MOST_NODES} can be listed.",
                "Use --search anytime, or taxonomies with fewer levels.",
            )
        loss = Loss(self.loss, lattice, self.suppressed, self.balance, self._weights(data))
        search = Search(lattice, loss, self.max_visits if self.search == "anytime" else None, progress)
        found = search.run()
        if found is None:
            raise self._nothing_allowed(lattice, search.limit)
        return self._publish(data, lattice, found)

    def _publish(self, data: EncodedTable, lattice: Lattice, found: Found) -> Recoded:
        kept, group = lattice.kept(lattice.count(found.node))
        published = []
        for column, levels, level in zip(data.columns, lattice.levels, found.node, strict=True):
            low, high = column.stated(levels.low[level], levels.high[level])
            values = tuple(column.label(low, high))
            published.append(
                PublishedColumn(column.name, levels.group[level][column.codes], values, low, high)
            )
        levels_of = {
            column.name: f"{level} of {height}"
            for column, level, height in zip(data.columns, found.node, lattice.heights, strict=True)
        }
        notes = {
            "levels": levels_of,
            "loss": self.loss,
            "loss_value": list(found.value) if len(found.value) > 1 else found.value[0],
            "level_combinations": lattice.nodes,
            "visited": found.visits,
            "proven_optimal": found.proven,
        }
        partition = Partition.of(np.where(kept, group, -1))
        return Recoded(tuple(published), kept, partition, notes)

    def _weights(self, data: EncodedTable) -> Mapping[str, float]:
        names = {column.name for column in data.columns}
        out: dict[str, float] = {}
        for part in filter(None, (piece.strip() for piece in self.weights.split(","))):
            name, _, number = part.rpartition("=")
            try:
                weight = float(number)
            except ValueError:
                weight = -1.0
            if name.strip() not in names or not 0 <= weight < float("inf"):
                raise ParameterError(
                    "A weight does not read as column=number.",
                    "Each names a quasi-identifier and a number of at least 0.",
                    "Write for example --weights age=2,city=1.",
                )
            out[name.strip()] = weight
        if out and max(out.values()) == 0 and len(out) == len(names):
            raise ParameterError(
                "Every column has weight 0.",
                "Then every result is as good as any.",
                "Give one a weight above 0.",
            )
        return out

    def _nothing_allowed(self, lattice: Lattice, limit: int) -> GuaranteeNotMet:
        needed = lattice.count(lattice.heights).suppressed
        promises = ", ".join(guarantee.name for guarantee in lattice.goal.guarantees)
        what = f"No combination of levels keeps {promises} with at most {limit} of {lattice.rows} rows suppressed."
        why = f"With every column at its broadest level {needed} rows are in groups that fail."
        fix = "Allow more suppression, lower the parameter, or add rows with other values."
        kind = SuppressionLimitExceeded if limit else GuaranteeNotMet
        return kind(what, why, fix)
