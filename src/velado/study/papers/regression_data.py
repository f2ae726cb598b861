"""The four data sets of the encrypted-regression source, and the figures it published for them.

Columns as the source left them: Auto MPG without the name and the 6 rows without horsepower; Forest Fires without the month,
days as 1 to 7 from Monday; Bike Sharing without index, date, casual and registered. Our Auto MPG has origins as names, coded
1 to 3; with that coding Table 8 comes out to its published digits up to q = 30. A row with a missing cell is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.io import read_table
from velado.encrypted.job import Bounded, Job, Party, Protocol

Floats = NDArray[np.float64]
BITS = (10, 20, 30, 40, 50)
CLIENTS = 10
_DAYS = {day: str(k + 1) for k, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}


@dataclass(frozen=True)
class DataSet:
    """A table of the source: file, target, columns left out, codes of texts, and its published figures by q."""

    name: str
    title: str
    file: str
    target: str
    rows: int
    dropped: tuple[str, ...]
    table_7: tuple[float, ...]
    table_8: tuple[float, ...]
    table_9: tuple[float, ...]
    minutes_1: tuple[float, ...]
    minutes_2: tuple[float, ...]
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def read(self, data: Path) -> dict[str, Floats]:
        """The columns as floats, features in the file's order and the target last."""
        frame = read_table(data / self.file).frame
        features = [name for name in frame.columns if name not in (*self.dropped, self.target)]
        numbers = frame.select(
            pl.col(name).replace(self.codes.get(name, {})).cast(pl.Float64, strict=False)
            for name in (*features, self.target)
        ).drop_nulls()
        return {name: numbers[name].to_numpy() for name in numbers.columns}


def job_for(
    data_set: DataSet,
    columns: dict[str, Floats],
    protocol: Protocol,
    bits: int,
    key_bits: int,
    clients: int = CLIENTS,
) -> Job:
    """A job over these columns, bounded as somebody who knows their units would: density within 0.98 and 1.04."""

    def bounded(name: str) -> Bounded:
        low, high = float(columns[name].min()), float(columns[name].max())
        # Outwards to the first digit of the span; for published data that gives nothing away.
        step = Fraction(10) ** math.floor(math.log10(high - low))
        return Bounded(name, math.floor(Fraction(low) / step) * step, math.ceil(Fraction(high) / step) * step)

    *features, target = columns
    parties = (
        Party("evaluator", "evaluator"),
        Party("provider", "provider"),
        *(Party(f"client {k + 1}", "client") for k in range(clients)),
    )
    rows = len(columns[target])
    return Job(
        data_set.name,
        protocol,
        tuple(bounded(name) for name in features),
        bounded(target),
        parties,
        bits=bits,
        key_bits=key_bits,
        most_rows=rows,
        minimum_clients=min(3, clients),
    )


def shares(columns: dict[str, Floats], job: Job) -> dict[str, dict[str, Floats]]:
    """The rows dealt out to the job's clients in turn."""
    clients = job.of("client")
    return {
        party.name: {name: values[k :: len(clients)] for name, values in columns.items()}
        for k, party in enumerate(clients)
    }


AUTO = DataSet(
    "auto-mpg",
    "Auto MPG",
    "regression/auto-mpg.csv",
    "mpg",
    392,
    ("name",),
    (6.34e-8, 3.10e-14, 2.80e-20, 3.14e-26, 1.20e-29),
    (1.32e-4, 9.94e-8, 1.26e-10, 1.82e-13, 2.75e-13),
    (2.51e-9, 1.94e-14, 9.28e-17, 2.86e-17, 5.57e-17),
    (5.67, 5.11, 5.28, 5.11, 2.96),
    (9.70e-2, 9.85e-2, 0.101, 0.112, 0.100),
    {"origin": {"America": "1", "Europe": "2", "Asia": "3"}},
)
FIRES = DataSet(
    "forest-fires",
    "Forest Fires",
    "regression/forestfires.csv",
    "area",
    517,
    ("month",),
    (1.96e-8, 1.33e-15, 7.04e-21, 2.29e-27, 2.72e-29),
    (9.55e-5, 8.86e-7, 9.13e-10, 2.96e-12, 2.17e-12),
    (-6.39e-10, 5.52e-14, 8.23e-17, 8.38e-17, -1.76e-17),
    (12.43, 8.05, 10.56, 9.56, 9.86),
    (0.235, 0.218, 0.233, 0.266, 0.270),
    {"day": _DAYS},
)
WINE = DataSet(
    "wine",
    "Wine Quality",
    "regression/winequality-white.csv",
    "quality",
    4898,
    (),
    (1.89e-5, 5.25e-13, 5.22e-18, 8.85e-24, 5.00e-27),
    (0.213, 2.12e-5, 8.48e-8, 5.60e-8, 5.60e-8),
    (1.49e-5, 5.25e-13, 6.10e-17, 4.32e-17, -3.45e-17),
    (8.99, 7.16, 9.39, 6.83, 6.29),
    (0.242, 0.253, 0.305, 0.337, 0.345),
)
BIKE = DataSet(
    "bike",
    "Bike Sharing",
    "regression/bike_hour.csv",
    "cnt",
    17379,
    ("instant", "dteday", "casual", "registered"),
    (1.36e-9, 1.81e-15, 2.51e-21, 3.86e-29, 2.52e-30),
    (1.52e-2, 1.96e-6, 8.74e-9, 1.04e-11, 1.30e-11),
    (1.19e-9, -1.59e-17, -2.54e-18, 1.12e-18, 1.84e-17),
    (9.26, 11.17, 10.80, 11.74, 13.87),
    (0.272, 0.357, 0.267, 0.856, 0.944),
)
DATA_SETS = (AUTO, FIRES, WINE, BIKE)
