"""`--sheet`: the sheet that was named is read, by every command that reads a table, and no other is."""

from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli.main import run

from ..tables import toml

xlsxwriter = pytest.importorskip("xlsxwriter")
pytest.importorskip("fastexcel")

PEOPLE = [["idade", "sexo"], *([30 + at % 3, "FM"[at % 2]] for at in range(24))]
PRICES = [["produto", "preco"], ["caneta", 2.5], ["papel", 9.0]]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "livro.xlsx"
    with xlsxwriter.Workbook(path) as made:
        for name, rows in (("Preços", PRICES), ("Pacientes", PEOPLE)):
            sheet = made.add_worksheet(name)
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
    (tmp_path / "schema.toml").write_text(toml(idade="quasi numeric", sexo="quasi categorical"), "utf-8")
    return path


def test_without_a_name_the_sheets_are_listed_and_the_flag_is_named(book, capsys) -> None:
    assert run(["inspect", str(book)]) == 3
    told = capsys.readouterr().err
    assert "'Preços', 'Pacientes'" in told and "--sheet NAME" in told


def test_inspect_reads_the_sheet_that_is_named(book, tmp_path, capsys) -> None:
    for sheet, columns in (("Pacientes", ["idade", "sexo"]), ("Preços", ["produto", "preco"])):
        out = tmp_path / f"{sheet}.toml"
        assert run(["inspect", str(book), "--sheet", sheet, "--write", str(out)]) == 0
        assert [
            name for name in ("idade", "sexo", "produto", "preco") if name in out.read_text("utf-8")
        ] == columns


@pytest.mark.slow
def test_a_release_of_a_sheet_is_that_of_its_rows_in_a_file_of_their_own(book, tmp_path, capsys) -> None:
    plain = tmp_path / "pacientes.csv"
    plain.write_text("\n".join(",".join(map(str, row)) for row in PEOPLE) + "\n", "utf-8")
    tables = []
    for source, flags in ((book, ["--sheet", "Pacientes"]), (plain, [])):
        out = tmp_path / source.stem
        schema = ["--schema", str(tmp_path / "schema.toml")]
        assert run(["anonymize", str(source), *schema, *flags, "-k", "4", "-o", str(out)]) == 0
        tables.append(pl.read_csv(out / "release" / "table.csv", infer_schema=False))
        # The recipe of the run says how the next delivery of the same workbook is read.
        again = ["apply", str(out / "private" / "recipe.toml"), str(source), *flags, "-o", f"{out}-again"]
        assert run(again) == 0
    columns = ["idade", "sexo"]
    assert tables[0].select(columns).sort(columns).equals(tables[1].select(columns).sort(columns))


def test_a_sheet_that_is_not_there_and_a_file_without_sheets_are_refused(book, tmp_path, capsys) -> None:
    assert run(["inspect", str(book), "--sheet", "pacientes"]) == 3
    assert "has no sheet of that name" in capsys.readouterr().err
    plain = tmp_path / "p.csv"
    plain.write_text("a,b\n1,2\n", "utf-8")
    assert run(["inspect", str(plain), "--sheet", "A"]) == 3
    assert "has no sheets" in capsys.readouterr().err
