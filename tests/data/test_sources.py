"""The known data sets: addresses, places, and files that come out as the experiments read them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest

from velado.data.sources import (
    DATA_SETS,
    activities,
    adult,
    contraceptive,
    data_set_named,
    frailty,
    mammographic,
    wine,
)
from velado.errors import ParameterError, TableError


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
    from velado.study.papers.registry import reproductions

    places = {place for one in DATA_SETS for place in one.places}
    by_hand = " ".join(one.title for one in DATA_SETS if one.by_hand)
    needed = {file for one in reproductions() for file in one.needs if not file.startswith("regression/")}
    assert {file for file in needed if file not in places and file not in by_hand} == set()


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


@pytest.mark.parametrize("prepare", [adult, contraceptive, mammographic, frailty, activities])
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
