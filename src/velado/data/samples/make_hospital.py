"""The sample hospital table and its level files exist again, byte for byte, wherever they are asked for.

Run `python -m velado.data.samples.make_hospital [--out DIR]`. Patients are drawn first (sex, age, place, then
what depends on these), their admissions second, so what belongs to a person is the same in each of that
person's rows. Everything is drawn as uniform numbers that are then looked up in cumulative weights: NumPy may
improve the other distributions of its generator between versions, and the files would change with them.
Nobody is protected here because nobody is real; the numbers describe no hospital.
"""

import argparse
import csv
import shutil
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from velado.data.samples import SAMPLE_FOLDER, hospital_schema

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Strings = NDArray[np.str_]

SEED = 20240229
# How many patients have 1, 2, 3, 4 and 5 admissions: 1,700 patients and 2,000 rows.
PATIENTS_BY_ADMISSIONS = (1494, 140, 45, 14, 7)
FIRST_DAY = np.datetime64("2023-01-01")
DAYS_COVERED = 731
# Admissions of one patient lie at least 58 days apart (see `_admission_days`), so stays never overlap.
LONGEST_STAY = 56
OLDEST_AGE_IN_TAXONOMY = 110


class _Municipality(NamedTuple):
    """A municipality, how often it is drawn, and the first and last five-digit CEP prefix it is given."""

    name: str
    state: str
    weight: float
    first_prefix: int
    last_prefix: int


class _Diagnosis(NamedTuple):
    """An ICD-10 category: who gets it (weights by sex; youngest, typical, oldest age) and what it costs.

    `days` is the median stay, `day_cost` the cost of a day in reais, `fatality` the share who die at the age
    of 60. `once` marks what does not bring the same patient back within two years.
    """

    code: str
    women: float
    men: float
    ages: tuple[int, int, int]
    days: float
    day_cost: float
    fatality: float
    once: bool = False


LISTS = tomllib.loads((SAMPLE_FOLDER / "hospital_lists.toml").read_text("utf-8"))
PLACES = tuple(_Municipality(*entry) for entry in LISTS["places"])
DIAGNOSES = tuple(_Diagnosis(*entry) for entry in LISTS["diagnoses"])


@dataclass(frozen=True)
class _Patients:
    """One entry for each patient in every array; `age` is the age at the first admission."""

    cpf: Strings
    name: Strings
    record: Strings
    sex: Strings
    age: Integers
    race: Strings
    town: Strings
    cep: Strings
    marital: Strings
    schooling: Strings
    admissions: Integers


