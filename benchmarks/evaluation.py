"""How long does a study of 5 methods x 6 k x 4 models x 3 seeds on Adult take, and what does the best release cost a model?

Wall seconds count, on all cores; CPU seconds stand beside them, because a busy machine changes the one and not the other.
With VELADO_SAMPLE=1 the releases of one seed at the least and the largest k are timed on one core, model by model, and the
whole is told from them. Methods are compared at the same record linkage, between two k where need be.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import tomli_w

from benchmarks.adult import schema_dict
from benchmarks.timing import Row, data_folder, print_rows
from velado.study.evaluate._matched import Rival, leaders
from velado.study.evaluate._study_grid import ORIGINAL, plan
from velado.study.evaluate._work import carry_out
from velado.study.evaluate.load import Material, load
from velado.study.evaluate.study_outcome import Study
from velado.study.evaluate.study_run import evaluate, make_plan

METHODS = ["progressive", "mondrian", "gfkmc", "mdav", "full-domain"]
KS = [3, 5, 10, 20, 50, 100]


def study_file(folder: Path, methods: list[str] = METHODS, ks: list[int] = KS, seeds: int = 3) -> Path:
    """A study of Adult: the eight quasi-identifiers, income as target, tested on true rows."""
    schema = schema_dict()
    for column in schema["columns"].values():
        # A schema reads its taxonomies from its own folder.
        if "taxonomy" in column:
            file = data_folder() / column["taxonomy"]
            column["taxonomy"] = shutil.copy(file, folder / file.name).name
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
    """Points of accuracy that models lose at *k*, the best method first with its bar, and who is better at its risk."""
    out = []
    matched = {(one.model, one.setting.k): one for one in leaders(study)}
    risks = {row.setting: row["risk"].mean for row in study.tradeoff}
    for model in ("random-forest", "xgboost"):
        rows = [row for row in study.quality if row.model == model and row.setting.k == k]
        for place, row in enumerate(sorted(rows, key=lambda row: row["drop_accuracy"].mean or 0.0)):
            drop, low, high = (100 * (end or 0.0) for end in row["drop_accuracy"].ends)
            risk = risks[row.setting] or 0.0
            out.append(
                Row(
                    f"{model} on {row.setting.method}, k = {k}",
                    drop,
                    "points",
                    1.0 if place == 0 else None,
                    note=f"interval {low:.2f} to {high:.2f}; record linkage {100 * risk:.2f} %",
                )
            )
        out += [_at_its_risk(model, other) for other in matched[model, k].beside] if rows else []
    return out


def _at_its_risk(model: str, other: Rival) -> Row:
    where = f"k = {other.k}" if other.k_other is None else f"k = {other.k} to {other.k_other}"
    near = "" if other.same_risk else ", nearest risk"
    gain, low, high = (100 * (end or 0.0) for end in other.gain.ends)
    return Row(
        f"  {other.method} ({where}{near}) loses more by",
        gain,
        "points",
        note=f"interval {low:.2f} to {high:.2f}; {model}; it loses {other.verdict}",
    )


def sample(material: Material) -> list[Row]:
    """CPU seconds of one seed's releases at the least and the largest k, by method and model, and of the whole grid."""
    jobs = [job for job in plan(material) if job.seed == 0 and job.k in (None, min(KS), max(KS))]
    cpu: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    for job in jobs:
        start = last = time.process_time()
        for row in carry_out(job, material):
            parts.setdefault(row.model or "release and its measures", []).append(time.process_time() - last)
            last = time.process_time()
        cpu.setdefault(job.label, []).append(last - start)
    seeds, per_method = len(material.recipe.anonymization.seeds), len(material.recipe.anonymization.k)
    total = sum(
        seeds * (1 if label == ORIGINAL else per_method) * sum(times) / len(times)
        for label, times in cpu.items()
    )
    return [
        *(Row(f"one release of {label}", max(times), note="the slower k") for label, times in cpu.items()),
        *(
            Row(f"  of which {name}", sum(times) / len(times), note=f"mean; at most {max(times):.2f}")
            for name, times in sorted(parts.items())
        ),
        Row(
            "the whole grid, told from these",
            total,
            bar=1800.0,
            note=f"{total / 2 / 60:.1f} min on two cores",
        ),
    ]


def main() -> None:
    """Run and print. VELADO_STUDY names a folder in which an earlier run is continued."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(os.environ.get("VELADO_STUDY") or Path(scratch) / "study")
        material = load(study_file(Path(scratch)))
        if os.environ.get("VELADO_SAMPLE"):
            print_rows("A study of Adult: a sample of its cells", sample(material))
            return
        planned = make_plan(material, out)
        wall, cpu = time.monotonic(), cpu_seconds()
        study = evaluate(material, out)
        wall, cpu = time.monotonic() - wall, cpu_seconds() - cpu
        start = time.monotonic()
        evaluate(material, out)
        # A study that was continued did part of the work before the clock started: no bar for that.
        bar = 900.0 if planned.missing == planned.cells else None
        rows = [
            Row(
                f"{planned.missing} cells of {planned.cells}",
                wall,
                "wall s",
                bar,
                note=f"{planned.workers} processes",
            ),
            Row("the same", cpu, "CPU s", note=f"estimated {planned.seconds * planned.workers:.0f} CPU s"),
            Row("started again when finished", time.monotonic() - start, "wall s"),
            Row("gaps", float(study.gaps.height), "cells"),
            *drops(study),
        ]
        print_rows("A study of Adult", rows)
        for sentence in study.facts().recommendation.sentences:
            print(f"- {sentence}")


if __name__ == "__main__":
    main()
