"""The known data sets: addresses, places, and files that come out as the experiments read them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest

from velado.errors import ParameterError, TableError
from velado.papers.public_data import (
    DATA_SETS,
    activities,
    adult,
    bicycles,
    cars,
    clients,
    contraceptive,
    data_set_named,
    data_set_of,
    fires,
    frailty,
    houses,
    mammographic,
    wine,
)


def known(name):
    (file,) = data_set_named(name).files
    return file


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_every_address_is_encrypted_and_every_place_is_inside_the_data_folder() -> None:
    files = [file for one in DATA_SETS for file in one.files]
    assert len({file.place for file in files}) == len(files) == len({file.url for file in files})
    for file in files:
        assert urlsplit(file.url).scheme == "https"
        place = PurePosixPath(file.place)
        assert not place.is_absolute() and ".." not in place.parts
        assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
    assert all(bool(one.files) != bool(one.by_hand) for one in DATA_SETS)


def test_every_file_an_experiment_needs_has_a_data_set() -> None:
    from velado.papers.paper_registry import reproductions

    needed = {file for one in reproductions() for file in one.needs}
    assert {file for file in needed if data_set_of(file) is None} == set()
    assert data_set_of("uci/cahousing.csv").name == "cahousing"
    assert data_set_of("no/where.csv") is None


def test_only_the_icu_traffic_has_to_be_fetched_by_hand() -> None:
    (icu,) = [one for one in DATA_SETS if not one.files]
    assert icu.name == "icu" and icu.places == ("icu/icu.csv",)
    assert "Attack.csv" in icu.by_hand and "icu/icu.csv" in icu.by_hand


@pytest.mark.parametrize("name", ["adult", "adult-hierarchies", "cmc", "mgm", "wef", "wine"])
def test_the_known_checksums_are_those_of_the_reference_tables(data_folder, name) -> None:
    for file in data_set_named(name).files:
        assert digest((data_folder / file.place).read_bytes()) == file.sha256


def test_adult_as_published_becomes_the_table_of_the_experiments(data_folder) -> None:
    lines = (data_folder / "adult" / "adult_clean.csv").read_text().splitlines()[1:]
    raw = [", ".join(cell.removesuffix(".0") for cell in line.split(",")) for line in lines]
    raw.insert(100, raw[0].replace("State-gov", "?"))
    assert digest(adult(("\n".join(raw) + "\n\n").encode())) == known("adult").sha256


def test_cmc_as_published_becomes_the_table_of_the_experiments(data_folder) -> None:
    lines = (data_folder / "uci" / "cmc.csv").read_text().splitlines()[1:]
    raw = "".join(",".join(line.split(";")[1:]) + "\n" for line in lines)
    assert digest(contraceptive(raw.encode())) == known("cmc").sha256


def test_mgm_as_published_becomes_the_table_of_the_experiments(data_folder) -> None:
    lines = (data_folder / "uci" / "mgm.csv").read_text().splitlines()[1:]
    by_number = {int(line.split(";")[0]): ",".join(line.split(";")[1:]) for line in lines}
    # The numbers that are left out belong to findings with a blank.
    raw = "".join(by_number.get(at, "4,?,1,1,3,0") + "\n" for at in range(1, 962))
    assert digest(mammographic(raw.encode())) == known("mgm").sha256


def test_wef_as_published_becomes_the_table_of_the_experiments(data_folder) -> None:
    lines = (data_folder / "wef" / "wef.csv").read_text().splitlines()
    raw = "\r\n".join(f"{line},{'Surgery' if not at else 'x'}" for at, line in enumerate(lines))
    assert digest(frailty(b"\xef\xbb\xbf" + raw.encode())) == known("wef").sha256


def test_wine_loses_its_quotes_and_semicolons() -> None:
    assert wine(b'"fixed acidity";"pH"\r\n7;3\r\n') == b"fixed acidity,pH\n7,3\n"


def published_cars(folder) -> list[str]:
    places = {"America": "1", "Europe": "2", "Asia": "3"}
    raw = []
    for line in (folder / "regression" / "auto-mpg.csv").read_text().splitlines()[1:]:
        *cells, power, weight, accel, year, origin, name = line.split(",")
        numbers = [*cells, f"{power}.0", f"{weight}.", accel, year, places[origin]]
        raw.append("   ".join(numbers) + f'\t"{name}"')
    raw.insert(32, '25.0   4   98.00      ?          2046.      19.0   71  1\t"ford pinto"')
    return raw


def published_hours(folder) -> list[str]:
    header, *lines = (folder / "regression" / "bike_hour.csv").read_text().splitlines()
    out = [header]
    for line in lines:
        number, day, rest = line.split(",", 2)
        out.append(f"{number},{day[:4]}-{day[4:6]}-{day[6:]},{rest}")
    return out


def published_houses(folder) -> list[str]:
    names = {"0": "NEAR BAY", "1": "<1H OCEAN", "2": "INLAND"}
    header, *lines = (folder / "uci" / "cahousing.csv").read_text().splitlines()
    at = {name: place for place, name in enumerate(header.split(";"))}
    head = (
        "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
        "median_house_value,ocean_proximity"
    )
    raw = [head]
    for row in sorted((line.split(";") for line in lines), key=lambda row: int(row[0])):
        numbers = [row[at[name]] for name in head.split(",")[:3]]
        counts = [f"{row[at[name]]}.0" for name in ("population", "households")]
        value = f"{row[at['median_house_value']]}.0"
        raw.append(
            ",".join([*numbers, "880.0", "", *counts, row[at["median_income"]], value, names[row[-1]]])
        )
    return raw


def published_clients(folder) -> list[str]:
    # Two ages are blanked in the reference table.
    return (folder / "uci" / "credit_card_clients.csv").read_text().replace("nan", "35").splitlines()


def published_fires(folder) -> list[str]:
    return (folder / "regression" / "forestfires.csv").read_text().splitlines()


def sent(lines: list[str], zipped: bool = False) -> bytes:
    """The lines as a server would send them."""
    text = "\r\n".join([*lines, ""]).encode()
    if not zipped:
        return text
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("Readme.txt", "about")
        made.writestr("hour.csv", text)
    return out.getvalue()


@pytest.mark.parametrize(
    ("prepare", "published", "place"),
    [
        (cars, published_cars, "regression/auto-mpg.csv"),
        (bicycles, published_hours, "regression/bike_hour.csv"),
        (fires, published_fires, "regression/forestfires.csv"),
    ],
)
def test_a_regression_table_as_published_becomes_that_of_the_experiments(
    prepare, published, place, data_folder
) -> None:
    made = prepare(sent(published(data_folder), prepare is bicycles))
    assert made == (data_folder / place).read_bytes().replace(b"\r\n", b"\n")


# What stands at UCI where the copy among the reference tables has `?`, by line.
_LOST = {
    11: ("92.5",), 25: ("537.4",), 62: ("mar", "89.3"), 63: ("mar", "89.3"), 64: ("aug", "93"), 67: ("661.3",),
    70: ("33",), 71: ("fri", "77.5", "26"), 72: ("97.8", "27"), 73: ("692.3", "37"),
}  # fmt: skip


def test_forest_fires_complete_has_517_rows_and_its_checksum_and_the_copy_with_blanks_has_not(
    data_folder,
) -> None:
    known = data_set_named("forest-fires").files[0].sha256
    lines = published_fires(data_folder)
    blank = "\n".join([*lines, ""])
    for at, cells in _LOST.items():
        for cell in cells:
            lines[at - 1] = lines[at - 1].replace("?", cell, 1)
    whole = "\n".join([*lines, ""])
    assert "?" in blank and "?" not in whole and len(lines) == 518
    assert hashlib.sha256(fires(whole.encode())).hexdigest() == known
    assert hashlib.sha256(fires(blank.encode())).hexdigest() != known


def test_the_clients_cells_are_written_as_whole_numbers(data_folder) -> None:
    lines = published_clients(data_folder)
    assert any("1.00E+05" in line for line in lines)
    made = clients(sent(lines)).decode().splitlines()
    assert made[0] == lines[0] and not any("E" in line or "." in line for line in made[1:])
    for line, plain in zip(made[1:], lines[1:], strict=True):
        assert [float(cell) for cell in line.split(",")] == [float(cell) for cell in plain.split(",")]
    with pytest.raises(TableError, match="form"):
        clients(sent([lines[0], lines[1].replace(",24,", ",24.5,"), *lines[2:]]))


@pytest.mark.slow
def test_houses_are_numbered_and_their_shores_are_three_classes(data_folder) -> None:
    header, *lines = (data_folder / "uci" / "cahousing.csv").read_text().splitlines()
    at = {name: place for place, name in enumerate(header.split(";"))}
    cells = sorted((line.split(";") for line in lines), key=lambda row: int(row[0]))
    made = [line.split(";") for line in houses(sent(published_houses(data_folder))).decode().splitlines()]
    for name in made[0]:
        assert [row[made[0].index(name)] for row in made[1:]] == [row[at[name]] for row in cells]
    with pytest.raises(TableError, match="form"):
        houses(sent([line.replace("INLAND", "MARS") for line in published_houses(data_folder)]))


@pytest.mark.parametrize(
    ("prepare", "published"),
    [
        (cars, published_cars),
        (bicycles, published_hours),
        (clients, published_clients),
        (fires, published_fires),
        (houses, published_houses),
    ],
)
def test_a_table_that_lost_rows_on_the_way_is_refused(prepare, published, data_folder) -> None:
    with pytest.raises(TableError, match="form"):
        prepare(sent(published(data_folder)[:-1], prepare is bicycles))


@pytest.mark.parametrize(
    "prepare",
    [adult, contraceptive, mammographic, frailty, activities, cars, bicycles, clients, fires, houses],
)
@pytest.mark.parametrize("data", [b"", b"<html>moved</html>", b"\xff\xfe\x00", b"1,2\n3\n"])
def test_another_kind_of_file_is_refused(prepare, data) -> None:
    with pytest.raises(TableError, match="form"):
        prepare(data)


def test_an_archive_without_the_parts_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("Train/X_train.txt", "1 2\n")
    with pytest.raises(TableError, match="form"):
        activities(out.getvalue())


def test_a_misspelt_name_gets_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'adult'"):
        data_set_named("adlt")
