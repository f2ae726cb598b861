"""How long do the source's correlated sensitivities take, without a matrix of all pairs of records?"""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings

import numpy as np

from benchmarks.timing import Row, cpu_seconds, data_folder, print_rows
from velado.papers.correlated.approaches import Baseline, Dbscan, Gmm, GmmRfe, Memberships
from velado.papers.correlated.correlated_records import ADULT, count_queries
from velado.papers.correlated.mixture_em import AtTheEdge, choose_components
from velado.papers.correlated.rank_correlation import sensitivity
from velado.randomness import seeded

ALONE = "from benchmarks.correlated import baseline_alone; baseline_alone()"


def baseline_alone() -> None:
    """Read Adult and answer one query over all rows; the memory of the whole process is what is measured."""
    records, _ = ADULT.read(data_folder())
    everybody = np.ones((records.rows, 1))
    sensitivity(Baseline().fit(records, seeded(0)), everybody, everybody > 0)


def main() -> None:
    """Print the table."""
    records, categories = ADULT.read(data_folder())
    everybody = np.ones((records.rows, 1))
    asked = everybody > 0
    queries = count_queries(records, categories, 100, seeded(0, "bench"))
    counts = queries.astype(np.float64)
    rows = []

    for approach, bar in ((Baseline(), 0.5), (Dbscan(0.4), None), (Gmm(60), None), (GmmRfe(12, 8), 0.002)):
        fitted = []
        fit = cpu_seconds(lambda a=approach, f=fitted: f.append(a.fit(records, seeded(0))), 1, warm=False)
        one = cpu_seconds(lambda f=fitted[0]: sensitivity(f, everybody, asked))
        note = f"fit {fit:.3g} CPU s"
        if approach.name != "gmm":
            many = cpu_seconds(lambda f=fitted[0]: sensitivity(f, counts, queries), 1)
            note += f"; 100 queries in one pass {many / 100:.3g} CPU s each"
        rows.append(Row(f"{approach.name}, one query over all rows", one, bar=bar, note=note))
    peak = _peak_megabytes(ALONE)
    idle = _peak_megabytes("import benchmarks.correlated")
    rows.append(
        Row("baseline, memory of the whole process", peak, "MB", 400.0, note=f"{idle:.0f} MB are the imports")
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", AtTheEdge)
        choice = choose_components(records.values)
        seconds = cpu_seconds(lambda: choose_components(records.values), 1, warm=False)
    edge = "at the edge, told" if told else "no edge"
    rows.append(
        Row("BIC over 1..100 components", seconds, bar=120.0, note=f"{choice.components} components, {edge}")
    )
    print_rows("Correlated sensitivity on Adult, 30,162 rows", rows)
    print_rows("Correlated sensitivity on 1,000,000 rows", [_million()])


def _peak_megabytes(code: str) -> float:
    """The most memory a process of its own held; asked of itself, since a child's usage counts its parent's too."""
    tell = "; print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def _million(rows: int = 1_000_000, components: int = 12) -> Row:
    rng = np.random.default_rng(0)
    learnt = Memberships.of(rng.dirichlet(np.full(components, 0.2), rows))
    everybody = np.ones((rows, 1))
    asked = everybody > 0
    seconds = cpu_seconds(lambda: sensitivity(learnt, everybody, asked), 5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Row(
        "gmm-rfe, one query over all rows, after fitting",
        1000 * seconds,
        "CPU ms",
        50.0,
        note=f"peak {peak:.0f} MB so far",
    )


if __name__ == "__main__":
    main()
