"""What do secure sums, skewed clients, hostile clients and noise cost a federated logistic regression on Adult?

Accuracy on true held-out rows, ten clients, rare occupations and countries joined to others, the loop engine; noise is drawn anew each time, so that its lines show the median of five runs.
"""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.adult import adult_joined
from benchmarks.timing import Row, print_rows
from velado.learning.flower import Federation
from velado.learning.flower._local_rows import Locally
from velado.learning.flower.simulation import Ready, make_ready, run_ready


def pooled(ready: Ready) -> float:
    """The accuracy of scikit-learn on all clients' rows in one place."""
    scaling, parts = ready.terms.agreed.scaling, ready.parts
    features = np.concatenate([scaling(one.features) for one in parts])
    labels = np.concatenate([one.labels for one in parts])
    tested = np.concatenate([scaling(one.test_features) for one in parts])
    truth = np.concatenate([one.test_labels for one in parts])
    strength = 1 / (ready.terms.federation.penalty * labels.size)
    model = LogisticRegression(C=strength, max_iter=2000).fit(features, labels)
    return float((model.predict(tested) == truth).mean())


def again(ready: Ready, federation: Federation) -> Ready:
    """The same rows under other settings."""
    return replace(ready, terms=replace(ready.terms, federation=federation))


def skewed() -> list[Row]:
    """Dirichlet 0.1: secure sums and averaging beside the pooled rows."""
    table, out = adult_joined(), []
    base = Federation(split="dirichlet", alpha=0.1, rounds=30, participation=0.5)
    ready = make_ready(table, table.schema, Locally(), base, target="income")
    best = pooled(ready)
    for way, bar in (("secure-sum", 0.2), ("mean", 0.0)):
        start = time.process_time()
        fit = run_ready(again(ready, replace(base, aggregation=way)), "loop")
        last = fit.rounds[-1]
        note = (
            f"{len(fit.rounds)} rounds, accuracy {last.accuracy:.4f}, CPU {time.process_time() - start:.1f} s"
        )
        lost = 100 * (best - (last.accuracy or 0))
        out.append(
            Row(f"Dirichlet 0.1, {way}: points below pooled {best:.4f}", lost, "points", bar, note=note)
        )
    return out


def private() -> list[Row]:
    """Noise: points below the same run without it."""
    table, out = adult_joined(), []
    base = Federation(rounds=30, epsilon=2)
    ready = make_ready(table, table.schema, Locally(), base, target="income")
    best = run_ready(again(ready, Federation(rounds=30)), "loop").rounds[-1].accuracy or 0.0
    for epsilon in ("1/2", "1", "2"):
        start = time.process_time()
        settings = Federation.from_dict({"rounds": 30, "epsilon": epsilon})
        fits = [run_ready(again(ready, settings), "loop") for _ in range(5)]
        spent = (time.process_time() - start) / 5
        right = median(fit.rounds[-1].accuracy or 0.0 for fit in fits)
        attack = fits[0].how.membership
        note = f"CPU {spent:.1f} s a run; membership {attack['advantage']:.3f}, chance {attack['null']:.3f}"
        out.append(
            Row(f"epsilon {epsilon}: points below {best:.4f}", 100 * (best - right), "points", 2.0, note=note)
        )
    return out


def main() -> None:
    """Run and print."""
    print_rows("Clients that differ, on Adult", skewed())
    print_rows("Noise for each row, on Adult", private())


if __name__ == "__main__":
    main()
