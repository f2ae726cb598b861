"""Open: whatever is dropped, named or misread is shown, changed or refused in words; nothing half-written stays."""

import ast
import json
import re
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from velado.apps.desk import profile, worker
from velado.apps.desk.answers import Source
from velado.apps.desk.project import source_digest, with_source
from velado.apps.desk.screens import open_screen
from velado.apps.desk.walk import Walk
from velado.apps.desk.wording import DESK_WORDS, at_the_desk
from velado.data.formats import FORMATS
from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.study.recipe import Recipe
from velado.text import say, told

from .desks import Desk, leftovers, people_csv


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def put(desk: Desk, name: str, data: bytes = b"a,b\n1,2\n", parts: int = 1, **headers: str) -> int:
    reply = desk.call(
        "PUT",
        f"/open/upload/{name}",
        data,
        parts,
        x_desk_token=desk.session.csrf,
        accept="application/json",
        **headers,
    )
    return reply.status


@pytest.mark.parametrize(
    "name",
    [
        "../x.csv",
        "..",
        ".hidden.csv",
        "a\\b.csv",
        "<script>.csv",
        "x\u202egpj.csv",
        "x\n.csv",
        "x" * 10_000 + ".csv",
        " ",
    ],
)
def test_hostile_names_of_files_are_refused(desk: Desk, name: str) -> None:
    assert put(desk, name) in (404, 409)
    assert list((desk.project.desk / "uploads").iterdir()) == [] and desk.project.answers().source is None


def test_an_oversized_upload_is_refused_whether_it_says_so_or_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path, largest=100)
    assert put(desk, "big.csv", b"x" * 200, content_length="200") == 409
    assert put(desk, "big.csv", b"x" * 200, parts=5) == 409
    assert put(desk, "short.csv", b"x" * 50, content_length="60") == 409
    assert list((desk.project.desk / "uploads").iterdir()) == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "no-such.csv", "a\0b", ".", ""])
def test_only_files_of_the_project_can_be_chosen(desk: Desk, name: str) -> None:
    assert desk.post("/open/choose", file=name).status == 409


def test_a_link_that_leads_out_is_refused(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.csv"
    secret.write_text("a\n1\n")
    (desk.folder / "link.csv").symlink_to(secret)
    assert desk.post("/open/choose", file="link.csv").status == 409
    (desk.folder / "own.csv").write_text("a\n1\n")
    (desk.folder / "same.csv").symlink_to(desk.folder / "own.csv")
    (desk.folder / "gone.csv").symlink_to(desk.folder / "nothing.csv")
    assert set(desk.project.files()) == {"own.csv", "same.csv"}
    assert "own.csv" in desk.get("/open").words and "link.csv" not in desk.get("/open").words


def test_what_broken_uploads_left_is_gone_after_a_start(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.project.desk / "uploads" / "part-0123").write_bytes(b"half")
    (desk.project.desk / "part-4567").mkdir()
    Desk(tmp_path)
    assert leftovers(tmp_path) == []


def test_the_desks_own_folder_is_private(desk: Desk) -> None:
    assert (desk.project.desk.stat().st_mode & 0o777) == 0o700


def test_how_a_file_was_read_is_shown_and_can_be_changed(desk: Desk) -> None:
    desk.opened("nome;peso\nJosé;1,5\nÍris;2,5\nAna;NA\n".encode("latin-1"), "pesos.csv")
    page = desk.get("/open")
    assert "José" in page.words and "3 rows" in page.words and '(";")' in page.text
    again = Desk(desk.folder).opened(
        "nome;peso\nJosé;1,5\nÍris;2,5\nAna;NA\n".encode("latin-1"),
        "pesos.csv",
        encoding="latin-1",
        separator=";",
        decimal=".",
        missing=("", "-9"),
    )
    again.read()
    recipe = again.project.recipe()
    assert recipe is not None
    schema = recipe.schema
    assert (schema.encoding, schema.separator, schema.decimal) == ("latin-1", ";", ".")
    assert schema.missing_values == ("", "-9")


def test_an_encoding_that_does_not_exist_is_refused(desk: Desk) -> None:
    desk.opened(people_csv())
    assert "no encoding" in desk.post("/open/reading", encoding="klingon").words


def test_names_of_columns_are_shown_as_text(desk: Desk) -> None:
    odd = "<script>alert(1)</script>"
    long = "x" * 10_000
    header = f'patient_id,age,"{odd}","\u202eevil",{long}'
    rows = "".join(f"P{i},{i % 9},{i % 2},{i % 3},{i % 4}\n" for i in range(40))
    desk.opened(f"{header}\n{rows}").read().person()
    for path in ("/open", "/people", "/roles"):
        text = desk.get(path).text
        assert odd not in text and "&lt;script&gt;" in text
        assert "<bdi>\u202eevil</bdi>" in text or path != "/roles"
    assert desk.roles().status == 303
    assert odd not in desk.get("/hierarchies").text + desk.get("/promise").text


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("postgresql://ana:secret@db/x", "password"),
        ("postgresql://db/x?password=secret", "password"),
        ("../x.sqlite", "leads out"),
        ("none.sqlite", "no such database"),
        ("people.csv", "no address"),
    ],
)
def test_addresses_of_databases_are_checked_and_no_password_is_kept(
    desk: Desk, address: str, word: str
) -> None:
    reply = desk.post("/open/table", address=address, table="visits")
    assert reply.status == 409 and word in reply.words
    assert all(b"secret" not in path.read_bytes() for path in desk.folder.rglob("*") if path.is_file())


