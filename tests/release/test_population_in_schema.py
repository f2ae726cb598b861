"""The population that a schema names is the one k-map counts, and lies in the schema's folder."""

from __future__ import annotations

import json

import pytest

import velado
from velado.data.io import read_schema
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError, VeladoError
from velado.release.guarantees import KMap
from velado.study.run import publish

SCHEMA = """
[dataset]
name = "visits"
population = "{population}"
[columns.age]
role = "quasi"
kind = "numeric"
"""


@pytest.fixture
def visits(tmp_path):
    ages = [20 + at // 2 for at in range(24)]
    (tmp_path / "visits.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages))
    (tmp_path / "census.csv").write_text("age\n" + "".join(f"{age}\n" * 5 for age in range(20, 32)))
    (tmp_path / "schema.toml").write_text(SCHEMA.format(population="census.csv"))
    return tmp_path


def test_the_population_of_the_schema_is_counted(visits) -> None:
    schema = read_schema(visits / "schema.toml")
    release = velado.anonymize(visits / "visits.csv", schema, "mondrian", [KMap(5)])
    given = velado.anonymize(
        visits / "visits.csv", schema, "mondrian", [KMap(5)], population=visits / "census.csv"
    )
    assert release.frame.equals(given.frame) and release.data.population.shape == (60, 1)


def test_without_it_k_map_cannot_be_promised(visits) -> None:
    text = (visits / "schema.toml").read_text().replace('population = "census.csv"', "")
    (visits / "schema.toml").write_text(text)
    with pytest.raises((ParameterError, GuaranteeNotMet)):
        velado.anonymize(visits / "visits.csv", visits / "schema.toml", "mondrian", [KMap(5)])


@pytest.mark.parametrize("path", ["../census.csv", "/etc/passwd", " "])
def test_a_population_outside_the_folder_is_refused(visits, path) -> None:
    (visits / "schema.toml").write_text(SCHEMA.format(population=path))
    with pytest.raises(VeladoError, match="population") as caught:
        read_schema(visits / "schema.toml")
    assert isinstance(caught.value, SchemaError)


def test_the_folder_stands_in_no_file(visits) -> None:
    schema = read_schema(visits / "schema.toml")
    assert schema.to_dict()["dataset"] == {"name": "visits", "population": "census.csv"}
    with pytest.raises(SchemaError, match="folder"):
        Schema.from_dict({"dataset": {"folder": "/"}, "columns": {"a": {"role": "other"}}})


def test_name_and_version_leave_with_the_table_and_the_ledger_does_not(visits) -> None:
    said = 'name = "visits"\nversion = "2026-1"\nledger = "accounts.ledger"'
    text = (visits / "schema.toml").read_text().replace('name = "visits"', said)
    (visits / "schema.toml").write_text(text)
    out = publish(
        visits / "visits.csv",
        visits / "schema.toml",
        "mondrian",
        k=2,
        out=visits / "out",
        key=Key(bytes(range(40))),
    )
    told = json.loads((out.public / "manifest.json").read_text())["schema"]["dataset"]
    assert told == {"name": "visits", "version": "2026-1", "population": "census.csv"}
    assert "<h1>About visits, version 2026-1</h1>" in (out.public / "about.html").read_text()
    assert all("accounts.ledger" not in file.read_text() for file in out.public.iterdir())