def _draw(rng: np.random.Generator, weights: Sequence[float] | Floats, size: int) -> Integers:
    """`size` positions, each drawn with the chance that its weight has."""
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
    return np.asarray(np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right"), np.int64)


def _draw_each(rng: np.random.Generator, weights: Floats) -> Integers:
    """One position for each row of `weights`, drawn with the chances of that row."""
    cumulative = np.cumsum(weights, axis=1)
    target = rng.random(len(weights)) * cumulative[:, -1]
    return np.asarray((cumulative <= target[:, None]).sum(axis=1), dtype=np.int64)


def _draw_whole(rng: np.random.Generator, low: Integers | int, high: Integers | int, size: int) -> Integers:
    """`size` whole numbers from `low` to `high`, both included."""
    return (low + np.floor(rng.random(size) * (np.asarray(high) - low + 1))).astype(np.int64)


def _draw_normal(rng: np.random.Generator, size: int) -> Floats:
    """`size` standard normal numbers (Box and Muller 1958, from two uniform numbers each)."""
    radius = np.sqrt(-2.0 * np.log1p(-rng.random(size)))
    return np.asarray(radius * np.cos(2.0 * np.pi * rng.random(size)))


def check_digits(digits: Integers) -> Integers:
    """The check digit that the rule of the CPF gives for each row of leading digits.

    With n leading digits the weights are n + 1, n, ..., 2; the digit is 0 when the weighted sum leaves 0 or 1
    modulo 11, and 11 minus that remainder otherwise.

    >>> check_digits(np.array([[1, 1, 1, 4, 4, 4, 7, 7, 7]]))
    array([3])
    """
    rest = digits @ np.arange(digits.shape[1] + 1, 1, -1) % 11
    return np.where(rest < 2, 0, 11 - rest)


def _wrong_cpfs(rng: np.random.Generator, size: int) -> Strings:
    """CPF-like numbers, none of which the tax authority can have issued: both check digits are wrong.

    The second digit differs from the right one and also from the one that would fit the wrong first digit, so
    a program that looks only at the last digit refuses the number too.
    """
    body = _draw_whole(rng, 0, 9, size * 9).reshape(size, 9)
    first = check_digits(body)
    second = check_digits(np.column_stack([body, first]))
    wrong_first = (first + _draw_whole(rng, 1, 9, size)) % 10
    fitting = check_digits(np.column_stack([body, wrong_first]))
    wrong_second = (second + _draw_whole(rng, 1, 8, size)) % 10
    wrong_second = np.where(wrong_second == fitting, (second + 9) % 10, wrong_second)
    digits = np.column_stack([body, wrong_first, wrong_second])
    text = np.empty((size, 14), dtype=np.uint8)
    text[:] = np.frombuffer(b"000.000.000-00", dtype=np.uint8)
    text[:, [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13]] += digits.astype(np.uint8)
    return text.view("S14").ravel().astype(np.str_)


def _draw_names(rng: np.random.Generator, sex: Strings) -> Strings:
    """A given name, for some a second one, and two different surnames for each patient."""
    size = len(sex)
    given = np.empty(size, dtype=object)
    for letter, text in LISTS["given_names"].items():
        pool = text.split()
        chosen = np.flatnonzero(sex == letter)
        names = np.array(pool, dtype=object)
        weights = 1.0 / (np.arange(len(pool)) + 4.0)
        first = _draw(rng, weights, len(chosen))
        # Moving on by 1 to len - 1 places never returns to the name itself.
        second = (first + _draw_whole(rng, 1, len(pool) - 1, len(chosen))) % len(pool)
        given[chosen] = names[first] + np.where(rng.random(len(chosen)) < 0.3, " " + names[second], "")
    surnames = np.array(LISTS["surnames"].split(), dtype=object)
    mother = _draw(rng, 1.0 / (np.arange(len(surnames)) + 6.0), size)
    father = (mother + _draw_whole(rng, 1, len(surnames) - 1, size)) % len(surnames)
    particle = np.where(rng.random(size) < 0.06, " de ", " ")
    particle = np.where(surnames[mother] == "Silva", " da ", particle)
    particle = np.where(surnames[mother] == "Santos", " dos ", particle)
    return np.asarray(given + particle + surnames[mother] + " " + surnames[father], dtype=np.str_)


def _draw_by_age(
    rng: np.random.Generator,
    age: Integers,
    labels: Iterable[str],
    table: Sequence[tuple[int, tuple[float, ...]]],
) -> Strings:
    """One label for each age, with the weights of the last row of `table` that begins at or below it."""
    begins = np.array([begin for begin, _ in table])
    weights = np.array([row for _, row in table], dtype=np.float64)
    return np.array(list(labels))[_draw_each(rng, weights[np.searchsorted(begins, age, side="right") - 1])]


def _draw_patients(rng: np.random.Generator) -> _Patients:
    """All patients, with what stays true of them over the two years."""
    size = sum(PATIENTS_BY_ADMISSIONS)
    sex = np.array(["F", "M"])[_draw(rng, (55, 45), size)]
    uniform = rng.random(size)
    age = np.empty(size, dtype=np.int64)
    for letter, weights in LISTS["age_weights"].items():
        share = np.cumsum([0.0, *weights]) / sum(weights)
        here = sex == letter
        age[here] = np.floor(np.interp(uniform[here], share, LISTS["age_edges"]))

    town = _draw(rng, [place.weight for place in PLACES], size)
    regions = list(LISTS["race_weights"])
    region_of_place = np.array([regions.index(LISTS["states"][place.state][1]) for place in PLACES])
    race_weights = np.array(list(LISTS["race_weights"].values()), dtype=np.float64)
    race = np.array(LISTS["races"])[_draw_each(rng, race_weights[region_of_place[town]])]
    first_prefix = np.array([place.first_prefix for place in PLACES])[town]
    last_prefix = np.array([place.last_prefix for place in PLACES])[town]
    prefix = _draw_whole(rng, first_prefix, last_prefix, size)
    suffix = 5 * _draw_whole(rng, 0, 179, size)

    schooling = _draw_by_age(rng, age, LISTS["schooling_levels"], LISTS["schooling_weights"])
    # Waiting times that shrink with age put the patients in order: the old come back more often.
    waiting = -np.log1p(-rng.random(size)) / (0.5 + age / 50.0)
    admissions = np.empty(size, dtype=np.int64)
    admissions[np.argsort(-waiting)] = np.repeat([1, 2, 3, 4, 5], PATIENTS_BY_ADMISSIONS)
    record = 104_000 + np.cumsum(_draw_whole(rng, 1, 60, size))
    return _Patients(
        cpf=_wrong_cpfs(rng, size),
        name=_draw_names(rng, sex),
        record=record.astype(np.str_),
        sex=sex,
        age=age,
        race=race,
        town=np.array([place.name for place in PLACES])[town],
        cep=np.char.add(np.char.mod("%05d-", prefix), np.char.mod("%03d", suffix)),
        marital=_draw_by_age(rng, age, LISTS["marital_levels"], LISTS["marital_weights"]),
        schooling=np.where(rng.random(size) < 0.025, "", schooling),
        admissions=admissions,
    )


def _admission_days(
    rng: np.random.Generator, who: Integers, turn: Integers, admissions: Integers
) -> Integers:
    """The day of each row, counted from the first day covered.

    A patient with m admissions has m equal slots; the place inside a slot is 0.6 u + 0.4 v, u drawn for the
    row and v for the patient. Neighbouring rows are then at least 0.4 slots apart: 58 days where m is 5. A
    single admission falls on any day alike.
    """
    slot = DAYS_COVERED / admissions[who]
    shared = rng.random(len(admissions))[who]
    own = rng.random(len(who))
    place = np.where(admissions[who] == 1, own, 0.6 * own + 0.4 * shared)
    return np.asarray(np.floor(slot * (turn + place)), dtype=np.int64)


def _draw_diagnoses(
    rng: np.random.Generator, who: Integers, turn: Integers, sex: Strings, age: Integers
) -> Integers:
    """The position in DIAGNOSES of each row's diagnosis; `sex` and `age` are those of the row.

    About half of the readmissions repeat the diagnosis of the admission before, where that one can recur.
    """
    position = np.full(len(who), -1, dtype=np.int64)
    once = np.array([diagnosis.once for diagnosis in DIAGNOSES])
    for_sex = {
        "F": np.array([diagnosis.women for diagnosis in DIAGNOSES]),
        "M": np.array([diagnosis.men for diagnosis in DIAGNOSES]),
    }
    # age_weight[a, d] is highest at the typical age and zero outside the youngest and oldest.
    ages = np.arange(100)
    age_weight = np.column_stack(
        [
            np.interp(ages, [low - 0.5, peak, high + 0.5], [0.08, 1.0, 0.08], left=0.0, right=0.0)
            for low, peak, high in (diagnosis.ages for diagnosis in DIAGNOSES)
        ]
    )
    weights = age_weight[age] * np.where((sex == "F")[:, None], for_sex["F"], for_sex["M"])
    weights[turn > 0] *= ~once
    for number in range(len(PATIENTS_BY_ADMISSIONS)):
        rows = np.flatnonzero(turn == number)
        position[rows] = _draw_each(rng, weights[rows])
        if number > 0:
            # Rows stand patient by patient in order of time, so the admission before is the row before.
            before = position[rows - 1]
            fits = weights[rows, before] > 0
            repeats = fits & (rng.random(len(rows)) < 0.5)
            position[rows] = np.where(repeats, before, position[rows])
    return position


def _make_columns(rng: np.random.Generator) -> dict[str, Strings]:
    """Every column of the table as text, rows in order of admission."""
    patients = _draw_patients(rng)
    who = np.repeat(np.arange(len(patients.age)), patients.admissions)
    starts = np.cumsum(patients.admissions) - patients.admissions
    turn = np.arange(len(who)) - starts[who]
    size = len(who)

    day = _admission_days(rng, who, turn, patients.admissions)
    # The part of a year lived since the last birthday at the first admission decides when the age advances.
    since_birthday = 0.99 * rng.random(len(patients.age))
    years_later = (day - day[starts][who]) / 365.25
    age = np.floor(patients.age[who] + since_birthday[who] + years_later).astype(np.int64)
    sex = patients.sex[who]
    diagnosis = _draw_diagnoses(rng, who, turn, sex, age)

    median_days = np.array([each.days for each in DIAGNOSES])[diagnosis]
    stay = np.rint(median_days * np.exp(0.6 * _draw_normal(rng, size))).astype(np.int64)
    stay = np.minimum(stay, LONGEST_STAY)
    # Risk of death doubles each 18 years of age; newborns run the risk of their diagnosis as listed.
    fatality = np.array([each.fatality for each in DIAGNOSES])[diagnosis]
    risk = np.minimum(np.where(age == 0, fatality, fatality * 2.0 ** ((age - 60) / 18.0)), 0.8)
    dies = (rng.random(size) < risk) & (turn == patients.admissions[who] - 1)
    moves = rng.random(size) < 0.02 + 0.3 * np.minimum(fatality, 0.2)
    outcome = np.where(dies, "obito", np.where(moves, "transferencia", "alta"))
    day_cost = np.array([each.day_cost for each in DIAGNOSES])[diagnosis]
    # Entry costs as much as one and a half days: theatre, tests, the first hours.
    cost = day_cost * (stay + 1.5) * np.exp(0.25 * _draw_normal(rng, size))
    note = np.array(LISTS["notes"])[_draw_whole(rng, 0, len(LISTS["notes"]) - 1, size)]
    note = np.where(rng.random(size) < 0.06, note, "")

    order = np.lexsort((who, day))
    columns = {
        "cpf": patients.cpf[who],
        "nome": patients.name[who],
        "prontuario": patients.record[who],
        "sexo": sex,
        "idade": age.astype(np.str_),
        "raca_cor": patients.race[who],
        "municipio": patients.town[who],
        "cep": patients.cep[who],
        "estado_civil": patients.marital[who],
        "escolaridade": patients.schooling[who],
        "data_internacao": (FIRST_DAY + day).astype(np.str_),
        "dias_internado": stay.astype(np.str_),
        "cid10": np.array([each.code for each in DIAGNOSES])[diagnosis],
        "desfecho": outcome,
        "custo_reais": np.char.mod("%.2f", cost),
        "observacao": note,
    }
    return {name: values[order] for name, values in columns.items()}


def _chapter_of(code: str) -> str:
    """The label of the ICD-10 chapter that holds the category `code`."""
    return str(next(label for first, last, label in LISTS["chapters"] if first <= code <= last))


def _band(age: int, width: int) -> str:
    """The label of the age band of `width` years that holds `age`."""
    first = age // width * width
    return f"{first}-{first + width - 1}"


def _make_taxonomies() -> dict[str, list[tuple[str, ...]]]:
    """The lines of each level file, from the exact value to `*`."""
    ages = range(OLDEST_AGE_IN_TAXONOMY + 1)
    return {
        "municipio": [(place.name, *LISTS["states"][place.state], "*") for place in PLACES],
        "cid10": [(each.code, _chapter_of(each.code), "*") for each in DIAGNOSES],
        "idade": [(str(age), *(_band(age, width) for width in (5, 10, 20)), "*") for age in ages],
        "escolaridade": [(value, *broader, "*") for value, broader in LISTS["schooling_levels"].items()],
        "estado_civil": [(value, broader, "*") for value, broader in LISTS["marital_levels"].items()],
        "raca_cor": [(value, broader, "*") for value, broader in LISTS["race_levels"].items()],
    }


def write_hospital(folder: Path, seed: int = SEED) -> None:
    """`folder` holds the table, its schema and the level files, all UTF-8 with `\\n` line ends.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_hospital(Path(folder.name)), folder.cleanup()
    (None, None)
    """
    (folder / "taxonomies").mkdir(parents=True, exist_ok=True)
    columns = _make_columns(np.random.default_rng(seed))
    with (folder / "hospital.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    for name, lines in _make_taxonomies().items():
        with (folder / "taxonomies" / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(lines)
    # The schema is written by hand, for its comments; a folder made elsewhere gets a copy.
    if folder.resolve() != SAMPLE_FOLDER.resolve():
        shutil.copyfile(hospital_schema(), folder / hospital_schema().name)


def main(arguments: Sequence[str] | None = None) -> None:
    """The folder named on the command line, or the package's own, holds the sample.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> main(["--out", folder.name]), folder.cleanup()
    (None, None)
    """
    parser = argparse.ArgumentParser(description="Make the synthetic hospital table, schema and taxonomies.")
    parser.add_argument(
        "--out", type=Path, default=SAMPLE_FOLDER, help="folder to write to (else the package)"
    )
    write_hospital(parser.parse_args(arguments).out)


if __name__ == "__main__":
    main()