def test_a_table_of_a_database_file_is_copied(desk: Desk) -> None:
    with sqlite3.connect(desk.folder / "stays.sqlite") as database:
        database.execute("CREATE TABLE stays (patient TEXT, age INTEGER)")
        database.executemany("INSERT INTO stays VALUES (?, ?)", [(f"P{i}", i % 50) for i in range(30)])
    database.close()
    folder = desk.project.runs / "20260101T000000-00000000"
    folder.mkdir()
    target = desk.project.desk / "uploads" / "table-stays.parquet"
    asked = {
        "kind": "copy",
        "place": str(desk.folder / "stays.sqlite"),
        "table": "stays",
        "target": str(target),
    }
    (folder / "job.json").write_text(json.dumps({**asked, "language": "en"}))
    assert worker.main([str(folder)]) == 0
    desk.opened(target.read_bytes(), "stays.parquet")
    assert "30 rows" in desk.get("/open").words


def test_every_format_that_is_read_is_listed_and_databases_are_offered(desk: Desk) -> None:
    read = [one for one in FORMATS.values() if (one.read or one.unpack) and one.endings]
    names = [f"t{at}.{ending}" for at, one in enumerate(read) for ending in one.endings]
    assert {"por", "zsav", "sas7bdat", "dta", "xlsx", "parquet"} <= {
        name.rpartition(".")[2] for name in names
    }
    for name in (*names, "plain.csv", "tabs.tsv", "notes.pdf", "ward.sqlite", "ward.duckdb"):
        (desk.folder / name).write_bytes(b"x")
    page = desk.get("/open").text
    assert {name for name in names if f'name="file" value="{name}"' in page} == set(names)
    assert 'name="file" value="plain.csv"' in page and "notes.pdf" not in page
    listed = page.partition('<datalist id="databases">')[2].partition("</datalist>")[0]
    assert 'value="ward.sqlite"' in listed and 'value="ward.duckdb"' in listed and "csv" not in listed


def test_only_text_has_an_encoding_and_only_a_workbook_sheets(desk: Desk) -> None:
    frame = pl.DataFrame({"patient": [f"P{i}" for i in range(30)], "age": [20 + i for i in range(30)]})
    held: dict[str, set[str]] = {}
    for name in ("people.csv", "people.parquet", "people.xlsx"):
        getattr(frame, {"csv": "write_csv", "parquet": "write_parquet", "xlsx": "write_excel"}[name[7:]])(
            desk.folder / name
        )
        desk.opened((desk.folder / name).read_bytes(), name)
        page = desk.get("/open").text
        held[name] = {
            one for one in ("encoding", "separator", "decimal", "sheet") if f' name="{one}"' in page
        }
    assert held == {
        "people.csv": {"encoding", "separator", "decimal"},
        "people.parquet": {"decimal"},
        "people.xlsx": {"decimal", "sheet"},
    }


