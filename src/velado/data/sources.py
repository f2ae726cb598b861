"""Where the papers' data sets are published, where their files belong below the data folder, and their checksums.

Addresses only; `data/fetch.py` does the downloading. Where the published file is not the one the experiments read,
*prepare* (of `data/published.py`) turns its bytes into that one. A checksum is known where the reference tables are what
comes out; elsewhere the first download's is recorded, and later ones are held against it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from velado.data.published import (
    activities,
    adult,
    bicycles,
    cars,
    clients,
    contraceptive,
    fires,
    frailty,
    houses,
    mammographic,
    wine,
)
from velado.errors import ParameterError

Prepare = Callable[[bytes], bytes]
_MEGABYTE = 1 << 20
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_ARX = "https://raw.githubusercontent.com/arx-deidentifier/arx/master/data"
_PHYSIONET = "https://physionet.org/files/wearable-exercise-frailty/1.0.0"
_HOUSING = "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv"
_CLIENTS = "https://huggingface.co/datasets/scikit-learn/credit-card-clients/resolve/main/UCI_Credit_Card.csv"
"""The same table as UCI's spreadsheet."""


@dataclass(frozen=True)
class RemoteFile:
    """One file: its address, its place below the data folder, and what it must be.

    *sha256* is that of the file in its place, after *prepare*; None where it is not known, and then the first download
    is what later ones are compared with. More than *most_bytes* are not taken in.
    """

    url: str
    place: str
    sha256: str | None = None
    prepare: Prepare | None = None
    most_bytes: int = 64 * _MEGABYTE


