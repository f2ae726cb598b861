"""GFKMC: generalize first, then gather what is still rare into clusters of k members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from velado.anonymize.goal import Goal, Progress, Promise, silent
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.blocks import in_blocks
from velado.anonymize.methods.gfkmc_phases import cluster, drop_costly, to_rows
from velado.anonymize.methods.gfkmc_view import Generalized, generalize
from velado.anonymize.parameter_types import check_types
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.errors import ParameterError

_RECODERS = ("cover", "centroid", "most-common-record", "most-common-value")


@dataclass(frozen=True)
class GFKMC:
    """Every class has at least *k* rows that were alike, or nearly so, once generalized one step.

    Generalization First k-Member Clustering (thesis section 2.5 and chapter 4). Numbers go into separatrix
    bins (DAS), categories one step up their taxonomy; groups of identical generalized records with k or
    more rows are classes; the rest are weighted (definitions 5-8), the strangest *beta* set aside (algorithm
    4.3), the others clustered k at a time around seeds that lie far apart (4.4, 4.5), and all that is left
    joins the class whose weighted information loss (definition 10) rises least (4.6).

    Where the text and the authors' code differ, the default follows the text: ranks are dense with shared
    ties, beta counts records, every numeric term is divided by its column's range, the next seed is the
    group whose nearest seed is farthest, and the initial classes too may take in what is left. Where fewer
    records remain than beta counts, half of them are still clustered. `paper` follows the code: ordinal
    ranks, beta of the groups, raw numeric spread, farthest seed, new clusters only. The published figures
    on the whole Adult table were made without bins (numbers = "raw").

    The default recoder publishes the tight cover of the members' true values, so nothing false is said; the
    thesis's three recoders are substitutions made from the generalized values. A suppression limit is spent
    on leftovers that cost their class more certainty than they hold. Guarantees beyond k in rows
    are reached by merging. O(n log n + G C d) for G small groups, C clusters.
    """

    name: ClassVar[str] = "gfkmc"
    title: ClassVar[str] = "Generalization first k-member clustering"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = (
        "O(n log n + G C d) for G generalized groups below k and C clusters; in blocks of b rows"
    )
    source: ClassVar[str] = "Coelho, GFKMC thesis, sections 2.5 and 4; Coelho et al. 2024 for the bins"

    k: int = field(default=5, metadata={"help": "rows in each class", "min": 2})
    profile: Literal["default", "paper"] = field(
        default="default",
        metadata={"help": "paper: the choices of the authors' code", "choices": ("default", "paper")},
    )
    recoder: str | None = field(
        default=None,
        metadata={
            "help": "how a class is published; left out: cover (default), centroid (paper)",
            "choices": _RECODERS,
        },
    )
    beta: float = field(
        default=0.05,
        metadata={"help": "share of records set aside as outliers while clustering", "min": 0.0, "max": 1.0},
    )
    numbers: Literal["separatrices", "raw"] = field(
        default="separatrices",
        metadata={"help": "how numbers are generalized first", "choices": ("separatrices", "raw")},
    )

    block: int = field(
        default=50_000, metadata={"help": "split larger tables into blocks of about so many rows", "min": 100}
    )

    def __post_init__(self) -> None:
        check_types(self)
        if self.k < 2:
            raise ParameterError(
                f"k = {self.k} hides nobody.",
                "Each person needs at least one other to be confused with.",
                "Use k = 2 or more.",
            )
        if not 0 <= self.beta <= 1:
            raise ParameterError(
                f"beta = {self.beta:g} is not a share.",
                "It is the part of the records that clustering sets aside at first.",
                "Use a number from 0 to 1, for example 0.05.",
            )
        for value, known, what in (
            (self.profile, ("default", "paper"), "profile"),
            (self.recoder, (None, *_RECODERS), "recoder"),
            (self.numbers, ("separatrices", "raw"), "way of treating numbers named"),
        ):
            if value not in known:
                raise ParameterError(
                    f"There is no {what} '{value}' in GFKMC.",
                    "Only known settings can be repeated by others.",
                    f"Choose one of {', '.join(name for name in known if name)}.",
                )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Classes that keep the goal, published by the recoder."""
        paper = self.profile == "paper"
        progress(0.0, "generalizing")
        seen = generalize(data, paper, self.numbers == "raw")
        notes: dict[str, object] = {"bins": seen.bins, "generalized_groups": int(seen.sizes.size)}
        if data.rows <= self.block:
            partition = self._cluster(data, seen, goal, random, progress, notes)
        else:
            # Blocks of neighbouring rows, each generalized and clustered by itself: the promise holds in each.
            partition = in_blocks(
                data,
                self.block,
                max(goal.least_rows, 1),
                lambda part: self._cluster(
                    part, generalize(part, paper, self.numbers == "raw"), goal, random, silent, {}
                ),
                progress,
                self.title,
            )
        partition = repair(data, partition, goal, progress)
        recoder = recoder_named(self.recoder or ("centroid" if paper else "cover"))
        progress(1.0, "publishing")
        return Recoded(recoder.publish(data, partition, seen.view), partition.kept, partition, notes)

    def _cluster(
        self,
        data: EncodedTable,
        seen: Generalized,
        goal: Goal,
        random: np.random.Generator,
        progress: Progress,
        notes: dict[str, object],
    ) -> Partition:
        """Classes of *data* by algorithms 4.2 to 4.6; facts about the run go into *notes*."""
        progress(0.2, "clustering")
        found = cluster(seen, max(goal.least_rows, 1), self.beta, self.profile == "paper", random)
        labels, placed, centres = to_rows(data, seen, found)
        droppable = 0 if self.profile == "paper" else goal.suppressible(data.rows)
        if droppable and found.placed:
            fewer = drop_costly(data, labels, placed, droppable)
            # The dropped rows may hold the only second diagnosis: then the promise needs them back.
            rest = Partition(np.minimum(fewer, 0).astype(np.int32), 1)
            if bool(goal.holds_in_parts(data, rest)[0]):
                labels = fewer
        notes["initial_classes"] = found.initial
        notes["new_clusters"] = int(found.seeds.size) - found.initial
        notes["outlier_groups"] = found.outliers
        return Partition.of(labels, centres)
