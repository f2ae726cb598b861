"""How good is a logistic regression whose clients add noise in every round, beside the exact one, at equal tables and bounds?

Share of right answers, area under the curve, and the distance of the coefficients from the exact ones (each times its column's standard deviation,
as a share of the exact ones' length), on the rows of the fit; ten clients of whom one may be missing or collude, delta 1e-6; median
of 15 draws with the least and largest area. Adult has the bounds of somebody who knows its columns, the others' go outwards to the first digit
of the span. How rounds, shares and limits are set was settled on these four tables by some 25 trials, so the figures are a little flattering.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from benchmarks.timing import data_folder
from velado.errors import InputError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.fit import Solved
from velado.learning.regression.job import Job, Party
from velado.learning.regression.rounds import ClientRounds, PooledRounds, most_rounds
from velado.randomness import Tape

CLIENTS, SEEDS = 10, 15
ADULT = {
    "age": (0, 100),
    "education_num": (0, 20),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
OTHERS = {
    "Credit Card Clients": ("uci/credit_card_clients.csv", ",", "default.payment.next.month", 0),
    "Contraceptive Method": ("uci/cmc.csv", ";", "method", 1),
    "Mammographic Mass": ("uci/mgm.csv", ";", "severity", 0),
}
Columns = dict[str, Any]
Bounds = dict[str, tuple[Fraction, Fraction]]


def tables(data: Path) -> dict[str, tuple[Columns, Bounds]]:
    """Every table by its name: its columns, the target as y, and their bounds."""
    frame = pl.read_csv(data / "adult/adult_clean.csv")
    columns: Columns = {name: frame[name].to_numpy().astype(float) for name in ADULT}
    bounds: Bounds = {name: (Fraction(low), Fraction(high)) for name, (low, high) in ADULT.items()}
    for name in ("sex", "marital_status", "race"):
        for value in sorted(frame[name].unique().to_list())[1:]:
            columns[f"{name}={value}"] = (frame[name] == value).to_numpy().astype(float)
            bounds[f"{name}={value}"] = (Fraction(0), Fraction(1))
    columns["y"] = frame["income"].str.contains(">").to_numpy().astype(float)
    found = {"Adult (income)": (columns, bounds)}
    for title, (file, separator, target, above) in OTHERS.items():
        read = pl.read_csv(data / file, separator=separator, infer_schema_length=None)
        numbers = read.select(pl.all().cast(pl.Float64, strict=False)).fill_nan(None).drop_nulls()
        own = {name: numbers[name].to_numpy() for name in numbers.columns if name not in ("ID", target)}
        limits = {name: _around(values) for name, values in own.items()}
        found[title] = ({**own, "y": (numbers[target].to_numpy() > above).astype(float)}, limits)
    return found


def _around(values: Any) -> tuple[Fraction, Fraction]:
    low, high = Fraction(float(values.min())), Fraction(float(values.max()))
    step = Fraction(10) ** math.floor(math.log10(high - low))
    return math.floor(low / step) * step, math.ceil(high / step) * step


def job_of(bounds: Bounds, epsilon: Fraction | None) -> Job:
    """A logistic job over these columns."""
    parties = (Party("e", "evaluator"), *(Party(f"c{k}", "client") for k in range(CLIENTS)))
    features = tuple(Bounded(name, limits) for name, limits in bounds.items())
    target = Bounded("y", (Fraction(0), Fraction(1)))
    return Job(
        "b", SECURE_SUM, features, target, parties, family="logistic", epsilon=epsilon, most_rows=100_000
    )


def fitted(job: Job, columns: Columns, seed: int) -> Solved:
    """The result of a run, its figures added in the clear."""
    parts = [{name: values[k::CLIENTS] for name, values in columns.items()} for k in range(CLIENTS)]
    clients = [ClientRounds(part, job, Tape(bytes([seed] * 32), str(k))) for k, part in enumerate(parts)]
    pooled, point = PooledRounds(job), b""
    for number in range(most_rounds(job)):
        figures = [client.figures(number, point) or [] for client in clients]
        told = pooled.take(number, [sum(one) for one in zip(*figures, strict=True)], CLIENTS)
        if told is None:
            break
        point = told
    if pooled.solved is None:
        raise RuntimeError("no solution")
    return pooled.solved


def quality(columns: Columns, bounds: Bounds, beta: Any) -> tuple[float, float]:
    """The share of right answers and the area under the curve."""
    y = columns["y"]
    score = beta[0] + sum(b * columns[name] for b, name in zip(beta[1:], bounds, strict=True))
    cases = y.sum()
    area = (rankdata(score)[y == 1].sum() - cases * (cases + 1) / 2) / (cases * (len(y) - cases))
    return float(((score > 0) == (y == 1)).mean()), float(area)


def main() -> None:
    """Print one line for each table and epsilon."""
    print(
        "table | rows | columns | epsilon | right | area | least .. largest area | distance of coefficients"
    )
    for title, (columns, bounds) in tables(data_folder()).items():
        exact = np.array(fitted(job_of(bounds, None), columns, 0).coefficients)
        size = np.array([columns[name].std() for name in bounds])
        rows = f"{title} | {len(columns['y'])} | {len(bounds)}"
        right, area = quality(columns, bounds, exact)
        most = max(columns["y"].mean(), 1 - columns["y"].mean())
        print(f"{rows} | exact | {right:.3f} (commonest {most:.3f}) | {area:.3f} | |", flush=True)
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):
            found = []
            for seed in range(SEEDS):
                try:
                    beta = np.array(fitted(job_of(bounds, epsilon), columns, seed).coefficients)
                except InputError:
                    continue
                apart = np.linalg.norm((beta - exact)[1:] * size) / np.linalg.norm(exact[1:] * size)
                found.append((*quality(columns, bounds, beta), float(apart)))
            refused = "" if len(found) == SEEDS else f" ({SEEDS - len(found)} of {SEEDS} refused)"
            if not found:
                print(f"{rows} | {float(epsilon)} | refused | | |", flush=True)
                continue
            right, area, apart = (float(np.median(one)) for one in zip(*found, strict=True))
            areas = [one[1] for one in found]
            print(
                f"{rows} | {float(epsilon)} | {right:.3f}{refused} | {area:.3f} | {min(areas):.3f} .. {max(areas):.3f} | {apart:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
