"""What each command does when all is well, and what it refuses to call well."""

import csv
import json
import math
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from velado.apps.cli import run
from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.data.samples import hospital_csv, hospital_schema
from velado.text import told

from ..covering import one_in

SAMPLE = [str(hospital_csv()), "--schema", str(hospital_schema())]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the sample with k = 5, made once."""
    folder = tmp_path_factory.mktemp("made") / "release"
    assert run(["anonymize", *SAMPLE, "-k", "5", "-o", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 300 rows of the sample, for what does not need them all."""
    file = tmp_path_factory.mktemp("part") / "part.csv"
    lines = hospital_csv().read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:301]), "utf-8")
    return file


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_release_has_no_identifier_and_passes_its_own_verification(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {part.name: {path.name for path in part.iterdir()} for part in release.iterdir()}
    assert parts == {
        "release": {"table.csv", "manifest.json", "about.html"},
        "private": {"report.html", "recipe.toml", "rows.csv", "owner.key", "measured.json"},
    }
    published = rows_of(release / "release/table.csv")
    assert len(published) == 2000 and not {"cpf", "nome", "prontuario", "cep"} & set(published[0])
    command = ["verify", str(release / "release/table.csv"), "--schema", str(hospital_schema()), "-k", "5"]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "a blank is a value of its own" in shown and "a blank matches anything" in shown
    assert "'cpf'" in shown and "per person cannot be checked" in shown


def test_verify_names_a_broken_promise_and_leaves_with_four(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["verify", str(release / "release/table.csv"), "--schema", str(hospital_schema()), "-k", "40"]
    assert run(command) == 4
    shown = capsys.readouterr()
    assert "BROKEN" in shown.out and "needed 40 rows" in shown.err
    assert run([*command, "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] is False and found["error"]["exit_code"] == 4
    assert found["verdicts"][0]["failing_rows"] > 0


def test_verify_counts_what_stands_in_the_file_itself(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (release / "release/table.csv").read_text("utf-8").splitlines(keepends=True)
    fields = lines[1].split(",")
    # One published row is changed to an age that no other row shows.
    changed = [*fields[:1], "109", *fields[2:]]
    forged = tmp_path / "table.csv"
    forged.write_text(lines[0] + ",".join(changed) + "".join(lines[2:]), "utf-8")
    assert lines[0].split(",")[1] == "idade"
    assert run(["verify", str(forged), "--schema", str(hospital_schema()), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["achieved"] == 1


@pytest.mark.slow
def test_verify_refuses_identifiers_and_columns_kept_back(
    tmp_path: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = ["--schema", str(hospital_schema())]
    assert run(["verify", str(hospital_csv()), *schema]) == 4
    assert "'cpf'" in capsys.readouterr().err
    lines = (release / "release/table.csv").read_text("utf-8").splitlines()
    for column, code in (("cep", 4), ("unheard", 3)):
        file = tmp_path / f"{column}.csv"
        file.write_text("\n".join([lines[0] + f",{column}", *(line + ",x" for line in lines[1:])]), "utf-8")
        assert run(["verify", str(file), *schema]) == code
        assert f"'{column}'" in capsys.readouterr().err
    assert run(["verify", str(tmp_path / "unheard.csv"), *schema, "--undeclared", "keep", "--quiet"]) == 0


def test_verify_needs_the_quasi_identifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.csv"
    file.write_text("sexo,idade\nF,[20..30]\nF,[20..30]\n", "utf-8")
    assert run(["verify", str(file), "--schema", str(hospital_schema()), "-k", "2"]) == 3
    assert "lacks the quasi-identifiers 'raca_cor'" in capsys.readouterr().err


def test_verify_names_a_copy_of_a_quasi_identifier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[columns.school]\nrole = "quasi"\n[columns.years]\nrole = "other"\n'
        '[columns.place]\nrole = "other"\n',
        "utf-8",
    )
    file = tmp_path / "t.csv"
    text = "school,years,place\n" + "".join(f"s{n % 3},{n % 3 + 8},p{n % 7}\n" for n in range(63))
    file.write_text(text, "utf-8")
    assert run(["verify", str(file), "-s", str(schema), "--json"]) == 0
    doors = json.loads(capsys.readouterr().out)["side_doors"]
    assert [(door["column"], door["reveals"], door["kind"]) for door in doors] == [
        ("years", "school", "copy")
    ]


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "for who also reads 'born'"), ("pt", "para quem também lê 'born'")]
)
def test_verify_says_first_what_is_left_behind_a_side_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lang: str, words: str
) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.born]\nrole = "other"\n', "utf-8"
    )
    file = tmp_path / "t.csv"
    ages = [20 + n * 37 % 60 for n in range(120)]
    rows = "".join(f"[{a // 20 * 20}..{a // 20 * 20 + 19}],{2026 - a}\n" for a in ages)
    file.write_text("age,born\n" + rows, "utf-8")
    assert run(["verify", str(file), "-s", str(schema), "-k", "5", "--lang", lang]) == 4
    printed = capsys.readouterr().out
    assert words in printed.splitlines()[0] and "40; 2" in printed.splitlines()[0]


@pytest.mark.slow
def test_measure_prints_labelled_numbers(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["measure", str(hospital_csv()), str(release), "--schema", str(hospital_schema()), "-k", "5"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["utility"]["ncp"]["variant"] == "leaves-1"
    assert 0 < found["utility"]["ncp"]["overall"] < 1
    assert found["risk"]["after"]["by_person"]["prosecutor"]["highest"] <= 1 / 5
    assert found["risk"]["record_linkage"]["direction"] == "released-to-original"
    other = ["--variant", "thesis", "--direction", "original-to-released", "--ties", "first"]
    assert run([*command, *other, "--lang", "pt"]) == 0
    shown = capsys.readouterr().out
    assert "NCP (thesis)" in shown and "únicos" in shown
    assert "da original para a publicada, empates pelo primeiro, escala pela" in " ".join(shown.split())


def test_apply_repeats_the_release_byte_for_byte(release: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert (
        run(["apply", str(release / "private/recipe.toml"), str(hospital_csv()), "-o", str(again), "-q"]) == 0
    )
    assert (again / "release/table.csv").read_bytes() == (release / "release/table.csv").read_bytes()


@pytest.mark.slow
def test_the_demo_is_exactly_ten_lines_and_ends_with_both_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    for language, word in (("en", "Promise (guaranteed)"), ("pt", "Promessa (garantida)")):
        assert run(["demo", "-o", str(out), "--lang", language, "--force"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 10
        assert word in lines[2]
        assert lines[8].endswith(str(out / "release")) and lines[9].endswith(str(out / "private/report.html"))
    assert f'<html lang="{language}' in (out / "private/report.html").read_text("utf-8")


@pytest.mark.slow
def test_inspect_writes_a_schema_that_anonymize_takes(
    part: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "schema.toml"
    assert run(["inspect", str(part), "--write", str(schema)]) == 0
    shown = capsys.readouterr().out
    assert "cpf" in shown and "unique" in shown
    columns = tomllib.loads(schema.read_text("utf-8"))["columns"]
    assert columns["cpf"]["role"] == "identifier" and columns["idade"]["role"] == "quasi"
    assert run(["inspect", str(part), "--write", str(schema)]) == 5
    capsys.readouterr()
    assert run(["inspect", str(part), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exposure"]["unique_people"] > 250
    command = ["anonymize", str(part), "-s", str(schema), "-m", "mondrian", "-q"]
    assert run([*command, "-o", str(tmp_path / "out")]) == 0


@pytest.mark.slow
def test_inspect_speaks_portuguese_and_says_what_the_sets_leave_out(
    part: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reasons = {why for column in inspect(read_table(part)).columns for why in column.why}
    assert len(reasons) > 8 and all(told(why, "pt") != why for why in reasons)
    assert run(["inspect", str(part), "--lang", "pt"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "quase-identificador" in shown and "valores escritos como CPF" in shown
    assert "categorical" not in shown and "the header" not in shown and "classe" not in shown
    assert "ficam de fora as colunas em que a maioria dos valores é distinta" in shown


def test_every_kind_of_identifier_has_portuguese_words() -> None:
    from velado.data.identifiers import IdentifierKind
    from velado.report.terminal import word

    assert [kind for kind in get_args(IdentifierKind) if told(word(kind), "pt") == kind] == []


def test_inspect_counts_a_blank_as_a_value_in_every_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(
        "sexo,uf\n" + "".join(f"{'FM'[n % 2] if n % 5 else ''},U{n % 3}\n" for n in range(30)), "utf-8"
    )
    assert run(["inspect", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("sexo") and "%" in line]
    assert row[1:3] == ["3", "10.0%"]
    assert "A blank counts as one value." in lines


def test_the_summary_names_no_unset_parameter_and_how_near_the_best_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    file.write_text("age,size\n" + "".join(f"{n * 7 % 31},{n * 5 % 23}\n" for n in range(80)), "utf-8")
    schema.write_text(
        "".join(f'[columns.{c}]\nrole="quasi"\nkind="numeric"\n' for c in ("age", "size")), "utf-8"
    )
    command = ["anonymize", str(file), "-s", str(schema), "-k", "4", "--force", "-o", str(tmp_path / "out")]
    assert run([*command, "-m", "gfkmc"]) == 0
    assert "None" not in capsys.readouterr().out
    without = [part for part in command if part not in ("-k", "4")]
    assert run([*without, "-m", "das"]) == 0
    assert "the best possible" not in capsys.readouterr().out
    assert run([*command, "-m", "progressive", "--report", "html,json", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["how"]["notes"]
    most = math.ceil(100 * notes["above_best_possible_at_most"] - 1e-6)
    assert run([*command, "-m", "progressive", "--report", "json"]) == 0
    assert f"% (at most {most}% above the best possible); most in" in capsys.readouterr().out
    report = (tmp_path / "out" / "private/report.json").read_text("utf-8")
    assert f"At most {most}% above the best possible for this table." in report
    assert run([*command, "-m", "progressive", "--lang", "pt"]) == 0
    assert f"(no máximo {most}% acima do melhor possível)" in capsys.readouterr().out


@pytest.mark.slow
def test_without_a_schema_the_roles_are_printed_and_saved_beside_the_release(
    part: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert (
        run(["anonymize", str(part), "-m", "mondrian", "-k", "3", "-o", str(out), "--accept-inferred"]) == 0
    )
    shown = capsys.readouterr().out
    assert "inferred" in shown and "Review" in shown and str(out / "private/schema.toml") in shown
    assert (
        tomllib.loads((out / "private/schema.toml").read_text("utf-8"))["columns"]["nome"]["role"]
        == "identifier"
    )
    assert (
        run(
            [
                "verify",
                str(out / "release/table.csv"),
                "-s",
                str(out / "private/schema.toml"),
                "-k",
                "3",
                "-q",
            ]
        )
        == 0
    )


@pytest.mark.slow
def test_the_json_of_a_release_is_its_manifest_and_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    flags = ["-m", "mondrian", "--cut", "relaxed", "--l-diversity", "2", "--report", "md,json", "--json"]
    assert run(["anonymize", *flags, *SAMPLE, "-o", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == str(out)
    assert found["files"] == {
        "release": ["about.html", "manifest.json", "table.csv"],
        "private": ["measured.json", "owner.key", "recipe.toml", "report.json", "report.md", "rows.csv"],
    }
    assert found["how"]["method"]["cut"] == "relaxed"
    assert [verdict["guarantee"] for verdict in found["promise"]["verdicts"]] == [
        "k-anonymity",
        "l-diversity",
    ]
    assert "Viçosa" not in json.dumps(found, ensure_ascii=False)


@pytest.mark.slow
def test_a_parquet_release_is_verified_too(part: Path, tmp_path: Path) -> None:
    out, sample = tmp_path / "out", [str(part), "--schema", str(hospital_schema())]
    assert run(["anonymize", *sample, "-m", "mondrian", "--format", "parquet", "-q", "-o", str(out)]) == 0
    table = str(out / "release/table.parquet")
    assert run(["verify", table, "--schema", str(hospital_schema()), "-q"]) == 0


@pytest.mark.slow
def test_k_of_a_method_that_promises_nothing_is_still_a_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["anonymize", *SAMPLE, "--method", "das", "-o", str(tmp_path / "out")]
    assert run([*command, "-k", "5"]) == 4
    assert "k-anonymity" in capsys.readouterr().err
    assert run([*command, "--bins", "5"]) == 0
    assert "only measured" in capsys.readouterr().out


ODD_NAMES = ["age in years", "blood-type", "raça/cor", "select", "年齢", "a.b.c", "it's", "x[red]y"]


@pytest.mark.slow
@pytest.mark.parametrize("odd", one_in(2, ["a, b", 'the "quoted"']))
def test_odd_column_names_work_from_end_to_end(
    odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [odd, *ODD_NAMES]
    file, schema, out = tmp_path / "t.csv", tmp_path / "s.toml", tmp_path / "out"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([(n + n // step) % (2 + step) for step in range(1, 10)] for n in range(70))
    entries = "".join(
        f'[columns.{json.dumps(name, ensure_ascii=False)}]\nrole = "{"quasi" if at < 8 else "sensitive"}"\n'
        f'kind = "{"numeric" if at % 2 else "categorical"}"\n'
        for at, name in enumerate(names)
    )
    schema.write_text(entries, "utf-8")
    assert run(["anonymize", str(file), "-s", str(schema), "-k", "4", "-o", str(out)]) == 0
    assert list(rows_of(out / "release/table.csv")[0]) == names
    capsys.readouterr()
    assert run(["verify", str(out / "release/table.csv"), "-s", str(schema), "-k", "4"]) == 0
    assert run(["measure", str(file), str(out), "-s", str(schema)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names[:8])
    assert run(["inspect", str(file), "--write", str(tmp_path / "found.toml")]) == 0
    assert set(tomllib.loads((tmp_path / "found.toml").read_text("utf-8"))["columns"]) == set(names)
    assert "x[red]y" in capsys.readouterr().out
    assert (
        run(["apply", str(out / "private/recipe.toml"), str(file), "-o", str(tmp_path / "again"), "-q"]) == 0
    )


def test_cells_like_formulas_are_counted_and_escaped_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    file.write_text("age,note\n" + "".join(f"{n % 9},=1+{n % 2}\n" for n in range(40)), "utf-8")
    schema.write_text('[columns.age]\nrole="quasi"\nkind="numeric"\n[columns.note]\nrole="other"\n', "utf-8")
    command = ["anonymize", str(file), "-s", str(schema), "-k", "3"]
    assert run([*command, "-o", str(tmp_path / "kept")]) == 0
    assert "40 cells begin like a spreadsheet formula" in capsys.readouterr().err
    assert {row["note"] for row in rows_of(tmp_path / "kept" / "release/table.csv")} == {"=1+0", "=1+1"}
    assert run([*command, "-o", str(tmp_path / "safe"), "--formulas", "escape"]) == 0
    assert "formula" not in capsys.readouterr().err
    assert {row["note"] for row in rows_of(tmp_path / "safe" / "release/table.csv")} == {"'=1+0", "'=1+1"}


def test_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    file, schema, out = tmp_path / "t.csv", tmp_path / "s.toml", tmp_path / "out"
    text = "idade,cidade\n" + "".join(f"{20 + n % 9},{'Viçosa' if n % 2 else 'Ubá'}\n" for n in range(40))
    file.write_bytes(text.encode("latin-1"))
    schema.write_text(
        '[columns.idade]\nrole="quasi"\nkind="numeric"\n[columns.cidade]\nrole="other"\n', "utf-8"
    )
    command = ["anonymize", str(file), "-s", str(schema), "-k", "3", "--encoding", "latin-1", "-q"]
    assert run([*command, "-o", str(out)]) == 0
    assert {row["cidade"] for row in rows_of(out / "release/table.csv")} == {"Viçosa", "Ubá"}
    assert (
        run(["apply", str(out / "private/recipe.toml"), str(file), "-o", str(tmp_path / "again"), "-q"]) == 0
    )


def test_methods_lists_promise_cost_source_and_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["methods", "--json"]) == 0
    listed = {m["name"]: m for m in json.loads(capsys.readouterr().out)["methods"]}
    assert {"das", "gfkmc", "mondrian"} <= set(listed)
    assert all(m["promise"] and m["cost"] and m["source"] and m["title"] for m in listed.values())
    assert run(["methods", "mondrian", "--json"]) == 0
    flags = {flag["flag"]: flag for flag in json.loads(capsys.readouterr().out)["parameters"]}
    assert flags["--cut"]["choices"] == ["strict", "relaxed"] and "-k" not in flags
    assert run(["methods", "mondrian"]) == 0
    told = capsys.readouterr().out
    assert "--cut" in told and "With -k" not in told
    assert run(["methods", "das"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "promise: measured With -k or another promise asked for" in told