def test_the_sheets_of_a_workbook_are_a_list_to_choose_from(desk: Desk) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(str(desk.folder / "two.xlsx")) as book:
        for name in ("Leia-me", "Exames <b>"):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, ["patient", "age"])
            sheet.write_row(1, 0, ["P1", 30])
    source = Source(file="two.xlsx", digest=source_digest(desk.folder / "two.xlsx"))
    folder = desk.project.runs / "20260101T000000-00000000"
    folder.mkdir()
    asked = {"kind": "profile", "source": str(desk.folder / "two.xlsx"), "reading": {}, "language": "en"}
    (folder / "job.json").write_text(json.dumps({**asked, "profile": str(folder / "profile")}))
    assert worker.main([str(folder)]) != 0
    desk.project.change(
        lambda answers, recipe: (replace(with_source(answers, source), profile_job=folder.name), recipe)
    )
    page = desk.get("/open")
    assert '<option value="Leia-me">' in page.text and '<option value="Exames &lt;b&gt;">' in page.text
    assert "Choose the sheet below" in page.words and "--sheet" not in page.words


FULL = """
import resource, sys
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
from velado.apps.desk.project import Project
from velado.errors import OutputError
project = Project(Path(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with project.upload("big.csv") as (file, target):
        file.write(b"x" * 100_000)
except OutputError:
    print("refused")
from dataclasses import replace
try:
    project.change(lambda answers, recipe: (replace(answers, preset="x" * 100_000), recipe))
except OutputError:
    print("refused")
"""