@dataclass(frozen=True)
class DataSet:
    """A data set by name; without *files* it has to be fetched by hand from *page*, as told, and put at *place*."""

    name: str
    title: str
    page: str
    files: tuple[RemoteFile, ...] = ()
    by_hand: str = ""
    place: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Where its files belong below the data folder."""
        return tuple(file.place for file in self.files) if self.files else (self.place,)


_HIERARCHIES = {
    "age": "463f35372e8b1ad31fc624eb73c5da9297878a044ae5d61038eaf7b431ac55ca",
    "education": "f22e5ee519c28b05538d4e5ddea0fbee5f0017fefb3abab3fa02272325bf9ce5",
    "marital-status": "3e7ba2c4a5cd4fec059b4e3a2c57fce6e7c34a20daee1e624990ddd7beba85e5",
    "native-country": "696d3b53973311c096b33f98bb56e526016910b1a1cd5a1e904cb799d1077023",
    "occupation": "16dc420d5d7f8ab4d1e6144eb1d19ab8314ef42523fe8c4ee202372db1c98126",
    "race": "df11abf41fa0669455adc9c9f9fa88663afa0cee8327684ecca861cd32dc4209",
    "salary-class": "404895b3fcfb615813efab7ae0d2c50c8b127cec651f9b37d44a648646f86345",
    "sex": "537d23f7b6969b916b5a5490eb1b32c273fefdc62ca050a7a813e23bbf3b78b2",
    "workclass": "106f420349bf0071dbb25371795a78799edf24a64c3424619d563c3990ee8d02",
}
DATA_SETS: tuple[DataSet, ...] = (
    DataSet(
        "adult",
        "Adult: 30,162 people of the 1994 census, without blanks",
        "https://archive.ics.uci.edu/dataset/2/adult",
        (
            RemoteFile(
                f"{_UCI}/adult/adult.data",
                "adult/adult_clean.csv",
                "6ab9e83d34b6de3961de73f30034bb14171e02de4d502e0549b0806e697cf0c2",
                adult,
            ),
        ),
    ),
    DataSet(
        "adult-hierarchies",
        "Level files of Adult, as ARX ships them",
        "https://github.com/arx-deidentifier/arx",
        tuple(
            RemoteFile(
                f"{_ARX}/adult_hierarchy_{name}.csv", f"adult/hierarchies/adult_hierarchy_{name}.csv", digest
            )
            for name, digest in _HIERARCHIES.items()
        ),
    ),
    DataSet(
        "cmc",
        "Contraceptive method choice: 1,473 women",
        "https://archive.ics.uci.edu/dataset/30/contraceptive+method+choice",
        (
            RemoteFile(
                f"{_UCI}/cmc/cmc.data",
                "uci/cmc.csv",
                "2efb902df53234b53087e56c1221ac0659f70aeff977235eb0822747e858e7f6",
                contraceptive,
            ),
        ),
    ),
    DataSet(
        "mgm",
        "Mammographic masses: 830 findings without blanks",
        "https://archive.ics.uci.edu/dataset/161/mammographic+mass",
        (
            RemoteFile(
                f"{_UCI}/mammographic-masses/mammographic_masses.data",
                "uci/mgm.csv",
                "8d6d78dafd8e80421e5b2d34b84bafef806f2c03676900e3a96f0df687abac40",
                mammographic,
            ),
        ),
    ),
    DataSet(
        "wef",
        "Wearable, exercise, frailty: 80 patients",
        "https://physionet.org/content/wearable-exercise-frailty/1.0.0/",
        (
            RemoteFile(
                f"{_PHYSIONET}/subject-info.csv",
                "wef/wef.csv",
                "23ab9d7d6bc79cf8222543307a674639d4b74deaa7393baa5f9989bc066decd6",
                frailty,
            ),
        ),
    ),
    DataSet(
        "wine",
        "White wines: 4,898",
        "https://archive.ics.uci.edu/dataset/186/wine+quality",
        (
            RemoteFile(
                f"{_UCI}/wine-quality/winequality-white.csv",
                "regression/winequality-white.csv",
                "e50daca845c96dcf210162b93dfb89f4abe43711707a761ea8cfc55c786c4ab4",
                wine,
            ),
        ),
    ),
    DataSet(
        "hapt",
        "Human activities and postural transitions: 10,929 records of 561 features",
        "https://archive.ics.uci.edu/dataset/341",
        (
            RemoteFile(
                f"{_UCI}/00341/HAPT%20Data%20Set.zip", "hapt/hapt.csv", None, activities, 256 * _MEGABYTE
            ),
        ),
    ),
    DataSet(
        "cahousing",
        "California housing: 20,640 block groups",
        "https://www.openml.org/d/43939",
        (RemoteFile(_HOUSING, "uci/cahousing.csv", None, houses),),
    ),
    DataSet(
        "ccc",
        "Credit-card clients: 30,000",
        "https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
        (RemoteFile(_CLIENTS, "uci/credit_card_clients.csv", None, clients),),
    ),
    DataSet(
        "auto-mpg",
        "Auto MPG: 392 cars whose power is known",
        "https://archive.ics.uci.edu/dataset/9/auto+mpg",
        (RemoteFile(f"{_UCI}/auto-mpg/auto-mpg.data", "regression/auto-mpg.csv", None, cars),),
    ),
    DataSet(
        "bike",
        "Bike Sharing: 17,379 hours",
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
        (RemoteFile(f"{_UCI}/00275/Bike-Sharing-Dataset.zip", "regression/bike_hour.csv", None, bicycles),),
    ),
    DataSet(
        "forest-fires",
        "Forest Fires: 517",
        "https://archive.ics.uci.edu/dataset/162/forest+fires",
        (RemoteFile(f"{_UCI}/forest-fires/forestfires.csv", "regression/forestfires.csv", None, fires),),
    ),
    DataSet(
        "icu",
        "Traffic of an intensive care unit (Hussain et al. 2021)",
        "https://doi.org/10.3390/s21093025",
        by_hand=(
            "Its authors hand out three files after registration, Attack.csv, environmentMonitoring.csv and "
            "patientMonitoring.csv; put their rows one below the other under one header into 'icu/icu.csv'."
        ),
        place="icu/icu.csv",
    ),
)


def data_set_named(name: str) -> DataSet:
    """The data set of this name, or an error that suggests the nearest."""
    for one in DATA_SETS:
        if one.name == name:
            return one
    names = [one.name for one in DATA_SETS]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    raise ParameterError(
        f"There is no data set '{name}'.",
        "Only those whose source is known can be fetched.",
        f"Did you mean '{near[0]}'?" if near else "See `velado data list`.",
    )


def data_set_of(place: str) -> DataSet | None:
    """The data set whose file belongs at *place* below the data folder; None where none does."""
    return next((one for one in DATA_SETS if place in one.places), None)
