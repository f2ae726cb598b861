"""`velado transform`: a flag for every operation, done in the order typed, with the risk told and nothing promised."""

from __future__ import annotations

import json
from pathlib import Path

import click
import polars as pl
import pytest

from velado.apps.cli import run
from velado.apps.cli.main import command
from velado.data.samples import hospital_csv, hospital_schema
from velado.release.operations import OPERATIONS

COMMAND = ["transform", str(hospital_csv()), "--schema", str(hospital_schema())]


def test_every_registered_operation_has_its_flag() -> None:
    made = command(["transform"]).commands["transform"]
    named = {word for one in made.get_params(click.Context(made)) for word in one.opts}
    assert {f"--{one.name}" for one in OPERATIONS} <= named


def test_operations_are_done_in_the_order_typed(tmp_path: Path, capsys) -> None:
    out = tmp_path / "out.csv"
    typed = ["--round", "idade:5", "--pram=estado_civil:0.7", "--top-code", "idade:80", "--round", "idade:10"]
    assert run([*COMMAND, *typed, "--mask", "municipio: keep=3, side=left", "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["name"], one.get("column")) for one in told["operations"]] == [
        ("round", "idade"),
        ("pram", "estado_civil"),
        ("top-code", "idade"),
        ("round", "idade"),
        ("mask", "municipio"),
    ]
    assert told["promise"] == "measured"
    ages = pl.read_csv(out)["idade"].drop_nulls()
    assert ages.max() == 80 and (ages % 10 == 0).all()
    assert not {"cpf", "nome", "prontuario"} & set(told["columns"])


def test_what_is_printed_says_risk_before_and_after_and_that_nothing_is_promised(
    tmp_path: Path, capsys
) -> None:
    out = str(tmp_path / "out.csv")
    command = [
        *COMMAND,
        "--generalize",
        "idade:20",
        "--generalize",
        "municipio:2",
        "--suppress-locally",
        "2",
        "--per",
        "row",
        "-o",
        out,
    ]
    assert run(command) == 0
    printed = capsys.readouterr().out
    for words in (
        "rows that nobody else is like",
        "expected re-identification",
        "record linkage",
        "not guaranteed",
    ):
        assert words in printed
    assert run(command) == 5  # the file exists
    assert run([*command, "--force", "--lang", "pt"]) == 0
    assert "medido, não garantido" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ([], 2, "No operation was named"),
        (["--generalize", "idad:10"], 3, "'idade'"),
        (["--generalize", "idade"], 2, "either a level or a width"),
        (["--round", "sexo:5"], 2, "not numeric"),
        (["--round", "idade:0"], 2, "--round"),
        (["--pram", "sexo:often"], 2, "--pram"),
        (["--perturb", "idade: scael=2"], 2, "'scale'"),
        (["--perturb", "idade: scale=2, loud"], 2, "no setting"),
        (["--suppress-locally", "1"], 2, "--suppress-locally"),
        (["--permute", "cpf"], 2, "person column"),
        (["--permut", "sexo"], 2, "--permute"),
    ],
    ids=repr,
)
def test_what_was_mistyped_is_told(tmp_path: Path, capsys, typed: list[str], code: int, words: str) -> None:
    out = tmp_path / "out.csv"
    assert run([*COMMAND, *typed, "-o", str(out)]) == code
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_the_input_is_never_overwritten(tmp_path: Path, capsys) -> None:
    table, schema, linked = tmp_path / "people.csv", tmp_path / "schema.toml", tmp_path / "linked.csv"
    table.write_bytes(hospital_csv().read_bytes())
    schema.write_bytes(hospital_schema().read_bytes())
    linked.hardlink_to(table)
    before = table.read_bytes()
    command = ["transform", str(table), "--schema", str(schema), "--round", "idade:5", "--force", "-o"]
    for out in (table, tmp_path / "x" / ".." / "people.csv", linked, schema):
        assert run([*command, str(out)]) == 2
        assert "are the same file" in capsys.readouterr().err
    assert table.read_bytes() == before and schema.read_bytes() == hospital_schema().read_bytes()


def test_an_existing_file_may_be_forced_and_other_endings_may_not(tmp_path: Path, capsys) -> None:
    out, book = tmp_path / "out.csv", tmp_path / "out.xlsx"
    out.write_text("mine")
    assert run([*COMMAND, "--round", "idade:5", "-o", str(out)]) == 5
    assert "--force" in capsys.readouterr().err and out.read_text() == "mine"
    assert run([*COMMAND, "--round", "idade:5", "-o", str(book)]) == 2
    assert ".parquet" in capsys.readouterr().err and not book.exists()


def test_a_setting_that_was_not_used_is_not_printed(tmp_path: Path, capsys) -> None:
    assert run([*COMMAND, "--impute", "sexo", "--round", "idade:5", "-o", str(tmp_path / "out.csv")]) == 0
    printed = capsys.readouterr().out
    assert "impute sexo;" in printed and "neighbours =" not in printed
