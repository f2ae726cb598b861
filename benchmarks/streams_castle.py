"""What does a stream's information loss come to beside CASTLE, when no record may wait longer in either?

    python benchmarks/streams_castle.py [delay in records] [windows] [adult]

CASTLE is written here from its paper: J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: Continuously Anonymizing Data Streams",
IEEE TDSC 8(3), 2011: clusters grow by least enlargement, a record that has waited for *delta* others takes its cluster out, clusters
that left are used again while they are better than the average. Its bound on clusters is tried at four values, and the best one counts.
The same records, k and bound; loss is the mean width of the boxes over the columns' bounds (suppressed: 1). velado counts people and
holds its classes for an epoch as well; CASTLE counts records and promises nothing of two windows.
"""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import data_folder
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.stream.stream_settings import PeopleSettings, StreamSettings, WindowSettings
from velado.release.stream.windows import Stream

K, COLUMNS = 5, 3


class Castle:
    """The algorithm over points of the unit cube; `losses` has one entry for each record that left."""

    def __init__(self, delta: int, beta: int = 50, mu: int = 100, seed: int = 0) -> None:
        self.delta, self.beta, self.mu = delta, beta, mu
        self.points: list[np.ndarray] = []
        self.clusters: list[list[int]] = []
        self.home: dict[int, list[int]] = {}
        self.reuse: list[tuple[np.ndarray, np.ndarray]] = []
        self.recent: list[float] = []
        self.losses: list[float] = []
        self.drawn = np.random.default_rng(seed)

    def box(self, members: list[int]) -> tuple[np.ndarray, np.ndarray]:
        rows = np.stack([self.points[one] for one in members])
        return rows.min(0), rows.max(0)

    def take(self, point: np.ndarray) -> None:
        number = len(self.points)
        self.points.append(point)
        chosen = self._best(point)
        if chosen is None:
            chosen = []
            self.clusters.append(chosen)
        chosen.append(number)
        self.home[number] = chosen
        if number - self.delta in self.home:
            self._due(number - self.delta)

    def _best(self, point: np.ndarray) -> list[int] | None:
        if not self.clusters:
            return None
        boxes = [self.box(one) for one in self.clusters]
        low, high = np.stack([one[0] for one in boxes]), np.stack([one[1] for one in boxes])
        after = (np.maximum(high, point) - np.minimum(low, point)).mean(1)
        grown = after - (high - low).mean(1)
        best = np.flatnonzero(grown <= grown.min() + 1e-12)
        average = float(np.mean(self.recent[-self.mu :])) if self.recent else 0.0
        fits = [one for one in best if after[one] <= average]
        if fits:
            return self.clusters[int(self.drawn.choice(fits))]
        return self.clusters[int(best[0])] if len(self.clusters) >= self.beta else None

    def _due(self, number: int) -> None:
        cluster = self.home[number]
        if len(cluster) < K:
            point = self.points[number]
            held = [box for box in self.reuse if (box[0] <= point).all() and (point <= box[1]).all()]
            if held:
                low, high = held[int(self.drawn.integers(len(held)))]
                self._gone([number], float((high - low).mean()))
                return
            larger = sum(len(one) > len(cluster) for one in self.clusters)
            if larger > len(self.clusters) / 2 or sum(map(len, self.clusters)) < K:
                self._gone([number], 1.0)
                return
            while len(cluster) < K:
                self._merge(cluster)
        self._out(cluster)

    def _merge(self, cluster: list[int]) -> None:
        low, high = self.box(cluster)
        others = [one for one in self.clusters if one is not cluster]
        costs = []
        for one in others:
            theirs = self.box(one)
            costs.append((np.maximum(high, theirs[1]) - np.minimum(low, theirs[0])).mean())
        near = others[int(np.argmin(costs))]
        self.clusters = [one for one in self.clusters if one is not near]
        cluster += near
        for one in near:
            self.home[one] = cluster

    def _out(self, cluster: list[int]) -> None:
        left, parts = list(cluster), []
        while len(left) >= 2 * K:  # split: a record and its k - 1 nearest
            rows = np.stack([self.points[one] for one in left])
            first = rows[int(self.drawn.integers(len(left)))]
            near = np.argsort(np.abs(rows - first).sum(1), kind="stable")[:K]
            parts.append([left[one] for one in near])
            left = [one for at, one in enumerate(left) if at not in set(near.tolist())]
        parts.append(left)
        for part in parts:
            low, high = self.box(part)
            loss = float((high - low).mean())
            if not self.recent or loss < np.mean(self.recent[-self.mu :]):
                self.reuse.append((low, high))
            self.recent.append(loss)
            self._gone(part, loss)

    def _gone(self, members: list[int], loss: float) -> None:
        cluster = self.home[members[0]]
        for one in members:
            cluster.remove(one)
            del self.home[one]
            self.losses.append(loss)
        if not cluster:
            self.clusters = [one for one in self.clusters if one is not cluster]


def velado_loss(points: np.ndarray, delta: int, start: int, method: str) -> float:
    columns = {f"c{at}": {"role": "quasi", "kind": "numeric", "bounds": [0, 1000]} for at in range(COLUMNS)}
    schema = Schema.from_dict({"columns": {"who": {"role": "identifier", "person": True}, **columns}})
    asked = StreamSettings(
        schema="s.toml",
        method=method,
        window=WindowSettings(by="count", size=delta),
        people=PeopleSettings(k=K, start=start),
    )
    stream = Stream(schema, asked, Key(bytes(range(40))))
    told = [
        json.dumps({"who": f"p{at % delta}"} | {f"c{one}": int(row[one]) for one in range(COLUMNS)}).encode()
        for at, row in enumerate(points)
    ]
    closed, state = stream.advance(stream.begin(), stream.reader.read(told, [0.0] * len(told)), 0.0)
    assert state.counts.published == len(told)
    return float(np.mean([one.loss for one in closed]))


def uniform(delta: int) -> np.ndarray:
    """Made-up people, whose columns have nothing to do with each other."""
    people = np.random.default_rng(1).integers(0, 1001, (delta, COLUMNS))
    people[0], people[1] = 0, 1000
    return people


def of_adult(delta: int) -> np.ndarray:
    """People of Adult by age, education and hours of work, each column from 0 to 1000."""
    frame = pl.read_csv(data_folder() / "adult" / "adult_clean.csv")
    columns = frame.select("age", "education_num", "hours_per_week").sample(delta, seed=1).to_numpy()
    low, high = columns.min(0), columns.max(0)
    return np.round(1000 * (columns - low) / (high - low)).astype(int)


if __name__ == "__main__":
    delta = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    windows = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    adult = sys.argv[3:] == ["adult"]
    people = (of_adult if adult else uniform)(delta)
    points, peer = np.concatenate([people] * windows), np.inf
    for beta in (25, 50, 100, 200):
        castle = Castle(delta, beta)
        for point in points:
            castle.take(point / 1000)
        loss = float(np.mean(castle.losses))
        peer = min(peer, loss)
        print(
            f"CASTLE, at most {beta} clusters: {len(castle.losses):,} records left, loss {loss:.3f}",
            flush=True,
        )
    for method in ("mondrian", "progressive"):
        for start in (K, 2 * K):
            loss = velado_loss(points, delta, start, method)
            print(f"velado, {method}, start {start}: loss {loss:.3f}, {loss / peer:.2f} of the best CASTLE's")
