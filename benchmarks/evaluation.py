"""How long does a study of 5 methods x 6 k x 4 models x 3 seeds on Adult take, and what does the best release cost a model?

Wall seconds count, on all cores; CPU seconds stand beside them, because a busy machine changes the one and not the other.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import tomli_w

from benchmarks.adult import schema_dict
from benchmarks.timing import Row, data_folder, print_rows
from velado.study.evaluate.analysis import Study
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.load import load
from velado.study.evaluate.run import evaluate, make_plan

METHODS = ["progressive", "mondrian", "gfkmc", "mdav", "full-domain"]
KS = [3, 5, 10, 20, 50, 100]


def study_file(folder: Path, methods: list[str] = METHODS, ks: list[int] = KS, seeds: int = 3) -> Path:
    """A study of Adult: the eight quasi-identifiers, income as target, tested on true rows."""
    schema = schema_dict()
    for column in schema["columns"].values():
        if "taxonomy" in column:
            column["taxonomy"] = str(data_folder() / column["taxonomy"])
    (folder / "schema.toml").write_text(tomli_w.dumps(schema), "utf-8")
    boosted = "xgboost" if find_spec("xgboost") else "decision-tree"
    document = {
        "data": {
            "table": str(data_folder() / "adult" / "adult_clean.csv"),
            "schema": "schema.toml",
            "target": "income",
            "positive": ">50K",
        },
        "anonymization": {"methods": methods, "k": ks, "seeds": list(range(seeds))},
        "models": {"use": ["knn", "random-forest", "svm", boosted]},
    }
    path = folder / "study.toml"
    path.write_text(tomli_w.dumps(document), "utf-8")
    return path


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that have ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def drops(study: Study, k: int = 10) -> list[Row]:
    """Points of accuracy that models lose at *k*, the best method first, the interval beside it."""
    out = []
    for model in ("random-forest", "xgboost"):
        table = study.quality.filter(
            (pl.col("model") == model) & (pl.col("k") == k) & (pl.col("method") != ORIGINAL)
        ).sort("drop_accuracy")
        for place, row in enumerate(table.iter_rows(named=True)):
            low, high = 100 * row["drop_accuracy_low"], 100 * row["drop_accuracy_high"]
            risk = study.tradeoff.filter((pl.col("method") == row["method"]) & (pl.col("k") == k)).item(
                0, "risk"
            )
            out.append(
                Row(
                    f"{model} on {row['method']}, k = {k}",
                    100 * row["drop_accuracy"],
                    "points",
                    1.0 if place == 0 else None,
                    note=f"interval {low:.2f} to {high:.2f}; record linkage {100 * risk:.2f} %",
                )
            )
    return out


def main() -> None:
    """Run and print. VELADO_STUDY names a folder in which an earlier run is continued."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(os.environ.get("VELADO_STUDY") or Path(scratch) / "study")
        material = load(study_file(Path(scratch)))
        plan = make_plan(material, out)
        wall, cpu = time.monotonic(), cpu_seconds()
        study = evaluate(material, out)
        wall, cpu = time.monotonic() - wall, cpu_seconds() - cpu
        start = time.monotonic()
        evaluate(material, out)
        # A study that was continued did part of the work before the clock started: no bar for that.
        bar = 900.0 if plan.missing == plan.cells else None
        rows = [
            Row(
                f"{plan.missing} cells of {plan.cells}",
                wall,
                "wall s",
                bar,
                note=f"{plan.workers} processes",
            ),
            Row("the same", cpu, "CPU s", note=f"estimated {plan.seconds * plan.workers:.0f} CPU s"),
            Row("started again when finished", time.monotonic() - start, "wall s"),
            Row("gaps", float(study.gaps.height), "cells"),
            *drops(study),
        ]
        print_rows("A study of Adult", rows)
        for sentence in study.to_dict()["recommendation"]["sentences"]:
            print(f"- {sentence}")


if __name__ == "__main__":
    main()