def test_a_full_disk_leaves_everything_as_it_was(desk: Desk) -> None:
    desk.ready()
    before = {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()}
    told = subprocess.run(
        [sys.executable, "-c", FULL, ":".join(sys.path), str(desk.folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["refused", "refused"], told.stderr
    assert {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()} == before


def laboratory() -> str:
    lines = ["idade;sexo;Na;K;Cl"]
    for i in range(120):
        cell = [f"{40 + (i * step) % 37},{i % 10}" for step in (3, 5, 7)]
        if i % 11 == 0:
            cell[i % 3] = "ND"
        if i % 13 == 0:
            cell[(i + 1) % 3] = "-999"
        lines.append(f"{i % 60};{'FM9'[i % 3]};{';'.join(cell)}")
    return "\n".join(lines) + "\n"


def test_a_code_of_many_columns_is_one_line_with_one_press(desk: Desk) -> None:
    desk.opened(laboratory(), "lab.csv")
    page = desk.get("/open")
    assert "as found (,)" in page.words
    assert page.words.count("'ND' in 3 columns") == page.words.count("'-999' in 3 columns") == 1
    assert 'name="accept" value="ND"' in page.text and 'name="accept" value="-999"' in page.text
    assert desk.post("/open/reading", missing="", accept="ND").status == 303
    source = desk.project.answers().source
    assert source is not None and source.missing == ("",)
    assert source.missing_in == {"Na": ("ND",), "K": ("ND",), "Cl": ("ND",)}


def test_codes_of_a_column_are_written_and_taken_back(desk: Desk) -> None:
    def said() -> dict[str, tuple[str, ...]]:
        source = desk.project.answers().source
        assert source is not None and source.missing is None
        return dict(source.missing_in)

    desk.opened(laboratory(), "lab.csv", missing_in={"sexo": ("9",)})
    assert "'9' in 1 column" not in desk.get("/open").words
    desk.post("/open/reading", code="ND", code_column="Cl")
    assert said() == {"sexo": ("9",), "Cl": ("ND",)}
    desk.opened(laboratory(), "lab.csv", missing_in=said())
    desk.post("/open/reading", code="wrong", code_column="no such column")
    desk.post("/open/reading", drop="1:ND")
    desk.post("/open/reading", drop="7:ND")
    assert said() == {"sexo": ("9",)}


def test_what_was_said_of_a_column_is_in_the_recipe_and_blank_in_what_is_published(desk: Desk) -> None:
    own = {"sexo": ("9",), "Na": ("ND", "-999")}
    desk.opened(laboratory(), "lab.csv", missing_in=own)
    page = desk.get("/open")
    assert "'9' in 'sexo'" in page.words and "Take back" in page.words
    desk.read()
    recipe = desk.project.recipe()
    assert recipe is not None
    columns = recipe.schema.columns
    assert columns["sexo"].missing_values == ("", "9") and columns["idade"].missing_values is None
    assert columns["Na"].kind == "numeric" and columns["K"].kind != "numeric"
    table = read_table(desk.folder / "lab.csv", recipe.schema).frame
    assert "9" in table["idade"].to_list() and "9" not in table["sexo"].to_list()
    assert not {"ND", "-999"} & set(table["Na"].to_list()) and "ND" in table["K"].to_list()


def test_codes_that_were_accepted_make_numbers_of_look_alikes(desk: Desk) -> None:
    desk.opened(laboratory(), "lab.csv", missing=("", "ND", "-999"))
    page = desk.get("/open")
    assert "'ND'" not in page.words and "'-999'" not in page.words
    desk.read()
    recipe = desk.project.recipe()
    assert recipe is not None and recipe.schema.columns["Na"].kind == "numeric"
    desk.post("/people", answer="row", seen="yes")
    assert "3 columns alike" in desk.get("/roles").words


def test_why_a_column_may_be_a_person_stands_with_it(desk: Desk) -> None:
    rows = "".join(f"{900 + i};{i % 60};{'FM'[i % 2]}\n" for i in range(80))
    desk.opened(f"Nº amostra;idade;sexo\n{rows}", "samples.csv").read()
    assert "number of a visit or event" in desk.get("/people").words


def test_cards_and_refusals_speak_the_words_of_the_page(desk: Desk) -> None:
    desk.opened(laboratory(), "lab.csv", missing=("", "ND", "-999")).read()
    desk.post("/people", answer="row", seen="yes")
    words = desk.get("/roles").words
    assert "choose the role that says so" in words and "role =" not in words
    for ours in DESK_WORDS.values():
        assert not re.search(r" = |--|\[|schema", ours), ours


def test_every_sentence_that_the_desk_words_anew_is_still_said() -> None:
    package = Path(worker.__file__).parents[2]
    own = Path(worker.__file__).with_name("wording.py")
    texts = [path.read_text("utf-8") for path in package.rglob("*.py") if path != own]
    literals = {
        node.value
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [theirs for theirs in DESK_WORDS if theirs not in literals] == []


def test_a_refused_run_says_what_to_press(desk: Desk) -> None:
    door = say(
        'For {names} set publish = false, or accept the risk with side_door = "accept".', names="'cidade'"
    )
    assert at_the_desk(door) == "Hold 'cidade' back, or accept the risk and say why."
    assert told(at_the_desk(door), "pt") != at_the_desk(door)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles are made in this process, as the worker makes them."""

    def start(request: object, kind: str, walk: object, **asked: Any) -> str:
        assert kind == "profile"
        Path(asked["profile"]).mkdir()
        file = walk.project.source_path(walk.answers.source)  # type: ignore[attr-defined]
        profile.make(file, asked["reading"], Path(asked["profile"]))
        return ""

    monkeypatch.setattr(open_screen, "start", start)


def delivered(desk: Desk, text: str, name: str = "june.csv") -> Schema:
    """The file is chosen on the page; the schema that its profile proposes."""
    (desk.folder / name).write_text(text)
    assert desk.post("/open/choose", file=name).status == 303
    found = Walk.of(desk.project).profile
    assert found is not None
    return found.schema()


def settled_month(desk: Desk) -> Recipe:
    """A first delivery with codes of the table and of columns, settled; its recipe."""
    desk.opened(laboratory(), "may.csv", missing=("", "ND"), missing_in={"sexo": ("9",), "Na": ("-999",)})
    desk.read()
    desk.post("/people", answer="row", seen="yes")
    assert desk.roles().status == 303
    recipe = desk.project.recipe()
    assert recipe is not None
    return recipe


JUNE = laboratory() + "61;F;41,0;-999;40,5\n"


@pytest.mark.usefixtures("at_once")
def test_the_next_delivery_is_shown_with_the_codes_that_its_recipe_keeps(desk: Desk) -> None:
    kept = settled_month(desk)
    proposed = delivered(desk, JUNE)
    page = desk.get("/open")
    blank = page.words.partition("These are blank in their column")[2]
    assert "'9' in 'sexo'" in blank and "'-999' in 'Na'" in blank and blank.count("Take back") == 2
    assert "were taken from the recipe" in page.words
    assert "ND" in page.text.partition('id="missing"')[2].partition("</textarea>")[0]
    # Asked is what the recipe does not say: the other columns of -999.
    assert "'9' in 1 column" not in page.words and "'ND' in" not in page.words
    assert "'-999' in 2 columns" in page.words
    found = Walk.of(desk.project).profile
    assert found is not None
    first = [dict(zip(proposed.columns, row, strict=True)) for row in found.document["first"]]
    assert [row["Na"] for row in first[:2]] == ["", "43,1"] and "9" not in {row["sexo"] for row in first}
    assert found.column("Na")["kind"] == "numeric" and found.column("K")["kind"] == "numeric"
    # What is proposed and kept says the same, and the recipe is as it was.
    desk.read()
    assert desk.project.recipe() == kept
    desk.post("/people", answer="row", seen="yes")
    assert "its recipe was kept" in desk.get("/roles").words
    assert desk.roles().status == 303 and desk.project.recipe() == kept


@pytest.mark.usefixtures("at_once")
def test_a_kept_code_is_taken_back_and_nothing_else_of_the_recipe_changes(desk: Desk) -> None:
    kept = settled_month(desk)
    delivered(desk, JUNE)
    at = list(Walk.of(desk.project).answers.source.missing_in).index("sexo")  # type: ignore[union-attr]
    assert desk.post("/open/reading", missing="ND", drop=f"{at}:9").status == 303
    page = desk.get("/open").words
    assert "'9' in 'sexo'" not in page and "'-999' in 'Na'" in page and "'9' in 1 column" in page
    desk.read()
    recipe = desk.project.recipe()
    assert recipe is not None
    columns = [replace(one, missing_values=None) if one.name == "sexo" else one for one in columns_of(kept)]
    assert recipe == replace(kept, schema=kept.schema.with_columns(columns))
    # A code of the whole table is taken back where it stands; one that is accepted joins those that stand.
    delivered(desk, JUNE + "61;M;41,0;40,5;40,5\n", "july.csv")
    assert desk.post("/open/reading", missing="", accept="-999").status == 303
    assert "'ND' in 3 columns" in desk.get("/open").words
    desk.read()
    again = desk.project.recipe()
    assert again is not None and again.schema.missing_values == ("",)
    own = {one.name: one.missing_values for one in columns_of(again) if one.missing_values}
    assert own == dict.fromkeys(("Na", "K", "Cl"), ("", "-999"))


def columns_of(recipe: Recipe) -> list[Column]:
    return list(recipe.schema.columns.values())


@pytest.mark.usefixtures("at_once")
def test_codes_written_by_hand_hold_for_the_next_delivery_as_they_are_written(desk: Desk) -> None:
    kept = settled_month(desk)
    # ND is a value of K, whatever it means elsewhere.
    columns = [replace(one, missing_values=("-999",)) if one.name == "K" else one for one in columns_of(kept)]
    kept = replace(kept, schema=kept.schema.with_columns(columns))
    desk.project.change(lambda answers, recipe: (answers, kept))
    delivered(desk, JUNE)
    page = desk.get("/open").words
    assert "'ND' in 'Na'" in page and "'-999' in 'K'" in page and "'ND' in 'K'" not in page
    assert "'ND' in 1 column" in page
    desk.read()
    assert desk.project.recipe() == kept


@pytest.mark.usefixtures("at_once")
def test_codes_are_kept_for_the_same_columns_alone(desk: Desk) -> None:
    settled_month(desk)
    other = JUNE.replace("idade;sexo;Na;K;Cl", "idade;sexo;Na;K;Ca")
    assert all(one.missing_values is None for one in delivered(desk, other, "other.csv").columns.values())
    page = desk.get("/open").words
    assert "blank in their column" not in page and "from the recipe in" not in page
    assert "'-999' in 3 columns" in page
    # A code that is said of such a table is said of it, and brings none of the recipe's.
    assert desk.post("/open/reading", missing="", code="-9", code_column="Ca").status == 303
    source = desk.project.answers().source
    assert source is not None and (source.missing, source.missing_in) == (("",), {"Ca": ("-9",)})
    # Read with a wrong separator it has other columns; read right it has the recipe's, with their codes.
    delivered(desk, JUNE)
    assert desk.post("/open/reading", missing="ND", separator="|").status == 303
    assert "blank in their column" not in desk.get("/open").words
    assert desk.post("/open/reading", missing="", separator=";").status == 303
    page = desk.get("/open").words
    assert "'9' in 'sexo'" in page and "'ND' in" not in page
