"""`velado measure` with the measures that are made on request."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run
from velado.data.samples import hospital_csv, hospital_schema


@pytest.mark.slow
def test_special_uniques_population_and_row_risk_are_made_on_request(tmp_path: Path, capsys) -> None:
    original, schema = str(hospital_csv()), str(hospital_schema())
    out = tmp_path / "release"
    assert (
        run(
            [
                "anonymize",
                original,
                "--schema",
                schema,
                "-m",
                "mondrian",
                "-k",
                "5",
                "-o",
                str(out),
                "--quiet",
            ]
        )
        == 0
    )
    capsys.readouterr()
    private = tmp_path / "risk.csv"
    command = ["measure", original, str(out), "--schema", schema, "--json", "--special-uniques"]
    assert run([*command, "--sampling-fraction", "0.1", "--row-risk", str(private)]) == 0
    risk = json.loads(capsys.readouterr().out)["risk"]
    assert risk["special_uniques"] is not None and risk["population_uniqueness"] is not None
    assert set(risk["attribute_disclosure"]) == {"cid10", "desfecho"}
    rows = pl.read_csv(private)
    assert rows.height == 2000 and rows.columns[:3] == ["row", "risk_before", "risk_after"]
    assert rows["risk_before"].max() == 1.0 and rows["risk_after"].max() <= 0.2
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert not any("risk" in path.name for path in out.iterdir())


def test_compare_lists_every_method_with_the_least_loss_first(tmp_path: Path, capsys) -> None:
    command = ["compare", str(hospital_csv()), "--schema", str(hospital_schema()), "-k", "5", "--json"]
    assert run([*command, "--methods", "mondrian,progressive,gfkmc"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [result["method"] for result in found] == ["progressive", "mondrian", "gfkmc"]
    assert [result["loss"] for result in found] == sorted(result["loss"] for result in found)
    assert run([*command, "--methods", "das"]) == 2
    capsys.readouterr()
    assert run([*command, "--methods", "mondrian", "--l-diversity", "500"]) == 4
    failed = json.loads(capsys.readouterr().out)["results"][0]
    assert failed["loss"] is None and "l-diversity" in failed["failed"]


@pytest.mark.slow
def test_the_loss_of_das_as_the_equation_says_and_as_it_was_published(
    data_folder, tmp_path: Path, capsys
) -> None:
    """DAS paper: equation (1) on Adult gives 0.1657; the published 0.033 divides by 15 columns instead of 3."""
    header = (data_folder / "adult" / "adult_clean.csv").read_text().splitlines()[0].split(",")
    numbers = ("age", "education_num", "hours_per_week")
    lines = [
        f'[columns.{name}]\nrole = "{"quasi" if name in numbers else "other"}"\n'
        + ('kind = "numeric"\n' if name in numbers else 'kind = "text"\npublish = false\n')
        for name in header
    ]
    schema = tmp_path / "schema.toml"
    schema.write_text("".join(lines))
    original, out = str(data_folder / "adult" / "adult_clean.csv"), str(tmp_path / "das")
    assert run(["anonymize", original, "--schema", str(schema), "-m", "das", "-o", out, "--quiet"]) == 0
    command = [
        "measure",
        original,
        out,
        "--schema",
        str(schema),
        "--variant",
        "das-eq1",
        "--no-linkage",
        "--json",
    ]
    capsys.readouterr()
    for extra, expected in (([], 0.1657), (["--divisor-columns", "15"], 0.0331)):
        assert run([*command, *extra]) == 0
        assert round(json.loads(capsys.readouterr().out)["utility"]["ncp"]["overall"], 4) == expected


def _people(folder: Path) -> tuple[list[str], pl.DataFrame]:
    """A table of 120 people in 40 households, its schema, and the command that measures `shown.csv` against it."""
    frame = pl.DataFrame(
        {
            "who": [f"p{at // 2}" for at in range(120)],
            "home": [f"h{at // 3}" for at in range(120)],
            "age": [str(20 + at * 37 % 60) for at in range(120)],
            "w": [str(5 + at % 7) for at in range(120)],
        }
    )
    frame.write_csv(folder / "people.csv")
    (folder / "s.toml").write_text(
        '[columns.who]\nrole = "identifier"\nperson = true\n'
        '[columns.home]\nrole = "identifier"\nkind = "text"\ngroup = true\n'
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n'
        '[columns.w]\nrole = "other"\nkind = "numeric"\nsampling_weight = true\npublish = false\n'
    )
    command = ["measure", str(folder / "people.csv"), str(folder / "shown.csv"), "-s", str(folder / "s.toml")]
    decades = (pl.col("age").cast(int) // 10 * 10).cast(pl.String)
    shown = frame.select(pl.format("[{}..{}]", decades, (decades.cast(int) + 9).cast(pl.String)).alias("age"))
    return command, shown


def test_rows_of_a_file_alone_are_paired_only_where_every_row_fits_its_place(tmp_path: Path, capsys) -> None:
    command, shown = _people(tmp_path)
    pairing = {"false cells", "record linkage", "risk by person", "risk of the sample"}
    tried = (
        (shown, set()),
        (shown.sample(fraction=1, shuffle=True, seed=3), pairing),
        (pl.DataFrame({"age": ["*"] * 120}), pairing),  # fits every order, and so tells none
    )
    for frame, missing in tried:
        frame.write_csv(tmp_path / "shown.csv")
        assert run([*command, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert set(told["not_measured"]) >= missing and bool(told["not_measured"]) == bool(missing)
        assert all("same order" in told["not_measured"][name] for name in missing)
        assert (
            (told["risk"]["sample"] is None) == (told["risk"]["after"]["by_person"] is None) == bool(missing)
        )
    assert run([*command, "--row-risk", str(tmp_path / "risk.csv")]) == 2
    assert "same order" in " ".join(capsys.readouterr().err.split())
    assert run([*command, "--same-order", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_measured"] == {}


def test_a_manifest_speaks_of_its_own_table_only(tmp_path: Path, capsys) -> None:
    command, shown = _people(tmp_path)
    made = [
        "anonymize",
        *command[1:2],
        *command[3:],
        "-m",
        "mondrian",
        "-k",
        "4",
        "-q",
        "-o",
        str(tmp_path / "out"),
    ]
    assert run(made) == 0
    shown.write_csv(tmp_path / "out/release/other.csv")
    for table, measured in (("table.csv", True), ("other.csv", True)):
        assert run([*command[:2], str(tmp_path / "out/release" / table), *command[3:], "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["utility"]["false_cells"]["cells"] == 0) == measured
