"""The sample table of discharges exists again, byte for byte, wherever it is asked for: one row a patient, and something to learn.

Run `python -m velado.data.samples.make_discharges [--out DIR]`. Whether a patient came back within thirty days is drawn from
a logistic law of what a ward knows at the discharge: the stay, earlier admissions, an emergency, the department, the age.
Sex, town and schooling have no part in it. So a model has something to find, most of it in columns that a release leaves as they
are, and a study of releases can end in a decision. Nobody is real; the numbers describe no hospital.
"""

import argparse
import csv
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from velado.data.samples import SAMPLE_FOLDER, discharges_schema
from velado.data.samples.make_hospital import LISTS, PLACES, Strings, _draw, _draw_normal, _draw_whole

SEED = 20240301
ROWS = 6000
# A department, how often it is drawn, its median stay in days, and what it adds to the log odds of coming back.
DEPARTMENTS = (
    ("cirurgia", 0.30, 3.0, -0.6),
    ("clinica medica", 0.30, 6.0, 0.3),
    ("cardiologia", 0.15, 7.0, 0.9),
    ("obstetricia", 0.15, 2.0, -1.2),
    ("pneumologia", 0.10, 8.0, 0.7),
)
EARLIER = (0.48, 0.24, 0.13, 0.08, 0.04, 0.02, 0.01)
LONGEST_STAY = 60


def _make_columns(rng: np.random.Generator) -> dict[str, Strings]:
    """Every column of the table as text."""
    department = _draw(rng, [one[1] for one in DEPARTMENTS], ROWS)
    mothers = np.array([one[0] == "obstetricia" for one in DEPARTMENTS])[department]
    sex = np.where(mothers | (rng.random(ROWS) < 0.45), "F", "M")
    age = np.where(mothers, _draw_whole(rng, 16, 44, ROWS), _draw_whole(rng, 18, 92, ROWS))
    town = _draw(rng, [place.weight for place in PLACES], ROWS)
    schooling = np.array(list(LISTS["schooling_levels"]))
    median = np.array([one[2] for one in DEPARTMENTS])[department]
    stay = np.clip(np.rint(median * np.exp(0.6 * _draw_normal(rng, ROWS))), 1, LONGEST_STAY).astype(np.int64)
    earlier = _draw(rng, EARLIER, ROWS)
    emergency = rng.random(ROWS) < np.where(mothers, 0.2, 0.5)
    odds = (
        np.array([one[3] for one in DEPARTMENTS])[department]
        + 0.9 * np.minimum(earlier, 4)
        + 0.08 * (np.minimum(stay, 25) - 5)
        + 0.8 * emergency
        + 0.02 * (age - 55)
        - 2.2
    )
    back = rng.random(ROWS) < 1 / (1 + np.exp(-odds))
    return {
        "registro": np.char.mod("%06d", 300_000 + np.cumsum(_draw_whole(rng, 1, 40, ROWS))),
        "sexo": sex,
        "idade": age.astype(np.str_),
        "municipio": np.array([place.name for place in PLACES])[town],
        "escolaridade": schooling[_draw_whole(rng, 0, len(schooling) - 1, ROWS)],
        "setor": np.array([one[0] for one in DEPARTMENTS])[department],
        "dias_internado": stay.astype(np.str_),
        "internacoes_previas": earlier.astype(np.str_),
        "urgencia": np.where(emergency, "sim", "nao"),
        "reinternado": np.where(back, "sim", "nao"),
    }


def write_discharges(folder: Path, seed: int = SEED) -> None:
    """`folder` holds the table and its schema, UTF-8 with `\\n` line ends; the level files are the hospital table's.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_discharges(Path(folder.name)), folder.cleanup()
    (None, None)
    """
    columns = _make_columns(np.random.default_rng(seed))
    with (folder / "discharges.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    if folder.resolve() != SAMPLE_FOLDER.resolve():
        shutil.copyfile(discharges_schema(), folder / discharges_schema().name)


def main(arguments: Sequence[str] | None = None) -> None:
    """The folder named on the command line, or the package's own, holds the table.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> main(["--out", folder.name]), folder.cleanup()
    (None, None)
    """
    parser = argparse.ArgumentParser(description="Make the synthetic table of discharges and its schema.")
    parser.add_argument(
        "--out", type=Path, default=SAMPLE_FOLDER, help="folder to write to (else the package)"
    )
    write_discharges(parser.parse_args(arguments).out)


if __name__ == "__main__":
    main()
