"""A small hospital table that belongs to nobody, to learn and to test with.

Here are `hospital.csv` (2,000 admissions of 1,700 invented patients, in Portuguese), the schema
`hospital.schema.toml` that says what each column means, and the level files in `taxonomies/` that the schema
points to. No row comes from a real register: names are put together at random and the check digits of every
CPF are wrong on purpose. `make_hospital.py`, kept beside the files, makes them again byte for byte. `discharges.csv` has
6,000 discharges, one a patient, with a column `reinternado` (back within thirty days) that can be learned from the others;
`make_discharges.py` makes it.

    >>> hospital_csv().name, hospital_schema().name
    ('hospital.csv', 'hospital.schema.toml')
"""

from pathlib import Path

__all__ = ["SAMPLE_FOLDER", "discharges_csv", "discharges_schema", "hospital_csv", "hospital_schema"]

SAMPLE_FOLDER = Path(__file__).parent


def hospital_csv() -> Path:
    """The path of the sample table: comma-separated, UTF-8, one header line.

    >>> hospital_csv().is_file()
    True
    """
    return SAMPLE_FOLDER / "hospital.csv"


def hospital_schema() -> Path:
    """The path of the schema of the sample table.

    >>> hospital_schema().is_file()
    True
    """
    return SAMPLE_FOLDER / "hospital.schema.toml"


def discharges_csv() -> Path:
    """The path of the table of discharges: comma-separated, UTF-8, one header line.

    >>> discharges_csv().is_file()
    True
    """
    return SAMPLE_FOLDER / "discharges.csv"


def discharges_schema() -> Path:
    """The path of the schema of the table of discharges.

    >>> discharges_schema().is_file()
    True
    """
    return SAMPLE_FOLDER / "discharges.schema.toml"
