"""GOK-Privacy: cluster centres moved by the gorilla troops optimizer, fuzzy memberships, at least k in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.cover_tables import CoverTables
from velado.anonymize.methods.gok_kernel import assign, memberships
from velado.anonymize.methods.gorilla_troops import search
from velado.anonymize.methods.k_member import RECODER_NAMES
from velado.anonymize.methods.mondrian import Mondrian
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition

FloatArray = npt.NDArray[np.float64]

_NEAR = 6  # nearest centres whose memberships are computed; farther ones are negligible


@dataclass(frozen=True)
class GOK:
    """Cluster centres are moved by gorillas, memberships are fuzzy, and every cluster holds at least k.

    GOK-Privacy (Pimenta, Araújo, Rodrigues, Silveira and Gomes 2025): a gorilla is a set of c = floor(n / k) centres in the unit cube of the
    quasi-identifiers; fitness is the truthful NCP of the clusters it makes (their published covers); records go
    to the centre of highest fuzzy membership (equation 4), clusters below k borrow from those that can spare, and
    the search stops when NCP no longer improves. The optimizer is the real one (see `gorilla_troops`). Part of the
    troop starts from Mondrian's groups (three kinds of cut) and part from drawn records, and the best partition ever
    seen is kept, so the result is never worse than Mondrian's.
    """

    name: ClassVar[str] = "gok"
    title: ClassVar[str] = "GOK-Privacy (gorilla troops + fuzzy clustering)"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(iterations x troop x n log(n / k) d)"
    source: ClassVar[str] = "GOK-Privacy; optimizer of Abdollahzadeh, Gharehchopogh, Mirjalili 2021"
    k: int = field(default=5, metadata={"help": "rows or people in each class", "min": 2})
    troop: int = field(
        default=6, metadata={"help": "gorillas (candidate sets of centres)", "min": 3, "max": 200}
    )
    iterations: int = field(default=8, metadata={"help": "iterations at most", "min": 1, "max": 10_000})
    patience: int = field(
        default=3, metadata={"help": "stop after so many iterations without gain", "min": 1}
    )
    fuzziness: float = field(default=2.0, metadata={"help": "the fuzzifier m of equation 4", "min": 1.05})
    centres: int = field(default=8192, metadata={"help": "most cluster centres a gorilla holds", "min": 1})
    recoder: str = field(
        default="cover", metadata={"help": "how a class is published", "choices": RECODER_NAMES}
    )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The best clusters found, repaired until the goal holds."""
        k = max(goal.least_rows, 1)
        problem = _Problem.of(data, goal, k, self.fuzziness)
        starts = self._starts(data, goal, random, progress)
        best = min(starts, key=problem.loss)
        start_loss = problem.loss(best)
        count = max(min(data.rows // k, self.centres), 1)
        troop = np.stack([problem.centres(part, count, random).ravel() for part in starts[: self.troop]])
        drawn = [problem.drawn(count, random).ravel() for _ in range(self.troop - len(troop))]
        troop = np.vstack([troop, *drawn]) if drawn else troop
        seen = [(start_loss, best)]

        def fitness(position: FloatArray) -> float:
            partition = problem.decode(position.reshape(count, -1))
            loss = problem.loss(partition)
            if loss < seen[0][0]:
                seen[0] = (loss, partition)
            return loss

        found = search(
            troop,
            fitness,
            random,
            self.iterations,
            self.patience,
            told=lambda turn, _: progress(turn / self.iterations, self.title),
        )
        partition = seen[0][1]
        notes = {
            "groups": partition.count,
            "iterations": len(found.history) - 1,
            "loss_of_the_best_start": start_loss,
            "loss_found_by_the_troop": found.fitness,
            "evaluations": self.troop * (2 * len(found.history) - 1),
        }
        return Recoded(recoder_named(self.recoder).publish(data, partition), partition.kept, partition, notes)

    @staticmethod
    def _starts(
        data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> list[Partition]:
        k = max(goal.least_rows, 2)
        out = []
        for method in (Mondrian(k=k), Mondrian(k=k, cut="relaxed"), Mondrian(k=k, categories="ordered")):
            made = method.anonymize(data, goal, random, progress).partition
            assert made is not None
            out.append(made)
        return out


@dataclass(frozen=True, repr=False)
class _Problem:
    """The table as distinct points in the unit cube, and how a set of centres becomes a partition."""

    data: EncodedTable
    goal: Goal
    k: int
    fuzziness: float
    tables: CoverTables
    points: FloatArray

    @classmethod
    def of(cls, data: EncodedTable, goal: Goal, k: int, fuzziness: float) -> _Problem:
        tables = CoverTables.of(data)
        columns = [column.positions[tables.records[:, at]] for at, column in enumerate(data.columns)]
        points = np.stack([place / max(float(place.max()), 1.0) for place in columns], axis=1)
        return cls(data, goal, k, fuzziness, tables, np.ascontiguousarray(points))

    def loss(self, partition: Partition) -> float:
        """Truthful NCP of the partition's covers, all rows."""
        total = 0.0
        for column in self.data.columns:
            low, high = partition.least_and_greatest(column.codes)
            total += float((column.loss(low, high) * partition.sizes).sum())
        suppressed = int((~partition.kept).sum()) * len(self.data.columns)
        return (total + suppressed) / (self.data.rows * len(self.data.columns))

    def centres(self, partition: Partition, count: int, random: np.random.Generator) -> FloatArray:
        """The mean of each group, filled up to *count* with drawn records (or thinned to it)."""
        of_row = self.points[self.tables.record_of]
        order, starts = partition.members()
        means = np.add.reduceat(of_row[order], starts, axis=0) / partition.sizes[:, None]
        if means.shape[0] >= count:
            return np.asarray(means[:count])
        return np.vstack([means, self.drawn(count - means.shape[0], random)])

    def drawn(self, count: int, random: np.random.Generator) -> FloatArray:
        """Centres on drawn rows: dense places get more."""
        rows = random.choice(self.tables.record_of, size=count, replace=count > self.data.rows)
        jitter = 1e-6 * random.standard_normal((count, self.points.shape[1]))
        return np.asarray(np.clip(self.points[rows] + jitter, 0.0, 1.0))

    def decode(self, centres: FloatArray) -> Partition:
        """The partition a set of centres makes: fuzzy memberships, at least k each, then the goal's repair."""
        from scipy.spatial import cKDTree

        near = min(_NEAR, centres.shape[0])
        distance, centre = cKDTree(centres).query(self.points, k=near)
        distance, centre = distance.reshape(-1, near), centre.reshape(-1, near).astype(np.int64)
        member = memberships(distance, self.fuzziness)
        label = assign(centre, member, self.tables.weight, centres.shape[0], self.k)
        lost = label < 0
        if bool(lost.all()):
            label[:] = 0
        elif bool(lost.any()):
            alive = np.unique(label[~lost])
            _, nearest = cKDTree(centres[alive]).query(self.points[lost])
            label[lost] = alive[nearest]
        return repair(
            self.data, Partition.of(label[self.tables.record_of]), self.goal, lambda share, doing="": None
        )
