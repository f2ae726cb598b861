"""What crosses the wire at each step of a release on Spark, on paper and by Spark's own counters?

`python -m benchmarks wire --rows 1000000,10000000`, in the environment of Spark (`make bench-spark` has it): a lake of five
quasi-identifiers with 230,400 possible tuples, one sensitive column and two that leave as they came; k = 5, Mondrian, local[2]. Paper is
`docs/explanation/scale.md`: N rows, D tuples, G groups, P parts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lakes import PART, even, plain_schema
from benchmarks.timing import run_tree

STEPS = {
    "sample": ("looking at a sample",),
    "domains": ("checking the columns", "reading the values", "counting the values"),
    "tuples": ("plan ", "counting distinct tuples"),
    "write": ("writing the recoded rows",),
    "count": ("counting what was written",),
}
"""The steps of the page, and how the progress of a run names them."""
VALUES = 20
"""Sensitive values of the lake."""


def release(lake: str, schema: str, log: str, out: str) -> None:
    """One release whose jobs are described by the step they belong to; what was found goes to *out*."""
    from pyspark.sql import SparkSession

    import velado

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": Path(log).as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.shuffle.partitions": "16",
    }
    builder = SparkSession.builder.master("local[2]").appName("wire")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")

    def told(share: float, doing: str = "") -> None:
        if doing:
            session.sparkContext.setJobDescription(str(doing))

    frame = session.read.parquet(lake)
    made = velado.anonymize(frame, schema, "mondrian", k=5, progress=told)
    found = {
        "parts": frame.rdd.getNumPartitions(),
        "rows": made.plan.rows,
        "tuples": made.plan.prepared.tuples.distinct,
        "groups": made.plan.planned.partition.count,
    }
    Path(out).write_text(json.dumps(found))
    session.stop()


def counters(log: Path) -> dict[str, tuple[float, float]]:
    """Megabytes shuffled and megabytes sent to the driver, by step, from the event log."""
    step_of: dict[int, str] = {}
    found: dict[str, list[float]] = {}
    for file in sorted(log.iterdir()):
        for line in file.open():
            event: dict[str, Any] = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                told = event.get("Properties", {}).get("spark.job.description", "")
                step = next((s for s, begins in STEPS.items() if told.startswith(begins)), "other")
                step_of |= dict.fromkeys(event["Stage IDs"], step)
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                metrics = event["Task Metrics"]
                own = found.setdefault(step_of.get(event["Stage ID"], "other"), [0.0, 0.0])
                own[0] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6
                own[1] += metrics["Result Size"] / 1e6
    return {step: (pair[0], pair[1]) for step, pair in found.items()}


def on_paper(rows: int, parts: int, tuples: int, groups: int) -> dict[str, tuple[float, float]]:
    """The same by the page's formulas, most of which are bounds; *b*, the cells of a row that leave as they came, by what 10^6 rows were seen to take."""
    sample = min(rows, 200_000) * 36 / 1e6
    listed = parts * (100 + 2 + 48 + 8 + 3 + 20 + 5000) * 20 / 1e6
    return {
        "sample": (sample, 2 * sample),
        "domains": (listed, listed / parts),
        "tuples": (min(rows, parts * tuples) * 10 / 1e6, tuples * 17 / 1e6),
        "write": (rows * (36 + 12) / 1e6, 0.0),
        "count": (
            (min(rows, parts * groups) + min(rows, parts * groups * VALUES)) * 10 / 1e6,
            groups * 17 / 1e6,
        ),
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Print one table for each size."""
    given = list(arguments)
    if "--release" in given:
        release(*given[given.index("--release") + 1 :])
        return
    sizes = given[given.index("--rows") + 1] if "--rows" in given else "1000000,10000000"
    for rows in (int(one) for one in sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for made in ("lake", "log"):
                (folder / made).mkdir()
            for at in range(0, rows, PART):
                part = even(np.random.default_rng(at), min(PART, rows - at))
                part.write_parquet(folder / "lake" / f"part{at // PART:03d}.parquet")
            given_to = [
                str(folder / "lake"),
                str(plain_schema(folder)),
                str(folder / "log"),
                str(folder / "found.json"),
            ]
            run = run_tree([sys.executable, "-m", "benchmarks.wire", "--release", *given_to], 3600)
            found = json.loads((folder / "found.json").read_text())
            paper = on_paper(found["rows"], found["parts"], found["tuples"], found["groups"])
            counted = counters(folder / "log")
        print(
            f"\n## {rows:,} rows in {found['parts']} parts, {found['tuples']:,} tuples, {found['groups']:,} groups: "
            f"{run.cpu:.0f} CPU s, {run.wall:.0f} s, {run.peak:,.0f} MB of all processes\n"
        )
        print("| step | shuffled, paper | counted | to the driver, paper | counted |\n|---|---|---|---|---|")
        for step in [*STEPS, "other"]:
            shuffled, brought = counted.get(step, (0.0, 0.0))
            own = paper.get(step)
            on = ["", ""] if own is None else [f"{own[0]:.1f} MB", f"{own[1]:.1f} MB"]
            print(f"| {step} | {on[0]} | {shuffled:.1f} MB | {on[1]} | {brought:.1f} MB |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
