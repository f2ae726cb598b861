"""How exact are counts that are asked together, beside each asked alone with an equal share of the same spend?

Adult, five workloads, both measures. The ratio is that of squared errors: as the plan expects them, and as they were in `--trials` draws
(numbers below 0 are set to 0 and rounded in them, which is in neither expectation). A question that gains nothing is asked alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from itertools import combinations

import numpy as np

from benchmarks.synthetic import adult
from benchmarks.timing import Row, print_rows
from velado.data.io import read_table
from velado.query.accuracy import USUAL
from velado.query.budget import Measure
from velado.query.engines import engine_for_table
from velado.query.noise import calibrate, standard_deviation
from velado.query.sql import parse
from velado.query.unit import Unit
from velado.query.workload.workload import draw_workload, frames, plan_workload
from velado.randomness import seeded

SPENDS: dict[Measure, Fraction] = {"epsilon": Fraction(1), "rho": Fraction(1, 20)}
FIVE = ("sex", "race", "education", "marital-status", "workclass")


def workloads() -> dict[str, list[str]]:
    """Questions as an analyst writes them."""
    random = seeded(0, "workloads")
    ends = np.sort(random.integers(17, 91, (60, 2)), axis=1).tolist()
    ranges = [f"SELECT COUNT(*) FROM t WHERE age BETWEEN {low} AND {high}" for low, high in ends]
    keys = [
        f'SELECT "{one}", "{two}", COUNT(*) FROM t GROUP BY "{one}", "{two}"'
        for one, two in combinations(FIVE, 2)
    ]
    single = [f'SELECT "{one}", COUNT(*) FROM t GROUP BY "{one}"' for one in FIVE]
    both = [
        f"{question} AND sex = '{sex}'"
        for question, sex in zip(ranges[:30], ("Male", "Female") * 15, strict=True)
    ]
    return {
        "73 ages from the first on": [f"SELECT COUNT(*) FROM t WHERE age <= {age}" for age in range(17, 90)],
        "60 ranges of ages": list(dict.fromkeys(ranges)),
        "all 10 pairs of 5 columns": keys,
        "5 columns, alone and in pairs": [*single, *keys],
        "50 of all kinds": [*dict.fromkeys(both), *single, *keys, "SELECT HISTOGRAM(age, 10) FROM t"],
    }  # fmt: skip


def one(name: str, texts: list[str], measure: Measure, trials: int) -> list[Row]:
    """The figures of one workload."""
    frame, schema = adult()
    queries = [parse(text, schema, "t") for text in texts]
    spend, mechanism = SPENDS[measure], "laplace" if measure == "epsilon" else "gaussian"
    begun = time.process_time()
    made = plan_workload(queries, schema, Unit(), measure, spend)
    planned = time.process_time() - begun
    scale, _ = calibrate(mechanism, measure, 1, spend / len(texts))  # type: ignore[arg-type]
    alone = standard_deviation(mechanism, scale) ** 2  # type: ignore[arg-type]
    expected = np.ones(len(texts))
    for item in made.items:
        expected[item.question] = float((made.deviations(item) ** 2).mean()) / alone
    squares = np.zeros(len(texts))
    with closing(engine_for_table(read_table(frame, schema), Unit())) as engine:
        exact = [engine.tally(plan.query.where, plan.keys, plan.needs)[0].ravel() for plan in made.plans]
        begun = time.process_time()
        for _ in range(trials):
            for at, found in enumerate(frames(made, draw_workload(made, engine), USUAL)):
                column = next(c for c in found.columns if c.endswith("_low"))[: -len("_low")]
                squares[at] += float(((found[column].to_numpy() - exact[at]) ** 2).mean())
        asked = (time.process_time() - begun) / trials
    ratio = squares / trials / alone
    above = int((expected > 1 + 1e-9).sum())
    return [
        Row(
            f"{name}, {measure}: questions whose expected error is above one by one",
            above,
            "questions",
            0,
            note=f"{len(texts)} questions, {len(made.alone)} asked alone; plan {planned:.1f}, ask {asked:.2f} CPU s",
        ),
        Row(
            f"{name}, {measure}: squared error, median question",
            round(float(np.median(expected)), 3),
            "x one by one",
            note=f"least {expected.min():.3f}, most {expected.max():.3f}; drawn: {np.median(ratio):.3f} ({ratio.min():.3f} to {ratio.max():.3f})",
        ),
    ]


def main(given: Sequence[str] = ()) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--only", default="")
    asked = parser.parse_args(list(given))
    rows = [
        row
        for name, texts in workloads().items()
        if asked.only in name
        for measure in SPENDS
        for row in one(name, texts, measure, asked.trials)
    ]
    print_rows("Counts asked together on Adult", rows)


if __name__ == "__main__":
    main()
