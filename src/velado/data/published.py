"""Published files turned into the ones the experiments read: pure functions from bytes to bytes.

A published file may have no header, other separators, codes for words, rows with blanks, or be an archive. What does not
have the form it had when this was written is refused, never guessed at.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

from velado.errors import TableError

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
    """The people of `adult.data` without a blank, with a header; capital gains are written with a decimal, as always."""
    rows = [row for row in _rows(data, 15) if "?" not in row]
    return _text(_ADULT, [[*row[:10], f"{row[10]}.0", *row[11:]] for row in rows], ",")


def contraceptive(data: bytes) -> bytes:
    """The rows of `cmc.data`, numbered, with a header."""
    return _text(_CMC, [[str(at), *row] for at, row in enumerate(_rows(data, 10), start=1)], ";")


def mammographic(data: bytes) -> bytes:
    """The rows of `mammographic_masses.data` without a blank, each with its number in that file, with a header."""
    numbered = [[str(at), *row] for at, row in enumerate(_rows(data, 6), start=1)]
    return _text(_MGM, [row for row in numbered if "?" not in row], ";")


def frailty(data: bytes) -> bytes:
    """Number, age, gender, height and weight of the patients of `subject-info.csv`."""
    lines = _lines(data.removeprefix(b"\xef\xbb\xbf"))
    separator = max(",;\t", key=lines[0].count) if lines else ","
    rows = [[cell.strip().strip('"') for cell in line.split(separator)] for line in lines]
    places = {name.replace(" ", ""): at for at, name in enumerate(rows[0])} if rows else {}
    if not rows or any(name not in places for name in _WEF) or any(len(row) != len(rows[0]) for row in rows):
        raise _unexpected()
    chosen = [[row[places[name]] for name in _WEF] for row in rows[1:]]
    return _text(",".join(_WEF), chosen, ",")


def wine(data: bytes) -> bytes:
    """`winequality-white.csv` with commas and without quotes."""
    return data.replace(b'"', b"").replace(b";", b",").replace(b"\r\n", b"\n")


def activities(data: bytes) -> bytes:
    """The 561 features and the activity of every record of HAPT, training and test part one below the other."""
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
    """The cars of `auto-mpg.data` whose power is known, with a header; origins by name, as the experiments have them."""
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
    """The hours of `hour.csv` in the archive of Bike Sharing; dates without dashes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            lines = _member(archive, "hour.csv")
    except (zipfile.BadZipFile, KeyError):
        raise _unexpected() from None
    rows = _below(lines, _HOUR)
    return _text(_HOUR, _counted([[row[0], row[1].replace("-", ""), *row[2:]] for row in rows], 17_379), ",")


def fires(data: bytes) -> bytes:
    """The fires of `forestfires.csv`, as they are."""
    return _text(_FIRES, _counted(_below(_lines(data), _FIRES), 517), ",")


def houses(data: bytes) -> bytes:
    """The block groups of `housing.csv`, numbered from 0; the five kinds of shore as the experiments' three classes."""
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
    """The clients of `UCI_Credit_Card.csv`; every cell is a whole number and is written as one (1e+05 as 100000)."""
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
