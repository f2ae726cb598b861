"""Sampling weights and households: known answers of sdcMicro's weights, households by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import velado
from velado.apps.cli import run
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import SchemaError, TableError
from velado.measures.risk.household_risk import household_risk
from velado.measures.risk.individual_risk import posterior_risk
from velado.report.score_lines import score_lines

# sdcMicro 5.8.1, tests/testthat: freqCalc and indivRisk of eight rows with weights.
FRAME = pl.DataFrame(
    {
        "A": [2, 3, 2, 2, 3, 3, 1, 2],
        "B": [3, 3, 3, 3, 3, 3, 4, 3],
        "C": [1, 3, 1, 2, 1, 1, 1, 1],
        "w": [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0],
        "home": ["a", "a", "b", "b", "b", "c", "d", None],
    }
).cast(pl.String)
RISK = [0.01369863, 0.08579129, 0.01369863, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01369863]


def schema(**more: Column) -> Schema:
    quasi = {name: Column(name, "quasi") for name in "ABC"}
    marked = {
        "w": Column("w", "other", "numeric", sampling_weight=True),
        "home": Column("home", "identifier", "text", group=True),
    }
    return Schema({**quasi, **marked, **more})


def test_a_household_is_found_unless_all_its_members_are_missed() -> None:
    risk = np.array([0.5, 0.2, 0.1, 1.0, 0.0])
    assert household_risk(risk, np.array([1, 1, 2, 3, 3])) == pytest.approx([0.6, 0.6, 0.1, 1.0, 1.0])
    tiny = household_risk(np.full(3, 1e-12), np.zeros(3, dtype=int))
    assert tiny == pytest.approx([3e-12] * 3, rel=1e-9)


def test_the_weights_of_the_schema_give_sdcmicros_risk_and_households_follow() -> None:
    table = Table.of(FRAME, schema())
    before, after = velado.measure_files(table, FRAME).disclosure.sample
    assert before.weighted and before.rows == 8 and before.households == 5
    assert before.expected == pytest.approx(sum(RISK), abs=1e-7)
    assert before.highest == pytest.approx(0.17707583, abs=1e-8)
    homes = [[0, 1], [2, 3, 4], [5], [6], [7]]
    by_hand = [1 - np.prod([1 - RISK[at] for at in home]) for home in homes]
    assert before.expected_households == pytest.approx(sum(by_hand), abs=1e-7)
    assert before.highest_household == pytest.approx(max(by_hand), abs=1e-7)
    assert after == before  # the table is published as it is


def test_the_release_is_measured_with_the_weights_of_the_rows_that_left() -> None:
    table = Table.of(FRAME, schema())
    shown = FRAME.with_columns(pl.lit("*").alias("C"))[[0, 2, 3, 7]]
    kept = np.isin(np.arange(8), [0, 2, 3, 7])
    after = velado.measure_files(table, shown, kept=kept).disclosure.sample[1]
    assert after.rows == 4
    assert after.expected == pytest.approx(4 * (4 / 125) / (4 - (1 - 4 / 125)))  # f = 4, F = 125
    assert after.households == 3


def test_without_a_declaration_nothing_is_said_of_a_sample() -> None:
    plain = Schema({**{name: Column(name, "quasi") for name in "ABC"}, "w": Column("w", "other", "numeric")})
    found = velado.measure_files(Table.of(FRAME.drop("home"), plain), FRAME.drop("home"))
    assert found.disclosure.sample is None and "risk of the sample" not in found.not_measured


def test_rows_that_are_not_paired_have_their_reason() -> None:
    found = velado.measure_files(Table.of(FRAME, schema()), FRAME[:5])
    assert found.disclosure.sample is None and "risk of the sample" in found.not_measured


@pytest.mark.parametrize("weight", [None, "0", "-3"])
def test_weights_that_are_none_are_refused(weight: str | None) -> None:
    wrong = FRAME.with_columns(pl.Series("w", [weight, *FRAME["w"].to_list()[1:]], dtype=pl.String))
    with pytest.raises(TableError, match="1 of 8 sampling weights"):
        velado.measure_files(Table.of(wrong, schema()), wrong)


def test_the_mark_stands_on_one_numeric_column() -> None:
    marked = {"role": "other", "kind": "numeric", "sampling_weight": True}
    with pytest.raises(SchemaError, match="2 columns with sampling_weight"):
        Schema.from_dict({"columns": {"v": marked, "w": marked}})
    with pytest.raises(SchemaError, match="not numeric"):
        Schema.from_dict({"columns": {"w": {"role": "other", "sampling_weight": True}}})
    once = Schema.from_dict({"columns": {"w": marked}})
    assert once.sampling_weight.name == "w" and Schema.from_dict(once.to_dict()) == once


def test_the_command_line_tells_of_weights_and_households(tmp_path: Path, capsys) -> None:
    FRAME.write_csv(tmp_path / "people.csv")
    FRAME.drop("home").write_csv(tmp_path / "out.csv")
    lines = [f'[columns.{name}]\nrole = "quasi"\n' for name in "ABC"]
    lines.append('[columns.w]\nrole = "other"\nkind = "numeric"\nsampling_weight = true\n')
    lines.append('[columns.home]\nrole = "identifier"\nkind = "text"\ngroup = true\n')
    (tmp_path / "schema.toml").write_text("\n".join(lines))
    private = tmp_path / "risk.csv"
    command = [
        "measure",
        str(tmp_path / "people.csv"),
        str(tmp_path / "out.csv"),
        "-s",
        str(tmp_path / "schema.toml"),
    ]
    assert run([*command, "--row-risk", str(private), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["risk"]["sample"]
    assert told["before"]["expected_reidentifications"] == pytest.approx(sum(RISK), abs=1e-7)
    rows = pl.read_csv(private)
    assert rows["risk_before"].to_list() == pytest.approx([1 / f for f in (3, 1, 3, 1, 2, 2, 1, 3)])
    assert rows["weighted_risk_before"].to_list() == pytest.approx(RISK, abs=1e-8)
    homes = rows["household_risk_before"]
    assert homes[0] == homes[1] > rows["weighted_risk_before"][1]
    for name in ("risk", "weighted_risk", "household_risk"):  # published as it was: nothing changed
        assert rows[f"{name}_before"].to_list() == rows[f"{name}_after"].to_list()
    assert run([*command, "--row-risk", str(private)]) == 5
    assert "--force" in capsys.readouterr().err
    assert run([*command, "--row-risk", str(private), "--force", "--json"]) == 0
    assert capsys.readouterr().out
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "by sampling weights" in printed and "households of which somebody is found, of 5" in printed
    assert run([*command, "--lang", "pt"]) == 0
    assert "pesos amostrais" in capsys.readouterr().out


def test_a_blank_is_a_value_of_its_own_and_the_other_reading_is_told_beside_it(capsys) -> None:
    blank = FRAME.with_columns(pl.Series("A", [None, *FRAME["A"].to_list()[1:]], dtype=pl.String))
    scores = velado.measure_files(Table.of(blank, schema()), blank)
    own, wildcard = scores.disclosure.sample, scores.disclosure.sample_wildcard
    # Row 1, alone with its blank, has f = 1 and F = 18; read as a wildcard it agrees with four others of B = 3, C = 1.
    assert own[0].expected == own[1].expected > wildcard[0].expected == wildcard[1].expected
    pair = posterior_risk(np.array([2]), np.array([90.0]))[0]
    assert own[0].expected == pytest.approx(
        sum(RISK[at] for at in (1, 3, 4, 5, 6)) + np.log(18) / 17 + 2 * pair
    )
    told = scores.to_dict()["risk"]
    assert told["sample"]["blanks"] == "value"
    assert told["sample_blanks_match_anything"]["after"]["expected_reidentifications"] == wildcard[1].expected
    printed = [line for part in score_lines(scores) for line in getattr(part, "rows", ())]
    assert sum("if a blank matches anything" in line[0] for line in printed) == 4
    whole = velado.measure_files(Table.of(FRAME, schema()), FRAME)
    assert whole.disclosure.sample_wildcard is None  # without blanks there is one reading


def test_each_row_has_the_risk_of_its_person_and_household_in_both_tables(tmp_path: Path, capsys) -> None:
    people = FRAME.with_columns(pl.Series("who", ["p", "p", "q", "r", "r", "s", "t", "u"]))
    people.write_csv(tmp_path / "people.csv")
    people.select(pl.lit("*").alias("A"), "B", "C").write_csv(tmp_path / "out.csv")
    (tmp_path / "schema.toml").write_text(
        "".join(f'[columns.{name}]\nrole = "quasi"\n' for name in "ABC")
        + '[columns.w]\nrole = "other"\nkind = "numeric"\n'
        + '[columns.home]\nrole = "identifier"\nkind = "text"\ngroup = true\n'
        + '[columns.who]\nrole = "identifier"\nkind = "text"\nperson = true\n'
    )
    files = [str(tmp_path / name) for name in ("people.csv", "out.csv", "schema.toml", "risk.csv")]
    assert run(["measure", *files[:2], "-s", files[2], "--row-risk", files[3], "-q"]) == 0
    rows = pl.read_csv(files[3])
    # After: B, C = (3,1) of rows 0 2 4 5 7, (3,3) of row 1, (3,2) of row 3, (4,1) of row 6.
    assert rows["risk_after"].to_list() == pytest.approx([0.2, 1, 0.2, 1, 0.2, 0.2, 1, 0.2])
    assert rows["person_risk_after"].to_list() == pytest.approx([1, 1, 0.2, 1, 1, 0.2, 1, 0.2])
    assert rows["household_risk_after"].to_list() == pytest.approx([1, 1, 1, 1, 1, 0.2, 1, 0.2])
    assert rows["person_risk_before"].to_list() == pytest.approx([1, 1, 1 / 3, 1, 1, 0.5, 1, 1 / 3])
    assert "weighted_risk_before" not in rows.columns
