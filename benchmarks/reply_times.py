"""Does the time of a reply tell whether somebody is in the table?

Arms take turns question by question, so that what else the machine does falls on all alike: the table, the same table once more
(the null arm: nothing differs), the table without one person (a neighbour), and the table without half of its rows (no neighbour;
it shows that the clock works). For each arm: the chance that a reply of the first table is the slower of two (AUC; 0.5 tells
nothing) as the engine took it and on ticks.

    python -m benchmarks reply_times --questions 200
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.session import Session
from velado.query.unit import Unit

ROWS, TICK = 300_000, 0.1


def auc(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The chance that one of *first* is the larger of two, ties counted half; and its standard error where nothing differs."""
    both = np.concatenate([first, second])
    _, places, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    n, m = len(first), len(second)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m)), float(np.sqrt((n + m + 1) / (12 * n * m)))


def main(given: list[str] | None = None) -> None:
    """Print the chances."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=200)
    asked = parser.parse_args(given or [])
    rng = np.random.default_rng(1)
    schema = Schema(
        {
            "who": Column("who"),
            "age": Column("age", kind="numeric", bounds=(0, 120)),
            "city": Column("city", values=("a", "b", "c")),
        }
    )
    frame = pl.DataFrame(
        {
            "who": rng.integers(0, ROWS // 4, ROWS).astype(str),
            "age": rng.integers(0, 100, ROWS),
            "city": rng.choice(["a", "b", "c"], ROWS),
        }
    )
    arms = {
        "table": frame,
        "the same (null)": frame,
        "without one person": frame.filter(pl.col("who") != "7"),
        "without half of the rows": frame.head(ROWS // 2),
    }
    sessions = {
        name: Session(Table.of(rows, schema, "t"), Unit("who", 8), 1000) for name, rows in arms.items()
    }
    times: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(asked.questions):
        for name in rng.permutation(list(arms)):
            # Another limit each time, so that no answer is a stored one.
            sql = f"SELECT city, COUNT(*) FROM t WHERE age < {number}.5 GROUP BY city"
            start = time.perf_counter()
            sessions[name].answer(sql, spend="0.2")
            times[name].append(time.perf_counter() - start)
    taken = {name: np.array(one) for name, one in times.items()}
    print(f"{asked.questions} questions for each arm, {ROWS:,} rows, ticks of {TICK} s")
    print(
        "| arm | median, ms | as the engine took it | on ticks | two standard errors |\n|---|---|---|---|---|"
    )
    for name, one in taken.items():
        plain, error = auc(taken["table"], one)
        on_ticks, _ = auc(np.ceil(taken["table"] / TICK), np.ceil(one / TICK))
        print(f"| {name} | {1000 * np.median(one):.1f} | {plain:.3f} | {on_ticks:.3f} | {2 * error:.3f} |")


if __name__ == "__main__":
    main()
