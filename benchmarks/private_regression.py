"""How good is a regression whose clients add noise inside the sum, beside exact least squares, at equal tables and bounds?

R2 on the whole table of the coefficients that `private_sums` gives, ten clients of whom one may be missing or collude (the noise of
nine counts), delta 1e-6; median, least and largest of 15 draws. Bounds are those of somebody who knows the units: outwards to
the first digit of the span. The norm clip (0.65 sqrt(d)) and the penalty were settled on Auto MPG, Wine Quality (white) and Bike
Sharing, whose bars are printed beside them; California Housing, Credit Card Clients and Contraceptive Method (its number of
children) were tried afterwards with the same constants; that whole rows are shortened was decided later, for the intervals' sake.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.timing import data_folder
from velado.errors import InputError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.job import Job, Party
from velado.learning.regression.private_sums import noisy_sums, solve_noisy
from velado.papers.regression.regression_tables import AUTO, BIKE, WINE
from velado.randomness import Tape

CLIENTS, SEEDS = 10, 15
BARS = {("Auto MPG", 1): 0.60, ("Auto MPG", 3): 0.70, ("Wine Quality", 3): 0.20, ("Bike Sharing", 1): 0.36}
OTHERS = {
    "California Housing": ("uci/cahousing.csv", "median_house_value", ";", ("ID",)),
    "Credit Card Clients": ("uci/credit_card_clients.csv", "LIMIT_BAL", ",", ("ID",)),
    "Contraceptive Method": ("uci/cmc.csv", "children", ";", ("ID",)),
}


def tables(data: Path) -> dict[str, dict[str, Any]]:
    """Every table by its name: the features, and the target last."""
    found: dict[str, dict[str, Any]] = {one.title: dict(one.read(data)) for one in (AUTO, WINE, BIKE)}
    for name, (file, target, separator, dropped) in OTHERS.items():
        frame = pl.read_csv(data / file, separator=separator, infer_schema_length=None)
        features = [column for column in frame.columns if column not in (*dropped, target)]
        numbers = (
            frame.select(pl.col(c).cast(pl.Float64, strict=False) for c in (*features, target))
            .fill_nan(None)
            .drop_nulls()
        )
        found[name] = {column: numbers[column].to_numpy() for column in numbers.columns}
    return found


def job_of(columns: dict[str, Any], epsilon: int) -> Job:
    """A job over these columns with noise."""

    def bounded(name: str) -> Bounded:
        low, high = float(columns[name].min()), float(columns[name].max())
        step = Fraction(10) ** math.floor(math.log10(high - low))
        return Bounded(
            name, (math.floor(Fraction(low) / step) * step, math.ceil(Fraction(high) / step) * step)
        )

    *features, target = columns
    parties = (Party("e", "evaluator"), *(Party(f"c{k}", "client") for k in range(CLIENTS)))
    given = tuple(bounded(name) for name in features)
    return Job("b", SECURE_SUM, given, bounded(target), parties, epsilon=Fraction(epsilon), most_rows=100_000)


def r_squared(columns: dict[str, Any], beta: Any) -> float:
    """The share of the target's variance that coefficients explain."""
    *features, target = columns
    y = columns[target]
    rest = y - np.column_stack([np.ones(len(y)), *(columns[name] for name in features)]) @ np.asarray(beta)
    return float(1 - rest @ rest / ((y - y.mean()) ** 2).sum())


def main() -> None:
    """Print one line for each table and epsilon."""
    print("table | rows | columns | exact R2 | epsilon | median R2 | least .. largest | bar")
    for name, columns in tables(data_folder()).items():
        *features, target = columns
        rows = len(columns[target])
        x = np.column_stack([np.ones(rows), *(columns[f] for f in features)])
        exact = r_squared(columns, np.linalg.lstsq(x, columns[target], rcond=None)[0])
        for epsilon in (1, 3, 8):
            job, found = job_of(columns, epsilon), []
            for seed in range(SEEDS):
                parts = [
                    noisy_sums(
                        {key: values[k::CLIENTS] for key, values in columns.items()},
                        job,
                        Tape(bytes([seed] * 32), f"{name} {k}"),
                    )
                    for k in range(CLIENTS)
                ]
                try:
                    solved = solve_noisy([sum(one) for one in zip(*parts, strict=True)], job, CLIENTS)
                    found.append(r_squared(columns, solved.coefficients))
                except InputError:
                    found.append(math.nan)
            good = [value for value in found if not math.isnan(value)]
            told = f"{np.median(good):.3f} | {min(good):.3f} .. {max(good):.3f}" if good else "refused | "
            refused = f" ({SEEDS - len(good)} of {SEEDS} refused)" if len(good) < SEEDS else ""
            bar = BARS.get((name, epsilon))
            print(
                f"{name} | {rows} | {len(features)} | {exact:.3f} | {epsilon} | {told}{refused} | "
                f"{'' if bar is None else f'{bar:.2f}'}"
            )


if __name__ == "__main__":
    main()
