"""A tiny table about invented people, with a schema file and a taxonomy file, as a steward would have them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from ..tables import column, toml

CITIES = ["Aldenia", "Brumosa", "Cantaro", "Dorvelha"]
DIAGNOSES = ["qx-asthma", "qx-migraine", "qx-anaemia"]

SCHEMA = toml(
    full_name="identifier text",
    age=column("quasi numeric", bounds=[0, 100]),
    city=column("quasi categorical", taxonomy="trees/city.csv"),
    diagnosis="sensitive categorical",
)


@dataclass(frozen=True)
class Example:
    """Where the files are, and the texts that must never reach a manifest."""

    folder: Path
    table: Path
    schema: Path
    secrets: tuple[str, ...]


def rows(count: int, shift: int = 0) -> list[list[str]]:
    """Deterministic rows without any pattern between diagnosis and the other columns worth guessing."""
    return [
        [
            f"Person-{n:03d}",
            str(20 + (n * 7 + shift) % 41),
            CITIES[(n * n + n // 3) % 4],
            DIAGNOSES[(n // 2 + n * n) % 3],
        ]
        for n in range(count)
    ]


def write_csv(path: Path, header: list[str], lines: list[list[str]]) -> Path:
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n", "utf-8")
    return path


@pytest.fixture
def example(tmp_path: Path) -> Example:
    folder = tmp_path / "in"
    (folder / "trees").mkdir(parents=True)
    header = ["full_name", "age", "city", "diagnosis"]
    people = rows(40)
    write_csv(folder / "people.csv", header, people)
    write_csv(folder / "next.csv", header, rows(30, shift=5))
    (folder / "trees" / "city.csv").write_text(
        "Aldenia;North;*\nBrumosa;North;*\nCantaro;South;*\nDorvelha;South;*\n", "utf-8"
    )
    (folder / "schema.toml").write_text(SCHEMA, "utf-8")
    secrets = (*CITIES, *DIAGNOSES, *(line[0] for line in people))
    return Example(folder, folder / "people.csv", folder / "schema.toml", secrets)
