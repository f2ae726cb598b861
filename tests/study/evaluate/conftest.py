"""A small study of made-up people: a table, its schema, and a study file beside them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ...tables import column, toml

pytest.importorskip("sklearn", reason="studies train models: they need velado[ml]")

SCHEMA = toml(
    name="identifier text",
    age=column("quasi numeric", bounds=[0, 100]),
    city=column("quasi categorical", taxonomy="city.csv"),
    sex="quasi categorical",
    dose="other numeric",
    ill="sensitive categorical",
)

STUDY = """
[data]
table = "people.csv"
schema = "schema.toml"
target = "ill"
positive = "yes"
[anonymization]
methods = ["mondrian", "progressive"]
k = [3, 6]
seeds = [0, 1]
[models]
use = ["decision-tree", "logistic-regression"]
"""


@dataclass(frozen=True)
class Example:
    """Where the files of the study are."""

    folder: Path

    @property
    def study(self) -> Path:
        return self.folder / "study.toml"

    def write(self, text: str) -> Path:
        self.study.write_text(text, "utf-8")
        return self.study

    def change(self, *pairs: tuple[str, str]) -> Path:
        text = STUDY
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return self.write(text)


def people(rows: int = 240, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    city = rng.choice(["Aldenia", "Brumosa", "Cantaro", "Dorvelha"], rows)
    chance = 1 / (1 + np.exp(-(age - 50) / 8 - (city == "Cantaro")))
    return pl.DataFrame(
        {
            "name": [f"Person-{n:03d}" for n in range(rows)],
            "age": age,
            "city": city,
            "sex": rng.choice(["F", "M"], rows),
            "dose": np.round(rng.gamma(2, 2, rows), 1),
            "ill": np.where(rng.random(rows) < chance, "yes", "no"),
        }
    )


def written(folder: Path) -> Example:
    """The files of the study, in a folder that is made for them."""
    folder.mkdir()
    people().write_csv(folder / "people.csv")
    (folder / "schema.toml").write_text(SCHEMA, "utf-8")
    (folder / "city.csv").write_text(
        "Aldenia;North;*\nBrumosa;North;*\nCantaro;South;*\nDorvelha;South;*\n", "utf-8"
    )
    (folder / "study.toml").write_text(STUDY, "utf-8")
    return Example(folder)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return written(tmp_path / "in")
