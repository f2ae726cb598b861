"""Where the papers' data sets are published, where their files belong below the data folder, and their checksums.

Addresses only; `papers/downloads.py` does the downloading. Where the published file is not the one the experiments read,
*prepare* turns its bytes into that one. A checksum is known where the reference tables are what
comes out; elsewhere the first download's is recorded, and later ones are held against it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from velado.errors import ParameterError, TableError
from velado.settings import nearest
from velado.text import say

# Published files turned into the ones the experiments read: pure functions from bytes to bytes.
#
# A published file may have no header, other separators, codes for words, rows with blanks, or be an archive. What does not
# have the form it had when this was written is refused, never guessed at.

_MEGABYTE = 1 << 20
_ADULT = (
    "age,workclass,final_weight,education,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,native_country,income"
)
_CMC = "ID;age;Weducation;Heducation;children;religion;working;occupation;solindex;exposure;method"
_MGM = "ID;bi_rads_assessment;age;shape;margin;density;severity"
_WEF = ("ID", "Age", "Gender", "Height(cm)", "Weight(kg)")

_AUTO = "mpg,cyl,displ,hp,weight,accel,yr,origin,name"
_ORIGINS = {"1": "America", "2": "Europe", "3": "Asia"}
_HOUR = "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,registered,cnt"
_FIRES = "X,Y,month,day,FFMC,DMC,DC,ISI,temp,RH,wind,rain,area"
_HOUSING = (
    "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
    "median_house_value,ocean_proximity"
)
_HOUSES = "ID;longitude;latitude;housing_median_age;population;households;median_income;median_house_value;ocean_proximity"
_CLIENTS = (
    "ID,LIMIT_BAL,SEX,EDUCATION,MARRIAGE,AGE,PAY_0,PAY_2,PAY_3,PAY_4,PAY_5,PAY_6,BILL_AMT1,BILL_AMT2,BILL_AMT3,BILL_AMT4,"
    "BILL_AMT5,BILL_AMT6,PAY_AMT1,PAY_AMT2,PAY_AMT3,PAY_AMT4,PAY_AMT5,PAY_AMT6,default.payment.next.month"
)
_SHORES = {"<1H OCEAN": "1", "INLAND": "2", "NEAR OCEAN": "0", "NEAR BAY": "0", "ISLAND": "0"}
"""The three classes of the experiments: within an hour of the ocean, inland, at the water."""


def _lines(data: bytes) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _unexpected() from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _rows(data: bytes, width: int) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.split(",")] for line in _lines(data)]
    if not rows or any(len(row) != width for row in rows):
        raise _unexpected()
    return rows


def _unexpected() -> TableError:
    return TableError(
        "The downloaded file does not have the form it had when velado was made.",
        "The experiments could not read it.",
        "Look at the data set's page (`velado data list`), and put the file in its place by hand.",
    )


def _text(header: str, rows: Sequence[Sequence[str]], separator: str) -> bytes:
    return "\n".join([header, *(separator.join(row) for row in rows), ""]).encode()


def adult(data: bytes) -> bytes:
    """The people of `adult.data` without a blank, with a header; capital gains are written with a decimal, as always.

    >>> row = b"39, State-gov, 77516, Bachelors, 13, Never, Clerical, Not, White, Male, 2174, 0, 40, US, <=50K"
    >>> adult(row).splitlines()[1][-38:]
    b'al,Not,White,Male,2174.0,0,40,US,<=50K'
    """
    rows = [row for row in _rows(data, 15) if "?" not in row]
    return _text(_ADULT, [[*row[:10], f"{row[10]}.0", *row[11:]] for row in rows], ",")


def contraceptive(data: bytes) -> bytes:
    """The rows of `cmc.data`, numbered, with a header.

    >>> contraceptive(b"24,2,3,3,1,1,2,3,0,1\\n").splitlines()[1]
    b'1;24;2;3;3;1;1;2;3;0;1'
    """
    return _text(_CMC, [[str(at), *row] for at, row in enumerate(_rows(data, 10), start=1)], ";")


def mammographic(data: bytes) -> bytes:
    """The rows of `mammographic_masses.data` without a blank, each with its number in that file, with a header.

    >>> mammographic(b"5,67,3,5,3,1\\n4,?,1,1,3,1\\n").splitlines()[1:]
    [b'1;5;67;3;5;3;1']
    """
    numbered = [[str(at), *row] for at, row in enumerate(_rows(data, 6), start=1)]
    return _text(_MGM, [row for row in numbered if "?" not in row], ";")


def frailty(data: bytes) -> bytes:
    """Number, age, gender, height and weight of the patients of `subject-info.csv`.

    >>> frailty(b"ID,Age,Gender,Height (cm),Weight (kg),Note\\n1,80,F,150,60,x\\n").splitlines()[1]
    b'1,80,F,150,60'
    """
    lines = _lines(data.removeprefix(b"\xef\xbb\xbf"))
    separator = max(",;\t", key=lines[0].count) if lines else ","
    rows = [[cell.strip().strip('"') for cell in line.split(separator)] for line in lines]
    places = {name.replace(" ", ""): at for at, name in enumerate(rows[0])} if rows else {}
    if not rows or any(name not in places for name in _WEF) or any(len(row) != len(rows[0]) for row in rows):
        raise _unexpected()
    chosen = [[row[places[name]] for name in _WEF] for row in rows[1:]]
    return _text(",".join(_WEF), chosen, ",")


def wine(data: bytes) -> bytes:
    """`winequality-white.csv` with commas and without quotes.

    >>> wine(b'"pH";"quality"\\r\\n3.1;6\\r\\n')
    b'pH,quality\\n3.1,6\\n'
    """
    return data.replace(b'"', b"").replace(b";", b",").replace(b"\r\n", b"\n")


def activities(data: bytes) -> bytes:
    """The 561 features and the activity of every record of HAPT, training and test part one below the other.

    >>> activities(b"another file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: ...
    """
    parts = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for part in ("Train", "Test"):
                features = _member(archive, f"{part}/X_{part.lower()}.txt")
                labels = _member(archive, f"{part}/y_{part.lower()}.txt")
                if not features or len(features) != len(labels):
                    raise _unexpected()
                parts += [[*row.split(), label] for row, label in zip(features, labels, strict=True)]
    except (zipfile.BadZipFile, KeyError):
        raise _unexpected() from None
    width = len(parts[0])
    if any(len(row) != width for row in parts):
        raise _unexpected()
    header = ",".join([*(f"feature_{at}" for at in range(1, width)), "activity"])
    return _text(header, parts, ",")


def _member(archive: zipfile.ZipFile, name: str) -> list[str]:
    # An archive may claim little and unpack to much: what it would become is looked at before it is opened.
    if archive.getinfo(name).file_size > 256 * _MEGABYTE:
        raise _unexpected()
    return _lines(archive.read(name))


def cars(data: bytes) -> bytes:
    """The cars of `auto-mpg.data` whose power is known, with a header; origins by name, as the experiments have them.

    >>> _whole("130.0")
    '130'
    """
    rows = []
    for line in _lines(data):
        numbers, quote, name = line.partition('"')
        cells = numbers.split()
        if len(cells) != 8 or not quote or not name.endswith('"') or "," in name or cells[7] not in _ORIGINS:
            raise _unexpected()
        if "?" not in cells:
            whole = [_whole(cells[at]) for at in (3, 4)]
            rows.append([*cells[:3], *whole, *cells[5:7], _ORIGINS[cells[7]], name[:-1]])
    return _text(_AUTO, _counted(rows, 392), ",")


def bicycles(data: bytes) -> bytes:
    """The hours of `hour.csv` in the archive of Bike Sharing; dates without dashes.

    >>> bicycles(b"another file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: ...
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            lines = _member(archive, "hour.csv")
    except (zipfile.BadZipFile, KeyError):
        raise _unexpected() from None
    rows = _below(lines, _HOUR)
    return _text(_HOUR, _counted([[row[0], row[1].replace("-", ""), *row[2:]] for row in rows], 17_379), ",")


def fires(data: bytes) -> bytes:
    """The fires of `forestfires.csv`, as they are.

    >>> fires(b"another file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: ...
    """
    return _text(_FIRES, _counted(_below(_lines(data), _FIRES), 517), ",")


def houses(data: bytes) -> bytes:
    """The block groups of `housing.csv`, numbered from 0; the five kinds of shore as the experiments' three classes.

    >>> houses(b"another file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: ...
    """
    rows = []
    for at, row in enumerate(_below(_lines(data), _HOUSING)):
        if row[9] not in _SHORES:
            raise _unexpected()
        rows.append(
            [
                str(at),
                *row[:2],
                _whole(row[2]),
                *map(_whole, row[5:7]),
                row[7],
                _whole(row[8]),
                _SHORES[row[9]],
            ]
        )
    return _text(_HOUSES, _counted(rows, 20_640), ";")


def clients(data: bytes) -> bytes:
    """The clients of `UCI_Credit_Card.csv`; every cell is a whole number and is written as one (1e+05 as 100000).

    >>> clients(b"another file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TableError: ...
    """
    lines = [line.replace('"', "") for line in _lines(data)]
    return _text(
        _CLIENTS, _counted([[_whole(cell) for cell in row] for row in _below(lines, _CLIENTS)], 30_000), ","
    )


def _below(lines: Sequence[str], header: str) -> list[list[str]]:
    """The cells of every line below the *header*, which must be the first."""
    if not lines or lines[0] != header:
        raise _unexpected()
    rows = [line.split(",") for line in lines[1:]]
    if any(len(row) != header.count(",") + 1 for row in rows):
        raise _unexpected()
    return rows


def _whole(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        raise _unexpected() from None
    if not number.is_integer():
        raise _unexpected()
    return str(int(number))


def _counted(rows: list[list[str]], number: int) -> list[list[str]]:
    if len(rows) != number:
        raise _unexpected()
    return rows


Prepare = Callable[[bytes], bytes]
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_ARX = "https://raw.githubusercontent.com/arx-deidentifier/arx/master/data"
_PHYSIONET = "https://physionet.org/files/wearable-exercise-frailty/1.0.0"
_HOUSING_ADDRESS = "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv"
_CLIENTS_ADDRESS = (
    "https://huggingface.co/datasets/scikit-learn/credit-card-clients/resolve/main/UCI_Credit_Card.csv"
)
"""The same table as UCI's spreadsheet."""


@dataclass(frozen=True)
class RemoteFile:
    """One file: its address, its place below the data folder, and what it must be.

    *sha256* is that of the file in its place, after *prepare*; None where it is not known, and then the first download
    is what later ones are compared with. More than *most_bytes* are not taken in.

    >>> DATA_SETS[0].files[0].place
    'adult/adult_clean.csv'
    """

    url: str
    place: str
    sha256: str | None = None
    prepare: Prepare | None = None
    most_bytes: int = 64 * _MEGABYTE


@dataclass(frozen=True)
class PublicDataSet:
    """A data set by name; without *files* it has to be fetched by hand from *page*, as told, and put at *place*.

    >>> DATA_SETS[0].places
    ('adult/adult_clean.csv',)
    """

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
DATA_SETS: tuple[PublicDataSet, ...] = (
    PublicDataSet(
        "adult",
        say("Adult: 30,162 people of the 1994 census, without blanks"),
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
    PublicDataSet(
        "adult-hierarchies",
        say("Level files of Adult, as ARX ships them"),
        "https://github.com/arx-deidentifier/arx",
        tuple(
            RemoteFile(
                f"{_ARX}/adult_hierarchy_{name}.csv", f"adult/hierarchies/adult_hierarchy_{name}.csv", digest
            )
            for name, digest in _HIERARCHIES.items()
        ),
    ),
    PublicDataSet(
        "cmc",
        say("Contraceptive method choice: 1,473 women"),
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
    PublicDataSet(
        "mgm",
        say("Mammographic masses: 830 findings without blanks"),
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
    PublicDataSet(
        "wef",
        say("Wearable, exercise, frailty: 80 patients"),
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
    PublicDataSet(
        "wine",
        say("White wines: 4,898"),
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
    PublicDataSet(
        "hapt",
        say("Human activities and postural transitions: 10,929 records of 561 features"),
        "https://archive.ics.uci.edu/dataset/341",
        (
            RemoteFile(
                f"{_UCI}/00341/HAPT%20Data%20Set.zip", "hapt/hapt.csv", None, activities, 256 * _MEGABYTE
            ),
        ),
    ),
    PublicDataSet(
        "cahousing",
        say("California housing: 20,640 block groups"),
        "https://www.openml.org/d/43939",
        (RemoteFile(_HOUSING_ADDRESS, "uci/cahousing.csv", None, houses),),
    ),
    PublicDataSet(
        "ccc",
        say("Credit-card clients: 30,000"),
        "https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
        (RemoteFile(_CLIENTS_ADDRESS, "uci/credit_card_clients.csv", None, clients),),
    ),
    PublicDataSet(
        "auto-mpg",
        say("Auto MPG: 392 cars whose power is known"),
        "https://archive.ics.uci.edu/dataset/9/auto+mpg",
        (RemoteFile(f"{_UCI}/auto-mpg/auto-mpg.data", "regression/auto-mpg.csv", None, cars),),
    ),
    PublicDataSet(
        "bike",
        say("Bike Sharing: 17,379 hours"),
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
        (RemoteFile(f"{_UCI}/00275/Bike-Sharing-Dataset.zip", "regression/bike_hour.csv", None, bicycles),),
    ),
    PublicDataSet(
        "forest-fires",
        say("Forest Fires: 517"),
        "https://archive.ics.uci.edu/dataset/162/forest+fires",
        (
            RemoteFile(
                f"{_UCI}/forest-fires/forestfires.csv",
                "regression/forestfires.csv",
                "0d6586a1fa52f55bef48578aef14eb97273f1e9330e1a53423df497a77065253",
                fires,
            ),
        ),
    ),
    PublicDataSet(
        "icu",
        say("Traffic of an intensive care unit (Hussain et al. 2021)"),
        "https://doi.org/10.3390/s21093025",
        by_hand=say(
            "Its authors hand out three files after registration, Attack.csv, environmentMonitoring.csv and "
            "patientMonitoring.csv; put their rows one below the other under one header into 'icu/icu.csv'."
        ),
        place="icu/icu.csv",
    ),
)


def data_set_named(name: str) -> PublicDataSet:
    """The data set of this name, or an error that suggests the nearest.

    >>> data_set_named("cmc").title
    'Contraceptive method choice: 1,473 women'
    """
    by_name = {one.name: one for one in DATA_SETS}
    if name in by_name:
        return by_name[name]
    raise ParameterError(
        say("There is no data set '{name}'.", name=name),
        "Only those whose source is known can be fetched.",
        nearest(name, by_name) or say("See `velado data list`."),
    )


def data_set_of(place: str) -> PublicDataSet | None:
    """The data set whose file belongs at *place* below the data folder; None where none does.

    >>> data_set_of("uci/cmc.csv").name, data_set_of("elsewhere.csv")
    ('cmc', None)
    """
    return next((one for one in DATA_SETS if place in one.places), None)
