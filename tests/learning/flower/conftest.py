"""A table about invented people with everything declared, so that simulations and machines can share its terms."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from velado.data.io import read_schema, read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.randomness import seeded

from ...tables import column, toml

CITIES = ("Aldenia", "Brumosa", "Cantaro", "Dorvelha", "Estrela", "Fonte")
SCHEMA = toml(
    person="identifier text",
    age=column("quasi numeric", bounds=[0, 100]),
    city=column("quasi categorical", taxonomy="city.csv"),
    smokes=column("quasi categorical", values=["no", "yes"]),
    marker=column("other numeric", bounds=[0, 10]),
    outcome=column("sensitive categorical", values=["ill", "well"]),
)
CITY_LEVELS = "\n".join(f"{name};{'North' if at < 3 else 'South'};*" for at, name in enumerate(CITIES)) + "\n"


@dataclass(frozen=True)
class People:
    """A table, its schema, and the files both came from."""

    folder: Path
    csv: Path
    schema_file: Path
    table: Table
    schema: Schema


def make_people(folder: Path, rows: int, seed: int = 7) -> People:
    """Rows whose outcome depends on age, city, smoking and the marker, with some noise."""
    random = seeded(seed, "tests", "people")
    age, city = random.integers(18, 91, rows), random.integers(0, len(CITIES), rows)
    smokes, marker = random.random(rows) < 0.4, random.random(rows) * 10
    score = 0.06 * (age - 50) + 1.5 * smokes + 0.5 * (marker - 5) + 0.8 * (city < 2) - 0.5
    ill = score + random.logistic(size=rows) > 0
    frame = pl.DataFrame(
        {
            "person": [f"P{number:05d}" for number in range(rows)],
            "age": age,
            "city": [CITIES[at] for at in city],
            "smokes": ["yes" if one else "no" for one in smokes],
            "marker": marker.round(2),
            "outcome": ["ill" if one else "well" for one in ill],
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.toml").write_text(SCHEMA, "utf-8")
    (folder / "city.csv").write_text(CITY_LEVELS, "utf-8")
    frame.write_csv(folder / "people.csv")
    schema = read_schema(folder / "schema.toml")
    table = read_table(folder / "people.csv", schema)
    return People(folder, folder / "people.csv", folder / "schema.toml", table, schema)


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    """Six hundred people."""
    return make_people(tmp_path_factory.mktemp("people"), 600)
